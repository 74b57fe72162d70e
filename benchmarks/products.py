"""Products beside the limits of the machine: multiply-adds a second for many rows, bytes a second for few.

    python benchmarks/products.py [--shapes 768x3072,3072x768] [--rows 1,4,16,128,512]
                                  [--weights f32,bf16,f16,q8,q4,i8] [--numerics native]

The kernel of packed weights, one thread; for i8 a `matmul` of bytes with sums of 32 bits, neither of which is packed.
The limits are probed between the rounds (`oic.profile.limits`): multiply-adds of registers alone (for q8, q4 and i8
those of bytes, for bf16 in the class `native` those of pairs), and a read of memory on huge pages.  A product of few
rows goes through more weights than caches hold; one of many has its share of the first limit printed, of few its share
of the second, too.  Medians of the rounds and half the distance of their quartiles, beside the best of the probes.
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

from oic.kernels.kernel import Instance
from oic.kernels.targets import FUSED, NATIVE, NUMERICS, SEPARATE
from oic.operators.conv import PLANES
from oic.operators.quantized import AT_ONCE, PAIRS
from oic.profile.limits import Prober, spread
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import optimized, target

RUNTIME = Path(__file__).resolve().parents[1] / "runtime_c"
MANY = 64  # rows from which multiply-adds are the limit
MEMORY = 256 << 20  # bytes of weights that few rows go through
BYTES = {"f32": 4.0, "bf16": 2.0, "f16": 2.0, "q8": 34 / 32, "q4": 18 / 32, "i8": 1.0}  # of a weight

HUGE = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *huge(size_t n);
void *huge(size_t n)
{
    const size_t page = (size_t)2 << 20;
    void *p = aligned_alloc(page, (n + page - 1) / page * page);
    if (p != NULL) {
        madvise(p, n, MADV_HUGEPAGE);
        memset(p, 0, n);
    }
    return p;
}
"""
PRODUCT = """
void product_{w}(const float *x, const oic_stored_{w} *w, float *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,
                 ptrdiff_t count);
void product_{w}(const float *x, const oic_stored_{w} *w, float *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,
                 ptrdiff_t count)
{{
    for (ptrdiff_t i = 0; i < count; ++i) {{
        oic_linear_panels_f32_{w}_f32(&(oic_linear_panels_f32_{w}_f32_args){{
            .x = x, .w = w + i * K * oic_product_panels(N) * 16, .y = y, .M = M, .K = K, .N = N, .ldx = K}});
    }}
}}
"""
QUANTISED = """
void product_{w}(const float *x, const char *w, float *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t count);
void product_{w}(const float *x, const char *w, float *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t count)
{{
    static int32_t work[1 << 23];
    const ptrdiff_t one = oic_panels(N) * 16 * oic_groups(K) * ({bits} * 4 + 2);
    for (ptrdiff_t i = 0; i < count; ++i) {{
        oic_linear_{w}_f32_f32_f32(&(oic_linear_{w}_f32_f32_f32_args){{
            .x = x, .w = w + i * one, .y = y, .work = work, .M = M, .K = K, .N = N, .ldx = K, .room = 256}});
    }}
}}
"""
PAIRED = """
void product_bf16(const float *x, const oic_stored_bf16 *w, float *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,
                  ptrdiff_t count);
void product_bf16(const float *x, const oic_stored_bf16 *w, float *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,
                  ptrdiff_t count)
{
    static int32_t work[1 << 23];
    for (ptrdiff_t i = 0; i < count; ++i) {
        oic_linear_pairs_f32_bf16_f32(&(oic_linear_pairs_f32_bf16_f32_args){
            .x = x, .w = w + i * (K + K % 2) * oic_product_panels(N) * 16, .y = y, .work = work, .M = M, .K = K, .N = N,
            .ldx = K, .room = ROOM});
    }
}
""".replace("ROOM", str(AT_ONCE))
INTEGERS = """
void product_i8(const int8_t *x, const int8_t *w, int32_t *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t count);
void product_i8(const int8_t *x, const int8_t *w, int32_t *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t count)
{
    static int32_t work[1 << 20];
    const ptrdiff_t words = (K + 1) / 2, most = PLANES / (4 * words), wide = most > 64 ? most : 64;
    const ptrdiff_t room = 4 * words * ((wide < N ? wide : N) / 16 * 16 + 29);
    for (ptrdiff_t i = 0; i < count; ++i) {
        oic_matmul_words_i8_i32(&(oic_matmul_words_i8_i32_args){
            .a = x, .b = w + i * K * N, .y = y, .work = work, .M = M, .K = K, .N = N, .am = K, .ak = 1, .bk = N,
            .bn = 1, .room = room < (ptrdiff_t)sizeof work ? room : (ptrdiff_t)sizeof work});
    }
}
""".replace("PLANES", str(PLANES))


