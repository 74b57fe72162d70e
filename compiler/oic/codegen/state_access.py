"""Access to persistent state: boxes of the structure's arrays, single integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from oic.codegen import expressions as expr
from oic.codegen.c_module import Field, Unit
from oic.codegen.elementwise import cast, immediate
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref
from oic.codegen.loops import COUNTERS, Nest, broadcast_strides, collapse, copy, element, whole
from oic.codegen.loops import load as load_element
from oic.codegen.loops import store as store_element
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.ir.state import StateGet, StateSet
from oic.ir.types import TensorType
from oic.memory import layout
from oic.memory.state_regions import Box


def box(
    frame: Frame, state: Value, offsets: list[Index], lengths: list[Any], shape: tuple[Dim, ...]
) -> Ref:
    """The elements of a state from a position on; `lengths` as in `state.load`.

    The address is that of the smallest array that holds the whole box, and what is beyond its start
    is added: an index past the end of an inner array has no meaning in C.
    """
    field = frame.unit.by_state[state]
    dtype, steps = field.type.dtype, layout.storage_strides(field.type)
    offsets = offsets + [expr.number(0)] * (len(steps) - len(offsets))
    lead = next((i for i, n in enumerate(lengths) if n is not None and n != 1), len(lengths))
    if dtype.packed:
        lead = min(lead, len(field.type.table))
    rest = _linear(offsets[lead:], steps[lead:])
    pointer = address(field, offsets[:lead])
    key: tuple[Any, ...] | None = None
    if all(o.number is not None for o in offsets) and not dtype.packed:
        at = sum((o.number or 0) * s for o, s in zip(offsets, steps))
        key = ("state", "", field.offset + at * dtype.align)
    strides = tuple(s for s, n in zip(steps, lengths, strict=True) if n is not None)
    if dtype.packed:
        return Ref(pointer, TensorType(dtype, shape), strides, False, rest, key)
    if rest.number != 0:
        pointer = f"{pointer} + {rest.at(expr.PRODUCT)}"
    return Ref(pointer, TensorType(dtype, shape), strides, False, key=key)


def load(frame: Frame, op: Any) -> None:
    """`state.load`: a view of a box."""
    field = frame.unit.by_state[op.state]
    base = box(frame, op.state, [frame.index(o) for o in op.offsets], op.lengths, op.result.shape)
    hint, type_ = op.result.hint or field.member, op.result.tensor
    pointer = frame.pointer(hint, type_, base.pointer, True, str(type_))
    place = op.result.place
    key = ("entry", place.buffer, 0) if place is not None and place.space == "entry" else base.key
    frame.refs[op.result] = Ref(pointer, type_, base.strides, True, base.start, key)


def entry(frame: Frame, op: Any) -> None:
    """`state.entry`: a pointer to a box that values are computed in."""
    field = frame.unit.by_state[op.state]
    shape = tuple(n for n in op.lengths if n is not None)
    base = box(frame, op.state, [frame.index(o) for o in op.offsets], op.lengths, shape)
    frame.entry(op.symbol, base, "in the state", hint=field.member)
    same = frame.unit.loads.get(Box.of(op).key(frame.unit.ranges), ())
    for value in same:  # what was loaded from there is the same memory
        if value in frame.refs:
            frame.refs[value] = replace(frame.refs[value], key=("entry", op.symbol, 0))


def store(frame: Frame, op: Any) -> None:
    """`state.store`: copy a value into a box, unless it was computed there."""
    if op.entry:
        return
    target = box(frame, op.state, [frame.index(o) for o in op.offsets], op.lengths, op.value.shape)
    found = immediate(frame, op.value)
    if found is not None:
        _fill(frame, target, found)
    else:
        copy(frame, frame.ref(op.value), target)


def fill(frame: Frame, op: Any) -> None:
    """`state.fill`: one value in every element of a box."""
    field = frame.unit.by_state[op.state]
    steps = layout.storage_strides(field.type)
    lengths = [frame.number(n) for n in op.lengths]
    target = box(frame, op.state, [frame.index(o) for o in op.offsets], op.lengths, ())
    fill_box(frame, Ref(target.pointer, target.type, (), False, target.start), lengths, list(steps), op.value, field)


def fill_box(
    frame: Frame, target: Ref, lengths: list[Index], steps: list[int], value: Any, field: Field
) -> None:
    """Loops that set a box to a constant; whole runs of zeros are a memset."""
    sizes, strides = collapsed(lengths, steps)
    dtype = field.type.dtype
    if dtype.packed:
        _fill_packed(frame, target, sizes, strides, value, field)
        return
    zero = expr.is_zero_bits(value, dtype)
    runs = bool(sizes) and strides[-1] == 1 and zero
    if sizes and not runs:
        target = frame.named(target, field.member)
    counters = open_loops(frame, sizes[:-1] if runs else sizes)
    at = " + ".join(c if s == 1 else f"{c} * {s}" for c, s in zip(counters, strides)) or "0"
    if runs:
        where = whole(target.pointer) if at == "0" else f"{target.pointer} + {at}"
        frame.lines.add(f"memset({where}, 0, {_run(sizes[-1], dtype.c, dtype.align)});")
    else:
        frame.lines.add(f"{element(target, at)} = {expr.stored_literal(value, dtype)};{_note(value, dtype)}")
    for _ in counters:
        frame.lines.close()


def _fill(frame: Frame, target: Ref, text: str) -> None:
    """A computed number in every element of a target with a shape."""
    shape = target.type.shape
    sizes, (strides,) = collapse(shape, [broadcast_strides(target, shape)])
    if sizes:
        target = frame.named(target, "to")
    nest = Nest(frame, sizes)
    nest.open_all()
    frame.lines.add(store_element(target, nest.index(strides, target.start), text))
    nest.close()


def _fill_packed(
    frame: Frame, target: Ref, sizes: list[Index], strides: list[int], value: Any, field: Field
) -> None:
    dtype = field.type.dtype
    counters = open_loops(frame, sizes)
    parts = [target.start.at(expr.SUM)] if target.start.number != 0 else []
    parts += [c if s == 1 else f"{c} * {s}" for c, s in zip(counters, strides)]
    at = " + ".join(parts) or "0"
    pointer = target.pointer
    frame.lines.add(f"oic_store_{dtype}({pointer}, {at}, {expr.literal(value, dtype)});")
    for _ in counters:
        frame.lines.close()


def get(frame: Frame, op: Any) -> None:
    """`state.get`: a persistent integer in a local variable."""
    field = frame.unit.by_state[op.state]
    dtype, text = field.type.dtype, single(field, [frame.index(i) for i in op.indices])
    name = frame.names.unique(op.result.hint or field.member)
    if op.checked:
        text = f"(int64_t){text}"
    elif dtype.name == "u64":
        frame.lines.add(f"int64_t {name};")
        check = f'oic_index_of_u64(why, {frame.line(op)}, "{op.state.op.symbol}", {text}, &{name})'
        frame.attempt(check)
        frame.indices[op.result] = Index(name)
        return
    limit = op.state.op.limit
    if limit is not None and op.indices:  # `next` of one of many rings; others are checked before anything
        refusal = f'oic_check_count(why, "{op.state.op.symbol}", {text}, {expr.integer(limit)})'
        frame.lines.add(f"{'OIC_TRY_LATE(why, ' if frame.late else 'OIC_TRY('}{refusal});")
    frame.lines.declare(name, f"const int64_t {name} = {text};")
    frame.indices[op.result] = Index(name)


def count_checks(unit: Unit, func: Any) -> Iterator[str]:
    """Before anything else: the counts that a function reads are some, for they address memory."""
    read = (op.state for op in func.body.all_ops() if isinstance(op, StateGet) and not op.indices)
    fields = list(dict.fromkeys(unit.by_state[state] for state in read))
    for field in fields:
        if field.op.limit is not None:
            most = expr.integer(field.op.limit)
            yield f'OIC_TRY(oic_check_count(why, "{field.op.symbol}", state->{field.member}, {most}));'
    if any(field.op.limit is not None for field in fields):
        yield f"OIC_TRY(oic_check_counts(why, {unit.name}_counts_hold(state)));"


def sets_counts(func: Any) -> bool:
    """The function changes counts, and so their sum."""
    states = (op.state for op in func.body.all_ops() if isinstance(op, StateSet) and not op.indices)
    return any(state.op is not None and state.op.attributes()["limit"] is not None for state in states)


def set_(frame: Frame, op: Any) -> None:
    """`state.set`: store an integer, wrapping to the width of its type."""
    field = frame.unit.by_state[op.state]
    value = frame.index(op.value)
    target = single(field, [frame.index(i) for i in op.indices])
    frame.lines.add(f"{target} = {cast(value, field.type.dtype.c)};")


def reach(frame: Frame, op: Any) -> None:
    """`state.reach`: a search from the last position down."""
    field = frame.unit.by_state[op.state]
    axis, lengths = op.axis, [frame.number(n) for n in op.lengths]
    offsets = [frame.index(o) for o in op.offsets]
    target = frame.named(box(frame, op.state, offsets, op.lengths, ()), field.member)
    start = frame.index(op.offsets[axis]) if axis < len(op.offsets) else expr.number(0)
    steps = list(layout.storage_strides(field.type))
    name = frame.names.unique(op.result.hint or "reached")
    free = [c for c in COUNTERS if c not in frame.names]
    last, counters = free[0], free[1:]
    others = [i for i in range(len(lengths)) if i != axis and lengths[i].number != 1]
    lines = frame.lines
    lines.add(f"int64_t {name} = 0;")
    lines.open(f"for (ptrdiff_t {last} = {_signed(lengths[axis])}; {last} > 0 && {name} == 0; --{last}) {{")
    for counter, i in zip(counters, others):
        size = _signed(lengths[i])
        lines.open(f"for (ptrdiff_t {counter} = 0; {counter} < {size} && {name} == 0; ++{counter}) {{")
    first = f"({last} - 1)" + ("" if steps[axis] == 1 else f" * {steps[axis]}")
    rest = [c if steps[i] == 1 else f"{c} * {steps[i]}" for c, i in zip(counters, others)]
    lines.open(f"if ({target.pointer}[{' + '.join([first, *rest])}] != 0) {{")
    lines.add(f"{name} = {last if start.number == 0 else f'{start.at(expr.SUM)} + {last}'};")
    for _ in range(len(others) + 2):
        lines.close()
    frame.indices[op.result] = Index(name)


def copy_within(frame: Frame, op: Any) -> None:
    """`state.copy`: a run of neighbours at a time; entries of packed types that are whole, as bytes."""
    field = frame.unit.by_state[op.state]
    dtype, outer = field.type.dtype, len(field.type.table)
    offsets = [frame.index(o) for o in op.offsets]
    offsets += [expr.number(0)] * (op.axis + 1 - len(offsets))
    moved = [*offsets[: op.axis], frame.index(op.to), *offsets[op.axis + 1 :]]
    source, target = (box(frame, op.state, at, op.lengths, ()) for at in (offsets, moved))
    lengths, steps = [frame.number(n) for n in op.lengths], list(layout.storage_strides(field.type))
    entry = field.type.capacity_shape[outer:]
    if dtype.packed and tuple(op.lengths[outer:]) != entry:
        _copy_packed(frame, source, target, collapsed(lengths, steps), field)
        return
    if dtype.packed:
        per, width = 8 // dtype.bits, dtype.nbytes(math.prod(entry))
        source, target = _at_bytes(source, per), _at_bytes(target, per)
        lengths, steps = [*lengths[:outer], expr.number(width)], [*(s // per for s in steps[:outer]), 1]
    sizes, strides = collapsed(lengths, steps)
    lone = not sizes or strides[-1] != 1  # no neighbours: one element at a time
    run = expr.number(1) if lone else sizes[-1]
    if len(sizes) > int(not lone):
        source, target = frame.named(source, "from"), frame.named(target, "to")
    counters = open_loops(frame, sizes if lone else sizes[:-1])
    at = " + ".join(n if s == 1 else f"{n} * {s}" for n, s in zip(counters, strides))
    to, from_ = (f"{ref.pointer} + {at}" if at else whole(ref.pointer) for ref in (target, source))
    frame.lines.add(f"memcpy({to}, {from_}, {_bytes(run, dtype.c, dtype.align)});")
    for _ in counters:
        frame.lines.close()


def _copy_packed(
    frame: Frame, source: Ref, target: Ref, nest: tuple[list[Index], list[int]], field: Field
) -> None:
    """Elements of a packed type, one by one."""
    dtype = field.type.dtype
    counters = open_loops(frame, nest[0])
    parts = [c if s == 1 else f"{c} * {s}" for c, s in zip(counters, nest[1])]
    to, from_ = (
        " + ".join([*([ref.start.at(expr.SUM)] if ref.start.number != 0 else []), *parts]) or "0"
        for ref in (target, source)
    )
    value = f"oic_load_{dtype}({source.pointer}, {from_})"
    frame.lines.add(f"oic_store_{dtype}({target.pointer}, {to}, {value});")
    for _ in counters:
        frame.lines.close()


def _at_bytes(ref: Ref, per: int) -> Ref:
    """The same position, where entries start at whole bytes: all of it in the address."""
    if ref.start.number == 0:
        return ref
    pointer = f"{ref.pointer} + {ref.start.at(expr.ATOM)} / {per}"
    return Ref(pointer, ref.type, (), False)


def _signed(length: Index) -> str:
    """A length as ptrdiff_t; what is longer than that fits in no memory."""
    return f"(ptrdiff_t){length.at(expr.ATOM)}" if length.wide else length.text


def add(frame: Frame, op: Any) -> None:
    """`state.add`: add an integer, wrapping, or rounding in the type of the variable."""
    field = frame.unit.by_state[op.state]
    dtype = field.type.dtype
    there = single(field, [frame.index(i) for i in op.indices])
    here = Ref(f"&{there}", TensorType(dtype), (), False)
    amount = frame.index(op.amount)
    if dtype.is_float:
        total = f"{load_element(here, '0')} + {_as_float(amount, dtype)}"
        frame.lines.add(store_element(here, "0", total))
        return
    word = "uint64_t" if dtype.bits == 64 else "uint32_t"  # unsigned arithmetic wraps
    old = f"({word}){there}"
    if amount.number is None:
        added = f"{old} + ({word}){amount.at(expr.ATOM)}"
    else:
        sign = "-" if amount.number < 0 else "+"
        size = abs(amount.number) % (1 << (64 if word == "uint64_t" else 32))
        added = f"{old} {sign} {f'UINT64_C({size})' if word == 'uint64_t' else f'{size}u'}"
    frame.lines.add(f"{there} = ({dtype.c})({added});")


def _as_float(amount: Index, dtype: Any) -> str:
    if amount.number is not None:
        return expr.literal(amount.number, dtype)
    return f"({dtype.value}){amount.at(expr.ATOM)}"


def single(field: Field, indices: list[Index] | None = None) -> str:
    """The element of a variable that has one, or that of a table of scalars."""
    places = [i.text for i in indices or ()]
    places += ["0"] * (len(field.storage) - len(places))
    return f"state->{field.member}" + "".join(f"[{p}]" for p in places)


def address(field: Field, places: list[Index]) -> str:
    """The first element of the part that these leading indices select."""
    text = f"state->{field.member}" + "".join(f"[{p.text}]" for p in places)
    rank = len(field.storage) - len(places)
    return f"&{text}" if rank == 0 else text if rank == 1 else f"({field.type.dtype.c} *){text}"


def _linear(offsets: list[Index], steps: tuple[int, ...]) -> Index:
    total = expr.number(0)
    for offset, step in zip(offsets, steps, strict=True):
        product = expr.arithmetic("*", offset, expr.number(step))
        if product.number is None:  # the checks before it keep it within the state
            product = replace(product, low=max(0, product.low), high=min(product.high, 1 << 48))
        total = expr.arithmetic("+", total, product)
    return total


def collapsed(lengths: list[Index], steps: list[int]) -> tuple[list[Index], list[int]]:
    """As `loops.collapse`, where lengths are index integers."""
    sizes: list[Index] = []
    strides: list[int] = []
    for n, step in zip(lengths, steps, strict=True):
        if n.number == 1:
            continue
        if sizes and n.number is not None and strides[-1] == step * n.number:
            sizes[-1], strides[-1] = expr.arithmetic("*", sizes[-1], n), step
            continue
        sizes.append(n)
        strides.append(step)
    return sizes, strides


def open_loops(frame: Frame, sizes: list[Index]) -> list[str]:
    free = [c for c in COUNTERS if c not in frame.names]
    for counter, size in zip(free, sizes):
        frame.lines.open(f"for (ptrdiff_t {counter} = 0; {counter} < {size.text}; ++{counter}) {{")
    return free[: len(sizes)]


def _bytes(count: Index, c: str, align: int) -> str:
    factor = "" if align == 1 else f" * sizeof({c})"
    return f"{count.text}{factor}" if count.number is not None else f"(size_t){count.at(expr.ATOM)}{factor}"


def _run(count: Index, c: str, align: int) -> str:
    """As `_bytes`, of a count that a compiler may think could be below 0, where it warns of memset."""
    if count.number is not None or (count.low >= 0 and not count.wide):
        return _bytes(count, c, align)
    return f"oic_run({count.text})" + ("" if align == 1 else f" * sizeof({c})")


def _note(value: Any, dtype: Any) -> str:
    return f" /* {value} */" if dtype.narrow and not math.isnan(float(value)) else ""
