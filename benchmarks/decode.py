"""Decode speed: tokens per second, and bytes per second beside a plain streaming read.

Decoding one token reads every weight once, so memory bandwidth is its limit.  For each model the
compiled step is timed in turn with a C loop that reads as many bytes and does nothing else; both
figures are medians of several rounds in one run.

    python benchmarks/decode.py            stories260k (if OIC_MODELS has it), a Llama of 15M, GPT-2 124M
    python benchmarks/decode.py --rounds 9
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

import oic
from oic.toolchain.compiler import find_compiler

ROOT = Path(__file__).resolve().parents[1]
LLAMA = ROOT / "examples" / "tinystories" / "graph.oi"
GPT2 = ROOT / "examples" / "gpt2" / "graph.oi"
STEPS = 100  # decode steps of a round, from position 0

STREAM = """
#include <stddef.h>
#include <stdint.h>
/* Reads n words of 8 bytes in order; the sum keeps the reads alive. */
uint64_t stream(const uint64_t *p, size_t n)
{
    uint64_t sum[8] = {0};
    for (size_t i = 0; i + 8 <= n; i += 8) {
        for (size_t j = 0; j < 8; ++j) {
            sum[j] += p[i + j];
        }
    }
    return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}
"""


@dataclass(frozen=True)
class Shape:
    """A Llama shape."""

    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    hidden_dim: int
    vocab_size: int
    seq_len: int


LLAMA_15M = Shape(288, 6, 6, 6, 768, 32000, 256)


def random_model(shape: Shape) -> oic.Model:
    """Random weights of a shape, under the names that the stories graph asks for."""
    rng = np.random.default_rng(15)
    d, n = shape.dim, shape.n_layers
    kv = shape.n_kv_heads * (d // shape.n_heads)
    sizes = {
        "tok_embeddings": (shape.vocab_size, d),
        "rms_att": (n, d), "rms_ffn": (n, d), "rms_final": (d,),
        "wq": (n, d, d), "wk": (n, kv, d), "wv": (n, kv, d), "wo": (n, d, d),
        "w1": (n, shape.hidden_dim, d), "w2": (n, d, shape.hidden_dim),
        "w3": (n, shape.hidden_dim, d),
    }  # fmt: skip
    tensors = {
        name: (rng.standard_normal(size, np.float32) * 0.02 + ("rms" in name)).astype(np.float32)
        for name, size in sizes.items()
    }
    return oic.Model(tensors=tensors, sizevars=dict(vars(shape)))


def streaming_read(folder: Path) -> Callable[[np.ndarray], float]:
    """A function that reads an array's bytes once in C and gives the seconds it took."""
    source, library = folder / "stream.c", folder / "libstream.so"
    source.write_text(STREAM)
    flags = ["-std=c99", "-O3", "-march=native", "-fPIC", "-shared"]
    subprocess.run([*find_compiler(), *flags, "-o", str(library), str(source)], check=True)
    function = ctypes.CDLL(str(library)).stream
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_uint64

    def read(data: np.ndarray) -> float:
        start = time.perf_counter()
        function(data.ctypes.data, data.nbytes // 8)
        return time.perf_counter() - start

    return read


def measure(
    name: str, graph: Path, model: oic.Model, rounds: int, read: Callable[[np.ndarray], float],
    sizes: Mapping[str, int] | None = None,
) -> None:  # fmt: skip
    """Print one model's figures."""
    start = time.perf_counter()
    built = oic.Synthesizer(oic.parse_file(graph), model, sizes=sizes).build()
    seconds = time.perf_counter() - start
    plan = built.program.planned.plan
    assert plan is not None
    nbytes = plan.weights_bytes
    data = np.random.default_rng(0).integers(0, 255, nbytes // 8 * 8, np.uint8)
    ours, theirs = [], []
    with built.make_executor() as executor:
        for _ in range(rounds + 1):  # the first round warms up
            executor.reset()
            token = np.array([1], np.int32)
            start = time.perf_counter()
            for _ in range(STEPS):
                executor.step(tokens=token)
            ours.append((time.perf_counter() - start) / STEPS)
            theirs.append(float(np.median([read(data) for _ in range(STEPS)])))
    step, stream = float(np.median(ours[1:])), float(np.median(theirs[1:]))
    print(f"{name}: weights {nbytes / 1e6:.2f} MB, built in {seconds:.1f} s")
    print(f"  decode    {1 / step:>10,.0f} tokens/s   {nbytes / step / 1e9:>7.2f} GB/s")
    print(f"  streaming {1 / stream:>10,.0f} reads/s    {nbytes / stream / 1e9:>7.2f} GB/s")
    ratio = stream / step
    print(f"  ratio     {ratio:.2f} of a streaming read (one thread, {STEPS} steps, {rounds} rounds)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    folder = Path(os.environ.get("OIC_MODELS") or ROOT.parent / "shared" / "models")
    weights = folder / "stories260k" / "weights.safetensors"
    with tempfile.TemporaryDirectory() as scratch:
        read = streaming_read(Path(scratch))
        if weights.is_file():
            measure("stories260k", LLAMA, oic.Model.open(weights), options.rounds, read)
        else:
            print(f"stories260k: skipped, {weights} is not there (OIC_MODELS)")
        measure("llama 15M shape", LLAMA, random_model(LLAMA_15M), options.rounds, read)
        sys.path.insert(0, str(GPT2.parent))
        shapes = import_module("shapes")
        model = shapes.random_model(shapes.SHAPES["124M"])
        measure("gpt2 124M shape", GPT2, model, options.rounds, read, {"P": 1})


if __name__ == "__main__":
    main()
