"""Brackets: how many indices an access gives, and which of them may be slices (SPEC section 8)."""

from __future__ import annotations

from oic.check.names import DiagnosticCollector
from oic.check.sizes import Unresolved, eval_dim
from oic.check.symbols import Variable
from oic.diagnostics import OicError
from oic.syntax import tree as s

_MANY = {1: "one", 2: "two", 3: "three"}


def check_access(access: s.Access, found: Variable, mode: str, report: DiagnosticCollector) -> None:
    """The brackets of an access: 'read', 'write' or 'reset' of persistent state, or 'member'.

    A member is one of a pattern: all indices, scalars only.
    """
    if not found.indexed:
        if access.indices is not None:
            report.error(
                "not-indexed",
                f"'{found.name}' has no indices",
                access.span,
                notes=[found.note()],
            )
        return
    if not found.indices:
        return  # empty parentheses are refused at the declaration
    if access.indices is None:
        if mode != "reset":
            _missing(access, found, 0, mode, report)
        return
    tables, given = len(found.table), len(access.indices)
    allowed = tables if mode == "reset" else len(found.indices)
    if given > allowed:
        _too_many(access, found, allowed, mode, report)
    elif given < tables and mode in ("write", "member"):
        _missing(access, found, given, mode, report)
    else:
        _check_positions(access, found, mode, report)


def _check_positions(access: s.Access, found: Variable, mode: str, report: DiagnosticCollector) -> None:
    """Each index of an access that gives neither too many nor too few."""
    grows, ring = found.grows, found.ring
    for name, position in zip(found.indices, access.indices or (), strict=False):
        if isinstance(position, s.Slice):
            _check_slice(access, position, found, mode, name in grows, name, report)
        elif _negative(position) and not (ring == name and mode == "read"):
            report.error(
                "index-negative", "this index is negative", position.span, notes=[found.note()]
            )
    if ring is not None and mode == "read":
        _check_ring(access, found, ring, report)


def _check_slice(
    access: s.Access, position: s.Slice, found: Variable, mode: str, auto: bool,
    name: str, report: DiagnosticCollector,
) -> None:  # fmt: skip
    ring = found.ring
    notes = [found.note()]
    if mode == "member":
        report.error(
            "slice-place", "a pattern's index cannot be a slice", position.span, notes=notes
        )
    elif mode == "reset":
        report.error("slice-place", "'cache.reset' takes no slices", position.span, notes=notes)
    elif mode == "write" and auto:
        report.error(
            "slice-place",
            f"a write replaces the whole of '{found.name}', not a slice",
            position.span,
            notes=notes,
        )
    elif mode == "write" and (position.start is None or position.end is None):
        report.error(
            "slice-ends",
            "a write gives both ends of a slice",
            position.span,
            notes=notes,
            hint=f"write {access.name}[pos..pos+n], with n the number of entries",
        )
    elif ring is not None and name != ring:
        report.error(
            "ring-index", f"index '{name}' beside a ring must be a scalar", position.span,
            notes=notes,
        )  # fmt: skip
    elif position.start is not None and ring is None and _negative(position.start):
        report.error("index-negative", "a slice cannot start below 0", position.start.span)


def _check_ring(access: s.Access, found: Variable, ring: str, report: DiagnosticCollector) -> None:
    """Indices beside the ring's own must be given."""
    given = len(access.indices or ())
    left = [name for name in found.indices[given:] if name != ring]
    if left:
        report.error(
            "ring-index",
            f"index '{left[0]}' beside a ring must be given",
            access.span,
            notes=[found.note()],
        )


def _too_many(
    access: s.Access, found: Variable, allowed: int, mode: str, report: DiagnosticCollector
) -> None:
    assert access.indices is not None
    extra = len(access.indices) - allowed
    names = found.indices
    what = {"member": "", "reset": "table "}.get(mode, "table " if found.table else "")
    last = {1: "the second", 2: "the third"}.get(allowed, "the last") if extra == 1 else "the extra"
    free = next(n for n in ("j", "k", "m", "n", "p", "q", "r") if n not in names)
    wider = f", or declare {found.name}({', '.join([*names, free])})" if mode != "reset" else ""
    report.error(
        "table-rank",
        f"{what}'{found.name}' has {_indices(allowed)}, but {len(access.indices)} are given",
        access.span,
        f"{_MANY.get(extra, extra)} {'index' if extra == 1 else 'indices'} too many",
        notes=[found.note()],
        hint=f"drop {last} {'index' if extra == 1 else 'indices'}{wider if extra == 1 else ''}",
    )


def _missing(access: s.Access, found: Variable, given: int, mode: str, report: DiagnosticCollector) -> None:
    """Too few indices, or no brackets where they are needed."""
    names = ", ".join(found.indices)
    tables = len(found.table)
    if access.indices is None and (mode == "read" or tables == 0):
        report.error(
            "brackets",
            f"'{found.name}' is accessed without brackets",
            access.span,
            notes=[found.note()],
            hint=f"write {found.name}[] for all of it, or {found.name}[{names}]",
        )
        return
    what = "a write gives every index" if mode == "write" else "a member is named by every index"
    report.error(
        "table-rank",
        f"'{found.name}' has {_indices(tables)}, but {given or 'none'} "
        f"{'is' if given < 2 else 'are'} given",
        access.span,
        what,
        notes=[found.note()],
    )


def _indices(count: int) -> str:
    return f"{count} index" if count == 1 else f"{count} indices"


def _negative(expr: s.Expr) -> bool:
    """The expression has no names and is below 0."""
    try:
        return eval_dim(expr, {}) < 0
    except (Unresolved, OicError):
        return False
