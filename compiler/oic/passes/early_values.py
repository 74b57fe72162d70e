"""What can be had before the first effect of a function: integers, tensors and conditions.

    state.store(%K, [%l, %p], %k)             %q = index.add(%p, %one)
    %q = index.add(%p, %one)             =>   state.store(%K, [%l, %p], %k)

Index arithmetic on inputs, on states that no effect before it writes, and on tensors that depend on
nothing else is copied there; the tensors are moved there, with all that they need.  A part of a tensor or an entry of
the state that an iteration of a loop takes is taken there again.  Part of `hoist_checks`.
"""

from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from oic.ir import dims, index
from oic.ir.control import Barrier, Cond, For, Parallel
from oic.ir.core import Block, Op, Value, clone_op, sizes_used
from oic.ir.dims import Atom, Dim, Extent, Quotient
from oic.ir.grouping import reach
from oic.ir.ranges import Ranges, linear
from oic.ir.state import State, StateGet, StateLoad, StateSet
from oic.ir.types import IndexType, StateType
from oic.memory.state_regions import Box, is_apart, same
from oic.operators.base import Operator
from oic.operators.late import state_writers
from oic.operators.shape import Slice

Iteration = dict[Value, Value]  # what loop indices are in an iteration


class NotEarly(Exception):
    """Something that is needed cannot be had before the first effect."""


def need(held: bool) -> None:
    """What has to hold for something to be had early."""
    if not held:
        raise NotEarly


@dataclass(frozen=True)
class Scope:
    """Ops that run together before the first effect: all that is moved there, or a block of checks among it.

    copies     values that are computed in the scope or around it, by what they are copies of
    iteration  of the loops whose checks these are
    """

    ops: list[Op] = field(default_factory=list)
    copies: ChainMap[Value, Value] = field(default_factory=ChainMap)
    iteration: Iteration = field(default_factory=dict)

    def inner(self, iteration: Iteration | None = None, ops: list[Op] | None = None) -> "Scope":
        """A block of this one, or the same ops, in one iteration of another loop; what it computes is its own."""
        own = dict(iteration or {})
        return Scope([] if ops is None else ops, self.copies.new_child(own), self.iteration | own)

    def add(self, op: Op) -> Value:
        """The result of an op that is added."""
        self.ops.append(op)
        return op.result


