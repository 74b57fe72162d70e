"""Smallest processors compute the reference's bits at every level of a compiler, with a project's own flags, in little code."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.toolchain.target import MEANING
from paths import ROOT
from runtime.boards import CORTEX_M0, CORTEX_M4, EMULATOR_M0, EMULATOR_M4

GRAPH = """
dynamic { x: i8[48]; }
constant { w: i8[29, 48]; b: i32[29]; }
volatile { y: i32[29]; }
block entry { op linear(x, w, b=b, acc=i32) >> y; return; }
"""
PROGRAM = """
#include "bytes.h"
#include "board.h"
static bytes_state state;
static uint64_t arena[(BYTES_ARENA_BYTES + 7) / 8];
static void run(void)
{
    const bytes_memory memory = {&state, sizeof state, arena, sizeof arena, bytes_weights.bytes, BYTES_WEIGHTS_BYTES};
    bytes_session session;
    int8_t x[48];
    int32_t y[29];
    uint32_t status = bytes_init(&session, &memory);
    for (int i = 0; i < 48; ++i) {
        x[i] = (int8_t)(5 * i - 120);
    }
    status = status == 0 ? bytes_step(&session, &(bytes_inputs){.x = x}, &(bytes_outputs){.y = y}) : status;
    for (int i = 0; i < 29; ++i) {
        board_say("y", status, (uint32_t)y[i]);
    }
}
"""


BOARDS = pytest.mark.parametrize(("compiler", "emulator"), [(CORTEX_M0, EMULATOR_M0), (CORTEX_M4, EMULATOR_M4)], ids=["m0", "m4"])


def on_board(
    compiler: Sequence[str], emulator: Sequence[str], options: Sequence[str], graph: oic.Graph, model: oic.Model, main: str, folder: Path
) -> list[str]:
    """What a program says on a board; it is left in the folder."""
    if not all(map(shutil.which, (compiler[0], emulator[0]))):
        pytest.skip("no compiler or emulator of a Cortex-M")
    oic.Synthesizer(graph, model, target="freestanding", numerics="separate", weights_as="array").emit(folder)
    (folder / "main.c").write_text(main)
    call = [*compiler, "-std=gnu99", *options, "-DOIC_HOSTED=0", "-I", str(folder), "-I", str(ROOT / "tests" / "runtime")]
    sources = [str(folder / name) for name in ("main.c", f"{graph.name}.c", f"{graph.name}.weights.c")]
    made = subprocess.run([*call, *sources, "-o", str(folder / "program"), "-lm"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
    run = subprocess.run([*emulator, str(folder / "program")], capture_output=True, text=True)
    return (run.stdout + run.stderr).splitlines()


@pytest.mark.parametrize("level", ["-O1", "-Os", "-O2", "-O3"])
@BOARDS
def test_products_of_bytes(compiler: tuple[str, ...], emulator: tuple[str, ...], level: str, tmp_path: Path) -> None:
    """With -Os, gcc for Thumb-1 takes registers for untouched that a called function's end changes (-fipa-ra)."""
    rng = np.random.default_rng(3)
    weights = {"w": rng.integers(-127, 128, (29, 48)).astype(np.int8), "b": np.arange(29, dtype=np.int32)}
    graph, model = oic.parse(GRAPH, "bytes"), oic.Model(tensors=weights)
    found = on_board(compiler, emulator, [level], graph, model, PROGRAM, tmp_path)
    with oic.Simulator(graph, model).make_executor() as executor:
        wanted = executor.step(x=(5 * np.arange(48) - 120).astype(np.int8))["y"].view(np.uint32)
    assert found == [f"y: {int(v):016x}" for v in wanted]


