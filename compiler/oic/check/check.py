"""Everything about a graph that can be refused before types flow: names, kinds, declarations.

What operators take, shapes, the dtypes of results and what the model binds are checked when the
graph is built.
"""

from __future__ import annotations

from collections.abc import Collection

from oic.check.consumers import check_consumers
from oic.check.declarations import check_block_attributes, check_declaration, check_modulo
from oic.check.extents import check_extents
from oic.check.flow import check_flow, flow_of
from oic.check.names import DiagnosticCollector, SymbolTable, names_of
from oic.check.statements import check_statements
from oic.diagnostics import Diagnostic, Note, Span
from oic.syntax import tree as s


def check(graph: s.Graph, known_sizes: Collection[str] = ()) -> list[Diagnostic]:
    """All errors and warnings of a graph, in source order.

    known_sizes   names that have a value from `--set` or the model's sizevars
    """
    names = names_of(graph, known_sizes)
    report = DiagnosticCollector()
    _check_unique(graph, names, report)
    for declaration in graph.declarations:
        check_declaration(declaration, names, report)
    for size in graph.sizes:
        check_modulo(size.value, report)
    for block in graph.blocks:
        check_block_attributes(block, names, report)
        _check_temporaries(block, names, report)
    flow = flow_of(graph, names)
    check_flow(graph, names, flow, report)
    check_consumers(graph, names, flow, report)
    check_extents(graph, names, flow, report)
    check_statements(graph, names, flow, report)
    return report.in_order()


def _check_unique(graph: s.Graph, names: SymbolTable, report: DiagnosticCollector) -> None:
    """Variables and blocks share one name space, sizes and extents another."""
    first: dict[str, Span] = {}
    items: list[s.Declaration | s.Block] = [*graph.declarations, *graph.blocks]
    for item in sorted(items, key=lambda item: item.span.start):
        _once(item.name, item.name_span, first, report)
    first = {}
    for size in graph.sizes:
        _once(size.name, size.name_span, first, report)
    for extent in names.extents.values():
        if extent.name in first:
            _once(extent.name, extent.span, first, report)


def _once(name: str, span: Span, first: dict[str, Span], report: DiagnosticCollector) -> None:
    if name in first:
        report.error(
            "duplicate-name",
            f"'{name}' is declared twice",
            span,
            notes=[Note(first[name], "first declared here")],
        )
    first.setdefault(name, span)


def _check_temporaries(block: s.Block, names: SymbolTable, report: DiagnosticCollector) -> None:
    """A temporary's name is no variable's or block's, and unique in its block."""
    first: dict[str, Span] = {}
    for statement in s.walk(block.body):
        if not isinstance(statement, s.Assign):
            continue
        made = statement.declaration
        check_declaration(made, names, report)
        taken = names.variables.get(made.name) or names.blocks.get(made.name)
        if taken is not None:
            first.setdefault(made.name, taken.name_span)
        _once(made.name, made.name_span, first, report)
