"""Init and reset of the state, the statements of their functions; what its saved states have, as data.

Saving and loading is `runtime_c/state/saved.h`, which interprets the form that `memory.saved` makes.
"""

import math
from collections.abc import Sequence
from typing import Any

from oic import dtypes
from oic.codegen import c_tree as c
from oic.codegen import expressions as expr
from oic.codegen.c_module import Signature, StateMember, Unit
from oic.codegen.expressions import Index
from oic.codegen.function_context import SESSION, STATE, Frame, Ref
from oic.codegen.state_access import address, fill_box, member
from oic.ir.liveness import Liveness
from oic.ir.types import TensorType
from oic.memory.layout import is_count, storage_strides
from oic.memory.saved import Part, saved_form, storage_axes


def on_demand(unit: Unit, field: StateMember) -> bool:
    """Initial values are written when they are reached: `K.t.filled` says how far that is."""
    marks = (f"{field.op.symbol}.{i.name}.filled" for i in (*field.type.table, *field.type.auto))
    return any(mark in unit.fields for mark in marks)


def reset(unit: Unit) -> list[c.Statement]:
    """Every variable back to its initial value."""
    if not any(f.type.reserved for f in unit.fields.values()):
        return [c.Do(c.call("memset", STATE, 0, c.Prefix("sizeof ", c.Prefix("*", STATE)))), *fresh(unit)]
    frame = _frame(unit)
    _require_counts(unit, frame)
    fields = (f for f in unit.fields.values() if not on_demand(unit, f))  # its marks back at 0 are enough
    # Those that are reserved come first, as their counts are needed.
    for field in sorted(fields, key=lambda f: f.type.reserved, reverse=True):
        _fill(frame, field)
    return frame.body.statements


def walked_counts(unit: Unit) -> list[StateMember]:
    """The counts that say how far reset walks through reserved memory."""
    walked = [f for f in unit.fields.values() if f.type.reserved and not on_demand(unit, f)]
    lengths = [length for field in walked for length in box_lengths(unit, field)]
    read = {found for length in lengths for found in c.walk(length.value)}
    return [f for f in unit.fields.values() if member(f) in read]


def _require_counts(unit: Unit, frame: Frame) -> None:
    """Reserved memory is walked through as far as counts say; none is, where they are not counts."""
    if not (counts := walked_counts(unit)):
        return
    spoiled = c.Member(c.Member(SESSION, "refusal"), "spoiled", arrow=False)
    limits = ((member(f), expr.integer(f.op.limit)) for f in counts)
    tests: list[c.Expression] = [c.Prefix("!", c.call("oic_is_count", *limit)) for limit in limits]
    changed = c.Prefix("!", c.call(f"{unit.name}_counts_hold", STATE))
    test = c.joined("||", [*tests, c.Infix("&&", c.Infix("!=", spoiled, c.integer(1)), changed)])
    note = "for good: how far to clear is not known"
    frame.body.add(c.IfStatement(test, [c.AssignStatement(spoiled, c.integer(2), note), c.ReturnStatement()]))


def fresh(unit: Unit) -> list[c.Statement]:
    """The initial values of a state whose memory is all zeros: those that are not."""
    frame = _frame(unit)
    for field in unit.fields.values():
        if not on_demand(unit, field) and not dtypes.is_zeros(_initial(field), field.type.dtype):
            _fill(frame, field)
    return frame.body.statements


def init(unit: Unit) -> list[c.Statement]:
    """What init does before the reset: the counts, where some are of reserved variables, whose memory is all zeros."""
    if not any(f.type.reserved for f in unit.fields.values()):
        return []
    note = "so that reset does not walk through reserved memory"
    counts = (field for field in unit.fields.values() if is_count(field.op))
    return [c.AssignStatement(member(field), c.integer(0), note) for field in counts]


def counts_sum(unit: Unit) -> list[c.Statement]:
    """The sum of the counts: each times an odd number of its own, so that no bit is lost."""
    counts = [f for f in unit.fields.values() if f.op.limit is not None and f.type.plain]
    if unit.total is None:
        return []
    unsigned = (c.Conversion("uint64_t", member(f)) for f in counts)
    terms = [c.Infix("*", n, c.Literal(f"{2 * i + 3}u")) for i, n in enumerate(unsigned)]
    return [c.ReturnStatement(c.joined("+", terms))]


def box_lengths(unit: Unit, field: StateMember) -> list[Index]:
    """The part of a variable that may differ from its initial value, along each dimension."""
    shape = field.type.capacity_shape
    if not field.type.reserved:
        return [expr.number(d) for d in shape]
    return [_reached(unit, field, axis) for axis in range(len(shape))]


def _reached(unit: Unit, field: StateMember, axis: int) -> Index:
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
        return Index(member(mark), 0, size)
    count = unit.fields.get(f"{symbol}.{name}")
    if count is None or on_demand(unit, field):
        return expr.number(size)
    base = 0 if axis < outer else type_.shape[axis - outer]
    return expr.arithmetic("+", expr.number(base), Index(member(count), 0, specs[axis].capacity))


