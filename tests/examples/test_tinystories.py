"""stories260k, a real trained model, against its reference in every backend."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from paths import ROOT, models_dir, needs_models

pytestmark = needs_models
GRAPH = ROOT / "examples" / "tinystories" / "graph.oi"
BACKENDS = ("graph", "planned", "c")


def folder() -> Path:
    models = models_dir()
    assert models is not None
    return models / "stories260k"


def cases() -> list[dict[str, Any]]:
    if models_dir() is None:
        return []
    found: list[dict[str, Any]] = json.loads((folder() / "reference" / "generations.json").read_text())
    return found


@pytest.fixture(scope="module")
def makers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    graph, model = oic.parse_file(GRAPH), oic.Model.open(folder() / "weights.safetensors")
    return {
        "graph": oic.Simulator(graph, model),
        "planned": oic.Simulator(graph, model, stage="planned"),
        "c": oic.Synthesizer(graph, model).build(tmp_path_factory.mktemp("stories")),
    }


def generate(
    executor: oic.Executor, prompt: list[int], count: int, chunk: int | None = None
) -> tuple[list[int], np.ndarray]:
    """Greedy ids after a prompt fed in chunks, and the logits of every position fed."""
    rows = []
    step = chunk or len(prompt)
    for start in range(0, len(prompt), step):
        result = executor.step(tokens=np.array(prompt[start : start + step], np.int32))
        rows.append(result["logits"])
    ids = [int(result["next"][-1])]
    while len(ids) < count:
        result = executor.step(tokens=np.array(ids[-1:], np.int32))
        rows.append(result["logits"])
        ids.append(int(result["next"][0]))
    return ids, np.concatenate(rows)


def expect(case: dict[str, Any]) -> tuple[list[int], np.ndarray]:
    ids = case["output_ids"][len(case["prompt_ids"]) - 1 :]
    return ids, np.load(folder() / "reference" / case["logits"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", cases(), ids=lambda c: c["prompt"][:8] or "empty")
def test_generation_equals_the_reference(
    case: dict[str, Any], backend: str, makers: dict[str, Any]
) -> None:
    """All ids; logits within 1e-4; the prompt at once, token by token, and after a reset."""
    ids, logits = expect(case)
    with makers[backend].make_executor() as executor:
        for chunk in (None, 1):
            found, rows = generate(executor, case["prompt_ids"], len(ids), chunk)
            assert found == ids
            np.testing.assert_allclose(rows, logits[: len(rows)], rtol=0, atol=1e-4)
            executor.reset()


RESUME = """
import sys
import numpy as np
import oic
graph, weights, saved, token, count = sys.argv[1:]
model = oic.Model.open(weights)
with oic.Synthesizer(oic.parse_file(graph), model).build().make_executor() as executor:
    executor.load(open(saved, "rb").read())
    ids = [int(token)]
    for _ in range(int(count)):
        ids.append(int(executor.step(tokens=np.array(ids[-1:], np.int32))["next"][0]))
print(*ids[1:])
"""


def test_a_saved_state_goes_on_in_another_process(makers: dict[str, Any], tmp_path: Path) -> None:
    case = cases()[1]
    ids, _ = expect(case)
    with makers["c"].make_executor() as executor:
        found, _ = generate(executor, case["prompt_ids"], 30)
        saved = tmp_path / "state.bin"
        saved.write_bytes(executor.save())
    arguments = [str(GRAPH), str(folder() / "weights.safetensors"), str(saved), str(found[-1]), "30"]
    done = subprocess.run(
        [sys.executable, "-c", RESUME, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [int(t) for t in done.stdout.split()] == ids[30:60]


def test_a_full_cache_is_refused_and_nothing_changes(makers: dict[str, Any]) -> None:
    with makers["c"].make_executor() as executor:
        executor.step(tokens=np.ones(510, np.int32))
        before = executor.save()
        with pytest.raises(oic.StepError) as caught:
            executor.step(tokens=np.ones(3, np.int32))
        assert caught.value.status == "OIC_ERR_CACHE_FULL"
        assert (caught.value.variable, caught.value.index, caught.value.bound) == ("K.t", 513, 512)
        assert executor.save() == before
        executor.step(tokens=np.ones(2, np.int32))
