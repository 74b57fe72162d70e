"""What the command line or the API asks for, against what the graph has."""

from collections.abc import Collection, Mapping

from oic.check.resolved import Resolved
from oic.diagnostics import Diagnostic, Note, did_you_mean
from oic.syntax import tree as s


def check_sizes(resolved: Resolved, sizes: Mapping[str, int], model_sizevars: Collection[str]) -> list[Diagnostic]:
    """Errors for sizes that are given (`--set`) and that neither the graph nor the model knows."""
    graph, symbols = resolved.graph, resolved.symbols
    parts: list[s.Declaration | s.Block] = [*graph.declarations, *graph.blocks]
    written = (graph.sizes, tuple(part.attributes for part in parts))
    mentioned = {name.name for name in s.names_in(written)}
    known = {*model_sizevars, *symbols.sizes, *symbols.axes, *resolved.sizes, *mentioned}
    unknown = {name: f"--set {name}={value} names no size" for name, value in sizes.items() if name not in known}
    return [
        Diagnostic("size-unknown", f"{what} of the graph or the model", hint=did_you_mean(name, known))
        for name, what in unknown.items()
    ]


def check_fetch(resolved: Resolved, fetch: Collection[str] | None) -> list[Diagnostic]:
    """Errors for outputs that are asked for (`--fetch`) and are no volatile variables."""
    found, variables = [], resolved.symbols.variables
    outputs = [name for name, variable in variables.items() if variable.kind == "volatile"]
    for name in (name for name in fetch or () if name not in outputs):
        other = variables.get(name)
        notes = (Note(other.declaration.name_span, f"it is {other.kind}"),) if other else ()
        hint = None if other else did_you_mean(name, outputs)
        found.append(Diagnostic("unknown-output", f"'{name}' is no output of the graph", None, "", notes, hint))
    return found
