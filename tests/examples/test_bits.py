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
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.kernels.targets import FUSED, SEPARATE, SHARED_NUMERICS
from oic.toolchain.compiler import find_compiler
from paths import ROOT, models_dir
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
NEEDS = {"AVX2": ("avx2", "bmi2"), "FMA": ("avx2", "fma", "bmi2"), "AVX-512": ("avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512cd")}


@dataclass(frozen=True)
class Example:
    """A graph with its model, and what one step of it is given.

    context  tokens after which it starts anew; 0: it never has to
    """

    graph: Path
    model: Path | None
    vocabulary: int
    context: int

    def simulator(self) -> oic.Simulator:
        model = None if self.model is None else oic.Model.open(self.model)
        return oic.Simulator(oic.parse_file(self.graph), model, stage="planned")

    def synthesizer(self, numerics: str = SEPARATE) -> oic.Synthesizer:
        model = None if self.model is None else oic.Model.open(self.model)
        return oic.Synthesizer(oic.parse_file(self.graph), model, target="portable", numerics=numerics)

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
    known: dict[tuple[str, str], str] = {}
    compiler = "gcc" if shutil.which("gcc") else find_compiler()[0]

    def of(name: str, numerics: str = SEPARATE) -> str:
        if (name, numerics) not in known:
            flags = SLOW_FMA if numerics == FUSED else ("-O0", "-DOIC_PORTABLE")
            known[name, numerics] = built(name, tmp_path_factory.mktemp("bits"), (compiler, *flags), numerics)
        return known[name, numerics]

    return of


def built(name: str, folder: Path, command: Sequence[str], numerics: str = SEPARATE) -> str:
    example = EXAMPLES[name]
    made = example.synthesizer(numerics)
    build_together([made], folder, command[1:], command[:1])
    with made.make_executor() as executor:
        return digest(executor, example)


def runs(build: str, command: Sequence[str]) -> bool:
    """This machine has the compiler and the instructions."""
    try:
        features = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    except OSError:
        features = []
    needed = {n for sign, names in NEEDS.items() if sign in build for n in names}
    return shutil.which(command[0]) is not None and needed <= set(features)


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
    assert built(name, tmp_path, BUILDS[build]) == expected(name)
    assert not [found for path in tmp_path.rglob("*.so") for found in instructions.fused(path)]


@pytest.mark.parametrize(("name", "build"), cases(FUSED_BUILDS))
def test_every_fused_build_gives_the_same_bits(
    name: str, build: str, expected: Callable[..., str], tmp_path: Path
) -> None:
    if not runs(build, FUSED_BUILDS[build]):
        pytest.skip(f"no {build} on this machine")
    assert built(name, tmp_path, FUSED_BUILDS[build], FUSED) == expected(name, FUSED)
    found = any(instructions.fused(path) for path in tmp_path.rglob("*.so"))
    assert found == (name != "everything"), "what other tests look for is found; everything has no sum of products"


def test_the_classes_differ(expected: Callable[..., str]) -> None:
    """Else the two tests above would compare one with itself."""
    assert expected("numwords", FUSED) != expected("numwords", SEPARATE)


@pytest.mark.parametrize("numerics", SHARED_NUMERICS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_another_processor_gives_the_same_bits(
    name: str, numerics: str, expected: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AArch64, emulated: registers of NEON, and a compiler that would fuse if it might."""
    compiler, emulator = "aarch64-linux-gnu-gcc", "qemu-aarch64"
    if not (shutil.which(compiler) and shutil.which(emulator)):
        pytest.skip(f"no {compiler} and {emulator}")
    if EXAMPLES[name].graph.parent.name == "everything":
        pytest.skip("its table without a bound reserves more address space than the emulator has")
    program = EXAMPLES[name].simulator().program
    monkeypatch.setenv("CC", f"{compiler} -static")
    path = build_sanitized([program], tmp_path, ("-O3",), numerics=numerics)
    if numerics == SEPARATE:
        assert not instructions.fused(path, f"oic_|{EXAMPLES[name].graph.stem}", "aarch64-linux-gnu-objdump")
    script = tmp_path / "emulated"
    script.write_text(f'#!/bin/sh\nexec {emulator} {path} "$@"\n')
    script.chmod(0o755)
    with SanitizedExecutor(program, script, 0) as executor:
        assert digest(executor, EXAMPLES[name]) == expected(name, numerics)


@pytest.mark.parametrize("name", [n for n in EXAMPLES if EXAMPLES[n].vocabulary])
def test_a_prompt_in_any_parts_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    """All at once, one by one, and in parts of every length up to 9: logits and state."""
    example = EXAMPLES[name]
    length = min(48, example.context)
    ids = np.random.default_rng(7).integers(0, example.vocabulary, length).astype(np.int32)
    with example.synthesizer().build(tmp_path).make_executor() as executor:

        def fed(parts: list[int]) -> tuple[bytes, bytes]:
            executor.reset()
            at = np.cumsum([0, *parts])
            rows = [executor.step(tokens=ids[a:b])["logits"] for a, b in pairwise(at)]
            return np.concatenate(rows).tobytes(), executor.save()

        whole = fed([length])
        for size in range(1, 10):
            parts = [size] * (length // size) + [length % size] * bool(length % size)
            assert fed(parts) == whole, f"in parts of {size}"
