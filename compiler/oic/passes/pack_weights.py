"""Constants take the encoding that the kernels of their readers want.

    %w = constant {symbol=w, type=f32[64, 32]}           %w = constant {symbol=w, type=f32[64, 32] panels}
    %y = linear(%x, %w) {kernel="linear_panels"}   ->    %y = linear(%x, %w) {kernel="linear_panels"}

Members of a stacked constant have its encoding.  The module keeps the values; they are encoded when they are written.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from oic import dtypes
from oic.dtypes import DType
from oic.ir.core import Op, Value
from oic.ir.encodings import PAIRED, joined, layout_of, padded, storage_of, stored_as
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect
from oic.ir.types import TensorType
from oic.operators.base import Operator

GROWTH = 1.5  # times as many bytes as dense, at most


@dataclass(frozen=True)
class Reader:
    """An op that takes a constant, or a member of it, as it lies in memory.

    fields   in which it takes it; none where it takes it in another way, too
    """

    op: Op
    fields: tuple[str, ...]


def readers(module: Module) -> Iterator[tuple[Value, list[Reader]]]:
    """Every constant with all that read it or a member of it, in every entry."""
    for constant in module.constants():
        values = members(constant.result)
        uses = ((op, value) for value in values for op in value.users)
        found = [Reader(op, fields_of(op, v)) for op, v in uses if not (op.results and op.results[0] in values)]
        yield constant.result, found


def members(constant: Value) -> dict[Value, None]:
    """A constant and the matrices that are selected of it."""
    selected = [op.result for op in constant.users if isinstance(op, ConstantSelect) and op.result.tensor.rank >= 2]
    return dict.fromkeys([constant, *selected])


def fields_of(op: Op, value: Value) -> tuple[str, ...]:
    """In which an op takes a value; none where it takes it in another way, too."""
    fields = tuple(name for name in op.fields if getattr(op, name) is value)
    return fields if op.operands.count(value) == len(fields) else ()


def may_have(type_: TensorType, encoding: str) -> bool:
    """Matrices of floats or bytes, which do not grow much by being filled up; pairs are of bf16."""
    packable = type_.dtype.is_float or type_.dtype in (dtypes.i8, dtypes.u8)
    if type_.rank < 2 or not type_.static or not packable or 0 in type_.shape:
        return False
    if layout_of(encoding) in PAIRED.values() and stored_as(type_.dtype, encoding) is not dtypes.bf16:
        return False
    dense, filled = type_.maximum[-2:], padded(type_.maximum, encoding)[-2:]
    return filled[0] * filled[1] <= GROWTH * dense[0] * dense[1]


def pack_weights(module: Module) -> None:
    """Encode every constant whose readers' kernels want it."""
    for constant, found in list(readers(module)):
        wanted = {_wanted(reader) for reader in found}
        if len(wanted) == 1 and (layout := wanted.pop()):
            encode(constant, joined(storage_of(constant.tensor.encoding), layout))


def encode(constant: Value, encoding: str, dtype: DType | None = None) -> None:
    """Give a constant and its members an encoding (and a dtype)."""
    for value in members(constant):
        value.type = TensorType(dtype or value.tensor.dtype, value.tensor.shape, encoding)
    assert isinstance(constant.op, Constant)
    constant.op.type = constant.tensor


def _wanted(reader: Reader) -> str:
    """The layout that a reader takes."""
    if not isinstance(reader.op, Operator) or not reader.op.kernel:
        return ""
    taken = {reader.op.chosen().takes.get(field, "") for field in reader.fields}
    return taken.pop() if len(taken) == 1 else ""
