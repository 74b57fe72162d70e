"""Chains of products and sums in lanes: every bit is that of a plain loop in the order that the headers state.

Kernels take whichever of these functions suits the sizes; all of them must give one answer, on every
machine and with every compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import CDLL, POINTER, c_double, c_float, c_ssize_t
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oic.dtypes import Array
from oic.kernels.targets import FUSED, SEPARATE, TARGETS
from oic.toolchain.compiler import macros
from runtime.native import Toolchain

pytestmark = pytest.mark.xdist_group("lanes-runtime")

LANES = 16
SOURCE = """
#include "simd/rows.h"
#include "simd/sums.h"
#define SEEN(T, C)                                                                                       \\
    void row_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t group, ptrdiff_t n);              \\
    void row_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t group, ptrdiff_t n)               \\
    {                                                                                                      \\
        oic_chains_1x4_##T(sum, x, 1, w, wk, group, n);                                                    \\
        oic_chains_1x4_##T(sum, x, 1, w, wk, group, n);                                                    \\
    }                                                                                                      \\
    void rows_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);                \\
    void rows_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                 \\
    {                                                                                                      \\
        (void)xm;                                                                                          \\
        oic_chains_1x1_##T(sum, x, 1, w, wk, n);                                                           \\
        oic_chains_##T(sum + 16, x, 1, w, wk, n, 37);                                                      \\
    }                                                                                                      \\
    void dots_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);                \\
    void dots_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                 \\
    {                                                                                                      \\
        (void)wk;                                                                                          \\
        /* the second head's rows are one on; a row too far is the first */                                \\
        oic_row_dots_##T##_##T(w, 0, 2, 1, x, xm, xm, 3, n, sum, 8, 1);                                    \\
        oic_row_dots_##T##_##T(w, 0, 1, 4, x, xm, xm, 3, n, sum + 16, 8, 1);                               \\
        oic_row_dots_##T##_##T(w, 0, 1, 1, x, xm, xm, 3, n, sum + 53, 8, 2); /* apart from each other */    \\
        oic_row_dots_##T##_##T(w, 0, 1, 2, x, xm, xm, 3, n, sum + 59, 1, 2);                               \\
        sum[48] = oic_dot_##T(x, w, n);                                                                    \\
        sum[49] = oic_sum_##T(x, n);                                                                       \\
        sum[50] = oic_sum_squares_##T(x, n, w[0]);                                                         \\
        sum[51] = 0;                                                                                       \\
        for (ptrdiff_t i = 0; i < oic_padded(n); i += 64) {                                                \\
            const uint8_t many = (uint8_t)(oic_padded(n) - i < 64 ? oic_padded(n) - i : 64);               \\
            const C top = sum[51];                                                                         \\
            oic_largest_of_##T(w + i, 0, 1, &many, &top, sum + 51);                                        \\
        }                                                                                                  \\
        sum[52] = oic_sum_of_##T(w, oic_padded(n));                                                        \\
    }                                                                                                      \\
    void panel_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);               \\
    void panel_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                \\
    {                                                                                                      \\
        C *const first = sum + 256, *const second = first + 16 * n;                                        \\
        oic_columns_##T(w, wk, 4, n, first);                                                               \\
        for (ptrdiff_t e = 4; e < 16; e += 4) { /* the last of fewer rows again and again */               \\
            oic_columns_##T(w, wk, e / 4, n, first + e);                                                   \\
        }                                                                                                  \\
        for (ptrdiff_t e = 0; e < 16; e += 4) {                                                            \\
            oic_columns_##T(w, wk, 4 - e / 4, n, second + e);                                              \\
        }                                                                                                  \\
        oic_panel_dots_##T##_##T(x, xm, first, 1, 0, n, sum, 16);                                          \\
        enum { beside = oic_panels_beside_##T##_##T };                                                     \\
        oic_panel_dots_##T##_##T(x, xm, first, beside, 16 * n, n, sum + 128, 16 * beside);                 \\
    }                                                                                                      \\
    void weighted_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);            \\
    void weighted_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)             \\
    {                                                                                                      \\
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(oic_register_##T) / sizeof(C));                         \\
        oic_weighted_##T##_##T(sum, 160, 80, 2, 2, x, 2 * xm, xm, w, 2, wk, 1, n, 80);                     \\
        oic_weighted_##T##_##T(sum + 336, 80, 0, 2, 1, x, xm, 0, w, 1, wk, 0, n, 80); /* one head */        \\
        for (ptrdiff_t d = 0; d < 11; d += lanes) {                                                        \\
            oic_weighted_narrow_##T##_##T(sum + 320 + d, 0, 1, x, 0, w + d, wk, 0, n, 11 - d);                   \\
        }                                                                                                  \\
        const ptrdiff_t narrow[] = {5, 8, 19, 32, 45}; /* every other head has rows one on */              \\
        for (int i = 0; i < 5; ++i) {                                                                      \\
            oic_weighted_heads_##T##_##T(sum + 496 + i * 240, 48, 5, 2, 0, x, xm, 1, w, wk, 1, n, narrow[i]); \\
        }                                                                                                  \\
    }
#define EXPS(T, C)                                                                                         \\
    void exps_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);                \\
    void exps_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                 \\
    {                                                                                                      \\
        (void)x, (void)w, (void)wk, (void)xm;                                                              \\
        uint8_t many[64]; /* the last sixteen of every fourth row stay */                                  \\
        C top[64];                                                                                         \\
        for (ptrdiff_t r = 0; r < 64; ++r) {                                                               \\
            many[r] = (uint8_t)(r % 4 == 3 ? 48 : 64);                                                     \\
            top[r] = 0;                                                                                    \\
        }                                                                                                  \\
        oic_weigh_##T(sum, 64, n / 64, many, top, sum + n);                                                \\
        oic_factors_##T(sum + n + n / 64, n);                                                              \\
    }                                                                                                      \\
    void mix_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);                 \\
    void mix_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                  \\
    {                                                                                                      \\
        ptrdiff_t from[16], end[16];                                                                       \\
        for (ptrdiff_t r = 0; r < wk; ++r) {                                                               \\
            from[r] = 3 + r * xm;                                                                          \\
            end[r] = xm == 0 ? 3 + n : xm == 1 ? 3 + n - 4 + r : 3 + r * xm + 2;                           \\
        }                                                                                                  \\
        oic_mix_##T##_##T(sum, 80, x, n, wk, w, 80, from, end, 3, n, 80);                                  \\
    }                                                                                                      \\
    void exp_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);                 \\
    void exp_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                  \\
    {                                                                                                      \\
        (void)w, (void)wk, (void)xm;                                                                       \\
        for (ptrdiff_t i = 0; i < n; ++i) {                                                                \\
            sum[i] = oic_exp_##T(x[i] - 0);                                                                \\
        }                                                                                                  \\
    }
