"""What OPS says of every operator, transcribed: element types, settings, error bounds.

The operators' classes say the same in their own way; tests hold the two against each other, so
that neither changes alone.  An operator that is not here is tested as its class declares it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic import dtypes
from oic.dtypes import ALL, FLT, INT, NUM, SINT, WHOLE, DType
from oic.operators.base import Operator, by_name, in_source, settings
from oic.operators.bounds import epsilon, last_place, real

F64 = NDArray[np.float64]
BOOL, BITSET = dtypes.bool_, dtypes.bitset
EVERY = frozenset(ALL.values())
DIVIDED = WHOLE | {dtypes.i4, dtypes.u4}
SMALL = frozenset(d for d in INT if d.bits <= 32)
SHIFTED = WHOLE | {dtypes.i2, dtypes.i4, dtypes.u2, dtypes.u4}

# Element types of the first operand of its own type (of `where`: a; of `gather`: the table).
# Part B is "FLT unless stated"; what only moves elements takes every type.
ACCEPTED: dict[str, frozenset[DType]] = {
    **dict.fromkeys(("add", "mul"), NUM | {BOOL, BITSET}),
    "sub": NUM,
    "div": FLT | DIVIDED,
    **dict.fromkeys(("floor_div", "rem"), DIVIDED),
    "fma": FLT,
    **dict.fromkeys(("neg", "abs", "sign"), FLT | SINT),
    "recip": FLT,
    "relu": FLT | (SINT - {dtypes.i1, dtypes.i2}),
    **dict.fromkeys(("min", "max", "clamp"), NUM),
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), FLT),
    **dict.fromkeys(("and", "or", "xor", "not"), INT | {BOOL}),
    **dict.fromkeys(("shl", "shr", "popcount"), SHIFTED),
    **dict.fromkeys(("eq", "ne"), NUM | {BOOL}),
    **dict.fromkeys(("lt", "le", "gt", "ge"), NUM),
    "filter": NUM | {BOOL},
    **dict.fromkeys(("is_finite", "is_nan", "is_inf"), FLT),
    "is_neg": NUM,
    **dict.fromkeys(("sum_axis", "mean_axis", "prod_axis", "max_axis", "min_axis"), NUM),
    **dict.fromkeys(("argmax_axis", "argmin_axis"), NUM),
    "matmul": NUM | {BOOL, BITSET},
    "fill": NUM | {BOOL, BITSET},
    "cast": NUM | {BOOL},
    **dict.fromkeys(
        ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "erf", "silu", "softplus"), FLT
    ),
    **dict.fromkeys(("gelu", "pow", "cumsum"), FLT),
    "where": NUM | {BOOL, BITSET},
    **dict.fromkeys(("reshape", "transpose", "concat", "split", "slice", "pad"), EVERY),
    **dict.fromkeys(("broadcast_to", "repeat", "flip", "gather"), EVERY),
    "iota": frozenset({dtypes.i32}),
    "linear": NUM,
    **dict.fromkeys(("layer_norm", "rms_norm", "batch_norm", "softmax", "log_softmax"), FLT),
    **dict.fromkeys(("attention", "attn", "rope", "relative_position_bias"), FLT),
    **dict.fromkeys(("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"), NUM),
    **dict.fromkeys(("max_pool", "avg_pool", "gru_cell", "lstm_cell", "top_k", "sample", "quantize"), FLT),
    "dequantize": SMALL,
    "requantize": frozenset({dtypes.i32}),
}


def accepted_by(cls: type[Operator]) -> frozenset[DType]:
    """What OPS says; of an operator that is not transcribed here, what its class declares."""
    return ACCEPTED.get(cls.name) or cls.allowed


CONVOLVED = ("b", "stride", "padding", "dilation", "groups", "acc")

# Settings and optional operands by name, in the order of OPS.
SETTINGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "mul", "sub", "abs"), ("acc",)),
    **dict.fromkeys(("div", "floor_div", "recip"), ("div_by_zero_mask",)),
    "relu": ("alpha", "clamp_max"),
    "clamp": ("min", "max"),
    **dict.fromkeys(("shl", "shr"), ("bits",)),
    **dict.fromkeys(("sum_axis", "mean_axis", "prod_axis"), ("axes", "keepdims", "acc")),
    **dict.fromkeys(("max_axis", "min_axis"), ("axes", "keepdims")),
    **dict.fromkeys(("argmax_axis", "argmin_axis"), ("axis", "keepdims", "select_first")),
    "matmul": ("acc", "transpose_a", "transpose_b", "b_scale"),
    "fill": ("value",),
    "cast": ("to", "rounding_mode", "saturate"),
    "gelu": ("approx",),
    "reshape": ("shape",),
    "transpose": ("perm",),
    "concat": ("axis",),
    "split": ("axis", "sizes"),
    "slice": ("axis", "start", "end", "step"),
    "pad": ("before", "after", "value", "mode"),
    "broadcast_to": ("shape",),
    "repeat": ("times", "axis"),
    "flip": ("axes",),
    "gather": ("axis", "to"),
    "iota": ("shape", "axis", "start"),
    "cumsum": ("axis", "exclusive"),
    "linear": ("b", "acc"),
    "layer_norm": ("beta", "eps", "axes"),
    "rms_norm": ("eps",),
    "batch_norm": ("eps",),
    **dict.fromkeys(("softmax", "log_softmax"), ("axis",)),
    "attention": ("bias", "mask", "kv_len", "k_scale", "v_scale", "scale", "softcap", "causal", "window"),
    "rope": ("freqs", "pos", "base", "style", "dims"),
    **dict.fromkeys(("conv1d", "conv2d"), CONVOLVED),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d"), (*CONVOLVED, "output_padding")),
    "max_pool": ("kernel", "stride", "padding"),
    "avg_pool": ("kernel", "stride", "padding", "count_include_pad"),
    "gru_cell": ("order", "reset_after"),
    "lstm_cell": ("order",),
    "top_k": ("k", "axis"),
    "sample": ("temperature", "top_k", "top_p"),
    "quantize": ("zero_point", "to", "axis"),
    "dequantize": ("zero_point", "to", "axis"),
    "requantize": ("to", "zero_point", "rounding"),
    "relative_position_bias": ("q_start", "n", "t", "bidirectional", "max_distance"),
}


def settings_by(cls: type[Operator]) -> set[str]:
    """What OPS says; of an operator that is not transcribed here, what its class declares."""
    return set(SETTINGS.get(cls.name, ()) if cls.name in ACCEPTED else declared(cls))


def declared(cls: type[Operator]) -> set[str]:
    """Settings and optional operands of a class, by their names in source."""
    return {*settings(cls), *(in_source(cls, s) for s in by_name(cls))}


# ---------------------------------------------------------------- bounds

Bound = Callable[[Any, F64, list[Any]], F64]  # operator, its f64 value, its operands


def _ulps(op: Any, y: F64, inputs: list[Any]) -> F64:
    """2 units in the last place of the type computed in."""
    return 2 * last_place(y, _computed(op))


def _gelu(op: Any, y: F64, inputs: list[Any]) -> F64:
    return 2 * epsilon(_computed(op)) * np.abs(real(inputs[0]))


def _products(op: Any, y: F64, inputs: list[Any]) -> F64:
    """2·K·ε·Σ|a||b|."""
    a, b = real(inputs[0]), real(inputs[1])
    if op.name == "linear":
        # Adding b is one more sum and one more rounding.
        added = 0.0 if op.b is None else np.abs(real(inputs[2])) + np.abs(real(y))
        sums = 2 * a.shape[-1] * np.matmul(np.abs(a), np.abs(b).T)
        return np.asarray(epsilon(op.x.dtype) * (sums + added))
    if op.b_scale is not None:
        b = b * real(inputs[2])
    a = a.swapaxes(-1, -2) if op.transpose_a else a
    b = b.swapaxes(-1, -2) if op.transpose_b else b
    return 2 * a.shape[-1] * epsilon(op.a.dtype) * np.matmul(np.abs(a), np.abs(b))


def _rms_norm(op: Any, y: F64, inputs: list[Any]) -> F64:
    return 4 * epsilon(op.x.dtype) * np.abs(real(y))


def _softmax(op: Any, y: F64, inputs: list[Any]) -> F64:
    x = np.asarray(inputs[0]).astype(np.float64)
    with np.errstate(all="ignore"):
        away = np.abs(real(x - x.max(op.axis, keepdims=True, initial=-np.inf)))
    return (4 + away) * epsilon(op.x.dtype) * np.abs(real(y))


def _attention(op: Any, y: F64, inputs: list[Any]) -> F64:
    """(4 + 2·max|s|)·ε·max|v|, with Σ|q||k| for |s|."""
    padded = [*inputs, *[None] * (8 - len(inputs))]
    q, k, v, bias, _, _, k_scale, v_scale = padded
    k, v = _times(k, k_scale), _times(v, v_scale)
    keys = np.abs(np.repeat(k, np.shape(q)[-2] // k.shape[-2], -2))
    s = np.einsum("...nhd,...thd->...hnt", np.abs(real(q)), keys) * op._scale()
    top = s.max(initial=0.0) + (0.0 if bias is None else np.abs(real(bias)).max(initial=0.0))
    return np.full(np.shape(y), (4 + 2 * top) * epsilon(op.q.dtype) * np.abs(v).max(initial=0.0))


def _times(x: Any, scale: Any) -> F64:
    return real(x) if scale is None else real(x) * real(scale)[..., None]


BOUNDS: dict[str, Bound] = {
    **dict.fromkeys(
        ("exp", "log", "rsqrt", "sin", "cos", "tanh", "sigmoid", "erf", "silu", "softplus", "sqrt"), _ulps
    ),
    "pow": _ulps,
    "gelu": _gelu,
    "matmul": _products,
    "linear": _products,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
    "attention": _attention,
}


def _computed(op: Any) -> DType:
    return dtypes.f64 if op.operands[0].dtype is dtypes.f64 else dtypes.f32
