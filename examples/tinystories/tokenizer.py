"""The tokenizer of stories260k: byte-pair pieces with scores, in llama2.c's file format.

The file holds the longest piece's length (i32), then for each token a score (f32), a length (i32)
and that many bytes.  Ids 0, 1, 2 are unknown, begin and end; 3 to 258 are single bytes.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

BOS, EOS = 1, 2
FIRST_BYTE = 3


@dataclass(frozen=True)
class Tokenizer:
    """Pieces and scores by token id."""

    pieces: list[bytes]
    scores: list[float]

    @classmethod
    def read(cls, path: Path) -> Tokenizer:
        """The tokenizer in a file."""
        data = path.read_bytes()
        pieces: list[bytes] = []
        scores: list[float] = []
        at = 4
        while at < len(data):
            score, length = struct.unpack_from("<fi", data, at)
            pieces.append(data[at + 8 : at + 8 + length])
            scores.append(score)
            at += 8 + length
        return cls(pieces, scores)

    def encode(self, text: str) -> list[int]:
        """Ids of a text: characters (or bytes) merged, best score first; a space is put before it."""
        if not text:
            return []
        ids = {piece: i for i, piece in enumerate(self.pieces)}
        tokens: list[int] = []
        for char in " " + text:
            piece = char.encode()
            tokens += [ids[piece]] if piece in ids else [FIRST_BYTE + b for b in piece]
        while True:
            pairs = [
                (self.scores[ids[joined]], -i, ids[joined])
                for i, (a, b) in enumerate(pairwise(tokens))
                if (joined := self.pieces[a] + self.pieces[b]) in ids
            ]
            if not pairs:
                return tokens
            _, where, merged = max(pairs)
            tokens[-where : 2 - where] = [merged]

    def decode(self, tokens: list[int]) -> str:
        """The text of ids that follow the beginning; ends at the end token."""
        out = b""
        for i, token in enumerate(tokens):
            if token in (BOS, EOS):
                break
            piece = self.pieces[token]
            byte = re.fullmatch(rb"<0x([0-9A-F]{2})>", piece)
            out += bytes([int(byte[1], 16)]) if byte else piece[1:] if i == 0 and piece[:1] == b" " else piece
        return out.decode(errors="replace")
