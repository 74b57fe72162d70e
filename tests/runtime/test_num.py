"""num.h: every pattern of the narrow floats, every rounding boundary, every packed element."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array, DType, pack, unpack
from processor import AVX2
from runtime.native import Toolchain
from runtime.values import random, special

NARROW = (dtypes.f8, dtypes.f16, dtypes.bf16)


def _functions(dtype: DType) -> str:
    """Copy n elements out of storage, and into storage from element `at` on."""
    return f"""
void load_{dtype}(const {dtype.c} *p, {dtype.value} *v, ptrdiff_t n);
void store_{dtype}({dtype.c} *p, const {dtype.value} *v, ptrdiff_t at, ptrdiff_t n);
void load_{dtype}(const {dtype.c} *p, {dtype.value} *v, ptrdiff_t n)
{{
    for (ptrdiff_t i = 0; i < n; ++i) {{
        v[i] = oic_load_{dtype}(p, i);
    }}
}}
void store_{dtype}({dtype.c} *p, const {dtype.value} *v, ptrdiff_t at, ptrdiff_t n)
{{
    for (ptrdiff_t i = 0; i < n; ++i) {{
        oic_store_{dtype}(p, at + i, v[i]);
    }}
}}
"""


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    text = '#include "num.h"\n' + "".join(_functions(d) for d in dtypes.ALL.values())
    return toolchain.library(text, tmp_path_factory.mktemp(toolchain.name), "num")


def _computed(dtype: DType) -> np.dtype[np.generic]:
    return np.dtype(np.uint8) if dtype.kind == "bool" else dtype.wide


def _load(library: ctypes.CDLL, stored: Array, dtype: DType, count: int) -> Array:
    values = np.zeros(count, _computed(dtype))
    getattr(library, f"load_{dtype}")(*map(_pointer, (stored, values)), ctypes.c_ssize_t(count))
    return values


def _store(library: ctypes.CDLL, stored: Array, values: Array, dtype: DType, at: int = 0) -> None:
    numbers = (ctypes.c_ssize_t(at), ctypes.c_ssize_t(len(values)))
    getattr(library, f"store_{dtype}")(*map(_pointer, (stored, values)), *numbers)


def _pointer(array: Array) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def _same(got: Array, want: Array) -> bool:
    """Equal bits, but for the payload of a NaN."""
    nan = np.isnan(want)
    bits = np.uint32 if got.dtype == np.float32 else np.uint64
    equal = got.view(bits) == want.view(bits)
    return bool(np.all(equal | (nan & np.isnan(got) & (np.signbit(got) == np.signbit(want)))))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_pattern_loads_exactly(library: ctypes.CDLL, dtype: DType) -> None:
    patterns = np.arange(1 << dtype.bits).astype(f"u{dtype.bits // 8}")
    got = _load(library, patterns, dtype, len(patterns))
    assert _same(got, patterns.view(dtype.np).astype(np.float32))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_pattern_survives_a_store(library: ctypes.CDLL, dtype: DType) -> None:
    patterns = np.arange(1 << dtype.bits).astype(f"u{dtype.bits // 8}")
    values = patterns.view(dtype.np).astype(np.float32)
    back = np.zeros_like(patterns)
    _store(library, back, values, dtype)
    nan = np.isnan(values)
    assert np.array_equal(back[~nan], patterns[~nan])
    assert np.isnan(back.view(dtype.np)[nan].astype(np.float32)).all()


def _boundaries(dtype: DType) -> Array:
    """Every value of a narrow float, the middle to its neighbour, and the floats beside both."""
    patterns = np.arange(1 << dtype.bits).astype(f"u{dtype.bits // 8}")
    values = patterns.view(dtype.np).astype(np.float32)
    finite = np.sort(values[np.isfinite(values)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    largest = finite[-1].astype(np.float64)
    beyond = (largest + (largest - finite[-2]) / 2) * np.array([1, -1])
    points = np.concatenate([finite, middle, beyond.astype(np.float32)])
    up, down = np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))
    tiny = np.array([2.0**-149, -(2.0**-149), 2.0**-126, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    return np.concatenate([points, up, down, tiny])


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_rounding_of_every_boundary_and_a_million_floats(library: ctypes.CDLL, dtype: DType) -> None:
    rng = np.random.default_rng(3)
    anything = rng.integers(0, 1 << 32, 1_000_000, np.uint32).view(np.float32)
    values = np.concatenate([_boundaries(dtype), anything])
    stored = np.zeros(len(values), f"u{dtype.bits // 8}")
    _store(library, stored, values, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        want = values.astype(dtype.np).astype(np.float32)
    assert _same(stored.view(dtype.np).astype(np.float32), want)


@pytest.mark.parametrize("dtype", dtypes.ALL.values(), ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 31, 64, 1001])
def test_elements_lie_as_dtypes_packs_them(library: ctypes.CDLL, dtype: DType, count: int) -> None:
    rng = np.random.default_rng(count)
    values = random(dtype, count, rng)
    if count:
        values = np.where(rng.random(count) < 0.5, rng.choice(special(dtype), count), values)
        values = values.astype(dtype.np)
    want = pack(values, dtype)
    computed = values.astype(_computed(dtype))
    got = _load(library, want, dtype, count)
    assert np.array_equal(got, computed, equal_nan=dtype.is_float)
    stored = np.zeros_like(want)
    _store(library, stored, computed, dtype)
    back = unpack(stored, dtype, count)[:count].astype(_computed(dtype))
    assert np.array_equal(back, computed, equal_nan=dtype.is_float)
    assert dtype.is_float or np.array_equal(stored, want)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL.values() if d.packed], ids=str)
@pytest.mark.parametrize("at", range(9))
def test_a_packed_store_keeps_its_neighbours(library: ctypes.CDLL, dtype: DType, at: int) -> None:
    rng = np.random.default_rng(at)
    values = random(dtype, 64, rng)
    stored = pack(values, dtype)
    new = random(dtype, 5, rng)
    _store(library, stored, new.astype(dtype.wide), dtype, at)
    values[at : at + 5] = new
    assert np.array_equal(unpack(stored, dtype, 64)[:64], values)


@pytest.mark.parametrize("name", ["i1", "i2", "i4", "u1", "u2", "u4"])
def test_a_packed_store_wraps(library: ctypes.CDLL, name: str) -> None:
    dtype = dtypes.ALL[name]
    every = np.arange(256).astype(np.uint8).view(dtype.wide)
    stored = np.zeros(256 * dtype.bits // 8, np.uint8)
    _store(library, stored, every, dtype)
    assert np.array_equal(unpack(stored, dtype, 256).astype(np.int64), dtypes.wrap(every, dtype))


def test_a_ternary_zero_is_stored_as_minus_one(library: ctypes.CDLL) -> None:
    stored = np.zeros(1, np.uint8)
    _store(library, stored, np.array([0, 1, -1], np.int8), dtypes.t1)
    assert _load(library, stored, dtypes.t1, 3).tolist() == [-1, 1, -1]


WIDENED = """
#include "num.h"
void widened(const oic_f16 *p, float *v);
void widened(const oic_f16 *p, float *v) { (void)oic_widen_f16(p, 65536 - 3, v); }
"""


@pytest.mark.parametrize("compiler", ("gcc", "clang"))
@pytest.mark.parametrize("level", ("-O0", "-O2"))
def test_halves_are_widened_exactly(compiler: str, level: str, tmp_path: Path) -> None:
    """With the instruction of the machine; in clang without the function that its newest do not have."""
    newest = ("-D__builtin_ia32_vcvtph2ps256=gone", "-Werror") if compiler == "clang" else ()
    made = Toolchain(compiler, compiler, (level, "-march=x86-64-v3", *newest), AVX2)
    if made.missing:
        pytest.skip(made.missing)
    every, found = np.arange(65536, dtype=np.uint16), np.zeros(65536, np.float32)
    made.library(WIDENED, tmp_path, "widened").widened(_pointer(every), _pointer(found))
    wide = every.view(np.float16).astype(np.float32)[:-3]
    assert np.array_equal(found[:-3], wide, equal_nan=True) and not found[-3:].any()
