"""Texts as token ids: a folder's `tokenizer.json` (package `tokenizers`, an extra), or a `tok*.bin` of llama2.c."""

from __future__ import annotations

import re
import struct
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from oic.diagnostics import OicError, fail

JSON = "tokenizer.json"


class Tokenizer(Protocol):
    """Texts to ids and back."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...


def tokenizer_of(folder: Path, begin: int | None) -> Tokenizer | None:
    """The tokenizer that lies in a folder, or None; `OicError` `tokenizer` for one that cannot be used.

    begin   id that a text starts with, where the tokenizer does not say itself
    """
    if (folder / JSON).is_file():
        return _Package(folder / JSON)
    pieces = sorted(folder.glob("tok*.bin"))
    return Pieces(pieces[0], begin) if pieces else None


class _Package:
    """The tokenizer of a Hugging Face folder."""

    def __init__(self, path: Path) -> None:
        try:
            package: Any = import_module("tokenizers")
        except ImportError:
            hint = "pip install tokenizers, or give token ids"
            raise fail("tokenizer", f"'{path}' needs the Python package 'tokenizers'", hint=hint) from None
        try:
            self._tokenizer = package.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises Exception itself
            raise fail("tokenizer", f"'{path}': {error}") from None

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).ids)

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids))


class Pieces:
    """Byte-pair pieces with scores, in llama2.c's file format.

    The longest piece's length (i32), then for each token a score (f32), a length (i32) and that many bytes.  Ids 3 to
    258 are single bytes.
    """

    def __init__(self, path: Path, begin: int | None) -> None:
        self.begin = begin
        self.pieces: list[bytes] = []
        self.scores: list[float] = []
        data, at = path.read_bytes(), 4
        while at < len(data):
            if at + 8 > len(data) or not 0 <= (head := struct.unpack_from("<fi", data, at))[1] <= len(data) - at - 8:
                raise fail("tokenizer", f"'{path}' ends within token {len(self.pieces)}, at byte {at}")
            score, length = head
            self.pieces.append(data[at + 8 : at + 8 + length])
            self.scores.append(score)
            at += 8 + length
        self._ids = {piece: i for i, piece in enumerate(self.pieces)}

    def encode(self, text: str) -> list[int]:
        """Characters (or bytes) merged, best score first; a space is put before the text."""
        tokens: list[int] = []
        for char in " " + text if text else "":
            piece = char.encode()
            tokens += [self._ids[piece]] if piece in self._ids else [3 + b for b in piece]
        while pairs := list(self._pairs(tokens)):
            _, where, merged = max(pairs)
            tokens[-where : 2 - where] = [merged]
        return ([] if self.begin is None else [self.begin]) + tokens

    def _pairs(self, tokens: list[int]) -> Any:
        for i, (a, b) in enumerate(pairwise(tokens)):
            joined = self._ids.get(self.pieces[a] + self.pieces[b])
            if joined is not None:
                yield self.scores[joined], -i, joined

    def decode(self, ids: list[int]) -> str:
        """The text of ids; those of control tokens are left out."""
        out = b""
        for token in ids:
            piece = self.pieces[token] if 3 <= token < len(self.pieces) else b""
            byte = re.fullmatch(rb"<0x([0-9A-F]{2})>", piece)
            out += bytes([int(byte[1], 16)]) if byte else piece
        return out.decode(errors="replace")


def no_tokenizer(folder: Path) -> OicError:
    """The refusal of a text where nothing turns it into ids."""
    return fail("tokenizer", f"there is no tokenizer in '{folder}'", hint=f"put {JSON} there, or give token ids")
