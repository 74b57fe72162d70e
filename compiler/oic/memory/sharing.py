"""Which values of a function may share memory.

Two values share a buffer only if the first is no longer needed when the second is written, or is
needed for the last time by the very op that writes it, in place.  In a box, an entry of the state or a
part of another value, nothing may look at what was there from the first write to the op that puts the
value there, and the step may not be refused in between.
"""

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from heapq import merge

from oic.ir.control import Barrier, For, If, Parallel
from oic.ir.core import Block, Op, Value, home_of, is_index, sizes_used
from oic.ir.grouping import by_key
from oic.ir.index import ExtentBind, IndexOp
from oic.ir.liveness import Liveness, liveness
from oic.ir.ranges import Ranges
from oic.ir.state import StateGet, StateLoad
from oic.ir.strides import is_dense
from oic.ir.types import TensorType
from oic.memory import state_regions
from oic.memory.intervals import Intervals
from oic.memory.layout import storage_strides
from oic.memory.views import root, strides_of, whole_root
from oic.operators.base import Operator
from oic.operators.fused import Copy, Fused
from oic.operators.late import state_writers
from oic.operators.part import Insert

LATE = "needed after its destination changes"
CHANGED = "needed after what it is a part of may have changed"


@dataclass(eq=False)
class Storage:
    """A buffer in the making: the values that share it.

    store   of a box, in the state or in another value: the op that puts there what was computed in it
    lives   the values by the positions at which they are needed
    """

    name: str
    space: str
    values: list[Value] = field(default_factory=list)
    store: state_regions.Put | None = None
    lives: Intervals[Value] = field(default_factory=Intervals)

    def put(self, value: Value, live: Liveness) -> None:
        """One more value lies here."""
        self.values.append(value)
        self.lives.add(live.defined(value), live.needed(value), value)


