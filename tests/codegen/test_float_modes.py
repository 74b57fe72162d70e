"""A step computes in the modes that numbers are defined in, whatever another library left, and puts those back."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import MEANING, WARNINGS
from paths import ROOT
from runtime.boards import CORTEX_M55, EMULATOR

GRAPH = """
dynamic { x: f32[64]; }
constant { w: f32[64, 64]; }
volatile { p: f32[64]; q: f32[64]; y: f32[64]; tiny: f32[64]; }
block entry {
  op linear(x, w) >> p; op mul(x, 1.7) >> q;
  yield p, q;
  op softmax(x) >> tiny; op mul(tiny, 1e-40) >> tiny;
  await p, q;
  op add(p, q) >> y;
  return;
}
block first { await p; assign t: f32[64]; op exp(p) >> t; op div(t, x) >> p; yield p; }
block second { await q; assign t: f32[64]; op tanh(q) >> t; op mul(t, 1e-39) >> q; yield q; }
"""
HELPER = """
#include "float_modes.h"
unsigned long long get(void);
void put(unsigned long long modes);
unsigned long long get(void)
{
    return oic_float_modes_get();
}
void put(unsigned long long modes)
{
    oic_float_modes_put(modes);
}
"""
# Bits of the control register, by machine: rounding upward, and subnormals flushed to zero.
OTHER = {"x86_64": (0x1F80 | 0x4000, 0x1F80 | 0x8040), "aarch64": (1 << 22, 1 << 24)}
FLAGS = 0x3F if platform.machine() == "x86_64" else 0  # of exceptions that there were
MACHINE = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine())


class Modes:
    """Those of this thread."""

    def __init__(self, folder: Path) -> None:
        source, path = folder / "modes.c", folder / "modes.so"
        source.write_text(HELPER)
        call = [*find_compiler(), "-O1", "-fPIC", "-shared", "-I", str(ROOT / "runtime_c")]
        subprocess.run([*call, "-o", str(path), str(source)], check=True)
        self.library = ctypes.CDLL(str(path))
        self.library.get.restype, self.library.put.argtypes = ctypes.c_ulonglong, [ctypes.c_ulonglong]

    @contextmanager
    def set_to(self, wanted: int) -> Iterator[None]:
        before = self.library.get()
        self.library.put(wanted | before & FLAGS)
        try:
            yield
            assert self.library.get() & ~FLAGS == wanted and self.library.get() & FLAGS >= before & FLAGS
        finally:
            self.library.put(before)


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> Modes:
    return Modes(tmp_path_factory.mktemp("modes"))


@pytest.mark.skipif(MACHINE not in OTHER, reason="what the modes of this machine are is not known here")
@pytest.mark.parametrize("threads", [1, 4])
def test_a_step_sets_its_modes_and_puts_back_those_it_found(threads: int, modes: Modes) -> None:
    rng = np.random.default_rng(5)
    model = oic.Model(tensors={"w": rng.standard_normal((64, 64)).astype(np.float32)})
    made = oic.Synthesizer(oic.parse(GRAPH, "modes"), model, threads=threads).build()
    xs = rng.standard_normal((20, 64)).astype(np.float32)

    def outputs() -> list[bytes]:
        with made.make_executor() as executor:  # whose threads begin in the modes of this one
            return [v.tobytes() for x in xs for _, v in sorted(executor.step(x=x).items())]

    usual = outputs()
    tiny = np.frombuffer(usual[2], np.float32)
    assert ((tiny != 0) & (np.abs(tiny) < np.finfo(np.float32).tiny)).any()
    for other in OTHER[MACHINE]:
        with modes.set_to(other):
            found = outputs()
        assert found == usual


@pytest.mark.skipif(not all(map(shutil.which, (CORTEX_M55[0], EMULATOR[0]))), reason="no compiler or emulator of a Cortex-M")
def test_a_processor_whose_control_register_has_more_than_modes(tmp_path: Path) -> None:
    """That of the Cortex-M55 has the size of elements of loops, too: without it the first loop is a fault."""
    weights = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    graph, model = oic.parse(GRAPH, "modes"), oic.Model(tensors={"w": weights})
    board = oic.Synthesizer(graph, model, target="freestanding", numerics="separate", weights_as="array")
    board.emit(tmp_path)
    sources = [ROOT / "tests" / "codegen" / "modes_board.c", tmp_path / "modes.c", tmp_path / "modes.weights.c"]
    call = [*CORTEX_M55, "-std=gnu99", "-O2", *WARNINGS, "-Werror", *MEANING, "-DOIC_HOSTED=0", "-I", str(tmp_path)]
    call += ["-I", str(ROOT / "tests" / "runtime"), *map(str, sources), "-o", str(tmp_path / "program"), "-lm"]
    made = subprocess.run(call, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
    run = subprocess.run([*EMULATOR, str(tmp_path / "program")], capture_output=True, text=True, timeout=60)

    with oic.Synthesizer(graph, model, target="portable", numerics="separate").build().make_executor() as executor:
        given = executor.step(x=((np.arange(64) - 20) / 16).astype(np.float32))
    bits = 0
    for number in np.stack([given[name] for name in ("p", "q", "y", "tiny")], axis=1).view(np.uint32).ravel():
        bits = (31 * bits + int(number)) % 2**32
    each = ["step: 0000000000000000", "kept: 0000000000000001", f"bits: {bits:016x}"]
    assert (run.stdout + run.stderr).splitlines() == ["init: 0000000000000000", *3 * each]
