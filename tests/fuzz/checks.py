"""What must hold of any graph: every pass keeps the answer, every stage prints, parses and verifies.

A text that `generate` made is compiled with the capacities and the constants that its names ask
for, run for some steps, and compared after each pass, and over memory planned in every way.
"""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from oic.check.source import parse
from oic.compare.between import KeptCopy, drawn
from oic.compare.bisect import bisect
from oic.compare.harness import Run
from oic.compare.inputs import random_inputs, random_values
from oic.diagnostics import OicError, StepError
from oic.driver import Program, Settings, compile_graph, interface_of
from oic.dtypes import ALL
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.memory.verify import verify
from oic.model import Model, Tensor
from oic.passes.pipeline import PIPELINE
from oic.reference.interpret import Machine
from tests.fuzz.generate import Options, generate
from tests.fuzz.memory_plans import LAYOUTS, bufferized, planned_as
from tests.fuzz.watched import WatchedMachine

CAPACITY = 5
STEPS = 7
REPAIRS = 8  # statements taken out of a graph that refuses too much


@dataclass(frozen=True)
class Fault:
    """A rule that a graph broke.

    kind   what broke, short and the same for the same bug: the reducer looks for it
    """

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def compiled(text: str, *, name: str = "random.oi") -> Program | None:
    """The program of a generated text; None if the language refuses it."""
    try:
        graph = parse(text, name)
        return compile_graph(graph, _model(text), Settings(capacity=_capacities(text)))
    except OicError:
        return None


def _capacities(text: str) -> dict[str, int]:
    """Indices of tables whose names start with g grow; the call must say how far."""
    tables = [line.partition(":")[0] for line in text.splitlines() if "@table" in line]
    return {name: CAPACITY for line in tables for name in re.findall(r"\bg\w*", line)}


MEMBERS = 3  # of a family of weights


def _model(text: str) -> Model:
    """Random data for every constant that is not its initial value alone, under the name it asks for."""
    section = re.search(r"constant \{(.*?)\n    \}", text, re.DOTALL)
    starts = [line for line in text.splitlines() if re.match(r" +v\w*: .* @ref", line)]  # of outputs
    tensors: dict[str, Tensor] = {}
    pattern = r"\b([a-z]+\d+)(\(\w+\))?: (\w+)(?:\[([\d, ]*)\])?( @\w+\(.*\))?;"
    for name, index, dtype, sizes, attribute in re.findall(pattern, "\n".join([section[1] if section else "", *starts])):
        if attribute.startswith(" @init"):
            continue
        shape = tuple(int(n) for n in sizes.split(",")) if sizes else ()
        quoted = re.findall(r'"(.*?)"', attribute) or [name]
        apart = index and attribute.startswith(" @pattern")
        members = [re.sub(r"\{\w+\}", str(n), quoted[-1]) for n in range(MEMBERS)] if apart else quoted[-1:]
        shape = (MEMBERS, *shape) if index and not apart else shape  # one tensor, its leading axis the index
        for at, member in enumerate(members):
            rng = np.random.default_rng([*(int(n) for n in re.findall(r"\d+", name)), *([at] if apart else [])])
            tensors[member] = Tensor(random_values(ALL[dtype], shape, rng), dtype)
    return Model(tensors=tensors)


def steps(program: Program, seed: int, count: int = STEPS) -> list[Run]:
    """Random steps: sizes from 0 to their maximum, indices that are mostly small.

    Between some of them the state is saved, loaded, forked or reset.
    """
    rng = np.random.default_rng(seed)
    face = interface_of(program)
    entries = list(face.entries.values())
    runs: list[Run] = []
    for number in range(count):
        entry = entries[0] if number % 3 < 2 else entries[int(rng.integers(len(entries)))]
        sizes = {n: int(rng.choice([0, 1, 2, most, most])) for n, most in entry.maxima.items()}
        inputs = random_inputs(program.module, entry, rng, sizes)
        for name, type_ in entry.inputs.items():
            if not type_.shape and type_.dtype.kind in ("int", "uint"):
                low = -1 if type_.dtype.low < 0 and rng.random() < 0.05 else 0
                high = 9 if rng.random() < 0.15 else 4
                inputs[name] = np.asarray(rng.integers(low, high)).astype(type_.dtype.np)
        runs.append(Run(entry.symbol, inputs, drawn(rng) if number else ""))
    return runs


