"""Products that hand on their results, element by element, have the bits of products that store them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.dtypes import Array
from oic.ir.control import Parallel
from oic.ir.core import Op, Place
from oic.ir.module import Module
from oic.memory.verify import verify
from oic.operators.fused import Fused
from processor import AVX2, features
from runtime.native import EMULATED
from tests.fuzz.watched import WatchedMachine

ROWS = 300  # more than are quantised, or rounded, at a time
# Columns of one panel, of several, of streams and some more, and of a single row such that fill none;
# what takes them, from the sums `s`, by way of them, to the result `y`.
CASES = (
    (16, "op linear(x, w) >> s; op relu(s) >> y;"),
    (48, "op matmul(x, u) >> s; op add(s, b) >> s; op mul(s, c) >> s; op mul(s, s) >> y;"),
    (77, "op linear(v, w) >> s; op sub(b, s) >> y;"),
    (304, "op matmul(x, u) >> s; op cast(s, to=bf16) >> y;"),
    (1040, "op linear(x, w, b=b) >> s; op gelu(s) >> s; op add(r, s) >> y;"),
)


def given() -> tuple[oic.Graph, oic.Model, dict[str, Array]]:
    """Every case twice: its sums go on to what takes them (y); those of equal inputs are an output too, and stored (t, z)."""
    rng = np.random.default_rng(5)
    outputs, body = "", ""
    constants: dict[str, Array] = {"c": np.float32(1.5)}
    for i, (n, statements) in enumerate(CASES):
        constants |= {f"w{i}": rng.standard_normal((n, 70)), f"u{i}": rng.standard_normal((70, n)), f"b{i}": rng.standard_normal(n)}
        shape, to = "" if "(v" in statements else "N, ", "bf16" if "bf16" in statements else "f32"
        outputs += f"y{i}: {to}[{shape}{n}]; z{i}: {to}[{shape}{n}]; t{i}: f32[{shape}{n}]; "
        body += f"assign s{i}: f32[{shape}{n}]; "
        first, _, rest = re.sub(r"\b([wubsy])\b(?!=)", rf"\g<1>{i}", statements).partition("; ")
        body += f"{first}; {rest}\n" + first.replace(f"s{i}", f"t{i}").replace("(x", "(p").replace("(v", "(q") + "; "
        body += rest.replace(f"s{i}", f"t{i}", 1).replace(f"y{i}", f"z{i}") + "\n"
    declared = "".join(f"{k}: f32[{', '.join(map(str, np.shape(v)))}]; " for k, v in constants.items())
    text = f"""graph g {{
      dynamic {{ x: f32[N, 70] @max(N={ROWS}); p: f32[N, 70]; r: f32[N, 1040]; v: f32[70]; q: f32[70]; }}
      constant {{ {declared} }} volatile {{ {outputs} }} block entry {{ {body} return; }} }}"""
    inputs = {"x": rng.standard_normal((ROWS, 70)), "r": rng.standard_normal((ROWS, 1040)), "v": rng.standard_normal(70)}
    tensors, fed = ({k: np.asarray(v, np.float32) for k, v in d.items()} for d in (constants, inputs))
    return oic.parse(text, name="g"), oic.Model(tensors=tensors), fed | {"p": fed["x"], "q": fed["v"]}


def planned(made: oic.Synthesizer) -> Module:
    assert made.program.planned is not None
    return made.program.planned


def products(module: Module) -> list[Op]:
    return [op for op in module.all_ops() if op.kernel.startswith("linear_")]


def regions(module: Module) -> list[Fused]:
    return [op for op in module.all_ops() if isinstance(op, Fused) and op.product is not None]


@pytest.mark.parametrize(
    ("storage", "target"),
    [("q8", "host"), ("q4", "host"), ("q8", "portable"), ("q4", "portable"), ("bf16", "portable")],
)
def test_what_is_handed_on_has_the_bits_of_what_is_stored(
    storage: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if storage == "bf16":
        if shutil.which("gcc") is None or not set(AVX2) <= features():
            pytest.skip("no gcc, or no AVX2 to emulate upon")
        monkeypatch.setenv("CC", shlex.join(["gcc", *EMULATED]))
    graph, model, inputs = given()
    how = {"numerics": "native"} if storage == "bf16" else {}
    made = oic.Synthesizer(graph, model, weights=storage, target=target, threads=3, **how)
    assert [op.kernel for op in products(planned(made))] == [f"linear_{'pairs' if how else storage}"] * 10
    assert len(regions(planned(made))) == 5
    made.build()
    for threads in (1, 2, 3):
        with made.make_executor(threads) as executor:
            for rows in (0, 1, 2, 5, 33, ROWS):
                results = executor.step(**inputs | {name: inputs[name][:rows] for name in "xpr"})
                for i in range(len(CASES)):
                    y, z = results[f"y{i}"], results[f"z{i}"]
                    assert y.tobytes() == z.tobytes(), (i, rows, threads)
                    assert y.size == 0 or (y != 0).any()


# A residual in place; one that the product reads itself; what is stored in the state; a product of state that is then set.
STATE = """graph g { sizes { K = 48; }
dynamic { x: f32[N, K] @max(N=5); g: f32[5, K]; }
constant { w: f32[K, K]; b: f32[K]; }
persistent { kept: f32[5, K]; T(t): f32[K] @table @fixed(t=20); n: i32 @init(0); }
volatile { y: f32[N, K]; z: f32[N, K]; o: f32[5, K]; }
block entry { assign h: f32[N, K]; assign t: f32[N, K]; assign a: f32[5, K]; assign old: f32[5, K];
  op tanh(x) >> h; op linear(x, w) >> t; op add(t, b) >> t; op add(h, t) >> h;
  loop layers (l in 0..3) { op linear(h, w) >> t; op add(t, b) >> t; op add(h, t) >> h; op tanh(h) >> h; }
  op linear(h, w) >> t; op gelu(t) >> y;
  op linear(y, w) >> t; op add(t, x) >> z;
  cache.write z >> T[n..n + N]; cache.increment N n;
  cache.read kept >> old; op linear(old, w) >> a; cache.write g >> kept; op gelu(a) >> a; op add(a, b) >> o;
  return; } }"""


@pytest.mark.parametrize("storage", ["q8", "q4"])
def test_state_and_memory_are_kept(storage: str) -> None:
    rng = np.random.default_rng(3)
    tensors = {"w": rng.standard_normal((48, 48)).astype(np.float32) / 8, "b": rng.standard_normal(48).astype(np.float32)}
    graph, model = oic.parse(STATE, name="g"), oic.Model(tensors=tensors)
    made = oic.Synthesizer(graph, model, weights=storage, threads=2).build()
    module = planned(made)
    assert (len(products(module)), len(regions(module))) == (5, 4)
    verify(module)
    watch = WatchedMachine(module)
    with made.make_executor() as executor, oic.Simulator(graph, model, weights=storage).make_executor() as reference:
        for rows in (5, 0, 1, 3):
            fed = {"x": rng.standard_normal((rows, 48)), "g": rng.standard_normal((5, 48))}
            inputs = {name: values.astype(np.float32) for name, values in fed.items()}
            found, wanted, watched = executor.step(**inputs), reference.step(**inputs), watch.step("entry", inputs)
            for name, value in wanted.items():
                assert watched[name].tobytes() == value.tobytes()
                np.testing.assert_allclose(found[name], value, atol=0.2)


def test_a_product_is_not_written_over_while_it_is_computed() -> None:
    """Neither the planner does it, nor would it go unseen."""
    text = """graph g { dynamic { x: f32[4, 48]; } constant { w: f32[48, 48]; } volatile { y: f32[4, 48]; }
      block entry { assign h: f32[4, 48]; assign t: f32[4, 48]; op tanh(x) >> h; op linear(h, w) >> t; op add(h, t) >> h;
        op linear(h, w) >> y; return; } }"""
    model = oic.Model(tensors={"w": np.ones((48, 48), np.float32)})
    module = planned(oic.Synthesizer(oic.parse(text, name="g"), model, weights="q8"))
    (region,) = regions(module)
    h = next(v for v in region.inputs if v.hint == "h")
    assert not region.takes_elements(h)
    assert h.place is not None and region.result.place is not None and h.place.offset != region.result.place.offset
    verify(module)
    region.result.place = Place("arena", h.place.buffer, h.place.offset)
    with pytest.raises(AssertionError, match="is written over its operand"):
        verify(module)
    with pytest.raises(AssertionError, match="while it is read"):
        WatchedMachine(module).step("entry", {"x": np.ones((4, 48), np.float32)})


def test_results_that_are_handed_on_have_no_memory(tmp_path: Path) -> None:
    text = """graph g { dynamic { x: f32[64, 64]; } constant { w: f32[512, 64]; v: f32[64, 512]; } volatile { y: f32[64, 64]; }
      block entry { assign h: f32[64, 512]; assign t: f32[64, 64]; op linear(x, w) >> h; op gelu(h) >> h;
        op linear(h, v) >> t; op add(x, t) >> y; return; } }"""
    tensors = {"w": np.ones((512, 64), np.float32), "v": np.ones((64, 512), np.float32)}
    made = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors=tensors), weights="q8")
    text = made.emit(tmp_path).sources[0].read_text(encoding="utf-8")
    assert ".then = g_step_then, .context = &(g_step_then_args){" in " ".join(text.split())
    assert ".y = h," in text and ".y = y," in text  # where they go on to, which is asked for
    assert "h[i * 512 + j] = oic_gelu_erf_f32(sum[at + i * ld + j]);" in text
    assert "y[i * 64 + j] = x[i * 64 + j] + sum[at + i * ld + j];" in text
    plan = planned(made).plan
    assert plan is not None
    assert {b.name for b in plan.space("arena")} == {"h", "h.scratch", "y.scratch"}


# Regions that run at once hand on results of their own.
CONSUMERS = """graph g { dynamic { x: f32[N, 64] @max(N=9); }
constant { w: f32[64, 64]; v: f32[64, 64]; }
volatile { y: f32[N, 64]; z: f32[N, 64]; }
block entry { op tanh(x) >> y; op relu(x) >> z; yield y, z; await y, z; return; }
block first { await y; assign t: f32[N, 64]; op linear(y, w) >> t; op gelu(t) >> y; yield y; }
block second { await z; assign t: f32[N, 64]; op linear(z, v) >> t; op relu(t) >> t; op add(z, t) >> z; yield z; }
}"""


def test_consumers_hand_on_what_they_compute() -> None:
    rng = np.random.default_rng(4)
    tensors = {name: rng.standard_normal((64, 64)).astype(np.float32) for name in "wv"}
    graph, model = oic.parse(CONSUMERS, name="g"), oic.Model(tensors=tensors)
    one, several = (oic.Synthesizer(graph, model, weights="q8", threads=threads).build() for threads in (1, 3))
    assert len(regions(planned(one))) == len(regions(planned(several))) == 2
    assert any(isinstance(op, Parallel) for op in planned(several).all_ops())
    with one.make_executor() as alone, several.make_executor() as together:
        for rows in (9, 1, 0):
            x = rng.standard_normal((rows, 64)).astype(np.float32)
            wanted, found = alone.step(x=x), together.step(x=x)
            assert all(found[k].tobytes() == v.tobytes() for k, v in wanted.items()), rows
