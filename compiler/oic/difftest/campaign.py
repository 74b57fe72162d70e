"""Random graphs by the minute: `python -m oic.difftest.campaign --minutes 5 --seed 1`.

Every graph is checked after every pass (`checks`), then compiled under sanitizers, many together,
and compared with the reference step by step.  A graph that fails is made small and printed with the
command that makes it again.  Exit status: 0 nothing found, 3 something found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oic.difftest.checks import Fault, check, compiled, steps
from oic.difftest.generate import Options, generate
from oic.difftest.harness import compare
from oic.difftest.reduce import reduced
from oic.difftest.sanitized import Crash, SanitizedExecutor, build_sanitized
from oic.driver import Program

BATCH = 20  # graphs in one call of the C compiler
TRIES = 60  # texts to compile while a graph that fails in C is made small


@dataclass
class Tally:
    """What a campaign did.

    refused    texts that the language does not allow
    steps      taken in C; refused ones, those refused after an effect, those for another reason
    """

    graphs: int = 0
    refused: int = 0
    built: int = 0
    steps: int = 0
    refusals: int = 0
    late: int = 0
    otherwise: int = 0
    faults: dict[str, list[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.graphs} graphs checked after every pass ({self.refused} texts refused),"
            f" {self.built} compiled, {self.steps} steps in C ({self.refusals} refused,"
            f" {self.late} late, {self.otherwise} with another status), {sum(map(len, self.faults.values()))} failures"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m oic.difftest.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="the first; each graph takes the next")
    parser.add_argument("--count", type=int, help="graphs, instead of minutes")
    parser.add_argument("--statements", type=int, default=Options.statements)
    parser.add_argument("--no-c", action="store_true", help="passes and interpreter alone")
    given = parser.parse_args(arguments)
    options = Options(statements=given.statements)
    until = time.monotonic() + given.minutes * 60
    tally = Tally()
    waiting: list[tuple[int, Program]] = []
    seed = given.seed
    while seed < given.seed + given.count if given.count else time.monotonic() < until:
        program = _one(seed, options, tally)
        if program is not None and not given.no_c:
            waiting.append((seed, program))
        if len(waiting) == BATCH:
            _batch(waiting, options, tally)
            waiting = []
        seed += 1
    if waiting:
        _batch(waiting, options, tally)
    print(f"seeds {given.seed} to {seed - 1}: {tally}")
    return 3 if tally.faults else 0


def _one(seed: int, options: Options, tally: Tally) -> Program | None:
    """Check one graph; its program if nothing is wrong with it."""
    text = generate(seed, options)
    fault, program = _fault(text, seed)
    if program is None:
        tally.refused += 1
        return None
    tally.graphs += 1
    if fault is None:
        return program

    def fails(smaller: str) -> bool:
        found, _ = _fault(smaller, seed)
        return found is not None and found.kind == fault.kind

    _report(seed, text, fault, fails, options, tally, 600)
    return None


def _fault(text: str, seed: int) -> tuple[Fault | None, Program | None]:
    program = compiled(text)
    return (None, None) if program is None else (check(program, steps(program, seed)), program)


def _batch(waiting: list[tuple[int, Program]], options: Options, tally: Tally) -> None:
    """Compile the graphs together and take the steps of each."""
    for (seed, _), fault in zip(waiting, in_c(waiting, tally), strict=True):
        if fault is None:
            continue

        def fails(smaller: str, seed: int = seed, kind: str = fault.kind) -> bool:
            found, program = _fault(smaller, seed)
            if found is not None or program is None:
                return False
            again = in_c([(seed, program)], Tally())[0]
            return again is not None and again.kind == kind

        _report(seed, generate(seed, options), fault, fails, options, tally, TRIES)


def in_c(programs: Sequence[tuple[int, Program]], tally: Tally) -> list[Fault | None]:
    """What each program does otherwise in C than in the reference, with its seed's steps."""
    found: list[Fault | None] = []
    with tempfile.TemporaryDirectory(prefix="oic-campaign-") as folder:
        try:
            path = build_sanitized([p for _, p in programs], Path(folder))
        except Exception as error:
            if len(programs) == 1:
                return [Fault(f"C is not made: {type(error).__name__}", str(error)[:3000])]
            return [fault for one in programs for fault in in_c([one], tally)]
        for number, (seed, program) in enumerate(programs):
            tally.built += 1
            with SanitizedExecutor(program, path, number) as session:
                found.append(_driven(program, session, seed, tally))
    return found


def _driven(program: Program, session: SanitizedExecutor, seed: int, tally: Tally) -> Fault | None:
    try:
        verdict = compare(program.module, session, steps(program, seed))
    except Crash as crash:
        first = next((s for s in str(crash).splitlines() if "ERROR" in s or "error:" in s), "")
        kind = first.partition("error:")[2] or " ".join(first.split()[1:4])
        return Fault(f"C crashes: {kind.strip()[:60]}", str(crash))
    tally.steps += verdict.steps
    tally.refusals += verdict.refusals
    tally.late += verdict.spoiled
    tally.otherwise += verdict.otherwise
    return None if verdict.equal else Fault("C differs", str(verdict))


def _report(
    seed: int, text: str, fault: Fault, fails: object, options: Options, tally: Tally, tries: int
) -> None:
    """Print a failure, made small if it is the first of its kind."""
    known = fault.kind in tally.faults
    tally.faults.setdefault(fault.kind, []).append(seed)
    again = f"python -m oic.difftest.campaign --seed {seed} --count 1 --statements {options.statements}"
    print(f"== {fault.kind}\n   {again}", flush=True)
    if known:
        return
    assert callable(fails)
    print(reduced(text, fails, tries))
    print(fault.detail[-3000:], flush=True)


if __name__ == "__main__":
    sys.exit(main())
