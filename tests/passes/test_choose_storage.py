"""Precisions that are chosen for a size, or for a bound on errors."""

from __future__ import annotations

import numpy as np
import pytest

import oic
from oic.driver import Program, Settings, compile_graph
from oic.ir.members import StoredElements
from oic.passes.store_weights import Candidate, ladder

GRAPH = """
dynamic  { x: f32[64]; }
constant { easy: f32[64, 64]; hard: f32[64, 64]; stack(l): f32[64, 64] @ref("stack"); b: f32[64]; vast: f32[32, 64]; }
volatile { y: f32[64]; z: f32[32]; }
block entry {
  op linear(x, easy, b=b) >> y;
  op linear(y, hard) >> y;
  op linear(y, stack[0]) >> y;
  op linear(y, stack[1]) >> y;
  op linear(y, vast) >> z;
  return;
}
"""


def program(weights: str) -> Program:
    rng = np.random.default_rng(5)
    hard = rng.standard_normal((64, 64)) * np.exp(3 * rng.standard_normal((64, 64)))  # a few are large
    found = {"easy": np.sign(hard), "hard": hard, "stack": rng.standard_normal((2, 64, 64)), "b": np.ones(64),
             "vast": rng.standard_normal((32, 64)) * 1e30}  # fmt: skip
    model = oic.Model(tensors={n: a.astype(np.float32) for n, a in found.items()})
    return compile_graph(oic.parse(GRAPH, "chosen"), model, Settings(weights=weights, verified=True))


def storages(found: Program) -> dict[str, str]:
    return {op.symbol: op.type.encoding.partition(" ")[0] for op in found.module.constants()}


def test_a_bound_holds_for_each_matrix_with_the_fewest_bytes() -> None:
    assert storages(program("auto:0.2")) == {"easy": "q4", "hard": "q4", "stack": "q4", "b": "", "vast": "bf16"}
    found = program("auto:0.02")
    assert storages(found) == {"easy": "q8", "hard": "q4", "stack": "q8", "b": "", "vast": "bf16"}
    errors = {n: v.error() for n, v in found.module.weights.items() if isinstance(v, StoredElements)}
    assert max(errors.values()) <= 0.02


@pytest.mark.parametrize("room", [20_000, 24_000, 30_000, 60_000, 200_000])
def test_a_size_is_kept_and_used(room: int) -> None:
    found = program(f"auto:{room}")
    planned = found.planned
    assert planned.memory.weights_bytes <= room
    if room >= 200_000:
        assert storages(found) == {"easy": "bf16", "hard": "", "stack": "", "b": "", "vast": ""}, "signs are exact so"


def test_more_room_makes_no_matrix_worse() -> None:
    def errors(room: int) -> float:
        weights = program(f"auto:{room}").module.weights.values()
        return sum(v.error() ** 2 for v in weights if isinstance(v, StoredElements))

    found = [errors(room) for room in (20_000, 24_000, 30_000, 60_000)]
    assert found == sorted(found, reverse=True) and found[0] > found[-1]


def test_a_size_that_is_too_small_is_refused() -> None:
    wrong = dict.fromkeys(("auto", "auto:0", "auto:1.2.3"), "no size")
    for rules, what in {"auto:10K": "at least, and 10,240 are given", **wrong}.items():
        with pytest.raises(oic.OicError) as refused:
            program(rules)
        assert refused.value.diagnostics[0].slug == "weights-rule" and what in refused.value.diagnostics[0].message
        assert ("--flash" in (refused.value.diagnostics[0].hint or "")) == (rules == "auto")


def test_storages_that_are_larger_and_no_better_are_left_out() -> None:
    given = [Candidate("f32", 100, 0.0), Candidate("q8", 30, 0.01), Candidate("f16", 50, 0.02), Candidate("q4", 20, 0.1)]
    assert [c.storage for c in ladder(given)] == ["q4", "q8", "f32"]
