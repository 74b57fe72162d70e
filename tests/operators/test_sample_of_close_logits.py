"""Logits so close to each other that their weights are equal: top_p keeps the largest logits nevertheless."""

from __future__ import annotations

import numpy as np

import oic

TEXT = """
graph close {
  dynamic  { logits: f32[19]; u: f32; }
  volatile { y: i32; }
  block entry { op sample(logits, u, top_p=0.75) >> y; return; }
}
"""


def test_top_p_keeps_the_largest_logits() -> None:
    graph, rng = oic.parse(TEXT), np.random.default_rng(0)
    with oic.Simulator(graph).make_executor() as reference, oic.Synthesizer(graph).build().make_executor() as compiled:
        for u in np.arange(40, dtype=np.float32) / np.float32(40):
            logits = rng.standard_normal(19).astype(np.float32) * np.float32(1e-30)
            wanted, found = (e.step(logits=logits, u=u)["y"] for e in (reference, compiled))
            assert wanted == found
