"""What lowering makes of a graph, paragraph by paragraph of SPEC: values derived by hand.

Every program runs over GRAPH and over PLANNED with the verifier on; both must give the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import oic
from oic.check.source import parse
from oic.diagnostics import OicError, StepError
from oic.driver import Program, Settings, compile_graph
from oic.dtypes import Array
from oic.ir.control import For
from oic.ir.index import CheckRange, IndexLoad
from oic.kernels.targets import TARGETS
from oic.model import Model
from oic.reference.interpret import Machine

F32 = np.float32


def compiled(text: str, model: Model | None = None, **settings: Any) -> Program:
    return compile_graph(parse(text, "graph.oi"), model, Settings(verified=True, **settings))


class Both:
    """A program in both stages, stepped together."""

    def __init__(self, text: str, model: Model | None = None, **settings: Any) -> None:
        self.program = compiled(text, model, **settings)
        self.machines = [Machine(self.program.module), Machine(self.program.planned)]

    def step(self, symbol: str = "entry", /, **inputs: Any) -> Mapping[str, Any]:
        """The outputs of one step, as lists; equal in both stages."""
        function = self.program.module.function(symbol)
        typed = dict(zip(function.inputs, function.body.args))
        given = {n: np.asarray(v, typed[n].dtype.np) for n, v in inputs.items()}
        first, second = (m.step(symbol, given) for m in self.machines)
        assert first.keys() == second.keys()
        for name in first:
            np.testing.assert_array_equal(first[name], second[name], name)
            assert first[name].shape == second[name].shape
        return {name: array.tolist() for name, array in first.items()}

    def refused(self, symbol: str = "entry", /, **inputs: Any) -> StepError:
        """How both stages refuse one step: alike."""
        function = self.program.module.function(symbol)
        typed = dict(zip(function.inputs, function.body.args))
        given = {n: np.asarray(v, typed[n].dtype.np) for n, v in inputs.items()}
        found = []
        for machine in self.machines:
            with pytest.raises(StepError) as caught:
                machine.step(symbol, given)
            found.append(caught.value)
        assert found[0].status == found[1].status, found
        return found[0]

    def state(self, name: str) -> Any:
        first, second = (m.fetch_state(name) for m in self.machines)
        np.testing.assert_array_equal(first, second)
        return first.tolist()


def run(text: str, model: Model | None = None, /, **inputs: Any) -> Mapping[str, Any]:
    """The outputs of a first step."""
    return Both(text, model).step(**inputs)


def slugs(text: str, model: Model | None = None, **settings: Any) -> list[str]:
    """What is refused, warnings aside."""
    with pytest.raises(OicError) as caught:
        compiled(text, model, **settings)
    return [d.slug for d in caught.value.diagnostics if d.severity == "error"]


def warned(text: str, model: Model | None = None, **settings: Any) -> list[str]:
    return [d.slug for d in compiled(text, model, **settings).warnings]


def array(*values: float) -> Array:
    return np.array(values, F32)


# ---------------------------------------------------------------- 7: branches


TWO_WAYS = """
dynamic { c: bool; x: f32[2]; } volatile { y: f32[2]; z: f32[2] @init(7.0); }
block yes { op neg(x) >> y; return; }
block no { transfer x >> z; return; }
"""


def test_a_branch_joins_what_either_side_changes() -> None:
    both = Both(TWO_WAYS + "block entry { branch c yes no; op add(y, z) >> y; return; }")
    assert both.step(c=True, x=[1, 2]) == {"y": [6, 5], "z": [7, 7]}
    assert both.step(c=False, x=[1, 2]) == {"y": [1, 2], "z": [1, 2]}


def test_a_branch_writes_a_temporary_of_its_caller() -> None:
    text = """dynamic { c: bool; x: f32; } volatile { y: f32; }
    block entry { assign h: f32; branch c yes no; transfer h >> y; return; }
    block yes { transfer x >> h; return; } block no { return; }"""
    both = Both(text)
    assert both.step(c=True, x=3)["y"] == 3
    assert both.step(c=False, x=3)["y"] == 0  # zeros each time it is declared


def test_a_temporary_hides_the_callers_and_leaves_it_alone() -> None:
    text = """dynamic { x: f32; } volatile { y: f32; z: f32; }
    block entry { assign h: f32; transfer x >> h; branch other; transfer h >> y; return; }
    block other { assign h: f32; op neg(x) >> h; transfer h >> z; return; }"""
    assert run(text, x=2) == {"y": 2, "z": -2}


def test_a_temporary_is_zeros_each_time() -> None:
    text = """dynamic { x: f32; } volatile { y: f32; n: f32; }
    block entry { loop l (i in 0..3) { assign h: f32; op add(h, x) >> h; op add(y, h) >> y; } return; }"""
    assert run(text, x=2)["y"] == 6


def test_a_block_is_lowered_for_the_types_at_each_branch() -> None:
    text = """dynamic { a: f32[2]; b: f32[3, 1]; } volatile { y: f32; z: f32; }
    block total { op sum_axis(h, axes=[0]) >> s; return; }
    block entry {
      assign s: f32[?]; assign h: f32[?]; transfer a >> h; return; }"""
    # a declared rank stays: [?] is not [?, ?]
    assert compiled(text)
    text = """dynamic { a: f32[2]; b: f32[3]; } volatile { y: f32; z: f32; }
    block total { op sum_axis(h, axes=[0]) >> s; return; }
    block entry { assign s: f32; assign h: f32[?];
      transfer a >> h; branch total; transfer s >> y;
      transfer b >> h; branch total; transfer s >> z; return; }"""
    assert run(text, a=[1, 2], b=[3, 4, 5]) == {"y": 3, "z": 12}


def test_sides_of_different_size_join() -> None:
    text = """dynamic { c: bool; } volatile { y: f32[?]; n: f32; } persistent { K(t): f32 @table @fixed(t=4); }
    block entry { assign one: f32; op fill(one, value=1.0) >> one;
      cache.write one >> K[0]; cache.write one >> K[2];
      branch c short long; op mul(y, y) >> y; op sum_axis(y, axes=[0]) >> n; return; }
    block short { cache.read K[0..1] >> y; return; } block long { cache.read K[0..3] >> y; return; }"""
    both = Both(text)
    assert both.step(c=True) == {"y": [1], "n": 1}
    assert both.step(c=False) == {"y": [1, 0, 1], "n": 2}


DIFFERENT = """dynamic { c: bool; } volatile { y: f32[?]; z: f32[2]; } persistent {
      K(t): f32[2] @table @fixed(t=4); }
    block short { cache.read K[0] >> y; return; } block long { cache.read K[0..3] >> y; return; }
