"""Sums of products by tiles: every tile on every machine, also those that its own kernels do not use.

Which tile a kernel takes depends on how many registers the target has.  Here all of them are called, on
small whole numbers, whose sums are exact in any order: so they are equal to plain sums, tails included.
"""

from __future__ import annotations

from ctypes import CDLL, POINTER, c_double, c_float, c_ssize_t
from pathlib import Path

import numpy as np
import pytest

from runtime.native import Toolchain

SOURCE = """
#include "dot.h"
#define TILES(C)                                                                                        \\
    void four_by_four_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum);   \\
    void four_by_four_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum)    \\
    {                                                                                                   \\
        oic_dot_4x4_##C(x, ldx, w, ldw, K, sum);                                                        \\
    }                                                                                                   \\
    void four_by_two_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum);    \\
    void four_by_two_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum)     \\
    {                                                                                                   \\
        oic_dot_4x2_##C(x, ldx, w, ldw, K, sum);                                                        \\
    }                                                                                                   \\
    void one_by_four_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum);    \\
    void one_by_four_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum)     \\
    {                                                                                                   \\
        (void)ldx;                                                                                      \\
        oic_dot_1x4_##C(x, w, ldw, K, sum);                                                             \\
    }                                                                                                   \\
    void one_by_one_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum);     \\
    void one_by_one_##C(const C *x, ptrdiff_t ldx, const C *w, ptrdiff_t ldw, ptrdiff_t K, C *sum)      \\
    {                                                                                                   \\
        (void)ldx;                                                                                      \\
        (void)ldw;                                                                                      \\
        sum[0] += oic_dot_1x1_##C(x, w, K);                                                             \\
    }
TILES(float)
TILES(double)
"""
TILES = {"four_by_four": (4, 4), "four_by_two": (4, 2), "one_by_four": (1, 4), "one_by_one": (1, 1)}


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    folder: Path = tmp_path_factory.mktemp("dot")
    return toolchain.library(SOURCE, folder, "dot")


@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("kind", ["float", "double"])
def test_tiles_sum_every_product(library: CDLL, name: str, kind: str) -> None:
    rows, columns = TILES[name]
    dtype, number = (np.float32, c_float) if kind == "float" else (np.float64, c_double)
    function = getattr(library, f"{name}_{kind}")
    pointer = POINTER(number)
    function.argtypes = [pointer, c_ssize_t, pointer, c_ssize_t, c_ssize_t, pointer]
    rng = np.random.default_rng(1)
    for length in [*range(36), 63, 64, 65, 127, 130, 257]:
        x = rng.integers(-8, 9, (rows, length + 3)).astype(dtype)
        w = rng.integers(-8, 9, (columns, length + 5)).astype(dtype)
        found = rng.integers(-8, 9, (rows, 4)).astype(dtype)
        wanted = found.copy()
        wanted[:, :columns] += x[:, :length] @ w[:, :length].T
        x_at, w_at, to = (a.ctypes.data_as(pointer) for a in (x, w, found))
        function(x_at, x.shape[1], w_at, w.shape[1], length, to)
        np.testing.assert_array_equal(found, wanted, str(length))
