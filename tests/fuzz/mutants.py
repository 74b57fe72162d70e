"""Break the compiler on purpose, one small patch at a time, and see which tests notice.

    python -m tests.fuzz.mutants                      every mutant: its tests, then its campaign
    python -m tests.fuzz.mutants --no-campaign ring   the mutants whose names contain "ring", tests alone
    python -m tests.fuzz.mutants --list               their names, and whether they apply

A mutant is a file of `tests/fuzz/mutants/`: what it breaks, then `key: value` lines, then its change.

    tests        what may kill it: arguments of pytest, paths from the checkout
    campaign     arguments of the campaign that may kill it too, `--count 40 --seed 1`; none: not tried
    equivalent   why no test can: the mutant changes no result.  Its tests are run and must pass
    --- PATH     the file that it changes, then lines ` kept`, `-removed` and `+added`, `@@` between hunks

The lines kept and removed are looked for by their text (indentation and continuation marks aside): in
the named file, else, where code has moved, in all of the sources; there must be one such place.  A mutant
is applied to a copy of the checkout.  Exit status: 0 all killed, 1 a survivor or one that does not apply.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("mutants")
SOURCES = ("compiler/oic/**/*.py", "runtime_c/**/*.h", "templates/**/*.j2")
CAMPAIGN = "tests.fuzz.campaign"
SECONDS = 1200  # the most that the tests or the campaign of one mutant take; a mutant may loop for ever
KEYS = ("tests", "campaign", "equivalent")


class MutantError(Exception):
    """A mutant that cannot be read, or that does not apply to this checkout."""


@dataclass(frozen=True)
class Hunk:
    """One change: lines that are there in a row, and those that take their place."""

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """A patch, and what is known of it.

    breaks       what goes wrong with it
    equivalent   why nothing does
    """

    name: str
    breaks: str
    tests: tuple[str, ...]
    campaign: tuple[str, ...]
    equivalent: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    tests, campaign   what noticed it; "" nothing did; None not tried
    fault             why it could not be tried
    seconds           of wall clock, for both
    """

    mutant: Mutant
    tests: str | None = None
    campaign: str | None = None
    fault: str = ""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """It died in a test, or is equivalent and did not."""
        if self.fault:
            return False
        return not (self.tests or self.campaign) if self.mutant.equivalent else bool(self.tests)

    def __str__(self) -> str:
        if self.fault:
            return f"{self.mutant.name:34} FAULT     {self.fault}"
        noticed = self.tests or self.campaign
        state = "equivalent" if self.mutant.equivalent and self.right else "killed" if noticed else "SURVIVED"
        if self.mutant.equivalent and noticed:
            state = "NOT EQUIVALENT"
        elif noticed and not self.tests:
            state = "CAMPAIGN ONLY"
        tried = "" if self.campaign is None else f"; campaign: {self.campaign or 'survived'}"
        return f"{self.mutant.name:34} {state:10} {self.seconds:5.0f} s  {self.tests or 'no test'}{tried}"


# ---------------------------------------------------------------- mutants as text


def mutants(folder: Path = FOLDER) -> list[Mutant]:
    """The mutants of a folder.  Raises MutantError."""
    return [read(path) for path in sorted(folder.glob("*.txt"))]


def read(path: Path) -> Mutant:
    """One mutant.  Raises MutantError for a file that is none."""
    head, found, change = path.read_text(encoding="utf-8").partition("\n--- ")
    if not found:
        raise MutantError(f"{path.name}: no line starts with '--- '")
    texts: dict[str, str] = {"": ""}
    key = ""
    for line in head.splitlines():
        named = re.match(rf"({'|'.join(KEYS)}):\s*(.*)", line)
        if named:
            key, line = named[1], named[2]
        texts[key] = f"{texts.get(key, '')} {line.strip()}".strip()
    if not texts[""] or not texts.get("tests"):
        raise MutantError(f"{path.name}: says what it breaks, and has tests")
    return Mutant(
        path.stem, texts[""], tuple(texts["tests"].split()), tuple(texts.get("campaign", "").split()),
        texts.get("equivalent", ""), tuple(_hunks(path.name, change)),
    )  # fmt: skip


def _hunks(name: str, change: str) -> Iterable[Hunk]:
    for part in change.split("\n--- "):
        path, _, body = part.partition("\n")
        for hunk in re.split(r"^@@.*\n", body, flags=re.MULTILINE):
            lines = [line for line in hunk.splitlines() if line.strip()]
            if not lines:
                continue
            if any(line[0] not in " -+" for line in lines):
                raise MutantError(f"{name}: lines of a change start with a space, - or +")
            old = tuple(line[1:] for line in lines if line[0] in " -")
            yield Hunk(path.strip(), old, tuple(line[1:] for line in lines if line[0] in " +"))


# ---------------------------------------------------------------- applying


