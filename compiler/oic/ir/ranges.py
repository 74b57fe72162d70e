"""The algebra of index integers: the values each can take, the sum that it is, who may refuse the step.

    %e = index.add(%p, %n)      %p in 0..511, %n in 0..4   =>   %e in 0..515, and %e = 1*%p + 1*N
    %d = index.sub(%e, %p)      %d = N, as what both share cancels

A sum is a multiple of each of its *atoms*: values that are no sums themselves, extents, and products and
quotients of extents.  An extent that was bound to an integer is that integer.  What checks, branches
and loops show at a place of a function, `ir.facts` adds.
"""

from collections.abc import Callable, Iterable
from typing import Any

from oic.ir import dims, index, intervals
from oic.ir.control import For, If
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.intervals import WIDE, Range
from oic.ir.state import CacheCount, State, StateGet, StateReach
from oic.ir.types import StateType, TensorType

FormAtom = Value | Extent | Expr | None
LinearForm = dict[FormAtom, int]  # coefficient, not 0, of each atom; of 1 under None
CHECKS = (index.CheckRange, index.CheckIds, index.ExtentBind, index.AssertShape)
MOST_LOOPS = 8  # around each other, of which an index is followed
MOST_ATOMS = 32  # of a sum; one of more is an atom itself

SIGNED = (index.IndexAdd, index.IndexSub, index.IndexMul, index.IndexDiv, index.IndexMod)
BINARY: dict[Any, Callable[[Range, Range], Range]] = {kind: intervals.ARITHMETIC[kind.sign] for kind in SIGNED}
BINARY |= {index.IndexMin: intervals.smaller, index.IndexMax: intervals.larger}


class _Missing(Exception):
    """What a rule needs is not known yet: its argument."""


class _Known(dict[Any, Any]):
    """What was found of values; a rule that looks for what is not there waits for it (`Ranges._solved`)."""

    def __missing__(self, value: Value) -> Any:
        raise _Missing(value)


