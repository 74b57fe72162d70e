"""Copy what cannot be seen where it lies.

    %t = transpose(%x)                     %t = transpose(%x)
    %y = softmax(%t)              =>       %c = copy(%t) {reason="softmax takes rows without gaps"}
                                           %y = softmax(%c)

A kernel says which operands may have gaps (`layouts`); elementwise ops, copies and stores take any
strides.  Where state is written while a view of it is still needed, the write waits until it is not,
if no other op reads the old state and that saves bytes; else the view becomes a copy too:

    %old = state.load(%W, [%p])            %old = state.load(%W, [%p])
    state.store(%W, [%q], %x)        =>    %y = conv1d(%old, %k)
    %y = conv1d(%old, %k)                  state.store(%W, [%q], %x)

A tensor of one repeated value that is written in part is filled for each that writes to it: to fill
costs less than to copy.  Everything else stays a view.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from oic.ir.control import Barrier
from oic.ir.core import Block, Op, Value, seen_through
from oic.ir.index import CheckIds
from oic.ir.liveness import liveness
from oic.ir.module import Module
from oic.ir.ranges import Ranges
from oic.ir.state import Constant, Splat, StateLoad, StateStore
from oic.ir.strides import is_dense
from oic.ir.types import TensorType
from oic.memory.state_regions import Accesses, Box, same
from oic.memory.views import strides_of, view_strides, whole_root
from oic.operators.base import Operator
from oic.operators.fused import Copy
from oic.operators.late import state_writers
from oic.operators.part import Insert

WAITING = 64  # writes that wait for one view at most: so many are looked through for every view


def materialize(module: Module) -> None:
    """Insert the copies of every function."""
    for func in module.functions():
        for block in func.body.walk():
            _layouts(block)
        _own_fills(func.body)
        _state_views(func.body)


def _layouts(block: Block) -> None:
    ops: list[Op] = []
    made: dict[Value, Value] = {}  # copies made in this block
    for op in block.ops:
        for value, reason in _misfits(op):
            if value not in made:
                copy = Copy(value, reason, span=op.span, hint=value.hint)
                ops.append(copy)
                made[value] = copy.result
            op.replace_operands({value: made[value]})
        ops.append(op)
    block.set_ops(ops)


def _misfits(op: Op) -> list[tuple[Value, str]]:
    """Operands that the op cannot take where they lie."""
    if op.view:
        return [(op.operands[0], f"a {op.name} of memory with gaps")] if view_strides(op) is None else []
    if isinstance(op, CheckIds):
        dense = is_dense(op.x.shape, strides_of(op.x))
        return [] if dense else [(op.x, "ids are checked in memory without gaps")]
    if not isinstance(op, Operator) or op.elementwise or not op.kernels:
        return []
    found: dict[Value, str] = {}
    for field, value in [(key, value) for key in op.fields for value in op.values_of(key)]:
        # An encoding is of whole matrices, which its kernel takes as they are; strides say nothing of it.
        if not isinstance(value.type, TensorType) or value in found or value.type.encoding:
            continue
        inner = op.chosen().layouts.get(field)
        if not is_dense(value.shape, strides_of(value), inner):
            found[value] = f"{op.name} takes '{field}' without gaps"
        elif value.dtype.packed and _moved(value):
            found[value] = f"{op.name} takes '{field}' from a whole byte on"
    return list(found.items())


def _own_fills(body: Block) -> None:
    """A splat of its own for every op that replaces a part of one that others use, or that is outside its loop."""
    for op in [op for op in body.all_ops() if isinstance(op, Insert)]:
        old, block = op.x.op, op.block
        if not isinstance(old, Splat) or block is None or (old.block is block and len(op.x.users) == 1):
            continue
        own = Splat(old.value, old.type, span=old.span, hint=op.x.hint)
        block.insert(block.ops.index(old) if old.block is block else 0, own)
        op.x = own.result
        if not old.result.used and old.block is not None:
            old.block.set_ops([other for other in old.block.ops if other is not old])


def _moved(value: Value) -> bool:
    """A view that may start inside a byte."""
    ops = [seen.op for seen in seen_through(value) if isinstance(seen.op, Operator) and seen.op.view]
    return any(op.begins(number) for op in ops for number in range(len(op.results)))


def _state_views(body: Block) -> None:
    seen = _Views(body)
    loads = [op for op in body.all_ops() if isinstance(op, StateLoad)]
    for load in loads:
        _wait(load, seen)
    # A copy changes how long its own load is needed, and no other.
    _copy_after([load for load in loads if any(seen.written_meanwhile(load))])


class _Views:
    """How long views of the state are needed, and what writes it: of each state, in program order.

    Writes that wait keep the order of the writes of one state.
    """

    def __init__(self, body: Block) -> None:
        self.live, self.ranges = liveness(body), Ranges(body.all_ops())
        writers = state_writers(body)
        self.writes = {state: Accesses(ops, self.ranges, list[Op]) for state, ops in writers.items()}

    def written_meanwhile(self, load: StateLoad) -> Iterator[Op]:
        """The writes that may change what is seen before it is last needed."""
        box, last, accesses = Box.of(load), self.live.needed(load.result), self.writes.get(load.state)
        if accesses is None:
            return
        for writes in accesses.around(box):
            first, end = (self._after(writes, at) for at in (self.live.start[load], last))
            for write in map(writes.__getitem__, range(first, end)):
                if not accesses.are_apart(write, box) and not _puts_back(write, load, box):
                    yield write

    def _after(self, writes: Sequence[Op], position: int) -> int:
        """How many of the writes come up to a position."""
        return bisect_right(writes, position, key=self.live.start.__getitem__)


def _puts_back(write: Op, load: StateLoad, box: Box) -> bool:
    """What was loaded is stored where it was."""
    return isinstance(write, StateStore) and whole_root(write.value) is load.result and same(Box.of(write), box)


def _wait(load: StateLoad, seen: _Views) -> None:
    """Let writes wait until the view is needed no more, if that can be and saves bytes."""
    live = seen.live
    block, last = load.home, live.needed(load.result)
    writes: list[Op] = []
    spare = load.result.tensor.nbytes
    for write in seen.written_meanwhile(load):
        spare -= _stored(write)
        if write.block is not block or spare <= 0 or len(writes) == WAITING or live.start[write] == last:
            return  # what needs the view last cannot wait for itself
        writes.append(write)
    if not writes:
        return
    writes.sort(key=live.start.__getitem__)
    start, end = block.ops.index(writes[0]), bisect_right(block.ops, last, key=live.start.__getitem__)
    waiting = frozenset(writes)
    between = [op for op in block.ops[start:end] if op not in waiting]
    barred = any(op.terminator or any(isinstance(o, Barrier) for o in op.walk()) for op in between)
    if barred or last > live.end[block.ops[end - 1]]:
        return
    if any(load.state in op.touched() for op in between):
        return
    first = live.start[block.ops[start]]
    block.ops[start:end] = between + writes
    live.reordered(block.ops[start:end], first)


def _stored(write: Op) -> int:
    """Bytes that a write copies if it waits: what is computed for it might else be computed there."""
    if not isinstance(write, StateStore):
        return 0
    base = whole_root(write.value)
    copied_anyway = base.op is None or base.op.view or isinstance(base.op, Constant)
    return 0 if copied_anyway else write.value.tensor.nbytes


def _copy_after(loads: list[StateLoad]) -> None:
    """Copy what these load, just after it is loaded."""
    copies: dict[Op, Copy] = {}
    for load in loads:
        seen = load.result
        copies[load] = Copy(seen, "the state is written while this is still needed", span=load.span, hint=seen.hint)
        seen.give_way(copies[load].result)
    for block in {load.home: None for load in loads}:
        block.set_ops(made for op in block.ops for made in (op, copies.get(op)) if made is not None)
