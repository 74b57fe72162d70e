"""Options of the whole suite."""

from __future__ import annotations

import os

import pytest

os.environ["OIC_CACHE"] = "off"  # tests are about what is built now; those of the cache name a folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
