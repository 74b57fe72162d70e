"""Mutated sources through the whole compiler: whatever the text, it compiles or is an `OicError`.

    python -m tests.fuzz.sources --minutes 5 --seed 1 examples tests

What compiles is also stepped in both stages of the interpreter, which must agree.  A failure
prints its seed, the traceback and the source; `--seed N --count 1` runs that one again.
"""

from __future__ import annotations

import argparse
import ast
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from oic.check.source import parse
from oic.check.symbols import SymbolTable, symbols_of
from oic.compare.inputs import random_values
from oic.diagnostics import OicError, StepError
from oic.driver import Program, Settings, compile_graph
from oic.ir import dims
from oic.model import Model
from oic.operators.evaluate import shape_of
from oic.reference.interpret import Machine
from oic.syntax import tree as syntax
from tests.fuzz.source_mutations import mutated

SECONDS = 20  # a text that takes longer to compile hangs
STEP_SECONDS = 5
LARGE = 1 << 26  # bytes of values and state beyond which nothing is run
STEPS = 3


def sources(places: Sequence[str | Path]) -> list[str]:
    """Graphs in `.oi` files and in the strings of Python files, in a fixed order."""
    found: dict[str, None] = {}
    for place in map(Path, places):
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.suffix == ".oi":
                found[file.read_text(encoding="utf-8", errors="replace")] = None
            elif file.suffix == ".py":
                found |= dict.fromkeys(_strings(file.read_text(encoding="utf-8")))
    return list(found)


def whole(texts: Sequence[str]) -> list[str]:
    """Those that compile: changes to what is refused anyway find little."""
    return [text for text in texts if attempt(text, 0, run=False) != "refused"] or list(texts)


def _strings(text: str) -> Iterator[str]:
    for part in ast.walk(ast.parse(text)):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            if "block entry" in part.value:
                yield part.value


def attempt(text: str, seed: int, *, run: bool = True) -> str:
    """Take a text through the compiler: 'refused', 'compiled' or 'run'.

    Raises whatever is not an OicError or StepError, and AssertionError where the stages differ.
    """
    rng = random.Random(seed)
    try:
        with limited(SECONDS):
            graph = parse(text, "fuzz.oi")
            program = compile_graph(graph, _model(graph, rng), _settings(graph, rng))
            planned = program.planned
    except OicError as error:
        assert str(error) and all(d.slug and d.to_json() for d in error.diagnostics)
        return "refused"
    if not run or _is_large(program):
        return "compiled"
    try:
        with limited(STEP_SECONDS):
            _run(Machine(program.module), Machine(planned), seed)
    except TimeoutError:
        return "compiled"  # a loop of many turns is no fault
    return "run"


# ---------------------------------------------------------------- what a graph asks for


def _settings(graph: syntax.Graph, rng: random.Random) -> Settings:
    """A value for most sizes that have none, and for some capacities."""
    names = symbols_of(graph)
    free = sorted(names.axes - names.sizes.keys() - names.extents.keys())
    sizes = {name: rng.randint(1, 4) for name in free if rng.random() < 0.95}
    indices = sorted({i.name for d in graph.declarations for i in d.indices or () if _grows(d)})
    capacity = {name: rng.randint(1, 8) for name in indices if rng.random() < 0.3}
    return Settings(sizes, capacity, verified=True)


def _grows(d: syntax.Declaration) -> bool:
    return d.kind == "persistent" and any(a.name in ("table", "auto_dim") for a in d.attributes)


def _model(graph: syntax.Graph, rng: random.Random) -> Model | None:
    """A model with some of the tensors and config values that a graph names, right or wrong."""
    if rng.random() < 0.3:
        return None
    names = symbols_of(graph)
    tensors: dict[str, object] = {}
    values: dict[str, object] = {}
    for d in graph.declarations:
        if d.kind not in ("constant", "volatile"):
            continue
        for name in _bound_names(d):
            if rng.random() < (0.9 if d.kind == "constant" else 0.1):
                _give(d, names, name, rng, tensors, values)
    return Model(tensors, metadata=values)


def _bound_names(d: syntax.Declaration) -> Iterator[str]:
    found = [a for a in d.attributes if a.name in ("ref", "pattern")]
    written = [x.value.value for a in found for x in a.args if isinstance(x.value, syntax.Str)]
    for name in written or [d.name]:
        members = [name]
        for index in d.indices or ():
            members = [m.replace(f"{{{index.name}}}", str(i)) for m in members for i in range(3)]
        yield from members


