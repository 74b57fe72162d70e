"""Products with bf16 by the machine's own instructions, the class `native`, and attention upon them.

Programs (pairs.c, attention_pairs.c) compare every bit with plain loops over the instruction, of rows of tables with their numbers, and the results with the bound; the
machines are emulated.  Compiled graphs then give the same bits for every split of their rows and number of threads.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import oic
from batch import build_together
from oic.compare.harness import Run, compare
from oic.dtypes import Array
from oic.ir.core import Value
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.ir.types import TensorType
from oic.operators.attention import Attention
from oic.toolchain.target import LANGUAGE, MEANING, WARNINGS
from oic.toolchain.target import target as target_named
from paths import ROOT
from processor import AVX2, features
from runtime.native import EMULATED, ZEN5

MACHINES = {
    "avx512 emulated": ("gcc", (*EMULATED, "-O1"), ()),
    "zen5 emulated": ("gcc", (*ZEN5.flags, "-fsanitize=address"), ()),
    "neon": ("aarch64-linux-gnu-gcc", ("-static", "-march=armv8.6-a", "-O2"), ("qemu-aarch64", "-cpu", "max")),
}
ATTENTION = """
dynamic { q: f32[N, 6, 40] @max(N=70); k: f32[N, 3, 40]; v: f32[N, 3, 24]; }
persistent { pos: i32 @init(0); K(t): bf16[3, 40] @table @fixed(t=300); V(t): bf16[3, 24] @table @fixed(t=300); }
volatile { y: f32[N, 6, 24]; }
block entry {
    assign keys_stored: bf16[N, 3, 40];
    assign values_stored: bf16[N, 3, 24];
    op cast(k, to=bf16) >> keys_stored;
    op cast(v, to=bf16) >> values_stored;
    cache.write keys_stored >> K[pos..pos + N];
    cache.write values_stored >> V[pos..pos + N];
    assign keys: bf16[?, 3, 40];
    assign values: bf16[?, 3, 24];
    cache.read K[0..pos + N] >> keys;
    cache.read V[0..pos + N] >> values;
    op attention(q, keys, values, causal=true, window=150) >> y;
    cache.increment N pos;
    return;
}
"""
# Queries, keys, heads of queries and of keys, and their sizes: one query whose heads go in turn, or not; few; strips; none.
SHAPES = (
    *((1, 600, 2, 2, 64, 64), (1, 131, 17, 17, 16, 32), (1, 70, 4, 4, 80, 80), (1, 300, 8, 2, 64, 128), (1, 66, 3, 3, 24, 24)),
    *((1, 65, 5, 5, 8, 8), (2, 270, 4, 2, 17, 17), (3, 90, 6, 3, 64, 24), (5, 140, 4, 4, 33, 70), (11, 64, 2, 1, 8, 80)),
    *((7, 200, 1, 1, 80, 5), (12, 129, 1, 1, 64, 64), (13, 40, 2, 2, 24, 24), (18, 75, 4, 2, 17, 33), (36, 190, 1, 1, 64, 64)),
    *((40, 130, 2, 1, 80, 80), (70, 140, 2, 2, 64, 64), (70, 71, 1, 1, 8, 17), (4, 1, 2, 1, 64, 64), (3, 0, 2, 2, 16, 16)),
    (0, 5, 2, 1, 8, 8),
)
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


def room(n: int, t: int, hq: int, hk: int, dk: int, dv: int, masked: bool) -> int:
    """The working memory of an attention over keys and values in bf16."""
    shapes = ((oic.dtypes.f32, (n, hq, dk)), (oic.dtypes.bf16, (t, hk, dk)), (oic.dtypes.bf16, (t, hk, dv)))
    mask = Value(TensorType(oic.dtypes.bool_, (t,))) if masked else None
    return Attention(*(Value(TensorType(*shape)) for shape in shapes), mask=mask).room(paired=True)


def sizes() -> str:
    """Shapes, each with the working memory of its kernel, without and with a mask."""
    rooms = ([room(*shape, masked) for masked in (False, True)] for shape in SHAPES)
    return "".join(f"{{{', '.join(map(str, (*shape, *room)))}}},\n" for shape, room in zip(SHAPES, rooms, strict=True))


@pytest.mark.parametrize("program", ["pairs.c", "attention_pairs.c"])
@pytest.mark.parametrize("machine", MACHINES)
def test_every_bit_is_that_of_plain_loops(machine: str, program: str, tmp_path: Path) -> None:
    compiler, flags, runs = MACHINES[machine]
    for command in (compiler, *runs[:1]):
        if shutil.which(command) is None:
            pytest.skip(f"no {command}")
    if not runs and not set(AVX2) <= features():
        pytest.skip("this processor has no AVX2 to emulate upon")
    (tmp_path / "sizes.h").write_text(sizes())
    call = [compiler, LANGUAGE, *WARNINGS, "-Werror", *MEANING, *flags, "-I", str(ROOT / "runtime_c"), "-I", str(tmp_path)]
    subprocess.run([*call, str(ROOT / "tests" / "runtime" / program), "-o", str(tmp_path / "program"), "-lm"], check=True)
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


def test_attention_has_its_bits_in_every_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a prompt into steps, and of a step among threads; near the reference as the operator says, and not more."""
    if shutil.which("gcc") is None or not set(AVX2) <= features():
        pytest.skip("no gcc, or no AVX2 to emulate upon")
    monkeypatch.setenv("CC", shlex.join(["gcc", *EMULATED]))
    made = oic.Synthesizer(oic.parse(ATTENTION, "pairs"), target="portable", numerics="native", threads=7)
    build_together([made], tmp_path)
    assert "oic_attention_pairs_divided_f32_bf16(" in (tmp_path / "p0" / "pairs.c").read_text()
    rng = np.random.default_rng(2)
    given = {n: rng.standard_normal((260, *s)).astype(np.float32) for n, s in (("q", (6, 40)), ("k", (3, 40)), ("v", (3, 24)))}
    found = []
    some = [2, 3, 5, 13, 64, 17, 1, 1, 70, 36, 48]
    for threads, steps in ((7, [70, 70, 70, 50]), (1, [1] * 260), (2, some), (3, [69, 1, 69, 1, 69, 1, 50])):
        with made.make_executor(threads=threads) as executor:
            rows, at = [], 0
            for n in steps:
                executor.insert(**{name: x[at : at + n] for name, x in given.items()})
                executor.step()
                rows.append(executor.fetch("y").copy())
                at += n
        found.append(np.concatenate(rows).tobytes())
    assert found == found[:1] * 4
    runs = [Run("entry", {name: x[at : at + 70] for name, x in given.items()}) for at in (0, 70)]
    with made.make_executor() as compiled:
        near = compare(made.program.module, compiled, runs, compiled=made.program.compiled)
        assert near.equal and not near.doubts
        compiled.reset()
        far = compare(oic.Simulator(made.program.graph).program.module, compiled, runs)
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
