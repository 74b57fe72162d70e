"""Graphs that refuse steps, one or more for every kind of refusal: `test_refusals.py` runs them.

A step is its inputs and the status that it ends with, "" for none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

OK, INDEX, FULL, SHAPE = "", "OIC_ERR_INDEX", "OIC_ERR_CACHE_FULL", "OIC_ERR_SHAPE"
OVERFLOW = "OIC_ERR_OVERFLOW"
Step = tuple[dict[str, Any], str]


@dataclass(frozen=True)
class Case:
    """A graph and the steps of one session; after a refusal that leaves the state changed it is reset.

    early   every refusal comes before all effects
    """

    text: str
    steps: tuple[Step, ...]
    model: dict[str, Any] = field(default_factory=dict)
    early: bool = False


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def values(names: str, *rows: tuple[Any, ...]) -> tuple[Step, ...]:
    """Steps from rows of the named inputs' values, each row ending in its status."""
    keys = names.split()
    return tuple((dict(zip(keys, row[:-1], strict=True)), row[-1]) for row in rows)


BIG = 2**63 - 1
CASES: dict[str, Case] = {
    # ---------------------------------------------------------------- sizes of inputs
    "extents": Case(
        """dynamic { x: f32[N] @max(N=4); z: f32[N, 2]; w: f32[M] @max(M=3); }
        volatile { y: f32[?]; } persistent { n: i32; K(t): f32 @table @fixed(t=6); }
        block entry { cache.increment n; op sum_axis(z, axes=[1]) >> y; op add(x, y) >> y;
          op add(y, w) >> y; assign s: f32; op fill(s, value=1.0) >> s; cache.write s >> K[N + M - 1]; return; }""",
        (
            ({"x": zeros(3), "z": zeros(3, 2), "w": zeros(3)}, OK),
            ({"x": zeros(5), "z": zeros(5, 2), "w": zeros(3)}, SHAPE),
            ({"x": zeros(2), "z": zeros(3, 2), "w": zeros(3)}, SHAPE),
            ({"x": zeros(3), "z": zeros(3, 2), "w": zeros(2)}, SHAPE),
            ({"x": zeros(0), "z": zeros(0, 2), "w": zeros(0)}, INDEX),
            ({"x": zeros(2), "z": zeros(2, 2), "w": zeros(2)}, OK),
        ),
    ),
    "divided_sizes": Case(
        """dynamic { x: f32[N, 4] @max(N=8); m: f32[M] @max(M=4); } volatile { y: f32[N/2, 8]; z: f32[?]; }
        persistent { n: i32; }
        block entry { cache.increment n; op neg(m) >> z; op reshape(x, shape=[N/2, 8]) >> y; op reshape(x, shape=[N*4/M, M]) >> w;
          return; } volatile { w: f32[?, ?]; }""",
        (
            ({"x": zeros(4, 4), "m": zeros(4)}, OK),
            ({"x": zeros(3, 4), "m": zeros(4)}, SHAPE),
            ({"x": zeros(4, 4), "m": zeros(0)}, INDEX),
            ({"x": zeros(4, 4), "m": zeros(3)}, SHAPE),
            ({"x": zeros(3, 4), "m": zeros(0)}, SHAPE),
            ({"x": zeros(2, 4), "m": zeros(4)}, OK),
        ),
    ),
    "sizes_of_results": Case(
        """dynamic { a: f32[N] @max(N=4); b: f32[M] @max(M=4); } volatile { y: f32[?]; z: f32[?, 2]; }
        persistent { n: i32; }
        block entry { op concat(a, b, axis=0) >> y; cache.increment n; op reshape(y, shape=[N, 2]) >> z; return; }""",
        (
            ({"a": zeros(3), "b": zeros(3)}, OK),
            ({"a": zeros(3), "b": zeros(2)}, SHAPE),
            ({"a": zeros(0), "b": zeros(2)}, SHAPE),
        ),
    ),
    "declared_sizes": Case(
        """dynamic { a: f32[N] @max(N=4); b: f32[M] @max(M=4); i: i32; } volatile { y: f32[?]; }
        persistent { K(t): f32[3] @table @fixed(t=4); }
        block entry { op slice(a, axis=0, start=0, end=i) >> y; cache.write y >> K[i]; return; }""",
        (
            ({"a": zeros(4), "b": zeros(3), "i": 3}, OK),
            ({"a": zeros(4), "b": zeros(3), "i": 2}, SHAPE),
            ({"a": zeros(4), "b": zeros(3), "i": 4}, SHAPE),
            ({"a": zeros(4), "b": zeros(3), "i": 5}, INDEX),
        ),
    ),
    # ---------------------------------------------------------------- tables
    "scalars": Case(
        """dynamic { i: i64; j: i32; v: f32[2]; } volatile { y: f32[2]; }
        persistent { K(l, t): f32[2] @table @fixed(l=2, t=5); n: i32; }
        block entry { cache.increment n; cache.write v >> K[i, j]; cache.read K[j - 1, i + 1] >> y; return; }""",
        values(
            "i j v",
            (0, 1, zeros(2), OK), (2, 1, zeros(2), FULL), (-1, 1, zeros(2), INDEX), (0, 5, zeros(2), FULL),
            (0, -1, zeros(2), INDEX), (5, 9, zeros(2), FULL), (-3, -4, zeros(2), INDEX), (0, 0, zeros(2), INDEX),
            (1, 3, zeros(2), FULL), (BIG, 1, zeros(2), FULL), (-BIG, 1, zeros(2), INDEX), (1, 2, zeros(2), OK),
        ),
    ),
    "slices": Case(
        """dynamic { a: i32; b: i32; } volatile { y: f32[?, 2]; }
        persistent { K(t): f32[2] @table @fixed(t=5); n: i32; }
        block entry { cache.increment n; cache.read K[a..b] >> y; return; }""",
        values("a b", (0, 5, OK), (-1, 2, INDEX), (3, 2, INDEX), (2, 6, FULL), (6, 6, FULL), (7, 6, INDEX), (-2, -3, INDEX),
               (-1, 9, FULL), (-1, 4, INDEX), (3, -3, INDEX), (3, -1, OK), (0, -1, OK), (5, 5, OK), (-5, -1, FULL), (-1, -9, INDEX)),
    ),
    "slices_of_what_grows": Case(
        """dynamic { a: i32; b: i32; k: i32; v: f32[2]; } volatile { y: f32[?, 2]; }
        persistent { K(t): f32[2] @table; L(t, u): f32 @table @fixed(u=3); n: i32; }
        block entry { cache.increment n; cache.write v >> K[k]; cache.read K[a..b] >> y; cache.read K[k..-1] >> y;
          cache.read L[0..2, k] >> z; return; } volatile { z: f32[?]; }""",
        values("a b k v", (0, 1, 0, zeros(2), OK), (0, 2, 2, zeros(2), OK), (-1, 2, 2, zeros(2), INDEX),
               (3, 2, 0, zeros(2), INDEX), (1, -1, 1, zeros(2), OK), (3, -1, 2, zeros(2), INDEX),
               (0, 3, -4, zeros(2), INDEX), (2, -3, 2, zeros(2), INDEX), (0, -7, 0, zeros(2), INDEX),
               (1, 2, 3, zeros(2), FULL)),
    ),
    "written_slices": Case(
        """dynamic { x: f32[N, 2] @max(N=4); p: i32; q: i32; }
        persistent { K(t): f32[2] @table @fixed(t=6); n: i32; }
        block entry { cache.increment n; cache.write x >> K[p..p + N]; cache.write x >> K[p..q]; return; }""",
        values("x p q", (zeros(2, 2), 1, 3, OK), (zeros(2, 2), 5, 7, FULL), (zeros(2, 2), -1, 1, INDEX),
               (zeros(2, 2), 1, 2, SHAPE), (zeros(2, 2), 3, 2, INDEX), (zeros(0, 2), 6, 6, OK),
               (zeros(0, 2), 7, 7, FULL), (zeros(3, 2), 2, 9, FULL)),
    ),
    "of_a_counter": Case(
        """dynamic { v: f32; step: i32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); } volatile { y: f32; }
        block entry { cache.write v >> K[n]; cache.increment step n; cache.read K[n - 1] >> y; return; }""",
        values("v step", (1.0, 1, OK), (2.0, 2, OK), (3.0, 1, OK), (4.0, 1, FULL), (5.0, 0, FULL), (6.0, -9, FULL)),
    ),
    "going_below": Case(
        """dynamic { v: f32; step: i32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); } volatile { y: f32; }
        block entry { cache.write v >> K[n]; cache.decrement step n; cache.read K[n - 1] >> y; return; }""",
        values("v step", (1.0, -1, OK), (2.0, 1, INDEX), (3.0, 2, INDEX), (4.0, -9, FULL), (4.0, -1, OK)),
    ),
    "entries_of_scalars": Case(
        """dynamic { i: i32; j: i32; k: i32; } persistent { C(a, b): i32 @table @fixed(a=3); n: i32; }
        block entry { cache.increment k n; cache.increment k C[i, j]; cache.decrement C[j, 0]; cache.reset C[i]; return; }""",
        values("i j k", (0, 2, 5, OK), (3, 0, 1, FULL), (-1, 0, 1, INDEX), (0, -2, 1, INDEX), (2, 3, 1, FULL), (2, 2, 1, OK)),
    ),
    # ---------------------------------------------------------------- rings
    "rings": Case(
        """dynamic { w: i32; r: i32; a: i32; b: i32; v: f32; } volatile { y: f32; z: f32[?]; }
        persistent { X(t): f32 @table @fixed(t=3) @ring(t); n: i32; }
        block entry { cache.increment n; cache.write v >> X[w]; cache.read X[r] >> y; cache.read X[a..b] >> z; return; }""",
        values("w r a b v", (0, 0, 0, 1, 1.0, OK), (5, 5, 3, 6, 1.0, OK), (2, 5, 3, 6, 1.0, INDEX), (-1, 5, 3, 6, 1.0, INDEX),
               (6, 7, 4, 7, 1.0, INDEX), (6, 3, 4, 7, 1.0, INDEX), (6, 6, 6, 5, 1.0, INDEX), (6, 6, 3, 5, 1.0, INDEX),
               (6, 6, 5, 8, 1.0, INDEX), (6, 6, 9, 8, 1.0, INDEX), (6, 6, 2, 1, 1.0, INDEX), (6, 4, 5, 5, 1.0, OK)),
    ),
    "rings_of_layers": Case(
        """dynamic { l: i32; p: i32; x: f32[N] @max(N=5); } volatile { y: f32[?]; }
        persistent { X(l, t): f32 @table @fixed(l=2, t=3) @ring(t); n: i32; }
        block entry { cache.increment n; loop a (i in 0..l) { cache.write x >> X[i, p..p + N]; }
          cache.read X[l - 1, -3..] >> y; return; }""",
        values("l p x", (1, 0, zeros(2), OK), (2, 2, zeros(1), OK), (2, 0, zeros(2), OK), (3, 3, zeros(1), FULL),
               (0, 1, zeros(1), INDEX), (1, -1, zeros(1), INDEX), (1, 9, zeros(4), OK), (2, 5, zeros(1), INDEX),
               (2, 1, zeros(1), INDEX)),
    ),
    # ---------------------------------------------------------------- matrices that grow
    "matrices": Case(
        """dynamic { i: i32; j: i32; a: i32; b: i32; } volatile { y: f32[?, ?]; z: f32[?, ?]; }
        persistent { M(r, c): f32[1, 2] @auto_dim(r, c) @fixed(r=3, c=2); n: i32; }
        block entry { cache.increment n; cache.read M[i, j] >> y; cache.read M[a..b, 0..c] >> z; return; }""",
        values("i j a b", (1, 1, 0, 2, OK), (4, 0, 0, 1, FULL), (0, 3, 0, 1, FULL), (-1, 5, 0, 1, FULL), (-1, 1, 0, 1, INDEX), (1, -1, 0, 1, INDEX),
               (0, 0, 0, 3, INDEX), (0, 0, 2, 1, INDEX), (0, 0, -1, 1, INDEX), (0, 0, 3, 2, INDEX), (3, 2, 4, 4, OK),
               (3, 2, 5, 6, INDEX), (3, 2, 3, 4, OK)),
    ),
    "tables_of_matrices": Case(
        """dynamic { l: i32; i: i32; v: f32[N, 2] @max(N=4); } volatile { y: f32[?]; }
        persistent { C(l, r, c): f32[1, 2] @table @auto_dim(r, c) @fixed(l=2, r=3, c=1); n: i32; }
        block entry { cache.increment n; cache.write v >> C[l, i, 0]; cache.read C[l, 0..i, 1] >> y; cache.read C[l, i, 0..2] >> w;
          return; } volatile { w: f32[?]; }""",
        values("l i v", (0, 1, zeros(2, 2), OK), (2, 1, zeros(2, 2), FULL), (1, 4, zeros(4, 2), FULL), (0, 2, zeros(2, 2), SHAPE),
               (0, 0, zeros(1, 2), SHAPE), (-1, -1, zeros(4, 2), SHAPE), (-1, 1, zeros(2, 2), INDEX), (1, 3, zeros(4, 2), OK)),
    ),
    # ---------------------------------------------------------------- what operators ask for
    "gather": Case(
        """dynamic { ids: i32[3]; more: i64[2]; } constant { T: f32[4, 2]; } volatile { y: f32[3, 2]; z: f32[2, 2]; }
        persistent { n: i32; }
        block entry { op gather(T, ids) >> y; cache.increment n; op gather(T, more) >> z; return; }""",
        values("ids more", ([0, 1, 3], [0, 1], OK), ([0, 4, -1], [0, 1], INDEX), ([-7, 4, 9], [9, 9], INDEX),
               ([0, 0, 0], [3, 1 << 40], INDEX), ([3, 3, 3], [0, 0], OK)),
    ),
    "gather_of_what_is_computed": Case(
        """dynamic { ids: i32[2]; k: i32; } constant { T: f32[4]; } volatile { y: f32[2]; z: f32[2]; }
        persistent { n: i32; K(t): f32[2] @table @fixed(t=2); }
        block entry { assign a: i32[2]; op add(ids, n) >> a; op gather(T, a) >> y; cache.increment n;
          cache.write y >> K[k]; op add(ids, n) >> a; op gather(T, a) >> z; cache.write z >> K[k + 1]; return; }""",
        values("ids k", ([0, 1], 0, OK), ([0, 1], 1, FULL), ([2, 1], 0, INDEX), ([3, 1], 9, FULL), ([-1, -2], -1, INDEX),
               ([2, 1], 2, FULL)),
    ),
    "slice": Case(
        """dynamic { x: f32[N] @max(N=6); a: i32; b: i32; } volatile { y: f32[?]; } persistent { n: i32; }
        block entry { cache.increment n; op slice(x, axis=0, start=a, end=b) >> y; return; }""",
        values("x a b", (zeros(4), 0, 4, OK), (zeros(4), 3, 2, INDEX), (zeros(4), -1, 2, INDEX), (zeros(4), 1, 5, INDEX),
               (zeros(4), 5, 5, INDEX), (zeros(4), 6, 5, INDEX), (zeros(4), -2, -3, INDEX), (zeros(4), 2, -1, INDEX),
               (zeros(4), -1, 7, INDEX), (zeros(0), 0, 0, OK), (zeros(4), 9, 3, INDEX), (zeros(6), 0, 7, INDEX)),
    ),
    "slice_from_a_known_start": Case(
        """dynamic { x: f32[6]; b: i32; } volatile { y: f32[?]; z: f32[?]; } persistent { n: i32; }
        block entry { cache.increment n; op slice(x, axis=0, start=2, end=b) >> y;
          op slice(x, axis=0, start=b, end=4) >> z; return; }""",
        values("x b", (zeros(6), 2, OK), (zeros(6), 1, INDEX), (zeros(6), -1, INDEX), (zeros(6), 5, INDEX), (zeros(6), 7, INDEX)),
    ),
    "settings": Case(
        """dynamic { x: i8[3]; n: i32; v: i32; k: i64; } volatile { y: i8[3]; z: i8[3]; p: i64; } persistent { c: i32; }
        block entry { cache.increment c; op shl(x, bits=n) >> y; op fill(x, value=v) >> z; op fill(p, value=k * 4) >> p; return; }""",
        values("x n v k", ([1, 2, 3], 1, 2, 3, OK), ([1, 2, 3], -1, 2, 3, INDEX), ([1, 2, 3], 1, 200, 3, INDEX),
               ([1, 2, 3], 1, -129, 3, INDEX), ([1, 2, 3], -1, 200, BIG, INDEX), ([1, 2, 3], 9, 127, BIG, OVERFLOW)),
    ),
    "sampling": Case(
        """dynamic { x: f32[N] @max(N=4); u: f32; k: i32; t: f32; } volatile { y: i32; z: i32[2]; w: f32[2]; } persistent { c: i32; }
        block entry { cache.increment c; op sample(x, u, top_k=k, temperature=t) >> y;
          op top_k(x, k=2) >> w, z; return; }""",
        values("x u k t", (zeros(3), 0.5, 2, 1.0, OK), (zeros(0), 0.5, 0, 1.0, SHAPE), (zeros(3), 0.5, -1, 1.0, OK),
               (zeros(1), 0.5, 4, 1.0, SHAPE), (zeros(3), 0.5, 0, 1.0, OK)),
    ),
    "attention": Case(
        """dynamic { q: f32[N, 1, 2] @max(N=2); p: i32; } volatile { y: f32[N, 1, 2]; }
        persistent { K(t): f32[1, 2] @table @fixed(t=4); n: i32; }
        block entry { cache.increment n; cache.write q >> K[p..p + N]; assign k: f32[?, 1, 2];
          cache.read K[0..p + N] >> k; op attention(q, k, k, kv_len=p + m) >> y; return; } dynamic { m: i32; }""",
        values("q p m", (zeros(1, 1, 2), 3, 1, OK), (zeros(2, 1, 2), 3, 1, FULL), (zeros(1, 1, 2), -1, 1, INDEX), (zeros(1, 1, 2), 1, 9, OK),
               (zeros(1, 1, 2), 1, -9, OK)),
    ),
    "members": Case(
        """dynamic { i: i32; j: i64; } constant { W(l): f32[2] @pattern("W.{l}"); S(a, b): f32[2] @ref("s"); }
        volatile { y: f32[2]; z: f32[2]; } persistent { n: i32; }
        block entry { cache.increment n; op neg(W[i]) >> y; loop a (k in 0..2) { op neg(S[i + k, j]) >> z; } return; }""",
        values("i j", (0, 1, OK), (1, 0, INDEX), (3, 0, INDEX), (-1, 0, INDEX), (2, 0, INDEX), (0, 2, INDEX), (2, -1, INDEX),
               (0, BIG, INDEX)),
        {"W.0": zeros(2), "W.2": zeros(2), "s": zeros(3, 2, 2)},
    ),
    "parts_of_temporaries": Case(
        """dynamic { i: i32; a: i32; b: i32; v: f32[N] @max(N=4); s: f32; } volatile { y: f32[6]; z: f32[3]; } persistent { n: i32; }
        block entry { cache.increment n; transfer v >> y[a..b]; loop l (k in 0..i) { transfer s >> z[k + a]; } return; }""",
        values("i a b v s", (1, 0, 2, zeros(2), 1.0, OK), (1, -1, 1, zeros(2), 1.0, INDEX), (1, 2, 1, zeros(2), 1.0, INDEX),
               (1, 5, 7, zeros(2), 1.0, INDEX), (1, 1, 2, zeros(2), 1.0, SHAPE), (2, 2, 4, zeros(2), 1.0, INDEX),
               (9, 1, 3, zeros(2), 1.0, INDEX), (0, 4, 6, zeros(2), 1.0, OK)),
    ),
    # ---------------------------------------------------------------- arithmetic
    "division": Case(
        """dynamic { a: i64; b: i64; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; cache.write v >> K[a / b]; cache.write v >> K[a % (b - 1)]; return; }""",
        values("a b v", (4, 2, 1.0, OK), (4, 0, 1.0, INDEX), (4, -2, 1.0, INDEX), (4, 1, 1.0, FULL), (2, 1, 1.0, INDEX),
               (-4, 2, 1.0, INDEX), (9, 7, 1.0, OK), (40, 7, 1.0, FULL)),
    ),
    "overflow": Case(
        """dynamic { a: i64; b: i64; u: u64; v: f32; } persistent { n: i32; p: u64; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; cache.write v >> K[a * b]; cache.write v >> K[a + b - 1]; cache.write v >> K[u];
          cache.write u >> p; cache.write v >> K[p]; return; }""",
        values("a b u v", (1, 1, 1, 1.0, OK), (BIG, 2, 1, 1.0, OVERFLOW), (2, BIG, 1, 1.0, OVERFLOW), (BIG, 1, 1, 1.0, FULL),
               (1, 1, 1 << 63, 1.0, OVERFLOW), (0, 9, 1, 1.0, FULL), (-BIG, -9, 1, 1.0, OVERFLOW), (0, 2, 9, 1.0, FULL)),
    ),
    "kept_beyond_64_bits": Case(
        """dynamic { u: u64; v: f32; go: bool; } persistent { p: u64; K(t): f32 @table @fixed(t=4); }
        block entry { cache.write v >> K[p]; branch go set keep; return; }
        block set { cache.write u >> p; return; } block keep { return; }""",
        values("u v go", (1, 1.0, True, OK), (1 << 63, 1.0, True, OK), (1, 1.0, True, OVERFLOW), (1, 1.0, False, OVERFLOW)),
    ),
    # ---------------------------------------------------------------- late
    "late": Case(
        """dynamic { x: f32[2]; k: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=3); S: f32[2]; }
        volatile { y: f32; }
        block entry { cache.write v >> K[k]; assign s: f32; cache.read K[0] >> s; assign i: i32;
          op cast(s, to=i32) >> i; cache.read K[i] >> y; cache.increment n; return; }""",
        values("x k v", (zeros(2), 0, 1.0, OK), (zeros(2), 0, 5.0, FULL), (zeros(2), 0, 1.0, OK), (zeros(2), 0, -2.0, INDEX),
               (zeros(2), 3, 9.0, FULL), (zeros(2), 1, 9.0, OK)),
    ),
    "late_in_a_loop": Case(
        """dynamic { x: f32; k: i32; } persistent { n: f32; K(t): f32 @table @fixed(t=5); } volatile { y: f32; }
        block entry { cache.write x >> n; loop l (i in 0..k) { assign s: f32; cache.read n >> s; assign j: i32; op cast(s, to=i32) >> j;
          cache.write x >> K[j + i]; cache.increment n; } return; }""",
        values("x k", (0.0, 3, OK), (0.0, 4, FULL), (0.0, 9, FULL), (-2.0, 3, INDEX), (7.0, 0, OK), (7.0, 1, FULL), (4.0, 2, FULL)),
    ),
    # ---------------------------------------------------------------- loops
    "loop_up": Case(
        """dynamic { p: i32; m: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; loop l (i in 0..m) { cache.write v >> K[p + i]; } return; }""",
        values("p m v", (0, 4, 1.0, OK), (0, 9, 1.0, FULL), (2, 9, 1.0, FULL), (4, 1, 1.0, FULL), (9, 3, 1.0, FULL), (-2, 9, 1.0, INDEX),
               (-9, 2, 1.0, INDEX), (77, 0, 1.0, OK), (77, -4, 1.0, OK), (3, 2, 1.0, FULL)),
    ),
    "loop_down": Case(
        """dynamic { p: i32; m: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; loop l (i in 1..m) { cache.write v >> K[p - i]; } return; }""",
        values("p m v", (4, 5, 1.0, OK), (4, 6, 1.0, INDEX), (5, 9, 1.0, FULL), (1, 9, 1.0, INDEX), (0, 9, 1.0, INDEX), (9, 2, 1.0, FULL),
               (9, 99, 1.0, FULL), (3, 9, 1.0, INDEX)),
    ),
    "loop_static": Case(
        """dynamic { p: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; loop l (i in 0..3) { cache.write v >> K[p - i]; } return; }""",
        values("p v", (2, 1.0, OK), (1, 1.0, INDEX), (0, 1.0, INDEX), (4, 1.0, FULL), (-1, 1.0, INDEX)),
    ),
    "loop_stride": Case(
        """dynamic { p: i32; s: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=7); }
        block entry { cache.increment n; loop l (i in 0..5) { cache.write v >> K[p + i * s]; } return; }""",
        values("p s v", (0, 1, 1.0, OK), (0, 2, 1.0, FULL), (0, 3, 1.0, FULL), (6, -2, 1.0, INDEX), (6, -1, 1.0, OK), (3, -1, 1.0, INDEX),
               (0, 1 << 30, 1.0, FULL), (9, -1, 1.0, FULL), (-1, 1, 1.0, INDEX)),
    ),
    "loop_quotient": Case(
        """dynamic { p: i32; m: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; loop l (i in 0..m) { cache.write v >> K[(p + i) / 3]; cache.write v >> K[(p + i) % m]; }
          return; }""",
        values("p m v", (0, 4, 1.0, OK), (8, 4, 1.0, OK), (10, 4, 1.0, FULL), (0, 13, 1.0, FULL), (-1, 3, 1.0, INDEX), (0, 5, 1.0, FULL)),
    ),
    "loops_nested": Case(
        """dynamic { p: i32; q: i32; m: i32; v: f32; } persistent { n: i32; K(l, t): f32 @table @fixed(l=3, t=4); }
        block entry { cache.increment n; loop a (i in 0..m) { loop b (j in i..q) { cache.write v >> K[i, p + j]; } } return; }""",
        values("p q m v", (0, 4, 3, 1.0, OK), (0, 4, 4, 1.0, FULL), (1, 4, 2, 1.0, FULL), (-1, 4, 2, 1.0, INDEX), (-2, 9, 2, 1.0, INDEX),
               (2, 2, 2, 1.0, OK), (3, 2, 2, 1.0, FULL), (0, 3, 9, 1.0, OK)),
    ),
    "loops_nested_sums": Case(
        """dynamic { p: i32; q: i32; m: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=8); }
        block entry { cache.increment n; loop a (i in 0..m) { loop b (j in 0..q) { cache.write v >> K[p + i * 3 - j]; } } return; }""",
        values("p q m v", (2, 3, 2, 1.0, OK), (1, 3, 2, 1.0, INDEX), (2, 3, 3, 1.0, FULL), (2, 4, 9, 1.0, INDEX), (5, 2, 9, 1.0, FULL),
               (9, 99, 9, 1.0, FULL), (-1, 1, 1, 1.0, INDEX)),
    ),
    "loop_of_two_checks": Case(
        """dynamic { p: i32; q: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); L(t): f32 @table @fixed(t=5); }
        block entry { cache.increment n; loop l (i in 0..4) { cache.write v >> K[p + i]; cache.write v >> L[q + i]; } return; }""",
        values("p q v", (0, 0, 1.0, OK), (2, 4, 1.0, FULL), (1, 2, 1.0, FULL), (1, 3, 1.0, FULL), (3, 2, 1.0, FULL), (0, 2, 1.0, FULL),
               (3, 9, 1.0, FULL), (4, 9, 1.0, FULL), (1, -1, 1.0, INDEX), (2, 3, 1.0, FULL)),
    ),
    "loop_of_a_counter": Case(
        """dynamic { m: i32; s: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=5); }
        block entry { loop l (i in 0..m) { cache.write v >> K[n]; cache.increment s n; } return; }""",
        values("m s v", (2, 1, 1.0, OK), (4, 1, 1.0, FULL), (1, -9, 1.0, OK), (2, 1, 1.0, INDEX)),
    ),
    "loop_of_slices": Case(
        """dynamic { p: i32; w: i32; m: i32; } persistent { n: i32; K(t): f32 @table @fixed(t=6); } volatile { y: f32[?]; }
        block entry { cache.increment n; loop l (i in 0..m) { cache.read K[p + i..p + 2*i + w] >> y; } return; }""",
        values("p w m", (0, 1, 2, OK), (0, 1, 9, FULL), (-1, 1, 3, INDEX), (2, -1, 2, INDEX), (6, 1, 3, FULL), (7, 0, 1, FULL), (8, -1, 2, INDEX)),
    ),
    "loop_of_rings": Case(
        """dynamic { p: i32; m: i32; v: f32; } persistent { n: i32; X(l, t): f32 @table @fixed(l=3, t=2) @ring(t); }
        block entry { cache.increment n; loop l (i in 0..m) { cache.write v >> X[i, p - i]; } return; }""",
        values("p m v", (2, 3, 1.0, OK), (5, 1, 1.0, OK), (3, 3, 1.0, INDEX), (4, 9, 1.0, FULL), (0, 3, 1.0, INDEX), (9, 4, 1.0, FULL)),
    ),
    "loop_of_slices_of_operators": Case(
        """dynamic { x: f32[6]; p: i32; m: i32; } persistent { n: i32; } volatile { y: f32[?]; }
        block entry { cache.increment n; loop l (i in 0..m) { op slice(x, axis=0, start=p + i, end=p + 2 * i) >> y; } return; }""",
        values("x p m", (zeros(6), 0, 2, OK), (zeros(6), 0, 9, INDEX), (zeros(6), -3, 9, INDEX), (zeros(6), 7, 2, INDEX), (zeros(6), 5, 2, INDEX), (zeros(6), 4, 2, OK)),
    ),
    # ---------------------------------------------------------------- several at once
    "two_statements": Case(
        """dynamic { i: i32; j: i32; k: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); L(t): f32 @table @fixed(t=5); }
        block entry { cache.write v >> K[i]; cache.increment n; cache.write v >> L[j]; cache.write v >> K[n + k]; return; }""",
        values("i j k v", (0, 0, 0, 1.0, OK), (5, 6, 9, 1.0, FULL), (0, 6, 9, 1.0, FULL), (0, 0, 9, 1.0, FULL), (0, -1, -9, 1.0, INDEX),
               (-1, 6, 0, 1.0, INDEX)),
    ),
    "a_loop_then_a_statement": Case(
        """dynamic { i: i32; m: i32; ids: i32[2]; v: f32; } constant { T: f32[4]; } volatile { y: f32[2]; }
        persistent { n: i32; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; loop l (t in 0..m) { cache.write v >> K[t]; } op gather(T, ids) >> y;
          cache.write v >> K[i]; return; }""",
        values("i m ids v", (0, 4, [0, 1], 1.0, OK), (9, 9, [8, 9], 1.0, FULL), (9, 4, [8, 9], 1.0, INDEX), (9, 0, [1, 1], 1.0, FULL)),
    ),
    "a_branch": Case(
        """dynamic { c: bool; i: i32; j: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); } volatile { y: f32; }
        block entry { cache.increment n; branch c yes no; cache.write v >> K[j]; return; }
        block yes { cache.write v >> K[i]; return; }
        block no { cache.read K[i + 1] >> y; return; }""",
        values("c i j v", (True, 0, 1, 1.0, OK), (True, 4, 1, 1.0, FULL), (False, 3, 1, 1.0, FULL), (True, 0, 7, 1.0, FULL),
               (False, 8, 7, 1.0, FULL), (False, -2, -1, 1.0, INDEX), (False, 0, 0, 1.0, OK)),
    ),
    "a_branch_in_a_loop": Case(
        """dynamic { c: bool[4]; i: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); on: bool; }
        block entry { loop l (t in 0..4) { branch on yes no; cache.write v >> K[t]; } cache.increment n; return; }
        block yes { cache.write v >> K[i + t]; return; }
        block no { assign b: bool; op ge(n, 1) >> b; cache.write b >> on; return; }""",
        values("c i v", ([True] * 4, 0, 1.0, OK), ([True] * 4, 1, 1.0, FULL), ([True] * 4, 0, 1.0, OK), ([True] * 4, -1, 1.0, OK),
               ([True] * 4, -1, 1.0, INDEX), ([True] * 4, 0, 1.0, OK)),
    ),
    "a_consumer": Case(
        """dynamic { x: f32[2]; i: i32; j: i32; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); L(t): f32 @table @fixed(t=3); }
        volatile { y: f32[2]; z: f32; }
        block entry { transfer x >> y; yield y; cache.increment n; await y; cache.write v >> L[j]; return; }
        block first { await y; cache.write v >> K[i]; op neg(y) >> y; yield y; }
        block second { await y; cache.increment L2; cache.read L[i + 1] >> z; yield y; } persistent { L2: i32; }""",
        values("x i j v", (zeros(2), 0, 0, 1.0, OK), (zeros(2), 4, 5, 1.0, FULL), (zeros(2), 2, 5, 1.0, FULL), (zeros(2), -2, 0, 1.0, INDEX),
               (zeros(2), 1, 3, 1.0, FULL), (zeros(2), -1, 1, 1.0, INDEX)),
    ),
    "bounds_of_loops": Case(
        """dynamic { a: i64; b: i64; v: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=4); }
        block entry { cache.increment n; loop l (i in a * 4..a * 4 + b / a) { cache.write v >> K[i - a * 4]; } return; }""",
        values("a b v", (1, 2, 1.0, OK), (0, 1, 1.0, INDEX), (BIG, 1, 1.0, OVERFLOW), (1, 9, 1.0, FULL), (-1, 1, 1.0, INDEX)),
    ),
    "a_counter_that_runs_over": Case(
        """dynamic { v: f32; d: i64; } persistent { n: i8; w: i64; K(t): f32 @table @fixed(t=128); } volatile { y: f32; }
        block entry { cache.increment 100 n; cache.increment d w; cache.increment n; cache.read K[n] >> y; return; }""",
        values("v d", (1.0, 1, OK), (1.0, BIG, INDEX), (1.0, 1, INDEX)),
    ),
    "dimensions_at_run_time": Case(
        """dynamic { a: i32; b: i32; x: f32[N] @max(N=4); } volatile { y: i32[?]; z: f32[?, ?]; r: i32[?]; } persistent { n: i32; }
        block entry { cache.increment n; op iota(shape=[N - 1]) >> y; op reshape(x, shape=[2, N - 2]) >> z; return; }""",
        values("a b x", (1, 1, zeros(4), OK), (1, 1, zeros(0), SHAPE), (1, 1, zeros(1), SHAPE), (1, 1, zeros(3), SHAPE)),
    ),
    "joined_sizes": Case(
        """dynamic { a: f32[N] @max(N=4); b: f32[M] @max(M=4); c: bool; } volatile { y: f32[?]; z: f32[?]; } persistent { n: i32; }
        block entry { branch c one two; cache.increment n; op add(y, a) >> z; return; }
        block one { transfer a >> y; return; } block two { transfer b >> y; return; }""",
        values("a b c", (zeros(2), zeros(3), True, OK), (zeros(2), zeros(3), False, SHAPE), (zeros(2), zeros(2), False, OK)),
    ),
    # ---------------------------------------------------------------- before effects, wherever they are made
    "sizes_in_a_loop": Case(
        """dynamic { a: f32[N] @max(N=4); b: f32[M] @max(M=4); m: i32; } volatile { y: f32[?]; } persistent { n: i32; }
        block entry { cache.increment n; loop l (i in 0..m) { op add(a, b) >> y; cache.increment n; } return; }""",
        values("a b m", (zeros(2), zeros(2), 2, OK), (zeros(2), zeros(3), 2, SHAPE), (zeros(2), zeros(3), 0, OK)), early=True,
    ),
    "sizes_in_branches": Case(
        """dynamic { a: f32[N] @max(N=4); c: bool; m: i32; } volatile { y: f32[3]; z: f32[?, 2]; } persistent { n: i32; }
        block entry { cache.increment n; branch c one two; return; } block one { transfer a >> y; return; }
        block two { loop l (i in 0..m) { branch c one three; } return; } block three { op reshape(a, shape=[-1, 2]) >> z; return; }""",
        values("a c m", (zeros(3), True, 1, OK), (zeros(2), True, 1, SHAPE), (zeros(3), False, 1, SHAPE), (zeros(3), False, 0, OK),
               (zeros(4), False, 1, OK)), early=True,
    ),
    "sizes_of_slices_in_loops": Case(
        """dynamic { a: f32[N] @max(N=4); b: f32[M] @max(M=4); k: i32; m: i32; } volatile { y: f32[?]; } persistent { n: i32; }
        block entry { cache.increment n; loop l (i in 0..m) { assign s: f32[?]; op slice(a, axis=0, start=i, end=k) >> s;
          loop q (j in i..i + 1) { op add(s, b) >> y; } cache.increment n; } return; }""",
        values("a b k m", (zeros(4), zeros(3), 3, 1, OK), (zeros(4), zeros(3), 3, 2, SHAPE), (zeros(4), zeros(3), 5, 1, INDEX),
               (zeros(4), zeros(3), -1, 1, INDEX), (zeros(4), zeros(1), 1, 1, OK), (zeros(4), zeros(2), 2, 4, SHAPE),
               (zeros(4), zeros(0), 1, 0, OK)), early=True,
    ),
    "sizes_of_entries_in_loops": Case(
        """dynamic { a: f32[N] @max(N=4); p: i32; q: i32; m: i32; } persistent { n: i32; K(t): f32 @table @fixed(t=9); } volatile { y: f32[?]; }
        block entry { cache.increment n; loop l (i in 0..m) { assign s: f32[?]; cache.read K[p..q + i] >> s; op add(s, a) >> y;
          cache.write a >> K[p + i..q]; } return; }""",
        values("a p q m", (zeros(2), 0, 2, 1, OK), (zeros(2), 0, 2, 2, SHAPE), (zeros(2), 1, 2, 1, SHAPE), (zeros(2), 9, 11, 1, FULL),
               (zeros(2), -1, 1, 1, INDEX), (zeros(0), 4, 4, 1, OK), (zeros(0), 4, 4, 2, SHAPE), (zeros(3), 2, 1, 0, OK)), early=True,
    ),
    "sizes_of_parts": Case(
        """dynamic { a: f32[N] @max(N=4); i: i32; j: i32; c: bool; } persistent { n: i32; } volatile { y: f32[6]; }
        block entry { cache.increment n; branch c p q; return; } block p { transfer a >> y[i..j]; return; }
        block q { loop l (k in 0..2) { transfer a >> y[i + k..2 * k + j]; } return; }""",
        values("a i j c", (zeros(2), 1, 3, True, OK), (zeros(2), 1, 4, True, SHAPE), (zeros(2), 5, 7, True, INDEX),
               (zeros(2), 1, 3, False, SHAPE), (zeros(0), 1, 3, False, SHAPE), (zeros(2), 1, 4, False, SHAPE)), early=True,
    ),
    "overflow_of_what_is_set": Case(
        """dynamic { k: i64; m: i32; c: bool; } persistent { n: i32; w: i64; } volatile { y: i64; }
        block entry { cache.increment n; cache.increment k + 1 w; op fill(y, value=2 * k) >> y; branch c p q; return; }
        block p { loop l (i in 0..m) { op fill(y, value=k * i * i - 5) >> y; } return; } block q { cache.decrement k w; return; }""",
        values("k m c", (1, 2, True, OK), (BIG, 2, True, OVERFLOW), (BIG // 2, 2, True, OK), (-BIG // 2 - 1, 2, True, OVERFLOW), (BIG // 2, 3, True, OVERFLOW),
               (BIG // 2, 9, False, OK), (-BIG - 1, 0, False, OVERFLOW), (BIG // 5, 4, True, OVERFLOW), (BIG // 5, 3, True, OK)), early=True,
    ),
    "overflow_of_what_is_read": Case(
        """dynamic { k: u64; u: u64; c: bool; m: i32; } persistent { n: i32; w: u64; } volatile { y: i64; z: i64; }
        block entry { cache.increment n; branch c p q; loop l (i in 0..m) { op fill(y, value=u) >> y; op fill(z, value=w) >> z; } return; }
        block p { cache.increment k n; return; } block q { return; } block set @entry { cache.write k >> w; return; }""",
        values("k u c m", (1, 2, True, 1, OK), (2**63, 2, True, 1, OVERFLOW), (2**63, 2, False, 1, OK), (1, 2**64 - 1, True, 1, OVERFLOW),
               (1, 2**64 - 1, True, 0, OK), (2**63 - 1, 2**63 - 1, True, 2, OK)), early=True,
    ),
    "overflow_of_what_is_known": Case(
        """dynamic { c: bool; } persistent { n: i32; } volatile { v: u64; y: i64; }
        block entry { cache.increment n; op fill(v, value=9223372036854775808) >> v; branch c p q; return; }
        block p { op fill(y, value=v % 3) >> y; return; } block q { return; }""",
        values("c", (False, OK), (True, OVERFLOW), (False, OK)), early=True,
    ),
    "ids_in_a_branch": Case(
        """dynamic { ids: i32[2, 3]; i: i32; c: bool; m: i32; } constant { T: f32[4]; } persistent { n: i32; K(t): f32 @table @fixed(t=3); }
        volatile { y: f32[3, 2]; z: f32[?]; v: f32; }
        block entry { branch c p q; loop l (t in 0..m) { cache.read K[i + t] >> v; } return; } block q { return; }
        block p { cache.increment n; assign d: i32[3, 2]; op transpose(ids, perm=[1, 0]) >> d; op gather(T, d) >> y; return; }""",
        values("ids i c m", ([[0, 1, 2], [1, 2, 3]], 0, True, 1, OK), ([[0, 1, 2], [1, 2, 4]], 0, True, 1, INDEX), ([[0, 1, 2], [1, 2, 4]], 0, False, 1, OK),
               ([[0, -1, 2], [1, 2, 4]], 3, True, 1, INDEX), ([[0, 1, 2], [1, 2, 3]], 3, True, 1, FULL), ([[0, 1, 2], [1, 2, 4]], 3, False, 0, OK)),
        {"T": zeros(4)}, early=True,
    ),
    # ---------------------------------------------------------------- one that stays behind
    "ids_of_data_before_an_index": Case(
        """dynamic { x: f32[2, 3]; i: i32; c: bool; m: i32; } constant { T: f32[2]; } persistent { n: i32; K(t): f32 @table @fixed(t=3); }
        volatile { y: f32[2]; v: f32; }
        block entry { branch c p q; loop l (t in 0..m) { cache.read K[i + t] >> v; } return; } block q { return; }
        block p { assign a: i64[2]; op argmax_axis(x, axis=1) >> a; op gather(T, a) >> y; cache.increment n; return; }""",
        values("x i c m", ([[2, 1, 0], [0, 1, 0]], 0, True, 1, OK), ([[2, 1, 0], [0, 1, 3]], 0, True, 1, INDEX), ([[2, 1, 0], [0, 1, 3]], 3, True, 1, FULL),
               ([[2, 1, 0], [0, 1, 3]], 0, False, 1, OK), ([[2, 1, 0], [0, 1, 0]], 2, True, 2, FULL)),
        {"T": zeros(2)},
    ),
}
