"""Products of matrices have the bits of three plain loops, whatever the sizes, the types, the strides and the division."""

from __future__ import annotations

from ctypes import CDLL, c_ssize_t, c_void_p
from pathlib import Path

import numpy as np
import pytest

from compilers import level
from oic import dtypes
from oic.dtypes import Array
from oic.ir.encodings import PANELS, encoded
from oic.kernels.kernel import Instance
from oic.kernels.targets import TARGETS
from oic.toolchain.compiler import macros
from processor import AVX2
from runtime.native import INTEL, TOOLCHAINS, ZEN5, Toolchain

TYPES = [  # of x, w and y, and what is computed in
    ("f32", "f32", "f32"),
    ("f32", "bf16", "f32"),
    ("f32", "f16", "f32"),
    ("bf16", "bf16", "f32"),
    ("f64", "f64", "f64"),
]
SIZES = [  # M, K, N
    (1, 300, 130), (1, 0, 20), (1, 513, 7), (1, 256, 96), (2, 257, 65), (3, 40, 50), (4, 256, 33), (5, 31, 16), (6, 300, 17),
    (7, 5, 48), (8, 70, 100), (9, 258, 31), (13, 1, 1), (25, 33, 49), (50, 20, 40), (195, 3, 18), (0, 5, 5), (5, 0, 3), (3, 3, 0),
    (1, 300, 1801), (2, 520, 1030), (3, 260, 330), (4, 257, 280), (3, 520, 1030),  # few rows through shares of a w that caches may not hold
    (17, 300, 3110),  # more panels than go together
    *((1, 40, 16 * panels) for panels in (3, 5, 7, 8)), (2, 40, 128),  # all that are left go together
]  # fmt: skip

SOURCE = """
static void plain_{x}_{w}(const oic_stored_{x} *x, ptrdiff_t xm, ptrdiff_t xk, const oic_stored_{w} *w, ptrdiff_t wk, ptrdiff_t wn,
                          const oic_stored_{x} *b, oic_stored_{x} *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N)
{{
    for (ptrdiff_t i = 0; i < M; ++i) {{
        for (ptrdiff_t j = 0; j < N; ++j) {{
            oic_stored_{c} sum = 0, chain = 0;
            for (ptrdiff_t k = 0; k < K; ++k) {{
                if (k % 256 == 0) {{
                    sum += chain;
                    chain = 0;
                }}
                chain = oic_madd_{c}(oic_load_{x}(x, i * xm + k * xk), (oic_stored_{c})oic_load_{w}(w, k * wk + j * wn), chain);
            }}
            sum += chain;
            oic_store_{x}(y, i * N + j, b != NULL ? sum + oic_load_{x}(b, j) : sum);
        }}
    }}
}}

/* y[0] by plain loops, y[1] of panels, y[2] of rows, y[3] of columns, y[4] of a transposed x, each in parts of `share`. */
void products_{x}_{w}(const oic_stored_{x} *x, const oic_stored_{x} *across, const oic_stored_{w} *w, const oic_stored_{w} *columns,
                      const oic_stored_{w} *panels, const oic_stored_{x} *b, oic_stored_{x} *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,
                      ptrdiff_t share);
void products_{x}_{w}(const oic_stored_{x} *x, const oic_stored_{x} *across, const oic_stored_{w} *w, const oic_stored_{w} *columns,
                      const oic_stored_{w} *panels, const oic_stored_{x} *b, oic_stored_{x} *y, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,
                      ptrdiff_t share)
{{
    const ptrdiff_t one = M * N, units = (N + 15) / 16;
    plain_{x}_{w}(x, K, 1, w, 1, K, b, y, M, K, N);
    plain_{x}_{w}(x, K, 1, w, 1, K, NULL, y + one, M, K, N);
    for (ptrdiff_t first = 0; first < units; first += share) {{
        const ptrdiff_t end = units - first < share ? units : first + share;
        oic_linear_panels_part_{x}_{w}_{x}(&(oic_linear_panels_{x}_{w}_{x}_args){{
            .x = x, .w = panels, .b = b, .y = y + 2 * one, .M = M, .K = K, .N = N, .ldx = K}}, first, end, 0);
        oic_linear_part_{x}_{w}_{x}(&(oic_linear_{x}_{w}_{x}_args){{
            .x = x, .w = w, .b = b, .y = y + 3 * one, .M = M, .K = K, .N = N, .ldx = K, .ldw = K}}, first, end, 0);
        oic_matmul_part_{x}_{w}(&(oic_matmul_{x}_{w}_args){{
            .a = x, .b = columns, .y = y + 4 * one, .M = M, .K = K, .N = N, .am = K, .ak = 1, .bk = N, .bn = 1}}, first, end, 0);
        oic_matmul_part_{x}_{w}(&(oic_matmul_{x}_{w}_args){{
            .a = across, .b = w, .y = y + 5 * one, .M = M, .K = K, .N = N, .am = 1, .ak = M, .bk = 1, .bn = K}}, first, end, 0);
        {then}
    }}
}}
"""