class Sharing:
    """The lives of a function's values, and what its ops do to the state."""

    def __init__(self, body: Block) -> None:
        ops = list(body.all_ops())
        self.ranges = Ranges(ops)
        self.binds = [op for op in ops if isinstance(op, ExtentBind)]
        self.refusing = [op for op in ops if self.ranges.refuses(op) or isinstance(op, Barrier)]
        self.writers = state_writers(body)
        touched = by_key((s, op) for op in ops if op.reads or op.writes for s in op.touched())
        # What accesses each state, in program order.
        self.accesses = {s: state_regions.Accesses(found, self.ranges, self._lives) for s, found in touched.items()}
        self._number(body)

    def _number(self, body: Block) -> None:
        """Find the positions of ops, and what depends on them."""
        self.live = liveness(body)
        self._known: dict[Value, int] = {}
        self.addressed: dict[Value, bool] = {}  # of numbers in expressions, as far as asked: some user wants an address
        # The position from which on an extent is known, and those at which each state is written.
        self.sizes = {op.extent: self.live.end[op] + 1 for op in self.binds}
        self.written = {state: [self.live.start[op] for op in found] for state, found in self.writers.items()}

    def copied(self, body: Block) -> "Sharing":
        """The same once values have been copied, which accesses no state, moves no op and refuses nothing."""
        found = copy(self)
        found.accesses = {state: accesses.kept_as(found._lives) for state, accesses in self.accesses.items()}
        found._number(body)
        return found

    def _lives(self, ops: Sequence[Op]) -> Intervals[Op]:
        """Accesses, those of loads for as long as what they load is needed."""
        found: Intervals[Op] = Intervals()
        for op in ops:
            first = self.live.start[op]
            last = self.live.needed(op.result) if isinstance(op, StateLoad) else first
            found.add(first, max(first, last), op)
        return found

    def clash(self, value: Value, storage: Storage, *, over: bool = True) -> bool:
        """Another value of the storage is needed while this one is, other than to be written over.

        over   whether one may be written over the other by the op that needs it last

        That of a loop's result not yet there starts with the loop, which writes it in every iteration;
        once it is there, what the loop computes and carries there is counted instead.  Of the result
        of an `if` only the branches write, by values of their own.
        """
        here = self.live.defined(value) if value in storage.values else self.lives(value)[0]
        met = storage.lives.meeting(here, self.live.needed(value))
        return any(self._together(value, here, v, over) for v in met if v is not value)

    def lives(self, value: Value) -> tuple[int, int]:
        """The first and the last position that matter to `clash`, whatever the storage."""
        loop = value.op if isinstance(value.op, (For, Parallel)) else None
        first = self.live.start[loop] if loop is not None else self.live.defined(value)
        return first, self.live.needed(value)

    def _together(self, value: Value, here: int, other: Value, over: bool) -> bool:
        """Both are needed at one time; `value` from the position `here` on."""
        until = self.live.needed(value, home_of(other))
        first, last = self.live.defined(other), self.live.needed(other, home_of(value))
        if last < here or first > until:
            return False
        if last == here and value.op is not None:
            return not (over and takes_over(value.op, other, value))
        if first == until and other.op is not None:
            return not (over and takes_over(other.op, value, other))
        return True

    def why_no_entry(self, value: Value, storage: Storage) -> str:
        """Why a value cannot be computed in the box that it will be put into; "" if it can."""
        store = storage.store
        assert store is not None
        box = state_regions.Box.of(store)
        if why := _why_not_dense(store, box):
            return why
        assert value.op is not None
        if not value.op.inside(store.home):
            return "from outside the region"
        first, last = self.live.start[value.op], self.live.start[store]
        until = self.live.needed(value)
        sizes = [self.sizes.get(extent, 0) for extent in sizes_used(store)]
        if any(at > first for at in [*sizes, *map(self.known, store.offsets)]):
            return "its position is known only later"
        at = bisect_left(self.refusing, first, key=self.live.start.__getitem__)
        if at < len(self.refusing) and self.live.start[op := self.refusing[at]] < last:
            barred = isinstance(op, Barrier)
            return "there is a barrier before the store" if barred else refused(op)
        if isinstance(store, Insert):
            return self._why_no_part(store, first, until)
        around = (accesses.meeting(first, until) for accesses in self.accesses[store.state].around(box))
        for op in merge(*around, key=self.live.start.__getitem__):
            own = isinstance(op, StateLoad) and (op.result is value or op.result in storage.values)
            if op is not store and not own and self._meets(op, value, box, (first, last, until)):
                return used(op)
        return ""

    def _why_no_part(self, insert: Insert, first: int, until: int) -> str:
        """Why a part of a tensor cannot be computed in place from `first` on and needed `until` then.

        From `first` to the `insert` the tensor keeps its memory, and is not looked at.  After that the
        result must keep its memory on every way for as long as the part is needed: only what uses
        the result may write over it, so all of that comes later, and some of it in any case.
        """
        whole, last = root(insert.x), self.live.start[insert]
        if self.live.defined(whole) >= first:
            return "what it is a part of is computed only later"
        for user in self.users(whole):
            if user is not insert and first <= self.live.start[user] <= last:
                return f"what it is a part of is used while it is computed{_line(user)}"
        if until <= last:
            return ""
        users = [u for u in self.users(insert.result) if not u.view]
        kept = any(u.block is insert.block for u in users)
        after = all(self.live.start[u] > until for u in users)
        return "" if kept and after else CHANGED

    def users(self, value: Value) -> list[Op]:
        """What uses a value or a view of it."""
        return [u for view in self.live.views(value) for u in self.live.users(view)]

    def known(self, value: Value) -> int:
        """The first position at which an integer can be computed: arithmetic may move."""
        waiting = [value]
        while waiting:  # no recursion: a chain of increments may be thousands of ops long
            op = waiting[-1].op
            inputs = [v for v in op.operands if is_index(v)] if op and movable(op, self.ranges) else []
            missing = [v for v in inputs if v not in self._known]
            if missing:
                waiting += missing
            else:
                before = max((self._known[v] for v in inputs), default=0)
                self._known[waiting.pop()] = max(before, self._alone(op))
        return self._known[value]

    def _alone(self, op: Op | None) -> int:
        """The first position at which an op can give an integer, were its operands known."""
        if op is None:
            return 0
        if not movable(op, self.ranges):
            return self.live.end[op] + 1
        after = [self.sizes.get(extent, 0) for extent in sizes_used(op)]
        if isinstance(op, StateGet):
            writes = self.written.get(op.state, [])
            before = bisect_left(writes, self.live.start[op])
            after += [writes[before - 1] + 1] if before else []
        return max(after, default=0)

    def _meets(self, op: Op, value: Value, box: state_regions.Box, window: tuple[int, int, int]) -> bool:
        """An access sees the entry before it is stored, or changes it while it is needed."""
        first, last, until = window
        at = self.live.start[op]
        if at > until or (at >= last and not op.touched("write")):
            return False
        if isinstance(op, StateLoad):
            needed = self.live.needed(op.result, home_of(value))
            if needed < first or state_regions.apart(box, state_regions.Box.of(op), self.ranges):
                return False
            if value.op is None or not state_regions.same(box, state_regions.Box.of(op), self.ranges):
                return True
            if isinstance(value.op, If):  # what the branches compute is looked at by itself
                return at > first or needed > self.live.end[value.op]
            return needed > first or not takes_over(value.op, op.result, value)
        return at >= first and not state_regions.is_apart(op, box, self.ranges)


