"""Positions taken back: the state is, in every byte that is saved, that of a session which was never fed them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from oic.session.synthesizer import status_names

pytestmark = pytest.mark.xdist_group("truncate-session")

ROOM = 8
CUTS = [(a, n) for a in range(ROOM + 1) for n in range(a + 1)]  # positions fed, and taken back
HEAD = "dynamic { x: f32[N, 2] @max(N=8); row: f32[2]; keep: bool; } volatile { y: f32[?, 2]; }"
ONE_BY_ONE = """
    loop each (i in 0..N) {
      assign r: f32[1, 2]; assign e: f32[2];
      op slice(x, axis=0, start=i, end=i+1) >> r; op reshape(r, shape=[2]) >> e;
      """
GRAPHS = {
    "fixed": """persistent { n: i32; K(l, t): f32[2] @table @fixed(l=3, t=8); V(t, l): f32[2] @table @fixed(l=3, t=8); }
      block entry {
        loop layers (l in 0..3) {
          cache.write x >> K[l, n..n+N];
          cache.read K[l, 0..n+N] >> y;
          """ + ONE_BY_ONE + """cache.write e >> V[n + i, l]; }
        }
        cache.increment N n; return; }""",
    "started": """persistent { n: i16 @init(2); K(l, t): f32[2] @table @init(1.5) @fixed(l=2, t=10); }
      block entry { loop a (l in 0..2) { cache.write x >> K[l, n..n+N]; } cache.increment N n; return; }""",
    "grown": """persistent { n: i64; K(l, t): f32[2] @table @init(1.5); V(t): f16[2] @table; }
      block entry {
        assign h: f16[N, 2]; op cast(x, to=f16) >> h;
        loop layers (l in 0..3) { cache.write x >> K[l, n..n+N]; cache.read K[l, 0..n+N] >> y; }
        cache.increment N n; cache.write h >> V[n-N..n]; return; }""",
    "bounded": """persistent { n: u8; K(t): f32[2] @table @fixed(t=8); S(t): i4[3] @table @fixed(t=9) @init(3); }
      block entry {
        assign s: i4[N, 3];
        cache.write x >> K[n..n+N]; cache.write s >> S[n..n+N]; cache.increment N n; return; }""",
    "ring": """persistent { n: i32; R(l, t): f32[2] @table @fixed(l=2, t=6) @ring(t) @init(0.5); }
      block entry {
        loop layers (l in 0..2) { cache.write x >> R[l, n..n+N]; cache.read R[l, -6..] >> y; }
        cache.increment N n; return; }""",
    "turns": """persistent { n: i32; K(t): f32[2] @table; }
      block entry {""" + ONE_BY_ONE + """cache.write e >> K[n]; cache.increment n; }
        return; }""",
    "branch": """persistent { n: i32; K(t): f32[2] @table @fixed(t=8); }
      block entry {""" + ONE_BY_ONE + """branch keep written left; cache.increment n; }
        return; }
      block written { cache.write e >> K[n]; return; }
      block left { return; }""",
    "encoder": """persistent { n: i32; K(t): f32[2] @table; X(l): f32[2] @table @fixed(l=1); h: f32[2]; }
      block entry { cache.write x >> K[n..n+N]; cache.increment N n; cache.read K[..] >> y; return; }
      block encode @entry { cache.reset n; cache.reset K; cache.write row >> X[0]; cache.write row >> h; return; }""",
}  # fmt: skip


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def makers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Of every graph all three backends."""
    graphs = {name: oic.parse(HEAD + text, name=f"{name}.oi") for name, text in GRAPHS.items()}
    built = {name: oic.Synthesizer(graph, name=name) for name, graph in graphs.items()}
    build_together(list(built.values()), tmp_path_factory.mktemp("truncate"))
    return {
        name: [oic.Simulator(graph), oic.Simulator(graph, stage="planned"), built[name]]
        for name, graph in graphs.items()
    }


