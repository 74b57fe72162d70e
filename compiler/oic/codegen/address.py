"""Views: where the results of ops that move nothing begin in their operand's memory."""

from __future__ import annotations

from typing import Any

from oic.codegen import expressions as expr
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref
from oic.ir.state import ConstantSelect
from oic.memory.views import dense
from oic.operators.shape import Slice, Split


def view(frame: Frame, op: Any) -> None:
    """Declare the results of an op with `view = True` that have no offset known at build."""
    base = frame.ref(op.operands[0])
    for number, result in enumerate(op.results):
        start = _start(frame, op, base, number)
        place = result.place
        strides = place.strides if place is not None and place.strides is not None else None
        if strides is None:
            strides = base.strides[len(op.indices) :] if isinstance(op, ConstantSelect) else dense(result.shape)
        frame.view(result, base, start, strides)


def _start(frame: Frame, op: Any, base: Ref, number: int) -> Index:
    """Elements from the operand's first to the result's first; checks made before keep it within the operand."""
    match op:
        case Slice():
            steps = [(frame.number(op.start), op.axis)]
        case Split():
            steps = [(frame.dim(size), op.axis) for size in op.sizes[:number]]
        case ConstantSelect():
            steps = [(frame.index(index), axis) for axis, index in enumerate(op.indices)]
        case _:
            return expr.ZERO
    return expr.linear((count, frame.dim(base.strides[axis])) for count, axis in steps)
