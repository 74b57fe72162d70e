"""Where persistent state and constants lie: the structure of the state, the offsets of the weights.

The state is one C structure.  Counts (symbols with a dot, `K.t`) come first, then every variable
in declaration order, each at its natural alignment, and at the target's where it is large.  Tables
are row-major at capacity.  Entries of packed types (`i4`, ...) fill whole bytes, so that an entry,
or a member of a family of constants, always starts at a byte.

The weights are one blob: a header, then every constant, each at the target's alignment, in the order in which the
program first reads them, so that the pages of a mapped file are asked for in order.
Offsets of both are from the start of the memory, the header included.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oic import dtypes
from oic.dtypes import Array, DType
from oic.ir.core import Place, seen_through
from oic.ir.encodings import ALIGN, encoded, encoded_parts, matrix_bytes, padded, storage_of
from oic.ir.members import Elements, Members, StoredElements, forget
from oic.ir.module import Buffer, Module, Plan
from oic.ir.quantized import GROUP_STORAGES
from oic.ir.state import Constant, State
from oic.ir.types import StateType, TensorType

LARGE = 1024  # bytes from which a variable of the state starts at the target's alignment
WEIGHTS_HEADER = 64  # bytes before the first constant


def is_count(state: State) -> bool:
    """A `state` op that holds one integer kept beside a variable (symbols with a dot, `K.t`)."""
    return "." in state.symbol and state.type.plain


def lay_out(module: Module, align: int = ALIGN) -> Plan:
    """A plan of the state and the weights, in the order of memory; constants get their addresses.

    The structure has a multiple of 8 bytes that is never 0, the blob, header included, one of the alignment.
    """
    plan = Plan(align)
    end = 0
    for state in sorted(module.states(), key=is_count, reverse=True):
        nbytes = storage_bytes(state.type)
        offset = _up(end, align if nbytes >= LARGE else state.type.dtype.align)
        plan.buffers.append(Buffer(state.symbol, "state", offset, nbytes))
        end = offset + nbytes
    plan.state_bytes, end = max(8, _up(end, 8)), WEIGHTS_HEADER
    for op in _by_first_use(module):
        nbytes = constant_bytes(op.type, op.family_rank)
        op.result.place = Place("weights", op.symbol, end)
        plan.buffers.append(Buffer(op.symbol, "weights", end, nbytes))
        end = _up(end + nbytes, align)
    plan.weights_bytes = end
    return plan


def _by_first_use(module: Module) -> list[Constant]:
    """The constants in the order in which the program first takes them, be it through views; unused ones come last."""
    taken = (base.op for op in module.all_ops() if not op.view for value in op.operands for base in seen_through(value))
    return [op for op in dict.fromkeys((*taken, *module.constants())) if isinstance(op, Constant)]


def arena_bytes(module: Module) -> int:
    """Bytes of the arena: the most that an entry needs; at least a unit of it, so that C has an array of so many."""
    return max(module.memory.align, *module.memory.arena_bytes.values())


def storage_strides(type: StateType) -> tuple[int, ...]:
    """Elements between neighbours along every dimension of `capacity_shape`.

    An entry is row-major without gaps; entries of packed types start at whole bytes.
    """
    return _strides(type.dtype, type.capacity_shape, len(type.table))


def storage_bytes(type: StateType) -> int:
    """Bytes of a persistent variable at capacity; one without elements has room for some, as C has no such array."""
    shape, outer = [max(1, size) for size in type.capacity_shape], len(type.table)
    return math.prod(shape[:outer]) * type.dtype.nbytes(math.prod(shape[outer:]))


def constant_strides(type: TensorType, family: int) -> tuple[int, ...]:
    """Elements, as they are stored, between neighbours of a constant whose `family` leading dimensions number members.

    Of an encoded one only those between matrices mean anything.
    """
    if storage_of(type.encoding) not in GROUP_STORAGES:
        return _strides(type.dtype, padded(type.maximum, type.encoding), family)
    matrices = _strides(type.stored, type.maximum[:-2], family)
    size = matrix_bytes(type.maximum, type.encoding)
    return (*(s * size for s in matrices), 1, 1)


def constant_bytes(type: TensorType, family: int) -> int:
    """Bytes of a constant in the blob."""
    shape = type.maximum
    return math.prod(shape[:family]) * TensorType(type.dtype, shape[family:], type.encoding).nbytes


def constant_parts(values: Elements, type: TensorType, family: int) -> Iterator[NDArray[np.uint8]]:
    """The bytes of a constant in the blob, in order; no more of them are made at a time than one part needs."""
    if type.dtype.packed:
        yield stored(encoded(np.asarray(values).reshape(type.maximum), type.encoding), type.dtype, family)
        return
    if isinstance(values, StoredElements) or storage_of(type.encoding):
        found = values if isinstance(values, StoredElements) else StoredElements("", values, type.encoding)
        yield from found.parts(type.encoding)
        return
    for member in values if isinstance(values, Members) else (values.reshape(type.maximum),):
        yield from (dtypes.pack(part, type.dtype) for part in encoded_parts(member, type.encoding))
        forget(member)


def stored(values: Array, dtype: DType, outer: int) -> NDArray[np.uint8]:
    """The bytes of an array whose members (below the `outer` leading dimensions) fill whole bytes."""
    if not dtype.packed or outer == 0 or values.size == 0:
        return dtypes.pack(values, dtype)
    members = values.reshape(math.prod(values.shape[:outer]), -1)
    per = 8 // dtype.bits
    spare = -members.shape[1] % per
    packed = dtypes.pack(np.pad(members, ((0, 0), (0, spare))), dtype).reshape(len(members), -1)
    if spare:  # the bits after the last element are 0, whatever code the type gives to 0
        packed[:, -1] &= np.uint8((1 << ((per - spare) * dtype.bits)) - 1)
    return packed.reshape(-1)


def loaded(data: Array, dtype: DType, shape: tuple[int, ...], outer: int) -> Array:
    """The array of this shape from the bytes of `stored`."""
    members, inner = math.prod(shape[:outer]), math.prod(shape[outer:])
    width = _up(inner, 8 // dtype.bits) if dtype.packed else inner
    return dtypes.unpack(data, dtype, members * width).reshape(members, width)[:, :inner].reshape(shape)


def weights_described(module: Module) -> str:
    """What differs when the layout of the weights does."""
    types = {op.symbol: op.type for op in module.constants()}
    lines = [f"weights {module.name}"]
    lines += [f"{b.name} {types[b.name]} {b.offset} {b.nbytes}" for b in module.memory.space("weights")]
    return "\n".join(lines)


def _strides(dtype: DType, shape: tuple[int, ...], outer: int) -> tuple[int, ...]:
    entry = _up(math.prod(shape[outer:]), 8 // dtype.bits if dtype.packed else 1)
    table = (entry * math.prod(shape[axis + 1 : outer]) for axis in range(outer))
    return (*table, *(math.prod(shape[axis + 1 :]) for axis in range(outer, len(shape))))


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
