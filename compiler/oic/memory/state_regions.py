"""Boxes of state, and of tensors that are written in part: whether two are one, or have nothing in common.

    K[l, 0..pos]  and  K[l, pos..pos+N]     are apart: the first ends where the second starts
    W[slot]       and  W[slot]              are one, whatever `slot` is
    W[a]          and  W[b]                 are neither, for all that is known

Positions are index integers; what both share cancels (`ir.ranges`, with the same `known`).  A size bound at run time
is the integer it was bound to.  Values are compared within one iteration of every loop.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from oic.ir import dims
from oic.ir.core import Op, Value
from oic.ir.dims import Dim
from oic.ir.grouping import by_key
from oic.ir.ranges import LinearForm, Ranges, added
from oic.ir.state import StateBox, StateDouble, StateEntry, StateGet, StateSet, StateStore
from oic.operators.part import Insert, PartEntry

Put = StateStore | Insert  # what puts a value into a box
EntryOp = StateEntry | PartEntry  # what names a box that values are computed in
Boxed = StateBox | StateGet | StateSet  # what accesses a box of a state
Kept = TypeVar("Kept")
Part = tuple[int, Hashable]
"""A dimension, and what the position along it is made of besides an integer."""
Place = dict[Part, int]
"""The integers that positions have added to what they are made of.

