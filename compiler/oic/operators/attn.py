"""The seed language's attention, `attn`: a product, and `attention` over keys and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oic.dtypes import FLT, Array, f64
from oic.ir import dims
from oic.ir.core import Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.index import at_least
from oic.ir.types import Type
from oic.operators.attention import Attention, attend, attention_bound, require_heads
from oic.operators.base import Operator
from oic.operators.bounds import epsilon, real
from oic.operators.expansion import Expansion
from oic.operators.matmul import MatMul, narrower
from oic.operators.shape import Reshape


class Attn(Operator, name="attn"):
    """Attention of h·w over keys and values: the operator of the persistent-memory page.

    h        [B, D] float
    k, v     [Hk, Dh] (one key) or [T, Hk, Dh] float; their dtype may differ from h's
    w        [D, Hq·Dh], h's dtype or a narrower float
    result   [B, Hq·Dv] of h's dtype

    h·w is summed and kept in f32 (f64 for f64) and attends to every key with scale 1/√Dh; rounded
    once.  The error bound is attention's, and 2/√Dh·Σ|k|·max|v| times matmul's of h·w.
    Source: OpenInfer, persistent memory, `attn`; OPS, Part B.
    """

    h: Value
    k: Value
    v: Value
    w: Value

    allowed = FLT
    examples = (
        ("f32[1, 8]", "f16[5, 2, 4]", "f16[5, 2, 4]", "f32[8, 8]"),
        ("f32[3, 6]", "f32[1, 4]", "f32[1, 4]", "f32[6, 8]"),
        ("f16[2, 8]", "f32[3, 1, 4]", "f32[3, 1, 4]", "f16[8, 4]"),
    )

    def infer(self) -> list[Type]:
        self.require_rank("h", 2, 2)
        self.require_rank("w", 2, 2)
        self.require_rank("k", 2, 3)
        self.require_rank("v", self.k.tensor.rank, self.k.tensor.rank)
        self.require("k", self.allowed)
        self.require_same_dtype("k", "v")
        if not narrower(self.h.dtype, self.w.dtype):
            raise OpError("op-dtype", f"attn of {self.h.dtype} with weights of {self.w.dtype}", "w")
        if self.k.dtype is f64 and self.h.dtype is not f64:
            raise OpError("op-dtype", "keys in f64 need h in f64", "k")
        self.require_dim("w", 0, self.h.shape[1])
        self.require_shape("v", [*self.k.shape[:-1], self.v.shape[-1]])
        heads = self._heads()
        require_heads(self, heads, self.k.shape[-2], "w")
        return self.tensor(self.h.dtype, [self.h.shape[0], heads * self.v.shape[-1]])

    def checks(self) -> list[Op]:
        """A head may have no elements at run time."""
        return at_least(1, self.k.shape[-1])

    def _heads(self) -> Dim:
        heads = dims.quotient(self.w.shape[1], self.k.shape[-1])
        if heads is None:
            message = f"{self.w.type} is not a whole number of heads of {self.k.shape[-1]}"
            raise OpError("shape-mismatch", message, "w")
        return heads

    def expanded(self) -> tuple[list[Op], list[Value]]:
        e, wide = Expansion(self), self.h.dtype.computed
        rows, heads = self.h.shape[0], self._heads()
        k, v = (e.cast(x, f64) if wide is f64 else x for x in (self.k, self.v))
        if k.tensor.rank == 2:
            k, v = (e.add(Reshape(x, [1, *x.shape])) for x in (k, v))
        product = e.add(MatMul(e.cast(self.h, wide), self.w))
        q = e.add(Reshape(product, [rows, heads, k.shape[-1]]))
        y = e.add(Reshape(e.add(Attention(q, k, v)), [rows, heads * v.shape[-1]]))
        return e.ops, [e.cast(y, self.h.dtype)]

    def reference(self, h: Array, k: Array, v: Array, w: Array) -> Array:
        q, k, v = self._operands(h, k, v, w)
        y = attend(q, k, v, self._scale(), None, np.ones((1, 1, k.shape[0]), np.bool_))
        return y.reshape(y.shape[0], math.prod(y.shape[1:]))

    def _operands(self, h: Any, k: Any, v: Any, w: Any) -> tuple[Array, Array, Array]:
        """q = h·w as [B, Hq, Dh], and k and v with their axis T, in f64."""
        k, v = (np.asarray(x).astype(np.float64) for x in (k, v))
        k, v = (x[None] if x.ndim == 2 else x for x in (k, v))
        q = np.asarray(h).astype(np.float64) @ np.asarray(w).astype(np.float64)
        return q.reshape(q.shape[0], np.shape(w)[1] // k.shape[-1], k.shape[-1]), k, v

    def _scale(self) -> float:
        return float(self.h.dtype.wide.type(1 / math.sqrt(max(1, dims.maximum(self.k.shape[-1])))))

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        q, k, v = self._operands(*inputs)
        h, w = real(inputs[0]), real(inputs[3])
        error = 2 * h.shape[1] * epsilon(self.h.dtype) * (np.abs(h) @ np.abs(w)).max(initial=0.0)
        moved = 2 * self._scale() * error * np.abs(k).sum(-1).max(initial=0.0) * np.abs(v).max(initial=0.0)
        flat = np.asarray(y).reshape(q.shape[0], q.shape[1], v.shape[-1])
        return attention_bound(flat, q, k, v, None, self._scale(), self.h.dtype).reshape(np.shape(y)) + moved
