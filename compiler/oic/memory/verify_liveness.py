"""When values are needed, for the verifier: counted anew, without what the planner was told.

Ops are numbered in program order, a region between the start and the end of its op; a value defined
outside a loop and used in it is needed until the loop ends; a view needs its root; what one branch
of an `if` writes, uses in the other do not see.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from oic.ir.control import For, If, Parallel
from oic.ir.core import Block, Op, Value, seen_through
from oic.ir.state import StateEntry, StateStore
from oic.ir.text_print import located
from oic.ir.types import TensorType
from oic.operators.fused import Fused, around


@dataclass
class Lives:
    """When the values of a function are defined and last needed, and what ops write.

    first, last   positions of values
    uses          every position at which a value is needed, and the block that needs it there
    writes        (position, op, value written)
    """

    first: dict[Value, int] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)
    uses: dict[Value, list[tuple[int, Block | None]]] = field(default_factory=dict)
    starts: dict[Op, int] = field(default_factory=dict)
    writes: list[tuple[int, Op, Value]] = field(default_factory=list)
    states: list[tuple[int, Op, Value]] = field(default_factory=list)


def fault(op: Op, what: str) -> AssertionError:
    return AssertionError(f"{what}\n{located(op)}")


def walk(block: Block) -> Iterator[Op]:
    """Ops in order, without those of fused regions: their values are elements, not tensors."""
    return (op for op in block.all_ops() if around(op) is op)


def lives(body: Block) -> Lives:
    """Positions of everything in a function."""
    found = Lives()
    _number(body, 0, found)
    found.last = {v: max((at for at, _ in found.uses.get(v, ())), default=at) for v, at in found.first.items()}
    return found


def root(value: Value) -> Value:
    """The value whose memory a view sees: one with an address, or a state."""
    for found in seen_through(value):
        if found.place is not None and found.place.offset is not None:
            break
    return found


def _number(block: Block, at: int, found: Lives) -> int:
    """Give positions to the ops of a block; the next free one."""
    for arg in block.args:
        found.first[arg] = at
    at += 1
    for op in block.ops:
        found.starts[op] = at
        for value in op.operands:
            _need(value, at, block, found)
        if isinstance(op, Fused):
            for value in (v for inner in op.body.ops for v in inner.operands):
                _need(value, at, block, found)
        at += 1
        for region in op.regions if not isinstance(op, Fused) else []:
            at = _number(region, at, found)
        if isinstance(op, (For, Parallel)):
            _lengthen(op, at, found)
        _define(op, at, found)
        at += 1
    return at


def _need(value: Value, at: int, block: Block | None, found: Lives) -> None:
    for seen in seen_through(value):
        found.uses.setdefault(seen, []).append((at, block))


def _lengthen(outer: Op, end: int, found: Lives) -> None:
    """What a loop takes from outside is needed in every iteration; what consumers take, until all end."""
    start = found.starts[outer]
    for op in (o for region in outer.regions for o in region.all_ops()):
        for value in (seen for operand in op.operands for seen in seen_through(operand)):
            if value in found.first and found.first[value] < start:
                found.uses[value].append((end, outer.block))


def _define(op: Op, at: int, found: Lives) -> None:
    """Results come to be at the end of the op; those with memory of their own are written."""
    nested = bool(op.regions) and not isinstance(op, Fused)
    here = at if nested else found.starts[op]
    for value in op.results:
        found.first[value] = here
        if nested or not isinstance(value.type, TensorType):
            continue
        if root(value) is value and value.place is not None and value.place.offset is not None:
            if not _still(op, value):
                found.writes.append((found.starts[op], op, value))
    if not op.regions and not _completes(op):
        found.states += [(found.starts[op], op, s) for s in op.touched("write")]


def _still(op: Op, value: Value) -> bool:
    """A view whose address the planner knows: nothing is written."""
    if not op.view:
        return False
    source = op.operands[0].place
    return source is not None and source.memory == value.placed.memory


def last_needed(value: Value, writer: Block | None, found: Lives) -> int:
    """Last position at which a value is needed on a way that comes through a block."""
    branches, uses = dict(_branches(writer)), found.uses.get(value, [])
    after = (at for at, block in uses if all(branches.get(o, r) is r for o, r in _branches(block)))
    return max(after, default=found.first[value])


def _branches(block: Block | None) -> Iterator[tuple[Op, Block]]:
    """The branches of `if`s around a block, its own included."""
    while block is not None and block.owner is not None:
        if isinstance(block.owner, If):
            yield block.owner, block
        block = block.owner.block


def _completes(op: Op) -> bool:
    """Names an entry that values are computed in, or stores what was computed there: writes no state."""
    return isinstance(op, StateEntry) or (isinstance(op, StateStore) and op.entry != "")
