"""From generated files to a library in this process: the C compiler, and cffi.

The C is compiled to assembly, from which the stack of every function of the API is known, and that to
the library; then the files that say what was built are written again, with the figures.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from oic.backend import stack, view
from oic.backend.elf import code_bytes
from oic.backend.emit import Files, with_figures
from oic.backend.figures import Figures
from oic.backend.folder import scratch_folder
from oic.backend.target import SHARED, STANDARD, WARNINGS, Target
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
    """Compile the files, write down what that gave, and load the result.

    Raises OicError: `no-compiler`, `compile-failed`, `target-not-here` for a target that has no
    shared libraries, `load-failed`.
    """
    if not files.target.hosted:
        raise fail(
            "target-not-here",
            f"code for the target '{files.target.name}' cannot be loaded into this process",
            hint="the targets 'host' and 'portable' can",
        )
    path, figures = compile_library(files)
    return load(with_figures(files, figures), path)


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
    return [*compiler, *flags, "-I", str(files.folder), "-o", str(output), *sources, *_libraries(files)]


def compile_library(files: Files) -> tuple[Path, Figures]:
    """Compile to `lib<name>.so`; an old one, perhaps still loaded, is replaced and not overwritten.

    A compiler that knows no `-fstack-usage` makes the library in one call, and the stack is not known.
    """
    path = files.folder / f"lib{files.name}.so"
    partial = path.with_name(path.name + ".partial")
    compiler = find_compiler()
    whole = command(files, compiler, partial)
    with scratch_folder() as folder:
        figures, made = _measured(files, compiler, folder)
        rest = [str(p) for p in files.sources if p != _main(files)]
        flags = [*STANDARD, *files.target.flags, *SHARED]
        call = [*compiler, *flags, "-o", str(partial), str(made), *rest, *_libraries(files)] if made else whole
        try:
            _run(call, shown=whole)
        except OicError:
            partial.unlink(missing_ok=True)
            raise
    partial.replace(path)
    return path, figures


def measure(files: Files) -> Figures:
    """Stack and code bytes by the compiler that there is; no library is made.

    Raises OicError: `no-compiler`, `compile-failed`.
    """
    compiler = find_compiler()
    with scratch_folder() as folder:
        figures, made = _measured(files, compiler, folder)
        if made is None:  # is it C for this compiler at all?
            call = [*compiler, *_flags(files.target), "-I", str(files.folder), "-c", "-o"]
            _run([*call, str(folder / f"{files.name}.o"), str(_main(files))])
    return figures


def named_figures(files: Files) -> Files:
    """For a target that has no libraries here: the figures of the compiler that CC names, if it names one.

    Raises OicError: as `measure`.
    """
    return with_figures(files, measure(files)) if os.environ.get("CC") else files


def _flags(target: Target) -> list[str]:
    """Flags that decide about the code of a target."""
    return [*STANDARD, *target.flags, *(f for f in SHARED if target.hosted and f != "-shared")]


def _libraries(files: Files) -> list[str]:
    return [*files.model.thread_flags.split(), "-lm"]


def _main(files: Files) -> Path:
    return files.folder / f"{files.name}.c"


def _measured(files: Files, compiler: list[str], folder: Path) -> tuple[Figures, Path | None]:
    """Compile the main source by way of its assembly; the figures and the object file, in a folder.

    None for the object where the compiler refuses, be it `-fstack-usage` or the source.
    """
    source, usage, made = (folder / f"{files.name}.{ending}" for ending in ("s", "su", "o"))
    flags = [*_flags(files.target), *files.model.thread_flags.split()]
    shown = f"{described(tuple(compiler))}, {' '.join([*_choices(compiler), *flags])}"
    call = [*compiler, *flags, "-I", str(files.folder), "-fstack-usage", "-S", "-o", str(source)]
    try:
        _run([*call, str(_main(files))])
        texts = [p.read_text(encoding="utf-8", errors="replace") for p in (usage, source)]
        _run([*compiler, *flags, "-c", "-o", str(made), str(source)])
    except (OSError, OicError) as failure:
        if isinstance(failure, OicError) and failure.diagnostics[0].slug == "no-compiler":
            raise
        return Figures(shown, missing="the compiler does not tell it (-fstack-usage)"), None
    try:
        return Figures(shown, _stacks(files, *texts), "", code_bytes(made)), made
    except stack.Unknown as why:
        return Figures(shown, (), str(why), code_bytes(made)), made


def _stacks(files: Files, usage: str, assembly: str) -> tuple[stack.Stack, ...]:
    """Of every function of the API, and of a thread of the pool that the library makes.  Raises Unknown."""
    graph = stack.read(usage, assembly)
    names = [*files.model.functions, *([stack.THREAD] if files.model.pooled else [])]
    missing = [n for n in names if n not in graph and f"_{n}" not in graph]
    if missing:
        raise stack.Unknown(f"the assembly has no function {missing[0]}")
    found = (stack.worst(graph, n if n in graph else f"_{n}") for n in names)
    return tuple(replace(s, function=n) for n, s in zip(names, found))


def _run(call: list[str], shown: list[str] | None = None) -> None:
    """Call the compiler.  Raises OicError: `no-compiler`, `compile-failed`.

    shown   the command to print if it fails
    """
    try:
        done = subprocess.run(
            call, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT, check=False
        )
    except OSError as failure:
        raise fail("no-compiler", f"{call[0]} cannot be run: {failure.strerror}") from failure
    except subprocess.TimeoutExpired:
        raise fail("compile-failed", f"{call[0]} was stopped after {TIME_LIMIT} s") from None
    if done.returncode != 0:
        raise _failure(shown or call, done.stderr or done.stdout)


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


@cache
def described(compiler: tuple[str, ...]) -> str:
    """Kind, version and machine of a compiler, without where it lies: `gcc 12.2.0 for x86_64-linux-gnu`."""
    macros = _answer([*compiler, "-dM", "-E", "-x", "c", os.devnull])
    known = dict(re.findall(r"^#define (\w+) (.*)$", macros, re.MULTILINE))
    machine = _answer([*compiler, "-dumpmachine"]).strip()
    for name, parts in (
        ("clang", ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")),
        ("gcc", ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")),
    ):
        if all(p in known for p in parts):
            return f"{name} {'.'.join(known[p] for p in parts)}" + (f" for {machine}" if machine else "")
    return Path(compiler[0]).name


def _choices(compiler: list[str]) -> list[str]:
    """Flags that CC itself carries and that change code."""
    return [f for f in compiler[1:] if f.startswith(("-m", "-f", "-O", "--target"))]


def _answer(call: list[str]) -> str:
    """What the compiler prints, or nothing."""
    try:
        return subprocess.run(call, capture_output=True, text=True, timeout=TIME_LIMIT, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def load(files: Files, path: Path) -> Library:
    """Load a library by the declarations of its own view."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(view.declarations(files.model))
    try:
        return Library(path, files, ffi, ffi.dlopen(str(path.resolve())))
    except OSError as failure:
        raise fail("load-failed", f"{path} cannot be loaded: {failure}") from failure
