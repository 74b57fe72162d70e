"""C expressions of numbers: literals, sizes, index arithmetic with the range it stays in."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from oic import dtypes
from oic.codegen import c_tree as c
from oic.dtypes import DType
from oic.ir import intervals
from oic.ir.dims import Atom, Dim, Extent, bounds
from oic.ir.intervals import WIDE, Range

I32: Range = (dtypes.i32.low, dtypes.i32.high)


@dataclass(unsafe_hash=True)
class Index:
    """An integer expression of index arithmetic; never changed, and as `c_tree` not frozen.

    value       of type int64_t, or of ptrdiff_t or int where `wide` is false
    low, high   bounds on its value, known when the code is generated
    """

    value: c.Expression
    low: int = WIDE[0]
    high: int = WIDE[1]
    wide: bool = True

    @property
    def number(self) -> int | None:
        """Its value, if it is always the same."""
        return self.low if self.low == self.high else None


def number(value: int) -> Index:
    """A known integer."""
    return Index(integer(value), value, value, wide=not I32[0] <= value <= I32[1])


def integer(value: int) -> c.Expression:
    """An integer of at most 64 bits as a C constant that has its value."""
    if I32[0] < value <= I32[1]:
        return c.integer(value)
    named = dict(zip(WIDE, ("INT64_MIN", "INT64_MAX"), strict=True))
    return c.Literal(named.get(value, f"INT64_C({value})"))


ZERO = number(0)


def arithmetic(op: str, left: Index, right: Index) -> Index:
    """left op right for `+`, `-` or `*`, which is known to stay within 64 bits."""
    low, high = intervals.meet(WIDE, intervals.ARITHMETIC[op]((left.low, left.high), (right.low, right.high)))
    if low == high:
        return number(low)
    if (op in "+-" and right.number == 0) or (op == "*" and right.number == 1):
        return left
    if (op == "+" and left.number == 0) or (op == "*" and left.number == 1):
        return right
    a, b, wide = left.value, right.value, left.wide or right.wide
    if not wide and (low < I32[0] or high > I32[1]):  # ptrdiff_t may have 32 bits
        a, wide = c.Conversion("int64_t", a), True
    if op == "+" and right.number is not None and right.number < 0:
        op, b = "-", integer(-right.number)
    return Index(c.Infix(op, a, b), low, high, wide)


def linear(parts: Iterable[tuple[Index, Index]]) -> Index:
    """Where a part of memory begins, from numbers of steps and their sizes: checks made before keep each inside it."""
    total = ZERO
    for count, step in parts:
        product = arithmetic("*", count, step)
        if product.number is None:
            product = replace(product, low=max(0, product.low), high=max(0, min(product.high, 1 << 48)))
        total = arithmetic("+", total, product)
    return total


def signed(length: Index) -> c.Expression:
    """A length as ptrdiff_t; what is longer than that fits in no memory."""
    return c.Conversion("ptrdiff_t", length.value) if length.wide else length.value


def size(dim: Dim, name: Callable[[Extent], c.Expression]) -> Index:
    """A size as an expression of type ptrdiff_t; `name` gives the variable of an extent."""
    low, high = bounds(dim)
    if isinstance(dim, int) or low == high:
        return number(low)
    (first, sign), *rest = [(_term(atoms, factor, name), factor) for atoms, factor in dim.terms]
    value = first if sign > 0 else c.Prefix("-", first)
    for term, factor in rest:
        value = c.Infix("+" if factor > 0 else "-", value, term)
    return Index(value, low, high, wide=False)


def _term(atoms: tuple[Atom, ...], factor: int, name: Callable[[Extent], c.Expression]) -> c.Expression:
    factors = [_atom(a, name) for a in atoms]
    if abs(factor) != 1 or not atoms:
        factors.append(c.integer(abs(factor)))
    return reduce(c.times, factors)


def _atom(atom: Atom, name: Callable[[Extent], c.Expression]) -> c.Expression:
    if isinstance(atom, Extent):
        return name(atom)
    return c.call("oic_floor_div", size(atom.numerator, name).value, size(atom.divisor, name).value)


def literal(value: Any, dtype: DType) -> c.Expression:
    """A number as a C constant of the type in which `dtype` is computed."""
    if dtype.is_float:
        return _real(float(value), dtype)
    value = int(value)
    match dtype.name:
        case "u64":
            return c.Literal(f"UINT64_C({value})")
        case "u32":
            return c.Literal(f"{value}u")
        case "i64":
            return integer(value)
    return c.integer(value) if value != I32[0] else c.Literal("INT32_MIN")


def _real(value: float, dtype: DType) -> c.Expression:
    shown: Any = value
    if dtype.bits < 64:
        with np.errstate(over="ignore"):
            shown = np.float32(value if dtype.bits == 32 else dtypes.store(np.asarray(value), dtype))
    if math.isnan(shown):
        return c.Literal("NAN")
    digits = "INFINITY" if math.isinf(shown) else str(abs(shown)) + ("" if dtype.bits == 64 else "f")
    return c.Prefix("-", c.Literal(digits)) if math.copysign(1, shown) < 0 else c.Literal(digits)


def stored_literal(value: Any, dtype: DType) -> c.Expression:
    """A number as a C constant of the stored form: bits for narrow floats, else `literal`."""
    if dtype.narrow:
        code = int.from_bytes(dtypes.pack(np.asarray([float(value)]), dtype).tobytes(), "little")
        return c.Literal(f"0x{code:0{dtype.bits // 4}x}")
    return literal(value, dtype)
