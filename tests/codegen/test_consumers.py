"""Consumers that run at once give what they give in order: outputs, state, and refusals."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from codegen import consumers
from oic.driver import Settings, compile_graph, lowered
from oic.dtypes import Array
from oic.ir.control import Parallel
from oic.ir.core import clone_op
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.library.emit import Files
from oic.memory.verify import verify_memory
from oic.passes.order_consumers import order_consumers
from oic.reference.interpret import Machine
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import STANDARD, WARNINGS

pytestmark = pytest.mark.xdist_group("consumers-codegen")

THREADS = (1, 2, 4)
STEPS = 300
CAPACITY: dict[str, dict[str, int]] = {"caches": {"t": 8, "r": 9}, "refused": {"t": 8}}
# The groups that consumers are left in: those of one group stay in order.
GROUPS = {
    "plain": ["first", "second", "third"],
    "caches": ["keys", "values_rest", "grow", "ring"],
    "entries": ["first", "second"],
    "refused": ["early_late", "calm"],
    "nested": ["deep", "wide"],
    "packed": ["small", "flags", "half"],
    "moved": ["reader", "writer", "mover"],
    "both": ["high", "low", "none"],
    "settled": ["left", "right"],
}

Outcome = tuple[str, ...]


def model() -> oic.Model:
    table = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
    return oic.Model(tensors={"W": table})


def graph(name: str) -> Any:
    return oic.parse(consumers.text(name), f"{name}.oi")


@cache
def modules(name: str, threads: int) -> list[tuple[str, Module]]:
    """The module after every pass."""
    settings = Settings(capacity=CAPACITY.get(name, {}), threads=threads, verified=True)
    program = compile_graph(graph(name), model(), settings)
    return [("", program.module), *((s.name, m.clone()) for s, m in lowered(program.module, settings))]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], oic.Synthesizer]:
    """Every graph for every number of threads."""
    made = {
        (name, threads): oic.Synthesizer(
            graph(name), model(), capacity=CAPACITY.get(name, {}), target="portable", threads=threads
        )
        for name in consumers.GRAPHS
        for threads in THREADS
    }
    for threads in THREADS:
        some = [syn for (_, n), syn in made.items() if n == threads]
        build_together(some, tmp_path_factory.mktemp(f"threads{threads}"), "-pthread")
    return made


def steps(seed: int) -> Iterator[dict[str, Array]]:
    """Inputs, a few of which are refused."""
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        yield {
            "x": rng.standard_normal((int(rng.integers(0, 7)), 4)).astype(np.float32),
            "ids": rng.integers(0, 4 if rng.random() < 0.5 else 3, 3).astype(np.int32),
            "at": np.asarray(rng.integers(-1 if rng.random() < 0.1 else 0, 8), np.int64),
            "b": np.asarray(rng.random() < 0.5),
        }


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]


def state_of(executor: Any, name: str) -> bytes:
    """Every persistent variable, by its logical value."""
    symbols = [op.symbol for op in modules(name, 1)[0][1].states()]
    return b"|".join(np.ascontiguousarray(executor.fetch(s)).tobytes() for s in symbols)


def outcomes(executor: Any, name: str) -> list[Outcome]:
    """What every step gives: hashes of outputs and state, or the refusal, and what follows one."""
    found: list[Outcome] = []
    wanted = executor.interface.entries["entry"].inputs
    for inputs in steps(0):
        try:
            out = executor.step(**{k: v for k, v in inputs.items() if k in wanted})
        except oic.StepError as refusal:
            found.append((refusal.status, str(refusal.variable), str(refusal.index)))
            state = digest(state_of(executor, name))
            if refusal.status == "OIC_ERR_STATE" or refusal.variable in ("V.t", "B.t"):
                executor.reset()
            found.append((state,))
            continue
        parts = [np.ascontiguousarray(a).tobytes() for a in out.values()]
        found.append((digest(*parts), digest(state_of(executor, name))))
    return found


@pytest.mark.parametrize("name", consumers.GRAPHS)
def test_any_number_of_threads_gives_the_same(name: str, built: dict[tuple[str, int], oic.Synthesizer]) -> None:
    """Three hundred steps; outputs, state and refusals after each."""
    with built[name, 1].make_executor() as first:
        expected = outcomes(first, name)
    for threads in THREADS[1:]:
        with built[name, threads].make_executor() as executor:
            assert executor._session.pool  # type: ignore[attr-defined]
            assert outcomes(executor, name) == expected, f"{threads} threads"


@pytest.mark.parametrize("name", consumers.GRAPHS)
def test_code_for_threads_runs_without_a_pool(
    name: str, built: dict[tuple[str, int], oic.Synthesizer]
) -> None:
    with built[name, 1].make_executor() as first, built[name, 2].make_executor() as executor:
        session: Any = executor._session  # type: ignore[attr-defined]
        pool, session.pool = session.pool, first._ffi.NULL  # type: ignore[attr-defined]
        assert outcomes(executor, name) == outcomes(first, name)
        session.pool = pool


@pytest.mark.parametrize("name", consumers.GRAPHS)
def test_planned_memory_agrees_with_the_graph(name: str) -> None:
    """The interpreter over the bytes that the regions were given, in order and in the reverse order."""
    graph_module, planned = modules(name, 2)[0][1], modules(name, 2)[-1][1]
    reverse = planned.clone()
    for op in reverse.all_ops():
        if isinstance(op, Parallel):
            _turn_round(op)
    machines = [Machine(m) for m in (graph_module, planned, reverse)]
    wanted = graph_module.function("entry").inputs
    for inputs in steps(1):
        given = {k: v for k, v in inputs.items() if k in wanted}
        try:
            expected = machines[0].step("entry", given)
        except oic.StepError as refusal:
            for machine in machines[1:]:
                with pytest.raises(oic.StepError) as found:
                    machine.step("entry", given)
                assert found.value.status == refusal.status
            for machine in machines:
                machine.reset()
            continue
        for machine in machines[1:]:
            for key, value in machine.step("entry", given).items():
                np.testing.assert_array_equal(value, expected[key], err_msg=key)
            for op in graph_module.states():
                actual = machine.fetch_state(op.symbol)
                np.testing.assert_array_equal(actual, machines[0].fetch_state(op.symbol), err_msg=op.symbol)


def _turn_round(op: Parallel) -> None:
    """The regions in the reverse order, those that may refuse the step first as before."""
    results = [r for region in reversed(op.consumers) for r in dict(op.given)[region]]
    op.consumers, op.names, op.results = op.consumers[::-1], op.names[::-1], results


@pytest.mark.parametrize("name", consumers.GRAPHS)
def test_groups(name: str) -> None:
    """What must stay in order is one region; with one thread there are no regions."""
    ends = modules(name, 2)[-1][1]
    assert [op.names for op in ends.all_ops() if isinstance(op, Parallel)] == [GROUPS[name]]
    assert not any(isinstance(op, Parallel) for op in modules(name, 1)[-1][1].all_ops())


@pytest.mark.parametrize("name", consumers.GRAPHS)
def test_every_stage_prints_and_parses(name: str) -> None:
    for after, module in modules(name, 2):
        text = print_module(module)
        assert print_module(parse_module(text, module.weights)) == text, after


@pytest.mark.parametrize("name", consumers.GRAPHS)
def test_ordering_again_changes_nothing(name: str) -> None:
    module = next(m for after, m in modules(name, 2) if after == "order-consumers").clone()
    before = print_module(module)
    order_consumers(module)
    assert print_module(module) == before


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_consumer_in_the_source_is_refused(
    threads: int, built: dict[tuple[str, int], oic.Synthesizer]
) -> None:
    """Where two refuse one step; and as the state was changed before, steps are refused until a reset."""
    wrong = np.array([0, 1, 3], np.int32)
    with built["both", threads].make_executor() as executor:
        for _ in range(100):
            with pytest.raises(oic.StepError) as found:
                executor.step(ids=wrong)
            assert (found.value.status, found.value.variable, found.value.index) == ("OIC_ERR_INDEX", "j", 5)
            with pytest.raises(oic.StepError) as found:
                executor.step(ids=np.ones(3, np.int32))
            assert found.value.status == "OIC_ERR_STATE"
            executor.reset()
        executor.step(ids=np.ones(3, np.int32))
        assert int(executor.fetch("calls")) == 1


def test_a_refusal_that_can_be_made_early_changes_nothing(
    built: dict[tuple[str, int], oic.Synthesizer]
) -> None:
    """The index that the second group of `caches` writes at is checked before any consumer runs."""
    for threads in THREADS:
        with built["caches", threads].make_executor() as executor:
            x = np.ones((2, 4), np.float32)
            for _ in range(8):
                executor.step(x=x, at=1)
            before = executor.save()
            with pytest.raises(oic.StepError) as found:
                executor.step(x=x, at=2)
            assert found.value.variable == "V.t"
            assert executor.save() == before


@pytest.mark.parametrize("shared", ["bytes", "state"])
def test_the_verifier_keeps_regions_apart(shared: str) -> None:
    planned = modules("moved" if shared == "state" else "plain", 2)[-1][1].clone()
    op = next(o for o in planned.all_ops() if isinstance(o, Parallel))
    if shared == "bytes":
        first, second = (
            next(r for o in region.ops for r in o.results if r.place and r.place.space in ("arena", "output"))
            for region in op.consumers[:2]
        )
        second.place = first.place
        expected = "share bytes"
    else:
        store = next(o for o in op.consumers[1].ops if o.name == "state.store")
        op.consumers[1].set_ops([o for o in op.consumers[1].ops if o is not store])
        op.consumers[0].set_ops([clone_op(store, {}), *op.consumers[0].ops])
        op.consumers[2].set_ops([store, *op.consumers[2].ops])
        expected = "written by one region"
    with pytest.raises(AssertionError, match=expected):
        verify_memory(planned)


@pytest.mark.parametrize("threads", [0, -1, 65])
def test_a_wrong_number_of_threads_is_refused(threads: int) -> None:
    with pytest.raises(oic.OicError, match="thread"):
        oic.Synthesizer(graph("plain"), model(), threads=threads)


DRIVER = """
#include "oic/pool.h"
#include "NAME.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    NAME_session s;
    NAME_inputs in = {0};
    NAME_outputs out = {0};
    static float x[6 * 4];
    static int32_t ids[3] = {1, 2, 3};
    static int64_t at = 2;
    static uint8_t b = 1;
    static double memory[OUTPUTS][64];
    long no = 0;
    (void)x, (void)ids, (void)at, (void)b;
    if (NAME_open(&s, argc > 1 ? argv[1] : NULL) != OIC_OK || s.pool == NULL) {
        return 2;
    }
