"""The .npz reader: a zip archive of .npy arrays, without pickle.

Members that are stored uncompressed, little-endian and row-major are memory-mapped; others are
made when read.  A member's CRC is checked when its elements are first read.  NumPy writes the
types it lacks under raw names: `<V2` is taken as bf16 and `<f1` as f8, as ml_dtypes has them.
A scalar of text is metadata.  Sources: NumPy, "numpy.lib.format"; PKWARE, APPNOTE.TXT.
"""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from oic.dtypes import Array, DType
from oic.model import tensors
from oic.model.budget import MEMBER, most_inflated
from oic.model.file import ModelFile, Section, check_no_overlap
from oic.model.npy import Header, element_type, read_header

_STORED, _DEFLATED = 0, 8
_LOCAL = struct.Struct("<4s5H3I2H")
_PART = 1 << 14  # bytes that are inflated at once
_MAX_RATIO = 1032  # no deflate stream grows by more
_ZIP_ERRORS = (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error)


@dataclass(frozen=True)
class _Member(Section):
    """One file of the archive, its bytes at `offset` of the .npz; `size` is that when inflated."""

    stored: int  # bytes in the archive
    deflated: bool
    crc: int

    def start(self, count: int) -> bytes:
        """The first `count` inflated bytes, or all if there are fewer."""
        if not self.deflated:
            return super().start(count)
        return self._inflate(min(count, self.size), whole=False).tobytes()

    def content(self) -> NDArray[np.uint8]:
        """All inflated bytes, their CRC checked."""
        raw = self._inflate(self.size, whole=True) if self.deflated else self._stored_bytes()
        self._check(raw)
        return raw

    def check(self) -> None:
        """Refuse a stored member whose CRC does not agree, without a copy of its bytes."""
        self._check(self._stored_bytes())

    def _check(self, raw: NDArray[np.uint8]) -> None:
        self.require(zlib.crc32(raw.data) == self.crc, "its CRC does not agree with its bytes")

    def _stored_bytes(self) -> NDArray[np.uint8]:
        return self.file.view(self.offset, self.stored, self.field)

    def _inflate(self, count: int, whole: bool) -> NDArray[np.uint8]:
        """The first `count` inflated bytes; with `whole`, there have to be no more."""
        stream, stored, most, raw = zlib.decompressobj(-15), self._stored_bytes().data, count + whole, bytearray()
        try:
            for start in range(0, len(stored), _PART):
                raw += stream.decompress(stored[start : start + _PART], max(1, most - len(raw)))
                if stream.eof or len(raw) >= most:
                    break
        except zlib.error as error:
            raise self.bad("model-field", f"not deflated data: {error}") from None
        fits = len(raw) == count if whole else len(raw) >= count
        self.require(fits, f"does not inflate to the {self.size} bytes of the zip directory")
        return np.frombuffer(raw, np.uint8)[:count]


def read(file: ModelFile) -> tensors.Contents:
    """The contents of an .npz file; arrays the language has no element type for are listed only."""
    members = [(info.filename, _member(file, info)) for info in _directory(file)]
    check_no_overlap(file, [(m.offset, m.stored, m.field) for _, m in members])
    _check_inflated(file, [m for _, m in members if m.deflated])
    entries: dict[str, tensors.TensorSource] = {}
    metadata: dict[str, tensors.Metadata] = {}
    for filename, member in members:
        name = filename.removesuffix(".npy")
        if name in entries or name in metadata:
            raise member.bad("model-duplicate", "is there twice")
        header = read_header(member) if filename.endswith(".npy") else None
        if header is not None and re.fullmatch("<U[0-9]{1,9}", header.descr) and not header.shape:
            metadata[name] = _text(member, header)
        else:
            entries[name] = _entry(name, member, header)
    return tensors.Contents(entries, {}, metadata)


def _check_inflated(file: ModelFile, members: Iterable[_Member]) -> None:
    """Refuse deflated members that inflate to more than a model of this file's size has."""
    total = 0
    for member in members:
        total += member.size
        for what, most in zip((member.size, total), most_inflated(file.size)):
            if what > most:
                fact = f"inflates to {what} bytes, but at most {most} are allowed in a file of this size"
                hint = "store it uncompressed, as numpy.savez does"
                raise file.bad("model-budget", member.field, member.offset, fact, hint)


