"""One graph, one answer in all its bits: whatever the compiler, its level, the instruction set or the split of a prompt.

Every example that is a language model, and `everything`, takes 200 steps in each build; what is hashed is
every output of every step and, in the end, the saved state.  There is one hash for each class of numerics:
of `separate` the build that compilers do least to defines it, one number a register; of `fused` one whose
multiply-add is our own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.kernels.targets import FUSED, SEPARATE
from oic.toolchain.compiler import find_compiler
from paths import ROOT, models_dir
from processor import AVX2, AVX512, features
from tests import instructions
from tests.fuzz.batch_build import build_together
from tests.fuzz.sanitized import SanitizedExecutor, build_sanitized

STEPS = 200
BUILDS: dict[str, tuple[str, ...]] = {
    "gcc -O2": ("gcc", "-O2"),
    "gcc -O3": ("gcc", "-O3"),
    "gcc AVX2": ("gcc", "-O3", "-march=x86-64-v3"),
    "gcc AVX-512": ("gcc", "-O3", "-march=x86-64-v4"),
    "clang -O0": ("clang", "-O0"),
    "clang -O2": ("clang", "-O2"),
    "clang AVX2": ("clang", "-O3", "-march=x86-64-v3"),
    "clang AVX-512": ("clang", "-O3", "-march=x86-64-v4"),
}
FUSED_BUILDS: dict[str, tuple[str, ...]] = {
    "gcc FMA": ("gcc", "-O3", "-march=x86-64-v3"),
    "gcc FMA -O0": ("gcc", "-O0", "-mfma"),
    "clang FMA": ("clang", "-O3", "-march=x86-64-v3"),
    "gcc FMA AVX-512": ("gcc", "-O3", "-march=x86-64-v4"),
}
SLOW_FMA = (
    "-O2", "-D_DEFAULT_SOURCE", "-include", str(ROOT / "runtime_c" / "simd" / "slow_fma.h"),
    "-DOIC_FMA_F32=oic_slow_fma_f32", "-DOIC_FMA_F64=oic_slow_fma_f64",
)  # fmt: skip
NEEDS = {"AVX2": AVX2, "FMA": AVX2, "AVX-512": AVX512}


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


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """The digest of the build that compilers do least to, or of that with a multiply-add of our own."""
    known: dict[tuple[Example, str], str] = {}
    compiler = "gcc" if shutil.which("gcc") else find_compiler()[0]

    def of(example: Example, numerics: str = SEPARATE) -> str:
        if (example, numerics) not in known:
            flags = SLOW_FMA if numerics == FUSED else ("-O0", "-DOIC_PORTABLE")
            known[example, numerics] = built(example, tmp_path_factory.mktemp("bits"), (compiler, *flags), numerics)
        return known[example, numerics]

    return of


def built(example: Example, folder: Path, command: Sequence[str], numerics: str = SEPARATE) -> str:
    made = example.synthesizer(numerics)
    build_together([made], folder, command[1:], command[:1])
    with made.make_executor() as executor:
        return digest(executor, example)


def runs(build: str, command: Sequence[str]) -> bool:
    """This machine has the compiler and the instructions."""
    needed = {n for sign, names in NEEDS.items() if sign in build for n in names}
    return shutil.which(command[0]) is not None and needed <= features()


def cases(builds: Iterable[str]) -> list[tuple[str, str]]:
    """Examples and builds: each build with every second example; with OIC_EVERY_CASE=1 with all."""
    whole = bool(os.environ.get("OIC_EVERY_CASE"))
    return [(n, b) for i, n in enumerate(EXAMPLES) for j, b in enumerate(builds) if whole or (i + j) % 2 == 0]


@pytest.mark.parametrize(("name", "build"), cases(BUILDS))
def test_every_build_gives_the_same_bits(
    name: str, build: str, expected: Callable[..., str], tmp_path: Path
) -> None:
    if not runs(build, BUILDS[build]):
        pytest.skip(f"no {build} on this machine")
    assert built(EXAMPLES[name], tmp_path, BUILDS[build]) == expected(EXAMPLES[name])
    assert not [found for path in tmp_path.rglob("*.so") for found in instructions.fused(path)]


@pytest.mark.parametrize(("name", "build"), cases(FUSED_BUILDS))
def test_every_fused_build_gives_the_same_bits(
    name: str, build: str, expected: Callable[..., str], tmp_path: Path
) -> None:
    if not runs(build, FUSED_BUILDS[build]):
        pytest.skip(f"no {build} on this machine")
    assert built(EXAMPLES[name], tmp_path, FUSED_BUILDS[build], FUSED) == expected(EXAMPLES[name], FUSED)
    found = any(instructions.fused(path) for path in tmp_path.rglob("*.so"))
    assert found == (name != "everything"), "what other tests look for is found; everything has no sum of products"


def test_the_classes_differ(expected: Callable[..., str]) -> None:
    """Else the two tests above would compare one with itself."""
    numwords = EXAMPLES["numwords"]
    assert expected(numwords, FUSED) != expected(numwords, SEPARATE)


@pytest.mark.parametrize("numerics", (FUSED, SEPARATE))
@pytest.mark.parametrize("name", EXAMPLES)
def test_another_processor_gives_the_same_bits(
    name: str, numerics: str, expected: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AArch64, emulated: registers of NEON, and a compiler that would fuse if it might."""
    compiler, emulator = "aarch64-linux-gnu-gcc", "qemu-aarch64"
    if not (shutil.which(compiler) and shutil.which(emulator)):
        pytest.skip(f"no {compiler} and {emulator}")
    example = BOUNDED[name]
    program = example.simulator().program
    monkeypatch.setenv("CC", f"{compiler} -static")
    path = build_sanitized([program], tmp_path, ("-O3",), numerics=numerics)
    if numerics == SEPARATE:
        assert not instructions.fused(path, f"oic_|{example.graph.stem}", "aarch64-linux-gnu-objdump")
    script = tmp_path / "emulated"
    script.write_text(f'#!/bin/sh\nexec {emulator} {path} "$@"\n')
    script.chmod(0o755)
    with SanitizedExecutor(program, script, 0) as executor:
        assert digest(executor, example) == expected(example, numerics)


