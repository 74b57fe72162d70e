"""What the operators mean that lowering makes of others, and how exact they are: apart from what these are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir import dims
from oic.operators.attention import Attn, attend, attention_bound
from oic.operators.base import Operator
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.math import sigmoid
from oic.operators.recurrent import Cell, GruCell, LstmCell


def reference(op: Operator, *arrays: Any) -> Any:
    """The meaning of any operator, as `Operator.reference` has it."""
    return REFERENCES[type(op)](op, *arrays) if type(op) in REFERENCES else op.reference(*arrays)


def tolerance(op: Operator, y: Array, *arrays: Any) -> Array | float:
    """How far a result may be from that, as `Operator.tolerance` has it."""
    return TOLERANCES[type(op)](op, y, *arrays) if type(op) in TOLERANCES else op.tolerance(y, *arrays)


# ---------------------------------------------------------------- attn


def _attn(op: Attn, *arrays: Array) -> Array:
    q, k, v = _operands(*arrays)
    y = attend(q, k, v, _scale(op), None, np.ones((1, 1, k.shape[0]), np.bool_))
    return y.reshape(y.shape[0], math.prod(y.shape[1:]))


def _operands(h: Any, k: Any, v: Any, w: Any) -> tuple[Array, Array, Array]:
    """q = h·w as [B, Hq, Dh], and k and v with their axis T, in f64."""
    k, v = (np.asarray(x).astype(np.float64) for x in (k, v))
    k, v = (x[None] if x.ndim == 2 else x for x in (k, v))
    q = np.asarray(h).astype(np.float64) @ np.asarray(w).astype(np.float64)
    return q.reshape(q.shape[0], np.shape(w)[1] // k.shape[-1], k.shape[-1]), k, v


def _scale(op: Attn) -> float:
    return float(op.h.dtype.wide.type(1 / math.sqrt(max(1, dims.maximum(op.k.shape[-1])))))


def _attn_bound(op: Attn, y: Array, *inputs: Any) -> Array:
    q, k, v = _operands(*inputs)
    h, w, dtype = real(inputs[0]), real(inputs[3]), op.h.dtype
    sums = (np.abs(h) @ np.abs(w)).max(-1, keepdims=True, initial=0.0)
    keys, top = np.abs(real(k)).sum(-1).max(initial=0.0), np.abs(real(v)).max(initial=0.0)
    error = h.shape[1] * (2 * epsilon(dtype) * sums + dtype.computed.smallest)
    moved = 2 * _scale(op) * error * keys * top
    flat = np.asarray(y).reshape(q.shape[0], q.shape[1], v.shape[-1])
    bound = attention_bound(flat, q, k, v, None, _scale(op), dtype).reshape(np.shape(y))
    return bound + rounded(y, moved, dtype, np.maximum(sums, keys))


# ---------------------------------------------------------------- cells


def _gates(op: Cell, product: Array) -> list[Array]:
    """The parts of [.., gates·U], in PyTorch's order."""
    parts = np.split(product, len(op.gates), -1)
    return [parts[op.order.index(g)] for g in op.gates]


def _reach(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Array, Array]:
    """Largest error of a gate's argument in units of ε, and its largest magnitude, for each row: [.., 1]."""
    wx, wh = np.abs(real(x)) @ np.abs(real(w_ih)).T, np.abs(real(h)) @ np.abs(real(w_hh)).T
    count = 2 * (np.shape(x)[-1] + np.shape(h)[-1]) + 4
    total: Array = wx + wh + np.abs(real(b_ih)) + np.abs(real(b_hh))
    largest = total.max(-1, keepdims=True, initial=0.0)
    return count * largest, largest


def _gru(op: GruCell, *arrays: Array) -> Array:
    x, h, w_ih, w_hh, b_ih, b_hh = (a.astype(np.float64) for a in arrays)
    xr, xz, xn = _gates(op, x @ w_ih.T + b_ih)
    hr, hz, hn = _gates(op, h @ w_hh.T + b_hh)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    inner = r * hn if op.reset_after else (r * h) @ _gates(op, w_hh.T)[2] + _gates(op, b_hh)[2]
    n = np.tanh(xn + inner)
    return (1 - z) * n + z * h


def _gru_bound(op: GruCell, y: Array, *inputs: Any) -> Array:
    h = np.abs(real(inputs[1]))
    units, largest = _reach(*inputs)
    units = units * (2 + h.max(-1, keepdims=True, initial=0.0))
    return rounded(y, (units + 16) * (1 + h) * epsilon(op.x.dtype), op.x.dtype, largest)


def _lstm(op: LstmCell, *arrays: Array) -> list[Array]:
    x, h, c, w_ih, w_hh, b_ih, b_hh = (a.astype(np.float64) for a in arrays)
    i, f, g, o = _gates(op, x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)
    new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(new), new]


def _lstm_bound(op: LstmCell, y: Array, *inputs: Any) -> Array:
    x, h, c, *rest = inputs
    units, largest = _reach(x, h, *rest)
    return rounded(y, (units + 16) * 2 * (1 + np.abs(real(c))) * epsilon(op.x.dtype), op.x.dtype, largest)


REFERENCES: dict[type[Operator], Any] = {Attn: _attn, GruCell: _gru, LstmCell: _lstm}
TOLERANCES: dict[type[Operator], Any] = {Attn: _attn_bound, GruCell: _gru_bound, LstmCell: _lstm_bound}
