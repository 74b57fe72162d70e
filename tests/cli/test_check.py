"""`oic check`, and what all commands that take a graph have in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.samples import AVERAGE, Oic

COMMANDS = ("check", "ir", "build", "run", "diff")


def test_a_right_graph(oic: Oic) -> None:
    done = oic("check", "average.oi")
    assert (done.status, done.out, done.err) == (0, "average: ok\n", "")
    assert oic("check", "average.oi", "--json").json == {"diagnostics": []}


def test_all_errors_are_reported(oic: Oic) -> None:
    Path("bad.oi").write_text(AVERAGE.replace("op sub", "op subb").replace(">> mean", ">> meen"))
    done = oic("check", "bad.oi")
    assert done.status == 1 and done.out == ""
    assert done.err.count("error[") == 2
    assert "error[unknown-op]: " in done.err and "   --> bad.oi:14:8\n" in done.err
    assert "= hint: did you mean 'sub'?" in done.err and "did you mean 'mean'?" in done.err
    found = oic("check", "bad.oi", "--json")
    assert found.status == 1 and found.err == ""
    first, second = found.json["diagnostics"]
    assert first["slug"] == "unknown-op" and second["slug"] == "unknown-variable"
    assert first["span"] == {"file": "bad.oi", "line": 14, "column": 8, "length": 4}


def test_many_errors_are_counted(oic: Oic) -> None:
    """As text the first of them; all are there for programs."""
    calls = "".join(f"op relu(none{i}) >> y;\n" for i in range(1234))
    Path("many.oi").write_text("volatile { y: f32; } block entry {" + calls + "return; }")
    done = oic("check", "many.oi")
    assert done.status == 1 and done.err.count("error[") == 100
    assert done.err.endswith("\n\nand 1,134 more\n")
    assert len(oic("check", "many.oi", "--json").json["diagnostics"]) == 1234


def test_warnings_are_counted_and_are_no_errors(oic: Oic) -> None:
    Path("w.oi").write_text("volatile { y: f32; } block entry { op add(y, y) >> y; return; }")
    done = oic("check", "w.oi")
    assert done.status == 0 and done.out == "w: ok, 1 warning\n" and "warning[" in done.err
    assert [d["severity"] for d in oic("check", "w.oi", "--json").json["diagnostics"]] == [
        "warning"
    ]
    assert "warning[" in oic("build", "w.oi", "--no-compile").err


def test_a_size_without_a_value_is_one_error(oic: Oic) -> None:
    Path("nosize.oi").write_text(AVERAGE.replace("D = 2;", ""))
    done = oic("check", "nosize.oi")
    assert done.status == 1 and done.err.count("error[") == 1 and "--set D=" in done.err
    assert oic("check", "nosize.oi", "--set", "D=7").status == 0


@pytest.mark.parametrize("color", ["always", "never", "auto"])
def test_color(oic: Oic, color: str) -> None:
    Path("bad.oi").write_text("block entry { op add(x, x) >> y; }")
    done = oic("check", "bad.oi", "--color", color)
    assert ("\x1b[" in done.err) == (color == "always")
    plain = oic("check", "bad.oi").err
    assert color == "always" or done.err == plain


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("graph", "slug"),
    [
        ("nope.oi", "source-open"),
        (".", "source-open"),
        ("latin.oi", "source-encoding"),
        ("bad.oi", "unknown-variable"),
    ],
)
def test_a_graph_that_cannot_be_read(oic: Oic, command: str, graph: str, slug: str) -> None:
    Path("latin.oi").write_bytes(b"// \xe9t\xe9\n")
    Path("bad.oi").write_text("block entry { op add(x, x) >> y; }")
    done = oic(command, graph)
    assert done.status == 1 and done.out == "" and f"error[{slug}]" in done.err
    found = oic(command, graph, "--json")
    assert found.status == 1 and found.err == "" and found.json["diagnostics"][0]["slug"] == slug


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("value", ["D", "D=", "D=x", "D=1.5", "=", ""])
@pytest.mark.parametrize("option", ["--set", "--max"])
def test_a_binding_that_is_none(oic: Oic, option: str, value: str) -> None:
    done = oic("check", "average.oi", option, value)
    assert done.status == 2 and "Usage: oic check" in done.err


@pytest.mark.parametrize("option", ["--set", "--max"])
def test_a_binding_that_is_given_twice(oic: Oic, option: str) -> None:
    done = oic("check", "average.oi", option, "D=1", option, "D=1")
    assert done.status == 2 and "'D' is given twice" in done.err


@pytest.mark.parametrize(
    ("arguments", "slug", "text"),
    [
        (("--set", "D=0"), "size-value", "must be positive"),
        (("--set", "D=-2"), "size-value", "must be positive"),
        (("--set", "D=99999999999999999999"), "size-range", "64 bits"),
        (("--set", "Q=1"), "size-unknown", "names no size"),
        (("--max", "q=1"), "capacity-unknown-index", "kept.t"),
        (("--max", "t=0"), "capacity-value", "positive"),
        (("--fetch", "smoth"), "unknown-output", "did you mean 'smooth'?"),
        (("--fetch", "x"), "unknown-output", "it is dynamic"),
        (("--model", "nope.npz"), "model-open", "nope.npz"),
        (("--model", "."), "model-format", "config.json"),
        (("--model", "average.oi"), "model-format", "average.oi"),
        (("--model", "cut.safetensors"), "model-truncated", "byte"),
        (("--model", "cut.oinf"), "model-truncated", "byte"),
        (("--model", "cut.npz"), "model-truncated", "byte"),
        (("--model", "text.gguf"), "model-format", "byte 0"),
        (("--model", "wide.npz"), "model-dtype", "f64"),
    ],
)
def test_settings_are_checked(oic: Oic, arguments: tuple[str, ...], slug: str, text: str) -> None:
    for name in ("cut.safetensors", "cut.npz"):
        Path(name).write_bytes(b"abc")
    Path("cut.oinf").write_bytes(b"OINF\0\2")
    Path("text.gguf").write_text("this is not a model")
    np.savez("wide.npz", rate=np.float64(0.5))
    done = oic("check", "average.oi", *arguments)
    assert done.status == 1 and f"error[{slug}]" in done.err and text in done.err


def test_settings_are_used(oic: Oic) -> None:
    assert (
        oic(
            "check", "average.oi", "--set", "D=0x10", "--model", "slow.npz", "--fetch", "past"
        ).status
        == 0
    )
    run = ("run", "average.oi", "--input", "x=[8,8]", "--backend", "reference", "--json")
    assert oic(*run).json["steps"][0]["smooth"] == [2, 2]
    assert oic(*run, "--model", "slow.npz", "--fetch", "smooth").json["steps"] == [
        {"smooth": [1, 1]}
    ]


# ---------------------------------------------------------------- usage


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("nope",), ("check",), ("check", "a.oi", "b.oi"), ("check", "average.oi", "--nope"),
        ("check", "average.oi", "--color", "red"), ("run", "average.oi", "--steps", "0"),
        ("run", "average.oi", "--steps", "many"), ("run", "average.oi", "--backend", "d"),
        ("run", "average.oi", "--input", "x"), ("diff", "average.oi", "--seed", "-1"),
        ("ir", "average.oi", "--stage", "c"), ("build", "average.oi", "--threads", "0"),
        ("build", "average.oi", "--weights-as", "paper"), ("inspect",),
    ],
)  # fmt: skip
def test_usage(oic: Oic, arguments: tuple[str, ...]) -> None:
    done = oic(*arguments)
    assert done.status == 2 and "Usage: oic" in done.err + done.out


@pytest.mark.parametrize("command", [*COMMANDS, "ops", "inspect"])
def test_help(oic: Oic, command: str) -> None:
    for flag in ("-h", "--help"):
        done = oic(command, flag)
        assert done.status == 0 and done.out.startswith(f"Usage: oic {command}")
