"""Products beside the limits of the machine: multiply-adds a second for many rows, bytes a second for few.

    python benchmarks/products.py [--shapes 768x3072,3072x768] [--rows 1,4,16,128,512] [--weights f32,bf16,f16,q8,q4]

The kernel of packed weights, one thread.  The limits are probed between the rounds: multiply-adds of registers alone
(for q8 and q4 those of bytes: with AVX2 a product, a sum of pairs and an addition), and a read of memory in eight
streams on huge pages.  A product of few rows goes through more weights than caches hold; one of many has its share of
the first limit printed, of few its share of the second, too.  Medians of the rounds.
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

from oic.kernels.kernel import Instance
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import optimized, target

RUNTIME = Path(__file__).resolve().parents[1] / "runtime_c"
MANY = 64  # rows from which multiply-adds are the limit
MEMORY = 256 << 20  # bytes of weights that few rows go through
BYTES = {"f32": 4.0, "bf16": 2.0, "f16": 2.0, "q8": 34 / 32, "q4": 18 / 32}  # of a weight

LIMITS = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include "simd/tiles.h"

float peak(ptrdiff_t n);
float peak(ptrdiff_t n)
{
    oic_register_f32 a[OIC_TILE_REGISTERS];
    float sum;
    OIC_UNROLLED
    for (int i = 0; i < OIC_TILE_REGISTERS; ++i) {
        a[i] = oic_register_of_f32((float)i);
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        OIC_UNROLLED
        for (int i = 0; i < OIC_TILE_REGISTERS; ++i) {
            a[i] = oic_register_madd_f32(oic_register_of_f32(0.5f), a[i], oic_register_of_f32(0.25f));
        }
    }
    OIC_UNROLLED
    for (int i = 1; i < OIC_TILE_REGISTERS; ++i) {
        a[0] += a[i];
    }
    memcpy(&sum, &a[0], sizeof sum);
    return sum;
}

ptrdiff_t lanes(void);
ptrdiff_t lanes(void)
{
    return OIC_TILE_REGISTERS * (ptrdiff_t)(sizeof(oic_register_f32) / sizeof(float));
}

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* n times the products of `bytes()` pairs of bytes. */
int32_t peak_bytes(ptrdiff_t n);
int32_t peak_bytes(ptrdiff_t n)
{
    int32_t sum = 0;
#if defined(__AVX512VNNI__)
    __m512i a[12], w = _mm512_set1_epi32((int32_t)n);
    OIC_UNROLLED
    for (int i = 0; i < 12; ++i) {
        a[i] = _mm512_setzero_si512();
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        OIC_UNROLLED
        for (int i = 0; i < 12; ++i) {
            a[i] = _mm512_dpbusd_epi32(a[i], w, w);
            __asm__("" : "+v"(a[i]));
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < 12; ++i) {
        sum += _mm_cvtsi128_si32(_mm512_castsi512_si128(a[i]));
    }
#elif defined(__AVX2__)
    __m256i a[8], w = _mm256_set1_epi32((int32_t)n), ones = _mm256_set1_epi16(1);
    OIC_UNROLLED
    for (int i = 0; i < 8; ++i) {
        a[i] = _mm256_setzero_si256();
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        OIC_UNROLLED
        for (int i = 0; i < 8; ++i) {
            __m256i pairs;
            __asm__("vpmaddubsw %3, %3, %1\\n\\tvpmaddwd %2, %1, %1\\n\\tvpaddd %1, %0, %0"
                    : "+x"(a[i]), "=&x"(pairs) : "x"(ones), "x"(w));
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < 8; ++i) {
        sum += _mm_cvtsi128_si32(_mm256_castsi256_si128(a[i]));
    }
#endif
    return sum;
}

ptrdiff_t bytes(void);
ptrdiff_t bytes(void)
{
#if defined(__AVX512VNNI__)
    return 12 * 64;
#elif defined(__AVX2__)
    return 8 * 32;
#else
    return 0;
#endif
}

uint64_t stream(const char *p, ptrdiff_t n);
uint64_t stream(const char *p, ptrdiff_t n)
{
    typedef uint64_t half __attribute__((vector_size(32)));
    half sum[8] = {{0}};
    const ptrdiff_t part = 48 << 10;
    for (; n >= 8 * part; n -= 8 * part, p += 8 * part) {
        for (ptrdiff_t i = 0; i < part; i += 64) {
            OIC_UNROLLED
            for (int s = 0; s < 8; ++s) {
                half low, high;
                memcpy(&low, p + s * part + i, sizeof low);
                memcpy(&high, p + s * part + i + 32, sizeof high);
                sum[s] += low + high;
            }
        }
    }
    OIC_UNROLLED
    for (int s = 1; s < 8; ++s) {
        sum[0] += sum[s];
    }
    return sum[0][0];
}

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


def library(folder: Path, weights: list[str]) -> ctypes.CDLL:
    """The kernel for these weights and the probes, compiled as models are for this machine."""
    here = target("host")
    source = f"#define OIC_FUSED {int(here.numerics == 'fused')}\n" + LIMITS
    for name in weights:
        if name in ("q8", "q4"):
            source += Instance(f"kernels/linear_{name}.h", ("f32", "f32", "f32")).text()
            source += QUANTISED.format(w=name, bits=name[1])
        else:
            source += Instance("kernels/linear_panels.h", ("f32", name, "f32")).text() + PRODUCT.format(w=name)
    (folder / "products.c").write_text(source, encoding="utf-8")
    built = folder / "products.so"
    flags = [*optimized(find_compiler()), *here.flags, "-fPIC", "-shared", f"-I{RUNTIME}"]
    subprocess.run([*find_compiler(), *flags, str(folder / "products.c"), "-o", str(built)], check=True)
    loaded = ctypes.CDLL(str(built))
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    loaded.peak.argtypes, loaded.peak.restype = [size], ctypes.c_float
    loaded.lanes.argtypes, loaded.lanes.restype = [], size
    loaded.peak_bytes.argtypes, loaded.peak_bytes.restype = [size], ctypes.c_int32
    loaded.bytes.argtypes, loaded.bytes.restype = [], size
    loaded.stream.argtypes, loaded.stream.restype = [pointer, size], ctypes.c_uint64
    loaded.huge.argtypes, loaded.huge.restype = [ctypes.c_size_t], pointer
    for name in weights:
        function = getattr(loaded, f"product_{name}")
        function.argtypes, function.restype = [pointer] * 3 + [size] * 4, None
    return loaded


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
    parser.add_argument("--seconds", type=float, default=1.0, help="of one row of the table, about")
    options = parser.parse_args()
    weights = options.weights.split(",")
    with tempfile.TemporaryDirectory() as folder:
        loaded = library(Path(folder), weights)
    memory = loaded.huge(MEMORY)
    print(f"inputs x outputs  {'rows':>5} {'weights':>7} {'Gop/s':>8} {'of peak':>8} {'GB/s':>7} {'of read':>8}")
    for k, n in (map(int, shape.split("x")) for shape in options.shapes.split(",")):
        x, y = loaded.huge(4 * 512 * k + 64), loaded.huge(4 * 512 * n + 64)
        for rows in map(int, options.rows.split(",")):
            for name in weights:
                one = int((k if BYTES[name] >= 2 else -(-k // 32) * 32) * -(-n // 16) * 16 * BYTES[name])
                matrices = 1 if rows >= MANY else max(1, MEMORY // one)
                function = getattr(loaded, f"product_{name}")
                args = (x, memory, y, rows, k, n, matrices)
                rounds = max(3, int(options.seconds / max(1e-4, seconds(function, *args)) / 2))
                found, peaks, reads = [], [], []
                for i in range(rounds):
                    found.append(seconds(function, *args))
                    if i % max(1, rounds // 8) == 0:
                        at_once = loaded.lanes() if BYTES[name] >= 2 else loaded.bytes()
                        peak = loaded.peak if BYTES[name] >= 2 else loaded.peak_bytes
                        peaks.append(200_000 * at_once * 2 / seconds(peak, 200_000))
                        if rows < MANY:
                            reads.append(MEMORY / seconds(loaded.stream, memory, MEMORY))
                taken = median(found)
                flops, rate = 2.0 * rows * k * n * matrices / taken, one * matrices / taken
                share = flops / (median(peaks) or math.nan)
                line = f"{k:>8} x {n:<6} {rows:>5} {name:>7} {flops / 1e9:>8.1f} {share:>8.3f}"
                line += f" {rate / 1e9:>7.1f} {rate / median(reads):>8.3f}" if reads else ""
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
