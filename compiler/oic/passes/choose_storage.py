"""Which storage each matrix gets where a size, or a bound on errors, is given instead of rules.

The error of a matrix is ‖ŵ - w‖ / ‖w‖, what its storage makes of it.

    a bound   each matrix gets the smallest storage whose error is within it
    a size    from the smallest storages on, the matrix whose next one takes away the most squared error a byte gets it,
              as long as all constants fit; a family counts as often as it has members
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from oic.ir.core import Value
from oic.ir.encodings import ALIGN, LAYOUTS, joined, nbytes
from oic.ir.types import TensorType
from oic.passes.pack_weights import may_have


@dataclass(frozen=True)
class Candidate:
    """A storage that a matrix may have: bytes at most, in any layout, and its error."""

    storage: str
    nbytes: int
    error: float


def filled(type_: TensorType, storage: str) -> int:
    """The most bytes that a constant of this type takes, on lines of its own."""
    shape = type_.maximum
    layouts = ("", *(layout for layout in LAYOUTS if may_have(type_, joined(storage, layout))))
    return max(-(-nbytes(type_.dtype, shape, joined(storage, layout)) // ALIGN) * ALIGN for layout in layouts)


def ladder(found: list[Candidate]) -> list[Candidate]:
    """From the smallest to the largest, each with less error than those before."""
    steps: list[Candidate] = []
    for candidate in sorted(found, key=lambda c: (c.nbytes, c.error)):
        if not steps or candidate.error < steps[-1].error:
            steps.append(candidate)
    return steps


def within(bound: float, found: Mapping[Value, list[Candidate]]) -> dict[Value, str]:
    """The smallest storage within a bound, for each."""
    return {value: next((c for c in steps if c.error <= bound), steps[-1]).storage for value, steps in found.items()}


def fitting(left: int, found: Mapping[Value, list[Candidate]]) -> dict[Value, str]:
    """Storages that together take so many bytes more than the smallest at most."""
    at = dict.fromkeys(found, 0)
    while True:
        better = [
            (_gain(value, steps[i], steps[j]) / (steps[j].nbytes - steps[i].nbytes), -n, value, j)
            for n, (value, steps) in enumerate(found.items())
            for i in (at[value],)
            for j in range(i + 1, len(steps))
            if steps[j].nbytes - steps[i].nbytes <= left
        ]
        if not better:
            return {value: steps[at[value]].storage for value, steps in found.items()}
        _, _, value, j = max(better, key=lambda entry: entry[:2])
        left -= found[value][j].nbytes - found[value][at[value]].nbytes
        at[value] = j


def _gain(value: Value, now: Candidate, then: Candidate) -> float:
    members = math.prod(value.tensor.maximum[:-2])
    return members * (now.error**2 - then.error**2)
