"""What weights in fewer bits make of a model: errors of matrices, logits and tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from oic.cli.main import main
from paths import models_dir, needs_models


@needs_models
def test_a_model_is_compared_with_itself(tmp_path: Path) -> None:
    source = str(models_dir() / "gpt2-tiny")  # type: ignore[operator]
    arguments = ["quantize", source, "--weights", "embed=q8,*=f16", "--report", "--ids", "1,2,3", "-n", "4", "--target", "portable"]
    run = CliRunner().invoke(main, [*arguments, "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    (prompt,) = found["prompts"]
    assert prompt["prompt"] == [1, 2, 3] and len(prompt["chosen"]) == 4 and prompt["alike"] == 4
    assert 0 < prompt["typical"] < 0.1 and found["agreement"] == 1.0
    errors = {t["name"]: (t["storage"], t["error"]) for t in found["tensors"] if not t["kept"]}
    assert all(0 < error < (0.01 if storage == "q8" else 0.001) for storage, error in errors.values())
    assert "=f16" in found["rules"]


@needs_models
def test_bytes_are_those_of_all_constants() -> None:
    """Also of matrices that a size leaves as they are declared."""
    source = str(models_dir() / "gpt2-tiny")  # type: ignore[operator]
    run = CliRunner().invoke(main, ["quantize", source, "--weights", "auto:500K", "--json", "--target", "portable"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)["tensors"]
    matrices = {t["storage"] for t in found if t["nbytes"] > 10_000}
    assert {"f32", "f16"} <= matrices, "some fit as they are"
    assert 0.9 * 500 * 1024 < sum(t["nbytes"] for t in found) <= 500 * 1024


@needs_models
@pytest.mark.parametrize("weights", ["f32", "q8"])
def test_warnings_of_an_import_are_told_once(weights: str) -> None:
    """Of the two generators that are compared both have them."""
    source = str(models_dir() / "llama-tiny")  # type: ignore[operator]
    arguments = ["quantize", source, "--weights", weights, "--context", "100", "--ids", "1,2", "-n", "1", "--target", "portable"]
    for more in ((), ("--report",)):
        run = CliRunner().invoke(main, [*arguments, *more])
        assert run.exit_code == 0 and run.stderr.count("warning[import-context]") == 1, run.stderr
