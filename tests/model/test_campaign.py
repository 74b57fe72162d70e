"""A small part of the campaign: damaged models and arrays end in a model or an OicError."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from model.campaign import FORMATS, apart, write_arrays
from model.samples import write_all
from oic.diagnostics import OicError
from oic.model.npy import read_npy

MUTANTS = 150


@pytest.mark.parametrize("form", FORMATS)
def test_mutants(tmp_path: Path, form: str) -> None:
    write_all(tmp_path)
    write_arrays(tmp_path)
    # in a process of its own: this one has had the memory of other tests, and not every system forgets a peak
    tally = apart(tmp_path, form, 0, 0, MUTANTS)
    assert not tally.defects
    assert tally.mutants == MUTANTS and tally.refused > 0


@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">i2", "<u8", "?", "<f2", ">f8", "|i1"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (4, 1, 2)])
def test_arrays_are_read_as_numpy_reads_them(
    tmp_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    array = (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype).reshape(shape)
    for order in (array, np.array(array, order="F")):
        path = tmp_path / "x.npy"
        path.unlink(missing_ok=True)
        np.save(path, order)
        found = read_npy(path)
        assert found.dtype == array.dtype.newbyteorder("=") and found.flags.c_contiguous
        assert np.array_equal(found, array) and found.shape == array.shape


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (HEADER.replace("(2,)", "(2,"), "header at byte 0: its header is not"),  # TokenError
        (HEADER.replace("(2,)", "(9999999999999999999999,)"), "its shape is (99"),  # OverflowError
        (
            HEADER.replace("(2,)", "(9223372036854775807, 9)"),
            "shape at byte 0: the dimensions multiply",
        ),
        (HEADER.replace("False", "__import__('os')"), "its header is not"),
        (HEADER.replace("'<f4'", "'<f4"), "its header is not"),  # SyntaxError
        (HEADER.replace("'<f4'", "'|O'"), "Python objects"),
        (HEADER.replace("'<f4'", "[('a', '<f4')]"), "no element type"),
        (HEADER.replace("'<f4'", "'<c8'"), "no element type"),
        (HEADER.replace("'descr'", "None"), "its header is not"),  # TypeError
        (
            HEADER.replace("(2,)", "(3,)"),
            "elements at byte 128: 8 bytes, but f32 of shape [3] has 12",
        ),
    ],
)
def test_headers_of_arrays(tmp_path: Path, header: str, text: str) -> None:
    path = tmp_path / "x.npy"
    raw = header.encode().ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(raw).to_bytes(2, "little") + raw + bytes(8))
    with pytest.raises(OicError) as error:
        read_npy(path)
    assert error.value.diagnostics[0].slug == "input-file"
    assert text in str(error.value) and str(path) in str(error.value)
