"""Lists of what belongs together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def by_key(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """The items of each key in their order, keys in the order of their first."""
    found: dict[Key, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found
