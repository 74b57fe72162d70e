"""The GGUF reader, versions 2 and 3, little-endian.

    "GGUF", u32 version, u64 tensors, u64 keys
    key     text, u32 type, value;  text is u64 bytes and UTF-8;  an array is u32 type, u64 count,
            values
    tensor  text, u32 rank, u64 dimensions[rank] (the fastest first), u32 type, u64 offset
    data    from the next multiple of `general.alignment` (32); offsets count from there

Tensors in blocks of Q8_0 and Q4_0 are f32; others in blocks are listed, and reading one is refused; an import writes
them as f32, part by part.  The values of a block are computed by the package `gguf` (an extra), in f32, and nothing is
rounded further.  Hyperparameters
that are positive integers are sizevars under their name without the architecture: `llama.block_count` gives
`block_count`.  Source: the GGUF specification in the documents of ggml-org/ggml.
"""

import json
import struct
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic import dtypes
from oic.diagnostics import fail
from oic.dtypes import DType, f32
from oic.model import tensors
from oic.model.blocks import BITS, Blocks
from oic.model.budget import LIST, TENSOR, TEXT, VALUE, text_bytes
from oic.model.file import ModelFile, check_no_overlap
from oic.model.jsontext import sizes_among

_VALUES = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # types of keys; fmt: skip
_BOOL, _TEXT, _ARRAY = 7, 8, 9
_MAX_DEPTH = 8  # of arrays in arrays

