"""Saved states that were tampered with are refused everywhere, or loaded everywhere alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oic.driver import interface_of
from oic.memory.saved import Part, saved_form
from oic.reference import saved
from oic.reference.interpret import Machine
from oic.session.simulator import SimulatorExecutor
from tests.fuzz import saved_states as states
from tests.fuzz.sanitized import build_sanitized
from tests.fuzz.state_programs import stateful


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the graph of seed 1."""
    made = [states.graph_of(1).program]
    return build_sanitized(made, tmp_path_factory.mktemp("states"))


def test_mutants_of_saved_states(program: Path) -> None:
    """A longer campaign: `python -m tests.fuzz.saved_states --count 20000`."""
    tally = states.Tally()
    states.tried(1, 150, program, tally)
    assert tally.found == [] and tally.mutants == 150
    assert tally.refused > 75 and tally.loaded > 15 and tally.steps == 4 * tally.loaded


def test_what_is_taken_apart_and_put_together_is_the_same() -> None:
    graph = stateful(1, ("fixed",))
    with SimulatorExecutor(interface_of(graph.program), Machine(graph.program.module)) as session:
        for data in states.states_of(graph, session, np.random.default_rng(1)):
            form = saved_form(graph.program.module)
            assert states.put_together(form, states.taken_apart(form, data)) == data


def test_a_reader_that_believes_too_much_is_found(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that loads what a ring cannot have, and C does not."""

    def everything(part: Part, counts: dict[str, int], entries: dict[str, saved.Entries], guard: Part) -> saved.Entries:
        del counts, guard
        return entries[part.symbol]

    monkeypatch.setattr(saved, "_possible", everything)
    tally = states.Tally()
    states.tried(1, 150, program, tally)
    assert "load it" in tally.found[0]
