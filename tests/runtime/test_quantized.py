"""Products with weights of 8 and 4 bits in groups: every bit is that of a plain model of the order that the headers state.

Compilers, instruction sets, how many rows are computed together or in turns, and the division over panels make no difference.
Operands end where memory ends, so that a read beyond them is seen.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import shutil
import subprocess
from ctypes import CDLL, c_ssize_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compilers import level
from oic import dtypes
from oic.dtypes import Array
from oic.ir.core import Value
from oic.ir.types import TensorType
from oic.operators import conv
from oic.operators.conv import Conv2d
from oic.operators.conv_transpose import ConvTranspose2d
from oic.toolchain.target import LANGUAGE, MEANING, WARNINGS
from paths import ROOT
from processor import AVX2
from runtime import wasm
from runtime.boards import CORTEX_M4, CORTEX_M55, EMULATOR, EMULATOR_M4
from runtime.native import AVX512, INTEL, TOOLCHAINS, ZEN5, Toolchain

pytestmark = pytest.mark.xdist_group("quantized-runtime")

GROUP = 32
SOURCE = """
#if defined(__FMA__)
#define OIC_FUSED 1
#endif
#define OIC_QUANTIZED_NEAR 16384 /* some of the shapes have more */
#include "kernels/common/attending.h"
#define OIC_X f32
#define OIC_W f32
#define OIC_B f32
#include "kernels/linear_q{bits}.h"
#define OIC_X f16
#define OIC_W f32
#define OIC_B f16
#include "kernels/linear_q{bits}.h"
#define OIC_X f32
#define OIC_W f32
#define OIC_B i32
#include "kernels/gather_q{bits}.h"

void product_{bits}(const void *const *p, const ptrdiff_t *n);
void product_{bits}(const void *const *p, const ptrdiff_t *n)
{{
    const oic_linear_q{bits}_f32_f32_f32_args a = {{
        .x = p[0], .w = p[1], .b = p[2], .y = (void *)(uintptr_t)p[3], .work = (void *)(uintptr_t)p[4],
        .rank = 1, .shape = n + 5, .xs = n + 6, .M = n[0], .K = n[1], .N = n[2], .ldx = n[3], .room = n[4]}};
    oic_linear_q{bits}_f32_f32_f32(&a);
}}

void parts_{bits}(const void *const *p, const ptrdiff_t *n);
void parts_{bits}(const void *const *p, const ptrdiff_t *n)
{{
    const oic_linear_q{bits}_f16_f32_f16_args a = {{
        .x = p[0], .w = p[1], .b = p[2], .y = (void *)(uintptr_t)p[3], .work = (void *)(uintptr_t)p[4],
        .rank = 1, .shape = n + 5, .xs = n + 6, .M = n[0], .K = n[1], .N = n[2], .ldx = n[3], .room = n[4]}};
    oic_linear_q{bits}_prepare_f16_f32_f16(&a, 0, n[5] * n[0], 0);
    for (ptrdiff_t at = oic_streams(a.N), n_of = 1; at > 0; at -= n_of, n_of = n_of % 5 + 1) {{
        oic_linear_q{bits}_part_f16_f32_f16(&a, at < n_of ? 0 : at - n_of, at, 1);
    }}
}}

void gather_{bits}(const void *const *p, const ptrdiff_t *n);
void gather_{bits}(const void *const *p, const ptrdiff_t *n)
{{
    const oic_gather_q{bits}_f32_f32_i32_args a = {{
        .table = p[0], .ids = p[1], .y = (void *)(uintptr_t)p[2], .size = n[0], .inner = n[1], .n = n[2]}};
    oic_gather_q{bits}_f32_f32_i32(&a);
}}
"""
BYTES = """
#define OIC_X i8
#define OIC_W i32
#define OIC_B i32
#include "kernels/linear_int.h"

void bytes(const void *const *p, const ptrdiff_t *n);
void bytes(const void *const *p, const ptrdiff_t *n)
{
    const oic_linear_i8_i32_i32_args a = {
        .x = p[0], .w = p[1], .b = p[2], .y = (void *)(uintptr_t)p[3], .M = n[0], .K = n[1], .N = n[2], .ldx = n[3], .ldw = n[4]};
    oic_linear_i8_i32_i32(&a);
}

#define OIC_X i8
#define OIC_W i32
#define OIC_B i32
#include "kernels/conv_planes_int.h"

