"""Many generated programs compiled into one library: starting the C compiler costs more than a small one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oic import Synthesizer
from tests.fuzz import batch_build as together


def build_together(made: Sequence[Synthesizer], folder: Path, *flags: str) -> None:
    """Emit every program into a folder of its own, compile all, and load each.

    flags   more of them for the C compiler
    """
    together.build_together(made, folder, ("-O0", *flags))
