"""The .oinf writer; the layout is described in `oinf.py`."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from oic.diagnostics import fail
from oic.model.model import Model
from oic.model.oinf_values import NAME, TAGS, padded, quant_bytes, value_bytes
from oic.model.tensors import TensorInfo


def write_oinf(path: str | Path, model: Model, version: int = 2) -> None:
    """Write a model as .oinf; equal models give equal bytes.

    Names are sorted, so that the order of insertion does not matter.  The file appears complete
    or not at all, and `model` may be the one that is being replaced.  Raises `OicError`:
    `model-name` for a name the format does not allow, `model-dtype`, `model-value`, `model-write`.
    """
    if version not in (1, 2):
        raise fail("model-value", f"there is no .oinf version {version}, only 1 and 2")
    target = Path(path)
    try:
        handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as stream:
                _write(stream, model, version)
            os.chmod(scratch, 0o644)
            os.replace(scratch, target)
        except BaseException:
            os.unlink(scratch)
            raise
    except OSError as error:
        text = f"cannot write {str(path)!r}: {str(error.strerror).lower()}"
        raise fail("model-write", text) from None


_Owner = tuple[str, str]  # kind of payload ('metadata', 'quant', 'tensor') and its name


@dataclass(frozen=True)
class _Payload:
    """Bytes with a place in the data section; a tensor's are fetched when they are written."""

    nbytes: int
    content: bytes | None = None


def _write(stream: BinaryIO, model: Model, version: int) -> None:
    values = {key: value_bytes(key, value) for key, value in sorted(model.metadata.items())}
    tensors = [model.info(name) for name in sorted(model.names())]
    payloads = {("metadata", k): _Payload(len(raw), raw) for k, (_, raw) in values.items()}
    for info in tensors:
        payloads |= _tensor_payloads(info, version)
    kinds = {key: kind for key, (kind, _) in values.items()}
    # The sizes of the tables do not depend on the offsets in them: lay them out with zeros first.
    starts = [72]
    for table in _tables(model, kinds, tensors, payloads, dict.fromkeys(payloads, 0), version):
        starts.append(starts[-1] + len(table))
    places, end = {}, starts[3]
    for owner, payload in payloads.items():
        places[owner] = end
        end += padded(payload.nbytes)
    counts = (len(model.sizevars), len(model.metadata), len(tensors))
    stream.write(struct.pack("<5s6I5Q3x", b"OINF\0", version, 0, *counts, 0, *starts, end))
    for table in _tables(model, kinds, tensors, payloads, places, version):
        stream.write(table)
    for (_, name), payload in payloads.items():
        content = model.raw(name).data if payload.content is None else payload.content
        assert len(content) == payload.nbytes
        stream.write(content)
        stream.write(bytes(padded(payload.nbytes) - payload.nbytes))


def _tensor_payloads(info: TensorInfo, version: int) -> dict[_Owner, _Payload]:
    if info.dtype.name not in TAGS:
        text = f"tensor '{info.name}': .oinf holds no tensors of {info.dtype}"
        raise fail("model-dtype", text)
    found = {}
    if info.has_data:
        found["tensor", info.name] = _Payload(info.dtype.nbytes(info.count))
    if info.quant is not None:
        if version == 1:
            text = f"tensor '{info.name}': .oinf version 1 holds no quantisation"
            raise fail("model-value", text, hint="write version 2")
        content = quant_bytes(f"tensor '{info.name}'", info.quant, info.shape)
        found["quant", info.name] = _Payload(len(content), content)
    return found


def _tables(
    model: Model,
    kinds: dict[str, int],
    tensors: list[TensorInfo],
    payloads: dict[_Owner, _Payload],
    places: dict[_Owner, int],
    version: int,
) -> Iterator[bytes]:
    """The sizevars, metadata and tensor tables, with payloads at these places."""

    def place(kind: str, name: str) -> bytes:
        if (kind, name) not in payloads:
            return bytes(16)
        return struct.pack("<QQ", payloads[kind, name].nbytes, places[kind, name])

    sizevars = sorted(model.sizevars.items())
    yield b"".join(_text(name) + struct.pack("<Q", size) for name, size in sizevars)
    yield b"".join(
        _text(key) + struct.pack("<II", kind, 0) + place("metadata", key)
        for key, kind in kinds.items()
    )
    index = bytearray()
    for info in tensors:
        flags, rank = info.has_data | (info.quant is not None) << 1, len(info.shape)
        index += _text(info.name)
        index += struct.pack(f"<III{rank}Q", TAGS[info.dtype.name], rank, flags, *info.shape)
        index += place("tensor", info.name)
        index += place("quant", info.name) if version == 2 else b""
    yield bytes(index) + bytes(padded(len(index)) - len(index))


def _text(name: str) -> bytes:
    if not NAME.fullmatch(name):
        text = f"the name {name!r} cannot be written in .oinf"
        raise fail("model-name", text, hint="use A-Z a-z 0-9 . _ -")
    raw = name.encode()
    return struct.pack("<I", len(raw)) + raw + bytes(padded(4 + len(raw)) - 4 - len(raw))
