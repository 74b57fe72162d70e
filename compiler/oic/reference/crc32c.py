"""CRC-32C (Castagnoli, reflected), as `runtime_c/state/crc32c.h` has it, a megabyte in some milliseconds.

Long data is cut into pieces of one length whose remainders are computed side by side, and then joined in
pairs: the remainder of `a b` is that of `a`, moved on by the zeros of b's length, xor that of `b`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
ONES = 0xFFFFFFFF
SHORT = 2048  # bytes up to which a byte at a time is faster
Words = NDArray[np.uint32]  # remainders; or the columns of a linear map of them


def crc32c(data: bytes) -> int:
    """The checksum of some bytes."""
    if len(data) <= SHORT:
        return _serial(data)
    pieces = 1 << max(4, (len(data).bit_length() + 2) // 2)
    length = -(-len(data) // pieces)
    padded = np.zeros(pieces * length, np.uint8)  # zeros in front change no remainder that starts as 0
    padded[-len(data) :] = np.frombuffer(data, np.uint8)
    padded[-len(data) :][:4] ^= 0xFF  # starting as ones is to invert the first four bytes
    rows = np.ascontiguousarray(padded.reshape(pieces, length).T)
    table = _table()
    found = np.zeros(pieces, np.uint32)
    for row in rows:
        found = table[(found ^ row) & 0xFF] ^ (found >> 8)
    step = _zeros(length)
    while len(found) > 1:
        found = _apply(step, found[0::2]) ^ found[1::2]
        step = _apply(step, step)
    return int(found[0]) ^ ONES


def _serial(data: bytes) -> int:
    table = _table().tolist()
    crc = ONES
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return int(crc) ^ ONES


@cache
def _table() -> Words:
    """The remainder of every byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


def _zeros(count: int) -> Words:
    """What so many bytes of zeros do to a remainder."""
    units = np.uint32(1) << np.arange(32, dtype=np.uint32)
    power: Words = _table()[units & 0xFF] ^ (units >> 8)
    found = units
    while count:
        if count & 1:
            found = _apply(power, found)
        power = _apply(power, power)
        count >>= 1
    return found


def _apply(columns: Words, values: Words) -> Words:
    """A linear map of each of some remainders."""
    found = np.zeros(len(values), np.uint32)
    for bit, column in enumerate(columns):
        found ^= np.where(values >> np.uint32(bit) & 1, column, np.uint32(0)).astype(np.uint32)
    return found
