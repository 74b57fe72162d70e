"""What values an index integer can take, from how it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oic import dtypes
from oic.ir import dims
from oic.ir.control import For, If
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim
from oic.ir.index import (
    AssertShape,
    CheckIds,
    CheckRange,
    ExtentBind,
    IndexAdd,
    IndexConst,
    IndexDiv,
    IndexLoad,
    IndexMax,
    IndexMin,
    IndexMod,
    IndexMul,
    IndexSize,
    IndexSub,
    IndexWhen,
    IndexWrap,
)
from oic.ir.state import CacheCount, State, StateGet, StateReach
from oic.ir.types import StateType

WIDE = (dtypes.i64.low, dtypes.i64.high)
Range = tuple[int, int]
MOST_LOOPS = 8  # around each other, of which an index is followed
Linear = dict[object, int]  # coefficient, not 0, of each atom (a value or a size); of 1 under None


class Ranges(dict[Value, Range]):
    """Ranges found of index integers, and what they are as sums: true as long as their ops are.

    Give one of them to all questions about a program that is not changed in between, and each integer is
    looked at once: without it, the last of a chain of increments costs as much as the chain is long.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sums: dict[Value, Linear] = {}


def value_range(value: Value, known: Ranges | None = None) -> Range:
    """The smallest and the largest value an index integer can have.

    known   ranges found before, to which those found now are added; they hold while the ops do
    """
    known = Ranges() if known is None else known
    if value in known:
        return known[value]
    waiting = [value]
    while waiting:  # no recursion: a chain of increments may be thousands of ops long
        inputs, rule = _rule(waiting[-1])
        missing = [v for v in inputs if v not in known]
        if missing:
            waiting += missing
        else:
            found = waiting.pop()
            known[found] = rule(*(known[v] for v in inputs))
    return known[value]


def _rule(value: Value) -> tuple[Sequence[Value], Callable[..., Range]]:
    """The values that a range depends on, and how."""
    op = value.op
    match op:
        case IndexConst(value=integer):
            return (), lambda: (integer, integer)
        case IndexSize(size=size):
            return (), lambda: dims.bounds(size)
        case (
            IndexAdd(left=left, right=right)
            | IndexSub(left=left, right=right)
            | IndexMul(left=left, right=right)
            | IndexMin(left=left, right=right)
            | IndexMax(left=left, right=right)
            | IndexDiv(left=left, right=right)
            | IndexMod(left=left, right=right)
        ):
            return (left, right), _BINARY[type(op)]
        case IndexWrap(value=inner, dtype=dtype):
            return (inner,), lambda a: (
                a if dtype.low <= a[0] and a[1] <= dtype.high else (dtype.low, dtype.high)
            )
        case IndexWhen(test=test, value=chosen):
            return (test, chosen), _chosen_range
        case If() | For():
            return _ends(op, op.results.index(value)), _joined_range
        case None if (loop := _index_of(value)) is not None:
            return (loop.start, loop.end), _index_range
    return (), lambda: _read_range(op)


def _read_range(op: Op | None) -> Range:
    """What can be read from a tensor or from state."""
    match op:
        case IndexLoad(x=x):
            return (x.dtype.low, min(x.dtype.high, WIDE[1]))
        case StateGet(state=state) | CacheCount(table=state):
            return _state_range(state, op)
        case StateReach(state=state, axis=axis):
            assert isinstance(state.type, StateType)
            return 0, state.type.capacity_shape[axis]
    return WIDE


