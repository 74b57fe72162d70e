"""Elementary functions and activations, elementwise, on floats.

f32 results are within 2 units in the last place of the exact value (gelu: 2·ε·|x|), and so are
f16, bf16 and f8 results before their one rounding; f64 ones are within 4.  The reference evaluates
in f64.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from oic.dtypes import FLOATS, FLT, Array, DType
from oic.operators.base import BinaryOperator, Scalar, UnaryOperator
from oic.operators.bounds import epsilon, last_place, real, rounded
from oic.operators.cast import half_away

MATH, ROUNDING = "math/scalar_math.h", "math/rounding.h"  # what defines the functions
SIZES = (("f32[1]",), ("f32[67]",))

erf = np.vectorize(math.erf, [np.float64])
"""The error function of f64 values."""
erfc = np.vectorize(math.erfc, [np.float64])
"""1 - erf of f64 values, without its cancellation."""


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) of f64 values."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


class Function(UnaryOperator):
    """Base of elementary functions: `of` is the function on f64 values."""

    long = True
    c = Scalar(file=MATH)
    more: ClassVar[tuple[Any, ...]] = SIZES

    def reference(self, x: Array) -> Array:
        return np.asarray(self.of(x.astype(np.float64))).astype(x.dtype)

    def tolerance(self, y: Array, *inputs: Array) -> Array:
        return units(y, self.x.dtype)


def units(y: Array, dtype: DType) -> Array:
    """Two units in the last place (four in f64), and the rounding of a narrow result."""
    return rounded(y, last_place(y, dtype.computed) * (4 if dtype.bits == 64 else 2), dtype)


class Exp(Function, name="exp"):
    """e^x.

    x        float
    result   the type of x; overflow gives infinity

    At most 2 ulp in f32.  Errors: x is no float.  Source: NumPy, `exp`.
    """

    of = np.exp


class Log(Function, name="log"):
    """The natural logarithm.

    x        float
    result   the type of x; -inf for zeros, NaN below

    At most 2 ulp in f32.  Errors: x is no float.  Source: NumPy, `log`.
    """

    of = np.log


class Sqrt(UnaryOperator, name="sqrt"):
    """The square root, rounded once.

    x        float
    result   the type of x; NaN below -0.0

    Exactly the reference.  Errors: x is no float.  Source: NumPy, `sqrt`.
    """

    c = Scalar(file=MATH)
    more = SIZES
    of = np.sqrt


class Rsqrt(Function, name="rsqrt"):
    """1 / √x.

    x        float
    result   the type of x; infinity of x's sign for zeros, NaN below

    At most 2 ulp in f32.  Errors: x is no float.  Source: PyTorch, `rsqrt`.
    """

    long = False

    def of(self, x: Array) -> Array:
        return 1.0 / np.sqrt(x)


class Sin(Function, name="sin"):
    """The sine of an angle in radians.

    x        float
    result   the type of x; NaN for infinities

    At most 2 ulp in f32.  Errors: x is no float.  Source: NumPy, `sin`.
    """

    of = np.sin


class Cos(Function, name="cos"):
    """The cosine of an angle in radians.

    x        float
    result   the type of x; NaN for infinities

    At most 2 ulp in f32.  Errors: x is no float.  Source: NumPy, `cos`.
    """

    of = np.cos


class Tanh(Function, name="tanh"):
    """The hyperbolic tangent.

    x        float
    result   the type of x

    At most 2 ulp in f32.  Errors: x is no float.  Source: NumPy, `tanh`.
    """

    of = np.tanh


class Sigmoid(Function, name="sigmoid"):
    """1 / (1 + e^-x).

    x        float
    result   the type of x

    At most 2 ulp in f32.  Errors: x is no float.  Source: PyTorch, `sigmoid`.
    """

    of = staticmethod(sigmoid)


class Erf(Function, name="erf"):
    """The error function.

    x        float
    result   the type of x

    At most 2 ulp in f32.  Errors: x is no float.  Source: PyTorch, `erf`.
    """

    of = staticmethod(erf)


class Silu(Function, name="silu"):
    """x · sigmoid(x).

    x        float
    result   the type of x; NaN for -inf, as in PyTorch

    At most 2 ulp in f32.  Errors: x is no float.  Source: PyTorch, `silu`.
    """

    def of(self, x: Array) -> Array:
        return x * sigmoid(x)


class Softplus(Function, name="softplus"):
    """log(1 + e^x).

    x        float
    result   the type of x

    At most 2 ulp in f32.  Errors: x is no float.  Source: PyTorch, `softplus`.
    """

    def of(self, x: Array) -> Array:
        return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


class Gelu(Function, name="gelu"):
    """x · Φ(x), the Gaussian error linear unit.

    x        float
    approx   "erf" (also "none"): x/2 · (1 + erf(x/√2));
             "tanh": x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))), up to 4.7e-4 away from it
    result   the type of x; NaN for -inf, as in PyTorch

    At most 2·ε·|x| from the form chosen.
    Errors: x is no float; approx is another word.  Source: PyTorch, `gelu`.
    """

    approx: str = "erf"

    words = {"approx": ("erf", "none", "tanh")}
    more = (*SIZES, *((f"{d}[9]", 'approx="tanh"') for d in FLOATS), ("f32[9]", 'approx="none"'))

    @property
    def c(self) -> Scalar:  # type: ignore[override]
        """The function of the form chosen."""
        return Scalar(("x",), "oic_gelu_tanh" if self.approx == "tanh" else "oic_gelu_erf", file=MATH)

    def of(self, x: Array) -> Array:
        if self.approx == "tanh":
            return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        return 0.5 * x * erfc(x * -math.sqrt(0.5))

    def tolerance(self, y: Array, *inputs: Array) -> Array:
        dtype = self.x.dtype
        error = (4 if dtype.bits == 64 else 2) * epsilon(dtype) * np.abs(real(inputs[0]))
        return rounded(y, error, dtype)


class Pow(BinaryOperator, name="pow"):
    """a to the power of b.

    a, b     floats of one dtype, broadcast
    result   their dtype; NaN for negative a and a b that is not whole

    At most 2 ulp in f32.  Errors: dtypes differ or do not broadcast.  Source: NumPy, `power`.
    """

    allowed = FLT
    c = Scalar(file=MATH)

    def reference(self, a: Array, b: Array) -> Array:
        return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)

    def tolerance(self, y: Array, *inputs: Array) -> Array:
        return units(y, self.a.dtype)


class Rounding(UnaryOperator):
    """Base of what makes floats whole."""

    c = Scalar(file=ROUNDING)
    more = SIZES


class Floor(Rounding, name="floor"):
    """The largest whole number not above x.

    x        float
    result   the type of x

    Exact.  Errors: x is no float.  Source: OpenInfer op catalog, `floor`.
    """

    of = np.floor


class Ceil(Rounding, name="ceil"):
    """The smallest whole number not below x.

    x        float
    result   the type of x

    Exact.  Errors: x is no float.  Source: OpenInfer op catalog, `ceil`.
    """

    of = np.ceil


class Round(Rounding, name="round"):
    """The nearest whole number, half away from zero.

    x        float
    result   the type of x

    Exact.  Errors: x is no float.  Source: OpenInfer op catalog, `round`.
    """

    c = Scalar(name="oic_round_half_away", file=ROUNDING)
    of = staticmethod(half_away)


class Trunc(Rounding, name="trunc"):
    """x without its fraction.

    x        float
    result   the type of x

    Exact.  Errors: x is no float.  Source: OpenInfer op catalog, `trunc`.
    """

    of = np.trunc
