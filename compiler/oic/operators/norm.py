"""Normalisations and softmax: along one stretch of axes, everything else on its own.

Kernels see (outer, n, inner): n elements `inner` apart, for each of outer × inner results.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from oic.dtypes import FLT, Array, DType, f64
from oic.ir import dims
from oic.ir.core import OpError, Value
from oic.ir.dims import Dim
from oic.ir.types import Type
from oic.kernels.kernel import Converted, Kernel, KernelArgs, flag
from oic.operators.arrange import AlongAxis, along, around
from oic.operators.base import Operator, normal_axis
from oic.operators.bounds import epsilon, lost, real, rounded
from oic.operators.settings import as_computed, require_sign
from oic.operators.work import ELEMENTWISE, column_units, elementwise_work


def _rows(op: Any) -> Dim:
    """Rows that threads can share."""
    return op.call().members["outer"]


def _simple(op: Any) -> Dim:
    """What a few operations on each element are worth, with no more than a root for many of them."""
    return ELEMENTWISE // 4 * op.x.tensor.size


class Normalisation(Operator):
    """Base of normalisations: x is divided by the root of a mean of squares + eps, and multiplied by gamma.

    `eps` is each one's own: settings come after operands.
    """

    x: Value
    gamma: Value

    allowed = FLT

    def infer(self) -> list[Type]:
        require_sign(self, "eps", self.x.dtype)
        return [self.x.type]

    def args(self, **sizes: Dim) -> KernelArgs:
        """The members, of these sizes."""
        return self.members(**sizes, eps=Converted(self.number("eps"), self.x.dtype.value))


class LayerNorm(Normalisation, name="layer_norm"):
    """(x - mean) / √(variance + eps) · gamma + beta over the last axes.

    x            float
    gamma, beta  the shape of the normalised axes; x's dtype, or any float, widened exactly
    eps          added to the population variance
    axes         the last ones, in order
    result       the type of x

    Two passes: the mean, then the variance about it, in f32 (f64 for f64); rounded once; error at most
    8·ε·((max|x|/√(variance+eps) + 1)·|gamma| + |y|) + ε·|beta|.  Where Σ(x - mean)² leaves the range of f32
    (3.4e38: elements from about 1.8e19/√n on) the result is beta, where Σ|x| does, that or NaN, and a variance + eps
    below 1e-38 is as inexact as subnormal numbers are.
    Source: PyTorch, `layer_norm`.
    """

    beta: Value | None = None
    eps: float | int | Value
    axes: list[int] = [-1]

    examples = (
        ("f32[3, 17]", "f32[17]", "eps=1e-5, beta=f32[17]"),
        ("f32[2, 3, 4]", "f32[3, 4]", "eps=1e-5, axes=[1, 2]"), ("f16[2, 8]", "f16[8]", "eps=1e-5"),
        ("f64[2, 8]", "f64[8]", "eps=1e-5"), ("f32[2, 300]", "f16[300]", "eps=1e-5, beta=bf16[300]"),
        ("f16[2, 8]", "f32[8]", "eps=1e-5, beta=f8[8]"),
    )  # fmt: skip

    def infer(self) -> list[Type]:
        rank = self.x.tensor.rank
        axes = [normal_axis(self, a, rank, "axes") for a in self.axes]
        if not axes or axes != list(range(rank - len(axes), rank)):
            raise OpError("op-axis", f"axes {self.axes} are not the last ones, in order", "axes")
        for where in ("gamma", "beta"):
            require_parameter(self, where, self.x.shape[axes[0] :])
        return super().infer()

    def reference(self, x: Array, gamma: Array, beta: Array | None = None) -> Array:
        axes = tuple(self.axes)
        wide = x.astype(np.float64)
        centred = wide - mean(wide, axes, self.x.dtype)
        spread = np.sqrt(mean_square(centred, axes, self.x.dtype) + as_computed(self.eps, self.x.dtype))
        y = centred / spread * gamma.astype(np.float64)
        return y if beta is None else y + beta.astype(np.float64)

    def tolerance(self, y: Array, x: Any, gamma: Any, beta: Any = None) -> Array:
        axes, wide = tuple(self.axes), real(x)
        # The mean's own error moves every element: it is relative to the largest x, not to y.
        spread = np.sqrt(wide.var(axes, keepdims=True) + float(as_computed(self.eps, self.x.dtype)))
        largest = np.abs(wide).max(axes, keepdims=True, initial=0.0)
        unit = 8 + coarse(spread**2, self.x.dtype) / epsilon(self.x.dtype)
        unit = unit * (largest / spread + 1) * np.abs(real(gamma))
        more = 0.0 if beta is None else np.abs(real(beta))
        error = epsilon(self.x.dtype) * (unit + 8 * np.abs(real(y)) + more)
        error = error + lost((np.abs(wide) + largest) / spread, gamma, self.x.dtype)
        return rounded(y, error, self.x.dtype, np.abs(wide).sum(axes, keepdims=True))

    def _types(self) -> tuple[DType, ...]:
        beta = self.gamma if self.beta is None else self.beta
        return self.x.dtype, self.gamma.dtype, beta.dtype

    def _args(self) -> KernelArgs:
        first = self.x.tensor.rank - len(self.axes)
        return self.args(outer=dims.product(self.x.shape[:first]), n=dims.product(self.x.shape[first:]))

    kernels = (Kernel("layer_norm", _types, _args, inplace=("x",), units=_rows, work=elementwise_work),)


class RmsNorm(Normalisation, name="rms_norm"):
    """x / √(mean(x²) + eps) · gamma over the last axis.

    x        float, rank 1 or more
    gamma    [n]; x's dtype, or any float, widened exactly
    eps      added to the mean square
    result   the type of x

    In f32 (f64 for f64), rounded once; error at most 4·ε·|y|.  Where Σx² leaves the range of f32 (3.4e38: elements
    from about 1.8e19/√n on) the result is 0; a mean square + eps below 1e-38 is as inexact as subnormal numbers are.
    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019; PyTorch, `rms_norm`.
    """

    eps: float | int | Value

    examples = (
        ("f32[3, 17]", "f32[17]", "eps=1e-5"), ("bf16[2, 8]", "bf16[8]", "eps=1e-6"),
        ("f64[8]", "f64[8]", "eps=1e-6"), ("f32[2, 300]", "bf16[300]", "eps=1e-6"),
        ("bf16[2, 8]", "f32[8]", "eps=1e-6"),
    )  # fmt: skip

    def infer(self) -> list[Type]:
        self.require_rank("x", 1)
        require_parameter(self, "gamma", self.x.shape[-1:])
        return super().infer()

    def reference(self, x: Array, gamma: Array) -> Array:
        wide = x.astype(np.float64)
        square = mean_square(wide, (-1,), self.x.dtype) + as_computed(self.eps, self.x.dtype)
        return wide / np.sqrt(square) * gamma.astype(np.float64)

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        square = mean_square(real(inputs[0]), (-1,), self.x.dtype) + float(as_computed(self.eps, self.x.dtype))
        unit = 4 * epsilon(self.x.dtype) + coarse(square, self.x.dtype)
        error = unit * np.abs(real(y)) + lost(real(inputs[0]) / np.sqrt(square), inputs[1], self.x.dtype)
        return rounded(y, error, self.x.dtype)

    def _args(self) -> KernelArgs:
        return self.args(outer=dims.product(self.x.shape[:-1]), n=self.x.shape[-1])

    kernels = (Kernel("rms_norm", ("x", "gamma"), _args, inplace=("x",), units=_rows, work=elementwise_work),)


class BatchNorm(Normalisation, name="batch_norm"):
    """(x - mean) / √(var + eps) · gamma + beta, a channel at a time, with known statistics.

    x                       [.., C, L…] float; `channel` counts C from the first axis
    gamma, beta, mean, var  [C], x's dtype
    eps                     added to the variance
    channel                 axis of C: 1 in [B, C, L…], 0 in [C, L…]; a warning where neither is given and either fits
    result                  the type of x

    In f32 (f64 for f64), rounded once; error at most 6·ε·((|x| + |mean|)/√(var+eps)·|gamma| + |beta|).
    Source: PyTorch, `batch_norm` in evaluation mode.
    """

    beta: Value
    mean: Value
    var: Value
    eps: float | int | Value = 1e-5
    channel: int = 1

    examples = (
        ("f32[2, 3, 5]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"),
        ("f16[3, 4]", "f16[3]", "f16[3]", "f16[3]", "f16[3]", "channel=0"),
    )

    def infer(self) -> list[Type]:
        axis = normal_axis(self, self.channel, self.x.tensor.rank, "channel")
        size, given = self.x.shape[axis], self.gamma.shape[:1]
        fits = [at for at, other in enumerate(self.x.shape) if (other,) == given]
        if fits and {type(size), *map(type, given)} == {int} and given != (size,):  # others are compared in the step
            fact = f"axis {axis} of {self.x.type} is {size}, not {given[0]}"
            raise OpError("shape-mismatch", fact, "x", hint=f"channel={fits[0]} is the axis that is as long as gamma")
        for where in ("gamma", "beta", "mean", "var"):
            self.require_same_dtype("x", where)
            self.require_shape(where, [self.x.shape[axis]])
        return super().infer()

    def unsaid(self, given: Collection[str]) -> OpError | None:
        first, *rest = self.x.shape
        if "channel" in given or len(rest) not in (1, 2) or rest[0] != first or first == 1:
            return None
        fact = f"axis 1 of {self.x.type} is taken for the channels, and axis 0 is as long"
        return OpError("op-axis", fact, "x", hint="channel=1 says that it is meant, channel=0 that the other one is")

    def reference(self, x: Array, gamma: Array, beta: Array, mean: Array, var: Array) -> Array:
        shape = (-1,) + (1,) * (x.ndim - 1 - self.channel % x.ndim)
        g, b, m, v = (p.astype(np.float64).reshape(shape) for p in (gamma, beta, mean, var))
        return (x.astype(np.float64) - m) * (g / np.sqrt(v + as_computed(self.eps, self.x.dtype))) + b

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        x, gamma, beta, mean, var = (real(p) for p in inputs)
        shape = (-1,) + (1,) * (x.ndim - 1 - self.channel % x.ndim)
        g, b, m, v = (p.reshape(shape) for p in (np.abs(gamma), np.abs(beta), np.abs(mean), var))
        far, scale = np.abs(x) + m, g / np.sqrt(np.abs(v + float(as_computed(self.eps, self.x.dtype))))
        error = 6 * epsilon(self.x.dtype) * (far * scale + b) + lost(scale, far, self.x.dtype)
        return rounded(y, error, self.x.dtype, np.maximum(np.maximum(far, scale), far * scale))

    def _args(self) -> KernelArgs:
        return self.args(**along(self.x, self.channel, "channels"))

    def _channels(self) -> Dim:
        outer, channels, _ = around(self.x.shape, self.channel % self.x.tensor.rank)
        return outer * channels

    kernels = (Kernel("batch_norm", ("x",), _args, inplace=("x",), units=_channels, sized=True, work=_simple),)


class Softmax(AlongAxis, name="softmax"):
    """exp(x - max) / Σ exp(x - max) along an axis.

    x        float
    axis     summed over
    result   the type of x

    In f32 (f64 for f64), rounded once; relative error at most (4 + |x - max|)·ε.  A row of -inf gives
    NaN; a NaN makes its row NaN.  Source: PyTorch, `softmax`.
    """

    axis = -1

    examples = (("f32[3, 17]",), ("f16[2, 5]", "axis=0"), ("bf16[4]",), ("f64[2, 3, 4]", "axis=1"))

    def reference(self, x: Array) -> Array:
        shifted, total = shifted_sum(x, self.axis)
        return np.exp(shifted) / total

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        shifted, _ = shifted_sum(inputs[0], self.axis)
        # Below the smallest normal number an exponential may be flushed to zero.
        error = (4 + np.abs(real(shifted))) * epsilon(self.x.dtype) * np.abs(real(y)) + 2.0**-126
        return rounded(y, error, self.x.dtype)

    def _args(self) -> KernelArgs:
        """The members, with the order that the axis, and no size, decides: each element a part, or parts."""
        return {**self.args(), "columns": flag((self.axis + 1) % self.x.tensor.rank != 0)}

    kernels = (Kernel("softmax", ("x",), _args, inplace=("x",), units=column_units, sized=True, work=elementwise_work),)


class LogSoftmax(AlongAxis, name="log_softmax"):
    """x - max - ln Σ exp(x - max) along an axis.

    x        float
    axis     summed over
    result   the type of x

    In f32 (f64 for f64), rounded once; error at most (4 + |x - max|)·ε.  A row of -inf gives NaN.
    Source: PyTorch, `log_softmax`.
    """

    axis = -1

    examples = (("f32[3, 17]",), ("f16[2, 5]", "axis=0"), ("f64[4]",))

    def reference(self, x: Array) -> Array:
        shifted, total = shifted_sum(x, self.axis)
        return shifted - np.log(total)

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        shifted, total = shifted_sum(inputs[0], self.axis)
        size = 4 + np.abs(real(shifted)) + np.abs(real(np.log(total)))
        return rounded(y, 2 * size * epsilon(self.x.dtype), self.x.dtype)

    def _work(self) -> Dim:
        """Exponentials are added one after the other."""
        return 2 * elementwise_work(self)

    kernels = (
        Kernel("log_softmax", ("x",), AlongAxis.args, inplace=("x",), units=column_units, sized=True, work=_work),
    )  # fmt: skip


def shifted_sum(x: Any, axis: int) -> tuple[Array, Array]:
    """x - max and Σ exp(x - max) along an axis, in f64: of axes that are not the last NumPy adds one by one."""
    wide = np.asarray(x).astype(np.float64)
    shifted = wide - wide.max(axis, keepdims=True, initial=-np.inf)
    return shifted, np.exp(shifted).sum(axis, keepdims=True, dtype=np.longdouble).astype(np.float64)


def mean(x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
    """The mean over axes, which are kept with size 1; of nothing NaN."""
    return ranged(ranged(x.sum(axes, keepdims=True), dtype) / np.float64(math.prod(x.shape[a] for a in axes)), dtype)


def mean_square(x: Array, axes: tuple[int, ...], dtype: DType) -> Array:
    """The mean of the squares over axes."""
    return mean(ranged(x * x, dtype), axes, dtype)


def coarse(square: Any, dtype: DType) -> Array:
    """The relative error of a mean square in the type computed in, whose subnormal numbers have one unit."""
    return np.asarray(dtype.computed.smallest / np.maximum(square, dtype.computed.smallest))


def ranged(x: Array, dtype: DType) -> Array:
    """Numbers in f64 that lie beyond the range of the type computed in, or below its normal numbers, as it has them."""
    held = as_computed(x, dtype).astype(np.float64)
    return np.where(np.isfinite(held) & (np.abs(x) >= dtype.computed.smallest / dtype.computed.spacing), x, held)


def require_parameter(op: Normalisation, where: str, shape: tuple[Dim, ...]) -> None:
    """Refuse a gamma or beta of another shape, or that the type x is computed in does not hold."""
    op.require(where, FLT if op.x.dtype is f64 else FLT - {f64})
    op.require_shape(where, shape)
