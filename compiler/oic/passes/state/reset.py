"""Resets of a whole variable and of the entries with some leading indices (SPEC, 8.2).

    cache.reset(%K, [])      =>    %n = state.get(%K.t)
                                   state.fill(%K, []) {lengths=[%n, 64], value=0}
                                   state.set(%K.t, 0)

    cache.reset(%K, [%l])    =>    %any = state.reach(%K.entry.touched, [%l]) {lengths=[1, %n], axis=0}
                                   if 0 < %any {
                                     state.fill(%K, [%l]) {lengths=[1, %n, 64], value=0}
                                     state.fill(%K.entry.touched, [%l]) {lengths=[1, %n], value=0}
                                     %m = state.reach(%K.entry.touched, []) {lengths=[%l.n, %n], axis=1}
                                     state.set(%K.t, %m) ...
                                   }

Only the box reached so far is looked at; where nothing can be touched (an index outside it) the
box that is asked is empty.
"""

from functools import reduce
from typing import Any

from oic.ir.control import Cond, If, Yield
from oic.ir.core import Block, Value
from oic.ir.state import StateFill, StateReach
from oic.passes.state import auto as lower_auto
from oic.passes.state import ring as lower_ring
from oic.passes.state.emitter import Emitter, StateVariable


def lower_reset(e: Emitter, kept: StateVariable, indices: list[Value]) -> None:
    """Forget everything, or what has these leading indices."""
    if not indices:
        _whole(e, kept)
        return
    reach = _reach(e, kept)
    held = [e.held(index, 0, n) for index, n in zip(indices, reach)]
    offsets, inside = [e.times(*one) for one in held], [one for _, one in held]  # 0 and 0 outside of 0..reach-1
    if len(indices) > kept.outer:
        lower_ring.forget(e, kept, [*offsets, indices[-1]], reduce(e.times, inside, e.value(1)))
        return
    assert kept.touched is not None
    lengths = [*inside, *reach[len(indices) :]]
    touched = e.add(StateReach(kept.touched, offsets, lengths, 0)).result
    condition = e.add(Cond(e.value(0), touched)).result
    then = Emitter(e.numbers, e.span)
    _part(then, kept, indices, reach)
    then.add(Yield([]))
    e.add(If(condition, [], Block(ops=then.ops), Block(ops=[Yield([])])))


def _whole(e: Emitter, kept: StateVariable) -> None:
    reach = _reach(e, kept)
    if kept.filled:
        for mark in kept.filled.values():  # all of it is filled again when it is reached again
            e.set(mark, 0)
    else:
        e.add(StateFill(kept.state, [], [*reach, *_entry(e, kept)], kept.op.init))
    if kept.touched is not None:
        e.add(StateFill(kept.touched, [], list(reach), 0))
    if kept.type.ring:
        if reach:
            e.add(StateFill(kept.following, [], list(reach), 0))
        else:
            e.set(kept.following, 0)
    for count in kept.counts.values():
        e.set(count, 0)


def _part(e: Emitter, kept: StateVariable, indices: list[Value], reach: list[Value]) -> None:
    """What is done where something is touched: the indices are inside the box."""
    assert kept.touched is not None
    lengths: list[Any] = [1] * len(indices) + list(reach[len(indices) :])
    e.add(StateFill(kept.state, list(indices), [*lengths, *_entry(e, kept)], kept.op.init))
    e.add(StateFill(kept.touched, list(indices), lengths, 0))
    if kept.type.ring:
        e.add(StateFill(kept.following, list(indices), lengths, 0))
    for axis, spec in enumerate(kept.type.table):
        if not spec.fixed:
            left = e.add(StateReach(kept.touched, [], list(reach), axis)).result
            e.set(kept.counts[axis], left)


def _reach(e: Emitter, kept: StateVariable) -> list[Value]:
    """How far each table index has come, also where the source fixes its size."""
    return [e.get(kept.counts[axis]) for axis in range(kept.outer)]


def _entry(e: Emitter, kept: StateVariable) -> list[Any]:
    """Lengths of an entry as it has grown, after all slots of a ring."""
    slots = [2 * kept.type.window] if kept.type.ring else []
    return slots + lower_auto.grown_shape(e, kept, lower_auto.present(e, kept))
