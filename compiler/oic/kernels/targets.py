"""Machines that code is generated for, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

FUSED, SEPARATE = "fused", "separate"
NUMERICS = (FUSED, SEPARATE)
"""Classes of numerics: whether a step of a sum of float products is one rounding or two (DESIGN, section 7)."""

# What a C compiler defines for a machine that has a feature; any one of the macros.
FEATURES: dict[str, tuple[str, ...]] = {
    "sse2": ("__SSE2__",),
    "avx": ("__AVX__",),
    "avx2": ("__AVX2__",),
    "avx512": ("__AVX512F__",),
    "avx512-vnni": ("__AVX512VNNI__",),
    "avx512-bf16": ("__AVX512BF16__",),
    "neon": ("__ARM_NEON",),
    "dotprod": ("__ARM_FEATURE_DOTPROD",),
    "helium": ("__ARM_FEATURE_MVE",),
    "simd128": ("__wasm_simd128__",),
    "fma": ("__FMA__", "__AVX512F__", "__aarch64__", "_ARCH_PPC", "__s390x__", "__FP_FAST_FMA"),  # of f32 and f64
}


@dataclass(frozen=True)
class Costs:
    """What kernels cost on a machine, in bytes read from memory in order, which is what small products wait for.

    staged   a byte of an operand that is copied into another order before it is used
    strided  a byte of a matrix of which a stretch of each row is read, then one of the next
    line     a byte of memory is read with so many neighbours
    thread   multiplications and additions that are worth a thread (OIC_WORK_LEAST of `hosted/pool.h`)
    """

    staged: float = 3.0
    strided: float = 1.25
    line: int = 64
    thread: int = 32768


@dataclass(frozen=True)
class Target:
    """One machine.

    flags      of the C compiler, beside those of every target
    hosted     it has an operating system with mmap: the library is shared and can be loaded here, and tables without
               a bound get address space
    features   what it has, of FEATURES; as its compiler says
    numerics   class of sums of products, of NUMERICS
    costs      by which kernels are chosen
    """

    name: str
    flags: tuple[str, ...] = ()
    hosted: bool = True
    features: frozenset[str] = frozenset()
    numerics: str = SEPARATE
    costs: Costs = field(default=Costs())

    def seen(self, macros: Mapping[str, str]) -> Target:
        """The target with the features that the macros of its compiler tell, and the numerics that go with them."""
        found = frozenset(name for name, signs in FEATURES.items() if any(sign in macros for sign in signs))
        return replace(self, features=found, numerics=FUSED if "fma" in found else SEPARATE)


TARGETS = {
    t.name: t
    for t in (
        Target("host", ("-march=native",)),
        Target("portable"),
        Target("freestanding", ("-DOIC_HOSTED=0",), hosted=False),
    )
}
