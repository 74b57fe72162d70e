"""Random graphs have in them what they are for: no part of the generator may fall silent."""

from __future__ import annotations

from collections import Counter

import pytest

from oic.compare.bisect import answers
from oic.reference.interpret import Machine
from tests.fuzz.checks import compiled, program_of, steps
from tests.fuzz.graph_features import FEATURES, features

SEEDS = range(80)
# In one graph of ten at the least.
COMMON = (
    "slice", "broadcast", "view of state", "in the caller's memory", "bytes shared", "held through a loop",
    "loop", "nested loops", "several carried", "swapped", "branch", "one side unchanged",
    "block called twice", "read before write", "read after write", "read kept over a write",
    "written value used later", "fresh value written", "written in a loop", "write before a check",
    "tensor updated", "growing table", "packed values", "extent 0", "extent at its maximum", "two entries",
    "consumers", "refused after others", "reset",
)  # fmt: skip


def test_random_graphs_cover_the_language() -> None:
    """Every feature occurs, the common ones often; most steps are taken, and some refused."""
    covered: Counter[str] = Counter()
    taken: list[bool] = []
    for seed in SEEDS:
        _, program = program_of(seed)
        if program is None:
            continue
        runs = steps(program, seed)
        covered.update(features(program, runs))
        taken += [str(a["status"]) == "OIC_OK" for a in answers(Machine(program.module), runs)]
    shown = "\n".join(f"{covered[name]:4} {name}" for name in FEATURES)
    assert all(covered[name] for name in FEATURES), shown
    assert all(10 * covered[name] >= len(SEEDS) for name in COMMON), shown
    assert 0.7 < sum(taken) / len(taken) < 0.98


HAS = {
    "swapped": "loop l (k in 0..2) { transfer a >> c; transfer b >> a; transfer c >> b; }",
    "start needed later": "transfer a >> c; loop l (k in 0..i) { op neg(a) >> a; } op add(a, c) >> b;",
    "carried past a branch": "loop l (k in 0..2) { branch p up none; }",
    "one side unchanged": "branch p up none;",
    "read before write": "cache.read T0[i] >> a; op neg(a) >> a; cache.write a >> T0[i];",
    "fresh value written": "op neg(a) >> c; cache.write c >> T0[i];",
    "written value used later": "op neg(a) >> b; cache.write b >> T0[i]; op neg(b) >> a;",
    "two writes to one entry": "cache.write a >> T0[i]; cache.write b >> T0[i];",
    "view written": "op slice(e, axis=0, start=1, end=5) >> c; cache.write c >> T0[i];",
    "slice written": "cache.read T0[0..2] >> f; cache.write f >> T0[1..3];",
    "loop of no iterations": "loop l (k in 2..i) { op neg(a) >> a; }",
}


@pytest.mark.parametrize("name", HAS)
def test_a_feature_is_seen_where_it_is(name: str) -> None:
    graph = """
    dynamic { x: f32[4]; e: f32[6]; i: i32; p: bool; }
    persistent { T0(t0): f32[4] @table @fixed(t0=9); }
    volatile { y: f32[4]; z: f32[4]; f: f32[?, 4]; }
    block up { op softmax(a) >> a; return; }
    block none { return; }
    """
    ends = "transfer a >> y; transfer b >> z; return;"
    starts = "assign a: f32[4]; assign b: f32[4]; assign c: f32[4]; op softmax(x) >> a; op tanh(x) >> b;"
    for statements, there in ((HAS[name], True), ("op add(a, b) >> c;", False)):
        program = compiled(f"graph one {{ {graph} block entry {{ {starts} {statements} {ends} }} }}\n")
        assert program is not None
        assert (name in features(program, steps(program, 1))) == there
