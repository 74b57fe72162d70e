"""Encoder–decoders: the entries `encode` and `entry`, their caches, ragged batches, and the end of the room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.importers import import_checkpoint
from paths import ROOT, models_dir, needs_models

pytestmark = needs_models
ROOM = 32  # tokens of a source and of an output


@pytest.fixture(scope="module")
def folder() -> Path:
    models = models_dir()
    assert models is not None
    return models / "byt5-tiny-random"


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return np.load(folder / "ref.npz")


@pytest.fixture(scope="module")
def made(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return import_checkpoint(folder, tmp_path_factory.mktemp("t5"), context=ROOM)


@pytest.mark.parametrize("example", ["t5", "bart"])
def test_examples_are_what_an_import_writes(example: str, folder: Path, tmp_path: Path) -> None:
    misaki = folder.parent / "misaki-bart-g2p"
    source, config = {"t5": (folder, None), "bart": (misaki / "us_bart.safetensors", misaki / "us_bart_config.json")}[example]
    made = import_checkpoint(source, tmp_path / "out", config=config)
    assert made.graph.read_text() == (ROOT / "examples" / example / "graph.oi").read_text()


def built(made: Any, batch: int, backend: type = oic.Synthesizer) -> Any:
    maker = backend(oic.parse_file(made.graph), oic.Model.open(made.model), sizes={"B": batch})
    return maker.build() if isinstance(maker, oic.Synthesizer) else maker


@pytest.fixture(scope="module")
def library(made: Any) -> Any:
    return built(made, 1)


@pytest.fixture
def ex(library: Any) -> Iterator[oic.Executor]:
    with library.make_executor() as executor:
        yield executor


def encode(ex: oic.Executor, *sources: Any, width: int | None = None) -> Any:
    """Encode sources, padded behind with 7 to one width."""
    width = width or max(map(len, sources))
    rows = [[*map(int, s), *[7] * (width - len(s))] for s in sources]
    return ex.step("encode", source=np.array(rows, np.int32), lengths=np.array([len(s) for s in sources], np.int32))["encoded"]


def steps(ex: oic.Executor, ids: Any, *sizes: int) -> np.ndarray:
    """Logits [n, vocab] of one output's ids, fed in parts of these sizes (the last one again and again)."""
    whole, found, at = np.asarray(ids, np.int32)[None], [], 0
    for i in range(len(ids)):
        size = sizes[min(i, len(sizes) - 1)]
        if at < len(ids):
            found.append(ex.step(tokens=whole[:, at : at + size])["logits"][0])
            at += size
    return np.concatenate(found)


def test_prefill_then_steps_equal_uncached_and_the_reference(ex: oic.Executor, reference: Any) -> None:
    for i in range(int(reference["n_prompts"])):
        source, fed = reference[f"p{i}_input_ids"], reference[f"p{i}_output_ids"][:-1]
        assert np.abs(encode(ex, source)[0] - reference[f"p{i}_encoder_f64"]).max() < 2e-5
        whole = steps(ex, fed, len(fed))  # uncached: nothing is read that another step wrote
        assert np.abs(whole - reference[f"p{i}_logits_f64"]).max() <= 1e-4
        assert whole.argmax(-1).tolist() == reference[f"p{i}_output_ids"][1:].tolist()
        for sizes in ((1,), (int(reference[f"p{i}_prefill_len"]), 1), (3, 5, 2)):
            encode(ex, source)
            assert steps(ex, fed, *sizes).tobytes() == whole.tobytes()


def test_caches_are_static_and_hold_what_the_reference_holds(ex: oic.Executor, reference: Any) -> None:
    """[layers, batch, heads, room, size of a head], whatever was fed."""
    for i in range(int(reference["n_prompts"])):
        source, fed = reference[f"p{i}_input_ids"], reference[f"p{i}_output_ids"][:-1]
        encode(ex, source)
        steps(ex, fed, 1)
        for kind in "kv":
            own, cross = ex.fetch(kind.upper()), ex.fetch(f"cross_{kind.upper()}")
            assert own.shape == cross.shape == (2, 1, 3, ROOM, 24)
            assert np.abs(own[:, 0, :, : len(fed)] - reference[f"p{i}_self_{kind}"]).max() <= 5e-5
            assert np.abs(cross[:, 0, :, : len(source)] - reference[f"p{i}_cross_{kind}"]).max() <= 5e-5
        assert ex.fetch("pos") == len(fed)


