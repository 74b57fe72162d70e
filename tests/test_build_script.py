"""build.py says plainly what a machine lacks; and the wheel holds everything oic needs.

Nothing here touches the network or the environment that the tests run in.
"""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from oic.toolchain.compiler import find_compiler

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build.py"
SHIPPED = ("templates", "runtime_c", "docs")


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """build.py as a module."""
    spec = importlib.util.spec_from_file_location("oic_build_script", BUILD)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(place: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`python build.py ARGUMENTS` with an environment folder below `place`."""
    return subprocess.run(
        [sys.executable, str(BUILD), *arguments],
        env={**os.environ, "OIC_VENV": str(place / "venv"), **variables},
        capture_output=True,
        text=True,
    )


def refused(done: subprocess.CompletedProcess[str], message: str, hint: str) -> None:
    """Asserts a clear refusal: status 1, what is wrong, what to do, no traceback."""
    assert done.returncode == 1
    assert "error: " in done.stderr and message in done.stderr, done.stderr
    assert "= hint: " in done.stderr and hint in done.stderr, done.stderr
    assert "Traceback" not in done.stdout + done.stderr


# ---------------------------------------------------------------- what a machine may lack


def test_an_old_python_can_parse_it() -> None:
    ast.parse(BUILD.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_an_old_python_is_told_its_age(tmp_path: Path) -> None:
    """The check comes before any import that an old Python may not have."""
    code = f"import sys; sys.version_info = (3, 9, 2); exec(open({str(BUILD)!r}).read())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    refused(done, "oic needs Python 3.11 or newer", "install a newer Python")
    assert "is 3.9.2" in done.stderr


def test_no_c_compiler(tmp_path: Path) -> None:
    done = run(tmp_path, PATH=str(tmp_path), CC="")
    refused(done, "no working C compiler", "apt install build-essential")
    assert "cc: not found\ngcc: not found\nclang: not found\n" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_c_compiler_of_CC_is_missing(tmp_path: Path) -> None:
    refused(run(tmp_path, CC="no-such-cc -m32"), "in CC=no-such-cc -m32", "CC=")


def test_words_of_CC_are_those_of_a_shell(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `oic` reads them: a path may have spaces."""
    compiler = tmp_path / "my cc"
    compiler.write_text(f"#!/bin/sh\nexec {find_compiler()[0]} \"$@\"\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"'{compiler}' -O1")
    build.check_c_compiler()
    refused(run(tmp_path, CC=f"'{compiler}"), "is no part of a command", "quote it")


def test_the_folder_may_have_any_letters(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where texts are of another encoding by default."""
    monkeypatch.setattr(build, "ROOT", tmp_path / "проект ü")
    build.ROOT.mkdir()
    shutil.copy(ROOT / "pyproject.toml", build.ROOT)
    monkeypatch.setattr(build, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(build, "PYTHON", BUILD)
    for name in ("check_c_compiler", "make_environment", "install"):
        monkeypatch.setattr(build, name, lambda: None)
    monkeypatch.setattr("io.text_encoding", lambda encoding, *_: encoding or "ascii")
    build.prepare()
    build.prepare()
    assert "проект ü" in build.STAMP.read_text(encoding="utf-8")


def test_c_compiler_that_cannot_compile(tmp_path: Path) -> None:
    """As gcc without the C library's headers; what it printed is shown."""
    broken = tmp_path / "brokencc"
    broken.write_text("#!/bin/sh\necho 'math.h: No such file or directory' >&2\nexit 1\n")
    broken.chmod(0o755)
    done = run(tmp_path, CC=str(broken))
    refused(done, "no working C compiler", "with its headers")
    assert "  | math.h: No such file or directory" in done.stderr


def test_every_check_runs_and_what_failed_is_named(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The checks run beside each other; what each said is printed whole, in their order, and before pytest begins."""
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\n[ "$2" = ruff ] && sleep 0.5\necho "said $*"\n[ "$4" != tests/mypy.ini ]\n')
    program.chmod(0o755)
    monkeypatch.setattr(build, "PYTHON", program)
    monkeypatch.setattr(build, "prepare", lambda: None)
    assert build.verb_test(["-x"]) == 1
    told = capfd.readouterr().out.splitlines()
    pytest_call = f"said -m pytest -n {(os.cpu_count() or 1) + 1} -x"
    checks = ["said -m ruff check .", "said -m mypy", "said -m mypy --config-file tests/mypy.ini"]
    assert [line for line in told if line.startswith("said")] == [*checks, pytest_call]
    assert told[-1].endswith("failed: mypy of the code around")


def test_python_without_ensurepip(tmp_path: Path) -> None:
    """As Debian's, without the package python3-venv."""
    (tmp_path / "ensurepip.py").write_text("raise ImportError('no', name='ensurepip')\n")
    done = run(tmp_path, PYTHONPATH=str(tmp_path))
    refused(done, "it lacks the module 'ensurepip'", "apt install python3-venv")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_environment_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    refused(run(tmp_path), "no permission to write", "copy the checkout")


def test_folder_that_is_no_environment_is_not_cleared(tmp_path: Path) -> None:
    kept = tmp_path / "venv" / "thesis.tex"
    kept.parent.mkdir()
    kept.write_text("years of work")
    refused(run(tmp_path), "is not a Python environment", "OIC_VENV=DIR")
    assert run(tmp_path, "clean", OIC_VENV=str(kept.parent)).returncode == 0
    assert kept.exists()


def test_unknown_verb(tmp_path: Path) -> None:
    done = run(tmp_path, "tset")
    assert done.returncode == 2
    assert "'tset' is none of run, test, wheel, clean" in done.stderr


RETRY = (
    "WARNING: Retrying (Retry(total=1, connect=None)) after connection broken by "
    "'NewConnectionError: Connection refused': /simple/numpy/"
)
NOTHING = "ERROR: Could not find a version that satisfies the requirement numpy (from versions: none)"
PIP_SAYS = [
    (f"{RETRY}\n{NOTHING}", "the package index cannot be reached", "PIP_INDEX_URL"),
    (f"{RETRY}\nERROR: [Errno 28] No space left on device", "the disk is full", "TMPDIR"),
    ("ERROR: [Errno 13] Permission denied: '/x'", "no permission to write", "copy the checkout"),
    (NOTHING, "pip could not install", "its own words"),
    ("Killed", "pip failed", "its last words"),
]


@pytest.mark.parametrize(("output", "message", "hint"), PIP_SAYS)
def test_pip_failure(build: ModuleType, output: str, message: str, hint: str) -> None:
    text = str(build.pip_failure(f"Collecting numpy\n{output}\n"))
    assert f"error: {message}" in text and hint in text
    assert f"  | {output.splitlines()[-1]}" in text or "  | " + RETRY in text


OS_SAYS = [
    (OSError(errno.ENOSPC, "No space left on device", "/x/y"), "the disk is full: /x/y"),
    (PermissionError(errno.EACCES, "Permission denied", "/x/y"), "no permission to write /x/y"),
    (OSError(errno.EROFS, "Read-only file system", "/x/y"), "no permission to write /x/y"),
    (FileNotFoundError("No usable temporary directory found in ['/tmp']"), "temporary files"),
    (OSError(errno.EIO, "Input/output error", "/x/y"), "Input/output error"),
]


@pytest.mark.parametrize(("failure", "message"), OS_SAYS)
def test_os_failure(build: ModuleType, failure: OSError, message: str) -> None:
    text = str(build.os_failure(failure))
    assert text.startswith("error: ") and message in text and "= hint: " in text


# ---------------------------------------------------------------- what is installed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a clean copy of the sources, made with the setuptools that is installed here."""
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for name in ("compiler", *SHIPPED):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    pip(copy, "wheel", "--no-build-isolation", "--wheel-dir", "dist", ".")
    (found,) = (copy / "dist").glob("oic-*.whl")
    return found


def pip(where: Path, verb: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--no-deps", "--no-index", *arguments]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wheel_holds_every_source(wheel: Path) -> None:
    """All of the package but bytecode, and all templates and headers."""
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {file.relative_to(ROOT / "compiler") for file in sources(ROOT / "compiler" / "oic")}
    wanted |= {Path("oic", file.relative_to(ROOT)) for name in SHIPPED for file in sources(ROOT / name)}
    assert {file.as_posix() for file in wanted} - held == set()


def sources(folder: Path) -> list[Path]:
    return [
        file
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith(".")
    ]


FIND = "import oic.resources as r; print(r.templates_dir()); print(r.runtime_dir()); print(r.docs_dir())"


def test_resources_of_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    pip(tmp_path, "install", "--target", "site", str(wheel))
    assert found_resources(tmp_path / "site") == [tmp_path / "site" / "oic" / name for name in SHIPPED]


def test_resources_of_the_checkout() -> None:
    """As an editable install sees it: compiler/ is on the path."""
    assert found_resources(ROOT / "compiler") == [ROOT / name for name in SHIPPED]


def found_resources(path: Path) -> list[Path]:
    """The folders that `oic`, imported from this folder, finds."""
    done = subprocess.run(
        [sys.executable, "-c", FIND],
        cwd=path,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.splitlines()]
