"""Two recurrent layers beside their reference, in f32 and in 8 bits."""

from __future__ import annotations

import runpy

import pytest

from paths import ROOT

FOLDER = ROOT / "examples" / "gru_256"


@pytest.mark.parametrize("precision", ["f32", "q8"])
def test_steps_are_those_of_the_reference(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIC_CFLAGS", "-O1")  # running takes longer than compiling
    monkeypatch.syspath_prepend(str(FOLDER))
    assert runpy.run_path(str(FOLDER / "run.py"))["check"](precision)
