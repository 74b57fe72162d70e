"""How compilers are called by tests that compile parts of the runtime themselves."""

from __future__ import annotations

import shutil

from oic.toolchain.target import STANDARD, optimized


def optimizing(compiler: str) -> tuple[str, ...]:
    """The flags of optimisation that oic gives to a compiler; those for all, where it is missing."""
    levels = [f for f in STANDARD if f.startswith("-O")]
    return (*levels, *(f for f in optimized([compiler]) if f not in STANDARD)) if shutil.which(compiler) else (*levels,)
