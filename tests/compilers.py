"""How compilers are called by tests that compile parts of the runtime themselves."""

from __future__ import annotations

import os
import shutil

from oic.toolchain.target import STANDARD, optimized


def level(whole: str) -> str:
    """Of optimisation, where it is not what is tested: -O0, in a third of the time; the whole one with OIC_EVERY_CASE=1.

    Kernels at -O2 and -O3, by gcc and by clang, are what is tested in `tests/examples/test_bits.py` and `test_other_builds_agree`.
    """
    return whole if os.environ.get("OIC_EVERY_CASE") else "-O0"


def optimizing(compiler: str) -> tuple[str, ...]:
    """The flags of optimisation that oic gives to a compiler; those for all, where it is missing."""
    levels = [f for f in STANDARD if f.startswith("-O")]
    return (*levels, *(f for f in optimized([compiler]) if f not in STANDARD)) if shutil.which(compiler) else (*levels,)
