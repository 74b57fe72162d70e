"""Types of SSA values: tensors, index integers, persistent state.

A tensor's dimensions are integers or bounded extents (`dims`).  An `index` is a 64-bit integer
of address arithmetic that never lives in memory.  A state is a handle: the value that cache
operations read and write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from oic.dtypes import DType
from oic.ir import dims, encodings
from oic.ir.dims import Dim


@dataclass(frozen=True)
class TensorType:
    """Element type and shape; `f32[N, 64]`, or `f32` for a scalar.

    encoding   of a constant that lies in memory in another form or order (`encodings`): `f32[64, 64] q8 panels`
    """

    dtype: DType
    shape: tuple[Dim, ...] = ()
    encoding: str = ""

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return dims.product(self.shape)

    @property
    def static(self) -> bool:
        """Every dimension is known at build."""
        return all(isinstance(d, int) for d in self.shape)

    @property
    def maximum(self) -> tuple[int, ...]:
        """The shape with every extent at its maximum."""
        return tuple(dims.maximum(d) for d in self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes at the maximum."""
        return encodings.nbytes(self.dtype, self.maximum, self.encoding)

    @property
    def stored(self) -> DType:
        """The type of what lies in memory: another than `dtype` where the encoding is a storage, too."""
        return encodings.stored_as(self.dtype, self.encoding) if self.encoding else self.dtype

    def with_shape(self, shape: tuple[Dim, ...]) -> "TensorType":
        return TensorType(self.dtype, tuple(shape))

    def text(self, size: Callable[[Dim], str] = str) -> str:
        """The type, with its sizes as a function writes them."""
        inner = ", ".join(map(size, self.shape))
        shown = f"{self.dtype}[{inner}]" if self.shape else str(self.dtype)
        return f"{shown} {self.encoding}" if self.encoding else shown

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class IndexType:
    """A 64-bit signed integer of index arithmetic."""

    def __str__(self) -> str:
        return "index"


@dataclass(frozen=True)
class StateIndex:
    """One index of a table, or one growing dimension of an auto-dim matrix.

    capacity   the most it may reach
    fixed      the source says so (`@fixed`); a table index's count is then the capacity
    reserved   nothing bounds it: address space is reserved and pages are committed as touched
    """

    name: str
    capacity: int
    fixed: bool
    reserved: bool = False

    def __str__(self) -> str:
        mark = "!" if self.fixed else ("~" if self.reserved else "")
        return f"{self.name}:{self.capacity}{mark}"


@dataclass(frozen=True)
class StateType:
    """A persistent variable.

    shape   shape of an entry (of the whole variable, where there are no indices)
    table   table indices, outermost first
    auto    growing dimensions, one for each of `shape`, or none
    ring    the last table index is a rolling window of its capacity
    """

    dtype: DType
    shape: tuple[int, ...] = ()
    table: tuple[StateIndex, ...] = ()
    auto: tuple[StateIndex, ...] = ()
    ring: bool = False

    @property
    def plain(self) -> bool:
        """A scalar or tensor without indices."""
        return not self.table and not self.auto

    @property
    def entry(self) -> TensorType:
        """Type of one entry, auto-dims at 0."""
        return TensorType(self.dtype, self.shape)

    @property
    def window(self) -> int:
        """How many entries a ring keeps."""
        assert self.ring, f"{self} is no ring"
        return self.table[-1].capacity

    @cached_property
    def capacity_shape(self) -> tuple[int, ...]:
        """Dimensions of the storage: table capacities, then the entry at its largest.

        A ring is stored twice, one copy after the other: position n at n mod W and at
        n mod W + W, so that any W positions in a row lie in a row (SPEC, 8.5).
        """
        growth = [i.capacity for i in self.auto] or [0] * len(self.shape)
        grown = tuple(d + g for d, g in zip(self.shape, growth, strict=True))
        table = [i.capacity for i in self.table]
        if self.ring:
            table[-1] *= 2
        return (*table, *grown)

    @property
    def reserved(self) -> bool:
        """The variable has reserved address space, too large to walk through: pages are committed as touched."""
        return any(i.reserved for i in (*self.table, *self.auto))

    def __str__(self) -> str:
        parts = [str(self.entry)]
        for word, indices in (("table", self.table), ("auto", self.auto)):
            if indices:
                parts.append(f"{word}({', '.join(map(str, indices))})")
        if self.ring:
            parts.append("ring")
        return f"state<{'; '.join(parts)}>"


Type = TensorType | IndexType | StateType
INDEX = IndexType()


def same_rank(a: Type, b: Type) -> bool:
    """Two types of one dtype and rank: a value of one may flow where the other is expected."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype is b.dtype and a.rank == b.rank
    return a == b
