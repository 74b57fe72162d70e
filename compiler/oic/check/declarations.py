"""Declarations and attributes (SPEC sections 2 to 5): what one declaration says for itself."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from oic import dtypes
from oic.check.literals import literal_problem
from oic.check.report import DiagnosticCollector
from oic.check.symbols import SymbolTable, Variable
from oic.diagnostics import Note, count_of, did_you_mean, listed
from oic.syntax import tree as s

_INDEXED = ("table", "auto_dim", "pattern")


def check_declaration(v: Variable, symbols: SymbolTable, report: DiagnosticCollector) -> None:
    """Everything about one variable, its uses aside."""
    _check_type(v, report)
    _check_dims(v, symbols, report)
    right = _placed(v.declaration.attributes, v.kind, report)
    _check_indices(v, right, report)
    for found in right.values():
        check_attribute(v, found, report)


def check_block_attributes(block: s.Block, symbols: SymbolTable, report: DiagnosticCollector) -> None:
    """`@entry` and `@entry(N=1)`."""
    for found in _placed(block.attributes, "block", report).values():
        check_attribute(symbols, found, report)


def _placed(attributes: tuple[s.Attribute, ...], kind: str, report: DiagnosticCollector) -> dict[str, s.Attribute]:
    """The attributes that are known, allowed in this section and given for the first time."""
    named = ((a.name, a.span) for a in attributes if a.name in ATTRIBUTES)
    report.each_once(named, "duplicate-attribute", "attribute '@{}' is given twice", "first given here")
    right: dict[str, s.Attribute] = {}
    for found in attributes:
        known = ATTRIBUTES.get(found.name)
        if known is None:
            hint = did_you_mean(f"@{found.name}", [f"@{name}" for name in ATTRIBUTES])
            report.error("unknown-attribute", f"unknown attribute '@{found.name}'", found.name_span, hint=hint)
        elif kind not in known.places:
            on = {"block": "a block", "temporary": "a temporary"}.get(kind, f"{kind} memory")
            label = f"for {listed(known.places, 'and')}{'' if known.places == ('block',) else ' memory'} only"
            report.error("attribute-place", f"'@{found.name}' is not allowed on {on}", found.span, label)
        else:
            right.setdefault(found.name, found)
    return right


def _check_type(v: Variable, report: DiagnosticCollector) -> None:
    d = v.declaration
    dtype = dtypes.ALL.get(d.dtype)
    if dtype is None:
        what = f"unknown element type '{d.dtype}'"
        report.error("unknown-dtype", what, d.dtype_span, hint=_dtype_hint(d.dtype))
    elif dtype.packed and not d.dims:
        what = f"'{d.name}' is a scalar of the packed type {d.dtype}, which only tensors may have"
        hint = f"declare a tensor, such as {d.dtype}[1], or use a type of whole bytes"
        report.error("packed-scalar", what, d.type_span, hint=hint)


def _dtype_hint(name: str) -> str | None:
    """The element type meant: `float32` and `float` are f32, else the nearest name."""
    long = re.fullmatch(r"(float|int|uint|bfloat)(\d*)", name.lower())
    if long is not None:
        short = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf"}[long[1]] + (long[2] or "32")
        if short in dtypes.ALL:
            return f"did you mean '{short}'?"
    return did_you_mean(name, dtypes.ALL)


def _check_dims(v: Variable, symbols: SymbolTable, report: DiagnosticCollector) -> None:
    for dim in v.declaration.dims:
        if isinstance(dim, s.Unknown):
            if not v.local:
                what = f"a {v.kind} variable cannot have the dimension '?'"
                report.error("unknown-dimension", what, dim.span, "for volatile variables and temporaries only")
            continue
        for name in s.names_in(dim) if v.kind in ("constant", "persistent") else ():
            if (extent := symbols.extents.get(name.name)) is not None:
                what = f"a {v.kind} variable cannot have the extent '{name.name}' as dimension"
                notes = [Note(extent.span, "introduced here")]
                report.error("extent-in-storage", what, name.span, "known at run time only", notes=notes)
        check_modulo(dim, report)


def check_modulo(size: s.Expr, report: DiagnosticCollector) -> None:
    """Sizes are sums, products and exact quotients (SPEC section 3)."""
    for part in s.nodes_in(size, s.Binary):
        if part.op == "%":
            report.error("size-modulo", "a size is not made with '%'", part.span)


def _check_indices(v: Variable, right: dict[str, s.Attribute], report: DiagnosticCollector) -> None:
    d = v.declaration
    indexed = [right[name] for name in _INDEXED if name in right]
    if d.indices is None:
        for found in indexed:
            what = f"'{d.name}' is declared '@{found.name}' but has no indices"
            notes, hint = [Note(d.name_span, "declared here")], f"declare {d.name}(i): {d.type_span.text}"
            report.error("no-indices", what, found.span, notes=notes, hint=hint)
        return
    if not d.indices:
        report.error("no-indices", f"'{d.name}' has empty parentheses", d.head_span)
        return
    if d.kind in ("dynamic", "temporary"):
        what = "a temporary" if d.kind == "temporary" else "a dynamic variable"
        report.error("unbound-indices", f"{what} cannot have indices", d.head_span)
        return
    named = ((index.name, index.span) for index in d.indices)
    report.each_once(named, "duplicate-index", "index '{}' is declared twice")
    # A constant's indices are the leading axes of its tensor; an attribute that is misplaced or
    # unknown is reported already.
    said = any(a.name in _INDEXED or a.name not in ATTRIBUTES for a in d.attributes)
    if d.kind != "constant" and not indexed and not said:
        wanted = "'@table' or '@auto_dim'" if d.kind == "persistent" else "'@pattern'"
        what = f"'{d.name}' has indices but no {wanted}"
        report.error("unbound-indices", what, d.head_span, hint=f"add {wanted}")
    _check_all_bound(v, d.indices, right, report)


def _check_all_bound(
    v: Variable, indices: tuple[s.Name, ...], right: dict[str, s.Attribute], report: DiagnosticCollector
) -> None:
    """Without `@table`, every index grows a dimension; with it, those that do come last."""
    auto = right.get("auto_dim")
    if auto is None or not names_of_arguments(auto):
        return
    grows = v.grows
    if not set(grows) <= set(v.indices) or len(set(grows)) < len(grows):
        return  # reported with the attribute
    if "table" not in right and len(grows) < len(indices):
        left = next(i for i in indices if i.name not in grows)
        what = f"index '{left.name}' neither grows a dimension nor selects an entry"
        notes, hint = [Note(auto.span, "the indices that grow")], "name it in '@auto_dim', or add '@table'"
        report.error("auto-dim", what, left.span, notes=notes, hint=hint)
    elif v.indices[len(indices) - len(grows) :] != grows:
        what = "the indices that '@auto_dim' names are not the last declared, in order"
        hint = f"declare {v.name}({', '.join([*v.table, *grows])})"
        report.error("auto-dim", what, auto.span, about=v, hint=hint)


# ---------------------------------------------------------------- the arguments of each attribute (SPEC section 5)

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
    if v.indices and not _known_indices(v, found, report):
        return
    if not v.indices and v.attribute("table") is not None:
        return  # an error of '@table'
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
    for name, arg in zip(names, found.args, strict=True):
        if name not in v.indices:
            what, hint = f"'{name}' is no index of '{v.name}'", did_you_mean(name, v.indices)
            report.error("unknown-index", what, arg.span, about=v, hint=hint)
    given = ((name, arg.span) for name, arg in zip(names, found.args, strict=True) if name in v.indices)
    report.each_once(given, "duplicate-index", "index '{}' is given twice", "first given here")
    return set(names) <= set(v.indices) and len(set(names)) == len(names)


def _check_fixed(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    if not v.indexed and not any(v.attribute(name) for name in ("table", "auto_dim")):
        report.error("no-indices", f"'{v.name}' has no indices that '@fixed' could bound", found.span, about=v)
    elif v.indices:
        _known_indices(v, found, report)


def _check_max(v: Variable, found: s.Attribute, report: DiagnosticCollector) -> None:
    known = sorted({name.name for name in s.names_in(v.declaration.dims)})
    for arg in found.args:
        assert arg.key is not None
        if arg.key not in known:
            notes, hint = [Note(v.declaration.type_span, "its dimensions")], did_you_mean(arg.key, known)
            what = f"'{arg.key}' is no dimension of '{v.name}'"
            report.error("unknown-extent", what, arg.span, notes=notes, hint=hint)


def _check_entry(symbols: SymbolTable, found: s.Attribute, report: DiagnosticCollector) -> None:
    keys = ((arg.key or "", arg.span) for arg in found.args if arg.key in symbols.extents)
    report.each_once(keys, "attribute-arguments", "'{}' is given twice", "first given here")
    for arg in found.args:
        assert arg.key is not None
        if arg.key not in symbols.extents:
            what, hint = f"'{arg.key}' is no extent", did_you_mean(arg.key, symbols.extents)
            report.error("unknown-extent", what, arg.span, "no '@max' introduces it", hint=hint)


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
