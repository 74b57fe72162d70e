"""What checks that have passed show of index integers, and which ops may refuse for all that."""

from __future__ import annotations

from oic.ir.core import Op, Value
from oic.ir.index import (
    AssertShape,
    CheckIds,
    CheckRange,
    ExtentBind,
    IndexAdd,
    IndexLoad,
    IndexMax,
    IndexMin,
    IndexMul,
    IndexSub,
)
from oic.ir.ranges import WIDE, Range, linear, linear_range
from oic.ir.state import StateGet

Ranges = dict[object, Range]  # of what is no sum of other values


def refuses(op: Op, known: Ranges) -> bool:
    """The op itself can end the step, for all that checks before it have shown."""
    match op:
        case ExtentBind(checked=checked) | AssertShape(checked=checked):
            return not checked
        case CheckRange() | CheckIds():
            return True
        case IndexAdd() | IndexSub() | IndexMul():
            low, high = _range(op.result, {k: r for k, r in known.items() if k is not op.result})
            return low < WIDE[0] or high > WIDE[1]
        case IndexLoad(x=x):
            return x.dtype.high > WIDE[1]
        case StateGet(state=state):
            return state.type.dtype.high > WIDE[1]  # type: ignore[union-attr]
    return False


def learn(op: Op, known: Ranges) -> None:
    """Note the range of a value that a check of this block has let pass."""
    match op:
        case CheckRange(value=value, low=low, high=high):
            least, most = _bound(low, known)[0], _bound(high, known)[1]
        case ExtentBind(value=value, extent=extent):
            least, most = 0, extent.maximum
        case _:
            return
    form = linear(value)
    atoms = [a for a in form if a is not None]
    if len(atoms) == 1 and form[atoms[0]] == 1:
        moved, (low_now, high_now) = form.get(None, 0), _atom(atoms[0], known)
        known[atoms[0]] = max(low_now, least - moved), min(high_now, most - moved)


def _bound(bound: int | Value, known: Ranges) -> Range:
    return _range(bound, known) if isinstance(bound, Value) else (bound, bound)


def _range(value: Value, known: Ranges) -> Range:
    """As `value_range`, with what checks have shown."""
    low = high = 0
    for atom, c in linear(value).items():
        least, most = _atom(atom, known)
        low, high = low + min(c * least, c * most), high + max(c * least, c * most)
    return low, high


def _atom(atom: object, known: Ranges) -> Range:
    """The range of what is no sum of other values."""
    low, high = linear_range({atom: 1})
    if isinstance(atom, Value) and isinstance(atom.op, (IndexMin, IndexMax, IndexMul)):
        a, b = (_range(v, known) for v in atom.op.operands)
        if isinstance(atom.op, IndexMul):
            corners = [x * y for x in a for y in b]
            low, high = min(corners), max(corners)
        else:
            pick = min if isinstance(atom.op, IndexMin) else max
            low, high = pick(a[0], b[0]), pick(a[1], b[1])
    least, most = known.get(atom, WIDE)
    return max(low, least), min(high, most)
