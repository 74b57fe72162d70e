"""The operators that a source may name, and what is said of a name that is none of them.

What PyTorch, ONNX, Keras and NumPy call operators and settings is in the tables of `docs/others.md`.  A row: the names,
and the statements that do it here, or the settings.  Every statement is compiled by a test, with the variables declared
there.
"""

import re
from collections.abc import Collection
from functools import cache

from oic.diagnostics import Diagnostic, Span, did_you_mean, nearest
from oic.operators import catalog
from oic.resources import docs_dir

CLOSE = 0.75  # of names: a slip of the keyboard
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


def unknown_operator(name: str, span: Span | None = None) -> Diagnostic:
    """The refusal of a name that is no operator."""
    return Diagnostic("unknown-op", f"unknown operator '{name}'", span, hint=operator_hint(name))


def operator_hint(name: str) -> str | None:
    """What an unknown name may mean: another spelling, another framework's name, a near name."""
    known = catalog()
    same = {plain(n): n for n in known}
    if plain(name) in same:
        return f"did you mean '{same[plain(name)]}'?"
    others = statements()
    if plain(name) in others:
        return f"here that is '{others[plain(name)]}'"
    if f"{name}_axis" in known:
        return f"did you mean '{name}_axis'?"
    close = nearest(plain(name), [*others, *same], CLOSE)
    if close in others:
        return f"here '{close}' is '{others[close]}'"
    return did_you_mean(name, known)


def setting_hint(name: str, known: Collection[str]) -> str | None:
    """What an unknown setting may mean, among those that an operator has."""
    for other in tables()[1].get(name, ()):
        if other in known:
            return f"did you mean '{other}'?"
    if (hint := did_you_mean(name, known)) is not None:
        return hint
    return f"it has {', '.join(known)}" if known else None
