"""Runs kernels on arrays: renders the `Call` of an operator to C, compiles many at once, compares.

A case is an operator with concrete arrays.  The program reads every operand from standard input
into memory of exactly its size, so that a sanitizer sees the first byte too far.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compilers import level, optimizing
from oic import dtypes
from oic.dtypes import Array, DType
from oic.ir.core import Place, Value
from oic.ir.types import INDEX, TensorType
from oic.kernels.kernel import Converted, Out, Scratch, Stride
from oic.operators.base import Call, Operator
from oic.toolchain.target import LANGUAGE, MEANING, WARNINGS
from runtime.wrap import called
from tests.fuzz import expanded

RUNTIME = Path(__file__).parents[2] / "runtime_c"
FLAGS = [LANGUAGE, *WARNINGS, "-Werror", *MEANING]

SHARE = {"gcc-native": (0, 4), "clang-native": (1, 4), "gcc-sanitized": (2, 5)}  # first case, and how many apart
DIRECT = 12  # cases of a program that show their sizes to the compiler: each is compiled for itself
BUILDS = {
    "gcc-native": ("gcc", *optimizing("gcc"), "-O1", "-march=native"),
    "gcc-portable": ("gcc", level("-O2")),
    # Instrumented divisions look to gcc like conversions that it warns of.
    "gcc-sanitized": ("gcc", "-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wno-conversion"),
    "clang-native": ("clang", level("-O3"), "-march=native"),
}


@dataclass
class Case:
    """One call: the operator as the kernel sees it, and as the reference does.

    dtypes_   of the operands, where NumPy does not tell (bitset, one-bit types); by position
    """

    kind: type[Operator]
    arrays: list[Any]
    settings: dict[str, Any] = field(default_factory=dict)
    dtypes_: dict[int, DType] = field(default_factory=dict)
    runtime: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.values: list[Value | None] = []
        for i, array in enumerate(self.arrays):
            self.values.append(None if array is None else self._value(i, array))
        self.numbers: dict[Value, Any] = {}
        given = dict(self.settings)
        for name in self.runtime:
            value = Value(INDEX)
            self.numbers[value], given[name] = given[name], value
        self.op = self._make(given)

    def _value(self, i: int, array: Array) -> Value:
        dtype = self.dtypes_.get(i) or dtypes.from_array(array.dtype)
        assert dtype is not None, array.dtype
        value = Value(TensorType(dtype, array.shape))
        if not array.flags.c_contiguous:
            steps = tuple(s // array.itemsize for s in array.strides)
            value.place = Place("input", "x", 0, steps)
        return value

    def _make(self, given: dict[str, Any]) -> Operator:
        operands: dict[str, Any] = {}
        rest = list(self.values)
        for name, spec in self.kind.fields.items():
            if spec.kind == "rest":
                operands[name], rest = rest, []
            elif spec.kind in ("operand", "optional") and rest:
                operands[name] = rest.pop(0)
        return self.kind(**operands, **given)

    def expected(self) -> list[Array]:
        """The reference's results, stored."""
        wide = [
            None if a is None else dtypes.widen(a, v.dtype)  # type: ignore[union-attr]
            for a, v in zip(self.arrays, self.values, strict=True)
        ]
        plain = self._make(self.settings)
        with np.errstate(all="ignore"):  # as the interpreter calls it
            given = expanded.reference(plain, *wide)
        results = given if isinstance(given, (list, tuple)) else [given]
        return [dtypes.store(r, v.dtype) for r, v in zip(results, plain.results, strict=True)]

    def tolerance(self, expected: list[Array]) -> list[Any]:
        plain = self._make(self.settings)
        with np.errstate(all="ignore"):
            return [expanded.tolerance(plain, y, *self.arrays) for y in expected]


