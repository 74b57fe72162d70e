"""Schedule checks before what only computes: a step that is refused has computed nothing in vain.

    %y = matmul(%x, %w)                       %p = state.get(%pos)
    %p = state.get(%pos)                =>    check.range(%p, 0, 511)
    check.range(%p, 0, 511)                   %y = matmul(%x, %w)
    state.store(%K, [%p], %y)                 state.store(%K, [%p], %y)

Checks, and the arithmetic they need, move to the front as far as the effect before them, past what
only computes.  They keep their order, so the same step is refused for the same reason: behind a
check of computed data all others stay.  What is stored can then be computed in its place.
"""

from collections.abc import Container, Iterator, Mapping

from oic.ir.control import Barrier, CheckIterations, Parallel
from oic.ir.core import Op, sizes_used
from oic.ir.dims import Extent
from oic.ir.grouping import reach
from oic.ir.index import ExtentBind, IndexLoad, IndexOp
from oic.ir.module import Module
from oic.ir.ranges import Ranges, may_refuse
from oic.ir.state import StateGet


def schedule_checks(module: Module) -> None:
    """Move the checks of every block."""
    ranges = Ranges()  # ops are moved, not changed
    for block in module.blocks():
        ops: list[Op] = []
        stretch: list[Op] = []
        for op in block.ops:
            effect = (op.writes or op.regions) and op.touched("write")
            if effect or op.terminator or isinstance(op, (Barrier, Parallel)):
                ops += [*_checks_first(stretch, ranges), op]
                stretch = []
            else:
                stretch.append(op)
        block.set_ops([*ops, *stretch])


def _checks_first(stretch: list[Op], ranges: Ranges) -> list[Op]:
    """Ops without effects, those that may refuse in front."""
    front: dict[Op, None] = {}  # with all that they need
    binds = {op.extent: op for op in stretch if isinstance(op, ExtentBind)}
    places = {op: place for place, op in enumerate(stretch)}
    for op in stretch:
        if op in front or not may_refuse([op], ranges):
            continue
        needed = _needed(op, places, binds, front)
        if (op.regions and not isinstance(op, CheckIterations)) or not all(_is_light(o, ranges) for o in needed):
            break
        front |= dict.fromkeys(sorted(needed, key=places.__getitem__))
    return [*front, *(op for op in stretch if op not in front)]


def _needed(op: Op, own: Container[Op], binds: Mapping[Extent, Op], front: Container[Op]) -> set[Op]:
    """The op and all it needs of the same stretch, but for what is in front already."""

    def makers(at: Op) -> Iterator[Op]:
        for inner in at.walk():
            found = [*(v.op for v in inner.operands), *(binds[e] for e in sizes_used(inner) if e in binds)]
            yield from (m for m in found if m is not None and m in own and m not in front)

    return set(reach([op], makers))


def _is_light(op: Op, ranges: Ranges) -> bool:
    """Integers, checks and views: nothing is computed."""
    integer = isinstance(op, (IndexOp, IndexLoad, StateGet, CheckIterations, ExtentBind))
    return integer or op.view or ranges.refuses(op)
