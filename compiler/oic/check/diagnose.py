"""All that is wrong with a text of wrong syntax, its meaning too, in one run."""

from __future__ import annotations

import re

from oic.check.check import check
from oic.check.sizes import size_values
from oic.diagnostics import Diagnostic
from oic.syntax.parse import Parsed

_NAMES = ("unknown-variable", "unknown-block", "no-entry")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


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
