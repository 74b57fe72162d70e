"""`<name>.memory.json`: the memory map for tools (format in docs/cli.md)."""

import json
from collections.abc import Sequence
from typing import Any

from oic.codegen.c_module import StateMember, Unit
from oic.ir.module import Buffer
from oic.ir.state import Constant
from oic.memory.map import MemoryMap, growing
from oic.toolchain.code_metrics import Figures

VERSION = 2  # of the format
SPACES = ("state", "entry", "arena", "weights", "input", "output")
_on_one_line = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for each line


def memory_json(unit: Unit, found: MemoryMap, figures: Figures | None, files: Sequence[str], fingerprint: str) -> str:
    """The memory map of a planned module; the compiler's figures where there are some.

    found         the map
    files         of the build, by path in its folder
    fingerprint   of header and code
    """
    plan = unit.module.memory
    functions = {o.function: vars(o) | {"lines": [*o.lines], "spans": [*map(vars, o.spans)]} for o in found.orders}
    content = {
        "graph": unit.module.name, "version": VERSION, "files": list(files), "fingerprint": fingerprint,
        "state_bytes": plan.state_bytes, "weights_bytes": unit.weights_bytes, "arena": unit.arena_bytes,
        "arena_bytes": plan.arena_bytes, "arena_lower_bound": plan.lower_bound,
        "compiled": figures.to_json() if figures is not None else None,
        "spaces": {space: [_buffer(b, found) for b in plan.space(space)] for space in SPACES},
        "values": [vars(v) for v in found.values],
        "stores": [vars(s) for s in found.stores],
        "functions": functions,
        "state": [_variable(unit, field) for field in unit.fields.values()],
        "weights": [_constant(unit, op) for op in unit.module.constants()],
    }  # fmt: skip
    return _lines(content) + "\n"


def _lines(part: Any, before: str = "\n") -> str:
    """JSON that people can read, too: a line for each member of an object, and for each object in a list."""
    inner, ends = before + " ", "{}" if isinstance(part, dict) else "[]"
    if part and isinstance(part, dict):
        rows = [f"{_on_one_line(key)}: {_lines(value, inner)}" for key, value in part.items()]
    elif part and isinstance(part, list) and isinstance(part[0], dict | str):
        rows = [*map(_on_one_line, part)]
    else:
        return _on_one_line(part)
    return ends[0] + inner + f",{inner}".join(rows) + before + ends[1]


def _buffer(b: Buffer, found: MemoryMap) -> dict[str, Any]:
    return {
        "name": b.name, "offset": b.offset, "bytes": b.nbytes,
        "function": b.function, "start": b.start, "end": b.end, "line": b.line,
        "kind": found.kind(b), "values": [v.name for v in found.of(b)], "reason": b.reason,
    }  # fmt: skip


def _variable(unit: Unit, field: StateMember) -> dict[str, Any]:
    """A persistent variable, or a count kept beside one."""
    type_, symbol = field.type, field.op.symbol
    return {
        "name": symbol, "member": field.member, "type": str(type_), "dtype": str(type_.dtype),
        "offset": field.offset, "bytes": field.nbytes, "line": field.op.line,
        "shape": list(type_.capacity_shape), "strides": list(field.strides), "ring": type_.ring,
        "indices": [
            {
                "name": i.name, "capacity": i.capacity,
                "bound": "fixed" if i.fixed else "reserved" if i.reserved else "given", "grows": i in growing(type_),
                "count": f"{symbol}.{i.name}" if f"{symbol}.{i.name}" in unit.fields else None,
            }
            for i in (*type_.table, *type_.auto)
        ],
    }  # fmt: skip


def _constant(unit: Unit, op: Constant) -> dict[str, Any]:
    buffer, type_ = unit.weights[op.symbol], op.result.tensor
    return {
        "name": op.symbol, "type": str(type_), "dtype": str(type_.dtype), "encoding": type_.encoding,
        "offset": buffer.offset, "bytes": buffer.nbytes, "line": op.line,
        "shape": list(type_.maximum), "parts": [{"name": name, "line": line} for name, line in op.parts.items()],
    }  # fmt: skip
