"""Graphs of `operand_sources` in builds of every kind: all copies of an application, in all builds, have the same bits.

    python -m tests.fuzz.operand_builds --minutes 20                 graph after graph, each in two builds
    python -m tests.fuzz.operand_builds --seed 7 --count 1 --every   one graph in every build that can be made here
    python -m tests.fuzz.operand_builds --only conv2d --build avx2   of one operator, in one build

A graph is of few operators, so that its kernels are compiled once for many shapes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import oic
from oic import dtypes
from oic.dtypes import Array
from oic.kernels import targets
from oic.kernels.targets import FUSED, NATIVE, SEPARATE
from tests.fuzz import expanded
from tests.fuzz.batch_build import build_together
from tests.fuzz.operand_sources import STEPS, Drawn, Sources, bits, draw, fetched, names
from tests.fuzz.operators import difference, operand_fields, widened
from tests.fuzz.sanitized import SANITIZED, SanitizedExecutor, build_sanitized


@dataclass(frozen=True)
class Build:
    """A compiler with its flags for a machine, others, a class of numerics.

    threads   those of a session; the library has one more
    emulator  what runs it as a program of its own
    """

    compiler: str
    flags: tuple[str, ...] = ("-O0",)
    numerics: str = SEPARATE
    threads: int = 1
    emulator: str = ""

    @property
    def missing(self) -> bool:
        return any(name and shutil.which(name) is None for name in (self.compiler.split()[0], self.emulator))


FAST = "clang" if shutil.which("clang") else "gcc"  # the faster one to compile what is not optimised
V3, V4 = f"{FAST} -march=x86-64-v3", f"{FAST} -march=x86-64-v4"
ARM = "aarch64-linux-gnu-gcc -static"
PLAIN = {  # of each class, what defines its bits
    SEPARATE: Build(FAST, ("-O0", "-DOIC_PORTABLE")),
    FUSED: Build(V3, ("-O0", "-DOIC_PORTABLE"), FUSED),
    NATIVE: Build(f"{FAST} -march=native", ("-O0",), NATIVE),
}
BUILDS = {
    "sse2": Build("gcc"),
    "sse2 -O3": Build("gcc", ("-O3",)),
    "sse2 clang": Build("clang", ("-O2",)),
    "avx2 separate": Build("gcc -march=x86-64-v3", ("-O2",)),
    "native separate": Build(f"{FAST} -march=native", ("-O0",)),
    "small stack separate": Build(FAST, ("-O0", "-DOIC_SMALL_STACK=1")),
    "threads separate": Build(FAST, ("-O0",), threads=2),
    "neon separate": Build(ARM, ("-O0",), emulator="qemu-aarch64"),
    "avx2": Build(V3, ("-O0",), FUSED),
    "avx2 -O3": Build("gcc -march=x86-64-v3", ("-O3",), FUSED),
    "avx-vnni": Build(f"{V3} -mavxvnni", ("-O0",), FUSED),
    "avx512": Build(V4, ("-O0",), FUSED),
    "vnni": Build(f"{V4} -mavx512vnni", ("-O0",), FUSED),
    "intel": Build(f"{V4} -mavx512vnni -DOIC_INTEL=1", ("-O0",), FUSED),
    "zen5": Build(f"{V4} -mavx512vnni -mavxvnni -mavx512vp2intersect", ("-O0",), FUSED),
    "native -O3": Build("gcc -march=native", ("-O3",), FUSED),
    "native clang": Build("clang -march=native", ("-O3",), FUSED),
    "avx2 gcc": Build("gcc -march=x86-64-v3", ("-O1",), FUSED),
    "small stack": Build(f"{FAST} -march=native", ("-O0", "-DOIC_SMALL_STACK=1"), FUSED),
    "threads": Build(f"{FAST} -march=native", ("-O0",), FUSED, threads=2),
    "threads avx2": Build(V3, ("-O0",), FUSED, threads=3),
    "neon": Build(ARM, ("-O2",), FUSED, emulator="qemu-aarch64"),
    "dotprod": Build(f"{ARM} -march=armv8.2-a+dotprod", ("-O0",), FUSED, emulator="qemu-aarch64"),
    "i8mm": Build(f"{ARM} -march=armv8.2-a+dotprod+i8mm", ("-O0",), FUSED, emulator="qemu-aarch64"),
    "sanitized": Build("gcc", SANITIZED, emulator="env"),
    "sanitized avx2": Build("gcc -march=x86-64-v3", SANITIZED, FUSED, emulator="env"),
    "native threads": Build(f"{FAST} -march=native", ("-O0",), NATIVE, threads=2),
    "native numerics clang": Build("clang -march=native", ("-O2",), NATIVE),
}  # fmt: skip
SMALL_PARTS = "-DOIC_WORK_LEAST=1"
LOST = 2.0**-136  # what some thousand products may lose that are subnormal, of which bounds say nothing


@contextmanager
def building(build: Build) -> Iterator[None]:
    """The compiler is that of the build; threads share work that is hardly any."""
    before, portable = os.environ.get("CC"), targets.TARGETS["portable"]
    os.environ["CC"] = build.compiler
    if build.threads > 1:
        targets.TARGETS["portable"] = replace(portable, costs=replace(portable.costs, thread=40))
    try:
        yield
    finally:
        targets.TARGETS["portable"] = portable
        if before is None:
            del os.environ["CC"]
        else:
            os.environ["CC"] = before


def results(graphs: Sequence[Sources], build: Build, folder: Path, weights: str | None) -> list[dict[str, Array]]:
    """The outputs of the last step of every graph."""
    options: dict[str, Any] = {"threads": build.threads + (build.threads > 1), "numerics": build.numerics}
    if weights:
        options["weights"] = weights
    found = []
    with building(build):
        made = [oic.Synthesizer(oic.parse(g.text, f"{g.name}.oi"), g.model(), target="portable", **options) for g in graphs]
        if build.emulator:
            programs = [one.program for one in made]
            path = build_sanitized(programs, folder, build.flags, numerics=build.numerics)
            script = folder / "emulated"
            script.write_text(f'#!/bin/sh\nexec {build.emulator} {path} "$@"\n')
            script.chmod(0o755)
            executors: list[Any] = [SanitizedExecutor(p, script, i) for i, p in enumerate(programs)]
        else:
            more = (SMALL_PARTS, "-pthread") if build.threads > 1 else ()
            build_together(made, folder, (*build.flags, *more))
            executors = [one.make_executor(build.threads) for one in made]
        for graph, executor in zip(graphs, executors, strict=True):
            with executor:
                for _ in range(STEPS):
                    step = executor.step(**graph.inputs)
                found.append(dict(step))
    return found


def faults(
    graphs: Sequence[Sources], builds: Sequence[str], folder: Path, weights: str | None = None, reference: bool = True
) -> Iterator[str]:
    """What is wrong: copies that differ, builds that do, and what is out of the bound about the reference."""
    plain: dict[str, list[dict[str, Array]]] = {}
    for numerics in dict.fromkeys(BUILDS[name].numerics for name in builds):
        plain[numerics] = results(graphs, PLAIN[numerics], folder / numerics, weights)
        if weights is None and numerics != NATIVE:
            yield from _copies(graphs, plain[numerics], f"plain {numerics}")
    if reference and weights is None and plain:
        yield from _reference(graphs, plain[next(iter(plain))])
    for at, name in enumerate(builds):
        for graph, wanted, found in zip(
            graphs, plain[BUILDS[name].numerics], results(graphs, BUILDS[name], folder / f"b{at}", weights), strict=True
        ):
            for made, outputs, shown in graph.outputs:
                for output, where in zip(outputs, shown, strict=True):
                    if bits(fetched(found, output)) != bits(fetched(wanted, output)):
                        told = unlike(fetched(found, output), fetched(wanted, output))
                        yield f"{name} {weights or ''}: {graph.name} {output}: {made} ({where}): {told}"


def _copies(graphs: Sequence[Sources], found: Sequence[dict[str, Array]], build: str) -> Iterator[str]:
    for graph, outputs_of in zip(graphs, found, strict=True):
        for made, (first, *others), shown in graph.outputs:
            wanted = fetched(outputs_of, first)
            for output, where in zip(others, shown[1:]):
                got = fetched(outputs_of, output)
                if bits(got) != bits(wanted):
                    yield f"{build}: {graph.name} {output}: {made} ({where}): {unlike(got, wanted)}"


def unlike(got: Array, wanted: Array) -> str:
    if got.shape != wanted.shape:
        return f"shapes {got.shape} and {wanted.shape}"
    with np.errstate(all="ignore"):
        a, b = (np.asarray(v).astype(np.float64) for v in (got, wanted))
        bad = ~((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return "bits"
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size}, first {list(at)}: {got[at]!r}, not {wanted[at]!r}"


def _reference(graphs: Sequence[Sources], found: Sequence[dict[str, Array]]) -> Iterator[str]:
    """The first copy is within the bound of the operator's meaning."""
    for graph, outputs_of in zip(graphs, found, strict=True):
        for made, _, _ in graph.outputs:
            told = beyond(made, outputs_of[made.first])
            if told:
                yield f"reference: {graph.name}: {made}: {told}"


