"""The .oinf reader, versions 1 and 2.

    header (72 bytes) | sizevars | metadata | tensor index | payloads

Little-endian; every section and payload starts at a multiple of 8, padded with zeros.

    header   magic "OINF\\0", u32 version, u32 flags = 0, u32 sizevars, u32 metadata, u32 tensors,
             u32 reserved = 0, u64 offset of each of the four sections, u64 file size, padding
    text     u32 bytes, the bytes, padding to 8; names are of [A-Za-z0-9._-]
    sizevar  text name, u64 value
    metadata text key, u32 type, u32 flags = 0, u64 bytes, u64 offset
    tensor   text name, u32 type, u32 rank, u32 flags (1 has data, 2 has quantisation),
             u64 dimensions[rank], u64 bytes, u64 offset; version 2: also those of the quantisation

The payloads that are not tensors:

    number   its bytes; a packed type has one byte        bool     one byte, 0 or 1
    text     u32 bytes, UTF-8, padding to 8               bitset   u32 bits, u32 bytes, the bytes
    array    u32 element type, u32 rank, u64 dimensions[rank], elements, padding to 8

A tensor is the integers that it holds: records of a quantisation, which some files have beside it, are passed over.
Source: OpenInfer, "OINF Format" (docs), and the public tools' output for version 2.
"""

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from oic.dtypes import ALL, DType, unpack
from oic.model.budget import LIST, TENSOR, VALUE, text_bytes
from oic.model.file import ModelFile, Section, check_no_overlap
from oic.model.tensors import Contents, Mapped, Metadata, TensorInfo, TensorSource, stored

HEADER = struct.Struct("<5s6I5Q3x")
TABLES = ("sizevars", "metadata", "tensors")
_T = TypeVar("_T")
NAME = re.compile(r"[A-Za-z0-9._-]+")
BITSET, TEXT, ARRAY = 13, 14, 15
_NAMES = "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bool bitset - - bf16 f8 i4 i2 i1 u4 u2 u1 t2 t1"
TENSOR_TAGS: dict[int, DType] = {tag: ALL[name] for tag, name in enumerate(_NAMES.split(), 1) if name != "-"}
TAGS = {dtype.name: tag for tag, dtype in TENSOR_TAGS.items()}


def read(file: ModelFile) -> Contents:
    """The contents of an .oinf file; the whole file but the elements is checked here."""
    if file.read(0, 5, "magic") != b"OINF\0":
        raise file.bad("model-format", "magic", 0, "not 'OINF'")
    _, version, flags, *rest = HEADER.unpack(file.read(0, HEADER.size, "header"))
    counts, reserved, offsets, size = rest[:3], rest[3], rest[4:8], rest[8]
    if version not in (1, 2):
        raise file.bad("model-format", "version", 5, f"{version}, but 1 and 2 are known")
    for name, value, place in (("flags", flags, 9), ("reserved", reserved, 25)):
        file.require(value == 0, name, place, f"{value}, but it has to be 0")
    if size != file.size:
        slug = "model-truncated" if size > file.size else "model-field"
        raise file.bad(slug, "file size", 61, f"{size}, but the file has {file.size} bytes")
    least = HEADER.size
    for i, (name, offset) in enumerate(zip((*TABLES, "data"), offsets)):
        what, place = f"offset of the {name} section", 29 + 8 * i
        file.require(offset % 8 == 0, what, place, f"{offset} is not a multiple of 8")
        file.require(least <= offset <= size, what, place, f"{offset} is not in {least} to {size}")
        least = offset
    return _OinfReader(file, version, counts, offsets).contents()


