"""What the language says, in every executor: values derived by hand, in the Simulator and in C.

Every program runs over GRAPH, over PLANNED, and as C; all of them are compiled together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from oic import StepError, dtypes
from oic.syntax.graph_json import from_json, to_json
from oic.syntax.unparse import unparse

pytestmark = pytest.mark.xdist_group("language-session")

Step = tuple[dict[str, Any], dict[str, Any] | str]


@dataclass(frozen=True)
class Program:
    """A graph with the steps of one session: inputs, and outputs or the status of a refusal.

    fetched   what `fetch` gives in the end
    """

    text: str
    steps: list[Step]
    model: dict[str, Any] = field(default_factory=dict)
    fetched: dict[str, Any] = field(default_factory=dict)


F = np.float32
STACKED = np.arange(12, dtype=F).reshape(3, 2, 2)

PROGRAMS = {
    "stacked": Program(
        """dynamic { i: i32; } constant { W(l): f32[D, D] @ref(w); one(l): f32 @ref(gone, "b.w"); }
        volatile { y: f32[D, D]; a: f32[D, D]; z: f32; }
        block entry {
          transfer W[1] >> a;
          loop l (l in 0..2) { op add(a, W[l + 1],) >> a; }
          op mul(W[i], one[i]) >> y;
          transfer one[2 - i] >> z;
          return;
        }""",
        [
            ({"i": 0}, {"y": [[0, 1], [2, 3]], "a": [[16, 19], [22, 25]], "z": 4}),
            ({"i": 2}, {"y": [[32, 36], [40, 44]], "a": [[16, 19], [22, 25]], "z": 1}),
            ({"i": 3}, "OIC_ERR_INDEX"),
            ({"i": -1}, "OIC_ERR_INDEX"),
        ],
        {"w": STACKED, "b.w": np.array([1, 2, 4], F)},
        {"W": STACKED, "one": [1, 2, 4]},
    ),
    "zeros_of_t1": Program(
        """dynamic { x: t1[5]; } constant { W: t1[2]; I: t1[2] @init(0); } volatile { y: t1[5]; w: t1[2]; i: t1[2]; }
        persistent { K(t): t1[5] @table @fixed(t=2); }
        block entry { transfer x >> y; transfer W >> w; transfer I >> i; cache.write x >> K[1]; return; }""",
        [({"x": [0, 1, -1, 0, 1]}, {"y": [-1, 1, -1, -1, 1], "w": [-1, 1], "i": [-1, -1]})],
        {"W": ([0, 1], "t1")},
        {"W": [-1, 1], "I": [-1, -1], "K": [[-1, -1, -1, -1, -1], [-1, 1, -1, -1, 1]]},
    ),
    "stacked_twice": Program(
        """dynamic { i: i32; j: i32; } constant { W(l, m): i32[S]; P(l): u4[3]; T(l): i2[5]; }
        volatile { y: i32[S]; p: u4[3]; t: i2[5]; }
        block entry { op neg(W[i, j * 2]) >> y; op min(P[i], P[1]) >> p; transfer T[j] >> t; return; }""",
        [
            ({"i": 1, "j": 1}, {"y": [-10, -11], "p": [9, 8, 7], "t": [1, -1, -1, 0, 1]}),
            ({"i": 0, "j": 0}, {"y": [0, -1], "p": [1, 2, 3], "t": [1, 1, -2, 1, -1]}),
            ({"i": 0, "j": 2}, "OIC_ERR_INDEX"),
        ],
        {
            "W": np.arange(12, dtype=np.int16).reshape(2, 3, 2),
            "P": np.array([[1, 2, 3], [9, 8, 7]], dtypes.u4.np),
            "T": np.array([[1, 1, -2, 1, -1], [1, -1, -1, 0, 1]], dtypes.i2.np),
        },
    ),
    "stacked_single": Program(
        """dynamic { i: i32; } constant { W(l): f32; V(l): f32[2] @init(1.5); }
        volatile { y: f32; z: f32[2]; }
        block entry { op neg(W[i]) >> y; op neg(V[i]) >> z; return; }""",
        [({"i": 0}, {"y": -3, "z": [-1.5, -1.5]}), ({"i": 1}, "OIC_ERR_INDEX")],
        {"W": np.array([3], F)},
    ),
    "sizes_and_tensors_of_one_name": Program(
        """sizes { D = 2; H = 3; b = 2; t = 1; } dynamic { D: f32[D, H]; x: f32[1, 3]; b: f32[D]; N: f32[N] @max(N=4); }
        persistent { K(l, t): f32[D] @table @fixed(l=4); n: i32; H: i32[1] @init(7); }
        volatile { y: f32[1, D]; z: i32; s: f32[D, H]; w: i32; v: i32; m: i32; h: i32; u: f32; }
        block entry {
          op linear(x, D, b=b) >> y;
          cache.increment D n; cache.increment b * 10 n;
          cache.write b >> K[D, b];
          loop l (i in 0..D) { op fill(w, value=w + i + b) >> w; }
          op slice(D, axis=0, start=0, end=D) >> s;
          op sum_axis(N, axes=[0]) >> u; op fill(v, value=N) >> v; op fill(z, value=n) >> z; op fill(h, value=H) >> h;
          assign t: f32[3];
          branch more;
          return;
        }
        block more { op fill(m, value=t) >> m; return; }""",
        [
            (
                {"D": np.ones((2, 3), F), "x": [[1, 2, 3]], "b": [1, 2], "N": [1, 2, 3]},
                {"y": [[7, 8]], "z": 22, "s": np.ones((2, 3)), "w": 5, "v": 3, "m": 1, "h": 7, "u": 6},
            ),
        ],
        {},
        {"K": [[[0, 0]] * 3, [[0, 0]] * 3, [[0, 0], [0, 0], [1, 2]], [[0, 0]] * 3], "n": 22},
    ),
    "literals": Program(
        """dynamic { x: f32[2, 2]; n: i8[2]; h: f16[2]; c: bool[2]; k: i4[3]; b: bitset[2]; u: u64[1]; }
        constant { t: f32[3, 2] @init(1.5); }
        volatile { y: f32[2, 2]; m: i8[2]; g: f16[2]; z: f16[2]; w: bool[2, 2]; j: i4[3]; p: i16[2]; q: i8[2, 2];
          r: f32[2]; bb: bitset[2]; s: f32[2, 2]; v: u64[1]; a: bool[2]; e: f32[2, 2]; o: f8[2]; e8: f8[2]; i: i32; }
        block entry {
          op mul(x, -0.5) >> y;
          op add(-3, n) >> m;
          op add(h, 0.1) >> g;
          op where(c, -inf, h) >> z;
          op lt(x, nan) >> w;
          op add(k, -0x8) >> j;
          op add(n, 100, acc=i16) >> p;
          op quantize(x, 0.5, zero_point=-1, to=i8) >> q;
          op gather(t, 2) >> r;
          op mul(b, 0b101) >> bb;
          op fma(x, 2.0, 1.0) >> s;
          op add(u, 18446744073709551615) >> v;
          op xor(c, true) >> a;
          op pow(x, 2.0) >> e;
          op max(e, 2.0) >> e;
          op cast(n, to=f8) >> e8;
          op mul(e8, 1.1) >> o;
          assign l: f32[4]; op reshape(x, shape=[4]) >> l; op sample(l, 0.25) >> i;
          return;
        }""",
        [
            (
                {
                    "x": [[1, 2], [-3, 4]], "n": [127, -128], "h": [0.5, 1], "c": [True, False],
                    "k": [0, -1, 7], "b": [3, 255], "u": [1],
                },
                {
                    "y": [[-0.5, -1], [1.5, -2]], "m": [124, 125], "z": [-np.inf, 1],
                    "g": (np.array([0.5, 1], np.float16) + np.float16(0.1)),
                    "w": [[False, False], [False, False]], "j": [-8, 7, -1], "p": [227, -28],
                    "q": [[1, 3], [-7, 7]], "r": [1.5, 1.5], "bb": [15, 251], "s": [[3, 5], [-5, 9]],
                    "v": [0], "a": [False, True], "e": [[2, 4], [9, 16]],
                    "o": [128, -128], "i": 3,
                },
            ),
        ],
    ),
    "persistent_operands": Program(
        """dynamic { x: f32[2]; n: i32; go: bool; }
        persistent { gain: f32 @init(2.0); one: i32[1] @init(1); on: bool; count: i32; }
        volatile { y: f32[2]; z: f32[2]; total: i32; each: i32[1]; w: f32[2]; c: f32[2]; picked: f32[2]; }
        block entry {
          op mul(x, gain) >> y;
          cache.increment gain;
          op mul(x, gain) >> z;
          loop l (i in 0..n) { op add(total, count) >> total; cache.increment count; }
          op add(one, n) >> each;
          transfer x >> w;
          branch go grow keep;
          op where(on, x, 0.0) >> picked;
          cache.write go >> on;
          yield c;
          cache.increment gain;
          await c;
          return;
        }
        block grow { cache.increment 10 gain; op sub(w, gain) >> w; return; }
        block keep { op sub(gain, w) >> w; return; }
        block other @entry { op mul(gain, x) >> y; return; }
        block worker { await c; op fma(gain, x, 1.0) >> c; yield c; }""",
        [
            (
                {"x": [1, 2], "n": 3, "go": False},
                {
                    "y": [2, 4], "z": [3, 6], "total": 3, "each": [4], "w": [2, 1], "picked": [0, 0],
                    "c": [4, 7],
                },
            ),
            (
                {"x": [1, 2], "n": 2, "go": True},
                {
                    "y": [4, 8], "z": [5, 10], "total": 7, "each": [3], "w": [-14, -13], "picked": [0, 0],
                    "c": [16, 31],
                },
            ),
            ({"x": [1, 2], "n": 0, "go": False}, {"picked": [1, 2], "y": [16, 32]}),
        ],
        {},
        {"gain": 18},
    ),
    "widest_settings": Program(
        """dynamic { b: u64; w: u64[3]; v: i8[2]; s: u64; } constant { big: u64 @init(18446744073709551615); }
        persistent { p: u64 @init(9223372036854775808); }
        volatile { z: u64[3]; c: u64[3]; d: u64[3]; e: u64[3]; y: i8[2]; }
        block entry {
          op fill(w, value=b) >> z;
          op clamp(w, min=b, max=big) >> c;
          op div(w, 0, div_by_zero_mask=p) >> d;
          op fill(w, value=big) >> e;
          op fill(v, value=s) >> y;
          return;
        }""",
        [
            (
                {"b": 2**64 - 2, "w": np.array([1, 2**63, 2**64 - 1], np.uint64), "v": [0, 0], "s": 127},
                {
                    "z": [2**64 - 2] * 3, "c": np.array([2**64 - 2, 2**64 - 2, 2**64 - 1], np.uint64), "d": [2**63] * 3,
                    "e": [2**64 - 1] * 3, "y": [127, 127],
                },
            ),
            ({"b": 0, "w": [0, 0, 0], "v": [0, 0], "s": 128}, "OIC_ERR_INDEX"),
        ],
    ),
    "one_element": Program(
        """dynamic { x: f32[4]; i: i32[1]; j: u8[1, 1]; go: bool[1]; a: f32[1]; d: f64; k: f32; }
        persistent { on: bool[1]; n: i32[1]; K(t): f32 @table @fixed(t=5); }
        volatile { y: f32[4]; q: f32; ran: i32[1]; }
        block entry {
          loop l (c in i..j + 2) { cache.increment n; }
          cache.increment i + j n;
          cache.write k >> K[n - 4];
          cache.read K[i] >> q;
          branch on up down;
          cache.write go >> on;
          op relu(x, alpha=a, clamp_max=d) >> y;
          return;
        }
        block up { op add(ran, n) >> ran; return; }
        block down { return; }""",
        [
            (
                {"x": [-2, 0, 1, 4], "i": [1], "j": [[2]], "go": [True], "a": [0.5], "d": 3, "k": 7},
                {"y": [-1, 0, 1, 3], "q": 0, "ran": [0]},
            ),
            (
                {"x": [-2, 0, 1, 4], "i": [0], "j": [[0]], "go": [False], "a": [0.5], "d": 3, "k": 9},
                {"q": 0, "ran": [8]},
            ),
        ],
        {},
        {"n": [8], "K": [0, 0, 7, 0, 9]},
    ),
    "empty_positions": Program(
        """persistent { B(i, j): i32 @table @fixed(i=3, j=2); }
        volatile { row: i32[?]; all: i32[?, ?]; col: i32[?]; }
        block entry {
          loop r (r in 0..3) { loop c (c in 0..2) { assign v: i32; op fill(v, value=r * 10 + c,) >> v;
            cache.write v >> B[r, c]; } }
          cache.read B[2,] >> row; cache.read B[] >> all; cache.read B[,1] >> col;
          return;
        }""",
        [({}, {"row": [20, 21], "all": [[0, 1], [10, 11], [20, 21]], "col": [1, 11, 21]})],
    ),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Every program over GRAPH, over PLANNED and compiled."""
    made: dict[str, list[Any]] = {}
    for name, program in PROGRAMS.items():
        graph, model = oic.parse(program.text, f"{name}.oi"), oic.Model(program.model)
        made[name] = [oic.Simulator(graph, model, stage=stage) for stage in ("graph", "planned")]
        made[name].append(oic.Synthesizer(graph, model))
    build_together([three[2] for three in made.values()], Path(tmp_path_factory.mktemp("c")))
    yield made


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["graph", "planned", "c"])
def test_values(name: str, kind: int, built: dict[str, list[Any]]) -> None:
    program = PROGRAMS[name]
    with built[name][kind].make_executor() as session:
        for inputs, wanted in program.steps:
            if isinstance(wanted, str):
                with pytest.raises(StepError) as caught:
                    session.step(**inputs)
                assert caught.value.status == wanted
                continue
            found = session.step(**inputs)
            for key, value in wanted.items():
                exact = np.asarray(value).astype(found[key].dtype)
                np.testing.assert_array_equal(found[key], exact, err_msg=key)
                assert found[key].shape == exact.shape, key
        for key, value in program.fetched.items():
            np.testing.assert_array_equal(session.fetch(key), value, err_msg=key)


