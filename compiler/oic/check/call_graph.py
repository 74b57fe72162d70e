"""What running a block or some statements uses by name, branches and consumers included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oic.check.uses import uses
from oic.syntax import tree as s

Body = tuple[s.Statement, ...]


@dataclass(frozen=True)
class Reached:
    """Names that an entry reads and writes, blocks and consumers included; temporaries aside."""

    read: frozenset[str]
    written: frozenset[str]


def entry_uses(graph: s.Graph, block: s.Block) -> Reached:
    """What an entry reads and writes by name, following branches and consumers."""
    read: set[str] = set()
    written: set[str] = set()
    seen = {block.name}
    waiting: list[tuple[Body, frozenset[str]]] = [(block.body, frozenset())]
    while waiting:
        body, hidden = waiting.pop()
        hidden |= {x.declaration.name for x in s.walk(body) if isinstance(x, s.Assign)}
        for statement in s.walk(body):
            used = uses(statement)
            read.update(used.reads - hidden)
            written.update(used.writes - hidden)
            for target in followers(graph, statement):
                if target.name not in seen:
                    seen.add(target.name)
                    outer = hidden if isinstance(statement, s.Branch) else frozenset[str]()
                    waiting.append((target.body, outer))
    return Reached(frozenset(read), frozenset(written))


def followers(graph: s.Graph, statement: s.Statement) -> Iterator[s.Block]:
    """The blocks that a statement runs: targets of a branch, consumers of a `yield`."""
    match statement:
        case s.Branch(targets=targets):
            yield from (b for t in targets if (b := graph.block(t.name)) is not None)
        case s.Yield(names=names):
            given = {name.name for name in names}
            yield from (b for b in consumers(graph) if awaited(b) <= given)


def consumers(graph: s.Graph) -> list[s.Block]:
    """The blocks that start with `await` and nothing branches to, in source order."""
    targets = {name.name for block in graph.blocks for name in branch_targets(block.body)}
    return [
        b
        for b in graph.blocks
        if b.body
        and isinstance(b.body[0], s.Await)
        and b.name != "entry"
        and b.name not in targets
        and not any(a.name == "entry" for a in b.attributes)
    ]


def branch_targets(body: Body) -> Iterator[s.Name]:
    """The names of the blocks that statements branch to."""
    for statement in s.walk(body):
        if isinstance(statement, s.Branch):
            yield from statement.targets


def awaited(consumer: s.Block) -> set[str]:
    """The variables that a consumer takes."""
    first = consumer.body[0]
    assert isinstance(first, s.Await)
    return {name.name for name in first.names}


def assigned(graph: s.Graph, body: Body) -> list[str]:
    """Names that statements give values to: their own and those of blocks they branch to.

    Of what consumers write, only the variables yielded come back.
    """
    found: dict[str, None] = {}
    for statement in _reached(graph, body, s.Branch):
        match statement:
            case s.OpCall(results=results):
                found |= dict.fromkeys(r.name for r in results)
            case s.Transfer(target=access) | s.CacheRead(target=access):
                found[access.name] = None
            case s.Yield(names=names):
                found |= dict.fromkeys(n.name for n in names)
    return list(found)


def changed(graph: s.Graph, body: Body) -> set[str]:
    """Persistent variables that statements may write, those of blocks and consumers included."""
    return {
        statement.target.name
        for statement in _reached(graph, body, s.Branch | s.Yield)
        if isinstance(statement, s.CacheWrite | s.CacheStep | s.CacheReset)
    }


def _reached(graph: s.Graph, body: Body, ways: Any) -> Iterator[s.Statement]:
    """The statements and those of every block that they run, each block once."""
    seen: set[str] = set()
    waiting = [body]
    while waiting:
        for statement in s.walk(waiting.pop()):
            yield statement
            for block in followers(graph, statement) if isinstance(statement, ways) else ():
                if block.name not in seen:
                    seen.add(block.name)
                    waiting.append(block.body)


def returns(body: Body) -> bool:
    """The statements or their loops have a `return`."""
    return any(isinstance(x, s.Return) for x in s.walk(body))


def returns_early(body: Body) -> bool:
    """A loop has a `return`."""
    return any(isinstance(x, s.Loop) and returns(x.body) for x in s.walk(body))
