"""Where text came from, and what is wrong with it: Source, Span, Diagnostic, OicError.

A diagnostic has a stable slug, a message that states a fact, the smallest span that is wrong,
the declarations it contradicts, and a hint where one is known.  `OicError` carries a list of
them and prints as the rendered text.  `StepError` is a refusal at run time.
"""

import copyreg
import difflib
import textwrap
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

LEAST_ROOM = 24  # columns of a source line, however narrow the terminal
MOST_SHOWN = 200  # characters of a source line in a diagnostic
MOST_NOTES = 8  # places of a circle that are named beside the first
MOST_SAID = 4000  # characters of a message
MOST_RENDERED = 100  # diagnostics as text
MOST_COMPARED = 10_000  # names that misspelt ones are compared with, which takes a second


@dataclass(frozen=True, eq=False)
class Source:
    """One text and the name it is shown under."""

    name: str
    text: str = field(repr=False)  # of which every span would print the whole

    @cached_property
    def line_starts(self) -> list[int]:
        """Offsets of the first character of every line."""
        return [0, *(i + 1 for i, ch in enumerate(self.text) if ch == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based (line, column) of a character offset."""
        starts = self.line_starts
        number = max(1, bisect_right(starts, offset))
        return number, offset - starts[number - 1] + 1

    def line(self, number: int) -> str:
        """The text of a 1-based line, without its end."""
        starts = self.line_starts
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")


@dataclass(frozen=True)
class Span:
    """A half-open range of characters of one source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """The 1-based line where the span starts."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """The 1-based column where the span starts."""
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        """The characters the span covers."""
        return self.source.text[self.start : self.end]

    def to(self, other: "Span") -> "Span":
        """The span from the start of this one to the end of the other."""
        return Span(self.source, self.start, other.end)

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Note:
    """A place that belongs to a diagnostic, and what is to be said of it."""

    span: Span
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One refusal or warning.

    slug      stable kebab-case name of the kind of mistake
    message   the fact, lower case, no full stop
    span      the smallest text that is wrong, or None for what has no place in a text
    label     what is written beside the carets
    notes     other places, such as the declaration contradicted
    hint      what to do, where known
    """

    slug: str
    message: str
    span: Span | None = None
    label: str = ""
    notes: tuple[Note, ...] = ()
    hint: str | None = None
    severity: str = "error"

    def render(self, color: bool = False, width: int | None = None) -> str:
        """The diagnostic as people read it (STYLE, section 4).

        width   columns of the terminal, in which source lines are clipped; None: no end
        """
        tint = "\x1b[33;1m" if self.severity == "warning" else "\x1b[31;1m"
        red, blue, bold, off = (tint, "\x1b[34;1m", "\x1b[1m", "\x1b[0m") if color else ("",) * 4
        kind = f"{self.severity}[{self.slug}]"
        head = f"{kind}: {visible(shortened(self.message))}"
        rest = (head if width is None else filled(head, width, 4)).removeprefix(kind)
        lines = [f"{red}{kind}{off}{bold}{rest}{off}"]
        places = [*([Note(self.span, self.label)] if self.span else []), *self.notes]
        digits = max((len(str(note.span.line)) for note in places), default=1)
        gutter = " " * digits
        room = None if width is None else max(LEAST_ROOM, width - digits - 3)
        for i, note in enumerate(places):
            primary = i == 0 and self.span is not None
            arrow, mark = ("-->", "^") if primary else (":::", "-")
            lines.append(f"{gutter} {arrow} {visible(str(note.span))}")
            lines += _excerpt(note, mark, digits, red if primary else blue, off, room)
        if self.hint:
            hint = f"{gutter} = hint: {visible(shortened(self.hint))}"
            lines.append(hint if width is None else filled(hint, width, len(gutter) + 9))
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """A plain dictionary for tools (`--json`)."""

        def place(span: Span | None) -> dict[str, object] | None:
            if span is None:
                return None
            length = span.end - span.start
            return {"file": span.source.name, "line": span.line, "column": span.column, "length": length}

        notes = [{"span": place(note.span), "text": note.text} for note in self.notes]
        return {
            "severity": self.severity, "slug": self.slug, "message": self.message, "span": place(self.span),
            "label": self.label, "notes": notes, "hint": self.hint,
        }  # fmt: skip


def filled(line: str, width: int, indent: int) -> str:
    """A line broken between words, the rest indented."""
    return textwrap.fill(
        line, max(width, LEAST_ROOM), subsequent_indent=" " * indent, break_long_words=False,
        break_on_hyphens=False, replace_whitespace=False,
    )  # fmt: skip


def _clipped(text: str, before: int, needed: int, room: int) -> tuple[str, int]:
    """The part of a line that shows what is marked, in so many columns, and where the mark is in it.

    before, needed   columns to the left of the mark; columns of the mark and what is beside it
    """
    if max(len(text), before + needed) <= room:
        return text, before
    start = 0 if before + needed <= room - 1 else max(0, before - max(1, (room - needed) // 2))
    shown = text[start : start + room]
    if start:
        shown = "…" + shown[1:]
    if start + room < len(text):
        shown = shown[:-1] + "…"
    return shown, before - start


def _excerpt(note: Note, mark: str, width: int, tint: str, off: str, room: int | None) -> list[str]:
    """The source line of a note, underlined; a span of several lines is marked to its line's end."""
    span = note.span
    line = span.source.line(span.line)
    start, count = span.column - 1, max(0, min(span.end - span.start, len(line) - span.column + 1))
    raw, before = _clipped(line, start, min(count, MOST_SHOWN), MOST_SHOWN)
    count = min(count, len(raw) - before)
    text = visible(raw.expandtabs(4))
    indent = len(visible(raw[:before].expandtabs(4)))
    carets = mark * max(1, len(visible(raw[: before + count].expandtabs(4))) - indent)
    label = f" {visible(note.text)}" if note.text else ""
    if room is not None:
        carets = carets[: max(1, room - len(label) - 2)]
        text, indent = _clipped(text, indent, len(carets) + len(label), room)
    bar = " " * width + " |"
    return [bar, f"{span.line:>{width}} | {text}", f"{bar} {' ' * indent}{tint}{carets}{label}{off}"]


def visible(text: str) -> str:
    """The text with what a terminal would obey instead of show written as `\\u` and four digits.

    Those are control characters, marks that turn the direction of text, invisible characters and
    halves of surrogate pairs; line ends and tabs stay.  It is the form of JSON strings, so JSON text
    stays what it is.
    """
    lines = (line if line.isprintable() else "".join(map(_visible, line)) for line in text.split("\n"))
    return "\n".join(lines)


def _visible(ch: str) -> str:
    units = ch.encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return ch if ch.isprintable() or ch == "\t" else "".join(f"\\u{unit}" for unit in units)


def shortened(text: str, most: int = MOST_SAID) -> str:
    """The text, with its middle left out where it is long."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def cut(text: str, most: int, kept: int) -> str:
    """The text, with only so much of its start where it is longer than `most`."""
    return text if len(text) <= most else f"{text[:kept]}…"


def rendered(diagnostics: Sequence[Diagnostic], color: bool = False, width: int | None = None) -> str:
    """Diagnostics as people read them, and how many more there are."""
    shown = [d.render(color, width) for d in diagnostics[:MOST_RENDERED]]
    if (more := len(diagnostics) - len(shown)) > 0:
        shown.append(f"and {more:,} more")
    return "\n\n".join(shown)


class Refusal(Exception):
    """Whatever was refused: an `OicError` before a step runs, a `StepError` by a step."""

    def __reduce__(self) -> tuple[Any, ...]:
        """What it is, rather than how it was made: so a worker process hands it on."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class OicError(Refusal):
    """A refusal of what the user gave: source, model, call or environment."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        one = isinstance(diagnostics, Diagnostic)
        self.diagnostics: list[Diagnostic] = [diagnostics] if one else list(diagnostics)  # type: ignore[list-item,arg-type]
        assert self.diagnostics, "an OicError without a diagnostic"
        super().__init__(rendered(self.diagnostics))


@dataclass(eq=False, repr=False)
class StepError(Refusal):
    """A refusal at run time: a status with what it was about.

    status    name of the status, such as "OIC_ERR_INDEX"
    variable  the variable concerned, or None
    index     the value that was refused, or None
    bound     what it had to respect, or None
    span      the source text whose check failed, or None
    hint      what to do, where known
    """

    status: str
    message: str
    _: KW_ONLY
    variable: str | None = None
    index: int | None = None
    bound: int | None = None
    span: Span | None = None
    hint: str | None = None

    def __post_init__(self) -> None:
        super().__init__(self.diagnostic().render())

    def diagnostic(self) -> Diagnostic:
        """The refusal in the form of a diagnostic; its slug is the status."""
        return Diagnostic(self.status, self.message, self.span, hint=self.hint)


def fail(slug: str, message: str, span: Span | None = None, label: str = "", *, hint: str | None = None) -> OicError:
    """An OicError of one diagnostic, to be raised."""
    return OicError(Diagnostic(slug, message, span, label, hint=hint))


def listed(words: Sequence[str], last: str) -> str:
    """`a`, `a or b`, `a, b or c`: with this word before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def count_of(number: int, word: str) -> str:
    """`1 copy`, `2 copies`, `2 indices`: so many of what the word names."""
    many = word[:-1] + "ies" if word.endswith("y") else word[:-2] + "ices" if word.endswith("ex") else word + "s"
    return f"{number:,} {word if number == 1 else many}"


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The known name most like a misspelt one, or None if none is so much like it (0 to 1); `x` is like `X`.

    Among more than MOST_COMPARED names only that is found.
    """
    ordered = sorted(set(known))
    found = [each for each in ordered if each.lower() == name.lower()]
    if not found and len(ordered) <= MOST_COMPARED:
        found = difflib.get_close_matches(name, ordered, n=1, cutoff=least)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """The hint `did you mean 'x'?`, or None."""
    best = nearest(name, known, least)
    return f"did you mean '{best}'?" if best else None
