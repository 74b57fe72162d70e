"""The example of an imported checkpoint."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from paths import ROOT, models_dir, needs_models

FOLDER = ROOT / "examples" / "llama"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script in a folder of its own, which it writes into."""
    shutil.copy(FOLDER / "run.py", folder)
    command = [sys.executable, str(folder / "run.py"), *arguments]
    models = {"OIC_MODELS": str(models_dir())}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | models)


@needs_models
def test_it_equals_its_reference(tmp_path: Path) -> None:
    done = run(tmp_path, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "prompt 0: 24 ids equal" in done.stdout and "prompt 1: 13 ids equal" in done.stdout


@needs_models
def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    for arguments, said in (((str(tmp_path / "none"),), "model-open"), (("--ids", "7000"), "id 7000 is outside")):
        done = run(tmp_path, *arguments)
        assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
