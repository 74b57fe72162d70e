"""StateStorage of persistent state from INDEXED on: arrays at capacity, read and written by boxes.

Large storage is address space whose pages are committed as they are touched, so a growing table
may be reserved far beyond the memory of the machine.
"""

import mmap
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oic import dtypes
from oic.diagnostics import StepError
from oic.dtypes import Array
from oic.ir.module import Module
from oic.ir.state import State
from oic.memory.layout import storage_strides, stored
from oic.memory.saved import Form, Part, storage_axes
from oic.reference.saved import Entries, Saved, entries_by_key

LARGE = 1 << 24  # bytes from which memory is mapped
EntryPositions = NDArray[np.int64]
IntegerBox = tuple[tuple[int, ...], tuple[int, ...]]  # where it starts, its sizes


@dataclass
class Packed:
    """Memory of elements of a packed type: where in it every element is, counted in elements."""

    memory: Array
    positions: EntryPositions


Memory = Array | Packed  # an array is a view of the bytes


def zeros(nbytes: int) -> Array:
    """Bytes that are 0; mapped without being committed where they are many.

    Raises StepError OIC_ERR_MEMORY where the system does not give them.
    """
    if nbytes < LARGE:
        return np.zeros(nbytes, np.uint8)
    # Python names the flag from 3.13 on.
    lazily = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
    private = hasattr(mmap, "MAP_PRIVATE")  # else Windows, whose only kind it is
    kind = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | lazily} if private else {}
    try:
        return np.frombuffer(mmap.mmap(-1, nbytes, **kind), np.uint8)
    except (OSError, MemoryError, OverflowError):
        raise StepError("OIC_ERR_MEMORY", f"the system does not give {nbytes:,} bytes of memory") from None


class StateStorage:
    """The bytes of one persistent variable, laid out as `memory.layout` says.

    initial the variable's initial value: of every element that was never written
    start   value of every element after a reset: the initial value, or 0 where address space is
            reserved, which is too large to fill (`lower_cache` does, on demand)
    reach   along every dimension, one more than the largest position that may differ from the start:
            in fresh memory, which is zeros, none or all
    """

    def __init__(self, op: State, memory: Array) -> None:
        self.symbol, self.type, self.memory = op.symbol, op.type, memory
        self.shape = self.type.capacity_shape
        self.strides = storage_strides(self.type)
        self.initial = op.initial
        self.start = dtypes.store(np.asarray(0 if self.type.reserved else op.init), self.type.dtype)
        fresh = not stored(self.start, self.type.dtype, 0).any()
        self.reach = [0] * len(self.shape) if fresh else list(self.shape)

    @property
    def number(self) -> int:
        """The integer that it is, kept beside a variable."""
        return int(self.read(((), ())))

    @number.setter
    def number(self, value: int) -> None:
        self.write(((), ()), np.asarray(value, self.type.dtype.np))

    def at(self, box: IntegerBox) -> Memory:
        """Where the elements of a box lie, which is inside the storage."""
        start, lengths = box
        inside = all(a >= 0 and n >= 0 and a + n <= c for a, n, c in zip(start, lengths, self.shape))
        assert inside, f"box {start} + {lengths} of '{self.symbol}' is outside {self.shape}"
        first = sum(a * s for a, s in zip(start, self.strides))
        return located(self.memory, self.type.dtype, first, lengths, self.strides)

    def read(self, box: IntegerBox) -> Array:
        """The elements of a box, copied."""
        return elements(self.at(box), self.type.dtype)

    def write(self, box: IntegerBox, values: Array) -> None:
        """Replace the elements of a box."""
        put(self.at(box), self.type.dtype, values)
        start, lengths = box
        if all(lengths):
            self.reach = [max(r, a + n) for r, a, n in zip(self.reach, start, lengths)]

    def reset(self) -> None:
        """As at the start; what was never written costs nothing."""
        box = ((0,) * len(self.shape), tuple(self.reach))
        self.write(box, np.full(box[1], self.start))
        self.reach = [0] * len(self.shape)


def storages(module: Module, memory: Array) -> dict[str, StateStorage]:
    """The persistent variables of a PLANNED module, in the memory of its state."""
    at = {b.name: slice(b.offset, b.offset + b.nbytes) for b in module.memory.space("state")}
    return {op.symbol: StateStorage(op, memory[at[op.symbol]]) for op in module.states()}


def logical(name: str, form: Form, states: Mapping[str, StateStorage], within: Sequence[slice] = ()) -> Array:
    """What `fetch` gives (SPEC, 8.2-8.5): table indices first, counts long; an auto-dim matrix as it has grown.

    Of each ring its newest entries, in order of position.  What was never filled has the initial value.

    within   of the first indices, the parts that are wanted; those of positions of a ring are not parted
    """
    part = next((part for part in form.parts if part.symbol == name), None)
    if part is None:  # an integer kept beside a variable
        return states[name].read(((), ()))
    counts = {symbol: states[symbol].number for symbol in form.counts}
    sizes, outer = (*part.entries(counts), *part.shape(counts)), len(part.table) - 1
    marks = zip(sizes, storage_axes(part))
    filled = tuple(min(n, states[mark].number) if mark in states else n for n, (_, mark) in marks)
    ranges = [range(n)[w] for n, w in zip(sizes, (*within, *[slice(None)] * (len(sizes) - len(within))))]
    first, lengths = tuple(r.start for r in ranges), tuple(map(len, ranges))
    filled = tuple(max(0, min(n, r.stop) - r.start) for n, r in zip(filled, ranges))
    found = np.full(lengths, states[name].initial, part.dtype.np)
    if all(filled):
        found[tuple(map(slice, filled))] = states[name].read((first, filled))
    if part.type.ring:
        following = states[f"{name}.{part.table[-1].name}"].read((first[:outer], lengths[:outer]))
        for key in np.ndindex(following.shape):
            found[key] = np.roll(found[key], -int(following[key]), 0)
    return found


