"""Checksums in C, with and without the instruction for CRC-32C, against Python's."""

from __future__ import annotations

import ctypes
import random
import zlib
from pathlib import Path

from oic.reference.crc32c import crc32c
from runtime.native import Toolchain

SOURCE = """
#include "state/crc32c.h"
#include "state/image.h"
uint32_t castagnoli(const void *data, size_t bytes, size_t cut);
uint32_t castagnoli(const void *data, size_t bytes, size_t cut)
{
    const uint32_t crc = oic_crc32c(OIC_CRC32C_START, data, cut);
    return oic_crc32c_end(oic_crc32c(crc, (const uint8_t *)data + cut, bytes - cut));
}
uint32_t ieee(const void *data, size_t bytes);
uint32_t ieee(const void *data, size_t bytes)
{
    return oic_crc32(data, bytes);
}
"""


def test_checksums(toolchain: Toolchain, tmp_path: Path) -> None:
    """Any length and address, also where tables for eight bytes at a time are made, in one call or two."""
    lib = toolchain.library(SOURCE, tmp_path, "crc")
    for function in (lib.castagnoli, lib.ieee):
        function.restype = ctypes.c_uint32
    r = random.Random(1)
    for length in (0, 1, 7, 8, 9, 63, 1000, 16383, 16384, 16391, 40000):
        for away in (0, 1, 5):
            data = r.randbytes(length)
            room = ctypes.create_string_buffer(bytes(away) + data, length + away + 1)
            at = ctypes.c_void_p(ctypes.addressof(room) + away)
            for cut in {0, length // 3, length}:
                found = lib.castagnoli(at, ctypes.c_size_t(length), ctypes.c_size_t(cut))
                assert found == crc32c(data)
            assert lib.ieee(at, ctypes.c_size_t(length)) == zlib.crc32(data)
