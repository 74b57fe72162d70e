"""What facts show of an integer never takes a refusal away: GRAPH, PLANNED and C refuse alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.driver import Settings, compile_graph
from oic.ir import dims
from oic.operators.shape import Slice

HEAD = """
dynamic  { x: f32[4]; at: i64; }
constant { w: f32[1, 4]; }
persistent { K(t): f32[4] @table @fixed(t=8); }
volatile { y: f32[1, 4]; z: f32[4]; }
"""
# By program: the values of `at` to step with, and the status of each.
PROGRAMS = {
    # The slice shows that `at` is 4, and so what no i64 holds.
    "overflow": (
        "op slice(w, axis=0, start=at-4, end=at-3) >> y; cache.write x >> K[at*4611686018427387904]; cache.read K[0] >> z;",
        {4: "OIC_ERR_OVERFLOW", 5: "OIC_ERR_INDEX"},
    ),
    # It shows that `at + c` is the largest i64 or beyond it.
    "border": (
        "op slice(w, axis=0, start=at-4, end=at-3) >> y; cache.write x >> K[at+9223372036854775804]; cache.read K[0] >> z;",
        {4: "OIC_ERR_OVERFLOW"},
    ),
    "loop": ("loop l (i in at+4..at+5) { cache.write x >> K[i*4611686018427387904]; } cache.read K[0] >> z;", {0: "OIC_ERR_OVERFLOW"}),
    # What is known of `at` folds the count of a read twice.
    "twice": (
        "assign c: f32[?, 4]; op slice(w, axis=0, start=at+7, end=at+8) >> y; cache.read K[0..at] >> c; "
        "op sum_axis(c, axes=[0]) >> z;",
        {-7: "OIC_OK", 0: "OIC_ERR_INDEX"},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_refusals_stay(name: str, tmp_path: Path) -> None:
    body, wanted = PROGRAMS[name]
    graph = oic.parse(f"{HEAD}block entry {{ {body} return; }}", name)
    model = oic.Model(tensors={"w": np.ones((1, 4), np.float32)})
    backends: list[Any] = [oic.Simulator(graph, model, stage=stage) for stage in ("graph", "planned")]
    for backend in (*backends, oic.Synthesizer(graph, model, target="portable").build(tmp_path)):
        for at, status in wanted.items():
            found = "OIC_OK"
            with backend.make_executor() as executor:
                try:
                    executor.step(x=np.ones(4, np.float32), at=np.int64(at))
                except oic.StepError as refused:
                    found = refused.status
            assert found == status, (type(backend).__name__, at)


LATE = """
dynamic  { u: f32; }
constant {{ T: f32[{bound}, 4] @init(1.0); }}
persistent {{ s: f32[6]; K(t): f32[4] @table @fixed(t={bound}); }}
volatile {{ y: f32[?, 4]; z: f32[4]; a: f32[6]; b: f32[2]; }}
block entry {{
  assign i: i64; assign j: i32; assign k: i32[2]; assign c: u8; assign r: i64[1]; assign n: i32[6];
  cache.read s >> a; op add(a, u) >> a; cache.write a >> s; cache.read s >> a; {body} return;
}}
""".replace("{ u: f32; }", "{{ u: f32; }}")
# Ids that are known to lie in 0..5, and which of them only a check of what is read behind an effect tells to fit.
IDS = {
    "argmax": "op argmax_axis(a, axis=0) >> i; op gather(T, i) >> z;",
    "last of equals": "op argmin_axis(a, axis=0, select_first=false) >> i; op gather(T, i) >> z;",
    "entry": "op argmax_axis(a, axis=0) >> i; cache.read K[i] >> z;",
    "cast": "op argmax_axis(a, axis=0) >> i; op cast(i, to=i32, saturate=true) >> j; op gather(T, j) >> z;",
    "cast around": "op argmax_axis(a, axis=0) >> i; op cast(i, to=u8, saturate=false) >> c; cache.read K[c] >> z;",
    "view": "op argmax_axis(a, axis=0) >> i; op reshape(i, shape=[1]) >> r; op gather(T, r) >> y;",
    "top_k": "op top_k(a, k=2) >> b, k; op gather(T, k) >> y;",
    "gathered": "op iota(shape=[6]) >> n; op top_k(a, k=2) >> b, k; op gather(n, k) >> k; op gather(T, k) >> y;",
    "sample": "op sample(a, u) >> j; op gather(T, j) >> z;",
}


@pytest.mark.parametrize("bound", [5, 6])
@pytest.mark.parametrize("body", IDS.values(), ids=IDS)
def test_an_id_that_is_a_position_is_checked_only_where_it_may_be_beyond_the_table(body: str, bound: int) -> None:
    program = oic.Synthesizer(oic.parse(LATE.format(body=body, bound=bound)), target="portable")
    late = [d.slug for d in program.warnings if d.slug == "late-refusal"]
    assert late == (["late-refusal"] if bound < 6 else [])


RUNS = """
dynamic  { x: f32[N, 2] @max(N=9); }
persistent { s: i32; }
volatile { y: f32[N, 2]; ends: i32[N]; }
block entry {
  cache.increment s;
  loop of_rows (i in 0..N) {
    assign rest: f32[?, 2]; assign sums: f32[?]; assign at: i64; assign some: f32[?, 2]; assign end: i32;
    op slice(x, axis=0, start=i, end=N) >> rest;
    op sum_axis(rest, axes=[1]) >> sums;
    op argmax_axis(sums, axis=0) >> at;
    op slice(x, axis=0, start=i, end=i + LENGTH) >> some;
    transfer some >> y[i..i + LENGTH];
    op fill(end, value=i + LENGTH) >> end;
    transfer end >> ends[i];
  }
}
"""


@pytest.mark.parametrize(("length", "most"), [("at + 1", 9), ("at % 4 + 1", 4), ("at % (s + 1)", 8), ("at + 2", None), ("at % 4 + 2", None)])
def test_a_position_in_what_is_left_of_run_time_rows_is_within_them(length: str, most: int | None, tmp_path: Path) -> None:
    """And a remainder of it; so nothing is refused after the effect, and no more than that is held."""
    graph = oic.parse(RUNS.replace("LENGTH", length))
    program = oic.Synthesizer(graph, target="portable").build(tmp_path)
    assert any(d.slug == "late-refusal" for d in program.warnings) == (most is None)
    if most is None:
        return
    backends: list[Any] = [oic.Simulator(graph, stage="graph"), oic.Simulator(graph, stage="planned"), program]
    for count in (0, 1, 9):
        x = np.random.default_rng(count).normal(size=(count, 2)).astype(np.float32)
        found = []
        for backend in backends:
            with backend.make_executor() as executor:
                found.append(executor.step(x=x))
        for one in found:
            assert one["ends"].tolist() == found[0]["ends"].tolist()
            assert one["y"].tobytes() == found[0]["y"].tobytes()
    module = compile_graph(graph, None, Settings()).module
    assert {dims.maximum(op.result.shape[0]) for op in module.all_ops() if isinstance(op, Slice)} == {9, most}


def test_a_slice_that_starts_at_a_sum_with_a_negative_integer_may_be_long() -> None:
    graph = oic.parse("dynamic { x: f32[8]; at: i32; } volatile { y: f32[?]; } block entry { op slice(x, axis=0, start=at + 5, end=8) >> y; }")
    for backend in (oic.Simulator(graph), oic.Synthesizer(graph, target="portable")):
        with backend.make_executor() as executor:
            assert executor.step(x=np.ones(8, np.float32), at=-5)["y"].shape == (8,)
