"""Elementary functions: double against an extended reference, special values, one set of bits for every compiler."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oic.dtypes import Array
from oic.toolchain.target import MEANING
from paths import ROOT
from processor import AVX2, features
from runtime.native import Toolchain

EXTENDED = np.finfo(np.longdouble).nmant >= 63
FUNCTIONS = (
    "exp", "log", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "softplus", "gelu_erf", "gelu_tanh", "rsqrt",
    "floor", "ceil", "trunc", "round_half_away", "round_half_even",
)  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 5e-324, 2.0**52, 2.0**53 + 2, 1e308]

# name: largest error in units in the last place, and the function of an extended float
DOUBLE: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "exp": (0.9, np.exp),
    "log": (0.85, np.log),
    "sin": (0.85, np.sin),
    "cos": (0.85, np.cos),
    "tanh": (2.0, np.tanh),
    "sigmoid": (2.4, lambda x: 1 / (1 + np.exp(-x))),
    "silu": (3.4, lambda x: x / (1 + np.exp(-x))),
    "softplus": (1.7, lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
    "rsqrt": (1.6, lambda x: 1 / np.sqrt(x)),
}


def _source() -> str:
    lines = ['#include "math/rounding.h"', '#include "math/scalar_math.h"']
    for name in FUNCTIONS:
        for suffix, c in (("f32", "float"), ("f64", "double")):
            lines += [
                f"void t_{name}_{suffix}(const {c} *x, {c} *y, ptrdiff_t n);",
                f"void t_{name}_{suffix}(const {c} *x, {c} *y, ptrdiff_t n)",
                f"{{ for (ptrdiff_t i = 0; i < n; ++i) {{ y[i] = oic_{name}_{suffix}(x[i]); }} }}",
            ]
    for suffix, c in (("f32", "float"), ("f64", "double")):
        lines += [
            f"void t_pow_{suffix}(const {c} *x, const {c} *y, {c} *z, ptrdiff_t n);",
            f"void t_pow_{suffix}(const {c} *x, const {c} *y, {c} *z, ptrdiff_t n)",
            f"{{ for (ptrdiff_t i = 0; i < n; ++i) {{ z[i] = oic_pow_{suffix}(x[i], y[i]); }} }}",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return toolchain.library(_source(), tmp_path_factory.mktemp("math"), "math")


def _call(library: ctypes.CDLL, name: str, *x: Array) -> Array:
    y = np.empty_like(x[0])
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*x, y)]
    getattr(library, f"t_{name}")(*pointers, ctypes.c_ssize_t(len(y)))
    return y


def _sample(count: int = 60_000) -> Array:
    rng = np.random.default_rng(20)
    return np.concatenate(
        [
            rng.integers(0, 2**64, count, np.uint64).view(np.float64),
            rng.uniform(-50, 50, count),
            rng.uniform(-1, 1, count),
            np.arange(1, count) * (np.pi / 2),
            np.array([*SPECIAL, 709.78, -745.2, -1e308, 6381956970095103.0 * 2.0**797]),
        ]
    )


def _error(y: Array, exact: Array) -> float:
    """Largest difference, in units in the last place of f64; what is not finite must be equal."""
    nearest = exact.astype(np.float64)
    finite = np.isfinite(nearest)
    assert np.array_equal(y[~finite], nearest[~finite], equal_nan=True)
    assert not (np.signbit(y) != np.signbit(nearest))[(nearest == 0) & (y == 0)].any()
    unit = np.ldexp(np.longdouble(1), np.maximum(np.frexp(exact[finite])[1] - 53, -1074))
    return float(np.max(np.abs(y[finite] - exact[finite]) / unit))


@pytest.mark.skipif(not EXTENDED, reason="no floats wider than f64 here")
@pytest.mark.parametrize("name", DOUBLE)
def test_double_is_within_its_stated_error(library: ctypes.CDLL, name: str) -> None:
    bound, of = DOUBLE[name]
    x = _sample()
    with np.errstate(all="ignore"):
        exact = of(x.astype(np.longdouble))
        if name == "silu":
            exact[x == -np.inf] = np.nan
        assert _error(_call(library, f"{name}_f64", x), exact) <= bound


@pytest.mark.skipif(not EXTENDED, reason="no floats wider than f64 here")
def test_powers_of_doubles(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(21)
    x = np.concatenate([rng.uniform(0, 100, 60_000), np.exp(rng.uniform(-700, 700, 60_000)), np.abs(_sample(20_000))])
    y = np.concatenate([rng.uniform(-150, 150, 60_000), rng.uniform(-1, 1, 60_000)])
    y = np.concatenate([y, rng.permutation(_sample(20_000))])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        assert _error(_call(library, "pow_f64", x, y), exact) <= 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_special_values(library: ctypes.CDLL, dtype: type) -> None:
    with np.errstate(all="ignore"):
        values = np.array([*SPECIAL, 2, -2, 3, -3, 7, -7, 2.0**24 - 1, 2.0**24], dtype)
        x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(values, values))
        z, exact = _call(library, f"pow_f{8 * x.itemsize}", x, y), np.power(x, y)
        same = (z == exact) | (np.isnan(z) & np.isnan(exact)) | (np.abs(z - exact) <= np.spacing(np.abs(exact)))
    assert same.all(), (x[~same], y[~same], z[~same], exact[~same])
    assert (np.signbit(z) == np.signbit(exact))[~np.isnan(z)].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "of"), [("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round_half_even", np.rint)]
)
def test_whole_numbers(library: ctypes.CDLL, name: str, of: Callable[[Array], Array], dtype: type) -> None:
    with np.errstate(all="ignore"):
        x = np.concatenate([_sample(), np.arange(-400, 400) / 2]).astype(dtype)
        x = x[~np.isnan(x)]
        y = _call(library, f"{name}_f{8 * x.itemsize}", x)
        assert np.array_equal(y.view(f"u{x.itemsize}"), of(x).view(f"u{x.itemsize}"))


def _bits(library: ctypes.CDLL) -> dict[str, str]:
    """A hash of the results of every function, of any bits of either type; NaNs are all alike."""
    found, rng = {}, np.random.default_rng(22)
    with np.errstate(all="ignore"):
        for dtype in (np.float32, np.float64):
            x = np.concatenate([_sample(20_000).astype(dtype), np.frombuffer(rng.bytes(1_000_000), dtype)])
            for name in FUNCTIONS:
                y = _call(library, f"{name}_f{8 * x.itemsize}", x)
                y[np.isnan(y)] = np.nan
                found[f"{name}_{y.dtype}"] = hashlib.sha256(y.tobytes()).hexdigest()
            z = _call(library, f"pow_f{8 * x.itemsize}", np.abs(x), x[::-1].copy())
            z[np.isnan(z)] = np.nan
            found[f"pow_{z.dtype}"] = hashlib.sha256(z.tobytes()).hexdigest()
    return found


def _build(compiler: str, flags: list[str], folder: Path) -> Path:
    source, shared = folder / "math.c", folder / f"{compiler}{''.join(flags)}.so".replace("=", "")
    source.write_text(_source())
    call = [compiler, "-std=c99", *flags, "-ffp-contract=off", "-fPIC", "-shared", f"-I{ROOT / 'runtime_c'}"]
    subprocess.run([*call, str(source), "-o", str(shared), "-lm"], check=True)
    return shared


def test_bits_are_those_of_every_compiler_and_level(tmp_path: Path) -> None:
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    if not compilers:
        pytest.skip("neither gcc nor clang is here")
    flags = [["-O0"], ["-O2"], ["-O3"], ["-O3", "-march=native"]]
    if features().issuperset(AVX2):
        flags.append(["-O3", "-march=x86-64-v3"])
    found = [_bits(ctypes.CDLL(str(_build(c, f, tmp_path)))) for c in compilers for f in flags]
    assert all(f == found[0] for f in found)


def test_loops_over_functions_of_f32_are_vector_code(tmp_path: Path) -> None:
    """As gcc says, with no more than AVX2."""
    if not shutil.which("gcc") or not features().issuperset(AVX2):
        pytest.skip("no gcc for AVX2 here")
    source = tmp_path / "math.c"
    source.write_text(_source())
    flags = ["-std=c99", "-O3", "-march=x86-64-v3", *MEANING, "-fopt-info-vec", f"-I{ROOT / 'runtime_c'}"]
    call = ["gcc", *flags, "-c", str(source), "-o", str(tmp_path / "math.o")]
    told = subprocess.run(call, capture_output=True, text=True, check=True).stderr
    vectors = {int(n) for n in re.findall(r"math\.c:(\d+):.*vectorized using 32 byte", told)}
    loops = {n: found[1] for n, line in enumerate(_source().splitlines(), 1) if (found := re.search(r"= oic_(\w+_f32)\(", line))}
    assert len(loops) == len(FUNCTIONS) + 1
    assert [name for n, name in loops.items() if n not in vectors] == []


def test_nothing_but_the_square_root_is_called(tmp_path: Path) -> None:
    compiler = next((c for c in ("gcc", "clang", "cc") if shutil.which(c)), None)
    if compiler is None or not shutil.which("nm"):
        pytest.skip("no C compiler with nm is here")
    shared = _build(compiler, ["-O0"], tmp_path)  # where no call is replaced by an instruction
    listed = subprocess.run(["nm", "-u", str(shared)], capture_output=True, text=True, check=True).stdout
    called = {re.sub("@.*", "", line.split()[-1]) for line in listed.splitlines()}
    assert {c for c in called if not c.startswith("_")} <= {"sqrt", "sqrtf", "memcpy"}
