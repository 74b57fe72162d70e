"""The form of a saved state: what of every variable is in it, in which order and numbering.

A saved state is a head, the counts, then the parts (`runtime_c/state/saved.h` has the bytes).  It says what
the state means and not how it lies in memory, so it is the same whatever executes the graph: the
simulator of the graph as written writes and reads it from dictionaries, that of planned memory and the
compiled library from storage.

A part is a variable, `next` of a ring's rings, or the flags of a table's entries that were touched,
which are kept if a reset asks for them.  Entries of a table are numbered row by row within its counts,
those of a ring by slot (position mod W), and stored where they differ from the initial value.  What
lowering keeps for itself (marks of what was filled, how far fixed indices were touched) is not part
of it: loading finds it from what is stored.

A state that can be loaded is one that saving gives, to the byte, so that every backend goes on alike from it.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic import dtypes
from oic.dtypes import Array, DType
from oic.ir.module import Module
from oic.ir.state import FARTHEST
from oic.ir.types import StateIndex, StateType
from oic.memory.layout import stored

VERSION = 2  # OIC_SAVED_VERSION
HEAD = 32  # bytes of the head
RUN = 16  # bytes of a run before its entries


@dataclass(frozen=True)
class Axis:
    """A table index or a dimension of an entry.

    size    how long it is; where it has a count, while that is 0
    count   symbol of the count that makes it longer, or ""
    most    the most the count can be
    """

    name: str
    size: int
    count: str = ""
    most: int = 0

    def length(self, counts: dict[str, int]) -> int:
        """How long it is with these counts."""
        return self.size + counts[self.count] if self.count else self.size


@dataclass(frozen=True)
class Part:
    """Something of the state that has elements.

    symbol   of its storage: the variable's, or one kept beside it (`ir.state.State`)
    owner    the variable
    table    table indices; none: it is one entry
    entry    dimensions of an entry
    most     the most an integer element can be, from 0 on; None: any value is one
    guarded  the next part says which of its entries there can be: of a ring `next`, whose slots from
             there on were never written; of other entries, and of `next`, the flags of those touched
    counted  the last entry within the counts is not as at the start: flags of a table of one index,
             whose count every access that raises it also touches
    """

    symbol: str
    owner: str
    type: StateType
    init: Any
    table: tuple[Axis, ...]
    entry: tuple[Axis, ...]
    most: int | None = None
    guarded: bool = False
    counted: bool = False

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def grows(self) -> bool:
        """Its entries grow."""
        return any(a.count for a in self.entry)

    def entries(self, counts: dict[str, int]) -> tuple[int, ...]:
        """How many entries there are along each table index."""
        return tuple(a.length(counts) for a in self.table)

    def shape(self, counts: dict[str, int]) -> tuple[int, ...]:
        """The shape of an entry."""
        return tuple(a.length(counts) for a in self.entry)

    def entry_bytes(self, counts: dict[str, int]) -> int:
        """Bytes of an entry in a saved state."""
        return self.dtype.nbytes(math.prod(self.shape(counts)))

    def start(self, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """The bytes of an entry of this shape at its initial value."""
        return self.encoded(np.broadcast_to(self.initial, (1, *shape)))[0]

    @property
    def initial(self) -> Array:
        """The initial value of an element."""
        return dtypes.store(np.asarray(0 if self.init is None else self.init), self.dtype)

    def encoded(self, entries: Array) -> NDArray[np.uint8]:
        """Entries (along the first axis) as their bytes, a row each."""
        return stored(entries, self.dtype, 1).reshape(len(entries), -1)


@dataclass(frozen=True)
class Form:
    """The form of the states of a module.

    counts   the most each count can be by symbol, in order
    """

    fingerprint: int
    counts: dict[str, int]
    parts: tuple[Part, ...]

    @property
    def largest(self) -> int:
        """Bytes of the largest state that can be saved."""
        full = self.counts
        total = HEAD + 8 * len(full)
        for part in self.parts:
            # Runs are apart by more bytes than the head of one has.
            total += math.prod(part.entries(full)) * part.entry_bytes(full) + (8 + RUN if part.table else 0)
        return total


def saved_form(module: Module) -> Form:
    """The form of a module's states, the same at every stage."""
    kept = {op.symbol for op in module.states()}
    graph = module.stage == "graph"
    touched = {op.symbol for op in module.keeps_touched()} if graph else set()
    counts: dict[str, int] = {}
    parts: list[Part] = []
    for op in module.states():
        if "." in op.symbol:
            continue
        table, entry = _axes(op.symbol, op.type, kept, graph)
        for axis in (*table, *entry):
            if axis.count:
                counts[axis.count] = axis.most
        most = 1 if op.type.dtype is dtypes.bool_ else None
        own = [Part(op.symbol, op.symbol, op.type, op.init, table, entry, most)]
        following = f"{op.symbol}.{op.type.table[-1].name}" if op.type.ring else ""
        outer = len(op.type.table) - int(op.type.ring)
        beside = (following, dtypes.i64, FARTHEST + 1), (f"{op.symbol}.entry.touched", dtypes.u8, 1)
        for symbol, dtype, limit in beside:
            if symbol in kept or (graph and symbol and (symbol == following or op.symbol in touched)):
                type_ = StateType(dtype, (), op.type.table[:outer])
                counted = limit == 1 and len(table) == 1 and bool(table[0].count) and not own[0].grows
                own.append(Part(symbol, op.symbol, type_, 0, table[:outer], (), limit, counted=counted))
        parts += [replace(part, guarded=True) for part in own[:-1]] + own[-1:]
    return Form(_fingerprint(module.name, counts, parts), counts, tuple(parts))


def _axes(symbol: str, type_: StateType, kept: set[str], graph: bool) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """Table indices and dimensions of an entry: with counts where these are kept, else as long as they can be."""

    def axis(index: StateIndex, size: int = 0, fixed: bool = False) -> Axis:
        count = f"{symbol}.{index.name}"
        grows = not fixed and (graph or count in kept)
        return Axis(index.name, size, count, index.capacity) if grows else Axis(index.name, size + index.capacity)

    ring = type_.table[-1:] if type_.ring else ()
    table = tuple(axis(index, fixed=index.fixed or index in ring) for index in type_.table)
    return table, tuple(map(axis, type_.auto, type_.shape)) or tuple(Axis("", n) for n in type_.shape)


def _fingerprint(name: str, counts: dict[str, int], parts: list[Part]) -> int:
    """64 bits that differ when the form or the meaning of a saved state does."""
    lines = [f"saved {VERSION} {name}", *(f"{symbol} {most}" for symbol, most in counts.items())]
    lines += [f"{p.symbol} {p.type} {p.start(()).tobytes().hex()}" for p in parts]
    return int.from_bytes(hashlib.sha256("\n".join(lines).encode()).digest()[:8], "little")


def storage_axes(part: Part) -> Iterator[tuple[str, str]]:
    """(how far touched, how far filled) of every axis: symbols that lowering may keep beside a variable."""
    for number, axis in enumerate((*part.table, *part.entry)):
        beside = f"{part.owner}.{axis.name}" if axis.name else ""
        fixed = number < len(part.table) - int(part.type.ring) and not axis.count
        yield beside if fixed else "", f"{beside}.filled" if beside and part.symbol == part.owner else ""
