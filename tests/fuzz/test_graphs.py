"""Random graphs of everything have everything in them: no part of the generator may fall silent."""

from __future__ import annotations

from collections import Counter

import pytest

from oic.dtypes import ALL
from oic.operators import catalog
from oic.operators.base import Operator
from tests.fuzz import campaign
from tests.fuzz.checks import check, compiled, program_of, steps
from tests.fuzz.coverage import Coverage
from tests.fuzz.graphs import EVERYTHING, generate
from tests.fuzz.operator_catalog import accepted_by
from tests.fuzz.variants import retyped

MANY = range(320)
RUN = range(700, 705)


def test_examples_reach_every_element_type_of_every_operator() -> None:
    """What is derived from examples and type rules is what OPS says."""
    assert {n: frozenset(retyped(n)) for n in catalog()} == {n: accepted_by(cls) for n, cls in catalog().items()}


SEEN = (
    "@ref(", "@pattern(", "dep after", "cache.reset T0[", "[300", "257", "@ring", "@auto_dim", "@entry",
    "yield", "barrier;", "cache.decrement", ", ) >>", "/2]", "N/2", ")%", "[0..2];",
    '"w.start"', "S0[", "return;\n        }", "+N];", "cache.increment (", "..0+1, ",
)  # fmt: skip

LOWERED = [name for name, cls in catalog().items() if cls.expanded is not Operator.expanded]
"""Operators that the IR does not have: lowering puts others in their place."""


def test_everything_is_made() -> None:
    """Every operator, element type, statement and kind of weight; nearly all texts compile."""
    coverage, seen, refused = Coverage(), Counter[str](), []
    for text in map(generate, MANY):
        program = compiled(text)
        seen.update(what for what in SEEN if what in text)
        seen.update(name for name in LOWERED if f"op {name}(" in text)
        if program is None:
            refused.append(text)
        else:
            coverage.add(program.module)
    made = {name for name, _ in coverage.cells} | {name for name in LOWERED if seen[name] >= 3}
    assert made == set(catalog()), set(catalog()) - made
    assert {dtype for _, dtype in coverage.cells} == set(ALL)
    assert len(coverage.cells) > 450
    assert all(seen[what] >= 3 for what in SEEN), seen
    assert len(refused) <= len(MANY) // 12, refused[0]


@pytest.mark.parametrize("seed", RUN)
def test_passes_and_memory_keep_the_answer(seed: int) -> None:
    text, program = program_of(seed, EVERYTHING, generate)
    if program is None:
        pytest.skip("the language refuses this text")
    fault = check(program, steps(program, seed))
    assert fault is None, f"{fault}\n{text}"


def test_c_gives_the_answer_and_the_campaign_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--seed", "20", "--count", "2", "--no-passes"]) == 0
    said = capsys.readouterr().out
    for part in ("attention ", "operators ", "hoist-checks ", "refused steps", "graphs a second", "2 compiled", "states "):
        assert part in said


def test_the_same_seed_gives_the_same_graph() -> None:
    assert generate(7) == generate(7) != generate(8)
