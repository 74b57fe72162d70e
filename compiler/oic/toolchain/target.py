"""How the compiler of a target is called, and what it says of its machine."""

from __future__ import annotations

import os
from dataclasses import replace

from oic.diagnostics import OicError, did_you_mean, fail
from oic.kernels.targets import NUMERICS, TARGETS
from oic.kernels.targets import Target as Target
from oic.toolchain.compiler import find_compiler, macros

LANGUAGE = "-std=c99"
# Where a * b + c is rounded is the code's decision; the arena is reused by buffers of other types.  The headers refuse
# what they can see (machine.h); without the first, results have other last bits, within the bounds.
MEANING = ("-ffp-contract=off", "-fno-strict-aliasing")
STANDARD = (LANGUAGE, "-O3", *MEANING)
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow")
SHARED = ("-fPIC", "-shared", "-fvisibility=hidden")


def target(name: str, numerics: str | None = None) -> Target:
    """The target of this name, with the features of the compiler that is there for it.

    numerics   class of sums of products; None: `fused` where a compiler says that the machine has it in one instruction

    For bare metal that compiler is the one that CC names, and without CC nothing is known.
    Raises OicError: `unknown-target`, `unknown-numerics`.
    """
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise fail(
            "unknown-target",
            f"there is no target '{name}' (there are {known})",
            hint=did_you_mean(name, TARGETS),
        )
    if numerics is not None and numerics not in NUMERICS:
        raise fail(
            "unknown-numerics",
            f"numerics are {' or '.join(NUMERICS)}, not '{numerics}'",
            hint=did_you_mean(numerics, NUMERICS),
        )
    found = TARGETS[name]
    found = found.seen(_macros(found))
    return found if numerics is None else replace(found, numerics=numerics)


def _macros(found: Target) -> dict[str, str]:
    """What the target's compiler defines; nothing where none is known."""
    if not found.hosted and not os.environ.get("CC"):
        return {}
    try:
        return macros((*find_compiler(), *found.flags))
    except OicError:  # the refusal comes when something is to be compiled
        return {}
