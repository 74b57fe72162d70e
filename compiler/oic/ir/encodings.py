"""Encodings of constants: how the elements of a matrix are stored, and in which order they lie.

An encoding is a storage, a layout, or both: `q8 panels`; "" is as the type says, row-major.

    storage   bf16, f16: of an f32, rounded once; q8, q4: groups of 32 along K with a scale each (`quantized`)
    panels    rows in panels of sixteen: for each column, the elements of sixteen rows side by side, the last panel
              filled up with zeros.  A vector's lanes are then rows, so that products add up in one order whatever
              the width of a register (DESIGN, section 7).
    columns   the same of the transpose: for each row, the elements of sixteen columns side by side
    pairs, column_pairs
              the same with two neighbours of a row side by side, the last of an odd number beside a zero: of bf16, as
              instructions multiply them

Of q8 and q4 there are panels and columns alone, which decide what K is.
An encoding concerns the last two axes; those before them number matrices.  A layout changes bytes, never values; a
storage has changed the values already when it is in a type.
"""

import math
from collections.abc import Iterator

import numpy as np

from oic import dtypes
from oic.dtypes import Array, DType
from oic.ir import quantized
from oic.ir.quantized import ALIGN as ALIGN
from oic.ir.quantized import GROUP_STORAGES
from oic.ir.quantized import ROWS as ROWS  # of a panel, or columns: OIC_LANES
from oic.ir.quantized import WIDEST as WIDEST

PANELS, COLUMNS = "panels", "columns"
GROUP_LAYOUTS = (PANELS, COLUMNS)
PAIRED = {PANELS: "pairs", COLUMNS: "column_pairs"}
TURNED = {COLUMNS: PANELS, PAIRED[COLUMNS]: PAIRED[PANELS]}  # as which the transpose lies
LAYOUTS = (*PAIRED.values(), *GROUP_LAYOUTS)  # the first of equals is taken
NARROW = {
    "bf16": dtypes.bf16,
    "f16": dtypes.f16,
}
STORAGES = (*NARROW, *GROUP_STORAGES)


def layout_of(encoding: str) -> str:
    """The order of the elements; "": row-major."""
    last = encoding.rpartition(" ")[2]
    return last if last in LAYOUTS else ""


def storage_of(encoding: str) -> str:
    """What the elements are stored as; "": as their type says."""
    return encoding.removesuffix(layout_of(encoding)).rstrip()


def joined(storage: str, layout: str) -> str:
    """The encoding of both."""
    return f"{storage} {layout}".strip()


def stored_as(dtype: DType, encoding: str) -> DType:
    """The type of what lies in memory: bytes, where groups of elements have a scale."""
    storage = storage_of(encoding)
    return dtypes.u8 if storage in GROUP_STORAGES else NARROW.get(storage, dtype)


def nbytes(dtype: DType, shape: tuple[int, ...], encoding: str) -> int:
    """Bytes of the matrices of this shape."""
    if (storage := storage_of(encoding)) in GROUP_STORAGES:
        return math.prod(shape[:-2]) * matrix_bytes(shape, encoding)
    return NARROW.get(storage, dtype).nbytes(math.prod(padded(shape, encoding)))


def matrix_bytes(shape: tuple[int, ...], encoding: str) -> int:
    """Bytes of one of the quantised matrices."""
    rows, k = shape[-2:] if layout_of(encoding) != COLUMNS else (shape[-1], shape[-2])
    return quantized.matrix_bytes(rows, k, storage_of(encoding))


def padded(shape: tuple[int, ...], encoding: str) -> tuple[int, ...]:
    """The shape that the elements fill, what is there to fill up included."""
    layout = layout_of(encoding)
    if not layout:
        return shape
    units = (ROWS, _together(layout))
    filled = (-(-d // u) * u for d, u in zip(shape[-2:], units[::-1] if layout in TURNED else units, strict=True))
    return (*shape[:-2], *filled)


def _together(layout: str) -> int:
    """Neighbours of a row that lie side by side."""
    return 2 if layout in PAIRED.values() else 1


def encoded(values: Array, layout: str) -> Array:
    """The elements in the order of memory, matrices numbered by the leading axes."""
    if layout in TURNED:
        return encoded(values.swapaxes(-1, -2), TURNED[layout])
    if not layout:
        return values
    shape, together = padded(values.shape, layout), _together(layout)
    count, rows, columns = math.prod(shape[:-2]), shape[-2], shape[-1]
    filled = np.pad(values, [(0, whole - part) for part, whole in zip(values.shape, shape, strict=True)])
    panels = filled.reshape(count, rows // ROWS, ROWS, columns // together, together).swapaxes(2, 3)
    return np.ascontiguousarray(panels).reshape(*shape[:-2], -1)


def encoded_parts(values: Array, layout: str) -> Iterator[Array]:
    """What `encoded` gives, flat, a part after the other."""
    if layout in TURNED:
        yield from encoded_parts(values.swapaxes(-1, -2), TURNED[layout])
    elif layout:
        for key in np.ndindex(values.shape[:-2]):
            for first, end in quantized.row_parts(values.shape[-2], values.shape[-1], ROWS):
                yield encoded(values[key][first:end], layout).reshape(-1)
    else:
        flat = values.reshape(-1)
        yield from (flat[first:end] for first, end in quantized.row_parts(flat.size, 1))


def loaded(data: Array, dtype: DType, shape: tuple[int, ...], encoding: str) -> Array:
    """The values from the bytes of memory, as they are computed with."""
    storage, layout = storage_of(encoding), layout_of(encoding)
    if layout in TURNED:
        turned = (*shape[:-2], shape[-1], shape[-2])
        return loaded(data, dtype, turned, joined(storage, TURNED[layout])).swapaxes(-1, -2)
    if storage in GROUP_STORAGES:
        matrices, (rows, k) = data.reshape(math.prod(shape[:-2]), -1), shape[-2:]
        return np.stack([quantized.loaded(m, rows, k, storage) for m in matrices]).reshape(shape)
    stored = NARROW.get(storage, dtype)
    elements = dtypes.unpack(data, stored, len(data) * 8 // stored.bits).astype(dtype.np, copy=False)
    if not layout:
        return elements.reshape(shape)
    whole, together = padded(shape, layout), _together(layout)  # `encoded` backwards
    count, rows, columns = math.prod(whole[:-2]), whole[-2], whole[-1]
    panels = elements.reshape(count, rows // ROWS, columns // together, ROWS, together).swapaxes(2, 3)
    return panels.reshape(count, rows, columns)[:, : shape[-2], : shape[-1]].reshape(shape)
