"""Whole headers and sources of a handful of graphs, reviewed like code.

`tests/golden/c/NAME.oi` gives `NAME.h` and `NAME.c` beside it, for the portable target, `separate` numerics, the OPTIONS of its name and
without a compiler's figures; fingerprints, which say nothing to a reader, are zeros there.
`pytest --update-golden` rewrites them; the diff is reviewed like code.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import oic
from paths import ROOT

FOLDER = ROOT / "tests" / "golden" / "c"
GRAPHS = sorted(FOLDER.glob("*.oi"))
OPTIONS = {"residual": {"weights": "q8"}, "divided": {"threads": 2}}
FINGERPRINT = re.compile(r"0x[0-9a-f]{16}")


@pytest.mark.parametrize("path", GRAPHS, ids=lambda p: p.stem)
def test_generated_c_is_as_reviewed(path: Path, tmp_path: Path, update_golden: bool) -> None:
    graph = oic.parse(path.read_text(encoding="utf-8"), path.name)
    shape = (16, 32 if path.stem == "residual" else 8)
    model = oic.Model(tensors={d.name: np.zeros(shape, np.float32) for d in graph.declarations if d.kind == "constant"})
    oic.Synthesizer(graph, model, target="portable", numerics="separate", **OPTIONS.get(path.stem, {})).emit(tmp_path)
    for suffix in (".h", ".c"):
        made = FINGERPRINT.sub("0x0000000000000000", (tmp_path / f"{path.stem}{suffix}").read_text(encoding="utf-8"))
        golden = path.with_suffix(suffix)
        if update_golden:
            golden.write_text(made, encoding="utf-8")
        assert made == golden.read_text(encoding="utf-8")


def test_there_are_graphs() -> None:
    assert len(GRAPHS) >= 6
