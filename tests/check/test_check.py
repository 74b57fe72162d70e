"""Checking: what is right passes, what is wrong is refused once and at the right place."""

from __future__ import annotations

import difflib
import json
import random
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oic.check.check import check
from oic.check.report import Refused
from oic.check.sizes import eval_dim, size_values
from oic.check.source import diagnose, parse
from oic.diagnostics import MOST_COMPARED, Diagnostic, OicError
from oic.driver import Settings, compile_graph
from oic.model import Model
from oic.syntax.parse import parse_all
from oic.syntax.text import pieces
from paths import conformance_dir, needs_conformance
from syntax.test_parse import EVERYTHING

DECLARATIONS = """
sizes { H = 4; }
dynamic { d: f32[D]; flag: bool; tokens: i32[N] @max(N=8); }
constant { c: f32[D]; n: u32; W(l, m): f32[D] @pattern("w.{l}.{m}"); }
volatile { v: f32[D]; w: f32[D]; any: f32[?]; i: i32; f: f32; }
persistent {
  p: f32[D]; step: i32; ok: bool;
  K(l, t): f32[D] @table; M(r, c_): f32[D, D] @auto_dim(r, c_);
  C(e, g): f32[D] @table @auto_dim(g); X(s, t): f32[D] @table @fixed(t=8) @ring(t);
}
"""


def found_in(text: str, known: Sequence[str] = ()) -> list[Diagnostic]:
    parsed = parse_all(text, "graph.oi")
    if parsed.errors or parsed.graph is None:
        return diagnose(parsed)
    found = check(parsed.graph, known).diagnostics + size_values(parsed.graph, {}, {})[1]
    return sorted(found, key=lambda d: d.span.start if d.span else 0)


def slugs(text: str, known: Sequence[str] = ()) -> list[str]:
    return [d.slug for d in found_in(text, known)]


def in_entry(statements: str, blocks: str = "") -> list[str]:
    return slugs(f"{DECLARATIONS} block entry {{ {statements} }} {blocks}")