def number(value: Any, c: str) -> str:
    """A C literal."""
    if isinstance(value, (bool, np.bool_)):
        return f"({c}){int(value)}"
    if c in ("float", "double"):
        wide = float(np.float32(value)) if c == "float" else float(value)
        if np.isnan(wide):
            return f"({c})NAN"
        if np.isinf(wide):
            return f"({c}){'-' if wide < 0 else ''}INFINITY"
        return f"({c}){wide.hex()}" if wide >= 0 else f"-({c}){(-wide).hex()}"
    whole = int(value)
    return f"({c}){whole}u" if whole >= 2**63 else f"({c}){whole}" if whole >= 0 else f"({c})({whole + 1} - 1)"


def render(case: Case, direct: bool) -> tuple[str, str]:
    """(the statement that calls the kernel, the lines that include it).

    A direct call shows its sizes to the compiler, as generated code does; otherwise they are hidden
    behind a pointer, and the kernel is compiled once for all cases.
    """
    call: Call = case.op.call()
    assert isinstance(call, Call)
    text = called(call, (argument(case, part) for part in call.members.values()))
    header = call.instance.text()
    if direct:
        return text, header
    pointer = f"__typeof__(&{call.function}) volatile kernel = {call.function};"
    return f"{{ {pointer} kernel{text.removeprefix(call.function)} }}", header


def argument(case: Case, part: Any) -> str:
    """One argument as C."""
    where = {id(v): i for i, v in enumerate(case.values) if v is not None}
    match part:
        case None:
            return "NULL"
        case Value():
            return f"in[{where[id(part)]}]"
        case Out(index):
            return f"out[{index}]"
        case Stride(value, axis):
            return str(stride(case, value, axis))
        case Converted(Value() as value) if id(value) in where:
            return f"oic_load_{value.dtype}(in[{where[id(value)]}], 0)"
        case Converted(value, c):
            return number(case.numbers.get(value, value) if isinstance(value, Value) else value, c)
        case Scratch():
            return "scratch"
        case tuple():
            inner = ", ".join(argument(case, i) for i in part)
            return f"(const ptrdiff_t[]){{{inner}}}" if part else "NULL"
    return str(int(part))


def stride(case: Case, value: Any, axis: int) -> int:
    """Elements between neighbours."""
    assert isinstance(value, Value)
    shape = value.tensor.maximum
    if value.place is not None and value.place.strides is not None:
        return int(value.place.strides[axis])  # type: ignore[arg-type]
    axis %= len(shape)
    return int(np.prod(shape[axis + 1 :], dtype=np.int64))


def memory(array: Array, dtype: DType) -> bytes:
    """The bytes a value lies in, gaps included."""
    if array.flags.c_contiguous:
        return dtypes.pack(array, dtype).tobytes()
    if array.size == 0:
        return b""
    span = 1 + sum((n - 1) * (s // array.itemsize) for n, s in zip(array.shape, array.strides, strict=True))
    return np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,)).tobytes()


PROLOGUE = """\
#include <stdio.h>
#include <stdlib.h>
static void *get(size_t n)
{
    void *p = calloc(n, 1);
    if (n > 0 && fread(p, 1, n, stdin) != n) {
        exit(3);
    }
    return p;
}
"""


def program(cases: Sequence[Case], direct: bool) -> str:
    """A program that runs every case once."""
    headers: set[str] = set()
    functions: list[str] = []
    for i, case in enumerate(cases):
        statement, header = render(case, direct and i < DIRECT)
        headers.add(header)
        reads = [
            f"    in[{j}] = get({len(memory(a, v.dtype))});"  # type: ignore[union-attr]
            for j, (a, v) in enumerate(zip(case.arrays, case.values, strict=True))
            if a is not None
        ]
        sizes = [v.tensor.nbytes for v in case.op.results]
        count = max(1, len(case.arrays))
        lines = [f"static void case_{i}(void)", "{", f"    void *in[{count}] = {{NULL}}, *out[{len(sizes)}];"]
        work = sum(part.nbytes for part in case.op.call().scratch)
        lines += [f"    void *scratch = calloc({work}, 1);", *reads]
        lines += [f"    out[{j}] = calloc({n}, 1);" for j, n in enumerate(sizes)]
        lines += [f"    {statement}"]
        lines += [f"    fwrite(out[{j}], 1, {n}, stdout);\n    free(out[{j}]);" for j, n in enumerate(sizes)]
        lines += [f"    free(in[{j}]);" for j in range(count)] + ["    free(scratch);", "}"]
        functions.append("\n".join(lines))
    used = PROLOGUE if any("get(" in f for f in functions) else PROLOGUE[: PROLOGUE.index("static")]
    includes = "".join(sorted(headers))
    calls = "".join(f"    case_{i}();\n" for i in range(len(cases)))
    return f"{includes}{used}\n" + "\n\n".join(functions) + f"\n\nint main(void)\n{{\n{calls}    return 0;\n}}\n"


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="oic-kernels-"))


