"""Random graphs: every pass keeps the answer, and so does the C, under sanitizers.

A longer campaign is `python -m oic.difftest.campaign --minutes N --seed S`, which also makes what it
finds small.
"""

from __future__ import annotations

import pytest

from oic.difftest import campaign
from oic.difftest.checks import check, compiled, steps
from oic.difftest.generate import Options, generate
from oic.difftest.reduce import reduced
from oic.memory import sharing
from oic.passes import materialize

PASSES = range(20)
IN_C = range(100, 108)


@pytest.mark.parametrize("seed", PASSES)
def test_passes_keep_the_answer(seed: int) -> None:
    """Verified, printed, parsed and run after every pass; planned with and without reuse."""
    text = generate(seed)
    program = compiled(text)
    if program is None:
        pytest.skip("the language refuses this text")
    fault = check(program, steps(program, seed))
    assert fault is None, f"{fault}\n{text}"


def test_c_keeps_the_answer() -> None:
    """Under AddressSanitizer and UBSan, over memory without a byte to spare."""
    programs = [(seed, p) for seed in IN_C if (p := compiled(generate(seed))) is not None]
    tally = campaign.Tally()
    for (seed, _), fault in zip(programs, campaign.in_c(programs, tally), strict=True):
        assert fault is None, f"seed {seed}: {fault}"
    assert tally.steps == 5 * len(programs) > 0


def test_the_same_seed_gives_the_same_graph() -> None:
    assert generate(7) == generate(7) != generate(8)
    plain = generate(7, Options(extents=False, state=False))
    assert "@max" not in plain and "persistent" not in plain


def test_most_texts_compile() -> None:
    assert sum(compiled(generate(seed)) is not None for seed in range(20)) > 17


# What each of these keeps from happening must be found when it is taken out; the seeds are among the
# first that show it, and others are as good.
MUTANTS = {
    "a buffer shared too early": (sharing.Sharing, "clash", lambda *_: False, (11, 12)),
    "written over an operand read elsewhere": (sharing, "over", lambda *_: True, (12, 13)),
    "a view of state kept over a write": (materialize, "_elsewhere", lambda *_: True, (3, 8)),
    "an entry seen before it is stored": (sharing.Sharing, "_meets", lambda *_: False, range(40)),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_a_broken_pass_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, broken, seeds = MUTANTS[what]
    assert not any(_fails(generate(seed), seed) for seed in seeds)
    monkeypatch.setattr(module, name, broken)
    assert any(_fails(generate(seed), seed) for seed in seeds)


def _fails(text: str, seed: int) -> bool:
    program = compiled(text)
    return program is not None and check(program, steps(program, seed)) is not None


def test_what_fails_is_made_small() -> None:
    text = generate(3)
    small = reduced(text, lambda t: compiled(t) is not None and "neg(" in t)
    assert "neg(" in small and compiled(small) is not None
    assert small.count("\n") <= 12 < text.count("\n")


def test_a_campaign_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--seed", "5", "--count", "2", "--no-c"]) == 0
    assert "seeds 5 to 6: 2 graphs checked" in capsys.readouterr().out


def test_a_campaign_prints_what_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing.Sharing, "clash", lambda *_: False)
    first = next(seed for seed in MUTANTS["a buffer shared too early"][3] if _fails(generate(seed), seed))
    assert campaign.main(["--seed", str(first), "--count", "1", "--no-c"]) == 3
    said = capsys.readouterr().out
    assert f"--seed {first} --count 1" in said and "block entry" in said
