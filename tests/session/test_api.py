"""The Python interface (DESIGN, section 9): whatever executes, the same calls do the same.

Every test runs on the simulator of the graph as written, on the simulator of planned memory, and
on compiled C.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oic
from oic import dtypes
from oic.ir.core import Block

TEXT = """\
dynamic    { x: f32[N, D] @max(N=4); at: i32; nibbles: i4[3]; }
constant   { w: f32[D]; rate: f32 @ref("leak"); F(l): f32[D] @pattern("F.{l}"); }
volatile   {
  y: f32[N, D]; all: f32[?, D]; total: f32[D]; narrow: bf16[D]; twice: i4[3]; count: i32;
  idle: i32[2] @init(7);
}
persistent {
  step: i32 @init(0);
  sum: f32[D] @init(0.5);
  K(t): f32[D] @table @fixed(t=6);
}

block entry {
  assign h: f32[N, D];
  assign row: f32[D];
  op mul(x, w) >> h;
  op add(h, F[1]) >> y;
  cache.write y >> K[step..step+N];
  cache.increment N step;
  cache.read K[0..step] >> all;
  op sum_axis(h, axes=[0]) >> row;
  op mul(row, rate) >> row;
  cache.read sum >> total;
  op add(total, row) >> total;
  cache.write total >> sum;
  op cast(total, to=bf16) >> narrow;
  cache.read step >> count;
  return;
}

block put @entry {
  cache.write w >> K[at];
  return;
}

