"""Declarations and attributes (SPEC sections 2 to 5): what one declaration says for itself."""

import re

from oic import dtypes
from oic.check.attributes import ATTRIBUTES, check_attribute, names_of_arguments
from oic.check.report import DiagnosticCollector
from oic.check.sizes import known_value
from oic.check.symbols import SymbolTable, Variable
from oic.diagnostics import Note, did_you_mean, listed
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
    first: dict[str, s.Attribute] = {}
    right: dict[str, s.Attribute] = {}
    for found in attributes:
        known = ATTRIBUTES.get(found.name)
        if known is None:
            hint = did_you_mean(f"@{found.name}", [f"@{name}" for name in ATTRIBUTES])
            report.error("unknown-attribute", f"unknown attribute '@{found.name}'", found.name_span, hint=hint)
        elif found.name in first:
            notes = [Note(first[found.name].span, "first given here")]
            what = f"attribute '@{found.name}' is given twice"
            report.error("duplicate-attribute", what, found.span, notes=notes)
        elif kind not in known.places:
            on = {"block": "a block", "temporary": "a temporary"}.get(kind, f"{kind} memory")
            label = f"for {listed(known.places, 'and')}{'' if known.places == ('block',) else ' memory'} only"
            report.error("attribute-place", f"'@{found.name}' is not allowed on {on}", found.span, label)
        else:
            right[found.name] = found
        first.setdefault(found.name, found)
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
        value = known_value(dim, report)
        if value is not None and value < 0:
            report.error("size-negative", f"dimension {value} is negative", dim.span)


def check_modulo(size: s.Expr, report: DiagnosticCollector) -> None:
    """Sizes are sums, products and exact quotients (SPEC section 3)."""
    match size:
        case s.Binary(op, left, right):
            if op == "%":
                report.error("size-modulo", "a size is not made with '%'", size.span)
            check_modulo(left, report)
            check_modulo(right, report)
        case s.Unary(operand):
            check_modulo(operand, report)


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
