"""Actions between steps: a session that saves, loads or forks wrongly does not get through a comparison."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
import pytest

import oic
from oic.compare.between import ACTIONS, KeptCopy, Sessions, drawn
from oic.compare.harness import Run, Verdict, compare
from oic.driver import Program, Settings, compile_graph, interface_of
from oic.reference.interpret import Machine
from oic.session.simulator import SimulatorExecutor

TEXT = """
dynamic { x: f32[2]; i: i32; }
volatile { y: f32[?, 2]; }
persistent { n: i32; K(t): f32[2] @table @fixed(t=8); R(t): f32[2] @table @fixed(t=3) @ring(t); }
block entry {
  cache.write x >> K[i];
  cache.write x >> R[n];
  cache.increment n;
  cache.read R[-2..] >> y;
  return;
}
"""


class NotLoaded(SimulatorExecutor):
    """Says that it has loaded, and keeps what it had."""

    def _load(self, saved: bytes) -> None:
        del saved


class NotEmptied(SimulatorExecutor):
    """What was in the table stays where the saved state has nothing."""

    def _load(self, saved: bytes) -> None:
        old: Any = self.machine.variables["K"]
        kept = dict(old.entries)
        super()._load(saved)
        new: Any = self.machine.variables["K"]
        new.entries = kept | new.entries


class Shared(SimulatorExecutor):
    """A fork that is no copy."""

    def _fork(self) -> Self:
        return type(self)(self.interface, self.machine)


class Refusing(SimulatorExecutor):
    """Loads nothing that another saved."""

    own: bytes = b""

    def _save(self) -> bytes:
        self.own = super()._save()
        return self.own

    def _load(self, saved: bytes) -> None:
        if saved is not self.own:
            raise oic.StepError("OIC_ERR_STATE", "not mine")


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_graph(oic.parse(TEXT, name="between.oi"), None, Settings())


def _runs(seed: int, count: int) -> list[Run]:
    rng = np.random.default_rng(seed)
    return [
        Run(
            "entry",
            {"x": rng.standard_normal(2).astype(np.float32), "i": np.asarray(rng.integers(8), np.int32)},
            drawn(rng) if number else "",
        )
        for number in range(count)
    ]


def _verdict(program: Program, kind: type[SimulatorExecutor]) -> Verdict:
    session = kind(interface_of(program), Machine(program.module))
    return compare(program.module, session, _runs(1, 80))


def test_a_right_session_gets_through_and_every_action_is_counted(program: Program) -> None:
    verdict = _verdict(program, SimulatorExecutor)
    assert verdict.equal and set(verdict.acts) == set(ACTIONS)
    assert verdict.acts == Counter(run.before for run in _runs(1, 80) if run.before)
    assert f"; {verdict.acts['save']} saved, {verdict.acts['load']} loaded, " in str(verdict)


@pytest.mark.parametrize("kind", [NotLoaded, NotEmptied, Shared, Refusing])
def test_a_wrong_one_does_not(program: Program, kind: type[SimulatorExecutor]) -> None:
    verdict = _verdict(program, kind)
    assert verdict.difference is not None


def test_a_machine_alone_goes_the_way_of_the_sessions(program: Program) -> None:
    """What seems a difference is taken again by machines alone: they must be where the sessions were."""
    for seed in range(6):
        session = SimulatorExecutor(interface_of(program), Machine(program.module))
        sessions, alone, kept = Sessions(program.module, session, 0, None), Machine(program.module), KeptCopy()
        for run in _runs(seed, 30):
            if run.before:
                sessions.act(run.before)
            kept.act(alone, run.before)
            found = [machine.step(run.entry, run.inputs)["y"] for machine in (sessions.reference, alone)]
            sessions.executor.step(run.entry, **run.inputs)
            assert np.array_equal(*found) and sessions.reference.save() == alone.save(), (seed, run.before)
