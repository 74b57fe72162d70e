"""The growing dimensions of an access to auto-dims, alone or as entries of a table (SPEC, 8.3).

    %r = index.max(%count, %i)                          check.range(%i, 0, 64)
    extent.bind(%r) {extent=@n}                   =>    state.set(%M.r, %r)
    %x = cache.read(%M, [%i]) : f32[n + 4, 8]           %x = state.load(%M, []) {lengths=[n + 4, 8]}

The extents of the result are bound before: to the counts as they will be.  Storage has the strides
of the capacity, so elements stay where they are when a count grows, and what it uncovers holds the
initial value.  A part (any slice) is read as it is, within the present counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oic.ir.core import Value
from oic.passes.state.emitter import FULL, INDEX, Emitter, Position, StateVariable


@dataclass(frozen=True)
class Growth:
    """What an access does to the growing dimensions; nothing where there are none.

    raised   by axis, what the access raises counts to
    counts   of every growing dimension, as they will be
    part     a part is read, as it is: positions select
    """

    raised: dict[int, Value]
    counts: list[Value]
    part: bool


def check_growth(e: Emitter, kept: StateVariable, rest: Sequence[Position]) -> Growth:
    """Check the positions of growing dimensions."""
    table = len(kept.type.table)
    if any(p.end is not None for p in rest):  # the part lies in the matrix as it is
        counts = present(e, kept)
        for axis, (position, base) in enumerate(zip(rest, kept.type.shape)):
            e.check_position(position, 0, e.plus(counts[axis], base), INDEX, kept.name(table + axis))
        return Growth({}, counts, True)
    for axis, (position, spec) in enumerate(zip(rest, kept.type.auto), table):
        e.check(position.start, 0, spec.capacity, FULL, kept.name(axis))
    counts = present(e, kept)
    grown = [e.most(count, position.start) for count, position in zip(counts, rest)]
    raised = {axis: position.start for axis, position in enumerate(rest, table)}
    return Growth(raised, grown + counts[len(rest) :], False)


def present(e: Emitter, kept: StateVariable) -> list[Value]:
    """The counts as they are."""
    table = len(kept.type.table)
    return [e.get(kept.counts[table + axis]) for axis in range(len(kept.type.auto))]


def grown_shape(e: Emitter, kept: StateVariable, counts: list[Value]) -> list[Any]:
    """Lengths of an entry with these counts of its growing dimensions."""
    if not counts:
        return list(kept.type.shape)
    return [e.plus(count, base) for count, base in zip(counts, kept.type.shape)]
