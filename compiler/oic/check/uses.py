"""What a statement reads and writes, by name."""

from __future__ import annotations

from dataclasses import dataclass

from oic.check.names import names_in
from oic.syntax import tree as s


@dataclass(frozen=True)
class Uses:
    """Names that a statement itself reads and writes, the bodies of loops and blocks aside.

    A name in an expression counts as read, whatever it turns out to be.  Persistent variables
    that a `cache.` statement changes are in `writes`.
    """

    reads: frozenset[str]
    writes: frozenset[str]


def uses(statement: s.Statement) -> Uses:
    """The names one statement uses."""
    match statement:
        case s.OpCall(_, operands, keywords, results):
            values = [keyword.value for keyword in keywords]
            return _uses([*operands, *values], results)
        case s.Transfer(source, target) | s.CacheRead(source, target):
            return _uses([source], [target])
        case s.CacheWrite(source, target):
            return _uses([source], [target])
        case s.CacheStep(_, amount, target):
            return _uses([amount], [target])
        case s.CacheReset(target):
            return _uses([], [target])
        case s.Loop(_, _, start, end):
            return _uses([start, end], [])
        case s.Branch(condition):
            return _uses([condition], [])
        case _:
            return _uses([], [])


def _uses(read: list[object], written: tuple[s.Access, ...] | list[s.Access]) -> Uses:
    reads = {name.name for value in read for name in names_in(value)}
    reads |= {value.name for value in read if isinstance(value, s.Access)}
    for access in written:
        reads |= {name.name for name in names_in(access)}
    return Uses(frozenset(reads), frozenset(access.name for access in written))