THEN = """
        oic_linear_panels_part_{x}_{w}_{x}(&(oic_linear_panels_{x}_{w}_{x}_args){{
            .x = x, .w = panels, .b = b, .M = M, .K = K, .N = N, .ldx = K, .then = taken,
            .context = &(given){{y + 6 * one, N}}}}, first, end, 0);
"""
TAKEN = """
typedef struct { float *y; ptrdiff_t N; } given;

/* Each once: it was NaN before, and what comes again is doubled. */
static void taken(const void *context, const float *restrict sum, ptrdiff_t ld, ptrdiff_t first, ptrdiff_t end, ptrdiff_t from,
                  ptrdiff_t to)
{
    const given *const into = context;
    for (ptrdiff_t i = first; i < end; ++i) {
        for (ptrdiff_t j = from; j < to; ++j) {
            float *const y = into->y + i * into->N + j;
            const float v = sum[(i - first) * ld + j - from];
            *y = *y == *y ? 2 * v : v;
        }
    }
}
"""


PLAIN = Toolchain("gcc-plain", "gcc", ("-O0", "-march=native", "-DOIC_PORTABLE"))
EIGHT = Toolchain("gcc-avx2", "gcc", (level("-O2"), "-march=x86-64-v3"), AVX2)  # lanes of a register, also where the machine has more


def built(toolchain: Toolchain, folder: Path) -> CDLL:
    """Every type; of the class of the machine, and once with the small blocks of a machine without a system."""
    known = TARGETS["portable"].seen(macros((toolchain.command, *toolchain.flags)))
    text = f"#define OIC_FUSED {int(known.numerics == 'fused')}\n"
    text += "#define OIC_HOSTED 0\n" if "sanitized" in toolchain.name else ""
    taken = TAKEN
    for x, w, c in TYPES:
        for name, types in (("linear_panels", (x, w, x)), ("linear", (x, w, x)), ("matmul", (x, w))):
            text += Instance(f"kernels/{name}.h", types).text()
        text += taken + SOURCE.format(x=x, w=w, c=c, then=THEN.format(x=x, w=w) if x == "f32" else "")
        taken = ""
    return toolchain.library(text, folder, "products")


def unaligned(values: Array) -> Array:
    """The same numbers, an element past the start of their memory."""
    memory = np.empty(values.size + 1, values.dtype)
    memory[1:] = values.reshape(-1)
    return memory[1:]


def operands(rng: np.random.Generator, x: str, w: str, m: int, k: int, n: int) -> list[Array]:
    """x as it is and transposed, w by rows, by columns and in panels, b; some products are lost below the least number."""
    rows, weights, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (n, k), (n,)))
    rows[:, k // 2 :] *= np.float32(1e-25)
    weights[::3, k // 2 :] *= np.float32(1e-25)
    rows[:, : k // 2] *= rng.integers(0, 2, (m, k // 2)) if m > 1 else -0.0
    rows, weights, b = rows.astype(dtypes.ALL[x].np), weights.astype(dtypes.ALL[w].np), b.astype(dtypes.ALL[x].np)
    found = [rows, rows.T, weights, weights.T, encoded(weights, PANELS), b]
    return [unaligned(np.ascontiguousarray(a)) for a in found]


@pytest.mark.parametrize("toolchain", (*TOOLCHAINS, EIGHT, PLAIN, INTEL, ZEN5), ids=lambda t: t.name)
def test_every_bit_is_that_of_plain_loops(toolchain: Toolchain, tmp_path: Path) -> None:
    if toolchain.missing:
        pytest.skip(toolchain.missing)
    library, rng = built(toolchain, tmp_path), np.random.default_rng(0)
    for x, w, _ in TYPES:
        function = getattr(library, f"products_{x}_{w}")
        function.argtypes, function.restype = [c_void_p] * 7 + [c_ssize_t] * 4, None
        for m, k, n in SIZES:
            held = operands(rng, x, w, m, k, n)
            for share in (1, 3, 100):
                y = unaligned(np.full((7, m, n), np.nan, dtypes.ALL[x].np))
                function(*(a.ctypes.data for a in (*held, y)), m, k, n, share)
                whole = y.reshape(7, m * n)
                for at, name in enumerate(("panels", "rows", "columns", "across", "handed on")[: 5 if x == "f32" else 4], 2):
                    expected = whole[1 if name in ("columns", "across") else 0]
                    assert whole[at].tobytes() == expected.tobytes(), (x, w, name, m, k, n, share)