@dataclass(eq=False)
class _OinfReader:
    """Reads one table after the other; `at` is the byte it has come to.

    counts    entries of each table
    offsets   of the tables and of the data
    """

    file: ModelFile
    version: int
    counts: list[int]
    offsets: list[int]
    at: int = 0
    end: int = 0  # of the table being read
    payloads: list[tuple[int, int, str]] = field(default_factory=list)

    def contents(self) -> Contents:
        sizevars, metadata = self._table(0, self._sizevar), self._table(1, self._metadata)
        entries = self._table(2, self._tensor)
        check_no_overlap(self.file, self.payloads)
        return Contents(entries, sizevars, metadata)

    def _table(self, number: int, entry: Callable[[str], _T]) -> dict[str, _T]:
        section, (self.at, self.end) = TABLES[number], self.offsets[number : number + 2]
        found: dict[str, _T] = {}
        for _ in range(self.counts[number]):
            place = self.at
            name = self._name(f"name in the {section} section")
            if name in found:
                raise self.file.bad("model-duplicate", section, place, f"'{name}' is there twice")
            found[name] = entry(name)
        rest = self.file.view(self.at, self.end - self.at, section)
        if rest.any():
            raise self.file.bad("model-field", f"padding of {section}", self.at + int((rest != 0).argmax()), "not zero")
        return found

    def _unsigned(self, width: int, what: str) -> int:
        self._within(width, what)
        self.at += width
        return self.file.unsigned(self.at - width, width, what)

    def _within(self, count: int, what: str) -> None:
        if self.at + count > self.end:
            fact = f"{count} bytes are needed, but the section ends at byte {self.end}"
            raise self.file.bad("model-truncated", what, self.at, fact)

    def _name(self, what: str) -> str:
        start, length = self.at, self._unsigned(4, what)
        self._within(length, what)
        name = self.file.check_name(self.file.text(self.at, length, what), what, self.at)
        self.file.charge(LIST + text_bytes(name), what, self.at)
        if not NAME.fullmatch(name):
            raise self.file.bad("model-name", what, self.at, f"{name!r} has characters other than A-Z a-z 0-9 . _ -")
        self._within(padded(4 + length) - 4, what)
        self.at = start + padded(4 + length)
        return name

    def _sizevar(self, name: str) -> int:
        what, place = f"sizevar '{name}'", self.at
        value = self._unsigned(8, what)
        self.file.require(value < 1 << 63, what, place, f"{value} is over 2^63-1")
        return value

    def _metadata(self, name: str) -> Metadata:
        what = f"metadata '{name}'"
        place, tag, flags = self.at, self._unsigned(4, what), self._unsigned(4, what)
        self.file.require(flags == 0, f"flags of {what}", place + 4, f"{flags}, not 0")
        return self._payload(what).value(tag, place)

    def _payload(self, what: str) -> "_Payload":
        """What is to be read of a payload, which has to lie in the data section."""
        field, place = f"offset of {what}", self.at + 8
        nbytes, offset = self._unsigned(8, what), self._unsigned(8, what)
        self.file.require(offset % 8 == 0, field, place, f"{offset} is not a multiple of 8")
        self.file.require(offset >= self.offsets[-1], field, place, f"{offset} lies before the data section")
        self.file.need(offset, nbytes, what)
        self.payloads.append((offset, nbytes, what))
        return _Payload(self.file, what, offset, nbytes)

    def _absent(self, what: str) -> None:
        place, empty = self.at, self._unsigned(16, what) == 0
        self.file.require(empty, what, place, "bytes or offset are not 0, but the flags say there is none")

    def _tensor(self, name: str) -> TensorSource:
        what, place = f"tensor '{name}'", self.at
        self.file.charge(TENSOR, "tensors", place)
        dtype, flags, shape = self._declared(what)
        count = self.file.count(shape, dtype.bits, f"dimensions of {what}", place + 12)
        offset, nbytes = None, 0
        if flags & 1:
            payload = self._payload(what)
            offset, nbytes = payload.offset, payload.size
            fact = f"{nbytes}, but {dtype}{list(shape)} has {dtype.nbytes(count)}"
            self.file.require(nbytes == dtype.nbytes(count), f"bytes of {what}", self.at - 16, fact)
        else:
            self._absent(f"data of {what}")
        record = f"quantisation of {what}"
        if flags & 2:
            self._payload(record)
        elif self.version == 2:
            self._absent(record)
        info = TensorInfo(name, dtype, shape, offset is not None, nbytes, self.file.name, offset)
        return TensorSource(info, None if offset is None else Mapped(self.file, offset))

    def _declared(self, what: str) -> tuple[DType, int, tuple[int, ...]]:
        """The (dtype, flags, shape) of a tensor."""
        place, tag = self.at, self._unsigned(4, what)
        rank, flags = self._unsigned(4, what), self._unsigned(4, what)
        if tag not in TENSOR_TAGS:
            raise self.file.bad("model-dtype", f"type of {what}", place, f"{tag} is no tensor type")
        self.file.require(rank <= 32, f"rank of {what}", place + 4, f"{rank} is over 32")
        fact = f"{flags:#x} has bits that version {self.version} does not know"
        self.file.require(flags <= (1 if self.version == 1 else 3), f"flags of {what}", place + 8, fact)
        return TENSOR_TAGS[tag], flags, tuple(self._unsigned(8, f"dimensions of {what}") for _ in range(rank))