block double @entry {
  op add(nibbles, nibbles) >> twice;
  return;
}
"""

MODEL = {
    "w": np.array([2, 3], np.float32),
    "F.0": np.array([9, 9], np.float32),
    "F.1": np.array([10, 20], np.float32),
}
X = np.array([[1, 2], [3, 4]], np.float32)
Y = X * MODEL["w"] + MODEL["F.1"]
BACKENDS = ("graph", "planned", "c")


def line_of(text: str) -> int:
    """The source line of a piece of the graph."""
    return TEXT[: TEXT.index(text)].count("\n") + 1


def model() -> oic.Model:
    return oic.Model(tensors=MODEL, sizevars={"D": 2}, metadata={"leak": 0.25})


def maker(kind: str, graph: oic.Graph, model: oic.Model | None, **settings: Any) -> Any:
    """What makes executors of a backend."""
    if kind == "c":
        return oic.Synthesizer(graph, model, **settings).build()
    return oic.Simulator(graph, model, stage=kind, **settings)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    return maker(request.param, oic.parse(TEXT, name="api.oi"), model())


@pytest.fixture
def ex(backend: Any) -> Iterator[oic.Executor]:
    with backend.make_executor() as executor:
        yield executor


def refusal(error: pytest.ExceptionInfo[oic.StepError]) -> tuple[Any, ...]:
    """The fields of a refusal, its place as a line."""
    e = error.value
    return e.status, e.variable, e.index, e.bound, e.span.line if e.span else None


def state(ex: oic.Executor) -> dict[str, Any]:
    """All that survives a step."""
    return {name: ex.fetch(name).tolist() for name in ("step", "sum", "K")}


# ---------------------------------------------------------------- steps


def test_insert_step_fetch(ex: oic.Executor) -> None:
    ex.insert(x=X)
    out = ex.step()
    assert set(out) == {"y", "all", "total", "narrow", "count"}
    assert np.array_equal(out["y"], Y) and np.array_equal(out["all"], Y)
    assert out["y"].dtype == np.float32 and out["count"].dtype == np.int32
    assert out["count"].shape == () and int(out["count"]) == 2
    assert out["narrow"].dtype == ml_dtypes.bfloat16
    for name, array in out.items():
        assert np.array_equal(ex.fetch(name), array) and ex.fetch(name).dtype == array.dtype


def test_step_takes_inputs_and_an_entry(ex: oic.Executor) -> None:
    assert ex.step("put", at=3) == {}
    assert ex.fetch("K").tolist() == [[0, 0]] * 3 + [[2, 3]] + [[0, 0]] * 2
    nibbles = np.array([-4, 3, 5], ml_dtypes.int4)
    twice = ex.step("double", nibbles=nibbles)["twice"]
    assert twice.dtype == ml_dtypes.int4 and twice.tolist() == [-8, 6, -6]


def test_values_convert_where_nothing_is_lost(ex: oic.Executor) -> None:
    assert np.array_equal(ex.step(x=[[1, 2], [3, 4]])["y"], Y)
    assert ex.step("double", nibbles=[1, -1, 0])["twice"].tolist() == [2, -2, 0]
    ex.insert({"x": X[:1]})
    assert ex.step()["y"].tolist() == Y[:1].tolist()


@pytest.mark.parametrize("name", ["i4", "u2", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_both_ends_of_an_integer_type_are_numbers_of_it(name: str) -> None:
    """In one list, too, where NumPy takes floats if one is below 2^63 and the other is not."""
    low, high = dtypes.ALL[name].low, dtypes.ALL[name].high
    text = f"dynamic {{ x: {name}[2]; }} volatile {{ y: {name}[2]; }} block entry {{ transfer x >> y; }}"
    with oic.Simulator(oic.parse(text)).make_executor() as ex:
        assert ex.step(x=[low, high])["y"].tolist() == [low, high]
        for beyond in (low - 1, high + 1):
            with pytest.raises(oic.StepError, match=f"{beyond} is no value of {name}, the dtype of input 'x'") as refused:
                ex.step(x=[beyond, high])
            assert refused.value.index == beyond


def test_a_size_of_zero_is_a_size(ex: oic.Executor) -> None:
    out = ex.step(x=np.zeros((0, 2), np.float32))
    assert out["y"].shape == (0, 2) and out["all"].shape == (0, 2) and int(out["count"]) == 0


def test_inserted_values_last_for_one_step(ex: oic.Executor) -> None:
    ex.step(x=X)
    with pytest.raises(oic.StepError) as error:
        ex.step()
    assert refusal(error) == ("OIC_ERR_INPUT", "x", None, None, line_of("x: f32"))
    ex.insert(x=X)
    with pytest.raises(oic.StepError):
        ex.step("put", at=9)
    with pytest.raises(oic.StepError):
        ex.step()


def test_arrays_belong_to_the_caller(ex: oic.Executor) -> None:
    given = X.copy()
    ex.insert(x=given)
    given[:] = 99
    out = ex.step()
    assert np.array_equal(out["y"], Y)
    out["y"][:] = 0
    ex.fetch("all")[:] = 0
    ex.fetch("K")[:] = 0
    assert np.array_equal(ex.fetch("all"), Y) and np.array_equal(ex.fetch("K")[:2], Y)
    kept = ex.fetch("all")
    ex.step(x=X[:1])
    assert np.array_equal(kept, Y) and len(ex.fetch("all")) == 3


def test_a_step_leaves_its_inputs_as_they_are(ex: oic.Executor) -> None:
    """However they lie in memory, and though one that is alike is written over them when it is given next."""
    odd = np.zeros(X.nbytes + 1, np.uint8)[1:].view(X.dtype).reshape(X.shape)
    odd[:] = X
    for given in (X.copy(), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], odd):
        given.flags.writeable = False
        ex.reset()
        assert np.array_equal(ex.step(x=given)["y"], Y)
        ex.step(x=X + 1)
        assert np.array_equal(given, X)


# ---------------------------------------------------------------- fetch


def test_fetch_of_every_kind(ex: oic.Executor) -> None:
    assert ex.fetch("w").tolist() == [2, 3] and ex.fetch("rate") == np.float32(0.25)
    assert ex.fetch("F[0]").tolist() == [9, 9] and ex.fetch("F[1]").tolist() == [10, 20]
    assert ex.fetch("idle").tolist() == [7, 7]
    assert ex.fetch("step").shape == () and ex.fetch("sum").tolist() == [0.5, 0.5]
    assert ex.fetch("K").shape == (6, 2) and not ex.fetch("K").any()
    # before a step, a volatile variable has its starting value
    assert ex.fetch("total").tolist() == [0, 0] and ex.fetch("twice").dtype == ml_dtypes.int4
    ex.step(x=X)
    assert ex.fetch("K")[:2].tolist() == Y.tolist()
    assert ex.fetch("idle").tolist() == [7, 7]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("x", "fetch-dynamic"),
        ("nope", "unknown-variable"),
        ("F", "unknown-variable"),
        ("h", "unknown-variable"),
    ],
)
def test_fetch_refuses(ex: oic.Executor, name: str, slug: str) -> None:
    with pytest.raises(oic.OicError) as error:
        ex.fetch(name)
    assert [d.slug for d in error.value.diagnostics] == [slug]


@pytest.mark.parametrize("kind", BACKENDS)
def test_fetch_narrows_the_outputs(kind: str) -> None:
    settings = {"fetch": ["count"], "sizes": {"D": 2}}
    with maker(kind, oic.parse(TEXT), model(), **settings).make_executor() as ex:
        assert list(ex.step(x=X)) == ["count"]
        assert ex.fetch("count") == 2 and ex.fetch("K")[:2].tolist() == Y.tolist()
        with pytest.raises(oic.OicError, match="fetch-narrowed"):
            ex.fetch("y")


@pytest.mark.parametrize("fetch", [["y"], []])
def test_what_no_entry_writes_is_fetched_however_narrowed(fetch: list[str]) -> None:
    text = "volatile { y: f32; z: f32; h: f32 @init(3.0); } block entry { op neg(h) >> y; op exp(h) >> z; return; }"
    with oic.Simulator(oic.parse(text), fetch=fetch).make_executor() as ex:
        assert list(ex.step()) == fetch
        assert ex.fetch("h") == 3
        with pytest.raises(oic.OicError, match="fetch-narrowed"):
            ex.fetch("z")


# ---------------------------------------------------------------- refusals


BAD_INPUTS: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"z": 1}, ("OIC_ERR_INPUT", "z", None, None, None)),
    ({"w": MODEL["w"]}, ("OIC_ERR_INPUT", "w", None, None, line_of("w: f32"))),
    ({"x": X.astype(np.float64)}, ("OIC_ERR_INPUT", "x", None, None, line_of("x: f32"))),
    ({"at": 1.5}, ("OIC_ERR_INPUT", "at", None, None, line_of("x: f32"))),
    ({"at": 1 << 40}, ("OIC_ERR_INPUT", "at", 1 << 40, (1 << 31) - 1, line_of("x: f32"))),
    ({"x": X[0]}, ("OIC_ERR_SHAPE", "x", None, None, line_of("x: f32"))),
    ({"x": X[:, :1]}, ("OIC_ERR_SHAPE", "x", 1, 2, line_of("x: f32"))),
    ({"x": np.zeros((5, 2), np.float32)}, ("OIC_ERR_SHAPE", "x", 5, 4, None)),
]


@pytest.mark.parametrize(("given", "expected"), BAD_INPUTS)
def test_bad_inputs(ex: oic.Executor, given: dict[str, Any], expected: tuple[Any, ...]) -> None:
    ex.step(x=X[:1])
    before = state(ex)
    with pytest.raises(oic.StepError) as error:
        ex.step(**given)
    assert refusal(error) == expected
    assert state(ex) == before
    assert (
        error.value.status in str(error.value)
        and error.value.diagnostic().slug == error.value.status
    )
    ex.step(x=X[:1])


def test_a_full_table(ex: oic.Executor) -> None:
    for _ in range(2):
        ex.step(x=X)
    before = state(ex)
    with pytest.raises(oic.StepError) as error:
        ex.step(x=np.ones((3, 2), np.float32))
    assert refusal(error) == ("OIC_ERR_CACHE_FULL", "K.t", 7, 6, line_of("cache.write y"))
    assert "K[step..step+N]" in str(error.value)
    assert state(ex) == before
    assert len(ex.step(x=X)["all"]) == 6


@pytest.mark.parametrize(
    ("at", "status", "bound"), [(-1, "OIC_ERR_INDEX", 0), (6, "OIC_ERR_CACHE_FULL", 5)]
)
def test_a_bad_index(ex: oic.Executor, at: int, status: str, bound: int) -> None:
    before = state(ex)
    with pytest.raises(oic.StepError) as error:
        ex.step("put", at=at)
    assert refusal(error) == (status, "K.t", at, bound, line_of("cache.write w"))
    assert state(ex) == before


def test_messages_are_the_same(backend: Any) -> None:
    """What is said does not depend on what ran."""
    with backend.make_executor() as ex, pytest.raises(oic.StepError) as error:
        ex.step("put", at=6)
    assert error.value.message == "'K.t': 6 is above 5"


def test_unknown_entry(ex: oic.Executor) -> None:
    with pytest.raises(oic.OicError, match="did you mean 'put'"):
        ex.step("putt", at=1)


# ---------------------------------------------------------------- state


def test_reset(ex: oic.Executor) -> None:
    start = state(ex)
    ex.insert(at=1)
    first = ex.step(x=X)
    ex.insert(x=X)
    ex.reset()
    assert state(ex) == start and ex.fetch("total").tolist() == [0, 0]
    with pytest.raises(oic.StepError):
        ex.step()
    again = ex.step(x=X)
    assert all(np.array_equal(again[name], first[name]) for name in first)


def test_another_session_asks_nothing_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its steps need was found as the library was built; opening one of many takes what C takes."""
    text = (
        "dynamic { x: f32[N] @max(N=4); } volatile { y: f32[?]; } persistent { s: f32[4] @init(2.0); } "
        "block entry { op exp(x) >> y; op relu(y) >> y; return; }"
    )
    program = oic.Synthesizer(oic.parse(text)).build()

    def walked(block: Block) -> Any:
        raise AssertionError("the module is walked")

    for name in ("all_ops", "walk"):
        monkeypatch.setattr(Block, name, walked)
    with program.make_executor() as session:
        session.step(x=np.float32([0, 0]))
        assert session.fetch("y").tolist() == [1, 1] and session.fetch("s").tolist() == [2] * 4


