"""Planned memory: arena bytes beside the lower bound, for the examples and for random graphs.

The lower bound is the largest sum of bytes live at one position.  Beside each example are the bytes
of placing greedily by size alone, those without reuse, and the copies that are left, with their
reasons.  Random graphs are those with 50 to 500 buffers in the arena of their largest entry.  The
planner alone is then given lifetimes that are hard to pack.

    python benchmarks/memory.py [--graphs 200] [--seed 0] [--instances 20]
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oic
from oic.check.source import parse, parse_file
from oic.driver import Program, Settings, compile_graph, lowered
from oic.ir.module import Buffer, Module
from oic.memory import placement, planner
from oic.memory.map import Placed, Stored, memory_map

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.generate import Options, generate
from tests.fuzz.generate_lifetimes import CLASSES, lifetimes

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
FEWEST, MOST = 50, 500  # buffers in the arena of a random graph


@dataclass
class Measured:
    """A list of buffers, planned.

    by_size   bytes of the arena if each goes, by size, into the tightest gap
    seconds   that planning took
    """

    buffers: int
    planned: planner.Planned
    by_size: int
    seconds: float

    @property
    def ratio(self) -> float:
        return self.planned.nbytes / self.planned.bound

    @property
    def greedy(self) -> float:
        return self.by_size / self.planned.bound

    @property
    def proven(self) -> bool:
        return self.planned.nbytes == self.planned.least


def measured(module: Module) -> Measured:
    """The arena of a module, planned once more by itself."""
    found = measure(arena(module))
    assert module.plan is not None and found.planned.nbytes == max(module.plan.arena_bytes.values())
    return found


def measure(buffers: list[Buffer]) -> Measured:
    start = time.perf_counter()
    planned = planner.plan(buffers)
    seconds = time.perf_counter() - start
    return Measured(len(buffers), planned, greedy_by_size(buffers), seconds)


def greedy_by_size(buffers: list[Buffer]) -> int:
    heights = (
        placement.tightest(part, dict(placement.orders(part))["size"]).height * buffers[0].align
        for _, part in planner.parts(buffers)
    )
    return max(heights, default=0)


def arena(module: Module) -> list[Buffer]:
    """The buffers of the entry with the largest arena."""
    assert module.plan is not None
    symbol = max(module.plan.arena_bytes, key=module.plan.arena_bytes.__getitem__)
    return [b for b in module.plan.buffers if b.space == "arena" and b.function == symbol]


# ---------------------------------------------------------------- examples


def script(folder: str, name: str) -> Any:
    """A Python file of an example, as a module."""
    path = str(EXAMPLES / folder)
    sys.path.insert(0, path)
    sys.modules.pop(name, None)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(path)


def model_of(name: str) -> oic.Model | None:
    """The model that an example's own script runs it with; None if it needs none."""
    own = EXAMPLES / name / "weights.safetensors"
    match name:
        case "tinystories":
            models = Path(os.environ.get("OIC_MODELS") or ROOT.parent / "shared" / "models")
            return oic.Model.open(models / "stories260k" / "weights.safetensors")
        case "gpt2":
            shapes = script(name, "shapes")
            return shapes.random_model(shapes.SHAPES["124M"])  # type: ignore[no-any-return]
        case "persistent_memory/growing_cache" | "persistent_memory/single_step":
            return script(name, "run").weights()  # type: ignore[no-any-return]
    return oic.Model.open(own) if own.is_file() else None


def without_reuse(program: Program) -> int:
    """Arena bytes if every buffer has its own."""
    *_, (_, module) = lowered(program.module, Settings(reuse=False))
    assert module.plan is not None
    return max(module.plan.arena_bytes.values())


def report_examples() -> None:
    print(f"{'example':<34}{'arena':>14}{'bound':>14}{'ratio':>8}{'by size':>9}{'no reuse':>14}{'copies':>8}")
    for path in sorted(EXAMPLES.rglob("graph.oi")):
        name = path.parent.relative_to(EXAMPLES).as_posix()
        try:
            program = compile_graph(parse_file(path), model_of(name), Settings())
        except (OSError, oic.OicError) as error:
            print(f"{name}: no model ({str(error).splitlines()[0]})")
            continue
        found = measured(program.planned)
        plan = found.planned
        ratios = f"{found.ratio:>8.3f}{found.greedy:>9.3f}" if plan.bound else f"{'-':>8}{'-':>9}"
        table = memory_map(program.planned)
        copies: list[Placed | Stored] = [v for v in table.values if v.kind == "copy"]
        copies += [t for t in table.stores if t.kind == "copy"]
        print(f"{name:<34}{plan.nbytes:>14,}{plan.bound:>14,}{ratios}{without_reuse(program):>14,}"
              f"{len(copies):>8}")  # fmt: skip
        for copy in copies:
            what = copy.name if isinstance(copy, Placed) else f"{copy.value} to {copy.state}"
            print(f"    line {copy.line}: {what} {copy.type}: {copy.reason}")


# ---------------------------------------------------------------- random


def random_graphs(count: int, seed: int) -> Iterator[tuple[Measured, float]]:
    """So many graphs with as many buffers as they must have; the seconds of all passes."""
    number = 0
    while count:
        # From some 60 to some 900 statements: about 25 to 500 buffers.
        text = generate(seed + number, Options(statements=60 + 89 * number % 841, held=0.6))
        name = f"random{number}.oi"
        number += 1
        try:
            program = compile_graph(parse(text, name), None, Settings())
        except oic.OicError:
            continue  # the language refuses a few
        start = time.perf_counter()
        module = program.planned
        seconds = time.perf_counter() - start
        if FEWEST <= len(arena(module)) <= MOST:
            count -= 1
            yield measured(module), seconds


def report_random(count: int, seed: int) -> None:
    found = list(random_graphs(count, seed))
    sizes = [m.buffers for m, _ in found]
    print(f"\n{len(found)} random graphs, {min(sizes)} to {max(sizes)} buffers, median {middle(sizes):.0f}")
    summary([m for m, _ in found])
    print(f"all passes: median {middle(s for _, s in found):.2f} s, most {max(s for _, s in found):.2f} s")


def report_instances(count: int, seed: int) -> None:
    for buffers in (200, MOST):
        for kind in CLASSES if count else ():
            found = [measure(lifetimes(kind, seed + number, buffers)) for number in range(count)]
            about = (CLASSES[kind].__doc__ or "").partition(":")[0].rstrip(".")
            print(f"\n{count} x {buffers} random lifetimes, {kind}: {about}")
            summary(found)


def summary(found: list[Measured]) -> None:
    for name, ratios in (("planned", [m.ratio for m in found]), ("by size", [m.greedy for m in found])):
        at = sum(ratio == 1 for ratio in ratios)
        print(f"{name} / bound: median {middle(ratios):.4f}, worst {max(ratios):.4f}, {at} at the bound")
    print(f"exact search needed by {sum(m.planned.searched for m in found)},"
          f" least possible known of {sum(m.proven for m in found)}")  # fmt: skip
    seconds = [m.seconds for m in found]
    print(f"planning: median {middle(seconds):.3f} s, most {max(seconds):.2f} s")


def middle(values: Iterator[float] | list[float] | list[int]) -> float:
    return statistics.median(list(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--instances", type=int, default=20, help="of each class of hard lifetimes")
    options = parser.parse_args()
    report_examples()
    if options.graphs:
        report_random(options.graphs, options.seed)
    report_instances(options.instances, options.seed)


if __name__ == "__main__":
    main()