Boxes are apart if a part of both has another integer.
"""
BASES = 16  # sets of parts by which accesses to one state are kept; others are few, and met by all


@dataclass(frozen=True)
class Box:
    """A part of a state or tensor: where it starts along its leading dimensions, and its sizes (None: 1)."""

    whole: Value
    offsets: tuple[Value, ...]
    lengths: tuple[Dim | Value | None, ...]

    @cached_property
    def sizes(self) -> tuple[Dim | Value, ...]:
        """Its size along each dimension."""
        return tuple([1 if n is None else n for n in self.lengths])

    def key(self, known: Ranges | None) -> Hashable:
        """What boxes that are known to be one (`same`) have in common; `known` as for `linear`."""
        offsets = (frozenset(_offset(self, i, known).items()) for i in range(len(self.lengths)))
        return self.whole, self.sizes, tuple(offsets)

    def place(self, known: Ranges) -> Place:
        """Its positions along dimensions of size 1."""
        forms = [(i, _offset(self, i, known)) for i, size in enumerate(self.sizes) if size == 1]
        return {
            (i, frozenset(atom for atom in form.items() if atom[0] is not None)): form.get(None, 0) for i, form in forms
        }

    @classmethod
    def of(cls, op: Boxed | Put | EntryOp) -> "Box":
        """The box that an op reads, writes or computes in; of the copy of a part of a ring, all along the ring."""
        if isinstance(op, (Insert, PartEntry)):
            rest = op.x.shape[len(op.lengths) :]
            return cls(op.x, tuple(op.offsets), (*op.lengths, *rest))
        if isinstance(op, StateGet | StateSet):
            return cls(op.state, tuple(op.indices), (1,) * len(op.indices))
        if isinstance(op, StateDouble):
            *ring, _ = op.offsets
            after = op.lengths[len(ring) + 1 :]
            return cls(op.state, tuple(ring), (*op.lengths[: len(ring)], 2 * op.state.state_type.window, *after))
        return cls(op.state, tuple(op.offsets), tuple(op.lengths))


class Accesses(Generic[Kept]):
    """Ops that access one state, of which those that may meet a box are found without comparing it with all.

    Most places of a table differ by integers alone, as K[pos] and K[pos + 1] do: accesses are kept by what their
    positions are made of, and within that by place.

    keep   what some of the ops are kept as, which come in the order of all
    """

    def __init__(self, ops: Sequence[Op], known: Ranges, keep: Callable[[Sequence[Op]], Kept]) -> None:
        self.known, self._keep = known, keep
        self._boxes = {op: Box.of(op) for op in ops if isinstance(op, Boxed)}
        placed = [(op, self._boxes[op].place(known) if op in self._boxes else {}) for op in ops]
        bases = Counter(tuple(place) for _, place in placed).most_common(BASES)
        common = {base for base, _ in bases}
        self._alike = by_key((base if (base := tuple(place)) in common else (), (op, place)) for op, place in placed)
        # Of the accesses of each base, by some of its parts, those that have the same integers there.
        self._by: list[dict[tuple[Part, ...], dict[tuple[int, ...], Kept]]] = [{} for _ in self._alike]

    def kept_as(self, keep: Callable[[Sequence[Op]], Kept]) -> "Accesses[Kept]":
        """The same ops, kept as something else."""
        found = copy(self)
        found._keep, found._by = keep, [{} for _ in self._alike]
        return found

    def around(self, box: Box) -> list[Kept]:
        """All that may meet the box, and others."""
        place = box.place(self.known)
        found: list[Kept] = []
        for (base, members), by in zip(self._alike.items(), self._by, strict=True):
            if (parts := tuple([part for part in base if part in place])) not in by:
                same_there = by_key((tuple(there[part] for part in parts), op) for op, there in members)
                by[parts] = {at: self._keep(ops) for at, ops in same_there.items()}
            if (kept := by[parts].get(tuple(place[part] for part in parts))) is not None:
                found.append(kept)
        return found

    def are_apart(self, op: Op, box: Box) -> bool:
        """What one of the ops accesses is known to be elsewhere."""
        return op in self._boxes and apart(self._boxes[op], box, self.known)


def is_apart(op: Op, box: Box, known: Ranges) -> bool:
    """What an op reads and writes of the state is known to be elsewhere."""
    return isinstance(op, Boxed) and apart(Box.of(op), box, known)


def same(a: Box, b: Box, known: Ranges | None = None) -> bool:
    """The boxes are known to be one."""
    return a.whole is b.whole and a.key(known) == b.key(known)


def apart(a: Box, b: Box, known: Ranges) -> bool:
    """No element is known to be, or may be, in both."""
    if a.whole is not b.whole:
        return True
    given = max(len(a.offsets), len(b.offsets))  # along what is behind, both start at 0
    return any(_apart_along(a, b, axis, known) for axis in range(given))


def apart_in_memory(a: Box, b: Box, known: Ranges) -> bool:
    """`apart`, of boxes in one memory: that of a state, or of values each of which is computed over the one before."""
    return a.whole.type == b.whole.type and apart(a, replace(b, whole=a.whole), known)


def whole_entries(box: Box) -> bool:
    """The box starts at the start of an entry, so that packed elements start at a whole byte."""
    return all(not _offset(box, i) for i in range(len(box.whole.state_type.table), len(box.lengths)))


def whole_bytes(box: Box, strides: tuple[Dim, ...]) -> bool:
    """Packed elements of a tensor: the box starts and ends between two bytes, wherever it starts."""
    per = 8 // box.whole.tensor.dtype.bits
    steps = [
        n * stride if isinstance(stride, int) else 1
        for axis, stride in enumerate(strides)
        for n in _offset(box, axis).values()
    ]
    count = dims.product(tuple(n for n in box.sizes if not isinstance(n, Value)))
    return isinstance(count, int) and all(n % per == 0 for n in (*steps, count))


def _apart_along(a: Box, b: Box, axis: int, known: Ranges) -> bool:
    """One ends before the other starts."""
    between = added(_offset(b, axis, known), _offset(a, axis, known), -1)
    size, other = a.sizes[axis], b.sizes[axis]
    if isinstance(size, int) and isinstance(other, int):
        least, most = known.of_sum(between)
        return least >= size or most <= -other
    ends = added(between, known.linear(size), -1), added(between, known.linear(other), 1)
    return known.of_sum(ends[0])[0] >= 0 or known.of_sum(ends[1])[1] <= 0


def _offset(box: Box, axis: int, known: Ranges | None = None) -> LinearForm:
    return (known or Ranges()).linear(box.offsets[axis]) if axis < len(box.offsets) else {}
