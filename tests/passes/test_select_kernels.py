"""Operators get the cheapest kernel, constants the encoding that costs their readers the least, and values stay the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.driver import Program, Settings, compile_graph, lowered
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.kernels.kernel import Kernel
from oic.kernels.targets import INSTRUCTION_SETS, TARGETS, Costs
from oic.operators.base import Operator
from oic.operators.matmul import Linear

SHAPES = {
    "rows": (32, 32), "columns": (32, 40), "table": (50, 32), "shared": (64, 32), "summed": (32, 32),
    "few": (3, 32), "half": (32, 30), "stack": (2, 32, 32),
}  # fmt: skip
GRAPH = """
dynamic  { x: f32[N, 32] @max(N=4); ids: i32[3]; }
constant {
  rows: f32[32, 32]; columns: f32[32, 40]; table: f32[50, 32]; shared: f32[64, 32]; summed: f32[32, 32];
  few: f32[3, 32]; half: f16[32, 30]; stack(l): f32[32, 32] @ref("stack");
}
volatile {
  y: f32[N, 40]; z: f32[3, 32]; e: f32[3, 32]; logits: f32[N, 64]; s: f32[N, 3]; b: f32[N, 32]; g: f32[N, 30];
  first: f32[N, 32]; second: f32[N, 32];
}
block entry {
  assign h: f32[N, 32];
  op linear(x, rows) >> h;
  op matmul(h, columns) >> y;
  op gather(table, ids) >> z;
  op gather(shared, ids) >> e;
  op matmul(h, shared, transpose_b=true) >> logits;
  op linear(h, few) >> s;
  op linear(h, summed) >> b;
  op matmul(b, summed) >> b;
  op matmul(h, half) >> g;
  op linear(h, stack[0]) >> first;
  op matmul(h, stack[1], transpose_b=true) >> second;
  return;
}
"""


def program() -> Program:
    rng = np.random.default_rng(1)
    found = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
    found["half"] = found["half"].astype(np.float16)
    return compile_graph(oic.parse(GRAPH, "select"), oic.Model(tensors=found), Settings(verified=True))


def after(name: str, settings: Settings) -> Module:
    made = program()
    return next(module for step, module in lowered(made.module, settings) if step.name == name)


def kernels(module: Module) -> dict[str, str]:
    """The kernel of every operator, by the hint of its result."""
    return {op.results[0].hint: op.kernel for op in module.all_ops() if isinstance(op, Operator) and op.kernels}


def encodings(module: Module) -> dict[str, str]:
    return {op.symbol: op.type.encoding for op in module.constants()}


def test_constants_have_the_encoding_that_suits_all_their_readers() -> None:
    module = after("pack-weights", Settings(verified=True))
    assert encodings(module) == {
        "rows": "panels", "columns": "columns", "table": "", "shared": "panels", "summed": "", "few": "",
        "half": "columns", "stack": "panels",
    }  # fmt: skip
    found = kernels(module)
    assert found["h"] == found["y"] == found["logits"] == found["g"] == found["first"] == "linear_panels"
    assert (found["z"], found["e"], found["s"]) == ("gather", "gather_panels", "linear")


def test_what_was_selected_is_in_the_text() -> None:
    module = after("pack-weights", Settings(verified=True))
    text = print_module(module)
    assert '{kernel="linear_panels"}' in text and "f32[32, 40] columns" in text
    again = parse_module(text)
    assert print_module(again) == text and [op.kernel for op in again.all_ops()] == [op.kernel for op in module.all_ops()]
    with pytest.raises(oic.OicError, match="linear has no kernel 'linear_panel'"):
        parse_module(text.replace('kernel="linear_panels"', 'kernel="linear_panel"'))


def test_costs_of_the_target_decide() -> None:
    free = replace(TARGETS["portable"], costs=Costs(staged=0.0, strided=1.0))
    assert set(encodings(after("pack-weights", Settings(target=free))).values()) == {""}
    gathers = replace(TARGETS["portable"], costs=Costs(line=1))
    assert encodings(after("pack-weights", Settings(target=gathers)))["table"] == "panels"


def test_a_kernel_waits_for_a_target_that_has_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A faster kernel for one instruction set is one row."""
    plain = next(k for k in Linear.kernels if k.name == "linear_panels")
    fast: Kernel = replace(plain, name="linear_fast", needs=frozenset({"avx512-vnni"}), cost=lambda op, target: 0.0)
    monkeypatch.setattr(Linear, "kernels", (*Linear.kernels, fast))
    without = TARGETS["portable"].seen({"__AVX2__": "1"})
    having = TARGETS["portable"].seen({"__AVX512F__": "1", "__AVX512VNNI__": "1"})
    assert kernels(after("select-kernels", Settings(target=without)))["h"] == "linear_panels"
    assert kernels(after("select-kernels", Settings(target=having)))["h"] == "linear_fast"
    assert having.numerics == "fused" and without.numerics == "separate"


