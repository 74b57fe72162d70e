"""What facts show of an integer never takes a refusal away: GRAPH, PLANNED and C refuse alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic

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
    "sample": "op sample(a, u) >> j; op gather(T, j) >> z;",
}


@pytest.mark.parametrize("bound", [5, 6])
@pytest.mark.parametrize("body", IDS.values(), ids=IDS)
def test_an_id_that_is_a_position_is_checked_only_where_it_may_be_beyond_the_table(body: str, bound: int) -> None:
    program = oic.Synthesizer(oic.parse(LATE.format(body=body, bound=bound)), target="portable")
    late = [d.slug for d in program.warnings if d.slug == "late-refusal"]
    assert late == (["late-refusal"] if bound < 6 else [])
