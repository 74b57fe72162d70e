"""How the compiler of a target is called, and what it says of its machine."""

import os
from collections.abc import Sequence
from dataclasses import replace

from oic.diagnostics import OicError, did_you_mean, fail, listed
from oic.kernels import targets
from oic.kernels.targets import Target as Target
from oic.toolchain.compiler import find_compiler, macros, words_of

LANGUAGE = "-std=c99"
# Where a * b + c is rounded is the code's decision; the arena is reused by buffers of other types.  The headers refuse
# what they can see (machine.h); without the first, results have other last bits, within the bounds.  Errno is not read
# after a square root: without the last it is a call.
MEANING = ("-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno")
STANDARD = (LANGUAGE, "-O3")
# At -O3 gcc has a copy of a loop for every answer of a test within, for strides of one, and of a function for constants
# that it is called with.  Kernels are written with the copies that pay; these make programs no faster, the code half as
# large again and its compilation longer by as much.
ONE_COPY = ("-fno-unswitch-loops", "-fno-split-loops", "-fno-version-loops-for-strides", "-fno-ipa-cp-clone")
ONE_COPY_SINCE = 9  # version of gcc that has them all
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow")
SHARED = ("-fPIC", "-shared", "-fvisibility=hidden")


def optimized(compiler: Sequence[str]) -> tuple[str, ...]:
    """The flags with which this compiler is called for every target, before those of the target.

    What the user has in OIC_CFLAGS, another level or names for a debugger, is not the last word on what code means.
    Raises OicError: `no-compiler`.
    """
    known = macros(tuple(compiler))
    version = "" if "__clang__" in known else known.get("__GNUC__", "")
    copies = ONE_COPY if version.isdecimal() and int(version) >= ONE_COPY_SINCE else ()
    return (*STANDARD, *copies, *words_of("OIC_CFLAGS"), *MEANING)


def target(name: str, numerics: str | None = None, dispatch: str = "") -> Target:
    """The target of this name, with the features of the compiler that is there for it.

    numerics   class of sums of products; None: `fused` where a compiler says that the machine has it in one instruction
    dispatch   instruction sets to have code for, separated by commas, or `all` that the class allows; "": one

    For bare metal that compiler is the one that CC names, and without CC nothing is known.
    Raises OicError: `unknown-target`, `unknown-numerics`, `native-numerics`, `dispatch-target`, `dispatch-numerics`,
    `unknown-instruction-set`.
    """
    if name not in targets.TARGETS:
        message = f"there is no target '{name}' (there are {', '.join(targets.TARGETS)})"
        raise fail("unknown-target", message, hint=did_you_mean(name, targets.TARGETS))
    if numerics is not None and numerics not in targets.NUMERICS:
        message = f"numerics are {listed(targets.NUMERICS, 'or')}, not '{numerics}'"
        raise fail("unknown-numerics", message, hint=did_you_mean(numerics, targets.NUMERICS))
    found = _known_here(targets.TARGETS[name])
    found = found.seen(_macros(found)) if not dispatch else _dispatched(found, numerics, dispatch)
    native = numerics == targets.NATIVE and "-march=native" in targets.TARGETS[name].flags  # of this very machine
    if native and found.features and "bf16" not in found.features:
        raise fail(
            "native-numerics",
            "this machine has no products of bf16 of its own, and numerics are 'native'",
            hint="build with --numerics fused; or for another machine: --target portable, and its flags "
            "(-mavx512bf16, -march=armv8.6-a) when the C is compiled",
        )
    return found if numerics is None else replace(found, numerics=numerics)


def _known_here(found: Target) -> Target:
    """The target with the flag by which its compiler knows this machine: some have `-mcpu=native` alone, or none."""
    for flags in (found.flags, ("-mcpu=native",), ()) if "-march=native" in found.flags else ():
        if _macros(replace(found, flags=flags)):
            return replace(found, flags=flags)
    return found


def _dispatched(found: Target, numerics: str | None, dispatch: str) -> Target:
    """The target with several instruction sets, in the class that all of them have."""
    if not found.hosted:
        hint = "leave out --dispatch; the compiler's flags name the machine"
        raise fail("dispatch-target", f"code for the target '{found.name}' has one instruction set", hint=hint)
    if numerics == targets.NATIVE:
        message = "code for several instruction sets has the same bits on all, and numerics are 'native'"
        raise fail("dispatch-numerics", message, hint="leave out --dispatch, or build with --numerics fused")
    plain = replace(found, flags=tuple(f for f in found.flags if not f.startswith("-m")))
    kinds = {s: plain.seen(_macros(replace(plain, flags=s.flags))) for s in _named_sets(plain, dispatch)}
    without = [s.name for s, kind in kinds.items() if kind.numerics != targets.FUSED]
    if numerics == targets.FUSED and dispatch == "all":
        kinds = {s: kind for s, kind in kinds.items() if kind.numerics == targets.FUSED}
    elif numerics == targets.FUSED and without:
        message = f"{' and '.join(without)} cannot multiply and add in one rounding, and numerics are 'fused'"
        hint = f"leave out {', '.join(without)}, or build with --numerics separate"
        raise fail("dispatch-numerics", message, hint=hint)
    separate = any(kind.numerics != targets.FUSED for kind in kinds.values())
    return replace(
        plain, features=frozenset.intersection(*(kind.features for kind in kinds.values())),
        numerics=targets.SEPARATE if separate else targets.FUSED, sets=tuple(kinds),
    )  # fmt: skip


def _named_sets(plain: Target, dispatch: str) -> list[targets.InstructionSet]:
    """Those that an option names, in the order of INSTRUCTION_SETS, all of the compiler's machine."""
    known = {name: s for name, s in targets.INSTRUCTION_SETS.items() if s.machine in _macros(plain)}
    names = list(known) if dispatch == "all" else [n.strip() for n in dispatch.split(",")]
    for name in names:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "none is known of it"
            message = f"the compiler's machine has no instruction set '{name}' ({there})"
            raise fail("unknown-instruction-set", message, hint=did_you_mean(name, known))
    if not names:
        raise fail("unknown-instruction-set", "no instruction sets of the compiler's machine are known")
    return [s for name, s in known.items() if name in names]


def _macros(found: Target) -> dict[str, str]:
    """What the target's compiler defines; nothing where none is known."""
    if not found.hosted and not os.environ.get("CC"):
        return {}
    try:
        return macros((*find_compiler(), *words_of("OIC_CFLAGS"), *found.flags))
    except OicError:  # the refusal comes when something is to be compiled
        return {}
