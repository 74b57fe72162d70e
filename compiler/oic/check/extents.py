"""Extents: an input in every entry that uses them (SPEC section 3)."""

from __future__ import annotations

from oic.check.flow import Flow
from oic.check.names import DeclaredExtent, DiagnosticCollector, SymbolTable, attribute, names_in
from oic.check.uses import uses
from oic.diagnostics import Note
from oic.syntax import tree as s


def check_extents(graph: s.Graph, names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """Sizes free of extents, and an input for every extent an entry uses."""
    for size in graph.sizes:
        for name in names_in(size.value):
            if name.name in names.extents and name.name not in names.sizes:
                report.error(
                    "extent-in-size",
                    f"size '{size.name}' cannot depend on the extent '{name.name}'",
                    name.span,
                    "known at run time only",
                    notes=[Note(names.extents[name.name].span, "introduced here")],
                )
    for entry in flow.entries:
        _check_entry(entry, names, flow, report)


def _check_entry(entry: s.Block, names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    pins = attribute(entry, "entry")
    pinned = {arg.key for arg in pins.args} if pins else set()
    read, used = _used(entry, names, flow)
    for extent in names.extents.values():
        if extent.name not in used or extent.name in pinned:
            continue
        if not any(_is_axis(extent, names.variables[name]) for name in read):
            report.error(
                "extent-without-input",
                f"entry '{entry.name}' uses the extent '{extent.name}' but reads no input that "
                "has it as an axis",
                entry.name_span,
                notes=[Note(extent.span, "introduced here")],
                hint=f"read such an input, or write '@entry({extent.name}=…)'",
            )


def _used(entry: s.Block, names: SymbolTable, flow: Flow) -> tuple[set[str], set[str]]:
    """The dynamic variables that an entry reads, and the names of sizes and extents it uses."""
    blocks = [names.blocks[name] for name in _run_by(entry, names, flow)]
    mentioned: set[str] = set()
    sizes: set[str] = set()
    for statement in (x for block in blocks for x in s.walk(block.body)):
        if isinstance(statement, s.Assign):
            sizes |= {n.name for dim in statement.declaration.dims for n in names_in(dim)}
            continue
        found = uses(statement)
        mentioned |= found.reads | found.writes
    variables = [names.variables[name] for name in sorted(mentioned & names.variables.keys())]
    for variable in variables:
        sizes |= {n.name for dim in variable.dims for n in names_in(dim)}
    sizes |= mentioned - names.variables.keys()
    return {v.name for v in variables if v.kind == "dynamic"}, sizes


def _run_by(entry: s.Block, names: SymbolTable, flow: Flow) -> set[str]:
    """The blocks that an entry runs: itself, those it branches to, the consumers it yields to."""
    found = flow.reached_from(entry.name)
    given = [
        {name.name for name in statement.names}
        for statement in s.walk(entry.body)
        if isinstance(statement, s.Yield)
    ]
    for consumer in flow.consumers:
        first = consumer.body[0]
        if isinstance(first, s.Await) and any({n.name for n in first.names} <= g for g in given):
            found |= flow.reached_from(consumer.name)
    return found


def _is_axis(extent: DeclaredExtent, variable: s.Declaration) -> bool:
    return any(isinstance(dim, s.Name) and dim.name == extent.name for dim in variable.dims)