def way(a: int, n: int) -> list[int]:
    """How `a` positions are fed: at once, one by one, in two parts."""
    return ([a], [1] * a, [a // 3, a - a // 3])[n % 3]


def fed(executor: oic.Executor, rows: np.ndarray, parts: list[int]) -> oic.Executor:
    """An executor fed some rows and nothing else; steps of no position are left out."""
    executor.reset()
    if "encode" in executor.interface.entries:
        executor.step("encode", row=[1, 2])
    at = 0
    for n in filter(None, parts):
        step(executor, rows[at : at + n])
        at += n
    return executor


def step(executor: oic.Executor, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Feed rows at once; where a row decides what is written of it, one by one."""
    if "keep" not in executor.interface.entries["entry"].inputs:
        return executor.step(x=rows)
    for row in rows:
        executor.step(x=row[None], keep=bool(row[0] > 0))
    return {}


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_taken_back_was_never_there(name: str, makers: dict[str, list[Any]], rng: np.random.Generator) -> None:
    """At every position, for every number; and the same rows fed again give the state that was left."""
    rows = rng.standard_normal((ROOM, 2)).astype(np.float32)
    with makers[name][0].make_executor() as reference:
        after = [fed(reference, rows, [a]).save() for a in range(ROOM + 1)]
    for maker in makers[name]:
        with maker.make_executor() as executor:
            for a, n in CUTS:
                assert fed(executor, rows, way(a, n)).save() == after[a]
                if name == "ring" and a > 6 and 0 < n < a:
                    assert_overwritten(executor, n, a)
                    continue
                executor.truncate(n)
                assert executor.save() == after[a - n], (a, n)
                if n:
                    step(executor, rows[a - n : a])
                    assert executor.save() == after[a], (a, n)


def assert_overwritten(executor: oic.Executor, n: int, a: int) -> None:
    """A ring of 6 has not what it would have to bring back; nothing has changed."""
    saved = executor.save()
    with pytest.raises(oic.StepError) as refused:
        executor.truncate(n)
    found = refused.value
    assert (found.status, found.variable, found.index, found.bound) == ("OIC_ERR_INDEX", "R.t", max(0, a - n - 6), a - 6)
    assert executor.save() == saved


def test_what_an_encoder_wrote_stays(makers: dict[str, list[Any]]) -> None:
    for maker in makers["encoder"]:
        with maker.make_executor() as executor:
            fed(executor, np.ones((4, 2), np.float32), [4])
            executor.truncate(3)
            assert executor.fetch("h").tolist() == executor.fetch("X")[0].tolist() == [1, 2]
            assert executor.fetch("K").shape == (1, 2)


@pytest.mark.parametrize("n", [-1, 6, 1 << 62, -(1 << 62)])
def test_more_than_there_are_is_refused_alike(n: int, makers: dict[str, list[Any]]) -> None:
    messages = set()
    for maker in makers["fixed"]:
        with maker.make_executor() as executor:
            saved = fed(executor, np.ones((5, 2), np.float32), [5]).save()
            with pytest.raises(oic.StepError) as refused:
                executor.truncate(n)
            found = refused.value
            messages.add((str(found), found.status, found.variable, found.index, found.bound))
            assert executor.save() == saved
    assert len(messages) == 1
    assert messages.pop()[1:] == ("OIC_ERR_INDEX", "n", n, 0 if n < 0 else 5)


@pytest.mark.parametrize("n", [1.0, "1", None, True, 1 << 63])
def test_what_is_no_number_is_refused(n: Any, makers: dict[str, list[Any]]) -> None:
    for maker in makers["fixed"]:
        with maker.make_executor() as executor, pytest.raises(oic.StepError) as refused:
            executor.truncate(n)
        assert refused.value.status == "OIC_ERR_INPUT"


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32"])
def test_a_counter_that_wrapped_is_refused_alike(dtype: str) -> None:
    """It is below its start then, and nobody knows what lies before."""
    start = {"i8": 126, "u8": 254, "i32": (1 << 31) - 2}[dtype]
    text = (
        f"dynamic {{ row: f32[2]; }} persistent {{ n: {dtype} @init({start}); R(t): f32[2] @table @fixed(t=3) @ring(t); }}"
        " block entry { cache.write row >> R[n]; cache.increment n; }"
    )
    messages = set()
    makers: list[Any] = [oic.Simulator(oic.parse(text), stage=stage) for stage in ("graph", "planned")]
    for maker in [*makers, oic.Synthesizer(oic.parse(text))]:
        with maker.make_executor() as executor:
            for _ in range(2):
                executor.step(row=np.ones(2, np.float32))
            saved = executor.save()
            for n in (0, 1, 5, -1):
                with pytest.raises(oic.StepError, match="OIC_ERR_STATE.*it wrapped") as refused:
                    executor.truncate(n)
                messages.add(str(refused.value))
            assert executor.save() == saved
            executor.reset()
            executor.truncate(0)
    assert len(messages) == 1


def test_memory_that_was_changed_is_noticed(makers: dict[str, list[Any]]) -> None:
    """A counter below its start, a count that is none: refused, with nothing written."""
    with makers["started"][2].make_executor() as executor:
        fed(executor, np.ones((5, 2), np.float32), [5])
        executor._session.state.n = -3
        with pytest.raises(oic.StepError, match="'n'"):
            executor.truncate(1)
        executor._session.state.n = 1 << 14  # beyond the table: what is in it is cleared, and no more
        executor.truncate(1)
    with makers["grown"][2].make_executor() as executor:
        fed(executor, np.ones((5, 2), np.float32), [5])
        state = executor._session.state
        count = "K_t"  # a member of the structure that the library has
        setattr(state, count, getattr(state, count) ^ 1 << 40)
        with pytest.raises(oic.StepError, match="OIC_ERR_STATE"):
            executor.truncate(1)


def test_a_library_answers_without_a_state(makers: dict[str, list[Any]]) -> None:
    library = makers["fixed"][2].library
    truncate, session = library.lib.fixed_truncate, library.ffi.new("fixed_session *")
    names = [status_names()[truncate(s, 1)] for s in (library.ffi.NULL, session)]
    assert names == ["OIC_ERR_INPUT", "OIC_ERR_STATE"]


REFUSED = {
    "nothing counts": ("persistent { h: f32[2]; } block entry { cache.write row >> h; return; }", "no integer of the state"),
    "recurrent": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); h: f32[2]; } block entry { cache.write row >> K[n];\n"
        "cache.write row >> h; cache.increment n; return; }", "'h' is written in line 2"),
    "another counter": (
        "persistent { n: i32; m: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n]; cache.increment n; cache.increment 2 m; return; }", "'m' is written"),
    "elsewhere": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n]; cache.write row >> K[0]; cache.increment n; return; }", "'n' does not say"),
    "before": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n - 1]; cache.increment n; return; }", "'K' is written beside"),
    "beyond": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n + 1]; cache.increment n; return; }", "'K' is written beside"),
    "twice": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[2 * n]; cache.increment n; return; }", "'n' does not say"),
    "set": (
        "dynamic { to: i32; } persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n]; cache.increment n; return; } block go @entry { cache.write to >> n; return; }",
        "'n' is set"),
    "down": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n]; cache.increment n; return; } block back @entry { cache.decrement n; return; }",
        "'n' may be counted down"),
    "reset alone": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n]; cache.increment n; return; } block again @entry { cache.reset n; return; }",
        "'n' is reset without 'K'"),
    "reset of one": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[n]; cache.increment n; return; } block one @entry { cache.reset K[0]; return; }",
        "reset one by one"),
    "sometimes": (
        "persistent { n: i32; K(t): f32[2] @table; } block entry { branch keep yes no; cache.increment n; return; }"
        "block yes { cache.write row >> K[n]; return; } block no { return; }", "'K' is not written alike"),
    "unlike": (
        "persistent { n: i32; K(l, t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[0, n]; cache.increment n; return; }"
        "block two @entry { cache.write row >> K[1, n]; cache.increment n; return; }", "'K' is not written alike"),
    "read beyond": (
        "dynamic { at: i32; } persistent { n: i32; K(l, t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[0, n]; assign k: f32[?, 2]; cache.read K[at, 0..n] >> k;"
        "cache.increment n; transfer k >> y; return; }", "a read may raise a count of 'K'"),
    "read apart": (
        "persistent { n: i32; K(l, t): f32[2] @table @fixed(t=4); }"
        "block entry { cache.write row >> K[0, n]; cache.increment n; return; }"
        "block look @entry { cache.read K[0, 0..n] >> y; return; }", "may raise a count of 'K'"),
    "matrix": (
        "persistent { n: i32; M(r): f32[0, 2] @auto_dim(r, c); }".replace("M(r)", "M(r, c)") +
        "block entry { assign m: f32[?, 2]; cache.read M[n, 0] >> m; cache.write m >> M[n, 0]; cache.increment n; return; }",
        "one matrix that grows"),
    "read and kept": (
        "persistent { n: i32; K(t): f32[2] @table @fixed(t=4); c: i32; }"
        "block entry { cache.write row >> K[n]; cache.increment n; return; }"
        "block note @entry { assign i: i32; cache.read n >> i; cache.write i >> c; return; }", "'c' is written"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_why_not_is_said(name: str, tmp_path: Path) -> None:
    """By the executor of any backend, and in the header."""
    text, reason = REFUSED[name]
    graph = oic.parse(HEAD + text, name="why.oi")
    with oic.Simulator(graph).make_executor() as executor, pytest.raises(oic.OicError, match="truncate") as refused:
        executor.truncate(1)
    message = refused.value.diagnostics[0].message
    assert reason in message and refused.value.diagnostics[0].slug == "truncate"
    oic.Synthesizer(graph, target="portable").emit(tmp_path)
    header, source = ((tmp_path / f"why{suffix}").read_text() for suffix in (".h", ".c"))
    said = message.partition("cannot be taken back: ")[2]
    assert f"There is no why_truncate: {said}." in " ".join(header.split()) and "why_truncate" not in source


def test_a_graph_without_state_does_not_speak_of_it(tmp_path: Path) -> None:
    graph = oic.parse("dynamic { x: f32; } volatile { y: f32; } block entry { op add(x, x) >> y; return; }")
    oic.Synthesizer(graph, target="portable").emit(tmp_path)
    assert "truncate" not in (tmp_path / "graph.h").read_text()
    with oic.Simulator(graph).make_executor() as executor, pytest.raises(oic.OicError, match="there is no state"):
        executor.truncate(0)


def test_an_entry_may_have_the_name() -> None:
    graph = oic.parse(HEAD + GRAPHS["fixed"] + "block truncate @entry { cache.read K[0, 0..n] >> y; return; }")
    with oic.Synthesizer(graph).make_executor() as executor:
        executor.step(x=np.ones((3, 2), np.float32))
        executor.truncate(2)
        assert executor.step("truncate")["y"].shape == (1, 2)


# ---------------------------------------------------------------- the view


@pytest.fixture(params=[0, 1, 2], ids=["graph", "planned", "c"])
def cache(request: pytest.FixtureRequest, makers: dict[str, list[Any]]) -> Iterator[oic.KVCache]:
    with makers["fixed"][request.param].make_executor() as executor:
        yield oic.KVCache(executor)


def test_the_cache_is_a_view_of_the_state(cache: oic.KVCache, rng: np.random.Generator) -> None:
    rows = rng.standard_normal((5, 2)).astype(np.float32)
    assert (cache.seq_len, cache.nbytes, cache.reserved) == (0, 0, 2 * 3 * 8 * 2 * 4)
    cache.executor.step(x=rows)
    assert (len(cache), cache.nbytes) == (5, 2 * 3 * 5 * 2 * 4)
    for layer in range(3):
        keys, values = cache.get(layer)
        assert np.array_equal(keys, rows) and np.array_equal(values, rows)
    with cache.fork().executor as other:
        cache.truncate(3)
        assert oic.KVCache(other).seq_len == 5 and cache.seq_len == 2
    assert np.array_equal(cache.keys(1), rows[:2]) and np.array_equal(cache.values(2), rows[:2])
    cache.reset()
    assert len(cache) == 0 and cache.keys().shape == (0, 2)
    with pytest.raises(oic.OicError, match="layers 0 to 2, not 3"):
        cache.get(3)


@pytest.mark.parametrize("name", ["fixed", "started", "grown", "bounded", "ring", "encoder"])
def test_a_part_of_a_table_is_that_of_the_whole(name: str, makers: dict[str, list[Any]], rng: np.random.Generator) -> None:
    """Parts within and beyond what was written; a ring's positions stay together."""
    rows = rng.standard_normal((ROOM, 2)).astype(np.float32)
    for maker in makers[name]:
        with maker.make_executor() as executor:
            for count in (0, 3, ROOM):
                fed(executor, rows, [count])
                for table, (axis, type_) in executor.interface.tables.items():
                    whole = executor.fetch(table)
                    for _ in range(12):
                        ends = np.sort(rng.integers(0, 11, (len(type_.table), 2)))
                        within = [slice(int(a), int(b)) for a, b in ends]
                        if type_.ring:
                            within[axis] = slice(None)
                        assert np.array_equal(executor._part(table, tuple(within)), whole[tuple(within)])


def test_the_keys_of_a_layer_are_all_that_is_read(cache: oic.KVCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.executor.step(x=np.ones((5, 2), np.float32))
    part, read = cache.executor._part, []
    monkeypatch.setattr(cache.executor, "_part", lambda *given: read.append(part(*given)) or read[-1])
    monkeypatch.setattr(type(cache), "seq_len", 5)  # which is fetched
    monkeypatch.setattr(cache.executor, "fetch", None)
    assert cache.keys(1).shape == cache.values(2).shape == (5, 2)
    assert [found.size for found in read] == [10, 10]


def test_names_are_the_graphs(makers: dict[str, list[Any]]) -> None:
    with makers["ring"][2].make_executor() as executor:
        with pytest.raises(oic.OicError, match="no table 'K' of positions, but R"):
            oic.KVCache(executor)
        cache = oic.KVCache(executor, "R", "R")
        for n, row in enumerate(np.arange(16, dtype=np.float32).reshape(8, 1, 2)):
            executor.step(x=row)
            assert cache.seq_len == n + 1
        assert np.array_equal(cache.keys(1), np.arange(4, 16, dtype=np.float32).reshape(6, 2))
        assert cache.nbytes == 2 * 2 * 6 * 2 * 4 and cache.reserved == 2 * cache.nbytes
    graph = oic.parse(HEAD + REFUSED["nothing counts"][0])
    with oic.Simulator(graph).make_executor() as plain, pytest.raises(oic.OicError, match="no tables of positions"):
        oic.KVCache(plain)


def test_a_cache_that_cannot_be_cut_is_shown_all_the_same() -> None:
    with oic.Simulator(oic.parse(HEAD + REFUSED["recurrent"][0])).make_executor() as executor:
        executor.step(row=[1, 2])
        cache = oic.KVCache(executor, "K", "K")
        assert cache.seq_len == 1 and cache.keys().tolist() == [[1, 2]]
        with pytest.raises(oic.OicError, match="'h' is written"):
            cache.truncate(1)