FILL
    for (int step = 0; step < 2000; ++step) {
        for (int i = 0; i < 24; ++i) {
            x[i] = (float)((i * 7 + step) % 13) - 6.0f;
        }
        no += NAME_step(&s, &in, &out) != OIC_OK;
        if (step % 7 == 6) {
            NAME_reset(&s);
        }
    }
    NAME_close(&s);
    printf("%ld refused\\n", no);
    return 0;
}
"""


def driver(files: Files) -> str:
    """A program that runs many steps."""
    entry = files.model.entries[0]
    given = {"x": "x", "ids": "ids", "at": "&at", "b": "&b"}
    fill = [f"    in.{i.member} = {given[i.name]};" for i in entry.face.inputs]
    fill += [f"    in.{member} = 6;" for _, member in entry.face.extents]
    fill += [f"    out.{o.member} = (void *)memory[{n}];" for n, o in enumerate(entry.face.outputs)]
    text = DRIVER.replace("NAME", files.name).replace("FILL", "\n".join(fill))
    return text.replace("OUTPUTS", str(max(1, len(entry.face.outputs))))


def has_sanitizer(folder: Path) -> bool:
    source, program = folder / "empty.c", folder / "empty"
    source.write_text("int main(void) { return 0; }\n")
    call = [*find_compiler(), "-fsanitize=thread", str(source), "-o", str(program)]
    return subprocess.run(call, capture_output=True, check=False).returncode == 0 and (
        subprocess.run([str(program)], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.parametrize("name", consumers.GRAPHS)
def test_no_data_race(name: str, tmp_path: Path) -> None:
    """Two thousand steps under the thread sanitizer."""
    if not has_sanitizer(tmp_path):
        pytest.skip("the C compiler has no thread sanitizer")
    files = oic.Synthesizer(
        graph(name), model(), capacity=CAPACITY.get(name, {}), target="portable", threads=3
    ).emit(tmp_path)
    source = tmp_path / "driver.c"
    source.write_text(driver(files))
    program = tmp_path / "driver"
    flags = [*STANDARD, *WARNINGS, "-Werror", "-O1", "-g", "-fsanitize=thread", "-pthread"]
    call = [*find_compiler(), *flags, "-I", str(tmp_path), str(source), *map(str, files.sources)]
    done = subprocess.run([*call, "-o", str(program), "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    weights = [str(files.weights)] if files.weights else []
    ran = subprocess.run([str(program), *weights], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[:4000]
