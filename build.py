#!/usr/bin/env python3
"""Sets up oic on a machine that has Python 3.11 and a C compiler, and nothing else.

    python3 build.py         make the environment, install oic into it, run the main example
    python3 build.py test    make the environment, then ruff, mypy and pytest; arguments go to pytest
    python3 build.py wheel   make dist/oic-*.whl
    python3 build.py clean   delete the environment and all that the above left behind

The environment is .venv beside this file, or the folder that OIC_VENV names.  It is made once, and
installed into again when the requirements in pyproject.toml change.  CC names another C compiler.
"""
import sys

# An old Python must get as far as this message, so the whole file keeps to the syntax of 3.6.
if sys.version_info < (3, 11):
    sys.exit("error: oic needs Python 3.11 or newer; %s is %s\n"
             "  = hint: install a newer Python and run it by its name, as in 'python3.12 build.py'"
             % (sys.executable, ".".join(map(str, sys.version_info[:3]))))

import errno
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("OIC_VENV") or ROOT / ".venv").absolute()
PROGRAMS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = PROGRAMS / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "oic.stamp"  # written last, so its presence means a whole environment
EXAMPLE = "examples/numwords/run.py"
MADE = ("build", "dist", "compiler/oic.egg-info", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis")
STARTED = time.monotonic()

DISK_HINT = "the environment takes about 300 MB; OIC_VENV=DIR puts it elsewhere, TMPDIR=DIR the temporary files"
WRITE_HINT = "copy the checkout to a folder of your own; it is written to, and so is OIC_VENV if that is set"
INDEX_HINT = ("check the network, and HTTPS_PROXY behind a proxy; a mirror is named by PIP_INDEX_URL or pip.conf; "
              "then run this again")


class Stop(Exception):
    """What is wrong on this machine, and what to do about it."""

    def __init__(self, message: str, hint: str, details: str = "") -> None:
        super().__init__((details + "\n" if details else "") + "error: " + message + "\n  = hint: " + hint)


def say(text: str) -> None:
    print("[%5.1f s] %s" % (time.monotonic() - STARTED, text), flush=True)


def last_lines(text: str, count: int) -> str:
    return "\n".join("  | " + line for line in text.strip().splitlines()[-count:])


def check_c_compiler() -> None:
    """Compiles a trivial shared library, as oic will, with $CC or else the first of cc, gcc, clang that can."""
    try:
        named = shlex.split(os.environ.get("CC", ""))
    except ValueError as failure:
        raise Stop("CC=%s is no part of a command: %s" % (os.environ["CC"], failure),
                   "quote it as for a shell") from None
    tried = []
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "trivial.c"), Path(folder, "trivial.so")
        source.write_text("#include <math.h>\n#include <stdint.h>\n#include <string.h>\n"
                          "int32_t half(double x) { return (int32_t)floor(x / 2); }\n")
        for command in [named] if named else [["cc"], ["gcc"], ["clang"]]:
            if shutil.which(command[0]) is None:
                tried.append("%s: not found" % command[0])
                continue
            done = subprocess.run([*command, "-std=c99", "-fPIC", "-shared", source, "-o", library, "-lm"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            if done.returncode == 0:
                say("C compiler: " + " ".join(command))
                return
            if "No space left" in done.stdout:
                raise Stop("the disk is full", DISK_HINT, last_lines(done.stdout, 4))
            tried.append("%s: does not compile a trivial program\n%s" % (command[0], last_lines(done.stdout, 4)))
    raise Stop("no working C compiler" + (" in CC=" + " ".join(named) if named else ""),
               "install one with its headers (Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc; "
               "macOS: xcode-select --install), or name one with CC=...",
               "\n".join(tried))


def pip_failure(output: str) -> Stop:
    """What is wrong, told from what pip printed."""
    for pattern, message, hint in (
        (r"No space left|Disk quota", "the disk is full", DISK_HINT),
        (r"Permission denied|Read-only file|Cannot update time stamp", "no permission to write", WRITE_HINT),
        (r"Retrying \(|Max retries|timed out|SSLError|ProxyError", "the package index cannot be reached", INDEX_HINT),
        (r"(?i)^(error|warning):", "pip could not install what pyproject.toml asks for", "its own words are above"),
    ):
        telling = [line.strip() for line in output.splitlines() if re.search(pattern, line.strip())]
        if telling:
            return Stop(message, hint, last_lines("\n".join(dict.fromkeys(telling)), 5))
    return Stop("pip failed", "its last words are above", last_lines(output, 5))


def os_failure(failure: OSError) -> Stop:
    """The same for an operation of this file."""
    where = str(failure.filename or VENV)
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return Stop("the disk is full: " + where, DISK_HINT)
    if failure.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Stop("no permission to write " + where, WRITE_HINT)
    if "temporary directory" in str(failure):
        return Stop("no folder for temporary files can be written (it may be full)", "name another with TMPDIR=DIR")
    return Stop(str(failure), "the operating system said so while working on %s" % VENV)


def prepare() -> None:
    """Makes the environment and installs into it, as far as that is not already done."""
    check_c_compiler()
    # A moved checkout or another Python needs a new environment; other requirements, only a new install.
    identity = "%s, %s, %s\n" % (platform.python_version(), sys.base_prefix, ROOT)
    wanted = identity + requirements()
    found = STAMP.read_text(encoding="utf-8") if STAMP.exists() and PYTHON.exists() else ""
    if found == wanted:
        say("environment: %s (up to date)" % VENV)
        return
    if found.startswith(identity):
        STAMP.unlink()
    else:
        make_environment()
    install()
    STAMP.write_text(wanted, encoding="utf-8")


def requirements() -> str:
    """A hash of the parts of pyproject.toml that decide what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [project["build-system"], project["project"], project["tool"]["setuptools"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def make_environment() -> None:
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError as missing:
        raise Stop("this Python cannot make an environment: it lacks the module '%s'" % missing.name,
                   "Debian, Ubuntu: apt install python3-venv; elsewhere install a complete Python") from None
    if "OIC_VENV" in os.environ and VENV.is_dir() and any(VENV.iterdir()) and not is_environment():
        raise Stop("%s exists and is not a Python environment" % VENV, "delete it, or name another with OIC_VENV=DIR")
    say("making the environment %s with Python %s" % (VENV, platform.python_version()))
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=os.name != "nt").create(VENV)
    except subprocess.CalledProcessError as failed:
        raise pip_failure((failed.output or b"").decode(errors="replace")) from None


def is_environment() -> bool:
    """Whether the folder is ours to clear: OIC_VENV may name anything."""
    return (VENV / "pyvenv.cfg").exists()


def install() -> None:
    say("installing oic and what it and its tests need")
    command = [PYTHON, "-m", "pip", "install", "--progress-bar", "off", "--editable", ".[test]"]
    output = []
    with subprocess.Popen(command, cwd=ROOT, env=variables_for_child(), text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as pip:
        for line in pip.stdout:
            output.append(line)
            large = re.match(r"\s*Downloading ([^-\s]+)\S* \(([\d.]+ [MG]B)\)", line)
            if large:
                say("  downloading %s, %s" % large.groups())
            elif "Retrying (" in line:
                say("  the package index does not answer; trying again")
    if pip.returncode != 0:
        raise pip_failure("".join(output))
    say("installed")


def variables_for_child() -> dict:
    """The environment's programs first, no packages from elsewhere, and fewer retries than pip's five."""
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET")}
    variables.update(VIRTUAL_ENV=str(VENV), PATH=str(PROGRAMS) + os.pathsep + os.environ.get("PATH", os.defpath),
                     PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    variables.setdefault("PIP_RETRIES", "2")
    return variables


def python(*arguments: str) -> int:
    """Exit status of the environment's Python, run in the checkout."""
    say("$ python " + " ".join(arguments))
    return subprocess.call([PYTHON, *arguments], cwd=ROOT, env=variables_for_child())


def started(*arguments: str) -> subprocess.Popen:
    """A module of the environment's Python, running in the checkout; its output is read when it has ended."""
    say("$ python -m " + " ".join(arguments))
    return subprocess.Popen([PYTHON, "-m", *arguments], cwd=ROOT, env=variables_for_child(), text=True,
                            encoding="utf-8", errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def verb_run(arguments: list) -> int:
    prepare()
    return python(EXAMPLE, *arguments)


def verb_test(arguments: list) -> int:
    prepare()
    workers = str((os.cpu_count() or 1) + 1)  # one more than processors: tests wait for compilers and for each other
    checks = [(name, started(*command)) for name, command in (  # beside each other: each has use for one processor
        ("ruff", ("ruff", "check", ".")),
        ("mypy", ("mypy",)),
        ("mypy of the code around", ("mypy", "--config-file", "tests/mypy.ini")),
    )]
    failed = []
    for name, check in checks:
        output, _ = check.communicate()
        say("%s:\n%s" % (name, output.rstrip()))
        if check.returncode != 0:
            failed.append(name)
    if python("-m", "pytest", "-n", workers, *arguments) != 0:  # last: its summary closes the output
        failed.append("pytest")
    if failed:
        say("failed: " + ", ".join(failed))
    return 1 if failed else 0


def verb_wheel(arguments: list) -> int:
    prepare()
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # it would add files deleted since
    return python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", ".", *arguments)


def verb_clean(arguments: list) -> int:
    made = [ROOT / name for name in MADE] + ([VENV] if is_environment() else [])
    for part in ("compiler", "tests", "examples", "benchmarks"):
        made += (ROOT / part).rglob("__pycache__")
    for folder in made:
        if folder.is_dir():
            say("deleting %s" % folder)
            shutil.rmtree(folder)
    return 0


VERBS = {"run": verb_run, "test": verb_test, "wheel": verb_wheel, "clean": verb_clean}


def main(arguments: list) -> int:
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("run", [])
    if verb in ("-h", "--help", "help"):
        print(__doc__.strip())
        return 0
    if verb not in VERBS:
        print("error: '%s' is none of %s; see --help" % (verb, ", ".join(VERBS)), file=sys.stderr)
        return 2
    try:
        return VERBS[verb](rest)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except (Stop, OSError) as failure:
        print(os_failure(failure) if isinstance(failure, OSError) else failure, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