def compiled(source: str, build: str) -> Path:
    """The program, compiled once; skips where the compiler is missing."""
    compiler, *flags = BUILDS[build]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    name = hashlib.sha256((build + source).encode()).hexdigest()[:16]
    path = _folder() / name
    if not path.exists():
        path.with_suffix(".c").write_text(source)
        command = [compiler, *FLAGS, *flags, f"-I{RUNTIME}", str(path.with_suffix(".c")), "-lm", "-o", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
    return path


def run(cases: Sequence[Case], build: str) -> list[list[Array]]:
    """The results of every case, as the C computes them."""
    path = compiled(program(cases, build == "gcc-native"), build)
    given = b"".join(
        memory(a, v.dtype)  # type: ignore[union-attr]
        for case in cases
        for a, v in zip(case.arrays, case.values, strict=True)
        if a is not None
    )
    done = subprocess.run([str(path)], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:4000]
    found: list[list[Array]] = []
    at = 0
    for case in cases:
        found.append([])
        for value in case.op.results:
            raw = np.frombuffer(done.stdout[at : at + value.tensor.nbytes], np.uint8)
            at += value.tensor.nbytes
            flat = dtypes.unpack(raw, value.dtype, int(np.prod(value.tensor.maximum, dtype=np.int64)))
            found[-1].append(flat.reshape(value.tensor.maximum))
    return found


def check(cases: Sequence[Case], build: str) -> None:
    """Every result lies within its operator's tolerance of the reference.

    One build takes every case, the slower ones one of a few each; all of them with OIC_EVERY_CASE=1.
    """
    if not os.environ.get("OIC_EVERY_CASE"):
        first, step = SHARE.get(build, (0, 1))
        cases = cases[first::step]
    for case, found in zip(cases, run(cases, build), strict=True):
        expected = case.expected()
        for got, want, allowed in zip(found, expected, case.tolerance(expected), strict=True):
            types = [str(v and v.type) for v in case.values]
            assert_within(got, want, allowed, f"{case.kind.name} {types} {case.settings}")


def assert_within(got: Array, want: Array, allowed: Any, what: str) -> None:
    """NaN where NaN, the same infinities, and no element farther apart than allowed; anything where that is infinite."""
    a, b = (np.asarray(x).astype(np.float64 if x.dtype.kind not in "iub" else np.int64) for x in (got, want))
    if a.dtype == np.float64:
        a, b = (np.where(np.isposinf(allowed), 0.0, x) for x in (a, b))
        assert np.array_equal(np.isnan(a), np.isnan(b)), f"{what}: NaN\n{got}\n{want}"
        keep = ~np.isnan(a)
        same = (a == b) | ~keep
        with np.errstate(invalid="ignore"):
            good = same | (np.abs(a - b) <= allowed)
    else:
        good = a == b
    if not good.all():
        at = tuple(np.argwhere(~good)[0])
        bound = np.broadcast_to(np.asarray(allowed, np.float64), a.shape)[at]
        raise AssertionError(f"{what}: {(~good).sum()} of {good.size}, first at {at}: {a[at]} not {b[at]} (± {bound})")


def spaced(array: Array, axis: int = 0, gap: int = 3) -> Array:
    """The same values as a view with gaps along an axis."""
    shape = list(array.shape)
    shape[axis] += gap
    wide = np.zeros(shape, array.dtype)
    view = wide[tuple(slice(0, n) for n in array.shape)]
    view[...] = array
    return view


def across(array: Array) -> Array:
    """The same values with the last two axes the other way round in memory."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
