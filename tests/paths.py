"""Where the tests find what is not in the repository: real models and conformance cases."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def models_dir() -> Path | None:
    """The folder of real models: OIC_MODELS, else ../shared/models; None if it is not there."""
    return _folder("OIC_MODELS", "models")


def conformance_dir() -> Path | None:
    """The conformance cases: OIC_CONFORMANCE, else ../shared/conformance; None if not there."""
    return _folder("OIC_CONFORMANCE", "conformance")


def _folder(variable: str, name: str) -> Path | None:
    path = Path(os.environ.get(variable) or ROOT.parent / "shared" / name)
    return path if path.is_dir() else None


needs_models = pytest.mark.skipif(
    models_dir() is None, reason="no real models: set OIC_MODELS to their folder"
)
needs_conformance = pytest.mark.skipif(
    conformance_dir() is None, reason="no conformance cases: set OIC_CONFORMANCE to their folder"
)
