"""The vocabulary of a GGUF file as a tokenizer: pieces with scores, or merges of bytes.

Merges of bytes are made by the package `tokenizers`, an extra.
Source: llama.cpp, `src/llama-vocab.cpp`, and the tokenizers that the models were published with.
"""

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from oic.diagnostics import fail

PREFIX = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
"""Values of `token_type`."""

SPACE = "\u2581"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DIGITS = r"\p{N}"
SPLITS: dict[str, str | None] = {
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen"), _WORDS % DIGITS),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "smaug-bpe", "dbrx"), _WORDS % r"\p{N}{1,3}"),
    **dict.fromkeys(("gpt-2", "olmo", "default"), None),  # as the package does by itself
    **dict.fromkeys(("starcoder", "smollm", "refact"), DIGITS),  # and then likewise
}
"""How a text is parted before merges, by `tokenizer.ggml.pre`: a regular expression, whose matches stay apart."""


def vocabulary(settings: Mapping[str, Any]) -> "Scored | Packaged | None":
    """The tokenizer of a GGUF file's metadata, or None where it has none; `OicError` `tokenizer` for other kinds."""
    kind = settings.get(PREFIX + "model")
    if kind is None:
        return None
    if kind not in ("llama", "gpt2"):
        raise _wrong("model", f"is {kind!r}; 'llama' and 'gpt2' are read")
    tokens = settings.get(PREFIX + "tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise _wrong("tokens", "is no list of texts")
    types = _numbers(settings, "token_type", len(tokens), NORMAL)
    if kind == "llama":
        return Scored(tokens, _numbers(settings, "scores", len(tokens), 0.0), types, settings)
    return _merged(tokens, types, settings)


def _wrong(key: str, fact: str) -> Exception:
    return fail("tokenizer", f"'{PREFIX}{key}' {fact}", hint="give token ids")


def _numbers(settings: Mapping[str, Any], key: str, count: int, default: float) -> list[float]:
    """A number for every token."""
    found = settings.get(PREFIX + key, [default] * count)
    if not isinstance(found, list) or len(found) != count or not all(isinstance(n, int | float) for n in found):
        raise _wrong(key, f"is no list of {count} numbers, one a token")
    return found


Ends = tuple[list[int], list[int]]


def _ends(settings: Mapping[str, Any], default: bool) -> Ends:
    """Ids put before a text, and after it."""
    found: Ends = ([], [])
    for ids, name, added in zip(found, ("bos", "eos"), (default, False)):
        token = settings.get(f"{PREFIX}{name}_token_id")
        if settings.get(f"{PREFIX}add_{name}_token", added) is True and isinstance(token, int):
            ids.append(token)
    return found


def joined(parts: list[str], ids: Mapping[str, int], scores: Sequence[float]) -> list[str]:
    """Neighbours that are a token together become one, best score first, the first of equal ones."""
    left, right = list(range(-1, len(parts) - 1)), list(range(1, len(parts) + 1))
    waiting: list[tuple[float, int, int, str]] = []

    def note(a: int, b: int) -> None:
        if a >= 0 and b < len(parts) and (token := ids.get(parts[a] + parts[b])) is not None:
            heapq.heappush(waiting, (-scores[token], a, b, parts[a] + parts[b]))

    for at in range(len(parts) - 1):
        note(at, at + 1)
    while waiting:
        _, a, b, both = heapq.heappop(waiting)
        if not parts[a] or not parts[b] or parts[a] + parts[b] != both:
            continue  # one of them was joined to another
        parts[a], parts[b] = both, ""
        right[a] = right[b]
        if right[a] < len(parts):
            left[right[a]] = a
        note(left[a], a)
        note(a, right[a])
    return [part for part in parts if part]


class Packaged:
    """A tokenizer of the package `tokenizers`; `OicError` `tokenizer` where the package or the tokenizer is not usable.

    what   needs the package
    made   makes a tokenizer with it
    ends   ids put before a text, and after it; None: the tokenizer knows
    """

    def __init__(self, what: str, made: Callable[[Any], Any], ends: Ends | None, hint: str | None = None) -> None:
        try:
            self._tokenizer = made(import_module("tokenizers"))
        except ImportError:
            hint = "pip install tokenizers, or give token ids"
            raise fail("tokenizer", f"{what} needs the Python package 'tokenizers'", hint=hint) from None
        except Exception as error:  # the package raises Exception itself
            raise fail("tokenizer", f"{what}: {error}", hint=hint) from None
        self._tokenizer.no_padding()  # of batches, as its last user liked them
        self._tokenizer.no_truncation()
        self._known = ends is None
        self._first, self._last = ends or ([], [])

    def encode(self, text: str) -> list[int]:
        ids = self._tokenizer.encode(text, add_special_tokens=self._known).ids
        return [*self._first, *ids, *self._last]

    def marked(self, text: str) -> list[int]:
        """The ids of a text that names all its special tokens."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int]) -> str:
        """The text of ids; those of control tokens are left out."""
        return str(self._tokenizer.decode(ids))


class Scored:
    """Characters that are merged, the best score first; what is no token becomes bytes.  As SentencePiece does."""

    def __init__(self, tokens: list[str], scores: list[float], types: list[float], settings: Mapping[str, Any]) -> None:
        self._tokens, self._scores, self._types = tokens, scores, types
        self._ids = {token: i for i, token in reversed(list(enumerate(tokens)))}
        self._own, self._named = self._pattern(USER), self._pattern(USER, CONTROL)
        self._first, self._last = _ends(settings, True)
        self._unknown = next((i for i, kind in enumerate(types) if kind == UNKNOWN), 0)
        self._prefix = settings.get(PREFIX + "add_space_prefix", True) is not False

    def encode(self, text: str) -> list[int]:
        return [*self._first, *self._parted(self._own, self._spaced(text), self._merged), *self._last]

    def marked(self, text: str) -> list[int]:
        """The ids of a text that names all its special tokens; what is between two of them is a text of its own."""
        return self._parted(self._named, text, lambda part: self._merged(self._spaced(part)))

    def _pattern(self, *kinds: int) -> re.Pattern[str]:
        """What matches tokens of these types in a text, the longest first."""
        own = sorted((t for t, kind in zip(self._tokens, self._types) if kind in kinds and t), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, own)) or '(?!)'})")

    def _parted(self, tokens: re.Pattern[str], text: str, read: Callable[[str], list[int]]) -> list[int]:
        """The ids of a text, in which those of these tokens are found first, and others are of what is between them."""
        parts = tokens.split(text)  # every other one is a token
        return [i for n, part in enumerate(parts) for i in ([self._ids[part]] if n % 2 else read(part))]

    def _spaced(self, text: str) -> str:
        """A text with its spaces as pieces have them."""
        return (" " + text if text and self._prefix else text).replace(" ", SPACE)

    def _merged(self, text: str) -> list[int]:
        """The ids of a text."""
        return [token for part in joined(list(text), self._ids, self._scores) for token in self._of(part)]

    def _of(self, part: str) -> list[int]:
        if part in self._ids:
            return [self._ids[part]]
        return [self._ids.get(f"<0x{byte:02X}>", self._unknown) for byte in part.encode(errors="surrogatepass")]

    def decode(self, ids: list[int]) -> str:
        """The text of ids; those of control tokens are left out."""
        out = b""
        for token in ids:
            if not 0 <= token < len(self._tokens) or self._types[token] in (CONTROL, UNKNOWN):
                continue
            piece = self._tokens[token]
            byte = re.fullmatch("<0x([0-9A-F]{2})>", piece) if self._types[token] == BYTE else None
            out += bytes([int(byte[1], 16)]) if byte else piece.replace(SPACE, " ").encode(errors="surrogatepass")
        return out.decode(errors="replace")


def _merged(tokens: list[str], types: list[float], settings: Mapping[str, Any]) -> Packaged:
    """Bytes that are merged in the order of a list."""
    before, merges = settings.get(PREFIX + "pre", "default"), settings.get(PREFIX + "merges")
    if before not in SPLITS:
        raise _wrong("pre", f"is {before!r}; these are read: {', '.join(sorted(SPLITS))}")
    if not isinstance(merges, list) or not all(isinstance(m, str) and m.count(" ") == 1 for m in merges):
        raise _wrong("merges", "is no list of pairs of texts")

    def made(package: Any) -> Any:
        split, level = SPLITS[before], package.pre_tokenizers.ByteLevel
        vocab, pairs = {token: i for i, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges]
        found = package.Tokenizer(package.models.BPE(vocab, pairs, ignore_merges=before.startswith("llama")))
        parts = [package.pre_tokenizers.Split(package.Regex(split), "isolated")] if split else []
        by_bytes = level(add_prefix_space=False, use_regex=split in (None, DIGITS))
        found.pre_tokenizer = package.pre_tokenizers.Sequence([*parts, by_bytes])
        found.decoder = package.decoders.ByteLevel()
        if before == "qwen2":
            found.normalizer = package.normalizers.NFC()
        found.add_tokens([
            package.AddedToken(token, special=kind == CONTROL, normalized=False)
            for token, kind in zip(tokens, types) if kind in (CONTROL, USER) and token
        ])  # fmt: skip
        return found

    return Packaged("the file's vocabulary", made, _ends(settings, before.startswith("llama")), "give token ids")