SEEN(f32, float)
SEEN(f64, double)
EXPS(f32, float)
EXPS(f64, double)
void ahead_f32(float *sum, const float *x, const float *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);
void ahead_f32(float *sum, const float *x, const float *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)
{
    float *const to = sum + wk * n, *const sums = to + wk * 64;
    (void)xm;
#if OIC_WEIGHS_AHEAD_f32
    oic_weigh_ahead_f32(to, 64, sum, n, wk, n, x, sums, w, 64);
#else
    uint8_t many[64];
    ptrdiff_t from[64] = {0}, end[64];
    for (ptrdiff_t r = 0; r < wk; ++r) {
        many[r] = (uint8_t)n;
        end[r] = n;
    }
    oic_weigh_f32(sum, n, wk, many, x, sums);
    oic_mix_f32_f32(to, 64, sum, n, wk, w, 64, from, end, 0, n, 64);
#endif
}
"""
EXACT = """
#include <stddef.h>
#include "simd/slow_fma.h"
#define EXACT(T, C)                                                                                        \\
    void fma_##T(C *y, const C *a, const C *b, ptrdiff_t count, ptrdiff_t step, ptrdiff_t unused);           \\
    void fma_##T(C *y, const C *a, const C *b, ptrdiff_t count, ptrdiff_t step, ptrdiff_t unused)            \\
    {                                                                                                      \\
        (void)unused;                                                                                      \\
        for (ptrdiff_t i = 0; i < count; ++i) {                                                            \\
            y[i] = oic_slow_fma_##T(a[i * step], b[i], y[i]);                                              \\
        }                                                                                                  \\
    }
