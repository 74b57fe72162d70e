"""Cells of recurrent networks: one step of a GRU or an LSTM."""

from __future__ import annotations

from typing import ClassVar

from oic.dtypes import FLT
from oic.ir.core import Op, OpError, Value
from oic.ir.state import Splat
from oic.ir.types import TensorType, Type
from oic.operators.base import Operator, positional
from oic.operators.elementwise import Add, Mul, Sub
from oic.operators.expansion import Expansion
from oic.operators.math import Sigmoid, Tanh
from oic.operators.matmul import Linear
from oic.operators.shape import Slice


class Cell(Operator):
    """What the two cells share.

    A cell is computed as products and elementwise operators (`expanded`), in f32 (f64 for f64), so that its weights
    are packed, narrowed and divided like those of any product, and its gates are one pass over the units.
    """

    allowed = FLT
    gates = ""  # letters of `order`, in PyTorch's order
    states: ClassVar[tuple[str, ...]]  # what a step takes and gives anew
    x: Value
    h: Value
    order: str

    def infer(self) -> list[Type]:
        self.require_same_dtype(*positional(type(self)))
        if sorted(self.order) != sorted(self.gates):
            raise OpError("op-setting", f'order "{self.order}" is not an order of "{self.gates}"', "order")
        self.require_rank("x", 1)
        self.require_rank("h", self.x.tensor.rank, self.x.tensor.rank)
        *lead, inputs = self.x.shape
        units = self.h.shape[-1]
        rows = len(self.gates) * units
        shapes = {"w_ih": (rows, inputs), "w_hh": (rows, units), "b_ih": (rows,), "b_hh": (rows,)}
        for name, shape in {**dict.fromkeys(self.states, (*lead, units)), **shapes}.items():
            self.require_shape(name, shape)
        return [TensorType(self.h.dtype, self.h.shape)] * len(self.states)

    def _part(self, e: Expansion, of: Value, letter: str, axis: int = -1) -> Value:
        """What belongs to a gate, of an array with the gates along an axis."""
        place, units = self.order.index(letter), self.h.shape[-1]
        return e.add(Slice(of, axis, place * units, (place + 1) * units))


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
    Order: the products are those of `linear`, biases included, then (1 - z)·n + z·h as written.
    Source: PyTorch, `GRUCell`; Keras, `GRU`, reset_after.
    """

    w_ih: Value
    w_hh: Value
    b_ih: Value
    b_hh: Value
    order: str = "rzn"
    reset_after: bool = True

    gates = "rzn"
    states = ("h",)
    examples = (
        ("f32[2, 5]", "f32[2, 4]", "f32[12, 5]", "f32[12, 4]", "f32[12]", "f32[12]"),
        ("f16[5]", "f16[4]", "f16[12, 5]", "f16[12, 4]", "f16[12]", "f16[12]", 'order="zrn", reset_after=false'),
    )

    def expanded(self) -> tuple[list[Op], list[Value]]:
        e, wide = Expansion(self), self.x.dtype.computed
        x, h = e.cast(self.x, wide), e.cast(self.h, wide)
        xs, hs = e.add(Linear(x, self.w_ih, self.b_ih)), e.add(Linear(h, self.w_hh, self.b_hh))
        r, z = (e.add(Sigmoid(e.add(Add(self._part(e, xs, g), self._part(e, hs, g))))) for g in "rz")
        if self.reset_after:
            inner = e.add(Mul(r, self._part(e, hs, "n")))
        else:
            weights, bias = self._part(e, self.w_hh, "n", 0), self._part(e, self.b_hh, "n")
            inner = e.add(Linear(e.add(Mul(r, h)), weights, bias))
        n = e.add(Tanh(e.add(Add(self._part(e, xs, "n"), inner))))
        one = e.add(Splat(1.0, TensorType(h.dtype, ())))
        y = e.add(Add(e.add(Mul(e.add(Sub(one, z)), n)), e.add(Mul(z, h))))
        return e.ops, [e.cast(y, self.h.dtype)]


class LstmCell(Cell, name="lstm_cell"):
    """One step of a long short-term memory.

    x            [.., I] float
    h, c         [.., U]
    w_ih, w_hh   [4U, I], [4U, U]: the gates i, f, g, o in `order`
    b_ih, b_hh   [4U]
    order        of the gates in weights and biases
    results      h' = σ(o)·tanh(c') and c' = σ(f)·c + σ(i)·tanh(g), the type of h

    In f32 (f64 for f64), each rounded once; h' is made of c' before its rounding; error at most
    2·(1 + |c|)·(16 + g)·ε, g as in gru_cell.  Order: as in gru_cell.
    Source: PyTorch, `LSTMCell`.
    """

    c_: Value
    w_ih: Value
    w_hh: Value
    b_ih: Value
    b_hh: Value
    order: str = "ifgo"

    gates = "ifgo"
    states = ("h", "c_")
    renamed = {"c": "c_"}
    examples = (
        ("f32[2, 5]", "f32[2, 4]", "f32[2, 4]", "f32[16, 5]", "f32[16, 4]", "f32[16]", "f32[16]"),
        ("f16[5]", "f16[4]", "f16[4]", "f16[16, 5]", "f16[16, 4]", "f16[16]", "f16[16]", 'order="iofg"'),
    )

    def expanded(self) -> tuple[list[Op], list[Value]]:
        e, wide = Expansion(self), self.x.dtype.computed
        x, h, c = (e.cast(value, wide) for value in (self.x, self.h, self.c_))
        xs, hs = e.add(Linear(x, self.w_ih, self.b_ih)), e.add(Linear(h, self.w_hh, self.b_hh))
        i, f, g, o = (e.add(Add(self._part(e, xs, k), self._part(e, hs, k))) for k in "ifgo")
        kept = e.add(Mul(e.add(Sigmoid(f)), c))
        cell = e.add(Add(kept, e.add(Mul(e.add(Sigmoid(i)), e.add(Tanh(g))))))
        y = e.add(Mul(e.add(Sigmoid(o)), e.add(Tanh(cell))))
        return e.ops, [e.cast(part, self.h.dtype) for part in (y, cell)]
