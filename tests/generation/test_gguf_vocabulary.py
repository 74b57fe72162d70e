"""Vocabularies of GGUF files: merged by scores as SentencePiece does, or by a list as GPT-2 does."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import oic
from oic.generation.gguf_vocabulary import SPACE, SPLITS, vocabulary
from oic.generation.tokenizer import described

PIECES = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), *((f"<0x{b:02X}>", 0.0, 6) for b in range(256))]
PIECES += [(c, -20.0 - i, 1) for i, c in enumerate(f"{SPACE}abcdehlo")]
PIECES += [("ab", -3.0, 1), ("bc", -1.0, 1), ("abc", -8.0, 1), ("ll", -2.0, 1), ("he", -2.5, 1), ("hell", -6.0, 1)]
PIECES += [("hello", -7.0, 1), (f"{SPACE}hello", -5.0, 1), (f"{SPACE}a", -1.5, 1), ("<tag>", 0.0, 4)]


def scored(**more: Any) -> dict[str, Any]:
    names = ("tokens", "scores", "token_type")
    lists = {f"tokenizer.ggml.{n}": list(column) for n, column in zip(names, zip(*PIECES))}
    ends = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2}
    given = {f"tokenizer.ggml.{n}": v for n, v in more.items()}
    return {"tokenizer.ggml.model": "llama", **lists, **ends, **given}


def merged_plainly(text: str) -> list[str]:
    """What merging gives that looks for the best pair anew each time."""
    scores = {token: score for token, score, kind in PIECES if kind == 1}
    parts = list(text)
    while pairs := [(scores[a + b], -i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in scores]:
        at = -max(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def test_scores_decide_what_is_merged_first() -> None:
    found = vocabulary(scored())
    assert found is not None and described(scored()) is not None
    names = [token for token, _, _ in PIECES]

    def pieces(text: str) -> list[str]:
        return [names[i] for i in found.encode(text)]

    assert pieces("hello") == ["<s>", f"{SPACE}hello"]
    assert pieces("abc") == ["<s>", f"{SPACE}a", "bc"]  # bc has a better score than ab, and abc is never reached
    assert pieces("é") == ["<s>", SPACE, "<0xC3>", "<0xA9>"]
    assert pieces("a<tag>b") == ["<s>", f"{SPACE}a", "<tag>", "b"]
    assert pieces("") == ["<s>"]
    rng = np.random.default_rng(3)
    for _ in range(200):
        text = "".join(rng.choice(list(" abcdehlo"), rng.integers(1, 30)))
        assert pieces(text)[1:] == merged_plainly(SPACE + text.replace(" ", SPACE))
        assert found.decode(found.encode(text)) == " " + text


def test_ends_and_the_space_before_are_as_the_file_says() -> None:
    found = vocabulary(scored(add_bos_token=False, add_eos_token=True, add_space_prefix=False))
    assert found is not None and [PIECES[i][0] for i in found.encode("he")] == ["he", "</s>"]
    assert found.decode([*found.encode("é"), 1, 0, 9999]) == "é" and found.decode([3 + 0xC3]) == "\ufffd"


@pytest.mark.parametrize(
    ("more", "text"),
    [({"model": "rwkv"}, "'llama' and 'gpt2' are read"), ({"tokens": [1]}, "is no list of texts"), ({"scores": [1.0]}, "numbers"),
     ({"token_type": "x"}, "numbers"), ({"tokens": "ab"}, "is no list of texts")],
)  # fmt: skip
def test_what_is_wrong_with_a_vocabulary_is_named(more: dict[str, Any], text: str) -> None:
    with pytest.raises(oic.OicError, match=text):
        vocabulary(scored(**more))


def trained() -> tuple[Any, dict[str, Any]]:
    """A tokenizer of merged bytes, and its vocabulary as a file has it."""
    package = pytest.importorskip("tokenizers")
    made = package.Tokenizer(package.models.BPE())
    made.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = ["the old man and the sea, 1952; it's the best of them", "hello  there\n\n new 12345 lines", "été à Genève"] * 3
    trainer = package.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|end|>"], initial_alphabet=package.pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(texts, trainer)
    made.decoder = package.decoders.ByteLevel()
    ids = made.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    merges = [" ".join(m) if isinstance(m, list) else m for m in json.loads(made.to_str())["model"]["merges"]]
    keys = {"model": "gpt2", "tokens": tokens, "merges": merges, "token_type": [3] + [1] * (len(tokens) - 1)}
    return made, {f"tokenizer.ggml.{n}": v for n, v in keys.items()}


def test_merges_equal_the_tokenizer_that_they_come_from() -> None:
    made, settings = trained()
    found = vocabulary(settings)
    assert found is not None
    for text in ("the sea", "it's  12345 lines\n\n ", "zoë 漢字", "", "a<|end|>b"):
        assert found.encode(text) == made.encode(text).ids
        assert found.decode(found.encode(text)) == text.replace("<|end|>", "")


@pytest.mark.parametrize("before", sorted(SPLITS))
def test_texts_are_parted_before_they_are_merged(before: str) -> None:
    _, settings = trained()
    found = vocabulary({**settings, "tokenizer.ggml.pre": before})
    assert found is not None
    text = "the old man's 12345 lines\r\n\n  hello"
    assert found.decode(found.encode(text)) == text
    with pytest.raises(oic.OicError, match="'tokenizer.ggml.pre' is 'tekken'; these are read"):
        vocabulary({**settings, "tokenizer.ggml.pre": "tekken"})
