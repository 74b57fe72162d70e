"""A graph run by the interpreter: the reference that compiled code must equal."""

import itertools
import time
from collections.abc import Iterator
from typing import Self

from oic.dtypes import Array
from oic.ir.core import Op
from oic.reference.interpret import Machine
from oic.session.executor import Executor
from oic.session.interface import Interface
from oic.session.trace import Record, records


class SimulatorExecutor(Executor):
    """A session over the interpreter of a module, at any stage."""

    def __init__(self, interface: Interface, machine: Machine) -> None:
        super().__init__(interface)
        self.machine = machine
        self.events: list[tuple[Op | None, float]] = []
        machine.observer = lambda op: self.events.append((op, time.perf_counter()))

    def _run(self, entry: str, inputs: dict[str, Array]) -> dict[str, Array]:
        self.events = []
        try:
            return self.machine.step(entry, inputs)
        finally:
            self.events.append((None, time.perf_counter()))

    def _fetch_state(self, name: str, within: tuple[slice, ...] = ()) -> Array:
        return self.machine.fetch_state(name, within)

    @property
    def _spoiled(self) -> bool:
        return self.machine.broken

    def _reset(self) -> None:
        self.machine.reset()

    def _save(self) -> bytes:
        return self.machine.save()

    def _load(self, saved: bytes) -> None:
        self.machine.load(saved)

    def _truncate(self, n: int) -> None:
        self.machine.truncate(n)

    def _fork(self) -> Self:
        return type(self)(self.interface, self.machine.fork())

    def _close(self) -> None:
        self.events = []

    def _trace(self) -> Iterator[Record]:
        pairs = itertools.pairwise(self.events)
        return records(self.interface, ((op, (then - now) * 1e6) for (op, now), (_, then) in pairs if op is not None))
