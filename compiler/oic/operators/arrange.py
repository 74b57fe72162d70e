"""Operators that copy elements to other places without computing anything.

Their kernels move elements by their width (`move.h`); packed ones move within bytes.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from oic.dtypes import FLT, Array, DType, f32, f64, i32, i64
from oic.ir import dims
from oic.ir.core import Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.encodings import PAIRED, PANELS
from oic.ir.index import CheckIds
from oic.ir.state import Splat
from oic.ir.types import Type
from oic.kernels.kernel import Converted, Kernel, KernelArgs
from oic.kernels.targets import Target
from oic.operators.base import Operator, normal_axis
from oic.operators.quantized import FLOATS, of_groups, product_dtype
from oic.operators.settings import as_computed, require_finite, require_number
from oic.operators.shape import require_size
from oic.operators.work import ELEMENTWISE, elementwise_work


def around(shape: tuple[Dim, ...], axis: int) -> tuple[Dim, Dim, Dim]:
    """A shape as (outer, size of the axis, inner)."""
    return dims.product(shape[:axis]), shape[axis], dims.product(shape[axis + 1 :])


def along(x: Value, axis: int, name: str = "n") -> dict[str, Dim]:
    """The members outer, the size of an axis by its name, and inner."""
    return dict(zip(("outer", name, "inner"), around(x.shape, axis % x.tensor.rank), strict=True))


class AlongAxis(Operator):
    """Base of what goes along one axis of x, everything else on its own; by default the result has the type of x."""

    x: Value
    axis: int

    allowed = FLT

    def infer(self) -> list[Type]:
        normal_axis(self, self.axis, self.x.tensor.rank)
        return [self.x.type]

    def args(self) -> KernelArgs:
        return self.members(**along(self.x, self.axis))


class Concat(Operator, name="concat"):
    """The operands one after another along an axis.

    parts    one or more of one dtype; sizes equal but along axis
    axis     counted from the last if negative
    result   their dtype; the size along axis is the sum

    Exact.  Source: NumPy, `concatenate`.
    """

    parts: list[Value]
    axis: int

    examples = (("f32[2, 3]", "f32[2, 1]", "axis=1"), ("i4[3]", "i4[2]", "i4[0]", "axis=0"))

    def infer(self) -> list[Type]:
        if not self.parts:
            raise OpError("op-setting", "concat takes at least one operand", "parts")
        first = self.parts[0]
        axis = normal_axis(self, self.axis, first.tensor.rank)
        for part in self.parts:
            if part.dtype is not first.dtype:
                raise OpError("op-dtype", f"concat of {first.dtype} and {part.dtype}", "parts")
            if part.tensor.rank != first.tensor.rank:
                raise OpError("shape-mismatch", f"concat of {first.type} and {part.type}", "parts")
            for other in range(first.tensor.rank):
                if other != axis:
                    self.require_dim("parts", other, first.shape[other], part)
        total = sum(part.shape[axis] for part in self.parts)
        return self.tensor(first.dtype, [*first.shape[:axis], total, *first.shape[axis + 1 :]])

    def reference(self, parts: list[Array]) -> Array:
        return np.concatenate(parts, axis=self.axis)


class Pad(Operator, name="pad"):
    """The operand with elements added before and after along its axes.

    x              any dtype
    before, after  how many, one an axis
    value          what is added in mode "constant": a number of x's kind
    mode           "constant"; "edge" repeats the border; "reflect" mirrors without repeating it
    result         x's dtype

    Exact.  Errors: lists of another length than the rank; a negative size; value is of another kind
    or out of range; "reflect" of as many elements as there are or more.  Source: NumPy, `pad`.
    """

    x: Value
    before: list[Dim]
    after: list[Dim]
    value: float | int | bool | Value = 0
    mode: str = "constant"

    examples = (
        ("f32[2, 3]", "before=[1, 0], after=[0, 2], value=7.5"),
        ("i8[4]", 'before=[3], after=[1], mode="reflect"'),
        ("f16[2, 2]", 'before=[1, 2], after=[2, 1], mode="edge"'),
    )

    words = {"mode": ("constant", "edge", "reflect")}

    def infer(self) -> list[Type]:
        for where in ("before", "after"):
            if len(getattr(self, where)) != self.x.tensor.rank:
                raise OpError("op-setting", f"{where} has not one size for each axis of {self.x.type}", where)
        shape: list[Dim] = []
        for size, before, after in zip(self.x.shape, self.before, self.after, strict=True):
            for where, added in (("before", before), ("after", after)):
                require_size(added, where)
                self._require_source(size, added, where)
            shape.append(before + size + after)
        self._require_value()
        return self.tensor(self.x.dtype, shape)

    def _require_value(self) -> None:
        dtype = self.x.dtype
        if dtype.is_float or dtype.is_int or not isinstance(self.value, bool):
            require_number(self, "value", dtype)
            require_finite(self, "value", dtype)

    def _require_source(self, size: Dim, added: Dim, where: str) -> None:
        if self.mode == "constant" or added == 0 or not isinstance(size, int):
            return
        if size == 0:
            raise OpError("op-setting", f"mode {self.mode} has nothing to repeat on an axis of 0", where)
        if self.mode == "reflect" and isinstance(added, int) and added >= size:
            raise OpError("op-setting", f"{added} elements are mirrored from {size}", where)

    def reference(self, x: Array) -> Array:
        if x.ndim == 0:
            return x
        added: Any = np.transpose([self.before, self.after])
        if self.mode == "constant" or x.size == 0:
            return np.pad(x, added, constant_values=as_computed(self.value, self.x.dtype).astype(x.dtype))
        return np.pad(x, added, self.mode)  # type: ignore[call-overload]

    def _args(self) -> KernelArgs:
        return self.members(
            rank=self.x.tensor.rank, shape=self.x.shape, before=tuple(self.before),
            after=tuple(self.after), mode=self.words["mode"].index(self.mode),
            value=Converted(self.value, self.x.dtype.value),
        )  # fmt: skip

    kernels = (Kernel("pad", ("x",), _args),)


class Repeat(Operator, name="repeat"):
    """Every element of an axis `times` times in a row.

    x        any dtype
    times    a size
    axis     whose elements are repeated
    result   x's dtype; times as long along axis

    Exact.  Source: NumPy, `repeat`; PyTorch, `repeat_interleave`.
    """

    x: Value
    times: Dim
    axis: int

    examples = (("f32[2, 3]", "times=2, axis=0"), ("i8[4]", "times=3, axis=-1"))

    def infer(self) -> list[Type]:
        axis = normal_axis(self, self.axis, self.x.tensor.rank)
        require_size(self.times, "times")
        shape = list(self.x.shape)
        shape[axis] = shape[axis] * self.times
        return self.tensor(self.x.dtype, shape)

    def reference(self, x: Array) -> Array:
        return np.repeat(x, self.times, self.axis)  # type: ignore[arg-type]

    def _args(self) -> KernelArgs:
        outer, size, inner = around(self.x.shape, self.axis % self.x.tensor.rank)
        return self.members(rows=outer * size, inner=inner, times=self.times)

    kernels = (Kernel("repeat", ("x",), _args),)


class Flip(Operator, name="flip"):
    """The elements of some axes in reverse order.

    x        any dtype
    axes     to be reversed
    result   the type of x

    Exact.  Source: NumPy, `flip`.
    """

    x: Value
    axes: list[int]

    examples = (("f32[2, 3]", "axes=[1]"), ("i8[2, 3, 2]", "axes=[0, -1]"))

    def infer(self) -> list[Type]:
        axes = [normal_axis(self, a, self.x.tensor.rank, "axes") for a in self.axes]
        if len(set(axes)) < len(axes):
            raise OpError("op-axis", f"axes {self.axes} name one twice", "axes")
        return [self.x.type]

    def reference(self, x: Array) -> Array:
        return np.flip(x, tuple(self.axes))

    def _args(self) -> KernelArgs:
        rank = self.x.tensor.rank
        axes = {a % rank for a in self.axes}
        return self.members(rank=rank, shape=self.x.shape, marks=tuple(int(a in axes) for a in range(rank)))

    kernels = (Kernel("flip", ("x",), _args),)


class Gather(Operator, name="gather"):
    """Entries of a table selected by ids: `table[ids]`.

    table    any dtype, rank 1 or more
    ids      i32 or i64, any shape
    axis     of the table that ids select from
    to       the table's dtype by default; f32, f64 or i32 from a type that has fewer bits (integers: 16
             at most) and no value that it does not hold
    result   table's shape with axis replaced by the shape of ids

    Exact.  An id outside 0..size-1 is the status OIC_ERR_INDEX, and nothing is written.
    Source: NumPy, `take`.
    """

    table: Value
    ids: Value
    axis: int = 0
    to: DType | None = None

    own: ClassVar[dict[str, DType]] = {"ids": i32}
    selects = ("table",)
    examples = (("f32[5, 3]", "i32[2, 2]"), ("f16[5, 3]", "i64[4]", "to=f32"), ("i8[2, 4]", "i32", "axis=1"))

    def infer(self) -> list[Type]:
        self.require_rank("table", 1)
        self.require("ids", (i32, i64))
        axis = normal_axis(self, self.axis, self.table.tensor.rank)
        shape = self.table.shape
        known, size = self.ids.op, shape[axis]
        if isinstance(known, Splat) and not 0 <= known.value < dims.maximum(size):
            raise OpError("index-bound", f"id {known.value} is outside 0 to {dims.maximum(size) - 1}", "ids")
        mine = self.table.dtype
        if self.to is not None and self.to is not mine and not holds(self.to, mine):
            raise OpError("op-dtype", f"{self.to} does not hold every value of {mine}", "to")
        return self.tensor(self.to or mine, [*shape[:axis], *self.ids.shape, *shape[axis + 1 :]])

    def checks(self) -> list[Op]:
        size = self.table.shape[self.axis % self.table.tensor.rank]
        return [CheckIds(self.ids, size, self.ids.hint or "ids")]

    def ids_below(self, result: Value) -> Value:
        return self.table

    def reference(self, table: Array, ids: Array) -> Array:
        return np.take(table, ids, self.axis).astype(self.result.dtype.wide)

    def _args(self) -> KernelArgs:
        return self.members(**along(self.table, self.axis, "size"), n=self.ids.tensor.size)

    def _copies(self) -> bool:
        return self.table.tensor.stored is self.result.dtype

    def _in_panels(self) -> KernelArgs:
        return self.members(inner=self.table.shape[1], n=self.ids.tensor.size)

    def _elements(self) -> int:
        """Elements of the fewest ids of a step, but one: what products of the table cost is that of one row, too."""
        return math.prod(max(1, dims.bounds(d)[0]) for d in self.result.shape)

    def _bytes(self, target: Target) -> float:
        return self.table.dtype.nbytes(self._elements())

    def _of_rows(self) -> bool:
        return self.table.tensor.rank == 2 and self.axis % 2 == 0

    def _dtypes(self) -> tuple[DType, ...]:
        return product_dtype(self.table), self.result.dtype, self.ids.dtype

    def _entries(self) -> Dim:
        """Entries that threads can share; packed ones share bytes."""
        outer, _, _ = around(self.table.shape, self.axis % self.table.tensor.rank)
        return 1 if self.result.dtype.packed else outer * self.ids.tensor.size

    def _moved(self) -> Dim:
        """What moving the elements of entries is worth: many at a time."""
        return ELEMENTWISE // 8 * self.result.tensor.size

    kernels = (
        Kernel("gather_panels", _dtypes, _in_panels, fits=_of_rows, takes={"table": PANELS}, stored={"table": FLOATS},
               cost=lambda op, target: op._elements() * target.costs.line, units=_entries, work=elementwise_work),
        Kernel("gather_pairs", _dtypes, _in_panels, fits=_of_rows, takes={"table": PAIRED[PANELS]},
               stored={"table": ("", "bf16")}, cost=lambda op, target: op._elements() * target.costs.line,
               units=_entries, work=elementwise_work),
        *of_groups(Kernel("gather", _dtypes, lambda op: {**op._in_panels(), "size": op.table.shape[0]},
                          fits=lambda op: op._of_rows() and op.table.dtype is f32, takes={"table": PANELS},
                          cost=lambda op, target: op._elements() * target.costs.line / 4, units=_entries,
                          work=elementwise_work), "table"),
        Kernel("gather", ("table", "ids"), _args, fits=_copies, cost=_bytes, units=_entries, sized=True, work=_moved),
        Kernel("gather_wide", _dtypes, _args, call="gather", stored={"table": FLOATS},
               fits=lambda op: not op._copies(), cost=_bytes, units=_entries, work=_moved),
    )


def holds(wide: DType, narrow: DType) -> bool:
    """Every value of `narrow` is a value of `wide`, for the pairs that gather widens."""
    if wide not in (f32, f64, i32) or narrow.kind in ("bitset", "bool"):
        return False
    return (narrow.is_float or narrow.bits <= 16) and wide.holds(narrow)


class Iota(Operator, name="iota"):
    """Counting up along one axis.

    shape    of the result
    axis     along which the numbers rise
    start    the first number; wraps to 32 bits
    result   i32

    Exact.  Source: NumPy, `arange`.
    """

    shape: list[Dim]
    axis: int = 0
    start: int | Value = 0

    allowed = frozenset({i32})
    examples = (("shape=[4]",), ("shape=[2, 3]", "axis=1, start=-5"))

    def infer(self) -> list[Type]:
        normal_axis(self, self.axis, len(self.shape))
        for size in self.shape:
            require_size(size, "shape")
        return self.tensor(i32, self.shape)

    def ids_below(self, result: Value) -> Dim | None:
        return self.shape[self.axis] if self.start == 0 else None

    def reference(self) -> Array:
        sizes: Any = tuple(self.shape)
        count = np.indices(sizes, np.int64, sparse=True)[self.axis]
        return np.broadcast_to(count + int(self.start), sizes)  # type: ignore[arg-type]

    def _args(self) -> KernelArgs:
        return self.members(**along(self.result, self.axis), start=Converted(self.start, "int64_t"))

    kernels = (Kernel("iota", ("result",), _args),)
