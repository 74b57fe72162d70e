"""Which copies are left, and why; and that what is not copied is right, in every stage and in C."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import pytest

import oic
from oic.driver import Program
from oic.ir.state import Splat, StateStore
from oic.memory import sharing
from oic.operators.fused import Copy
from oic.operators.part import Insert
from oic.passes.materialize import WAITING
from tests.fuzz import campaign
from tests.fuzz import memory_plans as plans
from tests.fuzz.checks import check, check_memory, compiled, steps

HEAD = """
graph g {
  dynamic { x: f32[4, 32]; v: f32[32]; c: bool; n: i32; ids: i32[4]; }
  constant { w: f32[32, 32] @init(0.03); b: f32[32] @init(0.5); }
  persistent {
    h: f32[4, 32] @init(1.0);
    K(t): f32[4, 32] @table @fixed(t=6);
    Q(t): i4[32] @table @fixed(t=4);
    R(t): f32[4, 32] @table @fixed(t=3) @ring(t);
    pos: i32 @init(0);
  }
  volatile { y: f32[4, 32]; z: f32[4, 32]; }
"""


@dataclass(frozen=True)
class Case:
    """Statements of a graph, and what is left in them.

    copies  reasons of copies
    stores  for every store of the state: why it copies, or "" where the value is computed there
    parts   for every part that is replaced: why it is copied there, or "" where it is computed there
    """

    body: str
    copies: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    blocks: str = ""
    parts: tuple[str, ...] = ()


LATE = "needed after its destination changes"
USED = "the state is used while it is computed"
ELSEWHERE = "carried elsewhere"

WHOLE = "what it is a part of is"
COPIED = f"{WHOLE} copied"
LATER = f"{WHOLE} computed only later"
READ = f"{WHOLE} used while it is computed"
OVER = "needed after what it is a part of may have changed"
ROW = "assign r: f32[1, 32]; op slice(x, axis=0, start=i, end=i+1) >> r;"

CASES = {
    "computed in its entry": Case(
        "op matmul(x, w) >> y; op relu(y) >> y; cache.write y >> K[0]; op neg(x) >> y;", stores=("",)
    ),
    "what it is computed over as well": Case(
        "op matmul(x, w) >> y; op softmax(y) >> y; op tanh(y) >> y; cache.write y >> K[1]; op neg(x) >> y;",
        stores=("",),
    ),
    "from another part of the table": Case(
        "cache.read K[pos] >> y; op matmul(y, w) >> y; op add(y, x) >> y; cache.write y >> K[pos+1];"
        "op neg(x) >> y; cache.increment pos; branch c forget rest;",
        stores=("",), blocks="block forget { cache.reset K; cache.reset pos; return; } block rest { return; }",
    ),
    "over what was there": Case("cache.read h >> y; op mul(y, x) >> y; cache.write y >> h; op neg(x) >> y;", stores=("",)),
    "what was there is read by a product": Case(
        "cache.read h >> y; op matmul(y, w) >> y; cache.write y >> h; op neg(x) >> y;", stores=(USED,)
    ),
    "an entry at an unknown index": Case(
        "cache.read K[n] >> y; op matmul(y, w) >> y; cache.write y >> K[pos]; op neg(x) >> y;", stores=(USED,)
    ),
    "an input": Case("cache.write x >> h; op neg(x) >> y;", stores=("an input",)),
    "an output too": Case("op neg(x) >> y; cache.write y >> h;", stores=("it is the output 'y' too",)),
    "stored twice": Case(
        "op exp(x) >> y; cache.write y >> K[0]; cache.write y >> K[1]; op neg(x) >> y;",
        stores=("it is stored elsewhere too", ""),
    ),
    "two entries at once": Case(
        "op exp(x) >> y; op neg(x) >> z; cache.write y >> K[0]; cache.write z >> K[1];"
        "op relu(x) >> y; op abs(x) >> z;", stores=("", ""),
    ),
    "the same entry twice, both needed": Case(
        "op exp(x) >> y; cache.write y >> h; op tanh(x) >> z; op sub(y, z) >> y; cache.write z >> h; op neg(x) >> z;",
        stores=(USED, ""),
    ),
    "the same entry twice, one over the other": Case(
        "op exp(x) >> y; cache.write y >> h; op softmax(y) >> y; cache.write y >> h; op neg(x) >> y;",
        stores=(USED, ""),
    ),
    "a ring": Case("op exp(x) >> y; op add(y, x) >> y; cache.write y >> R[pos]; cache.increment pos; op neg(x) >> y;", stores=("",)),
    "a delay line": Case(
        "assign t: f32[4, 32]; assign u: f32[4, 32];"
        "op exp(x) >> t; op tanh(x) >> u; op neg(x) >> y; op abs(x) >> z;"
        "loop l (i in 0..3) { transfer t >> y; transfer u >> t; transfer x >> u; }"
        "op add(y, t) >> y; op sub(z, u) >> z;",
        copies=("an input", ELSEWHERE, ELSEWHERE),
    ),
    "a GRU whose state is the state": Case(
        "assign wi: f32[96, 32]; assign wh: f32[96, 32]; assign bi: f32[96]; op fill(wi, value=0.02) >> wi;"
        "op fill(wh, value=0.03) >> wh; op fill(bi, value=0.1) >> bi;"
        "cache.read h >> y; op gru_cell(x, y, wi, wh, bi, bi) >> y; cache.write y >> h; op neg(x) >> y;",
        stores=("",),
    ),
    "an LSTM whose states are the state": Case(
        "assign wi: f32[128, 32]; assign wh: f32[128, 32]; assign bi: f32[128]; op fill(wi, value=0.02) >> wi;"
        "op fill(wh, value=0.03) >> wh; op fill(bi, value=0.1) >> bi; cache.read h >> y; cache.read K[0] >> z;"
        "op lstm_cell(x, y, z, wi, wh, bi, bi) >> y, z; cache.write y >> h; cache.write z >> K[0];"
        "op neg(x) >> y; op relu(x) >> z;",
        stores=("", ""),
    ),
    "a state updated in one branch": Case(
        "assign o: f32[4, 32]; cache.read h >> o; branch c upd keep; cache.write o >> h; op neg(x) >> y;",
        stores=("",),
        blocks="block upd { op mul(o, x) >> o; op add(o, x) >> o; return; } block keep { return; }",
    ),
    "a state updated by a product in one branch": Case(
        "assign o: f32[4, 32]; cache.read h >> o; branch c upd keep; cache.write o >> h; op neg(x) >> y;",
        stores=("",), copies=(LATE,),
        blocks="block upd { op matmul(o, w) >> o; return; } block keep { return; }",
    ),
    "a state updated in a loop": Case(
        "assign o: f32[4, 32]; cache.read K[n] >> o; loop l (i in 0..3) { op mul(o, x) >> o; op add(o, x) >> o; }"
        "cache.write o >> K[n]; op neg(x) >> y;", stores=("",),
    ),
    "what is there is stored": Case("cache.read h >> y; cache.write y >> h; op neg(x) >> y;", stores=("",)),
    "overwritten while it is needed": Case(
        "op exp(x) >> y; cache.write y >> h; op tanh(x) >> z; cache.write z >> h; op add(y, z) >> y; op neg(x) >> z;",
        stores=(USED, ""),
    ),
    "seen before it is stored": Case(
        "op exp(x) >> y; cache.read h >> z; cache.write y >> h; op neg(y) >> y;", stores=(USED,),
        copies=("the state is written while this is still needed",),
    ),
    "a write that can wait": Case(
        "cache.read h >> z; cache.write x >> h; op matmul(z, w) >> y; op add(z, y) >> z;", stores=("an input",)
    ),
    "a write that another read cannot let wait": Case(
        "cache.read h >> z; cache.write x >> h; cache.read h >> y; op add(z, y) >> y; op neg(x) >> z;",
        stores=("an input",), copies=("the state is written while this is still needed",),
    ),
    "refused before it is stored": Case(
        "op exp(x) >> y; assign i: i32[4]; op add(ids, ids) >> i; assign g: f32[4, 32]; op gather(y, i) >> g;"
        "cache.write y >> h; op add(g, x) >> y;",
        stores=("the step may be refused before it is stored",),
    ),
    "in a loop": Case(
        "loop l (i in 0..6) { op exp(x) >> y; op add(y, x) >> y; cache.write y >> K[i]; } op neg(x) >> y;",
        stores=("",),
    ),
    "a loop that computes in the entry": Case(
        "op exp(x) >> y; loop l (i in 0..3) { op add(y, x) >> y; } cache.write y >> h; op neg(x) >> y;", stores=("",)
    ),
    "of packed elements": Case(
        "assign q: i4[32]; assign s: f32[32]; op sum_axis(x, axes=[0]) >> s;"
        "op cast(s, to=i4) >> q; cache.write q >> Q[2]; op neg(x) >> y;",
        stores=("",),
    ),
    "a value from outside a branch": Case(
        "op exp(x) >> y; branch c keep rest; op neg(y) >> y;",
        stores=("from outside the region",),
        blocks="block keep { cache.write y >> h; return; } block rest { return; }",
    ),
    "a loop of products": Case(
        "op relu(x) >> y; loop l (i in 0..5) { op matmul(y, w) >> y; }", copies=(LATE,)
    ),
    "two products apart": Case(
        "op relu(x) >> y; op neg(x) >> z; loop l (i in 0..5) { op matmul(y, w) >> y; op matmul(z, w) >> z; }"
        "op add(y, z) >> y; op sub(y, z) >> z;", copies=(LATE, LATE),
    ),
    "swapped": Case(
        "assign t: f32[4, 32]; op relu(x) >> y; op neg(x) >> z;"
        "loop l (i in 0..3) { transfer y >> t; transfer z >> y; transfer t >> z; }"
        "op add(y, x) >> y; op sub(z, x) >> z;", copies=(ELSEWHERE, ELSEWHERE, LATE),
    ),
    "three in a ring": Case(
        "assign t: f32[4, 32]; assign u: f32[4, 32]; op exp(x) >> u; op relu(x) >> y; op neg(x) >> z;"
        "loop l (i in 0..4) { transfer y >> t; transfer z >> y; transfer u >> z; transfer t >> u; }"
        "op add(y, u) >> y; op sub(z, u) >> z;", copies=(ELSEWHERE, ELSEWHERE, ELSEWHERE, LATE),
    ),
    "a sum of the last two": Case(
        "assign t: f32[4, 32]; op relu(x) >> y; op neg(x) >> z;"
        "loop l (i in 0..4) { op add(y, z) >> t; transfer z >> y; transfer t >> z; }"
        "op add(y, z) >> y; op sub(y, z) >> z;", copies=(ELSEWHERE, LATE),
    ),
    "small values": Case(
        "assign p: f32[4]; assign q: f32[4]; assign t: f32[4]; op sum_axis(x, axes=[1]) >> p; op max_axis(x, axes=[1]) >> q;"
        "loop l (i in 0..3) { transfer p >> t; transfer q >> p; transfer t >> q; }"
        "assign r: f32[4, 1]; op sub(p, q) >> p; op reshape(p, shape=[4, 1]) >> r; op mul(x, r) >> y;",
        copies=(LATE, ELSEWHERE, ELSEWHERE),
    ),
    "in nested loops": Case(
        "op relu(x) >> y; loop l (i in 0..3) { loop m (j in 0..3) { op matmul(y, w) >> y; } op add(y, x) >> y; }"
        "op neg(y) >> y;", copies=(LATE,),
    ),
    "a branch that keeps the value": Case(
        "op exp(x) >> y; branch c more rest; op neg(y) >> y;",
        blocks="block more { op mul(y, x) >> y; return; } block rest { return; }",
    ),
    "a product in one branch": Case(
        "op exp(x) >> y; branch c more rest; op neg(y) >> y;", copies=(LATE,),
        blocks="block more { op matmul(y, w) >> y; return; } block rest { return; }",
    ),
    "a branch in a loop": Case(
        "op exp(x) >> y; assign b0: bool; loop l (i in 0..4) { op mul(y, x) >> y; branch c more rest; } op neg(y) >> y;",
        blocks="block more { op add(y, x) >> y; return; } block rest { return; }",
    ),
    "kept and needed afterwards": Case(
        "op exp(x) >> y; transfer y >> z; branch c more rest; op sub(y, z) >> y; op neg(z) >> z;",
        copies=("it is the output 'z' too",),
        blocks="block more { op mul(y, x) >> y; return; } block rest { return; }",
    ),
    "a row": Case(
        f"loop l (i in 0..4) {{ {ROW} op matmul(r, w) >> r; transfer r >> y[i..i+1]; }}", parts=("",)
    ),
    "a row, and what it is computed over": Case(
        f"loop l (i in 0..4) {{ {ROW} op matmul(r, w) >> r; op softmax(r) >> r; op mul(r, r) >> r;"
        "transfer r >> y[i..i+1]; }", parts=("",),
    ),
    "a row of fewer axes": Case(
        f"loop l (i in 0..4) {{ {ROW} assign s: f32[32]; op matmul(r, w) >> r; op reshape(r, shape=[32]) >> s;"
        "transfer s >> y[i]; }", parts=("",),
    ),
    "one element": Case(
        f"loop l (i in 0..4) {{ {ROW} assign s: f32; op sum_axis(r, axes=[0, 1]) >> s; transfer s >> y[i, 3]; }}",
        parts=("",),
    ),
    "of a temporary": Case(
        f"assign t: f32[4, 32]; op fill(t, value=2.0) >> t; loop l (i in 0..3) {{ {ROW} op matmul(r, w) >> r;"
        "transfer r >> t[i..i+1]; } op softmax(t) >> y;", parts=("",),
    ),
    "in loops around each other": Case(
        f"loop l (i in 0..4) {{ {ROW} loop m (j in 0..4) {{ op matmul(r, w) >> r; assign s: f32[1, 8];"
        "op slice(r, axis=1, start=j*8, end=j*8+8) >> s; op exp(s) >> s; transfer s >> y[i..i+1, j*8..j*8+8]; } }",
        parts=("",), copies=("a part of other memory", LATE),
    ),
    "computed by a loop": Case(
        f"loop l (i in 0..4) {{ {ROW} op exp(r) >> r; loop m (j in 0..3) {{ op add(r, v) >> r; }}"
        "transfer r >> y[i..i+1]; }", parts=("",),
    ),
    "given by a branch": Case(
        "assign r: f32[32]; loop l (i in 0..4) { op exp(v) >> r; branch c more rest;"
        "transfer r >> y[i]; }",
        blocks="block more { op softmax(r) >> r; return; } block rest { return; }", parts=("",),
    ),
    "in a branch": Case(
        "assign r: f32[32]; loop l (i in 0..4) { branch c more rest; }",
        blocks="block more { op softmax(v) >> r; transfer r >> y[i]; return; }"
        "block rest { op exp(v) >> r; op tanh(r) >> r; transfer r >> y[3-i]; return; }", parts=("", ""),
    ),
    "parts after each other": Case(
        "assign r: f32[32]; assign s: f32[32]; op softmax(v) >> r; transfer r >> y[1]; op exp(v) >> s;"
        "transfer s >> y[2]; op tanh(v) >> s; transfer s >> y[1];", parts=("", "", ""),
    ),
    "parts computed at once": Case(
        "assign r: f32[32]; assign s: f32[32]; op softmax(v) >> r; op log_softmax(v) >> s;"
        "transfer r >> y[1]; transfer s >> y[2];", parts=("", LATER),
    ),
    "a part that is read": Case(
        "assign r: f32[1, 32]; loop l (i in 1..4) { op slice(y, axis=0, start=i-1, end=i) >> r; op matmul(r, w) >> r;"
        "transfer r >> y[i..i+1]; }", parts=(READ,),
    ),
    "a part that was read": Case(
        "assign r: f32[1, 32]; assign s: f32[1, 1]; loop l (i in 1..4) {"
        "op slice(y, axis=0, start=i-1, end=i) >> r; op sum_axis(r, axes=[1], keepdims=true) >> s;"
        "op broadcast_to(s, shape=[1, 32]) >> r; op add(r, v) >> r; op softmax(r) >> r; transfer r >> y[i..i+1]; }",
        parts=("",),
    ),
    "a part of the same": Case(
        "op exp(x) >> y; assign r: f32[1, 32]; op slice(y, axis=0, start=1, end=2) >> r; transfer r >> y[n..n+1];",
        parts=(COPIED,),
    ),
    "a part that is needed later": Case(
        "assign r: f32[32]; assign s: f32; op softmax(v) >> r; transfer r >> y[n]; op sum_axis(r, axes=[0]) >> s;"
        "op fill(z, value=4.0) >> z; transfer s >> z[2, n];", parts=("", LATER),
    ),
    "a part that is needed after a change": Case(
        "assign r: f32[32]; op softmax(v) >> r; transfer r >> y[n]; op exp(y) >> y; op add(y, r) >> y;", parts=(OVER,)
    ),
    "a part that is needed after another": Case(
        "assign r: f32[32]; assign s: f32[32]; op softmax(v) >> r; transfer r >> y[1]; op exp(v) >> s;"
        "transfer s >> y[n]; op mul(r, s) >> s; transfer s >> z[0];", parts=(OVER, "", ""),
    ),
    "a part that another is computed of": Case(
        "assign r: f32[32]; op softmax(v) >> r; transfer r >> y[n]; op cumsum(r, axis=0) >> r; transfer r >> y[1];",
        parts=(OVER, ""),
    ),
    "a part that is needed while another is computed": Case(
        "assign r: f32[32]; assign s: f32[32]; op softmax(v) >> r; transfer r >> y[n]; op cumsum(r, axis=0) >> s;"
        "op exp(r) >> r; transfer r >> z[0]; transfer s >> y[1];", parts=(OVER, "", ""),
    ),
    "a part that another, elsewhere, is computed of": Case(
        "assign r: f32[32]; op softmax(v) >> r; transfer r >> y[n]; op cumsum(r, axis=0) >> r; transfer r >> y[n+1];",
        parts=("", ""),
    ),
    "a part of another shape": Case(
        "op exp(x) >> y; assign t: f32[2, 64]; assign r: f32[32]; op softmax(v) >> r; transfer r >> y[1];"
        "op reshape(y, shape=[2, 64]) >> t; assign s: f32[64]; op concat(r, r, axis=0) >> s;"
        "transfer s >> t[0]; op reshape(t, shape=[4, 32]) >> y;", parts=(OVER, ""),
    ),
    # What one branch does with the whole says nothing of what the other may have put in its memory.
    "a part that one branch needs": Case(
        "assign t: f32[4, 32]; op fill(t, value=1.0) >> t; assign r: f32[32]; op softmax(v) >> r; transfer r >> t[n];"
        "branch c more rest;", blocks="block more { op matmul(x, w) >> t; op add(t, r) >> y; return; }"
        "block rest { op softmax(t) >> y; return; }", parts=(OVER,),
    ),
    "a part that the other branch needs": Case(
        "assign t: f32[4, 32]; op fill(t, value=1.0) >> t; assign r: f32[32]; op softmax(v) >> r; transfer r >> t[n];"
        "branch c more rest;", blocks="block more { op exp(t) >> t; op matmul(t, w) >> y; return; }"
        "block rest { op add(x, r) >> y; return; }", parts=(OVER,),
    ),
    "what was there is needed": Case(
        "assign r: f32[32]; op exp(x) >> y; transfer y >> z; op softmax(v) >> r; transfer r >> y[n];"
        "op matmul(z, w) >> z;", parts=(COPIED,),
    ),
    "stored in the state": Case(
        f"assign t: f32[4, 32]; op fill(t, value=2.0) >> t; loop l (i in 0..3) {{ {ROW} op matmul(r, w) >> r;"
        "transfer r >> t[i..i+1]; } cache.write t >> h;", stores=("",), parts=("",),
    ),
    "of what is read from the state": Case(
        "cache.read h >> y; assign r: f32[32]; op softmax(v) >> r; transfer r >> y[n]; op exp(y) >> y;"
        "cache.write y >> K[0];", parts=(COPIED,), stores=("it is the output 'y' too",),
    ),
    "over what is in the state": Case(
        "assign t: f32[4, 32]; cache.read h >> t; assign r: f32[32]; op softmax(v) >> r; transfer r >> t[n];"
        "cache.write t >> h;", parts=(COPIED,), stores=("",),
    ),
    "over what is in the state, in a branch": Case(
        "assign t: f32[4, 32]; cache.read h >> t; assign r: f32[32]; op softmax(v) >> r; branch c more rest;"
        "cache.write t >> h;", blocks="block more { transfer r >> t[1]; return; } block rest { return; }",
        parts=("what it is a part of lies in the state",), stores=("",),
    ),
    "packed, whole bytes": Case(
        "assign q: i4[4, 32]; assign p: i4[32]; op fill(q, value=1) >> q;"
        "loop l (i in 0..4) { cache.read Q[i] >> p; op add(p, p) >> p; transfer p >> q[i]; } cache.write q >> Q[0..4];",
        parts=("",), stores=(USED,),
    ),
    "packed, inside a byte": Case(
        "assign q: i4[32]; assign p: i4[6]; cache.read Q[0] >> q; loop l (i in 0..4) {"
        "op slice(q, axis=0, start=0, end=6) >> p; op add(p, p) >> p; transfer p >> q[i*7..i*7+6]; }"
        "cache.write q >> Q[0];", parts=("its place may begin or end inside a byte",), stores=("",),
    ),
    "with gaps": Case(
        "assign r: f32[4, 8]; op slice(x, axis=1, start=0, end=8) >> r; op exp(r) >> r; transfer r >> y[.., n..n+8];",
        parts=("its place has gaps",),
    ),
    "a number": Case("assign s: f32; op fill(s, value=2.0) >> s; transfer s >> y[1, n];", parts=("a number",)),
    "an input as a part": Case("assign s: f32; op exp(x) >> y; transfer x >> y[0..4];", parts=("an input",)),
    "two parts of one": Case(
        "assign r: f32[32]; op softmax(v) >> r; transfer r >> y[1]; transfer r >> z[n];", parts=("it is handed on elsewhere too", ""),
    ),
    "a part of a part": Case(
        "assign r: f32[32]; op fill(r, value=1.0) >> r; assign s: f32[8]; op slice(v, axis=0, start=8, end=16) >> s;"
        "op softmax(s) >> s; transfer s >> r[4..12]; transfer r >> y[n];", parts=("", ""),
    ),
}


def program(case: Case) -> tuple[str, Program]:
    head = HEAD.replace("graph g {", f"graph g{list(CASES.values()).index(case)} {{")
    text = f"{head}  block entry {{ {case.body} return; }}\n{case.blocks}\n}}\n"
    found = compiled(text)
    assert found is not None, text
    return text, found


@pytest.mark.parametrize("name", CASES)
def test_what_is_copied(name: str) -> None:
    case = CASES[name]
    _, made = program(case)
    ops = list(made.planned.all_ops())
    copies = [op.reason.partition(";")[0] for op in ops if isinstance(op, Copy)]
    assert sorted(copies) == sorted(case.copies)
    reasons = [op.reason for op in ops if isinstance(op, StateStore) and op.reason != "a number"]
    stores = tuple(reason.partition(" (line")[0] for reason in reasons)
    assert stores == case.stores
    parts = tuple(op.reason.partition(" (line")[0] for op in ops if isinstance(op, Insert))
    assert parts == case.parts


@pytest.mark.parametrize("name", list(CASES) if os.environ.get("OIC_EVERY_CASE") else list(CASES)[1::2])
def test_it_is_right_in_every_stage(name: str) -> None:
    """Verified, printed, parsed and run after every pass; planned with and without reuse.

    Every second program; all of them with OIC_EVERY_CASE=1.
    """
    text, made = program(CASES[name])
    fault = check(made, [run for seed in range(3) for run in steps(made, seed)])
    assert fault is None, f"{fault}\n{text}"


def test_a_refused_step_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the entry computed before the refusal, the state would not be as it was."""
    monkeypatch.setattr(sharing.Ranges, "refuses", lambda *_: False)
    monkeypatch.setattr(plans, "verify", lambda _: None)
    _, made = program(CASES["refused before it is stored"])
    assert any(check_memory(made, steps(made, seed)) is not None for seed in range(4))


def test_it_is_right_in_c() -> None:
    """Under AddressSanitizer and UBSan; parts, where one is computed in place.

    Every second program; all of them with OIC_EVERY_CASE=1.
    """
    cases = [case for case in CASES.values() if not case.parts or "" in case.parts]
    cases = cases if os.environ.get("OIC_EVERY_CASE") else cases[::2]
    programs = [(seed, program(case)[1]) for seed, case in enumerate(cases)]
    tally = campaign.Tally()
    for (_, made), fault in zip(programs, campaign.in_c(programs, tally), strict=True):
        assert fault is None, f"{fault}\n{made.graph.source.text}"


@pytest.mark.parametrize(
    "name, filled",
    [
        ("a row", False),
        ("in loops around each other", False),
        ("a row of fewer axes", False),
        ("one element", True),
        ("of a temporary", True),
        ("in a branch", True),
        ("a part that is read", True),
    ],
)
def test_what_is_filled_before_a_loop(name: str, filled: bool) -> None:
    """Only what the loop leaves out, or what is read there."""
    _, made = program(CASES[name])
    splats = [op for op in made.planned.all_ops() if isinstance(op, Splat)]
    fills = [op for op in splats if len(op.type.shape) == 2 and op.type.shape[0] == 4]
    assert [not op.unread for op in fills] == [filled]


@pytest.mark.parametrize(("writes", "copies"), [(1, 0), (WAITING, 0), (WAITING + 1, 1)])
def test_so_many_writes_wait_for_a_view(writes: int, copies: int) -> None:
    """More than that, and the view is copied: what is seen is right either way."""
    moved = "".join(f"    cache.write a >> K[m + {i}];\n" for i in range(writes))
    text = f"""
graph g {{
  dynamic {{ a: f32[4]; n: i32; m: i32; }}
  persistent {{
    K(t): f32[4] @table @fixed(t={WAITING + 4});
  }}
  volatile {{ y: f32[4]; }}
  block entry {{
    assign v: f32[4];
    cache.read K[n] >> v;
{moved}    op add(v, a) >> y;
    return;
  }}
}}
"""
    program = compiled(text)
    assert program is not None
    found = [op for op in program.planned.all_ops() if isinstance(op, Copy)]
    assert len(found) == copies
    assert check(program, steps(program, 0)) is None


@pytest.mark.parametrize("store", ["cache.write z >> K[{}];", "transfer z >> y[{}];"])
def test_a_number_with_thousands_of_users_is_planned_in_time_by_their_number(store: str) -> None:
    n = 4000
    body = " ".join(store.format(i) for i in range(n))
    program = oic.Synthesizer(oic.parse(
        f"volatile {{ y: f32[{n}, 4]; }} persistent {{ K(t): f32[4] @table @fixed(t={n}); }} "
        f"block entry {{ assign z: f32[4]; {body} return; }}"
    )).program  # fmt: skip
    started = time.process_time()
    assert program.planned.memory is not None
    assert time.process_time() - started < 8
