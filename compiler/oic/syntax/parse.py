"""From text to the syntax tree, with every syntax error that can be found in one run."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lark.exceptions import UnexpectedInput, UnexpectedToken

from oic.diagnostics import Diagnostic, Source, Span
from oic.syntax import recover
from oic.syntax import tree as syntax
from oic.syntax.tables import parser
from oic.syntax.text import pieces, without_comments, words
from oic.syntax.transform import TreeBuilder

MOST_ERRORS = 20
_LINE_END = re.compile(r"\r(?!\n)")
MOST_BYTES = 4 << 20  # of a source file
MOST_WORDS = 400_000  # words, numbers, strings and marks of a source
MOST_READ = 1_000_000  # words read again after errors


@dataclass(frozen=True)
class Parsed:
    """What could be read of a text.

    graph    the graph without what was wrong in it, or None where nothing could be made of it
    errors   all syntax errors, in source order
    removed  words of the statements that were left out: names about which nothing is known
    whole    no declaration can have been left out
    """

    graph: syntax.Graph | None
    errors: list[Diagnostic]
    removed: frozenset[str] = frozenset()
    whole: bool = True


def parse_all(text: str, name: str = "graph.oi") -> Parsed:
    """The syntax tree of what is right in a text, and all that is wrong; never raises."""
    source = Source(name, _LINE_END.sub("\n", text))
    if (error := _too_long(source)) is not None:
        return Parsed(None, [error])
    clean, errors = without_comments(source)
    repairs: list[recover.Repair] = []
    graph = None
    for error in errors:
        assert error.span is not None
        repair = recover.without_statement(source, clean, error.span.start)
        if error.slug == "unclosed-comment" or repair is None:
            return Parsed(None, errors)
        clean = repair.text
        repairs.append(repair)
    for _ in range(_rounds(clean)):
        outcome = _read(source, clean)
        if not isinstance(outcome, recover.ParseFailure):
            graph, refused = outcome
            errors += refused
            break
        error, repair = recover.explain(outcome)
        errors.append(error)
        if repair is None or repair.text == clean:
            break
        clean = repair.text
        repairs.append(repair)
    removed = frozenset[str]().union(*(repair.removed for repair in repairs))
    whole = not any(repair.undeclares for repair in repairs)
    return Parsed(graph, sorted(errors, key=lambda error: error.span.start if error.span else 0), removed, whole)


def _rounds(text: str) -> int:
    """How often a text is read, each time without the mistake found before."""
    if len(text) * MOST_ERRORS <= MOST_READ:
        return MOST_ERRORS
    return max(1, min(MOST_ERRORS, MOST_READ // max(1, sum(1 for _ in words(text)))))


def _too_long(source: Source) -> Diagnostic | None:
    """The refusal of a text that is larger than any program written or generated in earnest."""
    if len(source.text) > MOST_BYTES:
        message = f"the source has more than {MOST_BYTES} characters"
        return Diagnostic("source-size", message, Span(source, 0, 1))
    if len(source.text) > MOST_WORDS:
        extra = next(islice(words(source.text), MOST_WORDS, None), None)
        if extra is not None:
            message = f"the source has more than {MOST_WORDS} words and marks"
            return Diagnostic("source-size", message, Span(source, extra, extra + 1))
    return None


def _read(source: Source, text: str) -> tuple[syntax.Graph, list[Diagnostic]] | recover.ParseFailure:
    """The graph and what the grammar lets through but is wrong, or where the parser stopped."""
    try:
        tree = parser().parse(text)
    except UnexpectedInput as error:
        return _stop(source, text, error)
    builder = TreeBuilder(source)
    return builder.transform(tree), builder.errors


def _stop(source: Source, text: str, error: UnexpectedInput) -> recover.ParseFailure:
    """Where the parser stopped in a text that is wrong, and what it would have taken there."""
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    offset = len(text) if at_end else error.pos_in_stream or 0
    split = pieces(text)
    at = max(0, bisect_right(split, offset, key=lambda piece: piece.start) - 1)
    stopped: Any = error.interactive_parser  # its methods have no types
    return recover.ParseFailure(source, text, split, at, frozenset(stopped.accepts()))