def library(folder: Path, weights: list[str], numerics: str | None) -> tuple[ctypes.CDLL, str]:
    """The kernel for these weights, compiled as models are for this machine, and the class of numerics."""
    here = target("host", numerics)
    source = f"#define OIC_FUSED {(SEPARATE, FUSED, NATIVE).index(here.numerics)}\n" + HUGE
    for name in weights:
        if name in ("q8", "q4"):
            source += Instance(f"kernels/linear_{name}.h", ("f32", "f32", "f32")).text()
            source += QUANTISED.format(w=name, bits=name[1])
        elif name == "i8":
            source += Instance("kernels/matmul_words.h", (name, "i32")).text() + INTEGERS
        elif name == "bf16" and here.numerics == NATIVE:
            source += Instance(f"kernels/{PAIRS}.h", ("f32", name, "f32")).text() + PAIRED
        else:
            source += Instance("kernels/linear_panels.h", ("f32", name, "f32")).text() + PRODUCT.format(w=name)
    (folder / "products.c").write_text(source, encoding="utf-8")
    built = folder / "products.so"
    flags = [*optimized(find_compiler()), *here.flags, "-fPIC", "-shared", f"-I{RUNTIME}"]
    subprocess.run([*find_compiler(), *flags, str(folder / "products.c"), "-o", str(built)], check=True)
    loaded = ctypes.CDLL(str(built))
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    loaded.huge.argtypes, loaded.huge.restype = [ctypes.c_size_t], pointer
    for name in weights:
        function = getattr(loaded, f"product_{name}")
        function.argtypes, function.restype = [pointer] * 3 + [size] * 4, None
    return loaded, here.numerics


def seconds(call: object, *args: int) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call(*args)  # type: ignore[operator]
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default="768x768,768x3072,3072x768", help="inputs x outputs")
    parser.add_argument("--rows", default="1,4,16,128,512")
    parser.add_argument("--weights", default="f32,bf16,f16,q8,q4")
    parser.add_argument("--numerics", choices=NUMERICS, help="as of oic build; native: bf16 by the machine's own")
    parser.add_argument("--seconds", type=float, default=1.0, help="of one row of the table, about")
    options = parser.parse_args()
    weights = options.weights.split(",")
    with tempfile.TemporaryDirectory() as folder:
        loaded, numerics = library(Path(folder), weights, options.numerics)
    memory, prober = loaded.huge(MEMORY), Prober()
    units = {"q8": "int8", "q4": "int8", "i8": "int8", "bf16": "bf16" if numerics == NATIVE else "f32"}
    head = f"inputs x outputs  {'rows':>5} {'weights':>7} {'Gop/s':>8} {'±%':>3}"
    print(f"{head} {'of peak':>8} {'GB/s':>7} {'of read':>8}")
    for k, n in (map(int, shape.split("x")) for shape in options.shapes.split(",")):
        x, y = loaded.huge(4 * 512 * k + 64), loaded.huge(4 * 512 * n + 64)
        for rows in map(int, options.rows.split(",")):
            for name in weights:
                one = int((k + k % 2 if BYTES[name] >= 2 else -(-k // 32) * 32) * -(-n // 16) * 16 * BYTES[name])
                matrices = 1 if rows >= MANY else max(1, MEMORY // one)
                function = getattr(loaded, f"product_{name}")
                args = (x, memory, y, rows, k, n, matrices)
                rounds = max(3, int(options.seconds / max(1e-4, seconds(function, *args)) / 2))
                found, peaks, reads = [], [], []
                for i in range(rounds):
                    found.append(seconds(function, *args))
                    if i % max(1, rounds // 8) == 0:
                        peaks.append(prober.peak(units.get(name, "f32")))
                        if rows < MANY:
                            reads.append(prober.read())
                taken, apart = spread(found)
                flops, rate = 2.0 * rows * k * n * matrices / taken, one * matrices / taken
                share = flops / (max(peaks) or math.nan)
                line = f"{k:>8} x {n:<6} {rows:>5} {name:>7} {flops / 1e9:>8.1f} {apart * 100:>3.0f} {share:>8.3f}"
                line += f" {rate / 1e9:>7.1f} {rate / max(reads):>8.3f}" if reads else ""
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