def program_of(
    seed: int, options: Options | None = None, make: Callable[[int, Options | None], str] = generate
) -> tuple[str, Program | None]:
    """The text of a seed, without the statements that would refuse most steps, and its program.

    A graph whose every step is refused shows nothing; one that sometimes refuses shows the most.
    """
    text = make(seed, options)
    program = compiled(text)
    for _ in range(REPAIRS):
        lines = _refusing(program, seed) if program is not None else []
        if len(lines) * 2 <= STEPS:
            break
        worst = max(sorted(set(lines)), key=lines.count) - 1
        rows = text.splitlines()
        text = "\n".join([*rows[:worst], *rows[worst + 1 :], ""])
        program = compiled(text)
    return text, program


def _refusing(program: Program, seed: int) -> list[int]:
    """The line that refuses, of every step that is refused."""
    machine, kept = Machine(program.module), KeptCopy()
    found: list[int] = []
    for run in steps(program, seed):
        kept.act(machine, run.before)
        try:
            machine.step(run.entry, run.inputs)
        except StepError as error:
            if error.span is not None and error.span.source.line(error.span.line).rstrip().endswith(";"):
                found.append(error.span.line)
    return found


def check(program: Program, runs: list[Run]) -> Fault | None:
    """The first rule that some pass breaks, or None."""
    return check_passes(program, runs) or check_memory(program, runs)


def check_passes(program: Program, runs: list[Run], changed: Counter[str] | None = None) -> Fault | None:
    """Every stage verifies, prints and parses, and its answer is that of GRAPH.

    changed   counts the passes that changed something
    """
    try:
        fault = _round_trip("the frontend", print_module(program.module))
        if fault is not None:
            return fault
        verify(program.module)
    except AssertionError as error:
        return Fault("frontend: verify", str(error))
    found = list(_passes(program, Counter() if changed is None else changed))
    for _, outcome in found:
        if isinstance(outcome, Fault):
            return outcome
    return _compared(program, [(name, m) for name, m in found if isinstance(m, Module)], runs)


def check_memory(program: Program, runs: list[Run]) -> Fault | None:
    """Every layout of memory, watched, gives the answer of GRAPH; with consumers at once, too."""
    threads = [1, 2] if any(op.name == "parallel" for op in program.module.all_ops()) else [1]
    for count in threads:
        try:
            module = bufferized(program.module, count)
            planned = {way: planned_as(module, way) for way in LAYOUTS}
        except Exception as error:
            return Fault(f"memory: {_where(error)}", traceback.format_exc())
        for watched in (True, False):
            modules = [(f"memory: {w.name}", m) for w, m in planned.items() if w.watched == watched]
            fault = _compared(program, modules, runs, WatchedMachine if watched else Machine)
            if fault is not None:
                return fault
    return None


def _passes(program: Program, changed: Counter[str]) -> Iterator[tuple[str, Module | Fault]]:
    """The module after each pass, up to one that fails or breaks a rule of the IR."""
    module, shown = program.module, print_module(program.module)
    for step in PIPELINE:
        before, module, old = module, module.clone(), shown
        try:
            step.run(module)
            verify(module)
        except Exception as error:
            yield step.name, Fault(f"{step.name}: {_where(error)}", traceback.format_exc())
            return
        if print_module(before) != old:
            yield step.name, Fault(f"{step.name}: changes what it was copied from", "")
            return
        shown = print_module(module)
        changed[step.name] += shown != old
        yield step.name, _round_trip(step.name, shown) or module


def _where(error: Exception) -> str:
    """Where and what, without the names of one graph."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    first = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__} in {last.name}: {re.sub(r'[<%].*?>|[0-9]+|%[a-z.]+', '_', first)}"


def _round_trip(name: str, text: str) -> Fault | None:
    try:
        again = print_module(parse_module(text))
    except Exception as error:
        return Fault(f"{name}: text does not parse: {_where(error)}", f"{error}\n{text}")
    if again != text:
        lines = zip(text.splitlines(), again.splitlines())
        a, b = next(((a, b) for a, b in lines if a != b), ("", ""))
        return Fault(f"{name}: text is not the same again", f"{a}\n{b}")
    return None


def _compared(
    program: Program, modules: list[tuple[str, Module]], runs: list[Run], machine: type[Machine] = Machine
) -> Fault | None:
    try:
        culprit = bisect(program.module, modules, runs, machine)
    except Exception as error:
        detail = f"{_last_good(program, modules, runs, machine)}\n{traceback.format_exc()}"
        return Fault(f"interpreter: {_where(error)}", detail)
    if culprit is None:
        return None
    kind = "the status" if culprit.variable == "status" else "a value"
    return Fault(f"{culprit.name}: {kind} changes", str(culprit))


def _last_good(
    program: Program, modules: list[tuple[str, Module]], runs: list[Run], machine: type[Machine]
) -> str:
    """Which pass left something that the interpreter cannot run."""
    for name, module in modules:
        try:
            bisect(program.module, [(name, module)], runs, machine)
        except Exception:
            return f"after {name}"
    return ""
