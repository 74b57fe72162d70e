"""Everything about a graph that can be refused before types flow: names, kinds, declarations, and what is asked of it.

What operators take, shapes, the dtypes of results and what the model binds are checked when the
graph is built.
"""

from collections.abc import Collection, Mapping

from oic.check.consumers import check_consumers
from oic.check.declarations import check_block_attributes, check_declaration, check_modulo
from oic.check.flow import check_flow, flow_of
from oic.check.report import DiagnosticCollector
from oic.check.resolve import Resolver
from oic.check.resolved import BlockInstance, Resolved, effects
from oic.check.symbols import Size, SymbolTable, Variable, symbols_of
from oic.diagnostics import Diagnostic, Note, did_you_mean
from oic.syntax import tree as s


def check(graph: s.Graph, known_sizes: Collection[str] = ()) -> Resolved:
    """The graph with its names resolved, and all errors and warnings, in source order.

    known_sizes   names that have a value from `--set` or the model's sizevars
    """
    symbols = symbols_of(graph, known_sizes)
    report = DiagnosticCollector()
    _check_unique(graph, symbols, report)
    for declaration in graph.declarations:
        check_declaration(Variable.of(declaration), symbols, report)
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
    report.each_once([*sizes, *((name, extent.span) for name, extent in symbols.extents.items())])


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
        _check_entry(entry, symbols.extents, report)


def _check_entry(entry: BlockInstance, extents: Mapping[str, s.Argument], report: DiagnosticCollector) -> None:
    pins = s.attribute(entry.block, "entry")
    pinned = {arg.key for arg in pins.args} if pins else set()
    used = effects(entry)
    variables = [*(x for x in used.reads if isinstance(x, Variable)), *(v for v, _ in used.writes)]
    sizes = {x.name for x in used.reads if isinstance(x, Size)}
    sizes |= {n.name for v in variables for n in s.names_in(v.declaration.dims)}
    bound = {dim.name for v in variables if v.kind == "dynamic" for dim in v.axes}
    unbound = sizes - bound - pinned
    for name in (name for name in extents if name in unbound):
        what = f"entry '{entry.block.name}' uses the extent '{name}' but reads no input that has it as an axis"
        notes, hint = [Note(extents[name].span, "introduced here")], f"read such an input, or write '@entry({name}=…)'"
        report.error("extent-without-input", what, entry.block.name_span, notes=notes, hint=hint)


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
