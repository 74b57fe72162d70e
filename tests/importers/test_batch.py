"""Decoders with a batch: rows at positions of their own, each with the bits of a run of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from importers.checkpoints import checkpoint
from oic.generation.feeding import DecoderFeed
from oic.generation.text_session import TextSession
from oic.importers import import_checkpoint
from oic.operators.late import late_places

pytestmark = pytest.mark.xdist_group("batch-importers")

VOCAB, ROOM, BATCH = 24, 16, 3
FAMILIES = ("gpt_neox", "gemma2", "olmo2", "opt", "phi3", "hunyuan_v1_dense", "mixtral", "qwen2_moe")
"""Heads beside each other, partial rotary positions; windows, caps, two kinds of layers; norms of q and k; positions from
a row on; turned elements that are stronger; norms behind rotary positions; experts, which tokens of all rows share."""


class Pair:
    """One model with a batch, and alone."""

    def __init__(self, folder: Path, family: str) -> None:
        source = checkpoint(folder / "in", family)
        self.many, self.one = (
            import_checkpoint(source, folder / name, batch=batch) for name, batch in (("many", BATCH), ("one", None))
        )

    def graphs(self) -> list[tuple[oic.Graph, oic.Model]]:
        return [(oic.parse_file(made.graph), oic.Model.open(made.model)) for made in (self.many, self.one)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Learned positions, compiled."""
    graphs = Pair(tmp_path_factory.mktemp("gpt2"), "gpt2").graphs()
    many, one = (oic.Synthesizer(*graph).build().make_executor() for graph in graphs)
    with many, one:
        yield many, one


def prompts(*lengths: int) -> list[np.ndarray]:
    rng = np.random.default_rng(len(lengths))
    return [rng.integers(0, VOCAB, n, dtype=np.int32) for n in lengths]


def fed(ex: oic.Executor, parts: list[np.ndarray], entry: str = "entry", width: int = 0, behind: int = 7) -> Any:
    """The outputs of a step that takes these tokens of each row; behind them lies another token."""
    lengths = np.array([len(p) for p in parts], np.int32)
    tokens = np.full((len(parts), max(width, *map(len, parts))), behind, np.int32)
    for row, part in zip(tokens, parts):
        row[: len(part)] = part
    return ex.step(entry, tokens=tokens, lengths=lengths)


def alone(ex: oic.Executor, row: np.ndarray) -> np.ndarray:
    ex.reset()
    return ex.step(tokens=row)["logits"]


CUTS = {
    "at once": lambda rows: [rows],
    "one by one": lambda rows: [[r[i : i + 1] for r in rows] for i in range(max(map(len, rows)))],
    "of every length": lambda rows: [[r[:4] for r in rows], [r[4:5] if i else r[4:4] for i, r in enumerate(rows)],
                                     [r[5:] if i else r[4:] for i, r in enumerate(rows)]],
}  # fmt: skip


@pytest.mark.parametrize("cut", CUTS)
def test_every_row_is_its_own_run_in_all_bits(pair: Any, cut: str) -> None:
    many, one = pair
    rows = prompts(9, 0, 14)
    many.reset()
    found: list[list[np.ndarray]] = [[] for _ in rows]
    for parts in CUTS[cut](rows):
        logits = fed(many, parts)["logits"]
        for kept, part, row in zip(found, parts, logits):
            kept.append(row[: len(part)])
    assert many.fetch("pos").tolist() == [len(r) for r in rows]
    for b, row in enumerate(rows):
        if len(row):
            assert np.concatenate(found[b]).tobytes() == alone(one, row).tobytes()
            for name in ("K", "V"):
                assert many.fetch(name)[:, b, : len(row)].tobytes() == one.fetch(name)[:, : len(row)].tobytes()


def test_a_prompt_gives_the_last_logits_of_each_row(pair: Any) -> None:
    many, one = pair
    rows = prompts(5, 1, 11)
    many.reset()
    last = fed(many, rows, "prefill")
    for b, row in enumerate(rows):
        assert last["last_logits"][b].tobytes() == alone(one, row)[-1].tobytes()
    rows = prompts(3, 0, 2)
    assert fed(many, rows, "prefill")["last"].tolist()[1] == 0  # a row without tokens has no last one
    assert many.fetch("pos").tolist() == [8, 1, 13]


