"""Random inputs of an entry: every dtype, every size, ids within their tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oic import dtypes
from oic.dtypes import Array, DType
from oic.ir import dims
from oic.ir.control import Func
from oic.ir.index import CheckIds
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.operators.evaluate import shape_of
from oic.session.interface import Entry

LARGEST = 8  # a random size, where the maximum allows more
SMALL = 4  # a random integer without a known bound lies below this


def random_inputs(
    module: Module, entry: Entry, rng: np.random.Generator, sizes: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """Inputs for one step of an entry.

    sizes   extents that are given; others are random, up to `LARGEST`
    """
    drawn = {n: int(rng.integers(1, min(most, LARGEST) + 1)) if most else 0 for n, most in entry.maxima.items()}
    chosen = drawn | dict(sizes or {})
    bounds = id_bounds(module, entry.symbol)
    return {name: random_array(type_, chosen, rng, bounds.get(name)) for name, type_ in entry.inputs.items()}


def random_array(
    type_: TensorType, sizes: Mapping[str, int], rng: np.random.Generator, bound: int | None = None
) -> Array:
    """A tensor of random values; integers below `bound`."""
    return random_values(type_.dtype, shape_of(type_, sizes), rng, bound)


def random_values(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, bound: int | None = None) -> Array:
    """Normal floats; integers from 0 or, if signed and unbounded, from -SMALL; fair booleans."""
    if dtype.is_float:
        return dtypes.store(rng.standard_normal(shape).astype(dtype.wide), dtype)
    if dtype is dtypes.t1:
        return np.asarray(rng.integers(0, 2, shape) * 2 - 1).astype(dtype.np)
    high = dtype.high if dtype.bits < 16 else min(dtype.high, SMALL)
    low = max(dtype.low, -SMALL) if dtype.bits >= 16 else dtype.low
    if bound is not None:
        low, high = 0, bound - 1
    return np.asarray(rng.integers(low, high + 1, shape)).astype(dtype.np)


def id_bounds(module: Module, symbol: str) -> dict[str, int]:
    """The smallest table that each input of a function selects from."""
    function: Func = module.function(symbol)
    names = dict(zip(function.body.args, function.inputs, strict=True))
    found: dict[str, int] = {}
    for op in function.body.all_ops():
        if isinstance(op, CheckIds) and op.x in names:
            name, bound = names[op.x], max(1, dims.maximum(op.bound))
            found[name] = min(found.get(name, bound), bound)
    return found
