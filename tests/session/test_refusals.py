"""A step is refused alike in every executor: why, where, in the same words, and with the same state left.

Every graph of `refusals` runs over GRAPH, over PLANNED, and as C; all of them are compiled together.
GRAPH, which does what the source says in its order, decides.
"""

from __future__ import annotations

from typing import Any

import pytest

import oic
from batch import build_together
from oic import StepError
from oic.session.executor import Executor
from session.refusals import CASES, Step

pytestmark = pytest.mark.xdist_group("refusals-session")

KINDS = ("graph", "planned", "c")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every graph in every executor."""
    made: dict[str, dict[str, Any]] = {}
    for name, case in CASES.items():
        graph, model = oic.parse(case.text, f"{name}.oi"), oic.Model(case.model) if case.model else None
        made[name] = {stage: oic.Simulator(graph, model, stage=stage) for stage in ("graph", "planned")}
        made[name]["c"] = oic.Synthesizer(graph, model)
    build_together([three["c"] for three in made.values()], tmp_path_factory.mktemp("refusals"), "-O0")
    return made


def outcome(session: Executor, step: Step) -> dict[str, Any]:
    """What a step gives, or says of its refusal, and the state afterwards; reset if that is spoilt."""
    found: dict[str, Any] = {"status": ""}
    try:
        outputs = session.step(**step[0])
        found |= {f"output {name}": (a.shape, a.tobytes()) for name, a in outputs.items()}
    except StepError as error:
        names = ("status", "variable", "index", "bound", "message", "hint", "span")
        found |= {name: getattr(error, name) for name in names}
    try:
        found["saved"] = session.save()
        assert not session._spoiled
    except StepError as error:
        assert session._spoiled
        found["saved"] = (error.status, error.message)
        session.reset()
    return found


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("name", CASES)
def test_refusals_are_alike(name: str, kind: str, built: dict[str, dict[str, Any]]) -> None:
    case = CASES[name]
    with built[name]["graph"].make_executor() as reference, built[name][kind].make_executor() as tried:
        for number, step in enumerate(case.steps):
            expected, actual = outcome(reference, step), outcome(tried, step)
            assert expected["status"] == step[1], f"step {number} {step[0]}: {expected}"
            assert actual == expected, f"step {number} {step[0]}"
            assert not case.early or isinstance(actual["saved"], bytes), f"step {number} left the state changed"
