"""Machines that code is generated for, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from oic.ir.encodings import ALIGN, WIDEST

FUSED, SEPARATE, NATIVE = "fused", "separate", "native"
NUMERICS = (FUSED, SEPARATE, NATIVE)
"""Classes of numerics (DESIGN, section 7): whether a step of a sum of float products is one rounding or two; or one,
and products with bf16 are the machine's own."""

# What a C compiler defines for a machine that has a feature; any one of the macros.
FEATURES: dict[str, tuple[str, ...]] = {
    "sse2": ("__SSE2__",),
    "avx": ("__AVX__",),
    "avx2": ("__AVX2__",),
    "avx512": ("__AVX512F__",),
    "avx512-vnni": ("__AVX512VNNI__",),
    "neon": ("__ARM_NEON",),
    "avx-vnni": ("__AVXVNNI__",),
    "dotprod": ("__ARM_FEATURE_DOTPROD",),
    "helium": ("__ARM_FEATURE_MVE",),
    "simd128": ("__wasm_simd128__",),
    "bf16": ("__AVX512BF16__", "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC"),  # products of pairs
    "fma": ("__FMA__", "__AVX512F__", "__aarch64__", "_ARCH_PPC", "__s390x__", "__FP_FAST_FMA"),  # of f32 and f64
}

WIDE = frozenset(("sse2", "avx", "avx2", "avx512", "neon", "simd128"))
"""Features of machines that read memory a cache line at a time.  Helium takes registers from where any element is."""

FOURS = frozenset(("avx512-vnni", "avx-vnni", "dotprod"))
"""Features with which four products of bytes are one of 32 bits (OIC_DOT_BYTES)."""


@dataclass(frozen=True)
class Costs:
    """What kernels cost on a machine, in bytes read from memory in order, which is what small products wait for.

    staged   a byte of an operand that is copied into another order before it is used
    strided  a byte of a matrix of which a stretch of each row is read, then one of the next
    line     a byte of memory is read with so many neighbours
    thread   multiplications and additions that are worth a thread (OIC_WORK_LEAST of `hosted/pool.h`)
    core     bytes that a core's own caches keep from step to step
    cores    bytes that the cache which cores share keeps
    """

    staged: float = 3.0
    strided: float = 1.25
    line: int = ALIGN
    thread: int = 32768
    core: int = 1 << 20
    cores: int = 1 << 24


@dataclass(frozen=True)
class InstructionSet:
    """One of several that a library may have code for: OIC_HAS_NAME of `hosted/processor.h` says whether it is there.

    machine  what the compiler defines for machines that may have it
    flags    of the compiler
    fours    it has one of FOURS
    """

    name: str
    machine: str
    flags: tuple[str, ...]
    fours: bool = False


INSTRUCTION_SETS = {
    s.name: s
    for s in (  # of a machine, each has all that those before it have; where zen5 is, intel is not
        InstructionSet("sse2", "__x86_64__", ("-march=x86-64",)),
        InstructionSet("avx2", "__x86_64__", ("-march=x86-64-v3",)),
        InstructionSet("avx512", "__x86_64__", ("-march=x86-64-v4",)),
        InstructionSet("vnni", "__x86_64__", ("-march=x86-64-v4", "-mavx512vnni"), fours=True),
        InstructionSet("intel", "__x86_64__", ("-march=x86-64-v4", "-mavx512vnni", "-DOIC_INTEL=1"), fours=True),
        InstructionSet("zen5", "__x86_64__", ("-march=x86-64-v4", "-mavx512vnni", "-mavxvnni", "-mavx512vp2intersect"),
                       fours=True),
        InstructionSet("neon", "__aarch64__", ("-march=armv8-a",)),
        InstructionSet("dotprod", "__aarch64__", ("-march=armv8.2-a+dotprod",), fours=True),
        InstructionSet("i8mm", "__aarch64__", ("-march=armv8.2-a+dotprod+i8mm",), fours=True),
    )
}


@dataclass(frozen=True)
class Target:
    """One machine.

    flags      of the C compiler, beside those of every target
    hosted     it has an operating system with mmap: the library is shared and can be loaded here, and tables without
               a bound get address space
    features   what it has, of FEATURES; as its compiler says
    numerics   class of sums of products, of NUMERICS
    sets       instruction sets that a library has code for, of which it chooses when a session is made; none: one, by
               the flags.  The features are then those that all of them have
    costs      by which kernels are chosen
    """

    name: str
    flags: tuple[str, ...] = ()
    hosted: bool = True
    features: frozenset[str] = frozenset()
    numerics: str = SEPARATE
    costs: Costs = field(default=Costs())
    sets: tuple[InstructionSet, ...] = ()

    def seen(self, macros: Mapping[str, str]) -> "Target":
        """The target with the features that the macros of its compiler tell, and the numerics that go with them."""
        found = frozenset(name for name, signs in FEATURES.items() if any(sign in macros for sign in signs))
        return replace(self, features=found, numerics=FUSED if "fma" in found else SEPARATE)

    @property
    def align(self) -> int:
        """Bytes at whose multiples buffers of the arena, constants and large variables of the state begin."""
        return ALIGN if self.hosted or self.features & WIDE else WIDEST

    @property
    def multiplies_fours(self) -> bool:
        """The target has, or some of the machines that the library has code for have, one of FOURS."""
        return bool(self.features & FOURS) or any(s.fours for s in self.sets)

    def has(self, needs: frozenset[str]) -> bool:
        """These features, or classes of numerics."""
        return needs <= self.features | {self.numerics}


TARGETS = {
    t.name: t
    for t in (
        Target("host", ("-march=native",)),
        Target("portable"),
        Target("freestanding", ("-DOIC_HOSTED=0",), hosted=False),
    )
}
