"""Sizes: canonical polynomials over extents, compared with plain integers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oic.dtypes import f32
from oic.ir import dims
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.text_parse import parse_module
from oic.ir.text_print import dim_text
from oic.ir.types import TensorType

N, M, P = Extent("N", 9), Extent("M", 5), Extent("P", 7)
n, m, p = dims.of(N), dims.of(M), dims.of(P)
VALUES = st.fixed_dictionaries({e.name: st.integers(0, e.maximum) for e in (N, M, P)})


def _combined(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(dims.floor_div, inner, inner),
    )


polynomials = st.recursive(
    st.one_of(st.integers(-4, 6), st.sampled_from([n, m, p])), _combined, max_leaves=6
)


def test_equal_sizes_have_one_form() -> None:
    assert (p + n) - p == n
    assert n * 2 + 3 == 3 + n + n
    assert n - n == 0 and isinstance(n - n, int)
    assert (n + 1) * (n - 1) == n * n - 1
    assert hash(n * m) == hash(m * n)


def test_a_size_that_is_one_extent_is_known_as_it() -> None:
    assert dims.atom(n) == N
    assert dims.atom(n + 0) == N
    assert dims.atom(n + 1) is None and dims.atom(n * 2) is None and dims.atom(4) is None


def test_exact_division_leaves_a_polynomial() -> None:
    assert (n * 4 + 8) // 4 == n + 2


def test_other_division_is_an_atom() -> None:
    half = (n + 1) // 2
    assert isinstance(half, Expr) and half - half == 0
    assert dims.evaluate(half, {"N": 4}) == 2 and dims.evaluate(half, {"N": 5}) == 3
    assert half == (1 + n) // 2
    assert dims.extents([half, m * 2, 3]) == {N, M}
    assert dims.maximum(half) == 5


@given(polynomials, VALUES)
def test_no_value_exceeds_the_maximum(size: Dim, values: dict[str, int]) -> None:
    low, high = dims.bounds(size)
    assert low <= dims.evaluate(size, values) <= high == dims.maximum(size)


@given(polynomials, polynomials, VALUES)
def test_arithmetic_is_that_of_the_values(a: Dim, b: Dim, values: dict[str, int]) -> None:
    x, y = dims.evaluate(a, values), dims.evaluate(b, values)
    assert dims.evaluate(a + b, values) == x + y
    assert dims.evaluate(a - b, values) == x - y
    assert dims.evaluate(a * b, values) == x * y
    assert dims.evaluate(dims.floor_div(a, 3), values) == x // 3
    assert dims.evaluate(dims.floor_div(a, b), values) == (x // y if y > 0 else 0)


@given(polynomials, VALUES)
def test_substitution_of_values_evaluates(size: Dim, values: dict[str, int]) -> None:
    assert dims.substitute(size, lambda e: values[e.name]) == dims.evaluate(size, values)


@given(polynomials)
@settings(deadline=None)  # the first one waits for the tables of the grammar
def test_the_text_of_a_size_is_read_back(size: Dim) -> None:
    text = dim_text(size)
    declared = ", ".join(f"{e} <= {e.maximum}" for e in (N, M, P))
    module = parse_module(
        f'module "m" {{}} extents {{ {declared} }} %s = splat {{value=0, type=f32[{text}]}} : f32[{text}]'
    )
    assert module.top.ops[0].result.type == TensorType(f32, (size,))


@pytest.mark.parametrize("size", [n, n + m, n * 2 + 1, dims.floor_div(n + 3, 2) + m])
@pytest.mark.parametrize("by", [2, m, m + 1])
def test_the_text_of_a_message_says_what_the_size_is(size: Dim, by: Dim) -> None:
    values, part = {"N": 7, "M": 3}, dims.floor_div(size, by)
    for whole in (part, part * 2, part * n - part, 3 - part, dims.floor_div(part * 2, 5)):
        assert eval(str(whole).replace("/", "//"), {}, values) == dims.evaluate(whole, values)


@given(polynomials)
def test_substitution_of_itself_changes_nothing(size: Dim) -> None:
    assert dims.substitute(size, dims.of) == size


def test_product_of_a_shape() -> None:
    assert dims.product([2, n, 3]) == n * 6
    assert dims.product([]) == 1
    assert dims.product([n, 0]) == 0
