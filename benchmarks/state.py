"""Saved and resident bytes of a KV cache against the tokens it has seen, and the time of save and load.

A cache of keys and values with the shape of GPT-2 124M (12 layers of 768 f32), as three graphs: both
indices fixed, the tokens bounded by `--max`, and nothing bounding them (reserved address space).  Resident
bytes are the pages of the state that are in memory.

    python benchmarks/state.py [--layers 12] [--width 768] [--tokens 0,1,10,100,1000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import oic

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.resident import resident_bytes

GRAPH = """
dynamic {{ x: f32[N, {width}] @max(N=250); }}
persistent {{
  pos: i32 @init(0);
  K(l, t): f32[{width}] @table {fixed};
  V(l, t): f32[{width}] @table {fixed};
}}
block entry {{
  loop layers (l in 0..{layers}) {{
    cache.write x >> K[l, pos..pos+N];
    cache.write x >> V[l, pos..pos+N];
  }}
  cache.increment N pos;
  return;
}}
"""
KINDS = ("fixed", "bounded", "reserved")


def program(kind: str, layers: int, width: int, most: int) -> oic.Synthesizer:
    fixed = f"@fixed(l={layers}, t={most})" if kind == "fixed" else f"@fixed(l={layers})"
    text = GRAPH.format(width=width, layers=layers, fixed=fixed)
    capacity = {"t": most} if kind == "bounded" else {}
    return oic.Synthesizer(oic.parse(text, name=f"{kind}.oi"), capacity=capacity).build()


def microseconds(call: object, *arguments: object) -> float:
    """The median of some calls."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        call(*arguments)  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--tokens", default="0,1,10,100,1000")
    parser.add_argument("--capacity", type=int, default=1024)
    options = parser.parse_args()
    tokens = [int(n) for n in options.tokens.split(",")]
    each = 2 * options.layers * options.width * 4
    rng = np.random.default_rng(0)
    print(f"a token is {each:,} bytes; {options.capacity:,} tokens are {each * options.capacity:,}")
    names = ("saved", "of capacity", "save us", "load us", "resident")
    print(f"{'table':<10}{'tokens':>8}" + "".join(f"{name:>14}" for name in names))
    for kind in KINDS:
        made = program(kind, options.layers, options.width, options.capacity)
        with made.make_executor() as executor:
            seen = 0
            for target in tokens:
                while seen < target and (kind == "reserved" or target <= options.capacity):
                    some = min(250, target - seen)
                    executor.step(x=rng.standard_normal((some, options.width)).astype(np.float32))
                    seen += some
                if seen != target:
                    continue
                before = resident_bytes(executor)
                saved = executor.save()
                part = len(saved) / (each * options.capacity)
                save, load = microseconds(executor.save), microseconds(executor.load, saved)
                shown = "-" if before is None else f"{before:,}"
                print(f"{kind:<10}{seen:>8,}{len(saved):>14,}{part:>14.2%}{save:>14,.0f}{load:>14,.0f}{shown:>14}")


if __name__ == "__main__":
    main()
