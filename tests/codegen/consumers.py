"""Graphs whose entry yields to several consumers, for the tests of running them at once."""

from __future__ import annotations

HEAD = """
dynamic { x: f32[N, 4] @max(N=6); ids: i32[3]; at: i64; b: bool; }
constant { one: f32 @init(1.0); two: f32 @init(2.0); whole: i32 @init(1); three: u4[6] @init(3); }
"""

PLAIN = """
volatile { p: f32[N, 4]; q: f32[N, 4]; r: f32[N, 4]; y: f32[N, 4]; }
block entry {
  op add(x, x) >> p; op mul(x, x) >> q; op sub(x, p) >> r;
  yield p, q, r;
  assign mine: f32[N, 4];
  op softmax(x) >> mine;
  await p, q, r;
  op add(p, q) >> y; op add(y, r) >> y; op add(y, mine) >> y;
  return;
}
block first { await p; assign t: f32[N, 4]; op softmax(p) >> t; op relu(t) >> t; op add(t, x) >> p; yield p; }
block second { await q; assign t: f32[N, 4]; op exp(q) >> t; op softmax(t) >> t; op mul(t, t) >> q; yield q; }
block third { await r; assign t: f32[N, 4]; op softmax(r) >> t; op softmax(t) >> r; yield r; }
"""

CACHES = """
persistent {
  K(t): f32[4] @table; V(t): f32[4] @table @fixed(t=8); pos: i64; left: f32[4]; count: u8;
  M(r): f32[2] @auto_dim(r); R(t): f32[4] @table @fixed(t=3) @ring(t);
}
volatile { h: f32[4]; a: f32[4]; g: f32[4]; v: f32[?, 4]; w: f32[?, 4]; y: f32[4]; n: f32[?]; }
block entry {
  op sum_axis(x, axes=[0]) >> h; op mul(h, h) >> a; op add(a, h) >> g;
  yield h, a, g, n;
  await h, a, g, n;
  op add(h, a) >> y; op add(y, g) >> y;
  cache.read K[] >> v; cache.read R[] >> w;
  cache.increment pos;
  return;
}
block keys { await h; cache.write h >> K[at]; assign t: f32[?, 4]; cache.read K[0..at] >> t;
  op sum_axis(t, axes=[0]) >> h; yield h; }
block values { await a; cache.write a >> V[pos]; cache.increment 3 count; assign t: f32[?, 4];
  cache.read V[0..pos] >> t; op sum_axis(t, axes=[0]) >> a; yield a; }
block rest { await h, a; cache.write h >> left; cache.reset count; yield h, a; }
block grow { await n; assign z: f32[?]; cache.read M[pos] >> z; transfer z >> n; yield n; }
block ring { await g; cache.write g >> R[pos]; assign t: f32[?, 4]; cache.read R[] >> t;
  op max_axis(t, axes=[0]) >> g; yield g; }
"""

# What consumers yield is computed in entries of the state, at the top and in a loop, and within consumers.
ENTRIES = """
persistent { K(t): f32[4] @table @fixed(t=6); E(t): f32[4] @table @fixed(t=3); own: f32[4]; }
volatile { h: f32[4]; a: f32[4]; u: f32[4]; v: f32[4]; y: f32[4]; z: f32[6, 4]; }
block entry {
  op sum_axis(x, axes=[0]) >> h; op exp(h) >> a;
  yield h, a;
  await h, a;
  cache.write h >> E[1];
  op softmax(h) >> y; op mul(a, y) >> y;
  loop l (i in 0..6) {
    op add(a, y) >> u; op abs(y) >> v;
    cache.write u >> K[i];
  }
  cache.read K[0..6] >> z;
  op relu(y) >> h; op neg(y) >> u; op neg(y) >> a;
  return;
}
block first { await h; assign t: f32[4]; op softmax(h) >> t; op exp(t) >> t; cache.write t >> own; op tanh(h) >> h; yield h; }
block second { await a; op neg(a) >> a; op relu(a) >> a; yield a; }
"""

REFUSED = """
constant { W: f32[5, 4]; }
persistent { A(t): f32[3, 4] @table; B(t): f32[3, 4] @table; calls: i64; }
volatile { p: f32[3, 4]; q: f32[3, 4]; k: f32[3, 4]; y: f32[3, 4]; }
block entry {
  cache.increment calls;
  op gather(W, ids, axis=0) >> p;
  transfer p >> q; transfer q >> k;
  yield p, q, k;
  await p, q, k;
  op add(p, q) >> y; op add(y, k) >> y;
  return;
}
block early { await p; assign j: i32[3]; op add(ids, ids) >> j; cache.write p >> A[at];
  op gather(W, j, axis=0) >> p; yield p; }
block calm { await q; op softmax(q) >> q; op softmax(q) >> q; yield q; }
block late { await k; assign j: i32[3]; op sub(ids, whole) >> j; cache.write k >> B[calls];
  op gather(W, j, axis=0) >> k; yield k; }
"""