@pytest.mark.parametrize(
    "statements",
    [
        "op add(v, c) >> w;",
        "op add(d, W[i, H + 1]) >> v;",
        "op relu(v, key=step, other=N, third=D * 2, dt=f16, b=W[0, n], e=[1, step]) >> v; op relu(tokens) >> i;",
        "op relu(tokens) >> i;",
        "transfer p >> v;",
        "transfer step >> i;",
        "transfer W[0, 1] >> v;",
        "cache.read p >> v;",
        "cache.read K[step, ..] >> any;",
        "cache.read K[] >> any;",
        "cache.read K[1] >> any;",
        "cache.read K[0..-1, 1] >> any;",
        "cache.write v >> K[1, step..step + N]; op relu(tokens) >> i;",
        "cache.read M[0..r, 0..c_] >> any;",
        "cache.read M[r, ..] >> any;",
        "cache.write any >> M[];",
        "cache.write any >> M[1];",
        "cache.read C[0..4, step] >> any;",
        "cache.write v >> C[1];",
        "cache.read X[0, -4..] >> any;",
        "cache.read X[0] >> any;",
        "cache.read X[0, -1] >> v;",
        "cache.increment n step;",
        "cache.decrement N * 2 - D step; op relu(tokens) >> i;",
        "cache.reset K; cache.reset K[]; cache.reset K[1]; cache.reset K[1, step]; cache.reset p;",
        "cache.reset C[2]; cache.reset M;",
        "loop a (x in 0..D / 2) { loop b (x in x..x + 1) { cache.read K[x, x] >> v; } }",
        "assign t: f32[D]; loop a (x in 0..2) { assign u: f32[D]; transfer t >> u; }",
        "barrier;",
        "cache.read p >> v; dep after(cache.read) before(add); op add(v, v) >> v;",
    ],
)
def test_right_statements(statements: str) -> None:
    assert in_entry(statements) == []


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("op add(v, nope) >> gone;", ["unknown-variable"] * 2),
        ("op add(v, p) >> c;", ["persistent-operand", "write-kind"]),
        ("op add(v, W) >> v;", ["table-rank"]),
        ("op add(v, W[0]) >> v;", ["table-rank"]),
        ("op add(v, W[0, 1, 2]) >> v;", ["table-rank"]),
        ("op add(v, W[0, ..]) >> v;", ["slice-place"]),
        ("op add(v, v[0]) >> v;", ["not-indexed"]),
        ("op add(v, D) >> v;", ["unknown-variable"]),
        ("op relu(v, key=p) >> v;", ["persistent-operand"]),
        ("op relu(v, key=nope) >> v;", ["unknown-name"]),
        ("op relu(v, key=nope + 1) >> v;", ["unknown-name"]),
        ("op relu(v) >> d;", ["write-kind"]),
        ("op relu(v) >> step;", ["write-kind"]),
        ("op relu(v) >> W[0, 0];", ["write-kind"]),
        ("transfer K >> v;", ["persistent-operand"]),
        ("transfer v >> p;", ["write-kind"]),
        ("cache.read v >> w;", ["cache-kind"]),
        ("cache.write v >> w;", ["cache-kind"]),
        ("cache.write p >> p;", ["persistent-operand"]),
        ("cache.reset v;", ["cache-kind"]),
        ("cache.increment i;", ["cache-kind"]),
        ("cache.increment ok;", ["counter-dtype"]),
        ("cache.increment f step;", ["index-dtype"]),
        ("cache.increment K[0, 0];", []),
        ("cache.increment K[0, ..];", ["not-scalar"]),
        ("cache.increment K[];", ["not-scalar"]),
        ("cache.increment K;", ["table-rank"]),
        ("cache.increment K[0];", ["table-rank"]),
        ("cache.increment M[0, 0];", ["not-scalar"]),
        ("cache.increment X[0, -1];", ["index-negative"]),
        ("cache.increment step[0];", ["not-indexed"]),
        ("cache.read K >> any;", ["brackets"]),
        ("cache.write v >> K;", ["table-rank"]),
        ("cache.write v >> K[1];", ["table-rank"]),
        ("cache.write v >> K[1, ..];", ["slice-ends"]),
        ("cache.write v >> K[1,];", ["slice-ends"]),
        ("cache.write any >> M[0..2, 1];", ["slice-place"]),
        ("cache.write any >> M;", ["brackets"]),
        ("cache.read K[0, 1, 2] >> v;", ["table-rank"]),
        ("cache.read K[-1, 0] >> v;", ["index-negative"]),
        ("cache.read K[0, -2..] >> v;", ["index-negative"]),
        ("cache.read K[-0, -0..] >> v;", []),
        ("cache.read M[-1.., 0] >> any;", ["index-negative"]),
        ("cache.read M[r, c_] >> any;", ["unknown-name"] * 2),
        ("cache.read X[.., 1] >> any;", ["ring-index"]),
        ("cache.read X[] >> any;", ["ring-index"]),
        ("cache.write v >> X[0, -1];", ["index-negative"]),
        ("cache.read X[0, -1] >> any;", []),
        ("cache.reset K[0,];", ["slice-place"]),
        ("cache.reset C[0, 1];", ["table-rank"]),
        ("cache.reset p[];", ["not-indexed"]),
        ("loop a (x in 0..zap) { }", ["unknown-name"]),
        ("loop a (v in 0..2) { }", ["loop-index-hides"]),
        ("loop a (H in 0..2) { }", ["loop-index-hides"]),
        ("loop a (D in 0..2) { }", ["loop-index-hides"]),
        ("loop a (x in 0..2) { assign x: f32; }", ["loop-index-hides"]),
        ("loop a (x in 0..2) { op relu(x) >> x; }", ["unknown-variable"] * 2),
        ("cache.read K[step / 2, step % 3] >> v;", []),
        ("cache.read K[ok % 2, 0] >> v;", ["index-dtype"]),
        ("assign t: f32[D % 2];", ["size-modulo"]),
        ("assign v: f32;", ["duplicate-name"]),
        ("assign t: f32; assign t: f32;", ["duplicate-name"]),
        ("assign entry: f32;", ["duplicate-name"]),
        ("assign t: f12;", ["unknown-dtype"]),
        ("assign t: f32 @init(1.0);", ["attribute-place"]),
        ("assign t(i): f32;", ["unbound-indices"]),
        ("op relu(v) >> t; assign t: f32;", ["unknown-variable"]),
        ("loop a (x in 0..2) { assign t: f32; } op relu(t) >> v;", ["unknown-variable"]),
        ("branch i entry entry;", ["branch-condition"] + ["branch-to-entry"] * 2),
        ("branch nowhere;", ["unknown-block"]),
        ("branch gone a b;", ["unknown-variable"] + ["unknown-block"] * 2),
        ("dep after(cache.raed) before(x);", ["unknown-statement", "dep-no-match"]),
        ("return; return;", ["dead-code"]),
        ("loop a (x in 0..2) { return; barrier; }", ["dead-code"]),
        ("op relu(v, n=D, n=D) >> v;", ["duplicate-setting"]),
        ("op relu(v) >> v, v;", ["duplicate-result"]),
    ],
)
def test_wrong_statements(statements: str, expected: list[str]) -> None:
    assert in_entry(statements) == expected


