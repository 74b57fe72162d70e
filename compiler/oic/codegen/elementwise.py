"""Elementwise operators as C expressions, and the loops around them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oic import dtypes
from oic.codegen import expressions as expr
from oic.codegen.function_context import Frame, Ref, Strides
from oic.codegen.loops import Nest, broadcast_strides, collapse, load, store
from oic.dtypes import DType
from oic.ir.core import Op, Value
from oic.ir.types import TensorType
from oic.operators.base import SCALARS, Scalar, computed

_ATOMIC = re.compile(r"-?[\w.]+|\*?\w+|[\w>.-]+(\[[^\[\]]*\])+|\w+\([^()]*(\([^()]*\)[^()]*)*\)")
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_LONGEST = 72  # characters of an expression that is still written inside another


@dataclass
class OperandSource:
    """An operand in a loop: elements in memory, or an expression that is the same everywhere."""

    ref: Ref | None
    strides: Strides
    text: str = ""


def immediate(frame: Frame, value: Value) -> str | None:
    """The number in every element of a value that needs no memory, or None."""
    op = value.op
    if op is None:
        return None
    match op.name:
        case "splat":
            return expr.literal(op.attributes()["value"], value.dtype)
        case "index.tensor":
            return cast(frame.index(op.operands[0]), value.dtype.value)
        case "index.test":
            left, right = (frame.index(v) for v in op.operands)
            return f"(uint8_t)({left.text} < {right.text})"
    return None


def cast(index: expr.Index, c: str) -> str:
    """An index integer as a number of a C type."""
    if index.number is not None and not index.wide:
        return index.text
    return index.text if c == "int64_t" else f"({c}){index.at(expr.ATOM)}"


def scalar(frame: Frame, value: Value) -> str:
    """A value of one element as a number of its computed type, in an expression."""
    if value in frame.indices:
        return frame.index(value).text
    found = immediate(frame, value)
    ref = frame.refs.get(value)
    if found is not None:
        return found
    assert ref is not None, f"{value!r} has neither memory nor a number"
    return load(ref, ref.start.text)


def elementwise(frame: Frame, op: Op) -> None:
    """The loops of one elementwise operator."""
    inputs = {v: _source(frame, v, op.result.shape) for v in op.operands if v not in frame.indices}

    def body(read: Callable[[Value], str]) -> list[tuple[str, bool]]:
        return [(apply(frame, op, read), False)]

    _loops(frame, inputs, [frame.ref(op.result)], body)


def fused(frame: Frame, op: Op) -> None:
    """The loops of several elementwise operators computed together."""
    block = op.regions[0]
    outer = op.attributes()
    inputs_of = dict(zip(block.args, op.operands, strict=True))
    shape = outer["type"][0].shape
    inputs = {arg: _source(frame, v, shape) for arg, v in inputs_of.items()}

    def body(read: Callable[[Value], str]) -> list[tuple[str, bool]]:
        return _fused_body(frame, block, read)

    _loops(frame, inputs, [frame.ref(r) for r in op.results], body)


def _fused_body(frame: Frame, block: Any, read: Callable[[Value], str]) -> list[tuple[str, bool]]:
    """Write temporaries; give the expression of every result and whether it is rounded already."""
    uses: dict[Value, int] = {}
    for inner in block.ops:
        for v in inner.operands:
            uses[v] = uses.get(v, 0) + 1
    final = block.terminator.operands
    known: dict[Value, tuple[str, bool]] = {}

    def look(value: Value) -> str:
        if value not in known:
            return read(value)
        text, rounded = known[value]
        return text if rounded or not value.dtype.narrow else f"oic_round_{value.dtype}({text})"

    for inner in block.ops[:-1]:
        result = inner.result
        text = apply(frame, inner, look)
        known[result] = (text, not result.dtype.narrow)
        if uses.get(result, 0) > 1 or (len(text) > _LONGEST and result not in final):
            text = look(result)
            name = frame.names.unique(result.hint or "t")
            frame.lines.declare(name, f"const {result.dtype.value} {name} = {text};")
            known[result] = (name, True)
    return [known[v] if v in known else (read(v), True) for v in final]


def _source(frame: Frame, value: Value, shape: tuple[Any, ...]) -> OperandSource:
    text = immediate(frame, value)
    if text is not None:
        return OperandSource(None, (0,) * len(shape), text)
    ref = frame.ref(value)
    if ref.type.size == 1:  # a setting may have a higher rank than the result
        return OperandSource(ref, (0,) * len(shape))
    return OperandSource(ref, broadcast_strides(ref, shape))


def _loops(
    frame: Frame,
    inputs: dict[Value, OperandSource],
    results: list[Ref],
    body: Callable[[Callable[[Value], str]], list[tuple[str, bool]]],
) -> None:
    """Loop over the results' elements; operands that stay the same are loaded further out."""
    shape = results[0].type.shape
    operands = list(inputs.values())
    sizes, strides = collapse(shape, [s.strides for s in operands] + [r.strides for r in results])
    nest = Nest(frame, sizes)
    texts: dict[int, str] = {}

    def hoist() -> None:
        for at, source in enumerate(operands):
            rest = strides[at][nest.opened :]
            if source.ref and at not in texts and rest and all(s == 0 for s in rest):
                dtype = source.ref.type.dtype
                name = frame.names.unique(frame.names.stem(source.ref.pointer) + "_value")
                value = load(source.ref, nest.index(strides[at], source.ref.start))
                frame.lines.declare(name, f"const {dtype.value} {name} = {value};")
                texts[at] = name

    hoist()
    while nest.opened < len(sizes):
        nest.open()
        hoist()
    for at, source in enumerate(operands):
        if source.ref is None:
            texts[at] = source.text
        elif at not in texts:
            ref = _same_name(source.ref, results)
            texts[at] = load(ref, nest.index(strides[at], ref.start))
    by_value = dict(zip(inputs, texts_in_order(texts)))

    def read(value: Value) -> str:
        return by_value[value] if value in by_value else scalar(frame, value)

    values = body(read)
    _store(frame, results, values, [nest.index(s, r.start) for r, s in zip(results, strides[len(operands) :])])
    nest.close()


