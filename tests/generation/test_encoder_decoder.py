"""`oic generate` with encoder–decoders: sources, start tokens, tokenizers, and the end of the room."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import oic
from oic.cli.main import main
from oic.generation.generator import Stop
from oic.generation.tokenizer import Bytes, Characters, described
from paths import models_dir, needs_models


def models() -> Path:
    found = models_dir()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def generator() -> Iterator[oic.Generator]:
    with oic.Generator(models() / "byt5-tiny-random", 32) as made:
        yield made


@pytest.fixture(scope="module")
def reference() -> Any:
    return np.load(models() / "byt5-tiny-random" / "ref.npz")


def ids(generator: oic.Generator, source: Any, count: int = 64, **settings: Any) -> list[int]:
    return [t.id for t in generator.stream(source, count, **settings)]


@needs_models
def test_outputs_are_those_of_the_reference(generator: oic.Generator, reference: Any) -> None:
    for i in range(int(reference["n_prompts"])):
        wanted = reference[f"p{i}_output_ids"][1:].tolist()
        assert ids(generator, reference[f"p{i}_input_ids"], len(wanted)) == wanted
    sources = [r[:n].tolist() for r, n in zip(reference["b_input_ids"], reference["b_mask"].sum(1))]
    rows = generator.batch(sources, 31, threads=2)
    for row, wanted, n in zip(rows, reference["b_output_ids"], reference["b_output_len"]):
        assert [t.id for t in row][: n - 1] == wanted[1:n].tolist()


@needs_models
def test_the_output_ends_where_the_room_does(generator: oic.Generator, reference: Any) -> None:
    stop = Stop()
    assert len(ids(generator, reference["p0_input_ids"], stop_ids=[], stop=stop)) == 32  # the start token takes a place
    assert stop.reason == "context"
    ends = Stop()
    assert ids(generator, reference["p1_input_ids"], stop=ends)[-1] == 1 and ends.reason == "stop"


@needs_models
def test_sources_that_are_none(generator: oic.Generator) -> None:
    for source, text in (([], "no tokens"), ([-1], "token ids"), ([3] * 33, "33 tokens, and the encoder reads 32 at most")):
        with pytest.raises(oic.OicError, match=text):
            ids(generator, source, 2)
    with pytest.raises(oic.OicError, match="id 384 is outside 0 to 383"):
        ids(generator, [384], 2)
    with pytest.raises(oic.OicError, match="no source"):
        generator.logits([0, 1])


@needs_models
@pytest.mark.parametrize("variant", ["us", "gb"])
def test_phonemes_of_every_word_are_those_of_the_reference(variant: str) -> None:
    folder = models() / "misaki-bart-g2p"
    words = json.loads((folder / "reference" / f"{variant}.words.json").read_text(encoding="utf-8"))
    logits, at = np.load(folder / "reference" / f"{variant}.logits.npy"), 0
    weights, config = folder / f"{variant}_bart.safetensors", folder / f"{variant}_bart_config.json"
    with oic.Generator(weights, config=config) as generator:
        for word in words:
            source = generator.encode(word["word"])
            tokens = list(generator.stream(source, 60))
            assert source == word["input_ids"] and "".join(t.text for t in tokens) == word["phonemes"]
            found = [t.id for t in tokens]
            assert found[:-1] == word["output_ids"] and found[-1] == 2
            rows = generator.logits([1, *found[:-1]], given=3, source=source)
            assert float(np.abs(rows - logits[at : at + len(found)]).max()) <= 1e-4
            at += len(found)
        with pytest.raises(oic.OicError, match="65 tokens, and the encoder reads 64 at most"):
            ids(generator, [5] * 65)
        assert len(ids(generator, [1, 5, 2], 100, stop_ids=[])) == 64
    assert at == len(logits)


@needs_models
def test_the_command_and_settings_of_generation_beside_the_configuration(
    tmp_path: Path, generator: oic.Generator
) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(models() / "byt5-tiny-random" / name)
    settings = {"decoder_start_token_id": 7, "forced_bos_token_id": 90, "eos_token_id": [1, 91]}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    run = ["generate", str(tmp_path), "--text", "<tha>:ไทย", "-n", "4", "--json", "--context", "32"]
    found = json.loads(CliRunner().invoke(main, run).stdout)
    source = generator.encode("<tha>:ไทย")
    rows = generator.logits([7, *found["ids"][:-1]], source=source)
    assert found["prompt"] == source and found["ids"] == [90, *rows[1:].argmax(-1).tolist()]
    assert len(found["logprobs"]) == 4 and found["stop"] == "count" and isinstance(found["text"], str)
    (tmp_path / "generation_config.json").write_text("[")
    with pytest.raises(oic.OicError, match=r"generation_config\.json"):
        oic.Generator(tmp_path, 16)


def test_bytes_as_byt5_has_them() -> None:
    tokenizer = Bytes(384)
    assert tokenizer.encode("aé") == [100, 198, 172, 1]
    assert tokenizer.encode("a<extra_id_0></s>b<extra_id_125>")[:4] == [100, 259, 1, 101]
    assert tokenizer.encode("<extra_id_125>") == [*(b + 3 for b in b"<extra_id_125>"), 1]
    assert tokenizer.decode([0, 100, 198, 172, 1, 2, 259, 198]) == "aé"  # half a character and special tokens are left out
    named = {"model_type": "t5", "vocab_size": 32128, "tokenizer_class": "ByT5Tokenizer"}
    assert isinstance(described(named), Bytes) and described({"model_type": "t5", "vocab_size": 32128}) is None
    assert described({"model_type": "t5", "vocab_size": 384, "tokenizer_class": "T5Tokenizer"}) is None


def test_tables_of_characters() -> None:
    tokenizer = Characters("____abc", "____xyz")
    assert tokenizer.encode("ac_?") == [1, 4, 6, 3, 3, 2] and tokenizer.decode([1, 4, 6, 7, 3, 2]) == "xz"
