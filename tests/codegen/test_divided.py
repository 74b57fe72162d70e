"""Operators that threads share give the same bits on any number of threads."""

from __future__ import annotations

from pathlib import Path

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


def test_what_is_divided_is_in_the_ir() -> None:
    program = compile_graph(oic.parse(TEXT), model(), Settings(threads=3))
    *_, (_, module) = lowered(program.module, program.settings)
    text = print_module(module)
    assert text.count('kernel="linear_panels", workers=3') == 2 and text.count('kernel="linear_panels"}') == 1
    assert [text.count(f'kernel="{name}", workers=3') for name in ("matmul", "linear")] == [1, 1]
    assert print_module(parse_module(text)) == text
    with pytest.raises(oic.OicError, match="workers are a number of threads, not 0"):
        parse_module(text.replace("workers=3", "workers=0"))
