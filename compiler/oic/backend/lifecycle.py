"""Reset, save and load of the state: the lines of their functions.

A saved state is an image (`runtime_c/image.h`): the whole structure, or, where a variable has
reserved address space, every variable in order, those with as many entries as their counts say.
Storage beyond the counts holds initial values, so that is all of it.
"""

from __future__ import annotations

import math
from typing import Any

from oic.backend import expr
from oic.backend.expr import Index
from oic.backend.frame import Frame, Ref
from oic.backend.loops import whole
from oic.backend.persistent import address, collapsed, fill_box, open_loops
from oic.backend.unit import Field, Interface, Unit
from oic.ir.core import Block
from oic.ir.types import TensorType
from oic.memory.layout import is_count, storage_strides
from oic.memory.liveness import liveness


def reserved(field: Field) -> bool:
    """The variable has address space that no reset or save may walk through."""
    return field.type.reserved


def on_demand(unit: Unit, field: Field) -> bool:
    """Initial values are written when they are reached: `K.t.filled` says how far that is."""
    marks = (f"{field.op.symbol}.{i.name}.filled" for i in (*field.type.table, *field.type.auto))
    return any(mark in unit.fields for mark in marks)


def reset_lines(unit: Unit) -> list[str]:
    """Every variable back to its initial value."""
    frame = _frame(unit)
    fields = list(unit.fields.values())
    if not any(map(reserved, fields)):
        frame.lines.add("memset(state, 0, sizeof *state);")
        fields = [f for f in fields if not expr.is_zero_bits(_initial(f), f.type.dtype)]
    fields = [f for f in fields if not on_demand(unit, f)]  # its marks back at 0 are enough
    for field in sorted(fields, key=reserved, reverse=True):  # their counts are needed, so they come first
        _fill(frame, field, box_lengths(unit, field))
    return frame.lines.text()


def init_lines(unit: Unit) -> list[str]:
    """What init does before the reset: the counts of reserved variables, whose memory is all zeros."""
    owners = {field.op.symbol for field in unit.fields.values() if reserved(field)}
    return [
        f"    state->{field.member} = 0; /* so that reset does not walk through reserved memory */"
        for field in unit.fields.values()
        if is_count(field.op) and field.op.symbol.partition(".")[0] in owners
    ]


def box_lengths(unit: Unit, field: Field) -> list[Index]:
    """The part of a variable that may differ from its initial value, along each dimension."""
    shape = field.type.capacity_shape
    if not reserved(field):
        return [expr.number(d) for d in shape]
    return [_reached(unit, field, axis) for axis in range(len(shape))]


def _reached(unit: Unit, field: Field, axis: int) -> Index:
    """How far a dimension of reserved address space was reached."""
    type_ = field.type
    outer, size = len(type_.table), type_.capacity_shape[axis]
    specs = [*type_.table, *type_.auto]
    if axis >= len(specs) or (type_.ring and axis == outer - 1):
        return expr.number(size)
    # States beside a variable (`K.entry.touched`) go as far as the variable itself.
    symbol, name = field.op.symbol.partition(".")[0], specs[axis].name
    mark = unit.fields.get(f"{symbol}.{name}.filled")
    if mark is not None:
        return Index(f"state->{mark.member}", expr.ATOM, 0, size)
    count = unit.fields.get(f"{symbol}.{name}")
    if count is None or on_demand(unit, field):
        return expr.number(size)
    base = 0 if axis < outer else type_.shape[axis - outer]
    known = Index(f"state->{count.member}", expr.ATOM, 0, specs[axis].capacity)
    total = expr.arithmetic("+", expr.number(base), known)
    assert total is not None
    return total


