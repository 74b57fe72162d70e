"""Persistent state and constants.

GRAPH has cache operations with the meaning of SPEC, section 8; `lower-cache` makes them
loads and stores of boxes of state, `state.get` and `state.set` of integers, and checks.

A position of a table access is a scalar or a slice; `form` says which, a character a position
('i' or 's'), and `indices` holds one index integer for a scalar and two (start, end) for a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from oic import dtypes
from oic.dtypes import INT, Array
from oic.ir.core import Op, OpError, Value, ensure, is_index
from oic.ir.dims import INDEX_BOUND, Dim
from oic.ir.types import INDEX, StateType, TensorType, Type

T = TypeVar("T")
COUNTS = "all.counts.sum"  # no variable's: of `all` there could be `all.counts` and `all.counts.filled`
FARTHEST = INDEX_BOUND  # positions of a ring end here, so that arithmetic on them stays in 64 bits


class State(Op, name="state", pure=False):
    """A persistent variable.

    symbol   its name
    init     value of every element to begin with and after a reset
    limit    of a scalar kept by lowering: the most it can be
    forgets  the source has a reset of some of its entries, be it in code that no entry reaches:
             which were touched is kept, and saved (`Module.keeps_touched`)

    Lowering keeps states of its own beside a variable K, integers that start at 0:
    K.t              count of table index or auto-dim t; where the source fixes t, how far it was
                     touched; of a ring, `next`, one for every tuple of the other indices
    K.t.filled       how much of the storage holds values along t, where its start is not zeros and
                     t is not bounded: the rest is unwritten address space
    K.entry.touched  1 for every entry (every ring) that was written, or read by scalars alone

    Where there are such integers, not counting those in tables, generated code keeps a sum of them (COUNTS):
    they address memory, and a flipped bit in one is noticed before it does.
    """

    symbol: str
    type: StateType
    init: Any
    limit: int | None = None
    forgets: bool = False

    @property
    def initial(self) -> Array:
        """An element to begin with, as it is stored."""
        return dtypes.store(np.asarray(self.init), self.type.dtype)


class Constant(Op, name="constant"):
    """Data of the model, or made at build; kept by the module under `symbol`.

    parts  the constants that it is joined of, or that it is part of, if it is, with their lines in the source; 0 where
           there is none
    """

    symbol: str
    type: TensorType
    parts: dict[str, int] = {}

    @property
    def family_rank(self) -> int:
        """How many leading dimensions number the members of a family; 0: no op selects one."""
        selects = [u for u in self.result.users if isinstance(u, ConstantSelect) and u.family is self.result]
        return max((len(u.indices) for u in selects), default=0)


class ConstantSelect(Op, name="constant.select", view=True):
    """One member of a family of constants, stacked along its leading dimensions, or of a constant like that.

    A member that is not there: OIC_ERR_INDEX (a check beside it).
    """

    family: Value
    indices: list[Value]

    def infer(self) -> list[Type]:
        family = self.family.tensor
        return [TensorType(family.dtype, family.shape[len(self.indices) :], family.encoding)]

    def begins(self, number: int) -> list[tuple[Dim | Value, int]]:
        return [(index, axis) for axis, index in enumerate(self.indices)]


class Splat(Op, name="splat", immediate=True):
    """A tensor of one repeated value.

    unread  its memory is written in whole before anything reads it: it is not filled (PLANNED)
    """

    value: Any
    type: TensorType
    unread: bool = False

    @property
    def single(self) -> bool:
        """One element that C may have as a constant with an address."""
        return self.type.size == 1 and not self.type.dtype.packed

    def ids_below(self, result: Value) -> int | None:
        return self.value + 1 if self.type.dtype.is_int and self.value >= 0 else None


class IndexTensor(Op, name="index.tensor", immediate=True):
    """An index integer as a scalar tensor of an integer type, wrapped to its width."""

    value: Value
    type: TensorType


class CacheOp(Op):
    """Base of the cache operations: `table` with a list of positions."""

    table: Value

    @staticmethod
    def positions(form: str, indices: Sequence[T]) -> list[tuple[T, ...]]:
        """The index integers of each position: (i,) or (start, end)."""
        rest = iter(indices)
        return [(next(rest),) if f == "i" else (next(rest), next(rest)) for f in form]


class CacheRead(CacheOp, name="cache.read", reads="table", writes="table"):
    """Copy part of a persistent variable into a value (SPEC, 8.1-8.5).

    Writes too: a scalar access raises counts.  `type` is the result's: slice lengths, then the
    entry's shape.  For an auto-dim matrix `form` covers table indices, then dimensions.
    """

    indices: list[Value]
    form: str
    type: TensorType


class CacheWrite(CacheOp, name="cache.write", writes="table"):
    """Copy a value into part of a persistent variable; scalar positions and slices grow it."""

    value: Value
    indices: list[Value]
    form: str


class CacheStep(CacheOp, name="cache.step", reads="table", writes="table"):
    """Add an index integer to a persistent numeric scalar, or to one of a table of them.

    It wraps, or rounds, in the scalar's type; one of a table is read and written as by scalar access.
    """

    amount: Value
    indices: list[Value]


class CacheReset(CacheOp, name="cache.reset", writes="table"):
    """Forget everything, or the entries whose leading indices are these."""

    indices: list[Value]


class CacheCount(CacheOp, name="cache.count", reads="table"):
    """The count of a table index, of an auto-dim, or `next` of a ring.

    axis   position among the table indices followed by the auto-dims
    indices  the leading scalar indices that select one ring
    """

    axis: int
    indices: list[Value] = []

    def infer(self) -> list[Type]:
        return [INDEX]


# ---------------------------------------------------------------- INDEXED


class StateInteger(Op):
    """Base of what is done with a persistent integer scalar, or with one in a table of them, which `indices` say."""

    state: Value

    def infer(self) -> list[Type]:
        type_ = self.state.type
        if not isinstance(type_, StateType) or type_.auto or type_.dtype not in INT:
            raise OpError("ir", f"{self.name} takes an integer scalar, not {type_}", "state")
        indices = self.values_of("indices")
        if len(indices) != len(type_.table) or not all(map(is_index, indices)):
            raise OpError("ir", f"{self.name} takes {len(type_.table)} index integers", "indices")
        return []


class StateGet(StateInteger, name="state.get", reads="state"):
    """The value of a persistent integer scalar, as an index integer.

    checked  the value is known to fit an index: nothing is refused here
    """

    indices: list[Any] = []
    checked: bool = False

    def infer(self) -> list[Type]:
        return [*super().infer(), INDEX]


class StateSet(StateInteger, name="state.set", writes="state"):
    """Set a persistent integer scalar, wrapping to its width."""

    value: Value
    indices: list[Any] = []


class StateBox(Op):
    """Base of what is done with a box of a state's storage.

    offsets  where it starts, an index integer for each of the leading dimensions of the storage
    lengths  its size along each dimension, where only run time knows it an index integer; None drops one of size 1
    """

    state: Value
    offsets: list[Value]
    lengths: list[Any]

    def infer(self) -> list[Type]:
        type_, rank = self.state.state_type, len(self.state.state_type.capacity_shape)
        boxed = len(self.lengths) == rank and all(map(is_index, self.offsets))
        ensure(boxed, f"a box of {type_} has {rank} lengths", "lengths")
        return []

    @property
    def box(self) -> TensorType:
        """The type of a value that the box holds."""
        return TensorType(self.state.state_type.dtype, tuple(n for n in self.lengths if n is not None))


class StateReach(StateBox, name="state.reach", reads="state"):
    """One more than the largest position along an axis at which a box of flags has one set; or 0.

    state    a table of integers, zero where nothing is flagged
    axis     of the storage; the position counts from its start, not that of the box
    """

    axis: int

    def infer(self) -> list[Type]:
        return [*super().infer(), INDEX]


class StateDouble(StateBox, name="state.double", writes="state"):
    """Copy entries of a ring to where they lie a second time.

    That is W slots further on, and for slots from W on, W slots back.

    offsets  where the entries start: the indices of the ring, then a slot below W
    lengths  a size each, of no more than W slots
    """

    def infer(self) -> list[Type]:
        super().infer()
        type_ = self.state.state_type
        fits = type_.ring and len(self.offsets) == len(type_.table)
        ensure(fits, f"state.double takes a ring and a slot of it, not {type_}", "offsets")
        return []


class StateLoad(StateBox, name="state.load", reads="state", view=True):
    """A box of a state's storage."""

    def infer(self) -> list[Type]:
        return [*super().infer(), self.box]


class StateEntry(StateBox, name="state.entry", writes="state"):
    """A box of a state's storage as memory that values are computed in, before it is stored to.

    What was there is gone but for what is loaded from this very box and has it as its place.
    `symbol` is the buffer that the values name as their place.
    """

    symbol: str


class StateStore(StateBox, name="state.store", writes="state"):
    """Copy a value into a box of a state's storage, whose shape it has.

    entry    symbol of the `state.entry` that the value was computed in: nothing is left to copy
    reason   why that is not so; printed by `oic explain`
    """

    value: Value
    entry: str = ""
    reason: str = ""

    def infer(self) -> list[Type]:
        super().infer()
        if self.value.type != self.box:
            raise OpError("shape-mismatch", f"{self.value.type} is stored as {self.box}", "value")
        return []


class StateFill(StateBox, name="state.fill", writes="state"):
    """Set every element of a box of a state's storage to one value."""

    value: Any


class StateAdd(Op, name="state.add", reads="state", writes="state"):
    """Add an index integer to a persistent scalar, wrapping, or rounding in its type.

    indices  of the element, where the state has several
    """

    state: Value
    amount: Value
    indices: list[Value]
