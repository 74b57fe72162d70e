"""`oic run`, `oic build` and `oic diff`: what they print, save and refuse."""

from __future__ import annotations

import dataclasses
import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cli.samples import AVERAGE, Oic
from oic.cli import run as cli_run
from oic.compare.harness import Difference, Verdict
from oic.diagnostics import OicError
from oic.operators.elementwise import Sub

RUN = ("run", "average.oi", "--backend", "reference")


# ---------------------------------------------------------------- run


@pytest.mark.parametrize("backend", ["c", "reference"])
def test_outputs_of_every_step(oic: Oic, backend: str) -> None:
    done = oic("run", "average.oi", "--input", "x=x.npy", "--steps", "2", "--backend", backend)
    assert done.status == 0 and done.err == ""
    assert done.out.splitlines() == [
        "step 0  smooth: f32[2]", "[0.25 0.5 ]", "step 0  past: f32[1, 2]", "[[0.25 0.5 ]]",
        "step 1  smooth: f32[2]", "[0.4375 0.875 ]",
        "step 1  past: f32[2, 2]", "[[0.25   0.5   ]", " [0.4375 0.875 ]]",
    ]  # fmt: skip


def test_outputs_have_their_declared_dtypes(oic: Oic) -> None:
    """Arrays alone do not tell a bitset from u8, nor show packed integers."""
    Path("narrow.oi").write_text(
        "dynamic { b: bitset[2]; } volatile { y: bitset[2]; p: i4[2]; z: bf16; }"
        " block entry { op add(b, b) >> y; op fill(p, value=-2) >> p; op fill(z, value=1.5) >> z; return; }"
    )
    done = oic("run", "narrow.oi", "--input", "b=[1, 255]", "--backend", "reference")
    assert done.out.splitlines() == [
        "step 0  y: bitset[2]", "[  2 254]", "step 0  p: i4[2]", "[-2 -2]", "step 0  z: bf16", "1.5",
    ]  # fmt: skip


LATE = """
graph late {
  dynamic { x: f32[2, 3]; i: i32; c: bool; } constant { T: f32[2] @init(0.0); } volatile { y: f32[2]; v: f32; }
  persistent { n: i32; K(t): f32 @table @fixed(t=3); }
  block entry { branch c p q; cache.read K[i] >> v; return; } block q { return; }
  block p { assign a: i64[2]; op argmax_axis(x, axis=1) >> a; op gather(T, a) >> y; cache.increment n; return; }
}
"""


def test_of_two_refusals_both_backends_make_the_same(oic: Oic) -> None:
    """The index of the table, which is checked before every effect, comes later in the source than the ids."""
    Path("late.oi").write_text(LATE)
    inputs = ("--input", "x=[[2, 1, 0], [0, 1, 3]]", "--input", "i=3", "--input", "c=true")
    for backend in ("c", "reference"):
        done = oic("run", "late.oi", *inputs, "--backend", backend, "--json")
        assert done.status == 1 and done.json["diagnostics"][0]["slug"] == "OIC_ERR_CACHE_FULL", backend


@pytest.mark.parametrize("backend", ["c", "reference"])
def test_steps_before_a_refusal_are_printed(oic: Oic, backend: str) -> None:
    arguments = ("run", "average.oi", "--input", "x=[1, 2]", "--steps", "9", "--backend", backend)
    done = oic(*arguments, "--fetch", "smooth")
    assert done.status == 1 and done.out.count("smooth") == 4
    assert "error[OIC_ERR_CACHE_FULL]: 'kept.t': 4 is above 3" in done.err
    assert "--> average.oi:18:5" in done.err
    found = oic(*arguments, "--json")
    assert found.status == 1 and found.err == "" and len(found.json["steps"]) == 4
    assert found.json["diagnostics"][0]["slug"] == "OIC_ERR_CACHE_FULL"


