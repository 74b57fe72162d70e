"""What the command line or the API asks for, against what the graph has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from oic.diagnostics import Diagnostic, Note, Source, Span, did_you_mean
from oic.syntax import tree as s


def check_sizes(
    graph: s.Graph, sizes: Mapping[str, int], model_sizevars: Collection[str]
) -> list[Diagnostic]:
    """Errors for sizes that are given (`--set`) and that neither the graph nor the model knows."""
    if not sizes:
        return []
    known = {*model_sizevars, *(size.name for size in graph.sizes), *_mentioned(graph)}
    return [
        Diagnostic(
            "size-unknown",
            f"--set {name}={value} names no size of the graph or the model",
            hint=did_you_mean(name, known),
        )
        for name, value in sizes.items()
        if name not in known
    ]


def check_fetch(graph: s.Graph, fetch: Collection[str] | None) -> list[Diagnostic]:
    """Errors for outputs that are asked for (`--fetch`) and are no volatile variables."""
    found = []
    known = [d.name for d in graph.declarations if d.kind == "volatile"]
    for name in fetch or ():
        if name in known:
            continue
        other = graph.declaration(name)
        notes = (Note(other.name_span, f"it is {other.kind}"),) if other else ()
        hint = None if other else did_you_mean(name, known)
        message = f"'{name}' is no output of the graph"
        found.append(Diagnostic("unknown-output", message, None, "", notes, hint))
    return found


def _mentioned(part: Any) -> Iterator[str]:
    """Every name in an expression or an attribute of a part of the tree."""
    if isinstance(part, s.Name):
        yield part.name
    elif isinstance(part, tuple):
        for item in part:
            yield from _mentioned(item)
    elif is_dataclass(part) and not isinstance(part, (Span, Source)):
        for each in fields(part):
            yield from _mentioned(getattr(part, each.name))
