"""What values an index integer can take, from how it is made."""

from __future__ import annotations

from oic.ir import dims
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim
from oic.ir.types import StateType
from oic.ops.control import For, If
from oic.ops.index import (
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
from oic.ops.state import CacheCount, State, StateGet, StateReach

WIDE = (-(1 << 63), (1 << 63) - 1)
Range = tuple[int, int]
MOST_LOOPS = 8  # around each other, of which an index is followed


def value_range(value: Value) -> Range:
    """The smallest and the largest value an index integer can have."""
    op = value.op
    match op:
        case IndexConst(value=known):
            return known, known
        case IndexSize(size=size):
            return dims.bounds(size)
        case IndexAdd(left=left, right=right):
            a, b = value_range(left), value_range(right)
            return a[0] + b[0], a[1] + b[1]
        case IndexSub(left=left, right=right):
            a, b = value_range(left), value_range(right)
            return a[0] - b[1], a[1] - b[0]
        case IndexMul(left=left, right=right):
            a, b = value_range(left), value_range(right)
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case IndexMin(left=left, right=right):
            a, b = value_range(left), value_range(right)
            return min(a[0], b[0]), min(a[1], b[1])
        case IndexMax(left=left, right=right):
            a, b = value_range(left), value_range(right)
            return max(a[0], b[0]), max(a[1], b[1])
        case IndexWrap(value=inner, dtype=dtype):
            a = value_range(inner)
            return a if dtype.low <= a[0] and a[1] <= dtype.high else (dtype.low, dtype.high)
        case IndexDiv(left=left, right=right):
            return quotient_range(value_range(left), value_range(right))
        case IndexMod(left=left, right=right):
            return remainder_range(value_range(left), value_range(right))
        case IndexWhen(test=test, value=chosen):
            never, always = value_range(test)[1] <= 0, value_range(test)[0] > 0
            least, most = value_range(chosen)
            if never:
                return 0, 0
            return (least, most) if always else (min(0, least), max(0, most))
        case IndexLoad(x=x):
            return (x.dtype.low, min(x.dtype.high, WIDE[1]))
        case StateGet(state=state) | CacheCount(table=state):
            return _state_range(state, op)
        case StateReach(state=state, axis=axis):
            assert isinstance(state.type, StateType)
            return 0, state.type.capacity_shape[axis]
        case If() | For():
            return _joined_range(op, op.results.index(value))
        case None if isinstance(value.owner, Block):
            return _argument_range(value)
    return WIDE


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


def _joined_range(op: If | For, position: int) -> Range:
    """What either branch, or the start and the last turn of a loop, can give."""
    ends = [region.terminator.operands[position] for region in op.regions]
    if isinstance(op, For):
        ends.append(op.init[position])
    ranges = [value_range(end) for end in ends]
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


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


def _argument_range(value: Value) -> Range:
    """A loop's index lies between its bounds."""
    loop = _index_of(value)
    if loop is None:
        return WIDE
    low, high = value_range(loop.start), value_range(loop.end)
    return low[0], max(low[0], high[1] - 1)


def _index_of(value: Value) -> For | None:
    """The loop whose index this is."""
    owner = value.owner.owner if isinstance(value.owner, Block) else None
    return owner if isinstance(owner, For) and owner.body.args[0] is value else None


def may_refuse(op: Op) -> bool:
    """The op, without what is nested in it, may end the step with an error."""
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
            low, high = value_range(op.result)
            return low < WIDE[0] or high > WIDE[1]
    return False


def exact(value: Value) -> int | None:
    """The value of an index integer known at build, or None."""
    low, high = value_range(value)
    return low if low == high else None


# ---------------------------------------------------------------- differences

Linear = dict[object, int]  # coefficient, not 0, of each atom (a value or a size); of 1 under None


def linear(value: Value) -> Linear:
    """An index integer as a sum of multiples of values that are no sums themselves."""
    op = value.op
    match op:
        case IndexConst(value=known):
            return {None: known} if known else {}
        case IndexSize(size=size):
            return linear_size(size)
        case IndexAdd(left=left, right=right):
            return added(linear(left), linear(right), 1)
        case IndexSub(left=left, right=right):
            return added(linear(left), linear(right), -1)
        case IndexMul(left=left, right=right):
            for factor, other in ((left, right), (right, left)):
                times = exact(factor)
                if times is not None:
                    return {atom: c * times for atom, c in linear(other).items()}
    return {value: 1}


def difference(a: Value | int, b: Value | int) -> Range:
    """The smallest and the largest value of a - b; what both share cancels."""
    first = linear(a) if isinstance(a, Value) else linear_size(a)
    second = linear(b) if isinstance(b, Value) else linear_size(b)
    form = added(first, second, -1)
    low, high = linear_range(form)
    least, most = (linear_range(_by_loops(form, sign)) for sign in (1, -1))
    return max(low, least[0]), min(high, most[1])


def _by_loops(form: Linear, sign: int) -> Linear:
    """A sum with loop indices at the ends of their loops that make it least (sign 1) or largest (-1)."""
    for _ in range(MOST_LOOPS):
        index = next((atom for atom in form if isinstance(atom, Value) and _index_of(atom)), None)
        if index is None:
            break
        loop, c = _index_of(index), form[index]
        assert loop is not None
        at = linear(loop.start) if c * sign > 0 else added(linear(loop.end), {None: 1}, -1)
        rest = {atom: n for atom, n in form.items() if atom is not index}
        form = added(rest, {atom: n * c for atom, n in at.items()}, 1)
    return form


def linear_range(form: Linear) -> Range:
    """The smallest and the largest value of a sum of multiples."""
    low = high = 0
    for atom, c in form.items():
        least, most = _atom_range(atom)
        low += min(c * least, c * most)
        high += max(c * least, c * most)
    return low, high


def _atom_range(atom: object) -> Range:
    if atom is None:
        return 1, 1
    if isinstance(atom, dims.Extent):
        return 0, atom.maximum
    if isinstance(atom, dims.Expr):
        return dims.bounds(atom)
    assert isinstance(atom, Value)
    return value_range(atom)


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
