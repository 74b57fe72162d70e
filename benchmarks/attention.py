"""Attention of a decoding step beside a streaming read: tables of keys and values that come from memory.

    python benchmarks/attention.py [--tables f32,f16,bf16,q8] [--threads 1,2] [--contexts 128,512,990]
                                   [--numerics native]

One query of every layer over tables in the layout of a state, [layers, positions, heads, size], on huge pages, of as
many layers as make more than caches hold; those of q8 have a scale a position and head.  The read is probed between the
rounds, on as many threads.  Medians of the rounds, of a position in one layer.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from oic.kernels.kernel import Instance
from oic.kernels.targets import FUSED, NATIVE, NUMERICS, SEPARATE
from oic.operators.attention import PAIRS
from oic.profile.limits import Prober
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import optimized, target

RUNTIME = Path(__file__).resolve().parents[1] / "runtime_c"
MEMORY = 48 << 20  # bytes of keys, and of values, that a round goes through: nothing of them is left in a cache
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "q8": 1}
ELEMENTS = {"f32": "f32", "f16": "f16", "bf16": "bf16", "q8": "i8"}
STORED: dict[str, type[np.generic]] = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "q8": np.int8}

MAPPED = """
void *mapped(size_t n);
void *mapped(size_t n)
{
    void *const p = oic_map_zeros(n);
    oic_in_large_pages(p, n);
    return p;
}

oic_pool *opened(int threads);
oic_pool *opened(int threads)
{
    return oic_pool_open(threads);
}
"""
ATTEND = """
void attend_{t}(oic_pool *pool, int threads, const float *q, const oic_stored_{e} *k, const oic_stored_{e} *v,
                const float *ks, const float *vs, float *y, ptrdiff_t layers, ptrdiff_t keys, ptrdiff_t Hq,
                ptrdiff_t Hk, ptrdiff_t D);
