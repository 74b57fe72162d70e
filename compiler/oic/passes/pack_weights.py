"""Constants take the encoding that their kernels read.

    %w = constant {symbol=w, type=f32[64, 32]}           %w = constant {symbol=w, type=f32[64, 32] panels}
    %y = linear(%x, %w)                           ->     %y = linear(%x, %w)

A constant is encoded if each op that reads it, or a member of it, has a kernel that takes the encoding, in every
entry: entries share their weights.  The module keeps the values; they are encoded when they are written.
"""

from __future__ import annotations

from typing import Any

from oic.ir.core import Op, Value
from oic.ir.encodings import PANELS, padded
from oic.ir.module import Module
from oic.ir.state import ConstantSelect
from oic.ir.types import TensorType
from oic.operators.base import Operator

GROWTH = 1.5  # times as many bytes as dense, at most


def pack_weights(module: Module) -> None:
    """Encode every constant that may be."""
    seen: dict[Value, Any] = {op.result: op for op in module.constants()}
    wanted = {op.symbol for op in seen.values() if _worth(op.type)}
    members: list[tuple[Any, ConstantSelect]] = []
    for op in module.all_ops():
        for value in dict.fromkeys(op.operands):
            constant = seen.get(value)
            if constant is None:
                continue
            if isinstance(op, ConstantSelect) and op.result.tensor.rank >= 2:
                seen[op.result] = constant
                members.append((constant, op))
            elif not _takes(op, value):
                wanted.discard(constant.symbol)
    for constant in module.constants():
        if constant.symbol in wanted:
            constant.type = constant.result.type = _in_panels(constant.type)
    for constant, member in members:
        if constant.symbol in wanted:
            member.result.type = _in_panels(member.result.tensor)


def _worth(type_: TensorType) -> bool:
    """Matrices of whole bytes, which do not grow much by being filled up."""
    if type_.rank < 2 or not type_.static or not type_.dtype.is_float:
        return False
    rows = type_.maximum[-2]
    return rows > 0 and padded(type_.maximum, PANELS)[-2] <= GROWTH * rows


def _takes(op: Op, value: Value) -> bool:
    """Every field in which the op has the value is one in which some kernel of it takes panels."""
    if not isinstance(op, Operator):
        return False
    fields = [name for name in op.fields if getattr(op, name) is value]
    known = bool(fields) and op.operands.count(value) == len(fields)
    return known and all(any(PANELS in k.takes.get(f, ()) and k.fits(op) for k in op.kernels) for f in fields)


def _in_panels(type_: TensorType) -> TensorType:
    return TensorType(type_.dtype, type_.shape, PANELS)
