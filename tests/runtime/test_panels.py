"""Products with packed weights: one row and several go different ways through the same order, and near the exact sum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from oic.driver import Settings, compile_graph, lowered

TEXT = """
dynamic  {{ x: f32[N, {k}] @max(N=9); }}
constant {{ w: f32[{n}, {k}]; u: f32[{k}, {n}]; b: f32[{n}]; }}
volatile {{ y: f32[N, {n}]; z: f32[N, {n}]; }}
block entry {{ op linear(x, w, b=b) >> y; op matmul(x, u) >> z; return; }}
"""
SIZES = [(255, 64), (256, 16), (257, 80), (600, 130), (1030, 67)]  # K about chunks of 256, N about four panels


@pytest.mark.parametrize(("k", "n"), SIZES)
def test_rows_are_the_same_alone_and_together(k: int, n: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(k)
    w, u, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((n, k), (k, n), (n,)))
    x = rng.standard_normal((9, k)).astype(np.float32)
    graph, model = oic.parse(TEXT.format(k=k, n=n), f"panels_{k}"), oic.Model(tensors={"w": w, "u": u, "b": b})
    program = compile_graph(graph, model, Settings())
    *_, (_, module) = lowered(program.module, program.settings)
    assert {op.kernel for op in module.all_ops() if op.kernel} == {"linear_panels"}  # of columns for matmul
    exact = {"y": (w, x.astype(np.float64) @ w.T.astype(np.float64) + b), "z": (u.T, x.astype(np.float64) @ u.astype(np.float64))}
    with oic.Synthesizer(graph, model).build(tmp_path).make_executor() as ex:
        together = ex.step(x=x)
        for name, (weights, wanted) in exact.items():
            bound = 2 * k * 2.0**-23 * (np.abs(x).astype(np.float64) @ np.abs(weights.T) + np.abs(b))
            assert (np.abs(together[name] - wanted) <= bound).all()
        for rows in (1, 2, 5):
            for first in range(0, 9 - rows + 1, rows):
                part = ex.step(x=x[first : first + rows])
                for name in exact:
                    assert part[name].tobytes() == together[name][first : first + rows].tobytes(), (name, rows, first)
