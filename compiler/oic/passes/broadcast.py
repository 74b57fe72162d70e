"""Make broadcasting explicit.

    %y = add(%x, %b)         %x: f32[N, 64]     %v = broadcast_to(%b) {shape=[N, 64]}
                             %b: f32[64]    =>  %y = add(%x, %v)

Every tensor operand of an elementwise operator gets the result's shape, so that no later pass
and no kernel knows of broadcasting; a scalar operand stays a scalar.  `broadcast_to` is a view.
"""

from collections.abc import Iterator

from oic.ir.core import Op, Value
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.operators.shape import BroadcastTo


def broadcast(module: Module) -> None:
    """Insert `broadcast_to` before every elementwise operator that needs it."""
    for block in module.blocks():
        block.set_ops(one for op in block.ops for one in (*_views(op), op))


def _views(op: Op) -> Iterator[Op]:
    """The views that an op takes its operands through from now on."""
    for key, spec in op.fields.items() if isinstance(op, Operator) and op.elementwise else ():
        value = getattr(op, key)
        if spec.kind == "attribute" or not isinstance(value, Value):
            continue  # a setting read at run time stays one element
        if isinstance(value.type, TensorType) and value.shape not in (op.result.shape, ()):
            view = BroadcastTo(value, list(op.result.shape), span=op.span, hint=value.hint)
            setattr(op, key, view.result)
            yield view
