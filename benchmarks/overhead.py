"""What a step costs beside what it computes: in C, and from Python.

An empty graph is stepped from C, a million times: the checks and the modes of rounding are all there is.  Graphs with
small inputs are stepped from C and from Python in turn; the difference is Python's share.  Then as many steps are made
by two sessions on two threads: they wait for each other only where they share Python's interpreter, which a step in C
does without.  At last a token is chosen from the logits of 50,257, by the operator `sample` in C and as `oic generate`
does it: a few of the logits are large, as those of a model that was trained are, or all are much the same.  Figures
are medians of rounds, with half the distance of the quartiles.

    python benchmarks/overhead.py
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import oic
from oic.profile.limits import spread
from oic.toolchain.compiler import find_compiler

GRAPHS = {
    "empty": ("graph empty { block entry { return; } }", {}),
    "small": (
        "graph small { dynamic { x: f32[4]; } volatile { y: f32[4]; } block entry { op add(x, x) >> y; return; } }",
        {"x": np.ones(4, np.float32)},
    ),
    "sized": (
        "graph sized { dynamic { ids: i32[N] @max(N=16); k: f32[4]; } persistent { pos: i64; }"
        " volatile { y: i32[N]; z: f32[4]; }"
        " block entry { op add(ids, ids) >> y; op mul(k, k) >> z; cache.increment pos; return; } }",
        {"ids": np.arange(3, dtype=np.int32), "k": np.ones(4, np.float32)},
    ),
}

LOOP = """
/* Calls a step so many times; gives 0, or the first status that is another. */
int loop(int (*step)(void *, const void *, void *), void *s, const void *in, void *out, long times)
{
    int status = 0;
    for (long i = 0; i < times && status == 0; ++i) {
        status = step(s, in, out);
    }
    return status;
}
"""

CHOICE = """graph choice {{ dynamic {{ logits: f32[50257]; u: f32; }} volatile {{ y: i32; }}
block entry {{ op sample(logits, u, temperature={}, top_k={}, top_p={}) >> y; return; }} }}"""
CHOICES = ((0.0, 0, 1.0), (0.8, 0, 1.0), (0.8, 50, 1.0), (0.8, 0, 0.9), (0.8, 50, 0.9))  # temperature, top_k, top_p

STEPS, ROUNDS = 20_000, 9


def loop_library(folder: Path) -> Any:
    """A loop in C."""
    source, library = folder / "loop.c", folder / "libloop.so"
    source.write_text(LOOP)
    flags = ["-std=c99", "-O2", "-fPIC", "-shared"]
    subprocess.run([*find_compiler(), *flags, "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library)).loop


def in_c(loop: Any, executor: Any, times: int) -> float:
    """Seconds of a step, called from C with what the last step from Python was given."""
    call, address = executor._calls["entry"], executor._ffi.cast
    parts = (call.function, executor._session, call.inputs, call.outputs)
    given = [ctypes.c_void_p(int(address("uintptr_t", part))) for part in parts]
    start = time.perf_counter()
    assert loop(*given, ctypes.c_long(times)) == 0
    return (time.perf_counter() - start) / times


def in_python(executor: Any, inputs: dict[str, Any], times: int) -> float:
    """Seconds of a step."""
    step = executor.step
    start = time.perf_counter()
    for _ in range(times):
        step(**inputs)
    return (time.perf_counter() - start) / times


def calls(built: dict[str, Any], loop: Any) -> None:
    """The cost of a call."""
    for name, (_, inputs) in GRAPHS.items():
        with built[name].make_executor() as executor:
            executor.step(**inputs)
            rounds = [(in_c(loop, executor, 50 * STEPS), in_python(executor, inputs, STEPS)) for _ in range(ROUNDS)]
        (c, of_c), (python, of_python) = (spread(column) for column in zip(*rounds, strict=True))
        over = f"{(python - c) * 1e6:.2f} us over C"
        print(f"{name:<6} step in C {c * 1e9:>6.0f} ns ±{of_c * 100:.0f}%   "
              f"from Python {python * 1e6:>6.2f} us ±{of_python * 100:.0f}%, {over}")  # fmt: skip


def sessions() -> None:
    """Steps of two sessions on two threads, beside those of one."""
    text = """graph work { dynamic { x: f32[1, 256]; } constant { w: f32[256, 256]; } volatile { y: f32[1, 256]; }
    block entry { op linear(x, w) >> y; loop l (i in 0..20) { op linear(y, w) >> y; } return; } }"""
    rng = np.random.default_rng(0)
    model = oic.Model(tensors={"w": rng.standard_normal((256, 256), np.float32) / 16})
    maker = oic.Synthesizer(oic.parse(text), model).build()
    inputs = {"x": rng.standard_normal((1, 256), np.float32)}
    with maker.make_executor() as a, maker.make_executor() as b, ThreadPoolExecutor(2) as pool:
        ones, twos = [], []
        for _ in range(ROUNDS):
            ones.append(in_python(a, inputs, STEPS // 40))
            start = time.perf_counter()
            list(pool.map(lambda ex: in_python(ex, inputs, STEPS // 40), (a, b)))
            twos.append((time.perf_counter() - start) / (STEPS // 40))
    (one, of_one), (two, of_two) = spread(ones[1:]), spread(twos[1:])
    print(f"one session {one * 1e6:.1f} us ±{of_one * 100:.0f}% a step; two on two threads {two * 1e6:.1f} us "
          f"±{of_two * 100:.0f}%: {2 * one / two:.2f} as many")  # fmt: skip


def choices(loop: Any) -> None:
    """A token chosen in C and from Python, from logits that differ and from such that hardly do."""
    rng, times = np.random.default_rng(0), 10
    flat = rng.standard_normal(50257, np.float32)
    peaked = np.where(rng.random(50257) < 0.006, np.abs(4 * flat) + 4, 2.5 * flat)
    for temperature, top_k, top_p in CHOICES:
        sampling = oic.Sampling(temperature, top_k, top_p)
        with oic.Synthesizer(oic.parse(CHOICE.format(temperature, top_k, top_p))).build().make_executor() as executor:
            found = []
            for logits in (peaked, flat):
                executor.step(logits=logits, u=np.float32(0.5))
                rounds = []
                for _ in range(ROUNDS):
                    c, start = in_c(loop, executor, times), time.perf_counter()
                    for _ in range(times):
                        sampling.choose(logits, rng)
                    rounds.append((c, (time.perf_counter() - start) / times))
                found += [spread(column) for column in zip(*rounds, strict=True)]
        texts = [f"{time * 1e6:.0f} us ±{part * 100:.0f}%" for time, part in found]
        print(f"temperature {temperature}, top_k {top_k}, top_p {top_p}: op sample {texts[0]}, oic generate {texts[1]};"
              f" of logits that are much the same {texts[2]}, {texts[3]}")  # fmt: skip


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        loop = loop_library(Path(scratch))
        built = {name: oic.Synthesizer(oic.parse(text)).build() for name, (text, _) in GRAPHS.items()}
        calls(built, loop)
        choices(loop)
    sessions()


if __name__ == "__main__":
    main()
