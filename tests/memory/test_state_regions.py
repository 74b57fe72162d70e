"""Accesses of a state by place: what is left out is apart, and most of what is apart is left out."""

from __future__ import annotations

import pytest

from oic.driver import Settings, lowered
from oic.ir import dims, index
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Extent
from oic.ir.grouping import by_key
from oic.ir.ranges import Ranges
from oic.ir.state import CacheOp, StateLoad, StateStore
from oic.ir.types import INDEX
from oic.memory import state_regions
from oic.memory.state_regions import Accesses, Box, Boxed, apart, is_apart
from tests.fuzz.checks import compiled

TEXT = """
graph g {
  dynamic { x: f32[4]; a: i32; b: i32; }
  persistent { K(l, t): f32[4] @table @fixed(l=2, t=64); }
  volatile { p: f32[4]; q: f32[4]; r: f32[4]; s: f32[4]; t: f32[4]; u: f32[4]; z: f32[3, 4]; w: f32[1, 4]; }
  block entry {
    cache.read K[0, a] >> p; cache.read K[0, a + 1] >> q; cache.read K[1, a + 1] >> r; cache.read K[a, a + 3] >> s;
    cache.read K[0, b] >> t; cache.read K[0, 7] >> u; cache.read K[0, a..a + 3] >> z; cache.read K[0, a + 4..a + 5] >> w;
    cache.write x >> K[0, a + 1]; cache.write x >> K[0, a + 2]; cache.write x >> K[1, b]; cache.write x >> K[0, a];
  }
}
"""

MANY = """
graph g {
  dynamic { x: f32[4]; v: f32[1, 4]; w: f32[N, 4] @max(N=3); a: i32; b: i32; }
  persistent {
    K(l, t): f32[4] @table @fixed(l=3, t=64);
    V(t): f32[1, 4] @table @fixed(t=64);
    R(l, t): f32[4] @table @fixed(l=2, t=3) @ring(t);
    pos: i32;
  }
  volatile { y: f32[4]; z: f32[4]; o: f32[1, 4]; }
  block entry {
    assign p: f32[4]; assign q: f32[4]; assign s: f32[1, 4]; assign r: f32[?, 4];
    cache.read K[a, 2*a + 1] >> p; cache.write p >> K[1, a + 1]; cache.read K[a % 3, b + a] >> q;
    cache.write x >> K[a, a + 1]; cache.write x >> K[a, 2*a + 2]; cache.write x >> K[a, 0 - a];
    cache.write w >> K[a, a + 2..a + 2 + N];
    op add(p, q) >> y;
    loop turns (i in 0..4) {
      cache.read K[0, i + 1] >> p; cache.write x >> K[0, i];
      cache.increment pos;
      cache.write x >> R[i % 2, pos]; cache.read R[i % 2, -2..] >> r; cache.read R[a, pos - 1] >> q;
      cache.read V[pos] >> s; cache.write v >> V[pos + i]; cache.write v >> V[pos + 1];
      op max(y, p) >> y; op max(y, q) >> y; op add(s, v) >> o; op sum_axis(r, axes=[0]) >> z;
    }
    cache.reset K[1, a + 2]; cache.reset K[2]; cache.reset R[1];
  }
}
"""


@pytest.mark.parametrize(("bases", "most"), [(16, 76), (1, 54)])  # with one kind of place, others meet all
def test_what_is_left_out_is_apart(bases: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_regions, "BASES", bases)
    program = compiled(TEXT)
    assert program is not None
    module = next(module for step, module in lowered(program.module, Settings()) if step.name == "fuse")
    ops = [op for op in module.all_ops() if isinstance(op, (StateLoad, StateStore))]
    known = Ranges(module.all_ops())
    accesses = Accesses(ops, known, list[Op])
    assert len(ops) == 12
    left = 0
    for op in ops:
        box = Box.of(op)
        near = [other for some in accesses.around(box) for other in some]
        assert op in near and len(near) == len(set(near))
        out = [other for other in ops if other not in near]
        assert all(apart(Box.of(other), box, known) for other in out)
        left += len(out)
    assert left == most  # pairs, of a slice of one entry too


@pytest.mark.parametrize("bases", [16, 2, 1])
def test_what_is_left_out_is_apart_whatever_accesses_are(bases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiples, entries of one row, slices, resets and both halves of rings."""
    monkeypatch.setattr(state_regions, "BASES", bases)
    program = compiled(MANY)
    assert program is not None
    module = next(module for step, module in lowered(program.module, Settings()) if step.name == "fuse")
    known = Ranges(module.all_ops())
    left, seen = 0, set[str]()
    touched = ((s, op) for op in module.all_ops() for s in dict.fromkeys(op.touched("read") + op.touched("write")))
    for state, ops in by_key((s, op) for s, op in touched if not op.regions).items():
        accesses = Accesses(ops, known, list[Op])
        seen |= {op.name for op in ops}
        for box in [Box.of(op) for op in ops if isinstance(op, Boxed)]:
            near = [other for some in accesses.around(box) for other in some]
            assert len(near) == len(set(near)) and box.whole is state
            out = [other for other in ops if other not in near]
            assert all(is_apart(other, box, known) for other in out)
            left += len(out)
    assert left > 0 and {"state.load", "state.store", "state.fill", "state.double"} <= seen


def test_boxes_of_late_sizes_are_apart_from_where_one_ends() -> None:
    program = compiled(TEXT)
    assert program is not None
    whole = next(op for op in program.module.all_ops() if isinstance(op, CacheOp)).table
    n = dims.of(Extent("N", 3))
    a, size = Block().argument(INDEX, "a"), index.IndexSize(n).result

    def start(more: int) -> Value:
        return index.IndexAdd(index.IndexAdd(a, size).result, index.IndexConst(more).result).result

    for other in (n, 2):
        for more, expected in ((-1, False), (0, True), (1, True)):
            boxes = Box(whole, (a,), (n,)), Box(whole, (start(more),), (other,))
            assert apart(*boxes, Ranges()) == expected == apart(*boxes[::-1], Ranges())
