"""Executors used from several threads, and in a process that is copied by `os.fork`."""

from __future__ import annotations

import gc
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import oic

SUM = """
graph running {
  dynamic    { x: f32[64, 64]; }
  volatile   { y: f32[64, 64]; n: i32; }
  persistent { count: i32; K(t): f32[64, 64] @table @fixed(t=2); }
  block entry {
    op matmul(x, x) >> y;
    op matmul(y, x) >> y;
    cache.write y >> K[0];
    cache.write y >> K[1];
    cache.increment count;
    cache.read count >> n;
    return;
  }
}
"""
CONSUMERS = """
graph shared {
  dynamic    { x: f32[4]; }
  volatile   { x2: f32[4]; a: f32[4]; b: f32[4]; }
  persistent { p: f32[4]; q: f32[4]; }
  block entry {
    transfer x >> x2;
    yield x2;
    await x2;
    cache.read p >> a;
    cache.read q >> b;
    return;
  }
  block one { await x2; cache.write x2 >> p; yield x2; }
  block two { await x2; cache.write x2 >> q; yield x2; }
}
"""
BACKENDS = ("graph", "planned", "c")


@pytest.fixture(scope="module")
def library() -> oic.Synthesizer:
    return oic.Synthesizer(oic.parse(SUM)).build()


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest, library: oic.Synthesizer) -> Callable[[], oic.Executor]:
    if request.param == "c":
        return library.make_executor
    return oic.Simulator(oic.parse(SUM), stage=request.param).make_executor


@pytest.fixture
def executor(make: Callable[[], oic.Executor]) -> Iterator[oic.Executor]:
    with make() as ex:
        yield ex


def powers(value: int) -> np.ndarray:
    """The matrix whose every step of the graph gives (64² value³, …)."""
    return np.full((64, 64), value, np.float32)


def test_one_executor_used_by_several_threads_gives_right_answers(executor: oic.Executor) -> None:
    """A step with its inputs and its outputs is one call, so no thread sees another's."""
    steps = 30

    def use(value: int) -> list[int]:
        counts = []
        for _ in range(steps):
            out = executor.step(x=powers(value))
            assert (out["y"] == 64 * 64 * value**3).all(), f"thread {value}"
            counts.append(int(out["n"]))
        return counts

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(use, range(1, 5)))
    assert all(counts == sorted(counts) for counts in found)
    assert sorted(itertools.chain(*found)) == list(range(1, 4 * steps + 1))


def test_a_state_is_saved_loaded_and_forked_between_steps(executor: oic.Executor) -> None:
    """Both entries of the table are written in one step, so they are always equal."""
    stop = threading.Event()

    def step() -> None:
        value = 0
        while not stop.is_set():
            value = value % 7 + 1
            executor.step(x=powers(value))

    with ThreadPoolExecutor(1) as pool:
        stepping = pool.submit(step)
        try:
            for _ in range(20):
                with executor.fork() as other:
                    a, b = other.fetch("K") if len(other.fetch("K")) else (0, 0)
                    assert np.array_equal(a, b)
                    executor.load(other.save())
                a = executor.fetch("K")
                assert len(a) == 0 or np.array_equal(a[0], a[1])
                list(executor.trace())
        finally:
            stop.set()
        stepping.result()


def test_executors_of_one_library_run_side_by_side(make: Callable[[], oic.Executor]) -> None:
    def use(value: int) -> None:
        with make() as ex:
            for count in range(1, 20):
                out = ex.step(x=powers(value))
                assert (out["y"] == 64 * 64 * value**3).all()
                assert int(out["n"]) == count

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(1, 5)))


def test_close_waits_for_a_running_step() -> None:
    """The step is held up by its observer until the other thread has tried to close."""
    ex = oic.Simulator(oic.parse(SUM)).make_executor()
    observe = ex.machine.observer  # type: ignore[attr-defined]
    closing = threading.Thread(target=ex.close)
    closed_early = []

    def hold(op: object) -> None:
        observe(op)
        if not closing.ident:
            closing.start()
            closing.join(0.05)
            closed_early.append(not closing.is_alive())

    ex.machine.observer = hold  # type: ignore[attr-defined]
    assert (ex.step(x=powers(1))["y"] == 64 * 64).all()
    closing.join()
    assert closed_early == [False]


