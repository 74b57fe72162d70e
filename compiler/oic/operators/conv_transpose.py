"""Transposed convolutions over the last one or two axes."""

from __future__ import annotations

import math
from collections.abc import Hashable
from itertools import product

import numpy as np

from oic.dtypes import Array
from oic.ir import dims
from oic.ir.core import OpError
from oic.ir.dims import Dim
from oic.kernels.kernel import Kernel
from oic.kernels.targets import Target
from oic.operators.conv import Convolution, in_fours, two_axes
from oic.operators.quant import or_requantized
from oic.operators.quantized import products


class ConvolutionTranspose(Convolution):
    """What the two transposed convolutions share: w is [C, O/groups, K…], as in PyTorch."""

    output_padding: int | list[int] = 0

    transposed = 1

    kernels = (
        Kernel("conv_planes", Convolution._types, Convolution._plane_args, call="conv_transpose_planes",
               fits=Convolution._fits_planes, units=Convolution._units, work=products, phases=True,
               cost=lambda op, target: 0.0 if target.hosted else math.inf),
        *or_requantized(
            Kernel("conv_planes_int", Convolution._types, Convolution._word_args, call="conv_transpose_planes",
                   fits=Convolution._in_words, units=Convolution._units, work=products, phases=True),
            "conv_planes_requantized"),
        *or_requantized(
            Kernel("conv", Convolution._types, Convolution._args, call="conv_transpose",
                   fits=lambda op: op.taps is None, units=Convolution._lines, work=products)),
    )  # fmt: skip

    def flattens(self, target: Target) -> bool:
        return target.hosted and super().flattens(target)

    def _inputs(self) -> Dim:
        return super()._inputs() if self.taps else self.w.shape[0]

    def operations(self) -> Dim:
        return dims.floor_div(2 * self.x.tensor.size * self._outputs(), self.groups) * dims.product(self._window()[1:])

    def _in_rows(self) -> bool:
        return False

    def _outputs(self) -> Dim:
        return self.w.shape[0] if self.taps else self.w.shape[1] * self.groups

    def _window(self) -> tuple[Dim, Dim, Dim]:
        if self.taps:
            return super()._window()
        return (dims.floor_div(self.w.shape[0], self.groups), *two_axes(1, self.w.shape[2:]))

    def _order(self) -> list[list[list[int]]]:
        """For both axes, the taps that each class of positions meets."""
        return [
            [[k for k in range(count) if (f + padding - k * dilation) % stride == 0] for f in range(stride)]
            for count, stride, padding, dilation in zip(self._most()[1], *self._settings(), strict=True)
        ]

    def rows(self) -> Hashable:
        return self.groups, *(tuple(map(tuple, axis)) for axis in self._order())

    def flattened(self, w: Array) -> Array:
        """A row an output: by the classes of positions that meet its taps, and in them by input channels."""
        channels, outputs, *taps = w.shape
        rows, window = self.groups * outputs, two_axes(1, taps)
        split = w.reshape(self.groups, channels // self.groups, outputs, *window).swapaxes(1, 2)
        split = split.reshape(rows, channels // self.groups, *window)
        parts = (split[..., ys, :][..., xs].reshape(*split.shape[:2], -1) for ys, xs in product(*self._order()))
        lie = in_fours if not self.x.dtype.is_float else lambda part: part.reshape(rows, -1)
        return np.concatenate([lie(part) for part in parts], -1)

    def _extent(self) -> list[Dim]:
        found: list[Dim] = []
        sizes, more = self._sizes(self.x), self._setting("output_padding", 0)
        for size, kernel, s, p, d, added in zip(sizes, self._window()[1:], *self._settings(), more, strict=True):
            if added >= max(s, d):
                raise OpError("op-setting", "output_padding is smaller than stride or dilation", "output_padding")
            full = (size - 1) * s - 2 * p + d * (kernel - 1) + added + 1
            if isinstance(full, int) and full < 0:
                raise OpError("shape-mismatch", f"padding {p} leaves nothing of {self.x.type}", "padding")
            found.append(full)
        return found

    def _planes(self, x: Array, w: Array) -> Array:
        """y[B, O, H, W] = the adjoint of a convolution with w[C, O/g, KH, KW], applied to x[B, C, H, W]."""
        (sh, sw), (ph, pw), (dh, dw) = self._settings()
        mh, mw = self._setting("output_padding", 0)
        (h, v), (kh, kw) = x.shape[2:], w.shape[2:]
        parts = []
        for xg, wg in zip(np.split(x, self.groups, 1), np.split(w, self.groups, 0), strict=True):
            size = ((h - 1) * sh + dh * (kh - 1) + 1 + mh, (v - 1) * sw + dw * (kw - 1) + 1 + mw)
            y = np.zeros((x.shape[0], wg.shape[1], *size), x.dtype)
            for i, j in np.ndindex(kh, kw):
                rows, columns = slice(i * dh, i * dh + sh * h, sh), slice(j * dw, j * dw + sw * v, sw)
                y[:, :, rows, columns] += np.einsum("bchw,co->bohw", xg, wg[:, :, i, j])
            parts.append(y[:, :, ph : size[0] - ph, pw : size[1] - pw])
        return np.concatenate(parts, 1)


class ConvTranspose1d(ConvolutionTranspose, name="conv_transpose1d"):
    """Transposed convolution over the last axis: the adjoint of conv1d.

    x        [.., C, L], any number type
    w        [C, O/groups, K]
    b        [O]; x's dtype, or acc's
    stride, padding, dilation, groups, acc   as in conv1d
    output_padding   elements added at the end, fewer than stride or dilation
    result   [.., O, (L-1)·stride - 2·padding + dilation·(K-1) + output_padding + 1]: empty where that is 0, refused
             if less

    Integers wrap.  Floats are summed in f32 (f64 for f64), b added before the only rounding; error at
    most 2·(n+1)·ε·Σ|x||w| for n products.
    Order: of conv1d.  Source: PyTorch, `conv_transpose1d`.
    """

    examples = (
        ("f32[2, 4, 5]", "f32[4, 3, 3]", "b=f32[3], stride=2, padding=1, output_padding=1"),
        ("f16[4, 5]", "f16[4, 2, 3]", "groups=2, dilation=2"),
    )


class ConvTranspose2d(ConvolutionTranspose, name="conv_transpose2d"):
    """Transposed convolution over the last two axes: the adjoint of conv2d.

    x        [.., C, H, W], any number type
    w        [C, O/groups, KH, KW]
    b        [O]; x's dtype, or acc's
    stride, padding, dilation, groups, acc   as in conv2d
    output_padding   elements added at the end of each axis, fewer than stride or dilation
    result   [.., O, H', W'], sizes as in conv_transpose1d

    Integers wrap.  Floats are summed in f32 (f64 for f64), b added before the only rounding; error at
    most 2·(n+1)·ε·Σ|x||w| for n products.
    Order: of conv1d.  Source: PyTorch, `conv_transpose2d`.
    """

    spatial = 2
    examples = (("f32[1, 2, 3, 4]", "f32[2, 3, 3, 2]", "stride=[2, 1], padding=[1, 0]"),)
