"""Intervals of positions, of which those that meet another one are found without looking at all.

Intervals are kept by length, each class up to twice as long as the one before, ordered by their
first position: within a class, what can meet an interval lies close together.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Intervals(Generic[Item]):
    """Items, each needed from a first to a last position, both included."""

    def __init__(self) -> None:
        self._count = 0
        self._classes: dict[int, list[tuple[int, int, int, Item]]] = {}

    def add(self, first: int, last: int, item: Item) -> None:
        """Add an item; one that ends before it starts meets nothing."""
        row = (first, self._count, last, item)
        self._count += 1
        insort(self._classes.setdefault(max(0, last - first).bit_length(), []), row)

    def meeting(self, first: int, last: int) -> Iterator[Item]:
        """The items needed at a position from `first` to `last`, by their first positions; looked for as asked for."""
        near: list[Iterator[tuple[int, int, int, Item]]] = []
        for size, rows in self._classes.items():
            low = bisect_left(rows, first - (1 << size) + 1, key=itemgetter(0))
            high = bisect_right(rows, last, key=itemgetter(0))
            near.append(row for row in map(rows.__getitem__, range(low, high)) if row[2] >= first)
        return (item for *_, item in merge(*near))