def test_keys_of_the_source_are_computed_by_encode_alone(ex: oic.Executor, reference: Any, made: Any) -> None:
    """No product with their weights is left in `entry`, and its steps leave their tables as they are."""
    text = made.graph.read_text()
    entry = text[text.index("block entry") :]
    assert "cross_wk[" in text and "cross_wk[" not in entry and "cross_wv[" not in entry
    encode(ex, reference["p0_input_ids"])
    before = [ex.fetch(n).tobytes() for n in ("cross_K", "cross_V")]
    steps(ex, [0, 5, 9], 1)
    assert [ex.fetch(n).tobytes() for n in ("cross_K", "cross_V")] == before


def test_a_step_goes_over_the_keys_so_far_not_the_whole_table(made: Any, tmp_path: Path) -> None:
    """In the C, both the bias and the keys of a step are as many as pos + N."""
    files = oic.Synthesizer(oic.parse_file(made.graph), oic.Model.open(made.model)).emit(tmp_path)
    text = next(p for p in files.paths if p.suffix == ".c").read_text()
    step = text[text.index("t5_step_body") :]
    (keys,) = re.findall(r"\.t = (n\d+), \.q_start = pos", step)
    assert f"const ptrdiff_t {keys} = (ptrdiff_t)at;" in step and "const int64_t at = pos + N;" in step
    assert re.findall(r"\.keys = (\w+)", step) == [keys, str(ROOM)]  # the source's end at its length


def test_a_new_source_begins_anew(ex: oic.Executor, reference: Any) -> None:
    first, second = reference["p0_input_ids"], reference["p1_input_ids"]
    encode(ex, first)
    alone = steps(ex, [0, 4], 1)
    encode(ex, second)
    steps(ex, range(ROOM), 1)
    encode(ex, first)
    assert ex.fetch("pos") == 0 and steps(ex, [0, 4], 1).tobytes() == alone.tobytes()


def test_one_output_token_too_many_is_refused_and_nothing_is_overwritten(ex: oic.Executor, reference: Any) -> None:
    encode(ex, reference["p0_input_ids"])
    steps(ex, range(ROOM - 1), 1)
    for refused in (2, 3):
        saved = ex.save()
        with pytest.raises(oic.StepError) as caught:
            ex.step(tokens=np.zeros((1, refused), np.int32))
        assert caught.value.status == "OIC_ERR_CACHE_FULL" and ex.save() == saved
    steps(ex, [5], 1)
    saved = ex.save()
    with pytest.raises(oic.StepError) as caught:
        steps(ex, [5], 1)
    assert caught.value.status == "OIC_ERR_CACHE_FULL" and ex.save() == saved


def test_what_is_behind_a_length_has_no_effect(ex: oic.Executor, reference: Any) -> None:
    """A source padded to the whole room gives the bits of the source alone; and the mask is not for nothing."""
    source = reference["p0_input_ids"]
    plain = encode(ex, source), steps(ex, [0, 8, 3], 1)
    padded = encode(ex, source, width=ROOM), steps(ex, [0, 8, 3], 1)
    assert padded[0][:, : len(source)].tobytes() == plain[0].tobytes() and padded[1].tobytes() == plain[1].tobytes()
    encode(ex, source, width=ROOM)
    fed = reference["p0_output_ids"][:-1]
    assert np.abs(steps(ex, fed, 1) - reference["p0_logits_padded"]).max() <= 1e-4
    encode(ex, [*source, 7])
    assert steps(ex, [0, 8, 3], 1).tobytes() != plain[1].tobytes()


@pytest.mark.parametrize("length", [-1, 0, 5, 1 << 30])
def test_a_length_that_no_source_has_is_refused(ex: oic.Executor, length: int) -> None:
    encode(ex, [3, 4])
    saved = ex.save()
    with pytest.raises(oic.StepError):
        ex.step("encode", source=np.ones((1, 4), np.int32), lengths=np.array([length], np.int32))
    assert ex.save() == saved