void planes(const void *const *p, const ptrdiff_t *n);
void planes(const void *const *p, const ptrdiff_t *n)
{
    const oic_conv_planes_i8_i32_i32_args a = {
        .x = p[0], .w = p[1], .b = p[2], .y = (void *)(uintptr_t)p[3], .work = (void *)(uintptr_t)p[4], .batch = n[0],
        .channels = n[1], .height = n[2], .width = n[3], .outputs = n[4], .taps_y = n[5], .taps_x = n[6], .out_height = n[7],
        .out_width = n[8], .stride_y = n[9], .stride_x = n[10], .padding_y = n[11], .padding_x = n[12], .dilation_y = n[13],
        .dilation_x = n[14], .groups = n[15], .rows = n[16], .columns = n[17], .room = n[18],
        .along = (int)n[19]};
    if (n[20] == 0) {
        oic_conv_planes_i8_i32_i32(&a);
        return;
    }
    oic_conv_begin(a.work, 2, a.room);
    for (ptrdiff_t unit = 0; unit < n[20]; ++unit) {
        oic_conv_planes_part_i8_i32_i32(&a, unit, unit + 1, unit % 3 == 1);
    }
}

void classes(const void *const *p, const ptrdiff_t *n);
void classes(const void *const *p, const ptrdiff_t *n)
{
    const oic_conv_transpose_planes_i8_i32_i32_args a = {
        .x = p[0], .w = p[1], .b = p[2], .y = (void *)(uintptr_t)p[3], .work = (void *)(uintptr_t)p[4], .batch = n[0],
        .channels = n[1], .height = n[2], .width = n[3], .outputs = n[4], .taps_y = n[5], .taps_x = n[6], .out_height = n[7],
        .out_width = n[8], .stride_y = n[9], .stride_x = n[10], .padding_y = n[11], .padding_x = n[12], .dilation_y = n[13],
        .dilation_x = n[14], .groups = n[15], .rows = n[16], .columns = n[17], .room = n[18]};
    if (n[19] == 0) {
        oic_conv_transpose_planes_i8_i32_i32(&a);
        return;
    }
    oic_conv_begin(a.work, 2, a.room);
    for (ptrdiff_t unit = 0; unit < n[19]; ++unit) {
        oic_conv_transpose_planes_part_i8_i32_i32(&a, unit, unit + 1, unit % 3 == 1);
    }
}

#define OIC_X i8
#define OIC_W i32
#define OIC_B i32
#include "kernels/linear_words.h"

void words(const void *const *p, const ptrdiff_t *n);
void words(const void *const *p, const ptrdiff_t *n)
{
    const oic_linear_words_i8_i32_i32_args a = {
        .x = p[0], .w = p[1], .b = p[2], .y = (void *)(uintptr_t)p[3], .work = (void *)(uintptr_t)p[4], .M = n[0], .K = n[1],
        .N = n[2], .ldw = n[3], .rows = n[4], .room = n[5]};
    oic_linear_words_i8_i32_i32(&a);
}

#define OIC_X i8
#define OIC_W i32
#include "kernels/matmul_words.h"

void columns(const void *const *p, const ptrdiff_t *n);
void columns(const void *const *p, const ptrdiff_t *n)
{
    const oic_matmul_words_i8_i32_args a = {
        .a = p[0], .b = p[1], .y = (void *)(uintptr_t)p[2], .work = (void *)(uintptr_t)p[3], .rank = 2, .shape = n + 9, .as = n + 11,
        .bs = n + 13, .M = n[0], .K = n[1], .N = n[2], .am = n[3], .ak = n[4], .bk = n[5], .bn = n[6], .room = n[7]};
    if (n[8] == 0) {
        oic_matmul_words_i8_i32(&a);
        return;
    }
    const oic_matmul_view_i8_i32 v = oic_matmul_words_view_i8_i32(&a, 0);
    for (ptrdiff_t unit = 0, end; unit < n[9] * n[10] * v.blocks * v.parts; unit = end) {
        end = unit + 1 + unit % 2;
        oic_matmul_words_part_i8_i32(&a, unit, end < n[9] * n[10] * v.blocks * v.parts ? end : unit + 1, unit % 3 == 1);
    }
}

#define OIC_X i8
#define OIC_W i32
#define OIC_B i32
#include "kernels/conv_winograd.h"

