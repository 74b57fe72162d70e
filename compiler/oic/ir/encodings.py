"""Encodings of constants: how the elements of a matrix lie in memory, beside "" (dense, row-major).

    panels    rows in panels of sixteen: for each column, the elements of sixteen rows side by side, the last panel
              filled up with zeros.  A vector's lanes are then rows, so that products add up in one order whatever
              the width of a register (DESIGN, section 7).
    columns   the same of the transpose: for each row, the elements of sixteen columns side by side

An encoding concerns the last two axes; those before them number matrices.  It changes bytes, never values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from oic.dtypes import Array

PANELS, COLUMNS = "panels", "columns"
ENCODINGS = (PANELS, COLUMNS)
ROWS = 16  # of a panel, or columns: OIC_LANES
PART = 1 << 20  # elements that are encoded at once


def padded(shape: tuple[int, ...], encoding: str) -> tuple[int, ...]:
    """The shape that the elements fill, what is there to fill up included."""
    match encoding:
        case "panels":
            return (*shape[:-2], -(-shape[-2] // ROWS) * ROWS, shape[-1])
        case "columns":
            return (*shape[:-1], -(-shape[-1] // ROWS) * ROWS)
    return shape


def encoded(values: Array, encoding: str) -> Array:
    """The elements in the order of memory, matrices numbered by the leading axes."""
    if encoding == COLUMNS:
        return encoded(values.swapaxes(-1, -2), PANELS)
    if encoding != PANELS:
        return values
    shape = padded(values.shape, encoding)
    count, rows, columns = math.prod(shape[:-2]), shape[-2], shape[-1]
    filled = np.zeros((count, rows, columns), values.dtype)
    filled[:, : values.shape[-2]] = values.reshape(count, *values.shape[-2:])
    panels = filled.reshape(count, rows // ROWS, ROWS, columns).swapaxes(-1, -2)
    return np.ascontiguousarray(panels).reshape(*shape[:-2], -1)


def encoded_parts(values: Array, encoding: str) -> Iterator[Array]:
    """What `encoded` gives, flat, a part after the other."""
    if encoding == COLUMNS:
        yield from encoded_parts(values.swapaxes(-1, -2), PANELS)
    elif encoding == PANELS:
        rows = max(1, PART // (ROWS * max(1, values.shape[-1]))) * ROWS
        for key in np.ndindex(values.shape[:-2]):
            for first in range(0, values.shape[-2], rows):
                yield encoded(values[key][first : first + rows], PANELS).reshape(-1)
    else:
        flat = values.reshape(-1)
        yield from (flat[first : first + PART] for first in range(0, flat.size, PART))


def decoded(elements: Array, shape: tuple[int, ...], encoding: str) -> Array:
    """The array of this shape from its elements in the order of memory: `encoded` backwards."""
    if encoding == COLUMNS:
        return decoded(elements, (*shape[:-2], shape[-1], shape[-2]), PANELS).swapaxes(-1, -2)
    if encoding != PANELS:
        return elements.reshape(shape)
    whole = padded(shape, encoding)
    count, rows, columns = math.prod(whole[:-2]), whole[-2], whole[-1]
    panels = elements.reshape(count, rows // ROWS, columns, ROWS).swapaxes(-1, -2)
    return panels.reshape(count, rows, columns)[:, : shape[-2]].reshape(shape)
