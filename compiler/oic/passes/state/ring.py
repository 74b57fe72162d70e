"""Reads and writes of rings (SPEC, 8.5): position n lies at n mod W, and again W further on.

    cache.write(%X, %v, [%n])          =>    %next = state.get(%X.t)
                                             check.range(%n, max(%next - W, 0), ...)
                                             state.fill(%X, ..)      positions skipped
                                             state.store(%X, .., %v)
                                             state.double(%X, ..)    in the other half too
                                             state.set(%X.t, max(%next, %n + 1))

    %x = cache.read(%X, [%a, %b])      =>    check.range(%a, %next - W, %b)
                                             check.range(%b, %a, %next)
                                             %x = state.load(%X, [%a mod W])

Any W positions in a row are a row of the doubled storage, so a slice is a view.  Positions below 0
fall on slots that nothing was stored in while they can be read, and those hold the initial value.
"""

from typing import Any

from oic.ir import dims, state
from oic.ir.core import Value
from oic.ir.index import ExtentBind
from oic.operators.shape import Slice
from oic.passes.state import auto as lower_auto
from oic.passes.state.emitter import INDEX, Emitter, Position, StateVariable
from oic.passes.state.table import box, check_positions, fill, grow, load, read_raises, starts


def lower_read(e: Emitter, kept: StateVariable, op: state.CacheRead, at: list[Position]) -> Value:
    """The value read: a view of the doubled storage."""
    others, position, rest = _split(kept, at)
    following, window = next_of(e, kept, starts(others)), kept.type.window
    e.check_position(position, e.minus(following, window), following, INDEX, kept.name(kept.outer))
    growth = read_raises(e, kept, others, rest, scalar=position.end is None)
    slots = [*others, Position(e.modulo(position.start, window), position.end)]
    return load(e, kept, op, [*slots, *rest] if growth.part else slots)


def lower_write(e: Emitter, kept: StateVariable, op: state.CacheWrite, at: list[Position]) -> None:
    """Store the newest entries of the value, forget those skipped, and double both."""
    others, position, rest = _split(kept, at)
    (start, end), window, selected = position, kept.type.window, starts(others)
    following = next_of(e, kept, selected)
    oldest = e.most(e.minus(following, window), 0)
    e.check_position(position, oldest, state.FARTHEST + (end is None), INDEX, kept.name(kept.outer))
    growth = lower_auto.check_growth(e, kept, rest)
    value, count = op.value, 1 if end is None else op.value.shape[0]
    if count == 0:
        return
    fill(e, kept, others, growth)
    if dims.maximum(count) > window:
        value, start = _newest(e, op, start, window)
    after = end if end is not None else e.plus(start, 1)
    lengths = box([*others, Position(start, end)], value.shape)
    size, entry = e.size(count), lower_auto.grown_shape(e, kept, growth.counts)
    # What changes begins with the first position skipped or stored that is still in the window.
    low = e.least(start, e.most(following, e.minus(after, window)))
    skipped = e.when(size, e.minus(start, low))
    slot = e.modulo(e.minus(start, skipped), window)
    _fill(e, kept, [*selected, slot], [skipped, *entry])
    e.add(state.StateStore(kept.state, [*selected, e.plus(slot, skipped)], lengths, value))
    changed = e.plus(e.minus(after, start), skipped)
    e.add(state.StateDouble(kept.state, [*selected, slot], [*[1] * kept.outer, changed, *entry]))
    e.set(kept.following, e.most(following, e.when(e.size(count), after)), selected)
    grow(e, kept, others, growth, slices=False, stored=count)
    if kept.touched is not None:
        old = e.get(kept.touched, selected)
        e.set(kept.touched, e.least(e.plus(old, e.size(count)), 1), selected)


def lower_step(e: Emitter, kept: StateVariable, op: state.CacheStep) -> None:
    """One scalar of the window stepped, where it lies twice."""
    others, start = op.indices[:-1], op.indices[-1]
    window = kept.type.window
    following = next_of(e, kept, others)
    oldest = e.most(e.minus(following, window), 0)
    e.check(start, oldest, e.minus(following, 1), INDEX, kept.name(kept.outer))
    slot = e.modulo(start, window)
    for place in (slot, e.plus(slot, window)):
        e.add(state.StateAdd(kept.state, op.amount, [*others, place]))
    grow(e, kept, [Position(i) for i in others], lower_auto.check_growth(e, kept, []), slices=False)
    if kept.touched is not None:
        e.set(kept.touched, 1, others)


def _split(kept: StateVariable, at: list[Position]) -> tuple[list[Position], Position, list[Position]]:
    """Positions beside the ring's own, that one, and those of growing dimensions."""
    return at[: kept.outer], at[kept.outer], at[kept.outer + 1 :]


def next_of(e: Emitter, kept: StateVariable, others: list[Value]) -> Value:
    """One more than the largest position written of the ring at these indices, which are checked."""
    check_positions(e, kept, [Position(i) for i in others])
    return e.get(kept.following, others)


def forget(e: Emitter, kept: StateVariable, indices: list[Value], inside: Value) -> None:
    """Reset one position of a ring, if it is in the window; `next` and counts stay.

    indices   those beside the ring (in range), then the position
    inside    1 if the ring is one of those touched, 0 if there is nothing to forget
    """
    others, position = indices[:-1], indices[-1]
    window = kept.type.window
    following = e.get(kept.following, others)
    oldest = e.most(e.minus(following, window), 0)
    near, there = e.held(position, oldest, following)
    lengths = [e.times(inside, there)]
    lengths += lower_auto.grown_shape(e, kept, lower_auto.present(e, kept))
    slot = e.modulo(near, window)
    for at in (slot, e.plus(slot, window)):
        _fill(e, kept, [*others, at], lengths)


def _newest(e: Emitter, op: state.CacheWrite, start: Value, window: int) -> tuple[Value, Value]:
    """The last W entries of a value that may be longer, and the position they start at."""
    count = op.value.shape[0]
    if isinstance(count, int):
        cut = e.add(Slice(op.value, 0, count - window, count))
        return cut.result, e.plus(start, count - window)
    left = e.least(e.size(count), window)
    extent = e.extent("newest", window)
    e.add(ExtentBind(left, extent, INDEX, INDEX, op.value.hint, checked=True))
    dropped = e.minus(e.size(count), left)
    cut = e.add(Slice(op.value, 0, dropped, count, 1, dims.of(extent)))
    return cut.result, e.plus(start, dropped)


def _fill(e: Emitter, kept: StateVariable, offsets: list[Value], lengths: list[Any]) -> None:
    """Initial values in positions of one ring."""
    ones = [1] * kept.outer
    e.add(state.StateFill(kept.state, offsets, [*ones, *lengths], kept.op.init))
