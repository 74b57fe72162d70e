"""What was changed, so that it can be undone: a log of dictionary entries."""

from typing import Any

MISSING = object()


class Journal:
    """Changes dictionaries and remembers what was there; undoing costs as much as was changed."""

    def __init__(self) -> None:
        self.log: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, where: dict[Any, Any], key: Any, value: Any) -> None:
        """where[key] = value"""
        self.log.append((where, key, where.get(key, MISSING)))
        where[key] = value

    def drop(self, where: dict[Any, Any], key: Any) -> None:
        """Remove a key if it is there."""
        if key in where:
            self.log.append((where, key, where.pop(key)))

    def undo(self, kept: int = 0) -> None:
        """Everything since the last `done` as it was, but for the first so many changes."""
        for where, key, old in reversed(self.log[kept:]):
            if old is MISSING:
                where.pop(key, None)
            else:
                where[key] = old
        del self.log[kept:]

    def done(self) -> None:
        """Keep what was changed."""
        self.log.clear()
