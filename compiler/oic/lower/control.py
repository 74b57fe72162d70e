"""Lowering of statements in order: blocks, branches, and `return` inside loops.

A block is lowered anew at each branch to it, for the types there (DESIGN, section 4).  A `return`
inside a loop becomes a carried flag, and what follows runs only while it is not set.

Consumers run at the `yield` (SPEC, 7.1), each in a region of its own; one that is alone needs none.  Each
sees the values yielded and those defined before; what it writes to them, the entry holds from its `await` on.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from oic import dtypes
from oic.check import resolved
from oic.check.report import Refused, refused
from oic.diagnostics import Diagnostic, Span
from oic.ir.control import Barrier, Cond, Parallel
from oic.ir.control import Yield as EndOfRegion
from oic.ir.core import Block, Value
from oic.ir.state import Splat
from oic.lower.builder import POISON, RETURNED, Builder, EnvKey
from oic.lower.cache import lower_read, lower_reset, lower_step, lower_write
from oic.lower.loop import Side, join, lower_dead, lower_iteration, lower_loop
from oic.lower.operators import lower_op, lower_transfer
from oic.syntax import tree as s

Statements = tuple[s.SourceStatement, ...]


def lower_body(f: Builder, body: Statements) -> bool:
    """Lower statements in order; True if a `return` surely ended them."""
    for position, statement in enumerate(body):
        if isinstance(statement, s.Return):
            if f.returns:
                f.env[RETURNED] = f.value(1)
            return True
        with f.refusing():
            if isinstance(statement, s.Loop) and _may_return(f, statement):
                return _returning_loop(f, statement, body[position + 1 :])
            lower_statement(f, statement)
    return False


def lower_statement(f: Builder, statement: s.SourceStatement) -> None:
    """One statement other than `return`.  Raises Refused."""
    _count(f, statement)
    try:
        if f.binding.is_refused(statement.shown):
            if isinstance(statement, s.Loop):
                lower_dead(f, statement, lambda: _iteration(f, statement))
            raise Refused(None)
        _LOWERING[type(statement)](f, statement)
    except Refused:  # later uses of what it gives values to are refused in silence
        f.env |= dict.fromkeys(resolved.assigned(f.instance, (statement,)), POISON)
        raise


def _may_return(f: Builder, loop: s.Loop) -> bool:
    """The loop has a `return`, and the checks left the loop as it is."""
    return f.returns and resolved.returns(loop.body) and not f.binding.is_refused(loop.head_span)


def _count(f: Builder, statement: s.SourceStatement) -> None:
    """A block is lowered at each branch to it: small sources make programs without end, or depth."""
    f.counter["statements"] = f.counter.get("statements", 0) + 1
    if f.counter["statements"] > resolved.MOST_STATEMENTS:
        raise Refused(resolved.program_size(f.binding.resolved.graph))
    if f.depth + len(f.calls) > resolved.DEEPEST_RUN:
        message = f"this runs inside more than {resolved.DEEPEST_RUN} loops, branches and blocks"
        f.refuse(Diagnostic("nesting-depth", message, statement.shown), "the first place")
        raise Refused(None)


def _assign(f: Builder, statement: s.Assign) -> None:
    """A temporary is visible from here on; one whose type is refused has no sizes."""
    variable = f.variable(statement.declaration)
    f.env.pop(variable, None)
    f.declare(variable, f.block)


def lower_block(f: Builder, instance: resolved.BlockInstance | None) -> None:
    """Run a block: its own scope inside the caller's, its own `return`."""
    if instance is None or any(instance.block is other.block for other in f.calls):
        f.silent = True  # reported by the checks of blocks
        return
    f.calls.append(instance)
    outer = f.env.pop(RETURNED, None)
    early = any(isinstance(x, s.Loop) and resolved.returns(x.body) for x in instance.block.body)
    with f.inside(instance, early):
        if f.returns:
            f.env[RETURNED] = f.value(0)
        lower_body(f, instance.block.body)
    f.env.pop(RETURNED, None)
    if outer is not None:
        f.env[RETURNED] = outer
    f.calls.pop()


def _branch(f: Builder, statement: s.Branch) -> None:
    """One block, or both with a join of every variable that either changes."""
    targets = f.instance.runs[id(statement)]
    if statement.condition is None:
        lower_block(f, targets[0])
        return
    condition = _condition(f, statement.condition)
    if isinstance(condition.op, Splat):
        lower_block(f, targets[0 if condition.op.value else 1])
        return
    _either(f, condition, statement.span, *(partial(lower_block, f, target) for target in targets))