def test_save_and_load(backend: Any, ex: oic.Executor) -> None:
    ex.step(x=X)
    saved, kept = ex.save(), state(ex)
    assert isinstance(saved, bytes)
    after = ex.step(x=X)
    ex.reset()
    ex.load(saved)
    assert state(ex) == kept
    assert ex.fetch("total").tolist() == [0, 0], "outputs are not state"
    assert ex.step(x=X)["total"].tolist() == after["total"].tolist()
    with backend.make_executor() as other:
        other.load(saved)
        assert other.step(x=X)["total"].tolist() == after["total"].tolist()


UNLOADED = {
    "empty": "this is not", "short": "damaged", "long": "damaged", "bit": "damaged", "header": "this is not",
    "other": "this is not",
}  # fmt: skip


@pytest.mark.parametrize("damage", UNLOADED)
def test_load_refuses_what_save_did_not_write(ex: oic.Executor, damage: str) -> None:
    """Every executor says the same of it."""
    ex.step(x=X)
    saved, before = ex.save(), state(ex)
    flipped = bytearray(saved)
    flipped[0 if damage == "header" else -1] ^= 1
    bad = {"empty": b"", "short": saved[:-1], "long": saved + b"\0", "other": b"x" * len(saved)}
    with pytest.raises(oic.StepError) as error:
        ex.load(bad.get(damage, bytes(flipped)))
    assert error.value.status == "OIC_ERR_STATE" and UNLOADED[damage] in str(error.value)
    assert state(ex) == before
    ex.step(x=X)


