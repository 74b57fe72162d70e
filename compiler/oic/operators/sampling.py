"""Choosing from scores: `top_k`, `sample`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from oic.dtypes import FLT, Array, DType, f32, i32, i64
from oic.ir import dims
from oic.ir.core import Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.index import at_least
from oic.ir.types import TensorType, Type
from oic.kernels.kernel import Converted, Kernel, KernelArgs, Out, Scratch
from oic.operators.arrange import along, around
from oic.operators.base import Operator, normal_axis
from oic.operators.settings import require_sign
from oic.operators.work import ELEMENTWISE


class TopK(Operator, name="top_k"):
    """The k largest elements along an axis, largest first, and where they are.

    x        float
    k        how many, at most the axis' size
    axis     searched
    results  values of x's dtype and i32 indices, k along axis

    Exact.  Of equal elements the lower index comes first; NaN counts as larger than any number.
    Errors: k is more than the axis has (at run time OIC_ERR_SHAPE).
    Source: PyTorch, `topk`.
    """

    x: Value
    k: Dim
    axis: int = -1

    allowed = FLT
    examples = (("f32[2, 9]", "k=3"), ("f16[4, 3]", "k=4, axis=0"))

    def infer(self) -> list[Type]:
        axis = normal_axis(self, self.axis, self.x.tensor.rank)
        size = self.x.shape[axis]
        if isinstance(self.k, int) and (self.k < 0 or (isinstance(size, int) and self.k > size)):
            raise OpError("op-setting", f"k {self.k} is not in 0..{size}", "k")
        shape = (*self.x.shape[:axis], self.k, *self.x.shape[axis + 1 :])
        return [TensorType(self.x.dtype, shape), TensorType(i32, shape)]

    def ids_below(self, result: Value) -> Dim | None:
        return self.x.shape[self.axis] if result is self.results[1] else None

    def checks(self) -> list[Op]:
        """An axis that may be shorter than k at run time."""
        return at_least(0, self.x.shape[self.axis] - self.k)

    def reference(self, x: Array) -> list[Array]:
        wide = np.where(np.isnan(x), np.inf, x.astype(np.float64))
        order = np.lexsort((~np.isnan(x), -wide), self.axis)  # by value, then NaN before infinity, then by index
        order = np.take(order, np.arange(int(self.k)), self.axis)  # type: ignore[arg-type]
        return [np.take_along_axis(x, order, self.axis), order]

    def _args(self) -> KernelArgs:
        return self.members(where=Out(1), **along(self.x, self.axis), k=self.k)

    def _rows(self) -> Dim:
        outer, _, inner = around(self.x.shape, self.axis % self.x.tensor.rank)
        return outer * inner

    def _comparisons(self) -> Dim:
        """What comparing every element with the smallest that is kept is worth, at least."""
        return ELEMENTWISE * self.x.tensor.size

    kernels = (Kernel("top_k", ("x",), _args, units=_rows, sized=True, work=_comparisons),)


class Sample(Operator, name="sample"):
    """One index drawn from the distribution that logits describe.

    logits       [V] float
    u            f32 scalar in [0, 1): which part of the distribution
    temperature  logits are divided by it; 0 takes the largest (the first of equals)
    top_k        keep values at least as large as the k-th largest; 0 keeps all
    top_p        then keep the smallest set of largest probabilities whose sum reaches it, at least one
                 (of equals the lower index first)
    result       i32: the first index, in index order, whose cumulative probability exceeds u; NaN
                 counts as -inf, and an infinite logit has all the probability

    Division in f32 (f64 for f64), probabilities and their sums in f64: exact but where u is within
    their rounding of a border.
    Order: probabilities are added in index order, for top_p in order of size, from zero.
    Source: OPS, Part B; Hugging Face transformers, logits processors.
    """

    logits: Value
    u: Value
    temperature: float | int | Value = 1.0
    top_k: int | Value = 0
    top_p: float | int | Value = 1.0

    allowed = FLT
    own: ClassVar[dict[str, DType]] = {"u": f32}
    examples = (
        ("f32[9]", "f32"),
        ("f16[20]", "f32", "temperature=0.5, top_k=5, top_p=0.9"),
        ("f32[5]", "f32", "temperature=0"),
    )

    def infer(self) -> list[Type]:
        self.require_rank("logits", 1, 1)
        self.require("u", (f32,))
        if self.u.tensor.size != 1:
            raise OpError("shape-mismatch", f"u is one number, not {self.u.type}", "u")
        if self.logits.shape[0] == 0:
            raise OpError("shape-mismatch", "there is nothing to sample from", "logits")
        for where, dtype in (("temperature", self.logits.dtype), ("top_k", i64), ("top_p", f32)):
            require_sign(self, where, dtype)
        return self.tensor(i32, ())

    def ids_below(self, result: Value) -> Dim:
        return self.logits.shape[0]

    def checks(self) -> list[Op]:
        """There may be no logits at run time."""
        return at_least(1, self.logits.shape[0])

    def reference(self, logits: Array, u: Array) -> Array:
        given: Any = (self.temperature, self.top_k, self.top_p)
        kept = shares(logits, float(given[0]), int(given[1]), float(np.float32(given[2])))
        return np.asarray(drawn(*kept, float(u.reshape(()))))

    def _args(self) -> KernelArgs:
        size = self.logits.shape[0]
        return self.members(
            work=Scratch((8 + 4) * dims.maximum(size)), V=size,
            temperature=Converted(self.temperature, self.logits.dtype.value),
            top_k=Converted(self.top_k, "int64_t"), top_p=Converted(self.top_p, "float"),
        )  # fmt: skip

    kernels = (Kernel("sample", ("logits",), _args),)


def shares(logits: Array, temperature: float, top_k: int, top_p: float) -> tuple[Array | None, Array]:
    """What the three filters of `sample` keep, and how probable it is.

    Gives indices in ascending order (None: all), and f64 numbers that their probabilities are in proportion to.
    """
    scale = logits.dtype.type(temperature)
    if scale == 0:
        best = np.argmax(logits)
        if np.isnan(logits[best]):
            best = np.argmax(np.where(np.isnan(logits), -np.inf, logits))
        return np.array([best]), np.ones(1)
    with np.errstate(all="ignore"):
        x, kept = (logits / scale).astype(np.float64), None
        x[np.isnan(x)] = -np.inf
        top = x.max()
        if 0 < top_k < x.size:
            kept = np.flatnonzero(x >= kth_largest(x, top_k))
            x = x[kept]
        if not top_p < 1:
            return kept, weights(x, top, x)
        likely = largest(x, top, top_p * total(x, top))
        return likely if kept is None else kept[likely], weights(x[likely], top)


def kth_largest(x: Array, k: int) -> float:
    """The k-th largest of x.

    Of x in columns of 16, if there are k, the k-th largest maximum is at most that: smaller elements are left out.
    """
    if 16 * k <= x.size:
        maxima = x[: x.size // 16 * 16].reshape(16, -1).max(axis=0)
        x = x[x >= np.partition(maxima, maxima.size - k)[maxima.size - k]]
    return float(np.partition(x, x.size - k)[x.size - k])


def weights(x: Array, top: float, to: Array | None = None) -> Array:
    """How probable x is, as a part of what `top` is; 1 for an infinite one too.  `to` may be x."""
    highest = x == top
    p = np.subtract(x, top, out=to)
    np.exp(p, out=p)
    p[highest] = 1.0
    return p


def total(x: Array, top: float) -> float:
    """The weights of x, added in index order; of parts, since large arrays are new pages of memory every time."""
    found = 0.0
    for first in range(0, x.size, 8192):
        found = np.cumsum(np.concatenate([[found], weights(x[first : first + 8192], top)]))[-1]
    return found


def largest(x: Array, top: float, enough: float) -> Array:
    """Where those largest elements of x are, one at least, whose weights, added in order of size, reach `enough`.

    Of equal ones the first.  They are sought among those at most 4, 8, 16, ... below the top, so that most others
    are never sorted.
    """
    total, before = 0.0, np.zeros(x.shape, bool)
    for edge in (*(top - 2.0**n for n in range(2, 10)), -np.inf):
        near = (x >= edge) & ~before
        order, before = np.sort(x[near])[::-1], before | near
        sums = np.cumsum(np.concatenate([[total], weights(order, top)]))
        reached = np.flatnonzero(sums[1:] >= enough)
        if reached.size:
            least = order[reached[0]]
            equal = np.flatnonzero(x == least)[: np.count_nonzero(order[: reached[0] + 1] == least)]
            return np.sort(np.concatenate([np.flatnonzero(x > least), equal]))
        total = sums[-1]
    return np.arange(x.size)


def drawn(kept: Array | None, p: Array, u: float) -> int:
    """The first of the indices kept whose cumulative probability exceeds u in [0, 1).  p becomes its sums."""
    if u < 1:
        sums = np.cumsum(p, out=p)
        at = int(np.searchsorted(sums, max(u * sums[-1], 0.0), "right"))  # a larger sum than before: p was not 0
    else:
        at = int(np.flatnonzero(p > 0)[-1])
    return at if kept is None else int(kept[at])
