"""A saved state without its last positions, which `runtime_c/state/truncate.h` takes back where they lie."""

import numpy as np

from oic import dtypes
from oic.diagnostics import StepError
from oic.dtypes import Array
from oic.ir.module import Truncation
from oic.memory.layout import loaded
from oic.memory.saved import Form, Part
from oic.operators.refusal import impossible
from oic.reference.saved import Entries, Saved, entries_of, read, write


def truncated(form: Form, how: Truncation, data: bytes, n: int) -> bytes:
    """The state that was saved, as if its last `n` positions had not been fed.

    Raises StepError OIC_ERR_INDEX where there are not so many, or a ring has overwritten what they would bring back,
    and OIC_ERR_STATE where the counter is below its start.
    """
    found = read(form, data)
    parts = {part.symbol: part for part in form.parts}
    counter = parts[how.counter]
    end = int(loaded(found.runs[how.counter][0][1].reshape(-1), counter.dtype, (), 0))
    if end < how.first:
        raise impossible(how.counter, end)
    from_, empty = end - n, end - n == how.first
    if n < 0 or from_ < how.first:
        raise _refusal(how.counter, n, 0 if n < 0 else end - how.first)
    if n == 0:
        return data
    for symbol, axis in how.tables.items():
        part = parts[symbol]
        if part.type.ring and end > part.type.window and not empty:
            window = part.type.window
            raise _refusal(f"{symbol}.{part.table[axis].name}", max(0, from_ - window), end - window)
    counts = dict(found.counts)
    for symbol, axis in how.tables.items():
        for i, index in enumerate(parts[symbol].table):
            if index.count and (empty or i == axis):
                counts[index.count] = 0 if empty else from_

    def entries(part: Part) -> list[Entries]:
        numbers, rows = entries_of(part, found.counts, found.runs[part.symbol])
        if part is counter:
            rows[:] = part.encoded(dtypes.store(np.asarray([from_]), part.dtype))
        elif part.owner in how.tables and part.symbol == part.owner:
            return [_before(part, how.tables[part.owner], 0 if empty else from_, found, counts)]
        elif part.owner in how.tables:  # where its rings end
            if empty and part.table:
                return []
            rows[:] = part.encoded(np.full(1, 0 if empty else from_, np.int64))
        return [(numbers, rows)]

    return write(form, counts, entries)


def _before(part: Part, axis: int, end: int, found: Saved, counts: dict[str, int]) -> Entries:
    """The entries of a table before a position, numbered within its new counts."""
    numbers, rows = entries_of(part, found.counts, found.runs[part.symbol])
    at: tuple[Array, ...] = np.unravel_index(numbers, part.entries(found.counts))
    kept = at[axis] < end
    numbers = np.zeros(0, np.int64)
    if kept.any():
        numbers = np.ravel_multi_index(tuple(index[kept] for index in at), part.entries(counts)).astype(np.int64)
    return numbers, rows[kept]


def _refusal(variable: str, value: int, bound: int) -> StepError:
    what = f"'{variable}': {value} is {'above' if value > bound else 'below'} {bound}"
    return StepError("OIC_ERR_INDEX", what, variable=variable, index=value, bound=bound)