def _give(
    d: syntax.Declaration, names: SymbolTable, name: str, rng: random.Random,
    tensors: dict[str, object], values: dict[str, object],
) -> None:  # fmt: skip
    if not d.dims and rng.random() < 0.5:
        values[name] = rng.choice([0, 1, 2, 3, 0.5, True, "text"])
        return
    shape = [rng.randint(1, 4) if not isinstance(n, syntax.Int) else min(n.value, 64) for n in d.dims]
    dtype: Any = {"f16": np.float16, "i32": np.int32, "u32": np.uint32}.get(d.dtype, np.float32)
    tensors[name] = np.ones(shape, dtype)


# ---------------------------------------------------------------- running


def _is_large(program: Program) -> bool:
    """Too much memory to try, or tables that only address space is reserved for."""
    states = [s.result.type for s in program.module.states()]
    values = [r.type for op in program.module.all_ops() for r in op.results if hasattr(r.type, "nbytes")]
    return sum(t.entry.nbytes * _places(t) for t in states) + sum(t.nbytes for t in values) > LARGE


def _places(type_: Any) -> int:
    total = 1
    for index in type_.table:
        total *= index.capacity
    for size, index in zip(type_.shape, type_.auto):
        total *= 1 + index.capacity // max(1, size)
    return int(total)


def _run(graph: Machine, planned: Machine, seed: int) -> None:
    """Step both stages alike with random inputs; their answers must be equal."""
    rng = np.random.default_rng(seed)
    functions = list(graph.module.functions())
    for _ in range(STEPS):
        function = functions[int(rng.integers(len(functions)))]
        types = [arg.tensor for arg in function.body.args]
        extents = dims.extents(d for t in types for d in t.shape)
        sizes = {e.name: int(rng.integers(0, min(e.maximum, 5) + 1)) for e in sorted(extents)}
        if any(dims.evaluate(d, sizes) < 0 for t in types for d in t.shape):
            continue
        inputs = {
            n: random_values(t.dtype, shape_of(t, sizes), rng, 3 if t.dtype.high > 2 else None)
            for n, t in zip(function.inputs, types)
        }
        answers = [_step(machine, function.symbol, inputs) for machine in (graph, planned)]
        _compare(*answers)
        if isinstance(answers[0], str):
            return  # the later stage may have refused after an effect
        for state in graph.module.states():
            pair = (graph.fetch_state(state.symbol), planned.fetch_state(state.symbol))
            _compare(*({state.symbol: value} for value in pair))


def _step(machine: Machine, symbol: str, inputs: dict[str, Any]) -> dict[str, Any] | str:
    try:
        return machine.step(symbol, inputs)
    except StepError as error:
        return error.status


def _compare(a: dict[str, Any] | str, b: dict[str, Any] | str) -> None:
    if isinstance(a, str) or isinstance(b, str):
        assert isinstance(a, str) and isinstance(b, str), f"{a} in GRAPH, {b} in PLANNED"
        return  # which of several checks fails first is free
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].shape == b[name].shape, f"{name}: {a[name].shape} and {b[name].shape}"
        x, y = (np.asarray(v).astype(np.float64) for v in (a[name], b[name]))
        assert np.allclose(x, y, 1e-3, 1e-3, equal_nan=True), f"{name}: {x} and {y}"


# ---------------------------------------------------------------- the campaign


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in the body after some seconds, where the system has alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def failure(corpus: Sequence[str], seed: int, *, run: bool = True) -> str | None:
    """What goes wrong with the text of a seed: its report, or None."""
    text = mutated(corpus, random.Random(seed))
    try:
        attempt(text, seed, run=run)
    except Exception:
        return f"seed {seed}\n{traceback.format_exc()}\n--- source\n{text}\n---"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sources", description=__doc__)
    parser.add_argument("places", nargs="*", default=["examples", "tests"])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--count", type=int, help="texts to try, instead of a time")
    parser.add_argument("--seed", type=int, default=0, help="of the first text; the next is one more")
    parser.add_argument("--no-run", action="store_true", help="compile only")
    given = parser.parse_args(arguments)
    corpus = whole(sources(given.places))
    if not corpus:
        parser.error(f"no graphs in {' '.join(given.places)}")
    end = time.monotonic() + given.minutes * 60
    seed, failures = given.seed, 0
    while seed < given.seed + given.count if given.count else time.monotonic() < end:
        report = failure(corpus, seed, run=not given.no_run)
        if report is not None:
            failures += 1
            print(report, flush=True)
        seed += 1
    print(f"{seed - given.seed} texts from {len(corpus)} graphs, {failures} failures", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
