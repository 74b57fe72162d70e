"""Reductions: references against results worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oic import dtypes
from oic.ir import dims
from oic.ir.core import REGISTRY, Value
from oic.ir.dims import Extent
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.operators.reduce import grouped, three
from operators.test_elementwise_meaning import build, run, same, slug

INF, NAN = math.inf, math.nan


def test_integers_are_summed_in_64_bits_then_wrapped() -> None:
    x = ("i8", [[100, 100, -1], [-100, -20, -5]])
    assert same(run("sum_axis", x, axes=[1]), [-57, -125])
    assert same(run("sum_axis", x, axes=[1], acc=dtypes.i32), [199, -125])
    assert same(run("mean_axis", x, axes=[1]), [66, -41])
    assert same(run("mean_axis", x, axes=[1, 0], keepdims=True), [12])
    assert same(run("prod_axis", x, axes=[0], acc=dtypes.i32), [-10000, -2000, 5])
    assert same(run("sum_axis", ("u1", [1] * 9), axes=[0]), [1])
    assert same(run("sum_axis", ("u1", [1] * 9), axes=[0], acc=dtypes.u4), [9])
    top = np.array([(1 << 64) - 1, 3], np.uint64)
    assert same(run("sum_axis", ("u64", top), axes=[0]), [2])
    assert same(run("mean_axis", ("u64", np.array([(1 << 64) - 1], np.uint64)), axes=[0]), [(1 << 64) - 1])


def test_the_mean_of_integers_is_toward_zero() -> None:
    assert same(run("mean_axis", ("i8", [-1, -2]), axes=[0]), [-1])
    assert same(run("mean_axis", ("i64", [-(2**63), 1]), axes=[0]), [-(2**62) + 1])


def test_empty_reductions() -> None:
    for dtype, mean in (("f32", NAN), ("i8", 0)):
        x = (dtype, np.zeros((2, 0)))
        assert same(run("sum_axis", x, axes=[1]), [0, 0])
        assert same(run("prod_axis", x, axes=[1]), [1, 1])
        assert same(run("mean_axis", x, axes=[1]), [mean, mean])
    for name in ("max_axis", "min_axis"):
        assert slug(name, "f32[2, 0]", axes=[1]) == "op-axis"
        assert run(name, ("f32", np.zeros((0, 2))), axes=[1]).shape == (0,)
    assert slug("argmax_axis", "f32[0]", axis=0) == "op-axis"


def test_an_axis_that_may_be_empty_at_run_time_is_checked() -> None:
    n = dims.of(Extent("N", 8))
    for name, settings in (("max_axis", {"axes": [1, 0]}), ("argmin_axis", {"axis": 0})):
        op = REGISTRY[name](Value(TensorType(dtypes.f32, (n, 3))), **settings)
        assert isinstance(op, Operator)
        assert [c.name for c in op.checks()] == ["index.size", "check.range"]
    plain = REGISTRY["sum_axis"](Value(TensorType(dtypes.f32, (n, 3))), axes=[0])
    assert isinstance(plain, Operator) and plain.checks() == []


def test_a_leading_nan_sticks_and_a_later_one_is_ignored() -> None:
    x = ("f32", [[NAN, 1.0, 2.0], [1.0, NAN, 2.0], [-INF, NAN, NAN]])
    assert same(run("max_axis", x, axes=[1]), [NAN, 2.0, -INF])
    assert same(run("min_axis", x, axes=[1]), [NAN, 1.0, -INF])
    assert same(run("argmax_axis", x, axis=1), [0, 2, 0])
    assert same(run("argmax_axis", x, axis=1, select_first=False), [0, 2, 0])
    assert same(run("argmin_axis", x, axis=1, select_first=False), [0, 0, 0])
    # over several axes the first element in row-major order leads
    assert same(run("max_axis", x, axes=[0, 1]), [NAN])
    assert same(run("max_axis", x, axes=[0]), [NAN, 1.0, 2.0])


def test_ties() -> None:
    x = ("i8", [[3, 7, 7], [5, 5, 1]])
    assert same(run("argmax_axis", x, axis=1), [1, 0])
    assert same(run("argmax_axis", x, axis=1, select_first=False), [2, 1])
    assert same(run("argmin_axis", x, axis=-2, keepdims=True), [0, 1, 1])
    assert same(run("argmax_axis", ("f32", [-0.0, 0.0]), axis=0), [0])
    assert same(run("argmax_axis", ("f32", [-0.0, 0.0]), axis=0, select_first=False), [1])
    assert run("argmax_axis", x, axis=1, keepdims=True).shape == (2, 1)
    assert same(run("argmax_axis", ("i64", [2**63 - 2, 2**63 - 1]), axis=0), [1])


def test_narrow_floats_accumulate_in_f32() -> None:
    assert same(run("sum_axis", ("f16", [2048.0] + [1.0] * 8), axes=[0]), [2056.0])
    assert same(run("sum_axis", ("f8", [0.25] * 64), axes=[0]), [16.0])
    assert same(run("cumsum", ("f16", [2048.0, 1.0, 1.0]), axis=0), [2048.0, 2048.0, 2050.0])


def test_cumsum() -> None:
    x = ("f32", [[1.0, 2.0, 3.0], [4.0, 5.0, NAN]])
    assert same(run("cumsum", x, axis=1), [1.0, 3.0, 6.0, 4.0, 9.0, NAN])
    assert same(run("cumsum", x, axis=1, exclusive=True), [0.0, 1.0, 3.0, 0.0, 4.0, 9.0])
    assert same(run("cumsum", x, axis=-2, exclusive=True), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    assert slug("cumsum", "i32[2]", axis=0) == "op-dtype"
    assert slug("cumsum", "f32[2]", axis=1) == "op-axis"


def test_axes() -> None:
    assert build("sum_axis", "f32[2, 3, 4]", axes=[-1, 0], keepdims=True).result.shape == (1, 3, 1)
    assert build("sum_axis", "f32[2, 3, 4]", axes=[1]).result.shape == (2, 4)
    assert slug("sum_axis", "f32[2, 3]", axes=[0, -2]) == "op-axis"
    assert slug("sum_axis", "f32[2, 3]", axes=[2]) == "op-axis"
    assert slug("sum_axis", "f32[2]", axes=[0], acc=dtypes.f64) == "op-setting"
    assert slug("sum_axis", "bool[2]", axes=[0]) == "op-dtype"


@pytest.mark.parametrize(
    ("shape", "axes", "want"),
    [
        ((2, 3, 4), (1,), (2, 3, 4)),
        ((2, 3, 4), (1, 2), (2, 12, 1)),
        ((2, 1, 4), (0, 2), (1, 8, 1)),
        ((2, 1, 4), (1,), (8, 1, 1)),
        ((), (), (1, 1, 1)),
    ],
)
def test_neighbouring_axes_are_one(shape: tuple[int, ...], axes: tuple[int, ...], want: tuple[int, ...]) -> None:
    assert three(grouped(shape, axes)) == want
    assert dims.product(want) == math.prod(shape)
