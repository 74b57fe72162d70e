"""What the ops that are no operators do: structure, index arithmetic, checks, persistent state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oic import dtypes
from oic.diagnostics import StepError
from oic.ir.control import Barrier, CheckIterations, Cond, For, If, Parallel
from oic.ir.core import Value
from oic.ir.index import (
    AssertShape,
    CheckIds,
    CheckRange,
    ExtentBind,
    IndexAdd,
    IndexConst,
    IndexDiv,
    IndexEnd,
    IndexLoad,
    IndexMax,
    IndexMin,
    IndexMod,
    IndexMul,
    IndexSize,
    IndexSub,
    IndexWhen,
    IndexWrap,
)
from oic.ir.state import (
    CacheCount,
    CacheRead,
    CacheReset,
    CacheStep,
    CacheWrite,
    Splat,
    StateAdd,
    StateDouble,
    StateEntry,
    StateFill,
    StateGet,
    StateLoad,
    StateReach,
    StateSet,
    StateStore,
)
from oic.operators.evaluate import compute, shape_of, stepped
from oic.operators.fused import Exchange
from oic.operators.part import Insert, PartEntry
from oic.operators.refusal import refusal
from oic.reference.interpret import Machine
from oic.reference.registry import SEMANTICS
from oic.reference.state_storage import Box
from oic.reference.variables import PersistentVariable

# -------------------------------------------------------------- structure


def _for(m: Machine, op: Any) -> None:
    first, last = m.integer(op.start), m.integer(op.end)
    carried = op.body.args[1:]
    m.flow(op.init, carried)
    for i in range(first, last):
        m.values[op.body.args[0]] = i
        m.run(op.body)
        m.flow(op.body.terminator.values, carried)
    m.flow(carried, op.results)


def _if(m: Machine, op: Any) -> None:
    taken = op.then if bool(m.read(op.condition).reshape(-1)[0]) else op.orelse
    m.run(taken)
    m.flow(taken.terminator.values, op.results)


def _parallel(m: Machine, op: Any) -> None:
    for region in op.consumers:
        m.run(region)
    m.flow(op.yielded, op.results)


def _check_iterations(m: Machine, op: Any) -> None:
    try:
        m.run(op.ends)
    except StepError:
        m.run(op.iterations)
        raise


def _test(m: Machine, op: Any) -> None:
    m.write(op, [np.asarray(m.integer(op.left) < m.integer(op.right))])


def _nothing(m: Machine, op: Any) -> None:
    """A barrier orders; it does nothing."""


# ------------------------------------------------------- index arithmetic


def _arithmetic(function: Callable[[int, int], int]) -> Callable[[Machine, Any], None]:
    def run(m: Machine, op: Any) -> None:
        left, right = (m.integer(v) for v in op.operands)
        m.values[op.result] = m.exact(function(left, right), op)

    return run


def _wrap(m: Machine, op: Any) -> None:
    m.values[op.result] = int(dtypes.wrap(np.asarray(m.integer(op.value)), op.dtype))


def _when(m: Machine, op: Any) -> None:
    m.values[op.result] = m.integer(op.value) if m.integer(op.test) > 0 else 0


def _const(m: Machine, op: Any) -> None:
    m.values[op.result] = m.exact(op.value, op)


def _size(m: Machine, op: Any) -> None:
    m.values[op.result] = m.exact(m.size(op.size), op)


def _load_index(m: Machine, op: Any) -> None:
    m.values[op.result] = m.exact(int(m.read(op.x).reshape(-1)[0]), op)


def _bind(m: Machine, op: Any) -> None:
    value, most = m.integer(op.value), op.extent.maximum
    if not 0 <= value <= most:
        raise refusal(op, value, 0 if value < 0 else most)
    m.sizes[op.extent.name] = value


def _check_range(m: Machine, op: Any) -> None:
    value, low, high = (m.integer(v) for v in (op.value, op.low, op.high))
    if value < low or value > high:
        shown = value if op.shown is None else m.integer(op.shown)
        raise refusal(op, shown, low if value < low else high)


def _check_ids(m: Machine, op: Any) -> None:
    ids, bound = m.read(op.x).reshape(-1), m.size(op.bound)
    wrong = np.flatnonzero((ids < 0) | (ids >= bound))
    if len(wrong):
        raise refusal(op, int(ids[wrong[0]]), bound)


def _assert_shape(m: Machine, op: Any) -> None:
    wanted = tuple(m.size(d) for d in op.shape)
    actual = shape_of(op.x.tensor, m.sizes)
    if actual != wanted:
        axis = next(i for i, (a, b) in enumerate(zip(actual, wanted)) if a != b)
        raise refusal(op, actual[axis], wanted[axis])
    if m.places is not None and m.places.is_view(op):
        m.places.view(op, m.read, None, None)
    else:
        m.write(op, [m.read(op.x)])


# ------------------------------------------------------- cache operations


def _cache_read(m: Machine, op: Any) -> None:
    found = m.variable(op).read(op.form, [m.integer(i) for i in op.indices])
    m.write(op, [found])


def _cache_write(m: Machine, op: Any) -> None:
    m.variable(op).write(op.form, [m.integer(i) for i in op.indices], m.read(op.value))


def _cache_step(m: Machine, op: Any) -> None:
    m.variable(op).step([m.integer(i) for i in op.indices], m.integer(op.amount))


def _cache_reset(m: Machine, op: Any) -> None:
    m.variable(op).reset([m.integer(i) for i in op.indices])


def _cache_count(m: Machine, op: Any) -> None:
    m.values[op.result] = m.variable(op).count(op.axis, [m.integer(i) for i in op.indices])


# ---------------------------------------------------------------- storage


def _state_get(m: Machine, op: Any) -> None:
    state = m.state(op.state)
    if isinstance(state, PersistentVariable):
        m.values[op.result] = m.exact(int(state.read("", []).reshape(-1)[0]), op)
        return
    storage = m.storage(op.state)
    m.values[op.result] = m.exact(int(storage.read(_element(m, op)).reshape(-1)[0]), op)


def _element(m: Machine, op: Any) -> Box:
    """The one element that `indices` select."""
    storage = m.storage(op.state)
    start = tuple(m.integer(i) for i in op.indices)
    return start + (0,) * (len(storage.shape) - len(start)), (1,) * len(storage.shape)


def _state_set(m: Machine, op: Any) -> None:
    storage = m.storage(op.state)
    dtype = storage.type.dtype
    value = dtypes.store(dtypes.wrap(np.asarray(m.integer(op.value)), dtype), dtype)
    m.effects = True
    box = _element(m, op)
    storage.write(box, np.full(box[1], value))


def _state_reach(m: Machine, op: Any) -> None:
    storage, (start, lengths) = m.storage(op.state), box_of(m, op)
    found = np.nonzero(storage.read((start, lengths)))[op.axis]
    m.values[op.result] = start[op.axis] + int(found.max()) + 1 if len(found) else 0


def _state_double(m: Machine, op: Any) -> None:
    storage, (start, lengths) = m.storage(op.state), box_of(m, op)
    axis, window = len(op.offsets) - 1, op.state.type.window
    first, count = start[axis], lengths[axis]
    assert 0 <= first < window and count <= window, f"state.double of {count} from {first} on, of {window}"
    m.effects = True
    for slot in range(first, first + count):
        here, there = (
            ((*start[:axis], at, *start[axis + 1 :]), (*lengths[:axis], 1, *lengths[axis + 1 :]))
            for at in (slot, slot + window if slot < window else slot - window)
        )
        storage.write(there, storage.read(here))


def _state_add(m: Machine, op: Any) -> None:
    storage = m.storage(op.state)
    m.effects = True
    box = _element(m, op)
    storage.write(box, stepped(storage.read(box), m.integer(op.amount), storage.type.dtype))


def box_of(m: Machine, op: Any) -> Box:
    """The box of a state that an op reads or writes."""
    shape = m.storage(op.state).shape
    start = [m.integer(o) for o in op.offsets] + [0] * (len(shape) - len(op.offsets))
    lengths = [
        1 if n is None else m.integer(n) if isinstance(n, Value) else m.size(n) for n in op.lengths
    ]
    return tuple(start), tuple(lengths)


def _state_load(m: Machine, op: Any) -> None:
    storage, box = m.storage(op.state), box_of(m, op)
    if m.places is not None and m.places.is_view(op):
        m.places.view(op, m.read, storage, box)
        return
    kept = tuple(n for n, m_ in zip(box[1], op.lengths) if m_ is not None)
    m.write(op, [storage.read(box).reshape(kept)])


def _state_entry(m: Machine, op: Any) -> None:
    assert m.places is not None, "entries are memory, which only PLANNED has"
    m.places.enter(op, m.storage(op.state), box_of(m, op))


def _part_entry(m: Machine, op: Any) -> None:
    assert m.places is not None, "entries are memory, which only PLANNED has"
    rest = tuple(m.size(n) for n in op.x.shape[len(op.offsets) :])
    lengths = tuple(1 if n is None else m.size(n) for n in op.lengths)
    m.places.enter_part(op, ((*map(m.integer, op.offsets), *(0 for _ in rest)), (*lengths, *rest)))


def _splat(m: Machine, op: Any) -> None:
    if m.places is None or not op.unread:
        m.write(op, compute(op, m.read, m.sizes))  # else what was there before may be anything


def _insert(m: Machine, op: Any) -> None:
    if m.places is None or not op.entry:
        m.write(op, compute(op, m.read, m.sizes))  # else the part is there already


def _exchange(m: Machine, op: Any) -> None:
    if m.places is not None:
        m.places.exchange(op)
    else:
        m.flow(op.values, op.results)


def _state_store(m: Machine, op: Any) -> None:
    storage, box = m.storage(op.state), box_of(m, op)
    m.effects = True
    storage.write(box, m.read(op.value).reshape(box[1]))


def _state_fill(m: Machine, op: Any) -> None:
    storage, box = m.storage(op.state), box_of(m, op)
    value: Any = m.read(op.value) if isinstance(op.value, Value) else op.value
    m.effects = True
    stored = dtypes.store(np.asarray(value), storage.type.dtype)
    storage.write(box, np.broadcast_to(stored.reshape(-1)[0], box[1]))


SEMANTICS.update({
    For: _for,
    If: _if,
    Parallel: _parallel,
    Barrier: _nothing,
    CheckIterations: _check_iterations,
    Exchange: _exchange,
    Cond: _test,
    IndexConst: _const,
    IndexAdd: _arithmetic(lambda a, b: a + b),
    IndexSub: _arithmetic(lambda a, b: a - b),
    IndexMul: _arithmetic(lambda a, b: a * b),
    IndexMin: _arithmetic(min),
    IndexMax: _arithmetic(max),
    IndexDiv: _arithmetic(lambda a, b: a // b if b > 0 else 0),
    IndexMod: _arithmetic(lambda a, b: a % b if b > 0 else 0),
    IndexEnd: _arithmetic(lambda end, count: end + count if end < 0 else end),
    IndexWhen: _when,
    IndexWrap: _wrap,
    IndexSize: _size,
    IndexLoad: _load_index,
    ExtentBind: _bind,
    CheckRange: _check_range,
    CheckIds: _check_ids,
    AssertShape: _assert_shape,
    CacheRead: _cache_read,
    CacheWrite: _cache_write,
    CacheStep: _cache_step,
    CacheReset: _cache_reset,
    CacheCount: _cache_count,
    StateGet: _state_get,
    StateSet: _state_set,
    StateAdd: _state_add,
    StateReach: _state_reach,
    StateDouble: _state_double,
    StateLoad: _state_load,
    StateEntry: _state_entry,
    Splat: _splat,
    PartEntry: _part_entry,
    Insert: _insert,
    StateStore: _state_store,
    StateFill: _state_fill,
})
