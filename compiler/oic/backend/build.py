"""From generated files to a library in this process: the C compiler, and cffi."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oic.backend import view
from oic.backend.emit import Files
from oic.backend.target import SHARED, STANDARD, WARNINGS
from oic.diagnostics import OicError, fail

CANDIDATES = ("cc", "gcc", "clang")
TIME_LIMIT = 600  # seconds of one compilation


@dataclass(frozen=True)
class Library:
    """A loaded library: `lib` has its functions, `ffi` its types."""

    path: Path
    files: Files
    ffi: Any
    lib: Any


def build(files: Files) -> Library:
    """Compile the files and load the result.

    Raises OicError: `no-compiler`, `compile-failed`, `target-not-here` for a target that has no
    shared libraries, `load-failed`.
    """
    if not files.target.hosted:
        raise fail(
            "target-not-here",
            f"code for the target '{files.target.name}' cannot be loaded into this process",
            hint="the targets 'host' and 'portable' can",
        )
    return load(files, compile_library(files))


def find_compiler() -> list[str]:
    """The command that CC names, or the first C compiler found; OicError `no-compiler` if none is."""
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        if shutil.which(named[0]):
            return named
        tried = f"CC={named[0]}"
    else:
        for name in CANDIDATES:
            if shutil.which(name):
                return [name]
        tried = ", ".join(CANDIDATES)
    raise fail(
        "no-compiler",
        f"no C compiler was found (tried {tried})",
        hint="install gcc or clang, or name a compiler in the environment variable CC",
    )


def command(files: Files, compiler: list[str], output: Path) -> list[str]:
    """The one call that makes the shared library."""
    flags = [*STANDARD, *files.target.flags, *SHARED, *WARNINGS]
    sources = [str(p) for p in files.sources]
    libraries = [*files.model.thread_flags.split(), "-lm"]
    return [*compiler, *flags, "-I", str(files.folder), "-o", str(output), *sources, *libraries]


def compile_library(files: Files) -> Path:
    """Compile to `lib<name>.so`; an old one, perhaps still loaded, is replaced and not overwritten."""
    path = files.folder / f"lib{files.name}.so"
    partial = path.with_name(path.name + ".partial")
    call = command(files, find_compiler(), partial)
    try:
        done = subprocess.run(
            call, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT, check=False
        )
    except OSError as failure:
        raise fail("no-compiler", f"{call[0]} cannot be run: {failure.strerror}") from failure
    except subprocess.TimeoutExpired:
        raise fail("compile-failed", f"{call[0]} was stopped after {TIME_LIMIT} s") from None
    if done.returncode != 0:
        partial.unlink(missing_ok=True)
        raise _failure(call, done.stderr or done.stdout)
    partial.replace(path)
    return path


def _failure(call: list[str], output: str) -> OicError:
    """The compiler's first error; the rest is a command away."""
    lines = output.splitlines()
    first = next((n for n, text in enumerate(lines) if re.search(r"\berror\b", text)), 0)
    said = "\n".join(lines[first : first + 4]) or "it said nothing"
    return fail(
        "compile-failed",
        f"{call[0]} does not compile the generated code:\n{said}",
        hint="the whole command was: " + shlex.join(call),
    )


def load(files: Files, path: Path) -> Library:
    """Load a library by the declarations of its own view."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(view.declarations(files.model))
    try:
        return Library(path, files, ffi, ffi.dlopen(str(path.resolve())))
    except OSError as failure:
        raise fail("load-failed", f"{path} cannot be loaded: {failure}") from failure
