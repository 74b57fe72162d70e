"""Operators and settings as PyTorch, ONNX, Keras and NumPy call them: the tables of `docs/others.md`.

A row: the names, and the statements that do it here, or the settings.  Every statement is compiled by a test, with the
variables declared there.
"""

import re
from functools import cache

from oic.resources import docs_dir

_ROW = re.compile(r"^\| (`.*`) \| (`.*`|-) \|$", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")


def plain(name: str) -> str:
    """A name without what frameworks write differently: case and underscores."""
    return name.replace("_", "").lower()


@cache
def tables() -> tuple[dict[tuple[str, ...], str], dict[str, list[str]]]:
    """Statements by their names elsewhere, and settings by each."""
    operators, _, settings = (docs_dir() / "others.md").read_text(encoding="utf-8").partition("\n## Settings\n")
    rows = {tuple(_NAME.findall(names)): statements[1:-1] for names, statements in _ROW.findall(operators)}
    return rows, {name[1:-1]: _NAME.findall(here) for name, here in _ROW.findall(settings)}


@cache
def statements() -> dict[str, str]:
    """What does it here, by each plain name."""
    return {plain(name): found for names, found in tables()[0].items() for name in names}