class Ranges:
    """What is known of index integers wherever they are; found once, and kept.

    ops     some may bind an extent: it is then the integer that it is bound to
    """

    def __init__(self, ops: Iterable[Op] = ()) -> None:
        self.bound = {op.extent: op.value for op in ops if isinstance(op, index.ExtentBind)}
        self._ranges: dict[Any, Range] = _Known({None: (1, 1)})
        self._sums: dict[Value, LinearForm] = _Known()

    def of(self, value: Value) -> Range:
        """The smallest and the largest value an index integer can have."""
        known, form = self._range(value), self.linear(value)
        # A value that is no sum is itself an atom, whose range is known already.
        return intervals.meet(WIDE, known if value in form else intervals.meet(known, self.of_sum(form)))

    def exact(self, value: Value) -> int | None:
        """The value of an index integer known at build, or None."""
        low, high = self.of(value)
        return low if low == high else None

    def fits(self, op: index.IndexArithmetic) -> bool:
        """The result of arithmetic stays within 64 bits."""
        alone = (BINARY[type(op)](of(op.left), of(op.right)) for of in (self._range, self.of))
        found = any(intervals.within(range_, WIDE) for range_ in alone)
        return found or intervals.within(self.of_sum(self.linear(op.result)), WIDE)

    def refuses_source(self, op: Op) -> bool:
        """What the source computes may leave 64 bits, which refuses the step even where nothing uses it."""
        return (isinstance(op, (index.IndexLoad, StateGet)) or getattr(op, "written", False)) and self.refuses(op)

    def refuses(self, op: Op) -> bool:
        """The op, without what is nested in it, may end the step with an error."""
        rule = _REFUSALS.get(type(op))
        return rule is not None and rule(self, op)

    # ---------------------------------------------------------------- sums

    def linear(self, part: Value | Dim) -> LinearForm:
        """An index integer or a size as a sum of multiples of atoms; not to be changed."""
        if isinstance(part, Value):
            found = self._sums.get(part)
            return self._solved(part, self._sums, self._sum_rule) if found is None else found
        if isinstance(part, int):
            return {None: part} if part else {}
        total: LinearForm = {}
        for atoms, c in part.terms:
            one: FormAtom = None
            if atoms:
                one = atoms[0] if len(atoms) == 1 and isinstance(atoms[0], Extent) else Expr(((atoms, 1),))
            bound = self.bound.get(one) if isinstance(one, Extent) else None
            total = added(total, {one: 1} if bound is None else self.linear(bound), c)
        return total

    def difference(self, a: Value | Dim, b: Value | Dim) -> Range:
        """The smallest and the largest value of a - b; what both share cancels."""
        form = added(self.linear(a), self.linear(b), -1)
        if next(filter(index_of, form), None) is None:
            return self.of_sum(form)
        return self.least(form), -self.least(added({}, form, -1))

    def least(self, form: LinearForm) -> int:
        """The smallest value of a sum."""
        least = self.of_sum(form)[0]
        inner = self._by_loops(form)
        return least if inner is form else max(least, self.of_sum(inner)[0])

    def of_sum(self, form: LinearForm) -> Range:
        """The smallest and the largest value of a sum, every atom taken by itself."""
        least = most = 0
        known = self._ranges.get
        for atom, c in form.items():
            low, high = known(atom) or self._atom_range(atom)
            least, most = least + c * (low if c > 0 else high), most + c * (high if c > 0 else low)
        return least, most

    def _by_loops(self, form: LinearForm) -> LinearForm:
        """A sum with loop indices at the ends of their loops that make it least."""
        for _ in range(MOST_LOOPS):
            counter = next(filter(index_of, form), None)
            if (loop := index_of(counter)) is None:
                break
            c = form[counter]
            at = self.linear(loop.start) if c > 0 else added(self.linear(loop.end), {None: 1}, -1)
            form = added({atom: n for atom, n in form.items() if atom is not counter}, at, c)
        return form

    def _atom_range(self, atom: FormAtom) -> Range:
        if atom is None:
            return 1, 1
        if isinstance(atom, Value):
            return self._range(atom)
        return self._extent_range(atom) if isinstance(atom, Extent) else self._size_range(atom)

    def _size_range(self, size: Dim) -> Range:
        return dims.bounds(size, self._extent_range)

    def _extent_range(self, extent: Extent) -> Range:
        whole, bound = (0, extent.maximum), self.bound.get(extent)
        return whole if bound is None else intervals.meet(whole, self._range(bound))

    def _sum_rule(self, value: Value) -> LinearForm:
        """By how the value is made, from the sums of what it is made of."""
        op: Any = value.op
        sums = self._sums
        match op:
            case index.IndexAdd(left=left, right=right) | index.IndexSub(left=left, right=right):
                form = added(sums[left], sums[right], 1 if type(op) is index.IndexAdd else -1)
                return form if len(form) <= MOST_ATOMS else {value: 1}
            case index.IndexConst(value=integer):
                return {None: integer} if integer else {}
            case index.IndexSize(size=size):
                self._wait_for(size, sums)
                return self.linear(size)
            case index.IndexMul(left=left, right=right):
                (low, high), (least, most) = self._range(left), self._range(right)
                if low == high:
                    return added({}, sums[right], low)
                if least == most:
                    return added({}, sums[left], least)
        return {value: 1}

    def _wait_for(self, size: Dim, found: dict[Value, Any]) -> None:
        """What the integers that extents of a size were bound to give has to be known."""
        for extent in dims.extents([size]):
            if (value := self.bound.get(extent)) is not None and value not in found:
                raise _Missing(value)

    # --------------------------------------------------------------- ranges

    def _range(self, value: Value) -> Range:
        """By how the value is made, from the ranges of what it is made of."""
        found = self._ranges.get(value)
        return self._solved(value, self._ranges, self._range_rule) if found is None else found

    def _range_rule(self, value: Value) -> Range:
        """By how the value is made, from the ranges of what it is made of."""
        op: Any = value.op
        ranges = self._ranges
        if (binary := BINARY.get(type(op))) is not None:
            left, right = op.left, op.right
            least = right.op if type(op) is index.IndexSub else None
            if isinstance(least, index.IndexMin) and left in least.operands:
                other = least.left if least.right is left else least.right
                return 0, max(0, ranges[left][1] - ranges[other][0])  # x - min(x, y) = max(0, x - y)
            return binary(ranges[left], ranges[right])
        match op:
            case index.IndexConst(value=integer):
                return integer, integer
            case index.IndexSize(size=size):
                self._wait_for(size, ranges)
                return self._size_range(size)
            case index.IndexEnd(end=end, count=count):
                return _end_range(ranges[end], ranges[count])
            case index.IndexWrap(value=inner, dtype=dtype):
                whole = dtype.low, dtype.high
                return ranges[inner] if intervals.within(ranges[inner], whole) else whole
            case index.IndexWhen(test=test, value=chosen):
                (low, high), found = ranges[test], ranges[chosen]
                return found if low > 0 else (0, 0) if high <= 0 else intervals.joined(found, (0, 0))
            case If() | For():
                return intervals.joined(*(ranges[end] for end in _ends(op, op.results.index(value))))
            case None if (loop := index_of(value)) is not None:
                least, last = ranges[loop.start][0], ranges[loop.end][1] - 1
                return least, max(least, last)
        return _read_range(op)

    def _solved(self, value: Value, found: dict[Value, Any], rule: Callable[[Value], Any]) -> Any:
        """What a rule gives for a value from what it gives for others."""
        waiting = [value]
        while waiting:  # no recursion: a chain of increments may be thousands of ops long
            try:
                self._note(found, waiting[-1], rule(waiting[-1]))
                waiting.pop()
            except _Missing as missing:
                waiting.append(missing.args[0])
        return found[value]

    def _note(self, found: dict[Any, Any], key: object, what: object) -> None:
        found[key] = what


