"""Block-quantised tensors of GGUF files as f32, written part by part; but for those that are read as they are.

The values of a block are computed by the package `gguf` (an extra), in f32, and nothing is rounded further.
"""

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic.diagnostics import fail
from oic.dtypes import f32
from oic.model.file import ModelFile
from oic.model.gguf import BLOCKS
from oic.model.tensors import PART, Computed, TensorInfo, TensorSource

TYPES = {name: (elements, nbytes) for name, elements, nbytes in BLOCKS.values()}


def widened(info: TensorInfo) -> Iterator[NDArray[np.float32]]:
    """The elements of a block-quantised tensor in order, flat, a part at a time; raises as `block_kind` does."""
    kind, dequantize = block_kind(info)
    file, block = ModelFile.open(info.file), TYPES[info.dtype.name][1]
    each = PART // block * block
    for at in range(0, info.nbytes, each):
        raw = file.view((info.offset or 0) + at, min(each, info.nbytes - at), f"data of tensor {info.name!r}")
        with np.errstate(all="ignore"):  # a scale may be anything
            found = dequantize(raw.reshape(1, -1), kind)
        yield np.ascontiguousarray(found, np.float32).reshape(-1)


def widened_source(info: TensorInfo) -> TensorSource:
    """A block-quantised tensor as one of f32, which is computed when it is read."""
    wide = replace(info, dtype=f32, nbytes=f32.nbytes(info.count))
    return TensorSource(wide, Computed(lambda: np.concatenate(list(widened(info))).reshape(info.shape)))


def write_widened(path: Path, tensors: Sequence[TensorInfo]) -> int:
    """Write block-quantised tensors as a safetensors file of f32; its bytes.  A part is in memory at a time."""
    header, end = {}, 0
    for info in tensors:
        start, end = end, end + 4 * info.count
        header[info.name] = {"dtype": "F32", "shape": list(info.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for info in tensors:
            for part in widened(info):
                stream.write(part.astype("<f4", copy=False).data)
        return stream.tell()


def block_kind(info: TensorInfo) -> tuple[Any, Any]:
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
