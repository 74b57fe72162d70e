"""Offsets in the arena: buffers that are never live together share bytes.

Dynamic storage allocation with known lifetimes.  Buffers are placed one after the other, each in the
tightest gap; what decides is their order.  Several orders are tried, then the best one is improved
by moving the buffers that reach the top to the front, until the lower bound (the largest sum of bytes
live at one position) is met or nothing helps.  Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    least = lower_bound(buffers)
    best: tuple[int, list[Buffer], list[int]] | None = None
    for order in ORDERS:
        best = _better(best, sorted(buffers, key=order))
        if best[0] <= least:
            break
    assert best is not None
    for _ in range(ROUNDS):
        if best[0] <= least:
            break
        improved = _better(best, _top_first(best))
        if improved is best:
            break
        best = improved
    nbytes, order_found, offsets = best
    for buffer, offset in zip(order_found, offsets, strict=True):
        buffer.offset = offset
    return nbytes


Order = Callable[[Buffer], tuple[object, ...]]
Placed = tuple[int, list[Buffer], list[int]]  # bytes of the arena, buffers in order, their offsets

# What goes first: the largest; the one with the most bytes times positions; the longest lived; the
# first; the last to die.  Names make the order total.
ORDERS: tuple[Order, ...] = (
    lambda b: (-b.nbytes, b.start, b.end, b.name),
    lambda b: (-b.nbytes * (b.end - b.start + 1), b.start, b.name),
    lambda b: (b.start - b.end, -b.nbytes, b.start, b.name),
    lambda b: (b.start, -b.nbytes, b.end, b.name),
    lambda b: (-b.end, -b.nbytes, b.start, b.name),
)
ROUNDS = 64  # of improvement


def _better(best: Placed | None, order: list[Buffer]) -> Placed:
    """The better of the best placement so far and one in this order; the older one if they tie."""
    placed: list[Buffer] = []
    for buffer in order:
        buffer.offset = _lowest(buffer, placed)
        placed.append(buffer)
    nbytes = max((_up(b.offset + b.nbytes, ALIGN) for b in order), default=0)
    if best is not None and best[0] <= nbytes:
        return best
    return nbytes, order, [b.offset for b in order]


def _top_first(best: Placed) -> list[Buffer]:
    """The order with the buffers that reach the top of the arena, and what lives with them, first."""
    nbytes, order, offsets = best
    tops = [b for b, at in zip(order, offsets, strict=True) if _up(at + b.nbytes, ALIGN) >= nbytes]
    near = {id(b) for b in order if any(lives_with(b, top) for top in tops)}
    front = sorted((b for b in order if id(b) in near), key=lambda b: (b not in tops, -b.nbytes))
    return [*front, *(b for b in order if id(b) not in near)]


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
