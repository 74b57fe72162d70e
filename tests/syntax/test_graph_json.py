"""Graphs as JSON and as text again: nothing is lost, and what is no graph is refused."""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import oic
from oic.syntax.unparse import unparse
from paths import ROOT, conformance_dir

CORPUS = conformance_dir()
GRAPHS = sorted(ROOT.glob("examples/**/*.oi")) + (
    sorted(CORPUS.rglob("graph.oi")) if CORPUS is not None else []
)
KITCHEN_SINK = """
graph everything {
  sizes { D = 2 * (3 - 1); H = D / 2; }
  dynamic { x: f32[N, D] @max(N=8); c: bool; }
  constant { W(l): f32[D, D] @pattern("W.{l}") @init(0.5); s: f32 @ref("a", "b.c") @init(inf); }
  volatile { y: f32[?, D]; z: f32[N, D]; a: f32[D]; }
  persistent { n: i32 @init(-1); K(l, t): f16[D] @table @fixed(l=2, t=H + 2); R(t): f32[D] @table @fixed(t=4) @ring(t); }
  block entry {
    assign t: f32[N, D];
    op clamp(x, min=-1.5, max=2.0) >> t;
    op split(t, axis=1, sizes=[2, D - 2]) >> z, z;
    loop outer (i in 0..2 * H) { loop inner (j in i - 1..N) { op add(t, W[i]) >> t; } }
    branch c yes no;
    branch yes;
    cache.increment 2 * n - 1 n;
    cache.decrement n;
    cache.read K[0, ..-1] >> y;
    cache.read K[n, ] >> y;
    cache.reset K[1];
    barrier;
    dep after(add) before(cache.read);
    yield a;
    await a;
    transfer t >> z;
    return;
  }
  block yes { return; }
  block no @entry(N=1) { }
  block w { await a; yield a; }
}
"""


@pytest.mark.parametrize("path", GRAPHS, ids=lambda p: p.parent.name)
def test_round_trip_of_real_graphs(path: Path) -> None:
    try:
        graph = oic.parse_file(path)
    except oic.OicError:
        return  # a case that is wrong on purpose
    assert_round_trip(graph)


def test_round_trip_of_every_construct() -> None:
    assert_round_trip(oic.parse(KITCHEN_SINK))


def assert_round_trip(graph: Any) -> None:
    data = json.loads(json.dumps(graph.to_json()))
    again = oic.Graph.from_json(data)
    assert again.to_json() == graph.to_json()
    del data["source"]
    made = oic.Graph.from_json(data)
    assert unparse(made) == unparse(graph)
    assert _nodes(made) == _nodes(graph)


def _nodes(graph: Any) -> Any:
    data = graph.to_json()
    del data["source"]
    return data


@pytest.mark.parametrize("name", ["my-graph.oi", "größe.oi", "1.oi", ".oi", "a b.oi", "block.oi", "a/b.c.oi"])
def test_round_trip_of_a_graph_that_is_named_by_its_file(name: str) -> None:
    graph = oic.parse("volatile { a: f32[2]; } block entry { return; }", name)
    assert_round_trip(graph)
    data = graph.to_json()
    data["name"] = "other-name"
    assert oic.Graph.from_json(data).name == "other-name"


def test_a_changed_node_wins_over_the_text() -> None:
    data = oic.parse("volatile { a: f32[2]; } block entry { return; }", "g.oi").to_json()
    data["declarations"][0]["name"] = "b"
    assert oic.Graph.from_json(data).declarations[0].name == "b"


@pytest.mark.parametrize("part", ["format", "version", "name", "declarations", "blocks"])
def test_damaged_json_is_refused(part: str) -> None:
    good = oic.parse("volatile { a: f32[2]; } block entry { return; }", "g.oi").to_json()
    for wrong in (None, 7, "x/y", "", [7], [{"node": "Nothing"}], {"node": "Int"}, [{"node": "Int"}]):
        data: dict[str, Any] = copy.deepcopy(good)
        data[part] = wrong
        with pytest.raises(oic.OicError):
            oic.Graph.from_json(data)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything inside."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize("wrong", ["\ud800", "x y", "%", 10**30, math.nan, None, [[1]], {"float": "nan"}, {"node": "Int", "value": -5}])
def test_whatever_is_anywhere_is_a_graph_or_refused(wrong: Any) -> None:
    """Nothing but OicError: not what Python says of a text or a number, which may be a mistake of ours."""
    good = oic.parse(KITCHEN_SINK).to_json()
    del good["source"]
    for *way, last in list(places(good))[:: 1 if wrong == "x y" else 7]:
        data = copy.deepcopy(good)
        inside = functools.reduce(lambda found, key: found[key], way, data)
        inside[last] = wrong
        with suppress(oic.OicError):
            oic.Graph.from_json(data)


def test_strings_of_any_characters_are_written_so_that_they_are_read() -> None:
    data = _nodes(oic.parse('constant { s: f32 @ref("?"); } block entry { return; }', "g.oi"))
    text = "".join(map(chr, [*range(0x100), 0x2028, 0xD800, 0xFEFF, 0x1F600]))
    given = json.loads(json.dumps(data).replace('"?"', json.dumps(text)))
    assert _nodes(oic.Graph.from_json(given)) == given


@pytest.mark.parametrize("text", ["größe", "a b", "^", "{", "1x", "", "a; barrier", "K[0]"])
def test_names_that_are_none_are_refused(text: str) -> None:
    """Wherever a node has a word: not taken for something else, nor refused at a place in a text that nobody wrote."""
    good = _nodes(oic.parse(KITCHEN_SINK))
    nodes = [node for node in _objects(good) if node.get("node", "Str") != "Str"]
    places = [(node, key) for node in nodes for key in node if isinstance(node[key], str)]
    for node, key in places:
        if node[key] == "temporary":
            continue  # `assign` says it, whatever the node does
        kept, node[key] = node[key], text
        with pytest.raises(oic.OicError) as caught:
            oic.Graph.from_json(good)
        node[key] = kept
        assert [d.slug for d in caught.value.diagnostics] == ["graph-json"], (node, key)
    assert len(places) > 80


def _objects(data: Any) -> Iterator[dict[str, Any]]:
    """Every object in JSON data."""
    if isinstance(data, dict):
        yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _objects(part)


@pytest.mark.parametrize("wrong", ["{", "9" * 5000, {"format": "oic.graph", "version": 10**5000}, {"format": {1}}])
def test_what_is_no_json_is_refused(wrong: Any) -> None:
    with pytest.raises(oic.OicError, match="not JSON"):
        oic.Graph.from_json(wrong)
