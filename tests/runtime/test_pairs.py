"""Products with bf16 by the machine's own instructions, the class `native`.

One program (pairs.c) compares every bit with plain loops over the instruction, and the results with the bound; the machines are
emulated.  A compiled graph then gives the same bits for every split of its rows and number of threads.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.compare.harness import Run, compare
from oic.dtypes import Array
from oic.ir.text import parse_module, print_module
from oic.toolchain.target import LANGUAGE, MEANING, WARNINGS
from oic.toolchain.target import target as target_named
from paths import ROOT
from processor import AVX2, features
from runtime.native import EMULATED, ZEN5
from tests.batch import build_together

MACHINES = {
    "avx512 emulated": ("gcc", (*EMULATED, "-O1"), ()),
    "zen5 emulated": ("gcc", ZEN5.flags, ()),
    "neon": ("aarch64-linux-gnu-gcc", ("-static", "-march=armv8.6-a", "-O2"), ("qemu-aarch64", "-cpu", "max")),
}
GRAPH = """
dynamic { x: f32[N, 70] @max(N=20); ids: i32[3]; }
constant { up: f32[130, 70]; down: f32[130, 47]; b: f32[130]; bits: bf16[40, 47]; }
volatile { y: f32[N, 40]; rows: bf16[3, 47]; }
block entry {
    assign h: f32[N, 130];
    assign z: f32[N, 47];
    op linear(x, up, b=b) >> h;
    op matmul(h, down) >> z;
    op linear(z, bits) >> y;
    op gather(bits, ids) >> rows;
    return;
}
"""


@pytest.mark.parametrize("machine", MACHINES)
def test_every_bit_is_that_of_plain_loops(machine: str, tmp_path: Path) -> None:
    compiler, flags, runs = MACHINES[machine]
    for command in (compiler, *runs[:1]):
        if shutil.which(command) is None:
            pytest.skip(f"no {command}")
    if not runs and not set(AVX2) <= features():
        pytest.skip("this processor has no AVX2 to emulate upon")
    call = [compiler, LANGUAGE, *WARNINGS, "-Werror", *MEANING, *flags, "-I", str(ROOT / "runtime_c")]
    subprocess.run([*call, str(ROOT / "tests" / "runtime" / "pairs.c"), "-o", str(tmp_path / "program"), "-lm"], check=True)
    found = subprocess.run([*runs, str(tmp_path / "program")], check=True, capture_output=True, text=True).stdout
    assert found.endswith(" 0 wrong\n") and found.count("\n") == 1, found


def synthesizer(numerics: str | None = "native", target: str = "portable", dispatch: str = "") -> oic.Synthesizer:
    rng = np.random.default_rng(0)
    shapes = {"up": (130, 70), "down": (130, 47), "b": (130,), "bits": (40, 47)}
    tensors: dict[str, Array] = {k: rng.standard_normal(shape).astype(np.float32) for k, shape in shapes.items()}
    tensors["bits"] = tensors["bits"].astype(oic.dtypes.bf16.np)
    model = oic.Model(tensors=tensors)
    return oic.Synthesizer(
        oic.parse(GRAPH, "pairs"), model, target=target, numerics=numerics, dispatch=dispatch, weights="bf16", threads=3
    )


def test_rows_have_their_bits_in_every_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And results are as near to the reference as operators say, which is not near enough for the other classes."""
    if shutil.which("gcc") is None or not set(AVX2) <= features():
        pytest.skip("no gcc, or no AVX2 to emulate upon")
    monkeypatch.setenv("CC", shlex.join(["gcc", *EMULATED]))
    made = synthesizer()
    build_together([made], tmp_path)
    assert '_NUMERICS "native"' in (tmp_path / "p0" / "pairs.h").read_text()
    assert "oic_linear_pairs_divided_f32_bf16_f32(" in (tmp_path / "p0" / "pairs.c").read_text()
    x = np.random.default_rng(1).standard_normal((20, 70)).astype(np.float32)
    ids = np.array([0, 39, 17], np.int32)
    with made.make_executor() as all_at_once, made.make_executor(threads=1) as parts:
        all_at_once.insert(x=x, ids=ids)
        all_at_once.step()
        whole = all_at_once.fetch("y")
        for first, end in ((0, 1), (1, 4), (4, 13), (13, 20)):
            parts.insert(x=x[first:end], ids=ids)
            parts.step()
            assert parts.fetch("y").tobytes() == whole[first:end].tobytes()
    planned = made.program.planned
    assert {op.kernel for op in made.program.module.all_ops() if op.name in ("linear", "matmul")} == {"linear_pairs"}
    assert {op.kernel for op in planned.all_ops() if op.kernel} == {"linear_pairs", "gather_pairs"}
    types = {op.symbol: op.type.encoding for op in planned.constants()}
    assert types == {"up": "bf16 pairs", "down": "bf16 column_pairs", "bits": "pairs", "b": ""}
    assert print_module(parse_module(text := print_module(planned))) == text
    runs = [Run("entry", {"x": x, "ids": ids})]
    with made.make_executor() as compiled:
        for module in (made.program.module, planned):
            near = compare(module, compiled, runs, compiled=made.program.compiled)
            assert near.equal and not near.doubts
        strict = oic.Simulator(made.program.graph, made.program.model, weights="bf16").program.module
        far = compare(strict, compiled, runs)
        assert far.doubts or not far.equal


def test_what_no_machine_has_is_refused(tmp_path: Path) -> None:
    if "bf16" in target_named("host").features:
        pytest.skip("this machine has products of bf16")
    for target, dispatch, slug in (("host", "", "native-numerics"), ("portable", "all", "dispatch-numerics")):
        with pytest.raises(oic.OicError) as refused:
            synthesizer(target=target, dispatch=dispatch)
        assert [d.slug for d in refused.value.diagnostics] == [slug]
    with pytest.raises(oic.OicError, match="--numerics fused"):
        synthesizer().build(tmp_path)
