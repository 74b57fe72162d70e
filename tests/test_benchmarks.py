"""Every benchmark starts where it is, by its name, with nothing but the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT

BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda p: p.stem)
def test_it_tells_how_it_is_used(benchmark: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(benchmark), "--help"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(f"usage: {benchmark.name}")
