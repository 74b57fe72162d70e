"""Damaged files: whatever the bytes, an OicError that names the file, or a model; never more."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.samples import FILES, read_everything
from oic.diagnostics import OicError

FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def attempt(path: Path, raw: bytes) -> str | None:
    """The refusal of a file with these bytes, or None if it is a model."""
    path.unlink(missing_ok=True)  # a new file: an older one may still be mapped
    path.write_bytes(raw)
    try:
        read_everything(path)
    except OicError as error:
        assert str(path) in str(error) and error.diagnostics[0].slug.startswith("model-")
        return str(error)
    return None


@pytest.mark.parametrize("name", FILES)
def test_every_truncation_is_refused(samples: Path, tmp_path: Path, name: str) -> None:
    raw = (samples / name).read_bytes()
    for length in range(len(raw)):
        assert attempt(tmp_path / name, raw[:length]), f"cut to {length} bytes"


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF, None])
@pytest.mark.parametrize("name", FILES)
def test_every_byte_changed(samples: Path, tmp_path: Path, name: str, change: int | None) -> None:
    raw = bytearray((samples / name).read_bytes())
    for at in range(len(raw)):
        before = raw[at]
        raw[at] = 0 if change is None else before ^ change
        attempt(tmp_path / name, bytes(raw))
        raw[at] = before


@pytest.mark.parametrize("word", [b"\xff" * 8, bytes(7) + b"\x80", b"\0\0\0\0\x01\0\0\0"])
@pytest.mark.parametrize("name", FILES)
def test_forged_sizes_allocate_nothing(
    samples: Path, tmp_path: Path, name: str, word: bytes
) -> None:
    """Every eight bytes replaced with a huge number, with the memory measured."""
    raw = (samples / name).read_bytes()
    tracemalloc.start()
    for at in range(0, len(raw) - 8, 4):
        attempt(tmp_path / name, raw[:at] + word + raw[at + 8 :])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


@pytest.mark.parametrize("name", FILES)
@FUZZ
@given(data=st.data())
def test_random_changes(samples: Path, tmp_path: Path, name: str, data: st.DataObject) -> None:
    raw = bytearray((samples / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        patch = data.draw(st.binary(min_size=0, max_size=9))
        raw[at : at + data.draw(st.sampled_from([len(patch), 0, 1, 8]))] = patch
    attempt(tmp_path / name, bytes(raw))


@pytest.mark.parametrize("start", [b"OINF\0\2\0\0\0", b"GGUF\3\0\0\0", b"PK\3\4", b""])
@FUZZ
@given(rest=st.binary(max_size=300))
def test_random_files(tmp_path: Path, start: bytes, rest: bytes) -> None:
    attempt(tmp_path / "m.safetensors", start + rest)


HEADER = {  # field: (byte, format, a wrong value, what the message says)
    "version": (5, "<I", 3, "version at byte 5: 3"),
    "flags": (9, "<I", 1, "flags at byte 9: 1"),
    "sizevars": (13, "<I", 3, "sizevars"),
    "fewer sizevars": (13, "<I", 1, "padding of sizevars"),
    "metadata": (17, "<I", 2**32 - 1, "metadata"),
    "tensors": (21, "<I", 2**32 - 1, "tensors"),
    "reserved": (25, "<I", 1, "reserved at byte 25"),
    "first": (29, "<Q", 64, "offset of the sizevars section at byte 29: 64 is not in 72"),
    "unaligned": (29, "<Q", 73, "73 is not a multiple of 8"),
    "second": (37, "<Q", 0, "offset of the metadata section at byte 37"),
    "third": (45, "<Q", 2**63, "offset of the tensors section at byte 45"),
    "data": (53, "<Q", 8, "offset of the data section at byte 53"),
    "file size": (61, "<Q", 2**64 - 1, "file size at byte 61"),
}


@pytest.mark.parametrize("field", HEADER)
def test_oinf_header(samples: Path, tmp_path: Path, field: str) -> None:
    at, form, value, expected = HEADER[field]
    raw = bytearray((samples / "small.oinf").read_bytes())
    struct.pack_into(form, raw, at, value)
    message = attempt(tmp_path / "m.oinf", bytes(raw))
    assert message is not None and expected in message


def oinf_index(raw: bytes, name: bytes) -> int:
    """The byte of the type of a tensor in an .oinf file."""
    return raw.index(struct.pack("<I", len(name)) + name) + (4 + len(name) + 7) // 8 * 8


@pytest.mark.parametrize(
    ("at", "form", "value", "expected"),
    [
        (0, "<I", 14, "type of tensor 'W.0'"),
        (0, "<I", 99, "99 is no tensor type"),
        (0, "<I", 11, "bytes of tensor 'W.0'"),
        (4, "<I", 33, "rank of tensor 'W.0'"),
        (8, "<I", 4, "flags of tensor 'W.0'"),
        (8, "<I", 0, "the flags say there is none"),
        (8, "<I", 3, "quantisation of tensor 'W.0'"),
        (12, "<Q", 2**63, "2^63 bytes"),
        (28, "<Q", 25, "bytes of tensor 'W.0'"),
        (36, "<Q", 0, "lies before the data section"),
        (36, "<Q", 2**63, "model-truncated"),
        (36, "<Q", 999, "is not a multiple of 8"),
    ],
)
def test_oinf_tensor(
    samples: Path, tmp_path: Path, at: int, form: str, value: int, expected: str
) -> None:
    raw = bytearray((samples / "small.oinf").read_bytes())
    struct.pack_into(form, raw, oinf_index(bytes(raw), b"W.0") + at, value)
    message = attempt(tmp_path / "m.oinf", bytes(raw))
    assert message is not None and expected in message


def test_oinf_overlap_and_duplicates(samples: Path, tmp_path: Path) -> None:
    raw = bytearray((samples / "small.oinf").read_bytes())
    flag, other = oinf_index(bytes(raw), b"flag"), oinf_index(bytes(raw), b"W.0")
    raw[flag + 28 : flag + 36] = raw[other + 36 : other + 44]
    assert "model-overlap" in (attempt(tmp_path / "m.oinf", bytes(raw)) or "")
    raw = bytearray((samples / "small.oinf").read_bytes())
    raw[76:77] = b"D"  # the sizevars are B and D
    assert "'D' is there twice" in (attempt(tmp_path / "m.oinf", bytes(raw)) or "")


def test_codes_without_a_value(samples: Path, tmp_path: Path) -> None:
    raw = bytearray((samples / "small.oinf").read_bytes())
    for name, size in ((b"flag", 28), (b"t", 28)):
        forged = bytearray(raw)
        place = oinf_index(raw, name) + size
        forged[struct.unpack_from("<Q", raw, place)[0]] = 2
        assert "at byte" in (attempt(tmp_path / "m.oinf", bytes(forged)) or ""), name


def test_zip_bomb(tmp_path: Path) -> None:
    """A member that claims to inflate to more than deflate can do."""
    path = tmp_path / "m.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(1000))
    raw = bytearray(path.read_bytes())
    directory = raw.index(b"PK\1\2")
    struct.pack_into("<I", raw, directory + 24, 2**31)
    assert "cannot hold" in (attempt(path, bytes(raw)) or "")
