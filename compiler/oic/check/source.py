"""A source read as users give it: its tree, or every error that one run can find."""

import os
import re
from pathlib import Path

from oic import arguments
from oic.check.check import check
from oic.check.sizes import size_values
from oic.collector import uncollected
from oic.diagnostics import Diagnostic, OicError, fail
from oic.model.others import WEIGHTS, described
from oic.syntax import tree as syntax
from oic.syntax.parse import MOST_BYTES, Parsed, parse_all

_NAMES = ("unknown-variable", "unknown-block", "no-entry")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@uncollected()
def parse(text: str, name: str = "graph.oi") -> syntax.Graph:
    """The syntax tree of a graph.

    Raises OicError with all syntax errors, and what else is wrong with what could be read.
    """
    arguments.require("text", text, str, "a str", "text.decode()" if isinstance(text, bytes) else None)
    arguments.text("name", name)
    parsed = parse_all(text, name)
    if parsed.errors:
        raise OicError(diagnose(parsed))
    assert parsed.graph is not None
    return parsed.graph


def parse_file(path: str | Path) -> syntax.Graph:
    """The syntax tree of a `.oi` file.  Raises OicError, also where the file cannot be read."""
    path = arguments.path("path", path)
    name = os.fsencode(path).decode("utf-8", "replace")  # it is written to files, so it has to be text
    _require_graph(name)
    try:
        raw = _read_file(path)
        # What is cut off may have been half a character; the text is too long anyway.
        text = raw.decode("utf-8", "strict" if len(raw) <= MOST_BYTES else "ignore")
    except UnicodeDecodeError as error:
        raise fail("source-encoding", f"{name} is not UTF-8 at byte {error.start}") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise fail("source-open", f"{name} cannot be read: {why}") from None
    return parse(text, name)


def _require_graph(name: str) -> None:
    """Refuse a model where a graph belongs, by its name."""
    if Path(name).suffix.lower() in WEIGHTS:
        what = f"{name} is a model, not a graph"
        raise fail("source-encoding", what, hint=f"oic … graph.oi --model {name}")
    other = described(name)
    if other is not None and Path(name).is_file():
        what = f"{name} is {other[0]}, not a graph"
        raise fail("source-encoding", what, hint=f"a graph is written in a .oi file (docs/tutorial.md); {other[1]}")


def _read_file(path: str | Path) -> bytes:
    """The bytes of a regular file, one more than `MOST_BYTES` at most; ValueError for another."""
    if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe would wait for a writer
        raise ValueError("Is a directory" if os.path.isdir(path) else "it is not a file")
    with open(path, "rb") as file:
        return file.read(MOST_BYTES + 1)


def diagnose(parsed: Parsed) -> list[Diagnostic]:
    """Errors of a text with syntax errors, in source order; any name may be a size of the model."""
    if parsed.graph is None:
        return parsed.errors
    found = check(parsed.graph).diagnostics + size_values(parsed.graph, {}, {})[1]
    certain = [d for d in found if d.slug != "unknown-name" and _certain(d, parsed)]
    return sorted([*parsed.errors, *certain], key=lambda d: d.span.start if d.span else 0)


def _certain(diagnostic: Diagnostic, parsed: Parsed) -> bool:
    """The diagnostic does not follow from a syntax error: no warning, and about no name that was left out."""
    if diagnostic.slug == "unknown-op":
        return True
    if diagnostic.slug in _NAMES and not parsed.whole:
        return False
    words = set(_WORD.findall(diagnostic.message))
    if diagnostic.span is not None:
        words |= set(_WORD.findall(diagnostic.span.text))
    return diagnostic.severity == "error" and not words & parsed.removed
