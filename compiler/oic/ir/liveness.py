"""When values are needed: positions in program order and the ranges between them.

Every op has a position; a loop or an `if` has one where it starts and one where it ends.  A value
defined outside a loop and used inside is needed until the loop ends; so it is with the regions of a
`parallel` op, which run at once.  A fused region is one op: its operands are read while its results
are written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from oic.ir.control import For, If, Parallel
from oic.ir.core import Block, Op, Value, home_of
from oic.ir.types import TensorType


@dataclass
class Liveness:
    """Positions of a function body.

    start, end   of every op (equal, where nothing is nested)
    opened       position of a block's arguments
    closed       the first position after a block
    """

    start: dict[Op, int] = field(default_factory=dict)
    end: dict[Op, int] = field(default_factory=dict)
    opened: dict[Block, int] = field(default_factory=dict)
    closed: dict[Block, int] = field(default_factory=dict)
    _needed: dict[tuple[Value, Block | None], int] = field(default_factory=dict)

    def inside(self, region: Block, first: int, last: int) -> bool:
        """The range lies within the positions of a region."""
        return self.opened[region] <= first and last < self.closed[region]

    def users(self, value: Value) -> list[Op]:
        """The ops of the body that take a value, in program order."""
        return sorted([op for op in value.users if op in self.start], key=self.start.__getitem__)

    def defined(self, value: Value) -> int:
        """Position at which a value comes to be: results of loops at their end."""
        if isinstance(value.owner, Block):
            return self.opened[value.owner]
        assert value.owner is not None
        return self.end.get(value.owner, 0)

    def last_use(self, value: Value) -> int:
        """Last position at which the value itself is needed (views of it not counted)."""
        return self._in_home(value, value)

    def use(self, user: Op, home: Block | None) -> int:
        """Position until which a use needs a value that is defined in the block `home`."""
        at = self.start[user]
        for block in takewhile(lambda block: block is not home, user.home.outward()):
            if isinstance(block.owner, (For, Parallel)):
                at = max(at, self.end[block.owner])
        return at

    def views(self, value: Value) -> Iterator[Value]:
        """The value and every view of it, views of views included."""
        yield value
        for user in self.users(value):
            if user.view and user.operands[0] is value:
                for result in user.results:
                    yield from self.views(result)

    def needed(self, value: Value, beside: Block | None = None) -> int:
        """Last position at which the value's memory is needed, through any view of it.

        beside   only as far as what is done in this block can matter: not counted are uses in a
                 branch that is not taken when the block runs
        """
        if beside is not None and not any(isinstance(around.owner, If) for around in beside.outward()):
            beside = None  # it is in no branch
        key = value, beside
        if key not in self._needed:
            self._needed[key] = max(self._in_home(v, value, beside) for v in self.views(value))
        return self._needed[key]

    def reordered(self, ops: Sequence[Op], first: int) -> None:
        """Ops that follow each other in a block, the first at the position `first`, have a new order."""
        for op in ops:
            first = _number_op(op, self, first)
        self._needed.clear()

    def _in_home(self, view: Value, value: Value, beside: Block | None = None) -> int:
        home = home_of(value)
        last = self.defined(value)
        if view.op is not None and not _excluded(view.op.block, beside, home):
            last = max(last, self.defined(view))
        for user in self.users(view):
            if not _excluded(user.block, beside, home):
                last = max(last, self.use(user, home))
        return last


def _excluded(block: Block | None, beside: Block | None, home: Block | None) -> bool:
    """The blocks are in the two branches of one `if`, of which a value of `home` sees one taken.

    With a loop between the `if` and the home either may be taken while the value is the same.
    """
    if beside is None or block is None:
        return False
    taken: dict[Op, Block] = {}
    for inner in takewhile(lambda inner: inner is not home, block.outward()):
        if isinstance(inner.owner, If):
            taken[inner.owner] = inner
        elif not _fused(inner):
            taken.clear()
    return bool(taken) and any(at.owner and taken.get(at.owner, at) is not at for at in beside.outward())


def _fused(block: Block) -> bool:
    """The block is a fused region, whose values are elements."""
    return block.owner is not None and block.owner.elementwise


def tensors(body: Block) -> Iterator[Value]:
    """The tensors of a function in the order in which it makes them; elements of fused regions are none."""
    for block in body.walk():
        if not _fused(block):
            found = [*block.args, *(r for op in block.ops for r in op.results)]
            yield from (v for v in found if isinstance(v.type, TensorType))


def liveness(body: Block) -> Liveness:
    """Number the ops of a function body."""
    found = Liveness()
    _number(body, found, 0)
    return found


def _number(block: Block, found: Liveness, position: int) -> int:
    found.opened[block] = position
    position += 1
    for op in block.ops:
        position = _number_op(op, found, position)
    found.closed[block] = position
    return position


def _number_op(op: Op, found: Liveness, position: int) -> int:
    """The position after the op."""
    found.start[op] = found.end[op] = position
    if not op.regions:
        return position + 1
    if op.elementwise:
        (body,) = op.regions
        found.opened[body], found.closed[body] = position, position + 1
        for inner in op.walk():
            found.start[inner] = found.end[inner] = position
        return position + 1
    position += 1
    for region in op.regions:
        position = _number(region, found, position)
    found.end[op] = position + 1
    return position + 2
