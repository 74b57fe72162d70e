"""Saved states that were tampered with: `python -m tests.fuzz.saved_states --count 20000 --seed 1`.

States of graphs with every kind of variable (`stateful`) are taken apart, changed (counts, runs, entries,
flags, what is said of the rest), put together again and given a right checksum.  The interpreter, over the
graph and over planned memory, and C under sanitizers must all refuse one, with nothing changed, or all
load it: then each saves the very same bytes, and later steps answer alike.  Exit status: 0 or 1.
"""

from __future__ import annotations

import argparse
import math
import struct
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oic.diagnostics import StepError
from oic.driver import interface_of
from oic.memory.crc32c import crc32c
from oic.memory.saved import HEAD, VERSION, Form, Part, saved_form
from oic.reference import saved
from oic.reference.interpret import Machine
from oic.session.executor import Executor
from oic.session.simulator import SimulatorExecutor
from tests.fuzz.sanitized import Crash, SanitizedExecutor, build_sanitized
from tests.fuzz.state_programs import Stateful, stateful

EACH = 500  # mutants of one graph
STEPS = 4  # after a mutant that was loaded
ODD = (-1, 0, 1, 2, 3, 1 << 31, 1 << 62, (1 << 63) - 1, -(1 << 63))
Run = tuple[int, int, bytes]  # the number of its first entry, how many it says, the entries


@dataclass
class Body:
    """What a saved state says, to be changed at will.

    runs    of a table; of another part one run
    said    how many runs a table says it has
    """

    counts: list[int]
    runs: list[list[Run]]
    said: list[int]
    rest: bytes = b""


def taken_apart(form: Form, data: bytes) -> Body:
    """A valid state as its parts."""
    reader = saved._SavedReader(data[HEAD:])
    counts = {symbol: reader.integer() for symbol in form.counts}
    found = [saved._read_part(part, counts, reader) for part in form.parts]
    runs = [[(first, len(rows), rows.tobytes()) for first, rows in each] for each in found]
    return Body(list(counts.values()), runs, [len(r) for r in runs])


def put_together(form: Form, body: Body) -> bytes:
    """The bytes of a state with a right head, whatever it says."""
    pieces = [_word(n) for n in body.counts]
    for part, runs, said in zip(form.parts, body.runs, body.said, strict=True):
        if part.table:
            pieces.append(_word(said))
        for first, many, entries in runs:
            pieces += [_word(first), _word(many), entries] if part.table else [entries]
    rest = b"".join(pieces) + body.rest
    head = (form.fingerprint, HEAD + len(rest))
    checksum = crc32c(saved.START.pack(saved.MAGIC, VERSION, 0, *head) + rest)
    return saved.START.pack(saved.MAGIC, VERSION, checksum, *head) + rest


def _word(n: int) -> bytes:
    """The 64 bits of an integer, of one beyond them the lowest."""
    return struct.pack("<Q", n % (1 << 64))


