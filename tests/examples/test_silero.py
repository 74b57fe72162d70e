"""The speech detector beside its reference, in Python and in C, at once and after it was saved in the middle."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest

import oic
from paths import ROOT, models_dir, needs_models

FOLDER = ROOT / "examples" / "silero"


@needs_models
@pytest.mark.parametrize("backend", ["reference", "c"])
def test_probabilities_and_state_are_those_of_the_reference(backend: str) -> None:
    models = models_dir()
    assert models is not None
    script = runpy.run_path(str(FOLDER / "run.py"))
    reference = models / "silero-vad" / "reference"
    files = json.loads((reference / "inputs.json").read_text())["wavs"]
    model = oic.Model.open(models / "silero-vad" / "weights.safetensors")
    graph = oic.parse_file(FOLDER / "graph.oi")
    maker = oic.Simulator(graph, model) if backend == "reference" else oic.Synthesizer(graph, model).build()
    with maker.make_executor() as executor:
        file = min(files, key=lambda f: (models / "audio" / f).stat().st_size)
        name, samples = file.rpartition(".")[0], script["recording"](models / "audio" / file)
        found = script["probabilities"](executor, samples)
        state = np.stack([executor.fetch("h"), executor.fetch("c")])
        assert np.abs(found - np.load(reference / f"{name}.prob.npy").reshape(-1)).max() <= 1e-4
        assert np.abs(state - np.load(reference / f"{name}.state_last.npy")).max() <= 1e-4
        assert len(list(script["stretches"](found))) >= 1
        # the same again from a state saved in the middle, in all bits
        parts = list(script["chunks"](samples))
        executor.reset()
        for part in parts[: len(parts) // 2]:
            executor.step(chunk=part)
        saved = executor.save()
        executor.reset()
        executor.load(saved)
        again = [executor.step(chunk=part)["probability"] for part in parts[len(parts) // 2 :]]
        assert np.array_equal(np.array(again), found[len(parts) // 2 :])
