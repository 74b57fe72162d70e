"""Kernels of normalisations and softmax against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.operators.norm import BatchNorm, LayerNorm, LogSoftmax, RmsNorm, Softmax
from runtime.drive import BUILDS, Case, check

RNG = np.random.default_rng(3)
NAMES = ("f8", "f16", "bf16", "f32", "f64")
LENGTHS = (1, 2, 7, 8, 17, 64, 256, 257, 1000)


def real(shape: tuple[int, ...], name: str = "f32", scale: float = 1.0) -> Array:
    return (scale * RNG.normal(size=shape)).astype(dtypes.ALL[name].np)


def norms() -> list[Case]:
    """Every type and tail; an offset that a one-pass variance would not survive."""
    found: list[Case] = []
    for name in NAMES:
        for n in LENGTHS if name in ("f32", "f16") else (9, 300):
            x, gamma = real((3, n), name), real((n,), name)
            found.append(Case(RmsNorm, [x, gamma], {"eps": 1e-5}))
            found.append(Case(LayerNorm, [x, gamma, real((n,), name)], {"eps": 1e-5}))
            found.append(Case(LayerNorm, [x, gamma, None], {"eps": 1e-5}))
    for name in ("f8", "f16", "bf16"):
        x, gamma = real((2, 40), name), real((40,))
        found.append(Case(RmsNorm, [x, gamma], {"eps": 1e-6}))
        found.append(Case(LayerNorm, [x, gamma, real((40,))], {"eps": 1e-6}))
    for name, ends in {"f32": (-46, 36), "bf16": (-41, 36), "f64": (-324, 306)}.items():  # squares beyond the type computed in
        with np.errstate(over="ignore"):
            x = (RNG.normal(size=(64, 37)) * 10.0 ** np.linspace(*ends, 64)[:, None]).astype(dtypes.ALL[name].np)
        for eps in (1e-5, 0.0):
            found.append(Case(RmsNorm, [x, real((37,), name)], {"eps": eps}))
            found.append(Case(LayerNorm, [x, real((37,), name), real((37,), name)], {"eps": eps}))
    found.append(Case(LayerNorm, [1000 + real((2, 100)), real((100,)), None], {"eps": 1e-5}))
    found.append(Case(LayerNorm, [real((2, 3, 5)), real((3, 5)), real((3, 5))], {"eps": 1e-5, "axes": [-2, -1]}))
    found.append(Case(RmsNorm, [real((0, 5)), real((5,))], {"eps": 1e-5}))
    for name in NAMES:
        four = [real((3,), name), real((3,), name), real((3,), name), abs(real((3,), name))]
        found.append(Case(BatchNorm, [real((2, 3, 17), name), *four], {"eps": 1e-3}))
        found.append(Case(BatchNorm, [real((3, 5), name), *four], {"channel": 0}))
    for name, end in {"f32": 36, "bf16": 36, "f64": 306}.items():  # products beyond the type computed in, and a variance below 0
        with np.errstate(over="ignore"):
            x, gamma, beta, mean = ((RNG.normal(size=n) * 10.0 ** RNG.uniform(-end, end, n)).astype(dtypes.ALL[name].np) for n in (999, 64, 64, 64))
            rows = np.ascontiguousarray(np.resize(x, (64, 999)))
        var = np.concatenate([abs(real((50,), name)), np.linspace(-9.9e-6, -1.1e-5, 14).astype(dtypes.ALL[name].np)])
        var[:32] = (10.0 ** RNG.uniform(-end, end, 32)).astype(dtypes.ALL[name].np)
        found.append(Case(BatchNorm, [rows, gamma, beta, mean, var], {"channel": 0}))
    return found


def softmaxes() -> list[Case]:
    """Every type, axis and tail; rows of -inf, with NaN, with +inf."""
    found: list[Case] = []
    strange = real((7, 5), scale=4)
    strange[0] = -np.inf
    strange[1, 2] = np.nan
    strange[2, 3] = np.inf
    strange[3, :4] = -np.inf
    strange[4] = [100, -100, 0, 88, -200]
    for kind in (Softmax, LogSoftmax):
        for name in NAMES:
            for n in LENGTHS if name in ("f32", "f16") else (9, 300):
                found.append(Case(kind, [real((3, n), name, 3)]))
            found.append(Case(kind, [real((2, 9, 3), name, 3)], {"axis": 1}))
            found.append(Case(kind, [real((2, 9, 75), name, 3)], {"axis": 1}))
            found.append(Case(kind, [real((6, 150), name, 3)]))
            found.append(Case(kind, [real((4,), name, 3)]))
        found.append(Case(kind, [strange]))
        found.append(Case(kind, [np.ascontiguousarray(strange.T)], {"axis": 0}))
        found.append(Case(kind, [np.tile(strange.T, 2)], {"axis": 0}))
        found.append(Case(kind, [real((0, 4))]))
        found.append(Case(kind, [real((4, 0))]))
    return found


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("make", [norms, softmaxes])
def test_norms(make: Any, build: str) -> None:
    """Within each operator's bound."""
    check(make(), build)
