"""Lowering of `yield` and `await` (SPEC, 7.1): consumers run at the `yield`, each in a region of its own.

Each sees the values yielded and those defined before; what it writes to them, the entry holds from
its `await` on.  A consumer that is alone needs no region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oic.check.call_graph import awaited, followers
from oic.ir.control import Parallel, Yield
from oic.ir.core import Block, Value
from oic.lower.builder import Builder
from oic.syntax import tree as s

Run = Callable[[Builder, tuple[s.Statement, ...]], object]


@dataclass
class _Consumer:
    """A consumer as lowered: `writes` are values of its region by the variables that hold them."""

    name: str
    region: Block
    writes: dict[str, Value]


def lower_yield(f: Builder, statement: s.Yield, run: Run) -> None:
    """Run every consumer whose awaits are all in this `yield`; `run` lowers statements."""
    found = [_lower_consumer(f, block, run) for block in followers(f.binding.graph, statement)]
    busy = [c for c in found if c.region.ops]
    if len(busy) < 2:
        for consumer in busy:
            for op in consumer.region.ops:
                f.emit(op)
            f.given |= consumer.writes
        return
    for consumer in busy:
        consumer.region.append(Yield(list(consumer.writes.values())))
    names, regions = [c.name for c in busy], [c.region for c in busy]
    op = f.emit(Parallel(names, regions, span=statement.span))
    keys = [key for consumer in busy for key in consumer.writes]
    for key, value in zip(keys, op.results, strict=True):
        value.hint = key.split("#")[0]
        f.given[key] = value


def _lower_consumer(f: Builder, block: s.Block, run: Run) -> _Consumer:
    """Lower a consumer into a region; what it writes and does not compute is given at once."""
    before = f.env
    f.env = dict(before)
    consumer = _Consumer(block.name, Block(), {})
    with f.nested(consumer.region), f.alone():
        run(f, _body(block))
        for name in sorted(awaited(block)):
            local = f.local(name)
            if local is None or f.env.get(local.key) is before.get(local.key):
                continue
            held = f.env[local.key]
            if isinstance(held, Value) and held.op in consumer.region.ops:
                consumer.writes[local.key] = held
            else:
                f.given[local.key] = held
    f.env = before
    for state in f.written_in(consumer.region):
        f.known.pop(state, None)
    return consumer


def _body(consumer: s.Block) -> tuple[s.Statement, ...]:
    """The statements between its `await` and its `yield`; those after it never run."""
    body = consumer.body[1:]
    end = next((i for i, x in enumerate(body) if isinstance(x, s.Yield)), len(body))
    return body[:end]


def lower_await(f: Builder, statement: s.Await) -> None:
    """The entry sees what a consumer wrote to the variables it gave away."""
    for name in statement.names:
        local = f.local(name.name)
        if local is not None and local.key in f.given:
            f.env[local.key] = f.given.pop(local.key)
