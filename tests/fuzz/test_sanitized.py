"""Compiled C in memory without a byte to spare: an access to any byte beyond it is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oic.diagnostics import StepError
from oic.driver import Program
from tests.fuzz.checks import compiled
from tests.fuzz.memory_plans import LAYOUTS, laid_out
from tests.fuzz.sanitized import OPTIMIZED, SANITIZED, Crash, SanitizedExecutor, build_sanitized

GRAPH = """\
graph NAME {
    dynamic { x: f32[4]; d: i32; }
    constant { c1: f32[4]; }
    persistent { n: u8; K: f32[4]; }
    volatile { y: f32[4]; }
    block entry {
        assign a: f32[4];
        op softmax(x) >> a;
        op add(a, c1) >> a;
        cache.read K >> y;
        cache.write a >> K;
        op flip(a, axes=[0]) >> a;
        op flip(a, axes=[0]) >> y;
        cache.increment n;
        return;
    }
}
"""
WAYS = {"sanitized": SANITIZED, "optimized": OPTIMIZED}


def made(name: str) -> Program:
    found = compiled(GRAPH.replace("NAME", name))
    assert found is not None
    return laid_out(found, LAYOUTS[2])


def smaller(name: str, space: str) -> Program:
    """A program whose plan says that a buffer ends earlier than it does."""
    program = made(name)
    plan = program.planned.plan
    assert plan is not None
    held = next(b for b in plan.buffers if b.space == space)
    plan.buffers = [replace(b, nbytes=b.nbytes - 4) if b is held else b for b in plan.buffers]
    return program


@pytest.mark.parametrize("way", WAYS)
def test_red_zones(way: str, tmp_path: Path) -> None:
    """One program is right; the other writes four bytes that its plan assigns to no value."""
    programs = [made("right"), smaller("wrong", "arena")]
    path = build_sanitized(programs, tmp_path, WAYS[way])
    x = np.array([1, 2, 3, 4], np.float32)
    with SanitizedExecutor(programs[0], path, 0) as right:
        first = right.step("entry", x=x)["y"]
        saved = right.save()
        assert right.fetch("n") == 1
        right.reset()
        assert right.fetch("n") == 0
        np.testing.assert_array_equal(right.step("entry", x=x)["y"], first)
        kept = right.fetch("K")
        right.step("entry", x=-x)
        right.load(saved)
        np.testing.assert_array_equal(right.fetch("K"), kept)
    with SanitizedExecutor(programs[1], path, 1) as wrong:
        said = "use-after-poison" if way == "sanitized" else "red zone of a buffer was written"
        with pytest.raises(Crash, match=said):
            wrong.step("entry", x=x)


def test_positions_are_taken_back(tmp_path: Path) -> None:
    """As many as there are; more are refused."""
    program = compiled(
        """\
graph fed {
    dynamic { x: f32[N, 4] @max(N=3); }
    persistent { pos: i32 @init(0); K(t): f32[4] @table @fixed(t=8); }
    volatile { y: f32[?, 4]; }
    block entry {
        cache.write x >> K[pos..pos + N];
        cache.read K[0..pos + N] >> y;
        cache.increment N pos;
        return;
    }
}
"""
    )
    assert program is not None
    with SanitizedExecutor(program, build_sanitized([program], tmp_path), 0) as session:
        session.step("entry", x=np.ones((3, 4), np.float32))
        session.truncate(2)
        assert session.fetch("pos") == 1
        with pytest.raises(StepError):
            session.truncate(2)
        assert session.fetch("pos") == 1
