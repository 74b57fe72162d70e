"""Loading into sessions that have state of their own: nothing of it is left, whatever the kind of state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.difftest.together import build_together
from oic.driver import Settings, compile_graph, interface_of
from oic.dtypes import Array, DType
from oic.session.simulator import Simulator
from oic.session.synthesizer import Synthesizer

# What is declared, and with which bounds of its growing indices: {t} becomes the bound of t.
KINDS = {
    "plain": "S: D[3]",
    "fixed": "S(t): D[3] @table @fixed(t=6)",
    "table": "S(t): D[3] @table {t}",
    "rows": "S(l, t): D[3] @table @fixed(l=2{, t})",
    "ring": "S(t): D[3] @table @fixed(t=3) @ring(t)",
    "rings": "S(u, t): D[3] @table @fixed(u=2, t=3) @ring(t)",
    "vector": "S(r): D[3] @auto_dim(r) {r}",
    "matrix": "S(r, c): D[1, 2] @auto_dim(r, c) {r, c}",
    "matrices": "S(l, r, c): D[1, 2] @table @auto_dim(r, c) @fixed(l=2{, r, c})",
}
BOUNDS = ("fixed", "given", "open")
MOST = {"t": 5, "r": 4, "c": 4}
TYPES = (("f32", None), ("f32", "0.5"), ("i4", None), ("i4", "-3"), ("f16", "-1.0"), ("t1", None), ("u64", "7"))
EXECUTORS = ("graph", "planned", "c")
GRAPHS = 2  # a variable has another type in each


def _variables() -> Iterator[tuple[str, str, str]]:
    """(name, kind, declaration) of every kind with every bound that it can have."""
    for kind, text in KINDS.items():
        head, brace, rest = text.partition("{")
        if not brace:
            yield kind, kind, text
            continue
        names, _, tail = rest.partition("}")
        for bound in BOUNDS:
            fixed = ", ".join(f"{n}={MOST[n]}" for n in names.strip(", ").split(", "))
            inside = bound == "fixed" and fixed
            if names.startswith(","):
                given = f", {inside}" if inside else ""
            else:
                given = f"@fixed({inside})" if inside else ""
            yield f"{kind}_{bound}", kind, f"{head}{given}{tail}"


def _blocks(name: str, kind: str, dtype: str) -> str:
    """Entries that write, read and forget one variable."""
    match kind:
        case "plain":
            parts = [f"cache.write v >> {name};", "", f"cache.reset {name};"]
        case "vector":
            parts = [f"cache.write w >> {name}[i];", f"cache.read {name}[j] >> got;", f"cache.reset {name};"]
        case "matrix":
            parts = [f"cache.write m >> {name}[i, j];", f"cache.read {name}[j, i] >> got;", f"cache.reset {name};"]
        case "matrices":
            parts = [f"cache.write m >> {name}[l, i, j];", f"cache.read {name}[l, j] >> got;", f"cache.reset {name}[l];"]
        case "rows" | "rings":
            parts = [f"cache.write v >> {name}[l, i];", f"cache.read {name}[l] >> got;", f"cache.reset {name}[l];"]
        case "ring":
            parts = [f"cache.write v >> {name}[i];", f"cache.read {name}[] >> got;", f"cache.reset {name};"]
        case _:
            parts = [f"cache.write v >> {name}[i];", f"cache.read {name}[0..1] >> got;", f"cache.reset {name}[i];"]
    declared = f"assign got: {dtype}[{'?' if kind == 'vector' else '?, ?'}];"
    put, see, forget = (re.sub(r"write (\w)", rf"write \1_{dtype}", text) for text in parts)
    return "\n".join(
        f"block {does}_{name} @entry {{ {text} return; }}"
        for does, text in (("put", put), ("see", f"{declared} {see}"), ("forget", forget))
    )


def _types(number: int) -> dict[str, tuple[str, str | None]]:
    """The element type and initial value of every variable."""
    return {name: TYPES[(i + number * 2) % len(TYPES)] for i, (name, _, _) in enumerate(_variables())}


def _text(number: int) -> str:
    types = _types(number)
    declared, blocks = [], []
    for name, kind, text in _variables():
        dtype, init = types[name]
        started = "" if init is None else f" @init({init})"
        declared.append(text.replace("S", name, 1).replace("D", dtype, 1) + started + ";")
        blocks.append(_blocks(name, kind, dtype))
    inputs = [
        f"v_{d}: {d}[3]; w_{d}: {d}[A_{d}] @max(A_{d}=7); m_{d}: {d}[R_{d}, C_{d}] @max(R_{d}=5, C_{d}=6);"
        for d in dict.fromkeys(dtype for dtype, _ in TYPES)
    ]
    head = ["dynamic {", "i: i32; j: i32; l: i32;", *inputs, "}", "persistent {", *declared, "}"]
    return "\n".join([*head, "block entry { return; }", *blocks])


def _capacities() -> dict[str, int]:
    given = {name: kind for name, kind, _ in _variables() if name.endswith("_given")}
    indices = {"table": "t", "rows": "t", "vector": "r", "matrix": "rc", "matrices": "rc"}
    return {f"{name}.{i}": MOST[i] for name, kind in given.items() for i in indices[kind]}


class Case:
    """One graph with every kind of variable, by what executes it."""

    def __init__(self, number: int) -> None:
        name = f"loading_{number}"
        settings = Settings(capacity=_capacities())
        program = compile_graph(oic.parse(_text(number), name=f"{name}.oi"), None, settings)
        self.types = {v: dtypes.ALL[dtype] for v, (dtype, _) in _types(number).items()}
        self.interface = interface_of(program)
        self.compiled = Synthesizer(program.planned, self.interface)
        self.made: dict[str, Simulator | Synthesizer] = {
            "graph": Simulator(program.module, self.interface),
            "planned": Simulator(program.planned, self.interface),
            "c": self.compiled,
        }
        self.entries = [e for e in self.interface.entries if e != "entry"]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    made = [Case(number) for number in range(GRAPHS)]
    build_together([case.compiled for case in made], tmp_path_factory.mktemp("loading"), ["-O0"])
    return made


def _drawn(case: Case, executor: oic.Executor, entry: str, r: np.random.Generator, number: int) -> dict[str, Any]:
    """Inputs that this state accepts, mostly."""
    does, _, name = entry.partition("_")
    kind = name.partition("_")[0]
    dtype = case.types[name]
    i, j, which = (int(n) for n in r.integers([5, 5, 2]))
    if kind.startswith("ring"):
        i = number
    given: dict[str, Any] = {"i": np.int32(i), "j": np.int32(j), "l": np.int32(which)}
    now = executor.fetch(name).shape
    if kind == "vector" and does == "put":
        given[f"w_{dtype}"] = _values(dtype, (max(now[0], 3 + i),), r)
    if kind.startswith("matri") and does == "put":
        given[f"m_{dtype}"] = _values(dtype, (max(now[-2], 1 + i), max(now[-1], 2 + j)), r)
    given[f"v_{dtype}"] = _values(dtype, (3,), r)
    taken = case.interface.entries[entry].inputs
    return {n: a for n, a in given.items() if n in taken}


def _values(dtype: DType, shape: tuple[int, ...], r: np.random.Generator) -> Array:
    drawn = r.integers(0 if dtype.low == 0 and not dtype.is_float else -4, 4, shape)
    return dtypes.store(np.where(drawn == 0, 1, drawn), dtype)


def _step(case: Case, executors: list[oic.Executor], r: np.random.Generator, number: int) -> None:
    """The same step everywhere, with the same answer; some are refused."""
    does = r.choice(["put", "put", "put", "see", "forget"])
    entry = str(r.choice([e for e in case.entries if e.startswith(does)]))
    given = _drawn(case, executors[0], entry, r, number)
    assert len({_answer(e, entry, given) for e in executors}) == 1, (entry, number)


def _answer(executor: oic.Executor, entry: str, given: dict[str, Any]) -> str:
    try:
        executor.step(entry, **given)
    except oic.StepError as error:
        return error.status
    return "OIC_OK"


def _seen(case: Case, executor: oic.Executor) -> list[tuple[str, tuple[int, ...], bytes]]:
    found = [(name, executor.fetch(name)) for name, _, _ in _variables()]
    return [(name, a.shape, a.tobytes()) for name, a in found]


@pytest.mark.parametrize("number", range(GRAPHS))
def test_nothing_is_left_of_a_state_that_another_replaces(cases: list[Case], number: int) -> None:
    """Saved early, loaded into sessions that went further and elsewhere: they are as a new one is."""
    case = cases[number]
    for seed in range(2):
        r = np.random.default_rng([number, seed])
        used = [case.made[kind].make_executor() for kind in EXECUTORS]
        taken = 0
        while taken < 15 * seed:
            _step(case, used, r, taken)
            taken += 1
        saved, seen = used[0].save(), _seen(case, used[0])
        for _ in range(50):
            _step(case, used, r, taken)
            taken += 1
        fresh = [case.made[kind].make_executor() for kind in EXECUTORS]
        for session in used + fresh:
            session.load(saved)
            assert _seen(case, session) == seen
            assert session.save() == saved
        for more in range(50):
            _step(case, used + fresh, r, 15 * seed + more)
        assert len({session.save() for session in used + fresh}) == 1
        assert all(_seen(case, session) == _seen(case, fresh[0]) for session in used + fresh)
        with used[2].fork() as fork:
            assert fork.save() == fresh[0].save()
        for session in used + fresh:
            session.close()


def test_old_elements_of_a_matrix_do_not_come_back() -> None:
    """The state before the matrix grew, loaded after: what growth uncovers then is new."""
    text = """dynamic { i: i32; k: f32; }
    persistent { M(r, c): f32[1, 1] @auto_dim(r, c) @fixed(r=2, c=2); }
    volatile { y: f32[?, ?]; }
    block entry {
      assign b: f32[?, ?];
      cache.read M[i, 0] >> b;
      op add(b, k) >> b;
      cache.write b >> M[];
      cache.read M[] >> y;
      return;
    }"""
    with oic.Synthesizer(oic.parse(text, name="grow.oi")).build().make_executor() as session:
        empty = session.save()
        session.step(i=2, k=5.0)
        session.load(empty)
        assert session.step(i=2, k=0.0)["y"].tolist() == [[0.0], [0.0], [0.0]]
