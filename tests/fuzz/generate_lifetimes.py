"""Random buffers with lifetimes, for the planner alone: classes that are hard in different ways.

Sizes are multiples of 64 bytes.  The same seed gives the same buffers.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from oic.ir.module import Buffer

UNIT = 64  # bytes
Instance = list[tuple[int, int, int]]  # units, first and last position


def wide(r: random.Random, count: int) -> Instance:
    """Sizes log-uniform from 64 B to 1 MiB, lifetimes of a 4th to a 30th of the program on average."""
    found: Instance = []
    for _ in range(count):
        first = r.randrange(2 * count)
        length = r.expovariate(r.choice((4, 10, 30)) / (2 * count))
        found.append((int(2 ** r.uniform(0, 14)), first, min(2 * count, first + 1 + int(length))))
    return found


def small(r: random.Random, count: int) -> Instance:
    """1 to 16 units, lifetimes up to an eighth of the program: many live at once, few sizes."""
    return [(r.randint(1, 16), *_range(r, count, max(2, count // 8))) for _ in range(count)]


def alike(r: random.Random, count: int) -> Instance:
    """20 to 200 units, lifetimes up to a third: hardly any that fits where another did not."""
    return [(r.randint(20, 200), *_range(r, count, max(2, count // 3))) for _ in range(count)]


def network(r: random.Random, count: int) -> Instance:
    """One a position, of six sizes; most are read by the next, four of ten up to 30 positions on."""
    sizes = [r.choice((1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)) * r.choice((1, 1, 3, 7)) for _ in range(6)]
    return [(r.choice(sizes), i, i + (1 if r.random() < 0.6 else r.randint(2, 30))) for i in range(count)]


def cut(r: random.Random, count: int, height: int = 1000) -> Instance:
    """A rectangle, cut at random: the bound is reached, but by packings without any waste only."""
    found = [(0, 4 * count, height)]  # position, length, units
    while len(found) < count:
        i = max(range(len(found)), key=lambda i: found[i][1] * found[i][2] * r.random())
        at, length, units = found[i]
        if r.random() < 0.5 and length >= 2:
            here = r.randint(1, length - 1)
            found[i : i + 1] = [(at, here, units), (at + here, length - here, units)]
        elif units >= 2:
            here = r.randint(1, units - 1)
            found[i : i + 1] = [(at, length, here), (at, length, units - here)]
    r.shuffle(found)
    return [(units, at, at + length - 1) for at, length, units in found]


def _range(r: random.Random, positions: int, longest: int) -> tuple[int, int]:
    first = r.randrange(positions)
    return first, min(positions, first + r.randint(1, longest))


CLASSES: dict[str, Callable[[random.Random, int], Instance]] = {
    "wide": wide, "small": small, "alike": alike, "network": network, "cut": cut,
}  # fmt: skip


def lifetimes(kind: str, seed: int, count: int) -> list[Buffer]:
    """Buffers of a class."""
    made = CLASSES[kind](random.Random(seed), count)
    return [
        Buffer(f"b{i}", "arena", 0, units * UNIT, UNIT, first, last)
        for i, (units, first, last) in enumerate(made)
    ]
