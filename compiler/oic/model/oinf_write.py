"""The .oinf writer; the layout is described in `oinf.py`."""

import os
import struct
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from oic import arguments
from oic.diagnostics import fail
from oic.dtypes import from_array, i64, pack, u64
from oic.model.model import Model
from oic.model.oinf import ARRAY, HEADER, NAME, TAGS, TEXT, padded
from oic.model.tensors import Metadata, TensorInfo


def write_oinf(path: str | Path, model: Model, version: int = 2) -> None:
    """Write a model as .oinf; equal models give equal bytes.

    version   of the format, 1 or 2
    Names are sorted, so that the order of insertion does not matter.  The file appears complete
    or not at all, and `model` may be the one that is being replaced.  Raises `OicError`:
    `argument-type`, `model-name` for a name the format does not allow, `model-dtype`, `model-value`, `model-write`.
    """
    path = arguments.path("path", path)
    arguments.require("model", model, Model, "an oic.Model")
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
        raise fail("model-write", f"cannot write {str(path)!r}: {str(error.strerror).lower()}") from None


def _write(stream: BinaryIO, model: Model, version: int) -> None:
    values = {key: _value_bytes(key, value) for key, value in sorted(model.metadata.items())}
    infos = [model.info(name) for name in sorted(model.names())]
    # Bytes and content; of a tensor the name, since its elements are fetched when they are written.
    payloads: list[tuple[int, bytes | str]] = [(len(raw), raw) for _, raw in values.values()]
    payloads += [(info.dtype.nbytes(info.count), info.name) for info in infos if info.has_data]

    def tables(data: int) -> list[bytes]:
        """The tables of a file whose payloads begin at a byte."""
        offsets = accumulate((padded(nbytes) for nbytes, _ in payloads), initial=data)
        places = (struct.pack("<QQ", nbytes, offset) for (nbytes, _), offset in zip(payloads, offsets))
        sizevars = [_name(name) + struct.pack("<Q", size) for name, size in sorted(model.sizevars.items())]
        metadata = [_name(key) + struct.pack("<II", kind, 0) + next(places) for key, (kind, _) in values.items()]
        tensors = [_tensor(info, next(places) if info.has_data else bytes(16), version) for info in infos]
        return [_whole(b"".join(entries)) for entries in (sizevars, metadata, tensors)]

    # The sizes of the tables do not depend on the offsets in them: they are made for data at 0 first.
    starts = [*accumulate(map(len, tables(0)), initial=HEADER.size)]
    end = starts[-1] + sum(padded(nbytes) for nbytes, _ in payloads)
    counts = (len(model.sizevars), len(values), len(infos))
    stream.write(HEADER.pack(b"OINF\0", version, 0, *counts, 0, *starts, end))
    stream.writelines(tables(starts[-1]))
    for nbytes, content in payloads:
        raw = model.raw(content).data if isinstance(content, str) else content
        assert len(raw) == nbytes
        stream.write(raw)
        stream.write(bytes(padded(nbytes) - nbytes))


def _tensor(info: TensorInfo, place: bytes, version: int) -> bytes:
    """What the table says of a tensor, whose payload's bytes and offset are `place`."""
    if info.dtype.name not in TAGS:
        raise fail("model-dtype", f"tensor '{info.name}': .oinf holds no tensors of {info.dtype}")
    rank = len(info.shape)
    entry = _name(info.name) + struct.pack(f"<III{rank}Q", TAGS[info.dtype.name], rank, info.has_data, *info.shape)
    return entry + place + bytes(16 if version == 2 else 0)


def _name(name: str) -> bytes:
    if not NAME.fullmatch(name):
        raise fail("model-name", f"the name {name!r} cannot be written in .oinf", hint="use A-Z a-z 0-9 . _ -")
    return _written(name)


def _whole(raw: bytes) -> bytes:
    """The bytes and their padding."""
    return raw + bytes(-len(raw) % 8)


def _written(text: str) -> bytes:
    """A text with its length before it and its padding."""
    raw = text.encode()
    return _whole(struct.pack("<I", len(raw)) + raw)


def _value_bytes(key: str, value: Metadata) -> tuple[int, bytes]:
    """The (type, payload) of a metadata value, in a type that holds it exactly."""
    if isinstance(value, str):
        return TEXT, _written(value)
    array = _exact(value)
    dtype = from_array(array.dtype)
    if dtype is None:
        raise fail("model-value", f"metadata '{key}': .oinf holds no such value: {value!r:.60}")
    content = pack(array, dtype).tobytes()
    if not isinstance(value, list):
        return TAGS[dtype.name], content
    return ARRAY, _whole(struct.pack(f"<II{array.ndim}Q", TAGS[dtype.name], array.ndim, *array.shape) + content)


def _exact(value: Metadata) -> np.ndarray[Any, Any]:
    """The value as an array; of objects if no dtype holds all integers, or NumPy's choice not every number, exactly."""
    try:
        array = np.array(value)
        objects = np.array(value, dtype=object)
    except ValueError:  # ragged
        return np.array(None)
    if objects.size and all(map(arguments.is_integer, flat := objects.ravel().tolist())):
        # NumPy would make floats of integers that i64 and u64 hold together only
        held = (d for d in (i64, u64) if d.low <= min(flat) and max(flat) <= d.high)
        return objects.astype(next((d.np for d in held), objects.dtype))
    same = (a == b or b != b for a, b in zip(array.ravel().tolist(), objects.ravel(), strict=True))
    return array if all(same) else objects