def _directory(file: ModelFile) -> list[zipfile.ZipInfo]:
    file.need(0, 22, "zip directory")
    assert not isinstance(file.content, bytes)
    # `zipfile` looks 42 bytes back, and a map refuses what lies before it another way than a file does.
    content = file.content if file.size >= 42 else io.BytesIO(file.content)
    file.charge(MEMBER * (_directory_bytes(file) // 46), "zip directory", None)
    try:
        with zipfile.ZipFile(cast(IO[bytes], content)) as archive:
            members = [member for member in archive.infolist() if not member.filename.endswith("/")]
    except _ZIP_ERRORS as error:
        raise file.bad("model-format", "zip directory", None, str(error).lower()) from None
    if members and not any(m.filename.endswith(".npy") for m in members):
        raise file.bad("model-format", "zip directory", None, "the archive holds no .npy arrays")
    for member in members:
        file.check_name(member.filename.removesuffix(".npy"), f"member {member.filename!r}", member.header_offset)
    return members


def _directory_bytes(file: ModelFile) -> int:
    """Bytes of the zip directory by the record at the end of the file, or the 64-bit one before it, if there is one."""
    content = file.content
    end = content.rfind(b"PK\5\6", max(0, file.size - (1 << 16) - 22), file.size - 18)
    if end < 0:
        return 0  # `zipfile` finds no directory either
    found = file.unsigned(end + 12, 4, "zip directory")
    if end >= 76 and content[end - 20 : end - 16] == b"PK\6\7":
        found = max(found, file.unsigned(end - 76 + 40, 8, "zip directory"))
    return min(found, file.size)


def _member(file: ModelFile, info: zipfile.ZipInfo) -> _Member:
    """A member whose local header agrees with the directory and whose bytes are in the file."""
    at, field = info.header_offset, f"member {info.filename!r}"
    magic, _, flags, compression, *_, name, extra = _LOCAL.unpack(file.read(at, 30, field))
    file.require(magic == b"PK\3\4", field, at, "no local header is there")
    file.require(compression == info.compress_type, field, at + 8, "the local header names another compression")
    names = [info.orig_filename.encode(code, "replace") for code in ("utf-8", "cp437")]
    file.require(file.read(at + 30, name, field) in names, field, at + 30, "the local header has another name")
    file.require((info.flag_bits | flags) & 1 == 0, field, at + 6, "is encrypted")
    known = compression in (_STORED, _DEFLATED)
    file.require(known, field, at + 8, f"compression {compression}, but only 0 and 8 are read")
    start, deflated = at + 30 + name + extra, compression == _DEFLATED
    file.need(start, info.compress_size, field)
    holds = info.file_size <= info.compress_size * _MAX_RATIO if deflated else info.file_size == info.compress_size
    file.require(holds, field, at, f"{info.compress_size} bytes cannot hold the {info.file_size} of the directory")
    return _Member(file, field, start, info.file_size, info.compress_size, deflated, info.CRC)


def _text(member: _Member, header: Header) -> str:
    size = 4 * int(header.descr[2:])
    member.require(member.size == header.data + size, f"{member.size - header.data} bytes, but its text has {size}")
    member.charge(3 * size)
    try:
        return str(member.content()[header.data :].data, "utf-32-le").rstrip("\0")
    except UnicodeDecodeError:
        raise member.bad("model-field", "its text is not Unicode") from None


def _entry(name: str, member: _Member, header: Header | None) -> tensors.TensorSource:
    header = header or Header("bytes", False, (member.size,), 0)
    dtype, shape = element_type(header.descr), header.shape
    count = member.file.count(shape, dtype.bits, f"shape of {member.field}", member.offset)
    nbytes, offset = member.size - header.data, member.offset
    if "O" in header.descr:
        origin: tensors.Origin = tensors.UnreadableTensor("its elements are pickled Python objects, which are not read")
    elif dtype.kind == "opaque":
        origin = tensors.UnreadableTensor(f"the language has no element type for NumPy's {header.descr!r:.60}")
    else:
        fact = f"{nbytes} bytes, but {dtype} of shape {list(shape)} has {dtype.nbytes(count)}"
        member.require(nbytes == dtype.nbytes(count), fact)
        origin = _origin(member, header, dtype)
    offset += 0 if member.deflated else header.data
    return tensors.TensorSource(tensors.TensorInfo(name, dtype, shape, True, nbytes, member.file.name, offset), origin)


def _origin(member: _Member, header: Header, dtype: DType) -> tensors.Origin:
    if not (member.deflated or (header.fortran and len(header.shape) > 1) or header.is_swapped(dtype)):
        return tensors.Mapped(member.file, member.offset + header.data, cache(member.check))

    def load() -> Array:
        raw = member.content()[header.data :]
        member.require(tensors.wrong_code(raw, dtype, 0) is None, f"holds bytes that are no {dtype} values")
        return header.arranged(raw, dtype)

    return tensors.Computed(load)
