"""The payloads of .oinf that are not tensors: metadata values and quantisation records.

number   its bytes; a packed type has one byte        bool     one byte, 0 or 1
text     u32 bytes, UTF-8, padding to 8               bitset   u32 bits, u32 bytes, the bytes
array    u32 element type, u32 rank, u64 dimensions[rank], elements, padding to 8
quantisation
         u32 scheme (1 symmetric, 2 asymmetric), u32 scales (1 one, 2 one for each position of
         an axis), u32 zero points (0 none, 1 one, 2 by axis), u32 0, u64 axis, u64 scales,
         u64 axis, u64 zero points, f32 scales[], i32 zero points[], padding to 8
"""

import math
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from oic.diagnostics import fail
from oic.dtypes import ALL, DType, bool_, f32, f64, pack, unpack
from oic.model.budget import LIST, VALUE, text_bytes
from oic.model.file import ModelFile
from oic.model.tensors import Metadata, Quant, stored

NAME = re.compile(r"[A-Za-z0-9._-]+")
BITSET, TEXT, ARRAY = 13, 14, 15
_NAMES = "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bool bitset - - bf16 f8 i4 i2 i1 u4 u2 u1 t2 t1"
TENSOR_TAGS: dict[int, DType] = {tag: ALL[name] for tag, name in enumerate(_NAMES.split(), 1) if name != "-"}
TAGS = {dtype.name: tag for tag, dtype in TENSOR_TAGS.items()}
_QUANT = struct.Struct("<IIIIQQQQ")


def padded(count: int) -> int:
    """`count` bytes rounded up to a multiple of 8."""
    return (count + 7) // 8 * 8


def read_value(file: ModelFile, what: str, tag: int, tag_at: int, offset: int, nbytes: int) -> Metadata:
    """The metadata value in `nbytes` at `offset`; bitsets are lists of bool, arrays lists."""
    readers: dict[int, Callable[..., Metadata]] = {TEXT: _read_text, BITSET: _read_bits, ARRAY: _read_array}
    if tag in readers:
        return readers[tag](file, what, offset, nbytes)
    if tag not in TENSOR_TAGS:
        raise file.bad("model-dtype", f"type of {what}", tag_at, f"{tag} is no metadata type")
    dtype = TENSOR_TAGS[tag]
    _expect(file, what, offset, nbytes, dtype.nbytes(1))
    value: Metadata = _elements(file, what, dtype, (), offset)
    return value


def _expect(file: ModelFile, what: str, offset: int, nbytes: int, needed: int) -> None:
    file.require(nbytes == needed, what, offset, f"{nbytes} bytes, but its value has {needed}")


def _read_text(file: ModelFile, what: str, offset: int, nbytes: int) -> str:
    _at_least(file, what, offset, nbytes, 4)
    length = file.unsigned(offset, 4, what)
    _expect(file, what, offset, nbytes, padded(4 + length))
    text = file.text(offset + 4, length, what)
    file.charge(LIST + text_bytes(text), what, offset)
    return text


