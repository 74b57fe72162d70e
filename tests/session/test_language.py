"""What the language says, in every executor: values derived by hand, in the Simulator and in C.

Every program runs over GRAPH, over PLANNED, and as C; all of them are compiled together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from oic import StepError, dtypes
from oic.frontend.graph_json import from_json, to_json
from oic.frontend.unparse import unparse

Step = tuple[dict[str, Any], dict[str, Any] | str]


@dataclass(frozen=True)
class Program:
    """A graph with the steps of one session: inputs, and outputs or the status of a refusal.

    fetched   what `fetch` gives in the end
    """

    text: str
    steps: list[Step]
    model: dict[str, Any] = field(default_factory=dict)
    fetched: dict[str, Any] = field(default_factory=dict)


F = np.float32
STACKED = np.arange(12, dtype=F).reshape(3, 2, 2)

PROGRAMS = {
    "stacked": Program(
        """dynamic { i: i32; } constant { W(l): f32[D, D] @ref(w); one(l): f32 @ref(gone, "b.w"); }
        volatile { y: f32[D, D]; a: f32[D, D]; z: f32; }
        block entry {
          transfer W[1] >> a;
          loop l (l in 0..2) { op add(a, W[l + 1],) >> a; }
          op mul(W[i], one[i]) >> y;
          transfer one[2 - i] >> z;
          return;
        }""",
        [
            ({"i": 0}, {"y": [[0, 1], [2, 3]], "a": [[16, 19], [22, 25]], "z": 4}),
            ({"i": 2}, {"y": [[32, 36], [40, 44]], "a": [[16, 19], [22, 25]], "z": 1}),
            ({"i": 3}, "OIC_ERR_INDEX"),
            ({"i": -1}, "OIC_ERR_INDEX"),
        ],
        {"w": STACKED, "b.w": np.array([1, 2, 4], F)},
        {"W": STACKED, "one": [1, 2, 4]},
    ),
    "stacked_twice": Program(
        """dynamic { i: i32; j: i32; } constant { W(l, m): i32[S]; P(l): u4[3]; T(l): i2[5]; }
        volatile { y: i32[S]; p: u4[3]; t: i2[5]; }
        block entry { op neg(W[i, j * 2]) >> y; op min(P[i], P[1]) >> p; transfer T[j] >> t; return; }""",
        [
            ({"i": 1, "j": 1}, {"y": [-10, -11], "p": [9, 8, 7], "t": [1, -1, -1, 0, 1]}),
            ({"i": 0, "j": 0}, {"y": [0, -1], "p": [1, 2, 3], "t": [1, 1, -2, 1, -1]}),
            ({"i": 0, "j": 2}, "OIC_ERR_INDEX"),
        ],
        {
            "W": np.arange(12, dtype=np.int16).reshape(2, 3, 2),
            "P": np.array([[1, 2, 3], [9, 8, 7]], dtypes.u4.np),
            "T": np.array([[1, 1, -2, 1, -1], [1, -1, -1, 0, 1]], dtypes.i2.np),
        },
    ),
    "stacked_single": Program(
        """dynamic { i: i32; } constant { W(l): f32; V(l): f32[2] @init(1.5); }
        volatile { y: f32; z: f32[2]; }
        block entry { op neg(W[i]) >> y; op neg(V[i]) >> z; return; }""",
        [({"i": 0}, {"y": -3, "z": [-1.5, -1.5]}), ({"i": 1}, "OIC_ERR_INDEX")],
        {"W": np.array([3], F)},
    ),
    "empty_positions": Program(
        """persistent { B(i, j): i32 @table @fixed(i=3, j=2); }
        volatile { row: i32[?]; all: i32[?, ?]; col: i32[?]; }
        block entry {
          loop r (r in 0..3) { loop c (c in 0..2) { assign v: i32; op fill(v, value=r * 10 + c,) >> v;
            cache.write v >> B[r, c]; } }
          cache.read B[2,] >> row; cache.read B[] >> all; cache.read B[,1] >> col;
          return;
        }""",
        [({}, {"row": [20, 21], "all": [[0, 1], [10, 11], [20, 21]], "col": [1, 11, 21]})],
    ),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Every program over GRAPH, over PLANNED and compiled."""
    made: dict[str, list[Any]] = {}
    for name, program in PROGRAMS.items():
        graph, model = oic.parse(program.text, f"{name}.oi"), oic.Model(program.model)
        made[name] = [oic.Simulator(graph, model, stage=stage) for stage in ("graph", "planned")]
        made[name].append(oic.Synthesizer(graph, model))
    build_together([three[2] for three in made.values()], Path(tmp_path_factory.mktemp("c")))
    yield made


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["graph", "planned", "c"])
def test_values(name: str, kind: int, built: dict[str, list[Any]]) -> None:
    program = PROGRAMS[name]
    with built[name][kind].make_executor() as session:
        for inputs, wanted in program.steps:
            if isinstance(wanted, str):
                with pytest.raises(StepError) as caught:
                    session.step(**inputs)
                assert caught.value.status == wanted
                continue
            found = session.step(**inputs)
            for key, value in wanted.items():
                exact = np.asarray(value).astype(found[key].dtype)
                np.testing.assert_array_equal(found[key], exact, err_msg=key)
                assert found[key].shape == exact.shape, key
        for key, value in program.fetched.items():
            np.testing.assert_array_equal(session.fetch(key), value, err_msg=key)


@pytest.mark.parametrize("name", PROGRAMS)
def test_round_trips(name: str) -> None:
    """Text and JSON of a graph are the graph."""
    graph = oic.parse(PROGRAMS[name].text, f"{name}.oi")
    again = unparse(graph)
    assert unparse(oic.parse(again)) == again
    data = to_json(graph)
    assert unparse(from_json({k: v for k, v in data.items() if k != "source"})) == again
    assert unparse(from_json(data)) == again


def test_an_index_of_a_stack_is_named(built: dict[str, list[Any]]) -> None:
    """A refusal says which variable, which index, and what it may be."""
    for made in built["stacked"]:
        with made.make_executor() as session, pytest.raises(StepError) as caught:
            session.step(i=3)
        error = caught.value
        assert (error.variable, error.index, error.bound) == ("W", 3, 2)


def test_members_of_a_stack_are_views() -> None:
    """No byte of the weights is copied for W[l], whatever the index."""
    program = PROGRAMS["stacked"]
    planned = oic.Simulator(oic.parse(program.text), oic.Model(program.model)).program.planned
    selected = [op for op in planned.all_ops() if op.name == "constant.select"]
    assert len(selected) >= 4
    assert planned.weights["W"] is not None and planned.weights["W"].shape == (3, 2, 2)
