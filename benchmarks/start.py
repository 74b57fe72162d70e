"""How long the `oic` command takes to start and to check a graph, beside bare Python in the same run.

    python benchmarks/start.py [--runs 21] [--graph FILE [--model FILE]]

The graph defaults to examples/tinystories/graph.oi, with stories260k when OIC_MODELS has it.
Commands take turns, so that a busy moment of the machine falls on all of them; the table gives
wall time in milliseconds.  It measures and judges nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

GRAPH = Path(__file__).parent.parent / "examples" / "tinystories" / "graph.oi"
MODEL = Path("stories260k") / "weights.safetensors"


def main() -> int:
    arguments = parser().parse_args()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
        "oic --version": [oic(), "--version"],
        **check(arguments.graph, arguments.model),
    }
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {arguments.runs} runs\n")
    times: dict[str, list[float]] = {name: [] for name in commands}
    for run in range(arguments.runs + 1):
        for name, command in commands.items():
            elapsed = milliseconds(command)
            if run > 0:  # the first fills the page cache and writes .pyc files
                times[name].append(elapsed)

    bare = statistics.median(times["python -c pass"])
    print(f"{'command':<44}{'median':>8}{'least':>8}{'most':>8}{'over bare':>11}   ms")
    for name, each in times.items():
        median = statistics.median(each)
        print(f"{name:<44}{median:8.1f}{min(each):8.1f}{max(each):8.1f}{median - bare:11.1f}")
    return 0


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    result.add_argument("--runs", type=int, default=21)
    result.add_argument("--graph", type=Path, default=None)
    result.add_argument("--model", type=Path, default=None)
    return result


def oic() -> str:
    """The command as this Python's environment installed it."""
    command = Path(sys.executable).parent / "oic"
    if not command.exists():
        sys.exit(f"error: {command} does not exist; run this with the Python that oic is installed in")
    return str(command)


def check(graph: Path | None, model: Path | None) -> dict[str, list[str]]:
    """The `oic check` command to time, by the name to show; none without the default graph."""
    if graph is None:
        graph = GRAPH
        models = os.environ.get("OIC_MODELS")
        if model is None and models and (Path(models) / MODEL).exists():
            model = Path(models) / MODEL
        if not graph.exists():
            print(f"no {graph}: 'oic check' is left out")
            return {}
    shown = f"oic check {graph.resolve().parent.name}/{graph.name}"
    shown += f" --model {model.name}" if model else ""
    return {shown: [oic(), "check", str(graph), *(["--model", str(model)] if model else [])]}


def milliseconds(command: list[str]) -> float:
    """Wall time of one run; a failing command ends the benchmark with its output."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    elapsed = (time.perf_counter() - start) * 1e3
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return elapsed


if __name__ == "__main__":
    sys.exit(main())
