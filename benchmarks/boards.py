"""Instructions of a step on microcontrollers, by networks that these run.

    python benchmarks/boards.py [--boards m0,m3,m4,m7,m55] [--only keywords] [--cflags=-Os] [--weights q8]
                                [--numerics fused]

Each network is emitted as freestanding C, compiled by arm-none-eabi-gcc, and stepped by qemu-system-arm, which executes
one instruction a nanosecond of the board's timer; what a tick of it is comes from a row of instructions of known
number in the same run.  Cycles are more: loads wait, and flash does.  Outputs are those of a build for this machine, in
all bits, or the line says so.  Code and constants are bytes of flash; state, arena and stack those of RAM.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oic
from oic.toolchain.target import MEANING

ROOT = Path(__file__).resolve().parents[1]
COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
STEPS, LOOPS, ROW = 3, 500, 100
Array = NDArray[Any]
C_TYPES = {"i8": "int8_t", "i32": "int32_t", "f32": "float"}


@dataclass(frozen=True)
class Network:
    """A graph `net` from x to y: its text and constants, multiplications and additions of a step, types and sizes."""

    text: str
    constants: dict[str, Array]
    work: int
    x: tuple[str, tuple[int, ...]]
    y: tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Board:
    """One that qemu knows: its processor's flags, and where vectors, flash and RAM begin, and RAM ends."""

    machine: str
    flags: tuple[str, ...]
    vectors: int = 0
    flash: int = 0x400
    ram: int = 0x20000000
    end: int = 0x20400000


