"""The source text before the grammar sees it: comments blanked out, and a rough split in pieces.

Positions never change: what is removed is replaced by blanks of the same length.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from oic.diagnostics import Diagnostic, Source, Span

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}  # of strings, behind a backslash
_MARKS = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*|/\*|"', re.DOTALL)
_COMMENT_MARKS = re.compile(r"/\*|\*/")
_NOT_SPACE = re.compile(r"\S")
_PIECES = re.compile(
    r"""(?P<word>[A-Za-z_][A-Za-z0-9_]*(?:(?<=cache)\.[A-Za-z_][A-Za-z0-9_]*)?)
      | (?P<number>\.?[0-9][A-Za-z0-9_]*(?:\.(?!\.)[0-9A-Za-z_]*)?(?:(?<=[eE])[+-][0-9_]+)?)
      | (?P<string>"(?:[^"\\\n]++|\\.)*+")
      | (?P<mark>>>|\.\.|\S)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Piece:
    """One word, number, string or mark of the text; kind 'end' follows the last."""

    kind: str
    text: str
    start: int
    end: int


def words(text: str) -> Iterator[int]:
    """Where each piece of the text begins."""
    return (match.start() for match in _PIECES.finditer(text))


def pieces(text: str) -> list[Piece]:
    """The text without its blanks; every character belongs to some piece, right or wrong."""
    found = [Piece(m.lastgroup or "", m[0], m.start(), m.end()) for m in _PIECES.finditer(text)]
    return [*found, Piece("end", "", len(text), len(text))]


def blank(text: str, start: int, end: int) -> str:
    """The text with one range made blank, line ends kept."""
    return text[:start] + _NOT_SPACE.sub(" ", text[start:end]) + text[end:]


def without_comments(source: Source) -> tuple[str, list[Diagnostic]]:
    """The text with comments blanked, and what is wrong with comments and strings."""
    text, errors = source.text, []
    if text.startswith("\ufeff"):
        text = " " + text[1:]
    at = 0
    while (mark := _MARKS.search(text, at)) is not None:
        at = mark.end()
        match mark[0][:2]:
            case "//":
                text = blank(text, mark.start(), mark.end())
            case "/*":
                end = _comment_end(text, mark.start())
                if end is None:
                    errors.append(_unclosed("unclosed-comment", source, mark.start(), mark.end()))
                at = len(text) if end is None else end
                text = blank(text, mark.start(), at)
            case '"':
                line_end = text.find("\n", at)
                at = len(text) if line_end < 0 else line_end
                end = len(text[:at].rstrip())
                errors.append(_unclosed("unclosed-string", source, mark.start(), end))
    return text, errors


def _comment_end(text: str, start: int) -> int | None:
    """Where a nesting comment ends, or None."""
    depth = 0
    for mark in _COMMENT_MARKS.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def _unclosed(slug: str, source: Source, start: int, end: int) -> Diagnostic:
    what, limit, closing = ("comment", "file", "*/") if slug == "unclosed-comment" else ("string", "line", '"')
    message = f"this {what} is not closed before the end of the {limit}"
    return Diagnostic(slug, message, Span(source, start, end), f"expected '{closing}'")
