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

Source: OpenInfer, "OINF Format" (docs), and the public tools' output for version 2.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from oic.dtypes import DType
from oic.model.budget import LIST, TENSOR, text_bytes
from oic.model.file import ModelFile, check_no_overlap
from oic.model.oinf_values import NAME, TENSOR_TAGS, padded, read_quant, read_value
from oic.model.tensors import Contents, Mapped, Metadata, TensorInfo, TensorSource

HEADER = struct.Struct("<5s6I5Q3x")
TABLES = ("sizevars", "metadata", "tensors")
_T = TypeVar("_T")


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
        offset, nbytes = self._payload(what)
        return read_value(self.file, what, tag, place, offset, nbytes)

    def _payload(self, what: str) -> tuple[int, int]:
        """The (offset, bytes) of a payload, which has to lie in the data section."""
        field, place = f"offset of {what}", self.at + 8
        nbytes, offset = self._unsigned(8, what), self._unsigned(8, what)
        self.file.require(offset % 8 == 0, field, place, f"{offset} is not a multiple of 8")
        self.file.require(offset >= self.offsets[-1], field, place, f"{offset} lies before the data section")
        self.file.need(offset, nbytes, what)
        self.payloads.append((offset, nbytes, what))
        return offset, nbytes

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
            offset, nbytes = self._payload(what)
            fact = f"{nbytes}, but {dtype}{list(shape)} has {dtype.nbytes(count)}"
            self.file.require(nbytes == dtype.nbytes(count), f"bytes of {what}", self.at - 16, fact)
        else:
            self._absent(f"data of {what}")
        record, quant = f"quantisation of {what}", None
        if flags & 2:
            quant = read_quant(self.file, record, *self._payload(record), shape)
        elif self.version == 2:
            self._absent(record)
        info = TensorInfo(name, dtype, shape, offset is not None, nbytes, self.file.name, offset, quant)
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
