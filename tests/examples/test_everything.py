"""Three entries, a ring, a growing table, an auto-dim matrix and two consumers: 1,000 steps.

After every step the hash of all persistent state is equal in the reference and in compiled C, with
consumers in order and on threads; some steps are refused, and change nothing.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.library.build import find_compiler
from oic.toolchain.target import WARNINGS
from paths import ROOT

GRAPH = ROOT / "examples" / "everything" / "graph.oi"
STATES = ("steps", "tick", "recent", "log", "grid", "seen", "rows")
STEPS = 1000


def state_hash(executor: oic.Executor) -> str:
    """Of every persistent variable: name, dtype, shape and bytes."""
    digest = hashlib.sha256()
    for name in STATES:
        array = executor.fetch(name)
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def steps(count: int) -> list[tuple[str, dict[str, Any]]]:
    """Entries and inputs; integers only, so that both sides are equal to the bit."""
    rng = np.random.default_rng(7)
    found: list[tuple[str, dict[str, Any]]] = []
    for _ in range(count):
        entry = rng.choice(["entry", "shape", "note"])
        if entry == "entry":
            given = {"x": rng.integers(0, 3, (rng.integers(0, 4), 4)).astype(np.float32)}
        elif entry == "shape":
            given = {"grow": np.bool_(rng.random() < 0.6)}
        else:
            given = {"grow": np.bool_(rng.random() < 0.2), "who": np.int32(rng.integers(-1, 4))}
        found.append((str(entry), given))
    return found


def outcome(executor: oic.Executor, entry: str, given: dict[str, Any]) -> str:
    try:
        executor.step(entry, **given)
    except oic.StepError as error:
        return error.status
    return "OIC_OK"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_thousand_steps_give_the_same_states(threads: int) -> None:
    graph = oic.parse_file(GRAPH)
    simulator = oic.Simulator(graph)
    compiled = oic.Synthesizer(graph, threads=threads).build()
    statuses: dict[str, int] = {}
    with simulator.make_executor() as one, compiled.make_executor() as two:
        before = state_hash(one)
        for number, (entry, given) in enumerate(steps(STEPS)):
            status = outcome(one, entry, given)
            statuses[status] = statuses.get(status, 0) + 1
            assert outcome(two, entry, given) == status, f"step {number}, {entry}"
            after = state_hash(one)
            assert state_hash(two) == after, f"step {number}, {entry}"
            assert status == "OIC_OK" or after == before, f"step {number}: refused, yet changed"
            before = after
    assert statuses["OIC_OK"] > STEPS / 2, statuses
    assert statuses.get("OIC_ERR_INDEX", 0) > 20, statuses


@pytest.mark.parametrize("level", ["-O1", "-Os"])
def test_it_compiles_without_a_warning(tmp_path: Path, level: str) -> None:
    """At levels where a compiler sees less of what bounds a count than at -O2."""
    made = oic.Synthesizer(oic.parse(GRAPH.read_text(encoding="utf-8"), name="graph.oi"), target="portable")
    files = made.emit(tmp_path)
    call = [*find_compiler(), "-std=c99", *WARNINGS, "-Werror", level, "-c", "-o", str(tmp_path / "o")]
    done = subprocess.run([*call, str(files.sources[0])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