EXACT(f32, float)
EXACT(f64, double)
"""
OURS = "#define OIC_FMA_F32 oic_slow_fma_f32\n#define OIC_FMA_F64 oic_slow_fma_f64\n"
NUMBERS = {"f32": np.float32, "f64": np.float64}


@pytest.fixture(scope="module", params=(FUSED, SEPARATE))
def numerics(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, numerics: str, tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    """Of one class; where the machine cannot fuse, with a multiply-add of our own."""
    folder: Path = tmp_path_factory.mktemp("lanes")
    known = TARGETS["portable"].seen(macros((toolchain.command, *toolchain.flags)))
    chosen = f"#define OIC_FUSED {int(numerics == FUSED)}\n"
    chosen += OURS if numerics == FUSED and known.numerics != FUSED else ""
    return toolchain.library(chosen + EXACT + SOURCE, folder, "lanes")


def called(
    library: CDLL, name: str, kind: str, count: int | Array, x: Array, w: Array, *sizes: int
) -> Array:
    """What a function leaves in `sum`, which holds `count` zeros, or these numbers, before."""
    number: Any = c_float if kind == "f32" else c_double
    function = getattr(library, f"{name}_{kind}")
    function.argtypes, function.restype = [POINTER(number)] * 3 + [c_ssize_t] * 3, None
    sums = np.zeros(count, x.dtype) if isinstance(count, int) else np.array(count, x.dtype)
    function(*(a.ctypes.data_as(POINTER(number)) for a in (sums, x, w)), *sizes)
    return sums


Step = Callable[[Array, Array, Array], Array]
"""start + x * w, in one rounding or two."""


@pytest.fixture(scope="module")
def step(library: CDLL, numerics: str) -> Step:
    def fused(start: Array, x: Array, w: Array) -> Array:
        kind = "f32" if start.dtype == np.float32 else "f64"
        x, w = (np.ascontiguousarray(np.broadcast_to(a, start.shape)) for a in (x, w))
        return called(library, "fma", kind, start, x, w, len(start), 1, 0)

    return fused if numerics == FUSED else lambda start, x, w: start + x * w


def chain(step: Step, start: Array, x: Array, w: Array) -> Array:
    """start[lanes] + x[k] * w[k, lanes], k ascending."""
    for k in range(len(x)):
        start = step(start, x[k], w[k])
    return start


def tree(sums: Array) -> Any:
    """The sum of sixteen numbers by halves."""
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return sums[0]


def sixteen(x: Array) -> Any:
    """Element i in sum i mod 16, then the tree."""
    sums = np.zeros(LANES, x.dtype)
    for i, number in enumerate(x):
        sums[i % LANES] += number
    return tree(sums)


def dot(step: Step, x: Array, w: Array) -> Any:
    """Product i in sum i mod 16, then the tree."""
    sums = np.zeros(LANES, x.dtype)
    for at in range(0, len(x), LANES):
        n = min(LANES, len(x) - at)
        sums[:n] = step(sums[:n], x[at : at + n], w[at : at + n])
    return tree(sums)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("n", [0, 1, 7, 15, 16, 17, 31, 40, 64, 259])
def test_every_order_is_the_one_stated(library: CDLL, step: Step, kind: str, n: int) -> None:
    rng, dtype = np.random.default_rng(n), np.float32 if kind == "f32" else np.float64
    x = rng.standard_normal((5, n + 1)).astype(dtype)
    w = rng.standard_normal((n + 1, 4 * LANES)).astype(dtype)
    zeros = np.zeros(4 * LANES, dtype)

    row = called(library, "row", kind, 64, x[0].copy(), w, 64, LANES, n)
    assert row.tobytes() == chain(step, chain(step, zeros, x[0, :n], w), x[0, :n], w).tobytes()

    rows = called(library, "rows", kind, 53, x, w, 64, n + 1, n)
    expected = [chain(step, zeros[:LANES], x[0, :n], w[:, :LANES])]
    expected.append(chain(step, zeros[:37], x[0, :n], w[:, :37]))
    assert rows.tobytes() == np.concatenate(expected).tobytes()

    other = np.zeros(n + LANES, dtype)  # zeros follow up to whole lanes
    other[:n] = rng.standard_normal(n)
    dots = called(library, "dots", kind, 65, x, other, 0, n + 1, n)
    expected = [dot(step, x[r, :n], other[:n]) for r in (*(0, 1, 2), *[0] * 5, *(1, 2, 3), *[1] * 5)]
    expected += 4 * expected[:8] + [dot(step, x[0, :n], other[:n])]
    away = x[0, :n] - other[0]
    expected += [sixteen(x[0, :n]), sixteen(away * away), max(other), sixteen(other[: -(-n // LANES) * LANES])]
    expected += [d for one in expected[:3] for d in (one, 0)] + [d for one in expected[:3] for d in (one, one)]
    assert dots.tobytes() == np.array(expected, dtype).tobytes()

    keys = rng.standard_normal((4, n + 1)).astype(dtype)
    rows = np.zeros((8, n + LANES), dtype)
    rows[:, :n] = rng.standard_normal((8, n))
    panel = called(library, "panel", kind, 256 + 2 * n * LANES, rows, keys, n + 1, n + LANES, n)
    columns = (0, 1, 2, 3, *[0] * 4, 0, *[1] * 3, 0, 1, 2, 2)
    others = (0, 1, 2, 3, 0, 1, 2, 2, 0, *[1] * 3, *[0] * 4)
    assert np.array_equal(panel[256:].reshape(2, n, LANES), [keys[columns, :n].T, keys[others, :n].T])
    found, beside = panel[:128].reshape(8, LANES), panel[128:256]
    tile = int(found.any(axis=1).sum()) if n else 0
    assert tile in (1, 3, 4, 6, 8) or n == 0
    expected = [dot(step, row[:n], keys[c, :n]) for row in rows[:tile] for c in columns]
    assert np.array_equal(found[:tile].ravel(), expected)
    if tile == 4:  # the rows of a tile that two panels go beside
        expected = [dot(step, row[:n], keys[c, :n]) for row in rows[:4] for c in (*columns, *others)]
    assert np.array_equal(beside[: len(expected)], expected) or n == 0

    wide = rng.standard_normal((n + 1, 83)).astype(dtype)
    sums = called(library, "weighted", kind, 1696, x, wide, 83, n + 1, n)
    expected = [chain(step, np.zeros(80, dtype), x[h, :n], wide[:, h : h + 80]) for h in range(4)]
    assert sums[:320].tobytes() == np.concatenate(expected).tobytes()
    assert sums[336:496].tobytes() == np.concatenate(expected[:2]).tobytes()
    for columns, found in zip((5, 8, 19, 32, 45), sums[496:].reshape(5, 5, 48), strict=True):
        for h in range(5):
            row = chain(step, np.zeros(columns, dtype), x[h, :n], wide[:, h // 2 : h // 2 + columns])
            assert found[h, :columns].tobytes() == row.tobytes()
    assert sums[320:331].tobytes() == chain(step, zeros[:11], x[0, :n], wide[:, :11]).tobytes()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_weights_are_the_exponentials_of_one_number(library: CDLL, kind: str) -> None:
    """Several at a time have the bits of the scalar function: zeros, subnormal results, none, infinities and NaN."""
    dtype = NUMBERS[kind]
    x = -np.geomspace(1e-9, 2000, 4090).astype(dtype)
    x = np.concatenate([x, np.array([0.0, -0.0, -np.inf, np.nan, -87.3, -104.0], dtype)])
    expected = called(library, "exp", kind, x, x, x, 0, 0, len(x))
    start = np.concatenate([x, np.ones(64, dtype), x])
    weights, sums, factors = np.split(called(library, "exps", kind, start, x, x, 0, 0, len(x)), [4096, 4160])
    assert np.array_equal(factors, expected, equal_nan=True)
    rows, left = expected.reshape(64, 64), x.reshape(64, 64)
    rows[3::4, 48:] = left[3::4, 48:]
    assert np.array_equal(weights.reshape(64, 64), rows, equal_nan=True)
    added = [1 + sixteen(row[:48] if r % 4 == 3 else row) for r, row in enumerate(rows)]
    assert np.array_equal(sums, np.array(added, dtype), equal_nan=True)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("rows", [1, 2, 4, 6, 9, 11, 16])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_mixed_rows_are_chains_of_those_that_they_see(library: CDLL, step: Step, kind: str, rows: int, steps: int) -> None:
    """Of all; of one more from row to row, some from outside on; of two, of which the next row has none."""
    rng, dtype, n = np.random.default_rng(rows), NUMBERS[kind], 20
    weights, values = rng.standard_normal((rows, n)).astype(dtype), rng.standard_normal((n, 80)).astype(dtype)
    values[1] = np.nan if steps == 5 else values[1]  # which the first row alone sees
    start = rng.standard_normal((rows, 80)).astype(dtype)
    found = called(library, "mix", kind, start, weights, values, rows, steps, n).reshape(rows, 80)
    for r in range(rows):
        end = {0: n, 1: min(n, n - 4 + r), 5: min(n, r * steps + 2)}[steps]
        seen = slice(min(r * steps, end), end)
        expected = chain(step, start[r], weights[r, seen], values[seen])
        assert np.array_equal(found[r], expected, equal_nan=True), r


@pytest.mark.parametrize("rows", [4, 8, 20])
@pytest.mark.parametrize("n", [16, 64])
def test_rows_are_weighed_and_mixed_in_one(library: CDLL, step: Step, rows: int, n: int) -> None:
    """What is done to some rows while others are mixed has no effect on these."""
    rng = np.random.default_rng(rows + n)
    scores = -np.abs(9 * rng.standard_normal((rows, n))).astype(np.float32)
    scores[0, 3], scores[rows - 1, 5], scores[rows - 2, 0] = -np.inf, np.nan, 0
    values, start = (rng.standard_normal((count, 64)).astype(np.float32) for count in (n, rows))
    given = np.concatenate([scores.ravel(), start.ravel(), np.ones(rows, np.float32)])
    found = called(library, "ahead", "f32", given, np.zeros(rows, np.float32), values, rows, 0, n)
    weights = called(library, "exp", "f32", scores.size, scores, scores, 0, 0, scores.size).reshape(rows, n)
    mixed = [chain(step, start[r], weights[r], values) for r in range(rows)]
    sums = [1 + sixteen(row) for row in weights]
    expected = np.concatenate([weights.ravel(), np.ravel(mixed), np.array(sums, np.float32)])
    assert np.array_equal(found, expected, equal_nan=True)


def hard(rng: np.random.Generator, dtype: Any, count: int) -> Array:
    """Numbers of every exponent, few bits or many, and the special ones."""
    bits = 32 if dtype == np.float32 else 64
    unsigned = np.uint32 if bits == 32 else np.uint64
    found = rng.integers(0, 1 << bits, count, np.uint64).astype(unsigned)
    found[::3] &= unsigned(((1 << bits) - 1) ^ ((1 << (bits // 3)) - 1))
    found[1::7] &= unsigned((1 << (bits - 1)) | ((1 << (24 if bits == 32 else 53)) - 1))
    numbers = found.view(dtype)
    numbers[: 16 : 2] = [0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, np.finfo(dtype).max, np.finfo(dtype).tiny]
    rng.shuffle(numbers)
    return numbers


def rounded(exact: Fraction, dtype: Any) -> Any:
    """A number that is not zero, rounded once, ties to even."""
    digits, least = (24, -149) if dtype == np.float32 else (53, -1074)
    whole = abs(exact)
    exponent = whole.numerator.bit_length() - whole.denominator.bit_length()
    unit = Fraction(2) ** max(least, exponent - digits)
    while whole / unit >= 1 << digits:
        unit *= 2
    while whole / unit < 1 << (digits - 1) and unit > Fraction(2) ** least:
        unit /= 2
    whole = round(whole / unit) * unit
    limit = Fraction(2) ** (128 if dtype == np.float32 else 1024)
    size = math.inf if whole >= limit else float(whole)
    return -size if exact < 0 else size


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_our_own_multiply_add_rounds_once(library: CDLL, kind: str) -> None:
    """Against exact fractions, where the numbers are finite and the result is not zero."""
    dtype, rng = NUMBERS[kind], np.random.default_rng(1)
    a, b, c = (hard(rng, dtype, 3000) for _ in range(3))
    with np.errstate(all="ignore"):
        c[::3] = (-a * b)[::3]  # most of it cancels
        c[1::3] = (a * b * dtype(2.0) ** rng.integers(-60, 60, len(a)).astype(dtype))[1::3]
        plain = (a.astype(np.float64) * b.astype(np.float64)) + c if kind == "f32" else a * b + c
    found = called(library, "fma", kind, c, a, b, len(a), 1, 0)
    exact = 0
    for x, y, z, seen, other in zip(a, b, c, found, plain, strict=True):
        if not np.isfinite([x, y, z]).all():
            special = np.isfinite([x, y]).all()
            assert np.array_equal(seen, z if special else dtype(other), equal_nan=True), (x, y, z)
            continue
        whole = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if whole:
            exact += 1
            assert float(seen) == rounded(whole, dtype), (x, y, z)
        else:
            assert seen == 0
    assert exact > 1500
