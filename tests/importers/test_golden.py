"""The graph of every family, as the importer writes it: reviewed like code.

`tests/golden/importers/FAMILY.oi` is what is written for a small checkpoint of the family (`importers.checkpoints`, `importers.seq2seq`);
`pytest --update-golden` rewrites it.  Those of the examples are for models in OIC_MODELS.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import oic
from importers import checkpoints, seq2seq
from oic.importers import import_checkpoint
from paths import ROOT, models_dir, needs_models

FOLDER = ROOT / "tests" / "golden" / "importers"
MADE = dict.fromkeys(checkpoints.FAMILIES, checkpoints.checkpoint) | dict.fromkeys(seq2seq.FAMILIES, seq2seq.checkpoint)
"""What writes a small checkpoint of a family."""
BATCHED = ("gpt2", "gpt_neox", "gemma2")
"""Learned positions; heads beside each other, and a parallel residual; layers of two kinds."""
EXAMPLES = {"llama/graph.oi": "llama-tiny", "gpt2/graph.oi": "gpt2-tiny"}


@pytest.mark.parametrize("family", MADE)
def test_a_family_is_written_as_reviewed(family: str, tmp_path: Path, update_golden: bool) -> None:
    made = import_checkpoint(MADE[family](tmp_path / "in", family), tmp_path / "out")
    golden = FOLDER / f"{family}.oi"
    if update_golden:
        shutil.copy(made.graph, golden)
    assert made.graph.read_text(encoding="utf-8") == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("family", BATCHED)
def test_a_decoder_with_a_batch_is_written_as_reviewed(family: str, tmp_path: Path, update_golden: bool) -> None:
    made = import_checkpoint(MADE[family](tmp_path / "in", family), tmp_path / "out", batch=3)
    golden = FOLDER / f"{family}_batch.oi"
    if update_golden:
        shutil.copy(made.graph, golden)
    assert made.graph.read_text(encoding="utf-8") == golden.read_text(encoding="utf-8")


def test_every_golden_graph_is_a_family() -> None:
    assert {path.stem for path in FOLDER.glob("*.oi")} == {*MADE, *(f"{family}_batch" for family in BATCHED)}


@needs_models
@pytest.mark.parametrize("example", EXAMPLES)
def test_graphs_of_examples_are_the_importers_own(example: str, tmp_path: Path, update_golden: bool) -> None:
    models = models_dir()
    assert models is not None
    made = import_checkpoint(models / EXAMPLES[example], tmp_path / "out")
    path = ROOT / "examples" / example
    if update_golden:
        shutil.copy(made.graph, path)
    assert made.graph.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")
    oic.Simulator(oic.parse_file(path), oic.Model.open(models / EXAMPLES[example]))
