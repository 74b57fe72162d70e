"""Lowering of statements in order: blocks, branches, and `return` inside loops.

A block is lowered anew at each branch to it, for the types there (DESIGN, section 4).  A `return`
inside a loop becomes a carried flag, and what follows runs only while it is not set.
"""

from __future__ import annotations

from oic import dtypes
from oic.check.call_graph import Body, assigned, returns, returns_early
from oic.check.variables import Refused, check_bytes
from oic.diagnostics import Diagnostic
from oic.ir import dims
from oic.ir.control import Barrier, Cond
from oic.ir.core import Block, Value
from oic.ir.index import divides
from oic.ir.state import Splat
from oic.lower.builder import Builder
from oic.lower.cache import lower_read, lower_reset, lower_step, lower_write
from oic.lower.consumers import lower_await, lower_yield
from oic.lower.environment import Local
from oic.lower.join import Side, join
from oic.lower.loop import RETURNED, lower_dead, lower_iteration, lower_loop
from oic.lower.operands import operand
from oic.lower.operators import lower_op, lower_transfer, poison
from oic.syntax import tree as s

MOST_STATEMENTS = 20_000
DEEPEST_RUN = 100  # loops, branches and blocks, one inside the other, around a statement


def lower_body(f: Builder, body: Body) -> bool:
    """Lower statements in order; True if a `return` surely ended them."""
    for position, statement in enumerate(body):
        if isinstance(statement, s.Return):
            if f.returns:
                f.env[RETURNED] = f.value(1)
            return True
        try:
            if isinstance(statement, s.Loop) and _may_return(f, statement):
                return _returning_loop(f, statement, body[position + 1 :])
            lower_statement(f, statement)
        except Refused as refused:
            f.report(refused)
    return False


def lower_statement(f: Builder, statement: s.Statement) -> None:
    """One statement other than `return`.  Raises Refused."""
    _count(f, statement)
    if f.binding.is_refused(statement.head_span if isinstance(statement, s.Loop) else statement.span):
        _skip(f, statement)
        return
    match statement:
        case s.Assign():
            _assign(f, statement.declaration)
        case s.OpCall():
            lower_op(f, statement)
        case s.Transfer():
            lower_transfer(f, statement)
        case s.CacheRead():
            lower_read(f, statement)
        case s.CacheWrite():
            lower_write(f, statement)
        case s.CacheStep():
            lower_step(f, statement)
        case s.CacheReset():
            lower_reset(f, statement)
        case s.Loop():
            lower_loop(f, statement, lambda: _iteration(f, statement))
        case s.Branch():
            _branch(f, statement)
        case s.Barrier():
            f.emit(Barrier(span=statement.span))
        case s.Yield():
            lower_yield(f, statement, lower_body)
        case s.Await():
            lower_await(f, statement)
        case s.Dep():
            pass  # effects keep their order, and nothing else can tell it


def _may_return(f: Builder, loop: s.Loop) -> bool:
    """The loop has a `return`, and the checks left the loop as it is."""
    return f.returns and returns(loop.body) and not f.binding.is_refused(loop.head_span)


def _count(f: Builder, statement: s.Statement) -> None:
    """A block is lowered at each branch to it: small sources make programs without end, or depth."""
    f.counter["statements"] = f.counter.get("statements", 0) + 1
    if f.counter["statements"] > MOST_STATEMENTS:
        raise Refused(
            Diagnostic(
                "program-size",
                f"with each branch a copy of its block, the graph has over {MOST_STATEMENTS} statements",
                f.binding.graph.blocks[0].name_span,
            )
        )
    if f.depth + len(f.calls) > DEEPEST_RUN:
        message = f"this runs inside more than {DEEPEST_RUN} loops, branches and blocks"
        span = statement.head_span if isinstance(statement, s.Loop) else statement.span
        first = f.counter.setdefault("too deep", 1)
        f.counter["too deep"] = 0
        raise Refused(Diagnostic("nesting-depth", message, span) if first else None)


def _skip(f: Builder, statement: s.Statement) -> None:
    """A statement that the checks refused: nothing is known of what it gives values to."""
    f.silent = True
    match statement:
        case s.Assign(declaration=declaration):
            _declare(f, declaration, None)
        case s.Loop():
            lower_dead(f, statement, lambda: _iteration(f, statement))
        case s.Return() | s.Yield() | s.Await() | s.Dep():
            return
    for name in assigned(f.binding.graph, (statement,)):
        poison(f, name)


