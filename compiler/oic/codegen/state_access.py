"""Access to persistent state: boxes of the structure's arrays, single integers."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from oic import dtypes
from oic.codegen import c_tree as c
from oic.codegen import expressions as expr
from oic.codegen import loops
from oic.codegen.c_module import StateMember, Unit
from oic.codegen.elementwise import cast, immediate
from oic.codegen.expressions import Index
from oic.codegen.function_context import STATE, WHY, Frame, Ref, part_at
from oic.codegen.loops import Nest, collapsed, copy, element, size_in_bytes, whole
from oic.ir import state
from oic.ir.core import Op
from oic.ir.dims import Dim
from oic.ir.types import TensorType
from oic.memory.state_regions import Box


def box(frame: Frame, op: Any, field: StateMember, shape: tuple[Dim, ...]) -> Ref:
    """The elements of the state that an op is about, from its offsets on.

    The address is that of the smallest array that holds the whole box, and what is beyond its start
    is added: an index past the end of an inner array has no meaning in C.
    """
    dtype, steps, lengths = field.type.dtype, field.strides, op.lengths
    offsets = [frame.index(o) for o in op.offsets] + [expr.ZERO] * (len(steps) - len(op.offsets))
    lead = next((i for i, n in enumerate(lengths) if n is not None and n != 1), len(lengths))
    if dtype.packed:
        lead = min(lead, len(field.type.table))
    rest = expr.linear(zip(offsets[lead:], map(expr.number, steps[lead:]), strict=True))
    pointer = address(field, offsets[:lead])
    key: tuple[Any, ...] | None = None
    if all(o.number is not None for o in offsets) and not dtype.packed:
        at = sum((o.number or 0) * s for o, s in zip(offsets, steps))
        key = ("state", "", field.offset + at * dtype.align)
    strides = tuple(s for s, n in zip(steps, lengths, strict=True) if n is not None)
    return part_at(pointer, rest, TensorType(dtype, shape), strides, key)


def load(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.load`: a view of a box."""
    base = box(frame, op, field, op.result.shape)
    hint, type_ = op.result.hint or field.member, op.result.tensor
    pointer = frame.pointer(hint, type_, base.pointer, True, str(type_))
    place = op.result.place
    key = ("entry", place.buffer, 0) if place is not None and place.space == "entry" else base.key
    frame.refs[op.result] = Ref(pointer, type_, base.strides, True, base.start, key)


