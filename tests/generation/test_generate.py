"""`oic generate`: prompts, sampling, stops, batches, and the end of the context."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import oic
from importers.test_import import checkpoint
from oic.cli.main import main
from oic.generation.detokenizer import Detokenizer
from oic.generation.generator import Stop
from oic.generation.tokenizer import pieces
from oic.operators.sampling import shares
from paths import models_dir, needs_models

pytestmark = pytest.mark.xdist_group("generate-generation")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("generate") / "in", eos_token_id=None)


@pytest.fixture(scope="module")
def generator(source: Path) -> Iterator[oic.Generator]:
    with oic.Generator(source) as made:
        yield made


def ids(generator: oic.Generator, prompt: list[int], count: int, **settings: object) -> list[int]:
    return [t.id for t in generator.stream(prompt, count, **settings)]  # type: ignore[arg-type]


def test_greedy_tokens_are_those_of_a_prompt_fed_anew(generator: oic.Generator, source: Path, tmp_path: Path) -> None:
    """Cached generation equals generation that recomputes everything, logits in all bits."""
    made = oic.import_checkpoint(source, tmp_path / "out")
    graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
    found = list(generator.stream([1, 2, 3], 8))
    whole = [1, 2, 3]
    with oic.Synthesizer(graph, model).build(tmp_path / "build").make_executor() as ex:
        for token in found:
            ex.reset()
            logits = ex.step(tokens=np.array(whole, np.int32))["logits"][-1].astype(np.float64)
            assert int(logits.argmax()) == token.id
            share = np.exp(logits - logits.max())
            assert token.logprob == pytest.approx(float(np.log(share[token.id] / share.sum())), abs=1e-12)
            whole.append(token.id)


def test_a_long_prompt_is_fed_in_parts_with_the_same_bits(source: Path, generator: oic.Generator, tmp_path: Path) -> None:
    oic.import_checkpoint(source, tmp_path / "out", prefill=3)
    prompt = [1, 5, 9, 2, 8, 3, 4, 7]
    with oic.Generator(tmp_path / "out") as parts:
        assert parts.prefill == 3
        assert [t.logprob for t in parts.stream(prompt, 6)] == [t.logprob for t in generator.stream(prompt, 6)]


def test_a_full_context_ends_the_text(generator: oic.Generator) -> None:
    stop = Stop()
    assert len(ids(generator, [1, 2, 3, 4], 100, stop=stop)) == 13  # 16 are fed; the last one is not
    assert stop.reason == "context"
    assert len(ids(generator, list(range(16)), 5)) == 1
    with pytest.raises(oic.OicError, match="the prompt has 17 tokens, more than the cache has room for"):
        ids(generator, [1] * 17, 5)


def test_stops(generator: oic.Generator) -> None:
    plain = ids(generator, [1, 2, 3], 6)
    stop = Stop()
    assert ids(generator, [1, 2, 3], 6, stop_ids=plain[2:3], stop=stop) == plain[: plain.index(plain[2]) + 1]
    assert stop.reason == "stop"


@pytest.mark.parametrize("said", ["2", 2.0, True, [3, "2"]])
def test_ends_that_are_no_ids_are_refused_by_name(source: Path, said: object, tmp_path: Path) -> None:
    shutil.copytree(source, tmp_path / "in")
    (tmp_path / "in" / "generation_config.json").write_text(json.dumps({"eos_token_id": said}))
    with pytest.raises(oic.OicError, match="'eos_token_id' is .*, and should be a token id, or a list of them"):
        oic.Generator(tmp_path / "in")


def test_sampling_depends_on_its_seed_alone(generator: oic.Generator) -> None:
    hot = [oic.Sampling(temperature=3.0, seed=s) for s in (1, 1, 2)]
    found = [ids(generator, [1, 2], 12, sampling=s) for s in hot]
    assert found[0] == found[1] != found[2]
    assert ids(generator, [1, 2], 12, sampling=oic.Sampling(temperature=3.0, top_k=1)) == ids(generator, [1, 2], 12)


def probabilities(sampling: oic.Sampling, logits: np.ndarray) -> np.ndarray:
    """What `choose` draws from."""
    kept, weights = shares(logits, sampling.temperature, sampling.top_k, sampling.top_p)
    found = np.zeros(logits.size)
    found[slice(None) if kept is None else kept] = weights
    return found / found.sum()


def test_filters() -> None:
    logits = np.log(np.float32([0.5, 0.2, 0.2, 0.1]))

    def of(**settings: float) -> list[float]:
        return probabilities(oic.Sampling(1.0, **settings), logits).round(4).tolist()  # type: ignore[arg-type]

    assert of() == [0.5, 0.2, 0.2, 0.1]
    assert of(top_k=2) == [0.5556, 0.2222, 0.2222, 0.0]  # ties are kept
    assert of(top_p=0.5) == [1.0, 0.0, 0.0, 0.0]
    assert of(top_p=0.6) == [0.7143, 0.2857, 0.0, 0.0]
    for wrong in ({"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"seed": -1}, {"temperature": float("nan")}):
        with pytest.raises(oic.OicError):
            oic.Sampling(**wrong)  # type: ignore[arg-type]


def test_streams_of_one_generator_do_not_meet(generator: oic.Generator) -> None:
    alone = ids(generator, [1, 2, 3], 6)
    first = generator.stream([1, 2, 3], 6)
    found = [next(first).id]
    second = generator.stream([4], 6)
    next(second)
    generator.logits([7, 8])
    assert [*found, *(t.id for t in first)] == alone


def test_rows_of_a_batch_draw_numbers_of_their_own(generator: oic.Generator) -> None:
    rows = generator.batch([[1, 2]] * 3, 8, oic.Sampling(temperature=3.0, seed=5), threads=2)
    for i, row in enumerate(rows):
        assert [t.id for t in row] == ids(generator, [1, 2], 8, sampling=oic.Sampling(temperature=3.0, seed=5 + i))
    assert len({tuple(t.id for t in row) for row in rows}) > 1


def test_texts_that_end_the_output(generator: oic.Generator) -> None:
    with pytest.raises(oic.OicError, match="cannot be empty"):
        ids(generator, [1], 2, stop_texts=("",))


class Spaced:
    """Words with a space between them, of which a text begins without; ids above 99 are single bytes."""

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def decode(self, ids: list[int]) -> str:
        out = b"".join(bytes([i - 100]) if i > 99 else f" w{i}".encode() for i in ids)
        return out.decode(errors="replace").removeprefix(" ")


def test_texts_go_on_where_the_prompt_ends() -> None:
    """Spaces stay, characters of more bytes come whole, and what is left at the end is given."""
    reader = Detokenizer(Spaced(), [1] * 9)
    euro = [100 + b for b in "€".encode()]
    assert [reader.add(i) for i in (2, 3, *euro, 4)] == [" w2", " w3", "", "", "€", " w4"]
    assert [reader.add(euro[0]), reader.rest(), reader.add(5)] == ["", "\ufffd", " w5"]
    assert [Detokenizer(Spaced(), []).add(7)] == ["w7"]


class Strict(Spaced):
    """Bytes beside each other are no characters at all if one of them is none, as in the package `tokenizers`."""

    def decode(self, ids: list[int]) -> str:
        out = ""
        for of_bytes, run in groupby(ids, lambda i: i > 99):
            found = b"".join(bytes([i - 100]) if of_bytes else f" w{i}".encode() for i in run)
            try:
                out += found.decode()
            except UnicodeDecodeError:
                out += "\ufffd" * len(found)
        return out


@pytest.mark.parametrize("prompt", [[], [100 + b for b in "é漢字".encode()]])
def test_characters_of_many_bytes_beside_each_other_come_whole(prompt: list[int]) -> None:
    reader = Detokenizer(Strict(), prompt)
    found = [reader.add(100 + b) for b in "é漢字🙂€漢é🙂".encode()] + [reader.add(3)]
    assert [text for text in found if text] == [*"é漢字🙂€漢é🙂", " w3"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_is_its_prompts_alone(generator: oic.Generator, threads: int) -> None:
    prompts = [[1], [2, 3, 4], [5, 6]]
    together = generator.batch(prompts, 6, threads=threads)
    assert [[t.id for t in row] for row in together] == [ids(generator, p, 6) for p in prompts]


def test_prompts_that_are_none(generator: oic.Generator) -> None:
    for prompt, text in (([], "no tokens"), ([-1], "token ids"), ([1 << 40], "token ids")):
        with pytest.raises(oic.OicError, match=text):
            ids(generator, prompt, 2)
    with pytest.raises(oic.OicError, match="id 24 is outside 0 to 23"):
        ids(generator, [24], 2)
    with pytest.raises(oic.OicError, match="there is no tokenizer in"):
        generator.encode("text")


def test_ends_beyond_the_vocabulary_and_filters_without_a_temperature_are_refused(
    source: Path, generator: oic.Generator
) -> None:
    for end in (24, -1):
        with pytest.raises(oic.OicError, match=f"cannot end after {end}: ids of this model are 0 to 23"):
            ids(generator, [1], 2, stop_ids=[3, end])
    for option in (["--top-k", "5"], ["--top-p", "0.5"]):
        done = CliRunner().invoke(main, ["generate", str(source), "--ids", "1", *option])
        assert done.exit_code == 1 and "a temperature of 0 takes the likeliest" in done.stderr


def test_logits_that_are_nan_are_refused(tmp_path: Path) -> None:
    """The weights of one token are NaN: where its row is not read it has a logit all the same."""
    folder = checkpoint(tmp_path / "in", nan="lm_head.weight")
    with oic.Generator(folder) as made, pytest.raises(oic.OicError, match="the logits of new token 0 are NaN"):
        ids(made, [1, 2], 3)


def test_a_generator_that_is_closed_makes_no_sessions(source: Path) -> None:
    with oic.Generator(source) as made:
        assert ids(made, [1], 1)
    for call in (made.session, lambda: ids(made, [1], 1)):
        with pytest.raises(oic.OicError, match="this generator is closed"):
            call()


def test_ids_need_no_tokenizer(source: Path, generator: oic.Generator, tmp_path: Path) -> None:
    """A folder's tokenizer may need a package that is not there, or be damaged: that concerns texts alone."""
    shutil.copytree(source, tmp_path / "in")
    (tmp_path / "in" / "tokenizer.json").write_text("{")
    with oic.Generator(tmp_path / "in") as other:
        assert ids(other, [1, 2], 3) == ids(generator, [1, 2], 3)
        with pytest.raises(oic.OicError, match=r"tokenizer\.json"):
            other.encode("text")
        with pytest.raises(oic.OicError, match=r"tokenizer\.json"):
            ids(other, [1, 2], 3, stop_texts=["x"])


