"""The errors that docstrings and headers state, measured in units in the last place."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.operators.base import Operator
from oic.operators.math import Function, Gelu
from runtime.native import Toolchain
from runtime.wrap import elementwise, make, source

# As scalar_math.h says, and a little more.
MEASURED: dict[str, float] = {
    "exp": 1.0,
    "sigmoid": 1.7,
    "silu": 1.75,
    "tanh": 1.4,
    "erf": 1.35,
    "softplus": 1.9,
    "rsqrt": 1.5,
    "log": 0.85,
    "sin": 0.8,
    "cos": 0.8,
}
OPERATORS = {n: make(n, ("f32[1]",)) for n in MEASURED}
OPERATORS["gelu"] = make("gelu", ("f32[1]",))
OPERATORS["gelu_tanh"] = make("gelu", ("f32[1]", 'approx="tanh"'))


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    functions = [elementwise(op, f"test_{name}") for name, op in OPERATORS.items()]
    return toolchain.library(source(OPERATORS.values(), functions), tmp_path_factory.mktemp("ulp"), "ulp")


def _sample() -> Array:
    """A million floats of all magnitudes, and densely those between -20 and 20."""
    patterns = np.arange(0, 1 << 32, 4001, np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([patterns, np.linspace(-20, 20, 600_001, dtype=np.float32)])


def _both(library: ctypes.CDLL, name: str, op: Operator, x: Array) -> tuple[Array, Array]:
    y = np.zeros_like(x)
    pointers, out = (ctypes.c_void_p * 1)(x.ctypes.data), y.ctypes.data_as(ctypes.c_void_p)
    getattr(library, f"test_{name}")(pointers, out, ctypes.c_ssize_t(len(x)))
    assert isinstance(op, Function)
    with np.errstate(all="ignore"):
        return y, op.of(x.astype(np.float64))


@pytest.mark.parametrize("name", MEASURED)
def test_error_in_units_in_the_last_place(library: ctypes.CDLL, name: str) -> None:
    y, exact = _both(library, name, OPERATORS[name], _sample())
    with np.errstate(over="ignore"):
        nearest = exact.astype(np.float32)
    special = ~np.isfinite(nearest)
    assert np.array_equal(y[special], nearest[special], equal_nan=True)
    unit = np.ldexp(1.0, np.maximum(np.frexp(exact[~special])[1] - 24, -149))
    error = np.abs(y[~special] - exact[~special]) / unit
    assert error.max() <= MEASURED[name]


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_gelu_is_within_two_eps_of_x(library: ctypes.CDLL, name: str) -> None:
    op = OPERATORS[name]
    assert isinstance(op, Gelu)
    x = _sample()
    y, exact = _both(library, name, op, x)
    with np.errstate(over="ignore"):
        nearest = exact.astype(np.float32)
    special = ~np.isfinite(nearest)
    assert np.array_equal(y[special], nearest[special], equal_nan=True)
    bound = 2 * 2.0**-23 * np.abs(x[~special].astype(np.float64)) + 2.0**-149
    assert (np.abs(y[~special] - exact[~special]) <= bound).all()


@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16, dtypes.f8], ids=str)
@pytest.mark.parametrize("name", ["exp", "sigmoid", "silu", "tanh", "erf"])
def test_narrow_results_are_nearly_always_the_nearest(name: str, dtype: dtypes.DType) -> None:
    """The reference: rounding the f64 value once, or by way of f32, differs by 1 ulp at most."""
    op = make(name, (f"{dtype}[1]",))
    assert isinstance(op, Function)
    patterns = np.arange(1 << dtype.bits).astype(f"u{dtype.bits // 8}").view(dtype.np)
    x = patterns.astype(np.float32)
    with np.errstate(all="ignore"):
        stored = dtypes.store(op.reference(x), dtype).astype(np.float64)
        exact = op.of(x.astype(np.float64))
        bound = np.asarray(op.tolerance(stored, x))
        close = np.abs(stored - exact) <= bound
    assert (close | ~np.isfinite(stored)).all()
