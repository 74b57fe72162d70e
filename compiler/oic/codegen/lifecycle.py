"""Init and reset of the state, the lines of their functions; what its saved states have, as data.

Saving and loading is `runtime_c/state/saved.h`, which interprets the form that `memory.saved` makes.
"""

from __future__ import annotations

import math
import re
from typing import Any

from oic.codegen import expressions as expr
from oic.codegen.c_module import Field, Interface, Unit
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref
from oic.codegen.lines import WIDTH
from oic.codegen.state_access import address, fill_box
from oic.ir.core import Block
from oic.ir.types import TensorType
from oic.memory.layout import is_count, storage_strides
from oic.memory.liveness import liveness
from oic.memory.saved import Part, saved_form, storage_axes


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
    _require_counts(unit, frame)
    if not any(map(reserved, fields)):
        frame.lines.add("memset(state, 0, sizeof *state);")
        fields = [f for f in fields if not expr.is_zero_bits(_initial(f), f.type.dtype)]
    fields = [f for f in fields if not on_demand(unit, f)]  # its marks back at 0 are enough
    for field in sorted(fields, key=reserved, reverse=True):  # their counts are needed, so they come first
        _fill(frame, field, box_lengths(unit, field))
    return frame.lines.text()


def _require_counts(unit: Unit, frame: Frame) -> None:
    """Reserved memory is walked through as far as counts say; none is, where they are not counts."""
    walked = [f for f in unit.fields.values() if reserved(f) and not on_demand(unit, f)]
    texts = " ".join(length.text for field in walked for length in box_lengths(unit, field))
    members = set(re.findall(r"state->(\w+)", texts))
    counts = [f for f in unit.fields.values() if f.member in members]
    if not counts:
        return
    tests = [f"!oic_is_count(state->{f.member}, {expr.integer(f.op.limit)})" for f in counts]
    tests.append(f"(s->refusal.spoiled != 1 && !{unit.name}_counts_hold(state))")
    frame.lines.open(f"if ({f' ||{chr(10)}        '.join(tests)}) {{")
    frame.lines.add("s->refusal.spoiled = 2; /* for good: how far to clear is not known */")
    frame.lines.add("return;")
    frame.lines.close()


def fresh_lines(unit: Unit) -> list[str]:
    """The initial values of a state whose memory is all zeros: those that are not."""
    frame = _frame(unit)
    for field in unit.fields.values():
        if not on_demand(unit, field) and not expr.is_zero_bits(_initial(field), field.type.dtype):
            _fill(frame, field, box_lengths(unit, field))
    return frame.lines.text()


def init_lines(unit: Unit) -> list[str]:
    """What init does before the reset: the counts, where some are of reserved variables, whose memory is all zeros."""
    if not any(map(reserved, unit.fields.values())):
        return []
    return [
        f"    state->{field.member} = 0; /* so that reset does not walk through reserved memory */"
        for field in unit.fields.values()
        if is_count(field.op)
    ]


