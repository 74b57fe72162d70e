"""Whatever the C compiler is, says or does, what comes of it is a diagnostic."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from oic.diagnostics import OicError
from oic.toolchain import compiler as toolchain
from oic.toolchain.compiler import compile_c, described, find_compiler


def program(folder: Path, text: str) -> str:
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def refusal(call: list[str]) -> tuple[str, str]:
    with pytest.raises(OicError) as caught:
        compile_c(call)
    found = caught.value.diagnostics[0]
    return found.slug, found.message


def test_a_command_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ('gcc "', "gcc '", "gcc \\"):
        monkeypatch.setenv("CC", text)
        with pytest.raises(OicError, match="is no part of a command") as caught:
            find_compiler()
        assert caught.value.diagnostics[0].slug == "no-compiler"


def test_a_compiler_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "cc").write_text("not a program")
    (tmp_path / "cc").chmod(0o755)
    assert refusal([str(tmp_path / "cc")])[0] == "no-compiler"
    assert refusal([str(tmp_path / "none")])[0] == "no-compiler"


def test_what_is_no_text(tmp_path: Path) -> None:
    compiler = program(tmp_path, r"printf 'x\377: error: \200bad\n' >&2; printf '\377'; exit 1")
    slug, said = refusal([compiler])
    assert slug == "compile-failed" and "error: \ufffdbad" in said
    assert described((compiler,)) == "cc"
    answering = program(tmp_path, r"printf '#define __GNUC__ \377\n'")
    assert described((answering, "-again")) == "cc"


def test_output_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "MOST_OUTPUT", 1 << 20)
    for text in ("exec yes 'error: no'", "exec yes 'error: no' >&2", "head -c 2000000 /dev/zero; exit 0"):
        slug, said = refusal([program(tmp_path, text)])  # the last ends before it is looked at
        assert slug == "compile-failed" and "1,048,576 bytes" in said
    slug, said = refusal([program(tmp_path, f"echo error: {'x' * 4000} >&2; exit 1")])
    assert len(said) < 1000


@pytest.mark.parametrize("text", ["exec sleep 600", "sleep 600", "sleep 600 & exit 0", "exec sleep 600 >&- 2>&-"])
def test_a_compiler_that_hangs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended with all that it started."""
    monkeypatch.setattr(toolchain, "TIME_LIMIT", 0.3)
    mark = f"60{tmp_path.stat().st_ino}"
    begun = time.monotonic()
    slug, said = refusal([program(tmp_path, text.replace("600", mark))])
    assert slug == "compile-failed" and "stopped after 0.3 s" in said
    assert time.monotonic() - begun < 60
    assert f"sleep {mark}" not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=False).stdout
