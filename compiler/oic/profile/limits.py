"""What the machine can do at most, measured by a C program that does nothing else."""

import ctypes
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oic.diagnostics import fail
from oic.toolchain.compiler import compile_c, find_compiler
from oic.toolchain.folders import scratch_folder
from oic.toolchain.target import target

SOURCE = Path(__file__).with_name("limits.c")
FLAGS = ("-std=gnu11", "-O3", "-ffp-contract=fast", "-fPIC", "-shared", "-pthread")
REGION = 256 << 20  # bytes: more than caches hold
STRETCHES = (1, 4, 8, 16)  # of memory that are read side by side
UNITS = {"f32": 1, "int8": 2, "bf16": 3}  # numbers of `peak` in limits.c
PROBE = 0.02  # seconds of one measurement of arithmetic, about


@dataclass(frozen=True)
class Limits:
    """Most that so many threads do at once.

    read   bytes per second, in order, from memory
    f32, int8, bf16   operations per second (a multiply-add is two); 0 where there is no instruction for them
    """

    threads: int
    read: float
    f32: float
    int8: float
    bf16: float


class Prober:
    """The program, compiled and loaded, with memory of its own to read."""

    def __init__(self) -> None:
        """Raises OicError: as `compile_c`, or `out-of-memory`."""
        with scratch_folder() as folder:
            library = folder / "liblimits.so"
            compile_c([*find_compiler(), *FLAGS, *target("host").flags, "-o", str(library), str(SOURCE)])
            self._lib = ctypes.CDLL(str(library))
        for name, takes, gives in SIGNATURES:
            function = getattr(self._lib, name)
            function.argtypes, function.restype = takes, gives
        self._region = self._lib.region(REGION)
        if not self._region:
            raise fail("out-of-memory", f"there are no {REGION:,} bytes to measure reading with")

    def read(self, threads: int = 1, nbytes: int = REGION) -> float:
        """Bytes per second, once through memory; of what a cache holds, as often as takes as long."""
        rounds = max(1, REGION // nbytes)
        return max(float(self._lib.streaming(self._region, nbytes, threads, n, rounds)) for n in STRETCHES)

    def peak(self, unit: str, threads: int = 1) -> float:
        """Operations per second of `f32`, `int8` or `bf16`; 0: there is no instruction."""
        short = self._lib.peak(UNITS[unit], threads, 1000)
        if not short:
            return 0.0
        rounds = max(1000, int(1000 * PROBE * short / (2 * 64 * 12 * 16 * 1000)))
        return float(self._lib.peak(UNITS[unit], threads, rounds))

    def clock(self) -> float:
        """Seconds that reading the clock takes."""
        return float(min(self._lib.clock_cost() for _ in range(5)))

    def limits(self, threads: int = 1, rounds: int = 5) -> Limits:
        """The limits of so many threads: the best of some rounds, since other work only lowers them."""
        read = max(self.read(threads) for _ in range(rounds))
        return Limits(threads, read, *(max(self.peak(unit, threads) for _ in range(rounds)) for unit in UNITS))


SIGNATURES: tuple[tuple[str, list[Any], Any], ...] = (
    ("region", [ctypes.c_size_t], ctypes.c_void_p),
    ("streaming", [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_long], ctypes.c_double),
    ("peak", [ctypes.c_int, ctypes.c_int, ctypes.c_long], ctypes.c_double),
    ("clock_cost", [], ctypes.c_double),
)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The median, and half of the distance between the quartiles as a share of it."""
    middle = statistics.median(values)
    low, _, high = statistics.quantiles(values, n=4) if len(values) > 3 else (min(values), middle, max(values))
    return middle, (high - low) / 2 / middle if middle else 0.0
