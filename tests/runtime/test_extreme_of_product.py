"""Where rows have their extremes, from parts in any order and from several threads: exactly what the operators say."""

from __future__ import annotations

from ctypes import CDLL, c_int, c_void_p

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from runtime.native import Toolchain
from runtime.values import special
from runtime.wrap import expected, make

# Parts that threads take are rows first..end-1, columns from..to-1 of x, from which they are copied.
SOURCE = """
#include "hosted/pool.h"
#include "kernels/extreme_of_product.h"

#define MOST 4096

typedef struct {
    const float *x;
    ptrdiff_t columns, ld;
    const ptrdiff_t *parts;
    oic_then *then;
    const void *context;
} given;

static void some(const void *args, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const given *const g = args;
    float sum[MOST];
    (void)worker;
    for (ptrdiff_t i = begin; i < end; ++i) {
        const ptrdiff_t *const p = g->parts + 4 * i;
        const ptrdiff_t ld = g->ld > p[3] - p[2] ? g->ld : p[3] - p[2];
        for (ptrdiff_t r = p[0]; r < p[1]; ++r) {
            memcpy(sum + (r - p[0]) * ld, g->x + r * g->columns + p[2], (size_t)(p[3] - p[2]) * sizeof *sum);
        }
        g->then(g->context, sum, ld, p[0], p[1], p[2], p[3]);
    }
}

void positions(const float *x, int64_t *y, const ptrdiff_t *n, const ptrdiff_t *parts, int least, int last, int threads);
void positions(const float *x, int64_t *y, const ptrdiff_t *n, const ptrdiff_t *parts, int least, int last, int threads)
{
    const oic_argmax_axis_of_product_args a = {.y = y, .rows = n[0], .last = last};
    const given g = {x, n[1], n[2], parts, least ? oic_argmin_axis_of_product_then : oic_argmax_axis_of_product_then, &a};
    oic_pool *const pool = oic_pool_open(threads);
    (least ? oic_argmin_axis_of_product_begin : oic_argmax_axis_of_product_begin)(&a);
    oic_divide(pool, threads, n[3], INT64_MAX, some, &g);
    (least ? oic_argmin_axis_of_product_end : oic_argmax_axis_of_product_end)(&a);
    oic_pool_close(pool);
}
"""
WAYS = [(name, first) for name in ("argmax_axis", "argmin_axis") for first in (True, False)]


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    return toolchain.library(SOURCE, tmp_path_factory.mktemp(toolchain.name), "extreme_of_product")


def parts_of(rows: int, columns: int, rng: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """Every element once: blocks of rows, of whose columns up to 64 are next, in any order."""
    found, first = [], 0
    while first < rows:
        end, start = min(rows, first + int(rng.integers(1, 9))), 0
        while start < columns:
            to = min(columns, start + int(rng.choice([1, 5, 16, 33, 64])))
            found.append((first, end, start, to))
            start = to
        first = end
    return [found[i] for i in rng.permutation(len(found))]


def positions(library: CDLL, x: Array, parts: list[tuple[int, int, int, int]], way: tuple[str, bool], threads: int) -> Array:
    name, first = way
    y = np.full(len(x) + 1, 0x55AA, np.int64)
    n, cuts = (np.array(v, np.intp) for v in ([*x.shape, 80, len(parts)], parts))
    arrays = (c_void_p(v.ctypes.data) for v in (x, y, n, cuts))
    library.positions(*arrays, c_int(name == "argmin_axis"), c_int(not first), c_int(threads))
    assert y[-1] == 0x55AA
    return y[:-1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 3, 7])
def test_parts_in_any_order(threads: int, way: tuple[str, bool], library: CDLL) -> None:
    """Ties, zeros of both signs, infinities, NaN first or later; rows of little else."""
    rng = np.random.default_rng(threads)
    odd = [special(dtypes.f32), np.float32([0.0, -0.0]), np.float32([np.nan, -np.inf]), np.float32([np.nan, np.inf])]
    for rows, columns in ((1, 1), (1, 2), (3, 17), (5, 64), (130, 200), (2, 1031)):
        for values in (*odd, np.float32([1, 2, 3])):
            x = rng.choice(values, (rows, columns))
            few = rng.standard_normal((rows, columns)).round(1).astype(np.float32)
            x = np.where(rng.random((rows, 1)) < 0.5, x, np.where(rng.random(x.shape) < 0.1, x, few))
            x[:, 0] = np.where(rng.random(rows) < 0.7, few[:, 0], x[:, 0])
            op = make(way[0], (f"f32[{rows}, {columns}]", f"axis=1, select_first={str(way[1]).lower()}"))
            got = positions(library, x, parts_of(rows, columns, rng), way, threads)
            np.testing.assert_array_equal(got, expected(op, [x]))


def test_threads_lose_nothing(library: CDLL) -> None:
    """Every part is better than those before it, and all threads are at the same row."""
    x = np.arange(20000, dtype=np.float32)[None]
    one_by_one = [(0, 1, i, i + 1) for i in range(x.size)]
    for _ in range(20):
        assert positions(library, x, one_by_one, ("argmax_axis", True), 4).tolist() == [x.size - 1]
        assert positions(library, -x, one_by_one, ("argmin_axis", False), 4).tolist() == [x.size - 1]
        assert positions(library, np.zeros_like(x), one_by_one, ("argmax_axis", False), 4).tolist() == [x.size - 1]
