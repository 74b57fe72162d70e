"""The arguments of each attribute (SPEC section 5)."""

from __future__ import annotations

import re
from collections.abc import Callable

from oic import dtypes
from oic.check.literals import literal_problem
from oic.check.names import (
    DiagnosticCollector,
    attribute,
    auto_indices,
    declared,
    names_in,
    table_indices,
)
from oic.check.sizes import Unresolved, eval_dim
from oic.check.symbols import SymbolTable
from oic.diagnostics import Note, OicError, did_you_mean
from oic.syntax import tree as s

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_EXPRESSION = (s.Int, s.Name, s.Unary, s.Binary)


def names_of_arguments(found: s.Attribute) -> bool:
    """All arguments are plain names, and there is one at least."""
    return bool(found.args) and all(
        arg.key is None and isinstance(arg.value, s.Name) for arg in found.args
    )


def _arguments(found: s.Attribute, form: str, report: DiagnosticCollector) -> None:
    report.error(
        "attribute-arguments",
        f"wrong arguments for '@{found.name}'",
        found.span,
        hint=f"write {form}",
    )


# ---------------------------------------------------------------- one attribute each


def _check_init(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    values = [arg.value for arg in found.args if arg.key is None]
    if len(values) != 1 or len(found.args) != 1:
        _arguments(found, "@init(literal)", report)
        return
    dtype = dtypes.ALL.get(d.dtype)
    value = values[0]
    if not isinstance(value, s.Int | s.Float | s.Bool | s.Str):
        report.error("attribute-arguments", "'@init' takes a literal", value.span)
    elif dtype is not None and (problem := literal_problem(value, dtype)) is not None:
        what, message, hint = problem
        slug = "init-range" if what == "range" else "init-kind"
        note = Note(d.type_span, f"of type {d.dtype}")
        report.error(slug, message, value.span, notes=[note], hint=hint)


def _check_ref(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _strings(found, '@ref("name")', report):
        return
    if (pattern := attribute(d, "pattern")) is not None:
        report.error(
            "attribute-conflict",
            "'@ref' and '@pattern' both say which tensors to bind",
            found.span,
            notes=[Note(pattern.span, "the other")],
            hint="'@pattern' takes several names too",
        )
        return
    known = [index.name for index in d.indices or ()]
    for arg in found.args:
        assert isinstance(arg.value, s.Str)
        if any(name in known for name in _PLACEHOLDER.findall(arg.value.value)):
            report.error(
                "pattern-placeholder",
                f"'@ref' names one tensor, and {arg.value.span.text} has the place of an index",
                arg.value.span,
                hint=f"write @pattern({arg.value.span.text})",
            )


def _check_pattern(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _strings(found, '@pattern("name.{index}")', report) or not d.indices:
        return
    known = [index.name for index in d.indices]
    for arg in found.args:
        assert isinstance(arg.value, s.Str)
        held = _PLACEHOLDER.findall(arg.value.value)
        if (unknown := next((name for name in held if name not in known), None)) is not None:
            report.error(
                "pattern-placeholder",
                f"'{{{unknown}}}' is no index of '{d.name}'",
                arg.value.span,
                notes=[declared(d)],
                hint=did_you_mean(unknown, known),
            )
        elif (missing := next((name for name in known if name not in held), None)) is not None:
            report.error(
                "pattern-placeholder",
                f"index '{missing}' does not appear in the pattern",
                arg.value.span,
                f"no '{{{missing}}}' here",
                notes=[declared(d)],
            )
        elif set("{}") & set(_PLACEHOLDER.sub("", arg.value.value)):
            report.error("pattern-placeholder", "unmatched brace in the pattern", arg.value.span)


def _strings(found: s.Attribute, form: str, report: DiagnosticCollector) -> bool:
    """All arguments are names of tensors; an error otherwise."""
    right = bool(found.args) and all(
        arg.key is None and isinstance(arg.value, s.Str) and arg.value.value for arg in found.args
    )
    if not right:
        _arguments(found, form, report)
    return right


def _check_table(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    if found.args:
        _arguments(found, "@table", report)


def _check_auto_dim(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not names_of_arguments(found):
        _arguments(found, "@auto_dim(i, j), one index for every dimension", report)
        return
    if not d.indices or not _known_indices(d, found, report):
        return
    count = len(found.args)
    if count != len(d.dims):
        dims = f"{len(d.dims)} dimension" + ("s" if len(d.dims) != 1 else "")
        report.error(
            "auto-dim",
            f"'@auto_dim' names {count} ind{'ices' if count != 1 else 'ex'} for {dims}",
            found.span,
            notes=[Note(d.type_span, dims)],
            hint="name one index for every dimension, in order",
        )


def _check_ring(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not names_of_arguments(found) or len(found.args) != 1:
        _arguments(found, "@ring(t)", report)
        return
    if not d.indices or not _known_indices(d, found, report):
        return
    index = found.args[0].value
    assert isinstance(index, s.Name)
    fixed = attribute(d, "fixed")
    if attribute(d, "table") is None or index.name in auto_indices(d):
        report.error(
            "ring",
            f"index '{index.name}' selects no entries of a table",
            index.span,
            notes=[declared(d)],
        )
    elif table_indices(d)[-1] != index.name:
        report.error(
            "ring",
            f"index '{index.name}' of the ring is not the last that selects entries",
            index.span,
            notes=[declared(d)],
            hint=f"declare it after '{table_indices(d)[-1]}'",
        )
    elif fixed is None or all(arg.key != index.name for arg in fixed.args):
        report.error(
            "ring",
            f"the ring over '{index.name}' has no size",
            found.span,
            notes=[declared(d)],
            hint=f"add @fixed({index.name}=…)",
        )


def _known_indices(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> bool:
    """The names or keys given are indices of the variable, each once; an error for each other."""
    known = [index.name for index in d.indices or ()]
    seen: set[str] = set()
    right = True
    for arg in found.args:
        name = arg.key or (arg.value.name if isinstance(arg.value, s.Name) else "")
        if name not in known:
            right = False
            report.error(
                "unknown-index",
                f"'{name}' is no index of '{d.name}'",
                arg.span,
                notes=[declared(d)],
                hint=did_you_mean(name, known),
            )
        elif name in seen:
            right = False
            report.error("duplicate-index", f"index '{name}' is given twice", arg.span)
        seen.add(name)
    return right


def _check_fixed(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _bounds(found, "@fixed(i=1024)", report):
        return
    if d.indices is None and not any(attribute(d, name) for name in ("table", "auto_dim")):
        report.error(
            "no-indices",
            f"'{d.name}' has no indices that '@fixed' could bound",
            found.span,
            notes=[declared(d)],
        )
    elif d.indices and _known_indices(d, found, report):
        for arg in found.args:
            _at_least_one(arg, f"the bound of index '{arg.key}'", report)


def _check_max(d: s.Declaration, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not _bounds(found, "@max(N=512)", report):
        return
    known = sorted({name.name for dim in d.dims for name in names_in(dim)})
    for arg in found.args:
        assert arg.key is not None
        if arg.key not in known:
            report.error(
                "unknown-extent",
                f"'{arg.key}' is no dimension of '{d.name}'",
                arg.span,
                notes=[Note(d.type_span, "its dimensions")],
                hint=did_you_mean(arg.key, known),
            )
        else:
            _at_least_one(arg, f"the maximum of '{arg.key}'", report)


def _bounds(found: s.Attribute, form: str, report: DiagnosticCollector) -> bool:
    """All arguments are `name=integer expression`; an error otherwise."""
    right = bool(found.args) and all(
        arg.key is not None and isinstance(arg.value, _EXPRESSION) for arg in found.args
    )
    if not right:
        _arguments(found, form, report)
    return right


def _at_least_one(arg: s.Argument, what: str, report: DiagnosticCollector) -> None:
    value = _value(arg, report)
    if value is not None and value < 1:
        report.error("bound-range", f"{what} must be at least 1, but is {value}", arg.value.span)


def _value(arg: s.Argument, report: DiagnosticCollector) -> int | None:
    """The value of an argument without names, else None."""
    assert isinstance(arg.value, _EXPRESSION)
    try:
        return eval_dim(arg.value, {})
    except Unresolved:
        return None
    except OicError as error:
        report.found += error.diagnostics
        return None


def check_entry(found: s.Attribute, names: SymbolTable, report: DiagnosticCollector) -> None:
    """`@entry`, or `@entry(N=1)` with extents of the graph."""
    if found.args and not _bounds(found, "@entry or @entry(N=1)", report):
        return
    seen: set[str] = set()
    for arg in found.args:
        assert arg.key is not None
        extent = names.extents.get(arg.key)
        value = _value(arg, report)
        if extent is None:
            report.error(
                "unknown-extent",
                f"'{arg.key}' is no extent",
                arg.span,
                "no '@max' introduces it",
                hint=did_you_mean(arg.key, names.extents),
            )
        elif arg.key in seen:
            report.error("attribute-arguments", f"'{arg.key}' is given twice", arg.span)
        elif value is not None and (value < 0 or value > _maximum(extent.maximum, value)):
            report.error(
                "bound-range",
                f"'{arg.key}' cannot be {value}",
                arg.value.span,
                notes=[Note(extent.span, "its maximum")],
            )
        seen.add(arg.key)


def _maximum(written: s.Setting, otherwise: int) -> int:
    """The maximum of an extent, if it can be told."""
    try:
        return eval_dim(written, {}) if isinstance(written, _EXPRESSION) else otherwise
    except (Unresolved, OicError):
        return otherwise


CHECKS: dict[str, Callable[[s.Declaration, s.Attribute, DiagnosticCollector], None]] = {
    "init": _check_init,
    "ref": _check_ref,
    "pattern": _check_pattern,
    "table": _check_table,
    "auto_dim": _check_auto_dim,
    "ring": _check_ring,
    "fixed": _check_fixed,
    "max": _check_max,
}
