"""Persistent variables as SPEC, section 8, describes them: the meaning of the `cache.*` ops.

A variable is a dictionary from index tuples to entries; what is not in it reads as the initial
value.  Nothing here knows about memory, so that it can be compared with what does.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from oic.diagnostics import Span, StepError
from oic.dtypes import Array, i64
from oic.ir.journal import Journal
from oic.ir.state import FARTHEST, CacheOp, State
from oic.memory.saved import Part
from oic.operators.evaluate import stepped
from oic.operators.refusal import beyond
from oic.reference.saved import Entries, Saved, entries_by_key

MemberKey = tuple[int, ...]
INDEX, FULL = "OIC_ERR_INDEX", "OIC_ERR_CACHE_FULL"


class Selection(NamedTuple):
    """Positions of an access: a range for each, and which are slices; `rest` are auto-dims."""

    ranges: list[range]
    sliced: list[bool]
    rest: list[tuple[int, ...]]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Leading dimensions of what is read: one for every slice."""
        return tuple(len(r) for r, s in zip(self.ranges, self.sliced) if s)

    @property
    def part(self) -> bool:
        """A part of a matrix is read, as it is."""
        return any(len(p) == 2 for p in self.rest)

    @property
    def scalar(self) -> bool:
        """Every index is a scalar."""
        return not any(self.sliced) and not self.part


