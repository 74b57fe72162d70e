"""The bytes of a saved state, written, read and cut; `memory.saved` says what is in it, `runtime_c/state/saved.h` too.

Nothing in the bytes is trusted: whatever is wrong is a StepError, raised before any state has changed.  What was
read is written again: a state that differs from that in a byte is none that saving gives, and refused.
"""

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from oic import dtypes
from oic.diagnostics import StepError
from oic.dtypes import Array
from oic.ir.module import Truncation
from oic.memory.crc32c import crc32c
from oic.memory.layout import loaded
from oic.memory.saved import HEAD, RUN, VERSION, Form, Part
from oic.operators.refusal import beyond, impossible

MAGIC = b"OICSTAT\0"
START = struct.Struct("<8sIIQQ")  # magic, version, checksum, fingerprint, bytes of everything
PAIR = struct.Struct("<qq")
ByteArray = NDArray[np.uint8]
# Numbers of entries in order, and the bytes of each.
Entries = tuple[NDArray[np.int64], ByteArray]
assert START.size == HEAD and PAIR.size == RUN


@dataclass(frozen=True)
class Saved:
    """What a saved state says.

    counts    by symbol
    entries   of each part by symbol: those that differ from their start; of a part that is no table its one entry
    """

    counts: dict[str, int]
    entries: dict[str, Entries]


def write(form: Form, counts: dict[str, int], entries: Callable[[Part], Iterable[Entries]]) -> bytes:
    """A saved state.

    entries   of a table those that differ from their start, of another part its one entry
    """
    pieces = [np.array([counts[s] for s in form.counts], "<i8").tobytes()]
    for part in form.parts:
        found = list(entries(part))
        if part.table:
            pieces += _runs(found, part, counts)
        else:
            pieces += [rows.tobytes() for _, rows in found]
    body = b"".join(pieces)
    head = (form.fingerprint, HEAD + len(body))
    checksum = crc32c(START.pack(MAGIC, VERSION, 0, *head) + body)
    return START.pack(MAGIC, VERSION, checksum, *head) + body


def _runs(found: list[Entries], part: Part, counts: dict[str, int]) -> list[bytes]:
    """The runs of a table."""
    pieces: list[bytes] = []
    numbers = np.concatenate([n for n, _ in found]) if found else np.zeros(0, np.int64)
    if not len(numbers):
        return [struct.pack("<q", 0)]
    start = part.start(part.shape(counts))
    rows = np.concatenate([r for _, r in found])
    ends = np.flatnonzero((np.diff(numbers) - 1) * len(start) > RUN) + 1
    bounds = [0, *ends.tolist(), len(numbers)]
    for a, b in pairwise(bounds):
        first, count = int(numbers[a]), int(numbers[b - 1] - numbers[a]) + 1
        run = np.tile(start, (count, 1))  # with what lies between them
        run[numbers[a:b] - first] = rows[a:b]
        pieces += [PAIR.pack(first, count), run.tobytes()]
    return [struct.pack("<q", len(bounds) - 1), *pieces]


def read(form: Form, data: bytes) -> Saved:
    """What a saved state says.  Raises StepError `OIC_ERR_STATE` unless it is one that `write` gives."""
    if len(data) < HEAD or data[:8] != MAGIC:
        raise _refusal("this is not a saved state")
    magic, version, checksum, fingerprint, nbytes = START.unpack_from(data)
    if version != VERSION:
        raise _refusal(f"the saved state has version {version}, not {VERSION}")
    plain = START.pack(magic, version, 0, fingerprint, nbytes)
    if nbytes != len(data) or crc32c(plain + data[HEAD:]) != checksum:
        raise _refusal("the saved state is damaged")
    if fingerprint != form.fingerprint:
        hint = "of the graph's name and its persistent variables, with their sizes (--set, --max) and first values"
        raise _refusal("the saved state is of another graph", hint=hint)
    reader = _SavedReader(data[HEAD:])
    counts = {}
    for symbol, most in form.counts.items():
        counts[symbol] = reader.integer()
        if not 0 <= counts[symbol] <= most:
            raise _refusal(f"the count of '{symbol}' is {counts[symbol]} in the saved state")
    found = {part.symbol: _entries(part, counts, _read_part(part, counts, reader)) for part in form.parts}
    if reader.read(1):
        raise _refusal("the saved state is longer than what it says")
    again = zip(form.parts, form.parts[1:] + form.parts[:1])
    said = {part.symbol: _possible(part, counts, found, guard) for part, guard in again}
    if write(form, counts, lambda part: [said[part.symbol]]) != data:
        raise _refusal("the saved state is none that saving gives")
    return Saved(counts, found)


