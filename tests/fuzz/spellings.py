"""The same graph in other words: blanks, ends of lines, comments and literals, which mean nothing.

    K[a % (b - 1)]   =>   K[ a // } "
    %(b /* /* ; */ */-0b1 )]
"""

from __future__ import annotations

import random
import re

from oic.diagnostics import Source
from oic.ir.module import Module
from oic.ir.text_print import print_module
from oic.syntax.text import Piece, pieces, without_comments

BLANKS = (" ", "\n", "\r\n\t", "\r", " /* ; /* } */ \" \\ */", " // >> { \"\n")
_PLACE = re.compile(r' loc\(\d[^)]*\)|, source="[^"]*"')


def respelled(text: str, rng: random.Random) -> str:
    """The text with other blanks between its words, and numbers written in other ways."""
    clean, errors = without_comments(Source("graph.oi", text))
    assert not errors
    made, at = [], 0
    for piece in pieces(clean):
        gap = clean[at : piece.start]
        more = rng.choice(BLANKS) if rng.random() < 0.3 else ""
        made += [gap, more, _number(piece, rng) if piece.kind == "number" else piece.text]
        at = piece.end
    return "".join(made)


def _number(piece: Piece, rng: random.Random) -> str:
    if re.fullmatch(r"\d+", piece.text):
        value = int(piece.text)
        return rng.choice((piece.text, hex(value), oct(value), bin(value), f"{value:_}"))
    if re.fullmatch(r"\d+\.\d+", piece.text):
        return rng.choice((piece.text, piece.text + "0", piece.text + "e+0", f"{float(piece.text):.17e}"))
    return piece.text


def meaning(module: Module) -> str:
    """A module as text without places in its source."""
    return _PLACE.sub("", print_module(module))
