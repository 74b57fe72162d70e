"""Texts as token ids.

A folder's `tokenizer.json` (package `tokenizers`, an extra), a `tok*.bin` of llama2.c, or what the configuration
describes: bytes, as ByT5 has them or as they are, tables of characters, lists of symbols, or a GGUF file's vocabulary.
"""

import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from oic.diagnostics import OicError, fail
from oic.generation import gguf_vocabulary as gguf

JSON = "tokenizer.json"
FIRST = 259
"""The first token of a ByT5, and of a file of pieces, that is neither a byte nor one of three special tokens."""
BYT5 = 384
"""Tokens of a ByT5: those and 125 sentinels."""


class Tokenizer(Protocol):
    """Texts to ids and back."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...


def tokenizer_of(folder: Path, begin: int | None) -> Tokenizer | None:
    """The tokenizer that lies in a folder, or None; `OicError` `tokenizer` for one that cannot be used.

    begin   id that a text starts with, where the tokenizer does not say itself
    """
    if (folder / JSON).is_file():
        path = str(folder / JSON)
        return gguf.Packaged(f"'{path}'", lambda package: package.Tokenizer.from_file(path), None)
    files = sorted(folder.glob("tok*.bin"))
    return pieces(files[0], begin) if files else None


def pieces(path: Path, begin: int | None) -> gguf.Scored:
    """Pieces with scores, in llama2.c's file format.

    The longest piece's length (i32), then for each token a score (f32), a length (i32) and that many bytes.  Ids 0 to 2
    are no text, 3 to 258 are single bytes, whatever the file calls them.
    """
    tokens: list[str] = []
    scores: list[float] = []
    data, at = path.read_bytes(), 4
    while at < len(data):
        if at + 8 > len(data) or not 0 <= (head := struct.unpack_from("<fi", data, at))[1] <= len(data) - at - 8:
            raise fail("tokenizer", f"'{path}' ends within token {len(tokens)}, at byte {at}")
        score, length = head
        tokens.append(data[at + 8 : at + 8 + length].decode(errors="replace").replace(" ", gguf.SPACE))
        scores.append(score)
        at += 8 + length
    if len(tokens) < FIRST:
        raise fail("tokenizer", f"'{path}' has {len(tokens)} tokens; the first {FIRST} are three of no text, and bytes")
    tokens[FIRST - 256 : FIRST] = [f"<0x{byte:02X}>" for byte in range(256)]
    types: list[float] = [gguf.UNKNOWN, *[gguf.CONTROL] * 2, *[gguf.BYTE] * 256, *[gguf.NORMAL] * (len(tokens) - FIRST)]
    return gguf.Scored(tokens, scores, types, {f"{gguf.PREFIX}bos_token_id": begin})


class Bytes:
    """Bytes of UTF-8 as ids, three more: ByT5's tokenizer.

    Names of special tokens in a text are these tokens: `<pad>`, `</s>`, `<unk>`, then `<extra_id_0>` and so on up to
    the vocabulary's end.  A text ends in `</s>`.
    Source: Xue et al., ByT5, 2022; `ByT5Tokenizer` of Hugging Face's transformers.
    """

    OFFSET = FIRST - 256
    END = 1

    def __init__(self, vocab: int) -> None:
        self._special = {"<pad>": 0, "</s>": 1, "<unk>": 2}
        self._special |= {f"<extra_id_{i}>": FIRST + i for i in range(max(0, vocab - FIRST))}

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in re.split(r"(<pad>|</s>|<unk>|<extra_id_\d+>)", text):
            own = self._special.get(part)
            ids += [self.OFFSET + b for b in part.encode()] if own is None else [own]
        return [*ids, self.END]

    def decode(self, ids: list[int]) -> str:
        """The text of ids; special tokens and bytes that make no character are left out."""
        found = bytes(i - self.OFFSET for i in ids if self.OFFSET <= i < self.OFFSET + 256)
        return found.decode(errors="ignore")


class Characters:
    """A token for every character, by tables of characters read and characters written: position is id.

    The first four ids are pad, begin, end and unknown.  A text begins and ends with the tokens for it.
    Source: the configuration of hexgrad's misaki, `grapheme_chars` and `phoneme_chars`.
    """

    RESERVED = 4

    def __init__(self, read: str, written: str) -> None:
        self._ids = {char: i for i, char in enumerate(read) if i >= self.RESERVED}
        self._written = written

    def encode(self, text: str) -> list[int]:
        return [1, *(self._ids.get(char, 3) for char in text), 2]

    def decode(self, ids: list[int]) -> str:
        return "".join(self._written[i] for i in ids if self.RESERVED <= i < len(self._written))


class RawBytes:
    """A token for every byte."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(i for i in ids if i < 256).decode(errors="replace")


class Symbols:
    """A token for every character read, and a symbol for every token written, by lists: position is id.

    A text ends with `</s>`, if it is among what is read; `<unk>` is any other character.  Symbols written are put
    between spaces, those in angle brackets left out.
    Source: Kyubyong's `g2p_en`, `graphemes` and `phonemes`.
    """

    def __init__(self, read: list[str], written: list[str]) -> None:
        self._ids = {symbol: i for i, symbol in enumerate(read)}
        self._written = written

    def encode(self, text: str) -> list[int]:
        known = [self._ids.get(char, self._ids.get("<unk>")) for char in text]
        if None in known:
            char = text[known.index(None)]
            raise fail("tokenizer", f"{char!r} is none of the characters that are read", hint="see 'graphemes'")
        end = [self._ids["</s>"]] if "</s>" in self._ids else []
        return [i for i in known if i is not None] + end

    def decode(self, ids: list[int]) -> str:
        found = [self._written[i] for i in ids if i < len(self._written)]
        return " ".join(symbol for symbol in found if not re.fullmatch("<.*>", symbol))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def described(settings: Mapping[str, Any]) -> Tokenizer | None:
    """The tokenizer that a configuration describes, or None."""
    read, written = settings.get("graphemes"), settings.get("phonemes")
    if _texts(read) and _texts(written):
        return Symbols(list(read or ()), list(written or ()))
    if settings.get("model_type") == "rwkv5" and settings.get("vocab_size") == 256:
        return RawBytes()
    tables = settings.get("grapheme_chars"), settings.get("phoneme_chars")
    if isinstance(tables[0], str) and isinstance(tables[1], str):
        return Characters(tables[0], tables[1])
    if (found := gguf.vocabulary(settings)) is not None:
        return found
    vocab, named = settings.get("vocab_size"), settings.get("tokenizer_class")
    of_bytes = settings.get("model_type") in ("t5", "mt5") and vocab == BYT5
    if isinstance(vocab, int) and (named == "ByT5Tokenizer" or (named is None and of_bytes)):
        return Bytes(vocab)
    return None


def no_tokenizer(folder: Path) -> OicError:
    """The refusal of a text where nothing turns it into ids."""
    place = "beside it" if folder.is_file() else "there"
    return fail("tokenizer", f"there is no tokenizer in '{folder}'", hint=f"put {JSON} {place}, or give token ids")
