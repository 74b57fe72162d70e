"""The main example: the numbers it reads, its accuracy, and its equality with the reference."""

from __future__ import annotations

import subprocess
import sys

import pytest

from paths import ROOT

FOLDER = ROOT / "examples" / "numwords"


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_reads_numbers_and_equals_the_reference() -> None:
    printed = run()
    for words in ("one thousand two hundred four", "minus seventeen", "three point one four",
                  "nineteen eighty four", "twenty first", "five dollars and twenty cents"):  # fmt: skip
        assert f"  {words}\n" in printed
    assert "tokens per second" in printed
    assert "NumPy reference: equal: 17 steps" in printed


def test_held_out_texts_are_read_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 texts that training never saw; at least 99 % exactly right."""
    monkeypatch.setenv("OIC_CFLAGS", "-O1")  # running takes longer than compiling
    share = float(run("--evaluate", "2000").splitlines()[-1].split("%")[0])
    assert share >= 99.0


def test_the_weights_are_small() -> None:
    assert (FOLDER / "weights.safetensors").stat().st_size <= 4 << 20
