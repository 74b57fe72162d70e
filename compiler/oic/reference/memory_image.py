"""The memory of a PLANNED module: every tensor lies where its place says, in real bytes.

Reading a value decodes the bytes at its place, writing one encodes them, and views are views.
So a wrong alias, an overlap or a write out of turn gives a wrong answer here without any C.
Arena and outputs are noise before every step.  NumPy refuses elements that would lie outside a space.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oic.dtypes import Array, DType, pack
from oic.ir import dims
from oic.ir.core import Op, Place, Value
from oic.ir.encodings import loaded
from oic.ir.index import AssertShape
from oic.ir.module import Module
from oic.ir.state import ConstantSelect, StateLoad
from oic.ir.types import TensorType
from oic.memory import layout
from oic.operators.base import Operator
from oic.operators.evaluate import apply, shape_of
from oic.reference import state_storage
from oic.reference.state_storage import Memory, Packed, zeros

NOISE = np.random.default_rng(20240229).integers(0, 256, 1 << 16, np.uint8)
NOISY = 1 << 24  # bytes of the arena, or of an output, that are noise before a step


class Spaces:
    """The five spaces, and the memory of every value in them."""

    def __init__(self, module: Module) -> None:
        self.plan = module.memory
        self.state = zeros(self.plan.state_bytes)
        self.weights = zeros(self.plan.weights_bytes)
        _fill_weights(module, self.weights)
        self.weights.flags.writeable = False
        self.arena = zeros(max(self.plan.arena_bytes.values(), default=0))
        self.decoded: dict[Value, Array] = {}  # encoded constants
        self.families = {op.result: op.family_rank for op in module.constants()}

    def begin(self, symbol: str, inputs: Mapping[str, tuple[Array, DType]], sizes: Mapping[str, int]) -> None:
        """Start a step of a function: noise in the arena, the inputs' bytes, outputs of noise."""
        self.symbol, self.sizes = symbol, sizes
        self.views: dict[Value, Memory] = {}
        self.entries: dict[str, Array] = {}  # memory of boxes that values are computed in, by buffer
        self.inputs = {name: np.array(pack(array, dtype)) for name, (array, dtype) in inputs.items()}
        for given in self.inputs.values():
            given.flags.writeable = False
        self.outputs = {b.name: zeros(b.nbytes) for b in self.plan.space("output") if b.function == symbol}
        for memory in (self.arena, *self.outputs.values()):  # what reads it before writing it is found out
            memory[:NOISY] = np.resize(NOISE, min(NOISY, len(memory)))

    # -- values

    def read(self, value: Value) -> Array:
        """The value as it is in memory now, copied."""
        return state_storage.elements(self.memory(value), value.dtype)

    def write(self, value: Value, array: Array) -> None:
        """Store a result at its place."""
        state_storage.put(self.memory(value), value.dtype, array)

    def memory(self, value: Value) -> Memory:
        """Where a value lies: at its place, or where the op that made it a view has found it."""
        if value in self.views:
            return self.views[value]
        place, dtype = value.place, value.dtype
        assert place is not None and place.offset is not None, f"{value!r} has no address"
        space, offset = self.space(place), place.offset
        shape = shape_of(value.tensor, self.sizes)
        if value.tensor.encoding:
            return self._decoded(value, space, offset)
        assert offset % dtype.align == 0, f"{place} is not aligned for {dtype}"
        strides = self._strides(value, place, shape)
        return state_storage.located(space, dtype, offset * 8 // dtype.bits, shape, strides)

    def _decoded(self, value: Value, space: Array, offset: int) -> Array:
        """An encoded constant as it is computed with; kept, since it does not change."""
        if value not in self.decoded:
            type_ = value.tensor
            data = space[offset : offset + type_.nbytes]
            self.decoded[value] = loaded(data, type_.dtype, type_.maximum, type_.encoding)
            self.decoded[value].flags.writeable = False
        return self.decoded[value]

    def _strides(self, value: Value, place: Place, shape: tuple[int, ...]) -> list[int]:
        if place.strides is not None:
            return [dims.evaluate(s, self.sizes) for s in place.strides]
        family = self.families.get(value, 0)  # members of packed types start at whole bytes
        return list(layout.constant_strides(TensorType(value.dtype, shape, value.tensor.encoding), family))

    def space(self, place: Place) -> Array:
        """The memory that a place is in."""
        whole = {"arena": self.arena, "state": self.state, "weights": self.weights}
        if place.space in whole:
            return whole[place.space]
        return {"input": self.inputs, "output": self.outputs, "entry": self.entries}[place.space][place.buffer]

    # -- boxes that values are computed in

    def enter(self, symbol: str, part: Memory, dtype: DType) -> None:
        """Let values be computed in some elements of the state or of a tensor, which lie side by side."""
        if not isinstance(part, Packed):
            assert part.flags.c_contiguous, f"{symbol} has gaps"
            self.entries[symbol] = part.reshape(-1).view(np.uint8)
            return
        positions = part.positions.reshape(-1)
        first = int(positions[0]) * dtype.bits if len(positions) else 0
        assert first % 8 == 0 and (np.diff(positions) == 1).all(), f"{symbol} has gaps, or begins inside a byte"
        self.entries[symbol] = part.memory[first // 8 :][: dtype.nbytes(len(positions))]

    def enter_part(self, op: Any, inside: tuple[slice, ...]) -> None:
        """Let values be computed in a box of a tensor."""
        memory = self.memory(op.x)
        part = _part(op, memory, _seen(memory)[inside])
        assert _seen(part).size * op.x.dtype.bits % 8 == 0, f"{op} ends inside a byte"
        self.enter(op.symbol, part, op.x.dtype)

    # -- views

    def is_view(self, op: Op) -> bool:
        """The results of the op are its operand's memory: nothing is written."""
        if not op.view or not op.results:
            return False
        place, source = op.results[0].place, op.operands[0].place
        if place is None or place.space == "local":
            return False
        if place.offset is None:
            return True
        if isinstance(op, StateLoad):
            return place.space == "state"
        return source is not None and place.memory == source.memory

    def view(self, op: Op, read: Any, within: Memory | None = None) -> None:
        """Find the memory of the results of a view, by default in that of its operand; nothing moves."""
        if op.results[0].placed.offset is None:  # else the planner says where
            memory = self.memory(op.operands[0]) if within is None else within
            parts = (_part(op, memory, part) for part in self._see(op, _seen(memory), read))
            self.views.update(zip(op.results, parts, strict=True))

    def _see(self, op: Op, seen: Array, read: Any) -> list[Array]:
        if isinstance(op, AssertShape):
            return [seen]
        if isinstance(op, ConstantSelect):
            return [seen[(*map(read, op.indices), ...)]]
        if isinstance(op, StateLoad):  # lengths left out are dimensions of size 1
            return [seen[(*(0 if n is None else slice(None) for n in op.lengths), ...)]]
        assert isinstance(op, Operator), f"{op.name} is no view that is known here"
        return apply(op, [seen], read, self.sizes)


def _seen(memory: Memory) -> Array:
    """Elements, or where they are."""
    return memory.positions if isinstance(memory, Packed) else memory


def _part(op: Op, memory: Memory, part: Array) -> Memory:
    """Some memory as a view sees it, by what it sees of elements, or of where they are."""
    if isinstance(memory, Packed):
        return Packed(memory.memory, part.astype(np.int64))
    shared = part.size == 0 or np.may_share_memory(part, memory)
    assert shared, f"{op.name} of this layout is no view: {memory.strides} to {part.shape}"
    return part


def _fill_weights(module: Module, blob: Array) -> None:
    """Put every constant into the blob."""
    offsets = {b.name: b.offset for b in module.memory.space("weights")}
    for op in module.constants():
        offset = offsets[op.symbol]
        for part in layout.constant_parts(module.weights[op.symbol], op.type, op.family_rank):
            blob[offset : offset + len(part)] = part
            offset += len(part)
