"""Smallest processors compute the reference's bits at every level of a compiler, with a project's own flags."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import oic
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


@pytest.mark.parametrize("level", ["-O1", "-Os", "-O2", "-O3"])
@pytest.mark.parametrize(("compiler", "emulator"), [(CORTEX_M0, EMULATOR_M0), (CORTEX_M4, EMULATOR_M4)], ids=["m0", "m4"])
def test_products_of_bytes(compiler: tuple[str, ...], emulator: tuple[str, ...], level: str, tmp_path: Path) -> None:
    """With -Os, gcc for Thumb-1 takes registers for untouched that a called function's end changes (-fipa-ra)."""
    if not all(map(shutil.which, (compiler[0], emulator[0]))):
        pytest.skip("no compiler or emulator of a Cortex-M")
    rng = np.random.default_rng(3)
    weights = {"w": rng.integers(-127, 128, (29, 48)).astype(np.int8), "b": np.arange(29, dtype=np.int32)}
    graph, model = oic.parse(GRAPH, "bytes"), oic.Model(tensors=weights)
    oic.Synthesizer(graph, model, target="freestanding", numerics="separate", weights_as="array").emit(tmp_path)
    (tmp_path / "main.c").write_text(PROGRAM)
    call = [*compiler, "-std=gnu99", level, "-DOIC_HOSTED=0", "-I", str(tmp_path), "-I", str(ROOT / "tests" / "runtime")]
    sources = [str(tmp_path / name) for name in ("main.c", "bytes.c", "bytes.weights.c")]
    made = subprocess.run([*call, *sources, "-o", str(tmp_path / "program"), "-lm"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
    run = subprocess.run([*emulator, str(tmp_path / "program")], capture_output=True, text=True, timeout=60)
    with oic.Simulator(graph, model).make_executor() as executor:
        wanted = executor.step(x=(5 * np.arange(48) - 120).astype(np.int8))["y"].view(np.uint32)
    assert (run.stdout + run.stderr).splitlines() == [f"y: {int(v):016x}" for v in wanted]
