"""One graph, one answer in all its bits: whatever the compiler, its level, the instruction set or the split of a prompt.

Every example that is a language model, and `everything`, takes 200 steps in each build; what is hashed is
every output of every step and, in the end, the saved state.  There is one hash for each class of numerics:
of `separate` the build that compilers do least to defines it, one number a register; of `fused` one whose
multiply-add is our own.
"""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import instructions
import oic
from oic.kernels.targets import FUSED, SEPARATE
from oic.library.build import load
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import LANGUAGE, MEANING, SHARED, WARNINGS
from paths import ROOT, models_dir
from processor import AVX2, AVX512, features
from tests.fuzz.sanitized import SanitizedExecutor, build_sanitized

STEPS = 200
MACHINES = {"baseline": (), "AVX2": ("-march=x86-64-v3",), "AVX-512": ("-march=x86-64-v4",)}
NEEDS = {"baseline": (), "AVX2": AVX2, "AVX-512": AVX512}
LEVELS = ("-O0", "-O2", "-O3")
COMPILERS = ("gcc", "clang")
CLASSES = (FUSED, SEPARATE)
BUILDS = [(c, n, m) for n in CLASSES for c in COMPILERS for m in MACHINES if n == SEPARATE or MACHINES[m]]
GROUPS = {n: pytest.mark.xdist_group(f"bits-{n}-examples") for n in CLASSES}  # one worker runs what is expected of a class
SLOW_FMA = (
    "-O2", "-D_DEFAULT_SOURCE", "-include", str(ROOT / "runtime_c" / "simd" / "slow_fma.h"),
    "-DOIC_FMA_F32=oic_slow_fma_f32", "-DOIC_FMA_F64=oic_slow_fma_f64",
)  # fmt: skip


