"""Which pass changed the answer: the interpreter after every pass, on the same steps.

Passes change where and when things are computed, never what: the interpreter's results must be
the same to the bit after each of them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from oic.compare.between import KeptCopy
from oic.compare.harness import Run, outcome
from oic.dtypes import Array
from oic.ir.module import Module
from oic.operators.late import overtaken
from oic.reference.interpret import Machine


@dataclass(frozen=True)
class Culprit:
    """The first pass after which the interpreter answers otherwise, and where."""

    name: str
    step: int
    variable: str

    def __str__(self) -> str:
        return f"pass '{self.name}' changes {self.variable} at step {self.step}"


def bisect(
    module: Module, after: Iterable[tuple[str, Module]], runs: list[Run], machine: Callable[[Module], Machine] = Machine
) -> Culprit | None:
    """Compare the modules after each pass with the first; None if all answer alike.

    machine   makes the interpreter of what follows a pass
    """
    expected = answers(Machine(module), runs)
    for name, lowered in after:
        if lowered.plan is None and lowered.is_placed():
            continue  # buffers without offsets are no memory yet: nothing runs before plan-memory
        actual = answers(machine(lowered), runs)
        for step, (one, two) in enumerate(zip(expected, actual, strict=True)):
            other = [v for v in one if v not in two or not _same(one[v], two[v])]
            if other[:1] == ["status"] and _refused_otherwise(lowered, one, two):
                del other[0]
            if other:
                return Culprit(name, step, other[0])
    return None


def _refused_otherwise(lowered: Module, one: dict[str, Array], two: dict[str, Array]) -> bool:
    """Both refuse the step, which breaks several rules; a check made early comes before one that cannot be."""
    return "OIC_OK" not in (str(one["status"]), str(two["status"])) and bool(overtaken(lowered))


def answers(machine: Machine, runs: list[Run]) -> list[dict[str, Array]]:
    """Outputs, states and status of every step."""
    kept = KeptCopy()
    states = [op.symbol for op in machine.module.states() if "." not in op.symbol]
    found: list[dict[str, Array]] = []
    for run in runs:
        kept.act(machine, run.before)
        before = machine.save()
        outputs, status = outcome(machine.step, run.entry, run.inputs)
        if machine.broken:  # as before checks are hoisted; what it left behind means nothing
            machine.load(before)
        told = {"status": np.asarray(status or "OIC_OK"), "saved state": np.frombuffer(machine.save(), np.uint8)}
        found.append(outputs | {name: machine.fetch_state(name) for name in states} | told)
    return found


def _same(one: Array, two: Array) -> bool:
    return one.shape == two.shape and one.dtype == two.dtype and one.tobytes() == two.tobytes()
