"""Many generated programs compiled by few calls of the C compiler.

Starting the compiler and reading its headers costs more than the small programs of a test; names of
different graphs do not clash, so their sources link together into one library.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from oic.library.build import load
from oic.session.synthesizer import CompiledProgram
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import LANGUAGE, MEANING, SHARED, WARNINGS

JOBS = 2  # compilers at a time


def build_together(
    made: Sequence[CompiledProgram],
    folder: Path,
    flags: Sequence[str] = ("-O0",),
    compiler: Sequence[str] | None = None,
    unlinked: Sequence[str] = (),
) -> None:
    """Emit every program into a folder of its own, compile and link all, and load each.

    flags     for the C compiler, beside those every program and the target need
    unlinked  more, of compilations alone: some change the mode of the whole process when they are linked with
    compiler  its command; default: the one `oic build` takes
    Raises AssertionError with what the compiler said.
    """
    files = [program.emit(folder / f"p{i}") for i, program in enumerate(made)]
    names = [f.name for f in files]
    assert len(set(names)) == len(names), "two programs of one name cannot share a library"
    machine = list(dict.fromkeys(flag for program in made for flag in program.spec.target.flags))
    command = [*(compiler or find_compiler()), LANGUAGE, *MEANING, *WARNINGS, "-Werror", *machine, *flags]
    unlinked = [*(flag for flag in SHARED if flag != "-shared"), *unlinked]
    sources = [path for f in files for path in f.sources]
    objects = [path.with_name(f"{path.stem}.o") for path in sources]
    with ThreadPoolExecutor(JOBS) as pool:
        calls = [[*command, *unlinked, "-c", str(s), "-o", str(o)] for s, o in zip(sources, objects)]
        list(pool.map(_call, calls))
    library = folder / "libtogether.so"
    _call([*command, *SHARED, "-o", str(library), *map(str, objects), "-lm"])
    for program, written in zip(made, files, strict=True):
        program.library = load(written, library, written.folder)


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:6000]}"
