"""Loading into sessions that have state of their own: nothing of it is left, whatever the kind of state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oic
from oic.driver import interface_of
from oic.library.emit import LibrarySpec
from oic.reference.interpret import Machine
from oic.session.simulator import SimulatorExecutor
from oic.session.synthesizer import CompiledProgram
from oic.toolchain.target import target
from tests.fuzz.batch_build import build_together
from tests.fuzz.state_programs import Stateful, stateful

GRAPHS = 2


class Case:
    """One graph with every kind of variable, by what executes it: both stages, and C."""

    def __init__(self, number: int) -> None:
        self.graph: Stateful = stateful(number)
        program = self.graph.program
        interface = interface_of(program)
        self.compiled = CompiledProgram(LibrarySpec(program.planned, target("host")), interface)
        self.interpreted, self.interface = (program.module, program.planned), interface

    def sessions(self) -> list[oic.Executor]:
        interpreted = [SimulatorExecutor(self.interface, Machine(module)) for module in self.interpreted]
        return [*interpreted, self.compiled.make_executor()]

    def step(self, executors: list[oic.Executor], rng: np.random.Generator, number: int) -> None:
        """The same step everywhere, with the same answer; some are refused."""
        entry, given = self.graph.step(executors[0], rng, number)
        assert len({_answer(e, entry, given) for e in executors}) == 1, (entry, number)

    def seen(self, executor: oic.Executor) -> list[tuple[str, tuple[int, ...], bytes]]:
        found = [(name, executor.fetch(name)) for name in self.graph.types]
        return [(name, a.shape, a.tobytes()) for name, a in found]


def _answer(executor: oic.Executor, entry: str, given: dict[str, Any]) -> str:
    try:
        executor.step(entry, **given)
    except oic.StepError as error:
        return error.status
    return "OIC_OK"


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    made = [Case(number) for number in range(GRAPHS)]
    build_together([case.compiled for case in made], tmp_path_factory.mktemp("loading"), ["-O0"])
    return made


@pytest.mark.parametrize("number", range(GRAPHS))
def test_nothing_is_left_of_a_state_that_another_replaces(cases: list[Case], number: int) -> None:
    """Saved early, loaded into sessions that went further and elsewhere: they are as a new one is."""
    case = cases[number]
    for seed in range(2):
        rng = np.random.default_rng([number, seed])
        used = case.sessions()
        early = 15 * seed
        for n in range(early):
            case.step(used, rng, n)
        saved, seen = used[0].save(), case.seen(used[0])
        for n in range(early, early + 50):
            case.step(used, rng, n)
        fresh = case.sessions()
        for session in used + fresh:
            session.load(saved)
            assert case.seen(session) == seen
            assert session.save() == saved
        for n in range(early, early + 50):
            case.step(used + fresh, rng, n)
        assert len({session.save() for session in used + fresh}) == 1
        assert all(case.seen(session) == case.seen(fresh[0]) for session in used + fresh)
        with used[2].fork() as fork:
            assert fork.save() == fresh[0].save()
        for session in used + fresh:
            session.close()


def test_old_elements_of_a_matrix_do_not_come_back() -> None:
    """The state before the matrix grew, loaded after: what growth uncovers then is new."""
    text = """dynamic { i: i32; k: f32; }
    persistent { M(r, c): f32[1, 1] @auto_dim(r, c) @fixed(r=2, c=2); }
    volatile { y: f32[?, ?]; }
    block entry {
      assign b: f32[?, ?];
      cache.read M[i, 0] >> b;
      op add(b, k) >> b;
      cache.write b >> M[];
      cache.read M[] >> y;
      return;
    }"""
    with oic.Synthesizer(oic.parse(text, name="grow.oi")).build().make_executor() as session:
        empty = session.save()
        session.step(i=2, k=5.0)
        session.load(empty)
        assert session.step(i=2, k=0.0)["y"].tolist() == [[0.0], [0.0], [0.0]]