def refused(op: Op) -> str:
    """Why what is stored after an op that may refuse the step is not computed in its entry."""
    return f"the step may be refused before it is stored{_line(op)}"


def used(op: Op) -> str:
    """Why what is stored is not computed in its entry, an access of the state being in between."""
    return f"the state is used while it is computed{_line(op)}"


def _line(op: Op) -> str:
    return f" (line {op.span.line})" if op.span is not None else ""


def movable(op: Op, ranges: Ranges) -> bool:
    """Index arithmetic that depends on its operands alone, or an integer of the state."""
    return isinstance(op, (IndexOp, StateGet)) and not ranges.refuses(op)


def _why_not_dense(put: state_regions.Put, box: state_regions.Box) -> str:
    """Why the box of a state or of a tensor is no memory that any op could compute in."""
    if isinstance(put, Insert):
        where, cut, strides = "its place", "begin or end", strides_of(put.x)
        whole = not put.x.dtype.packed or state_regions.whole_bytes(box, strides)
    else:
        type_ = put.state.state_type
        where, cut, strides = "its place in the state", "begin", storage_strides(type_)
        whole = not type_.dtype.packed or (not type_.auto and state_regions.whole_entries(box))
    if not is_dense(put.value.shape, tuple(s for s, n in zip(strides, box.lengths, strict=True) if n is not None)):
        return f"{where} has gaps"
    return "" if whole else f"{where} may {cut} inside a byte"


def takes_over(op: Op, base: Value, result: Value) -> bool:
    """The op writes its result over this value, if it uses its memory at all."""
    if isinstance(op, For):
        return root(op.init[op.results.index(result)]) is base
    if isinstance(op, If):
        return False
    uses = [v for v in op.operands if root(v) is base]
    return bool(uses) and all(over(op, v, result) for v in uses)


def takeable(op: Op) -> list[Value]:
    """Operands whose memory an op may take over."""
    if isinstance(op, (Fused, Copy)):
        return [v for v in op.operands if op.takes_elements(v)]
    if isinstance(op, (Operator, Insert)):
        return [v for key in op.overwritable() for v in op.values_of(key)]
    return []


def over(op: Op, value: Value, result: Value) -> bool:
    """The op may write its result over this operand: same elements in the same places."""
    if value not in takeable(op) or not isinstance(value.type, TensorType):
        return False
    equal = value.shape == result.shape and value.dtype.bits == result.dtype.bits
    if not equal or not is_dense(value.shape, strides_of(value)):
        return False
    base = root(value)
    if whole_root(value) is not base:
        return False
    others = [v for v in op.operands if v is not value and isinstance(v.type, TensorType)]
    return all(root(v) is not base for v in others) and op.operands.count(value) == 1