class EarlyValues:
    """Copies and moves to the position of the first effect of a body.

    front    what comes there
    gone     what has moved from its place in the body, and what takes the place of its operands
    same     of arithmetic that has moved, the copy that is used in its place
    given    extents that are known there
    binds    where every other extent gets its value
    """

    def __init__(self, body: Block, first: int) -> None:
        self.body = body
        self.front = Scope()
        self.gone: dict[Op, dict[Value, Value]] = {}
        self.same: dict[Value, Value] = {}
        self.written = state_writers(body)
        self.ranges = Ranges()
        self.inner = set(body.walk())
        self.order = {op: i for i, op in enumerate(body.all_ops())}
        self.barriers = [at for op, at in self.order.items() if isinstance(op, Barrier)]
        self.start = self.order[body.ops[first]]
        self.given = dims.extents(d for arg in body.args for d in arg.shape)
        self.given |= {op.extent for op in body.ops[:first] if isinstance(op, index.ExtentBind)}
        self.binds = {op.extent: op for op in body.all_ops() if isinstance(op, index.ExtentBind)}

    def attempt(self, at: Scope, make: Callable[..., object], *args: object) -> bool:
        """Let more be made in a scope; where something that it needs cannot be had, nothing was moved or copied."""
        ops = self.front.ops
        entries: list[MutableMapping[Any, Any]] = [self.front.copies.maps[0], self.gone]
        before, counts = len(ops), list(map(len, entries))
        try:
            make(*args, at)
        except NotEarly:
            del ops[before:]
            for made, count in zip(entries, counts, strict=True):
                while len(made) > count:
                    made.popitem()
            return False
        return True

    def early(self, value: Value, at: Scope) -> Value:
        """The value as computed before the first effect, by ops that are added."""
        found = at.copies
        waiting = [value]
        while waiting:  # no recursion: a chain of increments may be thousands of ops long
            last = waiting[-1]
            if last in found:
                waiting.pop()
                continue
            if at.iteration and not self.exists(last) and self.is_common(last, at):
                found[last] = self.early(last, self.front)
                continue
            sources, make = self.way(last, at)
            missing = [v for v in sources if v not in found]
            waiting += missing
            if not missing:
                found[last] = make()
        return found[value]

    def way(self, value: Value, at: Scope) -> tuple[list[Value], Callable[[], Value]]:
        """The values of which a value is computed early, and what computes it once they are known in the scope.

        What exists before the first effect has none; a read of state has the value just set there.
        """
        op, found = value.op, at.copies
        if self.exists(value):
            return [], lambda: value
        if isinstance(op, index.IndexSize):
            bound = self.bound(op.size)
            return [v for _, v in bound], lambda: _size(op.size, {e: found[v] for e, v in bound}, at)
        part = None
        if isinstance(op, StateGet):
            before = self.set_before(op)
            if before is not None:
                return [before], lambda: found[before]
            need(not self.changes(op))
        elif isinstance(op, index.IndexLoad):
            part = self.part(op.x)
            need(part is not None or self.early_tensor(op.x))
        elif not isinstance(op, index.IndexOp):
            raise NotEarly
        # The others are a state, or a tensor that exists.
        sources = [v for v in (part or op).operands if isinstance(v.type, IndexType)]

        def make() -> Value:
            known = {v: found[v] for v in sources}
            return at.add(clone_op(op, {part.result: at.add(clone_op(part, known))} if part is not None else known))

        return sources, make

    def unknown(self, size: Dim) -> list[tuple[Extent, Value]]:
        """The extents of a size that are bound after the first effect, and to what."""
        extents = sorted(dims.extents([size]) - self.given)
        return [(e, self.binds[e].value) for e in extents if e in self.binds]

    def bound(self, size: Dim) -> list[tuple[Extent, Value]]:
        """`unknown` of a size of which every extent is bound."""
        need(dims.extents([size]) <= self.given | self.binds.keys())
        return self.unknown(size)

    def early_size(self, size: Dim, at: Scope) -> Value:
        """A size as an integer before the first effect, by ops that are added."""
        return _size(size, {e: self.early(v, at) for e, v in self.bound(size)}, at)

    def depends(self, value: Value, other: Value) -> bool:
        """The value is computed from the other."""
        return any(at is other for at in reach([value], self.computed_of))

    def computed_of(self, value: Value) -> list[Value]:
        """The operands of the op of a value; of a size, what its extents are bound to."""
        bound = self.unknown(value.op.size) if isinstance(value.op, index.IndexSize) else []
        return [*(value.op.operands if value.op is not None else ()), *(v for _, v in bound)]

    def is_common(self, value: Value, at: Scope) -> bool:
        """The value is the same in every iteration, and may be computed where there is none."""
        return not any(v in at.iteration or self.is_guarded(v) for v in reach([value], self.computed_of))

    def is_guarded(self, value: Value) -> bool:
        """Only where the loops and branches around it run it may be computed.

        It may refuse the step, or is at a place that only a check there keeps within its tensor or table.
        """
        op = value.op
        if op is None or self.exists(value) or not layers(op, self.body):
            return False
        placed = isinstance(op, (Slice, StateLoad)) or (isinstance(op, StateGet) and bool(op.indices))
        return placed or self.ranges.refuses_source(op)

    def early_condition(self, value: Value, at: Scope) -> Value:
        """A condition as it is before the first effect."""
        if not isinstance(value.op, Cond) or self.exists(value):
            need(self.early_tensor(value))
            return value
        left, right = (self.early(v, at) for v in value.op.operands)
        return at.add(Cond(left, right))

    def early_tensor(self, value: Value) -> bool:
        """A tensor that exists before the first effect, or is computed there from now on."""
        if self.exists(value) or value.op in self.gone:
            return True
        return value.op is not None and self.attempt(self.front, self.move, value.op)

    def part(self, value: Value) -> Slice | StateLoad | None:
        """The op that takes a part of an early tensor or of the state in an iteration, to be repeated early."""
        op = value.op
        if not isinstance(op, (Slice, StateLoad)) or op.block is self.body or self.exists(value):
            return None
        known = self.early_tensor(op.x) if isinstance(op, Slice) else not self.changes(op)
        return op if known and value.tensor.static else None

    def early_ids(self, value: Value) -> Value:
        """A tensor that exists before the first effect, or a view of one that is made there."""
        if self.early_tensor(value):
            return value
        op, copies = value.op, self.front.copies
        if not isinstance(op, Operator) or not op.view or len(op.operands) > 1:
            raise NotEarly
        if value not in copies:
            base = self.early_ids(op.operands[0])
            need(sizes_used(op) <= self.given)
            copy = clone_op(op, {op.operands[0]: base})
            self.front.ops.append(copy)
            copies.update(zip(op.results, copy.results, strict=True))
        return copies[value]

    def move(self, op: Op, at: Scope) -> None:
        """Compute before the first effect what depends on nothing later, with all that it needs."""
        if op in self.gone:
            return
        compared = isinstance(op, index.AssertShape) and op.checked
        need(op.block is self.body and (op.effect_free or compared) and self.undisturbed(op))
        mapping: dict[Value, Value] = {}
        inner = {v for o in op.walk() for v in o.results}
        inner |= {a for o in op.walk() for region in o.regions for block in region.walk() for a in block.args}
        for value in dict.fromkeys(v for o in op.walk() for v in o.operands):
            if value in inner or isinstance(value.type, StateType):
                continue
            if isinstance(value.type, IndexType):
                mapping[value] = self.early(value, at)
            elif not self.exists(value):
                if value.op is None:
                    raise NotEarly
                self.move(value.op, at)
        self.gone[op] = mapping
        at.ops.append(op)

    def undisturbed(self, op: Op) -> bool:
        """What the op reads is the same before the first effect, and no barrier is between."""
        if not all(sizes_used(o) <= self.given | index.bound_in(op.walk()) for o in op.walk()):
            return False
        before = range(self.start, self.order[op])
        if any(at in before for at in self.barriers):
            return False
        writers = [o for s in op.touched("read") for o in self.written.get(s, ()) if self.order[o] in before]
        return all(isinstance(op, StateLoad) and is_apart(o, Box.of(op), self.ranges) for o in writers)

    def exists(self, value: Value) -> bool:
        """An argument of the body or of a block around it, or of an op before the first effect.

        In a consumer that is an op before all of it.
        """
        op = value.op
        if op is None:
            return value in self.body.args or value.owner not in self.inner
        return op not in self.order or (op.block is self.body and self.order[op] < self.start)

    def changes(self, op: StateGet | StateLoad) -> bool:
        """The state may have been written before this read of it in the same step."""
        loops, box = [layer for layer in layers(op, self.body) if isinstance(layer, For)], Box.of(op)
        first = self.order[loops[0] if loops else op]
        last = max(self.order[o] for o in loops[0].walk()) if loops else first
        writers = self.written.get(op.state, ())
        inside = [w for w in writers if first <= self.order[w] <= last]
        own = not inside or (isinstance(op, StateGet) and self.is_own(op, loops, inside))
        return not own or any(self.order[w] < first and not is_apart(w, box, self.ranges) for w in writers)

    def is_own(self, get: StateGet, loops: list[For], writers: list[Op]) -> bool:
        """What is read in an iteration of the loops no other iteration writes, and this one only afterwards."""
        for loop in loops:
            counter = loop.body.args[0]
            if not any(set(form := linear(i)) <= {counter, None} and form.get(counter) for i in get.indices):
                return False
        same_element = all(isinstance(w, StateSet) and same(Box.of(w), Box.of(get)) for w in writers)
        return same_element and all(w.inside(get.home) and self.order[w] > self.order[get] for w in writers)

    def set_before(self, get: StateGet) -> Value | None:
        """What the same iteration has set the very element to that is read, earlier in the same block."""
        state, writers, box = get.state.op, self.written.get(get.state, []), Box.of(get)
        assert isinstance(state, State)
        if state.limit is None:
            return None  # a variable of the source, whose type may wrap what is set
        for writer in reversed(writers[: bisect_left(writers, self.order[get], key=self.order.__getitem__)]):
            if writer.block is get.block and isinstance(writer, StateSet) and same(Box.of(writer), box):
                return writer.value
            if writer.inside(get.home) and not is_apart(writer, box, self.ranges):
                return None
        return None