def test_hints() -> None:
    """An element type by its name in C, and a part of what is no table."""
    for statement, hint in (
        ("assign t: float;", "did you mean 'f32'?"), ("assign t: uint;", "did you mean 'u32'?"),
        ("op neg(v[0..2]) >> v;", "op slice(v, axis=…, start=…, end=…) gives a part of a tensor"),
        ("op neg(v[0]) >> v;", "op slice(v, axis=…, start=…, end=…) gives a part of a tensor"),
    ):  # fmt: skip
        assert [d.hint for d in found_in(f"{DECLARATIONS} block entry {{ {statement} }}")] == [hint]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("persistent { x: f32 @init(5); }", ["init-kind"]),
        ("persistent { x: i32 @init(5.0); }", ["init-kind"]),
        ("persistent { x: bool @init(1.0); }", ["init-kind"]),
        ("persistent { x: bool @init(2); }", ["init-range"]),
        ("persistent { x: bool @init(1); y: bool @init(true); }", []),
        ("persistent { x: i8 @init(-129); y: i8 @init(-128); }", ["init-range"]),
        ("persistent { x: u64 @init(18446744073709551615); }", []),
        ("persistent { x: bitset @init(255); y: bitset @init(256); }", ["init-range"]),
        ("persistent { x: f32 @init(1e39); y: f64 @init(1e39); }", ["init-range"]),
        ("persistent { x: f64 @init(1e999); y: f16 @init(inf); z: f8 @init(-nan); }", ["init-range"]),
        ("persistent { x: f16 @init(65520.0); y: f16 @init(65519.0); }", ["init-range"]),
        ("persistent { x: t2[2] @init(-1); y: t1[2] @init(0); z: t1[2] @init(2); }", ["init-range"]),
        ('persistent { x: f32 @init("a"); y: f32 @init(true); }', ["init-kind"] * 2),
        ("persistent { x: f32 @init; y: f32 @init(1.0, 2.0); }", ["attribute-arguments"] * 2),
        ("persistent { x: f32 @init(y); }", ["attribute-arguments"]),
        ("volatile { x: f32 @init(1.0) @init(2.0) @shiny; }", ["duplicate-attribute", "unknown-attribute"]),
        ("dynamic { x: f32 @init(1.0); }", ["attribute-place"]),
        ("dynamic { A(i): f32; }", ["unbound-indices"]),
        ("persistent { A(): f32 @table; }", ["no-indices"]),
        ("persistent { A: f32 @fixed(i=3); }", ["no-indices"]),
        ("persistent { A: f32 @ring(t); }", ["ring"]),
        ("persistent { A: f32 @table @ring(t); }", ["no-indices"]),
        ("persistent { A(i): f32 @table(i); }", ["attribute-arguments"]),
        ("persistent { A(i): f32 @table @fixed(i=2, i=3); }", ["duplicate-index"]),
        ("persistent { A(i, j): f32[2] @auto_dim(j); }", ["auto-dim"]),
        ("persistent { A(i, j): f32[2] @table @auto_dim(i); }", ["auto-dim"]),
        ("persistent { A(i, j): f32[2, 2] @auto_dim(j, i); }", ["auto-dim"]),
        ("persistent { A(i): f32[2] @auto_dim(k); }", ["unknown-index"]),
        ("persistent { A(t): f32[2] @auto_dim(t) @fixed(t=4) @ring(t); }", ["ring"]),
        ("persistent { A(t): f32[2] @table @ring; }", ["attribute-arguments"]),
        ('constant { W(l): f32 @pattern("w"); }', ["pattern-placeholder"]),
        ('constant { W(l): f32 @pattern("w.{l}", "v.{m}"); }', ["pattern-placeholder"]),
        ('constant { W(l): f32 @pattern("w.{l}{"); }', ["pattern-placeholder"]),
        ('constant { W: f32 @pattern("w.{l}"); }', ["no-indices"]),
        ("constant { W: f32 @ref(weight); V: f32 @ref(a, \"b\"); }", []),
        ("constant { W: f32 @ref(7); }", ["attribute-arguments"]),
        ("constant { W: f32 @ref(a=b); }", ["attribute-arguments"]),
        ("constant { W(l): f32; }", []),
        ("volatile { W(l): f32; }", ["unbound-indices"]),
        ('constant { W(l): f32 @ref("w.{l}"); }', ["pattern-placeholder"]),
        ("constant { W: f32[?]; }", ["unknown-dimension"]),
        ("sizes { A = 1; A = 2; }", ["duplicate-name"]),
        ("sizes { N = 1; } dynamic { x: f32[N] @max(N=4); }", ["duplicate-name"]),
        ("dynamic { x: f32[N] @max(N=4); y: f32[N] @max(N= 4); }", []),
        ("block a @entry(M=1) { }", ["unknown-extent"]),
        ("block a @table { }", ["unreachable-block", "attribute-place"]),
    ],
)  # fmt: skip
def test_declarations(text: str, expected: list[str]) -> None:
    assert slugs(text + " block entry { }") == expected