def _product_range(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _chosen_range(test: Range, chosen: Range) -> Range:
    """A value where a test is above 0, else 0."""
    if test[1] <= 0:
        return 0, 0
    return chosen if test[0] > 0 else (min(0, chosen[0]), max(0, chosen[1]))


def quotient_range(a: Range, b: Range) -> Range:
    """left // right; 0 where right is below 1."""
    corners = [x // max(1, y) for x in a for y in b]
    return (min(corners), max(corners)) if b[0] > 0 else (min(0, *corners), max(0, *corners))


def remainder_range(a: Range, b: Range) -> Range:
    """left % right; 0 where right is below 1."""
    if a[0] >= 0 and a[1] < b[0]:
        return a
    if 0 < b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
        return a[0] % b[0], a[1] % b[0]
    most = max(0, b[1] - 1)
    return 0, min(most, a[1]) if a[0] >= 0 else most


_BINARY: dict[type[Op], Callable[[Range, Range], Range]] = {
    IndexAdd: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    IndexSub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    IndexMul: _product_range,
    IndexMin: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    IndexMax: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    IndexDiv: quotient_range,
    IndexMod: remainder_range,
}


def _ends(op: If | For, position: int) -> list[Value]:
    """What either branch, or the start and the last turn of a loop, gives for a result."""
    ends = [region.terminator.operands[position] for region in op.regions]
    return [*ends, op.init[position]] if isinstance(op, For) else ends


def _joined_range(*ranges: Range) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _index_range(low: Range, high: Range) -> Range:
    """A loop's index lies between its bounds."""
    return low[0], max(low[0], high[1] - 1)


def _state_range(state: Value, op: object) -> Range:
    type_ = state.type
    assert isinstance(type_, StateType)
    if isinstance(op, CacheCount):
        spec = [*type_.table, *type_.auto][op.axis]
        return 0, WIDE[1] if type_.ring and op.axis == len(type_.table) - 1 else spec.capacity
    assert isinstance(state.op, State)
    if state.op.limit is not None:
        return 0, state.op.limit
    return type_.dtype.low, min(type_.dtype.high, WIDE[1])


def _index_of(value: Value) -> For | None:
    """The loop whose index this is."""
    owner = value.owner.owner if isinstance(value.owner, Block) else None
    return owner if isinstance(owner, For) and owner.body.args[0] is value else None


def may_refuse(op: Op, known: Ranges | None = None) -> bool:
    """The op, without what is nested in it, may end the step with an error.

    known   as for `value_range`
    """
    match op:
        case AssertShape() | ExtentBind():
            return not op.checked
        case CheckRange() | CheckIds():
            return True
        case IndexLoad(x=x):
            return x.dtype.high > WIDE[1]
        case StateGet(state=state):
            assert isinstance(state.type, StateType)
            return state.type.dtype.high > WIDE[1]
        case IndexAdd() | IndexSub() | IndexMul():
            low, high = value_range(op.result, known)
            return low < WIDE[0] or high > WIDE[1]
    return False


def exact(value: Value, known: Ranges | None = None) -> int | None:
    """The value of an index integer known at build, or None; `known` as for `value_range`."""
    low, high = value_range(value, known)
    return low if low == high else None


# ---------------------------------------------------------------- differences


def linear(value: Value, known: Ranges | None = None) -> Linear:
    """An index integer as a sum of multiples of values that are no sums themselves.

    known   as for `value_range`
    """
    known = Ranges() if known is None else known
    if value in known.sums:
        return known.sums[value]
    parts: dict[Value, list[tuple[Value, int]]] = {}  # what each sum is made of
    done: dict[Value, None] = {}  # in order: what a sum is made of comes before it
    waiting = [value]
    while waiting:
        last = waiting[-1]
        if last not in parts:
            parts[last] = _addends(last, known) if last not in known.sums else []
            waiting += [part for part, _ in parts[last] if part not in parts]
        else:
            done[waiting.pop()] = None
    times = dict.fromkeys(parts, 0)
    times[value] = 1
    total: Linear = {}
    for one in reversed(done):
        for part, factor in parts[one]:
            times[part] += times[one] * factor
        if not parts[one]:
            total = added(total, known.sums[one] if one in known.sums else _atom(one), times[one])
    known.sums[value] = total
    return total


def _addends(value: Value, known: Ranges) -> list[tuple[Value, int]]:
    """What a value is the sum of, each with its factor; nothing for what is no sum."""
    match value.op:
        case IndexAdd(left=left, right=right):
            return [(left, 1), (right, 1)]
        case IndexSub(left=left, right=right):
            return [(left, 1), (right, -1)]
        case IndexMul(left=left, right=right):
            for factor, other in ((left, right), (right, left)):
                low, high = value_range(factor, known)
                if low == high:
                    return [(other, low)]
    return []


def _atom(value: Value) -> Linear:
    match value.op:
        case IndexConst(value=integer):
            return {None: integer} if integer else {}
        case IndexSize(size=size):
            return linear_size(size)
    return {value: 1}


def difference(a: Value | int, b: Value | int, known: Ranges | None = None) -> Range:
    """The smallest and the largest value of a - b; what both share cancels.

    known   as for `value_range`
    """
    first = linear(a, known) if isinstance(a, Value) else linear_size(a)
    second = linear(b, known) if isinstance(b, Value) else linear_size(b)
    form = added(first, second, -1)
    low, high = linear_range(form, known)
    least, most = (linear_range(_by_loops(form, sign, known), known) for sign in (1, -1))
    return max(low, least[0]), min(high, most[1])


def _by_loops(form: Linear, sign: int, known: Ranges | None) -> Linear:
    """A sum with loop indices at the ends of their loops that make it least (sign 1) or largest (-1)."""
    for _ in range(MOST_LOOPS):
        index = next((atom for atom in form if isinstance(atom, Value) and _index_of(atom)), None)
        if index is None:
            break
        loop, c = _index_of(index), form[index]
        assert loop is not None
        at = linear(loop.start, known) if c * sign > 0 else added(linear(loop.end, known), {None: 1}, -1)
        rest = {atom: n for atom, n in form.items() if atom is not index}
        form = added(rest, {atom: n * c for atom, n in at.items()}, 1)
    return form


def linear_range(form: Linear, known: Ranges | None = None) -> Range:
    """The smallest and the largest value of a sum of multiples.

    known   as for `value_range`
    """
    low = high = 0
    for atom, c in form.items():
        least, most = _atom_range(atom, known)
        low += min(c * least, c * most)
        high += max(c * least, c * most)
    return low, high


def _atom_range(atom: object, known: Ranges | None) -> Range:
    if atom is None:
        return 1, 1
    if isinstance(atom, dims.Extent):
        return 0, atom.maximum
    if isinstance(atom, dims.Expr):
        return dims.bounds(atom)
    assert isinstance(atom, Value)
    return value_range(atom, known)


def linear_size(size: Dim) -> Linear:
    """A size as a sum of multiples of extents; one that is none is an atom itself."""
    if isinstance(size, int):
        return {None: size} if size else {}
    found: Linear = {}
    for atoms, c in size.terms:
        if len(atoms) > 1 or any(not isinstance(a, dims.Extent) for a in atoms):
            return {size: 1}
        found[atoms[0] if atoms else None] = c
    return found


def added(a: Linear, b: Linear, sign: int) -> Linear:
    """a + sign * b."""
    total = dict(a)
    for atom, c in b.items():
        total[atom] = total.get(atom, 0) + sign * c
    return {atom: c for atom, c in total.items() if c}