"""


def test_sides_of_different_rank_are_refused_where_they_are_used() -> None:
    entry = "block entry { branch c short long; %s return; }"
    assert slugs(DIFFERENT + entry % "") == ["shape-varies"]  # an output is a use
    assert slugs(DIFFERENT + entry % "op neg(y) >> y;") == ["shape-varies"]
    again = Both(DIFFERENT + entry % "cache.read K[1] >> y;")
    assert again.step(c=True)["y"] == [0, 0]


def test_a_known_condition_runs_one_side_alone() -> None:
    text = """constant { c: bool @init(true); } volatile { y: f32; }
    block entry { branch c yes no; return; }
    block yes { op fill(y, value=2.0) >> y; return; } block no { op fill(y, value=3.0) >> y; return; }"""
    assert run(text)["y"] == 2


def test_a_condition_is_read_when_it_is_asked() -> None:
    text = """persistent { ok: bool; } volatile { y: i32; flag: bool; one: i32 @init(1); }
    block entry { op add(y, one) >> y; branch ok a b; cache.write flag >> ok; return; }
    block a { op fill(flag, value=false) >> flag; op add(y, one) >> y; return; }
    block b { op fill(flag, value=true) >> flag; return; }"""
    both = Both(text)
    assert [both.step()["y"] for _ in range(4)] == [1, 2, 1, 2]


# ---------------------------------------------------------------- 7: loops and return


def test_loops_are_half_open_and_evaluate_their_bounds_once() -> None:
    text = """dynamic { n: i32; } volatile { y: i32; one: i32 @init(1); } persistent { s: i32; }
    block entry { cache.reset s; loop l (i in 0..s + n) { cache.increment i s; op add(y, one) >> y; } return;
      }"""
    both = Both(text)
    for n, turns in ((4, 4), (0, 0), (-3, 0)):
        assert both.step(n=n)["y"] == turns
        assert both.state("s") == sum(range(turns))


def test_nested_loops_may_use_the_outer_index_in_bounds() -> None:
    text = """volatile { y: i64; } persistent { s: i64; }
    block entry { loop a (i in 0..4) { loop b (j in i..4) { cache.increment 10 * i + j s; } }
      cache.read s >> y; return; }"""
    expected = sum(10 * i + j for i in range(4) for j in range(i, 4))
    assert Both(text).step()["y"] == expected


RETURNS = """dynamic { stop: i32; } volatile { y: i32; z: i32; one: i32 @init(1); flag: bool; }
persistent { n: i32; }
"""


def test_return_ends_the_block_and_its_loops_from_any_depth() -> None:
    text = RETURNS + """
    block entry { branch search; op add(z, one) >> z; return; }
    block search {
      loop a (i in 0..3) { loop b (j in 0..3) { cache.increment n; op add(y, one) >> y; branch inner; }
        loop c (k in 0..stop) { op add(y, one) >> y; return; op add(y, y) >> y; }
        op add(y, one) >> y; }
      op fill(y, value=100) >> y; return; }
    block inner { loop d (k in 0..2) { return; } op fill(z, value=50) >> z; return; }"""
    both = Both(text)
    assert both.step(stop=0) == {"y": 100, "z": 1} and both.state("n") == 9
    assert both.step(stop=5) == {"y": 4, "z": 1} and both.state("n") == 12


def test_a_return_in_the_entry_ends_the_step() -> None:
    text = RETURNS + """
    block entry { loop a (i in 0..stop) { cache.increment n; loop b (j in 0..i) { cache.increment 10 n;
      return; } }
      cache.increment 100 n; op fill(y, value=5) >> y; return; }"""
    both = Both(text)
    assert both.step(stop=1)["y"] == 5 and both.state("n") == 101
    assert both.step(stop=3)["y"] == 0 and both.state("n") == 113


def test_a_loop_of_static_bounds_with_a_return_runs_one_turn() -> None:
    text = RETURNS + """
    block entry { loop a (i in 2..5) { cache.increment i n; return; } cache.increment 100 n; return; }
    block other @entry { loop a (i in 5..2) { cache.increment i n; return; } cache.increment 100 n; return; }"""
    both = Both(text)
    both.step()
    assert both.state("n") == 2
    both.step("other")
    assert both.state("n") == 102


def test_nothing_is_known_of_the_index_of_a_loop_that_never_runs() -> None:
    text = """constant { W(l): f32 @pattern("w.{l}"); n: u32 @init(0); } volatile { y: f32; }
    persistent { K(t): f32 @table; }
    block entry { loop a (i in 0..n) { cache.read K[i - 1] >> y; op add(y, W[i]) >> y; } return; }"""
    model = Model(tensors={"w.3": np.float32(1)})
    assert run(text, model)["y"] == 0


def test_a_loop_carries_sizes() -> None:
    text = """dynamic { n: i32; } volatile { y: f32[?]; z: f32[?]; } persistent {
      K(t): f32 @table @fixed(t=8); }
    block entry { cache.read K[0..1] >> y;
      loop a (i in 0..n) { transfer y >> z; cache.read K[0..i + 2] >> y; op add(y, y) >> y; } return; }"""
    both = Both(text)
    assert both.step(n=0) == {"y": [0], "z": []}
    assert both.step(n=3) == {"y": [0] * 4, "z": [0] * 3}
    assert both.refused(n=9).status == "OIC_ERR_CACHE_FULL"


def test_two_variables_swap_sizes_in_a_loop() -> None:
    text = """dynamic { n: i32; a: f32[2]; b: f32[3]; } volatile { p: f32[?]; q: f32[?]; }
    block entry { assign t: f32[?]; transfer a >> p; transfer b >> q;
      loop l (i in 0..n) { transfer p >> t; transfer q >> p; transfer t >> q; } return; }"""
    both = Both(text)
    for n in range(4):
        found = both.step(n=n, a=[1, 2], b=[3, 4, 5])
        p, q = ([1, 2], [3, 4, 5]) if n % 2 == 0 else ([3, 4, 5], [1, 2])
        assert found == {"p": p, "q": q}


def test_a_size_that_grows_every_turn_needs_a_known_number_of_turns() -> None:
    text = """dynamic { n: i32; x: f32[2]; } volatile { y: f32[?]; }
    block entry { loop l (i in 0..%s) { op concat(y, x, axis=0) >> y; } return; }"""
    assert run(text % "4", x=[1, 2])["y"] == [1, 2] * 4
    assert slugs(text % "n") == ["size-unbounded"]


def test_the_end_of_a_slice_is_within_its_table_from_there_on() -> None:
    text = """dynamic { x: f32[N] @max(N=3); table: f32[4, 1]; } volatile { y: f32[1, N, ?]; k: f32[?]; }
    persistent { pos: i32; K(t): f32 @table @fixed(t=4); }
    block entry { %s op relative_position_bias(table, q_start=pos, n=N, t=%s, bidirectional=false) >> y;
      %s cache.increment N pos; op exp(x) >> k; return; }"""
    read = "cache.read K[pos..pos + N] >> k;"
    both = Both(text % (read, "pos + N", ""))
    table = [[0], [1], [2], [3]]
    assert [both.step(x=[0] * n, table=table)["y"][0] for n in (1, 3)] == [[[0]], [[1, 0, 0, 0], [2, 1, 0, 0], [2, 2, 1, 0]]]
    assert both.refused(x=[0], table=table).status == "OIC_ERR_CACHE_FULL"
    for wrong in (("", "pos + N", read), (read, "pos + N + 1", ""), (read + " cache.increment pos;", "pos + N", "")):
        assert slugs(text % wrong) == ["size-unbounded"]


def test_a_rank_that_changes_in_a_loop() -> None:
    text = """dynamic { n: i32; x: f32[2]; } volatile { h: f32[2]; y: f32[2]; }
    persistent { K(t): f32[2] @table @fixed(t=4); }
    block entry { transfer x >> h; loop l (i in 0..%s) { %s cache.read K[0..i + 1] >> h; %s } %s return; }"""
    read = "cache.read K[0] >> h;"
    # written before it is read, in a loop that runs: it has the rank of the last turn
    assert run(text % (3, "", "", ""), x=[1, 2])["h"] == [[0, 0]] * 3
    # the loop may not run
    assert slugs(text % ("n", "", "", "")) == ["shape-varies"]
    assert run(text % ("n", "", "", read), n=2, x=[1, 2])["h"] == [0, 0]
    # read in a turn before it is written: the turn before may have given it another rank
    assert slugs(text % (3, "op add(h, x) >> y;", "", "")) == ["shape-varies"]
    # but not if each turn puts it right
    assert run(text % (3, "op add(h, x) >> y;", read, ""), x=[1, 2])["y"] == [1, 2]


# ---------------------------------------------------------------- 7: transfer, operators in place


def test_no_copy_is_seen_through_a_transfer() -> None:
    text = """dynamic { x: f32[2]; } volatile { a: f32[2]; b: f32[2]; c: f32[2]; } persistent { s: f32[2]; }
    block entry { transfer x >> a; transfer a >> b; op add(a, a) >> a; transfer s >> c;
      cache.write b >> s; op neg(b) >> b; return; }"""
    both = Both(text)
    assert both.step(x=[1, 2]) == {"a": [2, 4], "b": [-1, -2], "c": [0, 0]}
    assert both.step(x=[5, 6])["c"] == [1, 2] and both.state("s") == [5, 6]


def test_operators_in_place_read_before_they_write() -> None:
    text = """dynamic { x: f32[2, 2]; } volatile { y: f32[2, 2]; z: f32[2, 2]; }
    block entry { transfer x >> y; op matmul(y, y) >> y; op transpose(y, perm=[1, 0]) >> y;
      op sub(y, y) >> z; op add(x, y) >> y; return; }"""
    found = run(text, x=[[1, 2], [3, 4]])
    assert found == {"y": [[8, 17], [13, 26]], "z": [[0, 0], [0, 0]]}


def test_several_results() -> None:
    text = """dynamic { x: f32[4]; } volatile { a: f32[1]; b: f32[3]; }
    block entry { op split(x, axis=0, sizes=[1, 3]) >> a, b; return; }"""
    assert run(text, x=[1, 2, 3, 4]) == {"a": [1], "b": [2, 3, 4]}
    (split,) = (op for op in compiled(text).module.all_ops() if op.name == "split")
    assert [value.hint for value in split.results] == ["a", "b"]


# ---------------------------------------------------------------- 7.1: consumers


def test_consumers_see_the_values_yielded_and_nothing_else() -> None:
    text = """dynamic { x: f32; } volatile { a: f32; b: f32; c: f32; d: f32; } persistent { n: f32; m: f32; }
    block entry { transfer x >> a; transfer x >> b; op add(x, x) >> c;
      yield a, b; op add(c, c) >> c; await a; await b; op add(a, b) >> d; return; }
    block first { await a; op add(a, c) >> a; cache.write a >> n; yield a; op neg(a) >> a; }
    block second { await b, a; op mul(a, b) >> b; op add(b, c) >> b; cache.write b >> m; yield a, b; }"""
    both = Both(text)
    assert both.step(x=3) == {"a": 9, "b": 15, "c": 12, "d": 24}
    assert (both.state("n"), both.state("m")) == (9, 15)


def test_a_consumer_may_loop_and_branch() -> None:
    text = """dynamic { x: i32; } volatile { a: i32; y: i32; } constant { two: i32 @init(2); }
    block entry { loop l (i in 0..3) { transfer x >> a; yield a; await a; cache.increment i s;
      op add(y, a) >> y; }
      return; }
    persistent { s: i32; }
    block worker { await a; loop l (i in 0..2) { branch double; } yield a; }
    block double { loop k (i in 0..x) { op mul(a, two) >> a; return; } return; }"""
    both = Both(text)
    assert both.step(x=3)["y"] == 36 and both.state("s") == 3


def test_consumers_may_change_sizes() -> None:
    text = """dynamic { n: i32; x: f32[4]; } volatile { a: f32[?]; b: f32[?]; y: f32[?]; }
    persistent { K(t): f32 @table @fixed(t=4); }
    block entry { cache.write x >> K[0..4]; transfer x >> a; transfer x >> b;
      yield a, b; await a, b; op concat(a, b, axis=0) >> y; return; }
    block p { await a; cache.read K[0..n] >> a; op neg(a) >> a; yield a; }
    block q { await b; cache.read K[0..n + 1] >> b; op add(b, b) >> b; yield b; }"""
    both = Both(text)
    assert both.step(n=0, x=[1, 2, 3, 4])["y"] == [2]
    assert both.step(n=2, x=[1, 2, 3, 4])["y"] == [-1, -2, 2, 4, 6]
    assert both.refused(n=4, x=[1, 2, 3, 4]).status == "OIC_ERR_CACHE_FULL"


def test_what_a_consumer_writes_elsewhere_is_lost() -> None:
    text = """dynamic { x: f32; } volatile { a: f32; b: f32; y: f32; }
    block entry { transfer x >> a; transfer x >> b; yield a; await a; op add(a, b) >> y; return; }
    block worker { await a; op neg(a) >> b; op neg(b) >> a; yield a; }"""
    assert run(text, x=2)["y"] == 4
    assert warned(text) == ["lost-write"]


def test_a_dynamic_variable_may_be_yielded() -> None:
    text = """dynamic { x: f32[N] @max(N=4); } volatile { y: f32[N]; } persistent { s: f32; }
    block entry { yield x; await x; op neg(x) >> y; return; }
    block worker { await x; assign t: f32; op sum_axis(x, axes=[0]) >> t; cache.write t >> s; yield x; }"""
    both = Both(text)
    assert both.step(x=[1, 2, 3])["y"] == [-1, -2, -3] and both.state("s") == 6


def test_only_a_consumer_reads_the_input_that_has_the_extent() -> None:
    text = """dynamic { x: f32[N] @max(N=4); } volatile { a: f32; n: i64; } persistent { s: i64; }
    block entry { yield a; await a; cache.increment N s; cache.read s >> n; return; }
    block worker { await a; op sum_axis(x, axes=[0]) >> a; yield a; }"""
    assert run(text, x=[1, 2, 3]) == {"a": 6, "n": 3}


# ---------------------------------------------------------------- 3: sizes and extents


def test_an_entry_pins_an_extent() -> None:
    text = """dynamic { x: f32[N, 2] @max(N=4); } volatile { y: f32[N, 2]; n: i64; } persistent { s: i64; }
    block entry { branch all; return; } block one @entry(N=1) { branch all; return; }
    block all { op neg(x) >> y; cache.increment N * 2 s; cache.read s >> n; return; }"""
    both = Both(text)
    assert both.step(x=[[1, 2], [3, 4]]) == {"y": [[-1, -2], [-3, -4]], "n": 4}
    assert both.step("one", x=[[1, 2]]) == {"y": [[-1, -2]], "n": 6}
    assert both.refused("one", x=[[1, 2], [3, 4]]).status == "OIC_ERR_SHAPE"
    assert both.step(x=np.zeros((0, 2)))["y"] == []
    assert both.refused(x=np.zeros((5, 2))).status == "OIC_ERR_SHAPE"


def test_a_pinned_extent_needs_no_input() -> None:
    text = """dynamic { x: f32[N] @max(N=4); } volatile { y: f32[N + 1]; }
    block entry { op neg(x) >> z; return; } volatile { z: f32[N]; }
    block none @entry(N=0) { op fill(y, value=3.0) >> y; return; }"""
    assert Both(text).step("none")["y"] == [3]


def test_inputs_that_share_an_extent_agree() -> None:
    text = """dynamic { x: f32[N] @max(N=4); w: f32[N]; v: f32[N + 1]; } volatile { y: f32[N]; z: f32[N + 1]; }
    block entry { op add(x, w) >> y; op neg(v) >> z; return; }"""
    both = Both(text)
    assert both.step(x=[1, 2], w=[1, 1], v=[1, 2, 3]) == {"y": [2, 3], "z": [-1, -2, -3]}
    assert both.refused(x=[1, 2], w=[1, 1, 1], v=[1, 2, 3]).status == "OIC_ERR_SHAPE"
    assert both.refused(x=[1, 2], w=[1, 1], v=[1, 2]).status == "OIC_ERR_SHAPE"


def test_sizes_that_build_cannot_compare_are_compared_at_run_time() -> None:
    text = """dynamic { x: f32[N] @max(N=4); w: f32[M] @max(M=4); v: f32[3]; } volatile { y: f32[N];
      z: f32[N]; }
    block entry { op add(x, w) >> y; op add(x, v) >> z; return; }"""
    both = Both(text)
    assert both.step(x=[1, 2, 3], w=[1, 1, 1], v=[1, 2, 3])["y"] == [2, 3, 4]
    assert both.refused(x=[1, 2, 3], w=[1, 1], v=[1, 2, 3]).status == "OIC_ERR_SHAPE"
    assert both.refused(x=[1, 2], w=[1, 1], v=[1, 2, 3]).status == "OIC_ERR_SHAPE"


def test_a_size_that_turns_out_negative_is_refused_at_run_time() -> None:
    text = """dynamic { x: f32[N] @max(N=4); } volatile { y: f32[N - 2]; z: i32[?]; }
    block entry { op slice(x, axis=0, start=2, end=N) >> y; op iota(shape=[N - 2]) >> z; return; }
    block other @entry { op neg(x) >> a; assign h: f32[N - 3]; op add(h, h) >> h; return; }
    volatile { a: f32[N]; }"""
    both = Both(text)
    assert both.step(x=[1, 2, 3]) == {"y": [3], "z": [0]}
    assert both.refused(x=[1]).status in ("OIC_ERR_SHAPE", "OIC_ERR_INDEX")
    assert both.refused("other", x=[1]).status == "OIC_ERR_SHAPE"
    assert slugs(text.replace("[N - 2]) >>", "[N - 5]) >>")) == ["size-negative"]
    assert "size-negative" in slugs(text.replace("h: f32[N - 3]", "h: f32[N - 5]"))


def test_slices_of_tensors_stay_inside() -> None:
    text = """dynamic { x: f32[3]; n: f32[N] @max(N=6); i: i32; } volatile { y: f32[?]; z: f32[?]; s: f32[N]; }
    block entry { op neg(n) >> s; op slice(x, axis=0, start=0, end=N) >> y;
      op slice(x, axis=0, start=i, end=3) >> z; return; }"""
    both = Both(text)
    assert both.step(x=[1, 2, 3], n=[0, 0], i=1) == {"y": [1, 2], "z": [2, 3], "s": [0, 0]}
    assert both.step(x=[1, 2, 3], n=[], i=3)["z"] == []
    for n, i in ((4, 0), (0, -1), (0, 4)):
        assert both.refused(x=[1, 2, 3], n=[0] * n, i=i).status == "OIC_ERR_INDEX"


def test_sizes_come_from_all_their_sources() -> None:
    text = """sizes { H = 2; Dh = D / H; } constant { W: f32[D, E] @ref("w"); }
    dynamic { x: f32[N, D] @max(N=ctx); } persistent { K(t): f32[Dh] @table @fixed(t=ctx); }
    volatile { y: f32[N, E]; z: f32[ctx, Dh]; p: f32[ctx]; }
    constant { pos: f32[ctx]; }
    block entry { op matmul(x, W) >> y; cache.read K[] >> z; transfer pos >> p; return; }"""
    model = Model({"w": np.ones((4, 3), F32), "pos": np.zeros(5, F32)})
    found = run(text, model, x=np.ones((2, 4)))
    assert found["y"] == [[4] * 3] * 2 and found["z"] == [[0, 0]] * 5
    assert compiled(text, model).binding.sizes == {"H": 2, "Dh": 2, "D": 4, "E": 3, "ctx": 5}
    assert slugs(text, model, sizes={"D": 6}) == ["model-shape"]
    assert slugs(text, model, sizes={"H": 3}) == ["size-division"]
    assert slugs(text) == ["size-missing", "size-missing", "missing-model-tensor", "size-missing"]  # D, E, w, ctx


@pytest.mark.parametrize("amount", ["{}", "n * ({})", "N * ({})", "({}) + N", "n + ({})"])
@pytest.mark.parametrize("word", ["increment", "decrement"])
def test_no_number_is_made_that_does_not_fit_64_bits(word: str, amount: str) -> None:
    """The negative of the least of them, and what is subtracted where it is negative; sizes take it as it is."""
    head = "dynamic { n: i64; x: f32[N] @max(N=4); } volatile { y: f32[N]; } persistent { s: i64; } "
    step = f"cache.{word} {amount.format('0 - 9223372036854775807 - 1')} s;"
    text = f"{head} block entry {{ op relu(x) >> y; {step} return; }}"
    if "n" in amount or word == "decrement":
        assert slugs(text) == ["size-range"]
    else:
        compiled(text)


def test_a_variable_that_is_no_integer_is_told_of_once() -> None:
    """Where it is first used as one; another of the same name and type is another variable."""
    text = """
    dynamic { x: f32[4]; } volatile { y: f32[4]; k: f32[?, 4]; }
    persistent { pos: f32; n: f16; K(t): f32[4] @table @fixed(t=8); }
    block entry {
      cache.write x >> K[pos]; cache.read K[0..pos + n] >> k; loop l (i in 0..pos) { cache.read K[n + pos] >> y; }
      cache.increment pos n; branch a; branch b;
    }
    block a { assign at: f32; cache.read K[at] >> y; cache.read K[at] >> y; }
    block b { assign at: f32; cache.read K[at] >> y; }
    """
    assert slugs(text) == ["index-dtype"] * 4  # pos, n, at of a, at of b



def test_two_sources_of_a_size_agree() -> None:
    text = "sizes { D = 4; } volatile { y: f32[D]; } block entry { op neg(y) >> y; return; }"
    assert slugs(text, Model(sizevars={"D": 5})) == ["size-disagrees"]
    assert compiled(text, Model(sizevars={"D": 4})).binding.sizes["D"] == 4
    assert compiled(text, Model(sizevars={"D": 5}), sizes={"D": 6}).binding.sizes["D"] == 6
    text = """constant { a: f32[D]; b: f32[D]; } volatile { y: f32[D]; }
    block entry { op add(a, b) >> y; return; }"""
    model = Model({"a": array(1, 2), "b": array(1, 2, 3)})
    assert "size-disagrees" in slugs(text, model)


def test_a_question_mark_is_nothing_before_it_is_written() -> None:
    text = """dynamic { x: f32[N] @max(N=4); } volatile { y: f32[?, 2]; z: f32[?]; n: f32; }
    block entry { op sum_axis(z, axes=[0]) >> n; op concat(z, x, axis=0) >> z; return; }
    block other @entry { op add(y, y) >> y; return; }"""
    both = Both(text)
    assert both.step(x=[1, 2]) == {"z": [1, 2], "n": 0}
    assert both.step("other")["y"] == []


# ---------------------------------------------------------------- 4, 5: memory kinds and models


def test_a_volatile_variable_starts_with_the_models_value() -> None:
    text = """volatile { a: f32[2]; b: f32[?]; c: f32 @init(2.5); d: i32 @ref("x.n");
      W(l): f32 @pattern("w{l}"); }
    volatile { y: f32; z: f32[?]; e: i32; }
    block entry { op sum_axis(a, axes=[0]) >> y; op add(y, W[1]) >> y; op add(b, c) >> z; op add(a, a) >> a;
      op add(d, d) >> e; return; }"""
    tensors = {"a": array(1, 2), "b": array(3, 4, 5), "w1": np.float32(10)}
    both = Both(text, Model(tensors, metadata={"x": {"n": 21}}))
    for _ in range(2):
        expected = {"a": [2, 4], "y": 13, "z": [5.5, 6.5, 7.5], "e": 42}
        assert both.step() == expected


def test_reading_zeros_is_a_warning() -> None:
    text = """dynamic { n: i32; x: f32; } volatile { a: f32; b: f32; c: f32 @init(0.0); d: f32; }
    block entry { assign t: f32; op add(t, x) >> t; %s return; }"""
    zeros = "reads-zeros"
    assert warned(text % "transfer a >> b; op add(b, c) >> b; op neg(a) >> d;") == [zeros]
    assert warned(text % "loop l (i in 0..n) { op add(a, x) >> a; }") == [zeros]
    assert warned(text % "op fill(a, value=2.0) >> a; op neg(a) >> b;") == []  # it gives its shape alone
    assert warned(text % "loop l (i in 0..n) { op neg(x) >> a; } op add(a, x) >> b;") == []
    assert warned(text % "loop l (i in 1..1) { op neg(x) >> a; } return; op neg(b) >> b;") == ["dead-code"]


def test_families_with_holes() -> None:
    text = """dynamic { i: i32; } constant { W(l, m): f16[2] @pattern("w.{l}.{m}"); } volatile { y: f16[2]; }
    block entry { op add(W[0, 0], W[i, i * 2]) >> y; return; }"""
    tensors = {f"w.{a}.{b}": np.array([a, b], np.float16) for a, b in ((0, 0), (1, 2), (2, 0))}
    both = Both(text, Model(tensors))
    assert both.step(i=0)["y"] == [0, 0] and both.step(i=1)["y"] == [1, 2]
    for i in (2, 3, -1):
        assert both.refused(i=i).status == "OIC_ERR_INDEX"
    assert slugs(text.replace("W[0, 0]", "W[1, 1]"), Model(tensors)) == ["missing-member"]
    assert slugs(text, Model({"w.0.0": array(1, 2, 3).astype(np.float16)})) == ["model-shape"]
    assert slugs(text, Model({"w.0.0": array(1, 2)})) == ["model-dtype"]
    assert slugs(text) == ["missing-model-tensor"]


def test_members_of_a_family_with_holes_lie_without_gaps() -> None:
    text = """dynamic { i: i32; } constant { W(l): f32[2] @pattern("w.{l}"); } volatile { y: f32[2]; z: f32[2]; }
    block entry {
      op neg(W[7]) >> z;
      loop two (l in 3..5) { branch sum; }
      loop one (l in 7..8) { branch sum; }
      op add(y, W[i]) >> y;
      return;
    }
    block sum { op add(y, W[l]) >> y; }"""
    model = Model({f"w.{i}": array(i, 10 * i) for i in (3, 4, 7)})
    both = Both(text, model)
    assert both.step(i=4)["y"] == [18, 180] and both.step(i=7)["z"] == [-7, -70]
    for i in (0, 2, 5, 6, 8, -1):
        assert both.refused(i=i).status == "OIC_ERR_INDEX"
    module = both.program.module
    assert module.weights["W"].shape == (3, 2)
    assert sum(isinstance(op, CheckRange) for op in both.program.planned.all_ops()) == 2, "none of the loops has one"
    with oic.Simulator(oic.parse(text), model).make_executor() as ex:
        assert [ex.fetch(f"W[{i}]").tolist() for i in (3, 4, 7)] == [[i, 10 * i] for i in (3, 4, 7)]


def test_a_family_with_holes_is_read_in_loops_of_loops() -> None:
    """Without a table of places, where these are multiples of what the loops count, whatever the holes."""
    text = """constant { W(l): f32[2] @pattern("w.{l}"); V(l): f32[2] @pattern("v.{l}"); } volatile { y: f32[2]; }
    block entry {
      loop groups (g in 0..3) {
        loop first (i in 0..2) { loop at (l in g * 3 + i..g * 3 + i + 1) { op add(y, W[l]) >> y; } }
        loop second (l in g * 3 + 2..g * 3 + 3) { op fma(V[l], 10.0, y) >> y; }
      }
      REST return;
    }"""
    members = {f"w.{i}": array(i, 1) for i in (0, 1, 3, 4, 6, 7)} | {f"v.{i}": array(i, 1) for i in (2, 5, 8)}
    both = Both(text.replace("REST", ""), Model(members))
    assert both.step()["y"] == [21 + 150, 36]
    kinds = {type(op) for op in both.program.planned.all_ops()}
    assert not kinds & {CheckRange, IndexLoad}
    assert sum(isinstance(op, For) for op in both.program.planned.all_ops()) == 2, "what runs once is no loop"
    uneven = "loop others (g in 0..3) { loop of (l in g * g..g * g + 1) { op add(y, W[l]) >> y; } }"
    both = Both(text.replace("REST", uneven), Model(members))  # 0, 1, 4: places are no multiples
    assert both.step()["y"] == [21 + 150 + 5, 39]
    assert IndexLoad in {type(op) for op in both.program.planned.all_ops()}
    missing = uneven.replace("0..3", "1..3").replace("g * g", "g")  # 1, 2
    assert Both(text.replace("REST", missing), Model(members)).refused().status == "OIC_ERR_INDEX"


def test_a_family_without_members_is_its_initial_value() -> None:
    text = """dynamic { i: i32; } constant { W(l): f32[2] @pattern("w.{l}") @init(1.5); } volatile {
      y: f32[2]; }
    block entry { op add(W[0], W[i]) >> y; return; }"""
    assert run(text, i=5)["y"] == [3, 3]


def test_stacks_are_one_tensor() -> None:
    text = """constant { W(l, m): f32[D, E] @ref(w); } volatile { y: f32[D, E]; }
    block entry { op neg(W[%s]) >> y; return; }"""
    model = Model({"w": np.arange(24, dtype=np.float16).reshape(1, 2, 3, 4)})
    assert run(text % "0, 1", model)["y"][0] == [-12, -13, -14, -15]
    for index, slug in (
        ("0, 2", "missing-member"),
        ("1, 0", "missing-member"),
        ("0, -1", "index-negative"),
        ("0", "table-rank"),
        ("0,", "slice-place"),
        ("", "table-rank"),
        ("0, 0..1", "slice-place"),
    ):
        assert slugs(text % index, model) == [slug], index
    assert slugs((text % "0, 0").replace("[0, 0]", ""), model) == ["table-rank"]
    for wrong, slug in (
        (array(1, 2), "model-shape"),
        (np.zeros((1, 2, 3, 4, 5), F32), "model-shape"),
        (np.zeros((1, 2, 3, 4), np.float64), "model-dtype"),
    ):
        assert slugs(text % "0, 0", Model({"w": wrong}), sizes={"D": 3, "E": 4}) == [slug]
    assert slugs(text % "0, 0", Model(metadata={"w": 2.0}), sizes={"D": 1, "E": 1}) == ["missing-model-tensor"]


def test_a_stack_without_a_tensor_is_zeros() -> None:
    text = """constant { W(l): f32[2]; } volatile { y: f32[2]; } block entry { op neg(W[7]) >> y; return; }"""
    assert warned(text) == ["constant-zero"]
    assert run(text)["y"] == [0, 0]


def test_constants_come_from_config_values() -> None:
    text = """constant { n: u32 @ref("text_config.layers", "layers"); f: f32 @ref("eps"); on: bool @ref("tie");
      big: i64 @ref("rope") @init(3); t: f32[1] @ref("eps"); } volatile { y: f32; m: i64; z: f32[1]; }
      persistent { s: i64; }
    block entry { loop l (i in 0..n) { op add(y, f) >> y; } cache.increment big s; cache.read s >> m;
      branch on a b; return; } block a { op add(t, t) >> z; return; } block b { return; }"""
    values: dict[str, object] = {"text_config": {"layers": 3}, "eps": 0.5, "tie": True, "rope": 10000.0}
    assert run(text, Model(metadata=values)) == {"y": 1.5, "m": 10000, "z": [1]}
    assert run(text, Model(metadata=values | {"eps": math.inf}))["y"] == math.inf
    for name, value in (("eps", "x"), ("tie", 1), ("rope", 0.5), ("rope", [1]), ("eps", True), ("eps", -1e39), ("eps", 2**128)):
        assert set(slugs(text, Model(metadata=values | {name: value}))) == {"model-dtype"}
    assert slugs(text, Model(metadata=values | {"eps": 10**400}))[0] == "model-dtype"
    vector = "constant { a: f32[2]; } volatile { y: f32[2]; } block entry { op neg(a) >> y; return; }"
    assert slugs(vector, Model(metadata={"a": 1.0})) == ["model-shape"]


def test_narrower_data_widens() -> None:
    text = """constant { a: f32[2]; i: i64[2]; } volatile { y: f32[2]; z: i64[2]; }
    block entry { op add(a, a) >> y; op add(i, i) >> z; return; }"""
    good = {"a": np.array([1.5, 2], np.float16), "i": np.array([-3, 4], np.int8)}
    assert run(text, Model(good)) == {"y": [3, 4], "z": [-6, 8]}
    bad = {"a": np.array([1.5, 2], np.float64), "i": np.array([3, 4], np.uint8)}
    assert slugs(text, Model(bad)) == ["model-dtype"] * 2


def test_outputs_are_what_an_entry_writes() -> None:
    text = """dynamic { x: f32; w: f32; } volatile { a: f32; b: f32; c: f32; never: f32; }
    block entry { branch part; return; } block part { transfer x >> a; return; }
    block other @entry { transfer w >> b; yield c; await c; return; }
    block worker { await c; transfer w >> c; yield c; }"""
    both = Both(text)
    assert both.step(x=1) == {"a": 1} and both.step("other", w=2) == {"b": 2, "c": 2}
    assert Both(text, fetch=["b"]).step("other", w=2) == {"b": 2}


# ---------------------------------------------------------------- 6: expressions


def test_index_expressions_take_scalars_of_every_kind() -> None:
    text = """sizes { Q = 2; } dynamic { d: u8; x: f32[N] @max(N=4); } constant { c: i16 @init(3); m: u32; }
    volatile { v: i32; s: f32[N]; y: i64[6]; one: i64; } persistent { p: i64 @init(5); q: u16[1] @init(7);
      K(t): i64 @table @fixed(t=100); }
    block entry { op neg(x) >> s; op fill(v, value=11) >> v; assign t: i32; op add(v, v) >> t;
      loop l (i in 0..1) {
        cache.increment 1 one_; cache.read one_ >> one; cache.write one >> K[d + c * Q - m];
        cache.increment 1 one_; cache.read one_ >> one; cache.write one >> K[p + q + N + i];
        cache.increment 1 one_; cache.read one_ >> one; cache.write one >> K[t * (v - 10) - -2];
        cache.increment p p; cache.increment 1 one_; cache.read one_ >> one;
      cache.write one >> K[p * 2 + 4 / Q];
      } return; }
    persistent { one_: i64; }"""
    both = Both(text, Model(sizevars={"m": 1}))
    both.step(d=4, x=[1, 2])
    state = both.state("K")
    # 4 + 3*2 - 1 = 9; 5 + 7 + 2 + 0 = 14; 22 * 1 + 2 = 24; p = 10: 22
    assert {i: v for i, v in enumerate(state) if v} == {9: 1, 14: 2, 24: 3, 22: 4}


@pytest.mark.parametrize(
    ("declared", "statement", "expected"),
    [
        ("", "cache.increment X[0, -1];", ["index-negative"]),
        ("", "cache.read K[-1, 0] >> v;", ["index-negative"]),
        ("", "cache.read K[0, 1 - 3..] >> v;", ["index-negative"]),
        ("", "cache.read M[-1.., 0] >> v;", ["index-negative"]),
        ("", "cache.write i >> X[0, -1];", ["index-negative"]),
        ("", "cache.reset K[-1];", ["index-negative"]),
        ("dynamic { x: f32 @init(1.0); y: f32[M] @max(M=0); }", "", ["attribute-place", "bound-range"]),
        ("persistent { A(i): f32 @table @fixed(i=H - H); }", "", ["bound-range"]),
        ("volatile { x: f32[7 / 2, 1 / 0]; }", "", ["size-division"]),
        ("volatile { x: f32[2, H - 9]; }", "", ["size-negative"]),
        ("dynamic { x: f32[N] @max(N=4); } block a @entry(N=5) { }", "", ["bound-range"]),
    ],
)
def test_numbers_that_build_knows_are_refused(declared: str, statement: str, expected: list[str]) -> None:
    text = """sizes { H = 4; } volatile { v: f32[?]; i: f32; }
    persistent { K(l, t): f32[H] @table; M(r, c): f32[H, H] @auto_dim(r, c); X(s, t): f32 @table @fixed(t=8) @ring(t); }
    """
    assert slugs(f"{text} {declared} block entry {{ {statement} }}") == expected


def test_a_negative_index_is_told_without_sizes() -> None:
    text = "persistent { K(t): f32[D] @table; } volatile { y: f32[D]; } block entry { cache.read K[-1] >> y; }"
    assert slugs(text) == ["size-missing", "index-negative"]
    assert slugs(text, sizes={"D": 2}) == ["index-negative"]


def test_nothing_is_measured_by_a_refused_bound() -> None:
    text = """sizes { H = 2; } dynamic { n: i32; } volatile { y: f32[?]; z: f32[2]; }
    persistent { K(t): f32 @table @fixed(t=BOUND); }
    block entry { cache.read K[0..4] >> y; cache.read K[0..n] >> y; op add(y, z) >> z; return; }"""
    assert slugs(text.replace("BOUND", "0")) == ["bound-range"]
    assert slugs(text.replace("BOUND", "H - 2")) == ["bound-range"]
    assert slugs(text.replace("BOUND", "layers")) == ["size-missing"]
    text = """dynamic { x: f32[N] @max(N=4); } volatile { y: f32[N]; four: f32[4] @init(1.0); }
    block entry { op neg(x) >> y; } block more @entry(N=PIN) { op add(x, four) >> y; }"""
    assert slugs(text.replace("PIN", "5")) == ["bound-range"]
    assert slugs(text.replace("PIN", "K")) == ["size-missing"]


def test_a_refused_loop_that_may_return_is_refused_in_silence() -> None:
    text = """dynamic { x: f32[2]; } volatile { y: f32[?]; z: f32[2]; } persistent { s: f32; }
    block entry { loop l (i in 0..END) { op neg(x) >> y; op relu(x, axis=1) >> z; return; } op add(y, x) >> z; }"""
    assert slugs(text.replace("END", "s")) == ["index-dtype", "op-setting"]
    assert slugs(text.replace("END", "q")) == ["unknown-name", "op-setting"]


def test_what_cannot_stand_in_an_expression() -> None:
    text = """dynamic { f: f32; v: i32[2]; } volatile { y: f32; } persistent { s: i32; K(t): f32 @table;
      t: i32[2]; }
    block entry { cache.read K[%s] >> y; return; }"""
    assert slugs(text % "f") == ["index-dtype"]
    assert slugs(text % "v") == ["not-scalar"]
    assert slugs(text % "t") == ["not-scalar"]
    assert slugs(text % "K") == ["not-scalar"]
    compiled(text % "s / 2")
    compiled(text % "7 % 2 + s % s")
    assert slugs(text % "s / 0") == slugs(text % "s % (2 - 3)") == ["index-division"]
    assert slugs(text % "7 % 0") == ["size-division"]
    assert slugs(text % "9223372036854775807 + 1") == ["size-range"]
    most = "constant { k: u64 @init(18446744073709551615); } "
    assert slugs(most + text % "k % 3") == slugs(most + text % "k") == ["size-range"]
    assert slugs(text % "7 / 2") == ["size-division"]
    assert slugs(text % "3 - 4") == ["index-negative"]


def test_constants_known_at_build_divide() -> None:
    text = """constant { n: i32 @init(6); } volatile { y: i32; } persistent { s: i32; }
    block entry { cache.increment n / 2 s; cache.read s >> y; return; }"""
    assert run(text)["y"] == 3


def test_a_counter_beyond_64_bits_is_refused() -> None:
    text = """volatile { y: f32; } persistent { s: u64 @init(18446744073709551615);
      m: i64 @init(9223372036854775807);
      K(t): f32 @table @fixed(t=3); }
    block entry { cache.read K[s] >> y; return; } block other @entry {
      cache.read K[m + 1 - 9223372036854775807] >> y; return; }
    block wraps @entry { cache.increment m; cache.increment s; return; }"""
    both = Both(text)
    assert both.refused().status == "OIC_ERR_OVERFLOW"
    both.step("wraps")
    assert both.state("m") == -(1 << 63) and both.state("s") == 0


def test_settings_may_be_scalars_of_every_kind() -> None:
    text = """dynamic { x: f32[2]; d: f32; n: i32; } constant { c: f32 @init(0.5); axis: i32 @init(0);
      on: bool @init(true); }
    volatile { v: f32; y: f32[2]; z: f32[2]; a: f32[2]; b: f32[1]; i: i32[2]; j: i32[2]; w: f32[2]; }
    persistent { p: f32 @init(3.0); k: i32 @init(1); }
    block entry { op add(d, d) >> v; op relu(x, alpha=c) >> y; op relu(x, alpha=d, clamp_max=p) >> z;
      op relu(x, alpha=v) >> a; op sum_axis(x, axes=[axis], keepdims=on) >> b;
      op fill(i, value=3) >> i; op shl(i, bits=k + n) >> i; op shl(i, bits=k) >> j;
      cache.increment k; cache.increment p; op relu(x, clamp_max=p) >> w; return; }"""
    both = Both(text)
    found = both.step(x=[-2, 8], d=0.25, n=1)
    assert found["y"] == [-1, 8] and found["z"] == [-0.5, 3] and found["a"] == [-1, 8]
    assert found["b"] == [6] and found["i"] == [12, 12] and found["j"] == [24, 24] and found["w"] == [0, 4]
    assert both.step(x=[-2, 8], d=0.25, n=1)["j"] == [96, 96]


def test_a_tensor_is_no_setting() -> None:
    text = """constant { c: f32[2] @init(0.5); e: f32[0]; } volatile { x: f32[2] @init(1.0); y: f32[2]; }
    persistent { K(t): f32 @table; i: f32[2]; }
    constant { W(l): f32 @pattern("w{l}") @init(1.0); }
    block entry { op relu(x, %s) >> y; return; }"""
    for setting in ("alpha=c", "alpha=e", "alpha=x", "alpha=W[0]", "alpha=true", "alpha=[1.0]", "alhpa=1.0", "alpha=-1e400"):
        assert slugs(text % setting) == ["op-setting"], setting
    for setting, slug in (("alpha=W", "table-rank"), ("alpha=K", "persistent-operand"), ("alpha=q", "unknown-name")):
        assert slugs(text % setting) == [slug]


# ---------------------------------------------------------------- 8: persistent state


def test_destinations_take_the_shape_of_a_read() -> None:
    text = """dynamic { x: f32[2]; } volatile { a: f32[2]; b: f32[2]; c: f32[2]; } persistent {
      K(t): f32[2] @table @fixed(t=3); }
    block entry { cache.write x >> K[1]; cache.read K[0..2] >> a; op add(a, x) >> b; transfer b >> c; return;
      }"""
    expected = [[1, 2], [2, 4]]
    assert run(text, x=[1, 2]) == {"a": [[0, 0], [1, 2]], "b": expected, "c": expected}
    assert warned(text) == ["takes-shape"] * 3


def test_channels_of_a_batch_norm_that_may_be_either_axis_are_a_warning() -> None:
    """[C, H, W] with H = C is a [B, C, L] too; not where an axis is said, none is as long, or both are one channel."""

    def of(sizes: str, channels: str, more: str = "") -> list[str]:
        return warned(
            f"dynamic {{ x: f32[{sizes}]; g: f32[{channels}]; }} volatile {{ y: f32[{sizes}]; }} "
            f"block entry {{ op batch_norm(x, g, g, g, g{more}) >> y; return; }}"
        )

    assert of("3, 3, 5", "3") == of("4, 4", "4") == ["op-axis"]
    for sizes, channels, more in (("3, 3, 5", "3", ", channel=0"), ("3, 3, 5", "3", ", channel=1"), ("3, 3, 5, 5", "3", ""),
                                  ("2, 3, 5", "3", ""), ("1, 1, 5", "1", "")):  # fmt: skip
        assert of(sizes, channels, more) == []


def test_negative_ends_count_from_the_count_before_the_access() -> None:
    text = """dynamic { i: i32; e: i32; } volatile { y: i64[?]; v: i64; } persistent { s: i64;
      K(l, t): i64 @table; }
    block entry { cache.increment s; cache.read s >> v; cache.write v >> K[0, i]; cache.read K[0, 1..e] >> y;
      return; }"""
    both = Both(text, capacity={"K.l": 2, "K.t": 6})
    assert both.step(i=3, e=-1)["y"] == [0, 0]  # 1..3 of 4
    assert both.step(i=1, e=3)["y"] == [2, 0]
    assert both.step(i=0, e=6)["y"] == [2, 0, 1, 0, 0]  # between count and capacity: never written
    assert both.refused(i=0, e=7).status == "OIC_ERR_CACHE_FULL"
    assert both.refused(i=0, e=-4).status == "OIC_ERR_INDEX"  # 1..0
    assert both.refused(i=6, e=1).status == "OIC_ERR_CACHE_FULL"
    assert both.refused(i=-1, e=1).status == "OIC_ERR_INDEX"
    assert both.state("s") == 3


def test_slice_writes_grow_and_take_what_a_read_would_give() -> None:
    text = """dynamic { x: f32[N, 2] @max(N=4); } volatile { y: f32[?, 2]; } persistent { pos: i32;
      K(t): f32[2] @table; }
    block entry { cache.write x >> K[pos..pos + N]; cache.increment N pos; cache.read K[..pos] >> y; return;
      }"""
    both = Both(text, capacity={"t": 5})
    assert both.step(x=[[1, 2], [3, 4]])["y"] == [[1, 2], [3, 4]]
    assert both.step(x=np.zeros((0, 2)))["y"] == [[1, 2], [3, 4]]
    assert both.step(x=[[5, 6]])["y"] == [[1, 2], [3, 4], [5, 6]]
    assert both.refused(x=np.ones((3, 2))).status == "OIC_ERR_CACHE_FULL"
    assert both.state("K") == [[1, 2], [3, 4], [5, 6]] and both.state("pos") == 3


def test_capacity_comes_from_what_is_static() -> None:
    text = """volatile { y: f32[?]; v: f32; } persistent { n: i32; K(t): f32 @table; L(t): f32 @table;
      M(t): f32 @table; A(r): f32[2] @auto_dim(r); }
    block entry { loop l (i in 0..3) { cache.read K[2 * i + 1] >> v; } cache.read K[0..n] >> y;
      cache.read K[0..4] >> y;
      cache.read L[n] >> v; cache.write y >> M[0..n]; cache.read A[3] >> y; cache.read A[0..4] >> y; return;
      }"""
    def of(**settings: Any) -> dict[str, Any]:
        return {s.symbol: s.result.type for s in compiled(text, **settings).module.states()}

    types = of()
    assert types["K"].table[0].capacity == 6 and not types["K"].table[0].reserved
    assert types["L"].table[0].reserved and types["M"].table[0].reserved
    assert types["A"].auto[0].capacity == 3 and not types["A"].auto[0].reserved
    assert slugs(text, target=TARGETS["freestanding"]) == ["capacity-unknown"] * 2
    assert of(capacity={"t": 9})["L"].table[0].capacity == 9


def test_rings_count_back_from_next() -> None:
    text = """dynamic { x: f32; } volatile { a: f32[?]; b: f32[?]; c: f32; } persistent { n: i32;
      X(t): f32 @table @fixed(t=W) @ring(t); }
    sizes { W = 3; }
    block entry { cache.write x >> X[n]; cache.increment n; cache.read X[-W..] >> a;
      cache.read X[-W + 1..-1] >> b;
      cache.read X[-1] >> c; return; }"""
    both = Both(text)
    assert both.step(x=1) == {"a": [0, 0, 1], "b": [0], "c": 1}
    assert both.step(x=2) == {"a": [0, 1, 2], "b": [1], "c": 2}
    for x in (3, 4):
        found = both.step(x=x)
    assert found == {"a": [2, 3, 4], "b": [3], "c": 4} and both.state("X") == [2, 3, 4]


def test_a_ring_takes_more_than_its_window() -> None:
    text = """dynamic { x: f32[N] @max(N=8); } volatile { a: f32[?]; } persistent { n: i32;
      X(t): f32 @table @fixed(t=3) @ring(t); }
    block entry { cache.write x >> X[n..n + N]; cache.increment N n; cache.read X[] >> a; return; }
    block five @entry { assign h: f32[5]; op fill(h, value=9.0) >> h; cache.write h >> X[n..n + 5];
      cache.increment 5 n; return; }"""
    both = Both(text)
    assert both.step(x=[1])["a"] == [1]
    assert both.step(x=[2, 3, 4, 5, 6])["a"] == [4, 5, 6]
    both.step("five")
    assert both.state("X") == [9, 9, 9] and both.state("n") == 11


def test_auto_dims_grow_as_their_scalars_say() -> None:
    text = """dynamic { i: i32; j: i32; } volatile { y: f32[?, ?]; z: f32[?, ?]; } persistent {
      M(r, c): f32[1, 2] @auto_dim(r, c) @fixed(r=2, c=3) @init(0.5); }
    block entry { cache.read M[i, j] >> y; op add(y, y) >> z; cache.write z >> M[];
      cache.read M[0..r, 1..-1] >> z; return; }"""
    both = Both(text)
    assert both.step(i=0, j=0) == {"y": [[0.5, 0.5]], "z": []}
    assert both.step(i=1, j=1) == {"y": [[1, 1, 0.5], [0.5] * 3], "z": [[2]]}
    assert both.refused(i=3, j=0).status == "OIC_ERR_CACHE_FULL"
    assert both.refused(i=-1, j=0).status == "OIC_ERR_INDEX"
    assert both.state("M") == [[2, 2, 1], [1, 1, 1]]


def test_counts_hide_other_names_in_slices() -> None:
    text = """sizes { r = 1; } volatile { y: f32[?]; c: i32 @init(1); z: f32[?]; } persistent {
      M(r): f32[2] @auto_dim(r) @fixed(r=4); }
    block entry { cache.read M[3] >> y; cache.read M[0..r] >> y; cache.read M[c..r + 2] >> z; return; }"""
    assert run(text) == {"y": [0, 0, 0], "z": [0] * 4}


def test_tables_of_growing_matrices() -> None:
    text = """dynamic { x: f32[1]; } volatile { y: f32[?, ?]; z: f32[?]; } persistent {
      C(l, i): f32[0] @table @auto_dim(i) @fixed(l=3, i=2); }
    block entry { cache.write x >> C[1, 1]; cache.read C[0..2, 2] >> y; cache.read C[1, 0..1] >> z; return; }"""
    assert Both(text).step(x=[4]) == {"y": [[0, 0], [4, 0]], "z": [4]}


def test_resets_are_seen_by_what_follows() -> None:
    text = """volatile { a: i32; b: i32; c: i32; } persistent { s: i32 @init(4); K(t): i32 @table @fixed(t=4); }
    block entry { cache.increment 3 s; cache.read s >> a; cache.write a >> K[s - 4]; cache.reset s;
      cache.read K[s - 1] >> b;
      cache.reset K[s - 1]; cache.read K[s - 1] >> c; cache.decrement s * 2 s; return; }"""
    both = Both(text)
    assert both.step() == {"a": 7, "b": 7, "c": 0} and both.state("s") == -4


def test_a_refused_step_changes_nothing() -> None:
    text = """dynamic { i: i32; } volatile { y: f32; } persistent { n: i32; K(t): f32 @table @fixed(t=2); }
    block entry { cache.increment n; cache.read K[i] >> y; cache.increment n; return; }"""
    both = Both(text)
    both.step(i=1)
    assert both.refused(i=2).status == "OIC_ERR_CACHE_FULL" and both.state("n") == 2
    both.step(i=0)
    assert both.state("n") == 4


def test_kv_len_takes_an_expression() -> None:
    text = """dynamic { q: f32[N, 1, 2] @max(N=2); } volatile { y: f32[N, 1, 2]; z: f32[N, 1, 2];
      k: f32[?, 1, 2]; }
    persistent { pos: i32; K(t): f32[1, 2] @table @fixed(t=4); }
    block entry { cache.write q >> K[pos..pos + N]; cache.read K[] >> k;
      op attention(q, k, k, causal=true, kv_len=pos + N) >> y; cache.increment N pos;
      op attention(q, k, k, causal=true, kv_len=pos) >> z; return; }"""
    both = Both(text)
    found = both.step(q=[[[1, 0]], [[0, 1]]])
    assert found["y"] == found["z"] and found["y"][0] == [[1, 0]]
    assert slugs(text.replace("kv_len=pos + N", "bias=3")) == ["op-setting"]


def test_loops_lowered_twice_keep_the_checks_of_sizes() -> None:
    """A declared size is first met in a loop whose carried sizes settle at a second attempt."""
    text = """dynamic { x: f32[N] @max(N=9); n: i32; } volatile { y: f32[N / 2] @init(1.0); z: f32[?]; s: f32; }
    persistent { K(i): f32 @table @fixed(i=9); }
    block entry { cache.read K[0..1] >> z; loop l (j in 0..n) { cache.read K[0..j] >> z; op add(y, y) >> y; }
      op sum_axis(x, axes=[0]) >> s; return; }"""
    both = Both(text)
    assert both.step(x=[1, 2, 3, 4], n=2) == {"y": [4, 4], "z": [0], "s": 10}
    assert both.refused(x=[1, 2, 3], n=2).status == "OIC_ERR_SHAPE"


@pytest.mark.parametrize("call", ["softmax(x, axis=f32)", "softmax(x, axis=bool)", "pad(x, before=[0, i8], after=[0, 0])"])
def test_an_element_type_is_no_number(call: str) -> None:
    """It is a word that settings may have, and refused by those that ask for numbers."""
    assert slugs(f"dynamic {{ x: f32[2, 3]; }} volatile {{ y: f32[2, 3]; }} block entry {{ op {call} >> y; }}") == ["op-setting"]
