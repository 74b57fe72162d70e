"""Offsets in the arena: buffers that are never live together share bytes.

Dynamic storage allocation with known lifetimes.  Buffers that no position connects are planned apart.
For each such part several orders of placement are tried (`memory.placement`); if all exceed the lower
bound (the largest sum of bytes live at one position), an exact search looks for a packing at the bound,
then as little above it as it finds (`memory.search`).

The same buffers get the same offsets, always: effort is limited by steps counted, never by time.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from oic.ir.module import Buffer
from oic.memory import placement
from oic.memory.placement import BufferGroup, Packing
from oic.memory.search import NODE, Search, cells

EFFORT = 1_500_000_000  # cost of the exact searches of all parts together, about two seconds
SHARE, LEAST = 3_000_000, 300_000_000  # the same for each buffer, and for few: time grows like the program
CELLS = 1 << 21  # live buffers, summed over the sections of a part: no exact search of larger ones


@dataclass
class Planned:
    """Offsets for a list of buffers.

    nbytes    of the arena
    offsets   of each buffer
    bound     the largest sum of bytes live at one position
    least     no packing has fewer bytes; above the bound if the exact search found that out
    searched  no order reached the bound
    """

    nbytes: int
    offsets: list[int]
    bound: int
    least: int
    searched: bool


def place(buffers: Sequence[Buffer], *, reuse: bool = True) -> int:
    """Set the offset of every buffer; the bytes of the arena.

    reuse   False gives every buffer bytes of its own
    """
    if not reuse:
        end = 0
        for buffer in buffers:
            buffer.offset = end
            end += units(buffer) * buffer.align
        return end
    planned = plan(buffers)
    for buffer, offset in zip(buffers, planned.offsets, strict=True):
        buffer.offset = offset
    return planned.nbytes


def plan(buffers: Sequence[Buffer], *, effort: int = EFFORT) -> Planned:
    """Find offsets; the buffers stay as they are.

    effort   what the exact searches may cost at most, about a nanosecond each
    """
    effort = min(effort, max(LEAST, SHARE * len(buffers)))
    found, unit = parts(buffers), _unit(buffers)
    bound = max((part.bound for _, part in found), default=0)
    height, least, searched = bound, bound, False
    offsets = [0] * len(buffers)
    for indices, part in found:
        # What the parts before reach is low enough for this one.
        packing = _best_order(part, height)
        if packing.height > height:
            searched = True
            packing, known, cost = _searched(part, packing, height, effort)
            least, effort = max(least, known), effort - cost
        height = max(height, packing.height)
        for i, offset in zip(indices, packing.offsets, strict=True):
            offsets[i] = offset * unit
    return Planned(height * unit, offsets, bound * unit, least * unit, searched)


def parts(buffers: Sequence[Buffer]) -> list[tuple[list[int], BufferGroup]]:
    """The buffers that take room, by index, as parts that no position connects; the fullest first."""
    some = [i for i, b in enumerate(buffers) if b.nbytes]
    spans = placement.sections([(buffers[i].start, buffers[i].end) for i in some])
    found: list[tuple[list[int], BufferGroup]] = []
    for group in placement.connected(spans):
        indices, origin = [some[k] for k in group], min(spans[k][0] for k in group)
        first, last = ([spans[k][end] - origin for k in group] for end in (0, 1))
        found.append((indices, BufferGroup([units(buffers[i]) for i in indices], first, last)))
    return sorted(found, key=lambda pair: -pair[1].bound)


def units(buffer: Buffer) -> int:
    """The room that a buffer takes, as a multiple of the alignment."""
    return -(-buffer.nbytes // buffer.align)


def _unit(buffers: Sequence[Buffer]) -> int:
    """The alignment of the buffers, which is one."""
    return buffers[0].align if buffers else 1


def _best_order(part: BufferGroup, target: int) -> Packing:
    """The best packing by an order, or the first at the target."""
    best = Packing(placement.UNLIMITED, [])
    for order in placement.orders(part):
        best = min(best, placement.tightest(part, order), key=lambda p: p.height)
        if best.height <= target:
            break
    return best


def _searched(part: BufferGroup, best: Packing, target: int, effort: int) -> tuple[Packing, int, int]:
    """The best packing that exact searches find, the least height that one can have, and the cost.

    Most searches find a packing at once or not for very long.  So they are short and begin anew with
    other priorities: in turn for the target, and for a height between it and the best so far.
    """
    rng, least, low, cost = Random(1), target, target, 0  # the same numbers on every machine, in every Python
    limit = 2 * len(part.sizes) * (NODE + cells(part))
    for turn in itertools.count():
        if best.height <= least or cost >= effort or cells(part) > CELLS:
            break
        between = turn % 2 == 1
        height = (low + best.height - 1) // 2 if between else least
        search = Search(part, height, _priority(part, turn // 2, rng), min(limit, effort - cost))
        found = search.find()
        cost += search.cost
        if found is not None:
            best = found
        elif search.complete:
            least = low = max(least, height + 1)
        elif between:
            low = height + 1
        if low >= best.height:
            low = least
        if turn % 8 == 7:
            limit += limit // 2
    return best, least, cost


def _priority(part: BufferGroup, number: int, rng: Random) -> list[int]:
    """What a search tries first: one of four rules, after that with much left to chance."""
    longest = [length << 30 | size for length, size in zip(part.lengths, part.sizes, strict=True)]
    key = (part.sizes, longest, part.crowded, part.areas)[number % 4]
    return key if number < 4 else [value * (8 + int(8 * rng.random())) for value in key]


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """The largest sum of bytes, each rounded up to the alignment, live at one position."""
    return max((part.bound for _, part in parts(buffers)), default=0) * _unit(buffers)