def beyond(made: Drawn, got: Array) -> str:
    op = made.case.concrete(0)
    given: dict[str, Any] = {}
    for (key, _), array in zip(made.case.operands(), made.arrays, strict=True):
        if isinstance(made.case.given[key], list):
            given.setdefault(key, []).append(array)
        else:
            given[key] = array
    wide = [widened(op, key, given.get(key)) for key in operand_fields(op)]
    with np.errstate(all="ignore"):
        whole = expanded.reference(op, *wide)
        want = whole[0] if isinstance(whole, list) else whole
        dtype = op.results[0].dtype
        want = dtypes.store(np.asarray(want), dtype)
        bound = np.asarray(expanded.tolerance(op, want, *wide), np.float64) + LOST * dtype.is_float
    return difference(op, dtype, got, want, bound)


# ---------------------------------------------------------------- campaign

FAMILIES: tuple[tuple[str, ...], ...] = (
    ("linear",), ("matmul",), ("conv1d", "conv_transpose1d"), ("conv2d",), ("conv_transpose2d", "conv1d"), ("attention",),
    ("attention", "attn"), ("linear", "rms_norm", "layer_norm"), ("gru_cell", "lstm_cell"), ("softmax", "log_softmax"),
    ("sum_axis", "mean_axis", "prod_axis", "argmax_axis", "argmin_axis", "max_axis", "min_axis"),
    ("quantize", "dequantize", "requantize"), ("gather", "pad", "concat", "repeat", "flip"),
    ("cumsum", "top_k", "sample", "rope", "max_pool", "avg_pool", "batch_norm"), ("linear", "matmul"), (),
)  # fmt: skip
STORAGES = (*[None] * 9, "q8", "q4", "bf16", "f16")
APPLICATIONS, COPIES = 30, 3