def test_a_graph_without_blocks_is_told_of_at_its_first_word() -> None:
    """Also beside a section that cannot be read: what was left out is no word of the place."""
    first, second = found_in("// none\npersistent { x: f32; }\nreturn x { return; }")
    assert (first.slug, second.slug) == ("no-entry", "unknown-section")
    assert first.span is not None and first.span.text == "persistent"
    (found,) = found_in("graph g { dynamic { x: f32; } }")
    assert found.slug == "no-entry" and found.span is not None and found.span.text == "graph"


CIRCLES = {
    # What branches to what, and the blocks of each circle that is told of, in the order of the notes.
    "one of itself": ({0: [0]}, [[0]]),
    "behind a chain": ({0: [1], 1: [2], 2: [3], 3: [2]}, [[2, 3]]),
    "from the first in the source": ({0: [3], 1: [2], 2: [3], 3: [1]}, [[1, 2, 3]]),
    "two, one behind the other": ({0: [1], 1: [0, 2], 2: [3], 3: [4], 4: [3]}, [[0, 1], [3, 4]]),
    "two with a block in common": ({0: [1, 2], 1: [0], 2: [0]}, [[0, 1]]),
    "the shortest through its first": ({0: [1], 1: [2, 3], 2: [4], 3: [1], 4: [1]}, [[1, 3]]),
    "the shortest of many": ({0: [1, 4], 1: [2], 2: [3], 3: [0], 4: [5, 1], 5: [0]}, [[0, 4, 5]]),
    "behind what ends": ({0: [1, 2], 1: [], 2: [1, 0]}, [[0, 2]]),
}


def _branches(targets: Iterable[tuple[int, list[int]]]) -> str:
    return " ".join(f"block b{at} {{ {' '.join(f'branch b{to};' for to in tos)} }}" for at, tos in targets)


@pytest.mark.parametrize(("targets", "circles"), CIRCLES.values(), ids=CIRCLES)
def test_circles_of_branches(targets: dict[int, list[int]], circles: list[list[int]]) -> None:
    found = found_in(f"block entry {{ branch b0; }} {_branches(targets.items())}")
    told = [[d.span, *(n.span for n in d.notes)] for d in found if d.slug == "recursive-block"]
    assert [[span.text for span in spans if span] for spans in told] == [
        [f"b{at}" for at in [*circle[1:], circle[0]]] for circle in circles
    ]
    assert [d.message.split("'")[1] for d in found] == [f"b{circle[0]}" for circle in circles]


