"""What passes make of operators: fused elementwise regions and copies."""

from __future__ import annotations

from oic.ir.core import Block, Op, Value
from oic.ir.types import TensorType, Type
from oic.ops.base import Operator


class Fused(Op, name="fused"):
    """Several elementwise operators computed in one pass over the result's elements.

    inputs  tensors of the result's shape (broadcasts are views with stride 0) or scalars
    shape   of every result
    body    block of one scalar argument an input, ended by a `yield` of the results' elements;
            the meaning is that of the same ops on whole tensors
    """

    inputs: list[Value]
    type: list[Type]
    body: Block

    elementwise = True

    def infer(self) -> list[Type]:
        return list(self.type)


class Copy(Operator, name="copy"):
    """The operand's value in memory of its own.

    reason  why it cannot be a view; printed by `oic explain --memory`
    """

    x: Value
    reason: str = ""

    catalog = False

    def infer(self) -> list[Type]:
        return [TensorType(self.x.dtype, self.x.shape)]

    def reference(self, x: object) -> object:
        return x
