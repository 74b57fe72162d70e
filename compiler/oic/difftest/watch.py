"""The interpreter over planned memory, looked at byte by byte.

    Watch(machine).step("entry", inputs)

Before every op, each byte of the arena that no buffer needs there becomes noise: a value that is
read after its buffer was given up is wrong at once, whoever would have shared its memory.  After
every op, the only bits that may have changed are those of its results, which lie within their
buffers, and those of the states it says it writes.  So an op that writes beside what it owns is
named, and no packing has to bring it to light.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir.core import Op, Value
from oic.ir.module import Buffer
from oic.ir.types import TensorType
from oic.memory.layout import state_layout
from oic.memory.liveness import liveness
from oic.reference.interpret import Machine, located
from oic.reference.places import Packed, Places


class Watch:
    """Steps of a machine of a PLANNED module.  Raises AssertionError at the first wrong byte."""

    def __init__(self, machine: Machine) -> None:
        assert machine.places is not None, "only planned memory can be watched"
        self.machine, self.places = machine, machine.places
        self.noise = np.random.default_rng(0)
        self.positions: dict[Op, int] = {}
        for func in machine.module.functions():
            self.positions |= liveness(func.body).start
        self.states = {symbol: (at, n) for symbol, at, n in state_layout(machine.module)}
        self.buffers: dict[str, list[Buffer]] = {}
        self.needed: dict[tuple[str, int], Array] = {}
        self.symbol = ""
        self.last: Op | None = None
        self.before: dict[str, Array] = {}
        machine.observer = self._next

    def step(self, symbol: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """One step; as `Machine.step`, and what its last op may not change is looked at too."""
        self.symbol, self.last = symbol, None
        plan = self.places.plan
        self.buffers[symbol] = [b for b in plan.buffers if b.function == symbol]
        try:
            return self.machine.step(symbol, inputs)
        finally:
            self._check()
            self.places.check()

    def _next(self, op: Op) -> None:
        """Called before every op."""
        self._check()
        self._disturb(op)
        self.last = op
        self.before = {name: memory.copy() for name, memory in _spaces(self.places).items()}

    # -- bytes that nobody needs

    def _disturb(self, op: Op) -> None:
        arena = self.places.arena
        dead = ~self._needed(self.positions[op])
        arena[dead] = self.noise.integers(0, 256, int(dead.sum()), np.uint8)

    def _needed(self, position: int) -> Array:
        """Which bytes of the arena some buffer needs at a position of the running function."""
        found = self.needed.get((self.symbol, position))
        if found is None:
            found = np.zeros(len(self.places.arena), np.bool_)
            for b in self.buffers[self.symbol]:
                if b.space == "arena" and b.start <= position <= b.end:
                    found[b.offset : b.offset + b.nbytes] = True
            self.needed[self.symbol, position] = found
        return found

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
            assert state.op is not None
            at, nbytes = self.states[state.op.attributes()["symbol"]]
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
        name = f"output '{place.buffer}'" if place.space == "output" else place.space
        bits = _bits(self.places, value, to[name])
        for b in self.buffers[self.symbol]:
            if (b.space, b.name) == (place.space, place.buffer):
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
        return "of " + ", ".join(held) if held else "of nobody"


def _spaces(places: Places) -> dict[str, Array]:
    """All memory that a step may change."""
    outputs = {f"output '{name}'": memory for name, memory in places.outputs.items()}
    return {"arena": places.arena, "state": places.state} | outputs


def _bits(places: Places, value: Value, space: Array) -> Array:
    """A mask as long as a space, with the bits of a value set."""
    found = np.zeros_like(space)
    memory: Any = places.memory(value)
    if isinstance(memory, Packed):
        bits = memory.positions.reshape(-1) * value.dtype.bits
        mask = np.uint8((1 << value.dtype.bits) - 1) << (bits & 7).astype(np.uint8)
        np.bitwise_or.at(found, bits >> 3, mask)
        return found
    if memory.size == 0:
        return found
    # The same view of a space of zeros: where it is all ones, the value lies.
    start = _address(memory) - _address(places._space(value.place))  # type: ignore[arg-type]
    seen = np.ndarray((*memory.shape, memory.itemsize), np.uint8, found.data, start, (*memory.strides, 1))
    seen[...] = 0xFF
    return found


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
