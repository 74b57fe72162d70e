"""Profiling builds: what they count, that results are those of other builds, and `oic bench`."""

from __future__ import annotations

import math
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.cli.bench import shown
from oic.profile.limits import UNITS, Limits, Prober, spread
from oic.profile.measure import bench_inputs, measured
from oic.session.synthesizer import CompiledExecutor
from oic.toolchain.compiler import find_compiler

GRAPH = """\
graph counted {
  dynamic    { x: f32[N, 8] @max(N=4); fast: bool; }
  constant   { w: f32[16, 8] @init(0.5); v: f32[8, 16] @init(0.25); }
  volatile   { y: f32[N, 8]; }
  persistent { K(t): f32[8] @table @fixed(t=64); n: i32 @init(0); }
  block entry {
    assign h: f32[N, 16];
    assign t: f32[N, 8]; assign one: f32[1, 8]; assign row: f32[8];
    op relu(x) >> t;
    loop layers (l in 0..3) {
      op linear(t, w) >> h;
      op linear(h, v) >> t;
    }
    branch fast short long;
    op slice(t, axis=0, start=0, end=1) >> one;
    op reshape(one, shape=[8]) >> row;
    cache.write row >> K[n];
    cache.increment n;
    transfer t >> y;
    return;
  }
  block short { op neg(t) >> t; }
  block long { op softmax(t) >> t; }
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(scope="module")
def program(folder: Path) -> oic.Synthesizer:
    return oic.Synthesizer(oic.parse(GRAPH, "counted.oi"), profile=True).build(folder)


@pytest.fixture
def executor(program: oic.Synthesizer) -> CompiledExecutor:
    made = program.make_executor()
    assert isinstance(made, CompiledExecutor)
    return made


def test_a_profiling_build_counts_what_a_step_does(executor: CompiledExecutor) -> None:
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    executor.step(x=x, fast=np.bool_(True))
    places = executor.library.files.unit.places
    found = {p.spans[0].line: row for p, row in zip(places, executor.counted.tolist(), strict=True) if p.spans}
    rows = 3
    products = 2 * rows * 8 * 16
    assert found[11][1:] == [3, 3 * 4 * (rows * 8 + 128), 3 * 4 * rows * 16, 3 * products]
    assert found[12][1:] == [3, 3 * 4 * (rows * 16 + 128), 3 * 4 * rows * 8, 3 * products]
    assert all(row[0] >= 0 for row in found.values())
    lines = {r.line: r.microseconds for r in executor.trace()}
    assert 22 in lines and 23 not in lines, "the branch that was not taken"
    assert not any(math.isnan(us) for us in lines.values()) and lines[11] > 0


TURNED = """\
graph turned {
  dynamic  { x: f32[64, 1, 128]; p: i32[64]; }
  volatile { y: f32[64, 1, 128]; z: f32[64, 1, 128]; }
  block entry {
    assign h: f32[64, 1, 128];
    op neg(x) >> y;
    op softmax(y) >> h;
    loop layers (l in 0..2) {
      op rope(h, pos=p) >> h;
      op softmax(h) >> h;
    }
    transfer h >> z;
    return;
  }
}
"""


def test_angles_made_before_a_loop_count_for_the_statement_that_turns_by_them(tmp_path: Path) -> None:
    built = oic.Synthesizer(oic.parse(TURNED, "turned.oi"), profile=True).build(tmp_path)
    with built.make_executor() as ex:
        ex.step(x=np.ones((64, 1, 128), np.float32), p=np.arange(64, dtype=np.int32))
        assert isinstance(ex, CompiledExecutor) and ex.counted is not None
        places = ex.library.files.unit.places
        found = {p.spans[0].line: row for p, row in zip(places, ex.counted.tolist(), strict=True) if p.spans}
        size, angles = 4 * 64 * 128, 4 * 64 * 128
        assert found[7][3] == size, "the softmax before the loop writes its result alone"
        assert found[9][3] == 2 * size + angles and found[9][1] == 3
        times = {r.line: r.microseconds for r in ex.trace()}
        assert times[9] == found[9][0] / 1e3 > 0
        assert [(r.operator, r.operands) for r in ex.trace() if r.line == 9] == [("rope", ("h", "p"))], "no name of a pass"


def test_results_are_those_of_other_builds(executor: CompiledExecutor) -> None:
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    plain = oic.Simulator(oic.parse(GRAPH, "counted.oi")).make_executor()
    for fast in (True, False):
        mine, theirs = (ex.step(x=x, fast=np.bool_(fast))["y"] for ex in (executor, plain))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_bare_metal_brings_its_own_clock(program: oic.Synthesizer, folder: Path) -> None:
    call = [*find_compiler(), "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror",
            "-ffp-contract=off", "-march=native", "-DOIC_HOSTED=0", "-fsyntax-only", "-I", str(folder), str(folder / "counted.c")]  # fmt: skip
    clock = ["-DOIC_TICKS=uint32_t", "-DOIC_CLOCK()=(*(volatile uint32_t *)0xE0001004u)"]
    refused = subprocess.run(call, capture_output=True, text=True)
    assert refused.returncode != 0 and "define it (and OIC_TICKS, its type)" in refused.stderr
    subprocess.run([*call, *clock], check=True)


def test_only_profiling_builds_count(folder: Path, program: oic.Synthesizer) -> None:
    assert "oic_lap_to" in (folder / "counted.c").read_text()
    oic.Synthesizer(oic.parse(GRAPH, "counted.oi")).emit(folder / "plain")
    texts = [p.read_text() for p in (folder / "plain").rglob("*.[ch]")]
    assert not any("oic_lap" in text or "oic_place" in text for text in texts)


def test_statements_are_measured_and_shown(program: oic.Synthesizer, executor: CompiledExecutor) -> None:
    limits = Limits(1, 1e10, 1e11, 2e11, 0.0)
    entry = executor.interface.entries["entry"]
    inputs = bench_inputs(program.program.module, entry, {"N": 2}, {"fast": np.array(False)})
    found = measured(executor, "entry", inputs, 70, limits, 2e-8, lambda: None)  # the table has 64 entries
    later = measured(executor, "entry", inputs, 70, limits, 2e-8, lambda: None, after=20)
    assert [s.lines for s in later.statements] == [s.lines for s in found.statements] and later.steps == 70
    assert executor.fetch("n") == 20 + 70 - 44  # full once, after 44
    with pytest.raises(oic.StepError, match=r"CACHE_FULL(.|\n)*this was step 65; --after 64 takes"):
        measured(executor, "entry", inputs, 1, limits, 2e-8, lambda: None, after=64)
    by_line = {s.lines: s for s in found.statements}
    assert by_line[(11,)].text == "op linear(t, w) >> h" and by_line[(11,)].operations == 3 * 2 * 2 * 8 * 16
    assert found.steps == 70 and 0 < sum(s.seconds for s in found.statements) < 2 * found.seconds
    text = shown(program.program, found, shortest=True)
    assert "op linear(h, v) >> t" in text and "10.0 GB/s read, 100 GFLOP/s f32, 200 Gop/s int8" in text
    json = found.to_json()
    for row in json["statements"]:  # what is printed says all that the share is made of
        least = max((row["read"] + row["written"]) / json["limits"]["read"],
                    row["operations"] / json["limits"][row["unit"]])  # fmt: skip
        assert row["roofline"] == (least / row["seconds"] if row["seconds"] else 0)
    pairs = replace(found.statements[1], unit="bf16")
    assert pairs.peak(limits) == "f32" and pairs.peak(replace(limits, bf16=3e11)) == "bf16"
    with pytest.raises(oic.OicError, match="'M' is no size"):
        bench_inputs(program.program.module, entry, {"M": 2}, {})
    with pytest.raises(oic.OicError, match="N is at most 4"):
        bench_inputs(program.program.module, entry, {"N": 5}, {})


def test_limits_are_measured() -> None:
    prober = Prober()
    found = prober.limits(2, rounds=1)
    assert found.read > 1e8 and found.f32 > 1e8 and found.int8 >= 0 and 0 < prober.clock() < 1e-3
    assert all(prober.peak(unit) >= 0 for unit in UNITS)
    assert spread([1.0, 2.0, 3.0]) == (2.0, 0.5) and spread([1.0, 1.0, 1.0, 1.0]) == (1.0, 0.0)
