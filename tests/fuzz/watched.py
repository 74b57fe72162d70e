"""The interpreter over planned memory, looked at byte by byte.

    WatchedMachine(module).step("entry", inputs)

Before every op, each byte of the arena that no buffer needs there, or needed somewhere on the way from
the last op, becomes noise: a value that is read after its buffer was given up is wrong at once,
whichever value would have shared its memory.  An op may write over what it reads only element by element, in
place: the interpreter reads everything first, and C does not.  After every op, the only bits that may
have changed are those of its results, which lie within their buffers, and those of the states it says
it writes.  So an op that writes beside what it owns is named, and no packing has to bring it to light.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir.core import Op, Place, Value
from oic.ir.liveness import liveness
from oic.ir.module import Buffer, Module
from oic.ir.state import StateStore
from oic.ir.text_print import located
from oic.ir.types import TensorType
from oic.reference.interpret import Compiled, Machine
from oic.reference.memory_image import Spaces
from oic.reference.semantics import box_of
from oic.reference.state_storage import Packed, positions


class WatchedMachine(Machine):
    """An interpreter of a PLANNED module whose steps raise AssertionError at the first wrong byte."""

    def __init__(self, module: Module, compiled: Compiled | None = None) -> None:
        super().__init__(module, compiled)
        self.watch = _Watch(self)

    def step(self, symbol: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        with self.watch.during(symbol):
            return super().step(symbol, inputs)


class _Watch:
    """What is known of memory between the ops of a machine."""

    def __init__(self, machine: Machine) -> None:
        assert machine.places is not None, "only planned memory can be watched"
        self.machine, self.places = machine, machine.places
        self.noise = np.random.default_rng(0)
        self.lives = {f.symbol: liveness(f.body) for f in machine.module.functions()}
        self.at = 0
        self.states = {b.name: (b.offset, b.nbytes) for b in self.places.plan.space("state")}
        self.buffers: dict[str, list[Buffer]] = {}
        self.dead: dict[tuple[str, int, int], Array] = {}
        self.symbol = ""
        self.last: Op | None = None
        self.before: dict[str, Array] = {}
        machine.observer = self._next

    @contextmanager
    def during(self, symbol: str) -> Iterator[None]:
        """Around a step; what its last op may not change is looked at too."""
        self.symbol, self.last, self.at = symbol, None, 0
        plan = self.places.plan
        self.buffers[symbol] = [b for b in plan.buffers if b.function == symbol]
        try:
            yield
        finally:
            self._check()

    def _next(self, op: Op) -> None:
        """Called before every op."""
        self._check()
        self._disturb(op)
        if not op.regions or op.name == "fused":
            self._apart(op)
        self.last = op
        self.before = {name: memory.copy() for name, memory in _spaces(self.places).items()}

    # -- bytes that no live value needs

    def _disturb(self, op: Op) -> None:
        live = self.lives[self.symbol]
        last, self.at = self.at, live.start[op]
        passed = [(last + 1, self.at)]
        if self.at <= last:  # the next iteration of a loop: past its end, and from its start
            block = op.block
            while block is not None and live.closed[block] <= last:
                block = block.owner.block if block.owner is not None else None
            assert block is not None, f"there is no way back to\n{located(op)}"
            passed = [(last + 1, live.closed[block] - 1), (live.opened[block], self.at)]
        for first, end in passed:
            dead = self._dead(first, end)
            self.places.arena[dead] = self.noise.integers(0, 256, int(dead.sum()), np.uint8)

    def _dead(self, first: int, last: int) -> Array:
        """Which bytes of the arena no buffer of the running function needs at one of these positions."""
        key = self.symbol, first, last
        if key not in self.dead:
            self.dead[key] = np.zeros(len(self.places.arena), np.bool_)
            for position in range(first, last + 1):
                needed = np.zeros(len(self.places.arena), np.bool_)
                for b in self.buffers[self.symbol]:
                    if b.space == "arena" and b.start <= position <= b.end:
                        needed[b.offset : b.offset + b.nbytes] = True
                self.dead[key] |= ~needed
        return self.dead[key]

    # -- operands that an op writes over

    def _apart(self, op: Op) -> None:
        """What an op writes is apart from what it reads, or is the same elements in the same order."""
        still = self.places.is_view(op) or (op.name == "insert" and op.attributes()["entry"])
        written = [] if still else [(r, _where(self.places, r)) for r in op.results]
        if op.name == "state.store":
            written = [(op.operands[0], self._stored(op))]
        read = [(v, _where(self.places, v)) for v in op.operands]
        for result, to in written:
            for value, of in read:
                if to is None or of is None or to[0] != of[0]:
                    continue
                if np.intersect1d(to[1], of[1]).size == 0:
                    continue
                alike = np.array_equal(to[1], of[1]) and _in_order(op, value)
                assert alike, f"{result!r} is written over {value!r} while it is read\n{located(op)}"

    def _stored(self, op: Op) -> tuple[str, Array]:
        """The bytes of the state that a store replaces."""
        storage = self.machine.storage(op.operands[0])
        base = self.states[storage.symbol][0] * 8
        start, lengths = box_of(self.machine, op)
        first = sum(a * s for a, s in zip(start, storage.strides))
        at = positions(first, lengths, storage.strides).reshape(-1)
        return "state", _bytes(base + at * storage.type.dtype.bits, storage.type.dtype.bits)

    # -- bytes that an op changed

    def _check(self) -> None:
        """Compare all memory with what it was before the last op."""
        op, self.last = self.last, None
        if op is None:
            return
        now = _spaces(self.places)
        allowed: dict[str, Array] = {}
        for name, memory in now.items():
            changed = memory ^ self.before[name]
            if not changed.any():
                continue
            if not allowed:
                allowed = self._allowed(op)
            wrong = changed & ~allowed[name]
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                raise AssertionError(
                    f"writes byte {at} of {name}, {self._owner(name, at)}\n{located(op)}"
                )

    def _allowed(self, op: Op) -> dict[str, Array]:
        """The bits that an op may change, of every space; none for one that only contains others."""
        found = {name: np.zeros_like(memory) for name, memory in self.before.items()}
        if op.regions and op.name != "fused":
            return found
        for state in op.touched("write"):
            at, nbytes = self.states[state.symbol]
            found["state"][at : at + nbytes] = 0xFF
        if not self.places.is_view(op):
            for value in op.results:
                self._add(value, found, op)
        return found

    def _add(self, value: Value, to: dict[str, Array], op: Op) -> None:
        """The bits of a value, which its buffer holds."""
        place = value.place
        if not isinstance(value.type, TensorType) or place is None or place.space == "local":
            return
        name = _space_name(self.places, place)
        bits = _bits(self.places, value, to[name])
        for b in self.buffers[self.symbol]:
            # An entry is as large as what is computed in it: nothing can lie outside.
            if place.space != "entry" and (b.space, b.name) == (place.space, place.buffer):
                outside = bits.copy()
                outside[b.offset : b.offset + b.nbytes] = 0
                assert not outside.any(), f"a result lies outside buffer '{b.name}'\n{located(op)}"
        to[name] |= bits

    def _owner(self, name: str, at: int) -> str:
        """What a byte belongs to, in words."""
        if name == "state":
            held = [s for s, (first, n) in self.states.items() if first <= at < first + n]
        else:
            held = [
                f"{b.name} (from {b.start} to {b.end})"
                for b in self.buffers[self.symbol]
                if b.space == name and b.offset <= at < b.offset + b.nbytes
            ]
        return "of " + ", ".join(held) if held else "of no value"


def _spaces(places: Spaces) -> dict[str, Array]:
    """All memory that a step may change."""
    outputs = {f"output '{name}'": memory for name, memory in places.outputs.items()}
    return {"arena": places.arena, "state": places.state} | outputs


def _in_order(op: Op, value: Value) -> bool:
    """The op reads each element of an operand before it writes the same element of its result."""
    if isinstance(op, StateStore) or op.takes_elements(value):
        return True
    parts = [getattr(op, name) for name in op.overwritable()]
    return any(part is value or (isinstance(part, list) and value in part) for part in parts)


def _where(places: Spaces, value: Value) -> tuple[str, Array] | None:
    """The space a value lies in and its bytes there, in order; None for what has no memory."""
    place = value.place
    if not isinstance(value.type, TensorType) or place is None or place.space == "local":
        return None
    memory: Any = places.memory(value)
    name = _space_name(places, place)
    if isinstance(memory, Packed):
        return name, _bytes(_first_bits(places, value, memory), value.dtype.bits)
    if memory.size == 0:
        return name, np.zeros(0, np.int64)
    start = _address(memory) - _address(_memory_of(places, place))
    found = np.full((), start, np.int64)
    for n, s in zip((*memory.shape, memory.itemsize), (*memory.strides, 1), strict=True):
        found = found[..., None] + np.arange(n) * s
    return name, found.reshape(-1)


def _space_name(places: Spaces, place: Place) -> str:
    """What memory a place is in; boxes that values are computed in are parts of the state, of the arena, of outputs."""
    if place.space == "entry":
        at = _address(places.space(place))
        spaces = _spaces(places).items()
        return next((n for n, m in spaces if _address(m) <= at < _address(m) + len(m)), "state")
    return f"output '{place.buffer}'" if place.space == "output" else place.space


def _memory_of(places: Spaces, place: Place) -> Array:
    """The memory that addresses of a place count from."""
    return _spaces(places)[_space_name(places, place)] if place.space == "entry" else places.space(place)


def _first_bits(places: Spaces, value: Value, memory: Packed) -> Array:
    """Positions of packed elements, in bits from the start of their space."""
    assert value.place is not None
    before = _address(memory.memory) - _address(_memory_of(places, value.place))
    return before * 8 + memory.positions.reshape(-1) * value.dtype.bits


def _bytes(bits: Array, width: int) -> Array:
    """The bytes in which elements of so many bits start; of wide ones all, in order."""
    first = bits >> 3
    return (first[:, None] + np.arange(max(1, width // 8))).reshape(-1)


def _bits(places: Spaces, value: Value, space: Array) -> Array:
    """A mask as long as a space, with the bits of a value set."""
    found = np.zeros_like(space)
    memory: Any = places.memory(value)
    if isinstance(memory, Packed):
        bits = _first_bits(places, value, memory)
        mask = np.uint8((1 << value.dtype.bits) - 1) << (bits & 7).astype(np.uint8)
        np.bitwise_or.at(found, bits >> 3, mask)
        return found
    where = _where(places, value)
    assert where is not None
    found[where[1]] = 0xFF
    return found


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
