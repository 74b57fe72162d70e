"""The state of imported decoders: split anywhere, forked, cut, saved and loaded anywhere, they go on in the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from batch import build_together
from importers.checkpoints import FAMILIES, HYBRIDS, checkpoint
from oic.importers import import_checkpoint

IDS = np.array([3, 17, 5, 0, 8, 21, 23, 17, 2, 11], np.int32)
COUNT = len(IDS)
WITH_TABLES = [family for family in FAMILIES if "mamba" not in family and family not in HYBRIDS]
"""The others are in test_recurrent.py."""


@pytest.mark.parametrize("family", WITH_TABLES)
def test_steps_are_alike_however_they_are_cut(family: str, tmp_path: Path) -> None:
    imported = import_checkpoint(checkpoint(tmp_path / "in", family), tmp_path / "out", prefill=COUNT)
    program = oic.Synthesizer(oic.parse_file(imported.graph), oic.Model.open(imported.model))
    build_together([program], tmp_path, "-O0")  # bits are the same at every level
    with program.make_executor() as session:
        rows, states = one_by_one(session)
        assert np.isfinite(rows).all() and len({row.tobytes() for row in rows}) == COUNT
        assert_prefill_is_steps(session, rows, states)
        assert_states_go_on(session, rows, states)


def one_by_one(executor: oic.Executor) -> tuple[np.ndarray, list[bytes]]:
    """Logits after every token, and the state before the first and after each."""
    executor.reset()
    rows, states = [], [executor.save()]
    for token in IDS:
        rows.append(executor.step(tokens=[token])["logits"])
        states.append(executor.save())
    return np.concatenate(rows), states


def assert_prefill_is_steps(session: oic.Executor, rows: np.ndarray, states: list[bytes]) -> None:
    """N tokens at once, or in two parts, by either entry: the logits and the state of N steps."""
    for k in range(1, COUNT + 1):
        session.reset()
        assert session.step(tokens=IDS[:k])["logits"].tobytes() == rows[:k].tobytes()
        assert session.save() == states[k]
        if k < COUNT:
            assert session.step(tokens=IDS[k:])["logits"].tobytes() == rows[k:].tobytes()
            assert session.save() == states[-1]
        session.reset()
        assert session.step("prefill", tokens=IDS[:k])["last_logits"].tobytes() == rows[k - 1].tobytes()
        assert session.save() == states[k]


def assert_states_go_on(session: oic.Executor, rows: np.ndarray, states: list[bytes]) -> None:
    """From every position: of a fork, of a session cut to it, and of one that loaded it."""
    session.load(states[-1])
    whole = oic.KVCache(session)
    keys = [whole.keys(layer) for layer in range(2)]
    with session.fork() as loaded:
        for k in range(COUNT):
            loaded.load(states[k])
            with session.fork() as cut, loaded.fork() as fork:
                oic.KVCache(cut).truncate(COUNT - k)
                for other in (cut, fork, loaded):
                    assert other.save() == states[k]
                    cache = oic.KVCache(other)
                    assert cache.seq_len == k
                    assert all(cache.keys(i).tobytes() == keys[i][:k].tobytes() for i in range(2))
                    assert other.step(tokens=IDS[k:])["logits"].tobytes() == rows[k:].tobytes()
                    assert other.save() == states[-1]
    assert session.save() == states[-1]
