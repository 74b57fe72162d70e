"""Calls of runtime functions on whole tensors: `op.call()` as C."""

from typing import Any

from oic import dtypes
from oic.codegen import c_tree as c
from oic.codegen import expressions as expr
from oic.codegen.elementwise import cast, scalar
from oic.codegen.function_context import GIVEN, SESSION, Frame, address_of, memory
from oic.codegen.outline import Task
from oic.ir import dims
from oic.ir.core import Op, Value
from oic.ir.strides import is_dense
from oic.kernels import kernel as parts
from oic.kernels.kernel import Out, Scratch, Stride
from oic.memory.views import strides_of
from oic.operators.base import Call
from oic.operators.fused import around

_DTYPE_OF_C = {d.value: d for d in (dtypes.f32, dtypes.f64, dtypes.i64, dtypes.u64, dtypes.u32)}


def joined(frame: Frame, product: Any, choice: Any) -> None:
    """The statements that choose an element of each row of a product's results as it computes them."""
    what: Call = choice.call()
    frame.unit.instances.add(what.instance)
    given = {k: argument(frame, choice, part) for k, part in what.members.items()}
    best = frame.local("best", c.Braces(tuple(given.values()), tuple(given)), f"{what.function}_args")
    frame.body.add(c.call(f"{what.function}_begin", c.Prefix("&", best)))
    call(frame, product, (f"{what.function}_then", c.Prefix("&", best)))
    frame.body.add(c.call(f"{what.function}_end", c.Prefix("&", best)))


def call(frame: Frame, op: Any, then: tuple[str, c.Expression] | None = None, stored: Value | None = None) -> None:
    """The block that calls an operator's kernel, or has threads share its units.

    Its arguments are in it, so that all calls share their memory on the stack; with clang, compound literals do not.

    then    the function that is given its results, which it does not store, and its context
    stored  what that function makes of them, in their place: where it lies is asked for
    """
    what: Call = op.call()
    frame.unit.instances.add(what.instance)
    frame.unit.rows = max(frame.unit.rows, _rows(op, what))
    members = {k: argument(frame, op, part) for k, part in what.members.items() if then is None or part != Out()}
    if then is not None:
        if stored is not None and stored.type == op.result.type and is_dense(stored.shape, strides_of(stored)):
            members |= {k: argument(frame, op, stored) for k, part in what.members.items() if part == Out()}
        members |= {"then": c.Identifier(then[0]), "context": then[1]}
    _enclose(frame, what, members, _run(frame, op, what.function, c.Prefix("&", GIVEN)))


def part(frame: Frame, op: Any) -> None:
    """The block that computes units `first` to `end` of an operator's kernel."""
    what: Call = op.call()
    frame.unit.instances.add(what.instance)
    some = (c.Identifier(name) for name in ("first", "end", "worker"))
    run = c.call(op.chosen().function(op, "_part"), c.Prefix("&", GIVEN), *some)
    _enclose(frame, what, {k: argument(frame, op, part) for k, part in what.members.items()}, run)


def _enclose(frame: Frame, what: Call, members: dict[str, c.Expression], run: c.Expression) -> None:
    """A block of the arguments and the call that takes them."""
    args = c.Braces(tuple(members.values()), tuple(members))
    given = c.Declare(f"{what.function}_args", GIVEN.text, args, const=True)
    frame.body.add(c.Enclosed([given, c.Do(run)]))


def _rows(op: Any, what: Call) -> int:
    """The rows of a product's left operand, at most, all batches together; 0: it is none."""
    given = what.members
    if rows := op.chosen().rows:
        return dims.maximum(rows(op))
    return dims.maximum(dims.product([given["M"], *given.get("shape", ())])) if "M" in given else 0


def _run(frame: Frame, op: Any, function: str, args: c.Expression) -> c.Expression:
    """The call that takes the arguments."""
    if op.workers == 1:
        return c.call(function, args)
    kernel = op.chosen()
    assert kernel.units is not None
    shared = _shared(frame, op, frame.dim(kernel.units(op)).value, kernel.work(op))
    if kernel.phases:
        return c.call(kernel.function(op, "_divided"), *shared, args)
    return c.call("oic_divide", *shared, c.Identifier(kernel.function(op, "_part")), args)


def divide(frame: Frame, op: Op, units: c.Expression, work: dims.Dim, part: Task) -> None:
    """The statement that has threads share a loop."""
    frame.body.add(c.call("oic_divide", *_shared(frame, op, units, work), c.Identifier(part.function), part.context))


def _shared(frame: Frame, op: Op, units: c.Expression, work: dims.Dim) -> tuple[c.Expression | int, ...]:
    """What a call is given whose units threads share."""
    frame.unit.headers.add("hosted/pool.h")
    return c.Member(SESSION, "pool"), op.workers, units, frame.wide(work)


def argument(frame: Frame, op: Op, part: Any) -> c.Expression:
    """One argument in C."""
    match part:
        case None:
            return c.NULL
        case Value():
            return address_of(frame.refs[part])
        case Out(index):
            return address_of(frame.refs[op.results[index]])
        case Stride(value, axis):
            return frame.dim(frame.refs[value].strides[axis]).value
        case parts.Converted(value, c_type):
            return _cast(frame, value, c_type)
        case Scratch():
            return _scratch(frame, op, part)
        case tuple():
            items = tuple(argument(frame, op, i) for i in part)
            return c.Braces(items, type=c.Array("ptrdiff_t"), const=True) if items else c.NULL
        case int() | dims.Expr():
            return frame.dim(part).value
    raise AssertionError(f"{op.name} passes {part!r} to its kernel")


def _cast(frame: Frame, value: Any, c_type: str) -> c.Expression:
    if isinstance(value, Value):
        if value in frame.indices:
            return cast(frame.index(value), c_type)
        found = scalar(frame, value)
        return c.Conversion(c_type, found) if value.dtype.value != c_type else found
    if isinstance(value, dims.Expr):
        return c.Conversion(c_type, frame.dim(value).value)
    return expr.literal(value, _DTYPE_OF_C.get(c_type, dtypes.i32))


def _scratch(frame: Frame, op: Any, part: Scratch) -> c.Expression:
    """The working memory that the planner listed for this op, in the order of the arguments."""
    number = op.call().scratch.index(part)
    name, now = f"{around(op).results[0].placed.buffer}.scratch{number or ''}", frame.live.start[op]
    for key in (f"{name}.{now}", name):
        buffer = frame.unit.arena.get((frame.face.symbol, key))
        if buffer is not None and buffer.start == now:
            return memory("arena", buffer.offset)
    raise AssertionError(f"{op.name} has no buffer named {name}")
