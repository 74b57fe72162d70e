"""Constants whose products are of the same rows become one, where all that read them agree, and no bit changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.cli.run import build_library
from oic.driver import Program, Settings, compile_graph
from oic.dtypes import Array
from oic.ir.module import Module
from oic.kernels.targets import TARGETS
from oic.memory.map import memory_map
from oic.passes import pipeline
from oic.passes.store_weights import laid_out

GRAPH = """
dynamic  { x: f32[N, 40] @max(N=50); }
constant {
  wq(l): f32[36, 40]; bq(l): f32[36]; wk(l): f32[12, 40]; bk(l): f32[12]; wv(l): f32[12, 40]; bv(l): f32[12];
  gate: f32[40, 24]; up: f32[40, 24]; tied: f32[40, 24];
  bare: f32[24, 40]; biased: f32[24, 40]; bias: f32[24]; shared1: f32[24, 40]; shared2: f32[24, 40]; shared: f32[24];
  shown1: f32[20, 40]; shown2: f32[20, 40]; one: f32[20, 40]; two: f32[20, 40];
}
persistent { K(t): f32[3, 4] @table @fixed(t=400); pos: i32; }
volatile { y: f32[N, 36]; g: f32[N, 24]; s1: f32[N, 20]; s2: f32[N, 20]; z: f32[N, 20]; t: f32[N, 24]; }
block layers {
  assign q: f32[N, 36]; assign k: f32[N, 12]; assign v: f32[N, 12]; assign kh: f32[N, 3, 4]; assign vh: f32[N, 3, 4];
  assign qh: f32[N, 9, 4]; assign a: f32[N, 9, 4];
  loop each (l in 0..2) {
    op linear(h, wq[l], b=bq[l]) >> q;
    op linear(h, wk[l], b=bk[l]) >> k;
    op reshape(q, shape=[N, 9, 4]) >> qh;
    op reshape(k, shape=[N, 3, 4]) >> kh;
    op rope(kh, pos=pos, base=100.0) >> kh;
    cache.write kh >> K[pos..pos + N];
    cache.increment N pos;
    op linear(h, wv[l], b=bv[l]) >> v;
    op reshape(v, shape=[N, 3, 4]) >> vh;
    op attention(qh, kh, vh) >> a;
    op reshape(a, shape=[N, 36]) >> q;
    op add(y, q) >> y;
  }
}
block entry {
  assign h: f32[N, 40]; assign m: f32[N, 24]; assign n: f32[N, 24]; assign o: f32[N, 20]; assign p: f32[N, 20];
  op relu(x) >> h;
  branch layers;
  op matmul(h, gate) >> m;
  op matmul(h, up) >> n;
  op silu(m) >> m;
  op mul(m, n) >> g;
  op matmul(h, tied) >> m;
  op add(g, m) >> g;
  op matmul(x, tied) >> n;
  op add(g, n) >> g;
  op linear(x, bare) >> m;
  op linear(x, biased, b=bias) >> n;
  op mul(m, n) >> t;
  op linear(h, shared1, b=shared) >> m;
  op linear(h, shared2, b=shared) >> n;
  op mul(m, n) >> m;
  op add(t, m) >> t;
  op linear(h, shown1) >> s1;
  op linear(h, shown2) >> s2;
  op linear(h, one) >> o;
  op linear(h, two) >> p;
  op mul(o, p) >> z;
  return;
}
block again @entry {
  assign h: f32[N, 40]; assign o: f32[N, 20];
  op tanh(x) >> h;
  branch layers;
  op linear(h, one) >> o;
  op relu(o) >> z;
  return;
}
"""
SHAPES = {
    "wq": (2, 36, 40), "bq": (2, 36), "wk": (2, 12, 40), "bk": (2, 12), "wv": (2, 12, 40), "bv": (2, 12), "gate": (40, 24),
    "up": (40, 24), "tied": (40, 24), "bare": (24, 40), "biased": (24, 40), "bias": (24,), "shared1": (24, 40),
    "shared2": (24, 40), "shared": (24,), "shown1": (20, 40), "shown2": (20, 40), "one": (20, 40), "two": (20, 40),
}  # fmt: skip
JOINED = {"wq_wk_wv", "bq_bk_bv", "gate_up"}


def model() -> oic.Model:
    rng = np.random.default_rng(3)
    return oic.Model(tensors={n: rng.standard_normal(s).astype(np.float32) for n, s in SHAPES.items()})


def compiled(**settings: object) -> Program:
    return compile_graph(oic.parse(GRAPH, "joins"), model(), Settings(verified=True, **settings))  # type: ignore[arg-type]


def joined(program: Program) -> set[str]:
    return {constant.symbol for constant in program.planned.constants()} - SHAPES.keys()


def test_only_constants_that_are_always_read_side_by_side() -> None:
    """Not what is read with other rows, in one entry alone, with a bias or none, with one bias; nor what goes out."""
    program = compiled(weights="q8", threads=2)
    assert joined(program) == JOINED
    found = {o.result.hint for o in program.planned.all_ops() if o.name in ("linear", "matmul")}
    assert {"q_k_v", "m_n"} <= found and {"s1", "s2", "o", "p"} <= found
    matrices = {name for name, shape in SHAPES.items() if min(shape[-2:]) > 2} - {"bias", "shared"}
    assert {decision.symbol for decision in program.stored if not decision.kept} == matrices  # of each, as ever


def test_where_it_pays() -> None:
    """Threads, or rows that are brought into another form and loops that do not go on with the results; on hosts."""
    assert not joined(compiled())
    assert joined(compiled(threads=2)) == JOINED
    assert joined(compiled(weights="q8")) == {"wq_wk_wv", "bq_bk_bv"}
    assert not joined(compiled(weights="q8", target=TARGETS["freestanding"]))


def test_what_is_stored_otherwise_stays_apart() -> None:
    assert joined(compiled(weights="wk=f32,*=q8", threads=2)) == {"wq_wv", "bq_bv", "gate_up"}


def planned(text: str, shapes: Mapping[str, tuple[int, ...]], threads: int) -> Module:
    tensors = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    settings = Settings(weights="q8", threads=threads, verified=True)
    return compile_graph(oic.parse(text), oic.Model(tensors=tensors), settings).planned


FAMILIES = """
dynamic {{ x: f32[{n}, 64]{most}; }}
constant {{ a(l): f32[64, 64] @ref("a"); b(l): f32[64, 64] @ref("b"); c(l): f32[64] @ref("c"); d(l): f32[64] @ref("d"); }}
volatile {{ y: f32[{n}, 64]; }}
block entry {{
  assign p: f32[{n}, 64]; assign q: f32[{n}, 64];
  op relu(x) >> y;
  loop layers (l in 0..2) {{
    op linear(y, a[l], b=c[l]) >> p;
    op linear(y, b[l], b=d[l]) >> q;
    op tanh(p) >> p;
    op exp(q) >> q;
    op add(p, q) >> y;
  }}
}}
"""


@pytest.mark.parametrize(("n", "most"), [("1", ""), ("N", " @max(N=9)")])
@pytest.mark.parametrize(("longer", "count"), [("", 2), ("a", 4), ("b", 4), ("c", 4), ("d", 4)])
def test_families_of_as_many_members(n: str, most: str, longer: str, count: int) -> None:
    shapes: dict[str, tuple[int, ...]] = {"a": (2, 64, 64), "b": (2, 64, 64), "c": (2, 64), "d": (2, 64)}
    shapes = {name: (3, *shape[1:]) if name == longer else shape for name, shape in shapes.items()}
    assert len(list(planned(FAMILIES.format(n=n, most=most), shapes, 2).constants())) == count


TAKEN = """
dynamic {{ x: f32[1, 64]; pos: i32; }}
constant {{ a: f32[64, 64]; b: f32[64, 64]; }}
persistent {{ T(t): f32[1, 64] @table @fixed(t=4); }}
volatile {{ y: f32[1, 64]; z: f32[1, 64]; w: f32[8, 8]; h: f32[1, 1, 64]; }}
block entry {{
  assign p: f32[1, 64]; assign q: f32[1, 64]; assign r: f32[1, 1, 64];
  op linear(x, a) >> p;
  op linear(x, b) >> q;
  op relu(p) >> y;
  {rest}
}}
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("rest", "joined"),
    [
        ("op tanh(q) >> z;", True),
        ("op reshape(q, shape=[1, 1, 64]) >> r; op tanh(r) >> h;", True),
        ("transfer q >> z;", False),
        ("op reshape(q, shape=[8, 8]) >> w;", False),
        ("op reshape(q, shape=[1, 1, 64]) >> r; cache.write r >> T[0..1];", False),
        ("loop l (i in 0..3) { op tanh(q) >> q; } transfer q >> z;", False),
    ],
)  # fmt: skip
def test_a_row_is_joined_where_nothing_is_copied(rest: str, joined: bool, threads: int) -> None:
    """Not what goes out, is stored or carried: it is computed where it belongs."""
    module = planned(TAKEN.format(rest=rest), {"a": (64, 64), "b": (64, 64)}, threads)
    assert [constant.symbol for constant in module.constants()] == (["a_b"] if joined else ["a", "b"])
    memory = memory_map(module)
    assert "copy" not in {v.kind for v in memory.values} | {v.kind for v in memory.stores}