def test_close_during_the_steps_of_other_threads(library: oic.Synthesizer) -> None:
    """A step either ends as it should, or says that the executor is closed."""
    for _ in range(5):
        ex = library.make_executor()
        begun = threading.Barrier(4)

        def use(ex: oic.Executor = ex, begun: threading.Barrier = begun) -> str:
            begun.wait()
            try:
                while True:
                    assert (ex.step(x=powers(2))["y"] == 64 * 64 * 8).all()
            except oic.OicError as error:
                return error.diagnostics[0].slug

        with ThreadPoolExecutor(3) as pool:
            users = [pool.submit(use) for _ in range(3)]
            begun.wait()
            ex.step(x=powers(2))
            ex.close()
            assert [u.result() for u in users] == ["session-closed"] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda ex: ex.insert(x=powers(1)),
        lambda ex: ex.step(x=powers(1)),
        lambda ex: ex.fetch("y"),
        lambda ex: ex.reset(),
        lambda ex: ex.save(),
        lambda ex: ex.load(b""),
        lambda ex: ex.fork(),
        lambda ex: ex.trace(),
    ],
    ids=("insert", "step", "fetch", "reset", "save", "load", "fork", "trace"),
)
def test_a_closed_executor_says_so(
    call: Callable[[oic.Executor], object], make: Callable[[], oic.Executor]
) -> None:
    ex = make()
    ex.close()
    ex.close()
    with pytest.raises(oic.OicError) as caught:
        call(ex)
    assert caught.value.diagnostics[0].slug == "session-closed"


def test_executors_are_made_by_several_threads_at_once() -> None:
    """The library is built once, whichever thread asks first."""
    maker = oic.Synthesizer(oic.parse(CONSUMERS))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: maker.make_executor(), range(4)))
    assert len({ex.library.path for ex in made}) == 1  # type: ignore[attr-defined]
    for ex in made:
        assert ex.step(x=[1, 2, 3, 4])["a"].tolist() == [1, 2, 3, 4]
        ex.close()


def in_a_child(check: Callable[[], None]) -> None:
    """Run a check in a copy of this process, which then ends as a program does, and require that it holds."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            check()
            status = 0
        finally:
            import weakref

            weakref.finalize._exitfunc()  # type: ignore[attr-defined]  # what `atexit` runs
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied here")


def forked_and_used() -> Path:
    """The temporary folder of a library that a copy of this process closed and forgot."""
    maker = oic.Synthesizer(oic.parse(CONSUMERS), threads=2).build()
    ex = maker.make_executor()

    def leave() -> None:
        ex.close()
        maker.make_executor().close()
        vars(maker).clear()

    folder: Path = maker.library.files.folder
    in_a_child(leave)
    assert folder.is_dir()
    assert ex.step(x=[1, 2, 3, 4])["a"].tolist() == [1, 2, 3, 4]
    with maker.make_executor() as other:
        assert other.step(x=[1, 2, 3, 4])["b"].tolist() == [1, 2, 3, 4]
    return folder


@needs_fork
def test_a_copy_of_the_process_deletes_nothing() -> None:
    folder = forked_and_used()
    gc.collect()
    assert not folder.exists()


@needs_fork
def test_consumers_run_in_a_copy_of_the_process() -> None:
    """Threads are not copied: there the same code runs them in order."""
    ex = oic.Synthesizer(oic.parse(CONSUMERS), threads=2).make_executor()
    ex.step(x=[1, 2, 3, 4])

    def step() -> None:
        assert ex.fetch("p").tolist() == [1, 2, 3, 4]
        assert ex.step(x=[5, 6, 7, 8])["b"].tolist() == [5, 6, 7, 8]
        ex.close()

    in_a_child(step)
    assert ex.step(x=[1, 1, 1, 1])["b"].tolist() == [1, 1, 1, 1]
    ex.close()


@needs_fork
def test_a_process_is_not_copied_in_the_middle_of_a_step(executor: oic.Executor) -> None:
    stop = threading.Event()

    def step() -> None:
        value = 0
        while not stop.is_set():
            value = value % 7 + 1
            executor.step(x=powers(value))

    def look() -> None:
        a = executor.fetch("K")
        assert len(a) == 0 or np.array_equal(a[0], a[1])
        assert (executor.step(x=powers(3))["y"] == 64 * 64 * 27).all()

    with ThreadPoolExecutor(1) as pool:
        stepping = pool.submit(step)
        try:
            for _ in range(5):
                in_a_child(look)
        finally:
            stop.set()
        stepping.result()