@pytest.mark.parametrize("kind", BACKENDS)
def test_load_refuses_the_state_of_another_graph(kind: str, ex: oic.Executor) -> None:
    other = TEXT.replace("sum: f32[D] @init(0.5)", "sum: i32[D]").replace(
        "cache.write total >> sum;", ""
    )
    other = other.replace("cache.read sum >> total;", "")
    with maker(kind, oic.parse(other), model()).make_executor() as stranger, pytest.raises(oic.StepError) as error:
        ex.load(stranger.save())
    assert error.value.status == "OIC_ERR_STATE" and "of another graph" in str(error.value)
    assert error.value.hint and "with their sizes" in error.value.hint


def test_fork(ex: oic.Executor) -> None:
    ex.step(x=X)
    before = state(ex)
    with ex.fork() as other:
        assert type(other) is type(ex) and state(other) == before
        other.step(x=X)
        assert state(ex) == before != state(other)
        ex.step("put", at=5)
        assert other.fetch("K")[5].tolist() == [0, 0]
    ex.step(x=X[:1])


def test_sessions_are_apart(backend: Any) -> None:
    with backend.make_executor() as one, backend.make_executor() as two:
        one.step(x=X)
        assert int(two.fetch("step")) == 0 and int(one.fetch("step")) == 2


