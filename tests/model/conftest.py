"""Fixtures of the model tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.samples import write_all


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model of every format; not to be written to."""
    folder = tmp_path_factory.mktemp("models")
    write_all(folder)
    return folder
