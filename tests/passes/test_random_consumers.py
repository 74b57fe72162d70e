"""Random consumers over shared state: run at once, in any order, they answer as in source order."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from oic.driver import Settings, compile_graph, lowered
from oic.ir.control import Parallel
from oic.ir.core import Block
from oic.ir.module import Module
from oic.reference.interpret import Machine

DECLARED = """
dynamic { x: f32[4]; i: i32; j: i64; ids: i32[3]; }
constant { W: f32[5, 4]; c1: i32 @init(1); }
persistent {
  A(t): f32[4] @table; B(l, t): f32[4] @table @fixed(l=2, t=4); C: f32[4]; n: i32; m: i64;
  R(t): f32[4] @table @fixed(t=3) @ring(t);
}
volatile { v0: f32[4]; v1: f32[4]; v2: f32[4]; v3: f32[4]; v4: f32[4]; kept: f32[4]; y: f32[4]; }
block up { op add(kept, kept) >> kept; return; }
block down { cache.increment m; return; }
"""
INDICES = ("i", "j", "n", "m", "0", "1")
VARIABLES = 5


def _statement(rng: np.random.Generator, own: str, depth: int) -> str:
    """A statement of a consumer that computes in `own`."""

    def index() -> str:
        return str(rng.choice(INDICES))

    other = str(rng.choice([own, "kept", "x"]))
    match int(rng.integers(0, 16)):
        case 0:
            return f"op add({own}, {other}) >> {own};"
        case 1:
            return f"op softmax({own}) >> {own}; op softmax({own}) >> {own};"
        case 2:
            return f"cache.write {own} >> A[{index()}];"
        case 3:
            return f"cache.read A[{index()}] >> {own};"
        case 4:
            return f"cache.write {other} >> B[{int(rng.integers(0, 2))}, {index()}];"
        case 5:
            return (
                f"assign s{depth}: f32[?, 4]; cache.read B[{index()}, 0..{index()}] >> s{depth}; "
                f"op sum_axis(s{depth}, axes=[0]) >> {own};"
            )
        case 6:
            return f"cache.read C >> {own};"
        case 7:
            return f"cache.write {own} >> C;"
        case 8:
            return f"cache.increment {rng.choice(['n', 'm'])};"
        case 9:
            return f"cache.write {own} >> R[{index()}];"
        case 10:
            return (
                f"assign g{depth}: f32[3, 4]; op gather(W, ids, axis=0) >> g{depth}; "
                f"op sum_axis(g{depth}, axes=[0]) >> {own};"
            )
        case 11:
            return (
                f"assign j{depth}: i32[3]; op add(ids, c1) >> j{depth}; assign h{depth}: f32[3, 4]; "
                f"op gather(W, j{depth}, axis=0) >> h{depth}; op max_axis(h{depth}, axes=[0]) >> {own};"
            )
        case 12 | 13 if depth < 2:
            inner = " ".join(_statement(rng, own, depth + 1) for _ in range(int(rng.integers(1, 4))))
            return f"loop l{depth} (k{depth} in 0..{int(rng.integers(1, 4))}) {{ {inner} }}"
        case 14:
            return f"transfer {other} >> {own};"
        case _:
            return f"op mul({own}, {own}) >> {own};"


def random_graph(seed: int) -> str:
    """A graph whose entry yields to two to five consumers, perhaps in a loop."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, VARIABLES + 1))
    names = [f"v{k}" for k in range(count)]
    start = " ".join(f"transfer {rng.choice(['x', 'kept'])} >> {v};" for v in names)
    given = ", ".join(names)
    handed = f"yield {given}; op add(kept, x) >> kept; await {given};"
    if rng.random() < 0.3:
        handed = f"loop again (z in 0..2) {{ {handed} cache.increment n; }}"
    total = " ".join(f"op add(y, {v}) >> y;" for v in names)
    blocks = [
        f"block w{k} {{ await {v}; " + _unique(_body(rng, v)) + f" yield {v}; }}" for k, v in enumerate(names)
    ]
    first = "cache.read A[1] >> kept;" if rng.random() < 0.5 else "cache.read C >> kept;"
    last = " ".join(rng.choice(["cache.increment m;", "cache.increment n;", ""], 2))
    entry = f"block entry {{ {first} {start} {handed} transfer x >> y; {total} {last} return; }}"
    return "\n".join([f"graph random{seed} {{", DECLARED, entry, *blocks, "}"])


def _body(rng: np.random.Generator, own: str) -> list[str]:
    return [_statement(rng, own, 0) for _ in range(int(rng.integers(1, 6)))]


def _unique(statements: list[str]) -> str:
    """Temporaries and loops numbered by statement, so that none has the name of another."""
    found = []
    for number, text in enumerate(statements):
        for mark in ("s", "g", "j", "h", "l", "k"):
            for depth in range(3):
                text = re.sub(rf"\b{mark}{depth}\b", f"{mark}{depth}_{number}", text)
        found.append(text)
    return " ".join(found)


