"""A module in MLIR's generic form, for MLIR's tools (`--allow-unregistered-dialect`).

    %h = "oic.matmul"(%x, %W) {acc = unit} : (tensor<?x64xf32, #oic.shape<"N, 64">>, …) -> …

Every op is "oic.<name>"; values inside attributes are operands after the others, and the
attribute holds their positions.  Element types that MLIR lacks are types of the dialect `oic`.
"""

import math
import struct
from typing import Any

from oic.dtypes import DType
from oic.ir.core import Op, Value, operand_parts
from oic.ir.dims import Expr, Extent
from oic.ir.module import Module
from oic.ir.text_print import ValueNames, dim_text, place_text, quoted
from oic.ir.types import IndexType, StateType, TensorType, Type

ELEMENT = {"f8": "f8E5M2", "bool": "i1", "bitset": "!oic.bitset", "t1": "!oic.t1", "t2": "!oic.t2"}


def print_mlir(module: Module) -> str:
    """The program as one `builtin.module` of generic ops."""
    names = ValueNames()
    lines = [f"module @{quoted(module.name)} attributes {{oic.stage = {quoted(module.stage)}}} {{"]
    for op in module.top.ops:
        lines += _op_lines(op, names, "  ")
    return "\n".join([*lines, "}"]) + "\n"


def _op_lines(op: Op, names: ValueNames, indent: str) -> list[str]:
    operands, results = op.operands, ", ".join(map(names, op.results))
    head = indent + (f"{results} = " if results else "")
    lines = [head + f'"oic.{op.name}"({", ".join(map(names, operands))})']
    for i, block in enumerate(op.regions):
        lines[-1] += ", {" if i else " ({"
        args = ", ".join(f"{names(a)}: {mlir_type(a.type)}" for a in block.args)
        lines.append(f"{indent}^bb0" + (f"({args}):" if args else ":"))
        for inner in block.ops:
            lines += _op_lines(inner, names, indent + "  ")
        lines.append(indent + "}")
    if op.regions:
        lines[-1] += ")"
    taken = ", ".join(mlir_type(v.type) for v in operands)
    given = ", ".join(mlir_type(r.type) for r in op.results)
    given = given if len(op.results) == 1 else f"({given})"
    place = f" loc({quoted(op.span.source.name)}:{op.span.line}:{op.span.column})" if op.span else ""
    lines[-1] += f"{_dictionary(op)} : ({taken}) -> {given}{place}"
    return lines


def _dictionary(op: Op) -> str:
    parts = {k: mlir_attribute(v, op) for k, v in op.attributes().items()}
    if any(s.kind in ("optional", "rest") for s in op.fields.values()):
        counts = [len(v) if isinstance(v, list) else int(v is not None) for v in operand_parts(op)]
        parts["operandSegmentSizes"] = f"array<i32: {', '.join(map(str, counts))}>"
    places = [quoted(place_text(r.place)) for r in op.results if r.place]
    if places:
        parts["oic.places"] = f"[{', '.join(places)}]"
    return " {" + ", ".join(f"{quoted(k)} = {v}" for k, v in parts.items()) + "}" if parts else ""


def mlir_attribute(value: Any, op: Op) -> str:
    """An attribute of an op; sizes and oic's own types are written as strings of the dialect."""
    match value:
        case None:
            return "unit"
        case Value():
            return f"#oic.operand<{op.operands.index(value)}>"
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value} : {'i64' if -(1 << 63) <= value < 1 << 63 else 'i128'}"
        case float():
            return f"{_float(value)} : f64"
        case str():
            return quoted(value)
        case list() | tuple():
            return "[" + ", ".join(mlir_attribute(v, op) for v in value) + "]"
        case dict():
            inner = (f"{quoted(k)} = {mlir_attribute(v, op)}" for k, v in value.items())
            return "{" + ", ".join(inner) + "}"
        case TensorType() | IndexType() | StateType():
            return mlir_type(value)
        case Expr():
            return f"#oic.size<{quoted(dim_text(value))}>"
        case DType() | Extent():
            return f"#oic.{type(value).__name__.lower()}<{quoted(value.name)}>"
    return quoted(str(value))


def _float(value: float) -> str:
    if math.isfinite(value):
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    return f"0x{struct.pack('>d', value).hex().upper()}"


def mlir_type(type_: Type) -> str:
    """A type; the extents of a tensor's shape are in its encoding attribute."""
    if isinstance(type_, IndexType):
        return "index"
    if isinstance(type_, StateType):
        return f"!oic.state<{quoted(str(type_))}>"
    sizes = "".join(f"{d}x" if isinstance(d, int) else "?x" for d in type_.shape)
    shape = ", ".join(dim_text(d) for d in type_.shape)
    encoding = "" if type_.static else f", #oic.shape<{quoted(shape)}>"
    return f"tensor<{sizes}{mlir_element(type_.dtype)}{encoding}>"


def mlir_element(dtype: DType) -> str:
    """An element type: MLIR's own where it has one."""
    if dtype.is_int:
        sign = {"int": "s" if dtype.bits == 1 else "", "uint": "u"}[dtype.kind]
        return f"{sign}i{dtype.bits}"
    return ELEMENT.get(dtype.name, dtype.name)