def test_the_function_gives_tokens_as_they_come(source: Path, generator: oic.Generator) -> None:
    tokens = oic.generate(source, [1, 2, 3], count=4)
    assert next(tokens).id == ids(generator, [1, 2, 3], 1)[0]
    assert [t.id for t in tokens] == ids(generator, [1, 2, 3], 4)[1:]


@pytest.mark.parametrize("name", [b"<0x%02X>", b"%c"])
def test_pieces_of_a_small_tokenizer(name: bytes, tmp_path: Path) -> None:
    """Single bytes are those of their places, whatever the file calls them."""
    parts = [b"<unk>", b"<s>", b"</s>", *(name % i for i in range(256)), b" ", b"a", b"b", b" a", b" ab"]
    scores = [0.0] * 261 + [-3.0] + [-1.0, -2.0]
    data = struct.pack("<i", 6) + b"".join(struct.pack("<fi", s, len(p)) + p for p, s in zip(parts, scores))
    (tmp_path / "tok.bin").write_bytes(data)
    tokenizer = pieces(tmp_path / "tok.bin", 1)
    assert tokenizer.encode("ab") == [1, 263] and tokenizer.decode([263]) == " ab"
    assert tokenizer.encode("é")[1:] == [259, 3 + 0xC3, 3 + 0xA9] and tokenizer.decode([3 + 0xC3, 3 + 0xA9]) == "é"
    assert tokenizer.encode("") == [1]
    (tmp_path / "tok.bin").write_bytes(data[:-1])
    with pytest.raises(oic.OicError, match="ends within token"):
        pieces(tmp_path / "tok.bin", 1)
    (tmp_path / "tok.bin").write_bytes(data[:-11])
    assert pieces(tmp_path / "tok.bin", 1).decode([262]) == " a"
    (tmp_path / "tok.bin").write_bytes(data[: 4 + sum(8 + len(part) for part in parts[:258])])
    with pytest.raises(oic.OicError, match="has 258 tokens"):
        pieces(tmp_path / "tok.bin", 1)