def entry(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.entry`: a pointer to a box that values are computed in."""
    base = box(frame, op, field, op.box.shape)
    frame.entry(op.symbol, base, "in the state", hint=field.member)
    for value in frame.unit.loads.get(Box.of(op).key(frame.unit.ranges), ()):
        if value in frame.refs:  # what was loaded from there is the same memory
            frame.refs[value] = replace(frame.refs[value], key=("entry", op.symbol, 0))


def store(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.store`: copy a value into a box, unless it was computed there."""
    if op.entry:
        return
    target = box(frame, op, field, op.value.shape)
    if (found := immediate(frame, op.value)) is not None:
        loops.fill(frame, target, found)
    else:
        copy(frame, frame.refs[op.value], target)


def fill(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.fill`: one value in every element of a box."""
    fill_box(frame, box(frame, op, field, ()), [frame.number(n) for n in op.lengths], op.value, field)


def fill_box(frame: Frame, target: Ref, lengths: list[Index], value: Any, field: StateMember) -> None:
    """Loops that set a box of a variable to a constant; whole runs of zeros are a memset."""
    sizes, strides = collapsed(lengths, field.strides)
    dtype = field.type.dtype
    runs = bool(sizes) and strides[-1] == 1 and not dtype.packed and dtypes.is_zeros(value, dtype)
    if sizes and not runs and not dtype.packed:
        target = frame.named(target, field.member)
    with Nest(frame, sizes[:-1] if runs else sizes) as nest:
        at = nest.index(strides[: len(nest.sizes)], target.start)
        if runs:
            nbytes = size_in_bytes(sizes[-1], dtype, clamped=True)
            frame.body.add(c.call("memset", whole(c.total(target.pointer, at)), 0, nbytes))
        elif dtype.packed:
            frame.body.add(loops.store(target, at, expr.literal(value, dtype)))
        else:
            note = str(value) if dtype.narrow and not math.isnan(float(value)) else ""
            frame.body.add(c.AssignStatement(element(target, at), expr.stored_literal(value, dtype), note))


def get(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.get`: a persistent integer in a local variable."""
    found = single(frame, op, field)
    if field.op.limit is not None and op.indices:  # `next` of one of many rings; others are checked before anything
        frame.attempt(count_check(field.op.symbol, found, field.op.limit))
    frame.integer(op, field.member, field.op.symbol, found, field.type.dtype)


def count_check(symbol: str, count: c.Expression, limit: int) -> c.Expression:
    """A count is one that there can be."""
    return c.call("oic_check_count", WHY, c.string(symbol), count, expr.integer(limit))


def counts(unit: Unit, func: Any, kind: type[state.StateGet | state.StateSet]) -> list[StateMember]:
    """The counts that ops of a kind get or set in a function, without those in tables."""
    states = (op.state for op in func.body.all_ops() if isinstance(op, kind) and not op.indices)
    return [field for field in dict.fromkeys(map(unit.by_state.__getitem__, states)) if field.op.limit is not None]


def count_checks(unit: Unit, func: Any) -> Iterator[c.Expression]:
    """Before anything else: the counts that a function reads are some, for they address memory."""
    read = counts(unit, func, state.StateGet)
    for field in read:
        yield count_check(field.op.symbol, member(field), field.op.limit)
    if read:
        yield c.call("oic_check_counts", WHY, c.call(f"{unit.name}_counts_hold", STATE))


def set_(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.set`: store an integer, wrapping to the width of its type."""
    frame.body.add(c.AssignStatement(single(frame, op, field), cast(frame.index(op.value), field.type.dtype.c)))


def reach(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.reach`: a search of the marks from the last position down, for each place along the other axes."""
    lengths = [frame.number(n) for n in op.lengths]
    target, steps = box(frame, op, field, ()), list(field.strides)
    rows, row = lengths.pop(op.axis), steps.pop(op.axis)
    sizes, strides = collapsed(lengths, steps)
    marks, step = (sizes.pop(), strides.pop()) if sizes else (expr.number(1), 1)
    numbers = [expr.signed(n) for n in (rows, expr.number(row), marks, expr.number(step))]
    frame.unit.headers.add("state/marks.h")

    def search(first: c.Expression) -> c.Expression:
        return c.call("oic_marked_rows", first, *numbers)

    hint = op.result.hint or "reached"
    if sizes:
        target = frame.named(target, field.member)
        found = frame.variable(hint, "int64_t", expr.ZERO.value)
        with Nest(frame, sizes) as nest:
            here = search(c.total(target.pointer, nest.index(strides)))
            frame.body.add(c.AssignStatement(found, c.call("oic_index_max", found, here)))
    else:
        found = frame.local(hint, search(target.pointer))
    start = frame.index(op.offsets[op.axis]) if op.axis < len(op.offsets) else expr.ZERO
    if start.number != 0:
        some = c.Infix(">", found, expr.ZERO.value)
        found = frame.local(hint, c.Conditional(some, c.Infix("+", start.value, found), expr.ZERO.value))
    frame.indices[op.result] = Index(found)


def double(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.double`: a call where entries are whole, else a loop over slots."""
    type_, axis = field.type, len(op.offsets) - 1
    *ring, slot = (frame.index(o) for o in op.offsets)
    lengths, steps = [frame.number(n) for n in op.lengths], field.strides
    first = address(field, ring)
    frame.unit.headers.add("state/ring.h")
    if tuple(op.lengths[axis + 1 :]) != type_.capacity_shape[axis + 1 :]:
        base = Ref(first, TensorType(type_.dtype), (), False)
        _double_parts(frame, frame.named(base, field.member), slot, (lengths[axis:], steps[axis:]), type_.window)
        return
    stride = size_in_bytes(expr.number(steps[axis]), type_.dtype)
    frame.body.add(c.call("oic_ring_double", whole(first), type_.window, stride, slot.value, lengths[axis].value))


def _double_parts(
    frame: Frame, ring: Ref, first: Index, box: tuple[Sequence[Index], Sequence[int]], window: int
) -> None:
    """`state.double` of the parts of entries that they have grown to; `box`: slots and sizes, and their strides."""
    (count, *lengths), (stride, *steps) = box
    sizes, strides = collapsed(lengths, steps)
    dtype = ring.type.dtype
    lone = dtype.packed or not sizes or strides[-1] != 1  # no neighbours: one element at a time
    run = expr.number(1) if lone else sizes.pop()
    nest = Nest(frame, [count, *sizes])
    nest.open()
    slot = frame.local("slot", c.total(first.value, c.Identifier(nest.counters[0])))
    other = frame.local("other", c.call("oic_ring_other", slot, window))
    source, target = (c.times(at, stride) for at in (slot, other))
    with nest:
        there = nest.index([0, *strides[: len(sizes)]])
        source, target = c.total(source, there), c.total(target, there)
        if dtype.packed:
            frame.body.add(loops.store(ring, target, loops.load(ring, source)))
        else:
            to, from_ = (c.total(ring.pointer, at) for at in (target, source))
            frame.body.add(c.call("memcpy", to, from_, size_in_bytes(run, dtype)))


def add(frame: Frame, op: Any, field: StateMember) -> None:
    """`state.add`: add an integer, wrapping, or rounding in the type of the variable."""
    dtype, there, amount = field.type.dtype, single(frame, op, field), frame.index(op.amount)
    if dtype.is_float:
        here, known = Ref(c.Prefix("&", there), TensorType(dtype), (), False), amount.number
        by = c.Conversion(dtype.value, amount.value) if known is None else expr.literal(known, dtype)
        total = c.Infix("+", loops.load(here, expr.ZERO.value), by)
        frame.body.add(loops.store(here, expr.ZERO.value, total))
        return
    added: c.Expression
    word = dtypes.u64 if dtype.bits == 64 else dtypes.u32  # unsigned arithmetic wraps
    if amount.number is None:
        sign, added = "+", c.Conversion(word.c, amount.value)
    else:
        sign, added = "-" if amount.number < 0 else "+", expr.literal(abs(amount.number) % (1 << word.bits), word)
    frame.body.add(c.AssignStatement(there, c.Conversion(dtype.c, c.Infix(sign, c.Conversion(word.c, there), added))))


# What writes an op on a variable of the state.
WRITERS: dict[type[Op], Callable[[Frame, Any, StateMember], None]] = {
    state.StateGet: get,
    state.StateReach: reach,
    state.StateDouble: double,
    state.StateSet: set_,
    state.StateLoad: load,
    state.StateAdd: add,
    state.StateStore: store,
    state.StateFill: fill,
    state.StateEntry: entry,
}


def member(field: StateMember) -> c.Expression:
    """A variable of the state."""
    return c.Member(STATE, field.member)


def single(frame: Frame, op: Any, field: StateMember) -> c.Expression:
    """The element that an op is about: of a variable that has one, or of a table of scalars."""
    return _part(field, [*map(frame.index, op.indices), *[expr.ZERO] * (len(field.storage) - len(op.indices))])


def address(field: StateMember, places: Sequence[Index]) -> c.Expression:
    """The first element of the part that these leading indices select."""
    found = _part(field, places)
    match len(field.storage) - len(places):
        case 0:
            return c.Prefix("&", found)
        case 1:
            return found
    return c.Conversion(c.Pointer(field.type.dtype.c), found)


def _part(field: StateMember, places: Sequence[Index]) -> c.Expression:
    return reduce(lambda part, place: c.Element(part, place.value), places, member(field))
