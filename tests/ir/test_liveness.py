"""When values are needed, over views, loops, branches and fused regions."""

from __future__ import annotations

import pytest

import oic.operators  # noqa: F401  (registers the ops)
from oic.ir.core import Op, Value
from oic.ir.liveness import Liveness, liveness
from oic.ir.text_parse import parse_module

HEAD = 'module "m" {stage="indexed"}\nfunc {symbol="entry", inputs=["x"], outputs=["y"], pinned={}} body(%x: f32[2, 4]) {'


class Program:
    """A function body whose values are found by their names."""

    def __init__(self, body: str) -> None:
        self.body = parse_module(f"{HEAD}\n{body}\n}}\n").function("entry").body
        self.live: Liveness = liveness(self.body)

    def value(self, name: str) -> Value:
        args = [a for block in self.body.walk() for a in block.args]
        results = [r for op in self.body.all_ops() for r in op.results]
        return next(v for v in [*args, *results] if v.hint == name)

    def op(self, result: str) -> Op:
        found = self.value(result).op
        assert found is not None
        return found

    def until(self, value: str, result: str) -> bool:
        """The value's memory is needed exactly until the op that makes `result` has read it."""
        return self.live.needed(self.value(value)) == self.live.start[self.op(result)]


def test_a_view_needs_its_root() -> None:
    p = Program("""
  %a = exp(%x) : f32[2, 4]
  %t = transpose(%a) {perm=[1, 0]} : f32[4, 2]
  %r = slice(%t) {axis=0, start=0, end=2, step=1} : f32[2, 2]
  %b = neg(%x) : f32[2, 4]
  %c = exp(%r) : f32[2, 2]
  return([%c])""")
    assert p.until("a", "c") and p.until("t", "c")
    assert p.live.last_use(p.value("a")) == p.live.start[p.op("t")]
    assert p.until("x", "b")


def test_outer_values_are_needed_for_the_whole_loop() -> None:
    p = Program("""
  %zero = index.const {value=0} : index
  %two = index.const {value=2} : index
  %a = exp(%x) : f32[2, 4]
  %b = neg(%x) : f32[2, 4]
  %h = for(%zero, %two, [%b]) {tag="l"} body(%i: index, %c: f32[2, 4]) {
    %d = add(%c, %a) : f32[2, 4]
    %e = neg(%d) : f32[2, 4]
    yield([%e])
  } : f32[2, 4]
  %g = exp(%h) : f32[2, 4]
  return([%g])""")
    loop = p.op("h")
    assert p.live.needed(p.value("a")) == p.live.end[loop]
    assert p.live.needed(p.value("b")) == p.live.start[loop]
    assert p.until("c", "d") and p.until("d", "e") and p.until("h", "g")
    assert p.live.defined(p.value("h")) == p.live.end[loop]


def test_a_branch_needs_outer_values_until_they_are_read() -> None:
    p = Program("""
  %zero = index.const {value=0} : index
  %n = index.size {size=2} : index
  %k = index.test(%zero, %n) : bool
  %a = exp(%x) : f32[2, 4]
  %r = if(%k) {types=[f32[2, 4]]} then() {
    %b = neg(%a) : f32[2, 4]
    yield([%b])
  } orelse() {
    %c = exp(%x) : f32[2, 4]
    yield([%c])
  } : f32[2, 4]
  return([%r])""")
    assert p.until("a", "b")
    assert p.until("x", "c")


def test_a_fused_region_is_one_op() -> None:
    """Its operands are read while its result is written: they live together."""
    p = Program("""
  %a = exp(%x) : f32[2, 4]
  %f = fused([%a]) {type=[f32[2, 4]]} body(%0: f32) {
    %1 = neg(%0) : f32
    %2 = exp(%1) : f32
    yield([%2])
  } : f32[2, 4]
  return([%f])""")
    assert p.live.needed(p.value("a")) == p.live.defined(p.value("f"))


@pytest.mark.parametrize("kept", ["a", "b"])
def test_unused_values_live_for_a_moment(kept: str) -> None:
    p = Program(f"""
  %a = exp(%x) : f32[2, 4]
  %b = neg(%x) : f32[2, 4]
  return([%{kept}])""")
    other = p.value("b" if kept == "a" else "a")
    assert p.live.needed(other) == p.live.defined(other)
