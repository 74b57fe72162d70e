"""Products with parts of one constant become one, where that changes nothing but where things lie."""

from __future__ import annotations

import numpy as np

import oic
from oic.driver import Settings, compile_graph, lowered

GRAPH = """
dynamic  { x: f32[N, 32] @max(N=4); }
constant { w(l): f32[32, 48] @ref("w"); u: f32[48, 32]; b: f32[48]; v: f32[32, 32]; t: f32[48, 32]; }
volatile { y: f32[N, 160]; z: f32[N, 40]; }
block entry {
  assign wq: f32[32, 32]; assign wk: f32[32, 16]; assign u1: f32[32, 32]; assign u2: f32[16, 32];
  assign b1: f32[32]; assign b2: f32[16]; assign v1: f32[32, 16];
  assign v2: f32[32, 16]; assign t1: f32[8, 32]; assign t2: f32[40, 32];
  assign q: f32[N, 32]; assign k: f32[N, 16]; assign l1: f32[N, 32]; assign l2: f32[N, 16];
  assign m1: f32[N, 16]; assign m2: f32[N, 16];
  op split(w[1], axis=1, sizes=[32, 16]) >> wq, wk;
  op matmul(x, wq) >> q;
  op relu(q) >> q;
  op matmul(x, wk) >> k;
  op split(u, axis=0, sizes=[32, 16]) >> u1, u2;
  op split(b, axis=0, sizes=[32, 16]) >> b1, b2;
  op linear(x, u2, b=b2) >> l2;
  op linear(x, u1, b=b1) >> l1;
  op split(v, axis=1, sizes=[16, 16]) >> v1, v2;
  op matmul(x, v1) >> m1;
  op matmul(q, v2) >> m2;
  op split(t, axis=0, sizes=[8, 40]) >> t1, t2;
  op matmul(q, t2, transpose_b=true) >> z;
  op concat(q, k, l1, l2, m1, m2, q, axis=1) >> y;
  return;
}
"""


def test_products_of_parts_become_one() -> None:
    rng = np.random.default_rng(0)
    shapes = {"w": (2, 32, 48), "u": (48, 32), "b": (48,), "v": (32, 32), "t": (48, 32)}
    model = oic.Model(tensors={n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()})
    program = compile_graph(oic.parse(GRAPH, "parts"), model, Settings(verified=True))
    (_, module), *_ = lowered(program.module, program.settings, only=["whole-products"])
    found = [(op.name, [r.hint for r in op.results]) for op in module.all_ops() if op.name in ("matmul", "linear", "split")]
    assert found == [
        ("matmul", ["q_k"]), ("split", ["q", "k"]), ("split", ["b1", "b2"]), ("linear", ["l1_l2"]), ("split", ["l1", "l2"]),
        ("split", ["v1", "v2"]), ("matmul", ["m1"]), ("matmul", ["m2"]),  # of other rows
        ("split", ["t1", "t2"]), ("matmul", ["z"]),  # of one part alone
    ]  # fmt: skip
    x = rng.standard_normal((3, 32)).astype(np.float32)
    graph, planned = (oic.Simulator(oic.parse(GRAPH), model, stage=s).make_executor() for s in ("graph", "planned"))
    assert all(np.array_equal(a, b) for a, b in zip(graph.step(x=x).values(), planned.step(x=x).values(), strict=True))
    stored = compile_graph(oic.parse(GRAPH, "parts"), model, Settings(weights="q8", verified=True))
    assert {c.symbol for c in stored.stored if not c.reason} == {"w", "u", "v.0", "v.1", "t.0"}