def _either(f: Builder, condition: Value, span: Span | None, *ways: Callable[[], object]) -> None:
    """Lower two ways to go on, and join what variables hold after them."""
    before = dict(f.env)
    sides: list[Side] = []
    for way in ways:
        f.env = dict(before)
        with f.nested(Block()) as region:
            way()
            sides.append((region, f.env))
    join(f, condition, span, before, sides)


def _condition(f: Builder, name: s.Name) -> Value:
    variable = f.variable(name)
    value = f.read(variable, name.span)
    if value.dtype is not dtypes.bool_ or value.tensor.size != 1:
        what = f"'{variable.name}' is {f.shown(value.type)}, not a bool scalar"
        raise refused("branch-condition", what, name.span, variable)
    return value


def _iteration(f: Builder, loop: s.Loop) -> None:
    """The body of a loop, once; nothing of it where an earlier iteration returned."""
    if RETURNED in f.env and resolved.returns(loop.body):
        _guarded(f, loop.body)
    else:
        lower_body(f, loop.body)


def _returning_loop(f: Builder, loop: s.Loop, rest: Statements) -> bool:
    """A loop in which the block may end: what follows runs only if it did not."""
    start, end = f.integer(loop.start), f.integer(loop.end)
    known = range(start, end) if isinstance(start, int) and isinstance(end, int) else None
    if known and any(isinstance(x, s.Return) for x in loop.body):
        lower_iteration(f, loop, start, lambda: lower_body(f, loop.body))
        return True
    lower_statement(f, loop)
    if known is not None and not known:
        return lower_body(f, rest)
    _guarded(f, rest)
    return False


def _guarded(f: Builder, body: Statements) -> None:
    """Statements that run only while the block has not returned."""
    flag = f.env[RETURNED]
    assert isinstance(flag, Value)
    _either(f, f.emit(Cond(flag, f.value(1))).result, None, lambda: lower_body(f, body), lambda: None)


def _yield(f: Builder, statement: s.Yield) -> None:
    """Run every consumer whose awaits are all in this `yield`."""
    found = [(consumer.block.name, *_lower_consumer(f, consumer)) for consumer in f.instance.run_by(statement)]
    busy = [(name, region, writes) for name, region, writes in found if region.ops]
    if len(busy) < 2:
        for _, region, writes in busy:
            for op in region.ops:
                f.emit(op)
            f.given |= writes
        return
    for _, region, writes in busy:
        region.append(EndOfRegion(list(writes.values())))
    op = f.emit(Parallel([name for name, _, _ in busy], [region for _, region, _ in busy], span=statement.span))
    keys = [key for _, _, writes in busy for key in writes]
    for key, value in zip(keys, op.results, strict=True):
        value.hint = key.name
        f.given[key] = value


def _lower_consumer(f: Builder, instance: resolved.BlockInstance) -> tuple[Block, dict[EnvKey, Value]]:
    """A consumer lowered into a region, and values of that by the variables that hold them.

    What it writes and does not compute is given at once.
    """
    before, region, writes = f.env, Block(), dict[EnvKey, Value]()
    f.env = dict(before)
    first, *body = instance.block.body
    assert isinstance(first, s.Await)
    end = next((at for at, x in enumerate(body) if isinstance(x, s.Yield)), len(body))
    with f.nested(region), f.inside(instance, False):
        lower_body(f, tuple(body[:end]))  # what follows its `yield` never runs
        taken = {variable for name in first.names if (variable := instance.variable(name)) is not None}
        for variable in sorted(taken, key=lambda v: v.name):
            held = f.env.get(variable)
            if held is None or held is before.get(variable):
                continue
            if isinstance(held, Value) and held.op in region.ops:
                writes[variable] = held
            else:
                f.given[variable] = held
    f.env = before
    f.forget_written(region)
    return region, writes


def _await(f: Builder, statement: s.Await) -> None:
    """The entry sees what a consumer wrote to the variables it gave away."""
    for name in statement.names:
        variable = f.instance.variable(name)
        if variable is not None and variable in f.given:
            f.env[variable] = f.given.pop(variable)


_LOWERING: dict[type[s.SourceStatement], Callable[[Builder, Any], object]] = {
    s.Assign: _assign,
    s.OpCall: lower_op,
    s.Transfer: lower_transfer,
    s.CacheRead: lower_read,
    s.CacheWrite: lower_write,
    s.CacheStep: lower_step,
    s.CacheReset: lower_reset,
    s.Loop: lambda f, loop: lower_loop(f, loop, lambda: _iteration(f, loop)),
    s.Branch: _branch,
    s.Barrier: lambda f, barrier: f.emit(Barrier(span=barrier.span)),
    s.Yield: _yield,
    s.Await: _await,
    s.Dep: lambda f, dep: None,  # effects keep their order, and nothing else can tell it
}
