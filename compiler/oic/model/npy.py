"""The .npy format: the header of one array, and a whole file, without pickle.

    "\\x93NUMPY", u8 major, u8 minor, u16 (from version 2: u32) N | N bytes of a Python dictionary:
    {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } | elements

The dictionary is matched, not evaluated.  Source: NumPy, "numpy.lib.format".
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oic import dtypes
from oic.diagnostics import OicError, fail
from oic.dtypes import Array, DType
from oic.model.file import ModelFile, Section
from oic.model.tensors import opaque, stored

MAX_HEADER = 1 << 16  # bytes
_VALUE = r"'[^']*'|True|False|\([0-9, ]*\)|\[[^{}]*\]"
_HEADER = re.compile(rf"\{{(?: ?'\w+' ?: ?(?:{_VALUE}) ?,?)*+ ?\}}")  # blanks already single
_ITEM = re.compile(rf"'(\w+)' ?: ?({_VALUE})")
_SHAPE = re.compile(r"\((?:[0-9]{1,19}, ?)*(?:[0-9]{1,19})?\)")
_OWN = {"V2": dtypes.bf16, "f1": dtypes.f8, "b1": dtypes.bool_}


@dataclass(frozen=True)
class Header:
    """What the header of an array says; `data` is the byte where its elements begin."""

    descr: str
    fortran: bool
    shape: tuple[int, ...]
    data: int

    def is_swapped(self, dtype: DType) -> bool:
        """Elements of this type have their most significant byte first."""
        return self.descr[0] == ">" and dtype.bits > 8

    def arranged(self, raw: Array, dtype: DType) -> Array:
        """The array of some bytes."""
        flat = raw.view(dtype.np)
        if self.is_swapped(dtype):
            flat = flat.byteswap()
        if self.fortran:
            flat = np.ascontiguousarray(flat.reshape(self.shape[::-1]).T)
        return flat.reshape(self.shape)


def read_header(source: Section) -> Header:
    """The header of an array; its shape is not yet compared with the bytes.  Raises OicError."""
    start = source.start(12)
    known = start[:6] == b"\x93NUMPY" and len(start) >= 10 and start[6] in (1, 2, 3)
    source.require(known, "not a .npy array of version 1, 2 or 3")
    width = 2 if start[6] == 1 else 4
    length, data = int.from_bytes(start[8 : 8 + width], "little"), 8 + width
    if length > MAX_HEADER or data + length > source.size:
        raise source.bad("model-truncated", f"a header of {length} bytes")
    source.charge(2 * length)
    text = " ".join(source.start(data + length)[data:].decode("latin-1").split())
    items = dict(_ITEM.findall(text)) if _HEADER.fullmatch(text) else {}
    shape, order = items.get("shape", ""), items.get("fortran_order")
    known = set(items) == {"descr", "fortran_order", "shape"} and order in ("True", "False")
    source.require(known, "its header is not {'descr', 'fortran_order', 'shape'}")
    source.require(_SHAPE.fullmatch(shape) is not None, f"its shape is {shape:.60}")
    dims = tuple(int(size) for size in re.findall("[0-9]+", shape))
    return Header(items["descr"].strip("'"), order == "True", dims, data + length)


def element_type(descr: str) -> DType:
    """The element type of a NumPy type string such as '<f4'; opaque if there is none."""
    if descr[1:] in _OWN and descr[:1] in "<|":
        return _OWN[descr[1:]]
    if re.fullmatch(r"[<>|=][fiu][1248]", descr):
        known = dtypes.from_array(np.dtype(descr).newbyteorder("="))
        if known is not None:
            return known
    return opaque(descr if len(descr) <= 20 else "structured")


def read_npy(path: str | Path) -> Array:
    """The array in a .npy file, row-major, in NumPy's form of its element type.

    Raises OicError `input-file`, also for pickles and element types the language does not have.
    """
    try:
        return _array(ModelFile.open(path))
    except OicError as error:
        what = error.diagnostics[0].message.replace("cannot read the model", "cannot read", 1)
        raise fail("input-file", what) from None


def _array(file: ModelFile) -> Array:
    source = Section(file, "header", 0, file.size)
    header = read_header(source)
    dtype = element_type(header.descr)
    source.require("O" not in header.descr, "it holds Python objects, which are not read")
    source.require(dtype.kind != "opaque", f"the language has no element type for NumPy's {header.descr!r:.60}")
    count = file.count(header.shape, dtype.bits, "shape", 0)
    nbytes = file.size - header.data
    fact = f"{nbytes} bytes, but {dtype} of shape {list(header.shape)} has {dtype.nbytes(count)}"
    file.require(nbytes == dtype.nbytes(count), "elements", header.data, fact)
    return header.arranged(stored(file, "elements", header.data, dtype, count).copy(), dtype)
