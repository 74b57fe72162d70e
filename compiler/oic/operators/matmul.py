"""Matrix products: `matmul` over batches of matrices, `linear` with weights as checkpoints hold them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from oic.dtypes import NUM, Array, DType, bitset, bool_, f32, i8, u8
from oic.ir import dims
from oic.ir.core import OpError, Value
from oic.ir.dims import Dim
from oic.ir.encodings import COLUMNS, PANELS, ROWS
from oic.ir.types import Type
from oic.kernels.kernel import Kernel, KernelArgs, Out, Scratch, Stride
from oic.kernels.targets import Target
from oic.operators import quantized
from oic.operators.base import Operator, Product, is_float, require_broadcast
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.conv import PLANES, WORD_ROWS
from oic.operators.quant import Sums, or_requantized
from oic.operators.quantized import product_dtype, products, streamed
from oic.operators.settings import accumulated

RUN, PART = 64, 48  # OIC_LINEAR_RUN and _PART: outputs that a thread takes at a time
MANY = 8  # rows of bytes, from which on lanes of words pay
FEW = 4  # rows of bytes, from which on it pays to turn what they are multiplied by into words
LINE = 4 * ROWS  # OIC_MATMUL_LINE: columns
INT_TILE = 256  # OIC_INT_TILE of matmul_int.h


def narrower(wide: DType, narrow: DType) -> bool:
    """A weight of the second float type is widened exactly to the first."""
    return narrow.is_float and wide.holds(narrow)


def made_equal(wide: DType, other: DType, scaled: str) -> str:
    """How a product of these types is written: `scaled` takes small integers as they are stored."""
    small = wide.is_float and not other.is_float and other.kind != "bool" and other.bits <= 8
    return f"{scaled} takes numbers of {other} with their scale" if small else f"op cast(…, to={wide}) makes them equal"


def product(a: Array, b: Array, dtype: DType) -> Array:
    """a @ b: floats summed in f64, integers modulo 2^64, bool as OR of ANDs; NumPy's batch rule."""
    if dtype.kind == "bool":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)) > 0
    # Products of 16-bit integers add up exactly in f64 for every size that fits in memory.
    if dtype.is_float or dtype.bits <= 16:
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return exact if dtype.is_float else exact.astype(np.int64)
    return np.matmul(a.astype(np.int64), b.astype(np.int64))


def product_bound(y: Array, a: Any, b: Any, dtype: DType, reach: Any = 0.0) -> Array:
    """2·K·ε·Σ|a||b| and the rounding of a narrow result; 0 for integers.  `reach` as `rounded` has it."""
    k = max(1, np.shape(a)[-1])
    sums = np.matmul(np.abs(real(a)), np.abs(real(b)))
    return rounded(y, 2 * k * epsilon(dtype) * sums + k * dtype.computed.smallest, dtype, np.maximum(sums, reach))


