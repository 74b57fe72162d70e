"""Whatever the text, the whole compiler takes it or refuses it with diagnostics.

A longer campaign: `python -m tests.fuzz.sources --minutes 5 --seed 1 examples tests`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.source_mutations import WORDS
from tests.fuzz.sources import attempt, failure, sources, whole

ROOT = Path(__file__).resolve().parents[2]
TEXTS = 30  # of each group


@cache
def corpus() -> list[str]:
    """The graphs of the examples and the tests that compile."""
    here = ROOT / "tests" / "lower"
    return whole(sources([ROOT / "examples" / "tinystories", here / "test_lowering.py"]))


def test_the_corpus_is_not_empty() -> None:
    assert len(corpus()) >= 30


@pytest.mark.parametrize("group", range(10))
def test_nothing_but_refusals(group: int) -> None:
    for seed in range(group * TEXTS, (group + 1) * TEXTS):
        report = failure(corpus(), seed)
        assert report is None, report


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_words(words: list[str]) -> None:
    attempt("volatile { x: f32; } block entry { " + " ".join(words) + " }", 0)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    attempt(text, 0)