@pytest.mark.parametrize(
    ("given", "slug", "text"),
    [
        ((), "OIC_ERR_INPUT", "'x' was not given"),
        (("x=nope.npy",), "input-file", "no such file"),
        (("x=folder.npy",), "input-file", "directory"),
        (("x=text.npy",), "input-file", "header at byte 0: not a .npy array"),
        (("x=object.npy",), "input-file", "objects"),
        (("x=wide.npy",), "OIC_ERR_INPUT", "float64"),
        (("x=long.npy",), "OIC_ERR_SHAPE", "given 3"),
        (("x=[1]",), "OIC_ERR_SHAPE", "given 1"),
        (("x=1",), "OIC_ERR_SHAPE", "rank"),
        (("x=[[1], [2, 3]]",), "OIC_ERR_INPUT", "ragged"),
        (('x=["a", "b"]',), "OIC_ERR_INPUT", "f32"),
        (("x=hello",), "input-value", "hello"),
        (("x=",), "input-value", "numbers"),
        (("x={}",), "input-value", "numbers"),
        (("x=" + "[" * 5000,), "input-value", "numbers"),
        (("y=[1, 2]",), "OIC_ERR_INPUT", "no input 'y'"),
        (("xx=[1, 2]",), "OIC_ERR_INPUT", "no input 'xx'"),
        (("smooth=x.npy",), "OIC_ERR_INPUT", "volatile"),
    ],
)
def test_bad_inputs(oic: Oic, given: tuple[str, ...], slug: str, text: str) -> None:
    Path("text.npy").write_text("1 2")
    Path("folder.npy").mkdir()
    np.save("object.npy", np.array([{}], object))
    np.save("wide.npy", np.zeros(2))
    np.save("long.npy", np.zeros(3, np.float32))
    for command in (RUN, ("diff", "average.oi")):
        if command is RUN or given:
            done = oic(*command, *(part for g in given for part in ("--input", g)))
            assert done.status == 1 and f"error[{slug}]" in done.err and text in done.err, done.err


def test_numbers_are_not_cut(oic: Oic) -> None:
    Path("n.oi").write_text("dynamic { n: i8; b: bool; } volatile { y: i8; c: bool; } "
                            "block entry { transfer n >> y; transfer b >> c; return; }")  # fmt: skip
    run = ("run", "n.oi", "--backend", "reference", "--json", "--input")
    for bad in ("n=1.5", "n=128", "n=true"):
        assert oic(*run, bad, "--input", "b=true").status == 1, bad
    for true in ("true", "True"):
        assert oic(*run, "n=-128", "--input", f"b={true}").json["steps"] == [{"y": -128, "c": True}]


def test_json_has_no_nan(oic: Oic) -> None:
    done = oic(*RUN, "--input", "x=[NaN, -Infinity]", "--fetch", "smooth", "--json")
    assert done.json["steps"] == [{"smooth": ["nan", "-inf"]}]
    for bad in ("[Infinity, 1e400]", "(1, -1e400)"):
        assert "has a number beyond the range of f64" in oic(*RUN, "--input", f"x={bad}").err


def test_entry(oic: Oic) -> None:
    Path("two.oi").write_text(
        "volatile { y: i32; z: i32; } persistent { n: i32; }"
        " block entry { cache.increment n; cache.read n >> y; return; }"
        " block twice @entry { cache.increment 2 n; cache.read n >> z; return; }"
    )
    assert oic("run", "two.oi", "--entry", "twice", "--steps", "2", "--json").json["steps"] == [
        {"z": 2},
        {"z": 4},
    ]
    done = oic("run", "two.oi", "--entry", "twiec")
    assert done.status == 1 and "did you mean 'twice'?" in done.err
    assert oic("diff", "two.oi", "--entry", "nope").status == 1
    assert "6 steps" in oic("diff", "two.oi", "--steps", "6").out


