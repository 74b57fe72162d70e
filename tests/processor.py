"""What the processor that tests run on has."""

from __future__ import annotations

from pathlib import Path

AVX2 = ("avx2", "bmi2", "f16c", "fma")
AVX512 = (*AVX2, "avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512cd")


def features() -> frozenset[str]:
    """Its flags, as Linux names them; none where that is not known."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    return frozenset(text.partition("flags")[2].partition("\n")[0].split())
