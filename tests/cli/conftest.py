"""A folder with a graph, inputs and models, and the command `oic` run in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cli.samples import AVERAGE, Oic, Outcome
from oic.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with `average.oi`, `x.npy` and `slow.npz`."""
    monkeypatch.chdir(tmp_path)
    Path("average.oi").write_text(AVERAGE)
    np.save("x.npy", np.array([1, 2], np.float32))
    np.savez("slow.npz", rate=np.float32(0.125))
    return tmp_path


@pytest.fixture
def oic(folder: Path) -> Oic:
    """The command, in that folder.  An exception that no command reports fails the test."""

    def run(*arguments: str) -> Outcome:
        result = CliRunner().invoke(main, list(arguments), prog_name="oic")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.output
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run
