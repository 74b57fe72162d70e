"""Where the templates, the C runtime and the docs are: in the installed package, else in the checkout."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parent.parent


def templates_dir() -> Path:
    """The folder of Jinja2 templates."""
    return _folder("templates")


def runtime_dir() -> Path:
    """The folder of C headers that are copied beside generated code."""
    return _folder("runtime_c")


def docs_dir() -> Path:
    """The folder of the user guide, whose page of errors `oic explain` prints."""
    return _folder("docs")


def _folder(name: str) -> Path:
    for place in (PACKAGE, CHECKOUT):
        if (place / name).is_dir():
            return place / name
    raise AssertionError(f"{name}/ is neither in {PACKAGE} nor in {CHECKOUT}: a broken install")
