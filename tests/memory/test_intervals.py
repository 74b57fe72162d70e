"""Intervals against a look at all of them."""

from __future__ import annotations

import random

from oic.memory.intervals import Intervals


def test_what_meets_is_found_by_first_positions() -> None:
    rng = random.Random(3)
    for _ in range(40):
        index = Intervals[int]()
        added: list[tuple[int, int]] = []
        for number in range(rng.randrange(60)):
            first = rng.randrange(100)
            last = first + rng.choice([-1, 0, 0, 1, 3, 8, 60])
            index.add(first, last, number)
            added.append((first, last))
        for _ in range(30):
            low = rng.randrange(110)
            high = low + rng.choice([0, 0, 1, 5, 50])
            expected = [i for i, (a, b) in enumerate(added) if b >= low and a <= high]
            assert list(index.meeting(low, high)) == sorted(expected, key=lambda i: (added[i][0], i))