def test_outputs_are_saved(oic: Oic) -> None:
    done = oic(*RUN, "--input", "x=x.npy", "--steps", "2", "-o", "deep/out")
    assert done.out.split() == [f"deep/out/{n}.npy" for n in ("smooth", "past.0", "past.1")]
    assert np.load("deep/out/smooth.npy").tolist() == [[0.25, 0.5], [0.4375, 0.875]]
    assert np.load("deep/out/past.1.npy").shape == (2, 2)
    found = oic(*RUN, "--input", "x=x.npy", "-o", "deep/out", "--json")
    assert found.json["files"] == ["deep/out/smooth.npy", "deep/out/past.npy"]
    done = oic(*RUN, "--input", "x=x.npy", "-o", "x.npy")
    assert done.status == 1 and "error[output-folder]" in done.err


def test_an_input_that_differs_by_step(oic: Oic) -> None:
    """Rows of a file or of numbers, or a file of one axis that is cut; the same as steps one by one."""
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.save("rows.npy", rows)
    np.save("deep.npy", rows[:, None])
    np.save("cut.npy", np.arange(9, dtype=np.float32))  # one element is left
    wanted = [(1 - 2.0 ** -(i + 1)) for i in range(4)]
    found = [oic(*RUN, "--fetch", "smooth", "--each", f"x={given}", "--json").json["steps"]
             for given in ("rows.npy", "cut.npy", rows.tolist())]  # fmt: skip
    assert found[0] == found[1] == found[2] and len(found[0]) == len(wanted)
    smooth = np.zeros(2, np.float32)
    for row, step in zip(rows, found[0]):
        smooth += (row - smooth) * np.float32(0.25)
        assert step["smooth"] == smooth.tolist()
    assert len(oic(*RUN, "--each", "x=rows.npy", "--steps", "3", "--json").json["steps"]) == 3
    for given, status, said in (
        (["--each", "x=rows.npy", "--steps", "5"], 1, "'x' has values for 4 steps, not 5\n  = hint: --steps 4"),
        (["--each", "x=3"], 1, "'x' is one number"), (["--each", "x=[]"], 1, "'x' has values for 0 steps, not 1"),
        (["--each", "x=[[1,2],[3]]"], 1, "axis 0 of input 'x' is 2"),
        (["--each", "z=rows.npy"], 1, "there is no input 'z' (known: x)"),
        (["--each", "x=deep.npy"], 1, "'x' has the shape [4, 1, 2], and for each step has [steps, 2]"),
        (["--each", "x=rows.npy", "--input", "x=[1,2]"], 2, "by --each"),
        (["--each", "x=rows.npy", "--each", "x=rows.npy"], 2, "'x' is given twice"),
    ):  # fmt: skip
        done = oic(*RUN, *given)
        assert done.status == status and said in done.err, done.err


class Full(io.FileIO):
    """A file on a disk that has room for 200 bytes of it and some, and is full in the middle of an array."""

    def write(self, data: Any) -> int:
        left = 205 - self.tell()
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data[:left])


