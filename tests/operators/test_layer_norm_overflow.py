"""Rows whose sum leaves the range of f32: their results are beta, or NaN where the sum does in the order it is added."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.dtypes import Array
from processor import AVX2, features
from tests.fuzz.batch_build import build_together
from tests.fuzz.operand_builds import BUILDS, building

N = 600  # more than two parts of a row
TEXT = f"""
graph overflowing {{
  dynamic  {{ x: f32[96, {N}]; gamma: f32[{N}]; beta: f32[{N}]; }}
  volatile {{ y: f32[96, {N}]; }}
  block entry {{ op layer_norm(x, gamma, beta=beta, eps=1e-5) >> y; return; }}
}}
"""


def rows() -> Array:
    """Few elements of about the largest magnitude anywhere, of either sign; rows of them alone, which cancel or do not."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((96, N)).astype(np.float32)
    for row, few in zip(x, (1, 2, 3, 4, 8, 16, 40, N) * 12):
        at = rng.permutation(N)[:few]
        row[at] = rng.choice([-1, 1], few) * rng.uniform(1.1e38, 3.4e38, few)
    x[1, :] = 0
    x[1, [0, 16, 32, 48]] = np.float32([3e38, 3e38, -3e38, -3e38])  # one of the sixteen sums, and it leaves the range
    x[2, :] = 0
    x[2, [0, 16, 32, 48]] = np.float32([3e38, -3e38, 3e38, -3e38])  # one that does not
    return x


def added(row: Array) -> np.float32:
    """The sum, as `simd/sums.h` adds: parts of 256; sixteen sums of each, and a tree of these."""
    total = np.float32(0)
    for start in range(0, N, 256):
        part = np.zeros(256, np.float32)
        part[: len(row[start : start + 256])] = row[start : start + 256]
        sums = reduce(np.add, part.reshape(-1, 16))
        for half in (8, 4, 2, 1):
            sums = sums[:half] + sums[half:]
        total += sums[0]
    return np.float32(total)


@pytest.mark.parametrize("name", ["sse2", "sse2 clang", "avx2 separate", "avx2 -O3", "native separate", "small stack separate", "threads separate"])
def test_every_build_has_the_same_rows_of_nan(name: str, tmp_path: Path) -> None:
    build = BUILDS[name]
    if build.missing or ("avx2" in name and not set(AVX2) <= features()):
        pytest.skip(f"{build.compiler} is not installed, or has no machine")
    x, rng = rows(), np.random.default_rng(1)
    gamma, beta = rng.standard_normal((2, N)).astype(np.float32)
    with building(build):
        made = oic.Synthesizer(oic.parse(TEXT), target="portable", threads=build.threads, numerics=build.numerics)
        build_together([made], tmp_path, build.flags, build.compiler.split())
        with made.make_executor() as executor:
            found = executor.step(x=x, gamma=gamma, beta=beta)["y"]
    with np.errstate(over="ignore", invalid="ignore"):
        lost = ~np.isfinite([added(row) for row in x])
    assert 20 < lost.sum() < 76 and lost[1] and not lost[2]
    assert np.isnan(found[lost]).all()
    assert np.array_equal(found[~lost], np.broadcast_to(beta, found[~lost].shape))
    with oic.Simulator(oic.parse(TEXT)).make_executor() as reference:
        wanted = reference.step(x=x, gamma=gamma, beta=beta)["y"]
    assert np.array_equal(wanted[~lost], found[~lost]) and not np.isinf(wanted).any()