# ---------------------------------------------------------------- trace and life


def test_trace(ex: oic.Executor) -> None:
    assert list(ex.trace()) == []
    ex.step(x=X)
    records = list(ex.trace())
    assert {r.block for r in records} == {"entry"}
    assert {r.line for r in records} == set(
        range(line_of("op mul(x"), line_of("cache.read step") + 1)
    )
    first = records[0]
    assert (first.line, first.operator, first.result) == (line_of("op mul(x"), "mul", "h")
    assert first.operands == ("x", "w")
    written = {r.line: r for r in records}[line_of("cache.write y")]
    assert written.operator == "cache.write" and written.operands[:2] == ("K", "y")
    assert all(math.isnan(r.microseconds) or r.microseconds >= 0 for r in records)
    ex.step("put", at=0)
    assert {r.block for r in ex.trace()} == {"put"}


def test_close(backend: Any) -> None:
    ex = backend.make_executor()
    with ex as same:
        assert same is ex
    ex.close()
    for call in (
        lambda: ex.insert(x=X), ex.step, lambda: ex.fetch("w"), ex.reset, ex.save, ex.fork,
        lambda: ex.load(b""), ex.trace,
    ):  # fmt: skip
        with pytest.raises(oic.OicError, match="session-closed"):
            call()


def test_a_session_has_one_object(backend: Any) -> None:
    """A copy would close it when it goes, with the memory that the other runs on."""
    with backend.make_executor() as ex:
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"fork\(\) gives another"):
                copied(ex)
        ex.step(x=X)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_is_made_again_elsewhere_says_so(copied: Any) -> None:
    """Programs have a library or arrays of their own, and models files that are mapped."""
    graph = oic.parse("volatile { y: f32 @init(1.0); } block entry { return; }")
    for value, said in (
        (oic.Model({"w": X}), "another process opens it"), (oic.Simulator(graph), "another process makes it of the graph"),
        (oic.Synthesizer(graph), "another process builds it again"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"cannot be copied or pickled: {said}"):
            copied(value)
    assert copied(graph)


def test_refusals_travel_between_processes(ex: oic.Executor) -> None:
    """A pool of processes hands on what its workers raise as pickled bytes, and is broken where that fails."""
    for call in (lambda: ex.step("put", at=9), lambda: ex.step("putt"), lambda: oic.parse("block")):
        with pytest.raises(oic.Refusal) as raised:
            call()
        for other in (pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
            assert type(other) is type(raised.value) and str(other) == str(raised.value)
            assert vars(other).keys() == vars(raised.value).keys()
            assert getattr(other, "index", None) == getattr(raised.value, "index", None)


def test_an_exception_closes_the_session(backend: Any) -> None:
    with pytest.raises(ZeroDivisionError), backend.make_executor() as ex:
        raise ZeroDivisionError
    with pytest.raises(oic.OicError):
        ex.step(x=X)


# ---------------------------------------------------------------- graphs and settings


def test_graph_survives_json(backend: Any) -> None:
    graph = oic.parse(TEXT, name="api.oi")
    text = json.dumps(graph.to_json())
    again = oic.Graph.from_json(text)
    assert json.dumps(again.to_json()) == text
    assert json.dumps(oic.Graph.from_json(graph.to_json()).to_json()) == text
    with oic.Simulator(again, model()).make_executor() as one, backend.make_executor() as two:
        assert one.step(x=X)["all"].tolist() == two.step(x=X)["all"].tolist()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"node": "Graph"}', '{"node": "Loop"}', "nonsense"]
)
def test_json_that_is_no_graph(text: str) -> None:
    with pytest.raises(oic.OicError) as error:
        oic.Graph.from_json(text)
    assert error.value.diagnostics[0].slug == "graph-json"


