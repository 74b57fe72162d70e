"""What belongs together: by a key, or because one leads to the other."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def by_key(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """The items of each key in their order, keys in the order of their first."""
    found: dict[Key, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def reach(start: Iterable[Key], following: Callable[[Key], Iterable[Key]]) -> Iterator[Key]:
    """These and all that follows from them, each once, the nearest first; looked for as it is asked for."""
    found = dict.fromkeys(start)
    waiting = list(found)
    for item in waiting:  # grows
        yield item
        new = dict.fromkeys(n for n in following(item) if n not in found)
        found |= new
        waiting += new
