"""Random graphs by the minute or by number: `python -m tests.fuzz.campaign --count 500 --seed 1`.

Every graph is checked after every pass, and over memory planned in every way and watched byte by byte
(`checks`); then compiled, many together, under sanitizers or by an optimizer, and compared with the
reference step by step.  A graph that fails is made small and printed with the command that makes it
again.  Files of graphs may be named instead of seeds.  Exit status: 0 nothing found, 1 something found.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from oic.compare.between import told
from oic.compare.harness import Run, compare
from oic.driver import Program
from tests.fuzz import generate, graphs
from tests.fuzz.checks import Fault, check_memory, check_passes, compiled, program_of, steps
from tests.fuzz.coverage import Coverage
from tests.fuzz.graph_features import FEATURES, features
from tests.fuzz.memory_plans import LAYOUTS, laid_out
from tests.fuzz.reduce import reduced
from tests.fuzz.sanitized import OPTIMIZED, SANITIZED, Crash, SanitizedExecutor, build_sanitized

BATCH = 20  # graphs in one call of the C compiler
TRIES = 400  # texts to try while a graph is made small
TRIES_IN_C = 100
HOW = {"sanitized": SANITIZED, "optimized": OPTIMIZED}

Check = Callable[[Program, list[Run]], Fault | None]


@dataclass(frozen=True)
class Case:
    """One graph to check; its steps are those of the seed, and so is the layout it has in C.

    origin   how to have it checked again: arguments of the command
    """

    seed: int
    text: str
    program: Program
    origin: str


@dataclass
class Tally:
    """What a campaign did.

    refused    texts that the language does not allow
    steps      taken in C; refused ones, those refused after an effect
    faults     the seeds of each kind of failure
    covered    in how many graphs each feature occurs
    acts       how often states were saved, loaded, forked and reset between steps in C
    compared   values; of them floats with a bound that says little
    doubtful   steps in which rounding might have decided otherwise
    coverage   operators, passes, statuses
    """

    graphs: int = 0
    refused: int = 0
    built: int = 0
    steps: int = 0
    refusals: int = 0
    late: int = 0
    compared: int = 0
    doubtful: int = 0
    faults: dict[str, list[int]] = field(default_factory=dict)
    covered: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)

    def __str__(self) -> str:
        return (
            f"{self.graphs} graphs checked ({self.refused} texts refused),"
            f" {self.built} compiled, {self.steps} steps in C ({self.refusals} refused,"
            f" {self.late} late), states {told(self.acts) or 'left alone'},"
            f" {self.compared:,} values compared,"
            f" {self.doubtful} steps in doubt, {sum(map(len, self.faults.values()))} failures"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; the exit status."""
    given = _parser().parse_args(arguments)
    tally = Tally()
    start = time.monotonic(), _cpu()

    def passes(program: Program, runs: list[Run]) -> Fault | None:
        return check_passes(program, runs, tally.coverage.passes)

    checks: list[Check] = [check_memory] if given.no_passes else [passes, check_memory]
    ways = [] if given.c == "none" else list(HOW) if given.c == "both" else [given.c]
    waiting: list[Case] = []
    last = given.seed - 1
    try:
        for case in _cases(given, tally):
            last = case.seed
            tally.graphs += 1
            tally.coverage.add(case.program.module)
            if given.features:
                tally.covered.update(features(case.program, steps(case.program, case.seed)))
            if not _checked(case, checks, tally):
                continue
            waiting.append(case)
            if len(waiting) == BATCH:
                _batches(waiting, ways, given.target, tally)
                waiting = []
        _batches(waiting, ways, given.target, tally)
    except KeyboardInterrupt:  # what was done until then is worth a report
        print("interrupted")
    if not given.quiet:
        print(tally.coverage)
    if given.features:
        print("\n".join(f"{name:28} {tally.covered[name]:6}" for name in FEATURES))
    for kind, seeds in tally.faults.items():
        print(f"{len(seeds):6} times {kind}: seeds {' '.join(map(str, seeds[:20]))}")
    print(f"seeds {given.seed} to {last}: {tally}")
    wall, used = time.monotonic() - start[0], _cpu() - start[1]
    rate = tally.graphs / max(wall, 1e-9)
    print(f"{rate:.2f} graphs a second, {used / max(tally.graphs, 1):.2f} seconds of CPU a graph")
    return 1 if tally.faults else 0


