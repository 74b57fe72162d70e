"""Makes C functions that call the runtime as an operator says; the back end is not involved."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from oic import dtypes
from oic.dtypes import Array, DType
from oic.ir.core import REGISTRY, Op, Value
from oic.ir.types import TensorType
from oic.kernels.kernel import Converted, Out
from oic.operators.base import Call, Operator, Scalar, positional


def parse_example(text: str) -> TensorType:
    """The type an example names: `f32[2, 3]`."""
    found = re.fullmatch(r"(\w+)(?:\[(.*)\])?", text.strip())
    assert found, text
    shape = tuple(int(p) for p in (found[2] or "").split(",") if p.strip())
    return TensorType(dtypes.ALL[found[1]], shape)


def make(name: str, example: tuple[str, ...]) -> Operator:
    """The operator of one of its examples: operand types, then perhaps `key=value, …`."""
    texts = list(example)
    settings = _settings(texts.pop()) if "=" in texts[-1] else {}
    cls = REGISTRY[name]
    op = cls(*(Value(parse_example(t)) for t in texts), **settings)
    assert isinstance(op, Operator) and len(texts) == len(positional(cls))
    return op


def _settings(text: str) -> dict[str, Any]:
    known = {"true": True, "false": False, **dtypes.ALL}
    return eval(f"dict({text})", {"__builtins__": {}, "dict": dict, **known})


def key(op: Operator) -> tuple[Any, ...]:
    """What the C of an elementwise operator depends on: types of elements and settings."""
    return op.name, *(v.dtype.name for v in op.operands), str(op.attributes())


def literal(value: Any, dtype: DType) -> str:
    """A number as a C constant of the computed type."""
    if dtype.is_float:
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        rounded = float(np.float64(value).astype(dtype.np))
        return f"{rounded.hex()}f" if dtype is dtypes.f32 else rounded.hex()
    if value == -(1 << 63):
        return "INT64_MIN"
    return f"UINT64_C({value})" if value >= 1 << 63 else f"INT64_C({int(value)})"


def elementwise(op: Operator, symbol: str) -> str:
    """`void SYMBOL(const void **x, void *y, ptrdiff_t n)`: the operator on n elements."""
    scalar = op.c
    assert isinstance(scalar, Scalar)
    by = op.result if scalar.by == -1 else op.operands[scalar.by or 0]
    dtype = by.dtype.computed
    arguments = [_element(op, op.number(name), name in scalar.wide, dtype) for name in scalar.passed(op)]
    result = op.result.dtype
    value = arguments[0] if op.name == "fill" else f"{scalar.function(op)}({', '.join(arguments)})"
    return f"""
void {symbol}(const void *const *x, void *y, ptrdiff_t n);
void {symbol}(const void *const *x, void *y, ptrdiff_t n)
{{
    (void)x;
    for (ptrdiff_t i = 0; i < n; ++i) {{
        oic_store_{result}(({result.c} *)y, i, {value});
    }}
}}
"""


def _element(op: Op, part: Any, wide: bool, dtype: DType) -> str:
    if isinstance(part, Value):
        number = op.operands.index(part)
        return f"oic_load_{part.dtype}((const {part.dtype.c} *)x[{number}], i)"
    text = literal(part, dtypes.i64 if wide else dtype)
    return text if dtype.is_float and not wide else f"({'int64_t' if wide else dtype.value}){text}"


def kernel(op: Operator) -> tuple[str, str]:
    """Name and text of `void NAME(const void **x, void *y, const ptrdiff_t *n)`; n: `sizes(op)`."""
    call = op.call()
    passed, taken = {}, 0
    for i, part in enumerate(call.members.values()):
        passed[i] = _part(op, part, taken)
        taken += len(part) if isinstance(part, tuple) else isinstance(part, int)
    texts = iter(passed.values())
    flags = [name for name, part in call.members.items() if isinstance(part, Converted)]
    symbol = "_".join(["test", call.function, *flags, str(taken)])
    head = f"void {symbol}(const void *const *x, void *y, const ptrdiff_t *n)"
    body = f"    (void)n;\n    {called(call, texts)}"
    return symbol, f"\n{head};\n{head}\n{{\n{body}\n}}\n"


def called(call: Call, arguments: Iterable[str]) -> str:
    """The statement that calls a kernel."""
    given = ", ".join(f".{name} = {text}" for name, text in zip(call.members, arguments, strict=True))
    return f"{call.function}(&({call.function}_args){{{given}}});"


def sizes(op: Operator) -> list[int]:
    """The sizes in a kernel's call, in order."""
    found: list[Any] = []
    for part in op.call().members.values():
        found += [part] if isinstance(part, int) else part if isinstance(part, tuple) else []
    return found


def _part(op: Operator, part: Any, at: int) -> str:
    match part:
        case Value():
            return f"(const {part.dtype.c} *)x[{op.operands.index(part)}]"
        case Out():
            return f"({op.results[part.index].dtype.c} *)y"
        case tuple():
            return f"n + {at}"
        case int():
            return f"n[{at}]"
        case Converted(value, "int"):
            return str(int(value))
    raise AssertionError(part)


def source(ops: Iterable[Operator], functions: Iterable[str]) -> str:
    """A C file of functions that call those of elementwise operators."""
    bodies = sorted({op.c.instance(op) for op in ops if isinstance(op.c, Scalar)})
    return "".join(['#include "num.h"\n', *(body.text() for body in bodies), *functions])


def expected(op: Operator, inputs: list[Array]) -> Array:
    """The reference's result, stored."""
    wide = [dtypes.widen(x, v.dtype) for x, v in zip(inputs, op.operands, strict=True)]
    with np.errstate(all="ignore"):  # as the interpreter calls it
        y = dtypes.store(np.asarray(op.reference(*wide)), op.result.dtype)
    assert y.dtype == op.result.dtype.np
    return y


def assert_agrees(op: Operator, got: Array, inputs: list[Array]) -> None:
    """C and reference are within the operator's bound; where that is 0, zeros agree in sign too."""
    want = expected(op, inputs)
    wide = [dtypes.widen(x, v.dtype) for x, v in zip(inputs, op.operands, strict=True)]
    with np.errstate(all="ignore"):
        bound = np.broadcast_to(np.asarray(op.tolerance(want, *wide), np.float64), want.shape)
    bad = _different(op.result.dtype, got, want, bound)
    if bad.any():
        at = tuple(np.argwhere(bad)[0]) if want.ndim else ()
        values = [x[at] if x.shape == want.shape else "…" for x in inputs]
        raise AssertionError(
            f"{key(op)} of {values}: C gives {got[at]!r}, reference {want[at]!r}, "
            f"bound {bound[at]}, {bad.sum()} of {bad.size} differ"
        )


def _different(dtype: DType, got: Array, want: Array, bound: Array) -> Array:
    if not dtype.is_float:
        return np.asarray(got != want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        close = (a == b) | (np.abs(a - b) <= bound) | (np.isnan(a) & np.isnan(b))
    signs = (np.signbit(a) == np.signbit(b)) | np.isnan(a) | (bound > 0) | (a != 0)
    return ~(close & signs)

