"""Syntax errors in human words, and a repaired text with which parsing can go on.

`explain` says what is wrong where the parser stopped; `Repair` is the text without the mistake:
a missing `;` or `}` is put in, anything else is blanked out from the end of the statement before
to the end of this one.
"""

from dataclasses import dataclass

from oic.diagnostics import Diagnostic, Note, Source, Span, cut, did_you_mean, listed
from oic.syntax import habits
from oic.syntax.tables import parser
from oic.syntax.text import Piece, blank, pieces

SECTIONS = ("sizes", "dynamic", "constant", "volatile", "persistent", "block")
_OPENING = {")": "(", "]": "[", "}": "{"}

# What acceptable terminals are called together, where the first of them is acceptable; a terminal is named once.
_GROUPS = {
    "a statement": "OP ASSIGN TRANSFER LOOP BRANCH RETURN BARRIER DEP YIELD AWAIT"
    " CACHE_READ CACHE_WRITE CACHE_INCREMENT CACHE_DECREMENT CACHE_RESET",
    "a section or a block": "KIND SIZES BLOCK GRAPH",
    "a value": "STRING NAME INT FLOAT FLOAT_WORD BOOL LPAR MINUS LSQB",
    "an operand": "BOOL NAME INT FLOAT FLOAT_WORD MINUS",
    "an integer expression": "INT NAME LPAR MINUS",
    "an attribute": "AT PATTERN",
    "a name": "NAME",
    "an operator or a cache statement": "MATCHED",
    "a number": "FLOAT",
}
STATEMENTS = tuple(word.lower().replace("_", ".") for word in _GROUPS["a statement"].split())
CACHE_STATEMENTS = tuple(word for word in STATEMENTS if "." in word)
_UNTOLD = {"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}  # what may follow any number


@dataclass(frozen=True)
class ParseFailure:
    """Where the parser stopped: the text in pieces, the one it refused, and what it wanted."""

    source: Source
    text: str
    pieces: list[Piece]
    at: int
    wanted: frozenset[str]

    @property
    def found(self) -> Piece:
        return self.pieces[self.at]

    def span(self, piece: Piece) -> Span:
        return Span(self.source, piece.start, piece.end)

    def starts_line(self, at: int) -> bool:
        """This piece is the first on its line."""
        return at == 0 or "\n" in self.source.text[self.pieces[at - 1].end : self.pieces[at].start]

    def statement(self) -> str:
        """The statement or declaration around the stop, without its `;` and what is in its braces."""
        first, last = self.start(self.at), self.at
        while self.pieces[last].kind != "end" and self.pieces[last].text not in (";", "{", "}"):
            last += 1
        return self.text[self.pieces[first].start : self.pieces[last].start]

    def start(self, at: int) -> int:
        """The first piece of the statement or declaration that has this one."""
        while at and self.pieces[at - 1].text not in (";", "{", "}"):
            at -= 1
        return at

    def open_brackets(self) -> list[int]:
        """Positions among the pieces of the brackets not closed before the stop."""
        opened: list[int] = []
        for i, piece in enumerate(self.pieces[: self.at]):
            if piece.text in _OPENING.values():
                opened.append(i)
            elif piece.text in _OPENING and opened:
                opened.pop()
        return opened


@dataclass(frozen=True)
class Repair:
    """The text to go on with, and what was removed from it.

    removed    the words
    undeclares there may have been a declaration among them
    """

    text: str
    removed: frozenset[str] = frozenset()
    undeclares: bool = False


def explain(stop: ParseFailure) -> tuple[Diagnostic, Repair | None]:
    """What is wrong, and the repaired text, or None where going on makes no sense."""
    for case in (_unclosed_brace, _missing_semicolon, _missing_brace, _unknown_keyword):
        if (answer := case(stop)) is not None:
            return answer
    return _unexpected(stop), _without_statement(stop, stop.at)


def without_statement(source: Source, text: str, offset: int) -> Repair | None:
    """The text without the statement that holds the character at `offset`."""
    split = pieces(text)
    at = next(i for i, p in enumerate(split) if p.end > offset or p.kind == "end")
    return _without_statement(ParseFailure(source, text, split, at, frozenset()), at)


def _unclosed_brace(stop: ParseFailure) -> tuple[Diagnostic, Repair | None] | None:
    """The end of the file, or a section where a statement belongs."""
    braces = [i for i in stop.open_brackets() if stop.pieces[i].text == "{"]
    at = stop.at if "OP" in stop.wanted else _section_before(stop)
    found = stop.pieces[at]
    early = found.text in SECTIONS
    if not braces or not (found.kind == "end" or early):
        return None
    opening = stop.pieces[braces[-1]]
    what = f"'{{' is not closed before this '{found.text}'" if early else "'{' is not closed before the end of the file"
    notes = (Note(stop.span(found), "expected '}' before this"),) if early else ()
    error = Diagnostic("unclosed-brace", what, stop.span(opening), "opened here", notes)
    count = len(braces) - (stop.pieces[0].text == "graph")
    return error, _inserted(stop, at, "}" * count) if early else None


def _section_before(stop: ParseFailure) -> int:
    """The keyword that starts a section and was taken for a declared name, else the stop."""
    at = stop.at - 1
    if at < 0 or stop.pieces[at].text not in SECTIONS or "LBRACE" in stop.wanted:
        return stop.at
    block = stop.pieces[at].text == "block" and stop.found.kind == "word"
    return at if block or stop.found.text == "{" else stop.at


def _missing_semicolon(stop: ParseFailure) -> tuple[Diagnostic, Repair | None] | None:
    """`;` would do, and what was found begins something else.

    A keyword at the start of a line may have been taken for a name: `branch a` before `op add(…`.
    """
    if "SEMICOLON" not in stop.wanted or stop.at == 0:
        return None
    at = stop.at if _begins(stop, stop.at) else _keyword_before(stop)
    if at is None:
        return None
    before = stop.pieces[at - 1]
    what, place = f"expected ';' after '{cut(before.text, 40, 36)}'", Span(stop.source, before.end, before.end)
    error = Diagnostic("missing-semicolon", what, place, "';' is missing here")
    return error, _inserted(stop, at, ";") or _without_statement(stop, at)


def _keyword_before(stop: ParseFailure) -> int | None:
    """A keyword one or two pieces back that starts its line and was taken for a name, or None."""
    for at in range(stop.at - 1, max(0, stop.at - 3), -1):
        word = stop.pieces[at].text
        if word in STATEMENTS and word not in ("return", "barrier") and stop.starts_line(at):
            return at if stop.pieces[at - 1].text not in (";", "{", "}") else None
    return None


def _missing_brace(stop: ParseFailure) -> tuple[Diagnostic, Repair | None] | None:
    """`{` would do, and what was found belongs behind it."""
    found = stop.found
    if "LBRACE" not in stop.wanted or found.kind != "word":
        return None
    only = len(stop.wanted) == 1 and stop.pieces[stop.at + 1].text != "{"
    if not (only or _begins(stop, stop.at)):
        return None
    return _unexpected(stop), _inserted(stop, stop.at, "{")


def _begins(stop: ParseFailure, at: int) -> bool:
    """This piece ends a construct or begins a new one, as a statement does."""
    piece = stop.pieces[at]
    if piece.kind == "end" or piece.text in ("}", *STATEMENTS):
        return True
    return piece.kind == "word" and (stop.pieces[at + 1].text == ":" or stop.starts_line(at))


def _inserted(stop: ParseFailure, at: int, what: str) -> Repair | None:
    """The text with something written over the blanks before a piece, if there is room."""
    end = stop.pieces[at].start
    start = end - len(what)
    if at == 0 or start < stop.pieces[at - 1].end:
        return None
    return Repair(stop.text[:start] + what + stop.text[end:])


def _unknown_keyword(stop: ParseFailure) -> tuple[Diagnostic, Repair | None] | None:
    """A word that starts no statement, or no section."""
    found = stop.found
    if found.kind != "word" or not stop.wanted & {"OP", "KIND"}:
        return None
    if "OP" in stop.wanted:
        slug, what = "unknown-statement", "statement"
        meant = habits.CACHE.get(found.text.removeprefix("cache."))
        hint = f"did you mean 'cache.{meant}'?" if meant and found.text.startswith("cache.") else None
        hint = hint or did_you_mean(found.text, STATEMENTS, 0.75) or habits.written(habits.STATEMENTS, stop.statement())
        hint = hint or did_you_mean(found.text, STATEMENTS)
    else:
        slug, what = "unknown-section", "section"
        hint = did_you_mean(found.text, (*SECTIONS, "graph"))
        if found.text in habits.SECTIONS:
            hint = f"did you mean '{habits.SECTIONS[found.text]}'?"
        elif found.text in STATEMENTS:
            hint = "statements belong in a block"
    error = Diagnostic(slug, f"unknown {what} '{found.text}'", stop.span(found), f"no {what} starts so", (), hint)
    return error, _without_statement(stop, stop.at)


def _unexpected(stop: ParseFailure) -> Diagnostic:
    """Everything else: expected this, found that."""
    found = stop.found
    what = "the end of the file" if found.kind == "end" else f"'{cut(found.text, 40, 36)}'"
    wanted = _phrases(stop.wanted)
    message = f"expected {listed(wanted, 'or')}, found {what}" if wanted else f"unexpected {what}"
    notes: tuple[Note, ...] = ()
    brackets = stop.open_brackets()
    if brackets and stop.pieces[brackets[-1]].text != "{":
        opening = stop.pieces[brackets[-1]]
        if stop.span(opening).line != stop.span(found).line:
            notes = (Note(stop.span(opening), f"'{opening.text}' was opened here"),)
    return Diagnostic("syntax", message, stop.span(found), "", notes, _hint(stop))


def _hint(stop: ParseFailure) -> str | None:
    """What to write instead, for mistakes that are known."""
    found, before = stop.found, stop.pieces[stop.at - 1] if stop.at else stop.found
    if found.text == "}" and not stop.open_brackets():
        return "nothing is open that this '}' could close"
    if found.text == "#":
        return "comments are written // … or /* … */"
    if found.text == "[" and before.text in ("cache.increment", "cache.decrement"):
        return f"the amount has no brackets: '{before.text} 2 s;'"
    if found.text == "[" and (at := stop.open_brackets()) and stop.pieces[at[-1]].text == "[" and before.kind == "word":
        return f"an index is an integer: 'cache.read {before.text}[…] >> i;' gives one of a table, and then write 'i'"
    if found.text.startswith(".") and found.kind == "number":
        return f"write '0{found.text}'"
    if found.text in ("'", "‘", "’", "“", "”"):
        return "strings are written in double quotes"
    if (hint := _slice(stop) or _expression(stop) or habits.written(habits.FORMS, stop.statement())) is not None:
        return hint
    if found.text == "," and "SEMICOLON" in stop.wanted:
        return "every declaration and statement ends in ';'"
    if found.text == ">":
        return "results are written after '>>'"
    if found.kind == "number" and "." in found.text and "INT" in stop.wanted:
        return "only integers are allowed here"
    return None


def _slice(stop: ParseFailure) -> str | None:
    """`K[0:4]`"""
    brackets = stop.open_brackets()
    if stop.found.text != ":" or not brackets or stop.pieces[brackets[-1]].text != "[":
        return None
    ends = [p.text if p.kind in ("word", "number") else "" for p in stop.pieces[stop.at - 1 : stop.at + 2]]
    return f"a slice is written with two points: '{ends[0]}..{ends[2]}'"


def _expression(stop: ParseFailure) -> str | None:
    """`op relu(neg(x))` and `op add(x, x + x)`: an operand that is computed."""
    brackets = stop.open_brackets()
    if not brackets or not stop.at or stop.pieces[brackets[-1]].text != "(":
        return None
    first = brackets[-1] - 2
    if first < 0 or stop.pieces[first].text != "op":
        return None
    before, found, after = stop.pieces[stop.at - 1 : stop.at + 2]
    if found.text in habits.INFIX and after.kind in ("word", "number"):
        made = f"{habits.INFIX[found.text]}({before.text}, {after.text})"
    elif found.text == "(" and before.kind == "word":
        end = _closing(stop, stop.at)
        made = " ".join(stop.text[before.start : end].split()) if end is not None else f"{before.text}(…)"
    else:
        return None
    return f"operands are variables: first 'op {made} >> t;', then give 't'"


def _closing(stop: ParseFailure, at: int) -> int | None:
    """Where the text of the bracket that is opened at a piece ends, on its line."""
    depth = 0
    for piece in stop.pieces[at:]:
        depth += {"(": 1, ")": -1}.get(piece.text, 0)
        if depth == 0:
            return None if "\n" in stop.text[stop.pieces[at].start : piece.end] else piece.end
    return None


def _phrases(wanted: frozenset[str]) -> list[str]:
    """Names for what the parser would have taken, the most telling first."""
    left, phrases = set(wanted), []
    for phrase, group in _GROUPS.items():
        first, *others = group.split()
        if first in left:
            phrases.append(phrase)
            left -= {first, *others}
    marks = [t.pattern.value.removesuffix(r"\b") for t in parser().terminals if t.name in left - _UNTOLD]
    return phrases + [f"'{mark}'" for mark in marks]


def _without_statement(stop: ParseFailure, at: int) -> Repair | None:
    """The text without the statement, declaration or section around one piece.

    From behind the last `;`, `{` or `}` to the next `;`, to the end of a `{ … }` that comes first,
    or to before a `}` that closes what is around.
    """
    first, last, depth = stop.start(at), at, 0
    while stop.pieces[last].kind != "end":
        text = stop.pieces[last].text
        if text == "}" and depth == 0:
            break
        depth += {"{": 1, "}": -1}.get(text, 0)
        last += 1
        if depth == 0 and text in (";", "}"):
            break
    gone = stop.pieces[first:last]
    if not gone:
        if stop.found.kind == "end" or stop.open_brackets():
            return None
        gone = [stop.found]
    words = frozenset(p.text for p in gone if p.kind == "word")
    undeclares = gone[0].text not in STATEMENTS or "assign" in words
    return Repair(blank(stop.text, gone[0].start, gone[-1].end), words, undeclares)
