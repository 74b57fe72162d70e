"""The operators' own test, as a command: every operator in every backend, or what is tested.

    python -m tests.fuzz.operator_campaign --table > docs/operators.md     the table of the docs
    python -m tests.fuzz.operator_campaign --full                          every case, several seeds and builds
    python -m tests.fuzz.operator_campaign --only softmax --only exp       of some operators
    python -m tests.fuzz.operator_campaign --label range --seeds 20        numbers of all magnitudes
    python -m tests.fuzz.operator_campaign --sanitized --part 25           one of 25 cases, under AddressSanitizer and UBSan
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from oic.api import Simulator, Synthesizer
from oic.check.source import parse
from oic.operators import catalog
from oic.session.executor import Executor
from oic.syntax.tree import Graph
from oic.toolchain.compiler import find_compiler
from tests.fuzz.batch_build import build_together
from tests.fuzz.operator_cases import Case
from tests.fuzz.operators import Batch, Fault, batches, compare, every_case, part, table
from tests.fuzz.sanitized import SanitizedExecutor, build_sanitized

CATALOG = catalog()
AT_ONCE = 24  # batches of one library
BUILDS = (
    ("gcc", "-O1"),
    ("gcc", "-O3", "-march=x86-64"),
    ("gcc", "-O3", "-march=native"),
    ("clang", "-O3", "-march=native"),
)


def sessions(
    made: Sequence[Batch], folder: Path, flags: Sequence[str], compiler: Sequence[str] | None = None
) -> Iterator[dict[str, Executor]]:
    """A session of every batch in each backend; libraries hold a few batches each."""
    for at in range(0, len(made), AT_ONCE):
        graphs = [parse(batch.text, f"{batch.name}.oi") for batch in made[at : at + AT_ONCE]]
        compiled = compiled_together(graphs, folder / str(at), flags, compiler)
        for graph, program in zip(graphs, compiled, strict=True):
            yield {
                "graph": Simulator(graph).make_executor(),
                "planned": Simulator(graph, stage="planned").make_executor(),
                "c": program.make_executor(),
            }


def sanitized(made: Sequence[Batch], folder: Path) -> Iterator[dict[str, Executor]]:
    """A session of every batch in the interpreter and, as 'c', in a program with sanitizers."""
    for at in range(0, len(made), AT_ONCE):
        graphs = [parse(batch.text, f"{batch.name}.oi") for batch in made[at : at + AT_ONCE]]
        simulators = [Simulator(graph) for graph in graphs]
        path = build_sanitized([s.program for s in simulators], folder / str(at))
        for number, simulator in enumerate(simulators):
            yield {
                "graph": simulator.make_executor(),
                "c": SanitizedExecutor(simulator.program, path, number),
            }


def compiled_together(
    graphs: Sequence[Graph], folder: Path, flags: Sequence[str], compiler: Sequence[str] | None = None
) -> list[Synthesizer]:
    """Graphs compiled into one library."""
    made = [Synthesizer(graph, target="portable") for graph in graphs]
    build_together(made, folder, flags, compiler)
    return made


def faults(made: Sequence[Batch], opened: Iterator[dict[str, Executor]], seed: int = 0) -> Iterator[Fault]:
    """Every difference between the backends; sessions are closed as they are done with."""
    for batch, backends in zip(made, opened):
        try:
            yield from compare(batch, backends, seed)
        finally:
            for executor in backends.values():
                executor.close()


def run(chosen: list[Case], build: Sequence[str], seed: int = 0) -> int:
    """Run cases and print what differs; how many do.

    build   compiler and flags; none: with sanitizers
    """
    made, count = batches(chosen), 0
    folder = Path(tempfile.mkdtemp(prefix="oic-operators-"))
    opened = sessions(made, folder, build[1:], build[:1]) if build else sanitized(made, folder)
    try:
        for fault in faults(made, opened, seed):
            count += 1
            print(fault, flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"{' '.join(build) or 'sanitized'}, seed {seed}: {len(chosen)} cases, {count} differences", flush=True)
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command line asks for; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.operator_campaign", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--table", action="store_true", help="print docs/operators.md")
    parser.add_argument("--full", action="store_true", help="every case with every compiler, three seeds")
    parser.add_argument("--sanitized", action="store_true", help="compile with the sanitizers")
    parser.add_argument("--only", action="append", default=[], help="an operator; may be repeated")
    parser.add_argument("--label", help="cases with this label: 'range' has numbers of all magnitudes")
    parser.add_argument("--seeds", type=int, default=1, help="other numbers, so many times")
    parser.add_argument("--part", type=int, default=1, help="one of so many cases")
    given = parser.parse_args(arguments)
    if given.table:
        sys.stdout.write(table())
        return 0
    every = (c for c in every_case() if given.label in (None, c.label))
    chosen = part([c for c in every if not given.only or c.op in given.only], given.part)
    if given.sanitized:
        return int(run(chosen, ()) > 0)
    if not given.full:
        return int(sum(run(chosen, (*find_compiler(), "-O1"), seed) for seed in range(given.seeds)) > 0)
    found = sum(run(chosen, b, seed) for b in BUILDS if shutil.which(b[0]) for seed in range(3))
    return int(found + run(chosen, ()) > 0)


if __name__ == "__main__":
    sys.exit(main())