def graph(
    seed: int, only: Sequence[str] = (), count: int = APPLICATIONS, storages: Sequence[str | None] = STORAGES
) -> tuple[Sources, str | None]:
    """The graph of a seed, and how its weights are stored."""
    rng = np.random.default_rng(seed)
    chosen = only or FAMILIES[seed % len(FAMILIES)] or [str(n) for n in rng.choice(names(), 6, replace=False)]
    storage = storages[int(rng.integers(len(storages)))]
    for careful in (False, True):  # what the language refuses is rare: it is looked for where there is some
        rng = np.random.default_rng([seed, 1])
        made = Sources(f"g{seed}", rng, storage is not None, careful)
        for _ in range(count):
            made.add(draw(rng, chosen, storage is not None), COPIES)
        try:
            oic.Simulator(oic.parse(made.text, f"{made.name}.oi"), made.model())
            break
        except oic.OicError:
            assert not careful
    return made, storage


def _storage(name: str) -> str | None:
    return None if name == "none" else name


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command line asks for; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.operand_builds", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of the first graph")
    parser.add_argument("--count", type=int, default=1 << 30, help="how many")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for how long")
    parser.add_argument("--only", action="append", default=[], help="an operator; may be repeated")
    parser.add_argument("--build", action="append", default=[], choices=BUILDS, help="a build; may be repeated")
    parser.add_argument("--weights", action="append", default=[], help="how they are stored; may be repeated")
    parser.add_argument("--every", action="store_true", help="every build, not two of them")
    given = parser.parse_args(arguments)
    end, count = time.monotonic() + 60 * given.minutes, 0
    there = [name for name in given.build or BUILDS if not BUILDS[name].missing]
    for seed in range(given.seed, given.seed + given.count):
        if time.monotonic() > end:
            break
        made, storage = graph(seed, given.only, storages=[*map(_storage, given.weights)] or STORAGES)
        order = [there[int(i)] for i in np.random.default_rng([seed, 2]).permutation(len(there))]
        builds = there if given.every or given.build else order[:2]
        folder = Path(tempfile.mkdtemp(prefix="oic-operands-"))
        try:
            found = list(faults([made], builds, folder, storage))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        count += len(found)
        print("\n".join([f"seed {seed}, {storage or 'as they are'}, {', '.join(builds)}: {len(found)} differences", *found]), flush=True)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
