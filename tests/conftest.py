"""Options of the whole suite."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

os.environ["OIC_CFLAGS"] = "-O0"  # the same bits in a third of the time; builds of every level are tests of their own


def pytest_configure(config: pytest.Config) -> None:
    """One cache of builds for this run and all its workers, which inherit it: tests build the same examples."""
    if not hasattr(config, "workerinput"):
        os.environ["OIC_CACHE"] = tempfile.mkdtemp(prefix="oic-tests-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ["OIC_CACHE"], ignore_errors=True))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