def texts_in_order(texts: dict[int, str]) -> list[str]:
    """The expressions by position of the operand."""
    return [texts[i] for i in range(len(texts))]


def _same_name(ref: Ref, results: list[Ref]) -> Ref:
    """The operand under the result's name where it is computed in place.

    One pointer read and written at one index is what C compilers vectorise without a check.
    """
    for result in results:
        if ref.key is not None and ref.key == result.key and ref.type.dtype is result.type.dtype:
            return Ref(result.pointer, ref.type, ref.strides, ref.const, ref.start, ref.key)
    return ref


def _store(frame: Frame, results: list[Ref], values: list[tuple[str, bool]], at: list[str]) -> None:
    """Store the results of one element, all computed before the first is stored."""
    texts = [text for text, _ in values]
    if len(results) > 1:
        for i, (ref, text) in enumerate(zip(results, texts)):
            if not re.fullmatch(r"\w+", text):
                texts[i] = frame.names.unique("t")
                frame.lines.add(f"const {ref.type.dtype.value} {texts[i]} = {text};")
    for ref, index, text in zip(results, at, texts):
        frame.lines.add(store(ref, index, text))


# ---------------------------------------------------------------- one element


def apply(frame: Frame, op: Op, read: Callable[[Value], str]) -> str:
    """The expression of an operator on one element; not rounded."""
    if op.name in ("copy", "broadcast_to", "reshape"):
        return read(op.operands[0])
    if op.name == "splat":
        return expr.literal(op.attributes()["value"], op.result.dtype)
    spec = getattr(op, "c", None)
    assert isinstance(spec, Scalar), f"{op.name} has no elementwise form"
    by = _decides(op, spec)
    arguments: list[str] = []
    for name in _passed(op, spec):
        wanted = dtypes.i64 if name in spec.wide else by
        arguments += _argument(frame, getattr(op, name), wanted, read)
        field = op.fields.get(name)
        if field is None or field.kind == "attribute":
            arguments[-1] = _converted(getattr(op, name), wanted, arguments[-1])
    if op.name == "fill":
        return arguments[0]
    if spec.infix and by.is_float:
        return _infix(spec.infix, arguments, op.result.dtype)
    frame.unit.headers.add(SCALARS)
    return f"{spec.function(op)}({', '.join(arguments)})"  # type: ignore[arg-type]


def _converted(setting: Any, wanted: DType, text: str) -> str:
    """A setting that is a variable of another type than it is passed in."""
    if not isinstance(setting, Value) or not isinstance(setting.type, TensorType):
        return text
    return text if computed(setting.dtype) is wanted else f"({wanted.value})({text})"


def _decides(op: Op, spec: Scalar) -> DType:
    """The type that settings are passed in."""
    value = op.result if spec.by == -1 else op.operands[spec.by or 0]
    return computed(value.dtype)


def _infix(symbol: str, arguments: list[str], result: DType) -> str:
    texts = [t if _ATOMIC.fullmatch(t) else f"({t})" for t in arguments]
    if len(texts) == 1:
        return f"{symbol}{texts[0]}"
    text = f" {symbol} ".join(texts)
    return f"(uint8_t)({text})" if symbol in _COMPARISONS or result.kind == "bool" else text


def _passed(op: Op, spec: Scalar) -> list[str]:
    """The fields that become arguments."""
    if spec.args is not None:
        return list(spec.args)
    return [name for name, field in op.fields.items() if _is_passed(field.kind, getattr(op, name))]


def _is_passed(kind: str, part: Any) -> bool:
    """A field that is an argument by default: operands, and numeric attributes."""
    if kind == "attribute":
        return isinstance(part, (bool, int, float, np.generic, Value))
    return kind in ("operand", "rest") or (kind == "optional" and part is not None)


def _argument(frame: Frame, part: Any, by: DType, read: Callable[[Value], str]) -> list[str]:
    """The arguments that one field gives; a setting has the type `by`."""
    if isinstance(part, Value):
        if part in frame.indices:
            return [cast(frame.index(part), by.value)]
        return [read(part)]
    if isinstance(part, (list, tuple)):
        return [read(v) for v in part]
    return [expr.literal(part, by)]