def test_a_chain_into_a_circle_takes_time_by_its_length() -> None:
    """Blocks in either order of the source; parsing them takes most of it."""
    chain = [(at, [min(at + 1, 7_999)]) for at in range(8_000)]
    for blocks in (chain, chain[::-1]):
        graph = parse_all(f"block entry {{ branch b0; }} {_branches(blocks)}").graph
        assert graph is not None
        started = time.process_time()
        assert [d.slug for d in check(graph, ()).diagnostics] == ["recursive-block"]
        assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ("block entry { branch a; } block a { branch b; } block b { }", []),
        ("block entry { branch entry; }", ["branch-to-entry"]),
        ("block entry { branch a; } block a { branch a; }", ["recursive-block"]),
        ("block entry { } block entry { }", ["duplicate-name"]),
        ("block a { }", ["no-entry"]),
        ("", ["no-entry"]),
        # A temporary is seen in the blocks branched to from where it is visible, each time anew.
        ("block entry { assign t: f32; branch a; } block a { op relu(t) >> t; }", []),
        ("block entry { branch a; assign t: f32; branch a; } block a { op relu(t) >> x; }", ["unknown-variable"]),
        ("block entry { assign t: f32; branch a; } block a { branch b; } block b { op relu(t) >> x; }", []),
        ("block entry { assign t: f32; branch a; } block a { assign t: i32; }", []),
        ("block entry { loop l (i in 0..2) { branch a; } } block a { loop m (j in 0..i) { } }", []),
        ("block entry { loop l (i in 0..2) { branch a; } branch a; } block a { op relu(x, k=i) >> x; }", ["unknown-name"]),
        ("block entry { loop l (i in 0..2) { branch a; } } block a { assign i: f32; op relu(i) >> x; }", []),
        ("block entry { loop l (i in 0..2) { branch a; } } block a { loop i (i in 0..i) { } }", []),
        ("block entry { branch a; loop l (i in 0..2) { } } block a { op relu(i) >> x; }", ["unknown-variable"]),
        ("block entry { } block a { op relu(x, k=i) >> x; loop l (i in 0..2) { } }", ["unreachable-block"]),
        ("block entry { } block a { op relu(t) >> t; } block b @entry { assign t: f32; }", ["unreachable-block"]),
        ("block entry { } block a { op relu(nope) >> x; }", ["unreachable-block", "unknown-variable"]),
        # yield and await
        ("block entry { yield x; await x; } block c { await x; op relu(x) >> x; yield x; }", []),
        ("block entry { yield x, y; await y; await x; } block c { await x, y; yield y, x; }", []),
        ("block entry { yield x; await x; yield x; await x; } block c { await x; yield x; }", []),
        ("block entry { yield x; loop l (i in 0..2) { op relu(x) >> y; } await x; }", ["yielded-use"]),
        ("block entry { yield x; branch a; await x; } block a { op relu(y) >> x; }", ["yielded-use"]),
        ("block entry { yield x; op relu(x) >> x; }", ["yield-without-await", "yielded-use"]),
        ("block entry { loop l (i in 0..2) { yield x; } await x; }", ["yield-without-await", "await-without-yield"]),
        ("block entry { } block c { await x; yield x; }", ["await-without-yield"]),
        ("block entry { yield x; await x; } block c { await x, y; yield x, y; }", ["await-without-yield"]),
        ("block entry { yield x; await x; } block c { await x; }", ["consumer-yield"]),
        ("block entry { yield x; await x; } block c { await x; yield x; barrier; }", ["dead-code"]),
        (
            "block entry { yield x; await x; } "
            "block c { await x; loop l (i in 0..2) { return; } yield x; }",
            ["consumer-yield"],
        ),
        ("block entry { yield x; await x; } block c { await x; await x; yield x; }", ["yield-place"]),
        ("block entry { assign t: f32; yield t; await t; }", ["yield-kind"]),
        ("block entry { yield x, x; await x; }", ["yield-twice", "yield-twice"]),
        ("block entry { branch c; } block c { await x; yield x; }", ["yield-place", "yield-place"]),
    ],
)  # fmt: skip
def test_blocks(blocks: str, expected: list[str]) -> None:
    assert sorted(slugs("volatile { x: f32; y: f32; } " + blocks)) == sorted(expected)


def test_an_entry_reads_the_extents_it_uses() -> None:
    declared = "dynamic { a: f32[N] @max(N=8); } volatile { v: f32[N]; } "
    assert slugs(declared + "block entry { op relu(a) >> v; }") == []
    assert slugs(declared + "block entry { op relu(v) >> v; }") == ["extent-without-input"]
    assert slugs(declared + "block entry @entry(N=2) { op relu(v) >> v; }") == []
    assert slugs(declared + "block entry { } block one @entry { loop l (i in 0..N) { } }") == [
        "extent-without-input"
    ]


