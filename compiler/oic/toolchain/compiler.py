"""Calling a C compiler: which one, what it is, and what it says, whatever it does."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import current_thread, main_thread

from oic.diagnostics import fail

CANDIDATES = ("cc", "gcc", "clang")
TIME_LIMIT = 600  # seconds of one compilation
ANSWER_LIMIT = 60  # seconds to say what it is
MOST_OUTPUT = 1 << 24  # bytes that a compiler may print
LOOKED_AT = 0.1  # seconds between two looks at what it has printed
HINT = "install gcc or clang, or name a compiler in the environment variable CC"
HINTS = {"CC": HINT, "OIC_CFLAGS": "it has more flags for the C compiler, like -O1 or -g"}


def find_compiler() -> list[str]:
    """The command that CC names, or the first C compiler found; OicError `no-compiler` if none is."""
    named = words_of("CC")
    for command in [named] if named else [[name] for name in CANDIDATES]:
        if shutil.which(command[0]):
            return command
    tried = f"CC={named[0]}" if named else ", ".join(CANDIDATES)
    raise fail("no-compiler", f"no C compiler was found (tried {tried})", hint=HINT)


def words_of(variable: str) -> list[str]:
    """The words of a variable of the environment, as a shell takes them apart.  OicError `no-compiler` if it cannot."""
    text = os.environ.get(variable, "")
    try:
        return shlex.split(text)
    except ValueError as failure:
        said = f"{variable}={text} is no part of a command: {failure}"
        raise fail("no-compiler", said, hint=HINTS[variable]) from None


def compile_c(call: list[str], shown: Sequence[str] | None = None, renamed: Mapping[str, str] | None = None) -> None:
    """Call the compiler.  Raises OicError: `no-compiler`, `compile-failed`.

    shown    the command to print if it fails
    renamed  paths in that command and in what the compiler says, and what to print for them
    """
    status, said, errors = _called(call, TIME_LIMIT)
    if status == 0:
        return
    text, command = errors or said, shlex.join(shown or call)
    for path, name in (renamed or {}).items():
        text, command = text.replace(path, name), command.replace(path, name)
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if re.search(r"\berror\b", line)), 0)
    what = "\n".join(line[:500] for line in lines[first : first + 4]) or "it said nothing"
    hint = f"`oic build --no-compile` writes the C; the whole command was: {command}"
    raise fail("compile-failed", f"{call[0]} does not compile the generated code:\n{what}", hint=hint)


@cache
def macros(compiler: tuple[str, ...]) -> dict[str, str]:
    """What a compiler defines by itself: macros and their values; nothing where it does not tell."""
    text = _answer([*compiler, "-dM", "-E", "-x", "c", os.devnull])
    return dict(re.findall(r"^#define (\w+) (.*)$", text, re.MULTILINE))


@cache
def described(compiler: tuple[str, ...]) -> str:
    """Kind, version and machine of a compiler, without where it lies: `gcc 12.2.0 for x86_64-linux-gnu`."""
    known = macros(compiler)
    machine = _answer([*compiler, "-dumpmachine"]).strip()
    for name, parts in (
        ("clang", ("__clang_major__", "__clang_minor__", "__clang_patchlevel__")),
        ("gcc", ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")),
    ):
        if all(p in known for p in parts):
            return f"{name} {'.'.join(known[p] for p in parts)}" + (f" for {machine}" if machine else "")
    return Path(compiler[0]).name


def _answer(call: list[str]) -> str:
    """What the compiler prints, or nothing where it refuses."""
    status, said, _ = _called(call, ANSWER_LIMIT)
    return said if status == 0 else ""


def _called(call: list[str], limit: float) -> tuple[int, str, str]:
    """Exit status, output and errors of a program that ends in time, and neither hangs nor prints without end.

    What it has printed is looked at every LOOKED_AT seconds: for so long memory may have more than the bound.
    Raises OicError: `no-compiler`, `compile-failed`.
    """
    end, printed = time.monotonic() + limit, 0
    process: subprocess.Popen[bytes] | None = None
    ended = False
    try:
        with _endings_held():
            process = _started(call)
        while not ended and printed <= MOST_OUTPUT and time.monotonic() < end:
            try:
                out, errors = process.communicate(timeout=LOOKED_AT)
                ended, printed = True, len(out) + len(errors)
            except subprocess.TimeoutExpired as late:
                printed = len(late.output or b"") + len(late.stderr or b"")
    finally:
        if process and not ended:
            _kill(process)
            with process:  # which closes its pipes and waits for it
                pass
    if printed > MOST_OUTPUT:
        raise fail("compile-failed", f"{call[0]} was stopped after it had printed {MOST_OUTPUT:,} bytes")
    if not ended:
        raise fail("compile-failed", f"{call[0]} was stopped after {limit} s")
    return process.returncode, out.decode(errors="replace"), errors.decode(errors="replace")


def _started(call: list[str]) -> subprocess.Popen[bytes]:
    try:
        pipe = subprocess.PIPE
        return subprocess.Popen(call, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True)
    except (OSError, ValueError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else failure
        raise fail("no-compiler", f"{call[0]} cannot be run: {why}") from failure


@contextmanager
def _endings_held() -> Iterator[None]:
    """Defer the signals that this program handles: a process that is just being started could not be ended."""
    if current_thread() is not main_thread():  # which alone is interrupted
        yield
        return
    came: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    answered = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    for number in answered:
        signal.signal(number, lambda received, _: came.append(received))
    try:
        yield
    finally:
        for number, handler in answered.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program with all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
