"""The voice detector in bytes beside its reference, in Python and in C, and after it was saved in the middle."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

import oic
from paths import ROOT, models_dir, needs_models

FOLDER = ROOT / "examples" / "micro_wake_word"


@needs_models
@pytest.mark.parametrize("backend", ["reference", "c"])
def test_steps_are_those_of_the_reference(backend: str) -> None:
    models = models_dir()
    assert models is not None
    script, source = runpy.run_path(str(FOLDER / "run.py")), models / "micro-wake-word"
    model = oic.Model(tensors={name: oic.Tensor(value, dtype) for name, value, dtype in script["constants"](source)})
    graph = oic.parse_file(FOLDER / "graph.oi")
    frames, expected = (np.load(source / "reference" / f"jfk.vad.{what}.npy") for what in ("x", "prob"))
    maker = oic.Simulator(graph, model) if backend == "reference" else oic.Synthesizer(graph, model).build()
    with maker.make_executor() as executor:
        found = []
        for number, step in enumerate(frames):
            if number == len(frames) // 2:
                saved = executor.save()
                executor.reset()
                executor.load(saved)
            found.append(int(executor.step(frames=step)["probability"][0]))
        off = np.abs(np.array(found) - expected.reshape(-1))
        assert off.max() <= 1 and np.count_nonzero(off) <= 1, "its makers found one step off by one between two kernels"
        assert executor.fetch("n").dtype == np.int64, "in 32 bits every step would be refused after two years"
        for number, rows in enumerate(script["windows"](source)):
            assert np.array_equal(executor.fetch(f"X{number}")[-len(rows) :], rows)