def test_sizes_of_the_model_are_names() -> None:
    text = "block entry { loop l (i in 0..layers) { } }"
    assert slugs(text) == ["unknown-name"]
    assert slugs(text, ("layers",)) == []


def test_everything_checks() -> None:
    found = found_in(EVERYTHING, ["num_layers", "pos"])
    assert [(d.slug, d.span.text if d.span else "") for d in found] == [
        ("extent-without-input", "entry"),
        ("unknown-name", "l"),
        ("branch-to-entry", "no"),
        ("unknown-name", "l"),
    ]


def test_check_never_raises_and_is_in_order() -> None:
    found = check(parse(DECLARATIONS + "block entry { op relu(q) >> r; op relu(s) >> u; }")).diagnostics
    starts = [d.span.start for d in found if d.span]
    assert len(starts) == 4 and starts == sorted(starts)


def test_errors_beside_syntax_errors() -> None:
    """What is known to be wrong is told; what may follow from the syntax error is not."""
    text = "volatile { x: f32 y }; z: f32; } block entry { op relu(x) >> q; op relu(z) >> nope; }"
    assert "unknown-variable" in slugs("volatile { z: f32 } block entry { op relu(nope) >> z; }")
    assert slugs(text)[0] == "syntax"


SEVERAL_SECTIONS = """
graph decode {
  sizes { H = 8; Dh = D / H; }
  dynamic { x: f32[B, D]; }
  constant { W(l): f32[D, D] @pattern("W.{l}"); num_layers: u32; }
  volatile { y: f32[B, D]; }
  persistent { step: i32 @init(0); K(l, t): f16[H, Dh] @table @fixed(t=1024); }
  block entry {
    assign h: f32[B, D];
    transfer x >> h;
    loop layers (l in 0..num_layers) { op matmul(h, W[l]) >> h; }
    cache.increment step;
    transfer h >> y;
    return;
  }
}
"""


@pytest.mark.parametrize("at", range(len(pieces(SEVERAL_SECTIONS)) - 1))
def test_one_missing_token_is_one_mistake(at: int) -> None:
    """Whatever single token is left out, there is one diagnostic and no cascade."""
    gone = pieces(SEVERAL_SECTIONS)[at]
    text = SEVERAL_SECTIONS[: gone.start] + SEVERAL_SECTIONS[gone.end :]
    around = pieces(SEVERAL_SECTIONS)[at - 1].text + pieces(SEVERAL_SECTIONS)[at + 1].text
    may_go = "@" in gone.text or gone.text in ("return", "-") or around in (",)", ",]")
    assert len(slugs(text)) == 1 or (may_go and not slugs(text)), slugs(text)


# ---------------------------------------------------------------- sizes


def test_where_a_size_comes_from() -> None:
    graph = parse("sizes { A = B * 2; B = 3; C = A / Z; } block entry { }")
    assert size_values(graph, {}, {"B": 5, "X": 7}) == ({"A": 6, "B": 3, "X": 7}, [])
    assert size_values(graph, {"B": 4}, {"B": 5}) == ({"A": 8, "B": 4}, [])
    assert size_values(graph, {"A": 4}, {"Z": 2}) == ({"A": 4, "B": 3, "C": 2, "Z": 2}, [])


def test_all_wrong_sizes_are_told() -> None:
    text = "sizes { A = B; B = A; C = 7 / 2; D = 1 - 1; E = C + 1; F = F; G = A; }"
    found = [d.slug for d in size_values(parse(text), {"X": 0}, {})[1]]
    assert sorted(found) == [*["size-cycle"] * 2, "size-division", *["size-value"] * 2]


def test_a_cycle_of_sizes_that_need_others_too() -> None:
    """A size without a value beside it hides no cycle, which nothing that follows sizes could follow."""
    graph = parse("sizes { A = B + X; B = A; } volatile { y: f32[A]; } block entry { return; }")
    with pytest.raises(OicError) as caught:
        compile_graph(graph, None, Settings())
    assert [d.slug for d in caught.value.diagnostics] == ["size-cycle"]


def test_an_override_breaks_a_cycle() -> None:
    assert size_values(parse("sizes { A = B; B = A; }"), {"B": 2}, {}) == ({"A": 2, "B": 2}, [])


