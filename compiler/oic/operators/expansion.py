"""Operators that are made of others: what lowering puts in their place (`Operator.expanded`)."""

from oic.dtypes import DType
from oic.ir.core import Op, Value
from oic.operators.base import Operator
from oic.operators.cast import Cast


class Expansion:
    """Ops that compute what an operator does, in order."""

    def __init__(self, of: Operator) -> None:
        self.of, self.ops = of, list[Op]()

    def add(self, op: Op) -> Value:
        """Append an op; gives its result."""
        op.span = self.of.span
        self.ops.append(op)
        return op.result

    def cast(self, x: Value, dtype: DType) -> Value:
        """The elements of x as this type."""
        return x if x.dtype is dtype else self.add(Cast(x, dtype))
