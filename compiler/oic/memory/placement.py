"""Packing by order: buffers are placed one after the other, each where it fits.

What decides is the order.  `orders` are the well-known ones; `improved` takes the best of them and
swaps buffers below the top with others for as long as that does no harm.  Sizes and offsets are in units
of the alignment, so that every offset is aligned; time is in sections, the moments at which the set
of live buffers is largest.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from oic.ir.grouping import by_key
from oic.memory.intervals import Intervals

Occupied = tuple[int, int, int]  # first unit, the unit after the last, buffer
UNLIMITED = 1 << 62
FEW = 4  # buffers that are fewer than one part in so many are listed
SWAP = 500  # steps that a swap costs beside its looks at buffers


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


def lowest(part: BufferGroup, order: Sequence[int]) -> Packing:
    """Place each as low as it fits."""
    packing = Packing(0, [0] * len(order))
    _extend(part, packing, [], order, UNLIMITED)
    return packing


def completed(part: BufferGroup, some: Sequence[int], packing: Packing) -> Packing:
    """A packing of some buffers of a part with the others, the largest first, as low as they fit."""
    full = Packing(packing.height, [0] * len(part.sizes))
    for i, offset in zip(some, packing.offsets, strict=True):
        full.offsets[i] = offset
    placed = sorted((full.offsets[i], full.offsets[i] + part.sizes[i], i) for i in some)
    rest = set(range(len(part.sizes))) - set(some)
    _extend(part, full, placed, sorted(rest, key=lambda i: (-part.sizes[i], i)), UNLIMITED)
    return full


def _extend(part: BufferGroup, packing: Packing, placed: list[Occupied], order: Sequence[int], limit: int) -> bool:
    """Place buffers in order, as low as they fit beside `placed`, and add them there; False: one is above the limit."""
    lie = bytearray(len(part.sizes))
    for _, _, i in placed:
        lie[i] = 1
    for i in order:
        near, meets = part.looks(i, placed, packing.offsets, lie)
        size, at = part.sizes[i], 0
        for start, stop, j in near:
            if meets[j]:
                if start - at >= size:
                    break
                if stop > at:
                    at = stop
        stop = at + size
        if stop > packing.height:
            if stop > limit:
                return False
            packing.height = stop
        packing.offsets[i], lie[i] = at, 1
        insort(placed, (at, stop, i))
    return True


class Rng:
    """Pseudorandom numbers, the same on every machine and in every version of Python."""

    def __init__(self) -> None:
        self.state = 1

    def below(self, n: int) -> int:
        """One of 0 .. n - 1."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % n


def improved(part: BufferGroup, order: Sequence[int], target: int, steps: int) -> Packing:
    """The best packing found by swapping two buffers of an order, as long as it gets no higher.

    One of the two is at the top or holds up what is.  Ends at the target height, or after about so
    many steps, each a look at one buffer that lies already.
    """
    rng, order = Rng(), list(order)
    best = lowest(part, order)
    pillars = _pillars(part, best, rng)
    while best.height > target and steps > 0:
        a, b = order.index(pillars[rng.below(len(pillars))]), rng.below(len(order))
        a, b = min(a, b), max(a, b)
        order[a], order[b] = order[b], order[a]
        steps -= len(order) * (len(order) - a) // 4 + SWAP
        kept = [(best.offsets[i], best.offsets[i] + part.sizes[i], i) for i in order[:a]]
        new = Packing(max((stop for _, stop, _ in kept), default=0), list(best.offsets))
        if a < b and _extend(part, new, sorted(kept), order[a:], best.height):
            best = new
            pillars = _pillars(part, best, rng)
        else:
            order[a], order[b] = order[b], order[a]
    return best


def _pillars(part: BufferGroup, packing: Packing, rng: Rng) -> list[int]:
    """A buffer that reaches the top, the one directly below it, the one below that, and so on."""
    ends = by_key((at + size, i) for i, (at, size) in enumerate(zip(packing.offsets, part.sizes, strict=True)))
    tops = ends[packing.height]
    found = [tops[rng.below(len(tops))]]
    for i in found:  # grows
        below = [j for j in ends.get(packing.offsets[i], []) if part.first[i] <= part.last[j]]
        found += [j for j in below if part.first[j] <= part.last[i] and j not in found]
    return found
