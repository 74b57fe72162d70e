"""What holds for every imported encoder–decoder, on small random ones: no reference is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from importers.seq2seq import checkpoint
from oic.importers import import_checkpoint

ROOM = 12
SOURCES = ([3, 9, 4, 17, 5, 5, 20, 1], [6, 11, 2], [8])


@pytest.fixture(scope="module", params=["mt5", "bart"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    made = import_checkpoint(checkpoint(folder / "in", request.param), folder / "out")
    return oic.Synthesizer(oic.parse_file(made.graph), oic.Model.open(made.model), sizes={"B": 3}).build()


@pytest.fixture
def ex(library: Any) -> Iterator[oic.Executor]:
    with library.make_executor() as executor:
        yield executor


def encode(ex: oic.Executor, *sources: list[int], width: int = 0) -> np.ndarray:
    """Encode sources, padded behind with 7."""
    width = max(width, *map(len, sources))
    rows = [[*s, *[7] * (width - len(s))] for s in sources]
    return ex.step("encode", source=rows, lengths=[len(s) for s in sources])["encoded"]


def step(ex: oic.Executor, *rows: list[int]) -> np.ndarray:
    return ex.step(tokens=np.array(rows, np.int32))["logits"]


def test_rows_of_a_ragged_batch_are_their_own_runs(ex: oic.Executor) -> None:
    """Whatever lies behind their lengths, whatever the other rows are, however the output is cut."""
    outputs = [[2, 5, 19, 3], [4, 4, 0, 9], [1, 2, 3, 4]]
    encoded = encode(ex, *SOURCES)
    together = step(ex, *outputs)
    tables = {name: ex.fetch(name) for name in ("K", "V", "cross_K", "cross_V")}
    for b, (source, output) in enumerate(zip(SOURCES, outputs, strict=True)):
        n = len(source)
        for width in (0, ROOM):
            own = encode(ex, source, source, source, width=width)
            single = np.concatenate([step(ex, *[[token]] * 3) for token in output], axis=1)
            for row in range(3):
                assert own[row, :n].tobytes() == encoded[b, :n].tobytes()
                assert single[row].tobytes() == together[b].tobytes()
                for name, table in tables.items():
                    used = n if name.startswith("cross") else len(output)
                    assert ex.fetch(name)[:, row, :, :used].tobytes() == table[:, b, :, :used].tobytes()


def test_a_source_is_attended_to(ex: oic.Executor) -> None:
    encode(ex, *SOURCES)
    logits = step(ex, [2], [2], [2])
    encode(ex, SOURCES[0], [6, 11, 3], SOURCES[2])
    other = step(ex, [2], [2], [2])
    assert [np.array_equal(a, b) for a, b in zip(logits, other, strict=True)] == [True, False, True]


def test_tables_of_the_source_are_written_by_encode_alone(ex: oic.Executor) -> None:
    encode(ex, *SOURCES)
    before = [ex.fetch(n).tobytes() for n in ("cross_K", "cross_V", "source_lengths")]
    step(ex, [2, 3], [2, 3], [2, 3])
    assert [ex.fetch(n).tobytes() for n in ("cross_K", "cross_V", "source_lengths")] == before
    assert ex.fetch("pos") == 2
    encode(ex, *SOURCES)
    assert ex.fetch("pos") == 0 and not ex.fetch("K").any()


def test_the_room_of_outputs_is_refused_exactly(ex: oic.Executor) -> None:
    encode(ex, *SOURCES)
    step(ex, *[[3] * (ROOM - 1)] * 3)
    for count in (2, 1, 1):
        if count == 1 and ex.fetch("pos") == ROOM - 1:
            step(ex, [4], [5], [6])
        saved = ex.save()
        with pytest.raises(oic.StepError) as caught:
            step(ex, *[[3] * count] * 3)
        assert caught.value.status == "OIC_ERR_CACHE_FULL" and ex.save() == saved


@pytest.mark.parametrize("lengths", [[3, 4, 5], [3, -1, 4], [1 << 30, 1, 1], [4, 0, 4]])
def test_lengths_that_no_source_has_are_refused(ex: oic.Executor, lengths: list[int]) -> None:
    encode(ex, *SOURCES)
    saved = ex.save()
    with pytest.raises(oic.StepError):
        ex.step("encode", source=np.ones((3, 4), np.int32), lengths=lengths)
    with pytest.raises(oic.StepError):
        ex.step("encode", source=np.full((3, 4), 24, np.int32), lengths=[4, 4, 4])
    with pytest.raises(oic.StepError):
        ex.step("encode", source=np.ones((3, ROOM + 1), np.int32), lengths=[4, 4, 4])
    assert ex.save() == saved


def test_a_step_before_a_source_is_refused(library: Any) -> None:
    """In a new session, and after a reset."""
    with library.make_executor() as ex:
        for _ in range(2):
            with pytest.raises(oic.StepError, match="'cross_K.s': -1 is below 0") as caught:
                step(ex, [2], [2], [2])
            assert caught.value.status == "OIC_ERR_INDEX" and ex.fetch("pos") == 0
            encode(ex, *SOURCES)
            step(ex, [2], [2], [2])
            ex.reset()


def test_outputs_go_on_alike_from_every_position(ex: oic.Executor, library: Any) -> None:
    """In a fork, after saving and loading, and after tokens are taken back."""
    fed = [[2, 7, 1, 8, 2, 8], [3, 1, 4, 1, 5, 9], [0, 0, 0, 0, 0, 0]]
    encode(ex, *SOURCES)
    whole = step(ex, *fed)
    for at in range(len(fed[0])):
        rest = [row[at:] for row in fed]
        ex.truncate(len(rest[0]))
        with ex.fork() as other, library.make_executor() as third:
            third.load(ex.save())
            for executor in (other, third, ex):
                assert step(executor, *rest).tobytes() == whole[:, at:].tobytes()


REFUSED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "activation": ("t5", {"feed_forward_proj": "swishy"}, "import-unsupported", "'feed_forward_proj' is 'swishy'"),
    "gate": ("t5", {"feed_forward_proj": "two-relu"}, "import-unsupported", "'gated-' and one"),
    "odd buckets": ("t5", {"relative_attention_num_buckets": 7}, "import-unsupported", "an even number"),
    "near distances": ("t5", {"relative_attention_max_distance": 4}, "import-unsupported", "more than half of the 8"),
    "more layers": ("t5", {"num_decoder_layers": 2}, "import-weights", "missing: decoder.block.1.layer.0"),
    "untied": ("t5", {"tie_word_embeddings": False}, "import-weights", "missing: lm_head.weight"),
    "other sizes": ("mt5", {"d_kv": 6}, "model-shape", "[15, 16]"),
    "heads": ("bart", {"encoder_attention_heads": 3}, "import-unsupported", "a divisor of 'd_model', 16"),
    "norms after": ("mbart", {"model_type": "bart"}, "import-weights", "not asked for: model.decoder.layer_norm.bias"),
    "norms before": ("bart", {"model_type": "mbart"}, "import-weights", "missing: model.decoder.layer_norm.bias"),
    "other family": ("bart", {"model_type": "pegasus"}, "import-family", "'pegasus', a family that is not known"),
    "room": ("bart", {"max_position_embeddings": 20}, "model-shape", "[14, 16]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named(case: str, tmp_path: Path) -> None:
    family, settings, slug, text = REFUSED[case]
    with pytest.raises(oic.OicError) as caught:
        import_checkpoint(checkpoint(tmp_path / "in", family), tmp_path / "out", settings=settings)
    found = caught.value.diagnostics[0]
    assert found.slug == slug and text in f"{found.message} {found.hint}"


def test_the_reference_agrees_with_itself_however_it_is_fed(tmp_path: Path) -> None:
    for family in ("t5", "mbart"):
        made = import_checkpoint(checkpoint(tmp_path / family, family), tmp_path / f"{family}_out")
        maker = oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model), sizes={"B": 2})
        with maker.make_executor() as ex:
            encode(ex, *SOURCES[:2])
            at_once = step(ex, [2, 5, 9], [3, 3, 3])
            encode(ex, *SOURCES[:2], width=ROOM)
            parts = [step(ex, *[row[i : i + 1] for row in ([2, 5, 9], [3, 3, 3])]) for i in range(3)]
            assert np.abs(np.concatenate(parts, axis=1) - at_once).max() < 1e-4


def test_tokens_that_outputs_start_with_are_tokens(tmp_path: Path) -> None:
    for key in ("decoder_start_token_id", "forced_bos_token_id"):
        with pytest.raises(oic.OicError, match=f"'{key}' is 24, and ids are 0 to 23"):
            oic.Generator(checkpoint(tmp_path / key, "bart", **{key: 24}))


def test_sizes_are_told_by_shapes(tmp_path: Path) -> None:
    """Without a configuration, but for what shapes do not tell."""
    told: dict[str, dict[str, Any]] = {
        "t5": {"feed_forward_proj": "relu", "tie_word_embeddings": True, "relative_attention_max_distance": 9},
        "bart": {"model_type": "bart", "encoder_attention_heads": 2, "decoder_attention_heads": 4, "scale_embedding": True},
    }
    for family, settings in told.items():
        whole = import_checkpoint(checkpoint(tmp_path / family, family), tmp_path / "a", context=12)
        (tmp_path / family / "config.json").unlink()
        weights = tmp_path / family / "model.safetensors"
        with pytest.raises(oic.OicError, match="feed_forward_proj|model_type"):
            import_checkpoint(weights, tmp_path / "b", context=12)
        if family == "bart":  # all that is to be said at once
            with pytest.raises(oic.OicError, match="--set encoder_attention_heads=… --set decoder_attention_heads=…"):
                import_checkpoint(weights, tmp_path / "b", settings={"model_type": family})
        assert import_checkpoint(weights, tmp_path / "b", context=12, settings=settings).graph.read_text() == whole.graph.read_text()
