"""What a cache of keys and values is worth: tokens one by one over it, and every token with all before it fed again.

GPT-2 of a shape, random weights in f32.  Prints seconds and tokens/s of both, that they gave the same bits, the time
of a step by position, the bytes of the cache, and what taking positions back costs.

    python benchmarks/cache.py [--shape 124M] [--tokens 100]
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

import oic

GPT2 = Path(__file__).resolve().parents[1] / "examples" / "gpt2"


def cached(executor: oic.Executor, ids: np.ndarray) -> tuple[list[float], np.ndarray]:
    """The seconds of every step of one token, and the last logits."""
    executor.reset()
    seconds, logits = [], np.empty(0)
    for token in ids:
        start = time.perf_counter()
        logits = executor.step(tokens=np.array([token], np.int32))["logits"]
        seconds.append(time.perf_counter() - start)
    return seconds, logits[-1]


def recomputed(executor: oic.Executor, ids: np.ndarray) -> tuple[float, np.ndarray]:
    """The seconds of a step of n tokens from the start, for every n; the last logits."""
    start, logits = time.perf_counter(), np.empty(0)
    for n in range(1, len(ids) + 1):
        executor.reset()
        logits = executor.step(tokens=ids[:n])["logits"]
    return time.perf_counter() - start, logits[-1]


def main() -> int:
    sys.path.insert(0, str(GPT2))
    shapes = import_module("shapes")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", default="124M", choices=shapes.SHAPES)
    parser.add_argument("--tokens", type=int, default=100)
    options = parser.parse_args()
    shape = shapes.SHAPES[options.shape]
    graph = oic.parse_file(GPT2 / "any_size.oi")
    count = min(options.tokens, shape.n_positions)
    ids = np.random.default_rng(0).integers(0, shape.vocab_size, count).astype(np.int32)
    built = oic.Synthesizer(graph, shapes.random_model(shape), sizes={"P": count}).build()
    with built.make_executor() as executor:
        cache = oic.KVCache(executor)
        cached(executor, ids)  # warms up
        steps, one = cached(executor, ids)
        print(f"{options.shape}: {cache.nbytes:,} bytes of {cache.reserved:,} after {count} tokens")
        start = time.perf_counter()
        cache.truncate(count // 2)
        print(f"half of them taken back in {(time.perf_counter() - start) * 1e6:,.0f} us")
        again, two = recomputed(executor, ids)
    fast, equal = sum(steps), one.tobytes() == two.tobytes()
    print(f"cached {fast:.2f} s, {count / fast:,.1f} tokens/s; recomputed {again:.2f} s, {count / again:,.1f} tokens/s")
    print(f"{again / fast:.1f} times faster; the last logits {'equal in all bits' if equal else 'DIFFER'}")
    tenth = max(1, count // 10)
    for at in range(0, count - tenth + 1, tenth):
        print(f"    tokens {at + 1} to {at + tenth}: {np.median(steps[at : at + tenth]) * 1e3:.3f} ms a step")
    return 0 if equal and again >= 2 * fast else 1


if __name__ == "__main__":
    sys.exit(main())
