"""The package and its metadata have one version."""

from __future__ import annotations

import tomllib

import oic
from paths import ROOT


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert oic.__version__ == project["version"]
