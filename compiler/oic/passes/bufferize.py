"""Give every tensor memory: in whose place, in which buffer, or as a view of what.

    %h = for(..., [%x0]) { ^(%l, %h0):        x0, h0, y and h share one buffer:
      %t = matmul(%h0, %w)                    y = add(t, h0) is computed over h0, which dies there
      %y = add(%t, %h0)                 =>
      yield([%y])                             outputs are computed in the caller's memory, and what
    }                                         is stored to the state in its entry there

What cannot be computed where it goes is copied there, with the reason.  Offsets come later
(`plan_memory`).
"""

from collections.abc import Iterator

from oic.ir.control import Func
from oic.ir.core import Block, Op, Place, Value, is_index
from oic.ir.grouping import reach
from oic.ir.liveness import tensors
from oic.ir.module import Module
from oic.ir.state import Constant, StateEntry, StateLoad
from oic.ir.strides import is_dense
from oic.ir.types import TensorType
from oic.memory.sharing import Sharing, movable
from oic.memory.state_regions import Box, EntryOp
from oic.memory.views import root, strides_of
from oic.operators.fused import around
from oic.operators.part import Insert, PartEntry
from oic.passes.destination_passing import Assignment, destinations, in_memory
from oic.passes.unread_fills import mark_unread


def bufferize(module: Module) -> None:
    """Set the place of every tensor value, all but the offsets in the arena and the weights."""
    for op in module.constants():
        op.result.place = Place("weights", op.symbol)
    for func in module.functions():
        decided = destinations(func)
        _assign(func.body, decided)
        _set_places(func, decided)
        mark_unread(func.body)
        _mark_entries(decided)


def _assign(body: Block, decided: Assignment) -> None:
    """Storage for what has none yet, in order: in place if that can be, else a buffer of its own."""
    for op in body.all_ops():
        for value in op.results if around(op) is op else ():
            if not isinstance(value.type, TensorType) or op.view or value in decided.storage:
                continue
            if isinstance(op, Constant) or not in_memory(value, decided.sharing):
                continue
            if not decided.in_place(op, value):
                reason = "copied whole: what a part is replaced of is needed as it was"
                reason = reason if isinstance(op, Insert) else "a value of its own"
                decided.put(value, decided.new(value.hint, "arena"), reason)


def _set_places(func: Func, decided: Assignment) -> None:
    body = func.body
    for name, arg in zip(func.inputs, body.args, strict=True):
        arg.place = Place("input", name, 0, None, "an input")
    for value, storage in decided.storage.items():
        value.place = Place(storage.space, storage.name, 0, None, decided.reasons[value])
    for value in tensors(body):
        if value.place is None and value.op is not None:
            value.place = _view_place(value) if value.op.view else Place("local", "", None, None, "a number")


def _view_place(value: Value) -> Place:
    base = root(value)
    strides = strides_of(value)
    kept = None if is_dense(value.shape, strides) else strides
    if isinstance(base.op, StateLoad):
        return Place("state", base.op.state.symbol, None, kept, "a view of the state")
    place = base.placed
    return Place(place.space, place.buffer, None, kept, f"a view of '{base.hint or place.buffer}'")


def _mark_entries(decided: Assignment) -> None:
    """Before the first op that computes in a box, say which memory that is."""
    live = decided.sharing.live
    orders: dict[Block, _Order] = {}
    for storage in decided.order:
        store = storage.store
        assert store is not None
        block = store.home
        first = min((_at_level(v, block) for v in storage.values), key=lambda op: live.start[op])
        make = PartEntry if isinstance(store, Insert) else StateEntry
        entry = make(Box.of(store).whole, store.offsets, store.lengths, storage.name, span=store.span)
        if block not in orders:
            orders[block] = _Order(block)
        orders[block].before(first, entry, decided.sharing)
    for block, order in orders.items():
        block.set_ops(sorted(order.places, key=order.places.__getitem__))


class _Order:
    """A new order of a block's ops: each has a place, the old ones in steps of one."""

    def __init__(self, block: Block) -> None:
        self.places: dict[Op, tuple[int, int]] = {op: (i, 0) for i, op in enumerate(block.ops)}
        self.added = 0

    def before(self, op: Op, new: EntryOp, sharing: Sharing) -> None:
        """Put an entry just before an op, and before it the arithmetic of its place that comes only later."""
        at = self.places[op]

        def late(later: Op) -> Iterator[Op]:
            makers = (v.op for v in later.operands if is_index(v) and v.op in self.places)
            return (made for made in makers if self.places[made] >= at and movable(made, sharing.ranges))

        for moved in [*sorted(reach(late(new), late), key=self.places.__getitem__), new]:
            self.added += 1
            self.places[moved] = (at[0] - 1, self.added)


def _at_level(value: Value, block: Block) -> Op:
    """The op of a block that defines a value, or in which it is defined."""
    owner = value.owner
    op = owner if isinstance(owner, Op) else owner.owner if owner is not None else None
    found = op.within(block) if op is not None else None
    assert found is not None
    return found
