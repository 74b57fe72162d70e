"""C of a loop that fills an output: rows are computed where they go, and nothing is filled or copied."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from oic.check.source import parse
from oic.driver import Settings, compile_graph
from oic.library.emit import LibrarySpec, emit
from oic.memory.map import memory_map
from oic.toolchain.target import STANDARD, WARNINGS, target

ROWS = """graph rows {
  dynamic  { x: f32[N, 8] @max(N=6); i: i32; q: i4[4, 6]; }
  volatile { y: f32[N, 8]; z: f32[6, 8]; u: i4[4, 6]; }
  block entry {
    loop rows (k in 0..N) {
      assign row: f32[1, 8];
      op slice(x, axis=0, start=k, end=k + 1) >> row;
      op softmax(row) >> row;
      transfer row >> y[k..k+1];
    }
    return;
  }
  block others @entry {
    assign row: f32[2, 8];
    op slice(x, axis=0, start=0, end=2) >> row;
    op softmax(row) >> row;
    transfer row >> z[i..i+2];
    loop halves (k in 0..2) {
      assign half: i4[2, 6];
      op slice(q, axis=0, start=2*k, end=2*k + 2) >> half;
      op add(half, half) >> half;
      transfer half >> u[2*k..2*k+2];
    }
    return;
  }
}
"""


def test_rows_are_computed_where_they_go(tmp_path: Path) -> None:
    program = compile_graph(parse(ROWS, "rows.oi"), None, Settings())
    assert [(s.state, s.kind, s.reason) for s in memory_map(program.planned).stores] == [
        ("y", "entry", "computed there"),
        ("z", "entry", "computed there"),
        ("u", "entry", "computed there"),
    ]
    files = emit(LibrarySpec(program.planned, target("portable")), tmp_path)
    source = (tmp_path / "rows.c").read_text(encoding="utf-8")
    start = source.index("float *const y = out->y;")
    body = source[start : source.index("return OIC_OK;", start)]
    assert "mem" not in body and "s->arena" not in body
    assert body.count("for (") == 1  # the loop itself: none fills the output before it
    assert "oic_softmax_f32_args given = {.x = row, .y = row_2, .outer = 1, .n = 8, .inner = 1};" in body
    if compiler := shutil.which("gcc"):
        call = [compiler, *STANDARD, *WARNINGS, "-Werror", "-I", str(tmp_path), "-c", "-o", str(tmp_path / "x.o")]
        done = subprocess.run([*call, str(tmp_path / "rows.c")], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert files.name == "rows"


@pytest.mark.parametrize(
    "loops, unread",
    [
        ("loop a (i in 0..6) { op exp(v) >> r; transfer r >> y[i]; }", True),
        ("loop a (i in 0..3) { transfer x >> y[2*i..2*i+2]; }", True),
        ("loop a (i in 0..6) { loop b (j in 0..2) { transfer h >> y[i, 4*j..4*j+4]; } }", True),
        ("loop a (i in 1..6) { transfer v >> y[i]; }", False),
        ("loop a (i in 0..5) { transfer v >> y[i]; }", False),
        ("loop a (i in 0..n) { transfer v >> y[i]; }", False),
        ("loop a (i in 0..6) { transfer v >> y[5-i]; }", False),  # it is all of it, which is not seen
        ("loop a (i in 0..3) { transfer v >> y[2*i]; }", False),
        ("loop a (i in 0..5) { transfer x >> y[i..i+2]; }", False),
        ("loop a (i in 0..6) { transfer h >> y[i, 0..4]; }", False),
        ("loop b (j in 0..n) { loop a (i in 0..6) { transfer v >> y[i]; } }", False),
        ("loop a (i in 0..6) { branch c more rest; }", False),
        ("loop a (i in 0..6) { transfer v >> y[i]; op exp(y) >> y; }", False),
    ],
)
def test_only_what_loops_replace_in_whole_is_not_filled(loops: str, unread: bool) -> None:
    head = "dynamic { x: f32[2, 8]; v: f32[8]; h: f32[4]; n: i32; c: bool; } volatile { y: f32[6, 8]; }"
    blocks = "block more { transfer v >> y[i]; return; } block rest { return; }"
    text = f"graph g {{ {head} block entry {{ assign r: f32[8]; {loops} return; }} {blocks} }}"
    planned = compile_graph(parse(text, "g.oi"), None, Settings()).planned
    fills = [op for op in planned.all_ops() if op.name == "splat" and op.results[0].type.rank == 2]
    assert [op.attributes()["unread"] for op in fills] == [unread]
