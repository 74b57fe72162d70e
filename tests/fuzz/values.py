"""Values that an operator may go wrong on, for every element type."""

from __future__ import annotations

import numpy as np

from oic import dtypes
from oic.dtypes import Array, DType

# Spacing of 1.0, smallest normal, smallest subnormal, largest finite.
_FLOATS = {
    "f8": (2.0**-2, 2.0**-14, 2.0**-16, 57344.0),
    "f16": (2.0**-10, 2.0**-14, 2.0**-24, 65504.0),
    "bf16": (2.0**-7, 2.0**-126, 2.0**-133, float.fromhex("0x1.fep127")),
    "f32": (2.0**-23, 2.0**-126, 2.0**-149, float(np.finfo(np.float32).max)),
    "f64": (2.0**-52, 2.0**-1022, 5e-324, float(np.finfo(np.float64).max)),
}


def special(dtype: DType) -> Array:
    """Zeros, infinities, NaN, subnormals, ends of the range, halves and a few plain values."""
    if dtype.is_float:
        eps, normal, least, most = _FLOATS[dtype.name]
        positive = [0.0, np.inf, least, 3 * least, normal - least, normal, eps, 0.3, 0.5, 1 - eps / 2]
        positive += [1.0, 1 + eps, 1.5, 2.5, 3.0, 7.3, 88.7, 127.5, 128.0, 20000.7, most / 2, most]
        values = np.array([np.nan, *positive, *(-v for v in positive)])
        with np.errstate(over="ignore"):
            return values.astype(dtype.np)
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.kind == "ternary":
        return np.array([-1, 1] if dtype.bits == 1 else [-1, 0, 1], dtype.np)
    near = [dtype.low, dtype.low + 1, dtype.low // 2, -7, -2, -1, 0, 1, 2, 3, 10, 100]
    near += [dtype.high // 2, dtype.high - 1, dtype.high]
    whole = sorted({v for v in near if dtype.low <= v <= dtype.high})
    border = np.uint64 if dtype.low == 0 else np.int64
    return np.array(whole, border).astype(dtype.np)


def random(dtype: DType, count: int, rng: np.random.Generator) -> Array:
    """Random values: floats of all magnitudes and of one, integers of the whole range."""
    if dtype.is_float:
        plain = rng.standard_normal(count) * 4
        wild = np.ldexp(rng.standard_normal(count), rng.integers(-30, 30, count))
        with np.errstate(over="ignore"):
            return np.where(rng.random(count) < 0.7, plain, wild).astype(dtype.np)
    if dtype.kind == "bool":
        return rng.integers(0, 2, count).astype(np.bool_)
    border = np.uint64 if dtype.low == 0 else np.int64
    whole = rng.integers(dtype.low, dtype.high, count, border, endpoint=True)
    if dtype is dtypes.t1:
        whole = np.where(whole > 0, 1, -1)
    return whole.astype(dtype.np)


def mixed(
    types: list[DType], rng: np.random.Generator, extra: int = 300, most: int = 20000
) -> list[Array]:
    """One array for each operand, of one length: combinations of special values, then random ones.

    most   of the combinations; beyond that a choice of them
    """
    grids = np.meshgrid(*(np.arange(len(special(t))) for t in types), indexing="ij")
    chosen = np.arange(grids[0].size)
    if len(chosen) > most:
        chosen = rng.choice(chosen, most, replace=False)
    return [
        np.concatenate([special(t)[g.reshape(-1)[chosen]], random(t, extra, rng)])
        for t, g in zip(types, grids, strict=True)
    ]


def drawn(kind: str, dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values of one of these kinds.

    plain     normal floats, integers of the whole range
    special   half of them special values
    tame      some special values, but none so large that a sum of a few overflows
    positive  floats in 0.5..1.5
    unit      floats in 0..1, 1 excluded
    ranged    rows of all magnitudes, from subnormal numbers to the largest, some with special values
    small     integers 0..3
    below:N   integers 0..N-1
    multiplier, shift  what models requantise with: 2^30..2^31-1, and -12..2
    """
    count = int(np.prod(shape, dtype=np.int64))
    if kind == "ranged":
        return _ranged(dtype, shape, rng)
    return np.asarray(_drawn(kind, dtype, count, rng)).astype(dtype.np).reshape(shape)


def _ranged(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Rows along the last axis, each normal numbers of some magnitude; one of a few also has special values."""
    _, _, least, most = _FLOATS[dtype.name]
    each = (*shape[:-1], 1) if shape else ()
    low, high = np.log2(least), np.log2(most)
    share = rng.choice([0.0, 0.5, 1.0], each)  # some as they are, some not far from 1
    scale = np.exp2(np.trunc(share * rng.uniform(low, high, each)))
    rare = (rng.random(each) < 0.3) & (rng.random(shape) < 0.1)
    with np.errstate(over="ignore"):
        made = rng.standard_normal(shape) * scale
        return np.asarray(np.where(rare, rng.choice(special(dtype).astype(np.float64), shape), made)).astype(dtype.np)


def _drawn(kind: str, dtype: DType, count: int, rng: np.random.Generator) -> Array:
    name, _, bound = kind.partition(":")
    match name:
        case "below":
            return rng.integers(0, max(1, int(bound)), count)
        case "small":
            return rng.integers(0, 4, count)
        case "multiplier":
            return rng.integers(1 << 30, 1 << 31, count)
        case "shift":
            return rng.integers(-12, 3, count)
        case "positive":
            return rng.random(count) + 0.5
        case "unit":
            return rng.random(count) * 0.999
        case "special":
            made = random(dtype, count, rng)
            return np.where(rng.random(count) < 0.5, rng.choice(special(dtype), count), made)
    if not dtype.is_float:
        return random(dtype, count, rng)
    normal = rng.standard_normal(count)
    if name != "tame":
        return normal
    rare = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, _FLOATS[dtype.name][2], 1e-3])
    return np.where(rng.random(count) < 0.08, rng.choice(rare, count), normal)
