"""Vector registers: every function of every instruction set gives the bits of plain C.

One program (registers.c) prints a hash of the results of each function, on special and random numbers and on all
those of 16 bits.  Other machines are emulated; where the compiler or the emulator is missing, that one is skipped.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import LANGUAGE, MEANING, WARNINGS
from paths import ROOT
from processor import AVX2, AVX512, features
from runtime import wasm
from runtime.boards import CORTEX_M0, CORTEX_M4, CORTEX_M55, EMULATOR, EMULATOR_M0, EMULATOR_M4
from runtime.native import EMULATED

SOURCE = ROOT / "tests" / "runtime" / "registers.c"


@dataclass(frozen=True)
class Machine:
    """An instruction set: how its program is compiled and run.

    width    numbers a register
    runs     the command that runs it, before the program
    needs    flags in /proc/cpuinfo without which it cannot run here
    """

    width: int
    compiler: str
    flags: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


MACHINES = {
    "sse2 gcc": Machine(4, "gcc", ("-msse2",), needs=("sse2",)),
    "sse2 clang": Machine(4, "clang", ("-msse2",), needs=("sse2",)),
    "avx2 gcc": Machine(8, "gcc", ("-march=x86-64-v3",), needs=AVX2),
    "avx2 clang": Machine(8, "clang", ("-march=x86-64-v3",), needs=AVX2),
    "avx512 gcc": Machine(16, "gcc", ("-march=x86-64-v4",), needs=AVX512),
    "avx512 vnni": Machine(16, "gcc", ("-march=x86-64-v4", "-mavx512vnni"), needs=(*AVX512, "avx512_vnni")),
    "avx512 emulated": Machine(16, "gcc", EMULATED, needs=AVX2),
    "neon": Machine(4, "aarch64-linux-gnu-gcc", ("-static",), ("qemu-aarch64",)),
    "neon dotprod": Machine(
        4, "aarch64-linux-gnu-gcc", ("-static", "-march=armv8.2-a+dotprod+fp16"), ("qemu-aarch64",)
    ),
    "helium": Machine(1, CORTEX_M55[0], (*CORTEX_M55[1:], "-fno-math-errno"), EMULATOR),
    "arm pairs of halves": Machine(1, CORTEX_M4[0], (*CORTEX_M4[1:], "-fno-math-errno"), EMULATOR_M4),
    "thumb": Machine(1, CORTEX_M0[0], (*CORTEX_M0[1:], "-fno-math-errno"), EMULATOR_M0),
    "wasm": Machine(4, "clang", ("--target=wasm32",)),
}


def results(machine: Machine, folder: Path) -> dict[str, str]:
    """What the program prints.  Skips where it cannot be made or run."""
    if "--target=wasm32" in machine.flags:
        return lines_of(wasm.said([SOURCE], folder, "-O2", *WARNINGS, "-Werror", "-I", str(ROOT / "runtime_c")))
    missing = [c for c in (machine.compiler, *machine.runs[:1]) if shutil.which(c) is None]
    if missing:
        pytest.skip(f"no {' and '.join(missing)}")
    if machine.needs and platform.machine().lower() not in ("x86_64", "amd64", "i686"):
        pytest.skip("compilers of this machine make no code for x86")
    language = "-std=gnu99" if "-nostartfiles" in machine.flags else LANGUAGE  # its start is assembly
    call = [machine.compiler, language, "-O2", *WARNINGS, "-Werror", *MEANING, *machine.flags]
    call += ["-I", str(ROOT / "runtime_c"), str(SOURCE), "-o", "program", "-lm"]
    made = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
    if machine.needs and not set(machine.needs) <= features():
        pytest.skip("this processor has not these instructions; the program was compiled")
    program = "program" if machine.runs else "./program"
    run = subprocess.run([*machine.runs, program], cwd=folder, capture_output=True, text=True)
    return lines_of(run.stdout + run.stderr)  # an emulated board prints to the second


def lines_of(printed: str) -> dict[str, str]:
    """Results by their names."""
    return dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    machine = Machine(1, find_compiler()[0], ("-DOIC_PORTABLE",))
    return results(machine, tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("name", MACHINES)
def test_every_function_gives_the_bits_of_plain_c(name: str, plain: dict[str, str], tmp_path: Path) -> None:
    found = results(MACHINES[name], tmp_path)
    assert found.pop("width") == str(MACHINES[name].width)
    expected = {n: v for n, v in plain.items() if n in found}
    assert found == expected
    assert set(plain) - set(found) <= {"width", "fused", "fused f64"}
    if "fma" in MACHINES[name].needs or name.startswith("neon"):
        assert "fused" in found


def test_plain_c_rounds_as_the_runtime(plain: dict[str, str]) -> None:
    """`as num.h` counts differences of narrowed numbers; `any` those of a mask, `words` wrong sums, `scaled` wrong bytes: none is the hash of 0."""
    assert plain["width"] == "1"
    assert plain["as num.h"] == plain["any"] == plain["words"] == plain["scaled"] == "af63bd49fd1c5dbb"
