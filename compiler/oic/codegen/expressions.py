"""C expressions of numbers: literals, sizes, index arithmetic with the range it stays in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oic import dtypes
from oic.dtypes import DType
from oic.ir import intervals
from oic.ir.dims import Atom, Dim, Extent, bounds
from oic.ir.intervals import WIDE, Range

ATOM, PRODUCT, SUM = 0, 1, 2  # how loosely an expression binds
I32: Range = (dtypes.i32.low, dtypes.i32.high)


@dataclass(frozen=True)
class Index:
    """An integer expression of index arithmetic.

    text        C, of type int64_t, or of ptrdiff_t or int where `wide` is false
    level       ATOM, PRODUCT or SUM
    low, high   bounds on its value, known when the code is generated
    """

    text: str
    level: int = ATOM
    low: int = WIDE[0]
    high: int = WIDE[1]
    wide: bool = True

    @property
    def range(self) -> Range:
        """Its bounds."""
        return self.low, self.high

    @property
    def number(self) -> int | None:
        """Its value, if it is always the same."""
        return self.low if self.low == self.high else None

    def at(self, level: int) -> str:
        """The text, in parentheses where an operator of this level would tear it apart."""
        return self.text if self.level <= level else f"({self.text})"


def number(value: int) -> Index:
    """A known integer."""
    wide = not I32[0] <= value <= I32[1]
    return Index(integer(value), ATOM, value, value, wide)


def integer(value: int) -> str:
    """An integer of at most 64 bits as a C constant that has its value."""
    if I32[0] < value <= I32[1]:
        return str(value)
    if value == WIDE[0]:
        return "INT64_MIN"
    return f"INT64_C({value})"


def arithmetic(op: str, left: Index, right: Index) -> Index:
    """left op right for `+`, `-` or `*`, which is known to stay within 64 bits."""
    low, high = intervals.meet(WIDE, intervals.ARITHMETIC[op](left.range, right.range))
    if low == high:
        return number(low)
    if (op in "+-" and right.number == 0) or (op == "*" and right.number == 1):
        return left
    if (op == "+" and left.number == 0) or (op == "*" and left.number == 1):
        return right
    level = PRODUCT if op == "*" else SUM
    a, b = left.at(level), right.at(level - 1)
    wide = left.wide or right.wide
    if not wide and (low < I32[0] or high > I32[1]):  # ptrdiff_t may have 32 bits
        a, wide = f"(int64_t){left.at(ATOM)}", True
    if op == "+" and right.number is not None and right.number < 0:
        op, b = "-", integer(-right.number)
    return Index(f"{a} {op} {b}", level, low, high, wide)


def size(dim: Dim, name: Callable[[Extent], str]) -> Index:
    """A size as an expression of type ptrdiff_t; `name` gives the variable of an extent."""
    if isinstance(dim, int):
        return number(dim)
    terms = [(_term(atoms, c, name), c) for atoms, c in dim.terms]
    text = ""
    for i, (term, c) in enumerate(terms):
        if i == 0:
            text = term if c > 0 else f"-{term}"
        else:
            text += f" {'+' if c > 0 else '-'} {term}"
    level = SUM if len(terms) > 1 or terms[0][1] < 0 else (PRODUCT if "*" in text else ATOM)
    low, high = bounds(dim)
    return Index(text, level, low, high, wide=False)


def _term(atoms: tuple[Atom, ...], c: int, name: Callable[[Extent], str]) -> str:
    factors = [_atom(a, name) for a in atoms]
    if abs(c) != 1 or not atoms:
        factors.append(str(abs(c)))
    return " * ".join(factors)


def _atom(atom: Atom, name: Callable[[Extent], str]) -> str:
    if isinstance(atom, Extent):
        return name(atom)
    return f"oic_floor_div({size(atom.numerator, name).text}, {size(atom.divisor, name).text})"


# ---------------------------------------------------------------- literals


def literal(value: Any, dtype: DType) -> str:
    """A number as a C constant of the type in which `dtype` is computed."""
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if dtype.is_float:
        return _real(value, dtype)
    value = int(value)
    if dtype.name == "u64":
        return f"UINT64_C({value})"
    if dtype.name == "i64":
        return integer(value)
    if dtype.name == "u32":
        return f"{value}u"
    return str(value) if value != I32[0] else "INT32_MIN"


def _real(value: Any, dtype: DType) -> str:
    wide = float(value)
    if math.isnan(wide):
        return "NAN"
    if math.isinf(wide):
        return "INFINITY" if wide > 0 else "-INFINITY"
    if dtype.bits == 64:
        return _decimal(repr(wide))
    with np.errstate(over="ignore"):
        rounded = np.asarray(wide, np.float32) if dtype.bits == 32 else dtypes.store(np.asarray(wide), dtype)
    single = np.float32(rounded)
    if not np.isfinite(single):
        return "INFINITY" if single > 0 else "-INFINITY"
    return _decimal(str(single)) + "f"


def _decimal(text: str) -> str:
    return text if any(c in text for c in ".e") else f"{text}.0"


def stored_literal(value: Any, dtype: DType) -> str:
    """A number as a C constant of the stored form: bits for narrow floats, else `literal`."""
    if dtype.narrow:
        bits = dtypes.pack(np.asarray([float(value)]), dtype)
        code = int.from_bytes(bits.tobytes(), "little")
        return f"0x{code:0{dtype.bits // 4}x}"
    return literal(value, dtype)


def is_zero_bits(value: Any, dtype: DType) -> bool:
    """The stored form of the number is all zeros."""
    one = np.asarray([value]).astype(dtype.np) if dtype.is_float else np.asarray([int(value)])
    return not dtypes.pack(one, dtype).any()