@pytest.mark.parametrize("kind", BACKENDS)
def test_sizes_and_capacity(kind: str) -> None:
    text = """dynamic { x: f32[D]; } volatile { all: f32[?, D]; } persistent { n: i32; K(t): f32[D] @table; }
    block entry { cache.write x >> K[n]; cache.increment n; cache.read K[] >> all; return; }"""
    made = maker(kind, oic.parse(text, name="grow.oi"), None, sizes={"D": 3}, capacity={"t": 2})
    with made.make_executor() as ex:
        for count in (1, 2):
            assert ex.step(x=np.ones(3, np.float32))["all"].shape == (count, 3)
        assert ex.fetch("K").shape == (2, 3)
        with pytest.raises(oic.StepError) as error:
            ex.step(x=np.ones(3, np.float32))
        assert refusal(error) == ("OIC_ERR_CACHE_FULL", "K.t", 2, 1, 2)


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize(
    ("settings", "slug"),
    [
        ({"sizes": {"Q": 1}}, "size-unknown"),
        ({"sizes": {"D": 0}}, "size-value"),
        ({"capacity": {"q": 1}}, "capacity-unknown-index"),
        ({"fetch": ["nope"]}, "unknown-output"),
    ],
)
def test_settings_are_checked(kind: str, settings: dict[str, Any], slug: str) -> None:
    with pytest.raises(oic.OicError) as error:
        maker(kind, oic.parse(TEXT), model(), **settings)
    assert slug in {d.slug for d in error.value.diagnostics}


@pytest.mark.parametrize(
    ("make", "slug"),
    [
        (lambda g: oic.Simulator(g, stage="indexed"), "unknown-stage"),
        (lambda g: oic.Synthesizer(g, target="toaster"), "unknown-target"),
        (lambda g: oic.Synthesizer(g, weights_as="paper").build(), "weights-mode"),
        (lambda g: oic.Synthesizer(g, target="freestanding").build(), "target-not-here"),
    ],
)
def test_settings_of_one_backend(make: Any, slug: str) -> None:
    graph = oic.parse("volatile { y: f32 @init(1.0); } block entry { op add(y, y) >> y; return; }")
    with pytest.raises(oic.OicError) as error:
        make(graph)
    assert error.value.diagnostics[0].slug == slug


def test_warnings_and_emit(tmp_path: Path) -> None:
    graph = oic.parse(
        "volatile { y: f32; } block entry { op add(y, y) >> y; return; }", name="w.oi"
    )
    assert oic.Simulator(graph).warnings
    files = oic.Synthesizer(graph, target="freestanding").emit(tmp_path)
    assert {p.name for p in files.paths} >= {"w.h", "w.c", "Makefile"}
    assert all(p.is_file() for p in files.paths)