def test_tiles_are_for_machines_that_multiply_pairs() -> None:
    """Where four products of bytes are one instruction, words of them are faster than Winograd's of 16 bits."""
    graph = oic.parse("""graph g { dynamic { x: i8[32, 16, 16]; } constant { w: i8[32, 32, 3, 3]; } volatile { y: i32[32, 16, 16]; }
      block entry { op conv2d(x, w, padding=1, acc=i32) >> y; return; } }""")
    model, plain = oic.Model(tensors={"w": np.ones((32, 32, 3, 3), np.int8)}), TARGETS["portable"]
    avx512 = {"__AVX2__": "1", "__AVX512F__": "1"}
    of_several = replace(plain, sets=tuple(INSTRUCTION_SETS[name] for name in ("sse2", "avx2", "vnni")))
    for target, kernel in (
        (plain.seen({"__SSE2__": "1"}), "conv_winograd"), (plain.seen(avx512), "conv_winograd"),
        (plain.seen({"__ARM_NEON": "1"}), "conv_winograd"), (of_several, "conv_planes_int"),
        (plain.seen(avx512 | {"__AVX512VNNI__": "1"}), "conv_planes_int"),
        (plain.seen({"__ARM_NEON": "1", "__ARM_FEATURE_DOTPROD": "1"}), "conv_planes_int"),
    ):  # fmt: skip
        planned = compile_graph(graph, model, Settings(target=target)).planned
        assert planned is not None
        assert [op.kernel for op in planned.all_ops() if op.name == "conv2d"] == [kernel], target


@pytest.mark.parametrize("size, kernel", [(8, "conv_planes"), (4, "conv_panels")])
def test_planes_are_for_rows_that_fill_lanes(size: int, kernel: str) -> None:
    """Rows of eight columns leave no lane without a position, though planes have what lies behind them."""
    graph = oic.parse(f"""graph g {{ dynamic {{ x: f32[32, {size}, {size}]; }} constant {{ w: f32[32, 32, 3, 3]; }}
      volatile {{ y: f32[32, {size}, {size}]; }} block entry {{ op conv2d(x, w, padding=1) >> y; return; }} }}""")
    model = oic.Model(tensors={"w": np.ones((32, 32, 3, 3), np.float32)})
    planned = compile_graph(graph, model, Settings(target=TARGETS["portable"])).planned
    assert planned is not None
    assert [op.kernel for op in planned.all_ops() if op.name == "conv2d"] == [kernel]


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_encodings_change_bytes_and_no_values(rows: int, tmp_path: Path) -> None:
    made, rng = program(), np.random.default_rng(rows)
    given: dict[str, Any] = {"x": rng.standard_normal((rows, 32)).astype(np.float32), "ids": np.array([1, 2, 49], np.int32)}
    assert made.model is not None
    graph = made.graph
    expected = oic.Simulator(graph, made.model).make_executor().step(**given)
    planned = oic.Simulator(graph, made.model, stage="planned").make_executor().step(**given)
    compiled = oic.Synthesizer(graph, made.model, target="portable").build(tmp_path).make_executor().step(**given)
    for name, value in expected.items():
        assert np.array_equal(planned[name], value)
        np.testing.assert_allclose(compiled[name], value, rtol=1e-5, atol=2e-4)


CUT = """
dynamic  { x: f32[4, 32]; at: i64; }
constant { w: f32[3, 32, 32]; }
volatile { y: f32[4, 32]; z: f32[4, 32]; }
block entry {
  assign h: f32[4, 32]; assign c: f32[1, 32, 32]; assign m: f32[32, 32];
  op abs(x) >> h;
  loop layers (l in 0..3) {
    op slice(w, axis=0, start=l, end=l+1) >> c;
    op reshape(c, shape=[32, 32]) >> m;
    op linear(h, m) >> h;
  }
  op abs(h) >> y;
  op slice(w, axis=0, start=at, end=at+1) >> c;
  op reshape(c, shape=[32, 32]) >> m;
  op linear(h, m) >> z;
  return;
}
"""