def sum_lines(unit: Unit) -> list[str]:
    """The sum of the counts, an expression: each times an odd number of its own, so that no bit is lost."""
    counts = [f for f in unit.fields.values() if f.op.limit is not None and f.type.plain]
    return [
        f"{'return ' if i == 0 else '       '}(uint64_t)state->{field.member} * {2 * i + 3}u"
        f"{' +' if i + 1 < len(counts) else ';'}"
        for i, field in enumerate(counts if unit.total is not None else ())
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
    return expr.arithmetic("+", expr.number(base), known)


# ---------------------------------------------------------------- saved states


def saved_lines(unit: Unit) -> list[str]:
    """The form of saved states as data: `oic_saved_form` of `runtime_c/state/saved.h`."""
    form = saved_form(unit.module)
    name, numbers = f"{unit.name}_saved", {symbol: n for n, symbol in enumerate(form.counts)}
    counts = [f"{{{_place(unit, s)}, {expr.integer(most)}}}," for s, most in form.counts.items()]
    axes: list[str] = []
    parts: list[str] = []
    for part in form.parts:
        found = _axes(unit, part, numbers)
        parts += _part(unit, part, len(axes), len(found))
        axes += found
    head = [f"static const oic_saved_form {name}_form = {{"]
    members = [f"{unit.macro}_STATE_FINGERPRINT", f"{name}_counts" if counts else "NULL"]
    members += [f"{name}_parts" if parts else "NULL", str(len(counts)), str(len(form.parts))]
    return [
        *_array(f"oic_saved_count {name}_counts", "place, most", counts),
        *_array(f"oic_saved_axis {name}_axes", "size, count, stride, reached, filled", axes),
        *_array(f"oic_saved_part {name}_parts", "", parts),
        *head, f"    {', '.join(members)},", "};",
    ]  # fmt: skip


def _array(declared: str, members: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    note = f" /* {members} */" if members else ""
    return [f"static const {declared}[] = {{{note}", *(f"    {row}" for row in rows), "};"]


def _axes(unit: Unit, part: Part, numbers: dict[str, int]) -> list[str]:
    """The axes of a part; dimensions of entries only where some grow."""
    strides, outer = storage_strides(part.type), len(part.table)
    rows = []
    for i, (axis, marks) in enumerate(zip((*part.table, *part.entry), storage_axes(part), strict=True)):
        if i >= outer and not part.grows:
            break
        stride = strides[i] if i >= outer else strides[i] * part.dtype.bits // 8
        members = [expr.integer(axis.size), str(numbers.get(axis.count, -1)), str(stride)]
        members += [_place(unit, mark) if mark in unit.fields else "OIC_SAVED_NONE" for mark in marks]
        rows.append(f"{{{', '.join(members)}}}, /* {part.symbol} */")
    return rows


def _part(unit: Unit, part: Part, first: int, rank: int) -> list[str]:
    """The members of a part that are not zeros; its axes are those from `first` on."""
    dtype, outer = part.dtype, len(part.table)
    members: dict[str, Any] = {"at": _place(unit, part.symbol), "bits": dtype.bits}
    if rank:
        members |= {"axes": f"&{unit.name}_saved_axes[{first}]", "table": outer, "rank": rank}
    members["marked"] = int(any(filled in unit.fields for _, filled in storage_axes(part)))
    if not part.grows:
        members["entry"] = part.entry_bytes({})
    if part.type.ring:
        members["again"] = part.type.window * storage_strides(part.type)[outer - 1] * dtype.bits // 8
    per = 8 // dtype.bits if dtype.packed else 1
    start = int.from_bytes(part.start((per,)).tobytes(), "little")
    members["start"] = f"UINT64_C({start})" if start else 0
    if dtype.packed and not part.grows:
        used = math.prod(part.shape({})) % per * dtype.bits
        members["spare"] = 0xFF << used & 0xFF if used else 0
    members |= {"guarded": int(part.guarded), "counted": int(part.counted)}
    members["most"] = -1 if part.most is None else expr.integer(part.most)
    texts = [f".{name} = {value}" for name, value in members.items() if value != 0]
    lines = _rows(texts)
    rows = [f" {line}," for line in lines]
    rows[0], rows[-1] = "{" + rows[0][1:], rows[-1][:-1] + "},"
    if len(rows) == 1:
        rows = ["{" + lines[0] + "},"]
    return [f"/* {part.symbol}: {part.type.entry} */", *rows]


def _rows(texts: list[str]) -> list[str]:
    """Texts joined by commas, as many a line as fit."""
    lines = [texts[0]]
    for text in texts[1:]:
        if len(lines[-1]) + len(text) < WIDTH - 10:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
    return lines


def _place(unit: Unit, symbol: str) -> str:
    """Where a member of the state is."""
    return f"offsetof({unit.name}_state, {unit.fields[symbol].member})"


def _fill(frame: Frame, field: Field, lengths: list[Index]) -> None:
    dtype = field.type.dtype
    target = Ref(address(field, []), TensorType(dtype), (), False)
    fill_box(frame, target, lengths, list(storage_strides(field.type)), _initial(field), field)


def _initial(field: Field) -> Any:
    """What every element starts as; reserved address space starts as zeros, being too large to fill."""
    return 0 if field.op.init is None or reserved(field) else field.op.init


def _frame(unit: Unit) -> Frame:
    return Frame(unit, Interface("", "", (), (), ()), liveness(Block()))