BOARDS = {
    "m0": Board("mps2-an385", ("-mcpu=cortex-m0plus",)),
    "m3": Board("mps2-an385", ("-mcpu=cortex-m3",)),
    "m4": Board("mps2-an386", ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")),
    "m7": Board("mps2-an500", ("-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16")),
    "m55": Board(
        "mps3-an547", ("-mcpu=cortex-m55+nomve.fp", "-mfloat-abi=hard"), 0x10000000, 0x11000000, 0x31000000, 0x31200000
    ),
}
MAIN = """
#include <string.h>
#include "board.h"
#include "net.h"

static uint64_t state[NET_STATE_BYTES / 8 + 1], arena[NET_ARENA_BYTES / 8 + 1];
static {x} x[{xs}];
static {y} y[{ys}];

static uint32_t ticks(void) {{ return *(volatile uint32_t *)0xe000e018u; }}

static void run(void)
{{
    const net_memory memory = {{state, sizeof state, arena, sizeof arena, net_weights.bytes, NET_WEIGHTS_BYTES}};
    const net_inputs in = {{.x = x}};
    net_outputs out = {{.y = y}};
    net_session s;
    uint32_t before, least = ~0u, bits = 0;
    *(volatile uint32_t *)0xe000e014u = 0xffffffu;
    *(volatile uint32_t *)0xe000e018u = 0;
    *(volatile uint32_t *)0xe000e010u = 5;
    before = ticks();
    for (int i = 0; i < {loops}; ++i) {{
        __asm__ volatile(".rept {row}\\n\\tnop\\n\\t.endr"); /* and the two or three of the loop */
    }}
    board_say("nops", 0, (before - ticks()) & 0xffffffu);
    board_say("init", 0, (uint32_t)net_init(&s, &memory));
    for (int step = 0; step < {steps}; ++step) {{
        for (int i = 0; i < {xs}; ++i) {{
            x[i] = ({x})((i * 37 + step * 11) % 101 - 50){scale};
        }}
        before = ticks();
        board_say("status", 0, (uint32_t)net_step(&s, &in, &out));
        const uint32_t took = (before - ticks()) & 0xffffffu;
        least = took < least ? took : least;
        for (int i = 0; i < {ys}; ++i) {{
            uint32_t word = 0;
            memcpy(&word, &y[i], sizeof y[i]);
            bits = 31u * bits + word;
        }}
    }}
    board_say("took", 0, least);
    board_say("bits", 0, bits);
}}
"""


def declared(name: str, of: tuple[str, tuple[int, ...]]) -> str:
    return f"{name}: {of[0]}[{', '.join(map(str, of[1]))}];"


class Layers:
    """A network of bytes, written layer by layer."""

    def __init__(self, *x: int) -> None:
        self.x, self.kept, self.body, self.work = x, "", "", 0
        self.constants: dict[str, Array] = {}
        self.rng = np.random.default_rng(3)

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def layer(
        self, op: str, x: str, w: tuple[int, ...], out: tuple[int, ...], more: str = "", to: str = "i8"
    ) -> str:
        """Sums of 32 bits, scaled to bytes, or as they are; the name of what is computed."""
        y, ends = f"v{len(self.constants)}", (w[0], *(1 for _ in out[1:]))
        self.work += math.prod(w[1:]) * math.prod(out)
        weights = self.constant(self.rng.integers(-127, 128, w).astype(np.int8))
        bias = self.constant(self.rng.integers(-999, 999, w[0]).astype(np.int32))
        self.body += f"assign {declared(y + 's', ('i32', out))}"
        self.body += f" op {op}({x}, {weights}, b={bias}, acc=i32{more}) >> {y}s;\n"
        if to == "i32":
            return f"{y}s"
        by = self.constant(self.rng.integers(1 << 30, 1 << 31, ends).astype(np.int32))
        shift = self.constant(np.full(ends, -8, np.int8))
        self.body += f"assign {declared(y, ('i8', out))}"
        self.body += f" op requantize({y}s, {by}, {shift}, to=i8, zero_point=-128) >> {y};\n"
        return y

    def network(self, last: str, *y: int) -> Network:
        to = ("i32", y)
        kinds = {n: ("i8" if v.dtype == np.int8 else "i32", v.shape) for n, v in self.constants.items()}
        names = " ".join(declared(name, kind) for name, kind in kinds.items())
        text = (f"graph net {{ dynamic {{ {declared('x', ('i8', self.x))} }} volatile {{ {declared('y', to)} }}"
                f" constant {{ {names} }} persistent {{ {self.kept} }}"
                f" block entry {{ {self.body} op relu({last}) >> y; return; }} }}")  # fmt: skip
        return Network(text, self.constants, self.work, ("i8", self.x), to)


def voice() -> Network:
    """The shape of microWakeWord's voice detector (examples/micro_wake_word): rolling windows, depthwise, mixtures."""
    net = Layers(3, 40)
    net.body = """cache.write x >> X0[3 * n..3 * n + 3]; assign w0: i8[5, 40]; assign f0: i8[200];
cache.read X0[-5..] >> w0; op reshape(w0, shape=[200]) >> f0;\n"""
    net.kept, y = "n: i64; X0(t): i8[40] @table @fixed(t=5) @ring(t);", net.layer("linear", "f0", (32, 200), (32,))
    for i, (channels, taps, to) in enumerate(((32, 5, 48), (48, 8, 48), (48, 13, 48)), 1):
        net.kept += f" X{i}(t): i8[{channels}] @table @fixed(t={taps}) @ring(t);"
        net.body += f"""cache.write {y} >> X{i}[n];
assign w{i}: i8[{taps}, {channels}]; cache.read X{i}[-{taps}..] >> w{i};
assign r{i}: i8[{channels}, {taps}]; op transpose(w{i}, perm=[1, 0]) >> r{i};\n"""
        y = net.layer("conv1d", f"r{i}", (channels, 1, taps), (channels, 1), f", groups={channels}")
        net.body += f"assign f{i}: i8[{channels}]; op reshape({y}, shape=[{channels}]) >> f{i};\n"
        y = net.layer("linear", f"f{i}", (to, channels), (to,))
    y = net.layer("linear", y, (1, 48), (1,), to="i32")
    net.body += "cache.increment n;\n"
    return net.network(y, 1)


def keywords() -> Network:
    """The shape of MLPerf Tiny's keyword spotter, DS-CNN."""
    net = Layers(1, 49, 10)
    y = net.layer("conv2d", "x", (64, 1, 10, 4), (64, 25, 5), ", stride=[2, 2], padding=[5, 1]")
    for _ in range(4):
        y = net.layer("conv2d", y, (64, 1, 3, 3), (64, 25, 5), ", groups=64, padding=1")
        y = net.layer("conv2d", y, (64, 64, 1, 1), (64, 25, 5))
    net.body += f"assign pooled: i8[64]; op max_axis({y}, axes=[1, 2]) >> pooled;\n"
    return net.network(net.layer("linear", "pooled", (12, 64), (12,), to="i32"), 12)


def images() -> Network:
    """Convolutions of the sizes of MLPerf Tiny's ResNet-8, one after the other."""
    net = Layers(3, 32, 32)
    y = net.layer("conv2d", "x", (16, 3, 3, 3), (16, 32, 32), ", padding=1")
    for inputs, outputs, size, stride in ((16, 16, 32, 1), (16, 32, 16, 2), (32, 32, 16, 1), (32, 64, 8, 2)):
        more = f", stride={stride}"
        y = net.layer("conv2d", y, (outputs, inputs, 3, 3), (outputs, size, size), f", padding=1{more}")
    net.body += f"assign pooled: i8[64]; op max_axis({y}, axes=[1, 2]) >> pooled;\n"
    return net.network(net.layer("linear", "pooled", (10, 64), (10,), to="i32"), 10)


def anomalies() -> Network:
    """The shape of MLPerf Tiny's autoencoder, in f32."""
    rng, sizes = np.random.default_rng(4), [640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640]
    constants, names, body = dict[str, Array](), "", ""
    for i, (k, n) in enumerate(itertools.pairwise(sizes)):
        constants[f"w{i}"] = rng.standard_normal((n, k), np.float32) / 20
        constants[f"b{i}"] = rng.standard_normal(n, np.float32)
        names += f"w{i}: f32[{n}, {k}]; b{i}: f32[{n}]; "
        before, h = f"h{i - 1}" if i else "x", f"h{i}"
        body += f"assign {h}: f32[{n}]; op linear({before}, w{i}, b=b{i}) >> {h}; op relu({h}) >> {h};\n"
    text = (f"graph net {{ dynamic {{ x: f32[640]; }} constant {{ {names} }} volatile {{ y: f32[640]; }}"
            f" block entry {{ {body} op relu(h9) >> y; return; }} }}")  # fmt: skip
    return Network(text, constants, sum(k * n for k, n in itertools.pairwise(sizes)), ("f32", (640,)), ("f32", (640,)))


def recurrent() -> Network:
    """A GRU of 64, in f32."""
    rng = np.random.default_rng(5)
    sizes = {"w": (192, 32), "r": (192, 64), "b": (192,), "c": (192,)}
    text = """graph net {
  dynamic { x: f32[32]; }
  constant { w: f32[192, 32]; r: f32[192, 64]; b: f32[192]; c: f32[192]; }
  persistent { h: f32[64]; }
  volatile { y: f32[64]; }
  block entry {
    assign s: f32[64]; assign t: f32[64];
    cache.read h >> s; op gru_cell(x, s, w, r, b, c) >> t; cache.write t >> h; op tanh(t) >> y;
    return;
  }
}"""
    constants: dict[str, Array] = {name: rng.standard_normal(size, np.float32) / 8 for name, size in sizes.items()}
    return Network(text, constants, 192 * (32 + 64), ("f32", (32,)), ("f32", (64,)))


NETWORKS: dict[str, Callable[[], Network]] = {
    "voice": voice, "keywords": keywords, "images": images, "anomalies": anomalies, "recurrent": recurrent,
}  # fmt: skip


def given(net: Network, step: int) -> Array:
    """What board.c makes of the step."""
    dtype, shape = net.x
    values = ((np.arange(math.prod(shape)) * 37 + step * 11) % 101 - 50).reshape(shape)
    return values.astype(np.int8) if dtype == "i8" else (values / 64).astype(np.float32)


def bits(net: Network, options: argparse.Namespace) -> int:
    """A number of all outputs of a build for this machine."""
    graph, model = oic.parse(net.text, "net"), oic.Model(tensors=net.constants)
    made = oic.Synthesizer(graph, model, target="portable", weights=options.weights, numerics=options.numerics).build()
    total = 0
    with made.make_executor() as executor:
        for step in range(STEPS):
            for word in executor.step(x=given(net, step))["y"].ravel().view(np.uint32).tolist():
                total = (31 * total + word) % 2**32
    return total


def program(net: Network, board: Board, options: argparse.Namespace, folder: Path) -> Path:
    """The network and `MAIN`, compiled."""
    graph, model = oic.parse(net.text, "net"), oic.Model(tensors=net.constants)
    oic.Synthesizer(
        graph, model, target="freestanding", weights_as="array", weights=options.weights, numerics=options.numerics
    ).emit(folder)
    types = {name: C_TYPES[of[0]] for name, of in (("x", net.x), ("y", net.y))}
    counts = {f"{name}s": math.prod(of[1]) for name, of in (("x", net.x), ("y", net.y))}
    scale = " / 64.0f" if net.x[0] == "f32" else ""
    (folder / "main.c").write_text(MAIN.format(**types, **counts, scale=scale, steps=STEPS, loops=LOOPS, row=ROW))
    code = f"{board.flash:#x}"
    places = f"-Wl,--section-start=.vectors={board.vectors:#x},-Ttext={code},-Tdata={board.ram:#x},-e,{code}"
    call = [COMPILER, "-mthumb", *board.flags, "-std=gnu99", "-nostartfiles", f"-DBOARD_STACK={board.end:#x}u", places]
    call += [*options.cflags, *MEANING, "-I", str(folder), "-I", str(ROOT / "tests" / "runtime")]
    call += [str(folder / name) for name in ("main.c", "net.c", "net.weights.c")]
    subprocess.run([*call, "-o", str(folder / "program"), "-lm"], check=True)
    return folder / "program"


def measure(name: str, net: Network, which: str, options: argparse.Namespace) -> None:
    """Print one line."""
    board = BOARDS[which]
    with tempfile.TemporaryDirectory() as made:
        path = program(net, board, options, Path(made))
        run = [EMULATOR, "-M", board.machine, "-nographic", "-semihosting", "-icount", "shift=0", "-kernel", str(path)]
        said = subprocess.run(run, capture_output=True, text=True, timeout=1200)
        header = (Path(made) / "net.h").read_text(encoding="utf-8")
    lines = [line.split(": ") for line in (said.stdout + said.stderr).splitlines() if ": " in line]
    found = {key: int(value, 16) for key, value in lines}
    kinds = (rf"NET_{kind}_BYTES (\d+)" for kind in ("STATE", "ARENA", "WEIGHTS"))
    state, arena, weights = (int(re.findall(kind, header)[0]) for kind in kinds)
    took = found["took"] * LOOPS * (ROW + 3) / found["nops"]
    same = "" if found["bits"] == bits(net, options) else "   NOT the bits of this machine"
    figures = f"{took:>14,.0f}{took / net.work:>9.2f}{weights:>12,}{state + arena:>10,}"
    print(f"{name:<11}{which:<5}{figures}{same}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", default="m0,m3,m4,m55")
    parser.add_argument("--only", default="")
    parser.add_argument("--cflags", default="-O2", type=shlex.split)
    parser.add_argument("--weights", default="f32")
    parser.add_argument("--numerics", default="separate")
    options = parser.parse_args()
    missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
    if missing:
        print(f"no {' and '.join(missing)}: of Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm")
        return 1
    print(f"{'':<16}{'instructions':>14}{'a MAC':>9}{'weights':>12}{'RAM':>10}")
    for name, network in NETWORKS.items():
        for which in options.boards.split(",") if options.only in name else ():
            measure(name, network(), which, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
