"""Arithmetic, elementwise.

Floats are exact in their own width or rounded once (f8, f16, bf16: computed in f32); integers wrap
modulo 2^width.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from oic.dtypes import FLT, NUM, SINT, WHOLE, Array, DType, bitset, bool_, i1, i2, i4, i8, u4, wrap
from oic.ir.core import Value
from oic.ir.types import Type
from oic.operators import settings
from oic.operators.base import BinaryOperator, Elementwise, Scalar, UnaryOperator

DIVISIBLE = FLT | WHOLE | {i4, u4}
RECTIFIED = FLT | (SINT - {i1, i2})


class Arithmetic(BinaryOperator):
    """Base of add, sub and mul: `acc=` gives a wider result, computed in 64 bits; `of_bool` is the meaning for bool."""

    acc: DType | None = None

    of_bool: ClassVar[np.ufunc | None] = None

    def reference(self, *operands: Array) -> Array:
        if self.of_bool is not None and self.a.dtype.kind == "bool":
            return self.of_bool(*operands)
        return super().reference(*(settings.in_64_bits(x, self.a.dtype) if self.acc else x for x in operands))


class Add(Arithmetic, name="add"):
    """a + b.

    a, b     one dtype, broadcast: any number; bool (OR); bitset (a wrapping 8-bit number)
    acc      integers: a wider integer type of the same signedness, the result's dtype
    result   the operands' dtype

    Floats are rounded once, integers wrap.  Exactly the reference.
    Errors: dtypes differ or do not broadcast; acc is no wider integer type.
    Source: OpenInfer op catalog, `add`.
    """

    allowed = NUM | {bool_, bitset}
    c = Scalar(("a", "b"), infix="+", by=-1)
    more = (("i8[5]", "i8[5]", "acc=i16"), ("u1[9]", "u1[9]", "acc=u64"), ("i4[2, 3]", "i4[3]", "acc=i8"))
    of, of_bool = np.add, np.logical_or


class Sub(Arithmetic, name="sub"):
    """a - b.

    a, b     numbers of one dtype, broadcast
    acc      integers: a wider integer type of the same signedness, the result's dtype
    result   the operands' dtype

    Floats are rounded once, integers wrap.  Exactly the reference.
    Errors: dtypes differ or do not broadcast; acc is no wider integer type.
    Source: OpenInfer op catalog, `sub`.
    """

    c = Scalar(("a", "b"), infix="-", by=-1)
    more = (("u8[5]", "u8[5]", "acc=u32"), ("i4[5]", "i4[5]", "acc=i8"))
    of = np.subtract


class Mul(Arithmetic, name="mul"):
    """a · b.

    a, b     one dtype, broadcast: any number; bool (AND); bitset (a wrapping 8-bit number)
    acc      integers: a wider integer type of the same signedness, the result's dtype
    result   the operands' dtype

    Floats are rounded once, integers wrap.  Exactly the reference.
    Errors: dtypes differ or do not broadcast; acc is no wider integer type.
    Source: OpenInfer op catalog, `mul`.
    """

    allowed = NUM | {bool_, bitset}
    c = Scalar(("a", "b"), infix="*", by=-1)
    more = (("f32[3]", "f32[2, 1]"), ("i8[5]", "i8[5]", "acc=i32"), ("u2[5]", "u2[5]", "acc=u4"))
    of, of_bool = np.multiply, np.logical_and


class Masked(Elementwise):
    """Base of what divides: division by zero gives a mask."""

    div_by_zero_mask: float | int | Value | None = None
    numbers = ("div_by_zero_mask",)
    usual = {"div_by_zero_mask": lambda dtype: math.nan if dtype.is_float else 0}

    def infer(self) -> list[Type]:
        settings.require_finite(self, "div_by_zero_mask", self.operands[0].dtype)
        return super().infer()


class Division(Masked, BinaryOperator):
    """Base of div and floor_div."""

    allowed = DIVISIBLE

    def reference(self, a: Array, b: Array) -> Array:
        zero, mask = np.equal(b, 0), settings.as_computed(self.number("div_by_zero_mask"), self.a.dtype)
        return np.where(zero, mask, self.of(a, np.where(zero, np.ones_like(b), b)))


class Div(Division, name="div"):
    """a / b; integers toward zero.

    a, b              numbers of one dtype (not i1, i2, u1, u2), broadcast
    div_by_zero_mask  what x / 0 gives for every x: NaN for floats, 0 for integers
    result            the operands' dtype

    Floats are rounded once; the least integer divided by -1 wraps to itself.
    Exactly the reference.
    Errors: dtypes differ or do not broadcast; the mask is not of the operands' kind.
    Source: OpenInfer op catalog, `div`.
    """

    more = (("f32[5]", "f32", "div_by_zero_mask=-1.5"), ("i8[5]", "i8[5]", "div_by_zero_mask=7"))

    def of(self, a: Array, b: Array) -> Array:
        if self.a.dtype.is_float:
            return np.divide(a, b)
        return np.floor_divide(np.subtract(a, np.fmod(a, b)), b)


class FloorDiv(Division, name="floor_div"):
    """a / b rounded toward minus infinity.

    a, b              integers of one dtype (not i1, i2, u1, u2), broadcast
    div_by_zero_mask  what x / 0 gives
    result            the operands' dtype

    Exact; the least integer divided by -1 wraps to itself.
    Errors: dtypes differ or do not broadcast; the mask is no integer of the type.
    Source: OpenInfer op catalog, `floor_div`.
    """

    allowed = DIVISIBLE - FLT
    more = (("i8[5]", "i8", "div_by_zero_mask=-7"),)
    of = np.floor_divide


class Rem(BinaryOperator, name="rem"):
    """The remainder of a / b toward zero, which has the sign of a.

    a, b     integers of one dtype (not i1, i2, u1, u2), broadcast
    result   the operands' dtype; 0 where b is 0

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `rem`.
    """

    allowed = DIVISIBLE - FLT

    def reference(self, a: Array, b: Array) -> Array:
        rest = np.fmod(a, np.where(b == 0, np.ones_like(b), b))
        return np.where(b == 0, np.zeros_like(rest), rest)


class Fma(Elementwise, name="fma"):
    """a · b + c with two roundings.

    a, b, c  floats of one dtype, broadcast
    result   the operands' dtype

    The product is rounded to f32 (f64 for f64), then the sum.  Exactly the reference.
    Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `fma`.
    """

    a: Value
    b: Value
    addend: Value

    allowed = FLT

    def reference(self, a: Array, b: Array, addend: Array) -> Array:
        return np.add(np.multiply(a, b), addend)


class Neg(UnaryOperator, name="neg"):
    """-x.

    x        float or signed integer
    result   the type of x

    Exact; the least integer wraps to itself.
    Errors: x is unsigned.  Source: OpenInfer op catalog, `neg`.
    """

    allowed = FLT | SINT
    of = np.negative


class Abs(UnaryOperator, name="abs"):
    """|x|.

    x        float or signed integer
    acc      integers: a wider signed integer type, the result's dtype
    result   the dtype of x

    Exact: floats lose their sign bit; the least integer wraps to itself, unless acc is wider.
    Errors: x is unsigned; acc is no wider signed integer type.
    Source: OpenInfer op catalog, `abs`.
    """

    acc: DType | None = None

    allowed = FLT | SINT
    c = Scalar(("x",), by=-1)
    more = (("i8[5]", "acc=i64"), ("i1[9]", "acc=i2"))

    def reference(self, x: Array) -> Array:
        return np.abs(settings.in_64_bits(x, self.x.dtype) if self.acc else x)


class Sign(UnaryOperator, name="sign"):
    """-1, 0 or 1 by the sign of x.

    x        float or signed integer
    result   i8; zeros and NaN give 0

    Exact.  Errors: x is unsigned.  Source: OpenInfer op catalog, `sign`.
    """

    allowed = FLT | SINT
    gives = i8

    def reference(self, x: Array) -> Array:
        return np.subtract(x > 0, x < 0, dtype=np.int8)


class Recip(Masked, UnaryOperator, name="recip"):
    """1 / x.

    x                 float
    div_by_zero_mask  what 1 / 0 gives
    result            the type of x

    Rounded once.  Exactly the reference.
    Errors: x is no float; the mask is no number.  Source: OpenInfer op catalog, `recip`.
    """

    div_by_zero_mask = math.nan

    allowed = FLT
    more = (("f32[5]", "div_by_zero_mask=0.5"),)

    def reference(self, x: Array) -> Array:
        mask = settings.as_computed(self.div_by_zero_mask, self.x.dtype)
        return np.where(x == 0, mask, np.divide(x.dtype.type(1), x))


class Relu(UnaryOperator, name="relu"):
    """Leaky ReLU with an upper clamp: y = x ≥ 0 ? x : x·alpha, then y > clamp_max ? clamp_max : y.

    x          float, or signed integer of 4 bits or more
    alpha      slope for x < 0
    clamp_max  largest result; default: none
    result     the type of x

    A NaN stays; -inf with alpha 0 gives NaN, as the product does.  Integers take integer settings
    and wrap.  Exactly the reference.
    Errors: x has another type; a setting is not of its kind or range.
    Source: OpenInfer op catalog, `relu`.
    """

    alpha: float | int | Value = 0
    clamp_max: float | int | Value | None = None

    allowed = RECTIFIED
    more = (
        ("f32[17]", "alpha=0.1, clamp_max=0.5"), ("f16[5]", "alpha=0.5"),
        ("i8[9]", "alpha=3, clamp_max=100"), ("i4[9]", "alpha=-1"),
    )  # fmt: skip
    numbers = ("alpha", "clamp_max")
    usual = {"clamp_max": lambda dtype: math.inf if dtype.is_float else dtype.high}

    def reference(self, x: Array) -> Array:
        dtype = self.x.dtype
        below = np.multiply(x, settings.as_computed(self.alpha, dtype))
        if dtype.is_int:
            below = wrap(below, dtype).astype(x.dtype)
        y = np.where(x >= 0, x, below)
        ceiling = settings.as_computed(self.number("clamp_max"), dtype)
        return np.where(y > ceiling, ceiling, y)


def lesser(a: Array, b: Array) -> Array:
    """Elementwise minimum; a number wins over a NaN, a wins where they are equal."""
    return np.where((b < a) | (a != a), b, a)


def greater(a: Array, b: Array) -> Array:
    """Elementwise maximum, likewise."""
    return np.where((b > a) | (a != a), b, a)


class Min(BinaryOperator, name="min"):
    """The smaller of a and b; a number wins over a NaN.

    a, b     numbers of one dtype, broadcast
    result   their dtype; a where they are equal, so min(-0.0, 0.0) is -0.0

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `min`.
    """

    of = staticmethod(lesser)


class Max(BinaryOperator, name="max"):
    """The larger of a and b; a number wins over a NaN.

    a, b     numbers of one dtype, broadcast
    result   their dtype; a where they are equal, so max(-0.0, 0.0) is -0.0

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `max`.
    """

    of = staticmethod(greater)


class Clamp(UnaryOperator, name="clamp"):
    """min(max(x, min), max).

    x        number
    min      least result; default: none.  A NaN becomes it, if given, and stays otherwise
    max      largest result; default: none.  It wins over a larger min
    result   the type of x

    Exact.  Errors: a bound is not of x's kind or range.  Source: OpenInfer op catalog, `clamp`.
    """

    min: float | int | Value | None = None
    max: float | int | Value | None = None

    allowed = NUM
    more = (
        ("f32[2, 3]", "min=-0.5, max=0.5"), ("f64[9]", "min=-1.0, max=1.0"), ("f8[9]", "min=-1, max=1"),
        ("f16[5]", "min=0.25"), ("bf16[5]", "max=0.25"),
        ("i8[9]", "min=-3, max=4"), ("u4[9]", "max=10"), ("u64[9]", "min=1"),
    )  # fmt: skip
    numbers = ("min", "max")
    usual = {
        "min": lambda dtype: math.nan if dtype.is_float else dtype.low,  # one that is NaN does not bind
        "max": lambda dtype: math.inf if dtype.is_float else dtype.high,
    }

    def reference(self, x: Array) -> Array:
        y = greater(x, settings.as_computed(self.number("min"), self.x.dtype))
        high = settings.as_computed(self.number("max"), self.x.dtype)
        return np.where(y > high, high, y)
