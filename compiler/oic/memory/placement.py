"""Packing by order: buffers are placed one after the other, each where it fits.

What decides is the order; `orders` are the well-known ones.  Sizes and offsets are in units of the
alignment, so that every offset is aligned; time is in sections, the moments at which the set of live
buffers is largest.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from oic.memory.intervals import Intervals

Occupied = tuple[int, int, int]  # first unit, the unit after the last, buffer
UNLIMITED = 1 << 62
FEW = 4  # buffers that are fewer than one part in so many are listed


@dataclass
class BufferGroup:
    """Buffers that are planned together.

    sizes        units, at least 1 each
    first, last  the sections in which each is live, inclusive
    count, crowd how many it meets, and their units; for each buffer, itself included
    bound        the largest sum of units live in one section: no packing is lower
    """

    sizes: list[int]
    first: list[int]
    last: list[int]
    count: list[int] = field(init=False)
    crowd: list[int] = field(init=False)
    bound: int = field(init=False)

    def __post_init__(self) -> None:
        sizes, first, last = (np.array(part, np.int64) for part in (self.sizes, self.first, self.last))
        begun, ended = (np.zeros((2, max(self.last) + 2), np.int64) for _ in range(2))
        for at, change in ((first, begun), (last + 1, ended)):  # buffers, and their units, by section
            np.add.at(change[0], at, 1)
            np.add.at(change[1], at, sizes)
        begun, ended = begun.cumsum(axis=1), ended.cumsum(axis=1)
        self.bound = int((begun[1] - ended[1]).max())
        self.count, self.crowd = (begun[:, last] - ended[:, first]).tolist()

    def only(self, buffers: Sequence[int]) -> BufferGroup:
        """Some of the buffers by themselves; at least one."""
        return BufferGroup(*([values[i] for i in buffers] for values in (self.sizes, self.first, self.last)))

    def looks(self, i: int, placed: list[Occupied], offsets: list[int], lie: bytearray) -> tuple[list[Occupied], bytes]:
        """Buffers that lie already, by offset, among them all that a buffer meets; and which of them it meets.

        placed, lie   the buffers that lie, in order of their offsets, and a byte for each buffer
        """
        if self.meets[i]:
            return placed, self.meets[i]
        sizes = self.sizes
        return sorted([(offsets[j], offsets[j] + sizes[j], j) for j in self.near[i] if lie[j]]), self.every

    @cached_property
    def near(self) -> list[list[int]]:
        """For each buffer those that it meets, itself included, where these are few."""
        lives: Intervals[int] = Intervals()
        for i, (first, last) in enumerate(zip(self.first, self.last, strict=True)):
            lives.add(first, last, i)
        few = [count * FEW < len(self.count) for count in self.count]
        return [list(lives.meeting(self.first[i], self.last[i])) if few[i] else [] for i in range(len(few))]

    @cached_property
    def meets(self) -> list[bytes]:
        """For each buffer a byte for each buffer: 1 where both are live at once; b"" where these are few."""
        first, last = np.array(self.first), np.array(self.last)
        return [
            b"" if near else ((first <= last[i]) & (first[i] <= last)).tobytes() for i, near in enumerate(self.near)
        ]

    @cached_property
    def every(self) -> bytes:
        """A byte for each buffer: 1."""
        return b"\1" * len(self.sizes)

    @cached_property
    def lengths(self) -> list[int]:
        """Sections in which each is live."""
        return [last - first + 1 for first, last in zip(self.first, self.last, strict=True)]

    @cached_property
    def crowded(self) -> list[int]:
        """Units times those of all that it meets."""
        return [size * crowd for size, crowd in zip(self.sizes, self.crowd, strict=True)]

    @cached_property
    def areas(self) -> list[int]:
        """Units times sections."""
        return [size * length for size, length in zip(self.sizes, self.lengths, strict=True)]


@dataclass
class Packing:
    """Where each buffer of a part lies, and how far they reach, in units."""

    height: int
    offsets: list[int]


def sections(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of positions, inclusive, as ranges of sections: two overlap where they did before.

    A section ends where something has ended and something else begins: of the positions between, one
    sees all that any of them sees.
    """
    events = [(first, 0, i) for i, (first, _) in enumerate(ranges)]
    events += [(last, 1, i) for i, (_, last) in enumerate(ranges)]
    first, last = [0] * len(ranges), [0] * len(ranges)
    section, ended = 0, False
    for _, ends, i in sorted(events):
        if ends:
            last[i] = section
        else:
            section += ended
            first[i] = section
        ended = bool(ends)
    return list(zip(first, last, strict=True))


def connected(spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Indices of ranges that overlap, directly or through others; each group by itself, in order of time."""
    order = sorted(range(len(spans)), key=spans.__getitem__)
    ended = accumulate((spans[i][1] for i in order), max, initial=-1)  # before each, the last end of those before it
    begins = [at for at, (i, end) in enumerate(zip(order, ended)) if spans[i][0] > end]
    return [sorted(order[first:end]) for first, end in pairwise([*begins, len(order)])]


def orders(part: BufferGroup) -> Iterator[tuple[str, list[int]]]:
    """What goes first: the name of each order, and the buffers; ties by size, length and index."""
    keys = {
        "size": part.sizes,
        "area": part.areas,
        "lifetime": part.lengths,
        "conflict": part.crowd,
        "size and conflict": part.crowded,
        "first": [-first for first in part.first],
        "last": part.last,
    }
    for name, key in keys.items():
        yield name, sorted(range(len(key)), key=lambda i: (-key[i], -part.sizes[i], -part.lengths[i], i))


def tightest(part: BufferGroup, order: Sequence[int]) -> Packing:
    """Place each in the smallest gap that holds it, else on top of what it meets."""
    placed: list[Occupied] = []
    offsets, lie = [0] * len(order), bytearray(len(part.sizes))
    for i in order:
        near, meets = part.looks(i, placed, offsets, lie)
        size, least, found, end = part.sizes[i], UNLIMITED, -1, 0
        for start, stop, j in near:
            if meets[j]:
                if size <= start - end < least:
                    least, found = start - end, end
                if stop > end:
                    end = stop
        offsets[i] = end if found < 0 else found
        lie[i] = 1
        insort(placed, (offsets[i], offsets[i] + size, i))
    return Packing(max(stop for _, stop, _ in placed), offsets)


def lowest(part: BufferGroup, order: Sequence[int], placed: Sequence[Occupied] = ()) -> Packing:
    """Place each as low as it fits beside what lies already, by offset."""
    offsets, lie, found = [0] * len(part.sizes), bytearray(len(part.sizes)), list(placed)
    for start, _, i in found:
        offsets[i], lie[i] = start, 1
    for i in order:
        near, meets = part.looks(i, found, offsets, lie)
        size, at = part.sizes[i], 0
        for start, stop, j in near:
            if meets[j]:
                if start - at >= size:
                    break
                if stop > at:
                    at = stop
        offsets[i], lie[i] = at, 1
        insort(found, (at, at + size, i))
    return Packing(max(stop for _, stop, _ in found), offsets)


def completed(part: BufferGroup, some: Sequence[int], packing: Packing) -> Packing:
    """A packing of some buffers of a part with the others, the largest first, as low as they fit."""
    placed = sorted((at, at + part.sizes[i], i) for i, at in zip(some, packing.offsets, strict=True))
    rest = set(range(len(part.sizes))) - set(some)
    return lowest(part, sorted(rest, key=lambda i: (-part.sizes[i], i)), placed)
