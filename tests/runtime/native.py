"""Compiles runtime_c alone: C text in, a shared library out.  No generated code is used.

Every library is built without warnings, by each compiler found, and once under the undefined
behaviour sanitizer, which reports to the standard error of this process.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from compilers import level, optimizing
from oic.toolchain.target import LANGUAGE, MEANING, WARNINGS
from paths import ROOT
from processor import AVX2, features

# Instrumented divisions look to gcc like conversions that it warns of.
SANITIZE = ["-fsanitize=undefined,float-cast-overflow", "-O0", "-Wno-conversion"]

# AVX-512 on a machine with AVX2: the code upon it, with its instructions computed lane by lane.
EMULATED = (
    "-march=x86-64-v3", "-isystem", str(Path(__file__).parent / "emulated"), "-Wno-psabi", "-DOIC_TILE_HELD(v)=((void)(v))",
    *(f"-D__AVX512{part}__" for part in ("F", "VL", "BW", "DQ", "VNNI", "BF16")),
)  # fmt: skip


@dataclass(frozen=True)
class Toolchain:
    """A compiler and how it is called.

    needs   of the processor, as `features` names it
    """

    name: str
    command: str
    flags: tuple[str, ...]
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """Why there is no code of it that runs here; "" where there is."""
        if shutil.which(self.command) is None:
            return f"{self.command} is not installed"
        lacks = sorted(set(self.needs) - features())
        return f"this processor has no {', '.join(lacks)}" if lacks else ""

    def library(self, source: str, folder: Path, name: str) -> ctypes.CDLL:
        """The library made of one C file."""
        text, shared = folder / f"{name}.c", folder / f"{name}.so"
        text.write_text(source)
        command = [self.command, LANGUAGE, *WARNINGS, "-Werror", *self.flags, *MEANING]
        command += ["-fPIC", "-shared", "-I", str(ROOT / "runtime_c"), str(text)]
        command += ["-o", str(shared), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:6000]}"
        return ctypes.CDLL(str(shared))


TOOLCHAINS = (
    Toolchain("gcc", "gcc", (level("-O2"),)),
    Toolchain("gcc-native", "gcc", (*optimizing("gcc"), "-O1", "-march=native")),
    Toolchain("clang", "clang", (level("-O2"),)),
    Toolchain("gcc-sanitized", "gcc", tuple(SANITIZE)),
    *(() if shutil.which("gcc") or shutil.which("clang") else (Toolchain("cc", "cc", ("-O2",)),)),
)
AVX512 = Toolchain("gcc-avx512", "gcc", ("-O0", *EMULATED), AVX2)
ZEN5 = Toolchain("gcc-zen5", "gcc", (*AVX512.flags, "-DOIC_EMULATES_ZEN5"), AVX2)  # OIC_ASKED_NEAR
INTEL = Toolchain("gcc-intel", "gcc", (*AVX512.flags, "-DOIC_EMULATES_INTEL"), AVX2)