class PersistentVariable:
    """One persistent variable.

    entries   index tuple -> entry; at its shape when it was written, grown when it is read
    touched   index tuples written, or read with all indices scalar; of a ring, without its position
    counts    position among table indices and auto-dims -> count
    following of a ring: the other indices -> one more than the largest position written
    """

    def __init__(self, op: State, journal: Journal) -> None:
        self.symbol, self.type, self.fill, self.journal = op.symbol, op.type, op.initial, journal
        self.entries: dict[MemberKey, Array] = {}
        self.touched: dict[MemberKey, None] = {}
        self.following: dict[MemberKey, int] = {}
        self.counts = {axis: self._counted(axis) for axis in range(len(self.type.table) + len(self.type.auto))}
        self.span: Span | None = None  # of the op being run, for refusals

    # -- operations

    def read(self, form: str, indices: Sequence[int]) -> Array:
        """What an access reads (SPEC, 8.1-8.5); scalar positions raise counts."""
        at = self._access(form, indices, writing=False)
        for spec, position, size in zip(self.type.auto, at.rest, self._grown_shape([])) if at.part else ():
            self._check(spec.name, position, size, INDEX)
        self._grow(at, slices=False)
        if at.scalar:
            key = tuple(r.start for r in at.ranges)
            self._touch(key[:-1] if self.type.ring else key)
        found = self._box(at.ranges, at.sliced)
        return found[(..., *map(_selection, at.rest))] if at.part else found

    def write(self, form: str, indices: Sequence[int], value: Array) -> None:
        """Replace entries; scalar positions and slices raise counts."""
        at = self._access(form, indices, writing=True)
        after = self._grown_shape(at.rest)
        expected = at.lengths + after
        if value.shape != expected:
            what = f"{value.shape} is written to {expected}, in '{self.symbol}'"
            raise StepError("OIC_ERR_SHAPE", what, variable=self.symbol, span=self.span)
        if all(map(len, at.ranges)):  # else nothing is written, and nothing grows
            self._grow(at, slices=True)
        lengths = tuple(map(len, at.ranges))
        for key, entry in zip(itertools.product(*at.ranges), value.reshape(math.prod(lengths), *after), strict=True):
            self._store(key, np.array(entry))

    def step(self, indices: Sequence[int], amount: int) -> None:
        """Add to a scalar, or to one of a table, wrapping or rounding in its type."""
        key = tuple(indices)
        if self.type.ring:  # it is read, so that it lies in the window
            self._check_others(key[:-1])
            following = self.following.get(key[:-1], 0)
            oldest = max(following - self.type.window, 0)
            self._require(self.type.table[-1].name, key[-1], oldest, following - 1)
        at = self._access("i" * len(key), indices, writing=True)
        new = stepped(self._entry(key), amount, self.type.dtype)
        self._grow(at, slices=True)
        self._store(key, new)

    def reset(self, prefix: Sequence[int]) -> None:
        """Forget everything, or the entries with these leading indices."""
        start = tuple(prefix)
        n = len(start)
        if self.type.ring and n == len(self.type.table):  # a position: its ring stays as it is
            self.journal.drop(self.entries, start)
            return
        known: list[dict[MemberKey, Any]] = [self.entries, self.touched, self.following]
        found = [(where, key) for where in known for key in where if key[:n] == start]
        if n and not found:
            return  # what was never touched is left as it was
        for where, key in found:
            self.journal.drop(where, key)
        for axis in range(len(self.type.table) if n else len(self.counts)):
            self._set_count(axis, self._counted(axis))

    def count(self, axis: int, others: Sequence[int]) -> int:
        """The count of an index or auto-dim; for the index of a ring, `next`."""
        if self.type.ring and axis == len(self.type.table) - 1:
            self._check_others(others)
            return self.following.get(tuple(others), 0)
        return self.counts[axis]

    def logical(self) -> Array:
        """What `fetch` gives: table indices first, counts long; of a ring its newest entries."""
        ranges = [range(self.counts[i]) for i in range(len(self.type.table))]
        if not self.type.ring:
            return self._box(ranges, [True] * len(ranges))
        window = self.type.table[-1].capacity
        shape = (*map(len, ranges[:-1]), window, *self._grown_shape([]))
        found = np.full(shape, self.fill, self.type.dtype.np)
        for key in self.entries:
            oldest = self.following[key[:-1]] - window
            found[(*key[:-1], key[-1] - oldest)] = self._entry(key)
        return found

    def saved(self, part: Part, counts: dict[str, int]) -> Iterator[Entries]:
        """The entries of a part, itself or what is kept beside it, for `reference.saved`."""
        alone: list[MemberKey] = [] if part.table else [()]  # the only entry, which is there in any case
        if part.symbol == self.symbol:
            found = {self._place(k): self._entry(k) for k in alone or self.entries}
        elif part.dtype is i64:
            found = {k: np.asarray(self.following.get(k, 0), np.int64) for k in alone or self.following}
        else:
            found = {k: np.asarray(1, np.uint8) for k in self.touched}
        if not found:
            return
        if not part.table:
            yield np.zeros(1, np.int64), part.encoded(found[()][None])
            return
        shape, lengths = part.shape(counts), part.entries(counts)
        numbers = np.ravel_multi_index(tuple(np.array(list(found)).T), lengths)
        rows = part.encoded(np.stack(list(found.values())))
        order = np.argsort(numbers)
        order = order[(rows[order] != part.start(shape)).any(axis=1)]
        yield numbers[order].astype(np.int64), rows[order]

    def restore(self, saved: Saved, parts: Sequence[Part]) -> None:
        """What a saved state says of this variable, which is as at the start."""
        specs = [*self.type.table, *self.type.auto]
        for axis, spec in enumerate(specs):
            self.counts[axis] = saved.counts.get(f"{self.symbol}.{spec.name}", self.counts[axis])
        for part in reversed(parts):  # `next` of rings before their entries
            for key, entry in entries_by_key(part, saved):
                if part.symbol == self.symbol:
                    self._put(key, entry)
                elif part.dtype is i64:
                    self.following[key] = int(entry)
                elif entry:
                    self.touched[key] = None

    def _place(self, key: MemberKey) -> MemberKey:
        """Where an entry is numbered: of a ring by its slot."""
        return (*key[:-1], key[-1] % self.type.window) if self.type.ring else key

    def _put(self, place: MemberKey, entry: Array) -> None:
        """Set an entry that was saved, of a ring the newest position of its slot."""
        if self.type.ring:
            newest = self.following[place[:-1]] - 1
            place = (*place[:-1], newest - (newest - place[-1]) % self.type.window)
        self.entries[place] = entry

    # -- positions

    def _access(self, form: str, indices: Sequence[int], *, writing: bool) -> Selection:
        """The positions of an access, all checked before anything changes."""
        table = len(self.type.table)
        positions = CacheOp.positions(form, indices)
        at = Selection([], [], positions[table:])
        for axis, (spec, position) in enumerate(zip(self.type.table, positions)):
            if self.type.ring and axis == table - 1:
                others = tuple(r.start for r in at.ranges)
                self._check_ring(others, position, writing=writing)
            else:
                self._check(spec.name, position, spec.capacity, FULL)
            last = position[1] if len(position) == 2 else position[0] + 1
            at.ranges.append(range(position[0], last))
            at.sliced.append(len(position) == 2)
        for spec, position in zip(self.type.auto, () if at.part else at.rest):
            self._check(spec.name, position, spec.capacity + 1, FULL)
        return at

    def _check(self, index: str, position: tuple[int, ...], size: int, above: str, low: int = 0) -> None:
        """A scalar or a slice within a size."""
        if len(position) == 1:
            self._require(index, position[0], low, size - 1, above)
        else:
            self._require(index, position[0], low, position[0])
            self._require(index, position[1], position[0], size, above)

    def _check_others(self, others: Sequence[int]) -> None:
        """The indices beside that of a ring."""
        for spec, value in zip(self.type.table, others):
            self._check(spec.name, (value,), spec.capacity, FULL)

    def _check_ring(self, others: MemberKey, position: tuple[int, ...], *, writing: bool) -> None:
        spec, following = self.type.table[-1], self.following.get(others, 0)
        oldest, beyond = following - spec.capacity, FARTHEST + (len(position) == 1)
        size, low = (beyond, max(oldest, 0)) if writing else (following, oldest)
        self._check(spec.name, position, size, INDEX, low)

    def _require(self, index: str, value: int, low: int, high: int, above: str = INDEX) -> None:
        """Refuse a value outside low to high."""
        if value < low or value > high:
            status, bound = (INDEX, low) if value < low else (above, high)
            raise beyond(status, f"{self.symbol}.{index}", value, bound, self.span)

    # -- contents

    def _grow(self, at: Selection, *, slices: bool) -> None:
        """Raise the counts of scalar positions, of slices by a write, and of auto-dims."""
        table = len(self.type.table)
        for axis, (positions, sliced) in enumerate(zip(at.ranges, at.sliced)):
            if (slices or not sliced) and not self.type.table[axis].fixed:
                self._set_count(axis, max(self.counts[axis], positions.stop))
        if not at.part:
            for axis, (value,) in enumerate(at.rest, table):
                self._set_count(axis, max(self.counts[axis], value))

    def _grown_shape(self, rest: list[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of an entry once auto-dims have grown to these scalars."""
        if not self.type.auto:
            return self.type.shape
        counts = [self.counts[len(self.type.table) + i] for i in range(len(self.type.auto))]
        for i, (value,) in enumerate(rest):
            counts[i] = max(counts[i], value)
        return tuple(size + count for size, count in zip(self.type.shape, counts))

    def _entry(self, key: MemberKey) -> Array:
        """An entry at its present shape; the initial value where it was never written."""
        shape = self._grown_shape([])
        stored = self.entries.get(key)
        if stored is not None and stored.shape == shape:
            return stored
        grown = np.full(shape, self.fill, self.type.dtype.np)
        if stored is not None:
            grown[tuple(slice(0, n) for n in stored.shape)] = stored
        return grown

    def _box(self, ranges: list[range], sliced: list[bool]) -> Array:
        """Entries stacked along every sliced position."""
        shape = self._grown_shape([])
        lengths = tuple(map(len, ranges))
        found = np.full(lengths + shape, self.fill, self.type.dtype.np)
        if math.prod(lengths) <= len(self.entries):
            keys = [k for k in itertools.product(*ranges) if k in self.entries]
        else:
            keys = [k for k in self.entries if all(i in r for i, r in zip(k, ranges))]
        for key in keys:
            found[tuple(i - r.start for i, r in zip(key, ranges))] = self._entry(key)
        return found.reshape(tuple(n for n, s in zip(lengths, sliced) if s) + shape)

    def _store(self, key: MemberKey, entry: Array) -> None:
        if self.type.ring:
            self._advance(key[:-1], key[-1])
        else:
            self._touch(key)
        self.journal.put(self.entries, key, entry)

    def _advance(self, others: MemberKey, position: int) -> None:
        """Move a ring's window to end no earlier than after this position."""
        old = self.following.get(others, 0)
        new = max(old, position + 1)
        window = self.type.table[-1].capacity
        for gone in range(max(old - window, 0), min(new - window, old)):
            self.journal.drop(self.entries, (*others, gone))
        self.journal.put(self.following, others, new)
        self._touch(others)

    def _touch(self, key: MemberKey) -> None:
        if key not in self.touched:
            self.journal.put(self.touched, key, None)

    def _set_count(self, axis: int, count: int) -> None:
        if self.counts[axis] != count:
            self.journal.put(self.counts, axis, count)

    def _counted(self, axis: int) -> int:
        """The count of an axis by what is touched: one more than the largest index, unless its size is fixed."""
        if axis < len(self.type.table) and self.type.table[axis].fixed:
            return self.type.table[axis].capacity
        return max((k[axis] for k in self.touched), default=-1) + 1


def _selection(position: tuple[int, ...]) -> int | slice:
    return position[0] if len(position) == 1 else slice(*position)
