"""The safetensors reader.

    u64 N | N bytes of JSON: {name: {dtype, shape, data_offsets: [begin, end]}} | data

Offsets count from the end of the header; the tensors cover the data without gap or overlap.
Source: the format description in the README of huggingface/safetensors.
"""

import json
import math
import re
from typing import Any

from oic import dtypes
from oic.diagnostics import OicError
from oic.dtypes import DType
from oic.model import jsontext
from oic.model.budget import TENSOR
from oic.model.file import ModelFile, check_no_overlap
from oic.model.tensors import Contents, Metadata, TensorSource, in_file, opaque, ranges_of

MAX_HEADER = 100_000_000  # bytes; the format's own limit
HEADER = "header"

_SAME = "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool"  # names as ours, in capitals
_DTYPES: dict[str, DType] = {name.upper(): dtypes.ALL[name] for name in _SAME.split()} | {"F8_E5M2": dtypes.f8}
# Stored types without an element type of ours: bits an element.
_OTHER = {"F8_E4M3": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64}
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")


def read(file: ModelFile) -> Contents:
    """The contents of one `.safetensors` file.

    The format's metadata is text only: what reads as a JSON number within the range of f64, `true` or
    `false` is taken as that value, and positive integers are sizevars too, as in `config.json`.
    """
    length = file.unsigned(0, 8, "header length")
    file.require(length <= MAX_HEADER, "header length", 0, f"{length} bytes, but a header has at most {MAX_HEADER}")
    file.need(8, length, HEADER)
    header = jsontext.parse(file, 8, length, HEADER)
    metadata = _metadata(file, header.pop("__metadata__", {}))
    data = 8 + length
    entries = {name: _entry(file, data, name, spec) for name, spec in header.items()}
    _check_cover(file, data, entries)
    return Contents(entries, jsontext.sizes_among(metadata), metadata)


def _metadata(file: ModelFile, given: Any) -> dict[str, Metadata]:
    if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
        raise file.bad("model-field", "'__metadata__'", _place(file, "__metadata__"), "not a map from text to text")
    for key in given:
        file.check_name(key, f"{key[:60]!r}, key of '__metadata__'", None)
    return {key: _value(text) for key, text in given.items()}


def _value(text: str) -> Metadata:
    if text in ("true", "false") or (_NUMBER.fullmatch(text) and math.isfinite(float(text))):
        value: Metadata = json.loads(text)
        return value
    return text


def _place(file: ModelFile, name: str) -> int:
    """The offset of a key in the header (for messages)."""
    header = file.read(8, file.unsigned(0, 8, "header length"), HEADER)  # a copy: only for a file that is refused
    for key in (json.dumps(name, ensure_ascii=False), json.dumps(name)):
        at = header.find(key.encode("utf-8", "surrogatepass"))
        if at >= 0:
            return 8 + at
    return 8


def _entry(file: ModelFile, data: int, name: str, spec: Any) -> TensorSource:
    def wrong(key: str, fact: str, slug: str = "model-field") -> OicError:
        """A fact against one key of the entry."""
        return file.bad(slug, f"tensor {name!r}" + (f", {key!r}" if key else ""), _place(file, name), fact)

    file.charge(TENSOR, "tensors", None)
    file.check_name(name, "tensor name", None)
    if not isinstance(spec, dict) or set(spec) != {"dtype", "shape", "data_offsets"}:
        raise wrong("", "an entry has exactly 'dtype', 'shape' and 'data_offsets'")
    stored, shape, offsets = spec["dtype"], spec["shape"], spec["data_offsets"]
    for key in ("shape", "data_offsets"):
        if not isinstance(spec[key], list) or not all(type(v) is int and 0 <= v < 1 << 63 for v in spec[key]):
            raise wrong(key, "not a list of integers from 0 to 2^63-1")
    if not isinstance(stored, str) or stored not in _DTYPES | _OTHER:
        raise wrong("dtype", f"unknown element type {str(stored)[:60]!r}", "model-dtype")
    dtype = _DTYPES.get(stored) or opaque(stored)
    bits = _OTHER.get(stored, dtype.bits)
    count = file.count(tuple(shape), bits, f"tensor {name!r}, 'shape'", None)
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise wrong("data_offsets", f"{offsets} is not a range of bytes")
    begin, nbytes = offsets[0], offsets[1] - offsets[0]
    if nbytes * 8 != count * bits:
        raise wrong("data_offsets", f"{nbytes} bytes, but {stored} of shape {shape} has {count * bits / 8:g}")
    if data + offsets[1] > file.size:
        fact = f"ends at byte {data + offsets[1]} of the file, which ends at {file.size}"
        raise wrong("data_offsets", fact, "model-truncated")
    reason = f"the language has no element type for the stored {stored}" if stored in _OTHER else ""
    return in_file(file, name, dtype, tuple(shape), data + begin, nbytes, reason)


def _check_cover(file: ModelFile, data: int, entries: dict[str, TensorSource]) -> None:
    """Every byte of the data belongs to exactly one tensor."""
    ranges = ranges_of(entries)
    check_no_overlap(file, ranges)
    end = data
    for offset, nbytes, field in sorted(r for r in ranges if r[1]):
        file.require(offset == end, field, offset, f"bytes {end} to {offset} before it belong to no tensor")
        end = offset + nbytes
    file.require(end == file.size, "data", end, f"{file.size - end} bytes after the last tensor belong to none")
