"""Everything about a graph that can be refused before types flow: names, kinds, declarations.

What operators take, shapes, the dtypes of results and what the model binds are checked when the
graph is built.
"""

from collections.abc import Collection, Iterable

from oic.check.consumers import check_consumers
from oic.check.declarations import check_block_attributes, check_declaration, check_modulo
from oic.check.flow import check_flow, flow_of
from oic.check.report import DiagnosticCollector
from oic.check.resolve import Resolver
from oic.check.resolved import BlockInstance, Resolved, effects
from oic.check.symbols import DeclaredExtent, Size, SymbolTable, Variable, symbols_of, variable_of
from oic.diagnostics import Note
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
    _check_extents(resolved, report)
    resolved.diagnostics[:] = report.in_order()
    return resolved


def _check_unique(graph: s.Graph, symbols: SymbolTable, report: DiagnosticCollector) -> None:
    """Variables and blocks share one name space, sizes and extents another."""
    items: list[s.Declaration | s.Block] = [*graph.declarations, *graph.blocks]
    report.each_once((item.name, item.name_span) for item in sorted(items, key=lambda item: item.span.start))
    sizes = [(size.name, size.name_span) for size in graph.sizes]
    report.each_once([*sizes, *((extent.name, extent.span) for extent in symbols.extents.values())])


def _check_extents(resolved: Resolved, report: DiagnosticCollector) -> None:
    """Sizes free of extents, and an input for every extent an entry uses."""
    symbols = resolved.symbols
    for size in resolved.graph.sizes:
        for name in s.names_in(size.value):
            if name.name in symbols.extents and name.name not in symbols.sizes:
                what = f"size '{size.name}' cannot depend on the extent '{name.name}'"
                notes = [Note(symbols.extents[name.name].span, "introduced here")]
                report.error("extent-in-size", what, name.span, "known at run time only", notes=notes)
    for entry in resolved.entries:
        _check_entry(entry, symbols.extents.values(), report)


def _check_entry(entry: BlockInstance, extents: Iterable[DeclaredExtent], report: DiagnosticCollector) -> None:
    pins = s.attribute(entry.block, "entry")
    pinned = {arg.key for arg in pins.args} if pins else set()
    used = effects(entry)
    variables = [*(x for x in used.reads if isinstance(x, Variable)), *(v for v, _ in used.writes)]
    sizes = {x.name for x in used.reads if isinstance(x, Size)}
    sizes |= {n.name for v in variables for n in s.names_in(v.declaration.dims)}
    bound = {dim.name for v in variables if v.kind == "dynamic" for dim in v.axes}
    for extent in extents:
        if extent.name not in sizes or extent.name in bound | pinned:
            continue
        what = f"entry '{entry.block.name}' uses the extent '{extent.name}' but reads no input that has it as an axis"
        notes, hint = [Note(extent.span, "introduced here")], f"read such an input, or write '@entry({extent.name}=…)'"
        report.error("extent-without-input", what, entry.block.name_span, notes=notes, hint=hint)