@pytest.mark.parametrize("name", PROGRAMS)
def test_round_trips(name: str) -> None:
    """Text and JSON of a graph are the graph."""
    graph = oic.parse(PROGRAMS[name].text, f"{name}.oi")
    again = unparse(graph)
    assert unparse(oic.parse(again)) == again
    data = to_json(graph)
    assert unparse(from_json({k: v for k, v in data.items() if k != "source"})) == again
    assert unparse(from_json(data)) == again


def test_an_index_of_a_stack_is_named(built: dict[str, list[Any]]) -> None:
    """A refusal says which variable, which index, and what it may be."""
    for made in built["stacked"]:
        with made.make_executor() as session, pytest.raises(StepError) as caught:
            session.step(i=3)
        error = caught.value
        assert (error.variable, error.index, error.bound) == ("W", 3, 2)


def test_members_of_a_stack_are_views() -> None:
    """No byte of the weights is copied for W[l], whatever the index."""
    program = PROGRAMS["stacked"]
    planned = oic.Simulator(oic.parse(program.text), oic.Model(program.model)).program.planned
    selected = [op for op in planned.all_ops() if op.name == "constant.select"]
    assert len(selected) >= 4
    assert planned.weights["W"] is not None and planned.weights["W"].shape == (3, 2, 2)


def test_a_trace_names_no_literal(built: dict[str, list[Any]]) -> None:
    """`op mul(x, -0.5) >> y;` has the operand x."""
    for made in built["literals"]:
        with made.make_executor() as session:
            session.step(**PROGRAMS["literals"].steps[0][0])
            assert next(r.operands for r in session.trace() if r.operator == "mul") == ("x",)
