"""What the ops that are no operators do: structure, index arithmetic, checks, persistent state."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from oic import dtypes
from oic.diagnostics import StepError
from oic.dtypes import Array
from oic.ir import control, index, state
from oic.ir.core import Op, Value
from oic.operators.evaluate import compute, part_of, shape_of, stepped
from oic.operators.part import Insert, PartEntry
from oic.operators.refusal import refusal
from oic.reference.interpret import SEMANTICS, Machine
from oic.reference.state_storage import IntegerBox


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


def _integer(value: Callable[[Machine, Any], int]) -> Callable[[Machine, Any], None]:
    """What an op with one integer as its result does, by what it gives; outside 64 bits it is a refusal."""

    def run(m: Machine, op: Any) -> None:
        number = value(m, op)
        if not dtypes.i64.low <= number <= dtypes.i64.high:
            raise refusal(op, 0, 0)
        m.values[op.result] = number

    return run


def _arithmetic(function: Callable[[int, int], int]) -> Callable[[Machine, Any], None]:
    return _integer(lambda m, op: function(*m.integers(op.operands)))


def _bind(m: Machine, op: Any) -> None:
    value, most = m.integer(op.value), op.extent.maximum
    if not 0 <= value <= most:
        raise refusal(op, value, 0 if value < 0 else most)
    m.sizes[op.extent.name] = value


def _check_range(m: Machine, op: Any) -> None:
    value, low, high = m.integers((op.value, op.low, op.high))
    if value < low or value > high:
        raise refusal(op, value if op.shown is None else m.integer(op.shown), low if value < low else high)


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
    if not m.see(op):
        m.write(op, [m.read(op.x)])


def _held(m: Machine, op: Any) -> int:
    """The integer that a state holds."""
    in_graph = m.variables.get(op.state.symbol)
    found = m.storage(op.state).read(_element(m, op)) if in_graph is None else in_graph.read("", [])
    return int(found.reshape(-1)[0])


def _element(m: Machine, op: Any) -> IntegerBox:
    """The one element that `indices` select."""
    storage = m.storage(op.state)
    start = tuple(m.integers(op.indices))
    return start + (0,) * (len(storage.shape) - len(start)), (1,) * len(storage.shape)


def _put(m: Machine, op: Any, box: IntegerBox, values: Array) -> None:
    """Write a box of the state that an op is about."""
    m.effects = True
    m.storage(op.state).write(box, values)


def _state_set(m: Machine, op: Any) -> None:
    dtype, box = op.state.type.dtype, _element(m, op)
    value = dtypes.store(dtypes.wrap(np.asarray(m.integer(op.value)), dtype), dtype)
    _put(m, op, box, np.full(box[1], value))


def _reached(m: Machine, op: Any) -> int:
    """One more than the largest position along an axis with a flag."""
    box = box_of(m, op)
    found = np.nonzero(m.storage(op.state).read(box))[op.axis]
    return box[0][op.axis] + int(found.max()) + 1 if len(found) else 0


def _state_double(m: Machine, op: Any) -> None:
    (start, lengths), window, axis = box_of(m, op), op.state.type.window, len(op.offsets) - 1
    first, count = start[axis], lengths[axis]
    assert 0 <= first < window and count <= window, f"state.double of {count} from {first} on, of {window}"

    def entry(slot: int) -> IntegerBox:
        return (*start[:axis], slot, *start[axis + 1 :]), (*lengths[:axis], 1, *lengths[axis + 1 :])

    for slot in range(first, first + count):
        _put(m, op, entry((slot + window) % (2 * window)), m.storage(op.state).read(entry(slot)))


def _state_add(m: Machine, op: Any) -> None:
    box = _element(m, op)
    _put(m, op, box, stepped(m.storage(op.state).read(box), m.integer(op.amount), op.state.type.dtype))


def box_of(m: Machine, op: Any) -> IntegerBox:
    """The box of a state that an op reads or writes."""
    shape = m.storage(op.state).shape
    start = m.integers(op.offsets) + [0] * (len(shape) - len(op.offsets))
    lengths = [1 if n is None else m.integer(n) if isinstance(n, Value) else m.size(n) for n in op.lengths]
    return tuple(start), tuple(lengths)


def _state_load(m: Machine, op: Any) -> None:
    storage, box = m.storage(op.state), box_of(m, op)
    if not m.see(op, storage.at(box)):
        m.write(op, [storage.read(box).reshape(shape_of(op.result.tensor, m.sizes))])


def _state_entry(m: Machine, op: Any) -> None:
    assert m.places is not None, "entries are memory, which only PLANNED has"
    m.places.enter(op.symbol, m.storage(op.state).at(box_of(m, op)), op.state.type.dtype)


def _part_entry(m: Machine, op: Any) -> None:
    assert m.places is not None, "entries are memory, which only PLANNED has"
    m.places.enter_part(op, part_of(m.integers(op.offsets), op.lengths, m.sizes))


def _computed_unless(there: str) -> Callable[[Machine, Any], None]:
    """An op that writes nothing in PLANNED where this attribute says so."""

    def run(m: Machine, op: Any) -> None:
        if m.places is None or not getattr(op, there):
            m.write(op, compute(op, m.read, m.sizes))

    return run


def _state_store(m: Machine, op: Any) -> None:
    box = box_of(m, op)
    _put(m, op, box, m.read(op.value).reshape(box[1]))


def _state_fill(m: Machine, op: Any) -> None:
    box = box_of(m, op)
    value: Any = m.read(op.value) if isinstance(op.value, Value) else op.value
    stored = dtypes.store(np.asarray(value), op.state.type.dtype)
    _put(m, op, box, np.broadcast_to(stored.reshape(-1)[0], box[1]))


ARITHMETIC: dict[type[Op], Callable[[int, int], int]] = {
    index.IndexAdd: operator.add,
    index.IndexSub: operator.sub,
    index.IndexMul: operator.mul,
    index.IndexMin: min,
    index.IndexMax: max,
    index.IndexDiv: lambda a, b: a // b if b > 0 else 0,
    index.IndexMod: lambda a, b: a % b if b > 0 else 0,
    index.IndexEnd: lambda end, count: end + count if end < 0 else end,
}
INTEGERS: dict[type[Op], Callable[[Machine, Any], int]] = {
    index.IndexConst: lambda m, op: op.value,
    index.IndexSize: lambda m, op: m.size(op.size),
    index.IndexLoad: lambda m, op: int(m.read(op.x).reshape(-1)[0]),
    index.IndexWhen: lambda m, op: m.integer(op.value) if m.integer(op.test) > 0 else 0,
    index.IndexWrap: lambda m, op: int(dtypes.wrap(np.asarray(m.integer(op.value)), op.dtype)),
    state.CacheCount: lambda m, op: m.variable(op).count(op.axis, m.integers(op.indices)),
    state.StateGet: _held,
    state.StateReach: _reached,
}
SEMANTICS.update({kind: _arithmetic(function) for kind, function in ARITHMETIC.items()})
SEMANTICS.update({kind: _integer(value) for kind, value in INTEGERS.items()})
SEMANTICS.update({
    control.For: _for,
    control.If: _if,
    control.Parallel: _parallel,
    control.Barrier: lambda m, op: None,
    control.CheckIterations: _check_iterations,
    control.Cond: lambda m, op: m.write(op, [np.asarray(m.integer(op.left) < m.integer(op.right))]),
    index.ExtentBind: _bind,
    index.CheckRange: _check_range,
    index.CheckIds: _check_ids,
    index.AssertShape: _assert_shape,
    state.CacheRead: lambda m, op: m.write(op, [m.variable(op).read(op.form, m.integers(op.indices))]),
    state.CacheWrite: lambda m, op: m.variable(op).write(op.form, m.integers(op.indices), m.read(op.value)),
    state.CacheStep: lambda m, op: m.variable(op).step(m.integers(op.indices), m.integer(op.amount)),
    state.CacheReset: lambda m, op: m.variable(op).reset(m.integers(op.indices)),
    state.StateSet: _state_set,
    state.StateAdd: _state_add,
    state.StateDouble: _state_double,
    state.StateLoad: _state_load,
    state.StateEntry: _state_entry,
    state.StateStore: _state_store,
    state.StateFill: _state_fill,
    state.Splat: _computed_unless("unread"),  # what was there before may be anything
    Insert: _computed_unless("entry"),  # the part is there already
    PartEntry: _part_entry,
})
