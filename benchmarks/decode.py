"""Decode speed: tokens per second, and bytes per second beside a plain streaming read.

Decoding one token reads every weight once, so memory bandwidth is its limit.  For each model the
compiled step is timed in turn with C loops that read as many bytes in large pages, on as many threads,
and do nothing else; figures are medians of all steps and of all reads of several rounds in one run, with half the
distance of the quartiles.

    python benchmarks/decode.py            stories260k (if OIC_MODELS has it), a Llama of 15M, GPT-2 124M
    python benchmarks/decode.py --rounds 9 --threads 2 --only gpt2 --weights q8
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

import oic
from oic.profile.limits import REGION, Prober, spread

ROOT = Path(__file__).resolve().parents[1]
LLAMA = ROOT / "examples" / "tinystories" / "graph.oi"
GPT2 = ROOT / "examples" / "gpt2" / "any_size.oi"
STEPS = 100  # decode steps of a round, from position 0


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


def measure(
    name: str, graph: Path, model: oic.Model, options: argparse.Namespace, prober: Prober,
    sizes: Mapping[str, int] | None = None,
) -> None:  # fmt: skip
    """Print one model's figures."""
    start = time.perf_counter()
    built = oic.Synthesizer(
        oic.parse_file(graph), model, sizes=sizes, threads=options.threads, weights=options.weights
    ).build()
    seconds = time.perf_counter() - start
    plan = built.program.planned.plan
    assert plan is not None
    nbytes = plan.weights_bytes
    ours, theirs = [], []
    with built.make_executor() as executor:
        for _ in range(options.rounds + 1):  # the first round warms up
            executor.reset()
            token = np.array([1], np.int32)
            times = [time.perf_counter()]
            for _ in range(STEPS):
                executor.step(tokens=token)
                times.append(time.perf_counter())
            ours.append(np.diff(times))
            theirs.append(nbytes / prober.read(options.threads, min(nbytes, REGION) // 4096 * 4096))
    step, of_step = spread(np.concatenate(ours[1:]).tolist())
    stream, of_stream = spread(theirs[1:])
    print(f"{name}, {options.weights or 'as declared'}: weights {nbytes / 1e6:.2f} MB, built in {seconds:.1f} s")
    print(f"  decode    {1 / step:>10,.0f} tokens/s   {nbytes / step / 1e9:>7.2f} GB/s ±{of_step * 100:.0f}%")
    print(f"  streaming {1 / stream:>10,.0f} reads/s    {nbytes / stream / 1e9:>7.2f} GB/s ±{of_stream * 100:.0f}%")
    ratio = stream / step
    how = f"threads: {options.threads}, {STEPS} steps, {options.rounds} rounds"
    print(f"  ratio     {ratio:.2f} of a streaming read ({how})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weights", default="", metavar="RULES", help="as `oic build --weights`")
    parser.add_argument("--only", default="", metavar="PART", help="models whose name has this in it")
    options = parser.parse_args()
    folder = Path(os.environ.get("OIC_MODELS") or ROOT.parent / "shared" / "models")
    weights = folder / "stories260k" / "weights.safetensors"
    prober = Prober()
    if not weights.is_file():
        print(f"stories260k: skipped, {weights} is not there (OIC_MODELS)")
    elif options.only in "stories260k":
        measure("stories260k", LLAMA, oic.Model.open(weights), options, prober)
    if options.only in "llama 15M shape":
        measure("llama 15M shape", LLAMA, random_model(LLAMA_15M), options, prober)
    if options.only in "gpt2 124M shape":
        sys.path.insert(0, str(GPT2.parent))
        shapes = import_module("shapes")
        model = shapes.random_model(shapes.SHAPES["124M"])
        measure("gpt2 124M shape", GPT2, model, options, prober, {"P": 1})


if __name__ == "__main__":
    main()
