"""Tokens of the text form, with the diagnostics that point at them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from oic.diagnostics import OicError, Source, Span, did_you_mean, fail

T = TypeVar("T")

TOKEN = re.compile(
    r"""
      (?P<space>  \s+ | \#[^\n]* )
    | (?P<string> "(?:[^"\\\n]|\\.)*" )
    | (?P<back>   `[^`\n]*` )
    | (?P<value>  %[A-Za-z0-9_.]+ )
    | (?P<float>  \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
    | (?P<int>    \d+ )
    | (?P<word>   [A-Za-z_][A-Za-z0-9_.]* )
    | (?P<mark>   // | <= | [-+*@=:,;<>!~(){}\[\]] )
    | (?P<wrong>  . )
    """,
    re.VERBOSE,
)
DIGITS = 40  # no number of the text form is longer; Python refuses very long ones


@dataclass(frozen=True)
class Lexeme:
    """One token: its kind (a group of TOKEN, or 'end'), its text and its offset."""

    kind: str
    text: str
    start: int
    end: int


def tokens(source: Source) -> list[Lexeme]:
    """All tokens of a text, with an 'end' at the end; an OicError for any other character."""
    found: list[Lexeme] = []
    for match in TOKEN.finditer(source.text):
        kind, text, span = match.lastgroup or "", match.group(), Span(source, *match.span())
        if kind == "wrong":
            raise fail("ir-syntax", f"{text!r} has no meaning here", span)
        if kind == "int" and len(text) > DIGITS:
            raise fail("ir-syntax", "a number is too long", span)
        if kind != "space":
            found.append(Lexeme(kind, text, *match.span()))
    end = len(source.text)
    return [*found, Lexeme("end", "", end, end)]


class Cursor:
    """A place in a list of tokens, and what may be taken there."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.at = 0

    @property
    def now(self) -> Lexeme:
        return self.tokens[self.at]

    @property
    def next(self) -> Lexeme:
        """The token after the present one."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def span(self, first: Lexeme, last: Lexeme | None = None) -> Span:
        return Span(self.source, first.start, (last or first).end)

    def wrong(self, message: str, token: Lexeme | None = None, slug: str = "ir-syntax") -> OicError:
        """The error for a token, the present one if none is given."""
        return fail(slug, message, self.span(token or self.now))

    def unknown(self, message: str, token: Lexeme, known: Iterable[str], name: str | None = None) -> OicError:
        """The error for a name that is none of those known."""
        return fail("ir-name", message, self.span(token), hint=did_you_mean(name or token.text, known))

    def sees(self, text: str) -> bool:
        """The present token is this mark or word."""
        return self.now.kind in ("mark", "word") and self.now.text == text

    def take(self) -> Lexeme:
        token = self.now
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Step over a mark or word if it is there."""
        if self.sees(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> Lexeme:
        """Step over a mark or word that must be there."""
        return self._required(self.sees(text), f"'{text}'")

    def kind(self, kind: str, what: str) -> Lexeme:
        """Step over a token of a kind that must be there."""
        return self._required(self.now.kind == kind, what)

    def _required(self, there: bool, what: str) -> Lexeme:
        if not there:
            seen = repr(self.now.text) if self.now.kind != "end" else "the end of the text"
            raise self.wrong(f"expected {what}, found {seen}")
        return self.take()

    def list_until(self, end: str, item: Callable[[], T]) -> list[T]:
        """Items separated by commas, up to a mark that is stepped over."""
        found: list[T] = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(item())
        return found

    def integer(self) -> int:
        """A number without a sign."""
        return int(self.kind("int", "a number").text)

    def string(self) -> str:
        token = self.kind("string", "a string")
        try:
            text: Any = json.loads(token.text)
        except ValueError:
            raise self.wrong("a string with an unknown escape", token) from None
        return str(text)
