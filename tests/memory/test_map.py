"""The memory map: kinds and aliases of values, and the order that the picture is drawn in."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from oic.check.source import parse
from oic.diagnostics import OicError
from oic.driver import Settings, compile_graph
from oic.ir.liveness import liveness
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.memory.map import KINDS, Placed, memory_map
from tests.fuzz.generate import Options, generate

GRAPH = """
graph kinds {
  dynamic { x: f32[N, 4] @max(N=6); flag: bool; }
  constant { w: f32[4, 4] @init(0.5); }
  persistent { K(t): f32[4] @table @fixed(t=6); }
  volatile { y: f32[N, 4]; z: f32[N, 4]; last: f32[?, 4]; }
  block entry {
    assign h: f32[N, 4];
    assign a: f32[N, 4];
    assign flat: f32[N, 2, 2];
    op matmul(x, w) >> h;
    loop layers (l in 0..3) {
      op matmul(h, w) >> a;
      op softmax(a) >> a;
      op add(h, a) >> h;
    }
    op reshape(h, shape=[N, 2, 2]) >> flat;
    op softmax(flat) >> flat;
    op reshape(flat, shape=[N, 4]) >> y;
    transfer y >> z;
    branch flag left right;
    cache.write x >> K[0..N];
    cache.read K[0..N] >> last;
    return;
  }
  block left { op matmul(h, w) >> a; op matmul(a, w) >> a; op add(z, a) >> z; return; }
  block right { op matmul(h, w) >> z; return; }
}
"""


def planned(text: str, **settings: object) -> Module:
    return compile_graph(parse(text, "graph.oi"), None, Settings(**settings)).planned  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> dict[str, Placed]:
    return {v.name: v for v in memory_map(planned(GRAPH)).values}


def on(found: dict[str, Placed], line: int) -> dict[str, Placed]:
    """The values that a source line makes, by kind."""
    return {v.kind: v for v in found.values() if v.line == line}


def test_kinds_and_aliases(found: dict[str, Placed]) -> None:
    first = on(found, 11)["carried"]
    assert found[first.alias_of].kind == "carried"  # where the loop carries it
    assert on(found, 13)["value"].alias_of == ""
    over = on(found, 14)["in place"]
    assert over.alias_of == on(found, 13)["value"].name and over.buffer == on(found, 13)["value"].buffer
    turn = on(found, 15)["in place"]
    assert turn.buffer == first.buffer and found[turn.alias_of].kind == "carried"
    flat = on(found, 17)["view"]
    assert found[flat.alias_of].buffer == flat.buffer == first.buffer and flat.offset is None
    assert found["x"].kind == "input" and found["x"].space == "input"
    read = next(v for v in found.values() if v.space == "state")
    assert (read.kind, read.alias_of, read.buffer) == ("view", "K", "K")


@pytest.mark.parametrize("seed", range(12))
def test_the_map_is_that_of_the_program(seed: int) -> None:
    """Names are those of `oic ir`; a value lies in its buffer, as long as the buffer is live."""
    try:
        module = planned(generate(seed, Options(statements=40)))
    except OicError:
        pytest.skip("the language refuses it")
    assert module.plan is not None
    kept = {func: live.start for func, live in module.plan.live.items()}
    assert kept == {func: liveness(func.body).start for func in module.functions()}
    text, table = print_module(module), memory_map(module)
    read = memory_map(parse_module(text))  # there a variable has the name of its value, numbered where there are several
    named = (tuple(replace(s, state=re.sub(r"_\d+$", "", s.state)) for s in found.stores) for found in (read, table))
    assert len(set(named)) == 1 and replace(read, stores=table.stores) == table
    values = table.values
    assert len({(v.function, v.name) for v in values}) == len(values) > 0
    buffers = {(b.function, b.space, b.name): b for b in module.plan.buffers}
    known = {(v.function, v.name) for v in values}
    for v in values:
        assert f"%{v.name} = " in text or f"%{v.name}: " in text or f"%{v.name}, " in text, v
        assert v.kind in KINDS
        outside = f"\n%{v.alias_of} = " in text  # a variable or a constant
        assert v.alias_of == "" or outside or (v.function, v.alias_of) in known, v
        if v.kind in ("in place", "carried", "view"):
            assert v.alias_of or v.kind == "carried", v
        if v.space in ("arena", "output", "input"):
            buffer = buffers[v.function, v.space, v.buffer]
            assert v.start >= buffer.start and v.end <= buffer.end, v
            assert v.nbytes <= buffer.nbytes or v.kind == "view", v  # a view may repeat elements
            assert v.offset in (None, buffer.offset)
    for buffer in module.plan.space("arena"):
        kind = table.kind(buffer)
        assert (kind == "scratch") == (".scratch" in buffer.name), buffer


def test_copies_have_their_reason() -> None:
    text = GRAPH.replace("op softmax(flat) >> flat;", "").replace("transfer y >> z;", "transfer x >> z;")
    copies = [v for v in memory_map(planned(text)).values if v.kind == "copy"]
    assert copies and all(v.reason and v.nbytes for v in copies)


def test_order() -> None:
    (order,) = memory_map(planned(GRAPH)).orders
    loop = next(s for s in order.spans if s.kind == "loop")
    assert (loop.name, loop.line) == ("layers", 12) and 0 < loop.start < loop.end < order.positions
    assert any(s.kind == "branch" for s in order.spans)
    inside = [line for position, line in order.lines if loop.start < position < loop.end]
    assert inside == sorted(inside) and {13, 14, 15} <= set(inside)


def test_the_guide_names_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [k for k in KINDS if f"`{k}`" not in page] == []
