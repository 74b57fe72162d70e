"""Views: operators that see their operand's memory otherwise and move nothing.

The references return NumPy views wherever NumPy has one: the interpreter of a planned program
relies on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir import dims
from oic.ir.core import Op, OpError, Unequal, Value
from oic.ir.dims import Dim
from oic.ir.index import at_least, equal
from oic.ir.strides import Strides, repeated, reshaped
from oic.ir.types import TensorType, Type
from oic.operators.base import Operator, normal_axis, require_broadcast


class Reshape(Operator, name="reshape", view=True, reshapes=True):
    """The same elements in row-major order under another shape: a view.

    x        any dtype and shape
    shape    sizes (integers, sizevars, extents); one may be -1 and takes what is left
    result   x's dtype

    Exact.  Errors: the number of elements differs.  Source: NumPy, `reshape`.
    """

    x: Value
    shape: list[Dim]

    examples = (("f32[2, 6]", "shape=[3, -1]"), ("i4[8]", "shape=[2, 4]"), ("bool[1]", "shape=[]"))

    def infer(self) -> list[Type]:
        wanted = [d for d in self.shape if isinstance(d, int) and d < 0]
        if wanted not in ([], [-1]):
            raise OpError("op-setting", "reshape takes at most one -1 and no other negative size", "shape")
        if not wanted:
            self._require_equal_size()
            return self.tensor(self.x.dtype, self.shape)
        rest = dims.product(d for d in self.shape if d != -1)
        total = self.x.tensor.size
        left = dims.quotient(total, rest)
        if left is None and ((isinstance(total, int) and isinstance(rest, int)) or dims.maximum(rest) < 1):
            raise OpError("shape-mismatch", f"{self.x.type} has no whole number of {rest} elements", "shape")
        if left is None:
            left = dims.floor_div(total, rest)  # `checks` refuses a remainder
        return self.tensor(self.x.dtype, [left if d == -1 else d for d in self.shape])

    def _require_equal_size(self) -> None:
        """Refuse other numbers of elements; one axis that is undecided is left to run time."""
        if self.x.tensor.size == dims.product(self.shape):
            return
        new, mine = list(self.shape), []
        for axis, size in enumerate(self.x.shape):
            if size in new:
                new.remove(size)
            else:
                mine.append(axis)
        undecided = [axis for axis in mine if not isinstance(self.x.shape[axis], int)]
        known = dims.product(self.x.shape[axis] for axis in mine if axis not in undecided)
        if len(mine) == 1 and (undecided or not isinstance(dims.product(new), int)):
            raise Unequal(self.x, mine[0], dims.product(new), "x")
        if len(undecided) == 1 and (left := dims.quotient(dims.product(new), known)) is not None:
            raise Unequal(self.x, undecided[0], left, "x")
        (least, most), (low, high) = dims.bounds(self.x.tensor.size), dims.bounds(dims.product(self.shape))
        if least <= high and low <= most:
            return  # `checks` compares them
        shape = "[" + ", ".join(map(str, self.shape)) + "]"
        raise OpError("shape-mismatch", f"{self.x.type} and {shape} differ in their number of elements", "shape")

    def checks(self) -> list[Op]:
        total, given = self.x.tensor.size, self.result.tensor.size
        if total == given:
            return []
        signs = (op for size in self.result.shape if dims.bounds(size)[0] < 0 for op in at_least(0, size))
        return [*signs, *equal(total, given, self.x.hint or "x")]

    def reference(self, x: Array) -> Array:
        return x.reshape(tuple(self.shape))  # type: ignore[arg-type]

    def seen(self, base: Strides) -> Strides | None:
        return reshaped(self.x.shape, base, self.result.shape)


class Transpose(Operator, name="transpose", view=True):
    """The axes in another order: a view.

    x        any dtype, any rank
    perm     axis i of the result is axis perm[i] of x
    result   x's dtype

    Exact.  Errors: perm is no permutation of the axes.  Source: NumPy, `transpose`.
    """

    x: Value
    perm: list[int]

    examples = (("f32[2, 3, 4]", "perm=[2, 0, 1]"), ("i8[3, 2]", "perm=[1, 0]"))

    def infer(self) -> list[Type]:
        rank = self.x.tensor.rank
        order = [normal_axis(self, p, rank, "perm") for p in self.perm]
        if sorted(order) != list(range(rank)):
            raise OpError("op-axis", f"perm {self.perm} does not name each of {rank} axes once", "perm")
        return self.tensor(self.x.dtype, [self.x.shape[p] for p in order])

    def reference(self, x: Array) -> Array:
        return x.transpose(self.perm)

    def seen(self, base: Strides) -> Strides:
        return tuple(base[p] for p in self.perm)


class BroadcastTo(Operator, name="broadcast_to", view=True):
    """The operand repeated along new and size-1 axes: a view with strides of 0.

    x        any dtype
    shape    of the result; a size of x that is not a static 1 must be kept
    result   x's dtype

    Exact.  Errors: x does not broadcast to shape.  Source: NumPy, `broadcast_to`.
    """

    x: Value
    shape: list[Dim]

    examples = (("f32[3, 1]", "shape=[2, 3, 4]"), ("i8", "shape=[2]"))

    def infer(self) -> list[Type]:
        if len(self.shape) < self.x.tensor.rank:
            raise OpError("shape-mismatch", f"{self.x.type} has a higher rank than the shape asked for", "shape")
        for size in self.shape:
            require_size(size, "shape")
        require_broadcast(self, "x", self.shape)
        return self.tensor(self.x.dtype, self.shape)

    def reference(self, x: Array) -> Array:
        return np.broadcast_to(x, tuple(self.shape))  # type: ignore[arg-type]

    def seen(self, base: Strides) -> Strides:
        return repeated(self.x.shape, base, self.result.shape)


class Slice(Operator, name="slice", view=True):
    """The part start..end of one axis, every step-th element: a view.

    x           any dtype
    axis        cut here; negative counts from the last
    start, end  half-open, 0 ≤ start ≤ end ≤ size; sizes or run-time integers
    step        positive
    result      x's dtype; ⌈(end-start)/step⌉ elements along axis

    A range known to be wrong is an error at build, another one the status OIC_ERR_INDEX (a check
    made beside it).  `size` is the compiler's: the result's size where start or end is a run-time
    integer.  Exact.  Source: NumPy, basic slicing, without its negative ends.
    """

    x: Value
    axis: int
    start: Dim | Value
    end: Dim | Value
    step: int = 1
    size: Dim | None = None

    derived = ("size",)
    examples = (
        ("f32[5, 4]", "axis=0, start=1, end=4"),
        ("i32[3, 8]", "axis=-1, start=0, end=7, step=3"),
        ("f16[4]", "axis=0, start=2, end=2"),
    )

    def infer(self) -> list[Type]:
        axis = normal_axis(self, self.axis, self.x.tensor.rank)
        if not isinstance(self.step, int) or self.step < 1:
            raise OpError("op-setting", f"step {self.step} is not positive", "step")
        shape = list(self.x.shape)
        shape[axis] = self._length(shape[axis])
        return self.tensor(self.x.dtype, shape)

    def _length(self, whole: Dim) -> Dim:
        start, end = self.start, self.end
        if isinstance(start, int) and start < 0:
            raise OpError("op-setting", f"start {start} is negative", "start")
        if isinstance(end, int) and isinstance(whole, int) and end > whole:
            raise OpError("op-setting", f"end {end} is beyond the size {whole}", "end")
        if isinstance(start, int) and isinstance(whole, int) and start > whole:
            raise OpError("op-setting", f"start {start} is beyond the size {whole}", "start")
        if isinstance(start, int) and isinstance(end, int) and end < start:
            raise OpError("op-setting", f"end {end} is before start {start}", "end")
        if self.size is not None:
            return self.size
        if isinstance(start, Value) or isinstance(end, Value):
            raise OpError("op-setting", "the size of a slice with run-time ends is not known", "size")
        return (end - start + (self.step - 1)) // self.step

    def reference(self, x: Array) -> Array:
        first: Any = self.start
        end: Any = first + self.size * self.step if self.size is not None else self.end
        where = [slice(None)] * x.ndim
        where[self.axis] = slice(int(first), int(end), self.step)
        return x[tuple(where)]

    def seen(self, base: Strides) -> Strides:
        axis = self.axis % len(base)
        return tuple(s * self.step if i == axis else s for i, s in enumerate(base))

    def begins(self, number: int) -> list[tuple[Dim | Value, int]]:
        return [(self.start, self.axis)]


class Split(Operator, name="split", view=True):
    """Consecutive parts of one axis: views.

    x        any dtype
    axis     cut here
    sizes    of the parts along axis; they add up to its size
    results  one for each size, x's dtype

    Exact.  Errors: the sizes do not add up.  Source: PyTorch, `torch.split`.
    """

    x: Value
    axis: int
    sizes: list[Dim]

    examples = (("f32[2, 6]", "axis=1, sizes=[1, 2, 3]"), ("i8[4]", "axis=0, sizes=[4, 0]"))

    def infer(self) -> list[Type]:
        axis = normal_axis(self, self.axis, self.x.tensor.rank)
        for size in self.sizes:
            require_size(size, "sizes")
        if not self.sizes:
            raise OpError("op-setting", "split takes at least one size", "sizes")
        self.require_dim("x", axis, sum(self.sizes))
        shape = self.x.shape
        return [TensorType(self.x.dtype, (*shape[:axis], size, *shape[axis + 1 :])) for size in self.sizes]

    def reference(self, x: Array) -> list[Array]:
        return np.split(x, np.cumsum(self.sizes)[:-1], self.axis)  # type: ignore[arg-type]

    def seen(self, base: Strides) -> Strides:
        return base

    def begins(self, number: int) -> list[tuple[Dim | Value, int]]:
        start: Dim = sum(self.sizes[:number])
        return [(size, self.axis) for size in ([start] if isinstance(start, int) else self.sizes[:number])]


def require_size(size: Dim, where: str) -> None:
    """Refuse a size known to be negative."""
    if isinstance(size, int) and size < 0:
        raise OpError("op-setting", f"size {size} is negative", where)
