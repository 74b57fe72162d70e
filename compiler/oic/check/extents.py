"""Extents: an input in every entry that uses them (SPEC section 3)."""

from __future__ import annotations

from collections.abc import Iterable

from oic.check.report import DiagnosticCollector
from oic.check.resolved import BlockInstance, Resolved, effects
from oic.check.symbols import DeclaredExtent, Size, Variable
from oic.diagnostics import Note
from oic.syntax import tree as s


def check_extents(resolved: Resolved, report: DiagnosticCollector) -> None:
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
