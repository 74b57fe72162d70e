"""Random inputs of an entry: every dtype, every size, ids within their tables."""

from collections.abc import Mapping

import numpy as np

from oic import dtypes
from oic.dtypes import Array, DType
from oic.ir import dims
from oic.ir.control import Func
from oic.ir.index import CheckIds
from oic.ir.module import Module
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
    return {n: random_values(t.dtype, shape_of(t, chosen), rng, bounds.get(n)) for n, t in entry.inputs.items()}


def own_inputs(entry: Entry, given: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, int]]:
    """The given arrays that an entry reads, and the extents that they decide."""
    own = {name: array for name, array in given.items() if name in entry.inputs}
    sizes = ((dims.atom(d), n) for name, a in own.items() for d, n in zip(entry.inputs[name].shape, a.shape))
    return own, {extent.name: n for extent, n in sizes if extent is not None}


def random_values(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, bound: int | None = None) -> Array:
    """Normal floats; integers from 0 and below `bound`, else all of a small type, of larger ones those next to 0."""
    if dtype.is_float:
        return dtypes.store(rng.standard_normal(shape).astype(dtype.wide), dtype)
    low, high = (dtype.low, dtype.high) if dtype.bits < 16 else (max(dtype.low, -SMALL), SMALL)
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
