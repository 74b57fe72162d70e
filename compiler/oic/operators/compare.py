"""Comparison, choice and tests of special values; bool results are exact."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from oic.dtypes import ALL, FLOATS, FLT, NUM, Array, DType, bitset, bool_
from oic.ir.core import OpError, Value
from oic.ir.types import Type
from oic.kernels.kernel import Kernel, KernelArgs
from oic.operators.base import BinaryOperator, Elementwise, Operator, Scalar, UnaryOperator


class Eq(BinaryOperator, name="eq", gives=bool_):
    """a = b.

    a, b     numbers or bool of one dtype, broadcast
    result   bool; false where either is NaN, and -0.0 = 0.0

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `eq`.
    """

    allowed = NUM | {bool_}
    c = Scalar(infix="==")
    of = np.equal


class Ne(BinaryOperator, name="ne", gives=bool_):
    """a ≠ b.

    a, b     numbers or bool of one dtype, broadcast
    result   bool; true where either is NaN

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `ne`.
    """

    allowed = NUM | {bool_}
    c = Scalar(infix="!=")
    of = np.not_equal


class Lt(BinaryOperator, name="lt", gives=bool_):
    """a < b.

    a, b     numbers of one dtype, broadcast
    result   bool; false where either is NaN

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `lt`.
    """

    c = Scalar(infix="<")
    of = np.less


class Le(BinaryOperator, name="le", gives=bool_):
    """a ≤ b.

    a, b     numbers of one dtype, broadcast
    result   bool; false where either is NaN

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `le`.
    """

    c = Scalar(infix="<=")
    of = np.less_equal


class Gt(BinaryOperator, name="gt", gives=bool_):
    """a > b.

    a, b     numbers of one dtype, broadcast
    result   bool; false where either is NaN

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `gt`.
    """

    c = Scalar(infix=">")
    of = np.greater


class Ge(BinaryOperator, name="ge", gives=bool_):
    """a ≥ b.

    a, b     numbers of one dtype, broadcast
    result   bool; false where either is NaN

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `ge`.
    """

    c = Scalar(infix=">=")
    of = np.greater_equal


class Filter(Elementwise, name="filter"):
    """a where the condition is not zero, else b.

    a, b       numbers or bool of one dtype
    condition  a's dtype, or bool; NaN counts as not zero, -0.0 as zero
    result     a's dtype; all three are broadcast

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `filter`.
    """

    a: Value
    b: Value
    condition: Value

    own: ClassVar[dict[str, DType]] = {"condition": bool_}
    allowed = NUM | {bool_}
    more = (("f32[2, 3]", "f32[3]", "f32[2, 1]"), *((f"{d}[9]",) * 3 for d in ALL if ALL[d] in NUM))

    def infer(self) -> list[Type]:
        if self.condition.dtype is not bool_:
            self.require_same_dtype("a", "condition")
        return super().infer()

    @property
    def c(self) -> Scalar:  # type: ignore[override]
        """With a bool condition filter is `where`, its operands in another order."""
        return Scalar(("condition", "a", "b"), "oic_where") if self.condition.dtype is bool_ else Scalar()

    def reference(self, a: Array, b: Array, condition: Array) -> Array:
        return np.where(condition != 0, a, b)


class Where(Elementwise, name="where"):
    """a where the condition is true, else b.

    condition  bool
    a, b       one dtype: numbers, bool or bitset
    result     a's dtype; all three are broadcast

    Exact.  Errors: dtypes differ or do not broadcast.  Source: NumPy, `where`.
    """

    condition: Value
    a: Value
    b: Value

    own: ClassVar[dict[str, DType]] = {"condition": bool_}
    allowed = NUM | {bool_, bitset}
    c = Scalar(by=1)

    def infer(self) -> list[Type]:
        if self.condition.dtype is not bool_:
            what = f"the condition of where is bool, not {self.condition.dtype}"
            raise OpError("op-dtype", what, "condition", "op filter(a, b, c) takes a number")
        return super().infer()

    of = staticmethod(np.where)


class IsFinite(Operator, name="is_finite"):
    """Whether every element is finite.

    x        float, any shape
    result   bool scalar; true if x has no elements

    Exact.  Errors: x is no float.  Source: OpenInfer op catalog, `is_finite`.
    """

    x: Value

    allowed = FLT
    examples = (("f32[2, 3]",), ("f32[1000]",), ("f32[0]",), ("f32",), *((f"{d}[9]",) for d in FLOATS))

    def infer(self) -> list[Type]:
        return self.tensor(bool_, ())

    def reference(self, x: Array) -> Array:
        return np.asarray(np.isfinite(x).all())

    def _args(self) -> KernelArgs:
        return self.members(n=self.x.tensor.size)

    kernels = (Kernel("is_finite", ("x",), _args),)


class IsNan(UnaryOperator, name="is_nan", gives=bool_):
    """Whether each element is NaN.

    x        float
    result   bool, the shape of x

    Exact.  Errors: x is no float.  Source: OpenInfer op catalog, `is_nan`.
    """

    of = np.isnan


class IsInf(UnaryOperator, name="is_inf", gives=bool_):
    """Whether each element is infinite.

    x        float
    result   bool, the shape of x

    Exact.  Errors: x is no float.  Source: OpenInfer op catalog, `is_inf`.
    """

    of = np.isinf


class IsNeg(UnaryOperator, name="is_neg", gives=bool_):
    """Whether each element has its sign bit set: true for -0.0.

    x        number
    result   bool, the shape of x; false for unsigned integers

    Exact.  Errors: x is bool or bitset.  Source: OpenInfer op catalog, `is_neg`.
    """

    allowed = NUM

    def reference(self, x: Array) -> Array:
        return np.signbit(x) if self.x.dtype.is_float else np.less(x, 0)