def saved(part: Part, counts: dict[str, int], states: Mapping[str, StateStorage]) -> Iterator[Entries]:
    """The entries of a part for `reference.saved`, those of one row of a table at a time."""
    storage = states[part.symbol]
    lengths, shape = part.entries(counts), part.shape(counts)
    zero, start = (0,) * len(shape), part.start(shape)
    marks = zip((*lengths, *shape), storage_axes(part))
    filled = all(states[mark].number >= n for n, (_, mark) in marks if mark in states)
    if not lengths:
        entry = part.encoded(storage.read((zero, shape))[None]) if filled else start[None]
        yield np.zeros(1, np.int64), entry
        return
    last = lengths[-1] if filled else 0  # else nothing was reached yet
    for row, lead in enumerate(np.ndindex(lengths[:-1]) if last else ()):
        box = ((*lead, 0, *zero), (*[1] * len(lead), last, *shape))
        rows = part.encoded(storage.read(box).reshape(last, *shape))
        there = np.flatnonzero((rows != start).any(axis=1))
        yield row * last + there, rows[there]


def restore(found: Saved, form: Form, states: Mapping[str, StateStorage]) -> None:
    """What a saved state says, into storages as at the start."""
    for symbol, count in found.counts.items():
        states[symbol].number = count
    for part in form.parts:
        storage = states[part.symbol]
        lengths, shape = part.entries(found.counts), part.shape(found.counts)
        marks = list(storage_axes(part))
        filled = [states.get(mark) for _, mark in marks]
        if any(filled):
            sizes = (*lengths, *shape)
            box = [n if mark else c for n, mark, c in zip(sizes, filled, storage.shape)]
            storage.write(((0,) * len(box), tuple(box)), np.full(box, storage.initial))
            for n, mark in zip(sizes, filled):
                if mark:
                    mark.number = n
        for key, entry in entries_by_key(part, found):
            for again in (0, part.type.window) if part.type.ring else (0,):
                start = (*key[:-1], key[-1] + again) if again else key
                storage.write(((*start, *[0] * len(shape)), (*[1] * len(key), *shape)), entry)
            for index, (beside, _) in zip(key, marks):  # how far entries reach along indices of a fixed size
                if (touched := states.get(beside)) is not None:
                    touched.number = max(touched.number, index + 1)


def positions(first: int, shape: Sequence[int], strides: Sequence[int]) -> EntryPositions:
    """The positions of elements, from that of the first."""
    return np.asarray(first + np.tensordot(np.asarray(strides, np.int64), np.indices(shape), 1))


def located(memory: Array, dtype: dtypes.DType, first: int, shape: tuple[int, ...], strides: Sequence[int]) -> Memory:
    """Where elements lie in some bytes; the first and the strides count elements."""
    if dtype.packed:
        return Packed(memory, positions(first, shape, strides))
    if not all(shape):
        return np.empty(shape, dtype.np)
    size = dtype.np.itemsize
    # The constructor refuses memory outside the bytes.
    return np.ndarray(shape, dtype.np, memory.data, first * size, [s * size for s in strides])


def elements(memory: Memory, dtype: dtypes.DType) -> Array:
    """The elements that are there now, copied."""
    if not isinstance(memory, Packed):
        return memory.copy()
    per, shape = 8 // dtype.bits, memory.positions.shape
    byte, inside = np.divmod(memory.positions.reshape(-1), per)
    decoded = dtypes.unpack(memory.memory[byte], dtype, byte.size * per).reshape(byte.size, per)
    return decoded[np.arange(byte.size), inside].reshape(shape)


def put(memory: Memory, dtype: dtypes.DType, values: Array) -> None:
    """Replace the elements that are there; neighbours in the same byte stay as they are."""
    if not isinstance(memory, Packed):
        memory[...] = values
        return
    spread = np.zeros((memory.positions.size, 8 // dtype.bits), dtype.np)
    spread[:, 0] = np.broadcast_to(values, memory.positions.shape).reshape(-1)
    ones = np.uint8((1 << dtype.bits) - 1)
    bits = memory.positions.reshape(-1) * dtype.bits
    byte, shift = bits >> 3, (bits & 7).astype(np.uint8)
    np.bitwise_and.at(memory.memory, byte, ~(ones << shift))
    np.bitwise_or.at(memory.memory, byte, (dtypes.pack(spread, dtype) & ones) << shift)
