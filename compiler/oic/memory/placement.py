"""Packing by order: buffers are placed one after the other, each where it fits.

What decides is the order; `orders` are the well-known ones.  Sizes and offsets are in units of the
alignment, so that every offset is aligned; time is in sections, the moments at which the set of live
buffers is largest.
"""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from oic.memory.intervals import Intervals

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

    @cached_property
    def near(self) -> list[list[int]]:
        """For each buffer those that it meets, itself included, where these are few."""
        lives: Intervals[int] = Intervals()
        for i, (first, last) in enumerate(zip(self.first, self.last, strict=True)):
            lives.add(first, last, i)
        few = [count * FEW < len(self.count) for count in self.count]
        spans = zip(few, self.first, self.last, strict=True)
        return [list(lives.meeting(first, last)) if listed else [] for listed, first, last in spans]

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


def orders(part: BufferGroup) -> Iterator[list[int]]:
    """The buffers in the order in which they are placed, by each of several keys; ties by size, length and index."""
    begun = [-first for first in part.first]
    for key in (part.sizes, part.areas, part.lengths, part.crowd, part.crowded, begun):
        yield sorted(range(len(key)), key=lambda i: (-key[i], -part.sizes[i], -part.lengths[i], i))


def tightest(part: BufferGroup, order: Sequence[int]) -> Packing:
    """Place each in the smallest gap that holds it, else on top of what it meets."""
    offsets: dict[int, int] = {}
    rows: list[tuple[int, int, int]] = []  # what lies: its first unit, the one after its last, its number; in order
    for i in order:
        size, least, found, end = part.sizes[i], UNLIMITED, -1, 0
        for start, stop in _beside(part, i, offsets, rows):
            if size <= start - end < least:
                least, found = start - end, end
            if stop > end:
                end = stop
        offsets[i] = end if found < 0 else found
        insort(rows, (offsets[i], offsets[i] + size, i))
    return Packing(max(stop for _, stop, _ in rows), [offsets[i] for i in range(len(part.sizes))])


def _beside(
    part: BufferGroup, i: int, offsets: Mapping[int, int], rows: Sequence[tuple[int, int, int]]
) -> list[tuple[int, int]]:
    """The units of those that lie and that a buffer meets, in order."""
    if near := part.near[i]:
        return sorted([(at := offsets[j], at + part.sizes[j]) for j in near if j in offsets])
    first, last, begins, ends = part.first[i], part.last[i], part.first, part.last
    return [(start, stop) for start, stop, j in rows if begins[j] <= last and ends[j] >= first]
