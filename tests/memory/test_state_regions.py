"""Accesses of a state by place: what is left out is apart, and most of what is apart is left out."""

from __future__ import annotations

import pytest

from oic.driver import Settings, lowered
from oic.ir.core import Op
from oic.ir.ranges import Ranges
from oic.ir.state import StateLoad, StateStore
from oic.memory import state_regions
from oic.memory.state_regions import Accesses, Box, apart
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


@pytest.mark.parametrize(("bases", "most"), [(16, 76), (1, 54)])  # with one kind of place, others meet all
def test_what_is_left_out_is_apart(bases: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_regions, "BASES", bases)
    program = compiled(TEXT)
    assert program is not None
    module = next(module for step, module in lowered(program.module, Settings()) if step.name == "fuse")
    ops = [op for op in module.all_ops() if isinstance(op, (StateLoad, StateStore))]
    known = Ranges(module.all_ops())
    accesses = Accesses(ops, known, list[Op])
    assert accesses.all == ops
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
