"""Views: where the results of ops that move nothing begin in their operand's memory."""

from __future__ import annotations

from typing import Any

from oic.codegen import expressions as expr
from oic.codegen.function_context import Frame
from oic.ir.state import ConstantSelect
from oic.ir.strides import dense


def view(frame: Frame, op: Any) -> None:
    """Declare the results of an op with `view = True` that have no offset known at build."""
    base = frame.ref(op.operands[0])
    for number, result in enumerate(op.results):
        begins = [(frame.number(count), frame.dim(base.strides[axis])) for count, axis in op.begins(number)]
        start = expr.linear(begins) if begins else expr.ZERO  # checks made before keep it within the operand
        place = result.place
        strides = place.strides if place is not None and place.strides is not None else None
        if strides is None:
            strides = base.strides[len(op.indices) :] if isinstance(op, ConstantSelect) else dense(result.shape)
        frame.view(result, base, start, strides)
