"""The arguments of each attribute (SPEC section 5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from oic import dtypes
from oic.check.literals import literal_problem
from oic.check.report import DiagnosticCollector
from oic.check.sizes import known_value
from oic.check.symbols import SymbolTable, Variable
from oic.diagnostics import Note, count_of, did_you_mean
from oic.syntax import tree as s

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def names_of_arguments(found: s.Attribute) -> bool:
    """All arguments are plain names, and there is one at least."""
    return bool(found.args) and all(arg.key is None and isinstance(arg.value, s.Name) for arg in found.args)


def _arguments(found: s.Attribute, form: str, report: DiagnosticCollector) -> None:
    what = f"wrong arguments for '@{found.name}'"
    report.error("attribute-arguments", what, found.span, hint=f"write {form}")


# ---------------------------------------------------------------- one attribute each


def _check_init(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if len(found.args) != 1 or found.args[0].key is not None:
        _arguments(found, "@init(literal)", report)
        return
    dtype, value = dtypes.ALL.get(v.declaration.dtype), found.args[0].value
    if not isinstance(value, s.Int | s.Float | s.Bool | s.Str):
        report.error("attribute-arguments", "'@init' takes a literal", value.span)
    elif dtype is not None and (problem := literal_problem(value, dtype)) is not None:
        what, message, hint = problem
        slug = "init-range" if what == "range" else "init-kind"
        note = Note(v.declaration.type_span, f"of type {dtype}")
        report.error(slug, message, value.span, notes=[note], hint=hint)


def _check_ref(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _each(found, _is_tensor, '@ref("name")', report):
        return
    if (pattern := v.attribute("pattern")) is not None:
        what, hint = "'@ref' and '@pattern' both say which tensors to bind", "'@pattern' takes several names too"
        report.error("attribute-conflict", what, found.span, notes=[Note(pattern.span, "the other")], hint=hint)
        return
    for arg in found.args:
        assert isinstance(arg.value, s.Str)
        if any(name in v.indices for name in _PLACEHOLDER.findall(arg.value.value)):
            written, span = arg.value.span.text, arg.value.span
            what = f"'@ref' names one tensor, and {written} has the place of an index"
            report.error("pattern-placeholder", what, span, hint=f"write @pattern({written})")


def _check_pattern(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _each(found, _is_tensor, '@pattern("name.{index}")', report) or not v.indices:
        return
    for arg in found.args:
        assert isinstance(arg.value, s.Str)
        span, known = arg.value.span, v.indices
        held = _PLACEHOLDER.findall(arg.value.value)
        if (unknown := next((name for name in held if name not in known), None)) is not None:
            what, hint = f"'{{{unknown}}}' is no index of '{v.name}'", did_you_mean(unknown, known)
            report.error("pattern-placeholder", what, span, about=v, hint=hint)
        elif (missing := next((name for name in known if name not in held), None)) is not None:
            what, label = f"index '{missing}' does not appear in the pattern", f"no '{{{missing}}}' here"
            report.error("pattern-placeholder", what, span, label, about=v)
        elif set("{}") & set(_PLACEHOLDER.sub("", arg.value.value)):
            report.error("pattern-placeholder", "unmatched brace in the pattern", span)


def _is_tensor(arg: s.Argument) -> bool:
    """The name of a tensor."""
    return arg.key is None and isinstance(arg.value, s.Str) and arg.value.value != ""


def _is_bound(arg: s.Argument) -> bool:
    """`name=integer expression`."""
    return arg.key is not None and isinstance(arg.value, s.Expr)


def _each(found: s.Attribute, right: Callable[[s.Argument], bool], form: str, report: DiagnosticCollector) -> bool:
    """There are arguments, and each is right; an error otherwise."""
    if not (whole := bool(found.args) and all(map(right, found.args))):
        _arguments(found, form, report)
    return whole


def _check_table(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if found.args:
        _arguments(found, "@table", report)


def _check_auto_dim(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not names_of_arguments(found):
        _arguments(found, "@auto_dim(i, j), one index for every dimension", report)
        return
    count, rank = len(found.args), len(v.declaration.dims)
    if v.indices and _known_indices(v, found, report) and count != rank:
        dims = count_of(rank, "dimension")
        what = f"'@auto_dim' names {count} ind{'ices' if count != 1 else 'ex'} for {dims}"
        notes, hint = [Note(v.declaration.type_span, dims)], "name one index for every dimension, in order"
        report.error("auto-dim", what, found.span, notes=notes, hint=hint)


def _check_ring(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not names_of_arguments(found) or len(found.args) != 1:
        _arguments(found, "@ring(t)", report)
        return
    if not v.indices or not _known_indices(v, found, report):
        return
    index, span, fixed = v.ring, found.args[0].value.span, v.attribute("fixed")
    if v.attribute("table") is None or index in v.grows:
        report.error("ring", f"index '{index}' selects no entries of a table", span, about=v)
    elif v.table[-1] != index:
        what = f"index '{index}' of the ring is not the last that selects entries"
        report.error("ring", what, span, about=v, hint=f"declare it after '{v.table[-1]}'")
    elif fixed is None or all(arg.key != index for arg in fixed.args):
        what = f"the ring over '{index}' has no size"
        report.error("ring", what, found.span, about=v, hint=f"add @fixed({index}=…)")


def _known_indices(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> bool:
    """The names or keys given are indices of the variable, each once; an error for each other."""
    seen: set[str] = set()
    right = True
    for arg in found.args:
        name = arg.key or (arg.value.name if isinstance(arg.value, s.Name) else "")
        if name not in v.indices:
            right = False
            what, hint = f"'{name}' is no index of '{v.name}'", did_you_mean(name, v.indices)
            report.error("unknown-index", what, arg.span, about=v, hint=hint)
        elif name in seen:
            right = False
            report.error("duplicate-index", f"index '{name}' is given twice", arg.span)
        seen.add(name)
    return right


def _check_fixed(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _each(found, _is_bound, "@fixed(i=1024)", report):
        return
    if not v.indexed and not any(v.attribute(name) for name in ("table", "auto_dim")):
        what = f"'{v.name}' has no indices that '@fixed' could bound"
        report.error("no-indices", what, found.span, about=v)
    elif v.indices and _known_indices(v, found, report):
        for arg in found.args:
            _at_least_one(arg, f"the bound of index '{arg.key}'", report)


def _check_max(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _each(found, _is_bound, "@max(N=512)", report):
        return
    known = sorted({name.name for dim in v.declaration.dims for name in s.names_in(dim)})
    for arg in found.args:
        assert arg.key is not None
        if arg.key in known:
            _at_least_one(arg, f"the maximum of '{arg.key}'", report)
        else:
            notes, hint = [Note(v.declaration.type_span, "its dimensions")], did_you_mean(arg.key, known)
            what = f"'{arg.key}' is no dimension of '{v.name}'"
            report.error("unknown-extent", what, arg.span, notes=notes, hint=hint)


def _at_least_one(arg: s.Argument, what: str, report: DiagnosticCollector) -> None:
    value = known_value(arg.value, report)
    if value is not None and value < 1:
        report.error("bound-range", f"{what} must be at least 1, but is {value}", arg.value.span)


def check_entry(found: s.Attribute, symbols: SymbolTable, report: DiagnosticCollector) -> None:
    """`@entry`, or `@entry(N=1)` with extents of the graph."""
    if found.args and not _each(found, _is_bound, "@entry or @entry(N=1)", report):
        return
    seen: set[str] = set()
    for arg in found.args:
        assert arg.key is not None
        extent = symbols.extents.get(arg.key)
        value = known_value(arg.value, report)
        most = known_value(extent.maximum) if extent is not None else None
        if extent is None:
            what, hint = f"'{arg.key}' is no extent", did_you_mean(arg.key, symbols.extents)
            report.error("unknown-extent", what, arg.span, "no '@max' introduces it", hint=hint)
        elif arg.key in seen:
            report.error("attribute-arguments", f"'{arg.key}' is given twice", arg.span)
        elif value is not None and (value < 0 or (most is not None and value > most)):
            notes = [Note(extent.span, "its maximum")]
            report.error("bound-range", f"'{arg.key}' cannot be {value}", arg.value.span, notes=notes)
        seen.add(arg.key)


class AttributeRule(NamedTuple):
    """Sections whose variables may have an attribute (temporaries take none), and the check of its arguments."""

    places: tuple[str, ...]
    check: Callable[..., None]


ATTRIBUTES = {
    "init": AttributeRule(("persistent", "volatile", "constant"), _check_init),
    "ref": AttributeRule(("constant", "volatile"), _check_ref),
    "pattern": AttributeRule(("constant", "volatile"), _check_pattern),
    "table": AttributeRule(("persistent",), _check_table),
    "auto_dim": AttributeRule(("persistent",), _check_auto_dim),
    "fixed": AttributeRule(("persistent",), _check_fixed),
    "ring": AttributeRule(("persistent",), _check_ring),
    "max": AttributeRule(("dynamic",), _check_max),
    "entry": AttributeRule(("block",), check_entry),
}
