"""Matrices in groups of 32 elements along K, each a small integer q times the scale of its group: q8 and q4.

    q8   q in -127..127 in a byte; scale = amax / 127
    q4   q in -8..7 in half a byte, n = q + 8; scale = m / -8, m the element of the largest magnitude, or one near it
         that makes the squared error of the group smaller

Scales are f16.  A matrix of R rows and K columns has G = ceil(K / 32) groups a row; rows are filled up with zeros to
a multiple of 16, the last group to 32.  Memory, for a vector whose lanes are rows:

    rows in streams of 64 (the last of 16, 32, 48 or 64), of a stream one group of all its rows after the other, of a
    group one panel of 16 rows after the other;
    of q8 a panel's group has 512 bytes: byte 64c + 4r + i is element 4c + i of row r, c < 8
    of q4 it has 256: byte 64c + 4r + i is n of element 4c + i and, in the upper half, of element 16 + 4c + i, c < 4
    after all of them the scales: stream by stream, group by group, one a row

Matrices begin at multiples of 64 bytes.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oic.dtypes import Array

GROUP, ROWS, STREAM = 32, 16, 64  # a stream is the rows that kernels go through together, and what threads share
ALIGN = 64  # bytes of a cache line, and of the widest vector
WIDEST = 8  # bytes of the widest element
PART = 1 << 20  # elements that are gone through at once
MOST = 127.0
NEAR = np.array([-1 / 8, -1 / 8.6, -1 / 7.4], np.float32)  # of q4: scales that are tried, beside the largest element

assert sys.byteorder == "little", "bytes are put in order four at a time"


@dataclass(frozen=True)
class Groups:
    """Rows of a matrix.

    q       i8[rows, G, 32], what fills up the last group 0
    scales  f16[rows, G]
    """

    q: NDArray[np.int8]
    scales: NDArray[np.float16]

    def values(self, k: int) -> NDArray[np.float32]:
        """What is computed with, f32[rows, k]: exact products."""
        rows = len(self.q)
        found = self.q.astype(np.float32) * self.scales.astype(np.float32)[..., None]
        return np.ascontiguousarray(found.reshape(rows, -1)[:, :k])


ReadGroups = Callable[[int, int], Groups]  # of some rows: the first, and the one after the last


@dataclass(frozen=True, eq=False)
class Grouped:
    """A matrix that comes in groups, of which the values are.

    shape  [rows, K]
    """

    shape: tuple[int, int]
    storage: str
    read: ReadGroups

    def values(self) -> Array:
        """The whole matrix, f32."""
        with np.errstate(all="ignore"):  # a scale may be anything
            return self.read(0, self.shape[0]).values(self.shape[1])


def groups(k: int) -> int:
    """Groups of a row."""
    return -(-k // GROUP)


def whole_groups(part: tuple[int, int], k: int) -> bool:
    """Elements from one to another of a row are those of whole groups."""
    first, end = part
    return first % GROUP == 0 and (end % GROUP == 0 or end == k)


def part_of(matrix: Grouped, rows: tuple[int, int], columns: tuple[int, int]) -> Grouped:
    """Some rows of a matrix, and of these whole groups."""
    first, low, high = rows[0], columns[0] // GROUP, groups(columns[1])

    def read(start: int, end: int) -> Groups:
        found = matrix.read(first + start, first + end)
        return Groups(found.q[:, low:high], found.scales[:, low:high])

    return Grouped((rows[1] - first, columns[1] - columns[0]), matrix.storage, read)


def row_parts(rows: int, width: int, together: int = 1) -> Iterator[tuple[int, int]]:
    """Where parts of a matrix that is gone through a part at a time begin and end; so many rows stay together."""
    at_once = max(1, PART // (together * max(1, width))) * together
    return ((first, min(rows, first + at_once)) for first in range(0, rows, at_once))


def matrix_bytes(rows: int, k: int, storage: str) -> int:
    """Bytes of a matrix, scales and what comes before the next matrix included."""
    count = -(-rows // ROWS) * ROWS * groups(k)
    return -(-count * (GROUP_STORAGES[storage].nbytes + 2) // ALIGN) * ALIGN


def quantize(values: Array, storage: str) -> Groups:
    """Rows of f32 in groups.  Raises ValueError if a value is not finite, or too large for a scale."""
    rows, k = values.shape
    whole = np.zeros((rows, groups(k) * GROUP), np.float32)
    whole[:, :k] = values
    grouped = whole.reshape(rows, -1, GROUP)
    with np.errstate(all="ignore"):
        amax = np.maximum(grouped.max(-1, initial=0), -grouped.min(-1, initial=0))
        if not (amax <= np.float32(65504 * GROUP_STORAGES[storage].most)).all():
            raise ValueError("a value is not finite or too large")
        return GROUP_STORAGES[storage].quantise(grouped, amax)


def _q8(grouped: Array, amax: Array) -> Groups:
    """round(w / scale), half to even; scales that f16 makes too small are the next."""
    scales = (amax / np.float32(MOST)).astype(np.float16)
    small = np.rint(amax / scales.astype(np.float32)) > MOST
    scales[small] = np.nextafter(scales[small], np.float16(np.inf))
    wide = scales.astype(np.float32)
    q = np.divide(grouped, np.where(wide > 0, wide, 1)[..., None])
    return Groups(np.rint(q, out=q).astype(np.int8), scales)


def _q4(grouped: Array, amax: Array) -> Groups:
    """The scale that gives the least squared error among those tried, the first of equals."""
    low = grouped.min(-1, initial=0)
    largest = np.where(-low >= amax, low, amax)
    best = np.full(amax.shape, np.inf, np.float32)
    q, scales = np.zeros(grouped.shape, np.int8), np.zeros(amax.shape, np.float16)
    for factor in NEAR:
        tried = (largest * factor).astype(np.float16)
        wide = tried.astype(np.float32)[..., None]
        n = np.divide(grouped, np.where(wide == 0, 1, wide))
        np.clip(np.rint(n, out=n), -8, 7, out=n)
        error = grouped - n * wide
        error = np.einsum("rgi,rgi->rg", error, error)
        better = error < best
        best[better], scales[better] = error[better], tried[better]
        np.copyto(q, n.astype(np.int8), where=better[..., None])
    return Groups(q, scales)


def _halves(q: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """q + 8 of the first elements of groups, and in the upper half of a byte of the last."""
    n = q + np.uint8(8)
    return n[..., : GROUP // 2] | n[..., GROUP // 2 :] << np.uint8(4)


def _whole(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """`_halves` backwards."""
    return np.concatenate([data & np.uint8(15), data >> np.uint8(4)], -1) - np.uint8(8)


@dataclass(frozen=True)
class GroupStorage:
    """How the elements of a group become integers, and these bytes; products read them by a kernel `linear_NAME`.

    nbytes    of a group, a multiple of 4
    most      the largest magnitude of an element over its scale
    quantise  groups f32[rows, G, 32], with the largest magnitude of each, [rows, G]
    packed    integers as bytes, from u8[.., 32] (two's complement) to u8[.., nbytes]; four neighbours lie side by side
    unpacked  the same backwards
    """

    nbytes: int
    most: float
    quantise: Callable[[Array, Array], Groups]
    packed: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
    unpacked: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]


GROUP_STORAGES = {
    "q8": GroupStorage(32, 127, _q8, lambda q: q, lambda q: q),
    "q4": GroupStorage(16, 8, _q4, _halves, _whole),
}


def parts(read: ReadGroups, rows: int, k: int, storage: str) -> Iterator[NDArray[np.uint8]]:
    """The bytes of a matrix, one part after the other; `read` gives some rows of it."""
    scales: list[NDArray[np.uint8]] = []
    written = 0
    for first, end in row_parts(rows, GROUP * groups(k), STREAM):
        for stream in _streams(read(first, end)):
            data = _packed(stream.q, storage)
            scales.append(np.ascontiguousarray(stream.scales.T).reshape(-1).view(np.uint8))
            written += data.nbytes + scales[-1].nbytes
            yield data
    yield from scales
    yield np.zeros(matrix_bytes(rows, k, storage) - written, np.uint8)


def _streams(found: Groups) -> Iterator[Groups]:
    """Streams of rows, the last filled up with zeros to whole panels."""
    for first in range(0, len(found.q), STREAM):
        q, scales = found.q[first : first + STREAM], found.scales[first : first + STREAM]
        if spare := -len(q) % ROWS:
            q = np.concatenate([q, np.zeros((spare, *q.shape[1:]), q.dtype)])
            scales = np.concatenate([scales, np.zeros((spare, *scales.shape[1:]), scales.dtype)])
        yield Groups(q, scales)


def _packed(q: NDArray[np.int8], storage: str) -> NDArray[np.uint8]:
    """The bytes of one stream, i8[W, G, 32]: [G, W / 16, nbytes / 4, 16, 4]."""
    data = GROUP_STORAGES[storage].packed(q.view(np.uint8))
    width, count, inner = data.shape
    words = np.ascontiguousarray(data).view(np.uint32).reshape(width // ROWS, ROWS, count, inner // 4)
    return np.ascontiguousarray(words.transpose(2, 0, 3, 1)).reshape(-1).view(np.uint8)


def loaded(data: NDArray[np.uint8], rows: int, k: int, storage: str) -> NDArray[np.float32]:
    """The values of a matrix, f32[rows, k], from its bytes."""
    count, each = groups(k), GROUP_STORAGES[storage].nbytes
    filled = -(-rows // ROWS) * ROWS
    scales = data[filled * count * each : filled * count * (each + 2)].view(np.float16)
    found = np.empty((rows, k), np.float32)
    for first in range(0, rows, STREAM):
        width, here = min(STREAM, filled - first), min(STREAM, rows - first)
        start = first * count
        words = data[start * each : (start + width * count) * each].view(np.uint32)
        by_rows = words.reshape(count, width // ROWS, each // 4, ROWS).transpose(1, 3, 0, 2)
        raw = np.ascontiguousarray(by_rows).reshape(width, count, each // 4).view(np.uint8)
        raw = GROUP_STORAGES[storage].unpacked(raw)
        by_group = scales[start : start + width * count].reshape(count, width).T
        found[first : first + here] = Groups(raw.view(np.int8), by_group).values(k)[:here]
    return found
