"""Speculative decoding: the target's own tokens, whatever the draft is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import util
from typing import Any

import numpy as np
import pytest

import oic
from importers.checkpoints import checkpoint
from oic.importers import import_checkpoint
from paths import ROOT

FOLDER = ROOT / "examples" / "speculative"


@pytest.fixture(scope="module")
def script() -> Any:
    """The example's own functions."""
    spec = util.spec_from_file_location("speculative_run", FOLDER / "run.py")
    assert spec is not None and spec.loader is not None
    found = util.module_from_spec(spec)
    sys.modules[spec.name] = found  # where its dataclass looks for annotations
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, oic.Executor]]:
    """A random target, and drafts of the same vocabulary: another family, and the target itself."""
    folder = tmp_path_factory.mktemp("speculative")
    found = {}
    for name, family, seed in (("target", "llama", 0), ("other", "gpt2", 1), ("same", "llama", 0)):
        key = "n_positions" if family == "gpt2" else "max_position_embeddings"
        made = import_checkpoint(checkpoint(folder / name, family, seed, **{key: 32}), folder / f"{name}_out")
        found[name] = oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor()
    yield found
    for executor in found.values():
        executor.close()


@pytest.mark.parametrize("drafted", [1, 2, 5])
@pytest.mark.parametrize("draft", ["other", "same"])
def test_the_target_decides(draft: str, drafted: int, script: Any, models: dict[str, oic.Executor]) -> None:
    """A draft that guesses by chance costs steps and changes nothing; the target's own are all accepted."""
    rng = np.random.default_rng(drafted)
    counts = script.Counts()
    for _ in range(3):
        prompt = rng.integers(0, 24, int(rng.integers(1, 6))).tolist()
        wanted = script.greedy(models["target"], prompt, 15)
        assert script.speculative(models["target"], models[draft], prompt, 15, drafted, None, counts) == wanted
        end = wanted[9]
        alone = script.greedy(models["target"], prompt, 15, end)
        assert script.speculative(models["target"], models[draft], prompt, 15, drafted, end) == alone
    assert counts.accepted == counts.drafted if draft == "same" else counts.accepted < counts.drafted


def test_the_script_reads_numbers_with_fewer_steps() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), "--held-out", "20"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal to the target alone: " in done.stdout
    assert float(done.stdout.partition(" tokens a step")[0].split()[-1]) > 2


def test_the_weights_are_small() -> None:
    assert (FOLDER / "draft.safetensors").stat().st_size <= 1 << 18