@pytest.mark.parametrize("backend", ["c", "reference"])
def test_outputs_are_written_as_they_come(oic: Oic, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one shape are not kept; what an interrupt leaves is a file of the steps before it."""
    np.save("rows.npy", np.arange(10, dtype=np.float32))
    run = ("run", "average.oi", "--backend", backend, "--fetch", "smooth", "--each", "x=rows.npy")
    wanted = [step["smooth"] for step in oic(*run, "--json").json["steps"]]
    kept: list[Any] = []
    monkeypatch.setattr(cli_run, "save_outputs", lambda found, _: kept.extend(found) or [])
    done = oic(*run, "-o", "out")
    assert done.out == "out/smooth.npy\n" and kept == [{}] * 4 and "OIC_ERR_CACHE_FULL" in done.err  # in step 4
    assert np.load("out/smooth.npy").tolist() == wanted
    with pytest.raises(KeyboardInterrupt), cli_run.Series(Path("new/part.npy")) as series:
        for i in range(3):
            series.add(np.full((2, 1), i, np.int8))
        raise KeyboardInterrupt
    assert np.load("new/part.npy").tolist() == [[[0], [0]], [[1], [1]], [[2], [2]]]
    monkeypatch.setattr(cli_run.io, "FileIO", Full)
    with pytest.raises(OicError, match="No space left"), cli_run.Series(Path("new/full.npy")) as series:
        for i in range(30):
            series.add(np.full(3, i, np.int32))
    assert np.load("new/full.npy").tolist() == [[i] * 3 for i in range(6)]
    assert Path("new/full.npy").stat().st_size == 128 + 6 * 12
    with cli_run.Series(Path("none.npy")):
        pass
    assert not Path("none.npy").exists()


def test_narrow_elements_travel_through_files(oic: Oic) -> None:
    Path("half.oi").write_text("dynamic { x: bf16[2]; n: i4[2]; } volatile { y: bf16[2]; m: i4[2]; } "
                               "block entry { transfer x >> y; transfer n >> m; return; }")  # fmt: skip
    np.save("half.npy", np.array([1.5, 3], np.float32))
    np.save("nibbles.npy", np.array([-8, 7], np.int8))
    given = ("--input", "x=half.npy", "--input", "n=nibbles.npy")
    assert oic("run", "half.oi", "--backend", "reference", *given, "-o", "out").status == 0
    assert np.load("out/y.npy").tolist() == [1.5, 3] and np.load("out/m.npy").tolist() == [-8, 7]
    np.save("half.npy", np.array([1.001, 3], np.float32))
    done = oic("run", "half.oi", "--backend", "reference", *given)
    assert done.status == 1 and "OIC_ERR_INPUT" in done.err
    assert np.float32(1.001) != np.float32(ml_dtypes.bfloat16(1.001))


@pytest.mark.parametrize("backend", ["c", "reference"])
def test_trace(oic: Oic, backend: str) -> None:
    run = ("run", "average.oi", "--input", "x=x.npy", "--backend", backend, "--trace")
    assert any(line.startswith("entry:14       sub ") for line in oic(*run).out.splitlines())
    found = oic(*run, "--json").json["trace"]
    assert {r["line"] for r in found} == set(range(13, 21))
    assert found[1]["operator"] == "sub" and found[1]["operands"] == ["x", "smooth"]


# ---------------------------------------------------------------- build


def test_build(oic: Oic) -> None:
    done = oic("build", "average.oi", "-o", "out")
    assert done.status == 0 and done.out.startswith("average: out\n  state ")
    assert Path("out/average.h").is_file() and Path("out/libaverage.so").is_file()
    made = oic("build", "average.oi", "-o", "out", "--json").json
    assert made["library"] == "out/libaverage.so" and "out/average.c" in made["files"]
    assert made["state"] > 0 and made["weights"] == 0
    assert all(Path(file).is_file() for file in made["files"])


def test_build_warns_in_json_of_what_it_warns_of_in_text(oic: Oic) -> None:
    """What the graph tells, and what only a built program tells: work that is the same in every step."""
    Path("w.oi").write_text(
        "dynamic { x: f32[131072]; } constant { c: i8[131072]; s: f32; } volatile { y: f32[131072]; }"
        " block entry { assign e: f32[131072]; op dequantize(c, s, to=f32) >> e; op add(x, e) >> y; return; }"
    )
    told = re.findall(r"^warning\[(.*?)\]", oic("build", "w.oi", "--no-compile").err, re.MULTILINE)
    found = oic("build", "w.oi", "--no-compile", "--json").json["diagnostics"]
    assert [d["slug"] for d in found] == told and {*told} == {"constant-zero", "constant-work"}
    assert oic("build", "average.oi", "--no-compile", "--json").json["diagnostics"] == []


def test_build_goes_to_a_folder_of_the_graphs_name(oic: Oic) -> None:
    assert oic("build", "average.oi", "--no-compile").status == 0
    assert (
        Path("build/average/average.c").is_file()
        and not Path("build/average/libaverage.so").exists()
    )


def test_build_without_an_operating_system(oic: Oic) -> None:
    done = oic("build", "average.oi", "--target", "freestanding", "-o", "bare")
    assert done.status == 0 and "library" not in done.out
    assert not list(Path("bare").glob("*.so"))


def test_build_for_an_address_space_of_32_bits(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no address space can be reserved the index without a bound is named, with the flag."""
    Path("log.oi").write_text(
        "dynamic { x: f32; } persistent { log(t): f32 @table; n: i32; }"
        " block entry { cache.write x >> log[n]; cache.increment n; return; }"
    )
    monkeypatch.setattr("oic.library.build.macros", lambda compiler: {"__SIZEOF_POINTER__": "4"})
    done = oic("build", "log.oi")
    assert done.status == 1 and "error[capacity-unknown]: nothing bounds index 't' of 'log'" in done.err
    assert "--max log.t=N, or @fixed(t=N)" in done.err and "--> log.oi:1:" in done.err
    assert oic("build", "log.oi", "--max", "log.t=8").status == 0


def test_build_where_nothing_can_be_written(oic: Oic) -> None:
    for folder in ("x.npy", "x.npy/deeper"):
        done = oic("build", "average.oi", "-o", folder)
        assert done.status == 1 and "error[output-folder]" in done.err


@pytest.mark.parametrize("command", [("build",), ("run", "--input", "x=x.npy"), ("diff",)])
def test_without_a_compiler(
    oic: Oic, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *rest = command
    monkeypatch.setenv("CC", "missing-cc")
    done = oic(name, "average.oi", *rest)
    assert done.status == 4 and "missing-cc" in done.err and "CC" in done.err
    assert oic(name, "average.oi", *rest, "--json").json["diagnostics"][0]["slug"] == "no-compiler"
    monkeypatch.setenv("CC", "false")
    assert oic(name, "average.oi", *rest).status == 4
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", os.devnull)
    done = oic(name, "average.oi", *rest)
    assert done.status == 4 and "cc, gcc, clang" in done.err


SLOWLY = """
import runpy, subprocess, time
start = subprocess.Popen.__init__
subprocess.Popen.__init__ = lambda *given, **more: (start(*given, **more), time.sleep(1)) and None
runpy.run_module("oic", run_name="__main__")
"""


@pytest.mark.parametrize("how", [("-m", "oic"), ("-c", SLOWLY)], ids=["running", "starting"])
@pytest.mark.parametrize("told_to", (signal.SIGTERM, signal.SIGINT), ids=lambda number: number.name)
def test_a_build_that_is_ended_ends_its_compiler(
    oic: Oic, tmp_path: Path, how: tuple[str, str], told_to: signal.Signals
) -> None:
    """And leaves nothing beside the folder it was to make; it is told while the compiler runs, or is being started."""
    told, script = tmp_path / "told", tmp_path / "slow-cc"
    script.write_text(f"#!/bin/sh\necho $$ > {told}.new; mv {told}.new {told}; exec sleep 600\n")
    script.chmod(0o755)
    before = set(tmp_path.iterdir())
    command = [sys.executable, *how, "build", "average.oi", "-o", "ended"]
    heard = partial(signal.signal, told_to, signal.SIG_DFL)  # tests in the background have Ctrl-C ignored
    with subprocess.Popen(command, env={**os.environ, "CC": str(script)}, preexec_fn=heard) as process:
        while process.poll() is None and not told.exists():
            time.sleep(0.01)
        process.send_signal(told_to)
        assert process.wait(60) == 128 + told_to
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)
    assert set(tmp_path.iterdir()) == {*before, told}


# ---------------------------------------------------------------- diff


def test_diff(oic: Oic) -> None:
    done = oic("diff", "average.oi", "--bisect")
    assert done.status == 0 and "average: equal: 20 steps, 15 refused alike" in done.out
    assert "2 saved, 2 loaded, 1 loaded from the reference" in done.out
    assert "no pass changes the interpreter's answer" in done.out
    found = oic("diff", "average.oi", "--json", "--steps", "3", "--input", "x=x.npy").json
    assert found["equal"] is True and found["steps"] == 3 and found["bisect"] is None


def test_diff_is_the_same_for_the_same_seed(oic: Oic) -> None:
    one, two, three = (
        oic("diff", "average.oi", "--seed", s, "--steps", "3").out for s in ("1", "1", "2")
    )
    assert one == two != "" and three.startswith("average: equal")


def test_a_mismatch(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 3 where the harness finds a difference."""
    wrong = Difference(2, "smooth", (1,), 1.0, 2.0, 8388608.0, 0.0)
    monkeypatch.setattr(
        cli_run, "compare", lambda *_: dataclasses.replace(Verdict(3), difference=wrong)
    )
    done = oic("diff", "average.oi")
    assert done.status == 3
    assert "average: DIFFERENT: step 2, smooth[1]: reference 1.0, compiled 2.0" in done.out
    assert oic("diff", "average.oi", "--json").json["equal"] is False


def test_a_real_mismatch(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that means something else is caught, and no pass is to blame."""
    meant: Any = Sub.reference
    monkeypatch.setattr(Sub, "reference", lambda self, a, b: meant(self, a, b) + np.float32(1))
    done = oic("diff", "average.oi", "--bisect")
    assert done.status == 3 and "DIFFERENT: step 0, smooth" in done.out
    assert "no pass changes" in done.out


def test_bisect_names_the_pass(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that changes the program is named."""
    from oic.passes import pipeline

    def spoil(module: Any) -> None:
        for op in module.all_ops():
            if op.name == "splat":
                op.value = 0.5

    steps = [dataclasses.replace(s, run=spoil) if s.name == "cse" else s for s in pipeline.PIPELINE]
    monkeypatch.setattr(pipeline, "PIPELINE", type(pipeline.PIPELINE)(steps))
    done = oic("diff", "average.oi", "--bisect")
    assert done.status == 3 and "pass 'cse' changes" in done.out
    assert "'cse'" in oic("diff", "average.oi", "--bisect", "--json").json["bisect"]


def test_text_of_the_graph_is_not_changed(oic: Oic) -> None:
    assert Path("average.oi").read_text() == AVERAGE


def test_bench_measures_statements(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oic.profile.limits.PROBE", 0.001)
    done = oic("bench", "average.oi", "--steps", "9", "-o", "out", "--json")
    assert done.status == 0 and done.json["steps"] == 9 and done.json["limits"]["threads"] == 1
    texts = {line: row["text"] for row in done.json["statements"] for line in row["lines"]}
    assert texts[16].startswith("op sub(x, smooth) >> d; op mul(d, rate) >> d")
    report = Path("out/average.report.html").read_text()
    assert "Time of a step, by line" in report and "cache.write smooth &gt;&gt; mean;" in report
    assert oic("bench", "average.oi", "--entry", "entri").status == 1
    Path("part.oi").write_text("dynamic { x: f32[4]; at: i32; } volatile { y: f32[2]; } "
                               "block entry { op slice(x, axis=0, start=at - 4, end=at - 2) >> y; return; }")  # fmt: skip
    refused = oic("bench", "part.oi")
    assert "'start': " in refused.err and "hint: inputs are random where --input does not give them" in refused.err
    assert oic("bench", "part.oi", "--input", "at=4").status == 0
    traced = oic("run", "average.oi", "--input", "x=x.npy", "--trace")
    assert traced.status == 0 and "op sub" not in traced.out and " us" in traced.out
