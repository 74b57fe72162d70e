"""Refuse a step before it computes what it then could not use.

    %y = matmul(%x, %w)                       %p = state.get(%pos)
    %p = state.get(%pos)                =>    check.range(%p, 0, 511)
    check.range(%p, 0, 511)                   %y = matmul(%x, %w)
    state.store(%K, %y, [%p])                 state.store(%K, %y, [%p])

Checks, and the arithmetic they need, move to the front as far as the effect before them, past what
only computes.  They keep their order, so the same step is refused for the same reason: behind a
check of computed data all others stay.  What is stored can then be computed in its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from oic.ir.core import Block, Op, sizes_used
from oic.ir.dims import Extent
from oic.ir.module import Module
from oic.ops.control import Barrier, Parallel
from oic.ops.index import ExtentBind, IndexLoad, IndexOp
from oic.ops.ranges import may_refuse
from oic.ops.state import StateGet


def refuse_early(module: Module) -> None:
    """Move the checks of every block."""
    for func in module.functions():
        for block in func.body.walk():
            _block(block)


def _block(block: Block) -> None:
    ops: list[Op] = []
    stretch: list[Op] = []
    for op in block.ops:
        if op.terminator or isinstance(op, (Barrier, Parallel)) or op.touched("write"):
            ops += [*_checks_first(stretch), op]
            stretch = []
        else:
            stretch.append(op)
    block.set_ops([*ops, *stretch])


def _checks_first(stretch: list[Op]) -> list[Op]:
    """Ops without effects, those that may refuse in front."""
    front: dict[Op, None] = {}
    binds = {op.extent: op for op in stretch if isinstance(op, ExtentBind)}
    own = set(stretch)
    for op in stretch:
        if not any(may_refuse(inner) for inner in op.walk()):
            continue
        needed = _needed(op, own, binds)
        if op.regions or not all(_is_light(o) for o in needed):
            break
        front |= {o: None for o in stretch if o in needed and o not in front}
    return [*front, *(op for op in stretch if op not in front)]


def _needed(op: Op, own: set[Op], binds: Mapping[Extent, Op]) -> set[Op]:
    """The op and all it needs of the same stretch."""
    found: set[Op] = set()
    waiting = [op]
    while waiting:
        at = waiting.pop()
        if at in found:
            continue
        found.add(at)
        makers = [v.op for v in at.operands] + [binds[e] for e in sizes_used(at) if e in binds]
        waiting += [m for m in makers if m is not None and m in own]
    return found


def _is_light(op: Op) -> bool:
    """Integers, checks and views: nothing is computed."""
    return (
        isinstance(op, (IndexOp, IndexLoad, StateGet))
        or may_refuse(op)
        or op.view
        or isinstance(op, ExtentBind)
    )
