"""Offsets in the arena: buffers that are never live together share bytes.

Dynamic storage allocation with known lifetimes.  Largest first, each at the lowest gap it fits
(best fit among gaps of the same size), ties by lifetime; the lower bound is the largest sum of
bytes live at one position.
"""

from __future__ import annotations

from collections.abc import Sequence

from oic.ir.module import Buffer

ALIGN = 64  # bytes: a cache line and the widest vector


def place(buffers: Sequence[Buffer], *, reuse: bool = True) -> int:
    """Set the offset of every buffer; the bytes of the arena.

    reuse   False gives every buffer bytes of its own
    """
    if not reuse:
        end = 0
        for buffer in buffers:
            buffer.offset = end
            end = _up(end + buffer.nbytes, ALIGN)
        return end
    placed: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.nbytes, b.start, b.end, b.name)):
        buffer.offset = _lowest(buffer, placed)
        placed.append(buffer)
    return max((_up(b.offset + b.nbytes, ALIGN) for b in placed), default=0)


def _lowest(buffer: Buffer, placed: Sequence[Buffer]) -> int:
    """The tightest gap among those that are live together with it, else after them all."""
    blocked = sorted((b.offset, b.offset + b.nbytes) for b in placed if lives_with(buffer, b))
    best: tuple[int, int] | None = None
    end = 0
    for first, last in blocked:
        start = _up(end, ALIGN)
        gap = first - start
        if gap >= buffer.nbytes and (best is None or gap < best[0]):
            best = gap, start
        end = max(end, last)
    return best[1] if best else _up(end, ALIGN)


def lives_with(a: Buffer, b: Buffer) -> bool:
    """Both are needed at one position."""
    return a.start <= b.end and b.start <= a.end


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """The largest sum of bytes, each rounded up to the alignment, live at one position."""
    events: list[tuple[int, int, int]] = []
    for b in buffers:
        size = _up(b.nbytes, ALIGN)
        events += [(b.start, 0, size), (b.end, 1, -size)]
    most = now = 0
    for _, _, size in sorted(events):
        now += size
        most = max(most, now)
    return most


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
