"""Where the templates, the C runtime and the docs are, in the installed package or the checkout; the cache."""

import os
import sys
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
    """The folder of the user guide: `oic explain` prints its page of errors, hints are from that of other names."""
    return _folder("docs")


def cache_dir() -> Path | None:
    """The folder for what can be made again for this user; None where the environment names none."""
    named = os.environ.get("XDG_CACHE_HOME")
    if not named and (home := os.environ.get("HOME")):
        named = f"{home}/Library/Caches" if sys.platform == "darwin" else f"{home}/.cache"
    return Path(named, "oic") if named and os.path.isabs(named) else None


def _folder(name: str) -> Path:
    for place in (PACKAGE, CHECKOUT):
        if (place / name).is_dir():
            return place / name
    raise AssertionError(f"{name}/ is neither in {PACKAGE} nor in {CHECKOUT}: a broken install")
