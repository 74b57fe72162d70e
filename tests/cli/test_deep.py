"""Deep and long programs, files that are no sources, and names that a terminal would obey."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Oic
from cli.deep import PROGRAMS
from model.samples import write_safetensors
from oic.check.source import parse, parse_file
from oic.diagnostics import OicError, visible
from oic.driver import Settings, compile_graph
from oic.syntax import tree as syntax
from oic.syntax.parse import MOST_BYTES

MOST_TEXT = 8000  # characters of all diagnostics together


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_ends_in_a_result_or_a_diagnostic(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsed, checked, lowered and planned."""
    monkeypatch.setattr("oic.check.resolved.MOST_STATEMENTS", 2500)
    make, slug = PROGRAMS[name]
    if slug is None:
        program = compile_graph(parse(make()), None, Settings())
        assert program.planned.plan is not None
        return
    with pytest.raises(OicError) as error:
        compile_graph(parse(make()), None, Settings())
    assert slug in [d.slug for d in error.value.diagnostics]
    assert len(error.value.diagnostics) <= 3 and len(str(error.value)) < MOST_TEXT


COMMANDS = (
    ("check",),
    ("build", "--no-compile", "-o", "out"),
    ("ir",),
    ("ir", "--changed", "--mlir"),
    ("explain",),
    ("fit", "--ram", "1M"),
    ("run", "--backend", "reference", "--input", "x=[1,2,3,4]", "--input", "c=true"),
    ("diff", "--steps", "1", "--bisect"),
)
DEEPEST = ("95 blocks", "45 conditional blocks")


def test_the_deepest_programs_are_json_too() -> None:
    for name in (*DEEPEST, "32 loops", "loops in blocks"):
        graph = parse(PROGRAMS[name][0]())
        assert syntax.Graph.from_json(graph.to_json()).to_json() == graph.to_json()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_takes_the_deepest_programs(oic: Oic, command: tuple[str, ...]) -> None:
    """Those at the limits; the JSON of the graph is read back."""
    for name in DEEPEST:
        text = PROGRAMS[name][0]()
        Path("deep.oi").write_text(text, encoding="utf-8")
        given = [c for c in command if c != "c=true" or "branch c" in text]
        if "c=true" not in given and given[-1] == "--input":
            given.pop()
        done = oic(given[0], "deep.oi", *given[1:])
        assert done.status == 0, f"{name}: {done.err[-2000:]}"


def test_json_of_a_graph_that_is_nested_too_deeply() -> None:
    data = parse("sizes { N = 1; } volatile { y: f32; } block entry { }").to_json()
    value: object = {"node": "Int", "value": 1}
    for _ in range(2000):
        value = {"node": "Unary", "operand": value}
    data["sizes"][0]["value"] = value
    with pytest.raises(OicError, match="nested too deeply"):
        syntax.Graph.from_json(data)
    with pytest.raises(OicError, match="graph-json"):
        syntax.Graph.from_json("[" * 100_000)
    data["sizes"][0]["value"] = {"float": "x"}
    with pytest.raises(OicError, match="no float"):
        syntax.Graph.from_json(data)


# ---------------------------------------------------------------- files


def test_what_is_no_file_is_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.oi")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.oi")
        for name in ("/dev/zero", "pipe.oi", "socket.oi", ".", "missing.oi", "a\0b.oi"):
            with pytest.raises(OicError) as error:
                parse_file(name)
            assert error.value.diagnostics[0].slug == "source-open"


def test_a_large_source_is_not_read(tmp_path: Path) -> None:
    """A sparse file of 1 TiB, in a process that has little memory."""
    path = tmp_path / "large.oi"
    path.touch()
    os.truncate(path, 1 << 40)
    code = f"from oic.check.source import parse_file; parse_file({str(path)!r})"
    limit = 1 << 30
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    assert "OicError: error[source-size]" in run.stderr and str(MOST_BYTES) in run.stderr


def test_long_strings_take_little(tmp_path: Path) -> None:
    """A pattern that came back to every character of a string took 600 bytes for each."""
    code = (
        "from pathlib import Path; from oic.check.source import parse\n"
        "text = 'constant { w: f32[4] @ref(\"' + 'a' * 4_000_000 + '\"); } block entry { }'\n"
        "parse(text); print(Path('/proc/self/status').read_text())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # ru_maxrss would begin with what the process had that started this one
    most = int(run.stdout.split("VmHWM:")[1].split()[0]) * 1024
    assert 12_000_000 < most < 12_000_000 + 256_000_000


# ---------------------------------------------------------------- terminals


HOSTILE = "a\u202eb\u2066\u200f\x7f\u009b31m"


def test_names_reach_the_terminal_escaped(oic: Oic) -> None:
    write_safetensors(Path("m.safetensors"), {HOSTILE[:5]: ("F32", np.zeros(2, np.float32))})
    Path("g.oi").write_text(
        f"block entry {{ op \u202erelu(x) >> y; }} // {HOSTILE}\n", encoding="utf-8"
    )
    for command in (
        ("inspect", "m.safetensors"),
        ("inspect", "--json", "m.safetensors"),
        ("check", "g.oi"),
    ):
        done = oic(*command)
        text = done.out + done.err
        assert r"\u202e" in text, command
        assert all(ch.isprintable() or ch == "\n" for ch in text), command


def test_what_a_terminal_would_obey() -> None:
    assert visible("plain é 日本 x") == "plain é 日本 x"
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b[2J\r\u2028") == r"\u001b[2J\u000d\u2028"
    assert visible("\udcff\U000e0041") == r"\udcff\udb40\udc41"