void winograd(const void *const *p, const ptrdiff_t *n);
void winograd(const void *const *p, const ptrdiff_t *n)
{
    const oic_conv_winograd_i8_i32_i32_args a = {
        .x = p[0], .w = p[1], .b = p[2], .y = (void *)(uintptr_t)p[3], .work = (void *)(uintptr_t)p[4], .batch = n[0],
        .channels = n[1], .height = n[2], .width = n[3], .outputs = n[4], .taps_y = n[5], .out_height = n[6], .out_width = n[7],
        .padding_y = n[8], .padding_x = n[9], .dilation_y = n[10], .dilation_x = n[11], .groups = n[12], .rows = n[13],
        .columns = n[14], .room = n[15]};
    oic_conv_winograd_i8_i32_i32(&a);
}
"""
BUILDS = (
    *TOOLCHAINS, Toolchain("gcc-plain", "gcc", (level("-O2"), "-march=native", "-DOIC_PORTABLE")), AVX512, INTEL, ZEN5,
    Toolchain("gcc-avx2", "gcc", (level("-O2"), "-march=x86-64-v3"), AVX2),
    Toolchain("gcc-avxvnni", "gcc", (level("-O2"), "-march=x86-64-v3", "-mavxvnni"), (*AVX2, "avx_vnni")),
)  # fmt: skip


@pytest.fixture(scope="module", params=BUILDS, ids=lambda t: t.name)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    toolchain: Toolchain = request.param
    if toolchain.missing:
        pytest.skip(toolchain.missing)
    folder: Path = tmp_path_factory.mktemp("quantized")
    return toolchain.library(SOURCE.format(bits=8) + SOURCE.format(bits=4) + BYTES, folder, "quantized")


def guarded(data: Array) -> Array:
    """A copy whose last byte is the last of a page that no other follows."""
    page = mmap.PAGESIZE
    size = -(-data.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    whole = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(whole.ctypes.data + size, page, 0) == 0
    copy = whole[size - data.nbytes : size].view(data.dtype).reshape(data.shape)
    copy[...] = data
    return copy


def call(library: CDLL, name: str, arrays: list[Array | None], sizes: list[int]) -> None:
    pointers = (c_void_p * len(arrays))(*(None if a is None else a.ctypes.data for a in arrays))
    getattr(library, name)(pointers, (c_ssize_t * len(sizes))(*sizes))


def packed(q: Array, scale: Array, bits: int) -> Array:
    """q[R, K] and scale[R, G] as they lie in memory."""
    rows, k = q.shape
    groups = -(-k // GROUP)
    padded, scales = np.zeros((-(-rows // 16) * 16, groups * GROUP), np.int64), np.zeros((-(-rows // 16) * 16, groups), np.float16)
    padded[:rows, :k], scales[:rows] = q, scale
    padded += 8 if bits == 4 else 0
    numbers, factors = [np.empty(0, np.uint8)], []
    for r in range(0, len(padded), 64):
        some = padded[r : r + 64]
        wide = some.reshape(len(some) // 16, 16, groups, 8, 4).transpose(2, 0, 3, 1, 4)  # group, panel, step, row, neighbour
        wide = wide if bits == 8 else wide[:, :, :4] | wide[:, :, 4:] << 4
        numbers.append((wide & 255).astype(np.uint8).ravel())
        factors.append(scales[r : r + 64].T.ravel())
    return np.concatenate([*numbers, *(f.view(np.uint8) for f in factors)])


def quantized(x: Array) -> tuple[Array, Array]:
    """x[M, G, 32] as integers, and the scale of each group."""
    finite = np.isfinite(x).all(-1)
    amax = np.where(finite, np.abs(x).max(-1), np.float32(np.nan)).astype(np.float32)
    inv = np.where(amax >= np.float32(2.0**-119), np.float32(127) / amax, np.float32(0)).astype(np.float32)
    q = np.rint(np.where(finite[..., None], x, np.float32(0)) * inv[..., None])
    return q.astype(np.int64), amax / np.float32(127)


def product(x: Array, q: Array, scale: Array, b: Array | None) -> Array:
    """The definition: groups in order, each operation rounded by itself."""
    groups = scale.shape[1]
    widened = [np.zeros((len(a), groups * GROUP), a.dtype) for a in (x, q)]
    for to, a in zip(widened, (x, q), strict=True):
        to[:, : a.shape[1]] = a
    w, dw = widened[1].reshape(len(q), groups, GROUP), scale.astype(np.float32)
    y = np.zeros((len(x), len(q)), np.float32)
    with np.errstate(all="ignore"):
        qx, dx = quantized(widened[0].reshape(len(x), groups, GROUP))
        for g in range(groups):
            y = y + (qx[:, g] @ w[:, g].T).astype(np.float32) * (dw[None, :, g] * dx[:, None, g])
        return y if b is None else y + b.astype(np.float32)


def weights(rng: np.random.Generator, rows: int, k: int, bits: int, kind: str) -> tuple[Array, Array]:
    low, high = (-128, 127) if bits == 8 else (-8, 7)
    q = rng.integers(low, high + 1, (rows, k))
    if kind == "extreme":
        q = np.where(rng.random((rows, 1)) < 0.5, low, high) * np.ones((1, k), np.int64)
    scale = (rng.standard_normal((rows, -(-k // GROUP))) * 0.01).astype(np.float16)
    scale.ravel()[::7] = np.float16(6e-8)  # the smallest subnormal
    return q, scale


def inputs(rng: np.random.Generator, rows: int, k: int, kind: str) -> Array:
    x = rng.standard_normal((rows, k)).astype(np.float32)
    if kind == "extreme":
        return np.where(rng.random((rows, 1)) < 0.5, np.float32(-1), np.float32(1)) * np.ones((1, k), np.float32)
    if kind == "special":
        x = (x * 10.0 ** rng.integers(-44, 38, (rows, 1))).astype(np.float32)
        x[:, : GROUP // 2] = 0
        x[::3, GROUP : 2 * GROUP] = 0
        for value in (np.nan, np.inf, -np.inf, -0.0, 2.0**-119, np.nextafter(np.float32(2.0**-119), np.float32(0))):
            x[rng.random(x.shape) < 0.01] = value
    return x


SHAPES = [
    (0, 5, 3), (1, 1, 1), (1, 96, 280), (2, 33, 17), (5, 70, 130), (17, 257, 67), (70, 40, 80), (3, 320, 64), (6, 70, 96), (9, 300, 112),
    (1, 40, 700), (4, 33, 600),  # shares of several streams side by side, and some left
    (3, 0, 17), (2, 40, 0), (0, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["usual", "extreme", "special"])
def test_every_bit_is_that_of_the_definition(library: CDLL, bits: int, kind: str) -> None:
    rng = np.random.default_rng(bits)
    for m, k, n in SHAPES:
        q, scale = weights(rng, n, k, bits, kind)
        x, b = inputs(rng, 2 * m, k, kind), rng.standard_normal(n).astype(np.float32) if kind == "usual" else None
        groups, w = scale.shape[1], guarded(packed(q, scale, bits))
        wanted = product(x, q, scale, b)
        spaced = np.zeros((2 * m, k + 3), np.float32)  # rows at other addresses than those of registers
        spaced[:, 3:] = x
        held = guarded(spaced)[:, 3:]
        for room in {1, 3, 13, 21, 39, max(2 * m, 1)}:  # blocks with and without tiles of 8, and rests beside them
            y, work = guarded(np.empty((2 * m, n), np.float32)), guarded(np.empty(room * groups * 20, np.int32))
            given = [held if m else None, w, None if b is None else guarded(b), y, work]
            call(library, f"product_{bits}", given, [m, k, n, k + 3, room, 2, m * (k + 3)])
            assert np.array_equal(y, wanted, equal_nan=True), (m, k, n, room)


@pytest.mark.parametrize("bits", [8, 4])
def test_streams_are_computed_in_any_order(library: CDLL, bits: int) -> None:
    """Of f16, whose results are rounded once."""
    rng = np.random.default_rng(bits)
    for m, k, n in [(1, 64, 600), (6, 100, 211)]:
        q, scale = weights(rng, n, k, bits, "usual")
        x, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n,)))
        y, work = np.empty((m, n), np.float16), np.empty(m * scale.shape[1] * 20, np.int32)
        call(library, f"parts_{bits}", [x, packed(q, scale, bits), b, y, work], [m, k, n, k, m, 1, 0])
        assert np.array_equal(y, product(x.astype(np.float32), q, scale, b).astype(np.float16))


@pytest.mark.parametrize("bits", [8, 4])
def test_rows_are_gathered(library: CDLL, bits: int) -> None:
    rng = np.random.default_rng(bits)
    for rows, k in [(1, 1), (16, 32), (83, 77), (200, 64)]:
        q, scale = weights(rng, rows, k, bits, "usual")
        ids, y = rng.integers(0, rows, 9).astype(np.int32), np.empty((9, k), np.float32)
        call(library, f"gather_{bits}", [guarded(packed(q, scale, bits)), ids, y], [rows, k, len(ids)])
        wide: Any = np.repeat(scale.astype(np.float32), GROUP, axis=1)[:, :k]
        assert np.array_equal(y, (q.astype(np.float32) * wide)[ids])


def test_products_of_bytes_are_exact(library: CDLL) -> None:
    rng = np.random.default_rng(3)
    for m, k, n in [(0, 3, 2), (1, 1, 1), (2, 16, 4), (3, 37, 9), (2, 300, 261)]:
        x, w = (rng.choice([-128, 127, -1, 3], (rows, k + 5)).astype(np.int8) for rows in (m, n))
        b, y = rng.integers(-9, 9, n).astype(np.int32), guarded(np.empty((m, n), np.int32))
        given = [guarded(x)[:, 5:] if m else None, guarded(w)[:, 5:], b, y]
        call(library, "bytes", given, [m, k, n, k + 5, k + 5])
        assert np.array_equal(y, x[:, 5:].astype(np.int64) @ w[:, 5:].T.astype(np.int64) + b)


def test_rows_of_bytes_as_words_are_exact(library: CDLL) -> None:
    """Rows that fill lanes, too few that are left, several blocks; numbers that fill words, and some left."""
    rng = np.random.default_rng(8)
    for m, k, n, rows in [(1, 1, 1, 16), (3, 5, 7, 16), (16, 64, 50, 16), (37, 33, 13, 32), (67, 18, 97, 48), (44, 9, 12, 16)]:
        for values in ([-128], [-128, 127, -1, 3]):
            x, w = (rng.choice(values, shape).astype(np.int8) for shape in ((m, k), (n, k + 3)))
            b, y = rng.integers(-9, 9, n).astype(np.int32), guarded(np.empty((m, n), np.int32))
            room = 4 * -(-k // 2) * (rows + 16 + 13)
            work = guarded(np.empty(room, np.uint8))
            call(library, "words", [guarded(x), guarded(w)[:, 3:], b, y, work], [m, k, n, k + 3, rows, room])
            assert np.array_equal(y, x.astype(np.int64) @ w[:, 3:].T.astype(np.int64) + b), (m, k, n)


# M, K, N; leading axes of a and of b; columns of a block; elements from one to the next
COLUMNS = [
    ((1, 1, 2), (1, 1), (1, 1), 16, 1),
    ((3, 0, 5), (1, 1), (1, 1), 16, 1),
    ((0, 3, 5), (1, 1), (1, 1), 16, 1),
    ((5, 3, 0), (1, 1), (1, 1), 16, 1),
    ((4, 6, 19), (2, 3), (1, 3), 16, 1),
    ((37, 5, 7), (2, 1), (2, 1), 16, 1),
    ((97, 33, 50), (1, 1), (1, 1), 32, 1),
    ((145, 18, 300), (1, 1), (1, 1), 304, 1),
    ((13, 64, 37), (3, 2), (1, 1), 48, 1),
    ((16, 9, 33), (1, 2), (1, 2), 16, 3),
]


@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
def test_columns_of_bytes_as_words_are_exact(library: CDLL, transposed: tuple[bool, bool]) -> None:
    """Rows and columns that fill registers, and some left; units alone, of two workers; zero extents, batches, gaps."""
    rng = np.random.default_rng(9)
    for (m, k, n), *leads, wide, apart in COLUMNS:
        for values in ([-128], [-128, 127, -1, 3]):
            operands = []
            for lead, (rows, columns), turned in zip(leads, ((m, k), (k, n)), transposed, strict=True):
                shape = (columns, rows) if turned else (rows, columns)
                whole = rng.choice(values, (*lead, shape[0], shape[1] * apart)).astype(np.int8)
                seen = (guarded(whole) if whole.size else whole)[..., apart - 1 :: apart]
                operands.append(seen.swapaxes(-1, -2) if turned else seen)
            a, b = operands
            wanted = np.matmul(a.astype(np.int64), b.astype(np.int64))
            y, shape = guarded(np.empty(wanted.shape, np.int32)) if wanted.size else None, wanted.shape[:2]
            room = 4 * max(1, -(-k // 2)) * (wide + 13)
            steps = [0 if size == 1 else step for v in operands for size, step in zip(v.shape[:2], v.strides[:2], strict=True)]
            for alone in (0, 1):
                work = guarded(np.empty(-(-room // 64) * 64 + room, np.uint8))
                sizes = [m, k, n, *a.strides[2:], *b.strides[2:], room, alone, *shape, *steps]
                call(library, "columns", [a, b, y, work], sizes)
                assert y is None or np.array_equal(y, wanted), (m, k, n, values, alone)


# batch, channels, height, width; outputs, taps; stride, padding, dilation; groups; rows and columns of a block
PLANES = [
    ((1, 1, 1, 1), (1, 1, 1), ((1, 1), (0, 0), (1, 1)), 1, (1, 1)),
    ((2, 6, 4, 4), (11, 3, 2), ((2, 2), (1, 1), (1, 1)), 1, (1, 3)),
    ((2, 3, 5, 19), (13, 3, 2), ((1, 1), (1, 1), (1, 1)), 1, (2, 16)),
    ((1, 6, 9, 40), (4, 2, 3), ((2, 1), (0, 2), (1, 2)), 2, (5, 41)),
    ((2, 9, 4, 33), (150, 1, 1), ((1, 1), (0, 0), (1, 1)), 1, (4, 33)),
    ((1, 2, 8, 21), (6, 3, 3), ((3, 2), (2, 2), (1, 1)), 2, (3, 12)),
    ((2, 3, 9, 70), (3, 3, 3), ((1, 1), (1, 1), (1, 1)), 3, (4, 70)),
    ((1, 2, 7, 67), (4, 3, 5), ((2, 2), (1, 2), (1, 1)), 2, (2, 33)),
    ((1, 2, 3, 90), (2, 2, 9), ((1, 4), (0, 5), (1, 1)), 2, (2, 23)),
    ((1, 2, 4, 40), (2, 1, 6), ((1, 3), (0, 9), (1, 2)), 2, (3, 16)),
    ((1, 3, 17, 29), (7, 7, 7), ((2, 2), (3, 3), (1, 1)), 1, (3, 15)),
    ((1, 2, 2, 3), (2, 1, 5), ((1, 1), (0, 9), (1, 3)), 2, (2, 9)),
    ((1, 2, 1, 7), (2, 1, 5), ((1, 2), (0, 2), (1, 1)), 2, (1, 2)),
    ((1, 2, 9, 7), (2, 3, 3), ((1, 1), (1, 1), (1, 1)), 2, (9, 7)),
    ((1, 2, 20, 110), (2, 7, 7), ((1, 1), (1, 1), (1, 1)), 2, (16, 106)),
    ((1, 2, 9, 140), (2, 3, 3), ((1, 1), (1, 1), (1, 1)), 2, (5, 140)),
    ((1, 2, 23, 90), (2, 3, 3), ((4, 4), (1, 1), (1, 1)), 2, (6, 23)),
    ((1, 2, 15, 70), (2, 5, 3), ((2, 2), (1, 1), (2, 2)), 2, (5, 35)),
    ((1, 2, 14, 64), (2, 3, 3), ((2, 2), (1, 1), (3, 3)), 2, (5, 30)),
    ((1, 2, 8, 34), (2, 3, 1), ((1, 1), (1, 0), (1, 1)), 2, (8, 34)),
    ((1, 2, 1, 40), (2, 3, 3), ((2, 1), (5, 1), (1, 1)), 2, (5, 40)),
    ((2, 5, 3, 3), (5, 3, 3), ((1, 1), (1, 1), (1, 1)), 5, (3, 3)),
    ((1, 3, 11, 11), (3, 5, 6), ((1, 1), (2, 3), (1, 1)), 3, (11, 12)),
    ((1, 3, 1, 127), (3, 2, 3), ((1, 1), (1, 1), (1, 1)), 3, (2, 127)),
    ((1, 3, 8, 16), (3, 3, 3), ((1, 1), (1, 1), (1, 1)), 3, (8, 16)),
    ((1, 3, 9, 14), (3, 3, 3), ((1, 1), (1, 1), (1, 1)), 3, (9, 14)),
    ((2, 3, 7, 18), (3, 4, 2), ((3, 2), (4, 1), (2, 5)), 3, (4, 8)),
    ((1, 3, 2, 5), (3, 3, 3), ((1, 1), (6, 4), (1, 1)), 3, (12, 11)),
    ((1, 3, 2, 5), (3, 3, 3), ((1, 1), (6, 5), (1, 1)), 3, (12, 13)),
    ((1, 3, 1, 60), (3, 1, 5), ((1, 2), (0, 2), (1, 3)), 3, (1, 26)),
    ((1, 3, 1, 130), (3, 1, 2), ((1, 1), (0, 31), (1, 21)), 3, (1, 171)),
    ((1, 3, 1, 130), (3, 1, 2), ((1, 1), (0, 31), (1, 22)), 3, (1, 170)),
]


def test_convolutions_of_bytes_are_exact(library: CDLL) -> None:
    rng = np.random.default_rng(4)
    for x_shape, (outputs, *taps), settings, groups, block in PLANES:
        inputs = x_shape[1] // groups
        x, w = (rng.choice([-128, 127, -1, 3], shape).astype(np.int8) for shape in (x_shape, (outputs, inputs, *taps)))
        b, (stride, padding, dilation) = rng.integers(-9, 9, outputs).astype(np.int32), settings
        named = dict(zip(("stride", "padding", "dilation"), map(list, settings), strict=True), groups=groups)
        values = [Value(TensorType(kind, a.shape)) for a, kind in ((x, dtypes.i8), (w, dtypes.i8), (b, dtypes.i32))]
        op = Conv2d(*values, acc=dtypes.i32, **named)
        wanted = op.reference(x, w, b)
        y = guarded(np.empty(wanted.shape, np.int32))
        along = op._in_rows()
        counts, gaps = list(taps), list(dilation)
        if along:  # of words of two
            counts[1], gaps[1] = -(-taps[1] // 2), 2 * dilation[1]
        reach = [d * (k - 1) for d, k in zip(gaps, counts, strict=True)]
        phases = [1 if d % s == 0 else min(s, r + 1) for s, d, r in zip(stride, gaps, reach, strict=True)]
        extent = [n + r // s for n, r, s in zip(block, reach, stride, strict=True)]
        words = inputs if along else -(-inputs // 2)
        places = conv.NEARS * 16 * taps[0] * -(-taps[1] // 4) if along and inputs == 1 else 0
        room = 4 * max(words * math.prod(phases) * math.prod(extent) + 16 + 13 * words * math.prod(counts), places)
        room = -(-room // conv.HELD) * conv.HELD + conv.HELD
        sizes = [*x_shape, outputs, *taps, *wanted.shape[2:], *stride, *padding, *dilation, groups, *block, room, int(along)]
        blocks = math.prod(-(-size // most) for size, most in zip(wanted.shape[2:], block, strict=True))
        work = guarded(np.full(2 * (-(-room // 64) * 64), 1, np.uint8))
        for units in (0, x_shape[0] * groups * op._parts() * blocks):  # at once; each alone, of two workers
            y[:] = 1 << 30
            call(library, "planes", [guarded(x), guarded(op.flattened(w)), b, y, work], [*sizes, units])
            assert np.array_equal(y, wanted), (x_shape, w.shape, units)


# x; outputs of a group, taps; stride, padding, dilation, output_padding; groups; bytes of planes: one class and several, those of
# two columns stored together, classes without taps, one column less of the second, channels that fill words, and some left
CLASSES = [
    ((1, 1, 1, 1), (1, 1, 1), ((1, 1), (0, 0), (1, 1), (0, 0)), 1, 1 << 17),
    ((2, 7, 5, 19), (13, 3, 2), ((1, 1), (1, 1), (1, 1), (0, 0)), 1, 2048),
    ((1, 8, 6, 9), (14, 2, 2), ((2, 2), (0, 0), (1, 1), (0, 0)), 1, 1 << 17),
    ((2, 6, 5, 21), (5, 3, 3), ((2, 2), (1, 1), (1, 1), (0, 1)), 2, 1024),
    ((1, 4, 7, 70), (101, 4, 3), ((3, 2), (2, 1), (1, 1), (0, 0)), 1, 1 << 14),
    ((1, 5, 4, 33), (3, 1, 1), ((2, 2), (0, 0), (1, 1), (1, 0)), 1, 1 << 17),
    ((1, 3, 4, 9), (2, 2, 3), ((1, 4), (0, 1), (2, 2), (0, 2)), 3, 1 << 17),
    ((1, 9, 1, 40), (3, 1, 16), ((1, 8), (0, 4), (1, 1), (0, 0)), 1, 1 << 12),
    ((1, 4, 3, 3), (2, 3, 3), ((2, 2), (3, 3), (2, 2), (1, 1)), 2, 1 << 17),
]


def test_transposed_convolutions_of_bytes_are_exact(library: CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    monkeypatch.setattr(conv, "LEAST", 16)
    for x_shape, (outputs, *taps), settings, groups, planes in CLASSES:
        monkeypatch.setattr(conv, "PLANES", planes)
        for values in ([-128], [-128, 127, -1, 3]):
            x, w = (rng.choice(values, shape).astype(np.int8) for shape in (x_shape, (x_shape[1], outputs, *taps)))
            b = rng.integers(-9, 9, outputs * groups).astype(np.int32)
            operands = [Value(TensorType(kind, a.shape)) for a, kind in ((x, dtypes.i8), (w, dtypes.i8), (b, dtypes.i32))]
            names = ("stride", "padding", "dilation", "output_padding")
            op = ConvTranspose2d(*operands, acc=dtypes.i32, groups=groups, **dict(zip(names, map(list, settings), strict=True)))
            wanted, flat = op.reference(x, w, b), op.flattened(w)
            op.flatten()
            operands[1].type = TensorType(dtypes.i8, flat.shape)
            assert np.array_equal(op.reference(x, flat, b), wanted)
            given = op._word_args()
            block = [given[name] for name in ("rows", "columns", "room")]
            sizes = [*x_shape, outputs * groups, *taps, *wanted.shape[2:], *(n for pair in settings[:3] for n in pair), groups, *block]
            y, work = guarded(np.empty(wanted.shape, np.int32)), guarded(np.full(2 * (-(-block[2] // 64) * 64), 1, np.uint8))
            for units in (0, op._units()):  # at once; each alone, of two workers
                y[:] = 1 << 30
                call(library, "classes", [guarded(x), guarded(flat), b, y, work], [*sizes, units])
                assert np.array_equal(y, wanted), (x_shape, w.shape, units)


# x, taps, padding, dilation, groups, bytes of points of a block: of one tile, of several rows of them, of parts of one; all of an image
TILES = [
    ((1, 5, 7, 9), (6, 3, 3), (1, 1), (1, 1), 1, 1),
    ((2, 4, 6, 37), (14, 3, 3), (0, 2), (1, 1), 2, 4096),
    ((1, 3, 9, 33), (13, 3, 3), (2, 0), (1, 1), 1, 1 << 18),
    ((2, 6, 1, 35), (7, 1, 3), (0, 1), (1, 1), 1, 64),
    ((1, 8, 3, 70), (26, 1, 3), (1, 4), (1, 1), 2, 1 << 18),
    ((1, 5, 13, 40), (13, 3, 3), (3, 4), (3, 4), 1, 2048),
    ((2, 4, 1, 51), (9, 1, 3), (0, 30), (1, 5), 1, 1 << 18),
    ((1, 3, 9, 8), (6, 3, 3), (4, 0), (4, 3), 1, 1 << 18),
]


def test_tiles_are_exact(library: CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    for x_shape, (outputs, *taps), padding, dilation, groups, points in TILES:
        monkeypatch.setattr(conv, "POINTS", points)
        shapes = x_shape, (outputs, x_shape[1] // groups, *taps)
        for values in ([-128], [-128, 127, -1, 3]):
            x, w = (rng.choice(values, shape).astype(np.int8) for shape in shapes)
            b = rng.integers(-9, 9, outputs).astype(np.int32)
            operands = [Value(TensorType(kind, a.shape)) for a, kind in ((x, dtypes.i8), (w, dtypes.i8), (b, dtypes.i32))]
            op = Conv2d(*operands, acc=dtypes.i32, padding=list(padding), dilation=list(dilation), groups=groups)
            wanted, flat = op.reference(x, w, b), op.flattened(w)
            op.flatten()
            sizes = op._winograd_args()
            y = guarded(np.empty(wanted.shape, np.int32))
            block = [sizes[name] for name in ("rows", "columns", "room")]
            given = [*x_shape, outputs, taps[0], *wanted.shape[2:], *padding, *dilation, groups, *block]
            call(library, "winograd", [guarded(x), guarded(flat), b, y, guarded(np.empty(sizes["room"], np.uint8))], given)
            assert np.array_equal(y, wanted), (x_shape, w.shape)


BOARD = "-std=gnu99", "-fno-math-errno"  # a board's start is assembly
NEON = "aarch64-linux-gnu-gcc", "-static"
MACHINES = {
    "neon": ((*NEON, "-march=armv8-a"), ("qemu-aarch64",)),
    "neon with dot products": ((*NEON, "-march=armv8.2-a+dotprod"), ("qemu-aarch64",)),
    "neon with products of matrices": ((*NEON, "-march=armv8.2-a+dotprod+i8mm"), ("qemu-aarch64",)),
    "arm pairs of halves": ((*CORTEX_M4, *BOARD), EMULATOR_M4),
    "arm pairs of halves, small": ((*CORTEX_M4, *BOARD, "-Os"), EMULATOR_M4),
    "helium": ((*CORTEX_M55, *BOARD), EMULATOR),
}


def hashes(folder: Path, call: tuple[str, ...], emulator: tuple[str, ...] = ()) -> str:
    """What quantized.c prints."""
    for command in (call[0], *emulator[:1]):
        if shutil.which(command) is None:
            pytest.skip(f"no {command}")
    command = [call[0], LANGUAGE, "-O2", *WARNINGS, "-Werror", *MEANING, *call[1:], "-I", str(ROOT / "runtime_c")]
    command += [str(ROOT / "tests" / "runtime" / "quantized.c"), "-o", str(folder / "program"), "-lm"]
    subprocess.run(command, check=True)
    run = subprocess.run([*emulator, str(folder / "program")], check=True, capture_output=True, text=True)
    return run.stdout + run.stderr  # an emulated board prints to the second


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return hashes(tmp_path_factory.mktemp("plain"), ("gcc", "-DOIC_PORTABLE"))


@pytest.mark.parametrize("machine", MACHINES)
def test_other_machines_give_the_bits_of_plain_c(machine: str, plain: str, tmp_path: Path) -> None:
    assert plain == hashes(tmp_path, *MACHINES[machine])


def test_webassembly_gives_the_bits_of_plain_c(plain: str, tmp_path: Path) -> None:
    source = ROOT / "tests" / "runtime" / "quantized.c"
    assert plain == wasm.said([source], tmp_path, "-O2", *WARNINGS, "-Werror", "-I", str(ROOT / "runtime_c"))
