"""What is made of constants alone and computed in every step is told: the end of a chain, through views, with its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oic

GRAPH = """
graph g {{
  dynamic  {{ at: i32[1]; x: f32[64]; }}
  constant {{ w: i8[512, 64]; s: f32; a: f32[2048]; few: f32[8]; W(l): f32[2048] @pattern("W.{{l}}"); }}
  volatile {{ y: f32[1, 32]; z: f32[512]; q: f32[2048]; r: f32[32, 64]; v: f32[8]; }}
  block entry {{ {body} return; }}
}}
"""
CASES = {
    "a table of positions": (
        "assign n: i32[256, 32]; assign f: f32[256, 32]; op iota(shape=[256, 32]) >> n; op cast(n, to=f32) >> f;"
        "op mul(f, 0.01) >> f; op sin(f) >> f; op gather(f, at) >> y;",
        ["'sin' of constants alone is computed in every step: 8,192 elements"],
    ),
    "larger than its bytes": (
        "assign d: f32[512, 64]; loop l (i in 0..2) { op dequantize(w, s, to=f32) >> d; op linear(x, d) >> z; }",
        ["'dequantize' of constants alone is computed in every step: 32,768 elements"],
    ),
    "behind a view": (
        "assign e: f32[2048]; op exp(a) >> e; op tanh(e) >> e; op reshape(e, shape=[32, 64]) >> r;",
        ["'tanh' of constants alone is computed in every step: 2,048 elements"],
    ),
    "exact": ("op neg(a) >> q;", []),
    "few": ("op exp(few) >> v;", []),
    "a member": ("loop l (l in 0..2) { op exp(W[l]) >> q; }", []),
    "of an input": ("assign e: f32[32, 64]; op broadcast_to(x, shape=[32, 64]) >> e; op exp(e) >> r;", []),
}


@pytest.mark.parametrize(("body", "told"), CASES.values(), ids=CASES)
def test_it_is_told(body: str, told: list[str]) -> None:
    numbers = np.random.default_rng(0)
    data: dict[str, Any] = {"w": numbers.integers(-9, 9, (512, 64)).astype(np.int8), "s": np.float32(0.1), "few": np.ones(8, np.float32)}
    data |= {name: numbers.standard_normal(2048).astype(np.float32) for name in ("a", "W.0", "W.1")}
    made = oic.Synthesizer(oic.parse(GRAPH.format(body=body), name="g"), oic.Model(tensors=data))
    found = [d for d in made.warnings if d.slug == "constant-work"]
    assert [d.message for d in found] == told and all(d.span for d in found)
