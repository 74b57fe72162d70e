"""Reductions over axes, the positions of largest and smallest elements, and running sums.

Kernels see (outer, n, inner); where the reduced axes are not adjacent, sizes and a mark for each.  Positions along the
last axis of a product may come of its sums as they are made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar, TypeVar

import numpy as np

from oic.dtypes import ALL, FLOATS, NUM, Array, DType, i64
from oic.ir import dims
from oic.ir.core import Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.index import at_least
from oic.ir.types import Type
from oic.kernels.kernel import Kernel, KernelArgs, Out, flag
from oic.operators.arrange import AlongAxis, around
from oic.operators.base import Operator, is_float, normal_axis
from oic.operators.bounds import F64, epsilon, last_place, real, rounded
from oic.operators.settings import accumulated, in_64_bits
from oic.operators.work import ELEMENTWISE, column_units, elementwise_work

T = TypeVar("T")
LANES = 16  # partial products of a float product
SPAN = 1024  # OIC_EXTREME_LEAST: neighbours that are compared by one thread

MANY = (
    ("f32[2, 3, 2]", "axes=[1]"), ("f32[2, 3, 2]", "axes=[0, 2], keepdims=true"), ("f32[2, 3, 2]", "axes=[-1, 0, 1]"),
    ("f32[3, 1037]", "axes=[1]"), ("f32[3, 2063]", "axes=[-1]"), ("f32[131, 37]", "axes=[0]"),
    ("f32[3, 1]", "axes=[1]"), ("f32[0, 3]", "axes=[1]"), ("f32[2, 3, 2, 3, 2]", "axes=[0, 2, 4]"),
    *((f"{d}[3, 19]", "axes=[1]") for d in ALL if ALL[d] in NUM),
    *((f"{d}[5, 3]", "axes=[0]") for d in ALL if ALL[d] in NUM),
)  # fmt: skip
EMPTY = (("f32[2, 0]", "axes=[1]"), ("i8[0, 3]", "axes=[0]"))
WIDER = (("i8[2, 3]", "axes=[1], acc=i32"), ("u4[9]", "axes=[0], acc=u64"), ("i1[3, 5]", "axes=[0], acc=i4"))


def _elements(op: Any) -> Dim:
    """Elements, of which many are added at a time."""
    return op.x.tensor.size


class Reduction(Operator):
    """Base of reductions over several axes."""

    x: Value
    axes: list[int]
    keepdims: bool = False

    allowed = NUM
    empty: ClassVar[bool] = True
    """Reducing nothing has a result."""

    def infer(self) -> list[Type]:
        rank = self.x.tensor.rank
        axes = [normal_axis(self, a, rank, "axes") for a in self.axes]
        if len(set(axes)) < len(axes):
            raise OpError("op-axis", f"axes {self.axes} name an axis twice", "axes")
        if not self.empty:
            require_some(self, [self.x.shape[a] for a in axes], "axes")
        return self.tensor(accumulated(self, self.x.dtype), without(self.x.shape, axes, self.keepdims))

    @property
    def reduced(self) -> tuple[int, ...]:
        """The axes, from 0, in order."""
        return tuple(sorted(a % self.x.tensor.rank for a in self.axes))

    @property
    def columns(self) -> bool:
        """The reduced axes are neighbours and not the last ones: what the order of a result depends on.

        Sizes have no part in it: an axis has the same sums whether its size is known to be 1 or not.
        """
        axes = self.reduced
        return axes != () and axes[-1] - axes[0] + 1 == len(axes) and axes[-1] < self.x.tensor.rank - 1

    def checks(self) -> list[Op]:
        """Axes that may be empty at run time are refused where the result needs an element."""
        return [] if self.empty else [op for a in self.reduced for op in at_least(1, self.x.shape[a])]

    def _args(self) -> KernelArgs:
        groups = grouped(self.x.shape, self.reduced)
        stretches = sum(reduced for _, reduced in groups)
        if stretches > 1 or (stretches == 1 and not groups[-1][1] and not self.columns):
            sizes, marks = tuple(n for n, _ in groups), tuple(int(r) for _, r in groups)
            return self.members(rank=len(groups), sizes=sizes, reduced=marks)
        return self.members(**dict(zip(("outer", "n", "inner"), three(groups))))

    def _units(self) -> Dim:
        """Results, or those of `column_units`, that threads can share; packed ones share bytes."""
        if self.result.dtype.packed:
            return 1
        return self.result.tensor.size if "rank" in self._args() else column_units(self)


class Accumulation(Reduction):
    """Base of sum, mean and prod."""

    acc: DType | None = None

    examples = (*MANY, *EMPTY, *WIDER)

    def _ordered(self) -> KernelArgs:
        return {**self._args(), "columns": flag(self.columns)}

    _integers = Kernel("totals", ("x", "result"), Reduction._args, call="{op}",  # in 64 bits, whatever is done
                       units=Reduction._units, sized=True, work=_elements)  # fmt: skip
    _floats = replace(_integers, name="sum_axis", types=("x",), args=_ordered, fits=is_float)
    kernels = (_floats, _integers)


class SumAxis(Accumulation, name="sum_axis"):
    """The sum over axes.

    x         number
    axes      those summed over; negative ones count from the last
    keepdims  keep them with size 1
    acc       integers: a wider integer type of the same signedness, the result's dtype
    result    x's dtype; 0 where nothing is summed

    Integers are summed in 64 bits, then wrapped: exactly the reference.  Floats in parts, f8, f16
    and bf16 in f32, rounded once: at most (min(n, 150) + n/64)·ε·Σ|x|.
    Order: in row-major order, parts of 256 elements, each as 16 sums (element i in sum i mod 16) that are
    added as a tree; 64 parts in order, and these sums in order.  Where the reduced axes are one stretch of
    axes before kept ones, an element is a part.
    Errors: an axis that does not exist or is named twice; acc is no wider integer type.
    Source: OpenInfer op catalog, `sum_axis`.
    """

    def reference(self, x: Array) -> Array:
        return total(self, x)

    def tolerance(self, y: Array, *inputs: Array) -> Array:
        error, sums = sum_error(self, inputs[0])
        return rounded(y, error, self.x.dtype, sums)


class MeanAxis(Accumulation, name="mean_axis"):
    """The mean over axes.

    x         number
    axes      those averaged over; negative ones count from the last
    keepdims  keep them with size 1
    acc       integers: a wider integer type of the same signedness, the result's dtype
    result    x's dtype; NaN, for integers 0, where there is nothing

    The sum as in sum_axis, divided by the count; integers toward zero in 64 bits, then wrapped:
    exactly the reference.  Floats: the bound of sum_axis over the count, and 1 ulp.
    Order: of sum_axis.
    Errors: an axis that does not exist or is named twice; acc is no wider integer type.
    Source: OpenInfer op catalog, `mean_axis`.
    """

    def reference(self, x: Array) -> Array:
        sums, n = total(self, x), count(x, self.reduced)
        if self.x.dtype.is_float:
            return sums / np.float64(n)
        divisor = np.asarray(max(n, 1), sums.dtype)
        return np.asarray(np.floor_divide(sums - np.fmod(sums, divisor), divisor))

    def tolerance(self, y: Array, *inputs: Array) -> Array:
        error, sums = sum_error(self, inputs[0])
        error = error / max(count(inputs[0], self.reduced), 1)
        return rounded(y, error + last_place(y, self.x.dtype.computed), self.x.dtype, sums)


class ProdAxis(Accumulation, name="prod_axis"):
    """The product over axes.

    x         number
    axes      those multiplied over; negative ones count from the last
    keepdims  keep them with size 1
    acc       integers: a wider integer type of the same signedness, the result's dtype
    result    x's dtype; 1 where there is nothing

    Integers are multiplied in 64 bits, then wrapped, floats in f64, rounded once: exactly the reference.
    Order: 16 products, element i in product i mod 16 in row-major order, multiplied as a tree; one after
    the other where the reduced axes are one stretch of axes before kept ones.
    Errors: an axis that does not exist or is named twice; acc is no wider integer type.
    Source: OpenInfer op catalog, `prod_axis`.
    """

    kernels = (replace(Accumulation._floats, name="prod_axis"), Accumulation._integers)

    def reference(self, x: Array) -> Array:
        factors = reduced_last(self, exact(x, self.x.dtype))
        products = in_order(factors) if self.columns else in_lanes(factors)
        return products.reshape(without(x.shape, self.reduced, self.keepdims))


class Extreme(Reduction):
    """Base of max and min: `better` is the larger of two numbers, or the smaller."""

    empty = False
    better: ClassVar[np.ufunc]
    examples = MANY
    kernels = (
        Kernel("extreme", ("x",), Reduction._args, call="{op}", units=Reduction._units, sized=True, work=_elements),
    )  # fmt: skip

    def reference(self, x: Array) -> Array:
        rows = reduced_last(self, x)
        same = np.equal(rows, best_along(rows, -1, self.better))
        first = np.take_along_axis(rows, np.argmax(same, axis=-1, keepdims=True), -1)  # of zeros of both signs
        return first.reshape(without(x.shape, self.reduced, self.keepdims))


class MaxAxis(Extreme, name="max_axis"):
    """The largest element over axes.

    x         number
    axes      those compared over; negative ones count from the last
    keepdims  keep them with size 1
    result    x's dtype; NaN where the first element is one, later NaN are passed over

    Exact; of zeros of both signs the first.
    Errors: an axis that does not exist, is named twice, or is empty (at run time OIC_ERR_SHAPE).
    Source: OpenInfer op catalog, `max_axis`.
    """

    better = np.fmax


class MinAxis(Extreme, name="min_axis"):
    """The smallest element over axes.

    x         number
    axes      those compared over; negative ones count from the last
    keepdims  keep them with size 1
    result    x's dtype; NaN where the first element is one, later NaN are passed over

    Exact; of zeros of both signs the first.
    Errors: an axis that does not exist, is named twice, or is empty (at run time OIC_ERR_SHAPE).
    Source: OpenInfer op catalog, `min_axis`.
    """

    better = np.fmin


class ArgReduction(AlongAxis):
    """Base of argmax_axis and argmin_axis."""

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
        return {**self.args(), "last": flag(not self.select_first)}

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


class Cumsum(AlongAxis, name="cumsum"):
    """The sum of all elements up to each one, along an axis.

    x          float
    axis       counted from the last if negative
    exclusive  without the element itself
    result     the type of x

    Added, f8, f16 and bf16 in f32, each sum rounded once: at most k·ε·Σ|x| for k elements.
    Order: one after the other, from zero.
    Errors: x is no float; the axis does not exist.  Source: NumPy, `cumsum`.
    """

    exclusive: bool = False

    examples = (
        ("f32[2, 3]", "axis=1"), ("f32[2, 3, 4]", "axis=-2"), ("f32[0, 3]", "axis=0"), ("f32[1037]", "axis=0"),
        ("f32[1]", "axis=0, exclusive=true"), ("f32[19, 37]", "axis=0, exclusive=true"),
        *((f"{d}[3, 5]", "axis=1") for d in FLOATS),
    )  # fmt: skip

    def _args(self) -> KernelArgs:
        return {**self.args(), "exclusive": flag(self.exclusive)}

    kernels = (Kernel("cumsum", ("x",), _args, inplace=("x",), units=column_units, sized=True, work=elementwise_work),)

    def _sums(self, x: F64) -> F64:
        if self.exclusive:
            x = np.roll(x, 1, self.axis)
            np.moveaxis(x, self.axis, 0)[:1] = 0
        return np.cumsum(x, axis=self.axis)

    def reference(self, x: Array) -> Array:
        return self._sums(x.astype(np.float64))

    def tolerance(self, y: Array, *inputs: Array) -> Array:
        magnitude = self._sums(np.abs(real(inputs[0])))
        n = np.shape(inputs[0])[self.axis]
        return rounded(y, n * epsilon(self.x.dtype) * magnitude, self.x.dtype, magnitude)


# ---------------------------------------------------------------- shapes


def without(shape: Sequence[T], axes: Sequence[int], keepdims: bool) -> list[T | int]:
    """A shape whose axes are gone, or of size 1."""
    return [1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes]


def require_some(op: Op, sizes: list[Dim], where: str) -> None:
    """Refuse axes known to be empty."""
    if any(n == 0 for n in sizes):
        raise OpError("op-axis", f"{op.name} needs an element, and the axis has none", where)


def grouped(shape: tuple[Dim, ...], axes: tuple[int, ...]) -> list[tuple[Dim, bool]]:
    """Neighbouring axes of one kind as one: sizes, and whether reduced.  Size 1 is of any kind."""
    kinds = [(n, i in axes) for i, n in enumerate(shape) if n != 1]
    return [(dims.product(n for n, _ in group), reduced) for reduced, group in groupby(kinds, lambda kind: kind[1])]


def three(groups: list[tuple[Dim, bool]]) -> tuple[Dim, Dim, Dim]:
    """(outer, n, inner) of groups of which at most one is reduced."""
    at = next((i for i, (_, reduced) in enumerate(groups) if reduced), len(groups))
    sizes = [n for n, _ in groups]
    return dims.product(sizes[:at]), dims.product(sizes[at : at + 1]), dims.product(sizes[at + 1 :])


# ---------------------------------------------------------------- meanings


def exact(x: Array, dtype: DType) -> Array:
    """Elements as they are accumulated: f64, or 64-bit integers."""
    return x.astype(np.float64) if dtype.is_float else in_64_bits(x, dtype)


def total(op: Reduction, x: Array) -> Array:
    """The sum over the reduced axes, not yet wrapped or rounded."""
    return np.asarray(np.sum(exact(x, op.x.dtype), axis=op.reduced, keepdims=op.keepdims))


def reduced_last(op: Reduction, x: Array) -> Array:
    """x with the reduced axes as its last one, in row-major order."""
    axes = op.reduced
    last = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim))
    return last.reshape(*last.shape[: x.ndim - len(axes)], count(x, axes))


def in_order(x: Array) -> Array:
    """The product along the last axis, one element after the other."""
    if x.shape[-1] == 0:
        return np.ones(x.shape[:-1], x.dtype)
    return np.asarray(np.multiply.accumulate(x, axis=-1)[..., -1])


def in_lanes(x: Array) -> Array:
    """The product along the last axis: element i in product i mod 16, these multiplied as a tree."""
    rows = -(-x.shape[-1] // LANES)
    lanes = np.ones((*x.shape[:-1], rows * LANES), x.dtype)
    lanes[..., : x.shape[-1]] = x
    products = in_order(np.swapaxes(lanes.reshape(*x.shape[:-1], rows, LANES), -1, -2))
    while products.shape[-1] > 1:
        half = products.shape[-1] // 2
        products = products[..., :half] * products[..., half:]
    return np.asarray(products[..., 0])


def count(x: Array, axes: tuple[int, ...]) -> int:
    """How many elements make one result."""
    return math.prod(np.shape(x)[axis] for axis in axes)


def sum_error(op: Reduction, x: Array) -> tuple[F64, F64]:
    """The bound of a sum of floats, and the sum of their magnitudes."""
    n = count(x, op.reduced)
    roundings = min(n, 150) + n / 64
    sums = np.asarray(total(op, np.abs(real(x))))
    return roundings * epsilon(op.x.dtype) * sums, sums


def best_along(x: Array, axis: int, better: np.ufunc) -> Array:
    """The best element along an axis, kept with size 1; a NaN if the first element is one."""
    first = np.take(x, [0], axis)
    return np.where(first == first, better.reduce(x, axis=axis, keepdims=True), first)
