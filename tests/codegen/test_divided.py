"""Operators that threads share give the same bits on any number of threads."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import oic
from batch import build_together
from oic.driver import Settings, compile_graph, lowered
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module

pytestmark = pytest.mark.xdist_group("divided-codegen")

TEXT = """graph divided {
dynamic  { x: f32[N, 160] @max(N=9); q: f32[N, 6, 32]; k: f32[T, 3, 32] @max(T=700);
           p: f32[1, 2, 8]; j: f32[J, 1, 8] @max(J=9000); m: f32[M, 3, 32] @max(M=100); }
constant { w: f32[1030, 160]; u: f32[160, 1030]; b: f32[1030]; s: f32[40, 160]; }
volatile { y: f32[N, 1030]; z: f32[N, 1030]; t: f32[N, 40]; g: f32[N, 1030]; h: f32[N, 1030]; e: f32[N, 1030];
           a: f32[N, 6, 32]; c: f32[1, 2, 8]; d: f32[N, 6, 32];
           r: f32[160, 160]; l: f32[160, 160]; }
block entry { op linear(x, w, b=b) >> y; op matmul(x, u) >> z; op linear(x, s) >> t; op matmul(x, x, transpose_a=true) >> r; op linear(r, r) >> l;
  op gelu(y) >> g; op layer_norm(z, b, eps=1e-5) >> h; op add(g, b) >> g; op mul(y, z) >> e;
  op attention(q, k, k, causal=true) >> a; op attention(p, j, j, window=8700) >> c; op attention(q, m, m) >> d; return; }
}"""


def model() -> oic.Model:
    rng = np.random.default_rng(4)
    shapes = {"w": (1030, 160), "u": (160, 1030), "b": (1030,), "s": (40, 160)}
    return oic.Model(tensors={k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()})


def test_any_number_of_threads_gives_the_same_bits(tmp_path: Path) -> None:
    graph, given = oic.parse(TEXT), model()
    made = {
        (storage, threads): oic.Synthesizer(graph, given, threads=threads, weights=storage, name=f"{storage}_{threads}")
        for storage in ("f32", "q8") for threads in (1, 7)
    }  # fmt: skip
    build_together(list(made.values()), tmp_path, "-pthread")
    for storage, call in (("f32", "oic_divide("), ("q8", "oic_linear_q8_divided_f32_f32_f32(")):
        whole, one = made[storage, 7], made[storage, 1]
        sources = [syn.library.files.sources[0].read_text() for syn in (whole, one)]
        assert [text.count(f"{call}s->pool, 7, 17,") for text in sources] == [2, 0]
        assert [text.count("oic_attention_divided_f32_f32(") for text in sources] == [3, 0]
        assert sources[0].count(".spans = ") == 2  # the keys of one are a single span
        _check(whole, one)


def _check(whole: oic.Synthesizer, one: oic.Synthesizer) -> None:
    rng = np.random.default_rng(5)
    shapes = ((9, 160), (9, 6, 32), (650, 3, 32), (1, 2, 8), (8999, 1, 8), (70, 3, 32))
    x, q, k, p, j, m = (rng.standard_normal(s).astype(np.float32) for s in shapes)
    with one.make_executor() as alone:
        wanted = {rows: alone.step(x=x[:rows], q=q[:rows], k=k, p=p, j=j, m=m) for rows in (0, 1, 4, 9)}
    for threads in (None, 1, 2, 3, 7):
        with whole.make_executor(threads) as ex:
            for rows, outputs in wanted.items():
                found = ex.step(x=x[:rows], q=q[:rows], k=k, p=p, j=j, m=m)
                assert all(found[k].tobytes() == v.tobytes() for k, v in outputs.items()), (threads, rows)
            other = ex.fork()
            assert other.step(x=x, q=q, k=k, p=p, j=j, m=m)["y"].tobytes() == wanted[9]["y"].tobytes()
            other.close()
    with pytest.raises(oic.OicError, match="built for 1 to 7 threads, not 8"):
        whole.make_executor(8)


POSITIONS = """graph positions {
dynamic  { x: f32[V] @max(V=70001); r: f32[3, 9001]; c: f32[3, 2000, 7]; }
volatile { first: i64; last: i64; least: i64; end: i64; rows: i64[3]; columns: i64[3, 7]; }
block entry { op argmax_axis(x, axis=0) >> first; op argmax_axis(x, axis=0, select_first=false) >> last;
  op argmin_axis(x, axis=0) >> least; op argmin_axis(x, axis=0, select_first=false) >> end;
  op argmax_axis(r, axis=1) >> rows; op argmin_axis(c, axis=1) >> columns; return; }
}"""


def test_positions_are_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    """Equal elements, NaN and zeros of both signs in one span and in several."""
    graph = oic.parse(POSITIONS)
    made = oic.Synthesizer(graph, threads=3).build(tmp_path)
    assert made.library.files.sources[0].read_text().count("_axis_divided_f32(s->pool, 3,") == 6
    rng = np.random.default_rng(6)
    r, c = (rng.integers(-9, 9, s).astype(np.float32) for s in ((3, 9001), (3, 2000, 7)))
    special = [(0, np.nan), (1, np.nan), (65000, np.nan), (69999, 100.0), (70000, 100.0), (30, -np.inf), (60000, -np.inf)]
    with oic.Simulator(graph).make_executor() as reference:
        for size in (1, 1023, 1025, 65537, 70001):
            several = [rng.standard_normal(size), rng.integers(-3, 3, size), np.full(size, -np.inf)]
            several += [np.where(np.arange(size) % 2 == 0, -0.0, 0.0)]
            for at, value in special:
                several.append(rng.integers(-3, 3, size).astype(np.float64))
                several[-1][at % size] = value
            inputs = [{"x": x.astype(np.float32), "r": r, "c": c} for x in several]
            wanted = [reference.step(**given) for given in inputs]
            for threads in (1, 2, 3):
                with made.make_executor(threads) as ex:
                    for given, outputs in zip(inputs, wanted, strict=True):
                        found = ex.step(**given)
                        assert all(np.array_equal(found[k], v) for k, v in outputs.items()), (size, threads)


SCALED = """graph scaled {
dynamic  { x: f32[V, 37] @max(V=3001); }
constant { s: f32[37]; m: i32[37]; n: i8[37]; o: f32; a: i32[37, 1]; b: i8[37, 1]; }
volatile { q: i8[V, 37]; p: i4[V, 37]; d: f32[V, 37]; r: i8[V, 37]; t: i8[37, V]; }
block entry { assign wide: i32[V, 37]; assign turned: f32[37, V]; assign last: i32[37, V];
  op quantize(x, s, to=i8, axis=1) >> q; op quantize(x, o, to=i4) >> p; op dequantize(q, s, to=f32, axis=1) >> d;
  op quantize(x, o, to=i32) >> wide; op requantize(wide, m, n, to=i8) >> r;
  op transpose(x, perm=[1, 0]) >> turned; op quantize(turned, s, to=i32, axis=0) >> last;
  op requantize(last, a, b, to=i8, rounding="nearest") >> t; return; }
}"""


def test_scaled_elements_are_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    """Threads meet in the middle of rows, and share no byte of packed ones."""
    rng = np.random.default_rng(7)
    given: dict[str, np.ndarray] = {"s": rng.uniform(0.01, 0.1, 37).astype(np.float32), "o": np.float32(0.25)}
    given |= {"m": rng.integers(1 << 30, (1 << 31) - 1, 37, np.int32), "n": rng.integers(-3, 2, 37, np.int8)}
    given |= {"a": given["m"][:, None], "b": given["n"][:, None]}
    graph, model = oic.parse(SCALED), oic.Model(tensors=given)
    made = oic.Synthesizer(graph, model, threads=3).build(tmp_path)
    text = made.library.files.sources[0].read_text()
    assert [text.count(f" oic_{name}_part_") for name in ("quantize", "dequantize", "requantize")] == [4, 1, 2]
    with oic.Simulator(graph, model).make_executor() as reference:
        for size in (1, 27, 28, 2999, 3001):
            x = rng.standard_normal((size, 37)).astype(np.float32)
            wanted = reference.step(x=x)
            for threads in (1, 2, 3):
                with made.make_executor(threads) as ex:
                    found = ex.step(x=x)
                    assert all(np.array_equal(found[k], v) for k, v in wanted.items()), (size, threads)


ROWS = """graph rows {
dynamic  { x: f32[N, 7, 130] @max(N=117); n: i8[N, 701]; h: f16[N, 1, 1030]; p: i4[N, 701]; i: i32[301]; j: i32[J] @max(J=301); e: i64[2, 151]; q: i32; }
constant { c: f32[7]; t: f32[130, 40]; u: f16[517, 131]; k: i4[40, 257]; b: f32[32, 3]; w: f32[517, 160]; }
volatile { s1: f32[N, 7, 130]; s2: f32[N, 7, 130]; s3: f32[N, 7, 130]; s4: f16[N, 1, 1030]; l1: f32[N, 7, 130]; l2: f32[N, 7, 130];
  n1: f32[N, 7, 130]; m1: f32[N, 7, 65]; m2: f32[N, 6, 43]; m3: f32[N, 7, 128]; m4: f16[N, 1, 343];
  r1: f32[N, 7]; r2: f32[7, 130]; r3: f32[7]; r4: f32[N, 130]; r5: f32[7, 130]; r6: f32[N, 7]; r7: f32[N, 130]; r8: f32[7]; r9: f32[N, 130];
  i1: i8[N]; i2: i8[701]; i3: i4[N]; c1: f32[N, 7, 130]; c2: f32[N, 7, 130]; o1: f32[N, 7, 130]; o2: f32[N, 7, 130];
  g1: f16[301, 131]; g2: f32[301, 131]; g3: i4[301, 257]; g4: f32[130, 2, 151]; g5: f32[J, 160]; y: f32[J, 517];
  k1: f32[N, 7, 9]; w1: i32[N, 7, 9]; k2: f32[N, 2, 130]; w2: i32[N, 2, 130]; b1: f32[3, 61, 100]; }
block entry {
  op softmax(x) >> s1; op softmax(x, axis=1) >> s2; op softmax(x, axis=0) >> s3; op softmax(h) >> s4;
  op log_softmax(x) >> l1; op log_softmax(x, axis=1) >> l2; op batch_norm(x, c, c, c, c) >> n1;
  op max_pool(x, kernel=3, stride=2, padding=1) >> m1; op avg_pool(x, kernel=[2, 3], stride=[1, 3]) >> m2;
  op avg_pool(x, kernel=3, stride=1) >> m3; op max_pool(h, kernel=4, stride=3) >> m4;
  op sum_axis(x, axes=[2]) >> r1; op mean_axis(x, axes=[0]) >> r2; op sum_axis(x, axes=[0, 2]) >> r3; op mean_axis(x, axes=[1]) >> r4;
  op prod_axis(x, axes=[0]) >> r5; op prod_axis(x, axes=[2]) >> r6; op max_axis(x, axes=[1]) >> r7; op sum_axis(n, axes=[1]) >> i1;
  op prod_axis(n, axes=[0]) >> i2; op sum_axis(p, axes=[1]) >> i3; op prod_axis(x, axes=[0, 2]) >> r8; op min_axis(x, axes=[1]) >> r9;
  op cumsum(x, axis=2) >> c1; op cumsum(x, axis=0, exclusive=true) >> c2;
  op rope(x, pos=5) >> o1; op rope(x, pos=0, dims=64, style="interleaved") >> o2;
  op gather(u, i) >> g1; op gather(u, i, to=f32) >> g2; op gather(k, i) >> g3; op gather(t, e, axis=1) >> g4;
  op gather(w, j) >> g5; op linear(g5, w) >> y;
  op top_k(x, k=9) >> k1, w1; op top_k(x, k=2, axis=1) >> k2, w2;
  op relative_position_bias(b, q_start=q, n=61, t=100, bidirectional=true) >> b1; return; }
}"""
ENTRIES = """graph entries { dynamic { j: i32[J] @max(J=301); } constant { w: f32[517, 160]; }
volatile { g: f32[J, 160]; y: f32[J, 517]; } block entry { op gather(w, j) >> g; op linear(g, w) >> y; return; } }"""
PARTS = {
    "softmax": 4, "log_softmax": 2, "batch_norm": 1, "max_pool": 2, "avg_pool": 2, "sum_axis": 2, "mean_axis": 2, "prod_axis": 3,
    "max_axis": 1, "min_axis": 1, "cumsum": 2, "rope": 2, "gather": 3, "gather_panels": 1, "top_k": 2, "relative_position_bias": 1,
}  # fmt: skip


def test_rows_and_columns_are_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    """Rows, sixteen columns each, planes and entries are units; packed results, whose bytes are shared, are not divided."""
    rng = np.random.default_rng(8)
    shapes = {"c": (7,), "t": (130, 40), "u": (517, 131), "b": (32, 3), "w": (517, 160)}
    tensors = {k: rng.uniform(0.5, 2, s).astype(np.float16 if k == "u" else np.float32) for k, s in shapes.items()}
    model = oic.Model(tensors=tensors | {"k": rng.integers(-8, 8, (40, 257)).astype(ml_dtypes.int4)})
    one, whole = (oic.Synthesizer(oic.parse(ROWS), model, threads=threads, name=f"rows_{threads}") for threads in (1, 5))
    gathers = {
        (storage, threads): oic.Synthesizer(oic.parse(ENTRIES), model, threads=threads, weights=storage, name=f"{storage}_{threads}")
        for storage in ("q8", "q4") for threads in (1, 5)
    }  # fmt: skip
    build_together([one, whole, *gathers.values()], tmp_path, "-pthread")
    text = whole.library.files.sources[0].read_text()
    assert {name: text.count(f" oic_{name}_part_f") for name in PARTS} == PARTS
    assert text.count("_axis_part_i8_i8(") == 2 and "_part_i4" not in text
    assert "_part_" not in one.library.files.sources[0].read_text()
    for rows in (0, 1, 117):
        x = rng.standard_normal((rows, 7, 130)).astype(np.float32)
        given = {"x": x, "n": rng.integers(-9, 9, (rows, 701)).astype(np.int8), "p": rng.integers(-8, 8, (rows, 701)).astype(ml_dtypes.int4)}
        given |= {"i": rng.integers(0, 40, 301, np.int32), "j": rng.integers(0, 517, 301, np.int32), "e": rng.integers(0, 40, (2, 151))}
        given |= {"q": np.int32(rows), "h": rng.standard_normal((rows, 1, 1030)).astype(np.float16)}
        _alike(one, whole, given)
        for storage in ("q8", "q4"):
            divided = gathers[storage, 5]
            assert divided.library.files.sources[0].read_text().count(f" oic_gather_{storage}_part_f32") == 1
            _alike(gathers[storage, 1], divided, {"j": given["j"][: 301 if rows else 0]})


def _alike(one: oic.Synthesizer, whole: oic.Synthesizer, given: dict[str, np.ndarray]) -> None:
    with one.make_executor() as alone:
        wanted = alone.step(**given)
    for threads in (1, 2, 5):
        with whole.make_executor(threads) as ex:
            found = ex.step(**given)
            assert [k for k, v in wanted.items() if found[k].tobytes() != v.tobytes()] == [], threads


def test_what_is_worth_no_thread_is_not_divided() -> None:
    for rows, divided in ((8, False), (64, True)):
        text = f"dynamic {{ x: f32[{rows}, 130]; }} volatile {{ y: f32[{rows}, 130]; }}"
        program = compile_graph(oic.parse(text + " block entry { op softmax(x) >> y; return; }"), None, Settings(threads=3))
        *_, (_, module) = lowered(program.module, program.settings)
        assert ("workers" in print_module(module)) is divided


def test_angles_that_are_shared_can_be_read_again() -> None:
    """They have a kernel and workers, though no source names the operator."""
    text = "dynamic { x: f32[512, 1, 128]; s: i32; } volatile { y: f32[512, 1, 128]; z: f32[512, 1, 128]; }"
    text += " block entry { op rope(x, pos=s) >> y; op rope(y, pos=s) >> z; return; }"
    program = compile_graph(oic.parse(text), None, Settings(threads=3))
    *_, (_, module) = lowered(program.module, program.settings)
    found = print_module(module)
    assert 'kernel="rope_angles", workers=3' in found and print_module(parse_module(found)) == found


def test_what_is_divided_is_in_the_ir() -> None:
    program = compile_graph(oic.parse(TEXT), model(), Settings(threads=3))
    *_, (_, module) = lowered(program.module, program.settings)
    text = print_module(module)
    assert text.count('kernel="linear_panels", workers=3') == 2 and text.count('kernel="linear_panels"}') == 1
    assert [text.count(f'kernel="{name}", workers=3') for name in ("matmul", "linear")] == [1, 1]
    assert print_module(parse_module(text)) == text
    with pytest.raises(oic.OicError, match="workers are a number of threads, not 0"):
        parse_module(text.replace("workers=3", "workers=0"))