def _cpu() -> float:
    """Seconds of CPU that this process and those it waited for have used."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.campaign", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="graphs to check instead of random ones")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="the first; each graph takes the next")
    parser.add_argument("--count", type=int, help="graphs, instead of minutes")
    parser.add_argument("--figures", action="store_true", help="figures of memory alone, of fewer operators")
    parser.add_argument("--statements", type=int, help="about how many")
    parser.add_argument("--depth", type=int, default=3, help="of nested loops and branches")
    parser.add_argument("--c", choices=[*HOW, "both", "none"], default="sanitized", help="how C is compiled")
    parser.add_argument("--target", default="portable", help="what C is made for")
    parser.add_argument("--no-c", dest="c", action="store_const", const="none", help="interpreter alone")
    parser.add_argument("--no-passes", action="store_true", help="planned memory alone, not each pass")
    parser.add_argument("--quiet", action="store_true", help="no table of what the graphs had in them")
    parser.add_argument("--features", action="store_true", help="count what the graphs exercise")
    return parser


def _cases(given: argparse.Namespace, tally: Tally) -> Iterator[Case]:
    """The graphs of the files, or those of the seeds until the time is up."""
    if given.files:
        for file in given.files:
            text = file.read_text(encoding="utf-8")
            program = compiled(text, name=str(file))
            if program is None:
                tally.refused += 1
                continue
            for seed in range(given.seed, given.seed + (given.count or 1)):
                yield Case(seed, text, program, f"{file} --seed {seed}")
        return
    make = generate.generate if given.figures else graphs.generate
    usual = generate.Options() if given.figures else graphs.EVERYTHING
    options = replace(usual, statements=given.statements or usual.statements, depth=given.depth)
    figures = " --figures" if given.figures else ""
    until = time.monotonic() + given.minutes * 60
    seed = given.seed
    while seed < given.seed + given.count if given.count else time.monotonic() < until:
        text, program = program_of(seed, options, make)
        if program is None:
            tally.refused += 1
        else:
            sizes = f"--statements {options.statements} --depth {options.depth}{figures}"
            yield Case(seed, text, program, f"--seed {seed} --count 1 {sizes}")
        seed += 1


def _checked(case: Case, checks: Sequence[Check], tally: Tally) -> bool:
    """Whether the interpreter finds nothing wrong with a graph; what it finds is reported."""
    for check in checks:
        fault = check(case.program, steps(case.program, case.seed))
        if fault is not None:
            again = check

            def same(program: Program, check: Check = again, kind: str = fault.kind) -> bool:
                found = check(program, steps(program, case.seed))
                return found is not None and found.kind == kind

            _report(case, fault, same, tally, TRIES)
            return False
    return True


def _batches(waiting: Sequence[Case], ways: Sequence[str], made_for: str, tally: Tally) -> None:
    """Compile the graphs together, in every way, and take the steps of each."""
    for way in ways if waiting else ():
        faults = in_c([(c.seed, c.program) for c in waiting], tally, way, made_for)
        for case, fault in zip(waiting, faults, strict=True):
            if fault is None:
                continue

            def same(program: Program, case: Case = case, way: str = way, kind: str = fault.kind) -> bool:
                if check_memory(program, steps(program, case.seed)) is not None:
                    return False
                found = in_c([(case.seed, program)], Tally(), way, made_for)[0]
                return found is not None and found.kind == kind

            _report(case, fault, same, tally, TRIES_IN_C, f" --c {way} --target {made_for}")


def in_c(
    programs: Sequence[tuple[int, Program]], tally: Tally, way: str = "sanitized", made_for: str = "portable"
) -> list[Fault | None]:
    """What each program does otherwise in C than in the reference, with its seed's steps and layout."""
    found: list[Fault | None] = []
    made = [laid_out(p, LAYOUTS[seed % len(LAYOUTS)], 1 + seed // len(LAYOUTS) % 2) for seed, p in programs]
    with tempfile.TemporaryDirectory(prefix="oic-campaign-") as folder:
        try:
            path = build_sanitized(made, Path(folder), HOW[way], made_for)
        except Exception as error:
            if len(programs) == 1:
                return [Fault(f"C is not made: {type(error).__name__}", str(error)[:3000])]
            return [fault for one in programs for fault in in_c([one], tally, way, made_for)]
        for number, ((seed, _), program) in enumerate(zip(programs, made, strict=True)):
            tally.built += 1
            with SanitizedExecutor(program, path, number, made_for) as session:
                found.append(_driven(program, session, seed, tally))
    return found


def _driven(program: Program, session: SanitizedExecutor, seed: int, tally: Tally) -> Fault | None:
    try:
        runs, module = steps(program, seed), program.module
        verdict = compare(module, session, runs, another=session.another, compiled=program.compiled)
    except Crash as crash:
        first = next((s for s in str(crash).splitlines() if "ERROR" in s or "error:" in s), "")
        kind = first.partition("rror:")[2] or first.partition("ERROR: ")[2]
        return Fault(f"C crashes: {' '.join(kind.split()[:6])}", str(crash))
    tally.steps += verdict.steps
    tally.refusals += verdict.refusals
    for (status, late), count in session.refused.items():
        tally.coverage.statuses[status] += count
        tally.late += count * late
    tally.acts.update(verdict.acts)
    tally.compared += verdict.compared
    tally.doubtful += len(verdict.doubts)
    return None if verdict.equal else Fault("C differs", str(verdict))


def _report(
    case: Case, fault: Fault, same: Callable[[Program], bool], tally: Tally, tries: int, more: str = ""
) -> None:
    """Print a failure, made small if it is the first of its kind."""
    known = fault.kind in tally.faults
    tally.faults.setdefault(fault.kind, []).append(case.seed)
    print(f"== {fault.kind}\n   python -m tests.fuzz.campaign {case.origin}{more}", flush=True)
    if known:
        return

    def fails(text: str) -> bool:
        program = compiled(text)
        return program is not None and same(program)

    print(reduced(case.text, fails, tries))
    print(fault.detail[-3000:], flush=True)


if __name__ == "__main__":
    for ends in (signal.SIGINT, signal.SIGTERM):  # also where it runs in the background
        signal.signal(ends, signal.default_int_handler)
    sys.exit(main())
