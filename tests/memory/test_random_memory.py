"""Planned memory gives the answer of GRAPH: on random graphs with all that makes sharing hard.

hypothesis draws the graphs and their steps: entries, sizes and inputs, some of them refused, the state
saved, loaded and reset in between.  The interpreter runs them over the byte arena, planned with and
without reuse and with red zones, and watched byte by byte; C runs them under AddressSanitizer and
UBSan, its arena noise before every step.  A graph that fails is made small and shown as source.

A longer campaign is `python -m tests.fuzz.campaign --count N --seed S`.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty

from oic.driver import Program
from oic.ir.liveness import Liveness
from oic.ir.module import Buffer
from oic.memory import planner, sharing, state_regions
from tests.fuzz import memory_plans as plans
from tests.fuzz.campaign import Tally, in_c
from tests.fuzz.checks import check_memory, compiled, program_of, steps
from tests.fuzz.generate import Options
from tests.fuzz.reduce import reduced

# Small graphs are made by `reduced`, not by smaller seeds; each run draws the same.
FIXED = settings(
    derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


class Case:
    """A graph, and the seed of its steps.  No dataclass: of one hypothesis prints the fields, whatever its repr."""

    def __init__(self, seed: int, text: str, program: Program) -> None:
        self.seed, self.text, self.program = seed, text, program

    def __repr__(self) -> str:
        return f"seed {self.seed}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    seed = draw(st.integers(0, 2**31))
    options = Options(
        statements=draw(st.integers(8, 30)),
        depth=draw(st.integers(1, 3)),
        extents=draw(st.sampled_from([True, True, False])),
        consumers=draw(st.booleans()),
        entries=draw(st.integers(0, 2)),
    )
    text, program = program_of(seed, options)
    assume(program is not None)
    assert program is not None
    return Case(seed, text, program)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_printed_of_a_failure_is_short(seed: int) -> None:
    """hypothesis prints what it gave, pytest what functions were given: a program was 260 MB of text, or all memory."""
    text, program = program_of(seed, Options(statements=30, depth=3, extents=True, consumers=True, entries=2))
    assert program is not None
    assert len(pretty(Case(seed, text, program))) < 100
    assert len(repr(program)) + len(repr(program.planned)) < 4_000_000


@settings(FIXED, max_examples=25)
@given(cases())
def test_planned_memory_gives_the_answer_of_graph(case: Case) -> None:
    fault = check_memory(case.program, steps(case.program, case.seed))
    if fault is None:
        return

    def fails(text: str) -> bool:
        smaller = compiled(text)
        found = smaller and check_memory(smaller, steps(smaller, case.seed))
        return found is not None and found.kind == fault.kind

    pytest.fail(f"{fault}\n{reduced(case.text, fails, 300)}")


@settings(FIXED, max_examples=1)
@given(st.lists(cases(), min_size=5, max_size=5, unique_by=lambda case: case.seed))
def test_c_gives_the_answer_of_graph(some: list[Case]) -> None:
    tally = Tally()
    for case, fault in zip(some, in_c([(c.seed, c.program) for c in some], tally), strict=True):
        assert fault is None, f"{fault}\n{case.text}"
    assert tally.steps >= 7 * len(some)


def _all_at_the_start(buffers: list[Buffer], *, reuse: bool = True) -> int:
    for buffer in buffers:
        buffer.offset = 0
    return max((b.nbytes for b in buffers), default=0)


# Every rule that keeps values apart is needed: without it, and without the verifier, running finds a
# graph that goes wrong.  The seeds are among the first that show it, and others are as good.
RULES = {
    "a buffer is shared only when it is free": (sharing.Sharing, "clash", lambda *_: False, (0, 3)),
    "only what is read in order is written over": (sharing, "over", lambda *_: True, (7, 9)),
    "a view of state is no longer needed when it is written": (
        state_regions.Accesses, "are_apart", lambda *_: True, (19, 33),
    ),
    "what is live together has bytes apart": (planner, "place", _all_at_the_start, (3, 4)),
    "a loop needs what comes from outside it to its end": (
        Liveness, "use", lambda self, user, _: self.start[user], (0, 1),
    ),
    "a view needs what it sees": (Liveness, "needed", lambda self, v, _=None: self.last_use(v), (2, 5)),
    "an entry is not seen before it is stored": (sharing.Sharing, "_meets", lambda *_: False, (24, 69)),
    "boxes are apart only where that is known": (state_regions, "apart", lambda *_: True, (69, 81)),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_needed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, broken, seeds = RULES[rule]
    monkeypatch.setattr(plans, "verify", lambda _: None)
    assert not any(_wrong(seed) for seed in seeds)
    monkeypatch.setattr(where, name, broken)
    assert any(_wrong(seed) for seed in seeds)


def _wrong(seed: int) -> bool:
    _, program = program_of(seed)
    assert program is not None
    return check_memory(program, steps(program, seed)) is not None