@dataclass(frozen=True)
class Example:
    """A graph with its model, and what one step of it is given.

    context   tokens after which it starts anew; 0: it never has to
    capacity  the most that indices reach which the graph leaves without a bound
    """

    graph: Path
    model: Path | None
    vocabulary: int
    context: int
    capacity: tuple[tuple[str, int], ...] = ()

    def simulator(self) -> oic.Simulator:
        model = None if self.model is None else oic.Model.open(self.model)
        return oic.Simulator(oic.parse_file(self.graph), model, stage="planned", capacity=dict(self.capacity))

    def synthesizer(self, numerics: str = SEPARATE) -> oic.Synthesizer:
        model = None if self.model is None else oic.Model.open(self.model)
        graph, capacity = oic.parse_file(self.graph), dict(self.capacity)
        return oic.Synthesizer(graph, model, target="portable", numerics=numerics, capacity=capacity)

    def step(self, executor: Any, number: int) -> dict[str, Any]:
        """One token, or one of the entries of `everything`."""
        rng = np.random.default_rng(number)
        if self.vocabulary:
            given: dict[str, Any] = {"tokens": rng.integers(0, self.vocabulary, 1).astype(np.int32)}
            return executor.step(**given)
        entry = ("entry", "shape", "note")[number % 3]
        x = rng.standard_normal((number // 3 % 4, 4)).astype(np.float32)
        given = {"x": x, "grow": np.bool_(number % 7 < 4), "who": np.int32(number % 5 % 3)}
        wanted = {"entry": ("x",), "shape": ("grow",), "note": ("grow", "who")}[entry]
        try:
            return executor.step(entry, **{n: given[n] for n in wanted})
        except oic.StepError as refused:  # the grid is full
            return {"status": np.frombuffer(refused.status.encode(), np.uint8)}


def examples() -> dict[str, Example]:
    """Those whose model is there."""
    folder, models = ROOT / "examples", models_dir()
    found = {
        "numwords": Example(folder / "numwords/graph.oi", folder / "numwords/weights.safetensors", 128, 128),
        "everything": Example(folder / "everything/graph.oi", None, 0, 0),
    }
    if models is not None:
        stories, gpt2 = models / "stories260k/weights.safetensors", models / "gpt2-tiny"
        found["stories260k"] = Example(folder / "tinystories/graph.oi", stories, 512, 256)
        found["gpt2-tiny"] = Example(folder / "gpt2/any_size.oi", gpt2, 100, 64)
    return found


EXAMPLES = examples()
BOUNDED = EXAMPLES | {"everything": replace(EXAMPLES["everything"], capacity=(("log.t", 1024), ("seen.k", 64)))}
"""The same within the address space that an emulator has."""


def in_turn(turn: int) -> list[str]:
    """What a build that takes long is of: `everything` and a language model; all examples with OIC_EVERY_CASE=1."""
    models = [name for name, example in EXAMPLES.items() if example.vocabulary]
    return list(EXAMPLES) if os.environ.get("OIC_EVERY_CASE") else ["everything", models[turn % len(models)]]


def digest(executor: Any, example: Example) -> str:
    """Of all outputs of all steps, and of the state."""
    seen = hashlib.sha256()
    for step in range(STEPS):
        if example.context and step % example.context == 0:
            executor.reset()
        for name, value in sorted(example.step(executor, step).items()):
            seen.update(f"{name} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    seen.update(executor.save())
    return seen.hexdigest()


class Together:
    """Programs that are written once, and compiled as one translation unit: the kernels that they share once.

    At -O3 each is a unit, as `oic build` has it: there what has one caller becomes part of it.
    """

    def __init__(self, made: dict[str, oic.Synthesizer], folder: Path) -> None:
        self.made, self.folder = made, folder
        self.files = {name: program.emit(folder / name) for name, program in made.items()}
        self.flags = list(dict.fromkeys(flag for program in made.values() for flag in program.spec.target.flags))

    def build(self, library: Path, *command: str, names: Sequence[str] = ()) -> None:
        """Compile programs of these names, or all, and have each use what was made of it."""
        names = names or list(self.made)
        sources = [str(path) for name in names for path in self.files[name].sources]
        if "-O3" not in command:
            unit = library.with_suffix(".c")
            unit.write_text("".join(f'#include "{path}"\n' for path in sources))
            sources = [str(unit)]
        call = [*command[:1], *self.flags, *command[1:], LANGUAGE, *MEANING, *WARNINGS, "-Werror", *SHARED]
        call += [*sources, "-o", str(library), "-lm", "-pthread"]
        done = subprocess.run(call, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stderr[:6000]
        for name in names:
            self.made[name].library = load(self.files[name], library, self.folder)


class Examples(Together):
    """The examples in one class of numerics.

    unbounded  the same without bounds of indices: what has none anyway is the same program
    """

    def __init__(
        self, chosen: dict[str, Example], folder: Path, numerics: str, unbounded: Examples | None = None
    ) -> None:
        super().__init__({name: example.synthesizer(numerics) for name, example in chosen.items()}, folder)
        self.chosen, self.numerics, self.unbounded = chosen, numerics, unbounded

    def digests(self, library: Path, *command: str, names: Sequence[str] = ()) -> dict[str, str]:
        """Of examples, or all, as a compiler makes them."""
        self.build(library, *command, names=names)
        found = {}
        for name in names or self.chosen:
            with self.made[name].make_executor() as executor:
                found[name] = digest(executor, self.chosen[name])
        return found

    @cached_property
    def expected(self) -> dict[str, str]:
        """Of the build that compilers do least to, or of that with a multiply-add of our own."""
        flags = SLOW_FMA if self.numerics == FUSED else ("-O0", "-DOIC_PORTABLE")
        compiler = "gcc" if shutil.which("gcc") else find_compiler()[0]
        same = {} if self.unbounded is None else {
            name: seen for name, seen in self.unbounded.expected.items() if not self.chosen[name].capacity}  # fmt: skip
        others = [name for name in self.chosen if name not in same]
        return same | self.digests(self.folder / "expected.so", compiler, *flags, names=others)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Examples]:
    """The examples in a class of numerics."""

    @cache
    def made(numerics: str, bounded: bool = False) -> Examples:
        folder = tmp_path_factory.mktemp("bits")
        return Examples(BOUNDED, folder, numerics, made(numerics)) if bounded else Examples(EXAMPLES, folder, numerics)

    return made


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("compiler", "numerics", "machine"), [pytest.param(c, n, m, marks=GROUPS[n]) for c, n, m in BUILDS]
)
def test_every_build_gives_the_same_bits(
    compiler: str, numerics: str, machine: str, level: str, together: Callable[..., Examples], tmp_path: Path
) -> None:
    if shutil.which(compiler) is None or not set(NEEDS[machine]) <= features():
        pytest.skip(f"no {compiler} or {machine} on this machine")
    examples, library = together(numerics), tmp_path / "built.so"
    turn = COMPILERS.index(compiler) + CLASSES.index(numerics) + list(MACHINES).index(machine) + LEVELS.index(level)
    names = list(EXAMPLES) if level == "-O0" else in_turn(turn)  # all, of a class
    found = examples.digests(library, compiler, level, *MACHINES[machine], names=names)
    assert found == {name: examples.expected[name] for name in names}
    assert bool(instructions.fused(library)) == (numerics == FUSED), "and what is looked for in vain is found elsewhere"


@pytest.mark.parametrize("numerics", [pytest.param(n, marks=GROUPS[n]) for n in CLASSES])
def test_a_small_stack_gives_the_same_bits(numerics: str, together: Callable[..., Examples], tmp_path: Path) -> None:
    if numerics == FUSED and not set(AVX2) <= features():
        pytest.skip("no AVX2 on this machine")
    flags = (*MACHINES["AVX2" if numerics == FUSED else "baseline"], "-DOIC_SMALL_STACK=1")
    examples = together(numerics)
    assert examples.digests(tmp_path / "built.so", find_compiler()[0], "-O2", *flags) == examples.expected


@GROUPS[SEPARATE]
def test_the_classes_differ(together: Callable[..., Examples]) -> None:
    """Else the test above would compare one with itself; `everything` has no sum of products."""
    one, other = (together(numerics).expected for numerics in (FUSED, SEPARATE))
    assert [name for name in EXAMPLES if one[name] == other[name]] == ["everything"]


OTHERS = {
    "AArch64": ("aarch64-linux-gnu", "", "qemu-aarch64"),
    "Windows": ("x86_64-w64-mingw32", "-march=x86-64-v3", "wine64"),
}
"""Machines that are emulated: beginnings of names of their tools, flags, emulator."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("numerics", [pytest.param(n, marks=GROUPS[n]) for n in CLASSES])
@pytest.mark.parametrize("machine", OTHERS)
def test_another_machine_gives_the_same_bits(
    machine: str, numerics: str, level: str, together: Callable[..., Examples], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Registers of NEON, and a compiler that would fuse if it might; `long` of 32 bits, and stacks aligned to 16 bytes."""
    tools, flags, emulator = OTHERS[machine]
    compiler = f"{tools}-gcc"
    if not (shutil.which(compiler) and shutil.which(emulator)):
        pytest.skip(f"no {compiler} and {emulator}")
    if machine == "Windows" and not set(AVX2) <= features():
        pytest.skip("no AVX2 on this machine")
    examples = together(numerics, bounded=True)
    turn = LEVELS.index(level) + 2 * CLASSES.index(numerics)
    names = list(EXAMPLES) if level == "-O0" else in_turn(turn)
    programs = [examples.made[name].program for name in names]
    expected = examples.expected
    monkeypatch.setenv("CC", f"{compiler} {flags} -static")
    path = build_sanitized(programs, tmp_path, (level,), numerics=numerics)
    path = path if path.exists() else path.with_suffix(".exe")
    ours = "|".join(("oic_", *(files.name for files in examples.files.values())))
    assert bool(instructions.fused(path, ours, f"{tools}-objdump")) == (numerics == FUSED)
    script = tmp_path / "emulated"
    script.write_text(f'#!/bin/sh\nexec {emulator} {path} "$@"\n')
    script.chmod(0o755)
    found = {}
    for number, name in enumerate(names):
        with SanitizedExecutor(programs[number], script, number) as executor:
            found[name] = digest(executor, examples.chosen[name])
    assert found == {name: expected[name] for name in names}


@dataclass(frozen=True)
class Divided:
    """A graph with its model that takes any number of rows at once.

    graph   text of it, a script that makes it and its model, or a file
    length  rows that are read, beyond a block of keys of attention where the graph has room; `most` of them at a time
    tokens  of the vocabulary; 0: rows are of `width` numbers
    source  inputs of what encodes one first; tokens are rows of one batch where it has a length
    states  variables that are compared, not all: others count steps
    """

    graph: Path
    model: Path | None
    length: int
    tokens: int = 0
    width: int = 0
    most: int = 80
    source: tuple[str, ...] = ()
    given: str = "tokens"
    results: tuple[str, ...] = ("logits",)
    states: tuple[str, ...] = ()

    def synthesizer(self, name: str, **settings: Any) -> oic.Synthesizer:
        if self.graph.suffix == ".py":
            script = runpy.run_path(str(self.graph))
            arrays = script["arrays"]()
            text, model = script["graph"](arrays), script["weights"](arrays)
        else:
            text, model = self.graph.read_text(), None if self.model is None else oic.Model.open(self.model)
        return oic.Synthesizer(oic.parse(re.sub(r"^graph \w+", f"graph {name}", text, flags=re.M)), model, **settings)

    def parts(self) -> list[tuple[int, int]]:
        """(first, after the last) of the parts that are read at once; with OIC_EVERY_CASE=1 all that there are.

        Otherwise the first and the last part of two, and those of up to nine rows, wherever they begin.
        """
        every = [(a, z) for a, z in combinations(range(self.length + 1), 2) if 1 < z - a <= self.most]
        whole = bool(os.environ.get("OIC_EVERY_CASE"))
        return [(a, z) for a, z in every if whole or a == 0 or z == self.length or z - a <= 9]

    def check(self, executor: Any) -> None:
        """Results and state, after a part read at once, are those of its rows one by one.

        Each part begins with the state of the rows before it, which is the same however they were read: so parts one
        after the other, as any division of the rows has them, end with the same bits, too.
        """
        rng = np.random.default_rng(7)
        batch = (1,) if "lengths" in self.source else ()
        given: Any = rng.integers(0, self.tokens, self.length).astype(np.int32) if self.tokens else None
        if given is None:
            given = rng.standard_normal((self.length, self.width)).astype(np.float32)
        source = {"source": rng.integers(0, 29, (*batch, 20)).astype(np.int32), "lengths": np.array([20], np.int32)}

        def read(first: int, end: int) -> list[bytes]:
            rows = given[first:end]
            step = executor.step(**{self.given: rows.reshape(*batch, *rows.shape)})
            found = [step[name].reshape(end - first, -1) for name in self.results]
            assert all(np.isfinite(y).all() for y in found)
            return [b"".join(y[i].tobytes() for y in found) for i in range(end - first)]

        def state() -> bytes:
            return b"".join(executor.fetch(n).tobytes() for n in self.states) if self.states else executor.save()

        if self.source:
            executor.step("encode", **{n: source[n] for n in self.source})
        alone, saved, states = [], [executor.save()], [state()]
        for i in range(self.length):
            alone += read(i, i + 1)
            saved.append(executor.save())
            states.append(state())
        for first, end in self.parts():
            executor.load(saved[first])
            assert read(first, end) == alone[first:end], f"rows {first} to {end}"
            assert state() == states[end], f"rows {first} to {end}"
        assert len(set(states)) == len(states)


def divided() -> dict[str, Divided]:
    """By the name of its folder, every example that takes several rows a step."""
    folder, models = ROOT / "examples", models_dir() or ROOT / "models"
    numwords, encoded = folder / "numwords/graph.oi", ("source", "lengths")
    log = ("steps", "recent", "log", "grid", "seen", "rows")
    return {
        "numwords": Divided(numwords, folder / "numwords/weights.safetensors", 80, 128),
        "speculative": Divided(numwords, folder / "speculative/draft.safetensors", 80, 128),
        "tinystories": Divided(folder / "tinystories/graph.oi", models / "stories260k/weights.safetensors", 80, 512),
        "gpt2": Divided(folder / "gpt2/any_size.oi", models / "gpt2-tiny", 64, 100),
        "llama": Divided(folder / "llama/graph.oi", models / "llama-tiny", 80, 300),
        "rwkv": Divided(folder / "rwkv/graph.oi", models / "rwkv5-tiny/weights.safetensors", 80, 256),
        "gru": Divided(folder / "gru/graph.oi", models / "g2p-en/checkpoint20.npz", 80, 74, source=("source",)),
        "t5": Divided(folder / "t5/graph.oi", models / "byt5-tiny-random", 80, 384, source=encoded),
        "bart": Divided(folder / "bart/graph.oi", models / "misaki-bart-g2p/us_bart.safetensors", 64, 63, source=encoded),
        "wavenet": Divided(folder / "wavenet/run.py", models / "nam-wavenet/weights.safetensors", 80, width=1, most=64,
                           given="samples", results=("result",)),
        "everything": Divided(folder / "everything/graph.oi", None, 12, width=4, most=3, given="x", results=("a", "b"),
                              states=log),
    }  # fmt: skip


DIVIDED = divided()
ONE_ROW = {"gru_256", "micro_wake_word", "persistent_memory", "silero"}
"""Examples that take one frame a step."""
WAYS: dict[str, dict[str, Any]] = {
    "portable": {"target": "portable"},
    "host": {"target": "host"},
    "host q8": {"target": "host", "weights": "q8"},
    "host q4": {"target": "host", "weights": "q4"},
    "host threads": {"target": "host", "threads": 2},
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_in_any_parts_give_the_same_bits(way: str, tmp_path: Path) -> None:
    there = {n: d for n, d in DIVIDED.items() if d.model is None or d.model.exists()}
    if "weights" in WAYS[way]:
        del there["everything"]  # it has none
    together = Together({name: d.synthesizer(name, **WAYS[way]) for name, d in there.items()}, tmp_path)
    together.build(tmp_path / "parts.so", *find_compiler(), "-O1")
    for name, program in together.made.items():
        with program.make_executor() as executor:
            there[name].check(executor)
    if absent := [n for n, d in DIVIDED.items() if d.model is not None and not d.model.exists()]:
        pytest.skip(f"all others hold; there are no models of {', '.join(absent)}")


def test_every_example_that_takes_several_rows_is_divided() -> None:
    folders = {path.name for path in (ROOT / "examples").iterdir() if (path / "README.md").exists()}
    assert folders == {*DIVIDED, *ONE_ROW}
    graphs = [path for name in ONE_ROW for path in (ROOT / "examples" / name).rglob("graph.oi")]
    assert len(graphs) >= len(ONE_ROW) and not [path for path in graphs if "@max" in path.read_text()]
