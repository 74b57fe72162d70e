"""Scripts that train the examples' models, where what they train with is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT

SCRIPTS = sorted((ROOT / "examples").rglob("train*.py"))
HIDDEN = """
import runpy, sys
sys.modules[sys.argv[2]] = None
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize("package", ["torch", "safetensors"])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
def test_without_its_extra_a_script_names_it(script: Path, package: str) -> None:
    run = [sys.executable, "-c", HIDDEN, script.as_posix(), package]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.endswith(": pip install 'oic[train]'\n"), done.stderr
    assert "Traceback" not in done.stderr