class _Payload(Section):
    """What is stored of a value."""

    def _expect(self, needed: int) -> None:
        self.require(self.size == needed, f"{self.size} bytes, but its value has {needed}")

    def _fields(self, form: str) -> tuple[int, ...]:
        """The integers that it begins with."""
        least = struct.calcsize(form)
        self.require(self.size >= least, f"{self.size} bytes, but it has at least {least}")
        return struct.unpack(form, self.start(least))

    def _elements(self, dtype: DType, shape: tuple[int, ...], at: int) -> Any:
        """Stored elements as plain Python values, nested lists by the shape."""
        count = math.prod(shape)
        raw = stored(self.file, self.field, self.offset + at, dtype, count)
        return unpack(raw, dtype, count).astype(dtype.wide).reshape(shape).tolist()

    def value(self, tag: int, tag_at: int) -> Metadata:
        """The metadata value; bitsets are lists of bool, arrays lists."""
        readers: dict[int, Callable[[], Metadata]] = {TEXT: self._text, BITSET: self._bits, ARRAY: self._array}
        if tag in readers:
            return readers[tag]()
        if tag not in TENSOR_TAGS:
            raise self.file.bad("model-dtype", f"type of {self.field}", tag_at, f"{tag} is no metadata type")
        self._expect(TENSOR_TAGS[tag].nbytes(1))
        value: Metadata = self._elements(TENSOR_TAGS[tag], (), 0)
        return value

    def _text(self) -> str:
        [length] = self._fields("<I")
        self._expect(padded(4 + length))
        text = self.file.text(self.offset + 4, length, self.field)
        self.charge(LIST + text_bytes(text))
        return text

    def _bits(self) -> list[Any]:
        bits, count = self._fields("<II")
        self.require(count == (bits + 7) // 8, f"{count} bytes for {bits} bits", 4)
        self._expect(padded(8 + count))
        self.charge(LIST + VALUE * bits)
        flags = np.unpackbits(self.file.view(self.offset + 8, count, self.field), bitorder="little")[:bits]
        found: list[Any] = flags.astype(bool).tolist()
        return found

    def _array(self) -> Metadata:
        tag, rank = self._fields("<II")
        if tag not in TENSOR_TAGS or tag == BITSET:
            fact = f"{tag} is no number type"
            raise self.file.bad("model-dtype", f"element type of {self.field}", self.offset, fact)
        self.file.require(rank <= 32, f"rank of {self.field}", self.offset + 4, f"{rank} is over 32")
        dtype, shape, dims = TENSOR_TAGS[tag], self._fields(f"<II{rank}Q")[2:], f"dimensions of {self.field}"
        count = self.file.count(shape, dtype.bits, dims, self.offset + 8)
        self.file.charge(_list_bytes(shape), dims, self.offset + 8)
        self._expect(padded(8 + 8 * rank + dtype.nbytes(count)))
        value: Metadata = self._elements(dtype, shape, 8 + 8 * rank)
        return value


def padded(count: int) -> int:
    """`count` bytes rounded up to a multiple of 8."""
    return (count + 7) // 8 * 8


def _list_bytes(shape: tuple[int, ...]) -> int:
    """Bytes of memory for nested lists of a shape, and for making them of an array."""
    lists = sum(math.prod(shape[:axis]) for axis in range(len(shape)))
    return LIST * lists + (VALUE + 16) * math.prod(shape)