ATTENDING = """
dynamic { q: f32[1, 4, 12]; k: f32[1, 12]; }
constant { by: f32[12]; }
persistent { n: i32; K(t): f32[1, 12] @table @fixed(t=64) @ring(t); }
volatile { y: f32[1, 4, 12]; }
block entry {
  assign keys: f32[?, 1, 12]; assign a: f32[1, 4, 12];
  cache.write k >> K[n]; cache.increment n; cache.read K[] >> keys;
  op attention(q, keys, keys) >> a; op mul(a, by) >> y;
  return;
}
"""
ATTENDS = """
#include "attends.h"
#include "board.h"
#include <string.h>
static attends_state state;
static uint64_t arena[(ATTENDS_ARENA_BYTES + 7) / 8];
static void run(void)
{
    const attends_memory memory = {&state, sizeof state, arena, sizeof arena, attends_weights.bytes, ATTENDS_WEIGHTS_BYTES};
    attends_session session;
    float x[60], y[48];
    uint32_t status = attends_init(&session, &memory), words[48];
    for (int step = 0; step < 70; ++step) {
        for (int i = 0; i < 60; ++i) {
            x[i] = (float)((i * 37 + step * 11) % 101 - 50) / 16.0f;
        }
        status |= attends_step(&session, &(attends_inputs){.q = x, .k = x + 48}, &(attends_outputs){.y = y});
    }
    memcpy(words, y, sizeof words);
    for (int i = 0; i < 48; ++i) {
        board_say("y", status, words[i]);
    }
}
"""


@pytest.mark.parametrize("level", ["-Os", "-O2"])
@BOARDS
def test_attention(compiler: tuple[str, ...], emulator: tuple[str, ...], level: str, tmp_path: Path) -> None:
    """What is written out for registers is not, where a register is one number: dot products of a block were 28 KB alone."""
    graph, model = oic.parse(ATTENDING, "attends"), oic.Model(tensors={"by": np.linspace(1, 2, 12, dtype=np.float32)})
    found = on_board(compiler, emulator, [level, *MEANING], graph, model, ATTENDS, tmp_path)
    with oic.Synthesizer(graph, model, target="portable", numerics="separate").build().make_executor() as executor:
        for step in range(70):
            x = (((np.arange(60) * 37 + step * 11) % 101 - 50) / 16).astype(np.float32)
            wanted = executor.step(q=x[:48].reshape(1, 4, 12), k=x[48:].reshape(1, 12))["y"].ravel().view(np.uint32)
    assert found == [f"y: {int(v):016x}" for v in wanted]
    listed = subprocess.run(["arm-none-eabi-nm", "-S", str(tmp_path / "program")], capture_output=True, text=True, check=True)
    sizes = [line.split() for line in listed.stdout.splitlines() if len(line.split()) == 4]
    assert [(name, int(size, 16)) for _, size, _, name in sizes if "oic_" in name and int(size, 16) > 4500] == []


def test_wide_integers_need_no_doubles(tmp_path: Path) -> None:
    """An FPU of single precision has none, and a library's are slow."""
    if not all(map(shutil.which, (CORTEX_M4[0], "arm-none-eabi-nm"))):
        pytest.skip("no compiler of a Cortex-M")
    text = """
dynamic { x: f32[48]; s: f32; z: i32; } volatile { q: i32[48]; b: i8[48]; d: f32[48]; }
block entry {
  op quantize(x, s, zero_point=z, to=i32) >> q; op quantize(x, s, zero_point=z, to=i8) >> b;
  op dequantize(q, s, zero_point=z, to=f32) >> d; return;
}
"""
    oic.Synthesizer(oic.parse(text, "wide"), oic.Model(tensors={}), target="freestanding").emit(tmp_path)
    call = [*CORTEX_M4[:5], "-std=gnu99", "-O2", *MEANING, "-I", str(tmp_path), "-c", str(tmp_path / "wide.c")]
    subprocess.run([*call, "-o", str(tmp_path / "wide.o")], check=True)
    listed = subprocess.run(["arm-none-eabi-nm", "-u", str(tmp_path / "wide.o")], capture_output=True, text=True, check=True)
    assert [name for name in listed.stdout.split() if name.startswith(("__aeabi_d", "__aeabi_l2d", "__aeabi_f2d"))] == []
