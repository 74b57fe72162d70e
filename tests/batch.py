"""Many generated programs compiled by one call of the C compiler into one library.

Starting the compiler and reading its headers costs more than the small programs of a test; names of
different graphs do not clash, so their sources link together.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from oic import Synthesizer
from oic.backend.build import find_compiler, load
from oic.backend.target import SHARED, WARNINGS

FLAGS = ("-std=c99", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", *SHARED, *WARNINGS, "-Werror")


def build_together(made: Sequence[Synthesizer], folder: Path, *flags: str) -> None:
    """Emit every program into a folder of its own, compile all, and load each.

    flags   more of them for the C compiler
    """
    files = [syn.emit(folder / f"p{i}") for i, syn in enumerate(made)]
    names = [f.name for f in files]
    assert len(set(names)) == len(names), "two programs of one name cannot share a library"
    library = folder / "libtogether.so"
    sources = [str(path) for f in files for path in f.sources]
    call = [*find_compiler(), *FLAGS, *flags, "-o", str(library), *sources, "-lm"]
    done = subprocess.run(call, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[:6000]
    for syn, written in zip(made, files, strict=True):
        syn._synthesizer.library = load(written, library)
