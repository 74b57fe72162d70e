"""All that is wrong with one text, syntax and meaning together, in one run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from oic.check.check import check
from oic.check.sizes import size_values
from oic.diagnostics import Diagnostic
from oic.syntax.parse import Parsed

_NAMES = ("unknown-variable", "unknown-name", "unknown-block", "no-entry")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def diagnose(parsed: Parsed, overrides: Mapping[str, int], known_sizes: Collection[str] | None) -> list[Diagnostic]:
    """Errors and warnings of a text, in source order.

    overrides    values of `--set`
    known_sizes  names of the model's sizevars; None: any name may be a size
    """
    if parsed.graph is None:
        return parsed.errors
    found = check(parsed.graph, [*overrides, *(known_sizes or ())]).diagnostics
    found += size_values(parsed.graph, overrides, {})[1]
    if parsed.errors:
        found = [d for d in found if _certain(d, parsed)]
    if known_sizes is None:
        found = [d for d in found if d.slug != "unknown-name"]
    return sorted([*parsed.errors, *found], key=lambda d: d.span.start if d.span else 0)


def _certain(diagnostic: Diagnostic, parsed: Parsed) -> bool:
    """It does not follow from a syntax error: no warning, and about no name that was left out."""
    if diagnostic.slug == "unknown-op":
        return True
    if diagnostic.slug in _NAMES and not parsed.whole:
        return False
    words = set(_WORD.findall(diagnostic.message))
    if diagnostic.span is not None:
        words |= set(_WORD.findall(diagnostic.span.text))
    return diagnostic.severity == "error" and not words & parsed.removed
