"""Machines that code is generated for, and how their compiler is called."""

from __future__ import annotations

from dataclasses import dataclass

from oic.diagnostics import did_you_mean, fail


@dataclass(frozen=True)
class Target:
    """One machine.

    flags     of the C compiler, beside those of every target
    hosted    it has an operating system with mmap; the library is shared and can be loaded here
    reserve   bytes of address space that an unbounded variable may be given; 0: none
    """

    name: str
    flags: tuple[str, ...]
    hosted: bool
    reserve: int


LANGUAGE = "-std=c99"
# a*b+c is rounded twice, as in the reference; the arena is reused by buffers of other types.  The headers refuse
# what they can see (machine.h); without the first, results have other last bits, within the bounds.
MEANING = ("-ffp-contract=off", "-fno-strict-aliasing")
STANDARD = (LANGUAGE, "-O3", *MEANING)
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow")
SHARED = ("-fPIC", "-shared", "-fvisibility=hidden")

TARGETS = {
    t.name: t
    for t in (
        Target("host", ("-march=native",), True, 64 << 30),
        Target("portable", (), True, 64 << 30),
        Target("freestanding", ("-DOIC_HOSTED=0",), False, 0),
    )
}


def target(name: str) -> Target:
    """The target of this name; `OicError` `unknown-target` if there is none."""
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise fail(
            "unknown-target",
            f"there is no target '{name}' (there are {known})",
            hint=did_you_mean(name, TARGETS),
        )
    return TARGETS[name]