def test_one_row_begins_anew(tmp_path: Path) -> None:
    """By the entry that `docs/models.md` adds."""
    made = Pair(tmp_path, "mixtral").many
    restart = "dynamic { row: i32; } block restart @entry { cache.reset pos[row]; }\n"
    text = made.graph.read_text().replace("  block entry", f"{restart}  block entry", 1)
    with oic.Simulator(oic.parse(text), oic.Model.open(made.model)).make_executor() as ex:
        first = fed(ex, prompts(3, 3, 3))["logits"]
        ex.step("restart", row=1)
        again = fed(ex, prompts(3, 3, 3))["logits"]
        assert ex.fetch("pos").tolist() == [6, 3, 6]
        assert [bool((a == b).all()) for a, b in zip(first, again)] == [False, True, False]


def test_choices_of_experts_are_as_many_as_are_sorted_exactly(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", "mixtral", max_position_embeddings=1 << 24)
    with pytest.raises(oic.OicError, match="choose 16,777,218 experts, and 16,777,216 at most"):
        import_checkpoint(source, tmp_path / "out", prefill=(1 << 23) + 1)
    import_checkpoint(source, tmp_path / "out", prefill=1 << 23)


def test_what_is_behind_a_length_has_no_effect(pair: Any) -> None:
    many, _ = pair
    rows, states = prompts(4, 2, 6), []
    for behind, width in ((7, 0), (3, ROOM)):
        many.reset()
        fed(many, rows, behind=behind, width=width)
        states.append(many.save())
    assert states[0] == states[1]


def test_a_row_that_is_full_takes_no_more_and_the_others_go_on(pair: Any) -> None:
    many, one = pair
    rows = prompts(ROOM, 3, 6)
    many.reset()
    fed(many, rows)
    saved = many.save()
    for parts in (prompts(1, 0, 0), prompts(0, ROOM - 2, 1)):
        with pytest.raises(oic.StepError) as caught:
            fed(many, parts)
        assert caught.value.status == "OIC_ERR_CACHE_FULL" and many.save() == saved
    more = prompts(0, 2, 1)
    logits = fed(many, more, width=8)["logits"]
    for b in (1, 2):
        assert logits[b, : len(more[b])].tobytes() == alone(one, np.concatenate([rows[b], more[b]]))[len(rows[b]) :].tobytes()


@pytest.mark.parametrize("length", [-1, 3, 1 << 30])
def test_a_length_that_its_row_does_not_have_is_refused(pair: Any, length: int) -> None:
    many, _ = pair
    many.reset()
    saved = many.save()
    with pytest.raises(oic.StepError):
        many.step(tokens=np.ones((BATCH, 2), np.int32), lengths=np.array([1, length, 1], np.int32))
    assert many.save() == saved


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_goes_on_row_by_row(family: str, tmp_path: Path) -> None:
    """In the interpreter; and nothing can be refused once the state has changed."""
    many, one = (oic.Simulator(*graph) for graph in Pair(tmp_path, family).graphs())
    assert not late_places(many.program.planned)
    rows = prompts(6, 2, 0)
    with many.make_executor() as together, one.make_executor() as single:
        first, then = fed(together, [r[:4] for r in rows])["logits"], fed(together, [r[4:] for r in rows])["logits"]
        for b in (0, 1):
            logits = np.concatenate([first[b, : len(rows[b][:4])], then[b, : len(rows[b][4:])]])
            assert np.abs(logits - alone(single, rows[b])).max() < 1e-5


def test_a_prompt_generates_as_alone(pair: Any) -> None:
    texts = []
    for session in pair:
        feed, reading = DecoderFeed(session.interface, {}, "gpt2"), TextSession(session)
        logits, text = feed.last(reading, feed.start(reading, [5, 2, 9])), []
        while logits is not None:
            text.append(int(logits.argmax()))
            logits = feed.next(reading, text[-1])
        texts.append(text)
    assert texts[0] == texts[1] and len(texts[0]) == ROOM - 2


def test_a_family_without_an_axis_for_it_has_no_batch(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", "gpt2")
    with pytest.raises(oic.OicError, match="a batch of 0: 1 or more"):
        import_checkpoint(source, tmp_path / "out", batch=0)
