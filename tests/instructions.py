"""Instructions of compiled code that multiply and add in one rounding: none may be where a step is two.

Compilers are told not to contract (`-ffp-contract=off`); gcc makes some all the same of products side by side.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FUSED = re.compile(r"vfn?m(add|sub)\w*|fn?m(add|sub)|fml[as]l?2?|bfdot|bfmmla|vdpbf16ps")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")


def fused(path: Path, ours: str = "", command: str = "objdump") -> list[str]:
    """`function: instruction` for each of them in a library or program; skips the test without a disassembler.

    ours  what the names of functions that count begin with, a regular expression: beside those of a C library
    """
    if shutil.which(command) is None:
        pytest.skip(f"no {command}")
    call = [command, "-d", "--no-show-raw-insn", str(path)]
    text = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    found, function, seen = [], "", 0
    for line in text.splitlines():
        if line.endswith(">:") and (name := FUNCTION.match(line)):
            function = name[1] if re.match(ours, name[1]) else ""
        elif function and len(parts := line.split("\t")) > 1:
            seen += 1
            if FUSED.fullmatch(parts[1].split()[0]):
                found.append(f"{function}: {parts[1]}")
    assert seen, f"{path} has no code"
    return found
