"""What a reader finds in a model: tensors, where their bytes are, sizevars and metadata."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic.diagnostics import OicError, fail
from oic.dtypes import ALL, Array, DType, from_array, pack, store, unpack
from oic.model.blocks import Blocks
from oic.model.file import ModelFile

ConfigScalar = bool | int | float | str
Metadata = ConfigScalar | list[Any]  # a list holds scalars or lists


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a model, without its elements.

    dtype   element type; of kind 'opaque' where the language has none for what is stored, and
            then the tensor can be listed but not read
    nbytes  bytes stored (unpacked from compression); 0 without data
    file    the file that holds it; '' in memory
    offset  byte in that file where the stored form begins; None in memory or without data
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    has_data: bool
    nbytes: int
    file: str = ""
    offset: int | None = None

    @property
    def count(self) -> int:
        """Elements, one a logical value."""
        return math.prod(self.shape)


def opaque(name: str) -> DType:
    """A dtype for a stored type that the language has no element type for."""
    void = np.dtype("V1")
    return DType(name, 8, "opaque", void, void, "void", "void")


@dataclass(frozen=True)
class Tensor:
    """A tensor given in memory, with its element type: NumPy has no t1, t2, bitset, i1 and u1.

    `array` None with a `shape` declares a tensor without data.
    """

    array: Any
    dtype: DType | str
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Mapped:
    """Stored bytes in our own form: little-endian, row-major, packed types LSB first.

    `check`, if given, is called before the bytes are used and raises if they are damaged.
    """

    file: ModelFile
    offset: int
    check: Callable[[], None] | None = None


@dataclass(frozen=True, eq=False)
class Computed:
    """Elements that have to be made: inflated, reordered or converted.  C-contiguous."""

    load: Callable[[], Array]


@dataclass(frozen=True, eq=False)
class UnreadableTensor:
    """A tensor that is listed but cannot be read, and why."""

    reason: str


PART = 1 << 20  # bytes that are looked at together, so that what is computed of them is small

Origin = Mapped | Computed | Blocks | UnreadableTensor | None  # None: declared without data


@dataclass(frozen=True, eq=False)
class TensorSource:
    """A tensor and where its elements come from."""

    info: TensorInfo
    origin: Origin

    def bytes(self) -> NDArray[np.uint8]:
        """The stored form, u8[nbytes]; a view of the mapping where that holds our form."""
        dtype, where = self.info.dtype, self.origin
        if not isinstance(where, Mapped):
            return pack(self.array(), dtype)
        if where.check is not None:
            where.check()
        return stored(where.file, f"data of tensor '{self.info.name}'", where.offset, dtype, self.info.count)

    def array(self) -> Array:
        """The elements in `shape`, one logical value each, aligned; read-only."""
        dtype = self.info.dtype
        match self.origin:
            case Mapped():
                raw = self.bytes()
                if not dtype.packed and raw.ctypes.data % dtype.np.alignment:
                    raw = raw.copy()
                array = unpack(raw, dtype, self.info.count)
            case Computed(load):
                array = load()
            case Blocks():
                array = self.origin.values()
            case UnreadableTensor(reason):
                raise self._refusal("model-dtype", reason)
            case None:
                raise self._refusal("model-no-data", "is declared without data")
        view = array.reshape(self.info.shape).view()
        view.flags.writeable = False
        return view

    def parts(self) -> Iterator[Array]:
        """The elements in order, flat, at most `PART` bytes of the stored form at a time."""
        if not isinstance(self.origin, Mapped):
            flat = self.array().reshape(-1)
            yield from (flat[at : at + PART] for at in range(0, flat.size, PART))
            return
        raw, dtype = self.bytes(), self.info.dtype
        each = 8 * PART // dtype.bits
        for at in range(0, self.info.count, each):
            count = min(each, self.info.count - at)
            start = at * dtype.bits // 8
            yield unpack(raw[start : start + dtype.nbytes(count)].copy(), dtype, count)

    def _refusal(self, slug: str, fact: str) -> OicError:
        place = f"{self.info.file}: " if self.info.file else ""
        return fail(slug, f"{place}tensor '{self.info.name}': {fact}")


def in_file(
    file: ModelFile, name: str, dtype: DType, shape: tuple[int, ...], offset: int, nbytes: int, reason: str = ""
) -> TensorSource:
    """A tensor whose stored form lies in a file.

    reason   why its elements cannot be read
    """
    origin: Origin = UnreadableTensor(reason) if reason else Mapped(file, offset)
    return TensorSource(TensorInfo(name, dtype, shape, True, nbytes, file.name, offset), origin)


def ranges_of(entries: Mapping[str, TensorSource]) -> list[tuple[int, int, str]]:
    """Where tensors lie in their file: offset, bytes, and what messages call them."""
    return [(e.info.offset or 0, e.info.nbytes, f"tensor {n!r}") for n, e in entries.items()]


def stored(file: ModelFile, field: str, offset: int, dtype: DType, count: int) -> NDArray[np.uint8]:
    """The bytes of elements that lie in a file, each of which has to encode a value."""
    raw = file.view(offset, dtype.nbytes(count), field)
    at = wrong_code(raw, dtype, count)
    if at is not None:
        raise file.bad("model-field", field, offset + at, f"0x{raw[at]:02x} holds no {dtype} value")
    return raw


def wrong_code(raw: NDArray[np.uint8], dtype: DType, count: int) -> int | None:
    """The first byte that encodes no value, or None: a bool of 2, a t2 of -2.

    `count` is the number of elements; bits after the last are not looked at.
    """
    if dtype.kind != "bool" and dtype.name != "t2":
        return None
    for start in range(0, len(raw), PART):
        part = raw[start : start + PART]
        if dtype.kind == "bool":
            wrong = part > 1
        else:
            wrong = (part & ~(part << 1) & 0xAA) != 0  # some pair of bits is 10
            if start + PART >= len(raw) and (used := 2 * count % 8):
                last = part[-1:] & ((1 << used) - 1)
                wrong[-1:] = (last & ~(last << 1) & 0xAA) != 0
        if wrong.any():
            return start + int(wrong.argmax())
    return None


@dataclass(frozen=True)
class Contents:
    """All that a file, a folder or a caller supplies."""

    entries: dict[str, TensorSource] = field(default_factory=dict)
    sizevars: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Metadata] = field(default_factory=dict)


def from_memory(name: str, value: object) -> TensorSource:
    """The entry of an array, an (array, dtype) pair or a `Tensor` given by the caller.

    Raises `OicError`: `model-dtype` where no element type fits, `model-value` for values out of
    its range.
    """
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], (str, DType)):
        value = Tensor(*value)
    if isinstance(value, Tensor):
        if not isinstance(value.dtype, DType) and value.dtype not in ALL:
            raise fail("model-dtype", f"tensor '{name}': there is no element type '{value.dtype}'")
        dtype = value.dtype if isinstance(value.dtype, DType) else ALL[value.dtype]
        if value.array is None:
            return TensorSource(TensorInfo(name, dtype, tuple(value.shape or ()), False, 0), None)
        array = _converted(name, np.asarray(value.array), dtype)
        if value.shape not in (None, array.shape):
            raise fail("model-value", f"tensor '{name}' is of shape {array.shape}, not {value.shape}")
    else:
        array = np.asarray(value)
        own = from_array(array.dtype.newbyteorder("="))
        if own is None:
            text = f"tensor '{name}': no element type for NumPy's {array.dtype}"
            raise fail("model-dtype", text, hint="give Tensor(array, dtype)")
        dtype = own
    array = np.ascontiguousarray(array, dtype.np).reshape(array.shape)
    info = TensorInfo(name, dtype, array.shape, True, dtype.nbytes(array.size))
    return TensorSource(info, Computed(lambda: array))


def _converted(name: str, array: Array, dtype: DType) -> Array:
    """The array in `dtype.np`: floats rounded, everything else exact or refused."""
    own = from_array(array.dtype.newbyteorder("="))
    if own is None or (own.is_float and not dtype.is_float):
        raise fail("model-dtype", f"tensor '{name}': {array.dtype} does not convert to {dtype}")
    if dtype.is_float:
        return store(array, dtype)
    wide = array.astype(np.uint64 if own.name == "u64" else np.int64)
    if wide.size and (int(wide.min()) < dtype.low or int(wide.max()) > dtype.high):
        text = f"tensor '{name}': values from {wide.min()} to {wide.max()} do not fit {dtype}"
        raise fail("model-value", text, hint=f"{dtype} holds {dtype.low} to {dtype.high}")
    if dtype.name == "t1":
        wide = np.where(wide > 0, 1, -1)  # a stored zero is -1
    return wide.astype(dtype.np)