NESTED = """
persistent { S(l, t): f32[4] @table @fixed(l=3, t=4); T(l): f32[4] @table @fixed(l=3); seen: i32; }
volatile { p: f32[N, 4]; q: f32[4]; y: f32[N, 4]; old: f32[4]; }
block entry {
  cache.read T[1] >> old;
  op sum_axis(x, axes=[0]) >> q;
  loop outer (o in 0..3) {
    op add(x, x) >> p;
    yield p, q;
    await p, q;
    op add(p, q) >> y;
    op add(y, old) >> y;
  }
  op add(y, old) >> y;
  return;
}
block deep { await p; assign t: f32[N, 4];
  loop l (i in 0..3) { loop m (j in 0..N) { op softmax(p) >> t; op add(t, p) >> p;
  } cache.write old >> S[i, 2]; } yield p; }
block wide { await q; loop l (i in 0..3) { assign e: f32[4]; cache.read T[i] >> e; op add(e, q) >> e;
  cache.write e >> T[i]; }
  cache.increment seen; branch b up down; op add(q, old) >> q; yield q; }
block up { op mul(q, two) >> q; return; }
block down { op div(q, two) >> q; return; }
"""

PACKED = """
persistent { F(t): u4[6] @table @fixed(t=4); G: bool[5]; u: u64; v: i8 @init(120); }
volatile { p: i32[3]; q: i32[3]; y: i32[3]; c: bool[3]; z: f16[N, 4]; w: f16[N, 4]; }
block entry {
  transfer ids >> p; op add(ids, whole) >> q; op cast(x, to=f16) >> z;
  yield p, q, z;
  await p, q, z;
  op add(p, q) >> y; op mul(z, z) >> w;
  return;
}
block small { await p; assign e: u4[6]; cache.read F[1] >> e; op add(e, three) >> e; cache.write e >> F[1];
  op add(p, p) >> p; yield p; }
block flags { await q; op lt(q, whole) >> c; cache.increment u; cache.increment 100 v; op sub(q, whole) >> q; yield q; }
block half { await z; assign t: f16[N, 4]; op softmax(z) >> t; op add(t, z) >> z; yield z; }
"""

MOVED = """
persistent { A(t): f32[4] @table @fixed(t=4); }
volatile { p: f32[4]; q: f32[4]; y: f32[4]; v: f32[4]; s: f32[?, 4]; m: f32[4]; }
block entry {
  cache.read A[1] >> v;
  op sum_axis(x, axes=[0]) >> p; transfer p >> q; transfer v >> m;
  yield p, q, m;
  await p, q, m;
  op add(p, q) >> y; op add(y, m) >> y;
  return;
}
block reader { await p; op add(p, v) >> p; op softmax(p) >> p; yield p; }
block writer { await q; cache.write q >> A[1]; transfer v >> q; yield q; }
block mover { await m; transfer v >> m; op add(m, one) >> m; yield m; }
"""

BOTH = """
constant { W: f32[5, 4]; }
persistent { calls: i64; }
volatile { p: f32[3, 4]; q: f32[3, 4]; r: f32[3, 4]; y: f32[3, 4]; }
block entry {
  cache.increment calls;
  yield p, q, r;
  await p, q, r;
  op add(p, q) >> y; op add(y, r) >> y;
  return;
}
block high { await p; assign j: i32[3]; op add(ids, whole) >> j; op add(j, whole) >> j;
  op gather(W, j, axis=0) >> p; yield p; }
block low { await q; assign k: i32[3]; op sub(ids, whole) >> k; op gather(W, k, axis=0) >> q; yield q; }
block none { await r; op softmax(r) >> r; yield r; }
"""

# A check that comes before the consumers leaves `pos` one value, which they use.
SETTLED = """
persistent { pos: i64; seen(a): i32 @table @fixed(a=2); R(t): f32[4] @table @fixed(t=3) @ring(t); }
volatile { p: f32[4]; q: f32[4]; r: i32; }
block entry {
  op sum_axis(x, axes=[0]) >> p; op mul(p, p) >> q;
  yield p, q;
  await p, q;
  cache.read seen[0] >> r;
  return;
}
block left { await p; assign t: f32[4]; op slice(p, axis=0, start=pos, end=pos + 4) >> t; op exp(t) >> p;
  cache.increment seen[pos]; branch b forget keep; yield p; }
block right { await q; cache.write q >> R[0]; op softmax(q) >> q; yield q; }
block forget { cache.reset seen[pos]; return; }
block keep { return; }
"""

GRAPHS = {
    "plain": PLAIN,
    "caches": CACHES,
    "entries": ENTRIES,
    "refused": REFUSED,
    "nested": NESTED,
    "packed": PACKED,
    "moved": MOVED,
    "both": BOTH,
    "settled": SETTLED,
}


def text(name: str) -> str:
    """The source of a graph."""
    return f"graph {name} {{{HEAD}{GRAPHS[name]}}}"