def test_parse_errors_carry_diagnostics(tmp_path: Path) -> None:
    with pytest.raises(oic.OicError) as error:
        oic.parse("block entry { op add(x >> y; }", name="bad.oi")
    d = error.value.diagnostics[0]
    assert d.slug and d.message and d.span is not None and str(d.span).startswith("bad.oi:1:")
    assert d.render() in str(error.value)
    for path in (tmp_path / "nope.oi", tmp_path):
        with pytest.raises(oic.OicError, match="source-open"):
            oic.parse_file(path)


def test_what_is_refused_is_not_copied_first() -> None:
    """A view that repeats its elements may be larger than all memory."""
    graph = oic.parse("dynamic { x: f32[N, 64] @max(N=4); } volatile { y: f32[N, 64]; } block entry { op neg(x) >> y; return; }")
    with oic.Simulator(graph).make_executor() as ex:
        for shape in ((1 << 40, 64), (4, 1 << 40), (1 << 40,)):
            with pytest.raises(oic.StepError, match="OIC_ERR_SHAPE"):
                ex.insert(x=np.broadcast_to(np.float32(1), shape))


def test_masked_elements_are_refused() -> None:
    graph = oic.parse("dynamic { x: f32[2]; } volatile { y: f32[2]; } block entry { op neg(x) >> y; return; }")
    with oic.Simulator(graph).make_executor() as ex:
        with pytest.raises(oic.StepError, match="masked"):
            ex.step(x=np.ma.array(np.ones(2, np.float32), mask=[False, True]))
        assert ex.step(x=np.ma.array(np.ones(2, np.float32)))["y"].tolist() == [-1, -1]


def test_weights_that_cannot_be_opened_are_a_refusal(tmp_path: Path) -> None:
    graph = oic.parse("constant { w: f32[2]; } volatile { y: f32[2]; } block entry { op neg(w) >> y; return; }")
    maker = oic.Synthesizer(graph, oic.Model(tensors={"w": np.ones(2, np.float32)})).build(tmp_path / "out")
    weights = maker.library.files.weights
    whole = weights.read_bytes()
    damaged = [bytes([*whole[:i], whole[i] ^ 1, *whole[i + 1 :]]) for i in range(len(whole))]
    for content in (whole[:70], *damaged):
        weights.write_bytes(content)
        with pytest.raises(oic.StepError, match="OIC_ERR_WEIGHTS"):
            maker.make_executor()


def test_sessions_of_a_library_have_its_weights_once(tmp_path: Path) -> None:
    """They are mapped while one of them is open, whichever it is, and checked when they are mapped."""
    graph = oic.parse("constant { w: f32[2]; } volatile { y: f32[2]; } block entry { op neg(w) >> y; return; }")
    maker = oic.Synthesizer(graph, oic.Model(tensors={"w": np.ones(2, np.float32)})).build(tmp_path / "out")
    for _ in range(2):
        first = maker.make_executor()
        others = [maker.make_executor(), first.fork()]
        assert len({ex._session.weights for ex in (first, *others)}) == 1
        first.close()
        del first
        others.append(others[0].fork())
        for ex in others:
            assert ex.step()["y"].tolist() == [-1, -1]
            ex.close()
        assert not maker.library.shared
    weights = maker.library.files.weights
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    with pytest.raises(oic.StepError, match="OIC_ERR_WEIGHTS"):
        maker.make_executor()


MEMORY = """
import sys, resource, oic
kind, graph = sys.argv[1], oic.parse(
    "dynamic { x: f32[4]; } persistent { K(t): f32[4] @table; n: i32; } "
    "block entry { cache.write x >> K[n]; cache.increment n; return; }")
maker = oic.Synthesizer(graph).build() if kind == "c" else oic.Simulator(graph, stage="planned")
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
try:
    maker.make_executor()
except oic.StepError as error:
    print(error.status, end="")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux only")
@pytest.mark.parametrize("kind", ["c", "planned"])
def test_memory_that_cannot_be_reserved_is_a_refusal(kind: str) -> None:
    """64 GiB of address space are wanted for a table without a bound."""
    done = subprocess.run([sys.executable, "-c", MEMORY, kind], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("OIC_ERR_MEMORY", "")
