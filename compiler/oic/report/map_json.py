"""`<name>.memory.json`: the memory map for tools (format in docs/cli.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from oic.codegen.c_module import Field, Unit
from oic.ir.module import Buffer
from oic.memory.layout import storage_strides
from oic.memory.map import Placed, buffer_kind, growing, orders, placed, stored
from oic.toolchain.code_metrics import Figures

VERSION = 2  # of the format
SPACES = ("state", "entry", "arena", "weights", "input", "output")


def memory_json(unit: Unit, figures: Figures | None, files: Sequence[str], fingerprint: str) -> str:
    """The memory map of a planned module; the compiler's figures where there are some.

    files         of the build, by path in its folder
    fingerprint   of header and code
    """
    plan = unit.module.plan
    assert plan is not None
    values = placed(unit.module)
    content = {
        "graph": unit.module.name,
        "version": VERSION,
        "files": list(files),
        "fingerprint": fingerprint,
        "state_bytes": plan.state_bytes,
        "weights_bytes": unit.weights_bytes,
        "arena": unit.arena_bytes,
        "arena_bytes": plan.arena_bytes,
        "arena_lower_bound": plan.lower_bound,
        "compiled": figures.to_json() if figures is not None else None,
        "spaces": {space: [_buffer(b, values) for b in plan.space(space)] for space in SPACES},
        "values": [asdict(v) for v in values],
        "stores": [asdict(s) for s in stored(unit.module)],
        "functions": {o.function: asdict(o) for o in orders(unit.module)},
        "state": [_variable(unit, field) for field in unit.fields.values()],
        "weights": [_constant(unit, op) for op in unit.module.constants()],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _buffer(buffer: Buffer, values: list[Placed]) -> dict[str, Any]:
    own = [v for v in values if v.function == buffer.function]
    inside = [v.name for v in own if (v.space, v.buffer) == (buffer.space, buffer.name)]
    return {
        "name": buffer.name,
        "offset": buffer.offset,
        "bytes": buffer.nbytes,
        "function": buffer.function,
        "start": buffer.start,
        "end": buffer.end,
        "line": buffer.line,
        "kind": buffer_kind(buffer, own),
        "values": inside,
        "reason": buffer.reason,
    }


def _variable(unit: Unit, field: Field) -> dict[str, Any]:
    """A persistent variable, or a count kept beside one."""
    type_, symbol = field.type, field.op.symbol
    grows = growing(type_)
    return {
        "name": symbol,
        "member": field.member,
        "type": str(type_),
        "dtype": str(type_.dtype),
        "offset": field.offset,
        "bytes": field.nbytes,
        "line": field.op.span.line if field.op.span else 0,
        "shape": list(type_.capacity_shape),
        "strides": list(storage_strides(type_)),
        "ring": type_.ring,
        "indices": [
            {
                "name": i.name,
                "capacity": i.capacity,
                "bound": "fixed" if i.fixed else "reserved" if i.reserved else "given",
                "grows": i in grows,
                "count": f"{symbol}.{i.name}" if f"{symbol}.{i.name}" in unit.fields else None,
            }
            for i in (*type_.table, *type_.auto)
        ],
    }


def _constant(unit: Unit, op: Any) -> dict[str, Any]:
    offset, nbytes = unit.weights[op.symbol]
    type_ = op.result.tensor
    return {
        "name": op.symbol,
        "type": str(type_),
        "dtype": str(type_.dtype),
        "offset": offset,
        "bytes": nbytes,
        "line": op.span.line if op.span else 0,
        "shape": list(type_.maximum),
    }
