"""Reads and writes of tables and of plain variables (SPEC, 8.1 to 8.3).

    cache.write(%K, %v, [%l, %t]) {form="ii"}     =>    check.range(%l, 0, 5)
                                                        check.range(%t, 0, 511)
                                                        state.store(%K, [%l, %t], %v)
                                                        %n = state.get(%K.t)
                                                        %m = index.max(%n, index.add(%t, 1))
                                                        state.set(%K.t, %m)

    %x = cache.read(%K, [%l, %a, %b]) {form="is"} =>    check.range(%l, 0, 5)
                                                        check.range(%a, 0, %b)
                                                        check.range(%b, %a, 512)
                                                        %x = state.load(%K, [%l, %a])

Every check of an operation comes before its first effect.  A count is raised only where something
is stored: a slice may be empty.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from oic.ir import dims, state
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.passes.state import auto as lower_auto
from oic.passes.state.emitter import FULL, Emitter, Position, StateVariable


def lower_read(e: Emitter, kept: StateVariable, op: state.CacheRead, at: list[Position]) -> Value:
    """The value read: a view of the storage."""
    table = len(kept.type.table)
    entries, rest = at[:table], at[table:]
    check_positions(e, kept, entries)
    growth = read_raises(e, kept, entries, rest, scalar=all(p.end is None for p in entries))
    return load(e, kept, op, at if growth.part else entries)


def read_raises(
    e: Emitter, kept: StateVariable, entries: list[Position], rest: list[Position], *, scalar: bool
) -> lower_auto.Growth:
    """What a read of some entries fills, counts and touches; `scalar`: of one alone."""
    growth = lower_auto.check_growth(e, kept, rest)
    fill(e, kept, entries, growth)
    grow(e, kept, entries, growth, slices=False)
    if kept.touched is not None and not growth.part and scalar:
        e.set(kept.touched, 1, starts(entries))
    return growth


def lower_write(e: Emitter, kept: StateVariable, op: state.CacheWrite | state.CacheStep, at: list[Position]) -> None:
    """Store a value, which has the shape that a read would give (`lower` compared them), or step one scalar."""
    table = len(kept.type.table)
    entries, rest = at[:table], at[table:]
    check_positions(e, kept, entries)
    growth = lower_auto.check_growth(e, kept, rest)
    fill(e, kept, entries, growth)
    lengths = box(entries, op.value.shape if isinstance(op, state.CacheWrite) else ())
    if isinstance(op, state.CacheWrite):
        e.add(state.StateStore(kept.state, starts(entries), lengths, op.value))
    else:
        e.add(state.StateAdd(kept.state, op.amount, op.indices))
    grow(e, kept, entries, growth, slices=True, stored=dims.product(n for n in lengths[:table] if n is not None))
    if kept.touched is None:
        return
    if all(p.end is None for p in entries):
        e.set(kept.touched, 1, starts(entries))
    else:
        sizes = [1 if n is None else n for n in lengths[:table]]
        e.add(state.StateFill(kept.touched, starts(entries), sizes, 1))


def check_positions(e: Emitter, kept: StateVariable, at: Sequence[Position]) -> None:
    """Bounds of the positions of table indices."""
    for axis, (position, index) in enumerate(zip(at, kept.type.table)):
        e.check_position(position, 0, index.capacity, FULL, kept.name(axis))


def starts(at: Sequence[Position]) -> list[Value]:
    """Where the box of an access starts."""
    return [p.start for p in at]


def box(at: Sequence[Position], shape: Sequence[Dim]) -> list[Any]:
    """Lengths of the box of a shape: None for scalar positions, sizes for slices and the entry."""
    sizes = list(shape)
    return [None if p.end is None else sizes.pop(0) for p in at] + sizes


def fill(e: Emitter, kept: StateVariable, at: Sequence[Position], growth: lower_auto.Growth) -> None:
    """Initial values in what an access reaches for the first time, along table indices and dimensions of entries."""
    ends = {axis: _end(e, position) for axis, position in enumerate(at) if axis in kept.filled}
    for axis, (count, base) in enumerate(zip(growth.counts, kept.type.shape), len(kept.type.table)):
        if axis in kept.filled:
            ends[axis] = e.plus(count, base)
    e.fill(kept, ends)


def grow(
    e: Emitter, kept: StateVariable, at: Sequence[Position], growth: lower_auto.Growth, *, slices: bool, stored: Dim = 1
) -> None:
    """Raise the counts of scalar positions, of slices by a write, if anything is stored."""
    own = ((axis, _end(e, p)) for axis, p in enumerate(at) if axis in kept.counts and (p.end is None or slices))
    for axis, reach in chain(own, growth.raised.items()):
        raised = e.when(e.size(stored), reach)
        e.set(kept.counts[axis], e.most(e.get(kept.counts[axis]), raised))


def _end(e: Emitter, at: Position) -> Value:
    """The position after those of an access along one index."""
    return at.end if at.end is not None else e.plus(at.start, 1)


def load(e: Emitter, kept: StateVariable, op: state.CacheRead, at: Sequence[Position]) -> Value:
    """The box as a view."""
    return e.add(state.StateLoad(kept.state, starts(at), box(at, op.type.shape), hint=op.result.hint)).result