@dataclass(frozen=True)
class Prompted:
    """A graph with its model that reads any number of tokens at once.

    tokens  that are read, beyond a block of keys of attention where the graph has room
    source  of what encodes one first, its inputs; tokens are rows of one batch where it has a length
    """

    graph: Path
    model: Path
    vocabulary: int
    tokens: int
    source: tuple[str, ...] = ()


def prompted() -> dict[str, Prompted]:
    """Every example that takes several tokens a step, those whose model is there."""
    found = {n: Prompted(e.graph, e.model, e.vocabulary, min(80, e.context)) for n, e in EXAMPLES.items() if e.model}
    folder, models = ROOT / "examples", models_dir()
    if models is not None:
        bart = models / "misaki-bart-g2p/us_bart.safetensors"
        found["llama"] = Prompted(folder / "llama/graph.oi", models / "llama-tiny", 300, 80)
        found["rwkv"] = Prompted(folder / "rwkv/graph.oi", models / "rwkv5-tiny/weights.safetensors", 256, 80)
        found["gru"] = Prompted(folder / "gru/graph.oi", models / "g2p-en/checkpoint20.npz", 74, 80, ("source",))
        found["t5"] = Prompted(folder / "t5/graph.oi", models / "byt5-tiny-random", 384, 80, ("source", "lengths"))
        found["bart"] = Prompted(folder / "bart/graph.oi", bart, 63, 64, ("source", "lengths"))
    return found


PROMPTED = prompted()


def parts_of(length: int) -> list[tuple[int, int]]:
    """(first, after the last) of the parts that are read at once; with OIC_EVERY_CASE=1 all that there are.

    Otherwise the first and the last part of two, and those of up to nine tokens, wherever they begin.
    """
    every = combinations(range(length + 1), 2)
    whole = bool(os.environ.get("OIC_EVERY_CASE"))
    return [(a, z) for a, z in every if z - a > 1 and (whole or a == 0 or z == length or z - a <= 9)]


@pytest.mark.parametrize("name", PROMPTED)
def test_a_prompt_in_any_parts_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    """Logits and state, after a part read at once, are those of its tokens one by one.

    Each part begins with the state of the tokens before it, which is the same however they were read: so parts one
    after the other, as any division of the prompt has them, end with the same bits, too.
    """
    example, rng = PROMPTED[name], np.random.default_rng(7)
    ids = rng.integers(0, example.vocabulary, example.tokens).astype(np.int32)
    batch = (1,) if "lengths" in example.source else ()
    given = {"source": rng.integers(0, 29, (*batch, 20)).astype(np.int32), "lengths": np.array([20], np.int32)}
    made = oic.Synthesizer(oic.parse_file(example.graph), oic.Model.open(example.model), target="portable")
    with made.build(tmp_path).make_executor() as executor:

        def read(first: int, end: int) -> Any:
            return executor.step(tokens=ids[first:end].reshape(*batch, -1))["logits"].reshape(end - first, -1)

        if example.source:
            executor.step("encode", **{n: given[n] for n in example.source})
        rows, states = [], [executor.save()]
        for i in range(example.tokens):
            rows.append(read(i, i + 1))
            states.append(executor.save())
        alone = np.concatenate(rows)
        for first, end in parts_of(example.tokens):
            executor.load(states[first])
            assert read(first, end).tobytes() == alone[first:end].tobytes(), f"tokens {first} to {end}"
            assert executor.save() == states[end], f"tokens {first} to {end}"
    assert len(set(states)) == len(states) and np.isfinite(alone).all()
