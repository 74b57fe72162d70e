"""What makes each transformation sound, on the smallest program that goes wrong without it.

Every program is run by GRAPH, by PLANNED memory and by compiled C, and all give what is written here.
`tests/fuzz/mutants` takes the conditions away, one by one: these tests notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from oic.session.executor import Executor

BACKENDS = ("graph", "planned", "c")
Step = tuple[str, dict[str, Any], dict[str, Any] | str]  # entry, inputs, outputs or status


@dataclass(frozen=True)
class Program:
    """A graph without its name, and steps with what they give.  The entry "save and load" is no step:
    the state goes into a new session, which goes on."""

    text: str
    steps: tuple[Step, ...]


RING = """
    dynamic { l: i32; p: i32; x: f32; }
    persistent { R(l, t): f32 @table @fixed(l=2, t=3) @ring(t); }
    volatile { y: f32[?]; }
    block entry { cache.write x >> R[l, p]; return; }
    block forget @entry { cache.reset R[l]; return; }
    block window @entry { cache.read R[l, ] >> y; return; }
"""
COUNTED = """
    dynamic { x: f32; k: i32; }
    persistent { n: i32; K(t): f32 @table @fixed(t=8); }
    volatile { y: f32[8]; }
    block entry { BODY return; }
"""

PROGRAMS = {
    "a partial reset forgets how far its ring had come": Program(RING, (
        ("entry", {"l": 0, "p": 5, "x": 1.0}, {}),
        ("entry", {"l": 1, "p": 4, "x": 2.0}, {}),
        ("forget", {"l": 0}, {}),
        ("window", {"l": 0}, {"y": []}),
        ("window", {"l": 1}, {"y": [0.0, 0.0, 2.0]}),
        ("entry", {"l": 0, "p": 1, "x": 3.0}, {}),
        ("window", {"l": 0}, {"y": [0.0, 3.0]}),
        ("entry", {"l": 1, "p": 1, "x": 3.0}, "OIC_ERR_INDEX"),
    )),
    "a loaded ring is whole wherever its window starts": Program(RING, (
        *(("entry", {"l": row, "p": p, "x": 10.0 * row + p}, {}) for p in range(5) for row in (0, 1)),
        ("save and load", {}, {}),
        ("window", {"l": 0}, {"y": [2.0, 3.0, 4.0]}),
        ("window", {"l": 1}, {"y": [12.0, 13.0, 14.0]}),
        ("entry", {"l": 0, "p": 5, "x": 5.0}, {}),
        ("save and load", {}, {}),
        ("window", {"l": 0}, {"y": [3.0, 4.0, 5.0]}),
    )),
    "a count is another after a loop that raises it": Program(
        """
        dynamic { k: i32; }
        persistent { M(r): f32[1] @auto_dim(r) @fixed(r=8); }
        volatile { y: f32[?]; }
        block entry { assign m: f32[?]; cache.read M[1] >> m;
                      loop l (i in 0..k) { cache.read M[i + 2] >> m; } cache.read M[] >> y; return; }
        """,
        (
            ("entry", {"k": 0}, {"y": [0.0] * 2}),
            ("entry", {"k": 3}, {"y": [0.0] * 5}),
            ("entry", {"k": 1}, {"y": [0.0] * 5}),
        ),
    ),
    "a counter is another in every iteration that steps it": Program(
        COUNTED.replace("BODY", "cache.write x >> K[n]; cache.increment n;"
                        "loop l (i in 0..k) { cache.write x >> K[n]; cache.increment n; }"
                        "cache.write x >> K[n]; cache.read K[0..8] >> y;"),
        (
            ("entry", {"x": 1.0, "k": 3}, {"y": [1, 1, 1, 1, 1, 0, 0, 0]}),
            ("entry", {"x": 2.0, "k": 1}, {"y": [1, 1, 1, 1, 2, 2, 2, 0]}),
        ),
    ),
    "what a loop writes is read anew in it and after it": Program(
        """
        dynamic { k: i32; }
        persistent { s: f32 @init(1.0); }
        volatile { before: f32; y: f32; after: f32; }
        block entry {
            assign a: f32;
            cache.read s >> before;
            loop l (i in 0..k) { cache.read s >> a; op add(y, a) >> y; op add(a, a) >> a; cache.write a >> s; }
            cache.read s >> after;
            return;
        }
        """,
        (
            ("entry", {"k": 3}, {"before": 1.0, "y": 7.0, "after": 8.0}),
            ("entry", {"k": 0}, {"before": 8.0, "y": 0.0, "after": 8.0}),
        ),
    ),
    "what a tensor needs moves only with the tensor": Program(
        """
        dynamic { c: i32; v: f32[1, 1, 2]; x: f32; }
        persistent { A: f32[1, 1, 2]; K(t): f32 @table @fixed(t=8); }
        volatile { y: f32[8]; }
        block entry {
            assign at: i32;
            assign turned: f32[1, 1, 2];
            assign kept: f32[1, 1, 2];
            assign total: f32;
            assign place: i32;
            cache.write v >> A;
            op add(c, c) >> at;
            op rope(v, pos=at) >> turned;
            cache.read A >> kept;
            op add(turned, kept) >> turned;
            op sum_axis(turned, axes=[0, 1, 2]) >> total;
            op cast(total, to=i32) >> place;
            cache.write x >> K[place];
            cache.read K[0..8] >> y;
            return;
        }
        """,
        (("entry", {"c": 0, "v": [[[1.0, 2.0]]], "x": 5.0}, {"y": [0, 0, 0, 0, 0, 0, 5, 0]}),),
    ),
    "a check goes only if an earlier one implies all of it": Program(
        """
        dynamic { p: i32; x: f32; }
        persistent { A(t): f32 @table @fixed(t=5); B(u): f32 @table @fixed(u=4); C(v): f32 @table @fixed(v=6); }
        volatile { y: f32[6]; }
        block entry {
            cache.write x >> A[p];
            cache.write x >> B[p];
            cache.write x >> C[p+1];
            cache.write x >> C[p];
            cache.read C[0..6] >> y;
            return;
        }
        block lower @entry { cache.write x >> A[p]; cache.write x >> B[p-1]; return; }
        """,
        (
            ("entry", {"p": 3, "x": 1.0}, {"y": [0, 0, 0, 1, 1, 0]}),
            ("entry", {"p": 4, "x": 2.0}, "OIC_ERR_CACHE_FULL"),
            ("lower", {"p": 0, "x": 2.0}, "OIC_ERR_INDEX"),
            ("lower", {"p": 1, "x": 2.0}, {}),
            ("lower", {"p": 5, "x": 2.0}, "OIC_ERR_CACHE_FULL"),
            ("entry", {"p": 0, "x": 3.0}, {"y": [3, 3, 0, 1, 1, 0]}),
        ),
    ),
    "what a branch alone has checked is not known after it": Program(
        """
        dynamic { p: i32; c: bool; d: bool; x: f32; }
        persistent { A(t): f32 @table @fixed(t=4); B(t): f32 @table @fixed(t=9); }
        volatile { y: f32 @init(9.0); z: f32 @init(9.0); b: f32; }
        block entry { cache.read B[p] >> b; branch c first none; branch d second none; return; }
        block first { cache.read A[p] >> y; return; }
        block second { cache.read A[p] >> z; return; }
        block none { return; }
        block put @entry { cache.write x >> A[p]; return; }
        """,
        (
            ("put", {"p": 1, "x": 1.0}, {}),
            ("entry", {"p": 1, "c": True, "d": True}, {"y": 1.0, "z": 1.0, "b": 0.0}),
            ("entry", {"p": 4, "c": False, "d": False}, {"y": 9.0, "z": 9.0, "b": 0.0}),
            ("entry", {"p": 3, "c": False, "d": True}, {"y": 9.0, "z": 0.0, "b": 0.0}),
            ("entry", {"p": 4, "c": False, "d": True}, "OIC_ERR_CACHE_FULL"),
        ),
    ),
    "a check is needed if the index may be one too large": Program(
        """
        dynamic { p: i32; }
        persistent { A(t): f32 @table @fixed(t=3); n: i32; }
        volatile { y: f32; }
        block entry { cache.increment n; cache.read A[p%4] >> y; return; }
        block turns @entry { loop l (i in 0..p%5) { cache.read A[i] >> y; } return; }
        """,
        (
            ("entry", {"p": 6}, {"y": 0.0}),
            ("entry", {"p": 7}, "OIC_ERR_CACHE_FULL"),
            ("entry", {"p": -1}, "OIC_ERR_CACHE_FULL"),
            ("turns", {"p": 3}, {"y": 0.0}),
            ("turns", {"p": 4}, "OIC_ERR_CACHE_FULL"),
        ),
    ),
    "a carried value stays if only the iterations need it": Program(
        """
        dynamic { x: f32; k: i32; }
        persistent { A(t): f32 @table @fixed(t=4); }
        volatile { y: f32[4]; }
        block entry {
            assign a: f32;
            transfer x >> a;
            loop l (i in 0..k) { op add(a, a) >> a; cache.write a >> A[i]; }
            cache.read A[0..4] >> y;
            return;
        }
        """,
        (("entry", {"x": 1.0, "k": 3}, {"y": [2, 4, 8, 0]}), ("entry", {"x": 3.0, "k": 1}, {"y": [6, 4, 8, 0]})),
    ),
    "a loop without an iteration refuses nothing": Program(
        """
        dynamic { k: i32; p: i32; x: f32; }
        persistent { A(t): f32 @table @fixed(t=4); n: i32; }
        volatile { y: f32[4]; }
        block entry {
            cache.increment n;
            loop l (i in 0..k) { cache.write x >> A[p+i]; }
            cache.read A[0..4] >> y;
            return;
        }
        """,
        (
            ("entry", {"k": 0, "p": 9, "x": 1.0}, {"y": [0, 0, 0, 0]}),
            ("entry", {"k": -2, "p": -1, "x": 1.0}, {"y": [0, 0, 0, 0]}),
            ("entry", {"k": 2, "p": 2, "x": 1.0}, {"y": [0, 0, 1, 1]}),
            ("entry", {"k": 2, "p": 3, "x": 2.0}, "OIC_ERR_CACHE_FULL"),
            ("entry", {"k": 1, "p": -1, "x": 2.0}, "OIC_ERR_INDEX"),
            ("entry", {"k": 1, "p": 3, "x": 2.0}, {"y": [0, 0, 1, 2]}),
        ),
    ),
    "an axis of one element is the same element again and again": Program(
        """
        dynamic { x: f32[2, 1, 3]; }
        persistent { A(t): f32[1, 3] @table @fixed(t=2); }
        volatile { y: f32[2, 4, 3]; z: f32[4, 2, 1, 3]; w: f32[2, 2, 3]; }
        block entry {
            assign part: f32[1, 3];
            op broadcast_to(x, shape=[2, 4, 3]) >> y;
            op broadcast_to(x, shape=[4, 2, 1, 3]) >> z;
            op slice(x, axis=0, start=1, end=2) >> part3;
            op reshape(part3, shape=[1, 3]) >> part;
            cache.write part >> A[1];
            cache.read A[0..2] >> w1;
            op broadcast_to(w1, shape=[2, 2, 3]) >> w;
            return;
        }
        """.replace("assign part:", "assign part3: f32[1, 1, 3]; assign w1: f32[2, 1, 3]; assign part:"),
        (
            ("entry", {"x": [[[1, 2, 3]], [[4, 5, 6]]]}, {
                "y": [[[1, 2, 3]] * 4, [[4, 5, 6]] * 4],
                "z": [[[[1, 2, 3]], [[4, 5, 6]]]] * 4,
                "w": [[[0, 0, 0]] * 2, [[4, 5, 6]] * 2],
            }),
        ),
    ),
    "what no iteration asks for is not looked up": Program(
        """
        dynamic { i: i32; n: i32; x: f32; }
        persistent { at(l): i32 @table @fixed(l=3); K(t): f32 @table @fixed(t=8); }
        block entry {
          cache.write x >> K[0];
          loop l (a in 0..n) { assign p: i32; cache.read at[i] >> p; cache.write x >> K[p + a]; }
          return;
        }
        """,
        (
            ("entry", {"i": 1 << 30, "n": 0, "x": 1.0}, {}),
            ("entry", {"i": 1 << 30, "n": 1, "x": 2.0}, "OIC_ERR_CACHE_FULL"),
            ("entry", {"i": 2, "n": 8, "x": 3.0}, {}),
            ("entry", {"i": 2, "n": 9, "x": 4.0}, "OIC_ERR_CACHE_FULL"),
        ),
    ),
    "what a branch that is not taken asks for is not looked up": Program(
        """
        dynamic { ids: i32[3]; i: i32; j: i32; x: f32; }
        persistent { K(t): f32 @table @fixed(t=8); }
        block entry {
          assign c: bool;
          cache.write x >> K[0];
          op lt(i, j) >> c;
          loop l (a in 0..2) { branch c one none; }
          return;
        }
        block one { assign p: i32[1]; op slice(ids, axis=0, start=i, end=i+1) >> p; cache.write x >> K[p + a]; return; }
        block none { return; }
        """,
        (
            ("entry", {"ids": [1, 2, 3], "i": 1 << 30, "j": 0, "x": 1.0}, {}),
            ("entry", {"ids": [1, 2, 3], "i": 1 << 30, "j": (1 << 30) + 1, "x": 1.0}, "OIC_ERR_INDEX"),
            ("entry", {"ids": [1, 2, 7], "i": 2, "j": 3, "x": 1.0}, "OIC_ERR_CACHE_FULL"),
            ("entry", {"ids": [1, 2, 6], "i": 2, "j": 3, "x": 2.0}, {}),
        ),
    ),
    "what no iteration computes does not leave 64 bits": Program(
        """
        dynamic { i: i64; u: u64; n: i32; x: f32; }
        persistent { K(t): f32 @table @fixed(t=8); }
        block entry {
          cache.write x >> K[0];
          loop l (a in 0..n) { cache.write x >> K[i * i + a]; cache.write x >> K[u + a]; }
          return;
        }
        """,
        (
            ("entry", {"i": 1 << 40, "u": 0, "n": 0, "x": 1.0}, {}),
            ("entry", {"i": 0, "u": (1 << 64) - 1, "n": 0, "x": 2.0}, {}),
            ("entry", {"i": 1 << 40, "u": 0, "n": 1, "x": 3.0}, "OIC_ERR_OVERFLOW"),
            ("entry", {"i": 0, "u": (1 << 64) - 1, "n": 1, "x": 4.0}, "OIC_ERR_OVERFLOW"),
            ("entry", {"i": 2, "u": 4, "n": 4, "x": 5.0}, {}),
        ),
    ),
}  # fmt: skip


class Sessions:
    """A session of every backend of one program."""

    def __init__(self, made: dict[str, Any]) -> None:
        self.made = made
        self.executors: dict[str, Executor] = {b: m.make_executor() for b, m in made.items()}

    def renew(self) -> None:
        """Every state goes into a new session: that of one backend into that of the next."""
        saved = {b: e.save() for b, e in self.executors.items()}
        self.close()
        self.executors = {b: m.make_executor() for b, m in self.made.items()}
        for backend, other in zip(BACKENDS, (*BACKENDS[1:], BACKENDS[0]), strict=True):
            self.executors[backend].load(saved[other])

    def close(self) -> None:
        for executor in self.executors.values():
            executor.close()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = {
        name: oic.Synthesizer(_graph(number, program))
        for number, (name, program) in enumerate(PROGRAMS.items())
    }
    build_together(list(made.values()), tmp_path_factory.mktemp("conditions"))
    return made


def _graph(number: int, program: Program) -> oic.Graph:
    return oic.parse(f"graph condition{number} {{{program.text}}}", name=f"condition{number}")


@pytest.fixture
def sessions(name: str, libraries: dict[str, Any]) -> Iterator[Sessions]:
    program = PROGRAMS[name]
    number = list(PROGRAMS).index(name)
    made = {s: oic.Simulator(_graph(number, program), stage=s) for s in ("graph", "planned")}
    found = Sessions({**made, "c": libraries[name]})
    yield found
    found.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_backend_gives_what_is_written(name: str, sessions: Sessions) -> None:
    for at, (entry, inputs, expected) in enumerate(PROGRAMS[name].steps):
        if entry == "save and load":
            sessions.renew()
            continue
        for backend, executor in sessions.executors.items():
            where = f"{backend}, step {at}"
            if isinstance(expected, str):
                with pytest.raises(oic.StepError) as refusal:
                    executor.step(entry, **inputs)
                assert refusal.value.status == expected, where
                continue
            found = executor.step(entry, **inputs)
            assert found.keys() == expected.keys()
            for key, value in expected.items():
                np.testing.assert_array_equal(found[key], np.asarray(value, found[key].dtype), where, strict=True)
    states = [executor.save() for executor in sessions.executors.values()]
    assert states[0] == states[1] == states[2]


def test_what_reads_the_state_is_not_fused_over_a_store() -> None:
    """It would need a copy of what it reads."""
    text = """
    graph over { dynamic { x: f32[8]; } persistent { A: f32[8]; } volatile { y: f32[8]; }
      block entry {
        assign a: f32[8]; assign b: f32[8];
        cache.read A >> a;
        op add(a, x) >> b;
        cache.write x >> A;
        op neg(b) >> y;
        return;
      } }
    """
    module = oic.Simulator(oic.parse(text, name="over")).program.planned
    names = [op.name for op in module.all_ops()]
    assert "copy" not in names and "fused" not in names
