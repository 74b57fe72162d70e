"""The checksum of weights and saved states, against its standard and its definition."""

from __future__ import annotations

import random

from oic.memory.crc32c import BLOCK, MULTIPLE, POLYNOMIAL, SCALES, crc32c
from paths import ROOT


def test_the_checksum_is_crc_32c() -> None:
    """Values of RFC 3720, B.4, and the one that catalogues give."""
    assert crc32c(b"") == 0 and crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA and crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_long_data_has_the_same_checksum() -> None:
    """Bit by bit from the definition."""

    def slow(data: bytes) -> int:
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF

    most = MULTIPLE[0]
    for length in (1, 7, most, most + 1, most + 5, 2 * most, SCALES[0] * most + 1, SCALES[0] * most + 30011):
        data = random.Random(length).randbytes(length)
        assert crc32c(data) == slow(data), length


def test_a_checksum_goes_on() -> None:
    """In pieces it is that of the whole; also beyond what is read at once."""
    data = random.Random(1).randbytes(BLOCK + 40000)
    for cut in (0, 1, 100, 7000, BLOCK - 1, BLOCK):
        assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data), cut


def test_nothing_of_ours_has_another_checksum() -> None:
    """That of zlib is only what other formats say."""
    sources = sorted((ROOT / "compiler" / "oic").rglob("*.py"))
    assert [path.name for path in sources if "crc32(" in path.read_text()] == ["npz.py"]
