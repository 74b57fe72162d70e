"""Values given by a caller: made into arrays, and refused where they are not what was declared.

Statuses (SPEC, section 4): OIC_ERR_INPUT for an unknown name, a wrong dtype or a missing value,
OIC_ERR_SHAPE for a wrong rank or size and for extents that disagree or are too large.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oic.diagnostics import StepError, nearest
from oic.dtypes import Array, DType
from oic.ir import dims
from oic.operators.evaluate import bind_sizes, require_at_most, shape_of
from oic.session.interface import Entry, Interface, SessionVariable

INPUT, SHAPE = "OIC_ERR_INPUT", "OIC_ERR_SHAPE"


def checked(interface: Interface, name: str, value: Any, copy: bool = True) -> Array:
    """A value for a dynamic variable, row-major.  Raises StepError.

    copy   never the caller's own array
    """
    variable = interface.variables.get(name)
    if variable is None:
        known = [v.name for v in interface.variables.values() if v.kind == "dynamic"]
        some = f" (known: {', '.join(known[:6]) or 'none'}{', …' if len(known) > 6 else ''})"
        more = f"; did you mean '{best}'?" if (best := nearest(name, known)) else some
        raise StepError(INPUT, f"there is no input '{name}'{more}", variable=name)
    if variable.kind != "dynamic":
        raise _refused(variable, INPUT, f"'{name}' is {variable.kind}, and only dynamic variables are inserted")
    return _array(variable, value, copy)


def _array(variable: SessionVariable, value: Any, copy: bool) -> Array:
    """The elements in the variable's dtype; Python numbers convert where nothing is lost.

    What is refused is not copied first: a view may have far more elements than there is memory.
    """
    dtype = variable.dtype
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype != dtype.np:
            raise _wrong_dtype(variable, str(value.dtype))
        if np.ma.is_masked(value):
            raise _refused(variable, INPUT, f"input '{variable.name}' has masked elements, which have no value")
        _check_shape(variable, value.shape)
        lies = not copy and isinstance(value, np.ndarray) and value.flags.aligned
        array: Array = np.asarray(value, order="C") if lies else np.array(value, order="C")
    else:
        try:
            given = np.asarray(value)
            if dtype.is_int and given.dtype.kind == "f":  # NumPy's: some integers are below 2^63, and some are not
                numbers = np.array(value, object)
                given = numbers if _are_integers(numbers) else given
        except (ValueError, OverflowError):
            raise _wrong_dtype(variable, "ragged or out of range") from None
        if not _converts(given, dtype):
            raise _wrong_dtype(variable, str(given.dtype))
        _check_shape(variable, given.shape)
        _check_range(variable, given)
        with np.errstate(over="ignore"):
            array = given.astype(dtype.np)
        if dtype.is_float and (beyond := given[np.isfinite(given) & ~np.isfinite(array)]).size:
            raise _no_value(variable, beyond[0])
    if dtype.packed:  # the array holds numbers beyond its range
        _check_range(variable, array.astype(np.int64))
    return array


def _converts(given: Array, dtype: DType) -> bool:
    """Python numbers of this kind are numbers of the dtype's; so is nothing at all."""
    if given.size == 0:
        return True
    if dtype.kind == "bool":
        return given.dtype.kind == "b"
    if dtype.is_float:
        return given.dtype.kind in "fiu"
    return given.dtype.kind in "iu" or _are_integers(given)


def _are_integers(given: Array) -> bool:
    return given.dtype.kind == "O" and all(isinstance(n, int) for n in given.flat)


def _check_range(variable: SessionVariable, numbers: Array) -> None:
    """Integers are values of the variable's dtype, where that is none of floats or truths."""
    dtype = variable.dtype
    if not numbers.size or dtype.is_float or dtype.kind == "bool":
        return
    low, high = int(numbers.min()), int(numbers.max())
    if low < dtype.low or high > dtype.high:
        bad, bound = (low, dtype.low) if low < dtype.low else (high, dtype.high)
        raise _no_value(variable, bad, index=bad, bound=bound)


def _refused(variable: SessionVariable, status: str, what: str, **more: Any) -> StepError:
    return StepError(status, what, variable=variable.name, span=variable.span, **more)


def _no_value(variable: SessionVariable, given: object, **more: Any) -> StepError:
    what = f"{given} is no value of {variable.dtype}, the dtype of input '{variable.name}'"
    return _refused(variable, INPUT, what, **more)


def _wrong_dtype(variable: SessionVariable, given: str) -> StepError:
    name, dtype, hint = variable.name, variable.dtype, None
    if given.startswith("<U"):
        given, hint = "text", "numbers have no quotes; --input takes NaN, Infinity and -Infinity, too"
    what = f"input '{name}' is {dtype}, and was given {given}"
    if given.startswith("float" if dtype.is_float else ("int", "uint")) and not dtype.packed:
        home = "np" if dtype.np.kind in "fiu" else "ml_dtypes"
        hint = f"convert it: {name}.astype({home}.{dtype.np.name})"
    return _refused(variable, INPUT, what, hint=hint)


def _check_shape(variable: SessionVariable, given: tuple[int, ...]) -> None:
    """Rank, the sizes that every entry agrees on, and maxima; whether extents agree, the step checks."""
    shape = variable.shape
    if len(given) != len(shape):
        raise _refused(variable, SHAPE, f"input '{variable.name}' has rank {len(shape)}, and was given {list(given)}")
    for axis, (size, dim) in enumerate(zip(given, shape)):
        if isinstance(dim, int) and size != dim:
            what = f"axis {axis} of input '{variable.name}' is {dim}, and was given {size}"
            raise _refused(variable, SHAPE, what, index=size, bound=dim)
        extent = None if dim is None else dims.atom(dim)
        if extent is not None:
            require_at_most(variable.name, extent, size)


def gathered(interface: Interface, entry: Entry, given: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs that an entry reads, all there and of sizes that agree.  Raises StepError."""
    sizes: dict[str, int] = {}
    for name, type_ in entry.inputs.items():
        if name not in given:
            raise _refused(interface.variables[name], INPUT, f"input '{name}' was not given")
        bind_sizes(name, type_, given[name].shape, sizes)
    for name, type_ in entry.inputs.items():
        for axis, (size, wanted) in enumerate(zip(given[name].shape, shape_of(type_, sizes))):
            if size != wanted:
                what = f"axis {axis} of input '{name}' is {wanted} here, and was given {size}"
                raise _refused(interface.variables[name], SHAPE, what, index=size, bound=wanted)
    return {name: given[name] for name in entry.inputs}
