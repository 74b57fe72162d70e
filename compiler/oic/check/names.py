"""What the checks ask of the syntax tree, and the list that diagnostics are collected in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from oic.diagnostics import Diagnostic, Note, Span
from oic.syntax import tree as s


@dataclass
class DiagnosticCollector:
    """Diagnostics as they are found; the same one at the same place is kept once."""

    found: list[Diagnostic] = field(default_factory=list)

    def error(
        self, slug: str, message: str, span: Span, label: str = "", *,
        notes: Iterable[Note] = (), hint: str | None = None,
    ) -> None:  # fmt: skip
        self.add(Diagnostic(slug, message, span, label, tuple(notes), hint))

    def warn(
        self, slug: str, message: str, span: Span, label: str = "", *,
        notes: Iterable[Note] = (), hint: str | None = None,
    ) -> None:  # fmt: skip
        self.add(Diagnostic(slug, message, span, label, tuple(notes), hint, "warning"))

    def add(self, diagnostic: Diagnostic) -> None:
        if diagnostic not in self.found:
            self.found.append(diagnostic)

    def once(self, name: str, span: Span, first: Span) -> None:
        """An error if this declaration of a name is not the first."""
        if span != first:
            notes = [Note(first, "first declared here")]
            self.error("duplicate-name", f"'{name}' is declared twice", span, notes=notes)

    def in_order(self) -> list[Diagnostic]:
        """Everything found, by its place in the source."""
        return sorted(self.found, key=lambda d: d.span.start if d.span else 0)


def names_in(value: object) -> Iterator[s.Name]:
    """Every name in an expression, index or list; not the variable of an access."""
    match value:
        case s.Name():
            yield value
        case s.Unary(operand):
            yield from names_in(operand)
        case s.Binary(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case s.Slice(start, end):
            yield from names_in(start)
            yield from names_in(end)
        case s.ListOf(items):
            for item in items:
                yield from names_in(item)
        case s.Access(_, indices):
            for index in indices or ():
                yield from names_in(index)


def attribute(of: s.Declaration | s.Block, name: str) -> s.Attribute | None:
    """The attribute of this name (the first), or None."""
    return next((a for a in of.attributes if a.name == name), None)


def declared(declaration: s.Declaration) -> Note:
    """The note that points at a declaration."""
    return Note(declaration.head_span, "declared here")


def copied_out(access: s.Access, found: s.Declaration, taken: Collection[str]) -> str:
    """The hint that copies what an access of persistent memory selects into a new temporary."""
    given, table = access.indices or (), table_indices(found)
    slices = sum(i >= len(given) or isinstance(given[i], s.Slice) for i in range(len(table)))
    grows = auto_indices(found)
    dims = ["?"] * slices + ["?" if grows else dim.span.text for dim in found.dims]
    made = f"{found.dtype}[{', '.join(dims)}]" if dims else found.dtype
    place = access.span.text + ("[]" if found.indices and access.indices is None else "")
    names = (f"{found.name.lower()}{end}" for end in ("", "_now", *range(2, 1 << 20)))
    name = next(n for n in names if n not in taken)
    return f"copy it out first: 'assign {name}: {made}; cache.read {place} >> {name};'"


def auto_indices(declaration: s.Declaration) -> tuple[str, ...]:
    """Names of the indices that grow a dimension each."""
    found = attribute(declaration, "auto_dim")
    args = found.args if found else ()
    return tuple(a.value.name for a in args if isinstance(a.value, s.Name))


def table_indices(declaration: s.Declaration) -> tuple[str, ...]:
    """Names of the indices that select entries: of a table, or the members of a pattern."""
    grows = auto_indices(declaration)
    return tuple(i.name for i in declaration.indices or () if i.name not in grows)


def ring_index(declaration: s.Declaration) -> str | None:
    """The index over which a table is a ring, or None."""
    found = attribute(declaration, "ring")
    if found is None or not found.args or not isinstance(found.args[0].value, s.Name):
        return None
    return found.args[0].value.name