def test_a_member_that_is_cut_out_is_selected(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    graph = oic.parse(CUT, "cut")
    model = oic.Model(tensors={"w": (rng.standard_normal((3, 32, 32)) / 6).astype(np.float32)})
    program = compile_graph(graph, model, Settings(verified=True))
    module = next(m for step, m in lowered(program.module, program.settings) if step.name == "pack-weights")
    assert encodings(module) == {"w": "panels"}
    assert [op.name for op in module.all_ops() if op.name in ("slice", "reshape")] == []
    backends: list[Any] = [oic.Simulator(graph, model, stage=stage) for stage in ("graph", "planned")]
    executors = [b.make_executor() for b in (*backends, oic.Synthesizer(graph, model).build(tmp_path))]
    x = rng.standard_normal((4, 32)).astype(np.float32)
    for at in range(3):
        expected, *others = (e.step(x=x, at=np.int64(at)) for e in executors)
        for found in others:
            np.testing.assert_allclose(found["z"], expected["z"], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-5)
    for executor in executors:
        for at in (-1, 3):
            with pytest.raises(oic.StepError) as refused:
                executor.step(x=x, at=np.int64(at))
            assert refused.value.status == "OIC_ERR_INDEX"


ODD = """
dynamic  {{ x: f32[3, 32]; }}
constant {{ up(l): f32[32, {n}] @pattern("up.{{l}}"); down(l): f32[{n}, 32] @pattern("down.{{l}}");
           wide(l): f32[{n}, 32]; thin(l): f32[32, {n}]; }}
volatile {{ y: f32[3, 32]; z: f32[3, 32]; }}
block entry {{
  assign h: f32[3, 32]; assign u: f32[3, {n}];
  op abs(x) >> h;
  loop layers (l in 0..3) {{ op matmul(h, up[l]) >> u; op matmul(u, down[l]) >> h; }}
  op abs(h) >> y;
  op abs(x) >> h;
  loop others (l in 0..3) {{ op linear(h, wide[l]) >> u; op linear(u, thin[l]) >> h; }}
  op abs(h) >> z;
  return;
}}
"""


@pytest.mark.parametrize("n", [40, 57, 100])
def test_members_of_a_size_that_panels_do_not_divide_are_read_where_they_lie(n: int, tmp_path: Path) -> None:
    """No copy is made of a member, which would be dense under a kernel that takes panels."""
    rng, names = np.random.default_rng(n), ("up", "down")
    weights = {f"{name}.{i}": rng.standard_normal((32, n) if name == "up" else (n, 32)) for name in names for i in range(3)}
    weights |= {"wide": rng.standard_normal((3, n, 32)), "thin": rng.standard_normal((3, 32, n))}
    model = oic.Model(tensors={name: (w / 6).astype(np.float32) for name, w in weights.items()})
    graph = oic.parse(ODD.format(n=n), "odd")
    program = compile_graph(graph, model, Settings(verified=True))
    *_, (_, module) = lowered(program.module, program.settings)
    assert set(encodings(module).values()) == {"columns", "panels"}
    assert not [op for op in module.all_ops() if op.name == "copy" and op.operands[0].tensor.encoding]
    x = rng.standard_normal((3, 32)).astype(np.float32)
    expected = oic.Simulator(graph, model).make_executor().step(x=x)
    compiled = oic.Synthesizer(graph, model).build(tmp_path).make_executor().step(x=x)
    for name, value in expected.items():
        np.testing.assert_allclose(compiled[name], value, rtol=1e-4, atol=1e-4)


PACKED = """
dynamic  { x: i4[4, 5]; at: i64; }
constant { w: i4[3, 5, 5]; }
volatile { y: i32[4, 5]; z: i8[3, 5, 5]; u: i8[2, 5, 5]; q: i8[75]; }
block entry {
  assign c: i4[1, 5, 5]; assign m: i4[5, 5]; assign p: i4[2, 5, 5]; assign f: i4[75];
  op slice(w, axis=0, start=at, end=at+1) >> c;
  op reshape(c, shape=[5, 5]) >> m;
  op matmul(x, m, acc=i32) >> y;
  op cast(w, to=i8) >> z;
  op slice(w, axis=0, start=1, end=3) >> p;
  op cast(p, to=i8) >> u;
  op reshape(w, shape=[75]) >> f;
  op cast(f, to=i8) >> q;
  return;
}
"""


def test_members_that_begin_inside_a_byte_are_cut(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nibbles = dtypes.i4.np
    model = oic.Model(tensors={"w": rng.integers(-8, 8, (3, 5, 5)).astype(nibbles)})
    graph, x = oic.parse(PACKED, "packed"), rng.integers(-8, 8, (4, 5)).astype(nibbles)
    backends: list[Any] = [oic.Simulator(graph, model, stage=stage) for stage in ("graph", "planned")]
    executors = [b.make_executor() for b in (*backends, oic.Synthesizer(graph, model).build(tmp_path))]
    for at in range(3):
        expected, *others = (e.step(x=x, at=np.int64(at)) for e in executors)
        assert all(np.array_equal(found[name], value) for found in others for name, value in expected.items())
