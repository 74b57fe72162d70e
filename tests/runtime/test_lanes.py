"""Chains of products and sums in lanes: every bit is that of a plain loop in the order that the headers state.

Kernels take whichever of these functions suits the sizes; all of them must give one answer, on every
machine and with every compiler.
"""

from __future__ import annotations

from ctypes import CDLL, POINTER, c_double, c_float, c_ssize_t
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oic.dtypes import Array
from runtime.native import Toolchain

LANES = 16
SOURCE = """
#include "sums.h"
#define SEEN(T, C)                                                                                       \\
    void row_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t group, ptrdiff_t n);              \\
    void row_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t group, ptrdiff_t n)               \\
    {                                                                                                      \\
        oic_chains_1x4_of_##T(sum, x, 1, w, wk, group, n);                                                 \\
        oic_chains_1x4_##T(sum, x, 1, w, wk, group, n);                                                    \\
    }                                                                                                      \\
    void rows_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);                \\
    void rows_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                 \\
    {                                                                                                      \\
        oic_chains_4x1_##T(sum, x, xm, 1, w, wk, n);                                                       \\
        oic_chains_1x1_##T(sum + 64, x, 1, w, wk, n);                                                      \\
        oic_chains_##T(sum + 80, x, 1, w, wk, n, 37);                                                      \\
    }                                                                                                      \\
    void dots_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n);                \\
    void dots_##T(C *sum, const C *x, const C *w, ptrdiff_t wk, ptrdiff_t xm, ptrdiff_t n)                 \\
    {                                                                                                      \\
        (void)wk;                                                                                          \\
        oic_dots_4_##T(x, xm, w, n, sum);                                                                  \\
        sum[4] = oic_dot_##T(x, w, n);                                                                     \\
        sum[5] = oic_sum_##T(x, n);                                                                        \\
        sum[6] = oic_sum_squares_##T(x, n, w[0]);                                                          \\
    }
SEEN(f32, float)
SEEN(f64, double)
"""


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    folder: Path = tmp_path_factory.mktemp("lanes")
    return toolchain.library(SOURCE, folder, "lanes")


def called(library: CDLL, name: str, kind: str, count: int, x: Array, w: Array, *sizes: int) -> Array:
    """What a function leaves in `sum`, which holds `count` zeros before."""
    number: Any = c_float if kind == "f32" else c_double
    function = getattr(library, f"{name}_{kind}")
    function.argtypes, function.restype = [POINTER(number)] * 3 + [c_ssize_t] * 3, None
    sums = np.zeros(count, x.dtype)
    function(*(a.ctypes.data_as(POINTER(number)) for a in (sums, x, w)), *sizes)
    return sums


def chain(start: Array, x: Array, w: Array) -> Array:
    """start[lanes] + x[k] * w[k, lanes], k ascending, each product and each sum rounded."""
    for k in range(len(x)):
        start = start + x[k] * w[k]
    return start


def tree(sums: Array) -> Any:
    """The sum of sixteen numbers by halves."""
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    return sums[0]


def sixteen(products: Array) -> Any:
    """Element i in sum i mod 16, then the tree."""
    sums = np.zeros(LANES, products.dtype)
    for i, product in enumerate(products):
        sums[i % LANES] += product
    return tree(sums)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("n", [0, 1, 7, 15, 16, 17, 31, 40, 64, 259])
def test_every_order_is_the_one_stated(library: CDLL, kind: str, n: int) -> None:
    rng, dtype = np.random.default_rng(n), np.float32 if kind == "f32" else np.float64
    x = rng.standard_normal((4, n + 1)).astype(dtype)
    w = rng.standard_normal((n + 1, 4 * LANES)).astype(dtype)
    zeros = np.zeros(4 * LANES, dtype)

    row = called(library, "row", kind, 64, x[0].copy(), w, 64, LANES, n)
    assert row.tobytes() == chain(chain(zeros, x[0, :n], w), x[0, :n], w).tobytes()

    rows = called(library, "rows", kind, 117, x, w, 64, n + 1, n)
    expected = [chain(zeros[:LANES], x[r, :n], w[:, :LANES]) for r in (0, 1, 2, 3, 0)]
    expected.append(chain(zeros[:37], x[0, :n], w[:, :37]))
    assert rows.tobytes() == np.concatenate(expected).tobytes()

    other = rng.standard_normal(n + 1).astype(dtype)
    dots = called(library, "dots", kind, 7, x, other, 0, n + 1, n)
    expected = [sixteen(x[r, :n] * other[:n]) for r in (0, 1, 2, 3, 0)]
    away = x[0, :n] - other[0]
    expected += [sixteen(x[0, :n]), sixteen(away * away)]
    assert dots.tobytes() == np.array(expected, dtype).tobytes()
