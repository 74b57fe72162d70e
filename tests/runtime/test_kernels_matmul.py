"""Kernels of matmul and linear against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.operators.matmul import Linear, MatMul
from runtime.drive import BUILDS, Case, across, check, spaced

RNG = np.random.default_rng(1)
WEIGHTS = {"f8": ["f8"], "f16": ["f16", "f8"], "bf16": ["bf16", "f8"], "f32": ["f32", "f16", "bf16", "f8"]}
WEIGHTS["f64"] = ["f64", "f32", "f16", "bf16", "f8"]


def real(shape: tuple[int, ...], name: str = "f32") -> Array:
    return RNG.normal(size=shape).astype(dtypes.ALL[name].np)


def whole(shape: tuple[int, ...], name: str) -> Array:
    dtype = dtypes.ALL[name]
    kind = dtype.np if dtype.bits >= 8 else np.int64
    return RNG.integers(dtype.low, dtype.high, shape, endpoint=True, dtype=kind).astype(dtype.np)


def linear_cases() -> list[Case]:
    found: list[Case] = []
    for k in (0, 1, 7, 16, 33, 130, 700):
        for m, n in ((1, 1), (1, 7), (1, 8), (5, 9), (4, 4), (40, 6), (0, 3), (3, 0)):
            found.append(Case(Linear, [real((m, k)), real((n, k))]))
    for x, ws in WEIGHTS.items():
        for w in ws:
            for m, k in ((1, 37), (6, 700), (2, 2100)):
                found.append(Case(Linear, [real((m, k), x), real((5, k), w), real((5,), w)]))
    found.append(Case(Linear, [spaced(real((5, 40)), 1), spaced(real((7, 40), "f16"), 1), real((7,))]))
    found.append(Case(Linear, [spaced(real((2, 5, 40)), 1), real((7, 40)), None]))
    found.append(Case(Linear, [real((2, 5, 40)), real((7, 40)), None]))
    found.append(Case(Linear, [real((40,)), real((7, 40)), real((7,))]))
    strange = real((3, 40))
    strange[1, 3] = np.nan
    strange[2, 39] = np.inf
    found.append(Case(Linear, [strange, real((6, 40)), None]))
    return found


def integer_cases() -> list[Case]:
    found: list[Case] = []
    for kind in "iu":
        names = [f"{kind}{b}" for b in (1, 2, 4, 8, 16, 32, 64)]
        for i, name in enumerate(names):
            for wide in names[i:]:
                kinds = {0: dtypes.ALL[name], 1: dtypes.ALL[name], 2: dtypes.ALL[wide]}
                acc: dict[str, Any] = {} if wide == name else {"acc": dtypes.ALL[wide]}
                a, b = whole((2, 3, 9), name), whole((9, 5), name)
                found.append(Case(MatMul, [a, b, None], acc, kinds))
                found.append(Case(Linear, [whole((3, 16), name), whole((6, 16), name), whole((6,), wide)], acc, kinds))
    a, b = RNG.integers(0, 2, (3, 9)).astype(bool), RNG.integers(0, 2, (9, 4)).astype(bool)
    found.append(Case(MatMul, [a, b & (RNG.random((9, 4)) < 0.2), None]))
    bits = {0: dtypes.bitset, 1: dtypes.bitset}
    found.append(Case(MatMul, [whole((3, 9), "u8"), whole((9, 4), "u8"), None], {}, bits))
    found.append(Case(MatMul, [across(whole((3, 9), "i8")), across(whole((9, 4), "i8")), None], {"acc": dtypes.i32}))
    return found


def matmul_cases() -> list[Case]:
    found: list[Case] = []
    for m, k, n in ((1, 5, 3), (1, 40, 600), (1, 300, 64), (4, 9, 70), (7, 33, 33), (0, 4, 4), (3, 0, 4), (9, 130, 1)):
        a, b = real((m, k)), real((k, n))
        at, bt = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
        found.append(Case(MatMul, [a, b, None]))
        found.append(Case(MatMul, [at, b, None], {"transpose_a": True}))
        found.append(Case(MatMul, [a, bt, None], {"transpose_b": True}))
        found.append(Case(MatMul, [at, bt, None], {"transpose_a": True, "transpose_b": True}))
        found.append(Case(MatMul, [across(a), across(b), None]))
    for x, ws in WEIGHTS.items():
        for w in ws:
            found.append(Case(MatMul, [real((5, 19), x), real((19, 37), w), None]))
            found.append(Case(MatMul, [real((5, 19), x), real((3, 19), w), None], {"transpose_b": True}))
        for w in ("i8", "u8", "i4", "u4", "i2", "u2", "i1", "u1"):
            kind = {1: dtypes.ALL[w]}
            found.append(Case(MatMul, [real((3, 19), x), whole((19, 6), w), real((6,))], {}, kind))
            arrays = [real((2, 3, 24), x), whole((2, 6, 24), w), real((2, 6, 1))]
            found.append(Case(MatMul, arrays, {"transpose_b": True}, kind))
    found.append(Case(MatMul, [real((2, 1, 3, 8)), real((4, 8, 5)), None]))
    found.append(Case(MatMul, [spaced(real((2, 3, 8)), 1), spaced(real((2, 8, 5)), 0), None]))
    found.append(Case(MatMul, [real((3, 8)), real((2, 2, 8, 5)), None]))
    found.append(Case(MatMul, [real((3, 8)), whole((8, 5), "i8"), real((1,))]))
    return found


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("make", [linear_cases, matmul_cases, integer_cases], ids=["linear", "matmul", "integers"])
def test_products(make: Any, build: str) -> None:
    """Every type and form, tails and gaps included."""
    check(make(), build)
