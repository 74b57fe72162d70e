"""Programs with what they must give, step by step, in every executor: `test_programs.py` runs them.

A step is the inputs and what is expected: outputs by name, or a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oic import Model


@dataclass(frozen=True)
class Refused:
    """A refusal: status, variable, index and bound, and the source text it points at."""

    status: str
    variable: str | None = None
    index: int | None = None
    bound: int | None = None
    text: str | None = None


Step = tuple[dict[str, Any], "dict[str, Any] | Refused"]


@dataclass(frozen=True)
class Program:
    """A graph with its steps.

    entry   of every step
    """

    text: str
    steps: tuple[Step, ...]
    model: Model | None = None
    entry: str = "entry"


def _in_four(last: int, entries: dict[tuple[int, ...], float]) -> list[Any]:
    """A table of 3 by 4 by 3 by so many, zeros but for some entries."""
    found = np.zeros((3, 4, 3, last), np.float32)
    for at, value in entries.items():
        found[at] = value
    return found.tolist()


PROGRAMS: dict[str, Program] = {
    # ---------------------------------------------------------------- loop indices in blocks
    "indices_in_blocks": Program(
        """
        dynamic { c: bool; }
        volatile { s: i32; z: f32[?, ?]; }
        persistent { K(l, t): f32[1] @table; }
        block entry {
            loop a (i in 0..3) { loop b (j in 0..2) { branch c yes no; } }
            cache.read K[2, 0..2] >> z;
            return;
        }
        block yes {
            assign v: f32[1];
            op fill(v, value=7.0) >> v;
            cache.write v >> K[i, j];
            branch deeper;
            return;
        }
        block deeper {
            op fill(s, value=i * 10 + j) >> s;
            loop inner (i in 5..6) { op fill(s, value=s + i) >> s; }
            op fill(s, value=s + i) >> s;
            return;
        }
        block no { assign i: i32; op fill(i, value=3) >> i; op fill(s, value=i + j) >> s; return; }
        """,
        (
            ({"c": False}, {"s": 4, "z": [[0], [0]]}),
            ({"c": True}, {"s": 21 + 5 + 2, "z": [[7], [7]]}),
        ),
    ),
    "an_index_or_a_temporary": Program(
        """
        dynamic { n: i32; }
        volatile { s: i32; r: i32; }
        block entry {
            loop a (k in 0..n) { branch use; transfer s >> r; }
            branch other;
            return;
        }
        block other { assign k: i32; op fill(k, value=n * 2) >> k; branch use; return; }
        block use { op fill(s, value=k + 1) >> s; return; }
        """,
        (({"n": 3}, {"r": 3, "s": 7}), ({"n": 0}, {"r": 0, "s": 1})),
    ),
    # ---------------------------------------------------------------- sizes that branches and loops decide
    "two_outputs_of_a_branch": Program(
        """
        dynamic { x: i32[N] @max(N=4); c: bool; }
        volatile { y: i32[?]; z: i32[?]; w: i32[?]; }
        block entry { branch c given nothing; transfer y >> z; transfer z >> w; }
        block given { transfer x >> y; }
        block nothing { return; }
        """,
        (
            ({"x": [1, 2], "c": True}, {"y": [1, 2], "z": [1, 2], "w": [1, 2]}),
            ({"x": [1, 2], "c": False}, {"y": [], "z": [], "w": []}),
        ),
    ),
    "two_outputs_of_a_loop": Program(
        """
        dynamic { x: i32[N, 2] @max(N=4); n: i32; }
        volatile { y: i32[?, 2]; z: i32[?, 2]; }
        block entry {
            loop cut (i in 0..n) { op slice(x, axis=0, start=0, end=i) >> y; }
            transfer y >> z;
        }
        """,
        (
            ({"x": [[1, 2], [3, 4]], "n": 2}, {"y": [[1, 2]], "z": [[1, 2]]}),
            ({"x": [[1, 2]], "n": 0}, {"y": np.zeros((0, 2)), "z": np.zeros((0, 2))}),
        ),
    ),
    "two_outputs_of_a_grown_matrix": Program(
        """
        volatile { y: i32[?, ?]; z: i32[?, ?]; }
        persistent { M(i, j): i32[2, 3] @auto_dim(i, j) @fixed(i=3, j=2) @init(-2); }
        block entry {
            assign m: i32[?, ?];
            assign positive: i32[?, ?];
            cache.read M[1, 0] >> m;
            op neg(m) >> positive;
            op max(m, positive) >> positive;
            transfer positive >> y;
            transfer positive >> z;
        }
        """,
        (({}, {"y": np.full((3, 3), 2), "z": np.full((3, 3), 2)}),),
    ),
    # ---------------------------------------------------------------- division
    "division": Program(
        """
        dynamic { n: i32; m: i64; }
        volatile { a: i64; b: i64; c: i64; d: i64; e: i64; }
        constant { k: i32 @init(2); }
        block entry {
            op fill(a, value=n / m) >> a;
            op fill(b, value=n % m) >> b;
            op fill(c, value=(n + 4) / 3 % 5 - -7/1 + 7 % 4 + 8/k) >> c;
            loop q (i in 0..7) { op fill(d, value=d + i / 2 - (i - 9) % 4) >> d; }
            op fill(e, value=2 * n / 2 - n) >> e;
            return;
        }
        """,
        (
            ({"n": 7, "m": 2}, {"a": 3, "b": 1, "c": 17, "d": 9 - (3 + 0 + 1 + 2 + 3 + 0 + 1), "e": 0}),
            ({"n": -7, "m": 2}, {"a": -4, "b": 1, "c": -1 % 5 + 14}),
            ({"n": -7, "m": 0}, Refused("OIC_ERR_INDEX", "m", 0, 1, "n / m")),
            ({"n": 7, "m": -1}, Refused("OIC_ERR_INDEX", "m", -1, 1, "n / m")),
            ({"n": -8, "m": (1 << 63) - 1}, {"a": -1, "b": (1 << 63) - 9}),
        ),
    ),
    "paging": Program(
        """
        dynamic { x: f32[N, 2] @max(N=9); }
        volatile { y: f32[?, ?, ?]; z: f32[?]; s: f32[?]; }
        persistent { pos: i32; K(page, slot): f32[2] @table @fixed(page=4, slot=3); }
        block entry {
            loop each (i in 0..N) {
                assign row: f32[1, 2];
                op slice(x, axis=0, start=i, end=i + 1) >> row;
                assign one: f32[2];
                op reshape(row, shape=[2]) >> one;
                cache.write one >> K[(pos + i) / 3, (pos + i) % 3];
            }
            cache.increment N pos;
            cache.read K[0..(pos + 2) / 3] >> y;
            op fill(s, value=1.0) >> s;
            assign t: f32[?];
            op iota(shape=[N % 4 + N / 4]) >> count;
            op cast(count, to=f32) >> z;
            return;
        }
        volatile { count: i32[?]; }
        """,
        (
            ({"x": [[1, 1], [2, 2]]}, {"y": [[[1, 1], [2, 2], [0, 0]]], "z": [0, 1]}),
            (
                {"x": [[3, 3], [4, 4], [5, 5], [6, 6], [7, 7]]},
                {
                    "y": [
                        [[1, 1], [2, 2], [3, 3]],
                        [[4, 4], [5, 5], [6, 6]],
                        [[7, 7], [0, 0], [0, 0]],
                    ],
                    "z": [0, 1],
                },
            ),
            ({"x": [[8, 8]] * 6}, Refused("OIC_ERR_CACHE_FULL")),
        ),
    ),
    "halves": Program(
        """
        dynamic { x: f32[N] @max(N=9); z: f32[N/2, 2]; }
        volatile { y: f32[2, N/2]; w: f32[?, ?]; q: f32[N]; k: f32[N/2]; }
        block entry {
            op reshape(x, shape=[2, -1]) >> y;
            op reshape(z, shape=[N / 2, 2]) >> w;
            op reshape(z, shape=[N]) >> q;
            assign t: f32[N/2];
            op sum_axis(z, axes=[1]) >> t;
            transfer t >> k;
            return;
        }
        block odd @entry { op reshape(x, shape=[3, -1]) >> w; return; }
        """,
        (
            (
                {"x": [0, 1, 2, 3], "z": [[1, 2], [3, 4]]},
                {"y": [[0, 1], [2, 3]], "w": [[1, 2], [3, 4]], "q": [1, 2, 3, 4], "k": [3, 7]},
            ),
            (
                {"x": [0, 1, 2, 3, 4], "z": [[1, 2], [3, 4]]},
                Refused("OIC_ERR_SHAPE", "N/2", text="f32[N/2, 2]"),
            ),
            ({"x": [0] * 8, "z": [[1, 1]] * 3}, Refused("OIC_ERR_SHAPE", "z", 3, 4)),
            ({"x": [], "z": np.zeros((0, 2), np.float32)}, {"y": np.zeros((2, 0)), "q": [], "k": []}),
        ),
    ),
    "quotient_of_extents": Program(
        """
        dynamic { x: f32[N] @max(N=9); z: f32[M] @max(M=4); w: f32[N/M]; }
        volatile { y: f32[?, ?]; u: f32[N/M]; v: f32[M]; }
        block entry {
            op reshape(x, shape=[M, -1]) >> y;
            op relu(w) >> u;
            op add(z, z) >> v;
            return;
        }
        """,
        (
            (
                {"x": [0, 1, 2, 3, 4, 5], "z": [1, 2], "w": [1, -1, 3]},
                {"y": [[0, 1, 2], [3, 4, 5]], "u": [1, 0, 3], "v": [2, 4]},
            ),
            ({"x": [0] * 6, "z": [1] * 4, "w": [0]}, Refused("OIC_ERR_SHAPE", "N/M")),
            ({"x": [], "z": [], "w": []}, Refused("OIC_ERR_SHAPE", "N/M", 0, 1)),
            ({"x": [], "z": [1, 1], "w": []}, {"y": np.zeros((2, 0)), "u": []}),
        ),
    ),
    # ---------------------------------------------------------------- counters
    "entries_stepped": Program(
        """
        dynamic { a: i32; b: i32; n: i64; }
        volatile { y: u8[?, ?]; z: f16[?]; }
        persistent { C(a, b): u8 @table; F(t): f16[1] @table @init(0.5); p: i16[1]; }
        block entry {
            cache.increment C[a, b];
            cache.increment n C[a, 0];
            cache.decrement 2 F[a];
            cache.increment p;
            cache.read C[] >> y;
            assign q: f16[?, 1];
            cache.read F[] >> q;
            op reshape(q, shape=[-1]) >> z;
            return;
        }
        """,
        (
            ({"a": 0, "b": 0, "n": 300}, {"y": [[45]], "z": [-1.5]}),
            ({"a": 2, "b": 1, "n": -1}, {"y": [[45, 0], [0, 0], [255, 1]], "z": [-1.5, 0.5, -1.5]}),
            ({"a": 0, "b": -1, "n": 1}, Refused("OIC_ERR_INDEX", "C.b", -1, 0)),
            ({"a": -3, "b": 0, "n": 1}, Refused("OIC_ERR_INDEX", "C.a", -3, 0)),
            ({"a": 1 << 30, "b": 0, "n": 1}, Refused("OIC_ERR_CACHE_FULL", "C.a")),
        ),
    ),
    "entries_of_rings_stepped": Program(
        """
        dynamic { l: i32; t: i32; s: i32; n: i64; }
        volatile { r: i16[?]; c: i16; }
        persistent { R(l, t): i16 @table @init(7) @fixed(t=3) @ring(t); }
        block entry {
            op fill(c, value=t) >> c;
            cache.write c >> R[l, t];
            cache.increment n R[l, s];
            cache.read R[l, -3..] >> r;
            return;
        }
        block only @entry { cache.decrement n R[l, s]; return; }
        """,
        (
            ({"l": 0, "t": 0, "s": 0, "n": 5}, {"r": [7, 7, 5]}),
            ({"l": 0, "t": 2, "s": 1, "n": 1}, {"r": [5, 8, 2]}),
            ({"l": 0, "t": 3, "s": 1, "n": -8}, {"r": [0, 2, 3]}),
            ({"l": 0, "t": 4, "s": 1, "n": 1}, Refused("OIC_ERR_INDEX", "R.t", 1, 2)),
            ({"l": 0, "t": 4, "s": 5, "n": 1}, Refused("OIC_ERR_INDEX", "R.t", 5, 4)),
            ({"l": 1, "t": 0, "s": -1, "n": 1}, Refused("OIC_ERR_INDEX", "R.t", -1, 0)),
            ({"l": 3, "t": 9, "s": 8, "n": 1 << 16}, {"r": [7, 7, 9]}),
        ),
    ),
    "entries_stepped_then_forgotten": Program(
        """
        dynamic { a: i32; n: i32; }
        volatile { y: i64[?]; w: i64[?]; }
        persistent { C(l, t): i64 @table @fixed(l=2); k: i32; }
        block entry {
            loop each (i in 0..n) { cache.increment (i + 1) C[a, i]; }
            cache.read C[a] >> y;
            cache.reset C[1, 2];
            cache.decrement C[0, 1];
            cache.read C[0] >> w;
            return;
        }
        """,
        (
            ({"a": 1, "n": 3}, {"y": [1, 2, 3], "w": [0, -1]}),
            ({"a": 1, "n": 2}, {"y": [2, 4], "w": [0, -2]}),
            ({"a": 0, "n": 4}, {"y": [1, 0, 3, 4], "w": [1, -1, 3, 4]}),
        ),
    ),
    # How far a table of four indices goes once an entry is forgotten, along each of them.
    "entries_forgotten_in_four": Program(
        """
        dynamic { x: f32; a: i32; b: i32; c: i32; d: i32; }
        volatile { more: f32[?, ?, ?, ?]; less: f32[?, ?, ?, ?]; }
        persistent { T(a, b, c, d): f32 @table @fixed(a=3, b=4, c=3); }
        block entry {
            cache.write x >> T[a, b, c, d];
            cache.write x >> T[2, 3, 2, 3];
            cache.read T[] >> more;
            cache.reset T[2, 3, 2, 3];
            cache.read T[] >> less;
            return;
        }
        """,
        (
            (
                {"x": 7, "a": 1, "b": 1, "c": 0, "d": 1},
                {"more": _in_four(4, {(1, 1, 0, 1): 7, (2, 3, 2, 3): 7}), "less": _in_four(2, {(1, 1, 0, 1): 7})},
            ),
            (
                {"x": 5, "a": 0, "b": 0, "c": 1, "d": 2},
                {
                    "more": _in_four(4, {(1, 1, 0, 1): 7, (0, 0, 1, 2): 5, (2, 3, 2, 3): 5}),
                    "less": _in_four(3, {(1, 1, 0, 1): 7, (0, 0, 1, 2): 5}),
                },
            ),
        ),
    ),
    # ---------------------------------------------------------------- parts
    "parts": Program(
        """
        dynamic { x: f32[N, 3] @max(N=5); i: i32; j: i64; }
        volatile { y: f32[N, 3]; z: f32[4, 3]; w: f32[3]; q: i4[7]; old: f32[4, 3]; }
        block entry {
            loop a (k in 0..N) {
                assign r: f32[1, 3];
                op slice(x, axis=0, start=k, end=k+1) >> r;
                op mul(r, r) >> r;
                transfer r >> y[k..k+1];
            }
            assign t: f32[4, 3];
            op fill(t, value=1.0) >> t;
            transfer t >> old;
            assign v: f32[2];
            op fill(v, value=9.0) >> v;
            transfer v >> t[i, j..j+2];
            assign s: f32;
            op fill(s, value=5.0) >> s;
            transfer s >> t[0, -2+4];
            transfer t >> z;
            transfer s >> w[1];
            assign c: i4[2];
            op fill(c, value=-3) >> c;
            transfer c >> q[j+1..j+3];
            return;
        }
        """,
        (
            (
                {"x": [[0, 1, 2], [3, 4, 5]], "i": 1, "j": 0},
                {
                    "y": [[0, 1, 4], [9, 16, 25]],
                    "z": [[1, 1, 5], [9, 9, 1], [1, 1, 1], [1, 1, 1]],
                    "old": np.ones((4, 3)),
                    "w": [0, 5, 0],
                    "q": [0, -3, -3, 0, 0, 0, 0],
                },
            ),
            ({"x": [[0, 0, 0]], "i": 4, "j": 1}, Refused("OIC_ERR_INDEX", "t", 4, 3, "i")),
            ({"x": [[0, 0, 0]], "i": -1, "j": 1}, Refused("OIC_ERR_INDEX", "t", -1, 0, "i")),
            ({"x": [[0, 0, 0]], "i": 3, "j": 2}, Refused("OIC_ERR_INDEX", "t", 4, 3)),
            ({"x": [[0, 0, 0]], "i": 3, "j": -1}, Refused("OIC_ERR_INDEX", "t", -1, 0)),
        ),
    ),
    "parts_in_place": Program(
        """
        dynamic { x: f32[N, 2] @max(N=5); i: i32; q: i4[4]; }
        volatile { y: f32[N, 2]; z: f32[N, 2, 2]; w: f32[3, 2]; t: i4[3, 4]; r: f32[2]; b: f32[4, 2]; }
        block entry {
            assign one: f32[1, 2];
            loop a (k in 0..N) {
                op slice(x, axis=0, start=k, end=k+1) >> one;
                op mul(one, one) >> one;
                op add(one, 1.0) >> one;
                transfer one >> y[k..k+1];
                loop c (m in 0..2) {
                    assign s: f32[2];
                    op reshape(one, shape=[2]) >> s;
                    op mul(s, 10.0 ) >> s;
                    transfer s >> z[k, m];
                }
            }
            assign two: f32[2];
            op sum_axis(x, axes=[0]) >> two;
            transfer two >> w[i];
            op neg(two) >> r;
            op add(two, two) >> two;
            transfer two >> w[1];
            loop d (k in 0..3) {
                assign p: i4[4];
                op add(q, q) >> p;
                transfer p >> t[k];
                op add(p, 1) >> q2;
            }
            transfer q2 >> t[1];
            loop e (k in 1..4) {
                op slice(b, axis=0, start=k-1, end=k) >> one;
                op add(one, 1.0) >> one;
                transfer one >> b[k..k+1];
            }
            return;
        }
        volatile { q2: i4[4]; }
        """,
        (
            (
                {"x": [[1, 2], [3, 4]], "i": 2, "q": [1, 2, 3, -4]},
                {
                    "y": [[2, 5], [10, 17]],
                    "z": [[[20, 50], [20, 50]], [[100, 170], [100, 170]]],
                    "w": [[0, 0], [8, 12], [4, 6]],
                    "r": [-4, -6],
                    "t": [[2, 4, 6, -8], [3, 5, 7, -7], [2, 4, 6, -8]],
                    "b": [[0, 0], [1, 1], [2, 2], [3, 3]],
                },
            ),
            ({"x": np.zeros((0, 2), np.float32), "i": 1, "q": [0, 0, 0, 0]}, {"y": np.zeros((0, 2)), "w": np.zeros((3, 2))}),
            ({"x": [[1, 2]], "i": 3, "q": [0, 0, 0, 0]}, Refused("OIC_ERR_INDEX", "w", 3, 2, "i")),
        ),
    ),
    "slices_of_parts": Program(
        """
        dynamic { a: f32[N] @max(N=6); lo: i32; hi: i32; }
        volatile { m: f32[6, 2] @init(1.0); n: f32[?]; k: f32[?]; }
        persistent { P(t): f32 @table @fixed(t=6); }
        block entry {
            assign two: f32[N, 2];
            op reshape(a, shape=[-1, 1]) >> one;
            op broadcast_to(one, shape=[N, 2]) >> two;
            transfer two >> m[lo..hi];
            transfer two >> m[lo..hi, ..];
            cache.read P[0..5] >> n;
            transfer a >> n[lo..-1];
            transfer n >> k;
            transfer a >> n[2..];
            transfer a >> m[..-3, 1];
            return;
        }
        volatile { one: f32[N, 1]; }
        """,
        (
            (
                {"a": [7, 8, 9], "lo": 1, "hi": 4},
                {
                    "m": [[1, 7], [7, 8], [8, 9], [9, 9], [1, 1], [1, 1]],
                    "k": [0, 7, 8, 9, 0],
                    "n": [0, 7, 7, 8, 9],
                },
            ),
            ({"a": [7, 8], "lo": 1, "hi": 4}, Refused("OIC_ERR_SHAPE", "two", 2, 3)),
            ({"a": [7, 8, 9], "lo": 0, "hi": 3}, Refused("OIC_ERR_SHAPE", "a", 3, 4)),
            ({"a": [7, 8, 9], "lo": 4, "hi": 7}, Refused("OIC_ERR_INDEX", "m", 7, 6)),
            ({"a": [7, 8, 9], "lo": 3, "hi": 2}, Refused("OIC_ERR_INDEX", "m", 3, 2)),
            ({"a": [7, 8, 9], "lo": -1, "hi": 2}, Refused("OIC_ERR_INDEX", "m", -1, 0)),
        ),
    ),
    "values_of_parts": Program(
        """
        dynamic { x: f16[4, 2]; c: bool; n: i32; }
        constant { W: f16[4, 2] @init(3.0); }
        volatile { a: f16[4, 2]; b: f16[4, 2]; d: f16[4, 2]; e: f16[2, 2]; g: bool[5]; h: f16[4, 2]; }
        block entry {
            transfer x >> a;
            op slice(a, axis=0, start=1, end=3) >> e;
            transfer e >> a[2..4];
            transfer a >> b;
            branch c yes no;
            loop turn (i in 0..n) {
                transfer a >> d;
                assign row: f16[2];
                op fill(row, value=f) >> row;
                transfer row >> a[i];
            }
            transfer W >> h;
            assign z: f16;
            transfer z >> h[3, 1];
            transfer c >> g[2];
            return;
        }
        constant { f: f16 @init(0.5); }
        block yes { loop turn (i in 0..2) { transfer e >> b[i..i + 2]; } return; }
        block no { assign s: f16[1, 2]; transfer s >> b[1..2]; transfer b >> b[..]; return; }
        """,
        (
            (
                {"x": [[1, 2], [3, 4], [5, 6], [7, 8]], "c": True, "n": 2},
                {
                    "a": [[0.5, 0.5], [0.5, 0.5], [3, 4], [5, 6]],
                    "b": [[3, 4], [3, 4], [5, 6], [5, 6]],
                    "d": [[0.5, 0.5], [3, 4], [3, 4], [5, 6]],
                    "e": [[3, 4], [5, 6]],
                    "h": [[3, 3], [3, 3], [3, 3], [3, 0]],
                    "g": [False, False, True, False, False],
                },
            ),
            (
                {"x": [[1, 2], [3, 4], [5, 6], [7, 8]], "c": False, "n": 0},
                {
                    "a": [[1, 2], [3, 4], [3, 4], [5, 6]],
                    "b": [[1, 2], [0, 0], [3, 4], [5, 6]],
                    "d": np.zeros((4, 2)),
                },
            ),
            (
                {"x": np.zeros((4, 2), np.float16), "c": True, "n": 5},
                Refused("OIC_ERR_INDEX", "a", 4, 3, "i"),
            ),
        ),
    ),
    # ---------------------------------------------------------------- refusals before effects
    "refused_before_effects": Program(
        """
        dynamic { x: f32[4]; k: i32; n: i32; z: f32[N] @max(N=5); w: f32[M] @max(M=5); }
        volatile { r: f32; q: f32[4]; s: f32[?]; am: i64; }
        persistent { K(t): f32 @table @fixed(t=4); P(t): f32[4] @table @fixed(t=4); calls: i32; }
        block entry {
            assign v: f32;
            cache.increment calls;
            cache.write x >> P[0];
            assign c: f32;
            op fill(c, value=2.0) >> c;
            cache.write c >> K[n];
            op argmax_axis(x, axis=0) >> am;
            cache.read K[am + k] >> r;
            op add(z, w) >> s;
            assign t: f32[4];
            cache.read P[1] >> t;
            assign at: i64;
            op argmax_axis(t, axis=0) >> at;
            cache.read P[at + n] >> q;
            return;
        }
        """,
        (
            ({"x": [1, 5, 2, 3], "k": 0, "n": 1, "z": [1], "w": [2]}, {"r": 2, "am": 1, "s": [3]}),
            (
                {"x": [1, 5, 2, 3], "k": 3, "n": 2, "z": [1], "w": [2]},
                Refused("OIC_ERR_CACHE_FULL", "K.t", 4, 3, "cache.read K[am + k] >> r;"),
            ),
            (
                {"x": [1, 5, 2, 3], "k": 1, "n": 2, "z": [1], "w": [2, 3]},
                Refused("OIC_ERR_SHAPE", "w", 2, 1),
            ),
            ({"x": [1, 5, 2, 3], "k": 1, "n": 2, "z": [1], "w": [2]}, {"r": 2}),
        ),
    ),
    "refused_after_effects": Program(
        """
        dynamic { x: f32[4]; k: i64; }
        volatile { q: f32[4]; am: i64; }
        persistent { P(t): f32[4] @table @fixed(t=4); }
        block entry {
            assign t: f32[4];
            cache.write x >> P[0];
            cache.read P[0] >> t;
            op argmax_axis(t, axis=0) >> am;
            cache.read P[am + k] >> q;
            return;
        }
        """,
        (
            ({"x": [1, 5, 2, 3], "k": -1}, {"q": [1, 5, 2, 3]}),
            ({"x": [1, 2, 5, 3], "k": 3}, Refused("OIC_ERR_CACHE_FULL", "P.t", 5, 3)),
            ({"x": [1, 2, 5, 3], "k": 0}, Refused("OIC_ERR_STATE")),
        ),
    ),
}