@pytest.mark.parametrize("backend", [oic.Synthesizer, oic.Simulator])
def test_every_row_of_a_ragged_batch_is_its_own_run(backend: type, made: Any, ex: oic.Executor, reference: Any) -> None:
    """All bits of the encoder, of logits and of keys and values; and the reference's ids."""
    sources = [r[:n].tolist() for r, n in zip(reference["b_input_ids"], reference["b_mask"].sum(1))]
    outputs, lengths = reference["b_output_ids"], reference["b_output_len"]
    count = int(lengths.max()) if backend is oic.Synthesizer else 4
    with built(made, len(sources), backend).make_executor() as together:
        encoded = encode(together, *sources)
        rows = [together.step(tokens=outputs[:, i : i + 1])["logits"][:, 0] for i in range(count - 1)]
        for b, source in enumerate(sources):
            own = encode(ex, source) if backend is oic.Synthesizer else None
            logits = np.stack([r[b] for r in rows])
            wanted = outputs[b, 1 : min(count, lengths[b])]
            assert logits[: len(wanted)].argmax(-1).tolist() == wanted.tolist()
            assert np.abs(logits[0] - reference["b_first_logits"][b]).max() <= 1e-4
            if own is not None:
                assert encoded[b, : len(source)].tobytes() == own[0].tobytes()
                assert logits.tobytes() == steps(ex, outputs[b, : count - 1], 1).tobytes()
                for name, n in (("K", count - 1), ("cross_V", len(source))):
                    assert together.fetch(name)[:, b, :, :n].tobytes() == ex.fetch(name)[:, 0, :, :n].tobytes()


def test_fork_save_and_load_at_every_position(library: Any, ex: oic.Executor, reference: Any) -> None:
    encode(ex, reference["p1_input_ids"])
    ids = reference["p1_output_ids"][:9]
    whole = steps(ex, ids, 1)
    encode(ex, reference["p1_input_ids"])
    for at in range(len(ids)):
        saved, rest = ex.save(), whole[at:].tobytes()
        with ex.fork() as other, library.make_executor() as third:
            third.load(saved)
            assert steps(other, ids[at:], 1).tobytes() == rest == steps(third, ids[at:], 1).tobytes()
        steps(ex, ids[at : at + 1], 1)


def test_every_cache_is_read(made: Any, ex: oic.Executor, reference: Any) -> None:
    """Where the keys or the values of one layer are zero, other logits come."""
    encode(ex, reference["p0_input_ids"])
    usual = steps(ex, [0, 8, 3], 1)
    model = oic.Model.open(made.model)
    tensors = {name: model.tensor(name) for name in model.names()}
    for name in ("0.SelfAttention.k", "0.SelfAttention.v", "1.EncDecAttention.k", "1.EncDecAttention.v"):
        key = f"decoder.block.1.layer.{name}.weight"
        other = oic.Model(tensors={**tensors, key: np.zeros_like(tensors[key])})
        with oic.Simulator(oic.parse_file(made.graph), other).make_executor() as changed:
            encode(changed, reference["p0_input_ids"])
            assert np.abs(steps(changed, [0, 8, 3], 3) - usual).max() > 1e-3


def test_outputs_are_taken_back_and_sources_stay(ex: oic.Executor, reference: Any) -> None:
    """At every position; a source that is read after an output leaves nothing of it."""
    source, fed = reference["p0_input_ids"], reference["p0_output_ids"][:-1]
    encode(ex, source)
    cache, states = oic.KVCache(ex), [ex.save()]
    for token in fed:
        steps(ex, [token], 1)
        states.append(ex.save())
    for k in reversed(range(len(states))):
        cache.truncate(cache.seq_len - k)
        assert ex.save() == states[k] and cache.keys(1).shape[2] == k
    steps(ex, fed, 3)
    assert ex.save() == states[-1]
    encode(ex, source)
    assert ex.save() == states[0]