def random_inputs(rng: np.random.Generator, step: int) -> dict[str, np.ndarray]:
    """Inputs of a step, some of which are refused."""
    return {
        "x": rng.standard_normal(4).astype(np.float32),
        "i": np.asarray(rng.integers(-1 if step % 9 == 8 else 0, 4), np.int32),
        "j": np.asarray(rng.integers(0, 5 if step % 5 == 4 else 4), np.int64),
        "ids": rng.integers(0, 6 if step % 6 == 5 else 4, 3).astype(np.int32),
    }


def any_order(module: Module, rng: np.random.Generator) -> Module:
    """A copy whose regions run in another order.

    Those that may refuse keep theirs: a refusal ends the step before what follows has run.
    """
    copy = module.clone()
    for op in copy.all_ops():
        if isinstance(op, Parallel):
            order = [int(k) for k in rng.permutation(len(op.consumers))]
            results = [r for k in order for r in dict(op.given)[op.consumers[k]]]
            regions: list[Block] = [op.consumers[k] for k in order]
            op.names, op.consumers, op.results = [op.names[k] for k in order], regions, results
    return copy


@pytest.mark.parametrize("seed", range(60))
def test_consumers_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = oic.Model(tensors={"W": rng.standard_normal((5, 4)).astype(np.float32)})
    graph = oic.parse(random_graph(seed), f"random{seed}.oi")
    settings = Settings(capacity={"A.t": 6}, threads=2, verified=True)
    try:
        program = compile_graph(graph, model, settings)
    except oic.OicError as error:
        pytest.skip(f"refused at build: {error.diagnostics[0].slug}")
    *_, (_, planned) = lowered(program.module, settings)
    *_, (_, straight) = lowered(program.module, Settings(capacity={"A.t": 6}, verified=True))
    machines = [Machine(m) for m in (straight, planned, any_order(planned, rng))]
    meaning = Machine(program.module)
    for step in range(30):
        _compare(program.module, meaning, machines, random_inputs(rng, step))


def _compare(graph: Module, meaning: Machine, machines: list[Machine], inputs: dict[str, np.ndarray]) -> None:
    """One step of all: equal outputs and state, or refusals of which the straight code's is the pattern."""
    given = {n: inputs[n] for n in graph.function("entry").inputs}
    found = []
    for machine in (meaning, *machines):
        try:
            found.append(machine.step("entry", given))
        except oic.StepError as refusal:
            found.append(refusal)
    expected, first = found[0], found[1]
    if isinstance(expected, oic.StepError):
        assert all(isinstance(f, oic.StepError) for f in found)
        assert isinstance(first, oic.StepError)
        assert (found[2].status, found[2].variable, found[2].index) == (first.status, first.variable, first.index)
        assert machines[0].broken == machines[1].broken
        if machines[0].broken:
            for machine in (meaning, *machines):
                machine.reset()
            return
        machines[2].load(machines[1].save())  # in another order its own refusal may come too late
    else:
        for outputs in found[1:]:
            assert isinstance(outputs, dict)
            for name, value in expected.items():
                np.testing.assert_array_equal(outputs[name], value, err_msg=name)
    for op in graph.states():
        for machine in machines:
            actual, wanted = machine.fetch_state(op.symbol), meaning.fetch_state(op.symbol)
            np.testing.assert_array_equal(actual, wanted, err_msg=op.symbol)


def test_compiled_consumers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Some of the graphs in C, with threads and without: the same outputs, state and refusals."""
    seeds = range(1, 13)
    rng = np.random.default_rng(0)
    model = oic.Model(tensors={"W": rng.standard_normal((5, 4)).astype(np.float32)})
    made: dict[int, list[oic.Synthesizer]] = {}
    for threads in (1, 3):
        made[threads] = [
            oic.Synthesizer(
                oic.parse(random_graph(seed), f"random{seed}.oi"), model, capacity={"A.t": 6},
                target="portable", threads=threads,
            )
            for seed in seeds
        ]  # fmt: skip
        build_together(made[threads], tmp_path_factory.mktemp(f"threads{threads}"), "-pthread")
    for straight, parallel in zip(made[1], made[3], strict=True):
        with straight.make_executor() as first, parallel.make_executor() as second:
            for step in range(100):
                inputs = random_inputs(rng, step)
                answers = [_answer(e, inputs) for e in (first, second)]
                assert answers[0] == answers[1]
                if answers[0][0] == "OIC_ERR_STATE":
                    first.reset()
                    second.reset()


def _answer(executor: Any, inputs: dict[str, np.ndarray]) -> tuple[Any, ...]:
    wanted = executor.interface.entries["entry"].inputs
    try:
        out = executor.step(**{n: inputs[n] for n in wanted})
    except oic.StepError as refusal:
        return refusal.status, refusal.variable, refusal.index, refusal.span and refusal.span.line
    return (*(a.tobytes() for a in out.values()), executor.save())