class Mutator:
    """Changes of bodies; every one is drawn from the seed."""

    def __init__(self, form: Form, rng: np.random.Generator) -> None:
        self.form, self.rng = form, rng
        self.most = list(form.counts.values())
        self.ways = [
            self.count, self.flip, self.flip, self.to_start, self.drop, self.add, self.add, self.split, self.join,
            self.move, self.says, self.number, self.swap, self.stretch, self.tail, self.small,
        ]  # fmt: skip

    def mutant(self, data: bytes) -> bytes:
        """A state with one to three changes."""
        body = taken_apart(self.form, data)
        for _ in range(int(self.rng.integers(1, 4))):
            self.ways[self.rng.integers(len(self.ways))](body)
        return put_together(self.form, body)

    def _pick(self, body: Body, *, table: bool) -> tuple[int, Part, int]:
        """A part, of tables one that has runs if there is any, and a run of it; -1: there is none."""
        found = [i for i, p in enumerate(self.form.parts) if not table or (p.table and body.runs[i])]
        at = int(self.rng.choice(found)) if found else 0
        runs = body.runs[at]
        return at, self.form.parts[at], int(self.rng.integers(len(runs))) if runs else -1

    def _start(self, part: Part, body: Body) -> bytes:
        counts = {s: min(max(n, 0), m) for s, n, m in zip(self.form.counts, body.counts, self.most)}
        return part.start(part.shape(counts)).tobytes()

    def _number(self) -> int:
        return int(self.rng.choice(ODD)) if self.rng.random() < 0.3 else int(self.rng.integers(-1, 8))

    def count(self, body: Body) -> None:
        """A count becomes another, mostly one that there can be."""
        at = int(self.rng.integers(len(body.counts)))
        near = int(self.rng.integers(self.most[at] + 1))
        body.counts[at] = near if self.rng.random() < 0.8 else self._number()

    def flip(self, body: Body) -> None:
        """A bit of an entry."""
        at, _, run = self._pick(body, table=False)
        if run < 0 or not body.runs[at][run][2]:
            return
        first, many, entries = body.runs[at][run]
        changed = bytearray(entries)
        changed[self.rng.integers(len(changed))] ^= 1 << int(self.rng.integers(8))
        body.runs[at][run] = (first, many, bytes(changed))

    def small(self, body: Body) -> None:
        """An integer kept beside a variable, flag or `next`, or anything of its size, is small."""
        at, part, run = self._pick(body, table=False)
        if run < 0 or part.dtype.bits not in (8, 64):
            return
        first, many, entries = body.runs[at][run]
        size = part.dtype.bits // 8
        place = int(self.rng.integers(max(1, len(entries) // size))) * size
        value = int(self.rng.integers(9)).to_bytes(size, "little")
        body.runs[at][run] = (first, many, entries[:place] + value + entries[place + size :])

    def to_start(self, body: Body) -> None:
        """An entry gets its initial value, and stays in its run."""
        at, part, run = self._pick(body, table=True)
        if run < 0:
            return
        first, many, entries = body.runs[at][run]
        start = self._start(part, body)
        place = int(self.rng.integers(max(1, many))) * len(start)
        body.runs[at][run] = (first, many, (entries[:place] + start + entries[place + len(start) :])[: len(entries)])

    def drop(self, body: Body) -> None:
        at, _, run = self._pick(body, table=True)
        if run >= 0:
            del body.runs[at][run]
            body.said[at] = len(body.runs[at])

    def add(self, body: Body) -> None:
        """A run of one to three entries, mostly in its place among the others."""
        tables = [i for i, p in enumerate(self.form.parts) if p.table]
        at = int(self.rng.choice(tables))
        part = self.form.parts[at]
        counts = {s: min(max(n, 0), m) for s, n, m in zip(self.form.counts, body.counts, self.most)}
        total, many = math.prod(part.entries(counts)), int(self.rng.integers(1, 4))
        first = int(self.rng.integers(max(1, total)))
        width = len(self._start(part, body))
        entries = self.rng.integers(0, 2 if part.most is not None else 256, many * width, np.uint8)
        if part.most is not None and part.dtype.bits == 64:
            entries.reshape(many, width)[:, 1:] = 0
        body.runs[at].append((first, many, entries.tobytes()))
        if self.rng.random() < 0.9:
            body.runs[at].sort()
        body.said[at] = len(body.runs[at])

    def split(self, body: Body) -> None:
        """One run becomes two that lie side by side."""
        at, _, run = self._pick(body, table=True)
        if run < 0 or body.runs[at][run][1] < 2:
            return
        first, many, entries = body.runs[at][run]
        cut, width = int(self.rng.integers(1, many)), len(entries) // many
        halves = [(first, cut, entries[: cut * width]), (first + cut, many - cut, entries[cut * width :])]
        body.runs[at][run : run + 1] = halves
        body.said[at] += 1

    def join(self, body: Body) -> None:
        """Two runs become one, with initial values between them."""
        at, part, run = self._pick(body, table=True)
        if run < 0 or run + 1 >= len(body.runs[at]):
            return
        (first, many, one), (second, more, two) = body.runs[at][run : run + 2]
        gap = second - first - many
        if not 0 <= gap < 1000:
            return
        between = self._start(part, body) * gap
        body.runs[at][run : run + 2] = [(first, many + gap + more, one + between + two)]
        body.said[at] -= 1

    def move(self, body: Body) -> None:
        at, _, run = self._pick(body, table=True)
        if run >= 0:
            first, many, entries = body.runs[at][run]
            body.runs[at][run] = (min(max(first + self._number(), -(1 << 63)), (1 << 63) - 1), many, entries)

    def says(self, body: Body) -> None:
        """A run says that it has another number of entries."""
        at, _, run = self._pick(body, table=True)
        if run >= 0:
            first, _, entries = body.runs[at][run]
            body.runs[at][run] = (first, self._number(), entries)

    def number(self, body: Body) -> None:
        """A table says that it has another number of runs."""
        at, part, _ = self._pick(body, table=True)
        if part.table:
            body.said[at] = self._number()

    def swap(self, body: Body) -> None:
        at, _, run = self._pick(body, table=True)
        if run > 0:
            runs = body.runs[at]
            runs[run - 1], runs[run] = runs[run], runs[run - 1]

    def stretch(self, body: Body) -> None:
        """A run has an initial value before or after it too."""
        at, part, run = self._pick(body, table=True)
        if run < 0:
            return
        first, many, entries = body.runs[at][run]
        start = self._start(part, body)
        if self.rng.random() < 0.5:
            body.runs[at][run] = (first, many + 1, entries + start)
        else:
            body.runs[at][run] = (first - 1, many + 1, start + entries)

    def tail(self, body: Body) -> None:
        """Something follows the last part."""
        body.rest = self.rng.bytes(int(self.rng.integers(1, 20)))


@dataclass
class Tally:
    """What a campaign did.

    found   what went wrong, with the command that does it again
    """

    mutants: int = 0
    loaded: int = 0
    refused: int = 0
    steps: int = 0
    found: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.mutants} mutants of saved states: {self.refused} refused everywhere, {self.loaded} loaded"
            f" everywhere and saved as they were, {self.steps} steps after them, {len(self.found)} differences"
        )


def campaign(seed: int, count: int, folder: Path) -> Tally:
    """Try so many mutants; stops at the first difference of a graph."""
    tally = Tally()
    while tally.mutants < count:
        graph = graph_of(seed)
        path = build_sanitized([graph.program], folder / str(seed))
        tried(seed, min(EACH, count - tally.mutants), path, tally)
        seed += 1
    return tally


def graph_of(seed: int) -> Stateful:
    """What nothing bounds is left out: mutants would fill the machine's memory."""
    return stateful(seed, ("fixed", "given"))


def tried(seed: int, count: int, path: Path, tally: Tally) -> None:
    """Try mutants of the states of one graph, of which `path` is the sanitized program."""
    graph = graph_of(seed)
    program, interface = graph.program, interface_of(graph.program)
    simulators = [SimulatorExecutor(interface, Machine(m)) for m in (program.module, program.planned)]
    with SanitizedExecutor(program, path, 0) as compiled:
        sessions: list[Executor] = [*simulators, compiled]
        rng = np.random.default_rng(seed)
        good = states_of(graph, sessions[0], rng)
        mutator = Mutator(saved_form(program.module), rng)
        for number in range(count):
            tally.mutants += 1
            try:
                _try(graph, sessions, mutator.mutant(good[rng.integers(len(good))]), number, rng, tally)
            except (AssertionError, Crash) as error:
                tally.found.append(f"--seed {seed} --count {number + 1}: {error}")
                return


def states_of(graph: Stateful, session: Executor, rng: np.random.Generator) -> list[bytes]:
    """States from the start on to one that has everything."""
    found = [session.save()]
    for number in range(60):
        entry, given = graph.step(session, rng, number)
        _answer(session, entry, given)
        if number % 5 == 4:
            found.append(session.save())
    return found


def _try(
    graph: Stateful, sessions: list[Executor], mutant: bytes, number: int, rng: np.random.Generator, tally: Tally
) -> None:
    """Load a mutant everywhere; raises AssertionError where something differs."""
    before = [session.save() for session in sessions]
    answers = [_loads(session, mutant) for session in sessions]
    assert len(set(answers)) == 1, f"the graph, planned memory and C load it: {answers}"
    after = [session.save() for session in sessions]
    if not answers[0]:
        tally.refused += 1
        assert after == before, "a refused state changed something"
        return
    tally.loaded += 1
    assert all(data == mutant for data in after), "what is saved is not what was loaded"
    for step in range(STEPS):
        entry, given = graph.step(sessions[0], rng, 60 + number + step)
        outcomes = [_answer(session, entry, given) for session in sessions]
        assert outcomes[0] == outcomes[1] == outcomes[2], f"{entry} answers {[o[0] for o in outcomes]}"
        tally.steps += 1
    assert len({session.save() for session in sessions}) == 1, "the states after some steps differ"


def _loads(session: Executor, data: bytes) -> bool:
    try:
        session.load(data)
    except StepError:
        return False
    return True


def _answer(session: Executor, entry: str, given: dict[str, Any]) -> tuple[str, list[bytes]]:
    try:
        found = session.step(entry, **given)
    except StepError as error:
        return error.status, []
    return "OIC_OK", [a.tobytes() for a in found.values()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.saved_states", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="mutants")
    parser.add_argument("--seed", type=int, default=1, help=f"of the first graph; every {EACH} take the next")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="oic-states-") as folder:
        tally = campaign(given.seed, given.count, Path(folder))
    for found in tally.found:
        print(f"python -m tests.fuzz.saved_states {found}")
    print(f"seed {given.seed}: {tally}")
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
