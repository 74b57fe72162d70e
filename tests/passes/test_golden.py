"""Passes on small programs: one file each, IR, the line `# after <pass>`, IR.

Several passes in a row are `# after fold, lower-cache`.  `pytest --update-golden` rewrites what
comes after that line; the diff is reviewed like code.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic.operators  # noqa: F401  (registers the ops)
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.memory.verify import verify
from oic.passes.pipeline import PIPELINE
from paths import ROOT

FILES = sorted((ROOT / "tests" / "golden" / "passes").glob("*.ir"))
AFTER = "# after "


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_pass(path: Path, update_golden: bool) -> None:
    before, marker, rest = path.read_text(encoding="utf-8").partition(AFTER)
    assert marker, f"{path} has no line '{AFTER}…'"
    names, _, after = rest.partition("\n")
    module = parse_module(before)
    for constant in module.constants():  # texts have no data
        module.weights[constant.symbol] = np.zeros(constant.type.maximum, constant.type.dtype.np)
    verify(module)
    for name in names.split(", "):
        next(step for step in PIPELINE if step.name == name).run(module)
        verify(module)
    made = print_module(module)
    if update_golden:
        path.write_text(f"{before}{AFTER}{names}\n{made}", encoding="utf-8")
        return
    assert made == after


def test_there_are_golden_files() -> None:
    assert FILES
