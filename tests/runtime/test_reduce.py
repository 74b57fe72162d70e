"""Every reduction in C against its reference: its examples, with special values anywhere."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

import oic.operators
from oic import dtypes
from oic.dtypes import Array, pack, unpack
from oic.ir.core import REGISTRY
from oic.operators.base import Operator
from runtime.native import Toolchain
from runtime.values import random, special
from runtime.wrap import assert_agrees, kernel, make, sizes, source

pytestmark = pytest.mark.xdist_group("reduce-runtime")

assert oic.operators

NAMES = [*sorted(n for n, c in REGISTRY.items() if c.__module__ == "oic.operators.reduce"), "is_finite"]
OPERATORS: dict[str, list[Operator]] = {
    name: [make(name, e) for e in getattr(REGISTRY[name], "examples")]  # noqa: B009
    for name in NAMES
}


def _tried(op: Operator, toolchain: Toolchain) -> bool:
    """Compiling every dtype takes long where loops are unrolled and vectorised most."""
    some = ("f16", "f32", "f64", "i4", "i32")
    return "-O3" not in toolchain.flags or op.operands[0].dtype.name in some


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """One library with all kernels that the examples call."""
    chosen = [op for ops in OPERATORS.values() for op in ops if _tried(op, toolchain)]
    functions = dict(kernel(op) for op in chosen)
    bodies = sorted({instance for op in chosen if (instance := op.call().instance)})
    folder = tmp_path_factory.mktemp(toolchain.name)
    return toolchain.library(source([], [b.text() for b in bodies] + list(functions.values())), folder, "reduce")


def _run(library: ctypes.CDLL, op: Operator, x: Array) -> Array:
    stored = pack(x, op.operands[0].dtype)
    pointers = (ctypes.c_void_p * 1)(stored.ctypes.data)
    numbers = sizes(op)
    n = (ctypes.c_ssize_t * (len(numbers) + 1))(*numbers)
    shape = op.result.tensor.maximum
    count = math.prod(shape)
    y = np.full(op.result.dtype.nbytes(count) + 8, 0xAA, np.uint8)
    symbol = kernel(op)[0]
    getattr(library, symbol)(pointers, y.ctypes.data_as(ctypes.c_void_p), n)
    assert (y[-8:] == 0xAA).all(), f"{symbol} writes past its result"
    return unpack(y, op.result.dtype, count)[:count].reshape(shape)


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_reference(name: str, toolchain: Toolchain, library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(2)
    sums = name in ("sum_axis", "mean_axis", "prod_axis", "cumsum")
    for op in (op for op in OPERATORS[name] if _tried(op, toolchain)):
        x = op.operands[0]
        shape = x.tensor.maximum
        plain = random(x.dtype, math.prod(shape), rng).reshape(shape)
        if not (sums and _leaves_range(plain, x.dtype)):
            assert_agrees(op, _run(library, op, plain), [plain])
        for _ in range(4):
            values = rng.choice(special(x.dtype), shape) if plain.size else plain
            odd = np.where(rng.random(shape) < 0.3, values, plain).astype(x.dtype.np)
            if not (sums and _leaves_range(odd, x.dtype)):
                assert_agrees(op, _run(library, op, odd), [odd])


def _leaves_range(x: Array, dtype: dtypes.DType) -> bool:
    """A partial sum or product may be infinite, or a subnormal, in one order and not in another."""
    if not dtype.is_float:
        return False
    finite = np.abs(x.astype(np.float64))[np.isfinite(x.astype(np.float64))]
    limit, exponents = (1e30 if dtype.bits < 64 else 1e290), np.log2(finite[finite > 0])
    above, below = exponents[exponents > 0].sum(), exponents[exponents < 0].sum()
    with np.errstate(over="ignore"):
        return bool(finite.sum() > limit or above > 900 or below < -900)


def test_sum_error_of_a_long_row_stays_small(library: ctypes.CDLL) -> None:
    """A million equal numbers: adding them one by one would be wrong in the third digit."""
    op = make("sum_axis", ("f32[1000000]", "axes=[0]"))
    got = float(_run(library, op, np.full(1_000_000, 0.1, np.float32)))
    assert abs(got - float(np.float32(0.1)) * 1e6) <= 1e5 * 2e-6
