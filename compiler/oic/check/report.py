"""How the checks and lowering refuse: a list of diagnostics, and an exception for what has no value."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from oic.check.symbols import Variable
from oic.diagnostics import Diagnostic, Note, Span


@dataclass
class DiagnosticCollector:
    """Diagnostics as they are found; the same one at the same place is kept once."""

    found: dict[object, Diagnostic] = field(default_factory=dict)

    def error(
        self, slug: str, message: str, span: Span, label: str = "", *,
        about: Variable | None = None, notes: Iterable[Note] = (), hint: str | None = None,
    ) -> None:  # fmt: skip
        """about   the variable at whose declaration a note points"""
        declared = [about.note()] if about is not None else []
        self.add(Diagnostic(slug, message, span, label, (*declared, *notes), hint))

    def warn(self, slug: str, message: str, span: Span, note: Note | None = None) -> None:
        self.add(Diagnostic(slug, message, span, "", (note,) if note else (), None, "warning"))

    def add(self, diagnostic: Diagnostic) -> None:
        places = [(note.span.start, note.text) for note in diagnostic.notes]
        start = diagnostic.span.start if diagnostic.span else None
        self.found.setdefault((diagnostic.slug, diagnostic.message, start, *places), diagnostic)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """End what is refused in here, and keep its diagnostic, unless it was reported."""
        try:
            yield
        except Refused as refusal:
            if refusal.diagnostic is not None:
                self.add(refusal.diagnostic)

    def each_once(
        self, named: Iterable[tuple[str, Span]], slug: str = "duplicate-name", what: str = "'{}' is declared twice",
        note: str = "first declared here",
    ) -> None:  # fmt: skip
        """An error for every place of a name but its first."""
        first: dict[str, Span] = {}
        for name, span in named:
            if (before := first.setdefault(name, span)) != span:
                self.error(slug, what.format(name), span, notes=[Note(before, note)])

    def in_order(self) -> list[Diagnostic]:
        """Everything found, by its place in the source."""
        return sorted(self.found.values(), key=lambda d: d.span.start if d.span else 0)


class Refused(Exception):
    """An expression that has no value; carries the diagnostic, or None if it was reported."""

    def __init__(self, diagnostic: Diagnostic | None) -> None:
        super().__init__(diagnostic.message if diagnostic else "")
        self.diagnostic = diagnostic


def refused(
    slug: str, message: str, span: Span | None, about: Variable | None = None, *, hint: str | None = None
) -> Refused:
    """A refusal, to be raised.

    about   the variable at whose declaration a note points
    """
    return Refused(Diagnostic(slug, message, span, "", (about.note(),) if about else (), hint))
