"""Every benchmark starts where it is, by its name, with nothing but the package; work grows like the program."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.compile_time import KINDS, compiled, entry
from oic import OicError
from paths import ROOT

BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda p: p.stem)
def test_it_tells_how_it_is_used(benchmark: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(benchmark), "--help"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(f"usage: {benchmark.name}")


def test_attention_is_what_the_benchmark_of_attention_times(tmp_path: Path) -> None:
    """It compares what it times with NumPy: with a call that gives nothing it would print figures, too."""
    script = ROOT / "benchmarks" / "attention.py"
    options = ["--tables", "f32,q8", "--contexts", "130", "--threads", "1", "--seconds", "0"]
    done = subprocess.run([sys.executable, str(script), *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:]] == [["f32", "1", "130"], ["q8", "1", "130"]]


@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_program_is_about_twice_the_work(kind: str) -> None:
    """A statement costs as much from 2 n statements to 4 n as from n to 2 n."""
    made = KINDS[kind]
    few = (320 if kind == "kept" else 160) // made.statements(1)  # of the former, up to 64 writes wait at first
    sizes = (few, 2 * few, 4 * few) if kind != "nested" else (6, 7, 8)
    compiled(made.text(2), {})  # what is kept from program to program
    (n, first), (m, second), (k, third) = ((made.statements(size), work(made.text(size))) for size in sizes)
    more = 1.05 if kind != "nested" else 1.1  # the same one level deeper costs a little more
    assert (third - second) / (k - m) < more * (second - first) / (m - n)


REFUSED = {
    "blocks too deep": lambda n: entry(
        "branch b0;", "".join(f"block b{i} {{ assign v{i}: f32[64]; branch b{i + 1}; }}\n" for i in range(n))
        + f"block b{n} {{ op relu(t) >> t; }}\n"
    ),
    "unknown variables": lambda n: entry("".join(f"op relu(unknown{i}) >> t;\n" for i in range(n))),
    "unknown names": lambda n: entry("".join(f"cache.write t >> K[known{i}];\nassign v{i}: f32;\n" for i in range(n))),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_twice_the_mistakes_are_about_twice_the_work(kind: str) -> None:
    text = REFUSED[kind]
    work(text(2))
    first, second, third = (work(text(n)) for n in (200, 400, 800))
    assert third - second < 2.1 * (second - first)


def work(text: str) -> int:
    """How many lines of Python run from a text to C or to a refusal, each iteration of a comprehension being one."""
    lines = 0

    def traced(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += 1
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        with suppress(OicError):
            compiled(text, {})
    finally:
        sys.settrace(before)
    return lines
