"""The .npz reader: a zip archive of .npy arrays, without pickle.

Members that are stored uncompressed, little-endian and row-major are memory-mapped; others are
made when read.  A member's CRC is checked when its elements are first read.  NumPy writes the
types it lacks under raw names: `<V2` is taken as bf16 and `<f1` as f8, as ml_dtypes has them.
A scalar of text is metadata.  Sources: NumPy, "numpy.lib.format"; PKWARE, APPNOTE.TXT.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from functools import cache
from typing import IO, cast

import numpy as np

from oic import dtypes
from oic.diagnostics import OicError
from oic.dtypes import Array, DType
from oic.model.file import ModelFile, check_no_overlap
from oic.model.tensors import (
    Computed,
    Contents,
    Entry,
    Mapped,
    Metadata,
    Origin,
    Refused,
    TensorInfo,
    opaque,
    wrong_code,
)

_STORED, _DEFLATED = 0, 8
_MAX_HEADER = 1 << 16  # bytes of an array's header
_MAX_RATIO = 1032  # no deflate stream grows by more
_VALUE = r"'[^']*'|True|False|\([0-9, ]*\)|\[[^{}]*\]"
_HEADER = re.compile(rf"\{{(?: ?'\w+' ?: ?(?:{_VALUE}) ?,?)*+ ?\}}")  # blanks already single
_ITEM = re.compile(rf"'(\w+)' ?: ?({_VALUE})")
_SHAPE = re.compile(r"\((?:[0-9]{1,19}, ?)*(?:[0-9]{1,19})?\)")
_OWN = {"V2": dtypes.bf16, "f1": dtypes.f8, "b1": dtypes.bool_}
_ZIP_ERRORS = (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error)


@dataclass(frozen=True)
class _Member:
    """One file of the archive, its bytes at `offset` of the .npz."""

    file: ModelFile
    field: str
    offset: int
    stored: int  # bytes in the archive
    size: int  # bytes when inflated
    deflated: bool
    crc: int

    def start(self, count: int) -> bytes:
        """The first `count` inflated bytes, or all if there are fewer."""
        if not self.deflated:
            return self.file.read(self.offset, min(count, self.size), self.field)
        return self._inflate(min(count, self.size), whole=False)

    def content(self) -> bytes:
        """All inflated bytes, their CRC checked."""
        raw = self._inflate(self.size, whole=True) if self.deflated else self.start(self.size)
        if zlib.crc32(raw) != self.crc:
            raise self.bad("its CRC does not agree with its bytes")
        return raw

    def check(self) -> None:
        """Refuse a stored member whose CRC does not agree, without a copy of its bytes."""
        if zlib.crc32(self.file.view(self.offset, self.size, self.field).data) != self.crc:
            raise self.bad("its CRC does not agree with its bytes")

    def _inflate(self, count: int, whole: bool) -> bytes:
        stream = zlib.decompressobj(-15)
        try:
            stored = self.file.view(self.offset, self.stored, self.field).data
            raw = stream.decompress(stored, count)
        except zlib.error as error:
            raise self.bad(f"not deflated data: {error}") from None
        if len(raw) != count or (whole and stream.decompress(stream.unconsumed_tail, 1)):
            raise self.bad(f"does not inflate to the {self.size} bytes of the zip directory")
        return raw

    def bad(self, fact: str, slug: str = "model-field") -> OicError:
        return self.file.bad(slug, self.field, self.offset, fact)


@dataclass(frozen=True)
class _Header:
    """What the header of an .npy says; `data` is the byte of the member where elements begin."""

    descr: str
    fortran: bool
    shape: tuple[int, ...]
    data: int


def read(file: ModelFile) -> Contents:
    """The contents of an .npz file; arrays the language has no element type for are listed only."""
    entries: dict[str, Entry] = {}
    metadata: dict[str, Metadata] = {}
    ranges = []
    for info in _directory(file):
        member = _member(file, info)
        name = info.filename.removesuffix(".npy")
        file.check_name(name, member.field, info.header_offset)
        if name in entries or name in metadata:
            raise member.bad("is there twice", "model-duplicate")
        ranges.append((member.offset, member.stored, member.field))
        header = _header(member) if info.filename.endswith(".npy") else None
        if header is not None and re.fullmatch("<U[0-9]{1,9}", header.descr) and not header.shape:
            metadata[name] = _text(member, header)
        else:
            entries[name] = _entry(name, member, header)
    check_no_overlap(file, ranges)
    return Contents(entries, {}, metadata)


def _directory(file: ModelFile) -> list[zipfile.ZipInfo]:
    file.need(0, 22, "zip directory")
    assert not isinstance(file.content, bytes)
    try:
        with zipfile.ZipFile(cast(IO[bytes], file.content)) as archive:
            members = [member for member in archive.infolist() if not member.filename.endswith("/")]
    except _ZIP_ERRORS as error:
        raise file.bad("model-format", "zip directory", None, str(error).lower()) from None
    if members and not any(m.filename.endswith(".npy") for m in members):
        raise file.bad("model-format", "zip directory", None, "the archive holds no .npy arrays")
    return members


def _member(file: ModelFile, info: zipfile.ZipInfo) -> _Member:
    """A member whose local header agrees with the directory and whose bytes are in the file."""
    at, field = info.header_offset, f"member {info.filename!r}"
    local = file.read(at, 30, field)
    name, extra = int.from_bytes(local[26:28], "little"), int.from_bytes(local[28:30], "little")
    if local[:4] != b"PK\3\4":
        raise file.bad("model-field", field, at, "no local header is there")
    if int.from_bytes(local[8:10], "little") != info.compress_type:
        raise file.bad("model-field", field, at + 8, "the local header names another compression")
    if file.read(at + 30, name, field) not in _encodings(info.orig_filename):
        raise file.bad("model-field", field, at + 30, "the local header has another name")
    if (info.flag_bits | local[6]) & 1:
        raise file.bad("model-field", field, at + 6, "is encrypted")
    if info.compress_type not in (_STORED, _DEFLATED):
        fact = f"compression {info.compress_type}, but only 0 and 8 are read"
        raise file.bad("model-field", field, at + 8, fact)
    start, deflated = at + 30 + name + extra, info.compress_type == _DEFLATED
    file.need(start, info.compress_size, field)
    most = info.compress_size * _MAX_RATIO if deflated else info.compress_size
    if info.file_size > most or (not deflated and info.file_size != most):
        fact = f"{info.compress_size} bytes cannot hold the {info.file_size} of the directory"
        raise file.bad("model-field", field, at, fact)
    return _Member(file, field, start, info.compress_size, info.file_size, deflated, info.CRC)


def _encodings(name: str) -> list[bytes]:
    return [name.encode(code, "replace") for code in ("utf-8", "cp437")]


def _header(member: _Member) -> _Header:
    """The header of an .npy member; its shape is not yet compared with the bytes."""
    start = member.start(12)
    if start[:6] != b"\x93NUMPY" or len(start) < 10 or start[6] not in (1, 2, 3):
        raise member.bad("not an .npy array of version 1, 2 or 3")
    width = 2 if start[6] == 1 else 4
    length, data = int.from_bytes(start[8 : 8 + width], "little"), 8 + width
    if length > _MAX_HEADER or data + length > member.size:
        raise member.bad(f"a header of {length} bytes", "model-truncated")
    text = " ".join(member.start(data + length)[data:].decode("latin-1").split())
    items = dict(_ITEM.findall(text)) if _HEADER.fullmatch(text) else {}
    shape, order = items.get("shape", ""), items.get("fortran_order")
    if set(items) != {"descr", "fortran_order", "shape"} or order not in ("True", "False"):
        raise member.bad("its header is not {'descr', 'fortran_order', 'shape'}")
    if not _SHAPE.fullmatch(shape):
        raise member.bad(f"its shape is {shape:.60}")
    dims = tuple(int(size) for size in re.findall("[0-9]+", shape))
    return _Header(items["descr"].strip("'"), order == "True", dims, data + length)


def _text(member: _Member, header: _Header) -> str:
    size = 4 * int(header.descr[2:])
    if member.size != header.data + size:
        raise member.bad(f"{member.size - header.data} bytes, but its text has {size}")
    try:
        return member.content()[header.data :].decode("utf-32-le").rstrip("\0")
    except UnicodeDecodeError:
        raise member.bad("its text is not Unicode") from None


def _entry(name: str, member: _Member, header: _Header | None) -> Entry:
    header = header or _Header("bytes", False, (member.size,), 0)
    dtype, shape = _dtype(header.descr), header.shape
    count = member.file.count(shape, dtype.bits, f"shape of {member.field}", member.offset)
    nbytes, offset = member.size - header.data, member.offset
    if "O" in header.descr:
        origin: Origin = Refused("its elements are pickled Python objects, which are not read")
    elif dtype.kind == "opaque":
        origin = Refused(f"the language has no element type for NumPy's {header.descr!r:.60}")
    elif nbytes != dtype.nbytes(count):
        fact = f"{nbytes} bytes, but {dtype} of shape {list(shape)} has {dtype.nbytes(count)}"
        raise member.bad(fact)
    else:
        origin = _origin(member, header, dtype)
    offset += 0 if member.deflated else header.data
    return Entry(TensorInfo(name, dtype, shape, True, nbytes, member.file.name, offset), origin)


def _dtype(descr: str) -> DType:
    """The element type of a NumPy type string such as '<f4'; opaque if there is none."""
    if descr[1:] in _OWN and descr[:1] in "<|":
        return _OWN[descr[1:]]
    if re.fullmatch(r"[<>|=][fiu][1248]", descr):
        known = dtypes.from_array(np.dtype(descr).newbyteorder("="))
        if known is not None:
            return known
    return opaque(descr if len(descr) <= 20 else "structured")


def _origin(member: _Member, header: _Header, dtype: DType) -> Origin:
    order = header.fortran and len(header.shape) > 1
    swapped = header.descr[0] == ">" and dtype.bits > 8
    if not (member.deflated or order or swapped):
        offset, nbytes = member.offset + header.data, member.size - header.data
        return Mapped(member.file, offset, nbytes, cache(member.check))

    def load() -> Array:
        raw = np.frombuffer(member.content(), np.uint8, offset=header.data)
        if wrong_code(raw, dtype, 0) is not None:
            raise member.bad(f"holds bytes that are no {dtype} values")
        flat = raw.view(dtype.np).byteswap() if swapped else raw.view(dtype.np)
        shape = header.shape
        return np.ascontiguousarray(flat.reshape(shape[::-1]).T) if order else flat.reshape(shape)

    return Computed(load)
