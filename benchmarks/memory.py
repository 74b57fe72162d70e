"""Planned memory: arena bytes beside the lower bound, for the examples and for random graphs.

The lower bound is the largest sum of bytes live at one position.  Beside each example stand the
bytes without reuse and the copies that are left, with their reasons.

    python benchmarks/memory.py [--graphs 200] [--seed 0]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import oic
from oic.difftest.generate import Options, generate
from oic.driver import Program, Settings, compile_graph, lowered
from oic.frontend.parse import parse, parse_file
from oic.ir.module import Module
from oic.ops.fused import Copy

ROOT = Path(__file__).resolve().parents[1]


def examples() -> list[tuple[str, Path, Path | None]]:
    """Name, graph and model of every example that can be compiled here."""
    models = Path(os.environ.get("OIC_MODELS") or ROOT.parent / "shared" / "models")
    stories = models / "stories260k" / "weights.safetensors"
    found: list[tuple[str, Path, Path | None]] = []
    for path in sorted((ROOT / "examples").rglob("graph.oi")):
        own = path.parent / "weights.safetensors"
        name = str(path.parent.relative_to(ROOT / "examples"))
        if name == "tinystories" and not stories.is_file():
            print(f"{name}: skipped, {stories} is not there (OIC_MODELS)")
            continue
        found.append((name, path, stories if name == "tinystories" else own if own.is_file() else None))
    return found


def totals(module: Module) -> tuple[int, int]:
    """Arena bytes and lower bound of the entry with the largest arena."""
    assert module.plan is not None
    symbol = max(module.plan.arena_bytes, key=module.plan.arena_bytes.__getitem__)
    return module.plan.arena_bytes[symbol], module.plan.lower_bound[symbol]


def without_reuse(program: Program) -> int:
    """Arena bytes if every buffer has its own."""
    *_, (_, module) = lowered(program.module, Settings(reuse=False))
    return totals(module)[0]


def report_examples() -> None:
    print(f"{'example':<36}{'arena':>12}{'bound':>12}{'ratio':>8}{'no reuse':>13}{'copies':>8}")
    for name, path, weights in examples():
        model = oic.Model.open(weights) if weights else None
        try:
            program = compile_graph(parse_file(path), model, Settings())
        except oic.OicError as error:
            print(f"{name}: its script makes the model ({error.diagnostics[0].message})")
            continue
        arena, bound = totals(program.planned)
        ratio = f"{arena / bound:.3f}" if bound else "-"
        copies = [op for op in program.planned.all_ops() if isinstance(op, Copy)]
        print(f"{name:<36}{arena:>12,}{bound:>12,}{ratio:>8}{without_reuse(program):>13,}{len(copies):>8}")
        for op in copies:
            line = op.span.line if op.span else 0
            print(f"    line {line}: {op.result.hint} {op.result.type}: {op.reason}")


def report_random(count: int, seed: int) -> None:
    ratios: list[float] = []
    buffers: list[int] = []
    seconds: list[float] = []
    skipped = 0
    for number in range(count):
        text = generate(seed + number, Options(statements=40 + number * 2 % 360))
        try:
            program = compile_graph(parse(text, f"random{number}.oi"), None, Settings())
        except oic.OicError:
            skipped += 1  # the language refuses a few
            continue
        start = time.perf_counter()
        module = program.planned
        seconds.append(time.perf_counter() - start)
        arena, bound = totals(module)
        assert module.plan is not None
        buffers.append(len(module.plan.space("arena")))
        if bound:
            ratios.append(arena / bound)
    print(f"\n{len(ratios)} random graphs with an arena, {min(buffers)} to {max(buffers)} buffers"
          f" ({skipped} refused by the language)")  # fmt: skip
    print(f"arena / bound: median {statistics.median(ratios):.3f}, worst {max(ratios):.3f}")
    print(f"passes and planning: median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report_examples()
    report_random(options.graphs, options.seed)


if __name__ == "__main__":
    main()
