"""A program with every kind of state, for the tests of saved states."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np

import oic
from oic.memory.crc32c import crc32c

TEXT = """
dynamic { x: f32[2]; b: bool; i: i32; w: i32; q: i4[3]; }
volatile {
  whole: f32[?, ?]; row: i4[?]; ones: f16[?]; seen: f32[?, 2]; tail: i16[?]; total: f32[2];
  window: i4[?, 3];
}
persistent {
  n: i32 @init(5);
  on: bool;
  half: f16 @init(0.5);
  sum: f32[2];
  P: i4[3] @init(-3);
  F(t): f32[2] @table @fixed(t=40);
  G(l, t): f32[2] @table @fixed(l=2);
  B(t): i16 @table @init(-1);
  S(slot): u8 @table @fixed(slot=1000);
  R(t): f32[2] @table @fixed(t=5) @ring(t) @init(1.0);
  Q(u, t): i4[3] @table @fixed(u=3, t=4) @ring(t);
  M(r, c): f32[1, 2] @auto_dim(r, c) @init(0.5) @fixed(r=4, c=4);
  Z(r): i4[3] @auto_dim(r) @init(2);
  C(l, k): f16[1] @table @auto_dim(k) @fixed(l=3, k=9) @init(1.0);
}
block entry {
  cache.read sum >> total;
  op add(total, x) >> total;
  cache.write total >> sum;
  cache.increment n;
  cache.increment half;
  cache.write b >> on;
  cache.write q >> P;
  cache.write x >> F[i];
  cache.write x >> G[0, i];
  cache.write x >> G[1, w];
  cache.read G[1, 0..w] >> seen;
  return;
}
block words @entry {
  assign small: i16;
  assign byte: u8;
  op cast(i, to=i16, saturate=false) >> small;
  op cast(i, to=u8, saturate=false) >> byte;
  cache.write small >> B[w];
  cache.write byte >> S[n];
  cache.write byte >> S[w];
  cache.read B[0..w] >> tail;
  return;
}
block rings @entry {
  cache.write x >> R[i];
  cache.write q >> Q[w, i];
  cache.read Q[w, -3..] >> window;
  return;
}
block grow @entry {
  cache.read M[w, i] >> whole;
  op add(whole, whole) >> whole;
  cache.write whole >> M[];
  cache.read Z[i] >> row;
  cache.write row >> Z[];
  cache.read C[w, i] >> ones;
  op add(ones, ones) >> ones;
  cache.write ones >> C[w];
  return;
}
block forget @entry { cache.reset G[w]; cache.reset B[i]; cache.reset Q[w]; cache.reset C[w]; return; }
block forget_all @entry { cache.reset F; cache.reset R; cache.reset M; cache.reset Z; return; }
"""
CAPACITY = {"B.t": 24}  # G is given address space
BOUNDED = {"B.t": 24, "G.t": 40, "Z.r": 6}
# (entry, names of its inputs, the most `i` and `w` are)
CALLS = {
    "entry": (("x", "b", "i", "w", "q"), 39, 30),
    "words": (("i", "w"), 300, 23),
    "rings": (("x", "i", "w", "q"), 0, 2),
    "grow": (("w", "i"), 4, 2),
    "forget": (("w", "i"), 30, 1),
    "forget_all": ((), 0, 0),
}


def graph() -> oic.Graph:
    return oic.parse(TEXT, name="kinds.oi")


def inputs(entry: str, rng: np.random.Generator, number: int) -> dict[str, Any]:
    """Inputs of a step; `number` is that of the step, and positions in rings grow with it."""
    names, most_i, most_w = CALLS[entry]
    drawn = {
        "x": rng.standard_normal(2).astype(np.float32),
        "b": np.bool_(rng.integers(2)),
        "i": np.int32(number if entry == "rings" else rng.integers(most_i + 1)),
        "w": np.int32(rng.integers(most_w + 1)),
        "q": rng.integers(-8, 8, 3).astype(ml_dtypes.int4),
    }
    return {name: drawn[name] for name in names}


def step(executor: oic.Executor, rng: np.random.Generator, number: int) -> list[bytes]:
    """One step of some entry; what it gives, or what it refuses."""
    entry = list(CALLS)[int(rng.choice(len(CALLS), p=(0.35, 0.2, 0.2, 0.15, 0.05, 0.05)))]
    given = inputs(entry, rng, number)
    try:
        found = executor.step(entry, **given)
    except oic.StepError as refused:
        return [refused.status.encode()]
    return [a.tobytes() for a in found.values()]


def sealed(good: bytes, body: bytes) -> bytes:
    """A saved state with this body and a right head."""
    head = good[:12] + bytes(4) + good[16:24] + struct.pack("<q", 32 + len(body))
    return head[:12] + struct.pack("<I", crc32c(head + body)) + head[16:] + body
