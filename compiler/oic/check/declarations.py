"""Declarations and attributes (SPEC sections 2 to 5): what one declaration says for itself."""

from __future__ import annotations

import re

from oic import dtypes
from oic.check import attributes as check_attributes
from oic.check.names import DiagnosticCollector, auto_indices, declared, names_in
from oic.check.sizes import Unresolved, eval_dim
from oic.check.symbols import SymbolTable
from oic.diagnostics import Note, OicError, Span, did_you_mean
from oic.syntax import tree as s

# Sections whose variables may have an attribute.  Temporaries take none.
PLACES: dict[str, tuple[str, ...]] = {
    "init": ("persistent", "volatile", "constant"),
    "ref": ("constant", "volatile"),
    "pattern": ("constant", "volatile"),
    "table": ("persistent",),
    "auto_dim": ("persistent",),
    "fixed": ("persistent",),
    "ring": ("persistent",),
    "max": ("dynamic",),
    "entry": ("block",),
}
_INDEXED = ("table", "auto_dim", "pattern")


def check_declaration(d: s.Declaration, names: SymbolTable, report: DiagnosticCollector) -> None:
    """Everything about one variable, its uses aside."""
    _check_type(d, report)
    _check_dims(d, names, report)
    right = _placed(d.attributes, d.kind, report)
    _check_indices(d, right, report)
    for found in right.values():
        check_attributes.CHECKS[found.name](d, found, report)


def check_block_attributes(block: s.Block, names: SymbolTable, report: DiagnosticCollector) -> None:
    """`@entry` and `@entry(N=1)`."""
    right = _placed(block.attributes, "block", report)
    if (entry := right.get("entry")) is not None:
        check_attributes.check_entry(entry, names, report)


def _placed(
    attributes: tuple[s.Attribute, ...], kind: str, report: DiagnosticCollector
) -> dict[str, s.Attribute]:
    """The attributes that are known, allowed in this section and given for the first time."""
    first: dict[str, s.Attribute] = {}
    right: dict[str, s.Attribute] = {}
    for found in attributes:
        places = PLACES.get(found.name)
        if places is None:
            report.error(
                "unknown-attribute",
                f"unknown attribute '@{found.name}'",
                found.name_span,
                hint=did_you_mean(f"@{found.name}", [f"@{name}" for name in PLACES]),
            )
        elif found.name in first:
            report.error(
                "duplicate-attribute",
                f"attribute '@{found.name}' is given twice",
                found.span,
                notes=[Note(first[found.name].span, "first given here")],
            )
        elif kind not in places:
            what = {"block": "a block", "temporary": "a temporary"}.get(kind, f"{kind} memory")
            report.error(
                "attribute-place",
                f"'@{found.name}' cannot stand on {what}",
                found.span,
                f"for {_listed(places)}{'' if places == ('block',) else ' memory'} only",
            )
        else:
            right[found.name] = found
        first.setdefault(found.name, found)
    return right


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---------------------------------------------------------------- types


def _check_type(d: s.Declaration, report: DiagnosticCollector) -> None:
    dtype = dtypes.ALL.get(d.dtype)
    if dtype is None:
        report.error(
            "unknown-dtype",
            f"unknown element type '{d.dtype}'",
            d.dtype_span,
            hint=_dtype_hint(d.dtype),
        )
    elif dtype.packed and not d.dims:
        report.error(
            "packed-scalar",
            f"'{d.name}' is a scalar of the packed type {d.dtype}, which only tensors may have",
            d.type_span,
            hint=f"declare a tensor, such as {d.dtype}[1], or use a type of whole bytes",
        )


def _dtype_hint(name: str) -> str | None:
    """The element type meant: `float32` is f32, else the nearest name."""
    long = re.fullmatch(r"(float|int|uint|bfloat)(\d+)", name.lower())
    if long is not None:
        short = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf"}[long[1]] + long[2]
        if short in dtypes.ALL:
            return f"did you mean '{short}'?"
    return did_you_mean(name, dtypes.ALL)


