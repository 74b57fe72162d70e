"""Expressions of numbers: literals that read back exactly, index arithmetic with its range, names."""

from __future__ import annotations

import math

import pytest

from oic import dtypes
from oic.codegen import expressions as expr
from oic.codegen.c_print import text
from oic.codegen.c_tree import Identifier
from oic.codegen.expressions import Index
from oic.codegen.names import NameScope, identifier
from oic.ir import dims
from oic.ir.dims import Extent


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (0.1, "f32", "0.1f"),
        (1, "f32", "1.0f"),
        (1e-5, "f64", "1e-05"),
        (3, "f64", "3.0"),
        (math.inf, "f32", "INFINITY"),
        (-math.inf, "f16", "-INFINITY"),
        (1e6, "f16", "INFINITY"),
        (math.nan, "f32", "NAN"),
        (0.1, "f16", "0.099975586f"),
        (-(1 << 31), "i32", "INT32_MIN"),
        (-(1 << 63), "i64", "INT64_MIN"),
        (1 << 40, "i64", "INT64_C(1099511627776)"),
        ((1 << 64) - 1, "u64", "UINT64_C(18446744073709551615)"),
        (7, "u32", "7u"),
        (True, "bool", "1"),
        (-8, "i4", "-8"),
        (-0.0, "f32", "-0.0f"),
        (True, "f32", "1.0f"),
        (-2.5, "f64", "-2.5"),
    ],
)
def test_literal(value: float, dtype: str, shown: str) -> None:
    assert text(expr.literal(value, dtypes.ALL[dtype])) == shown


def test_stored_literal() -> None:
    assert text(expr.stored_literal(0.5, dtypes.f16)) == "0x3800"
    assert text(expr.stored_literal(1, dtypes.bf16)) == "0x3f80"
    assert dtypes.is_zeros(0, dtypes.t1) and not dtypes.is_zeros(-0.0, dtypes.f32)


def test_sizes() -> None:
    n, m = dims.of(Extent("N", 8)), dims.of(Extent("M", 4))
    name = {Extent("N", 8): Identifier("N"), Extent("M", 4): Identifier("M_2")}.__getitem__
    assert text(expr.size(n * 64, name).value) == "N * 64"
    assert text(expr.size(n - m, name).value) in ("N - M_2", "-M_2 + N")
    assert text(expr.size((n + 3) // 2, name).value) == "oic_floor_div(N + 3, 2)"
    assert text(expr.size(n * m * 2 + 1, name).value) in ("M_2 * N * 2 + 1", "N * M_2 * 2 + 1")


def test_a_size_that_is_always_the_same_is_a_number() -> None:
    """Of its range and of its text one is not a constant while the other is: what converts it looks at the range."""
    n = dims.of(Extent("n", 0))  # what may be read of a `?` that nothing was written to
    for size in (n, n * 4, n + 3):
        found = expr.size(size, lambda extent: Identifier(extent.name))
        assert text(found.value) == str(found.number)


def test_arithmetic_knows_its_range() -> None:
    i = Index(Identifier("i"), 0, 9)
    found = expr.arithmetic("+", expr.arithmetic("*", i, expr.number(3)), expr.number(-1))
    assert (text(found.value), found.low, found.high) == ("i * 3 - 1", -1, 26)
    unknown = expr.arithmetic("+", Index(Identifier("x")), i)
    assert (unknown.low, unknown.high) == (-(1 << 63), (1 << 63) - 1)
    assert text(expr.arithmetic("-", i, expr.arithmetic("-", i, expr.number(1))).value) == "i - (i - 1)"


def test_a_product_of_sizes_is_not_left_to_32_bits() -> None:
    n = Index(Identifier("N"), 0, 1 << 20, wide=False)
    assert text(expr.arithmetic("*", n, n).value) == "(int64_t)N * N"


def test_names() -> None:
    names = NameScope()
    assert [names.unique(n) for n in ("h", "h", "h_2", "int", "x.y", "3d", "oic_at", "")] == [
        "h", "h_2", "h_2_2", "int_", "x_y", "v3d", "oic_at_", "v",
    ]  # fmt: skip
    assert identifier("INT32_MAX") == "INT32_MAX_"
