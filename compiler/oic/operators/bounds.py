"""Error bounds that several operators share: `tolerance` is built from these.

All take and give f64 arrays.  A bound is absolute, per element, and holds between two results
that were each computed within the operator's stated error and rounded once to the result's dtype.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic.dtypes import DType

F64 = NDArray[np.float64]


def real(values: Any) -> F64:
    """The values as f64, what is not finite as 0."""
    wide = np.asarray(values).astype(np.float64)
    return np.where(np.isfinite(wide), wide, 0.0)


def epsilon(dtype: DType) -> float:
    """ε of the type a result is computed in: 2^-23, or 2^-52 for f64."""
    return dtype.computed.spacing


def last_place(y: Any, dtype: DType) -> F64:
    """One unit in the last place of `dtype` at every element, at least its smallest subnormal.

    For a type that is computed in f32 this is what one more or less rounding can move a result.
    """
    wide = real(y)
    unit = np.where(wide == 0, 0.0, np.ldexp(dtype.spacing, np.frexp(wide)[1] - 1))
    return np.asarray(np.maximum(unit, dtype.smallest))


def lost(product: Any, factor: Any, dtype: DType) -> F64:
    """What a product below the normal numbers of the type computed in may lose, times what it is multiplied by."""
    least = dtype.computed.smallest
    return np.where(np.abs(product) < least / dtype.computed.spacing, least * np.abs(factor), 0.0)


def rounded(y: Any, error: Any, dtype: DType, reach: Any = 0.0) -> F64:
    """An error of the computed value, and what rounding to a narrow result adds; nothing of what is no float.

    reach   how large what is computed on the way may become; where that leaves the range of the type computed in,
            so that the result may be infinite or NaN, the bound is infinite
    """
    if not dtype.is_float:
        return np.zeros(np.shape(y))
    total = np.asarray(error, np.float64)
    bound = total + (last_place(np.abs(real(y)) + total, dtype) if dtype.narrow else dtype.smallest)
    return np.where(reach + total <= dtype.computed.largest, bound, np.inf)