def _check_dims(d: s.Declaration, names: SymbolTable, report: DiagnosticCollector) -> None:
    for dim in d.dims:
        if isinstance(dim, s.Unknown):
            if d.kind not in ("volatile", "temporary"):
                report.error(
                    "unknown-dimension",
                    f"a {d.kind} variable cannot have the dimension '?'",
                    dim.span,
                    "for volatile variables and temporaries only",
                )
            continue
        if d.kind in ("constant", "persistent"):
            for name in names_in(dim):
                if (extent := names.extents.get(name.name)) is not None:
                    report.error(
                        "extent-in-storage",
                        f"a {d.kind} variable cannot have the extent '{name.name}' as dimension",
                        name.span,
                        "known at run time only",
                        notes=[Note(extent.span, "introduced here")],
                    )
        check_modulo(dim, report)
        _check_literal_dim(dim, report)


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


def _check_literal_dim(dim: s.Expr, report: DiagnosticCollector) -> None:
    """A dimension without names is evaluated at once."""
    try:
        value = eval_dim(dim, {})
    except Unresolved:
        return
    except OicError as error:
        report.found += error.diagnostics
        return
    if value < 0:
        report.error("size-negative", f"dimension {value} is negative", dim.span)


# ---------------------------------------------------------------- indices


def _check_indices(d: s.Declaration, right: dict[str, s.Attribute], report: DiagnosticCollector) -> None:
    indexed = [right[name] for name in _INDEXED if name in right]
    if d.indices is None:
        for found in indexed:
            report.error(
                "no-indices",
                f"'{d.name}' is declared '@{found.name}' but has no indices",
                found.span,
                notes=[Note(d.name_span, "declared here")],
                hint=f"declare {d.name}(i): {d.type_span.text}",
            )
        return
    if not d.indices:
        report.error("no-indices", f"'{d.name}' has empty parentheses", d.head_span)
        return
    if d.kind in ("dynamic", "temporary"):
        what = "a temporary" if d.kind == "temporary" else "a dynamic variable"
        report.error("unbound-indices", f"{what} cannot have indices", d.head_span)
        return
    _check_distinct(d, report)
    # A constant's indices are the leading axes of its tensor; an attribute that is misplaced or
    # unknown is reported already.
    said = any(a.name in _INDEXED or a.name not in PLACES for a in d.attributes)
    if d.kind != "constant" and not indexed and not said:
        wanted = "'@table' or '@auto_dim'" if d.kind == "persistent" else "'@pattern'"
        report.error(
            "unbound-indices",
            f"'{d.name}' has indices but no {wanted}",
            d.head_span,
            hint=f"add {wanted}",
        )
    _check_all_bound(d, right, report)


def _check_distinct(d: s.Declaration, report: DiagnosticCollector) -> None:
    seen: dict[str, Span] = {}
    for index in d.indices or ():
        if index.name in seen:
            report.error(
                "duplicate-index",
                f"index '{index.name}' is declared twice",
                index.span,
                notes=[Note(seen[index.name], "first declared here")],
            )
        seen.setdefault(index.name, index.span)


def _check_all_bound(d: s.Declaration, right: dict[str, s.Attribute], report: DiagnosticCollector) -> None:
    """Without `@table`, every index grows a dimension; with it, those that do come last."""
    auto = right.get("auto_dim")
    if auto is None or not check_attributes.names_of_arguments(auto):
        return
    grows = auto_indices(d)
    order = [i.name for i in d.indices or ()]
    if not set(grows) <= set(order) or len(set(grows)) < len(grows):
        return  # reported with the attribute
    if "table" not in right and len(grows) < len(order):
        left = next(i for i in d.indices or () if i.name not in grows)
        report.error(
            "auto-dim",
            f"index '{left.name}' neither grows a dimension nor selects an entry",
            left.span,
            notes=[Note(auto.span, "the indices that grow")],
            hint="name it in '@auto_dim', or add '@table'",
        )
    elif tuple(order[len(order) - len(grows) :]) != grows:
        report.error(
            "auto-dim",
            "the indices that '@auto_dim' names are not the last declared, in order",
            auto.span,
            notes=[declared(d)],
            hint=f"declare {d.name}({', '.join([n for n in order if n not in grows] + [*grows])})",
        )