def _read_bits(file: ModelFile, what: str, offset: int, nbytes: int) -> list[Any]:
    _at_least(file, what, offset, nbytes, 8)
    bits, count = file.unsigned(offset, 4, what), file.unsigned(offset + 4, 4, what)
    file.require(count == (bits + 7) // 8, what, offset + 4, f"{count} bytes for {bits} bits")
    _expect(file, what, offset, nbytes, padded(8 + count))
    file.charge(LIST + VALUE * bits, what, offset)
    flags = np.unpackbits(file.view(offset + 8, count, what), bitorder="little")[:bits]
    found: list[Any] = flags.astype(bool).tolist()
    return found


def _read_array(file: ModelFile, what: str, offset: int, nbytes: int) -> Metadata:
    _at_least(file, what, offset, nbytes, 8)
    tag, rank = file.unsigned(offset, 4, what), file.unsigned(offset + 4, 4, what)
    if tag not in TENSOR_TAGS or tag == BITSET:
        raise file.bad("model-dtype", f"element type of {what}", offset, f"{tag} is no number type")
    dtype, start = TENSOR_TAGS[tag], offset + 8 + 8 * rank
    file.require(rank <= 32, f"rank of {what}", offset + 4, f"{rank} is over 32")
    _at_least(file, what, offset, nbytes, 8 + 8 * rank)
    shape = tuple(file.unsigned(offset + 8 + 8 * i, 8, what) for i in range(rank))
    count = file.count(shape, dtype.bits, f"dimensions of {what}", offset + 8)
    file.charge(_list_bytes(shape), f"dimensions of {what}", offset + 8)
    _expect(file, what, offset, nbytes, padded(start - offset + dtype.nbytes(count)))
    value: Metadata = _elements(file, what, dtype, shape, start)
    return value


def _list_bytes(shape: tuple[int, ...]) -> int:
    """Bytes of memory for nested lists of a shape, and for making them of an array."""
    lists = sum(math.prod(shape[:axis]) for axis in range(len(shape)))
    return LIST * lists + (VALUE + 16) * math.prod(shape)


def _at_least(file: ModelFile, what: str, offset: int, nbytes: int, least: int) -> None:
    file.require(nbytes >= least, what, offset, f"{nbytes} bytes, but it has at least {least}")


def _elements(file: ModelFile, what: str, dtype: DType, shape: tuple[int, ...], offset: int) -> Any:
    """Stored elements as plain Python values, nested lists by the shape."""
    count = math.prod(shape)
    return unpack(stored(file, what, offset, dtype, count), dtype, count).astype(dtype.wide).reshape(shape).tolist()


def read_quant(file: ModelFile, what: str, offset: int, nbytes: int, shape: tuple[int, ...]) -> Quant:
    """The quantisation record of a tensor of this shape."""
    _at_least(file, what, offset, nbytes, _QUANT.size)
    fields = _QUANT.unpack(file.read(offset, _QUANT.size, what))
    scheme, mode, zero_mode, reserved, axis, scales, zero_axis, zeros = fields

    def require(holds: bool, at: int, fact: str) -> None:
        file.require(holds, what, offset + at, fact)

    require(scheme in (1, 2), 0, f"scheme {scheme} is neither 1 nor 2")
    require(mode in (1, 2), 4, f"scale mode {mode} is neither 1 nor 2")
    require(zero_mode in (0, mode), 8, f"zero point mode {zero_mode} with scale mode {mode}")
    require(scheme == 2 or zero_mode == 0, 8, "a symmetric scheme has no zero points")
    require(reserved == 0, 12, f"the reserved field is {reserved}, not 0")
    require(mode == 1 or axis < len(shape), 16, f"axis {axis} of {len(shape)} dimensions")
    length = shape[axis] if mode == 2 else 1
    require(scales == length, 24, f"{scales} scales, but {length} are needed")
    require(zero_mode == 0 or zero_axis == (axis if mode == 2 else 0), 32, f"axis {zero_axis}")
    require(zeros == (length if zero_mode else 0), 40, f"{zeros} zero points")
    _expect(file, what, offset, nbytes, padded(_QUANT.size + 4 * (scales + zeros)))
    at = offset + _QUANT.size
    file.charge(VALUE * (scales + zeros), what, offset)
    values = unpack(file.view(at, 4 * scales, what), f32, scales)
    require(bool(np.isfinite(values).all()), _QUANT.size, "a scale is not finite")
    points = unpack(file.view(at + 4 * scales, 4 * zeros, what), ALL["i32"], zeros)
    return Quant(scheme == 1, axis if mode == 2 else None, tuple(values.tolist()), tuple(points.tolist()))


def quant_bytes(what: str, quant: Quant, shape: tuple[int, ...]) -> bytes:
    """The record that `read_quant` reads; an `OicError` `model-value` if it is inconsistent."""
    length = 1 if quant.axis is None else (*shape, -1)[min(quant.axis, len(shape))]
    zeros = len(quant.zero_points)
    if len(quant.scales) != length or zeros not in (0, length) or (zeros and quant.symmetric):
        raise fail("model-value", f"the quantisation of {what} does not suit its shape {shape}")
    mode, axis = (1, 0) if quant.axis is None else (2, quant.axis)
    zero_mode, zero_axis = (mode, axis) if zeros else (0, 0)
    head = _QUANT.pack(1 if quant.symmetric else 2, mode, zero_mode, 0, axis, length, zero_axis, zeros)
    return whole(head + np.array(quant.scales, "<f4").tobytes() + np.array(quant.zero_points, "<i4").tobytes())


def whole(raw: bytes) -> bytes:
    """The bytes and their padding."""
    return raw + bytes(-len(raw) % 8)


def written_text(text: str) -> bytes:
    """A text with its length before it and its padding."""
    raw = text.encode()
    return whole(struct.pack("<I", len(raw)) + raw)


def value_bytes(key: str, value: Metadata) -> tuple[int, bytes]:
    """The (type, payload) of a metadata value, in the smallest type that holds it exactly."""
    if isinstance(value, str):
        return TEXT, written_text(value)
    array = _exact(value)
    dtype = _fitting(array)
    if dtype is None:
        raise fail("model-value", f"metadata '{key}': .oinf holds no such value: {value!r:.60}")
    content = pack(array.astype(dtype.np), dtype).tobytes()
    if not isinstance(value, list):
        return TAGS[dtype.name], content
    return ARRAY, whole(struct.pack(f"<II{array.ndim}Q", TAGS[dtype.name], array.ndim, *array.shape) + content)


def _exact(value: Metadata) -> np.ndarray[Any, Any]:
    """The value as an array; of objects if NumPy's choice of dtype does not hold it exactly."""
    try:
        array = np.array(value)
        objects = np.array(value, dtype=object)
    except ValueError:  # ragged
        return np.array(None)
    same = (a == b or b != b for a, b in zip(array.ravel().tolist(), objects.ravel(), strict=True))
    return array if all(same) else objects


def _fitting(array: np.ndarray[Any, Any]) -> DType | None:
    """The smallest element type that holds every value exactly, or None."""
    if array.dtype.kind == "b":
        return bool_
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            exact = np.array_equal(array, array.astype("f4").astype("f8"), equal_nan=True)
        return f32 if exact else f64
    if array.dtype.kind in "iu":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        kinds = [ALL[f"{'u' if low >= 0 else 'i'}{bits}"] for bits in (8, 16, 32, 64)]
        return next(kind for kind in kinds if kind.low <= low and high <= kind.high)
    return None
