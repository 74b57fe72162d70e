"""Sources that are nearly right: a graph with a few words, numbers, statements or bytes changed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from oic import dtypes
from oic.syntax.text import Piece, pieces

KNOWN = """
graph sizes dynamic constant volatile persistent block entry assign op transfer loop branch return
barrier dep yield await after before in cache.read cache.write cache.increment cache.decrement
cache.reset @init @ref @pattern @table @auto_dim @fixed @max @ring @entry ? .. >> [ ] ( ) { } , ;
: = + - * / -1 0 1 2 3 7 64 2147483648 9223372036854775807 18446744073709551616 0.5 -0.5 1e39 inf
nan true false f32 f16 bf16 f64 f8 i8 i32 i64 u8 u64 bool bitset i4 u1 t1 t2 "x" "w.{l}" x y h K N
D i matmul add mul relu fill cast slice concat reshape transpose split gather softmax sum_axis
max_axis broadcast_to iota cumsum attention rope linear rms_norm top_k where clamp shl argmax_axis
repeat pad axis=0 axis=-1 axes=[0] keepdims=true shape=[2] start=0 end=2 to=f16 acc=i64 value=1.0
bits=2 perm=[1,0]
"""
WORDS = tuple(KNOWN.split())


def mutated(corpus: Sequence[str], rng: random.Random) -> str:
    """One text of the corpus with one to six changes."""
    text = rng.choice(corpus)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 5))):
        change = rng.choice(GENTLE if rng.random() < 0.7 else CHANGES)
        text = change(text, corpus, rng)
    return text


def _pieces(text: str) -> list[Piece]:
    return pieces(text)[:-1] or pieces("block entry { }")[:-1]


def _replaced(text: str, piece: Piece, by: str) -> str:
    return text[: piece.start] + by + text[piece.end :]


def _delete(text: str, _: Sequence[str], rng: random.Random) -> str:
    return _replaced(text, rng.choice(_pieces(text)), "")


def _double(text: str, _: Sequence[str], rng: random.Random) -> str:
    piece = rng.choice(_pieces(text))
    return _replaced(text, piece, f"{piece.text} {piece.text}")


def _swap(text: str, _: Sequence[str], rng: random.Random) -> str:
    """Two words of one kind change places."""
    found = _pieces(text)
    first = rng.choice(found)
    second = rng.choice([p for p in found if p.kind == first.kind])
    a, b = sorted((first, second), key=lambda p: p.start)
    if a.end > b.start:
        return text
    return text[: a.start] + b.text + text[a.end : b.start] + a.text + text[b.end :]


def _rename(text: str, _: Sequence[str], rng: random.Random) -> str:
    """A name, number or mark becomes another one of the same text."""
    found = _pieces(text)
    piece = rng.choice(found)
    return _replaced(text, piece, rng.choice([p for p in found if p.kind == piece.kind]).text)


def _other_name(text: str, _: Sequence[str], rng: random.Random) -> str:
    """A name in a block becomes a declared one."""
    declared = [
        a.text for a, b in pairwise(pieces(text)) if a.kind == "word" and b.text in (":", "(")
    ]
    words = [p for p in pieces(text) if p.text in declared and p.start > text.find("block entry")]
    return _replaced(text, rng.choice(words), rng.choice(declared)) if words else text


def _known_word(text: str, _: Sequence[str], rng: random.Random) -> str:
    piece, word = rng.choice(_pieces(text)), rng.choice(WORDS)
    return _replaced(text, piece, rng.choice((word, f"{piece.text} {word}")))


def _number(text: str, _: Sequence[str], rng: random.Random) -> str:
    numbers = [p for p in _pieces(text) if p.kind == "number"]
    if not numbers:
        return text
    values = ("0", "1", "2", "3", "5", "8", "-1", "-3", "1 - 2", "N", "i", "0.5", str(1 << 40), str(1 << 62))
    return _replaced(text, rng.choice(numbers), rng.choice(values))


def _statement(text: str, corpus: Sequence[str], rng: random.Random) -> str:
    """A statement or declaration of some text is put behind another, or takes its place."""
    source = text if rng.random() < 0.9 else rng.choice(corpus)
    own, other = _statements(text), _statements(source)
    if not own or not other:
        return text
    (start, end), taken = rng.choice(own), rng.choice(other)
    piece = source[taken[0] : taken[1]]
    return text[: rng.choice((start, end, end))] + " " + piece + " " + text[end:]


def _statements(text: str) -> list[tuple[int, int]]:
    """Where what ends in `;` starts and ends."""
    found: list[tuple[int, int]] = []
    start = 0
    for piece in pieces(text):
        if piece.text in ("{", "}"):
            start = piece.end
        elif piece.text == ";":
            found.append((start, piece.end))
            start = piece.end
    return found


def _character(text: str, _: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice("{}[]()<>;:,.=@?*/-+\"'\\#\n\t \0é0a") + text[at + rng.randint(0, 2) :]


def _cut(text: str, _: Sequence[str], rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _wrapped(text: str, _: Sequence[str], rng: random.Random) -> str:
    """Statements go into a loop."""
    found = _statements(text)
    if not found:
        return text
    start, end = rng.choice(found)
    bounds = rng.choice(("0..3", "0..N", "1..1", "0..n", "2..4", "0..step"))
    return f"{text[:start]} loop w (i_ in {bounds}) {{ {text[start:end]} }} {text[end:]}"


def _dtype(text: str, _: Sequence[str], rng: random.Random) -> str:
    """Every use of one element type becomes another."""
    used = sorted({p.text for p in pieces(text) if p.text in dtypes.ALL})
    if not used:
        return text
    old, new = rng.choice(used), rng.choice(sorted(dtypes.ALL))
    return re.sub(rf"\b{old}\b", new, text)


def _dims(text: str, _: Sequence[str], rng: random.Random) -> str:
    """A dimension, size or bound becomes another of the same text, or `?`."""
    found = [b for a, b in pairwise(_pieces(text)) if a.text in ("[", ",", "=", "..") and b.text != "["]
    if not found:
        return text
    return _replaced(text, rng.choice(found), rng.choice([*(p.text for p in found), "?", "0", "1"]))


Change = Callable[[str, Sequence[str], random.Random], str]
GENTLE: tuple[Change, ...] = (
    *(_other_name, _other_name, _statement, _statement, _wrapped, _number, _dims, _dtype),
)
CHANGES: tuple[Change, ...] = (
    *(_delete, _double, _swap, _swap, _rename, _rename, _rename, _known_word, _known_word),
    *(_number, _number, _statement, _statement, _statement, _wrapped, _wrapped, _character, _cut),
)