def _possible(part: Part, counts: dict[str, int], entries: dict[str, Entries], guard: Part) -> Entries:
    """The entries of a part that differ from their start and may be there, by the part after it, `guard`."""
    numbers, rows = entries[part.symbol]
    if part.guarded:
        slots = part.type.window if part.type.ring else 1
        known, values = entries[guard.symbol]
        limits = dict(zip(known.tolist(), values.reshape(-1).view(guard.dtype.np).tolist()))
        most = np.array([limits.get(n, 0) for n in (numbers // slots).tolist()], np.int64)
        numbers, rows = numbers[numbers % slots < most], rows[numbers % slots < most]
    if part.counted and (int(numbers[-1]) if len(numbers) else -1) != math.prod(part.entries(counts)) - 1:
        raise _refusal(f"the count of '{part.owner}' is none of its entries' in the saved state")
    return numbers, rows


def _entries(part: Part, counts: dict[str, int], runs: list[tuple[int, ByteArray]]) -> Entries:
    """What runs have that differs from its start; of a part that is no table its one entry."""
    if not runs:
        return np.zeros(0, np.int64), np.zeros((0, part.entry_bytes(counts)), np.uint8)
    numbers = np.concatenate([first + np.arange(len(rows)) for first, rows in runs])
    rows, shape = np.concatenate([rows for _, rows in runs]), part.shape(counts)
    rows = part.encoded(loaded(rows.reshape(-1), part.dtype, (len(rows), *shape), 1))
    if not part.table:
        return numbers, rows
    there = (rows != part.start(shape)).any(axis=1)
    return numbers[there], rows[there]


def entries_by_key(part: Part, found: Saved) -> Iterator[tuple[tuple[int, ...], Array]]:
    """What a saved state says of a part, as elements, by the indices of each entry."""
    shape, lengths = part.shape(found.counts), part.entries(found.counts)
    for number, row in zip(*found.entries[part.symbol]):
        key = tuple(map(int, np.unravel_index(number, lengths))) if lengths else ()
        yield key, loaded(row, part.dtype, shape, 0)


class _SavedReader(BytesIO):
    """What follows the head."""

    def take(self, count: int) -> ByteArray:
        """The next bytes."""
        if count > len(self.getbuffer()) - self.tell():
            raise _refusal("the saved state is shorter than what it says")
        return np.frombuffer(self.read(count), np.uint8)

    def integer(self) -> int:
        return int.from_bytes(self.take(8).tobytes(), "little", signed=True)


def _read_part(part: Part, counts: dict[str, int], reader: _SavedReader) -> list[tuple[int, ByteArray]]:
    """The runs of a part: the number of a first entry, and the bytes of it and of those after it."""
    nbytes = part.entry_bytes(counts)
    if not part.table:
        return [(0, _checked(part, reader.take(nbytes)).reshape(1, nbytes))]
    total, end = math.prod(part.entries(counts)), 0
    found = []
    number = reader.integer()
    if number < 0:
        raise _refusal(f"'{part.symbol}' has {number} runs in the saved state")
    for _ in range(number):
        first, count = reader.integer(), reader.integer()
        if count < 1 or first < end or first + count > total or nbytes == 0:
            raise _refusal(f"entries of '{part.symbol}' are out of order in the saved state")
        end = first + count
        found.append((first, _checked(part, reader.take(count * nbytes)).reshape(count, nbytes)))
    return found


def _checked(part: Part, data: ByteArray) -> ByteArray:
    if part.most is not None:
        values = data if part.dtype.bits == 8 else dtypes.unpack(data, dtypes.i64, len(data) // 8)
        if len(values) and not (int(values.min()) >= 0 and int(values.max()) <= part.most):
            raise _refusal(f"'{part.symbol}' has values in the saved state that it cannot have")
    return data


def _refusal(what: str, hint: str | None = None) -> StepError:
    return StepError("OIC_ERR_STATE", what, hint=hint)


# ---------------------------------------------------------------- without the last positions


def truncated(form: Form, how: Truncation, data: bytes, n: int) -> bytes:
    """The state that was saved, as if its last `n` positions had not been fed.

    The runtime takes them back where they lie (`runtime_c/state/truncate.h`).
    Raises StepError OIC_ERR_INDEX where there are not so many, or a ring has overwritten what they would bring back,
    and OIC_ERR_STATE where the counter is below its start.
    """
    found = read(form, data)
    parts = {part.symbol: part for part in form.parts}
    counter = parts[how.counter]
    end = int(loaded(found.entries[how.counter][1][0], counter.dtype, (), 0))
    if end < how.first:
        raise impossible(how.counter, end)
    from_, empty = end - n, end - n == how.first
    if n < 0 or from_ < how.first:
        raise beyond("OIC_ERR_INDEX", how.counter, n, 0 if n < 0 else end - how.first)
    if n == 0:
        return data
    for symbol, axis in how.tables.items():
        part = parts[symbol]
        if part.type.ring and end > part.type.window and not empty:
            window = part.type.window
            raise beyond("OIC_ERR_INDEX", f"{symbol}.{part.table[axis].name}", max(0, from_ - window), end - window)
    counts = dict(found.counts)
    for symbol, axis in how.tables.items():
        for i, index in enumerate(parts[symbol].table):
            if index.count and (empty or i == axis):
                counts[index.count] = 0 if empty else from_

    def entries(part: Part) -> list[Entries]:
        numbers, rows = found.entries[part.symbol]
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
    numbers, rows = found.entries[part.symbol]
    at: tuple[Array, ...] = np.unravel_index(numbers, part.entries(found.counts))
    kept = at[axis] < end
    numbers = np.zeros(0, np.int64)
    if kept.any():
        numbers = np.ravel_multi_index(tuple(index[kept] for index in at), part.entries(counts)).astype(np.int64)
    return numbers, rows[kept]
