"""Parts of matrices become constants of their own, where products read nothing but parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from oic.driver import Program, Settings, compile_graph, lowered

SHAPE = (96, 48)
DATA = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
GRAPH = """
dynamic {{ x: f32[2, 48]; h: f32[2, 48]; n: i32; k: f32; }}
constant {{ w: f32[96, 48]; }}
volatile {{ y: f32[?, ?]; z: f32[?, ?]; }}
block entry {{ {entry} return; }}
block other @entry {{ {other} return; }}
"""
CUT = "assign a: f32[64, 48]; assign b: f32[32, 48]; op split(w, axis=0, sizes=[64, 32]) >> a, b;"
TURNED = "assign t: f32[48, 96]; op transpose(w, perm=[1, 0]) >> t;"
USED = "op linear(x, a) >> y; op linear(h, b) >> z;"


def program(entry: str, other: str) -> Program:
    graph = oic.parse(f"graph g {{ {GRAPH.format(entry=entry, other=other)} }}", "g.oi")
    return compile_graph(graph, oic.Model(tensors={"w": oic.Tensor(DATA, "f32")}), Settings(verified=True))


def constants(found: Program) -> dict[str, tuple[int, ...]]:
    """Shapes of the constants, by symbol, when the pass has run."""
    module = next(m for step, m in lowered(found.module, found.settings) if step.name == "own-parts")
    for constant in module.constants():
        assert module.weights[constant.symbol].shape == constant.type.shape
    return {c.symbol: c.type.shape for c in module.constants()}


@pytest.mark.parametrize(
    "entry, other, expected",
    [
        (CUT + USED, "op add(x, h) >> y;", {"w.0": (64, 48), "w.1": (32, 48)}),
        (CUT + USED, CUT + USED, {"w.0": (64, 48), "w.1": (32, 48)}),  # each once
        (CUT + "op linear(x, a) >> y;", "op add(x, h) >> y;", {"w.0": (64, 48)}),  # the rest is read by nothing
        (
            "assign t: f32[48, 96]; op transpose(w, perm=[1, 0]) >> t; op matmul(x, t) >> y;",
            "assign p: f32[8, 48]; op slice(w, axis=0, start=0, end=8) >> p; op linear(h, p) >> z;",
            {"w": SHAPE},  # both together have more bytes
        ),
        (
            CUT + "assign t: f32[48, 32]; op transpose(b, perm=[1, 0]) >> t; op matmul(x, t) >> y;",
            CUT + "op linear(x, a) >> y;",
            {"w.0": (64, 48), "w.1": (48, 32)},
        ),
        (CUT + USED, "op linear(h, w) >> y;", {"w": SHAPE}),  # read as it is
        (CUT + "op relu(a) >> y; op relu(b) >> z;", "op add(x, h) >> y;", {"w": SHAPE}),  # where it lies does as well
        (TURNED + "op mul(t, k) >> y;", "op add(x, h) >> y;", {"w.0": (48, 96)}),  # neighbours lie apart
        (TURNED + "op mul(t, k) >> y;", "op mul(w, k) >> y;", {"w": SHAPE}),
        (
            "assign c: f32[96, 1]; op slice(w, axis=1, start=3, end=4) >> c; op mul(c, k) >> y;",
            "op add(x, h) >> y;",
            {"w": SHAPE},  # rows of one element
        ),
        (
            "assign p: f32[?, 48]; op slice(w, axis=0, start=n, end=n+8) >> p; op linear(h, p) >> z;",
            "op add(x, h) >> y;",
            {"w": SHAPE},  # which part it is, is not known
        ),
    ],
    ids=["cut", "entries", "rest", "overlap", "nested", "whole", "elementwise", "turned", "both ways", "column", "unknown"],
)
def test_what_becomes_of_a_matrix(entry: str, other: str, expected: dict[str, tuple[int, ...]]) -> None:
    assert constants(program(entry, other)) == expected


FAMILY = """
dynamic {{ x: f32[2, 8]; }}
constant {{ w(l): f32[8, 6] {where}; v(l): f32[8, 6] @ref("v"); }}
volatile {{ y: f32[2, 8]; }}
block entry {{
  transfer x >> y;
  loop layers (l in 0..3) {{ branch turned; }}
  loop others (i in 0..2) {{
    assign u: f32[6, 8]; op transpose(w[i + 1], perm=[1, 0]) >> u;
    assign end: f32[1, 8]; op slice(u, axis=0, start=5, end=6) >> end; op add(y, end) >> y;
  }}
}}
block other @entry {{ op neg(x) >> y; loop layers (l in 0..3) {{ branch turned; }} }}
block turned {{
  assign t: f32[6, 8]; op transpose(w[l], perm=[1, 0]) >> t;
  assign row: f32[1, 8]; op slice(t, axis=0, start=2, end=3) >> row; op mul(y, row) >> y;
  assign n: f32[2, 6]; op matmul(y, v[l]) >> n; op transpose(v[l], perm=[1, 0]) >> t; op matmul(n, t) >> y;
}}
"""


@pytest.mark.parametrize("where", ['@ref("w")', '@pattern("w.{l}")'])
def test_parts_of_members_become_families(where: str, tmp_path: Path) -> None:
    """In several loops and entries, of one tensor or of one a member; what is read whole too stays as it is."""
    rng = np.random.default_rng(2)
    members = rng.standard_normal((3, 8, 6)).astype(np.float32)
    tensors = {"w": members, "v": members[::-1] / 4} | {f"w.{i}": member for i, member in enumerate(members)}
    model = oic.Model(tensors={name: oic.Tensor(np.ascontiguousarray(a), "f32") for name, a in tensors.items()})
    graph, x = oic.parse(f"graph g {{ {FAMILY.format(where=where)} }}", "g.oi"), members[0, :2].repeat(2, 1)[:, :8]
    found = constants(compile_graph(graph, model, Settings(verified=True)))
    assert found == {"w.0": (3, 1, 8), "w.1": (3, 1, 8), "v": (3, 8, 6)}
    made = oic.Synthesizer(graph, model).build(tmp_path)
    with made.make_executor() as executor, oic.Simulator(graph, model, stage="graph").make_executor() as reference:
        for entry in ("entry", "other"):
            wanted = reference.step(entry, x=x)["y"]
            np.testing.assert_allclose(executor.step(entry, x=x)["y"], wanted, rtol=1e-5, atol=1e-6)


STACKS = """
dynamic  { x: f32[2, 6]; }
constant { w(l): f32[3, 6, 8] @pattern("w.{l}"); }
volatile { y: f32[2, 6]; }
block entry {
  transfer x >> y;
  loop layers (l in 0..2) {
    loop members (e in 0..3) {
      assign s: f32[1, 6, 8]; op slice(w[l], axis=0, start=e, end=e+1) >> s;
      assign m: f32[6, 8]; op reshape(s, shape=[6, 8]) >> m;
      assign t: f32[8, 6]; op transpose(m, perm=[1, 0]) >> t;
      assign row: f32[1, 6]; op slice(t, axis=0, start=2, end=3) >> row; op add(y, row) >> y;
    }
  }
  return;
}
"""


def test_members_of_stacks_have_parts() -> None:
    rng = np.random.default_rng(4)
    members = {f"w.{i}": rng.standard_normal((3, 6, 8), np.float32) for i in range(2)}
    graph, model = oic.parse(f"graph g {{ {STACKS} }}", "g.oi"), oic.Model(tensors=members)
    assert constants(compile_graph(graph, model, Settings(verified=True))) == {"w.0": (2, 3, 1, 6)}
    x = rng.standard_normal((2, 6), np.float32)
    found = [oic.Simulator(graph, model, stage=s).make_executor().step(x=x)["y"] for s in ("graph", "planned")]
    assert np.array_equal(*found)


def test_a_long_chain_of_views() -> None:
    names = [f"t{i}" for i in range(3000)]
    shapes = [(48, 96), (96, 48)]
    declared = "".join(f"assign {n}: f32{list(shapes[i % 2])};" for i, n in enumerate(names))
    chain = "".join(f"op transpose({a}, perm=[1, 0]) >> {b};" for a, b in zip(["w", *names], names))
    assert constants(program(declared + chain + f"op linear(x, {names[-1]}) >> y;", "op add(x, h) >> y;")) == {"w.0": SHAPE}


def test_results_and_bytes_are_the_same(tmp_path: Path) -> None:
    graph = oic.parse(f"graph g {{ {GRAPH.format(entry=CUT + USED, other='op add(x, h) >> y;')} }}", "g.oi")
    model = oic.Model(tensors={"w": oic.Tensor(DATA, "f32")})
    rng = np.random.default_rng(1)
    given = {name: rng.standard_normal((2, 48)).astype(np.float32) for name in "xh"}
    made = oic.Synthesizer(graph, model).build(tmp_path)
    kernels = {op.kernel for op in made.spec.module.all_ops() if op.name == "linear"}
    with made.make_executor() as executor, oic.Simulator(graph, model, stage="graph").make_executor() as reference:
        found, expected = executor.step(**given), reference.step(**given)
        assert executor.fetch("w").tobytes() == DATA.tobytes()
    assert kernels == {"linear_panels"}
    for name in "yz":
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-4)
    assert (tmp_path / "g.weights").stat().st_size < DATA.nbytes + 512
