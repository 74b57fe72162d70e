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
from oic.ir.dims import Dim
from oic.passes.state.emitter import FULL, INDEX, Emitter, Position, StateVariable


@dataclass(frozen=True)
class Growth:
    """What an access does to the growing dimensions; nothing where there are none.

    scalars  positions that raise counts
    counts   of every growing dimension, as they will be
    part     a part is read, as it is: positions select
    """

    scalars: list[Position]
    counts: list[Value]
    part: bool


def check_growth(e: Emitter, kept: StateVariable, rest: Sequence[Position]) -> Growth:
    """Check the positions of growing dimensions."""
    table = len(kept.type.table)
    if any(p.end is not None for p in rest):  # the part lies in the matrix as it is
        counts = present(e, kept)
        for axis, (position, base) in enumerate(zip(rest, kept.type.shape)):
            e.check_position(position, 0, e.plus(counts[axis], base), INDEX, kept.name(table + axis))
        return Growth([], counts, True)
    for axis, (position, spec) in enumerate(zip(rest, kept.type.auto), table):
        e.check(position.start, 0, spec.capacity, FULL, kept.name(axis))
    counts = present(e, kept)
    grown = [e.most(count, position.start) for count, position in zip(counts, rest)]
    return Growth(list(rest), grown + counts[len(rest) :], False)


def set_counts(e: Emitter, kept: StateVariable, growth: Growth, stored: Dim = 1) -> None:
    """Raise the counts of scalar positions, if anything is stored."""
    for axis, position in enumerate(growth.scalars, len(kept.type.table)):
        e.raise_to(kept.counts[axis], e.when(e.size(stored), position.start))


def present(e: Emitter, kept: StateVariable) -> list[Value]:
    """The counts as they are."""
    table = len(kept.type.table)
    return [e.get(kept.counts[table + axis]) for axis in range(len(kept.type.auto))]


def grown_shape(e: Emitter, kept: StateVariable, counts: list[Value]) -> list[Any]:
    """Lengths of an entry with these counts of its growing dimensions."""
    if not counts:
        return list(kept.type.shape)
    return [e.plus(count, base) for count, base in zip(counts, kept.type.shape)]


def reached(e: Emitter, kept: StateVariable, growth: Growth) -> dict[int, Value]:
    """How far entries go along their dimensions of the storage, for variables with counts."""
    table = len(kept.type.table)
    return {
        table + i: e.plus(count, base)
        for i, (count, base) in enumerate(zip(growth.counts, kept.type.shape))
        if table + i in kept.filled
    }
