"""Cells of recurrent networks: one step of a GRU or an LSTM."""

from __future__ import annotations

from typing import Any

import numpy as np

from oic import dtypes
from oic.dtypes import Array
from oic.ir import dims
from oic.ir.core import OpError, Value
from oic.ir.dims import Dim
from oic.ir.types import TensorType, Type
from oic.kernels.kernel import Converted, Kernel, Members, Out, Scratch
from oic.operators.base import Operator
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.math import sigmoid


def _sizes(x: Value, h: Value, numbers: int) -> Members:
    """Sizes of a step, and working memory of so many numbers a unit."""
    rows, units = dims.product(x.shape[:-1]), h.shape[-1]
    work = Scratch(numbers * dims.maximum(units) * (8 if x.dtype.bits == 64 else 4), x.dtype.value)
    return {"work": work, "rows": rows, "I": x.shape[-1], "U": units}


class Cell(Operator):
    """What the two cells share."""

    gates = ""  # letters of `order`, in PyTorch's order
    order: str

    def _require_cell(self, states: tuple[str, ...]) -> None:
        """Check dtypes, ranks, sizes and `order`."""
        self.require("x", dtypes.FLT)
        parts: dict[str, Value] = {n: getattr(self, n) for n in self.fields if self.fields[n].kind == "operand"}
        for name in parts:
            self.require_same_dtype("x", name)
        if sorted(self.order) != sorted(self.gates):
            raise OpError("op-setting", f'order "{self.order}" is not an order of "{self.gates}"', "order")
        self.require_rank("x", 1)
        rank, units, count = parts["x"].tensor.rank, parts["h"].shape[-1:], len(self.gates)
        for name in states:
            self.require_rank(name, rank, rank)
            for axis in range(rank - 1):
                self.require_dim(name, axis, parts["x"].shape[axis])
            self.require_dim(name, -1, units[0])
        for name, inner in (("w_ih", parts["x"].shape[-1]), ("w_hh", units[0])):
            self.require_rank(name, 2, 2)
            self.require_dim(name, 0, count * units[0])
            self.require_dim(name, 1, inner)
        for name in ("b_ih", "b_hh"):
            self.require_rank(name, 1, 1)
            self.require_dim(name, 0, count * units[0])

    def operations(self) -> Dim:
        """Of the two products."""
        x, h = self.operands[:2]
        inputs = dims.product(x.shape)
        rows = dims.product(h.shape[:-1])
        return 2 * len(self.gates) * h.shape[-1] * (inputs + rows * h.shape[-1])

    def _gates(self, product: Array) -> list[Array]:
        """The parts of [.., gates·U], in PyTorch's order."""
        parts = np.split(product, len(self.gates), -1)
        return [parts[self.order.index(g)] for g in self.gates]

    def _places(self) -> tuple[int, ...]:
        return tuple(self.order.index(g) for g in self.gates)

    def _reach(self, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Array:
        """Largest error of a gate's argument in units of ε, for each row: [.., 1]."""
        wx, wh = np.abs(real(x)) @ np.abs(real(w_ih)).T, np.abs(real(h)) @ np.abs(real(w_hh)).T
        count = 2 * (np.shape(x)[-1] + np.shape(h)[-1]) + 4
        total: Array = wx + wh + np.abs(real(b_ih)) + np.abs(real(b_hh))
        return count * total.max(-1, keepdims=True, initial=0.0)


class GruCell(Cell, name="gru_cell"):
    """One step of a gated recurrent unit.

    x            [.., I] float
    h            [.., U]
    w_ih, w_hh   [3U, I], [3U, U]: the gates r, z, n one after another
    b_ih, b_hh   [3U]
    order        of the gates in weights and biases
    reset_after  n = tanh(Wx + b_ih + r·(Uh + b_hh)); else n = tanh(Wx + b_ih + U(r·h) + b_hh)
    result       (1 - z)·n + z·h, the type of h

    In f32 (f64 for f64), rounded once; error at most (1 + |h|)·(16 + (2 + max|h|)·g)·ε, g being twice
    the number of products of a gate times the largest Σ|w||x| of one.
    Source: PyTorch, `GRUCell`; Keras, `GRU`, reset_after.
    """

    x: Value
    h: Value
    w_ih: Value
    w_hh: Value
    b_ih: Value
    b_hh: Value
    order: str = "rzn"
    reset_after: bool = True

    gates = "rzn"
    examples = (
        ("f32[2, 5]", "f32[2, 4]", "f32[12, 5]", "f32[12, 4]", "f32[12]", "f32[12]"),
        ("f16[5]", "f16[4]", "f16[12, 5]", "f16[12, 4]", "f16[12]", "f16[12]", 'order="zrn", reset_after=false'),
    )

    def infer(self) -> list[Type]:
        self._require_cell(("h",))
        return [self.h.type]

    def reference(self, x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array) -> Array:
        x, h, w_ih, w_hh, b_ih, b_hh = (a.astype(np.float64) for a in (x, h, w_ih, w_hh, b_ih, b_hh))
        with np.errstate(all="ignore"):
            xr, xz, xn = self._gates(x @ w_ih.T + b_ih)
            hr, hz, hn = self._gates(h @ w_hh.T + b_hh)
            r, z = sigmoid(xr + hr), sigmoid(xz + hz)
            if not self.reset_after:
                place = self._places()[2]
                units = h.shape[-1]
                rows = slice(place * units, (place + 1) * units)
                n = np.tanh(xn + (r * h) @ w_hh[rows].T + b_hh[rows])
            else:
                n = np.tanh(xn + r * hn)
            return (1 - z) * n + z * h

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        h = np.abs(real(inputs[1]))
        reach = self._reach(*inputs) * (2 + h.max(-1, keepdims=True, initial=0.0))
        return rounded(y, (reach + 16) * (1 + h) * epsilon(self.x.dtype), self.x.dtype)

    def _args(self) -> Members:
        weights = {n: getattr(self, n) for n in ("w_ih", "w_hh", "b_ih", "b_hh")}
        given = {"x": self.x, "h": self.h, **weights, "y": Out(), **_sizes(self.x, self.h, 7)}
        return {**given, **dict(zip("rzn", self._places())), "reset_after": Converted(int(self.reset_after), "int")}

    kernels = (Kernel("gru_cell", ("x",), _args, inplace=("h",)),)


class LstmCell(Cell, name="lstm_cell"):
    """One step of a long short-term memory.

    x            [.., I] float
    h, c         [.., U]
    w_ih, w_hh   [4U, I], [4U, U]: the gates i, f, g, o in `order`
    b_ih, b_hh   [4U]
    order        of the gates in weights and biases
    results      h' = σ(o)·tanh(c') and c' = σ(f)·c + σ(i)·tanh(g), the type of h

    In f32 (f64 for f64), each rounded once; h' is made of c' before its rounding; error at most
    2·(1 + |c|)·(16 + g)·ε, g as in gru_cell.
    Source: PyTorch, `LSTMCell`.
    """

    x: Value
    h: Value
    c_: Value
    w_ih: Value
    w_hh: Value
    b_ih: Value
    b_hh: Value
    order: str = "ifgo"

    gates = "ifgo"
    renamed = {"c": "c_"}
    examples = (
        ("f32[2, 5]", "f32[2, 4]", "f32[2, 4]", "f32[16, 5]", "f32[16, 4]", "f32[16]", "f32[16]"),
        ("f16[5]", "f16[4]", "f16[4]", "f16[16, 5]", "f16[16, 4]", "f16[16]", "f16[16]", 'order="iofg"'),
    )

    def infer(self) -> list[Type]:
        self._require_cell(("h", "c_"))
        return [TensorType(self.h.dtype, self.h.shape)] * 2

    def reference(self, *arrays: Array) -> list[Array]:
        x, h, c, w_ih, w_hh, b_ih, b_hh = (a.astype(np.float64) for a in arrays)
        with np.errstate(all="ignore"):
            i, f, g, o = self._gates(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)
            new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            return [sigmoid(o) * np.tanh(new), new]

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        x, h, c, *rest = inputs
        bound = (self._reach(x, h, *rest) + 16) * 2 * (1 + np.abs(real(c))) * epsilon(self.x.dtype)
        return rounded(y, bound, self.x.dtype)

    def _args(self) -> Members:
        weights = {n: getattr(self, n) for n in ("w_ih", "w_hh", "b_ih", "b_hh")}
        given = {"x": self.x, "h": self.h, "c": self.c_, **weights, "y": Out(0), "d": Out(1)}
        return {**given, **_sizes(self.x, self.h, 4), **dict(zip("ifgo", self._places()))}

    kernels = (Kernel("lstm_cell", ("x",), _args, inplace=("h", "c_")),)