def save_lines(unit: Unit) -> list[str]:
    """The body of `<name>_save`."""
    frame = _frame(unit)
    lines = frame.lines
    lines.add(f"const {unit.name}_state *const state = s == NULL ? NULL : s->state;")
    sparse = any(map(reserved, unit.fields.values()))
    lines.add(f"{'' if sparse else 'const '}size_t bytes = sizeof(oic_image){'' if sparse else ' + sizeof *state'};")
    if sparse:
        lines.add("unsigned char *at = NULL;")
    lines.open("if (state == NULL || s->refusal.spoiled) {")
    lines.add("return 0;")
    lines.close()
    if sparse:
        _add_sizes(frame)
    lines.open("if (to == NULL || capacity < bytes) {")
    lines.add("return bytes;")
    lines.close()
    if not sparse:
        lines.add("memcpy((unsigned char *)to + sizeof(oic_image), state, sizeof *state);")
    else:
        lines.add("at = (unsigned char *)to + sizeof(oic_image);")
        for field in unit.fields.values():
            _move(frame, field, "memcpy(at, {where}, {bytes});")
    lines.add(f'oic_image_seal(to, bytes, "OICSTAT", {unit.macro}_STATE_FINGERPRINT);')
    lines.add("return bytes;")
    return lines.text()


def load_lines(unit: Unit) -> list[str]:
    """The body of `<name>_load`."""
    frame = _frame(unit)
    lines = frame.lines
    sparse = any(map(reserved, unit.fields.values()))
    lines.add(f"{unit.name}_state *const state = s == NULL ? NULL : s->state;")
    if sparse:
        lines.add("const unsigned char *at = from;")
        lines.add("size_t expected = sizeof(oic_image);")
    lines.open("if (state == NULL || from == NULL) {")
    lines.add("return OIC_ERR_INPUT;")
    lines.close()
    fingerprint = f"{unit.macro}_STATE_FINGERPRINT"
    fixed = sum(f.nbytes for f in unit.fields.values() if not reserved(f))  # counts are among them
    whole = f"bytes < sizeof(oic_image) + {fixed}" if sparse else "bytes != sizeof(oic_image) + sizeof *state"
    lines.open(f'if ({whole} || !oic_image_is_valid(from, bytes, "OICSTAT", {fingerprint}, bytes)) {{')
    lines.add('return oic_refuse(&s->refusal, OIC_ERR_STATE, 0, "state", 0, 0);')
    lines.close()
    if not sparse:
        lines.add("memcpy(state, (const unsigned char *)from + sizeof(oic_image), sizeof *state);")
    else:
        _load_sparse(frame)
    lines.add("memset(&s->refusal, 0, sizeof s->refusal);")
    lines.add("return OIC_OK;")
    return lines.text()


def _load_sparse(frame: Frame) -> None:
    """Counts first, checked against the size of what follows; then everything."""
    lines, unit = frame.lines, frame.unit
    counts = [f for f in unit.fields.values() if is_count(f.op)]
    lines.add("at += sizeof(oic_image);")
    for field in counts:
        lines.add(f"int64_t {_local(field)};")
    for field in counts:
        lines.add(f"memcpy(&{_local(field)}, at, sizeof {_local(field)});")
        lines.add(f"at += sizeof {_local(field)};")
    for field in counts:
        most = field.op.limit
        lines.open(f"if ({_local(field)} < 0 || {_local(field)} > {expr.integer(most)}) {{")
        lines.add('return oic_refuse(&s->refusal, OIC_ERR_STATE, 0, "state", 0, 0);')
        lines.close()
    _add_sizes(frame, "expected", local=True)
    lines.open("if (bytes != expected) {")
    lines.add('return oic_refuse(&s->refusal, OIC_ERR_STATE, 0, "state", 0, 0);')
    lines.close()
    lines.add(f"{unit.name}_reset(s);")
    for field in counts:
        lines.add(f"state->{field.member} = {_local(field)};")
    for field in unit.fields.values():
        if field not in counts:
            _move(frame, field, "memcpy({where}, at, {bytes});")


def _local(count: Field) -> str:
    return f"saved_{count.member}"


