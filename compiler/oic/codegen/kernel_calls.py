"""Calls of runtime functions on whole tensors: `op.call()` as C."""

from __future__ import annotations

from typing import Any

import numpy as np

from oic import dtypes
from oic.codegen import expressions as expr
from oic.codegen.elementwise import cast, scalar
from oic.codegen.function_context import Frame, start_address
from oic.ir.core import Op, Value
from oic.ir.dims import Expr
from oic.kernels.kernel import Cast, Deref, Ints, Out, Pointers, Scratch, Stride
from oic.operators.base import Call

_DTYPE_OF_C = {
    "float": dtypes.f32,
    "double": dtypes.f64,
    "int64_t": dtypes.i64,
    "uint64_t": dtypes.u64,
    "uint32_t": dtypes.u32,
}


def call(frame: Frame, op: Any) -> None:
    """The statement that calls an operator's kernel."""
    what: Call = op.call()
    frame.unit.instances.add(what.instance)
    frame.lines.add(what.text(lambda part: argument(frame, op, part)))


def argument(frame: Frame, op: Op, part: Any) -> str:
    """One argument in C."""
    match part:
        case None:
            return "NULL"
        case str():
            return part
        case Value():
            return start_address(frame.ref(part))
        case Out(index):
            return start_address(frame.ref(op.results[index]))
        case Stride(value, axis):
            ref = frame.ref(op.results[value.index] if isinstance(value, Out) else value)
            return frame.dim(ref.strides[axis]).text
        case Deref(value):
            return scalar(frame, value)
        case Cast(value, c):
            return _cast(frame, value, c)
        case Scratch():
            return _scratch(frame, op, part)
        case Ints(items):
            return _array("const ptrdiff_t[]", [argument(frame, op, i) for i in items])
        case Pointers(values):
            return _array("const void *const[]", [start_address(frame.ref(v)) for v in values])
        case int() | Expr():
            return frame.dim(part).text
    raise AssertionError(f"{op.name} passes {part!r} to its kernel")


def _array(c: str, items: list[str]) -> str:
    """A compound literal; NULL if it is empty."""
    return f"({c}){{{', '.join(items)}}}" if items else "NULL"


def _cast(frame: Frame, value: Any, c: str) -> str:
    if isinstance(value, Value):
        if value in frame.indices:
            return cast(frame.index(value), c)
        return f"({c}){scalar(frame, value)}" if value.dtype.value != c else scalar(frame, value)
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, Expr):
        return f"({c}){frame.dim(value).at(expr.ATOM)}"
    return expr.literal(value, _DTYPE_OF_C.get(c, dtypes.i32))


def _scratch(frame: Frame, op: Any, part: Scratch) -> str:
    """The working memory that the planner listed for this op, in the order of the arguments."""
    plan, place = frame.unit.module.plan, op.results[0].place
    assert plan is not None and place is not None
    wanted = [a for a in op.call().args if isinstance(a, Scratch)]
    number = next(i for i, a in enumerate(wanted) if a is part or a == part)
    name, now = f"{place.buffer}.scratch{number or ''}", frame.live.start[op]
    for buffer in plan.space("arena"):
        if buffer.function == frame.face.symbol and buffer.start == now:
            if buffer.name in (name, f"{name}.{now}"):
                return f"oic_at(s->arena, {buffer.offset})"
    raise AssertionError(f"{op.name} has no buffer named {name}")
