"""Checksums in C, with and without the instruction for CRC-32C, against Python's."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from oic.memory.crc32c import crc32c
from runtime.native import ROOT, Toolchain

SOURCE = """
#include "state/crc32c.h"
uint32_t castagnoli(const void *data, size_t bytes, size_t cut);
uint32_t castagnoli(const void *data, size_t bytes, size_t cut)
{
    const uint32_t crc = oic_crc32c(OIC_CRC32C_START, data, cut);
    return oic_crc32c_end(oic_crc32c(crc, (const uint8_t *)data + cut, bytes - cut));
}
"""


def test_checksums(toolchain: Toolchain, tmp_path: Path) -> None:
    """Any length and address, also where tables for eight bytes at a time are made, in one call or two."""
    lib = toolchain.library(SOURCE, tmp_path, "crc")
    lib.castagnoli.restype = ctypes.c_uint32
    r = random.Random(1)
    for length in (0, 1, 7, 8, 9, 63, 1000, 16383, 16384, 16391, 40000, 120001):
        for away in (0, 1, 5):
            data = r.randbytes(length)
            room = ctypes.create_string_buffer(bytes(away) + data, length + away + 1)
            at = ctypes.c_void_p(ctypes.addressof(room) + away)
            for cut in {0, length // 3, length}:
                found = lib.castagnoli(at, ctypes.c_size_t(length), ctypes.c_size_t(cut))
                assert found == crc32c(data)
                assert crc32c(data[cut:], crc32c(data[:cut])) == found


@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="no emulator")
@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-gcc"), reason="no compiler for AArch64")
def test_the_instruction_of_aarch64(tmp_path: Path) -> None:
    program, source = tmp_path / "crc", tmp_path / "crc.c"
    source.write_text(
        SOURCE + "int main(void)\n{\n    uint8_t data[1003];\n"
        "    for (int i = 0; i < 1003; ++i) {\n        data[i] = (uint8_t)(i * i);\n    }\n"
        f"    return castagnoli(data, 1003, 13) != {crc32c(bytes(i * i & 255 for i in range(1003)))}u;\n}}\n"
    )
    call = ["aarch64-linux-gnu-gcc", "-std=c99", "-O2", "-march=armv8-a+crc", "-static", "-I", str(ROOT / "runtime_c")]
    subprocess.run([*call, str(source), "-o", str(program)], check=True)
    assert "crc32cx" in subprocess.run([*call, "-S", "-o", "-", str(source)], capture_output=True, text=True).stdout
    assert subprocess.run(["qemu-aarch64", str(program)]).returncode == 0