def test_names_and_bytes_of_many(tmp_path: Path) -> None:
    """C tells the name of many from others; what it is made of is told, and bytes add up to what is laid out."""
    names = [f"weight_of_head_number_{i}" for i in range(40)]
    lines = [
        "dynamic { x: f32[1, 32]; }",
        *(f"constant {{ {name}: f32[8, 32]; }}" for name in names),
        "volatile { y: f32[1, 8]; }",
        "block entry {",
        *(f"assign p{i}: f32[1, 8]; op linear(x, {name}) >> p{i};" for i, name in enumerate(names)),
        *(f"op add(y, p{i}) >> y;" for i in range(len(names))),
        "}",
    ]
    tensors = {name: np.ones((8, 32), np.float32) for name in names}
    program = compile_graph(oic.parse("\n".join(lines), "many"), oic.Model(tensors=tensors), Settings(weights="q8"))
    made = build_library(program, tmp_path, "blob", None, compiled=False)
    [constant] = json.loads((tmp_path / "many.memory.json").read_text())["weights"]
    assert constant["name"] == "weight_of_head_number_0_and_39_more"
    assert constant["parts"] == [{"name": name, "line": line} for line, name in enumerate(names, 2)]
    assert laid_out(program.planned, []) == []
    assert sum(choice["nbytes"] for choice in made["stored"]) == constant["bytes"] == made["weights"] - 64
    assert max(map(len, re.findall(r"\w*weight\w*|p0_\w+", (tmp_path / "many.c").read_text()))) < 64
    assert "joined of weight_of_head_number_0, weight" in (tmp_path / "many.report.html").read_text()


def run(executor: oic.Executor) -> list[Mapping[str, Array]]:
    rng = np.random.default_rng(4)
    return [
        executor.step(entry, x=rng.standard_normal((n, 40)).astype(np.float32))
        for entry, n in [("entry", 1), ("again", 50), ("entry", 3), ("entry", 50), ("again", 1)]
    ]


@pytest.mark.parametrize("weights", ["", "bf16", "q8", "q4", "wk=f32,*=q8"])
def test_no_bit_changes(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = oic.parse(GRAPH, "joins")
    got: list[list[Mapping[str, Array]]] = []  # of steps, and all constants
    apart = tuple(step for step in pipeline.PIPELINE if step.name != "join-products")
    for number, steps in enumerate((apart, pipeline.PIPELINE)):
        monkeypatch.setattr(pipeline, "PIPELINE", steps)
        built = oic.Synthesizer(graph, model(), weights=weights, threads=2).build(tmp_path / str(number))
        assert bool(joined(built.program)) is bool(number)
        with built.make_executor() as executor:
            got.append(run(executor))
            got[-1].append({name: executor.fetch(name) for name in SHAPES})
    for one, other in zip(*got, strict=True):
        assert one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)
