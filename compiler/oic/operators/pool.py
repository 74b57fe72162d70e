"""Pooling over the last one or two axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oic.dtypes import FLT, Array
from oic.ir import dims
from oic.ir.core import Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.index import at_least
from oic.ir.types import Type
from oic.kernels.kernel import Kernel, KernelArgs, flag
from oic.operators.base import Operator
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.conv import by_axis, per_axis, two_axes
from oic.operators.work import ELEMENTWISE


class Pool(Operator):
    """What the two pools share."""

    x: Value
    window: int | list[int]
    stride: int | list[int] | None = None
    padding: int | list[int] = 0

    allowed = FLT
    renamed = {"kernel": "window"}

    def infer(self) -> list[Type]:
        each = list(zip(*self._settings(), strict=True))
        self.require_rank("x", len(each))
        shape = list(self.x.shape)
        for axis, (kernel, stride, padding) in enumerate(each, -len(each)):
            if 2 * padding > kernel:
                raise OpError("op-setting", f"padding {padding} is over half of {kernel}", "padding")
            shape[axis] = size = (shape[axis] + 2 * padding - kernel) // stride + 1
            if isinstance(size, int) and size < 0:
                raise OpError("shape-mismatch", f"kernel {kernel} does not fit into {self.x.type}", "window")
        return self.tensor(self.x.dtype, shape)

    def checks(self) -> list[Op]:
        """Sizes of the result may be negative at run time."""
        return [op for size in self.result.shape[-len(self._settings()[0]) :] for op in at_least(0, size)]

    def _settings(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """(kernel, stride, padding), one each for the pooled axes."""
        n = len(self.window) if isinstance(self.window, (list, tuple)) else 1
        if n not in (1, 2):
            raise OpError("op-setting", "kernel has one size or two", "window")
        sizes = per_axis(self, "window", n, 1)
        stride = sizes if self.stride is None else per_axis(self, "stride", n, 1)
        return sizes, stride, per_axis(self, "padding", n, 0)

    def _windows(self, x: Array, fill: float) -> Array:
        """[.., H', W', window] in f64, what lies outside being `fill`."""
        sizes, stride, padding = self._settings()
        n = len(sizes)
        counts = [(d + 2 * p - k) // s + 1 for d, p, k, s in zip(x.shape[-n:], padding, sizes, stride, strict=True)]
        around = [(0, 0)] * (x.ndim - n) + [(p, p) for p in padding]
        wide = np.pad(x.astype(np.float64), around, constant_values=fill)
        firsts = (zip(first, stride, counts, strict=True) for first in np.ndindex(*sizes))
        places: Any = [(..., *(slice(i, i + s * count, s) for i, s, count in first)) for first in firsts]
        return np.stack([wide[place] for place in places], -1)

    def _args(self) -> KernelArgs:
        sizes, stride, padding = self._settings()
        n = len(sizes)
        (height, width), (out_height, out_width) = (two_axes(1, v[-n:]) for v in (self.x.shape, self.result.shape))
        return self.members(
            planes=dims.product(self.x.shape[:-n]), height=height, width=width,
            out_height=out_height, out_width=out_width,
            **by_axis(window=two_axes(1, sizes), stride=two_axes(1, stride), padding=two_axes(0, padding)),
        )  # fmt: skip

    def _planes(self) -> Dim:
        return dims.product(self.x.shape[: -len(self._settings()[0])])

    def _window_work(self) -> Dim:
        """What all elements of all windows are worth."""
        return math.prod(self._settings()[0]) * ELEMENTWISE // 8 * self.result.tensor.size


class MaxPool(Pool, name="max_pool"):
    """The largest element of every window of the last axes.

    x        float, [.., L] or [.., H, W]
    kernel   sizes of the window, a list of one or two; an integer is the last axis alone
    stride   default the kernel
    padding  at most half the kernel; padded elements do not take part
    result   x's dtype; (L + 2·padding - kernel) // stride + 1 along each axis: empty where that is 0, refused
             if less

    Exact; a NaN in the window is the result.  Source: PyTorch, `max_pool1d`, `max_pool2d`.
    """

    examples = (("f32[2, 9]", "kernel=3, stride=2, padding=1"), ("f16[2, 5, 6]", "kernel=[2, 3]"))

    def reference(self, x: Array) -> Array:
        return self._windows(x, -np.inf).max(-1)

    kernels = (Kernel("max_pool", ("x",), Pool._args, units=Pool._planes, sized=True, work=Pool._window_work),)


class AvgPool(Pool, name="avg_pool"):
    """The mean of every window of the last axes.

    x        float, [.., L] or [.., H, W]
    kernel, stride, padding   as in max_pool; padded elements are zeros
    count_include_pad   they count for the mean too
    result   as in max_pool

    Summed in f32 (f64 for f64), rounded once; error at most (n+1)·ε·mean|x|.
    Order: elements of a window in row-major order, from zero.
    Source: PyTorch, `avg_pool1d`, `avg_pool2d`.
    """

    count_include_pad: bool = False

    examples = (
        ("f32[2, 9]", "kernel=3, stride=2, padding=1"),
        ("f16[2, 5, 6]", "kernel=[2, 3], padding=[1, 0], count_include_pad=true"),
    )

    def reference(self, x: Array) -> Array:
        return self._windows(x, 0.0).sum(-1) / self._counts(x)

    def _counts(self, x: Array) -> Array:
        return self._windows(np.ones(x.shape), float(self.count_include_pad)).sum(-1)

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        windows = self._windows(np.abs(real(inputs[0])), 0.0)
        total = windows.sum(-1)
        error = (windows.shape[-1] + 1) * epsilon(self.x.dtype) * total / self._counts(inputs[0])
        return rounded(y, error, self.x.dtype, total)

    def _args(self) -> KernelArgs:
        return {**super()._args(), "all": flag(self.count_include_pad)}

    kernels = (Kernel("avg_pool", ("x",), _args, units=Pool._planes, sized=True, work=Pool._window_work),)