def _assign(f: Builder, declaration: s.Declaration) -> None:
    dtype = dtypes.ALL[declaration.dtype]
    local = _declare(f, declaration, None)
    local.dims = f.binding.dims_of(declaration)
    for quotient in dims.quotients(d for d in local.dims if d is not None):
        for op in divides(quotient):
            op.span = declaration.type_span
            f.emit(op)
    check_bytes(declaration.name, dtype, local.dims, declaration.type_span)
    local.dtype = dtype


def _declare(f: Builder, declaration: s.Declaration, dtype: dtypes.DType | None) -> Local:
    """A temporary whose name is known from here on, even where its type is refused."""
    key = f.fresh(f"{declaration.name}#")
    local = Local(key, declaration, dtype, (None,) * len(declaration.dims))
    f.scopes[-1][declaration.name] = local
    f.loops.pop(declaration.name, None)  # one of a caller, which is hidden
    return local


# ---------------------------------------------------------------- blocks


def lower_block(f: Builder, name: str) -> None:
    """Run a block: its own scope inside the caller's, its own `return`."""
    block = f.binding.graph.block(name)
    if block is None or name in f.calls:
        f.silent = True  # reported by the checks of blocks
        return
    f.calls.append(name)
    with f.inside(returns_early(block.body)):
        outer = f.env.pop(RETURNED, None)
        if f.returns:
            f.env[RETURNED] = f.value(0)
        lower_body(f, block.body)
        f.env.pop(RETURNED, None)
        if outer is not None:
            f.env[RETURNED] = outer
    f.calls.pop()


def _branch(f: Builder, statement: s.Branch) -> None:
    """One block, or both with a join of every variable that either changes."""
    if statement.condition is None:
        lower_block(f, statement.targets[0].name)
        return
    condition = _condition(f, statement.condition)
    yes, no = statement.targets
    if isinstance(condition.op, Splat):
        lower_block(f, yes.name if condition.op.value else no.name)
        return
    before = dict(f.env)
    sides: list[Side] = []
    for target in (yes, no):
        f.env = dict(before)
        with f.nested(Block()) as region:
            lower_block(f, target.name)
            sides.append(Side(region, f.env))
    join(f, condition, statement.span, before, sides)


def _condition(f: Builder, name: s.Name) -> Value:
    access = s.Access(name.name, None, name.span, name.span)
    value = operand(f, access, persistent=True)
    if value.dtype is not dtypes.bool_ or value.tensor.size != 1:
        what = f"'{name.name}' is {f.shown(value.type)}, not a bool scalar"
        notes = f.declared(name.name)
        raise Refused(Diagnostic("branch-condition", what, name.span, notes=notes))
    return value


# ---------------------------------------------------------------- return inside loops


def _iteration(f: Builder, loop: s.Loop) -> None:
    """The body of a loop, once; nothing of it where an earlier iteration returned."""
    if RETURNED in f.env and returns(loop.body):
        _guarded(f, loop.body)
    else:
        lower_body(f, loop.body)


def _returning_loop(f: Builder, loop: s.Loop, rest: Body) -> bool:
    """A loop in which the block may end: what follows runs only if it did not."""
    start, end = f.integer(loop.start), f.integer(loop.end)
    direct = any(isinstance(x, s.Return) for x in loop.body)
    if direct and isinstance(start, int) and isinstance(end, int) and start < end:
        lower_iteration(f, loop, start, lambda: lower_body(f, loop.body))
        return True
    lower_statement(f, loop)
    if isinstance(start, int) and isinstance(end, int) and start >= end:
        return lower_body(f, rest)
    _guarded(f, rest)
    return False


def _guarded(f: Builder, body: Body) -> None:
    """Statements that run only while the block has not returned."""
    flag = f.env[RETURNED]
    assert isinstance(flag, Value)
    running = f.emit(Cond(flag, f.value(1))).result
    before = dict(f.env)
    with f.nested(Block()) as region:
        lower_body(f, body)
        side = Side(region, f.env)
    join(f, running, None, before, [side, Side(Block(), dict(before))])
