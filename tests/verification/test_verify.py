"""`oic verify`: what agrees passes, and every kind of difference is seen, at its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import oic
from importers import checkpoints
from importers.test_import import checkpoint
from oic.cli.main import main
from oic.cli.models import verified
from oic.verification import Case, read_cases, verify, write_cases
from oic.verification.outcome import changes
from paths import models_dir, needs_models

pytestmark = pytest.mark.xdist_group("verify-verification")

PROMPT, COUNT = [1, 5, 9, 2], 6


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("verify") / "in", eos_token_id=None)


@pytest.fixture(scope="module")
def generator(source: Path) -> Iterator[oic.Generator]:
    with oic.Generator(source) as made:
        yield made


@pytest.fixture(scope="module")
def case(source: Path) -> Case:
    """What the NumPy reference makes of the prompt, everything computed anew for every token."""
    made = oic.import_checkpoint(source, source.parent / "out")
    whole = list(PROMPT)
    with oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor() as ex:
        for _ in range(COUNT):
            ex.reset()
            logits = ex.step(tokens=np.array(whole, np.int32))["logits"]
            whole.append(int(logits[-1].argmax()))
    return Case(None, tuple(whole[:-1]), tuple(whole[len(PROMPT) :]), logits)


def run(source: Path, against: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["verify", str(source), "--against", str(against), *options])


def test_what_agrees_passes(source: Path, generator: oic.Generator, case: Case, tmp_path: Path) -> None:
    write_cases(tmp_path / "ref.npz", [case, case])
    assert [(c.source, c.fed, c.chosen) for c in read_cases(tmp_path / "ref.npz")] == [(None, case.fed, case.chosen)] * 2
    report = verify(generator, tmp_path / "ref.npz")
    assert report.passed and report.exact == 2 and report.error_rate == 0
    assert [len(o.errors) for o in report.outcomes] == [len(PROMPT) + COUNT - 1] * 2
    result = run(source.parent / "out", tmp_path / "ref.npz", "--json")  # an imported folder
    found = json.loads(result.output)
    assert result.exit_code == 0 and found["passed"] and found["exact_match"] == 1 and found["token_error_rate"] == 0
    assert found["prompts"][0]["ids"] == found["prompts"][0]["reference_ids"] == list(case.chosen)


def test_a_difference_of_logits_is_named_with_its_token(
    source: Path, generator: oic.Generator, case: Case, tmp_path: Path
) -> None:
    logits = case.logits.copy()
    logits[5, 0] += 0.001
    write_cases(tmp_path / "ref.npz", [Case(None, case.fed, case.chosen, logits)])
    result = run(source, tmp_path / "ref.npz")
    assert result.exit_code == 3
    assert f"the largest is after token 5 that the decoder reads, {case.fed[5]}" in result.output
    assert "1 of 1 prompts exact" in result.output and result.output.endswith("they differ\n")
    assert verify(generator, tmp_path / "ref.npz", within=0.01).passed


def test_a_logit_that_is_no_number_differs(generator: oic.Generator, case: Case, tmp_path: Path) -> None:
    logits = case.logits.copy()
    logits[2, 3] = np.nan
    write_cases(tmp_path / "ref.npz", [Case(None, case.fed, case.chosen, logits)])
    assert not verify(generator, tmp_path / "ref.npz", within=1e9).passed


def test_another_token_is_named_with_the_margin(generator: oic.Generator, case: Case, tmp_path: Path) -> None:
    """The last token is another: what is fed, and so the logits, agree."""
    other = (case.chosen[-1] + 1) % 24
    write_cases(tmp_path / "ref.npz", [Case(None, case.fed, (*case.chosen[:-1], other), case.logits)])
    report = verify(generator, tmp_path / "ref.npz")
    outcome = report.outcomes[0]
    top = np.sort(case.logits[-1])
    assert (outcome.divergent, outcome.distance, report.exact, report.passed) == (COUNT - 1, 1, 0, False)
    assert outcome.margin == float(top[-1] - top[-2])
    text = verified(report, as_json=False)
    assert f"new token {COUNT - 1} is {case.chosen[-1]}, the original's {other}; its two largest logits differ by" in text


def test_references_that_are_none(generator: oic.Generator, case: Case, tmp_path: Path) -> None:
    def saved(**arrays: object) -> Path:
        np.savez(tmp_path / "ref.npz", **{k: np.asarray(v) for k, v in arrays.items()})
        return tmp_path / "ref.npz"

    good = {"p0_prompt": PROMPT, "p0_greedy": case.chosen, "p0_logits": case.logits}
    for wrong, text in (
        ({"p0_prompt": None}, "there is no 'p0_prompt' and no 'p0_input_ids'"),
        ({"p0_greedy": None}, "has no 'p0_greedy'"),
        ({"p0_logits": None}, "has no 'p0_logits'"),
        ({"p0_logits": case.logits[:3]}, r"'p0_logits' is float32\[3, 24\], and should be floats \[9 or more, vocab\]"),
        ({"p0_logits": case.logits[:, :20]}, "logits are those of 20 tokens, the model's of 24"),
        ({"p0_greedy": np.float32(case.chosen)}, "'p0_greedy' should be a list of token ids"),
        ({"p0_prompt": [1, 99, 2, 3]}, "a token 99, outside 0 to 23"),
        ({"p0_prompt": [1] * 40, "p0_logits": np.zeros((60, 24), "f4")}, "more than the cache has room for"),
        ({"p0_input_ids": [1, 2], "p0_output_ids": [0, 1], "p0_prompt": None}, "nothing reads a source"),
    ):
        with pytest.raises(oic.OicError, match=text):
            verify(generator, saved(**{k: v for k, v in (good | wrong).items() if v is not None}))
    with pytest.raises(oic.OicError, match="has prompts of its own"):
        verify(generator, saved(**good), prompts=[[1]])
    with pytest.raises(oic.OicError, match="a tolerance is 0 or more"):
        verify(generator, saved(**good), within=float("nan"))
    with pytest.raises(oic.OicError, match="no such file"):
        verify(generator, tmp_path / "none.npz")


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_changes(a: str, b: str) -> None:
    """Against the definition, by recursion."""

    def least(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(least(i - 1, j) + 1, least(i, j - 1) + 1, least(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    assert changes(a, b) == least(len(a), len(b))


@needs_models
@pytest.mark.parametrize(("name", "tokens"), [("gpt2-tiny", 37), ("llama-tiny", 37), ("byt5-tiny-random", 48)])
def test_models_agree_with_their_references(name: str, tokens: int) -> None:
    folder = (models_dir() or Path()) / name
    report = verify(folder, folder / "ref.npz")
    assert report.passed and sum(len(o.chosen) for o in report.outcomes) == tokens


def test_against_the_library(generator: oic.Generator, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    report = verify(generator, "transformers", prompts=[PROMPT, [3]], count=COUNT, save=tmp_path / "ref.npz")
    assert report.passed and [len(o.chosen) for o in report.outcomes] == [COUNT] * 2
    assert verify(generator, tmp_path / "ref.npz").passed
    with pytest.raises(oic.OicError, match="a token 24, outside 0 to 23"):
        verify(generator, "transformers", prompts=[[24]])
    with pytest.raises(oic.OicError, match="a prompt of 3 and 15 new tokens: there is room for 16"):
        verify(generator, "transformers", prompts=[[1, 2, 3]], count=15)
    assert verify(generator, "transformers", prompts=[[1, 2, 3]], count=14).passed
    # Random prompts, as long as there is room; weights of variance 1 make the errors of both sides large.
    assert verify(generator, "transformers", count=50, within=1e-3).passed


@pytest.mark.parametrize("family", ["mamba", "falcon_mamba", *checkpoints.HYBRIDS])
def test_a_state_of_fixed_size_against_the_library(family: str, tmp_path: Path) -> None:
    """What the library hands from step to step has another name there; of layers of several kinds it is both."""
    pytest.importorskip("transformers")
    more = {} if family in checkpoints.HYBRIDS else {"intermediate_size": 32}
    source = checkpoints.checkpoint(tmp_path / "in", family, expand=2, **more)
    assert verify(source, "transformers", prompts=[PROMPT, [3]], count=COUNT, within=1e-3).passed
