"""The name spaces of a graph (SPEC section 1) and the list that diagnostics are collected in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from oic.diagnostics import Diagnostic, Note, Span
from oic.syntax import tree as s

T = TypeVar("T")


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

    def in_order(self) -> list[Diagnostic]:
        """Everything found, by its place in the source."""
        return sorted(self.found, key=lambda d: d.span.start if d.span else 0)


@dataclass(frozen=True)
class DeclaredExtent:
    """A run-time integer: where `@max` introduces it, and its maximum as written."""

    name: str
    maximum: s.Setting
    declaration: s.Declaration
    span: Span


@dataclass(frozen=True)
class SymbolTable:
    """What the sections and blocks of a graph declare; of doubles, the first.

    known    sizes that have a value from elsewhere: `--set`, the model
    axes     names that some dimension is made of: sizes, whether or not they have a value
    """

    variables: dict[str, s.Declaration]
    blocks: dict[str, s.Block]
    sizes: dict[str, s.SizeDef]
    extents: dict[str, DeclaredExtent]
    axes: frozenset[str]
    known: frozenset[str]

    def is_size(self, name: str) -> bool:
        """The name is a sizevar or an extent, as far as the graph tells."""
        tables = (self.sizes, self.extents, self.axes, self.known)
        return any(name in table for table in tables)


def names_of(graph: s.Graph, known: Collection[str] = ()) -> SymbolTable:
    """The name spaces of a graph."""
    axes: set[str] = set()
    for declaration in all_declarations(graph):
        for dim in declaration.dims:
            axes.update(name.name for name in names_in(dim))
    return SymbolTable(
        variables=_first((d.name, d) for d in graph.declarations),
        blocks=_first((b.name, b) for b in graph.blocks),
        sizes=_first((d.name, d) for d in graph.sizes),
        extents=_first((e.name, e) for e in extents_of(graph)),
        axes=frozenset(axes),
        known=frozenset(known),
    )


def all_declarations(graph: s.Graph) -> Iterator[s.Declaration]:
    """The variables of the sections, then the temporaries of the blocks."""
    yield from graph.declarations
    for block in graph.blocks:
        for statement in s.walk(block.body):
            if isinstance(statement, s.Assign):
                yield statement.declaration


def extents_of(graph: s.Graph) -> Iterator[DeclaredExtent]:
    """Every extent that an `@max` introduces, doubles included."""
    for declaration in graph.declarations:
        for attribute in declaration.attributes:
            if attribute.name == "max":
                for arg in attribute.args:
                    if arg.key is not None:
                        yield DeclaredExtent(arg.key, arg.value, declaration, arg.span)


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


def _first(items: Iterable[tuple[str, T]]) -> dict[str, T]:
    made: dict[str, T] = {}
    for name, item in items:
        made.setdefault(name, item)
    return made
