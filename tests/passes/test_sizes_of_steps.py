"""Operators of constants alone whose settings are sizes of the step: nothing is computed of them at build."""

from __future__ import annotations

import numpy as np
import pytest

import oic

GRAPH = """
graph g {{
  dynamic  {{ x: f32[N, 8] @max(N=8); }}
  constant {{ w: f32[16, 8]; }}
  volatile {{ h: f32[N, ?]; twice: f32[?, ?]; e: f32[?, ?]; square: f32[?, ?]; }}
  block entry {{
    {part}
    op linear(x, p) >> h; op add(p, p) >> twice; op exp(p) >> e; op matmul(p, p, transpose_b=true) >> square;
    return;
  }}
}}
"""
SPLIT = "assign a: f32[N, 8]; assign b: f32[4, 8]; assign c: f32[12-N, 8]; op split(w, axis=0, sizes=[N, 4, 12-N]) >> a, b, c;"
PARTS = {  # of known sizes, from positions that are not known
    "slice": "assign p: f32[4, 8]; op slice(w, axis=0, start=N, end=N+4) >> p;",
    "split": f"{SPLIT} assign p: f32[4, 8]; op reshape(b, shape=[4, 8]) >> p;",
    "pad": "assign p: f32[24, 8]; op pad(w, before=[N, 0], after=[8-N, 0]) >> p;",
    "of a view": "assign t: f32[8, 16]; op transpose(w, perm=[1, 0]) >> t; assign p: f32[8, 8]; op slice(t, axis=1, start=N, end=N+8) >> p;",
    "of a filled one": "assign f: f32[N, 8]; op fill(x, value=0.5) >> f; assign p: f32[1, 8]; op sum_axis(f, axes=[0], keepdims=true) >> p;",
}


@pytest.mark.parametrize("part", PARTS)
def test_c_agrees_with_reference(part: str) -> None:
    graph = oic.parse(GRAPH.format(part=PARTS[part]))
    numbers = np.random.default_rng(0)
    model = oic.Model({"w": numbers.standard_normal((16, 8)).astype(np.float32)})
    with (
        oic.Synthesizer(graph, model).make_executor() as compiled,
        oic.Simulator(graph, model).make_executor() as meant,
    ):
        for n in (0, 3, 8):
            x = numbers.standard_normal((n, 8)).astype(np.float32)
            found, right = compiled.step(x=x), meant.step(x=x)
            for name, value in right.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, strict=True)
