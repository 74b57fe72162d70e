"""Attention over keys and values that lie in tables; `attn`, the seed language's, of a product."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic.dtypes import FLT, Array, DType, bf16, bool_, f16, f32, f64, i8, i64
from oic.ir import dims
from oic.ir.core import Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.index import at_least
from oic.ir.types import Type
from oic.kernels.kernel import Converted, Kernel, KernelArgs, Scratch
from oic.kernels.targets import NATIVE
from oic.operators.base import Operator, require_broadcast
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.expansion import Expansion
from oic.operators.matmul import MatMul, narrower, strides_of
from oic.operators.position import is_one, one_or_each
from oic.operators.settings import as_computed, require_number, require_sign
from oic.operators.shape import Reshape

ROWS = 128  # OIC_ATTENTION_ROWS: queries of one key head that go through the keys together,
TOGETHER = 48  # OIC_ATTENTION_TOGETHER: and of several, and of all spans that go side by side
KEYS = 64  # OIC_ATTENTION_KEYS: of a block
SPAN = 128  # OIC_ATTENTION_SPAN: of some blocks, which threads share where a head has few queries,
SPANS = 64  # so many of them at a time
BESIDE = 4  # OIC_ATTENTION_SPANS: spans whose values go side by side, where few queries see them
MARKS = 3  # numbers that are kept of a span and a row, beside its values
SHARED = 16  # OIC_ATTENTION_SHARED: queries of a key head, or fewer, for which threads share spans
STRIPS = 36  # OIC_ATTENTION_STRIPS: queries of a key head that do so in several strips,
LEAST = 32  # queries of a unit, at least, where threads share more of them
PACKED = 12  # OIC_ATTENTION_PACKED: queries of a key head for which keys and values of a block become panels
FOLDED = 8  # OIC_FOLDED: keys that fewer queries go through at a time
LANES = 16  # OIC_LANES
PAIRS = "attention_pairs"  # the kernel of the class `native`
FAR = 2048.0  # below the largest score, a weight is 0 in every type
EVERYTHING = 2**63 - 1  # window of the kernel that has none

Mask = NDArray[np.bool_]


class Attention(Operator, name="attention"):
    """softmax(scale·q·kᵀ + bias)·v over the keys that take part, one pass, heads grouped.

    q         [.., N, Hq, Dk] float
    k, v      [.., T, Hk, Dk], [.., T, Hk, Dv] of q's dtype; for a q of f32 also f16, bf16, f8, or i8
              with scales; head h of q uses head ⌊h·Hk/Hq⌋; slices of tables are read in place
    bias      f32, broadcast to [.., Hq, N, T], added to the scores
    mask      bool, broadcast likewise; false excludes a key
    kv_len    keys in use: an integer, or one for each leading index (i32 [..]); default T
    k_scale, v_scale   f32 [Hk], [T, Hk] or [.., T, Hk]: factors of i8 keys and values
    scale     default 1/√Dk
    softcap   c: a scaled score s becomes c·tanh(s/c), before bias and mask; default none
    causal    key j takes part for query i only if j ≤ i + (kv_len - N)
    window    and only if j > i + (kv_len - N) - window
    result    [.., N, Hq, Dv] of q's dtype; zeros where no key takes part

    Softmax in f32 (f64 for f64), rounded once; error at most (4 + 2·max|s|)·ε·max|v| with s summed
    in f32.  Where Σ|q·k·scale| + |bias| leaves the range of f32, a score may be infinite and its row NaN.
    A key that does not take part has no effect, NaN or not.  Scores are never held for all
    of T.  In the class `native`, where k and v are bf16, q·scale and the weights are rounded to bf16
    and multiplied in pairs, which adds (4 + 2·max Σ|q·k·scale|)·2⁻⁸·max|v|, and what it takes from subnormal
    numbers, which may be zeros: 2⁻¹²⁵·(max Σ|q·scale| + max Σ|k|)·max|v|.
    Source: OPS, Part B; Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.
    """

    q: Value
    k: Value
    v: Value
    bias: Value | None = None
    mask: Value | None = None
    kv_len: Value | None = None
    k_scale: Value | None = None
    v_scale: Value | None = None
    scale: float | int | Value | None = None
    softcap: float | int | None = None
    causal: bool = False
    window: int | Value | None = None

    allowed = FLT
    scalars = ("kv_len",)
    examples = (
        ("f32[3, 4, 8]", "f32[5, 2, 8]", "f32[5, 2, 6]", "causal=true"),
        ("f32[1, 2, 64]", "f16[70, 2, 64]", "f16[70, 2, 64]"),
        ("f32[2, 2, 4, 8]", "f32[2, 5, 1, 8]", "f32[2, 5, 1, 8]", "mask=bool[5]", "bias=f32[4, 1, 5]"),
        ("f32[2, 2, 8]", "i8[9, 1, 8]", "i8[9, 1, 8]", "k_scale=f32[1]", "v_scale=f32[9, 1]"),
        ("f16[4, 2, 8]", "f16[4, 2, 8]", "f16[4, 2, 8]", "causal=true, window=2"),
        ("f64[2, 1, 3]", "f64[4, 1, 3]", "f64[4, 1, 2]", "softcap=0.5"),
        ("f32[2, 4, 8]", "f16[5, 2, 8]", "f16[5, 2, 8]", "causal=true, softcap=2.0, bias=f32[5]"),
    )

    def infer(self) -> list[Type]:
        q, k, v = self.q, self.k, self.v
        self.require_rank("q", 3)
        rank = q.tensor.rank
        for where, value in (("k", k), ("v", v)):
            if value.tensor.rank != rank:
                raise OpError("shape-mismatch", f"ranks of {q.type} and {value.type} differ", where)
        self._require_pair()
        self.require_shape("k", [*q.shape[:-3], *k.shape[-3:-1], q.shape[-1]])
        require_heads(self, q.shape[-2], k.shape[-2])
        self.require_shape("v", [*k.shape[:-1], v.shape[-1]])
        self._require_scores("bias", f32)
        self._require_scores("mask", bool_)
        if not is_one(self, "kv_len"):
            self.require_shape("kv_len", q.shape[:-3])
        self._require_settings()
        return self.tensor(q.dtype, [*q.shape[:-1], v.shape[-1]])

    def _require_pair(self) -> None:
        """Refuse keys and values in a dtype that the queries do not go with."""
        self.require_same_dtype("k", "v")
        q, k = self.q.dtype, self.k.dtype
        for where, value in (("k_scale", self.k_scale), ("v_scale", self.v_scale)):
            if (value is not None) != (k is i8):
                raise OpError("op-dtype", f"{where} goes with i8 keys and values", where if value else "k")
            if value is not None:
                self._require_scale(where, value)
        good = q is f32 if k is i8 else (k is q or (q is f32 and k.narrow))
        if not good:
            fix = "keys and values have the dtype of the queries; f32 queries take narrower ones too"
            raise OpError("op-dtype", f"attention of {q} over {k}", "k", fix)

    def _require_scale(self, where: str, value: Value) -> None:
        """k_scale and v_scale have the shape of the trailing axes of k and v without the last."""
        self.require(where, (f32,))
        whole, rank = getattr(self, where[0]).shape[:-1], value.tensor.rank
        if rank not in (1, 2, len(whole)):
            raise OpError("shape-mismatch", f"{where} is [Hk], [T, Hk] or as k without its last axis", where)
        self.require_shape(where, whole[-rank:])

    def operations(self) -> Dim:
        """Two products and a sum of each for every key that takes part; a window is not counted."""
        *_, n, heads, size = self.q.shape
        pairs = n * self.k.shape[-3]
        if self.causal:
            pairs = pairs - dims.floor_div(n * n - n, 2)
        return 2 * dims.product(self.q.shape[:-3]) * heads * pairs * (size + self.v.shape[-1])

    def _require_scores(self, where: str, dtype: DType) -> None:
        """bias and mask broadcast to [.., Hq, N, T]."""
        if getattr(self, where) is None:
            return
        self.require(where, (dtype,))
        *lead, n, heads, _ = self.q.shape
        require_broadcast(self, where, (*lead, heads, n, self.k.shape[-3]))

    def _require_settings(self) -> None:
        require_number(self, "scale", self.q.dtype)
        require_number(self, "softcap", self.q.dtype)
        if self.softcap is not None and not 0 < self.softcap < math.inf:
            raise OpError("op-setting", f"softcap {self.softcap} is not positive", "softcap")
        require_sign(self, "window", i64, zero=False)

    def reference(self, q: Array, k: Array, v: Array, *optional: Any) -> Array:
        bias, mask, kv_len, k_scale, v_scale = [*optional, *[None] * 5][:5]
        part, keys, values = self._part(q, k, mask, kv_len), scaled(k, k_scale), scaled(v, v_scale)
        return attend(q.astype(np.float64), keys, values, self._scale(), bias, part, self._softcap())

    def _part(self, q: Array, k: Array, mask: Any, kv_len: Any) -> Mask:
        """Which key takes part for which query."""
        part = participating(q.shape[-3], k.shape[-3], q.shape[:-3], kv_len, self.causal, self.window)
        return part if mask is None else part & mask

    def _scale(self) -> float:
        """The factor of the scores as the kernel has it: a number of the type computed in."""
        usual = 1 / math.sqrt(max(1, dims.maximum(self.q.shape[-1])))
        return float(as_computed(usual if self.scale is None else self.scale, self.q.dtype))

    def _softcap(self) -> float:
        """The cap as the kernel has it; 0: none."""
        return float(as_computed(self.softcap or 0.0, self.q.dtype))

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        q, k, v, bias, mask, kv_len, k_scale, v_scale = [*inputs, *[None] * 8][:8]
        keys, values, scale = scaled(k, k_scale), scaled(v, v_scale), self._scale()
        added = None if bias is None else np.where(self._part(q, k, mask, kv_len), bias, -np.inf)
        return attention_bound(y, q, keys, values, added, scale, self.q.dtype, self.kernel == PAIRS)

    def _args(self, paired: bool = False) -> KernelArgs:
        q, k, v = self.q, self.k, self.v
        lead = q.shape[:-3]
        rank = len(lead)
        kv_len, ls, length = one_or_each(k.shape[-3] if self.kv_len is None else self.kv_len, rank)
        room = self.room(paired)
        scale = self.scale if isinstance(self.scale, Value) else self._scale()
        return self.members(
            kv_len=kv_len, work=Scratch(q.dtype.computed.nbytes(room), each=True), room=room,
            **self._parts(), rank=rank, shape=lead, N=q.shape[-3], keys=k.shape[-3], Hq=q.shape[-2],
            Hk=k.shape[-2], Dk=q.shape[-1], Dv=v.shape[-1],
            **{f"{n}s": strides_of(x, rank + 2, 1) for n, x in zip("qkv", (q, k, v))},
            bs=strides_of(self.bias, rank + 3), ms=strides_of(self.mask, rank + 3),
            kss=strides_of(self.k_scale, rank + 2), vss=strides_of(self.v_scale, rank + 2),
            ls=(0,) * rank if kv_len is None else ls, length=length, scale=Converted(scale, q.dtype.value),
            softcap=None if self.softcap is None else Converted(self._softcap(), q.dtype.value),
            causal=Converted(int(self.causal), "int"),
            window=Converted(EVERYTHING if self.window is None else self.window, "int64_t"),
        )  # fmt: skip

    def room(self, paired: bool = False) -> int:
        """Numbers of scratch of a unit: rows of queries, results twice, scores of a block; panels of keys and values.

        paired   two elements of queries and keys, and values of two keys, are one number
        """
        (queries, query, size), (keys, key, _) = (map(dims.maximum, x.shape[-3:]) for x in (self.q, self.k))
        width, dtype, masked = dims.maximum(self.v.shape[-1]), self.q.dtype, self.mask is not None
        mine = min(ROWS, queries * (query // max(1, key)))
        rows = max(mine, min(TOGETHER, key * mine))
        block = _padded(min(KEYS, keys))
        each = 2 if paired else 1
        k, v = _padded(-(-size // each)), _padded(width)
        same = self.k.dtype is dtype.computed  # computed with as they are stored
        in_registers = same or (dtype is not f64 and not paired and self.k.dtype in (f16, bf16, i8))
        widened = 0 if same else 4 * k
        if mine >= PACKED:
            panel = LANES * k + widened
        else:
            panel = 0 if in_registers else FOLDED * k
        as_they_lie = in_registers and (mine == 1 or not same or width % LANES == 0)
        if masked or mine >= PACKED or not as_they_lie:
            panel = max(panel, block // each * min(v, 4 * LANES))
        if mine >= STRIPS:
            panel = max(panel, block * k + max(block // each * v, widened))
        few = min(mine, 1 if same or paired else PACKED - 1)  # rows whose spans go side by side
        if masked or not (in_registers or paired):
            few = 0
        if width < 4 * LANES and not paired and (same or queries == 1):  # a query's narrow heads do
            few = 0
        beside = min(TOGETHER, key * few * min(BESIDE, -(-keys // SPAN)))
        scores = min(rows, TOGETHER)
        if size == FOLDED or not isinstance(self.q.shape[-1], int):  # rows go in lanes beside each other
            scores = -(-scores // 4) * 4
        return rows * (k + v) + max(rows, beside) * v + max(scores, beside) * block + panel

    def _parts(self) -> KernelArgs:
        """Room for what spans of the keys give, where threads share them."""
        spans = min(SPANS, -(-dims.maximum(self.k.shape[-3]) // SPAN))
        if self.workers == 1 or spans == 1:
            return {}
        queries, heads = dims.maximum(self.q.shape[-3]), dims.maximum(self.k.shape[-2])
        rows = heads * min(SHARED, queries * (dims.maximum(self.q.shape[-2]) // heads))
        numbers = (1 + spans) * rows * (_padded(dims.maximum(self.v.shape[-1])) + MARKS)
        return {"parts": Scratch(self.q.dtype.computed.nbytes(numbers)), "spans": spans}

    _layouts = {"q": 1, "k": 1, "v": 1, "bias": 0, "mask": 0, "kv_len": 0, "k_scale": 0, "v_scale": 0}

    def _units(self) -> Dim:
        """Key heads, spans of the keys, and blocks of the queries; none where it is not known how many share keys."""
        *lead, queries, heads, _ = self.q.shape
        keys = self.k.shape[-2]
        group = dims.quotient(heads, keys)
        rows = 0 if group is None else queries * group
        spans = dims.floor_div(self.k.shape[-3] + SPAN - 1, SPAN)
        return dims.product([*lead, keys, spans, dims.floor_div(rows + LEAST - 1, LEAST)])

    def _work(self) -> Dim:
        return dims.product([*self.q.shape[:-1], self.k.shape[-3], self.q.shape[-1] + self.v.shape[-1]])

    _plain = Kernel("attention", ("q", "k"), _args, layouts=_layouts, units=_units, work=_work, phases=True)
    kernels = (
        _plain,
        replace(_plain, name=PAIRS, args=lambda op: op._args(paired=True), fits=lambda op: op.k.dtype is bf16,
                needs=frozenset({NATIVE}), cost=lambda op, target: -1.0),  # less than that of others
    )  # fmt: skip


def _padded(n: int) -> int:
    """Rounded up to whole lanes."""
    return -(-n // LANES) * LANES


def require_heads(op: Operator, query: Dim, key: Dim, where: str = "q") -> None:
    """Refuse query heads that are no multiple of the key heads; both are known at build."""
    if not isinstance(query, int) or not isinstance(key, int):
        raise OpError("shape-mismatch", f"numbers of heads {query} and {key} are not known at build", where)
    if key == 0 or query % key:
        raise OpError("shape-mismatch", f"{query} query heads are no multiple of {key} key heads", where)


def scaled(x: Any, scale: Any) -> Array:
    """Keys or values in f64, multiplied by the scale of their head (and position)."""
    wide = np.asarray(x).astype(np.float64)
    return wide if scale is None else wide * np.asarray(scale).astype(np.float64)[..., None]


def participating(n: int, t: int, lead: tuple[int, ...], kv_len: Any, causal: bool, window: Any) -> Mask:
    """Which key takes part for which query: [.., 1, N, T], leading axes as kv_len has them."""
    length = np.asarray(t if kv_len is None else kv_len).astype(np.int64)
    length = length.reshape(()) if length.size == 1 and length.shape != lead else length
    length = length.reshape(*length.shape, 1, 1, 1)
    j, i = np.arange(t), np.arange(n)[:, None]
    part = np.broadcast_to(j < length, (*length.shape[:-2], n, t))
    if causal:
        part = part & (j <= i + (length - n))
    if window is not None:
        part = part & (i + (length - n) - j < int(window))
    return part


def attend(q: Array, k: Array, v: Array, scale: float, bias: Any, part: Mask, softcap: float = 0.0) -> Array:
    """The result of attention in f64.  q [.., N, Hq, Dk], k and v [.., T, Hk, D], part [.., Hq, N, T]."""
    s = products(q, k) * scale
    if softcap:
        s = softcap * np.tanh(s / softcap)
    if bias is not None:
        s = s + np.asarray(bias).astype(np.float64)
    part = np.broadcast_to(part, s.shape)
    s = np.where(part, s, -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    weight = np.where(part, np.exp(s - top), 0.0)
    weight = weight / weight.sum(-1, keepdims=True)
    values = np.moveaxis(np.repeat(v, q.shape[-2] // k.shape[-2], -2), -2, -3)
    y = _weighted(weight, values, part)
    y = np.where(part.any(-1, keepdims=True), y, 0.0)
    return np.moveaxis(y, -3, -2)


def products(q: Array, k: Array) -> Array:
    """q·kᵀ, [.., Hq, N, T], of q [.., N, Hq, Dk] and k [.., T, Hk, Dk]."""
    keys = np.repeat(k, q.shape[-2] // max(1, k.shape[-2]), -2)
    return np.matmul(np.moveaxis(q, -2, -3), np.moveaxis(keys, -3, -1))


def _weighted(weight: Array, values: Array, part: Mask) -> Array:
    """Σ weight·value over the keys that take part: what is not finite elsewhere has no effect."""
    finite = np.isfinite(values)
    total = np.matmul(weight, np.where(finite, values, 0.0))
    strange = np.where(finite, 0.0, values)
    for j in np.unique(np.nonzero(strange)[-2]):
        total += np.where(part[..., j, None], weight[..., j, None] * strange[..., None, j, :], 0.0)
    return total


def attention_bound(
    y: Array, q: Any, k: Any, v: Any, bias: Any, scale: float, dtype: DType, paired: bool = False
) -> Array:
    """(4 + 2·max|s|)·ε·max|v|, s bounded by Σ|q||k|; of products in pairs also what roundings to bf16 add.

    y [.., N, Hq, Dv]; bias -inf where a key does not take part.  Where it is so low that the weight is 0 whatever the
    others are, as models mask by the lowest number, it has no part in max|s|.  An infinite value whose weight is too
    small for a number gives infinity or NaN.
    """
    size, keys, group = np.abs(real(q)) * abs(scale), np.abs(real(k)), np.shape(q)[-2] // np.shape(k)[-2]
    count, least = np.shape(k)[-3], dtype.computed.smallest
    score = products(size, keys).max(-1, keepdims=True, initial=0.0)
    largest = score if bias is None else score + _felt(np.asarray(bias).astype(np.float64), score)
    score, largest = np.moveaxis(score, -3, -2), np.moveaxis(largest, -3, -2)  # of a query's head
    top = np.repeat(np.abs(real(v)).max((-3, -1), keepdims=True, initial=0.0), group, -2)
    sums = size.sum(-1, keepdims=True), keys.sum(-1).max(initial=0.0)
    bound = (4 + 2 * largest) * epsilon(dtype) * top
    bound = bound + 2 * least * (sums[1] + np.shape(q)[-1]) * top + 2**7 * count * least
    if paired:
        lost = sum(sums) * 2.0**-126  # of a score: what subnormal numbers have of it
        bound = bound + (4 + 2 * score + 2**9 * lost) * 2.0**-8 * top + count * 2.0**-125
    strange = np.repeat(np.isinf(v).any(-3, keepdims=True), group, -2) & ~np.isfinite(y)
    reach = np.maximum(np.maximum(largest, 2**7 * sums[0]), count * top)  # 2**7: keys of i8 before their scales
    return rounded(y, np.broadcast_to(bound, np.shape(y)), dtype, np.where(strange, np.inf, reach))


def _felt(bias: Array, score: Array) -> Array:
    """The largest magnitude of a bias in each row, but of those so far below another that their weights are 0.

    score  how large what they are added to may be
    """
    size = np.abs(real(bias))
    far = bias + size / 2 + 2 * score + FAR < bias.max(-1, keepdims=True, initial=-np.inf)
    return np.asarray(np.where(far, 0.0, size).max(-1, keepdims=True, initial=0.0))


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
