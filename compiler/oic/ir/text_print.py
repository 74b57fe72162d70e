"""The text form of a module: what `parse_module` reads back.

    module "decode" {stage="graph", source="decode.oi"}
    extents { N <= 512 }

    %W = constant {symbol="W", type=f32[64, 64]} : f32[64, 64] loc(3:5+9)
    func {symbol="entry", inputs=["x"], outputs=["y"], pinned={}} body(%x: f32[N, 64]) {
      %h = matmul(%x, %W) : f32[N, 64] loc(12:5+27)
      return([%h])
    } loc(10:1+30)

Operands are in the order of the op's fields, a list of them in brackets, an absent one as `_`, at the end as nothing;
attributes that equal their default are left out.  Names are the values' hints made unique in
their function.  In PLANNED a type is followed by its place, and the memory map by the extents.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from oic.dtypes import ALL, DType
from oic.ir import dims
from oic.ir.core import REQUIRED, Op, Place, Value, operand_parts
from oic.ir.dims import Atom, Dim, Expr, Extent
from oic.ir.encodings import ALIGN
from oic.ir.module import Buffer, Module, Plan
from oic.ir.types import IndexType, StateType, TensorType, Type

WORDS = frozenset({"true", "false", "none", "inf", "nan", "index", "state"} | set(ALL))
quoted = json.JSONEncoder(ensure_ascii=False).encode  # a literal; `json.dumps` would make an encoder for each
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


class ValueNames:
    """Names of values: their hints, made unique in each function; numbers where there are none.

    outside   ops outside functions, whose results are named first
    """

    def __init__(self, outside: Iterable[Op] = ()) -> None:
        self.of: dict[Value, str] = {}
        self.count = 0
        self.last: dict[str, int] = {}  # of every name that is used, as a hint: numbers up to this one are used
        for value in (value for op in outside for value in op.results):
            self(value)

    def __call__(self, value: Value) -> str:
        """The name of a value, given now if it has none yet."""
        if value not in self.of:
            self.of[value] = self._fresh(re.sub(r"[^A-Za-z0-9_.]", "_", value.hint))
        return "%" + self.of[value]

    def define(self, op: Op) -> None:
        """Name what an op and those nested in it define, in the order in which their text does."""
        for result in op.results:
            self(result)
        for block in op.regions:
            for arg in block.args:
                self(arg)
            for inner in block.ops:
                self.define(inner)

    def inner(self) -> "ValueNames":
        """Names of a function: those outside stay taken, its own are forgotten after it."""
        copy = ValueNames()
        copy.of, copy.last, copy.count = dict(self.of), dict(self.last), self.count
        return copy

    def _fresh(self, hint: str) -> str:
        if not hint or hint.isdigit():
            self.count += 1
            return str(self.count - 1)
        name, n = hint, self.last.get(hint, 0)
        while name in self.last:
            n += 1
            name = f"{hint}_{n}"
        self.last |= {name: 0, hint: n}
        return name


def print_module(module: Module) -> str:
    """The text of a program at any stage; `parse_module` gives the program back."""
    head = f'module {quoted(module.name)} {{stage="{module.stage}"'
    head += f", source={quoted(module.source.name)}}}" if module.source else "}"
    lines = [head]
    extents = dict.fromkeys(_extents_in([*module.all_ops()]))
    if extents:
        lines.append(f"extents {{ {', '.join(f'{extent_text(e)} <= {e.maximum}' for e in extents)} }}")
    if module.plan:
        lines += _plan_lines(module.plan)
    names = ValueNames(module.top.ops)
    for op in module.top.ops:
        if op.regions:
            lines.append("")
        lines += op_lines(op, names.inner() if op.regions else names)
    return "\n".join(lines) + "\n"


def located(op: Op) -> str:
    """An op as text with its source line, for broken invariants."""
    line = op.span.source.line(op.span.line).strip() if op.span else ""
    return "\n".join([*op_lines(op, ValueNames()), *([f"  {op.span}: {line}"] if op.span else [])])


def op_lines(op: Op, names: ValueNames, indent: str = "") -> list[str]:
    """The text of an op and what is nested in it; values without a name get one."""
    results = ", ".join(names(r) for r in op.results)
    head = f"{indent}{results} = {op.name}" if results else f"{indent}{op.name}"
    operands = ["_" if part is None else value_text(part, names) for part in operand_parts(op)]
    if operands:
        while operands and operands[-1] == "_":
            operands.pop()
        head += f"({', '.join(operands)})"
    shown = _shown_attributes(op, names)
    if shown:
        head += " {" + ", ".join(f"{k}={v}" for k, v in shown.items()) + "}"
    lines = [head]
    for key, spec in op.fields.items():
        for body in spec.blocks(getattr(op, key)):
            args = ", ".join(f"{names(a)}: {_placed(a)}" for a in body.args)
            lines[-1] += f" {key}({args}) {{"
            for inner in body.ops:
                lines += op_lines(inner, names, indent + "  ")
            lines.append(indent + "}")
    if op.results:
        lines[-1] += " : " + ", ".join(_placed(r) for r in op.results)
    if op.span:
        lines[-1] += f" loc({op.span.line}:{op.span.column}+{op.span.end - op.span.start})"
    return lines


def _shown_attributes(op: Op, names: ValueNames) -> dict[str, str]:
    shown = {}
    for key, value in op.attributes().items():
        text, default = value_text(value, names), op.fields[key].default
        if default is REQUIRED or text != value_text(default, names):
            shown[key] = text
    if op.kernel:
        shown["kernel"] = quoted(op.kernel)
    if op.workers > 1:
        shown["workers"] = str(op.workers)
    return shown


def _placed(value: Value) -> str:
    place = f" {place_text(value.place)}" if value.place else ""
    return type_text(value.type) + place


def extent_text(extent: Extent) -> str:
    """The name of an extent, in back quotes where it would be read as something else."""
    plain = PLAIN.fullmatch(extent.name) and extent.name not in WORDS
    return extent.name if plain else f"`{extent.name}`"


def dim_text(dim: Dim) -> str:
    """A size, as an arithmetic expression that gives it when evaluated."""
    return dim.text(_atom_text) if isinstance(dim, Expr) else str(int(dim))


def _atom_text(atom: Atom, _: bool) -> str:
    if isinstance(atom, Extent):
        return extent_text(atom)
    divisor = atom.divisor if isinstance(atom.divisor, int) else f"({dim_text(atom.divisor)})"
    return f"(({dim_text(atom.numerator)}) // {divisor})"


def type_text(type_: Type) -> str:
    """A type as it is printed after a colon."""
    return type_.text(dim_text) if isinstance(type_, TensorType) else str(type_)


def place_text(place: Place) -> str:
    """Where a value lies: `in arena+128 "h" strides(64, 1) because "…"`."""
    offset = "" if place.offset is None else f"+{place.offset}"
    text = f"in {place.space}{offset} {quoted(place.buffer)}"
    if place.strides is not None:
        text += f" strides({', '.join(dim_text(s) for s in place.strides)})"
    return text + (f" because {quoted(place.reason)}" if place.reason else "")


def value_text(value: Any, names: ValueNames) -> str:
    """An attribute; equal texts are equal attributes."""
    match value:
        case Value():
            return names(value)
        case np.generic():
            return value_text(value.item(), names)
        case None:
            return "none"
        case float():
            return repr(value)
        case bool() | int() | str():
            return quoted(value)
        case list():
            return "[" + ", ".join(value_text(v, names) for v in value) + "]"
        case tuple():
            inner = ", ".join(value_text(v, names) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case dict():
            pairs = (f"{quoted(k)}: {value_text(v, names)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        case Extent():
            return "@" + extent_text(value)
        case Expr():
            return dim_text(value)
        case TensorType():
            return type_text(value) + ("" if value.shape else "[]")
        case DType() | IndexType() | StateType():
            return str(value)
    raise AssertionError(f"an attribute of type {type(value).__name__} has no text form")


def _extents_in(part: Any) -> Iterator[Extent]:
    """Every extent of what an op has, and of what it defines or refers to."""
    match part:
        case Op():
            yield from _extents_in(([block.args for block in part.regions], part.attributes(), part.results))
        case Value():
            yield from _extents_in((part.type, part.place and part.place.strides))
        case Extent():
            yield part
        case Expr():
            yield from sorted(dims.extents([part]))
        case TensorType():
            yield from _extents_in(part.shape)
        case dict():
            yield from _extents_in(list(part.values()))
        case list() | tuple():
            for item in part:
                yield from _extents_in(item)


def _plan_lines(plan: Plan) -> list[str]:
    lines = ["plan {", *([] if plan.align == ALIGN else [f"  align {plan.align}"])]
    lines += [f"  state {plan.state_bytes}", f"  weights {plan.weights_bytes}"]
    lines += [f"  arena {quoted(symbol)} {size}" for symbol, size in plan.arena_bytes.items()]
    lines += [f"  lower_bound {quoted(symbol)} {size}" for symbol, size in plan.lower_bound.items()]
    return [*lines, *(f"  {_buffer_text(b)}" for b in plan.buffers), "}"]


def _buffer_text(b: Buffer) -> str:
    text = f"buffer {quoted(b.name)} in {b.space}+{b.offset} size {b.nbytes} align {b.align}"
    text += f" live {b.start} to {b.end} line {b.line} function {quoted(b.function)}"
    return text + (f" because {quoted(b.reason)}" if b.reason else "")
