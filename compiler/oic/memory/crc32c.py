"""CRC-32C (Castagnoli, reflected), as `runtime_c/state/crc32c.h` has it: of weights and saved states.

Of the two usual polynomials it is the one with instructions on x86-64, and the one whose distance is 4 up to 2^31 - 1
bits, where that of zlib's and PNG's is 3 beyond 11 KiB (Koopman, "32-bit cyclic redundancy codes for internet
applications", 2002).

The polynomial divides x^8a + x^8b + x^8c + 1 for the bytes (a, b, c) = MULTIPLE, as it divides x^a + x^b + x^c + 1
and squares of polynomials over GF(2) have the squares of their terms.  So a byte of a message may be dropped if it is
added to those a - b, a - c and a bytes further on, and NumPy drops thousands at once.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
MULTIPLE = (6777, 484, 100)
SCALES = (16, 1)  # powers of two, by which a multiple is one too
ONES = 0xFFFFFFFF
BLOCK = 1 << 22  # bytes that are copied at once


def crc32c(data: bytes | memoryview, crc: int = 0) -> int:
    """The checksum of some bytes, or of those of which `crc` is the checksum and these after them."""
    found = np.frombuffer(data, np.uint8)
    register = crc ^ ONES
    for start in range(0, len(found), BLOCK):
        register = _remainder(found[start : start + BLOCK].copy(), register)
    return register ^ ONES


def _remainder(data: NDArray[np.uint8], register: int) -> int:
    """The register after some bytes, which are changed."""
    if len(data) > MULTIPLE[0]:
        data[:4] ^= np.frombuffer(register.to_bytes(4, "little"), np.uint8)
        register = 0
        for scale in SCALES:
            data = _folded(data, *(scale * place for place in MULTIPLE))
    table = _table()
    for byte in data.tobytes():
        register = table[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register


def _folded(data: NDArray[np.uint8], a: int, b: int, c: int) -> NDArray[np.uint8]:
    """At most `a` bytes with the same remainder."""
    while len(data) > a:
        count = min(a - b, len(data) - a)
        for further in (a - b, a - c, a):
            data[further : further + count] ^= data[:count]
        data = data[count:]
    return data


@cache
def _table() -> tuple[int, ...]:
    """The remainder of every byte."""
    registers = np.arange(256)
    for _ in range(8):
        registers = registers >> 1 ^ np.where(registers & 1, POLYNOMIAL, 0)
    return tuple(registers.tolist())
