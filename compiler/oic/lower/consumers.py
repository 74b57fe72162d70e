"""Lowering of `yield` and `await` (SPEC, 7.1): consumers run at the `yield`, each in a region of its own.

Each sees the values yielded and those defined before; what it writes to them, the entry holds from
its `await` on.  A consumer that is alone needs no region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oic.check.resolved import BlockInstance
from oic.ir.control import Parallel, Yield
from oic.ir.core import Block, Value
from oic.lower.builder import Builder
from oic.lower.environment import EnvKey
from oic.syntax import tree as s

RunBody = Callable[[Builder, tuple[s.SourceStatement, ...]], object]


@dataclass
class _Consumer:
    """A consumer as lowered: `writes` are values of its region by the variables that hold them."""

    name: str
    region: Block
    writes: dict[EnvKey, Value]


def lower_yield(f: Builder, statement: s.Yield, run: RunBody) -> None:
    """Run every consumer whose awaits are all in this `yield`; `run` lowers statements."""
    found = [_lower_consumer(f, consumer, run) for consumer in f.instance.run_by(statement)]
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
        value.hint = key.name
        f.given[key] = value


def _lower_consumer(f: Builder, instance: BlockInstance, run: RunBody) -> _Consumer:
    """Lower a consumer into a region; what it writes and does not compute is given at once."""
    before = f.env
    f.env = dict(before)
    consumer = _Consumer(instance.block.name, Block(), {})
    first, *body = instance.block.body
    assert isinstance(first, s.Await)
    end = next((at for at, x in enumerate(body) if isinstance(x, s.Yield)), len(body))
    with f.nested(consumer.region), f.inside(instance, False):
        run(f, tuple(body[:end]))  # what follows its `yield` never runs
        taken = {variable for name in first.names if (variable := instance.variable(name)) is not None}
        for variable in sorted(taken, key=lambda v: v.name):
            held = f.env.get(variable)
            if held is None or held is before.get(variable):
                continue
            if isinstance(held, Value) and held.op in consumer.region.ops:
                consumer.writes[variable] = held
            else:
                f.given[variable] = held
    f.env = before
    f.forget_written(consumer.region)
    return consumer


def lower_await(f: Builder, statement: s.Await) -> None:
    """The entry sees what a consumer wrote to the variables it gave away."""
    for name in statement.names:
        variable = f.instance.variable(name)
        if variable is not None and variable in f.given:
            f.env[variable] = f.given.pop(variable)
