"""Random graphs: every pass keeps the answer, every stage verifies, prints and parses.

A longer campaign is `python -m tests.fuzz.campaign --minutes N --seed S`, which also makes what it
finds small.  Memory has random tests of its own: `tests/memory/test_random_memory.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from oic.memory import sharing
from tests.fuzz import campaign
from tests.fuzz.checks import check_memory, check_passes, compiled, program_of, steps
from tests.fuzz.generate import Options, generate
from tests.fuzz.reduce import reduced

PASSES = range(12)


@pytest.mark.parametrize("seed", PASSES)
def test_passes_keep_the_answer(seed: int) -> None:
    """Verified, printed, parsed and run after every pass."""
    text, program = program_of(seed)
    if program is None:
        pytest.skip("the language refuses this text")
    fault = check_passes(program, steps(program, seed))
    assert fault is None, f"{fault}\n{text}"


def test_the_same_seed_gives_the_same_graph() -> None:
    assert generate(7) == generate(7) != generate(8)
    plain = generate(7, Options(extents=False, state=False))
    assert "@max" not in plain and "persistent" not in plain


@pytest.mark.parametrize("seed", range(3))
def test_held_values_each_take_memory_and_keep_the_answer(seed: int) -> None:
    text = generate(seed, Options(statements=60, held=0.7))
    program = compiled(text)
    assert program is not None and program.planned.plan is not None
    assert len(program.planned.plan.space("arena")) > 30
    fault = check_passes(program, steps(program, seed))
    assert fault is None, f"{fault}\n{text}"


def test_most_texts_compile() -> None:
    assert sum(compiled(generate(seed)) is not None for seed in range(20)) > 17


def test_a_graph_that_only_refuses_is_mended() -> None:
    """Statements that refuse most steps are taken out, and no others."""
    mended = 0
    for seed in range(20):
        text, whole = program_of(seed)[0].splitlines(), generate(seed).splitlines()
        left = [line for line in whole if line not in text]
        assert all(line.strip().endswith(";") for line in left)
        mended += bool(left)
    assert 0 < mended < 20


def test_what_fails_is_made_small() -> None:
    text = generate(3)
    small = reduced(text, lambda t: compiled(t) is not None and "neg(" in t)
    assert "neg(" in small and compiled(small) is not None
    assert small.count("\n") <= 12 < text.count("\n")


def test_a_campaign_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--figures", "--seed", "5", "--count", "2", "--no-c", "--features"]) == 0
    said = capsys.readouterr().out
    assert "seeds 5 to 6: 2 graphs checked" in said
    assert "view of state" in said


def test_a_campaign_prints_what_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A small text, the command that makes it again, exit status 1; a file of it fails, too."""
    monkeypatch.setattr(sharing.Sharing, "clash", lambda *_: False)
    assert campaign.main(["--figures", "--seed", "3", "--count", "1", "--no-c", "--no-passes"]) == 1
    said = capsys.readouterr().out
    assert "--seed 3 --count 1" in said and "block entry" in said
    start = said.index("graph random3")
    small = tmp_path / "small.oi"
    small.write_text(said[start : said.index("\n}\n", start) + 3])
    assert small.read_text().count("\n") < 0.5 * program_of(3)[0].count("\n")
    assert campaign.main([str(small), "--seed", "3", "--no-c", "--no-passes"]) == 1
    monkeypatch.undo()
    program = compiled(small.read_text())
    assert program is not None and check_memory(program, steps(program, 3)) is None
