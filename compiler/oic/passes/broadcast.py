"""Make broadcasting explicit.

    %y = add(%x, %b)         %x: f32[N, 64]     %v = broadcast_to(%b) {shape=[N, 64]}
                             %b: f32[64]    =>  %y = add(%x, %v)

Every tensor operand of an elementwise operator gets the result's shape, so that no later pass
and no kernel knows of broadcasting; a scalar operand stays a scalar.  `broadcast_to` is a view.
"""

from __future__ import annotations

from oic.ir.core import Block, Op, Value
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.operators.shape import BroadcastTo


def broadcast(module: Module) -> None:
    """Insert `broadcast_to` before every elementwise operator that needs it."""
    for func in module.functions():
        for block in func.body.walk():
            _block(block)


def _block(block: Block) -> None:
    ops: list[Op] = []
    for op in block.ops:
        if isinstance(op, Operator) and op.elementwise:
            shape = op.result.shape
            for key, spec in op.fields.items():
                value = getattr(op, key)
                if spec.kind == "attribute" or not isinstance(value, Value):
                    continue  # a setting read at run time stays one element
                if isinstance(value.type, TensorType) and value.shape not in (shape, ()):
                    view = BroadcastTo(value, list(shape), span=op.span, hint=value.hint)
                    ops.append(view)
                    setattr(op, key, view.result)
        ops.append(op)
    block.set_ops(ops)
