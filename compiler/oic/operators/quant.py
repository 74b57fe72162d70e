"""Between real numbers and small integers: `quantize`, `dequantize`, `requantize`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from oic.dtypes import FLT, INT, NUM, Array, DType, f32, i8, i32, wrap
from oic.ir import dims
from oic.ir.core import OpError, Value
from oic.ir.dims import Dim
from oic.ir.types import Type
from oic.kernels.kernel import Converted, Kernel, KernelArgs, flag
from oic.operators.arrange import along
from oic.operators.base import Operator, normal_axis
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.work import elementwise_work

SMALL = frozenset(d for d in INT if d.bits <= 32)
UNIT = 1024  # OIC_SCALED_UNIT: elements


def _units(op: Any) -> Dim:
    """Elements that threads share."""
    return dims.floor_div(op.x.tensor.size + UNIT - 1, UNIT)


def _stretches(x: Value, axis: int | None) -> dict[str, Dim]:
    """The members outer, n, the number of parameters along an axis, and inner; without an axis n is 1."""
    return {"outer": 1, "n": 1, "inner": x.tensor.size} if axis is None else along(x, axis)


class Affine(Operator):
    """What quantize and dequantize share: scale and zero_point for all elements, or one along an axis."""

    x: Value
    scale: Value
    zero_point: Value | None = None
    to: DType
    axis: int | None = None

    own: ClassVar[dict[str, DType]] = {"scale": f32, "zero_point": i32}
    kinds: ClassVar[frozenset[DType]]  # what `to` may be

    def infer(self) -> list[Type]:
        require_to(self, self.kinds)
        self.require("scale", (f32,))
        self.require("zero_point", {self.to if self.to.is_int else self.x.dtype, i32})
        for where in ("scale", "zero_point"):
            value = getattr(self, where)
            if self.axis is not None:
                self.require_shape(where, [self.x.shape[normal_axis(self, self.axis, self.x.tensor.rank)]])
            elif value is not None and value.tensor.size != 1:
                raise OpError("shape-mismatch", f"{value.type} is not one number: axis is not given", where)
        return self.tensor(self.to, self.x.shape)

    def _spread(self, value: Any) -> Array:
        """A parameter in f64, aligned to its axis of x."""
        wide = np.asarray(value).astype(np.float64)
        if self.axis is None:
            return wide.reshape(())
        return wide.reshape(-1, *[1] * (self.x.tensor.rank - 1 - self.axis % self.x.tensor.rank))

    def _types(self) -> tuple[DType, ...]:
        return self.x.dtype, self.result.dtype, i32 if self.zero_point is None else self.zero_point.dtype

    def _args(self) -> KernelArgs:
        return self.members(**_stretches(self.x, self.axis))


class Quantize(Affine, name="quantize"):
    """round(x / scale) + zero_point, saturated.

    x           float
    scale       f32, one number, or [n] with axis
    zero_point  of dtype `to` or i32, the shape of scale; default 0
    to          integer dtype of at most 32 bits
    axis        of x that scale and zero_point go along; none: one for all
    result      x's shape, `to`

    x / scale in f32 (f64 for f64), rounded half to even; NaN gives 0.  Exact from there on.
    Source: ONNX, `QuantizeLinear`.
    """

    allowed, kinds = FLT, SMALL
    kernels = (Kernel("quantize", Affine._types, Affine._args, units=_units, work=elementwise_work),)
    examples = (("f32[2, 3]", "f32", "to=i8"), ("f16[2, 3]", "f32[3]", "zero_point=u4[3], to=u4, axis=1"))

    def reference(self, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
        ratio = x / self._spread(scale).astype(x.dtype)
        whole = np.rint(ratio.astype(np.float64))
        if zero_point is not None:
            whole = whole + self._spread(zero_point)
        return np.clip(np.where(np.isnan(whole), 0, whole), self.to.low, self.to.high).astype(np.int64)


class Dequantize(Affine, name="dequantize"):
    """(x - zero_point)·scale.

    x           integer of at most 32 bits
    scale       f32, one number, or [n] with axis
    zero_point  x's dtype or i32, the shape of scale; default 0
    to          float dtype of the result
    axis        of x that scale and zero_point go along; none: one for all
    result      x's shape, `to`

    The difference is exact, the product in f32 (f64 for f64); rounded once: at most 2·ε·|y|.
    Source: ONNX, `DequantizeLinear`.
    """

    allowed, kinds = SMALL, FLT
    kernels = (Kernel("dequantize", Affine._types, Affine._args, units=_units, work=elementwise_work),)
    examples = (("i8[2, 3]", "f32", "to=f32"), ("u4[2, 3]", "f32[2]", "zero_point=u4[2], to=f16, axis=0"))

    def reference(self, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
        whole = x.astype(np.float64)
        if zero_point is not None:
            whole = whole - self._spread(zero_point)
        return whole * self._spread(scale)

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        return rounded(y, 2 * epsilon(f32) * np.abs(real(y)), self.to)


class Requantize(Operator, name="requantize"):
    """A 32-bit sum scaled by multiplier·2^(shift-31) to a small integer, saturated.

    x           i32
    multiplier  i32, one number, or a shape that broadcasts to x along one axis
    shift       i8, the shape of multiplier; positive shifts to the left
    to          integer dtype of at most 32 bits
    zero_point  added before saturation
    rounding    "tflite": as its reference kernels, doubling high product, then a rounding shift right;
                "nearest": one rounding, halves upward
    result      x's shape, `to`

    Exact.  Source: TensorFlow Lite, `MultiplyByQuantizedMultiplier` (both of its roundings).
    """

    x: Value
    multiplier: Value
    shift: Value
    to: DType
    zero_point: int | Value = 0
    rounding: str = "tflite"

    allowed = frozenset({i32})
    own: ClassVar[dict[str, DType]] = {"shift": i8}
    words = {"rounding": ("tflite", "nearest")}
    examples = (
        ("i32[2, 3]", "i32", "i8", "to=i8"),
        ("i32[2, 3]", "i32[3]", "i8[3]", 'to=u8, zero_point=128, rounding="nearest"'),
    )

    def infer(self) -> list[Type]:
        self.require("multiplier", (i32,))
        self.require("shift", (i8,))
        require_to(self, SMALL)
        self.require_shape("shift", self.multiplier.shape)
        if (axis := self.axis) is not None:
            self.require_dim("multiplier", axis, self.x.shape[axis])
        return self.tensor(self.to, self.x.shape)

    @property
    def axis(self) -> int | None:
        """The axis of x, from the last, that the parameters go along; None: they are for all."""
        value, rank = self.multiplier, self.x.tensor.rank
        axes = [a for a in range(-value.tensor.rank, 0) if value.shape[a] != 1]
        if len(axes) > 1 or value.tensor.rank > rank:
            raise OpError("shape-mismatch", f"{value.type} does not go along one axis of {self.x.type}", "multiplier")
        return axes[0] if axes else None

    def reference(self, x: Array, multiplier: Array, shift: Array) -> Array:
        return requantized(self, x, multiplier, shift)

    def _args(self) -> KernelArgs:
        zero_point, nearest = Converted(self.zero_point, "int64_t"), flag(self.rounding == "nearest")
        return self.members(**_stretches(self.x, self.axis), zero_point=zero_point, nearest=nearest)

    kernels = (Kernel("requantize", ("result",), _args, units=_units, work=elementwise_work),)


REQUANTIZED = ("multiplier", "shift", "to", "zero_point", "rounding")
"""Fields of `Requantize` that `Sums` takes over."""


class Sums(Operator):
    """Base of what sums products of x and w, and adds b: a `requantize` of sums of 32 bits may be part of it."""

    x: Value
    w: Value
    b: Value | None = None
    acc: DType | None = None
    multiplier: Value | None = None
    shift: Value | None = None
    to: DType | None = None
    zero_point: int | Value = 0
    rounding: str = "tflite"
    """Settings of that `requantize`; `to` is None where there is none."""

    allowed = NUM
    derived: ClassVar[tuple[str, ...]] = REQUANTIZED
    spatial: ClassVar[int] = 0
    """Axes of the result after the one along which b goes."""

    def with_epilogue(self, user: Operator) -> Operator | None:
        sums = self.to is None and (self.b is None or self.b.dtype is i32)
        if not sums or not isinstance(user, Requantize) or user.to.packed or user.to.bits >= 32:
            return None
        if user.axis not in (None, -self.spatial - 1):
            return None
        parts = {name: getattr(user if name in REQUANTIZED else self, name) for name in self.fields}
        return type(self)(**parts, span=self.span, hint=user.result.hint)

    def scaled(self, sums: Array, multiplier: Array | None = None, shift: Array | None = None) -> Array:
        """The results, by what is part of it."""
        if multiplier is None or shift is None:
            return sums
        return requantized(self, wrap(sums, i32), multiplier, shift)

    def scaling(self) -> KernelArgs:
        """The member `by` of kernels that scale their sums."""
        if self.multiplier is None:
            return {}
        return {
            "by.multiplier": self.multiplier, "by.shift": self.shift, "by.each": int(self.multiplier.tensor.size != 1),
            "by.zero_point": Converted(self.zero_point, "int64_t"), "by.nearest": flag(self.rounding == "nearest"),
        }  # fmt: skip


def or_requantized(kernel: Kernel, name: str = "") -> tuple[Kernel, Kernel]:
    """A kernel of sums as they are, and that of the same function which scales them, in a file of its own."""
    plain = replace(kernel, fits=lambda op: kernel.fits(op) and op.to is None)
    scaled = replace(kernel, fits=lambda op: kernel.fits(op) and op.to is not None, call=kernel.call or kernel.name)
    return plain, replace(scaled, name=name or f"{kernel.name}_requantized")


def requantized(op: Any, x: Array, multiplier: Array, shift: Array) -> Array:
    """Sums of 32 bits by the settings of an op that requantises them."""
    x, m, s = np.broadcast_arrays(x.astype(np.int64), multiplier.astype(np.int64), shift.astype(np.int64))
    scale = _tflite if op.rounding == "tflite" else _nearest
    return np.clip(scale(x, m, s) + int(op.zero_point), op.to.low, op.to.high)


def _tflite(x: Array, m: Array, s: Array) -> Array:
    """Doubling high product with one rounding, then a shift right with another."""
    left, right = np.clip(s, 0, 31), np.clip(-s, 0, 31)
    ab = wrap(x << left, i32) * m
    total = ab + np.where(ab >= 0, 1 << 30, 1 - (1 << 30))
    high = np.where(total >= 0, total >> 31, -((-total) >> 31))
    high = np.minimum(high, 2**31 - 1)  # only -2^31 times itself
    mask = (np.int64(1) << right) - 1
    threshold = (mask >> 1) + (high < 0)
    return np.asarray((high >> right) + ((high & mask) > threshold))


def _nearest(x: Array, m: Array, s: Array) -> Array:
    """One rounding of x·m·2^(s-31), halves upward, saturated to 32 bits."""
    right = np.clip(31 - s, 1, 62)
    total = x * m
    # Adding half before the shift could pass 64 bits: shift first, then add the highest bit lost.
    whole = (total >> right) + ((total >> (right - 1)) & 1)
    return np.clip(whole, -(2**31), 2**31 - 1)


def require_to(op: Operator, allowed: frozenset[DType]) -> None:
    """Refuse another dtype of the result."""
    to = op.attributes()["to"]
    if to not in allowed:
        kinds = ", ".join(sorted(d.name for d in allowed))
        raise OpError("op-dtype", f"{op.name} does not give {to} ({kinds})", "to")
