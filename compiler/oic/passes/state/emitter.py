"""What the lowering of cache operations is made of: the states kept beside a variable, and an emitter.

Storage within the *filled* box holds what was written there, else the initial value, so that a
read of an entry never written needs no test.  That box is everything, except where address space
is reserved: there it is everything if the initial value is zeros, else as far as the marks
`K.t.filled` say, and an access beyond them fills what is missing (`Emitter.fill`).
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any, NamedTuple

from oic.diagnostics import Span
from oic.ir import index
from oic.ir.core import Op, Value
from oic.ir.dims import Extent
from oic.ir.state import State, StateFill, StateGet, StateSet
from oic.ir.types import StateType

BinaryIndexOp = index.IndexAdd | index.IndexSub | index.IndexMul | index.IndexMin | index.IndexMax | index.IndexMod
INDEX, FULL = "OIC_ERR_INDEX", "OIC_ERR_CACHE_FULL"


class Position(NamedTuple):
    """One position of an access: a scalar (`end` None) or a slice."""

    start: Value
    end: Value | None = None


@dataclass
class StateVariable:
    """A persistent variable and the states kept beside it (see `ir.state.State`).

    counts     by axis: of table indices, then auto-dims; those that some op needs
    following  `next`, of a ring
    touched    a flag for every entry, or every ring
    filled     marks by axis of the storage
    """

    op: State
    counts: dict[int, Value] = field(default_factory=dict)
    following: Value = field(init=False)
    touched: Value | None = None
    filled: dict[int, Value] = field(default_factory=dict)

    @property
    def state(self) -> Value:
        return self.op.result

    @property
    def type(self) -> StateType:
        return self.op.type

    @property
    def outer(self) -> int:
        """Table indices that select by number: all, but the last of a ring."""
        return len(self.type.table) - int(self.type.ring)

    def name(self, axis: int) -> str:
        """What an index or auto-dim is called in messages."""
        return f"{self.op.symbol}.{[*self.type.table, *self.type.auto][axis].name}"


class Emitter:
    """Appends what the cache operations of a block become; integers may be given as they are, and are folded later.

    span   of the cache operation that is lowered
    made   integers of the block that are computed already, by how
    counts what the states beside variables are known to be here
    """

    def __init__(self, numbers: Iterator[int], span: Span | None = None) -> None:
        self.numbers, self.span = numbers, span
        self.ops: list[Op] = []
        self.made: dict[Hashable, Value] = {}
        self.counts: dict[Value, Value] = {}

    def keep(self, op: Op) -> None:
        """Append an op, which may write states or be an integer that is asked for again."""
        if op.regions:
            self.counts.clear()  # cache operations in them may become writes
        elif op.writes:
            for state in op.touched("write"):
                self.counts.pop(state, None)
        elif isinstance(op, index.IndexMax):
            self.made.setdefault((index.IndexMax, op.left, op.right), op.result)
        self.ops.append(op)

    def add(self, op: Op) -> Op:
        """Append a new op, at the source position of the cache operation."""
        op.span = self.span
        self.keep(op)
        return op

    def extent(self, hint: str, maximum: int) -> Extent:
        """A new extent; names of the source have no dot."""
        return Extent(f"{hint}.{next(self.numbers)}", maximum)

    # -- integers

    def value(self, part: int | Value) -> Value:
        return part if isinstance(part, Value) else self._once(index.IndexConst, part)

    def size(self, size: Any) -> Value:
        """The present value of a size."""
        return self.value(size) if isinstance(size, int) else self.add(index.IndexSize(size)).result

    def _binary(self, make: type[BinaryIndexOp], a: int | Value, b: int | Value) -> Value:
        return self._once(make, self.value(a), self.value(b))

    plus, minus = partialmethod(_binary, index.IndexAdd), partialmethod(_binary, index.IndexSub)
    times, modulo = partialmethod(_binary, index.IndexMul), partialmethod(_binary, index.IndexMod)
    least, most = partialmethod(_binary, index.IndexMin), partialmethod(_binary, index.IndexMax)

    def held(self, value: Value, low: int | Value, high: Value) -> tuple[Value, Value]:
        """The value held within low-1..high, and 1 where it is in low..high-1, else 0."""
        near = self.least(self.most(value, self.minus(low, 1)), high)
        after, before = self.minus(self.plus(near, 1), low), self.minus(high, near)
        return near, self.times(self.least(after, 1), self.least(before, 1))

    def when(self, test: int | Value, value: int | Value) -> Value:
        """`value` where test > 0, else 0."""
        if isinstance((known := self.value(test)).op, index.IndexConst):
            return self.value(value if known.op.value > 0 else 0)
        return self._once(index.IndexWhen, self.value(test), self.value(value))

    def _once(self, make: type[index.IndexOp], *parts: int | Value) -> Value:
        if (key := (make, *parts)) not in self.made:
            self.made[key] = self.add(make(*parts)).result
        return self.made[key]

    # -- states

    def get(self, state: Value, indices: list[Value] | None = None) -> Value:
        """The integer of a state beside a variable, or at a place of one."""
        if indices:
            return self.add(StateGet(state, indices)).result
        if state not in self.counts:
            self.counts[state] = self.add(StateGet(state, [])).result
        return self.counts[state]

    def set(self, state: Value, value: int | Value, indices: list[Value] | None = None) -> None:
        """Set it, if it is not that already."""
        new = self.value(value)
        if indices:
            self.add(StateSet(state, new, indices))
        elif self.counts.get(state) is not new:
            self.add(StateSet(state, new, []))
            self.counts[state] = new

    def check(self, value: Value, low: int | Value, high: int | Value, above: str, variable: str) -> None:
        """Refuse the step unless low <= value <= high; under `low` it is OIC_ERR_INDEX."""
        if isinstance(low, int) and isinstance(high, int) and isinstance(known := value.op, index.IndexConst):
            if low <= known.value <= high:
                return
        self.add(index.CheckRange(value, low, high, INDEX, above, variable))

    def check_position(self, at: Position, low: int | Value, size: int | Value, above: str, variable: str) -> None:
        """Refuse the step unless a scalar lies in low..size-1, or a slice in low..size."""
        start, end = at
        if end is None:
            last = size - 1 if isinstance(size, int) else self.minus(size, 1)
            self.check(start, low, last, above, variable)
        else:
            self.check(start, low, end, INDEX, variable)
            self.check(end, start, size, above, variable)

    def fill(self, kept: StateVariable, needed: dict[int, Value]) -> None:
        """Initial values in what an access reaches for the first time.

        needed   how far the access reaches along axes of the storage, from the start

        The new part of the box is filled axis by axis: along axis k from the mark on; along axes
        before k to what is needed, along those after k to their marks.
        """
        filled: list[Any] = list(kept.type.capacity_shape)
        for axis, mark in kept.filled.items():
            filled[axis] = self.get(mark)
        for axis in kept.filled:
            old, filled[axis] = filled[axis], self.most(filled[axis], needed[axis])
            offsets = [self.value(0)] * axis + [old]
            lengths = [*filled[:axis], self.minus(filled[axis], old), *filled[axis + 1 :]]
            self.add(StateFill(kept.state, offsets, lengths, kept.op.init))
        for axis, mark in kept.filled.items():
            self.set(mark, filled[axis])
