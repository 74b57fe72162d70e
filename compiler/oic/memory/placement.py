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

import numpy as np

Placed = tuple[int, int, int]  # first unit, the unit after the last, buffer
UNLIMITED = 1 << 62
SWAP = 500  # steps that a swap costs beside its looks at buffers


@dataclass
class Part:
    """Buffers that are planned together.

    sizes        units, at least 1 each
    first, last  the sections in which each is live, inclusive
    meets        for each buffer a byte for each buffer: 1 where both are live at once
    crowd        for each buffer the units of all that it meets, itself included
    bound        the largest sum of units live in one section: no packing is lower
    """

    sizes: list[int]
    first: list[int]
    last: list[int]
    meets: list[bytes] = field(init=False)
    crowd: list[int] = field(init=False)
    bound: int = field(init=False)

    def __post_init__(self) -> None:
        sizes, first, last = (np.array(part, np.int64) for part in (self.sizes, self.first, self.last))
        meets = (first[:, None] <= last) & (first <= last[:, None])
        self.meets = [row.tobytes() for row in meets]
        self.crowd = [int(sizes[row].sum()) for row in meets]
        change = np.zeros(max(self.last) + 2, np.int64)
        np.add.at(change, first, sizes)
        np.add.at(change, last + 1, -sizes)
        self.bound = int(change.cumsum().max())

    def only(self, buffers: Sequence[int]) -> Part:
        """Some of the buffers by themselves; at least one."""
        return Part(*([values[i] for i in buffers] for values in (self.sizes, self.first, self.last)))

    @cached_property
    def lengths(self) -> list[int]:
        """Sections in which each is live."""
        return [last - first + 1 for first, last in zip(self.first, self.last, strict=True)]

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


def connected(spans: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Indices of ranges that overlap, directly or through others; each group by itself, in order of time."""
    group: list[int] = []
    end = -1
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        if spans[i][0] > end and group:
            yield sorted(group)
            group = []
        group.append(i)
        end = max(end, spans[i][1])
    if group:
        yield sorted(group)


# ---------------------------------------------------------------- orders


def orders(part: Part) -> Iterator[tuple[str, list[int]]]:
    """What goes first: the name of each order, and the buffers; ties by size, length and index."""
    crowded = [size * crowd for size, crowd in zip(part.sizes, part.crowd, strict=True)]
    keys = {
        "size": part.sizes,
        "area": part.areas,
        "lifetime": part.lengths,
        "conflict": part.crowd,
        "size and conflict": crowded,
        "first": [-first for first in part.first],
        "last": part.last,
    }
    for name, key in keys.items():
        yield name, sorted(range(len(key)), key=lambda i: (-key[i], -part.sizes[i], -part.lengths[i], i))


def tightest(part: Part, order: Sequence[int]) -> Packing:
    """Place each in the smallest gap that holds it, else on top of what it meets."""
    placed: list[Placed] = []
    offsets = [0] * len(order)
    for i in order:
        meets, size = part.meets[i], part.sizes[i]
        least, found, end = UNLIMITED, -1, 0
        for start, stop, j in placed:
            if meets[j]:
                if size <= start - end < least:
                    least, found = start - end, end
                if stop > end:
                    end = stop
        offsets[i] = end if found < 0 else found
        insort(placed, (offsets[i], offsets[i] + size, i))
    return Packing(max(stop for _, stop, _ in placed), offsets)


def lowest(part: Part, order: Sequence[int]) -> Packing:
    """Place each as low as it fits."""
    packing = Packing(0, [0] * len(order))
    _extend(part, packing, [], order, UNLIMITED)
    return packing


def completed(part: Part, some: Sequence[int], packing: Packing) -> Packing:
    """A packing of some buffers of a part with the others, the largest first, as low as they fit."""
    full = Packing(packing.height, [0] * len(part.sizes))
    for i, offset in zip(some, packing.offsets, strict=True):
        full.offsets[i] = offset
    placed = sorted((full.offsets[i], full.offsets[i] + part.sizes[i], i) for i in some)
    rest = set(range(len(part.sizes))) - set(some)
    _extend(part, full, placed, sorted(rest, key=lambda i: (-part.sizes[i], i)), UNLIMITED)
    return full


def _extend(part: Part, packing: Packing, placed: list[Placed], order: Sequence[int], limit: int) -> bool:
    """Place the buffers of an order as low as they fit; False, and not all placed, if above the limit.

    placed   what lies already, by offset; added to
    """
    for i in order:
        meets, size, at = part.meets[i], part.sizes[i], 0
        for start, stop, j in placed:
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
        packing.offsets[i] = at
        insort(placed, (at, stop, i))
    return True


# ---------------------------------------------------------------- local search


class Lots:
    """Pseudorandom numbers, the same on every machine and in every version of Python."""

    def __init__(self, seed: int = 1) -> None:
        self.state = seed

    def below(self, n: int) -> int:
        """One of 0 .. n - 1."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % n


def improved(part: Part, order: Sequence[int], target: int, steps: int) -> Packing:
    """The best packing found by swapping two buffers of an order, as long as it gets no higher.

    One of the two is at the top or holds up what is.  Ends at the target height, or after about so
    many steps, each a look at one buffer that lies already.
    """
    lots, order = Lots(), list(order)
    best = lowest(part, order)
    pillars = _pillars(part, best, lots)
    while best.height > target and steps > 0:
        a, b = order.index(pillars[lots.below(len(pillars))]), lots.below(len(order))
        a, b = min(a, b), max(a, b)
        order[a], order[b] = order[b], order[a]
        steps -= len(order) * (len(order) - a) // 4 + SWAP
        kept = [(best.offsets[i], best.offsets[i] + part.sizes[i], i) for i in order[:a]]
        new = Packing(max((stop for _, stop, _ in kept), default=0), list(best.offsets))
        if a < b and _extend(part, new, sorted(kept), order[a:], best.height):
            best = new
            pillars = _pillars(part, best, lots)
        else:
            order[a], order[b] = order[b], order[a]
    return best


def _pillars(part: Part, packing: Packing, lots: Lots) -> list[int]:
    """A buffer that reaches the top, what it stands on, what that stands on, and so on."""
    ends: dict[int, list[int]] = {}
    for i, (at, size) in enumerate(zip(packing.offsets, part.sizes, strict=True)):
        ends.setdefault(at + size, []).append(i)
    tops = ends[packing.height]
    found = [tops[lots.below(len(tops))]]
    for i in found:  # grows
        below = ends.get(packing.offsets[i], [])
        found += [j for j in below if part.meets[i][j] and j not in found]
    return found
