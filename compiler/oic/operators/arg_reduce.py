"""Positions of the largest and the smallest element along an axis.

Kernels see (outer, n, inner), or, where the last axis is that of a product, get its sums as they are made.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from oic.dtypes import ALL, NUM, Array, i64
from oic.ir import dims
from oic.ir.core import Op, Value
from oic.ir.dims import Dim
from oic.ir.index import at_least
from oic.ir.types import Type
from oic.kernels.kernel import Kernel, KernelArgs, Out, flag
from oic.operators.arrange import along, around
from oic.operators.base import Operator, normal_axis
from oic.operators.reduce import best_along, require_some, without
from oic.operators.work import ELEMENTWISE

SPAN = 1024  # OIC_EXTREME_LEAST: neighbours that are compared by one thread


class ArgReduction(Operator):
    """Base of argmax_axis and argmin_axis."""

    x: Value
    axis: int
    keepdims: bool = False
    select_first: bool = True

    allowed = NUM
    better: ClassVar[np.ufunc]
    examples = (
        ("f32[2, 4]", "axis=1"), ("f32[3, 1]", "axis=1"), ("f32[0, 3]", "axis=1"),
        ("f32[2, 4]", "axis=1, select_first=false"), ("f32[19, 37]", "axis=0, select_first=false"),
        ("f32[3, 1037]", "axis=-1, keepdims=true"),
        *((f"{d}[3, 19]", "axis=1") for d in ALL if ALL[d] in NUM),
        *((f"{d}[5, 3]", "axis=0") for d in ALL if ALL[d] in NUM),
        *((f"{d}[19]", "axis=0, select_first=false") for d in ALL if ALL[d] in NUM),
    )  # fmt: skip

    def infer(self) -> list[Type]:
        axis = normal_axis(self, self.axis, self.x.tensor.rank)
        require_some(self, [self.x.shape[axis]], "axis")
        return self.tensor(i64, without(self.x.shape, [axis], self.keepdims))

    def ids_below(self, result: Value) -> Dim:
        return self.x.shape[self.axis]

    def checks(self) -> list[Op]:
        """An axis that may be empty at run time is refused."""
        return at_least(1, self.x.shape[self.axis])

    def _args(self) -> KernelArgs:
        return self.members(**along(self.x, self.axis), last=flag(not self.select_first))

    def _joined(self) -> KernelArgs:
        return {"y": Out(), "rows": dims.product(self.x.shape[:-1]), "last": flag(not self.select_first)}

    def _is_of_rows(self) -> bool:
        """The reduction is of the last axis, whose positions have 32 bits (extreme_of_product.h)."""
        return self.axis % self.x.tensor.rank == self.x.tensor.rank - 1 and dims.maximum(self.x.shape[-1]) <= 2**32

    def _shares(self) -> Dim:
        """Rows, or spans of neighbours, that threads can share."""
        outer, n, inner = around(self.x.shape, self.axis % self.x.tensor.rank)
        return outer * dims.floor_div(n + SPAN - 1, SPAN) if inner == 1 else outer

    def _comparisons(self) -> Dim:
        """What comparing all elements is worth: they are compared many at a time."""
        return ELEMENTWISE // 4 * self.x.tensor.size

    kernels = (
        Kernel("extreme", ("x",), _args, call="{op}", units=_shares, work=_comparisons, phases=True),
        Kernel("extreme_of_product", (), _joined, call="{op}_of_product", fits=_is_of_rows,
               cost=lambda op, target: math.inf, chooses=True),
    )  # fmt: skip

    def reference(self, x: Array) -> Array:
        """Where x first (last) equals the best element; 0 where that is NaN."""
        same = np.equal(x, best_along(x, self.axis, self.better))
        if self.select_first:
            return np.asarray(np.argmax(same, axis=self.axis, keepdims=self.keepdims))
        positions: Array = np.indices(x.shape, sparse=True)[self.axis]
        return np.asarray(np.where(same, positions, 0).max(self.axis, keepdims=self.keepdims))


class ArgmaxAxis(ArgReduction, name="argmax_axis"):
    """The position of the largest element along an axis.

    x             number
    axis          counted from the last if negative
    keepdims      keep it with size 1
    select_first  of equal elements the first, else the last
    result        i64; 0 where the first element is NaN, later NaN are passed over

    Exact.  Errors: the axis does not exist or is empty (at run time OIC_ERR_SHAPE).
    Source: OpenInfer op catalog, `argmax_axis`.
    """

    better = np.fmax


class ArgminAxis(ArgReduction, name="argmin_axis"):
    """The position of the smallest element along an axis.

    x             number
    axis          counted from the last if negative
    keepdims      keep it with size 1
    select_first  of equal elements the first, else the last
    result        i64; 0 where the first element is NaN, later NaN are passed over

    Exact.  Errors: the axis does not exist or is empty (at run time OIC_ERR_SHAPE).
    Source: OpenInfer op catalog, `argmin_axis`.
    """

    better = np.fmin
