"""Kernels of convolutions, pools, sampling and quantisation against their references."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.operators.conv import Conv1d, Conv2d
from oic.operators.conv_transpose import ConvTranspose1d, ConvTranspose2d
from oic.operators.pool import AvgPool, MaxPool
from oic.operators.quant import Dequantize, Quantize, Requantize
from oic.operators.sampling import Sample, TopK
from runtime.drive import BUILDS, Case, check

RNG = np.random.default_rng(5)
NAMES = ("f8", "f16", "bf16", "f32", "f64")


def real(shape: tuple[int, ...], name: str = "f32") -> Array:
    return RNG.normal(size=shape).astype(dtypes.ALL[name].np)


def whole(shape: tuple[int, ...], name: str) -> Array:
    dtype = dtypes.ALL[name]
    low, high = max(dtype.low, -(2**62)), min(dtype.high, 2**62)
    return RNG.integers(low, high, shape, endpoint=True).astype(dtype.np)


def convolutions() -> list[Case]:
    """Strides, zeros, dilations, groups; every float and every pair of integers."""
    found: list[Case] = []
    for name in NAMES:
        for s, p, d, g in ((1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 1), (1, 4, 2, 4)):
            settings = {"stride": s, "padding": p, "dilation": d, "groups": g}
            found.append(Case(Conv1d, [real((2, 4, 9), name), real((8, 4 // g, 3), name), real((8,), name)], settings))
            found.append(Case(ConvTranspose1d, [real((2, 4, 9), name), real((4, 2, 3), name), None], settings))
        two = {"stride": [2, 1], "padding": [1, 2], "dilation": [1, 2]}
        found.append(Case(Conv2d, [real((3, 6, 8), name), real((4, 3, 3, 2), name), real((4,), name)], two))
        found.append(Case(ConvTranspose2d, [real((2, 3, 4, 5), name), real((3, 4, 3, 2), name), real((4,), name)], two))
    found.append(Case(Conv1d, [real((1, 3, 200)), real((2, 3, 5)), None], {"padding": 2}))
    found.append(Case(ConvTranspose1d, [real((3, 90)), real((3, 2, 4)), None], {"stride": 2, "output_padding": 1}))
    found.append(Case(Conv1d, [real((0, 3, 9)), real((2, 3, 5)), None]))
    for kind in "iu":
        names = [f"{kind}{b}" for b in (1, 2, 4, 8, 16, 32, 64)]
        for i, name in enumerate(names):
            for wide in names[i:]:
                kinds = {0: dtypes.ALL[name], 1: dtypes.ALL[name], 2: dtypes.ALL[wide]}
                acc: dict[str, Any] = {} if wide == name else {"acc": dtypes.ALL[wide]}
                arrays = [whole((2, 4, 6), name), whole((2, 4, 3), name), whole((2,), wide)]
                found.append(Case(Conv1d, arrays, {"padding": 1, **acc}, kinds))
                arrays = [whole((2, 3, 4), name), whole((2, 1, 2, 2), name), whole((1,), wide)]
                found.append(Case(ConvTranspose2d, arrays, {"stride": 2, **acc}, kinds))
    return found


def pools() -> list[Case]:
    """Windows of one and two axes, with NaN; rows of several parts, of few results, and more of them than are held at once."""
    found: list[Case] = []
    small: tuple[Any, ...] = ((3, None, 1), ([2, 3], [1, 2], [1, 0]), ([4, 1], 3, [2, 0]))
    large: tuple[Any, ...] = ((3, 1, 1), ([3, 3], [2, 2], [1, 1]), ([5, 4], [1, 2], [2, 2]), ([2, 2], 1, 0))
    shapes = (((2, 3, 9, 10), small), ((1, 2, 45, 149), large), ((2, 5, 7, 7), large))
    for name, (shape, windows) in itertools.product(NAMES, shapes):
        x = real(shape, name)
        x[0, 0, 4, 4] = np.nan
        for window, stride, padding in windows:
            settings = {"window": window, "stride": stride, "padding": padding}
            found.append(Case(MaxPool, [x], settings))
            found.append(Case(AvgPool, [x], settings))
            found.append(Case(AvgPool, [x], {**settings, "count_include_pad": True}))
    found += [Case(kind, [real((1, 42, 149))], {"window": [40, 3], "stride": 1}) for kind in (MaxPool, AvgPool)]  # more rows than are held
    return found


def choices() -> list[Case]:
    """Ties, NaN, infinities; every filter of sample, over the whole of u."""
    found: list[Case] = []
    tied = np.array([[1, 3, 3, np.nan, 2, -np.inf, np.inf, 3, np.nan]], np.float32)
    for k in (0, 1, 4, 9):
        found.append(Case(TopK, [tied], {"k": k}))
        found.append(Case(TopK, [np.ascontiguousarray(tied.T)], {"k": k, "axis": 0}))
    for name in NAMES:
        found.append(Case(TopK, [real((3, 40, 2), name)], {"k": 7, "axis": 1}))
        few = RNG.integers(-3, 3, (2, 70, 3)).astype(dtypes.ALL[name].np)
        few[1, 5::9] = np.nan
        found += [Case(TopK, [few], {"k": k, "axis": 1}) for k in (2, 33, 70)]
    for name in NAMES:
        logits = (3 * real((50,))).astype(dtypes.ALL[name].np)
        for u in (0.0, 0.3, 0.77, 0.9999999):
            given = [logits, np.array(u, np.float32)]
            for settings in (
                {},
                {"temperature": 0},
                {"temperature": 0.7, "top_k": 5},
                {"top_p": 0.6},
                {"top_p": 0.0},
                {"temperature": 2.0, "top_k": 30, "top_p": 0.9},
                {"top_k": 500},
            ):
                found.append(Case(Sample, given, settings))
    equal = np.zeros(6, np.float32)
    for u in (0.0, 0.49, 0.5, 0.51):
        found.append(Case(Sample, [equal, np.array(u, np.float32)], {"top_k": 2}))
        found.append(Case(Sample, [equal, np.array(u, np.float32)], {"top_p": 0.5}))
    found.append(Case(Sample, [np.zeros(1, np.float32), np.array(0.5, np.float32)]))
    return found + long_choices()


def long_choices() -> list[Case]:
    """Logits of several parts: sorted, tied, far apart, infinite, NaN; filters that keep few, nearly all and all."""
    drawn = 2 * RNG.standard_normal(1999)
    holes = np.where(RNG.random(1999) < 0.4, -np.inf, drawn)
    holes[5::7] = np.nan
    logits = (
        drawn, np.sort(drawn), np.sort(drawn)[::-1], np.round(drawn), np.zeros(1999), np.full(1999, -np.inf),
        np.full(1999, np.nan), holes, np.where(RNG.random(1999) < 0.01, np.inf, drawn), -np.abs(drawn) ** 9, 1e-9 * drawn,
        drawn - 700 * RNG.integers(0, 3, 1999), RNG.choice([0.0, -0.0, -1.0], 1999), drawn[:257],
    )  # fmt: skip
    filters: tuple[dict[str, Any], ...] = (
        {}, {"top_k": 50}, {"top_k": 1}, {"top_k": 1998}, {"top_k": 256, "top_p": 0.7}, {"top_p": 0.9},
        {"top_p": 0.9999999}, {"top_p": 0.3, "temperature": 0.01}, {"top_k": 1000, "temperature": 1e30},
    )  # fmt: skip
    found = []
    for number, (x, settings) in enumerate(itertools.product(logits, filters)):
        name = NAMES[1 + number % 4]
        with np.errstate(over="ignore"):
            given = [x.astype(dtypes.ALL[name].np), np.array(RNG.random(), np.float32)]
        found.append(Case(Sample, given, settings))
    return found


def quantised() -> list[Case]:
    """Every pair of types, scales for all and along axes; the extremes of requantisation."""
    found: list[Case] = []
    small = [n for n in dtypes.ALL if dtypes.ALL[n] in dtypes.INT and dtypes.ALL[n].bits <= 32]
    for name in NAMES:
        x = (30 * real((3, 4, 5))).astype(dtypes.ALL[name].np)
        x[0, 0, 0], x[0, 0, 1], x[0, 0, 2] = np.nan, np.inf, -np.inf
        for to in small:
            kind = dtypes.ALL[to]
            zero = whole((4,), to)
            scale = np.array([0.5, 1, 3, 7], np.float32)
            found.append(Case(Quantize, [x, np.array(0.7, np.float32), None], {"to": kind}))
            found.append(Case(Quantize, [x, scale, zero], {"to": kind, "axis": 1}, {2: kind}))
            far = np.array([1, 2, 3, 3.5, 4, 6, 7.99, 2**-30], dtypes.ALL[name].np) * (2 if name in ("f8", "f16") else 2**30)
            far = np.concatenate([far, -far]).astype(dtypes.ALL[name].np).reshape(4, 4)
            for end in (-(2**31), 2**31 - 1):
                ends = np.array([end, end // 2, end // 3, 1], np.int32)
                found.append(Case(Quantize, [far, np.array([1, 1, 0.5, 3], np.float32), ends], {"to": kind, "axis": 1}, {2: dtypes.i32}))
            back = {"to": dtypes.ALL[name]}
            kinds = {0: kind, 2: kind}
            found.append(Case(Dequantize, [whole((3, 4, 5), to), scale, zero], {**back, "axis": 1}, kinds))
            found.append(Case(Dequantize, [whole((3, 5), to), np.array(0.1, np.float32), None], back, {0: kind}))
    extreme = np.array([-(2**31), 2**31 - 1, -1, 0, 1, 2**30, -(2**30), 12345, -54321, 3], np.int32)
    x = np.concatenate([extreme, whole((50,), "i32")])
    for to in small:
        for rounding in ("tflite", "nearest"):
            for m in (-(2**31), 2**31 - 1, 2**30, 1518500250, 0, -77):
                for s in (-31, -9, -1, 0, 1, 7, 31):
                    arrays = [x, np.array(m, np.int32), np.array(s, np.int8)]
                    if to == "i32" or (m == 2**30 and s == -9):
                        settings = {"to": dtypes.ALL[to], "rounding": rounding, "zero_point": 3}
                        found.append(Case(Requantize, arrays, settings))
    m, s = whole((4, 1), "i32"), np.array([[-3], [0], [2], [-20]], np.int8)
    found.append(Case(Requantize, [whole((2, 4, 3), "i32"), m, s], {"to": dtypes.i8}))
    scales = np.array([-(2**31), 2**31 - 1, 2**30, -77, 0, 1518500250, -(2**31)], np.int32)  # one each, of short and long rows
    moved = np.array([0, 7, 31, 127, -1, -31, -128], np.int8)
    for n, inner in itertools.product((2, 3, 7, 15, 16, 17, 40), (1, 2, 5, 9, 15, 16, 33)):
        m, s = (np.resize(v, (n, 1)) for v in (scales, np.resize(moved, 19)))
        x = np.resize(np.concatenate([extreme, whole((179,), "i32")]), (max(2, 1500 // n // inner), n, inner))
        for to, rounding in (("i8", "tflite"), ("i32", "tflite"), ("u4", "tflite"), ("u8", "nearest")):
            settings = {"to": dtypes.ALL[to], "rounding": rounding, "zero_point": -5}
            found.append(Case(Requantize, [x, m, s], settings))
            if inner == 1:
                found.append(Case(Requantize, [x[..., 0], m[:, 0], s[:, 0]], settings))
    long, each = whole((2, 300), "i32"), (np.arange(300) % 61 - 31).astype(np.int8)
    for to, zero in itertools.product(("i8", "u8", "i32", "u32"), (0, -7, 2**31, -(2**33), 2**40)):
        for rounding in ("tflite", "nearest"):
            settings = {"to": dtypes.ALL[to], "rounding": rounding, "zero_point": zero}
            found.append(Case(Requantize, [long, whole((300,), "i32"), each], settings))
            found.append(Case(Requantize, [long, np.array(2**30, np.int32), np.array(0, np.int8)], settings))
    halves = np.concatenate([np.arange(-150, 150) / 2, [np.nan, np.inf, -np.inf, 2.0**23 + 1, 3e9]]).astype(np.float32)
    for to, zero in itertools.product(("i8", "i16", "u4", "i32"), (0, 5, 2**22, 2**22 + 1, -(2**31))):
        found.append(Case(Quantize, [halves, np.array(1, np.float32), np.array(zero, np.int32)], {"to": dtypes.ALL[to]}))
    return found


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("make", [convolutions, pools, choices, quantised])
def test_more(make: Any, build: str) -> None:
    """Within each operator's bound; choices and integers exactly."""
    check(make(), build)