def test_the_command(source: Path, generator: oic.Generator) -> None:
    done = CliRunner().invoke(main, ["generate", str(source), "--ids", "1,2,3", "-n", "4", "--json"])
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and found["ids"] == ids(generator, [1, 2, 3], 4)
    assert len(found["logprobs"]) == len(found["seconds"]) == 4 and found["stop"] == "count"
    assert CliRunner().invoke(main, ["generate", str(source)]).exit_code == 2
    several = ["generate", str(source), "--ids", "1,2,3", "--ids", "5", "-n", "4", "--stop-id", str(found["ids"][1])]
    done = CliRunner().invoke(main, [*several, "--threads", "2", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["prompts"]
    assert [row["prompt"] for row in rows] == [[1, 2, 3], [5]] and len(rows[1]["ids"]) <= 4
    assert rows[0]["ids"] == found["ids"][: found["ids"].index(found["ids"][1]) + 1] and rows[0]["stop"] == "stop"
    lines = CliRunner().invoke(main, several).stdout.splitlines()
    assert lines == [" ".join(map(str, row["ids"])) for row in rows]
    for wrong in ("x", "1,,2", "1,2,", "1 2,3"):
        assert CliRunner().invoke(main, ["generate", str(source), "--ids", wrong]).exit_code == 2
    assert "from 0 on, not [1, -2]" in CliRunner().invoke(main, ["generate", str(source), "--ids", "1,-2"]).output


@needs_models
def test_a_context_beyond_learned_positions_is_refused(tmp_path: Path) -> None:
    models = models_dir()
    assert models is not None
    oic.import_checkpoint(models / "gpt2-tiny", tmp_path / "out", context=8)
    for source in (models / "gpt2-tiny", tmp_path / "out"):
        with pytest.raises(oic.OicError, match="65"):
            oic.Generator(source, 65)
    with oic.Generator(tmp_path / "out", 64) as whole:
        assert len(ids(whole, [1] * 60, 20, stop_ids=[])) == 5


@needs_models
def test_greedy_ids_of_the_references() -> None:
    models = models_dir()
    assert models is not None
    reference = np.load(models / "llama-tiny" / "ref.npz")
    with oic.Generator(models / "llama-tiny") as generator:
        for i in range(int(reference["n_prompts"])):
            wanted = reference[f"p{i}_greedy"].tolist()
            assert ids(generator, reference[f"p{i}_prompt"].tolist(), len(wanted)) == wanted
        rows = generator.batch([r[:n].tolist() for r, n in zip(reference["b_ids"], reference["b_len"])], 8, threads=2)
        for row, wanted, n in zip(rows, reference["b_greedy"], reference["b_greedy_len"]):
            assert [t.id for t in row][:n] == wanted[:n].tolist()
        settings = reference["s_settings"]
        for (temperature, top_k, top_p), wanted in zip(settings, reference["s_probs"]):
            found = probabilities(oic.Sampling(float(temperature), int(top_k), float(top_p)), reference["s_logits"])
            assert np.abs(found - wanted).max() < 1e-6
