"""Every program gives the same values and refusals in GRAPH, in PLANNED and in C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batch import build_together
from language.programs import PROGRAMS, Program, Refused
from oic import Executor, Simulator, StepError, Synthesizer, parse

pytestmark = pytest.mark.xdist_group("programs-language")

STAGES = ("graph", "planned", "c")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Synthesizer]:
    made = {k: Synthesizer(parse(p.text, name=k), p.model) for k, p in PROGRAMS.items()}
    folder: Path = tmp_path_factory.mktemp("language")
    build_together(list(made.values()), folder)
    return made


@pytest.fixture(params=PROGRAMS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def executors(name: str, built: dict[str, Synthesizer]) -> Iterator[list[Executor]]:
    """The same program in every executor."""
    program = PROGRAMS[name]
    graph = parse(program.text, name=name)
    made = [
        Simulator(graph, program.model).make_executor(),
        Simulator(graph, program.model, stage="planned").make_executor(),
        built[name].make_executor(),
    ]
    yield made
    for executor in made:
        executor.close()


def test_every_executor_gives_what_is_expected(name: str, executors: list[Executor]) -> None:
    """Outputs, refusals as they are rendered, and the state after every step."""
    program = PROGRAMS[name]
    persistent = [d.name for d in parse(program.text).declarations if d.kind == "persistent"]
    for number, (inputs, expected) in enumerate(program.steps):
        found = [_stepped(executor, program, inputs) for executor in executors]
        for stage, one in zip(STAGES, found, strict=True):
            _compare(one, expected, f"{stage}, step {number}")
        if isinstance(expected, Refused):
            assert found[0].rendered == found[1].rendered == found[2].rendered
        for variable in persistent:
            first, *others = (executor.fetch(variable) for executor in executors)
            for other in others:
                np.testing.assert_array_equal(first, other, err_msg=f"{variable} after {number}")
        assert len({_saved(executor) for executor in executors}) == 1, f"saved after {number}"


class _Stopped(Refused):
    rendered = ""


def _saved(executor: Executor) -> bytes | str:
    """The saved state, or why there is none."""
    try:
        return executor.save()
    except StepError as error:
        return error.status


def _stepped(executor: Executor, program: Program, inputs: dict[str, Any]) -> Any:
    try:
        return executor.step(program.entry, **inputs)
    except StepError as error:
        text = error.span.text if error.span else None
        found = _Stopped(error.status, error.variable, error.index, error.bound, text)
        object.__setattr__(found, "rendered", str(error))
        return found


def _compare(found: Any, expected: dict[str, Any] | Refused, where: str) -> None:
    if isinstance(expected, Refused):
        assert isinstance(found, _Stopped), f"{where}: {found}"
        for field, wanted in vars(expected).items():
            assert wanted is None or vars(found)[field] == wanted, f"{where}: {found.rendered}"
        return
    assert isinstance(found, dict), f"{where}: {found.rendered}"
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value, err_msg=f"{key} in {where}")


def test_a_refusal_that_leaves_state_changed_is_named_once(built: dict[str, Synthesizer]) -> None:
    """With the variable, among the warnings and where the build lists it; none where none is left."""
    late = built["refused_after_effects"]
    found = [d for d in late.warnings if d.slug == "late-refusal"]
    assert [d.span.text for d in found if d.span] == ["am + k", "cache.read P[am + k] >> q;"]
    assert [d.message.split("'")[1] for d in found] == ["am + k", "P.t"]
    assert [d.slug for d in built["refused_before_effects"].warnings if d.slug == "late-refusal"] == []
