"""Which refusals come after an effect, and leave the state changed (SPEC, 8.6)."""

from __future__ import annotations

from oic.diagnostics import Span
from oic.ir.control import CheckTurns, For, If
from oic.ir.core import Block, Op, Value, home_of
from oic.ir.index import IndexAdd, IndexMul, IndexSub
from oic.ir.module import Module
from oic.ir.ranges import Range, exact
from oic.operators.known import Known
from oic.operators.refusal import variable_of

Place = tuple[Span | None, str]  # the source of a check, and what it is about


def late_checks(module: Module) -> list[Op]:
    """The ops that may refuse the step after an effect of their function."""
    found: list[Op] = []
    for func in module.functions():
        _late(func.body, False, found, Known())
    return found


def late_places(module: Module) -> list[Place]:
    """Their places in the source, each once, and the variable: else the text itself."""
    places: dict[Place, None] = {}
    for op in late_checks(module):
        text = op.span.text if op.span is not None else op.name
        places[op.span, variable_of(op) or text] = None
    return list(places)


def _late(block: Block, changed: bool, found: list[Op], known: Known) -> bool:
    """Collect what may refuse once the state has been changed; whether it has been after the block.

    known   what checks before have shown
    """
    for op in block.ops:
        if changed and not op.regions and _is_asked(op) and known.refuses(op):
            found.append(op)
        if isinstance(op, If):
            changed = any([_late(region, changed, found, Known(known)) for region in op.regions])
        elif isinstance(op, For):  # the second turn comes after the effects of the first
            inner = Known(known)
            changed = _late(op.body, changed or any(map(_effect, op.walk())), found, inner)
            known.shown |= _lasting(op, inner)
        elif isinstance(op, CheckTurns):
            _late(op.ends, changed, found, known)
        elif op.name != "fused":
            for region in op.regions:
                changed = _late(region, changed, found, Known(known))
        known.learn(op)
        changed = changed or _effect(op)
    return changed


def _lasting(loop: For, inner: Known) -> dict[object, Range]:
    """What checks in a loop that surely has a turn show of what comes from outside."""
    first, end = exact(loop.start, inner.ranges), exact(loop.end, inner.ranges)
    if first is None or end is None or end <= first:
        return {}
    inside = set(loop.body.walk())
    return {a: r for a, r in inner.shown.maps[0].items() if not (isinstance(a, Value) and home_of(a) in inside)}


def _is_asked(op: Op) -> bool:
    """Not arithmetic of the compiler's own, which the checks before it keep within 64 bits."""
    return not isinstance(op, (IndexAdd, IndexSub, IndexMul)) or op.written


def _effect(op: Op) -> bool:
    return bool(op.writes) and not op.regions