class NothingKnown(Ranges):
    """Nothing is known of any integer: what does not refuse here, refuses nowhere."""

    def fits(self, op: index.IndexArithmetic) -> bool:
        return False

    def difference(self, a: Value | Dim, b: Value | Dim) -> Range:
        return WIDE


_REFUSALS: dict[type[Op], Callable[[Ranges, Any], bool]] = {
    index.AssertShape: lambda _, op: not op.checked,
    index.ExtentBind: lambda _, op: not op.checked,
    index.CheckRange: lambda _, op: True,
    index.CheckIds: lambda ranges, op: (end := known_below(op.x)) is None or ranges.difference(op.bound, end)[0] < 0,
    index.IndexLoad: lambda _, op: not op.checked and op.x.dtype.high > WIDE[1],
    StateGet: lambda _, op: not op.checked and op.state.state_type.dtype.high > WIDE[1],
    **dict.fromkeys(
        (index.IndexAdd, index.IndexSub, index.IndexMul), lambda ranges, op: not op.checked and not ranges.fits(op)
    ),
}
"""What may end the step, by class of op: looked up, because most ops cannot."""


def linear(part: Value | Dim) -> LinearForm:
    """An index integer or a size as a sum of multiples of atoms."""
    return Ranges().linear(part)


def added(a: LinearForm, b: LinearForm, times: int) -> LinearForm:
    """a + times * b."""
    total = dict(a)
    for atom, c in b.items():
        sum_ = total.get(atom, 0) + times * c
        if sum_:
            total[atom] = sum_
        else:
            total.pop(atom, None)
    return total


def may_refuse(ops: Iterable[Op], ranges: Ranges) -> bool:
    """One of the ops, or of those nested in them, may end the step with an error."""
    return any(any(map(ranges.refuses, op.walk())) if op.regions else ranges.refuses(op) for op in ops)


def known_below(value: Value) -> Dim | None:
    """What is above every element of a tensor of integers, of which none is negative; None: not known."""
    part: Value | Dim | None = value
    most = WIDE[1]
    while isinstance(part, Value) and isinstance(part.type, TensorType):
        most = min(most, part.dtype.high)
        part = part.op.ids_below(part) if part.op is not None else None
    return None if part is None or isinstance(part, Value) or dims.maximum(part) - 1 > most else part


def _read_range(op: Op | None) -> Range:
    """What can be read from a tensor or from state."""
    match op:
        case StateGet(state=Value(op=State(limit=int(limit)))):
            return 0, limit
        case StateGet(state=Value(type=StateType(dtype=dtype))):
            return dtype.low, min(dtype.high, WIDE[1])
        case index.IndexLoad(x=x):
            end = known_below(x)
            return (x.dtype.low, min(x.dtype.high, WIDE[1])) if end is None else (0, max(0, dims.maximum(end) - 1))
        case CacheCount(table=state, axis=axis):
            type_ = state.state_type
            ring = type_.ring and axis == len(type_.table) - 1
            return 0, WIDE[1] if ring else [*type_.table, *type_.auto][axis].capacity
        case StateReach(state=state, axis=axis):
            return 0, state.state_type.capacity_shape[axis]
    return WIDE


def _end_range(end: Range, count: Range) -> Range:
    """The end of a slice: itself, or from the count, which is never negative, where it is below 0."""
    if end[0] >= 0:
        return end
    from_count = intervals.plus((max(0, count[0]), count[1]), (end[0], min(end[1], -1)))
    from_count = max(WIDE[0], from_count[0]), min(from_count[1], WIDE[1])
    return from_count if end[1] < 0 else intervals.joined(from_count, (0, end[1]))


def _ends(op: If | For, position: int) -> list[Value]:
    """What either branch, or the start and the last iteration of a loop, gives for a result."""
    ends = [region.terminator.operands[position] for region in op.regions]
    return [*ends, op.init[position]] if isinstance(op, For) else ends


def index_of(atom: FormAtom) -> For | None:
    """The loop whose index this is."""
    if type(atom) is not Value or type(atom.owner) is not Block:
        return None
    owner = atom.owner.owner
    return owner if isinstance(owner, For) and owner.body.args[0] is atom else None
