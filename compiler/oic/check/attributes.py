"""The arguments of each attribute (SPEC section 5)."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

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


def _tensors(found: s.Attribute) -> bool:
    """All arguments are names of tensors, and there is one at least."""
    return bool(found.args) and all(a.key is None and isinstance(a.value, s.Str) and a.value.value for a in found.args)


def _bounds(found: s.Attribute) -> bool:
    """All arguments are `name=integer expression`, and there is one at least."""
    return bool(found.args) and all(arg.key is not None and isinstance(arg.value, s.Expr) for arg in found.args)


def _check_init(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    dtype, value = dtypes.ALL.get(v.declaration.dtype), found.args[0].value
    if not isinstance(value, s.Literal):
        report.error("attribute-arguments", "'@init' takes a literal", value.span)
    elif dtype is not None and (problem := literal_problem(value, dtype)) is not None:
        what, message, hint = problem
        note = Note(v.declaration.type_span, f"of type {dtype}")
        report.error(f"init-{what}", message, value.span, notes=[note], hint=hint)


def _check_ref(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
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
    for arg in found.args if v.indices else ():
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


def _check_auto_dim(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    count, rank = len(found.args), len(v.declaration.dims)
    if v.indices and _known_indices(v, found, report) and count != rank:
        dims = count_of(rank, "dimension")
        what = f"'@auto_dim' names {count_of(count, 'index')} for {dims}"
        notes, hint = [Note(v.declaration.type_span, dims)], "name one index for every dimension, in order"
        report.error("auto-dim", what, found.span, notes=notes, hint=hint)


def _check_ring(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not v.indices or not _known_indices(v, found, report):
        return
    index, span = v.ring, found.args[0].value.span
    assert index is not None
    if v.attribute("table") is None or index in v.grows:
        report.error("ring", f"index '{index}' selects no entries of a table", span, about=v)
    elif v.table[-1] != index:
        what = f"index '{index}' of the ring is not the last that selects entries"
        report.error("ring", what, span, about=v, hint=f"declare it after '{v.table[-1]}'")
    elif v.fixed(index) is None:
        what = f"the ring over '{index}' has no size"
        report.error("ring", what, found.span, about=v, hint=f"add @fixed({index}=…)")


def _known_indices(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> bool:
    """The names or keys given are indices of the variable, each once; an error for each other."""
    names = [arg.key or (arg.value.name if isinstance(arg.value, s.Name) else "") for arg in found.args]
    for at, (name, arg) in enumerate(zip(names, found.args, strict=True)):
        if name not in v.indices:
            what, hint = f"'{name}' is no index of '{v.name}'", did_you_mean(name, v.indices)
            report.error("unknown-index", what, arg.span, about=v, hint=hint)
        elif name in names[:at]:
            report.error("duplicate-index", f"index '{name}' is given twice", arg.span)
    return set(names) <= set(v.indices) and len(set(names)) == len(names)


def _check_fixed(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not v.indexed and not any(v.attribute(name) for name in ("table", "auto_dim")):
        report.error("no-indices", f"'{v.name}' has no indices that '@fixed' could bound", found.span, about=v)
    elif v.indices and _known_indices(v, found, report):
        for arg in found.args:
            _at_least_one(arg, f"the bound of index '{arg.key}'", report)


def _check_max(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    known = sorted({name.name for name in s.names_in(v.declaration.dims)})
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


def _check_entry(symbols: SymbolTable, found: s.Attribute, report: DiagnosticCollector) -> None:
    keys = [arg.key for arg in found.args]
    for at, arg in enumerate(found.args):
        assert arg.key is not None
        extent = symbols.extents.get(arg.key)
        value = known_value(arg.value, report)
        most = known_value(extent.value) if extent is not None else None
        if extent is None:
            what, hint = f"'{arg.key}' is no extent", did_you_mean(arg.key, symbols.extents)
            report.error("unknown-extent", what, arg.span, "no '@max' introduces it", hint=hint)
        elif arg.key in keys[:at]:
            report.error("attribute-arguments", f"'{arg.key}' is given twice", arg.span)
        elif value is not None and (value < 0 or (most is not None and value > most)):
            notes = [Note(extent.span, "its maximum")]
            report.error("bound-range", f"'{arg.key}' cannot be {value}", arg.value.span, notes=notes)


class AttributeRule(NamedTuple):
    """One attribute.

    places  sections whose variables may have it; temporaries take none
    form    how it is written
    right   its arguments have that form
    check   what they say, of a variable, or of a block with the symbols of its graph
    """

    places: tuple[str, ...]
    form: str
    right: Callable[[s.Attribute], bool]
    check: Callable[[Any, s.Attribute, DiagnosticCollector], None] | None


ATTRIBUTES = {
    "init": AttributeRule(
        ("persistent", "volatile", "constant"), "@init(literal)",
        lambda found: len(found.args) == 1 and found.args[0].key is None, _check_init,
    ),
    "ref": AttributeRule(("constant", "volatile"), '@ref("name")', _tensors, _check_ref),
    "pattern": AttributeRule(("constant", "volatile"), '@pattern("name.{index}")', _tensors, _check_pattern),
    "table": AttributeRule(("persistent",), "@table", lambda found: not found.args, None),
    "auto_dim": AttributeRule(
        ("persistent",), "@auto_dim(i, j), one index for every dimension", names_of_arguments, _check_auto_dim
    ),
    "fixed": AttributeRule(("persistent",), "@fixed(i=1024)", _bounds, _check_fixed),
    "ring": AttributeRule(
        ("persistent",), "@ring(t)", lambda found: names_of_arguments(found) and len(found.args) == 1, _check_ring
    ),
    "max": AttributeRule(("dynamic",), "@max(N=512)", _bounds, _check_max),
    "entry": AttributeRule(
        ("block",), "@entry or @entry(N=1)", lambda found: not found.args or _bounds(found), _check_entry
    ),
}  # fmt: skip


def check_attribute(of: Variable | SymbolTable, found: s.Attribute, report: DiagnosticCollector) -> None:
    """The arguments of an attribute that has its place.

    of   the variable that has it; for one of a block, the symbols of the graph
    """
    rule = ATTRIBUTES[found.name]
    if not rule.right(found):
        what = f"wrong arguments for '@{found.name}'"
        report.error("attribute-arguments", what, found.span, hint=f"write {rule.form}")
    elif rule.check is not None:
        rule.check(of, found, report)
