"""What an op does, as far as memory and arithmetic units have to do with it: bytes and operations, by its sizes.

It is what an op cannot do without, not what a kernel makes of it: every operand is read once and every result written
once, whatever caches hold.
"""

from dataclasses import dataclass
from typing import Any

from oic.ir import dims
from oic.ir.core import Op, Value
from oic.ir.dims import Dim
from oic.ir.state import StateGet, StateStore
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.operators.fused import Fused
from oic.operators.part import Insert

ELEMENTWISE = 16  # OIC_WORK_ELEMENT: multiplications and additions that take as long as an operator on one element

COLUMNS = 16  # OIC_COLUMNS_UNIT: neighbouring columns that no threads divide


@dataclass(frozen=True)
class Work:
    """Bytes of operands, bytes of results, operations; each may depend on extents."""

    read: Dim = 0
    written: Dim = 0
    operations: Dim = 0


def does(op: Op) -> bool:
    """The op does what a statement says, and not what must hold before it."""
    return op.catalog or bool(op.writes) or (bool(op.reads) and not isinstance(op, StateGet))


def work(op: Op) -> Work:
    """The work of one run of an op; none of what only computes addresses or encloses others."""
    match op:
        case StateStore() | Insert():
            nbytes = 0 if op.entry else _nbytes(op.value)
            return Work(nbytes, nbytes)
        case Fused():
            first, elements = op.product, (op.product or op).results[0].tensor.size
            operations = (inner(op) - 1) * elements + (first.operations() if first is not None else elements)
            return Work(_all(op.inputs), _all(op.results), operations)
        case Operator() if not op.view and op.results:
            return Work(_read(op), _all(op.results), op.operations())
    return Work()


def elementwise_work(op: Op) -> Dim:
    """What an op that does as much for every element is worth, or several in one, as `Kernel.work` counts."""
    return ELEMENTWISE * (inner(op) if isinstance(op, Fused) else 1) * op.results[0].tensor.size


def column_units(op: Any) -> Dim:
    """Units of `kernels/common/columns.h` that threads can share of what goes along an axis: rows, or some columns."""
    members = op.call().members
    return members["outer"] * dims.floor_div(members["inner"] + COLUMNS - 1, COLUMNS)


def inner(op: Fused) -> int:
    """How many ops a fused region has."""
    return len(op.body.ops) - 1  # the last gives the results


def _read(op: Any) -> Dim:
    """Bytes of the operands whose elements are read; of a table that ids select from, as many as are selected."""
    selected = [getattr(op, name) for name in op.selects]
    unread = [getattr(op, name) for name in op.unread]
    whole = _all([v for v in dict.fromkeys(op.operands) if v not in selected and v not in unread])
    return whole + sum(_stored(v.tensor, op.results[0].tensor.size) for v in selected)


def _all(values: list[Value]) -> Dim:
    return sum(map(_nbytes, values))


def _nbytes(value: Value) -> Dim:
    """Bytes of a value in memory; of an index integer none."""
    type_ = value.type
    if not isinstance(type_, TensorType):
        return 0
    return type_.nbytes if type_.static else _stored(type_, type_.size)


def _stored(type_: TensorType, elements: Dim) -> Dim:
    """Bytes of so many elements of a value."""
    bits = type_.dtype.bits
    if type_.static and type_.size:  # an encoding has bits of its own
        bits = round(8 * type_.nbytes / dims.maximum(type_.size))
    return dims.floor_div(elements * bits, 8)
