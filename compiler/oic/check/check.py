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
from oic.check.report import DiagnosticCollector
from oic.check.resolve import Resolver
from oic.check.resolved import Resolved
from oic.check.symbols import SymbolTable, symbols_of, variable_of
from oic.syntax import tree as s


def check(graph: s.Graph, known_sizes: Collection[str] = ()) -> Resolved:
    """The graph with its names resolved, and all errors and warnings, in source order.

    known_sizes   names that have a value from `--set` or the model's sizevars
    """
    symbols = symbols_of(graph, known_sizes)
    report = DiagnosticCollector()
    _check_unique(graph, symbols, report)
    for declaration in graph.declarations:
        check_declaration(variable_of(declaration), symbols, report)
    for size in graph.sizes:
        check_modulo(size.value, report)
    for block in graph.blocks:
        check_block_attributes(block, symbols, report)
    flow = flow_of(symbols)
    check_flow(graph, symbols, flow, report)
    resolved = Resolver(graph, symbols, flow, report).run()
    check_consumers(resolved, report)
    check_extents(resolved, report)
    resolved.diagnostics[:] = report.in_order()
    return resolved


def _check_unique(graph: s.Graph, symbols: SymbolTable, report: DiagnosticCollector) -> None:
    """Variables and blocks share one name space, sizes and extents another."""
    items: list[s.Declaration | s.Block] = [*graph.declarations, *graph.blocks]
    report.each_once((item.name, item.name_span) for item in sorted(items, key=lambda item: item.span.start))
    sizes = [(size.name, size.name_span) for size in graph.sizes]
    report.each_once([*sizes, *((extent.name, extent.span) for extent in symbols.extents.values())])