def _add_sizes(frame: Frame, total: str = "bytes", local: bool = False) -> None:
    """Add the bytes of every variable to a variable of size_t."""
    fixed = sum(f.nbytes for f in frame.unit.fields.values() if not reserved(f))
    frame.lines.add(f"{total} += {fixed};")
    for field in frame.unit.fields.values():
        if not reserved(field):
            continue
        outer = len(field.type.table)
        dtype = field.type.dtype
        lengths = box_lengths(frame.unit, field)
        inner = dtype.nbytes(math.prod(n.low for n in lengths[outer:])) if not field.type.auto else 0
        factors = [f"(size_t){n.at(expr.ATOM)}" for n in (lengths if field.type.auto else lengths[:outer])]
        factors.append(str(inner) if inner else f"sizeof({dtype.c})")
        text = " * ".join(factors)
        for count in frame.unit.fields.values():
            if local and is_count(count.op):
                text = text.replace(f"state->{count.member})", f"{_local(count)})")
                text = text.replace(f"state->{count.member} ", f"{_local(count)} ")
        frame.lines.add(f"{total} += {text};")


def _move(frame: Frame, field: Field, statement: str) -> None:
    """Copy one variable between the state and the bytes at `at`, run by run."""
    lines = frame.lines
    if not reserved(field):
        where = f"{'' if field.storage else '&'}state->{field.member}"
        lines.add(statement.format(where=where, bytes=f"sizeof state->{field.member}"))
        lines.add(f"at += sizeof state->{field.member};")
        return
    dtype, outer = field.type.dtype, len(field.type.table)
    lengths, steps = box_lengths(frame.unit, field), list(storage_strides(field.type))
    if dtype.packed and field.type.auto:
        _move_elements(frame, field, lengths, steps, saving=statement.startswith("memcpy(at"))
        return
    if dtype.packed:  # in bytes, an entry at a time
        per = 8 // dtype.bits
        width = field.nbytes // math.prod(field.type.capacity_shape[:outer])
        lengths = [*lengths[:outer], expr.number(width)]
        steps = [*(s // per for s in steps[:outer]), 1]
    sizes, strides = collapsed(lengths, steps)
    counters = open_loops(frame, sizes[:-1])
    at = " + ".join(c if s == 1 else f"{c} * {s}" for c, s in zip(counters, strides))
    where = f"{address(field, [])} + {at}" if at else whole(address(field, []))
    last = sizes[-1].at(expr.ATOM)
    nbytes = f"(size_t){last} * sizeof({dtype.c})"
    lines.add(statement.format(where=where, bytes=nbytes))
    lines.add(f"at += {nbytes};")
    for _ in counters:
        lines.close()


def _move_elements(
    frame: Frame, field: Field, lengths: list[Index], steps: list[int], *, saving: bool
) -> None:
    """Elements of a packed type, a byte each: the rows of a grown matrix begin inside of bytes."""
    dtype = field.type.dtype
    sizes, strides = collapsed(lengths, steps)
    counters = open_loops(frame, sizes)
    index = " + ".join(c if s == 1 else f"{c} * {s}" for c, s in zip(counters, strides)) or "0"
    where = address(field, [])
    if saving:
        frame.lines.add(f"*at = (unsigned char)oic_load_{dtype}({where}, {index});")
    else:
        frame.lines.add(f"oic_store_{dtype}({where}, {index}, ({dtype.value})*at);")
    frame.lines.add("++at;")
    for _ in counters:
        frame.lines.close()


def _fill(frame: Frame, field: Field, lengths: list[Index]) -> None:
    dtype = field.type.dtype
    target = Ref(address(field, []), TensorType(dtype), (), False)
    fill_box(frame, target, lengths, list(storage_strides(field.type)), _initial(field), field)


def _initial(field: Field) -> Any:
    """What every element starts as; reserved address space starts as zeros, and nobody can fill it."""
    return 0 if field.op.init is None or reserved(field) else field.op.init


def _frame(unit: Unit) -> Frame:
    return Frame(unit, Interface("", "", (), (), ()), liveness(Block()))