void attend_{t}(oic_pool *pool, int threads, const float *q, const oic_stored_{e} *k, const oic_stored_{e} *v,
                const float *ks, const float *vs, float *y, ptrdiff_t layers, ptrdiff_t keys, ptrdiff_t Hq,
                ptrdiff_t Hk, ptrdiff_t D)
{{
    static float work[64 << 16] __attribute__((aligned(64))), parts[1 << 22] __attribute__((aligned(64)));
    for (ptrdiff_t l = 0; l < layers; ++l) {{
        const ptrdiff_t at = l * keys * Hk * D;
        oic_{a}_divided_f32_{e}(pool, threads, Hk * (keys + 127) / 128, (int64_t)(Hq * keys * 2 * D),
            &(oic_{a}_f32_{e}_args){{
                .q = q, .k = k + at, .v = v + at, .k_scale = ks == NULL ? NULL : ks + l * keys * Hk,
                .v_scale = vs == NULL ? NULL : vs + l * keys * Hk, .y = y, .work = work, .room = 1 << 16,
                .parts = parts, .spans = 64, .N = 1, .keys = keys, .Hq = Hq, .Hk = Hk, .Dk = D, .Dv = D,
                .qs = (const ptrdiff_t[]){{Hq * D, D}}, .ks = (const ptrdiff_t[]){{Hk * D, D}},
                .vs = (const ptrdiff_t[]){{Hk * D, D}}, .kss = (const ptrdiff_t[]){{Hk, 1}},
                .vss = (const ptrdiff_t[]){{Hk, 1}}, .length = keys, .scale = 0.125f, .causal = 1,
                .window = INT64_MAX}});
    }}
}}
"""


def library(folder: Path, tables: list[str], numerics: str | None) -> ctypes.CDLL:
    """The kernels for these tables, compiled as models are for this machine."""
    here = target("host", numerics)
    fused = (SEPARATE, FUSED, NATIVE).index(here.numerics)
    source = f'#define OIC_HOSTED 1\n#define OIC_FUSED {fused}\n#include "hosted/pool.h"\n'
    for name in tables:
        kernel = PAIRS if name == "bf16" and here.numerics == NATIVE else "attention"
        source += Instance(f"kernels/{kernel}.h", ("f32", ELEMENTS[name])).text()
        source += ATTEND.format(t=name, e=ELEMENTS[name], a=kernel)
    (folder / "attention.c").write_text(source + MAPPED, encoding="utf-8")
    built = folder / "attention.so"
    flags = [*optimized(find_compiler()), *here.flags, "-fPIC", "-shared", "-pthread", f"-I{RUNTIME}"]
    subprocess.run([*find_compiler(), *flags, str(folder / "attention.c"), "-o", str(built)], check=True)
    loaded = ctypes.CDLL(str(built))
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    loaded.mapped.argtypes, loaded.mapped.restype = [ctypes.c_size_t], pointer
    loaded.opened.argtypes, loaded.opened.restype = [ctypes.c_int], pointer
    for name in tables:
        function = getattr(loaded, f"attend_{name}")
        function.argtypes, function.restype = [pointer, ctypes.c_int, *[pointer] * 6, *[size] * 5], None
    return loaded


def filled(loaded: ctypes.CDLL, numbers: np.ndarray, count: int) -> int:
    """Memory with so many numbers, these again and again."""
    whole = loaded.mapped(count * numbers.itemsize)
    view = np.ctypeslib.as_array((ctypes.c_uint8 * (count * numbers.itemsize)).from_address(whole)).view(numbers.dtype)
    for at in range(0, count, len(numbers)):
        view[at : at + len(numbers)] = numbers[: count - at]
    return int(whole)


def table(loaded: ctypes.CDLL, name: str, count: int, seed: int) -> int:
    """A table of random numbers."""
    drawn = np.random.default_rng(seed).standard_normal(1 << 18, np.float32)
    if name == "q8":
        return filled(loaded, np.clip(drawn * 40, -127, 127).astype(np.int8), count)
    if name == "bf16":
        return filled(loaded, (drawn.view(np.uint32) >> 16).astype(np.uint16), count)
    return filled(loaded, drawn.astype(np.float16 if name == "f16" else np.float32), count)


def close(loaded: ctypes.CDLL, name: str, args: tuple[Any, ...], y: int) -> bool:
    """Whether a call for one layer gives what NumPy does, in f64."""
    _, _, q, k, v, ks, vs, _, _, keys, hq, hk, size = args

    def numbers(at: int, dtype: type[np.generic], *shape: int) -> np.ndarray:
        count = math.prod(shape)
        lies = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(at)
        return np.frombuffer(lies, dtype).reshape(shape)

    def widened(at: int, scales: int | None) -> np.ndarray:
        stored = numbers(at, STORED[name], keys, hk, size)
        wide = (stored.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else stored.astype(np.float64)
        return wide * (numbers(scales, np.float32, keys, hk, 1) if scales else 1.0)

    getattr(loaded, f"attend_{name}")(*args)
    queries = numbers(q, np.float32, hk, hq // hk, size)
    scores = np.exp(np.einsum("hgd,khd->hgk", queries, widened(k, ks)) * 0.125)
    wanted = np.einsum("hgk,khd->hgd", scores / scores.sum(-1, keepdims=True), widened(v, vs))
    return np.allclose(numbers(y, np.float32, *wanted.shape), wanted, rtol=0.02, atol=0.02)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", default="f32,f16,bf16,q8")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--contexts", default="128,512,990")
    parser.add_argument("--heads", default="12x12x64", help="heads of queries x of keys x size")
    parser.add_argument("--numerics", choices=NUMERICS, help="as of oic build; native: bf16 by the machine's own")
    parser.add_argument("--seconds", type=float, default=1.0, help="of one row of the table, about")
    options = parser.parse_args()
    tables, prober = options.tables.split(","), Prober()
    hq, hk, size = map(int, options.heads.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        loaded = library(Path(folder), tables, options.numerics)
    print(f"{'table':>5} {'threads':>7} {'context':>7} {'ns a position':>13} {'GB/s':>6} {'read':>6} {'of read':>7}")
    query = np.random.default_rng(1).standard_normal(hq * size, np.float32)
    q, y = (filled(loaded, query, hq * size) for _ in range(2))
    for name in tables:
        count = MEMORY // BYTES[name]
        keys, values = (table(loaded, name, count, seed) for seed in (2, 3))
        scales = filled(loaded, np.full(1024, 0.02, np.float32), count // size) if name == "q8" else None
        one = 2 * hk * (size * BYTES[name] + (4 if scales else 0))
        for threads in map(int, options.threads.split(",")):
            pool = loaded.opened(threads)
            for context in map(int, options.contexts.split(",")):
                layers = count // (context * hk * size)
                args = (pool, threads, q, keys, values, scales, scales, y, layers, context, hq, hk, size)
                if not close(loaded, name, (*args[:8], 1, *args[9:]), y):
                    print(f"attention over {name} is wrong for {context} keys on {threads} threads", file=sys.stderr)
                    return 1
                found, reads, until = [], [], time.perf_counter() + options.seconds
                while len(found) < 5 or time.perf_counter() < until:
                    start = time.perf_counter()
                    getattr(loaded, f"attend_{name}")(*args)
                    found.append(time.perf_counter() - start)
                    reads.append(prober.read(threads))
                taken = median(found) / (layers * context)
                rate = one / taken
                line = f"{name:>5} {threads:>7} {context:>7} {taken * 1e9:>13.1f} {rate / 1e9:>6.1f}"
                print(f"{line} {median(reads) / 1e9:>6.1f} {rate / median(reads):>7.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