def layers(op: Op, body: Block) -> list[Op]:
    """The loops and branches around an op, outermost first; consumers always run."""
    found: list[Op] = []
    while op.block is not body and (owner := op.home.owner) is not None:
        found += [] if isinstance(owner, Parallel) else [owner]
        op = owner
    return found[::-1]


def _size(size: Dim, values: Mapping[Extent, Value], at: Scope) -> Value:
    """A size as an integer, by ops that are added; of some extents the values are given.

    A value beyond what the extent may be is refused where it is bound: held within that, no sum overflows.
    """

    def plus(a: Value, b: Value) -> Value:
        return at.add(index.IndexAdd(a, b))

    def times(a: Value, b: Value) -> Value:
        return at.add(index.IndexMul(a, b))

    def atom(one: Atom) -> Value:
        if isinstance(one, Quotient):
            return at.add(index.IndexDiv(whole(one.numerator), whole(one.divisor)))
        if one not in values:
            return at.add(index.IndexSize(dims.of(one)))
        least, most = at.add(index.IndexConst(0)), at.add(index.IndexConst(one.maximum))
        return at.add(index.IndexMin(at.add(index.IndexMax(values[one], least)), most))

    def whole(part: Dim) -> Value:
        if not dims.extents([part]) & values.keys():
            return at.add(index.IndexConst(part) if isinstance(part, int) else index.IndexSize(part))
        assert not isinstance(part, int)
        return reduce(plus, (reduce(times, map(atom, atoms), at.add(index.IndexConst(c))) for atoms, c in part.terms))

    return whole(size)
