"""Kernels that copy elements (pad, repeat, flip, gather, iota) against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.operators.arrange import Flip, Gather, Iota, Pad, Repeat
from runtime.drive import BUILDS, Case, check

RNG = np.random.default_rng(2)
NAMES = [n for n in dtypes.ALL if n not in ("t1", "t2")]


def any_(shape: tuple[int, ...], name: str) -> Array:
    """Random elements of a type."""
    dtype = dtypes.ALL[name]
    if dtype.is_float:
        return RNG.normal(size=shape).astype(dtype.np)
    if dtype.kind == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    low, high = max(dtype.low, -(2**62)), min(dtype.high, 2**62)
    return RNG.integers(low, high, shape, endpoint=True).astype(dtype.np)


def moves() -> list[Case]:
    """Every type, with empty and single elements."""
    found: list[Case] = []
    for name in NAMES:
        kinds = dict.fromkeys(range(3), dtypes.ALL[name])
        x = any_((2, 3), name)
        value: Any = 2.5 if dtypes.ALL[name].is_float else dtypes.ALL[name].low
        found.append(Case(Pad, [x], {"before": [1, 0], "after": [0, 2], "value": value}, kinds))
        for mode in ("edge", "reflect"):
            found.append(Case(Pad, [x], {"before": [1, 2], "after": [1, 1], "mode": mode}, kinds))
        found.append(Case(Repeat, [x], {"times": 3, "axis": 1}, kinds))
        found.append(Case(Repeat, [x], {"times": 2, "axis": 0}, kinds))
        found.append(Case(Repeat, [x], {"times": 0, "axis": 0}, kinds))
        found.append(Case(Flip, [any_((2, 3, 4), name)], {"axes": [0, -1]}, kinds))
        found.append(Case(Flip, [any_((0, 3), name)], {"axes": [0]}, kinds))
        for axes in ([3], [2], [0, 2], [1, 3], [1, 2], [0], [0, 1, 2, 3]):  # rows of elements and of blocks, of any planes
            found.append(Case(Flip, [any_((2, 3, 2, 33), name)], {"axes": axes}, kinds))
        for n in (1, 2, 3, 5, 9, 17, 33, 40, 65, 131):  # rows of every number of bytes that is moved in one way
            found.append(Case(Repeat, [any_((3, n), name)], {"times": 2, "axis": 0}, kinds))
            for mode in ("constant", "edge", "reflect"):
                along = {"before": [1, 0, n - 1], "after": [2, 1, min(n - 1, 2)], "mode": mode}
                found.append(Case(Pad, [any_((3, 2, n), name)], along, kinds))
                inner = {"before": [0, 2, 0], "after": [0, 1, 0], "mode": mode}
                found.append(Case(Pad, [any_((2, 3, n), name)], inner, kinds))
        found.append(Case(Repeat, [any_((5, 7), name)], {"times": 2, "axis": 1}, kinds))
        found.append(Case(Pad, [any_((2, 3, 0), name)], {"before": [1, 1, 2], "after": [0, 0, 0]}, kinds))
    found.append(Case(Pad, [any_((1,), "f32")], {"before": [0], "after": [0], "mode": "reflect"}))
    found.append(Case(Pad, [any_((), "f32")], {"before": [], "after": []}))
    found.append(Case(Pad, [any_((0, 2), "f32")], {"before": [1, 1], "after": [0, 0], "value": float("nan")}))
    return found


def gathers() -> list[Case]:
    """Ids of both types, every axis, every widening."""
    found: list[Case] = []
    for name in NAMES:
        kinds = {0: dtypes.ALL[name]}
        for ids in (RNG.integers(0, 5, (2, 2)).astype(np.int32), RNG.integers(0, 5, 3), np.array(4)):
            found.append(Case(Gather, [any_((5, 4), name), ids], {}, kinds))
            found.append(Case(Gather, [any_((2, 5, 3), name), ids], {"axis": 1}, kinds))
    for name in ("f8", "f16", "bf16", "i8", "u8", "i16", "u16", "i4", "u4", "i2", "u2", "i1", "u1"):
        for to in ("f32", "f64") if dtypes.ALL[name].is_float else ("f32", "f64", "i32"):
            ids = np.array([3, 0], np.int32)
            settings = {"to": dtypes.ALL[to]}
            found.append(Case(Gather, [any_((5, 4), name), ids], settings, {0: dtypes.ALL[name]}))
    found.append(Case(Gather, [any_((5, 4), "f32"), np.zeros((0,), np.int32)]))
    return found


def iotas() -> list[Case]:
    """All axes; a start beyond 32 bits wraps."""
    shapes: list[dict[str, Any]] = [{"shape": [4]}, {"shape": [2, 3, 4], "axis": 1, "start": -5}]
    shapes += [{"shape": [3], "start": 2**31 - 2}, {"shape": [0, 2]}]
    return [Case(Iota, [], s) for s in shapes] + [Case(Iota, [], {"shape": [3], "start": 7}, runtime=("start",))]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("make", [moves, gathers, iotas])
def test_moves(make: Any, build: str) -> None:
    """Exactly the reference."""
    check(make(), build)