def test_a_long_chain_of_sizes() -> None:
    sizes = "".join(f"S{i} = S{i + 1} + 1; " for i in range(300))
    assert size_values(parse(f"sizes {{ {sizes} }}"), {"S300": 1}, {})[0]["S0"] == 301


def test_eval_dim() -> None:
    expr = parse("sizes { A = (B + 2) * -C / 3; }").sizes[0].value
    assert eval_dim(expr, {"B": 4, "C": 5}) == -10

    with pytest.raises(Refused):
        eval_dim(expr, {"B": 5, "C": 5})


# ---------------------------------------------------------------- any text at all

TOKENS = [p.text for p in pieces(EVERYTHING + DECLARATIONS)] + ["\n", "/*", '"', "0x", "é", "@"]


@settings(max_examples=300, deadline=None)
@given(st.integers(), st.integers(1, 6))
def test_mutated_sources(seed: int, count: int) -> None:
    """Tokens deleted, doubled, swapped or replaced, the text cut: diagnostics, and nothing else."""
    random_ = random.Random(seed)
    words = [p.text for p in pieces(EVERYTHING)]
    for _ in range(count):
        at, other = random_.randrange(len(words)), random_.randrange(len(words))
        match random_.randrange(6):
            case 0:
                del words[at]
            case 1:
                words.insert(at, words[at])
            case 2:
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at] = random_.choice(TOKENS)
            case 4:
                words.insert(at, random_.choice(TOKENS))
            case 5:
                words[at] = words[at][: random_.randrange(len(words[at]) + 1)] or ";"
    text = random_.choice([" ", "\n"]).join(words)
    everything_renders(text[: random_.randrange(len(text))] if seed % 5 == 0 else text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_random_characters(text: str) -> None:
    everything_renders(text)
    everything_renders("block entry { " + text + " }")


def everything_renders(text: str) -> None:
    for found in found_in(text):
        assert found.render()
        assert found.span is None or 0 <= found.span.start <= found.span.end <= len(text)


def test_near_names_of_tensors_are_looked_for_in_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tensors a model has, and however many of them are missing."""
    compared: list[int] = []
    plain = difflib.get_close_matches

    def counted(name: str, known: Collection[str], *how: Any, **more: Any) -> list[str]:
        compared.append(len(known))
        return plain(name, known, *how, **more)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    for tensors in (100, 2000, 20_000):
        compared.clear()
        model = Model({f"layers.{i}.w": np.zeros(1, np.float32) for i in range(tensors)})
        missing = " ".join(f"w{i}: f32[1] @ref(\"layers.{i}.v\");" for i in range(50))
        graph = parse(f"constant {{ {missing} }} block entry {{ return; }}")
        with pytest.raises(OicError) as caught:
            compile_graph(graph, model, Settings())
        hints = [str(d.hint) for d in caught.value.diagnostics]
        assert len(hints) == 50 and sum(compared) <= 5 * MOST_COMPARED
        assert hints[0].startswith("did you mean 'layers.0.w'" if tensors <= MOST_COMPARED else "it has 'layers.0.w'")


@pytest.mark.parametrize(("digits", "slug"), [(19, "missing-member"), (20, "missing-model-tensor"), (5000, "missing-model-tensor")])
def test_a_number_beyond_all_integers_is_no_index_of_a_member(digits: int, slug: str) -> None:
    model = Model({f"w.{'9' * digits}": np.zeros(1, np.float32)})
    graph = parse('constant { w(l): f32[1] @pattern("w.{l}"); } block entry { return; }')
    with pytest.raises(OicError) as caught:
        compile_graph(graph, model, Settings())
    assert [d.slug for d in caught.value.diagnostics] == [slug]


# ---------------------------------------------------------------- conformance


@needs_conformance
def test_conformance_graphs_are_not_refused() -> None:
    """A case that OpenInfer runs has no error here, the two aside whose mistake is in the text."""
    folder = conformance_dir()
    assert folder is not None
    refused = set()
    for path in sorted(folder.glob("openinfer/*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        text = path.with_name("graph.oi").read_text(encoding="utf-8")
        found = found_in(text, case["sizevars"])
        if "expect_compile_error" not in case and any(d.severity == "error" for d in found):
            refused.add(case["name"])
    assert refused <= {"run_index_float_counter", "run_reset_slice"}