class MatMul(Operator, name="matmul"):
    """Matrix product of the last two axes, batches broadcast.

    a            [.., M, K]; [.., K, M] with transpose_a
    b            [.., K, N]; [.., N, K] with transpose_b; a float may be narrower than a's
    b_scale      f32, where a is a float and b i8, u8 or packed: broadcasts to b and is one value
                 along K
    acc          wider integer dtype of the result
    result       [.., M, N] of a's dtype

    Integers wrap (bitset as u8), bool is OR of ANDs.  Floats: error at most 2·K·ε·Σ|a||b|, summed in
    f32 (f64 for f64), rounded once.  In numerics `native` an f32 a times a constant of bf16 is rounded
    to bf16 first, once a row: error at most 2^-8·Σ|a||b| more.  Errors: sizes or batches do not fit,
    other dtypes.
    Source: OpenInfer op catalog, `matmul`; OPS, Part B.
    """

    a: Value
    b: Value
    b_scale: Value | None = None
    transpose_a: bool = False
    transpose_b: bool = False
    acc: DType | None = None

    allowed = NUM | {bool_, bitset}
    examples = (
        ("f32[3, 17]", "f32[17, 5]"), ("f32[2, 1, 3, 8]", "f32[4, 8, 2]"),
        ("f32[1, 40]", "f16[9, 40]", "transpose_b=true"), ("f32[8, 3]", "f32[8, 2]", "transpose_a=true"),
        ("f64[2, 3]", "f64[3, 2]"), ("bf16[2, 20]", "bf16[20, 3]"), ("i8[2, 9]", "i8[9, 2]", 'acc=i32'),
        ("u4[2, 3]", "u4[3, 2]"), ("bool[2, 3]", "bool[3, 2]"), ("bitset[2, 3]", "bitset[3, 2]"),
        ("f32[2, 9]", "i8[9, 3]", "b_scale=f32[3]"),
    )  # fmt: skip

    def infer(self) -> list[Type]:
        self.require_rank("a", 2)
        of_vector = "a matrix times a vector is op linear(vector, matrix)" if self.b.tensor.rank == 1 else ""
        self.require_rank("b", 2, hint=of_vector)
        self._require_dtypes()
        m, k = self._matrix(self.a, self.transpose_a)
        self.require_dim("b", -1 if self.transpose_b else -2, k)
        _, n = self._matrix(self.b, self.transpose_b)
        if self.b_scale is not None:
            self._require_scale(self.b_scale)
        return self.tensor(accumulated(self, self.a.dtype), [*self.broadcast("a", "b", inner=2), m, n])

    @staticmethod
    def _matrix(value: Value, transposed: bool) -> tuple[Dim, Dim]:
        rows, columns = value.shape[-2:]
        return (columns, rows) if transposed else (rows, columns)

    def _require_dtypes(self) -> None:
        a, b = self.a.dtype, self.b.dtype
        if self.b_scale is not None:
            self.require("b_scale", (f32,))
            if not a.is_float or b.kind not in ("int", "uint", "ternary") or b.bits > 8:
                raise OpError("op-dtype", f"b_scale goes with a float and 8-bit integers, not {a} and {b}", "b")
        elif a is not b and not narrower(a, b):
            raise OpError("op-dtype", f"matmul of {a} and {b}", "b", hint=made_equal(a, b, "b_scale=…"))

    def _require_scale(self, scale: Value) -> None:
        along_k = -1 if self.transpose_b else -2
        if scale.tensor.rank >= -along_k and scale.shape[along_k] != 1:
            raise OpError("shape-mismatch", f"{scale.type} is not one value along K", "b_scale")
        require_broadcast(self, "b_scale", self.b.shape)

    def operations(self) -> Dim:
        return 2 * self.result.tensor.size * self._matrix(self.a, self.transpose_a)[1]

    def product(self) -> Product | None:
        more = self.transpose_a or self.b_scale is not None or self.acc is not None
        if more or self.b.tensor.rank != 2 or self.b is self.a:
            return None
        axis = 0 if self.transpose_b else 1
        return Product(self.a, self.b, axis, None, lambda w, b: MatMul(self.a, w, transpose_b=not axis, span=self.span))

    def _oriented(self, a: Array, b: Array, b_scale: Array | None) -> tuple[Array, Array]:
        """a as [.., M, K] and b as [.., K, N], scaled."""
        if b_scale is not None:
            b = b.astype(np.float64) * b_scale
        a = a.swapaxes(-1, -2) if self.transpose_a else a
        return a, b.swapaxes(-1, -2) if self.transpose_b else b

    def reference(self, a: Array, b: Array, b_scale: Array | None = None) -> Array:
        a, b = self._oriented(a, b, b_scale)
        if quantized.in_groups(self.b):
            a = quantized.refused_rows(a)
        y = product(a, b, self.a.dtype)
        return y.astype(self.result.dtype.wide) if self.a.dtype.is_float else y

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        a, b = self._oriented(*[*inputs, None][:3])
        reach: Any = 0.0
        if self.b_scale is not None:  # sums are scaled, not b
            sums = np.matmul(np.abs(real(a)), np.abs(real(self._oriented(inputs[0], inputs[1], None)[1])))
            reach = np.where(np.isfinite(b).all(-2, keepdims=True), sums, np.inf)
        bound = product_bound(y, a, b, self.a.dtype, reach)
        return quantized.bound_as_computed(self, self.b, bound, real(a), real(b))

    def _args(self) -> KernelArgs:
        m, k = self._matrix(self.a, self.transpose_a)
        lead, scale = self.result.shape[:-2], self.b_scale
        a_steps, b_steps, scale_steps = (strides_of(value, len(lead), 2) for value in (self.a, self.b, scale))
        rows, inner = (-1, -2) if self.transpose_a else (-2, -1)
        columns = (-2, -1) if self.transpose_b else (-1, -2)
        return {
            "a": self.a, "b": self.b, "scale": scale, "y": Out(), "rank": len(lead), "shape": lead,
            "as": a_steps, "bs": b_steps, "M": m, "K": k, "N": self.result.shape[-1],
            "am": Stride(self.a, rows), "ak": Stride(self.a, inner),
            "bk": Stride(self.b, columns[1]), "bn": Stride(self.b, columns[0]),
            "ss": scale_steps, "sn": None if scale is None else self._scale_step(),
        }  # fmt: skip

    def _is_linear(self) -> bool:
        """One matrix of plain floats b for all rows of a."""
        return is_float(self) and self.b.tensor.rank == 2 and self.b_scale is None and not self.transpose_a

    def _of_bytes(self) -> bool:
        """One matrix of bytes with scales for all rows of a."""
        scaled = self.b_scale is not None and self.b.dtype in (i8, u8)
        return scaled and self.b.tensor.rank == 2 and not self.transpose_a

    def _types(self) -> tuple[DType, ...]:
        return self.a.dtype, product_dtype(self.b), self.a.dtype

    def _in_panels(self) -> KernelArgs:
        return {"x": self.a, "w": self.b, "y": Out(), **_rows(self.a, self.result.shape[-1])}

    def _bytes_in_panels(self) -> KernelArgs:
        where = _rows(self.a, self.result.shape[-1])
        given = {"a": self.a, "b": self.b, "scale": self.b_scale, "y": Out(), "sn": self._scale_step()}
        return given | {{"xs": "as", "ldx": "lda"}.get(k, k): part for k, part in where.items()}

    def _scale_step(self) -> Any:
        """From the scale of a column to that of the next; 0 where all have one."""
        scale, column = self.b_scale, -2 if self.transpose_b else -1
        if scale is None or -column > scale.tensor.rank or scale.shape[column] == 1:
            return 0
        return Stride(scale, column)

    def _cost(self, target: Target) -> float:
        if self.b_scale is not None:  # bytes that are widened where they lie: measured, without transpose_b
            return 4 * streamed(self.b, "")
        return streamed(self.b, "") * (1 + target.costs.staged if self.transpose_b else target.costs.strided)

    def _panels(self) -> Dim:
        """Sixteen columns of each of the matrices of the result."""
        return dims.product([*self.result.shape[:-2], dims.floor_div(self.result.shape[-1] + ROWS - 1, ROWS)])

    def _is_one_matrix(self) -> bool:
        """All rows of a are those of one matrix times b, where they lie without gaps."""
        return not self.transpose_a and all(size == 1 for size in self.b.shape[:-2])

    def _in_words(self) -> bool:
        """Rows of bytes, and columns that pay for being turned."""
        m, _ = self._matrix(self.a, self.transpose_a)
        rows = dims.product(self.a.shape[:-1]) if self._is_one_matrix() else m
        few = dims.maximum(rows) < FEW or dims.maximum(self.result.shape[-1]) < 2
        return self.a.dtype is i8 and self.result.dtype.bits <= 32 and not few

    def _word_args(self) -> KernelArgs:
        args = dict(self._args())
        dense = self.a.place is None or self.a.place.strides is None
        if dense and self._is_one_matrix():
            args |= {"rank": 0, "shape": (), "as": (), "bs": (), "M": dims.product(self.result.shape[:-1])}
        words = max(1, -(-dims.maximum(args["K"]) // 2))
        wide = max(LINE // ROWS, min(PLANES // (4 * words) // ROWS, -(-dims.maximum(args["N"]) // ROWS)))
        work = Scratch(4 * words * (ROWS * wide + WORD_ROWS + 1), each=True)
        del args["scale"], args["ss"], args["sn"]
        return args | {"work": work, "room": work.nbytes}

    def _word_units(self) -> Dim:
        """Some rows of some columns."""
        *lead, m, n = self.result.shape
        return dims.product([*lead, dims.floor_div(m + PART - 1, PART), dims.floor_div(n + RUN - 1, RUN)])

    def _tiles(self) -> Dim:
        """Rows of all matrices, of as many results as are summed at a time."""
        return _apart(self.result, INT_TILE)

    _any = {"a": 0, "b": 0, "b_scale": 0}
    _bytes = Kernel("matmul_panels", ("a", "b"), _bytes_in_panels, layouts={"a": 1, "b_scale": 0}, work=products,
                    units=quantized.streams, cost=lambda op, target: streamed(op.b, PANELS))  # fmt: skip
    kernels = (
        *quantized.in_panels("a", "b", _types, _in_panels,
                             lambda op: op._is_linear() and not op.transpose_b, COLUMNS),
        *quantized.in_panels("a", "b", _types, _in_panels,
                             lambda op: op._is_linear() and op.transpose_b, PANELS),
        replace(_bytes, fits=lambda op: op._of_bytes() and not op.transpose_b, takes={"b": COLUMNS}),
        replace(_bytes, fits=lambda op: op._of_bytes() and op.transpose_b, takes={"b": PANELS}),
        Kernel("matmul", ("a", "b"), _args, fits=is_float, layouts=_any, stored={"b": quantized.FLOATS}, cost=_cost,
               units=_panels, work=products),
        Kernel("matmul_words", ("a", "result"), _word_args, fits=_in_words, layouts=_any,
               cost=lambda op, target: 0.0 if target.hosted else math.inf,  # elsewhere is no room for words
               units=_word_units, work=products, phases=True),
        Kernel("matmul_bool", ("a",), _args, call="matmul", fits=lambda op: op.a.dtype.kind == "bool", layouts=_any),
        Kernel("matmul_int", ("a", "result"), _args, call="matmul",
               fits=lambda op: not is_float(op) and op.a.dtype.kind != "bool", layouts=_any,
               cost=lambda op, target: 1.0, units=_tiles, work=products),
    )  # fmt: skip


def _apart(result: Value, run: int) -> Dim:
    """Runs of the rows of a result that threads may store: one, where neighbouring rows share a byte."""
    *rows, n = result.shape
    shared = result.dtype.packed and not (isinstance(n, int) and n * result.dtype.bits % 8 == 0)
    return 1 if shared else dims.product([*rows, dims.floor_div(n + run - 1, run)])


def _rows(x: Value, n: Dim) -> KernelArgs:
    """Sizes of x[.., M, K] times [K, n]: leading axes without gaps are one axis of rows, else outer ones batches."""
    lead, k = x.shape[:-1], x.shape[-1]
    dense = x.place is None or x.place.strides is None
    split = 0 if dense else max(0, len(lead) - 1)
    step: Any = Stride(x, -2) if lead and not dense else k
    return {
        "rank": split, "shape": lead[:split], "xs": tuple(Stride(x, i) for i in range(split)),
        "M": dims.product(lead[split:]), "K": k, "N": n, "ldx": step,
    }  # fmt: skip


def strides_of(value: Value | None, rank: int, inner: int = 0) -> tuple[Dim | Stride, ...]:
    """Strides of a value's axes but for the last `inner`, aligned to the right of `rank`; 0 where it stretches."""
    if value is None:
        return ()
    own = max(0, value.tensor.rank - inner)
    return (*[0] * (rank - own), *(0 if value.shape[a] == 1 else Stride(value, a) for a in range(own)))


class Linear(Sums, name="linear"):
    """x times the transpose of w, plus b: a layer with weights as stored in checkpoints.

    x        [.., in]
    w        [out, in]; a float may be narrower than x's
    b        [out], x's dtype, or w's; for integers the result's is allowed too
    acc      wider integer dtype of the result
    result   [.., out] of x's dtype

    Integers wrap.  Floats: summed in f32 (f64 for f64), b added before the only rounding; error at most
    2·K·ε·Σ|x||w|.  In numerics `native` an f32 x is rounded to bf16 first where w is stored as bf16, once a
    row: error at most 2^-8·Σ|x||w| more.  Errors: sizes do not fit, other dtypes.  Source: PyTorch, `linear`.
    """

    examples = (
        ("f32[3, 17]", "f32[5, 17]"), ("f32[1, 64]", "f16[9, 64]", "b=f16[9]"), ("f32[70]", "bf16[4, 70]"),
        ("f32[2, 5, 8]", "f32[3, 8]", "b=f32[3]"), ("f16[2, 33]", "f16[6, 33]", "b=f16[6]"),
        ("f64[2, 3]", "f64[4, 3]"), ("i8[2, 9]", "i8[4, 9]", 'acc=i32, b=i32[4]'), ("i4[2, 9]", "i4[4, 9]"),
    )  # fmt: skip

    def infer(self) -> list[Type]:
        self.require_rank("x", 1)
        self.require_rank("w", 2, 2)
        x, w = self.x.dtype, self.w.dtype
        if x is not w and not narrower(x, w):
            hint = made_equal(x, w, "op matmul(…, transpose_b=true, b_scale=…)")
            raise OpError("op-dtype", f"linear of {x} and {w}", "w", hint=hint)
        self.require_dim("w", 1, self.x.shape[-1])
        to = accumulated(self, x)
        if self.b is not None:
            mine = self.b.dtype  # of what w was declared, if that is stored otherwise now
            self.require("b", {x, w, to, *([mine] if self.w.tensor.encoding and narrower(x, mine) else [])})
            self.require_shape("b", [self.w.shape[0]])
        return self.tensor(self.to or to, [*self.x.shape[:-1], self.w.shape[0]])

    def operations(self) -> Dim:
        return 2 * self.result.tensor.size * self.w.shape[1]

    def product(self) -> Product | None:
        if self.acc is not None or self.to is not None or self.w is self.x:
            return None
        return Product(self.x, self.w, 0, self.b, lambda w, b: Linear(self.x, w, b=b, span=self.span))

    def reference(self, x: Array, w: Array, b: Array | None = None, *by: Array | None) -> Array:
        y = product(quantized.refused_rows(x) if quantized.in_groups(self.w) else x, w.T, self.x.dtype)
        if b is not None:
            y = y + b.astype(y.dtype)
        return y.astype(self.result.dtype.wide) if self.x.dtype.is_float else self.scaled(y, *by)

    def tolerance(self, y: Array, x: Any, w: Any, b: Any = None, *by: Any) -> Array:
        if not is_float(self):
            return np.zeros(np.shape(y))
        rows, columns = np.atleast_2d(real(x)), real(w).T
        bound = product_bound(y, rows, columns, self.x.dtype)
        bound = quantized.bound_as_computed(self, self.w, bound, rows, columns).reshape(np.shape(y))
        if b is not None:
            bound = bound + epsilon(self.x.dtype) * (np.abs(real(b)) + np.abs(real(y)))
        return bound

    def _types(self) -> tuple[DType, ...]:
        return self.x.dtype, product_dtype(self.w), self.x.dtype if self.b is None else self.b.dtype

    def _args(self) -> KernelArgs:
        return {**self._in_panels(), "ldw": Stride(self.w, 0), **self.scaling()}

    def _in_words(self) -> bool:
        """Many rows of bytes."""
        rows = dims.maximum(dims.product(self.x.shape[:-1]))
        return self.x.dtype is i8 and self.result.dtype.bits <= 32 and rows >= MANY

    def _block(self) -> int:
        """Rows that are turned into words at a time."""
        words = max(1, -(-dims.maximum(self.x.shape[-1]) // 2))
        most, rows = PLANES // (4 * words) // ROWS, -(-dims.maximum(dims.product(self.x.shape[:-1])) // ROWS)
        return ROWS * max(1, min(most, rows))

    def _word_args(self) -> KernelArgs:
        words, block = -(-dims.maximum(self.x.shape[-1]) // 2), self._block()
        work = Scratch(4 * words * (block + ROWS + 1 + WORD_ROWS), each=True)
        sizes = {"M": dims.product(self.x.shape[:-1]), "K": self.x.shape[-1], "N": self.w.shape[0]}
        ldw = Stride(self.w, 0)
        return self.members(work=work, **sizes, ldw=ldw, rows=block, room=work.nbytes, **self.scaling())

    def _runs(self) -> Dim:
        """Rows, and runs of outputs of each."""
        return _apart(self.result, RUN)

    def _in_panels(self) -> KernelArgs:
        return self.members(**_rows(self.x, self.w.shape[0]))

    def _integer_types(self) -> tuple[DType, ...]:
        return self.x.dtype, self.result.dtype, self.result.dtype if self.b is None else self.b.dtype

    kernels = (
        *quantized.in_panels("x", "w", _types, _in_panels, is_float, PANELS),
        Kernel("linear", _types, _args, fits=is_float, layouts={"x": 1, "w": 1}, stored={"w": quantized.FLOATS},
               cost=lambda op, target: streamed(op.w, "") * (1 + target.costs.staged),
               units=lambda op: dims.floor_div(op.w.shape[0] + ROWS - 1, ROWS), work=products),
        *or_requantized(
            Kernel("linear_words", _integer_types, _word_args, fits=_in_words, layouts={"w": 1},
                   cost=lambda op, target: 0.0 if target.hosted else math.inf,  # elsewhere is no room for words
                   units=lambda op: dims.floor_div(op.w.shape[0] + PART - 1, PART), work=products, phases=True)),
        *or_requantized(
            Kernel("linear_int", _integer_types, _args, call="linear", fits=lambda op: not is_float(op),
                   layouts={"x": 1, "w": 1}, cost=lambda op, target: 1.0, units=_runs, work=products)),
    )  # fmt: skip