def saved(unit: Unit) -> list[c.Statement]:
    """The form of saved states as data: `oic_saved_form` of `runtime_c/state/saved.h`."""
    form = saved_form(unit.module)
    numbers = {symbol: n for n, symbol in enumerate(form.counts)}
    counts = [c.BracedRow(c.Braces((_place(unit, s), expr.integer(most)))) for s, most in form.counts.items()]
    axes: list[c.BracedRow] = []
    parts: list[c.BracedRow] = []
    for part in form.parts:
        found = _axes(unit, part, numbers)
        parts.append(_part(unit, part, len(axes), len(found)))
        axes += found
    tables = [
        _table("oic_saved_count", f"{unit.name}_saved_counts", "place, most", counts),
        _table("oic_saved_axis", f"{unit.name}_saved_axes", "size, count, stride, reached, filled", axes),
        _table("oic_saved_part", f"{unit.name}_saved_parts", "", parts),
    ]
    given = [c.Identifier(t.name) if rows else c.NULL for t, rows in ((tables[0], counts), (tables[2], parts))]
    sizes = (c.integer(len(counts)), c.integer(len(form.parts)))
    whole = c.Braces((c.Identifier(f"{unit.macro}_STATE_FINGERPRINT"), *given, *sizes))
    last = c.Declare("oic_saved_form", f"{unit.name}_saved_form", whole, const=True, static=True)
    return [*(table for table, rows in zip(tables, (counts, axes, parts)) if rows), last]


def truncated(unit: Unit) -> list[c.Statement]:
    """The tables whose positions can be taken back, as data: `oic_truncated` of `runtime_c/state/truncate.h`."""
    unit.headers.add("state/truncate.h")
    numbers = {part.symbol: n for n, part in enumerate(saved_form(unit.module).parts)}
    rows = []
    for symbol, axis in unit.module.truncation.tables.items():
        name = f"{symbol}.{unit.fields[symbol].type.table[axis].name}"
        rows.append(c.BracedRow(c.Braces((c.string(name), c.integer(numbers[symbol]), c.integer(axis)))))
    return [_table("oic_truncated", f"{unit.name}_truncated", "index, part of the form, which of its indices", rows)]


def _table(of: str, name: str, note: str, rows: Sequence[c.Expression]) -> c.Declare:
    return c.Declare(c.Array(of), name, c.Braces(tuple(rows), rows=True), const=True, static=True, note=note)


def _axes(unit: Unit, part: Part, numbers: dict[str, int]) -> list[c.BracedRow]:
    """The axes of a part; dimensions of entries only where some grow."""
    strides, outer = storage_strides(part.type), len(part.table)
    rows = []
    for i, (axis, marks) in enumerate(zip((*part.table, *part.entry), storage_axes(part), strict=True)):
        if i >= outer and not part.grows:
            break
        stride = strides[i] if i >= outer else strides[i] * part.dtype.bits // 8
        size, count = expr.integer(axis.size), c.integer(numbers.get(axis.count, -1))
        places = [_place(unit, mark) if mark in unit.fields else c.Identifier("OIC_SAVED_NONE") for mark in marks]
        rows.append(c.BracedRow(c.Braces((size, count, c.integer(stride), *places)), note=part.symbol))
    return rows


def _part(unit: Unit, part: Part, first: int, rank: int) -> c.BracedRow:
    """The members of a part that are not zeros; its axes are those from `first` on."""
    dtype, outer = part.dtype, len(part.table)
    members: dict[str, c.Expression | int] = {"at": _place(unit, part.symbol), "bits": dtype.bits}
    if rank:
        axes = c.Prefix("&", c.Element(c.Identifier(f"{unit.name}_saved_axes"), c.integer(first)))
        members |= {"axes": axes, "table": outer, "rank": rank}
    members["marked"] = int(any(filled in unit.fields for _, filled in storage_axes(part)))
    if not part.grows:
        members["entry"] = part.entry_bytes({})
    if part.type.ring:
        members["again"] = part.type.window * storage_strides(part.type)[outer - 1] * dtype.bits // 8
    per = 8 // dtype.bits if dtype.packed else 1
    start = int.from_bytes(part.start((per,)).tobytes(), "little")
    members["start"] = c.Literal(f"UINT64_C({start})") if start else 0
    if dtype.packed and not part.grows:
        used = math.prod(part.shape({})) % per * dtype.bits
        members["spare"] = 0xFF << used & 0xFF if used else 0
    members |= {"guarded": int(part.guarded), "counted": int(part.counted)}
    members["most"] = -1 if part.most is None else expr.integer(part.most)
    given = {name: c.integer(m) if isinstance(m, int) else m for name, m in members.items() if m != 0}
    return c.BracedRow(c.Braces(tuple(given.values()), tuple(given)), above=f"{part.symbol}: {part.type.entry}")


def _place(unit: Unit, symbol: str) -> c.Expression:
    """Where a member of the state is."""
    return c.call("offsetof", c.Identifier(f"{unit.name}_state"), c.Identifier(unit.fields[symbol].member))


def _fill(frame: Frame, field: StateMember) -> None:
    target = Ref(address(field, []), TensorType(field.type.dtype), (), False)
    fill_box(frame, target, box_lengths(frame.unit, field), _initial(field), field)


def _initial(field: StateMember) -> Any:
    """What every element starts as; reserved address space starts as zeros, being too large to fill."""
    return 0 if field.op.init is None or field.type.reserved else field.op.init


def _frame(unit: Unit) -> Frame:
    return Frame(unit, Signature("", "", (), (), ()), Liveness())