def apply(mutant: Mutant, root: Path) -> None:
    """Change the sources of a checkout.  Raises MutantError where a hunk has no place, or several."""
    for hunk in mutant.hunks:
        path, at = _place(hunk, root, mutant.name)
        lines = path.read_text(encoding="utf-8").splitlines()
        first = lines[at]
        indent = first[: len(first) - len(first.lstrip())]
        least = min((len(line) - len(line.lstrip()) for line in hunk.old if line.strip()), default=0)
        more = " \\" if first.endswith("\\") else ""
        deeper = (len(line) - len(line.lstrip()) - least for line in hunk.new)  # than the first, or less deep
        shifted = [f"{' ' * (len(indent) + by)}{line.lstrip()}{more}" for by, line in zip(deeper, hunk.new)]
        lines[at : at + len(hunk.old)] = shifted
        text = "\n".join(lines) + "\n"
        if path.suffix == ".py":
            compile(text, str(path), "exec")  # a mutant is a wrong program, not a broken file
        path.write_text(text, encoding="utf-8")


def _place(hunk: Hunk, root: Path, name: str) -> tuple[Path, int]:
    """The file and the line where the lines of a hunk are."""
    named = root / hunk.path
    found = _found(hunk, named) if named.is_file() else []
    if not found:
        paths = sorted({path for pattern in SOURCES for path in root.glob(pattern)} - {named})
        found = [place for path in paths for place in _found(hunk, path)]
    if len(found) != 1:
        raise MutantError(f"{name}: {len(found)} places for {hunk.old[0].strip()!r} of {hunk.path}")
    return found[0]


def _found(hunk: Hunk, path: Path) -> list[tuple[Path, int]]:
    lines = [_plain(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = [_plain(line) for line in hunk.old]
    starts = range(len(lines) - len(wanted) + 1)
    return [(path, i) for i in starts if lines[i : i + len(wanted)] == wanted]


def _plain(line: str) -> str:
    return line.rstrip(" \\").strip()


def copied(root: Path, to: Path) -> None:
    """A copy of a checkout without what tools made in it."""

    def unwanted(folder: str, names: list[str]) -> set[str]:
        made = {"__pycache__", "out", "build"} if Path(folder) == root else {"__pycache__"}
        return {n for n in names if n in made or (n.startswith(".") and Path(folder) == root)}

    shutil.copytree(root, to, ignore=unwanted)


# ---------------------------------------------------------------- trying


def tried(mutant: Mutant, campaign: bool = True, root: Path = ROOT) -> Outcome:
    """Apply a mutant to a copy of the checkout, and run what may notice it."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="oic-mutant-") as folder:
        copy = Path(folder) / "copy"
        copied(root, copy)
        try:
            apply(mutant, copy)
        except MutantError as error:
            return Outcome(mutant, fault=str(error))
        tests = tested(mutant.tests, copy)
        more = None
        if campaign and mutant.campaign:
            done, said = _run([sys.executable, "-m", CAMPAIGN, *mutant.campaign], copy)
            first = next((s[3:] for s in said.splitlines() if s.startswith("== ")), said[-200:])
            more = (first or "ended early") if done else ""
    return Outcome(mutant, tests, more, seconds=time.monotonic() - start)


def tested(tests: Sequence[str], root: Path) -> str:
    """The first of these tests that fails; "" if none does."""
    call = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    status, said = _run(call, root)
    if status == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return found[1] if found else f"pytest ends with {status}: {said[-300:]}"


def _run(call: list[str], root: Path) -> tuple[int, str]:
    """Exit status and what was said."""
    environment = os.environ | {"PYTHONPATH": str(root / "compiler"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            call, cwd=root, env=environment, capture_output=True, text=True, errors="replace",
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"FAILED after {SECONDS} seconds"
    return done.returncode, done.stdout + done.stderr


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the chosen mutants; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("names", nargs="*", help="parts of names; none: all mutants")
    parser.add_argument("--list", action="store_true", help="whether they apply, and nothing more")
    parser.add_argument("--no-campaign", action="store_true", help="tests alone")
    parser.add_argument("--trust", action="store_true", help="do not first see the tests pass without a mutant")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    given = parser.parse_args(arguments)
    chosen = [m for m in mutants() if not given.names or any(n in m.name for n in given.names)]
    if given.list:
        return _listed(chosen)
    groups = [] if given.trust else sorted({m.tests for m in chosen})
    before = next((fails for tests in groups if (fails := tested(tests, ROOT))), "")
    if before:
        print(f"without any mutant, {before} fails")
        return 1
    wrong = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for outcome in pool.map(lambda m: tried(m, not given.no_campaign), chosen):
            print(outcome, flush=True)
            wrong += not outcome.right
    print(f"{len(chosen)} mutants, {wrong} survivors")
    return 1 if wrong else 0


def _listed(chosen: Iterable[Mutant]) -> int:
    wrong = 0
    for mutant in chosen:
        try:
            for hunk in mutant.hunks:
                _place(hunk, ROOT, mutant.name)
            print(f"{mutant.name:34} {mutant.breaks}")
        except MutantError as error:
            print(error)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