_PLAIN: dict[int, DType] = {
    0: f32, 1: dtypes.f16, 28: dtypes.f64, 30: dtypes.bf16,
    24: dtypes.i8, 25: dtypes.i16, 26: dtypes.i32, 27: dtypes.i64,
}  # fmt: skip
# Block-quantised types: name, elements a block, bytes a block.
BLOCKS = {
    2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    29: ("IQ1_M", 256, 56), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip


def read(file: ModelFile) -> tensors.Contents:
    """The contents of a GGUF file; the whole file but the elements is checked here."""
    _check_version(file)
    reader = _GgufReader(file, 24)
    metadata: dict[str, tensors.Metadata] = {}
    for _ in range(file.unsigned(16, 8, "number of keys")):
        key = reader.name("key", metadata)
        metadata[key] = reader.value(reader.unsigned(4, f"type of {key!r}"), f"value of {key!r}")
    found: dict[str, Callable[[int, int], tensors.TensorSource]] = {}
    for _ in range(file.unsigned(8, 8, "number of tensors")):
        name = reader.name("tensor name", found)
        found[name] = reader.tensor(name)
    alignment = _alignment(file, metadata)
    data = -(-reader.at // alignment) * alignment
    entries = {name: placed(data, alignment) for name, placed in found.items()}
    check_no_overlap(file, tensors.ranges_of(entries))
    prefix = f"{metadata.get('general.architecture', '')}."
    own = {k[len(prefix) :]: v for k, v in metadata.items() if k.startswith(prefix)}
    return tensors.Contents(entries, sizes_among(own), metadata)


def _check_version(file: ModelFile) -> None:
    if file.read(0, 4, "magic") != b"GGUF":
        raise file.bad("model-format", "magic", 0, "not 'GGUF'")
    version = file.unsigned(4, 4, "version")
    if version not in (2, 3):
        order = ", or the file is big-endian" if version & 0xFFFF == 0 else ""
        raise file.bad("model-format", "version", 4, f"{version}, but 2 and 3 are known{order}")


def _alignment(file: ModelFile, metadata: dict[str, tensors.Metadata]) -> int:
    value = metadata.get("general.alignment", 32)
    if type(value) is not int or not 0 < value <= 1 << 32 or value & (value - 1):
        raise file.bad("model-field", "'general.alignment'", None, f"{value!r} is no power of two")
    return value


@dataclass(eq=False)
class _GgufReader:
    """Reads forward; `at` is the byte it has come to."""

    file: ModelFile
    at: int

    def unsigned(self, width: int, what: str) -> int:
        value = self.file.unsigned(self.at, width, what)
        self.at += width
        return value

    def text(self, what: str) -> str:
        length = self.unsigned(8, f"length of {what}")
        text = self.file.text(self.at, length, what)
        self.file.charge(TEXT + text_bytes(text), what, self.at)
        self.at += length
        return text

    def name(self, what: str, before: Container[str]) -> str:
        """A name that is none of those before it."""
        place = self.at
        name = self.file.check_name(self.text(what), what, place)
        if name in before:
            raise self.file.bad("model-duplicate", what, place, f"{name!r} is there twice")
        return name

    def value(self, tag: int, what: str, depth: int = 0) -> Any:
        if tag == _TEXT:
            return self.text(what)
        return self._array(what, depth) if tag == _ARRAY else self._numbers(tag, 1, what)[0]

    def _array(self, what: str, depth: int) -> list[Any]:
        place, tag = self.at, self.unsigned(4, f"element type of {what}")
        self.file.require(depth < _MAX_DEPTH, what, place, "arrays are nested too deeply")
        count = self.unsigned(8, f"length of {what}")
        if tag not in (_TEXT, _ARRAY):
            return self._numbers(tag, count, what)
        self.file.need(self.at, 8 * count, what)  # each element has at least its length
        self.file.charge(LIST * (1 + count if tag == _ARRAY else 1), what, place)
        return [self.value(tag, what, depth + 1) for _ in range(count)]

    def _numbers(self, tag: int, count: int, what: str) -> list[Any]:
        self.file.require(tag in _VALUES, what, self.at, f"unknown type {tag}")
        form = np.dtype(_VALUES[tag])
        raw = self.file.view(self.at, count * form.itemsize, what)
        if tag == _BOOL and (raw > 1).any():
            raise self.file.bad("model-field", what, self.at + int((raw > 1).argmax()), "a bool is neither 0 nor 1")
        self.file.charge(VALUE * count, what, self.at)
        self.at += count * form.itemsize
        found: list[Any] = raw.view(form).tolist()
        return found

    def tensor(self, name: str) -> Callable[[int, int], tensors.TensorSource]:
        """A tensor, once it is known where the data begins, and what its alignment is."""
        file, what, place = self.file, f"tensor {name!r}", self.at
        file.charge(TENSOR, "tensors", place)
        rank = self.unsigned(4, f"rank of {what}")
        file.require(rank <= 4, f"rank of {what}", place, f"{rank} is over 4")
        dims = f"dimensions of {what}"
        shape = tuple(self.unsigned(8, dims) for _ in range(rank))[::-1]
        where, tag, offset = self.at, self.unsigned(4, f"type of {what}"), self.unsigned(8, f"offset of {what}")

        def placed(data: int, alignment: int) -> tensors.TensorSource:
            if tag not in _PLAIN and tag not in BLOCKS:
                raise file.bad("model-dtype", f"type of {what}", where, f"unknown type {tag}")
            fact = f"{offset} is not a multiple of the alignment {alignment}"
            file.require(offset % alignment == 0, f"offset of {what}", where + 4, fact)
            dtype, block, nbytes = _stored(tag)
            count = file.count(shape, nbytes * 8, dims, place + 4)
            fact = f"{list(shape)}, but {dtype} has blocks of {block} elements"
            file.require((shape or (1,))[-1] % block == 0, dims, place + 4, fact)
            start, total = data + offset, count // block * nbytes
            file.need(start, total, f"data of {what}")
            reason = f"the stored type {dtype} is block-quantised, which is not read" if tag in BLOCKS else ""
            found = tensors.in_file(file, name, dtype, shape, start, total, reason)
            return replace(found, origin=Blocks(file, start, shape, dtype.name)) if dtype.name in BITS else found

        return placed


def _stored(tag: int) -> tuple[DType, int, int]:
    """The (dtype, elements a block, bytes a block) of a stored type."""
    if tag in _PLAIN:
        return _PLAIN[tag], 1, _PLAIN[tag].bits // 8
    name, block, nbytes = BLOCKS[tag]
    return replace(f32, name=name) if name in BITS else tensors.opaque(name), block, nbytes


# ---------------------------------------------------------------- blocks as f32

TYPES = {name: (elements, nbytes) for name, elements, nbytes in BLOCKS.values()}


def widened(info: tensors.TensorInfo) -> Iterator[NDArray[np.float32]]:
    """The elements of a block-quantised tensor in order, flat, a part at a time; raises as `block_kind` does."""
    kind, dequantize = block_kind(info)
    file, block = ModelFile.open(info.file), TYPES[info.dtype.name][1]
    each = tensors.PART // block * block
    for at in range(0, info.nbytes, each):
        raw = file.view((info.offset or 0) + at, min(each, info.nbytes - at), f"data of tensor {info.name!r}")
        with np.errstate(all="ignore"):  # a scale may be anything
            found = dequantize(raw.reshape(1, -1), kind)
        yield np.ascontiguousarray(found, np.float32).reshape(-1)


def widened_source(info: tensors.TensorInfo) -> tensors.TensorSource:
    """A block-quantised tensor as one of f32, which is computed when it is read."""
    wide = replace(info, dtype=f32, nbytes=f32.nbytes(info.count))
    return tensors.TensorSource(wide, tensors.Computed(lambda: np.concatenate(list(widened(info))).reshape(info.shape)))


def write_widened(path: Path, infos: Sequence[tensors.TensorInfo]) -> int:
    """Write block-quantised tensors as a safetensors file of f32; its bytes.  A part is in memory at a time."""
    header, end = {}, 0
    for info in infos:
        start, end = end, end + 4 * info.count
        header[info.name] = {"dtype": "F32", "shape": list(info.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for info in infos:
            for part in widened(info):
                stream.write(part.astype("<f4", copy=False).data)
        return stream.tell()


def block_kind(info: tensors.TensorInfo) -> tuple[Any, Any]:
    """What the package calls the type of a tensor, and its function that widens blocks.

    Raises `OicError` `model-dtype` where the package is not there or does not know the type.
    """
    try:
        package = import_module("gguf")
    except ImportError:
        text = f"{info.file}: tensor '{info.name}' is {info.dtype}, which the Python package 'gguf' widens"
        raise fail("model-dtype", text, hint="pip install oic[gguf]") from None
    try:
        kind = package.GGMLQuantizationType[info.dtype.name]
        package.dequantize(np.zeros((1, TYPES[info.dtype.name][1]), np.uint8), kind)
    except (KeyError, NotImplementedError):
        text = f"{info.file}: tensor '{info.name}': the package 'gguf' does not widen {info.dtype}"
        raise fail("model-dtype", text, hint="a newer 'gguf', or a file of another type") from None
    return kind, package.dequantize
