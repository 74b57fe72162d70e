"""Arithmetic, bits, comparison and casts: references against results worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import oic.operators
from oic import dtypes
from oic.dtypes import Array
from oic.ir.core import REGISTRY, OpError, Value
from oic.ir.types import INDEX, TensorType
from oic.operators.base import Operator
from runtime.wrap import parse_example

assert oic.operators

INF, NAN = math.inf, math.nan


def build(name: str, *types: str, **settings: Any) -> Operator:
    """An operator on operands of these types."""
    op = REGISTRY[name](*(Value(parse_example(t)) for t in types), **settings)
    assert isinstance(op, Operator)
    return op


def run(name: str, *operands: tuple[str, Any], **settings: Any) -> Array:
    """The stored result of an operator on lists of values, each with its dtype."""
    arrays = [np.asarray(v).astype(dtypes.ALL[d].np) for d, v in operands]
    types = [TensorType(dtypes.ALL[d], a.shape) for (d, _), a in zip(operands, arrays, strict=True)]
    op = REGISTRY[name](*(Value(t) for t in types), **settings)
    assert isinstance(op, Operator)
    wide = [dtypes.widen(a, t.dtype) for a, t in zip(arrays, types, strict=True)]
    y = dtypes.store(np.asarray(op.reference(*wide)), op.result.dtype)
    assert y.shape == op.result.shape
    return y


def same(got: Array, want: list[Any]) -> bool:
    """Equal, with NaN equal to NaN and -0.0 not to 0.0."""
    got = np.asarray(got)
    if got.dtype.kind not in "fV":
        return bool(got.reshape(-1).tolist() == want)
    a, b = got.astype(np.float64).reshape(-1), np.array(want, np.float64)
    return bool(np.array_equal(a, b, equal_nan=True) and (np.signbit(a) == np.signbit(b))[b == b].all())


def slug(name: str, *types: str, **settings: Any) -> str:
    """The slug with which an operator is refused."""
    with pytest.raises(OpError) as caught:
        build(name, *types, **settings)
    return caught.value.slug


# ---------------------------------------------------------------- arithmetic


def test_integers_wrap() -> None:
    assert same(run("add", ("i8", [127, -128]), ("i8", [1, -1])), [-128, 127])
    assert same(run("mul", ("i64", [1 << 62]), ("i64", [2])), [-(1 << 63)])
    assert same(run("sub", ("u64", np.array([0], np.uint64)), ("u64", np.array([1], np.uint64))), [(1 << 64) - 1])
    assert same(run("add", ("i4", [7]), ("i4", [1])), [-8])
    assert same(run("add", ("i1", [-1, -1, 0]), ("i1", [-1, 0, 0])), [0, -1, 0])
    assert same(run("mul", ("i1", [-1]), ("i1", [-1])), [-1])
    assert same(run("sub", ("u2", [0]), ("u2", [1])), [3])
    assert same(run("neg", ("i8", [-128, 5])), [-128, -5])
    assert same(run("abs", ("i2", [-2, -1, 1])), [-2, 1, 1])


def test_bool_and_bitset_arithmetic() -> None:
    assert same(run("add", ("bool", [0, 0, 1, 1]), ("bool", [0, 1, 0, 1])), [False, True, True, True])
    assert same(run("mul", ("bool", [0, 0, 1, 1]), ("bool", [0, 1, 0, 1])), [False, False, False, True])
    assert same(run("mul", ("bitset", [16, 255]), ("bitset", [16, 255])), [0, 1])


def test_acc_keeps_what_would_wrap() -> None:
    acc = dtypes.i16
    assert same(run("add", ("i8", [127]), ("i8", [127]), acc=acc), [254])
    assert same(run("mul", ("i8", [-128]), ("i8", [-128]), acc=acc), [16384])
    assert same(run("abs", ("i8", [-128]), acc=acc), [128])
    assert same(run("sub", ("u1", [0]), ("u1", [1]), acc=dtypes.u2), [3])
    assert same(run("sub", ("u8", [0]), ("u8", [1]), acc=dtypes.u64), [(1 << 64) - 1])


def test_narrow_floats_are_computed_in_f32_and_rounded_once() -> None:
    # 2048 + 1 is between two f16: the even one; 65504 + 16 is the middle to infinity
    assert same(run("add", ("f16", [2048.0, 65504.0, 65504.0]), ("f16", [1.0, 15.0, 16.0])), [2048.0, 65504.0, INF])
    assert same(run("mul", ("f16", [2.0**-14]), ("f16", [2.0**-10])), [2.0**-24])
    assert same(run("mul", ("f16", [2.0**-14]), ("f16", [2.0**-11])), [0.0])
    # a*b is not rounded to f16 before the sum
    assert same(run("fma", ("f16", [1 + 2.0**-10]), ("f16", [1 + 2.0**-10]), ("f16", [-1.0])), [2.0**-9])


def test_fma_rounds_twice() -> None:
    a = 1 + 2.0**-12
    # a*a = 1 + 2^-11 + 2^-24: the last bit is lost before the sum
    assert same(run("fma", ("f32", [a]), ("f32", [a]), ("f32", [-1 - 2.0**-11])), [0.0])


def test_division_by_zero_gives_the_mask() -> None:
    assert same(run("div", ("f32", [1.0, -1.0, 0.0, 1.0]), ("f32", [0.0, -0.0, 0.0, 2.0])), [NAN, NAN, NAN, 0.5])
    masked = run("div", ("f32", [1.0, NAN]), ("f32", [0.0, -0.0]), div_by_zero_mask=-1.5)
    assert same(masked, [-1.5, -1.5])
    assert same(run("div", ("i8", [7, -7, -128, 5]), ("i8", [2, 2, -1, 0])), [3, -3, -128, 0])
    assert same(run("div", ("i4", [-8, 7]), ("i4", [-1, 0]), div_by_zero_mask=7), [-8, 7])
    assert same(run("floor_div", ("i8", [-7, 7, -7, -128]), ("i8", [2, -2, -2, -1])), [-4, -4, 3, -128])
    assert same(run("rem", ("i8", [-7, 7, -128, 3]), ("i8", [3, -3, -1, 0])), [-1, 1, 0, 0])
    assert same(run("recip", ("f32", [0.0, -0.0, 4.0, INF])), [NAN, NAN, 0.25, 0.0])
    assert same(run("recip", ("f32", [0.0]), div_by_zero_mask=INF), [INF])


def test_division_of_the_widest_integers_is_exact() -> None:
    big = (1 << 63) - 1
    quotients = run("div", ("i64", [big, -big - 1, -big - 1]), ("i64", [2, 3, -1]))
    assert same(quotients, [big // 2, -((big + 1) // 3), -big - 1])
    most = np.array([(1 << 64) - 1], np.uint64)
    assert same(run("div", ("u64", most), ("u64", np.array([3], np.uint64))), [((1 << 64) - 1) // 3])


def test_signs() -> None:
    assert same(run("sign", ("f32", [NAN, -0.0, -INF, 1e-45])), [0, 0, -1, 1])
    assert same(run("neg", ("f32", [0.0, -0.0, NAN])), [-0.0, 0.0, NAN])
    assert not np.signbit(run("abs", ("f32", [-0.0, -NAN]))).any()
    assert same(run("is_neg", ("f16", [-0.0, 0.0, -1.0])), [True, False, True])
    assert same(run("is_neg", ("u8", [255])), [False])


def test_relu() -> None:
    x = [-4.0, -0.0, 3.0, NAN, INF]
    assert same(run("relu", ("f32", x)), [-0.0, -0.0, 3.0, NAN, INF])
    assert same(run("relu", ("f32", x), alpha=0.5, clamp_max=2.0), [-2.0, -0.0, 2.0, NAN, 2.0])
    assert same(run("relu", ("f32", [-INF])), [NAN])
    assert same(run("relu", ("i8", [-128, -1, 50]), alpha=3, clamp_max=40), [-128, -3, 40])
    assert same(run("relu", ("i4", [-8]), alpha=-1), [-8])


def test_a_number_wins_over_nan() -> None:
    a, b = [1.0, NAN, NAN, -0.0, 0.0], [NAN, 2.0, NAN, 0.0, -0.0]
    assert same(run("min", ("f32", a), ("f32", b)), [1.0, 2.0, NAN, -0.0, 0.0])
    assert same(run("max", ("f32", a), ("f32", b)), [1.0, 2.0, NAN, -0.0, 0.0])


def test_clamp() -> None:
    x = [-9.0, 0.5, 9.0, NAN]
    assert same(run("clamp", ("f32", x), min=-1.0, max=1.0), [-1.0, 0.5, 1.0, -1.0])
    assert same(run("clamp", ("f32", x), max=1.0), [-9.0, 0.5, 1.0, NAN])
    assert same(run("clamp", ("f32", x)), x)
    assert same(run("clamp", ("i8", [-128, 0, 127]), min=5, max=3), [3, 3, 3])


# ---------------------------------------------------------------- bits


def test_bits_of_packed_integers_stay_in_their_width() -> None:
    assert same(run("not", ("i4", [-8, 0, 7])), [7, -1, -8])
    assert same(run("not", ("u4", [0, 15])), [15, 0])
    assert same(run("not", ("u1", [0, 1])), [1, 0])
    assert same(run("not", ("bool", [0, 1])), [True, False])
    assert same(run("xor", ("i2", [-2, 1]), ("i2", [1, 1])), [-1, 0])
    assert same(run("popcount", ("i4", [-1, -8, 7])), [4, 1, 3])
    assert same(run("popcount", ("i64", [-1, -(1 << 63)])), [64, 1])


def test_shifts() -> None:
    assert same(run("shl", ("i8", [1, 64, -1]), bits=1), [2, -128, -2])
    assert same(run("shl", ("i4", [7]), bits=1), [-2])
    assert same(run("shl", ("u64", [1]), bits=64), [0])
    assert same(run("shr", ("i8", [-128, -1, 127]), bits=7), [-1, -1, 0])
    assert same(run("shr", ("i64", [-5, 5]), bits=1000), [-1, 0])
    assert same(run("shr", ("u4", [15]), bits=3), [1])
    assert slug("shl", "i8[2]", bits=-1) == "op-setting"
    assert slug("shl", "i8[2]", bits=1.0) == "op-setting"
    assert slug("shl", "i1[2]", bits=1) == "op-dtype"


def test_a_run_time_shift_is_checked() -> None:
    op = build("shr", "i8[2]", bits=Value(INDEX))
    (check,) = op.checks()
    assert check.name == "check.range" and getattr(check, "low") == 0  # noqa: B009


# ---------------------------------------------------------------- comparison and choice


def test_nan_compares_false_and_is_not_equal() -> None:
    a, b = ("f32", [NAN, 0.0, 1.0]), ("f32", [NAN, -0.0, 2.0])
    want = {"eq": "FTF", "ne": "TFT", "lt": "FFT", "le": "FTT", "gt": "FFF", "ge": "FTF"}
    for name, letters in want.items():
        assert same(run(name, a, b), [c == "T" for c in letters]), name
    assert slug("lt", "bool[2]", "bool[2]") == "op-dtype"


def test_filter_and_where() -> None:
    a, b = ("f32", [1.0, 2.0, 3.0]), ("f32", [-1.0, -2.0, -3.0])
    assert same(run("filter", a, b, ("f32", [NAN, -0.0, 1e-45])), [1.0, -2.0, 3.0])
    assert same(run("filter", a, b, ("bool", [1, 0, 1])), [1.0, -2.0, 3.0])
    assert same(run("where", ("bool", [[1], [0]]), a, b), [1.0, 2.0, 3.0, -1.0, -2.0, -3.0])
    assert slug("filter", "f32[2]", "f32[2]", "i8[2]") == "op-dtype"
    assert slug("where", "u8[2]", "f32[2]", "f32[2]") == "op-dtype"


def test_special_value_tests() -> None:
    assert same(run("is_nan", ("f8", [NAN, INF, 1.0])), [True, False, False])
    assert same(run("is_inf", ("bf16", [NAN, -INF, 1.0])), [False, True, False])
    assert same(run("is_finite", ("f16", [1.0, 65504.0])), [True])
    assert same(run("is_finite", ("f16", [1.0, NAN])), [False])
    assert same(run("is_finite", ("f32", np.zeros(0)))[None], [True])
    assert slug("is_finite", "i32[2]") == "op-dtype"


# ---------------------------------------------------------------- casts and fill


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        ("trunc", [2, -2, 0, 0, 127, -128, 0, 127]),
        ("floor", [2, -3, 0, -1, 127, -128, 0, 127]),
        ("ceil", [3, -2, 1, 0, 127, -128, 0, 127]),
        ("nearest", [3, -3, 1, -1, 127, -128, 0, 127]),
    ],
)
def test_float_to_integer(mode: str, want: list[int]) -> None:
    x = ("f32", [2.5, -2.5, 0.5, -0.5, INF, -INF, NAN, 127.9])
    assert same(run("cast", x, to=dtypes.i8, rounding_mode=mode), want)


def test_float_to_the_ends_of_wide_integers() -> None:
    x = [9.3e18, -9.3e18, float(1 << 63), math.nextafter(2.0**63, 0), -1.0, 1.9e19]
    last = 2**63 - 1024
    assert same(run("cast", ("f64", x), to=dtypes.i64), [2**63 - 1, -(2**63), 2**63 - 1, last, -1, 2**63 - 1])
    assert same(run("cast", ("f64", x), to=dtypes.u64), [9300000000000000000, 0, 2**63, last, 0, 2**64 - 1])
    assert same(run("cast", ("f32", [0.6, -0.6, -1.0]), to=dtypes.i1, rounding_mode="nearest"), [0, -1, -1])


def test_integer_to_integer() -> None:
    x = ("i32", [300, -300, 7])
    assert same(run("cast", x, to=dtypes.u8, saturate=True), [255, 0, 7])
    assert same(run("cast", x, to=dtypes.u8, saturate=False), [44, 212, 7])
    assert same(run("cast", ("u64", np.array([(1 << 64) - 1], np.uint64)), to=dtypes.i64, saturate=True), [2**63 - 1])
    assert same(run("cast", ("u64", np.array([(1 << 64) - 1], np.uint64)), to=dtypes.i64, saturate=False), [-1])
    assert same(run("cast", ("i64", [-(2**63)]), to=dtypes.u64, saturate=True), [0])
    assert same(run("cast", ("u2", [3]), to=dtypes.u16), [3])
    assert slug("cast", "i8[1]", to=dtypes.u64) == "op-setting"
    assert slug("cast", "f32[1]", to=dtypes.i8, saturate=False) == "op-setting"
    assert slug("cast", "f32[1]", to=dtypes.i8, rounding_mode="up") == "op-setting"
    assert slug("cast", "f32[1]", to=dtypes.t1) == "op-dtype"


def test_to_float_rounds_once() -> None:
    # just above the middle of two f16 (bf16): by way of f32 it would become the middle, then even
    assert same(run("cast", ("f64", [1 + 2.0**-11 + 2.0**-40]), to=dtypes.f16), [1 + 2.0**-10])
    assert same(run("cast", ("f64", [1 + 2.0**-8 + 2.0**-40]), to=dtypes.bf16), [1 + 2.0**-7])
    assert same(run("cast", ("i64", [(1 << 40) + (1 << 32) + 1]), to=dtypes.bf16), [2.0**40 + 2.0**33])
    assert same(run("cast", ("i64", [-(1 << 62) - (1 << 54) - 1]), to=dtypes.bf16), [-(2.0**62) - 2.0**55])
    assert same(run("cast", ("f64", [65519.9, 65520.0, 1e300, -1e-300]), to=dtypes.f16), [65504.0, INF, INF, -0.0])
    assert same(run("cast", ("f32", [NAN, 0.0, -0.0, 1e-45]), to=dtypes.bool_), [True, False, False, True])


def test_fill() -> None:
    assert same(run("fill", ("f16", [NAN, 1.0]), value=0.1), [0.0999755859375] * 2)
    assert same(run("fill", ("i4", [1, 2]), value=-3), [-3, -3])
    assert same(run("fill", ("bool", [0]), value=1), [True])
    assert same(run("fill", ("u64", [0]), value=(1 << 64) - 1), [(1 << 64) - 1])
    assert slug("fill", "f32[2]", value=1) == "op-setting"
    assert slug("fill", "i32[2]", value=1.0) == "op-setting"
    assert slug("fill", "i8[2]", value=128) == "op-setting"
    assert slug("fill", "bool[2]", value=2) == "op-setting"
    assert slug("fill", "f16[2]", value=-1e9) == "op-setting"
    assert slug("fill", "f16[2]", value=Value(parse_example("f16"))) == "op-setting"
    assert build("fill", "f16[2]", value=Value(parse_example("f32"))).result.dtype is dtypes.f16


# ---------------------------------------------------------------- settings


def test_acc_is_a_wider_integer_of_the_same_sign() -> None:
    assert slug("add", "f16[2]", "f16[2]", acc=dtypes.f32) == "op-setting"
    assert slug("add", "i8[2]", "i8[2]", acc=dtypes.u32) == "op-setting"
    assert slug("add", "i8[2]", "i8[2]", acc=dtypes.i8) == "op-setting"
    assert slug("mul", "bool[2]", "bool[2]", acc=dtypes.i8) == "op-setting"


def test_integers_take_integer_settings() -> None:
    assert slug("relu", "i8[2]", alpha=0.5) == "op-setting"
    assert slug("clamp", "u8[2]", min=-1) == "op-setting"
    assert slug("div", "i8[2]", "i8[2]", div_by_zero_mask=300) == "op-setting"
    assert slug("recip", "f32[2]", div_by_zero_mask=1e300) == "op-setting"
    assert slug("recip", "f16[2]", div_by_zero_mask=1e9) == "op-setting"
    assert slug("div", "f16[2]", "f16[2]", div_by_zero_mask=-100000) == "op-setting"
    assert slug("pad", "f16[2]", before=[1], after=[1], value=1e9) == "op-setting"
    build("relu", "f16[2]", clamp_max=1e9)
    assert slug("relu", "f32[2]", alpha=Value(parse_example("f16"))) == "op-setting"
    assert slug("relu", "f32[2]", alpha=Value(INDEX)) == "op-setting"
    for dtype in ("f32", "f64"):
        build("relu", "f16[2]", alpha=Value(parse_example(dtype)))
    assert slug("relu", "i4[2]", alpha=Value(parse_example("u4"))) == "op-setting"
    build("relu", "i4[2]", alpha=Value(parse_example("u2")))


def test_a_run_time_integer_is_checked_against_the_type() -> None:
    op = build("clamp", "i8[2]", min=Value(INDEX), max=5)
    (check,) = op.checks()
    assert (getattr(check, "low"), getattr(check, "high")) == (-128, 127)  # noqa: B009
    assert build("fill", "u64[2]", value=Value(INDEX)).checks() != []
    assert build("fill", "i64[2]", value=Value(INDEX)).checks() == []


def test_words_are_refused_as_they_are_written() -> None:
    with pytest.raises(OpError, match='approx of gelu is "erf", "none" or "tanh", not "Tanh"'):
        build("gelu", "f32[2]", approx="Tanh")


def test_operands_agree() -> None:
    assert slug("add", "f32[2]", "f16[2]") == "op-dtype"
    assert slug("add", "f32[2]", "f32[3]") == "shape-mismatch"
    assert slug("neg", "u8[2]") == "op-dtype"
    assert slug("div", "i1[2]", "i1[2]") == "op-dtype"
    assert slug("add", "t2[2]", "t2[2]") == "op-dtype"
