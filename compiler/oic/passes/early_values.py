"""What can be had before the first effect of a function: integers, tensors and conditions.

    state.store(%K, %k, [%l, %p])             %q = index.add(%p, %one)
    %q = index.add(%p, %one)             =>   state.store(%K, %k, [%l, %p])

Index arithmetic on inputs, on states that no effect before it writes, and on tensors that depend on
nothing else is copied there; the tensors are moved there, with all that they need.  A part of a tensor or an entry of
the state that an iteration of a loop takes is taken there again.  Part of `hoist_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from oic.ir import dims, index
from oic.ir.control import Barrier, Cond, For, Parallel
from oic.ir.core import Block, Op, Value, clone_op, sizes_used
from oic.ir.dims import Atom, Dim, Extent, Quotient
from oic.ir.ranges import Ranges, linear
from oic.ir.state import State, StateGet, StateLoad, StateSet
from oic.ir.types import IndexType, StateType
from oic.memory.state_regions import Box, is_apart
from oic.operators.base import Operator
from oic.operators.shape import Slice

Iteration = dict[Value, Value]  # what loop indices are in an iteration


class EarlyValues:
    """Copies and moves to the position of the first effect of a body.

    ops      what comes there
    gone     what has moved from its place in the body
    copies   values that are computed there, by what they are copies of, in the order in which they were made
    same     of arithmetic that has moved, the copy that is used in its place
    settled  those copies whose ops are among `ops`, or will be
    outer    of the check being moved: what comes before its loops
    given    extents that are known there
    binds    where every other extent gets its value
    """

    def __init__(self, body: Block, first: int) -> None:
        self.body = body
        self.ops: list[Op] = []
        self.gone: set[Op] = set()
        self.copies: dict[Value, Value] = {}
        self.same: dict[Value, Value] = {}
        self._settled: dict[Value, Value] | None = None
        self.start_of_check()
        self.moved: set[Op] = set()
        self.written: dict[Value, list[Op]] = {}
        self.ranges = Ranges()
        self.inner = set(body.walk())
        self.order = {op: i for i, op in enumerate(body.all_ops())}
        self.barriers = [at for op, at in self.order.items() if isinstance(op, Barrier)]
        self.start = self.order[body.ops[first]]
        self.given = dims.extents(d for arg in body.args for d in arg.shape)
        self.given |= {op.extent for op in body.ops[:first] if isinstance(op, index.ExtentBind)}
        self.binds = {op.extent: op for op in body.all_ops() if isinstance(op, index.ExtentBind)}
        for op in body.all_ops():
            if is_effect(op):
                for state in op.touched("write"):
                    self.written.setdefault(state, []).append(op)

    def start_of_check(self) -> None:
        """What has been copied so far is settled."""
        self._settled, self._before = None, len(self.copies)
        self.outer: list[Op] = []

    @property
    def settled(self) -> dict[Value, Value]:
        """Made when first asked for: few checks need it, and there may be thousands of both."""
        if self._settled is None:
            self._settled = dict(islice(self.copies.items(), self._before))
        return self._settled

    @settled.setter
    def settled(self, copies: dict[Value, Value]) -> None:
        self._settled = copies

    def forget_copies(self, count: int) -> None:
        """Only the first so many copies were made."""
        while len(self.copies) > count:
            self.copies.popitem()

    def early(self, value: Value, iteration: Iteration, ops: list[Op]) -> Value | None:
        """The value as computed before the first effect, by ops that are added; None if it cannot be."""
        found = dict(iteration) if iteration else self.copies
        waiting = [value]
        while waiting:  # no recursion: a chain of increments may be thousands of ops long
            last = waiting[-1]
            if last in found:
                waiting.pop()
                continue
            if iteration and self.is_invariant(last, iteration):
                same = self.invariant(last)
                if same is None:
                    return None
                found[last] = same
                continue
            sources = self.sources(last)
            if sources is None:
                return None
            missing = [v for v in sources if v not in found]
            if missing:
                waiting += missing
            elif last.op is None or self.stands_early(last.op):
                found[last] = last
            elif isinstance(last.op, StateGet) and (before := _set_before(last.op)) is not None:
                found[last] = found[before]
            elif isinstance(last.op, index.IndexSize):
                found[last] = _size(last.op.size, {e: found[v] for e, v in self.unknown(last.op.size)}, ops)
            else:
                mapping = {v: found[v] for v in sources}
                if isinstance(last.op, index.IndexLoad) and (part := self.part(last.op.x)) is not None:
                    ops.append(clone_op(part, mapping))
                    mapping[last.op.x] = ops[-1].result
                copy = clone_op(last.op, mapping)
                ops.append(copy)
                found[last] = copy.result
        return found[value]

    def sources(self, value: Value) -> list[Value] | None:
        """The values of which a value is computed early; None if it cannot be.

        What exists before the first effect has none; a read of state has the value just set there.
        """
        op = value.op
        if op is None:
            return [] if self.is_given(value) else None
        if self.stands_early(op):
            return []
        if isinstance(op, StateGet):
            before = _set_before(op)
            if before is not None:
                return [before]
            if self.changes(op):
                return None
        elif isinstance(op, index.IndexSize):
            return self.bound(op.size)
        elif isinstance(op, index.IndexLoad):
            if (part := self.part(op.x)) is not None:
                return [v for v in part.operands if isinstance(v.type, IndexType)]
            if not self.early_tensor(op.x):
                return None
        elif not isinstance(op, index.IndexOp):
            return None
        # The others are a state, or a tensor that exists.
        return [v for v in op.operands if isinstance(v.type, IndexType)]

    def unknown(self, size: Dim) -> list[tuple[Extent, Value]]:
        """The extents of a size that are bound after the first effect, and to what."""
        extents = sorted(dims.extents([size]) - self.given)
        return [(e, self.binds[e].value) for e in extents if e in self.binds]

    def bound(self, size: Dim) -> list[Value] | None:
        """What the extents of a size are bound to after the first effect; None if one of them is not."""
        values = [v for _, v in self.unknown(size)]
        return values if len(values) == len(dims.extents([size]) - self.given) else None

    def early_size(self, size: Dim, iteration: Iteration, ops: list[Op]) -> Value | None:
        """A size as an integer before the first effect, by ops that are added; None if it cannot be."""
        if self.bound(size) is None:
            return None
        found: dict[Extent, Value] = {}
        for extent, value in self.unknown(size):
            early = self.early(value, iteration, ops)
            if early is None:
                return None
            found[extent] = early
        return _size(size, found, ops)

    def depends(self, value: Value, other: Value) -> bool:
        """The value is computed from the other."""
        seen: set[Value] = set()
        waiting = [value]
        while waiting:
            at = waiting.pop()
            if at is other:
                return True
            if at not in seen and at.op is not None:
                waiting += at.op.operands
                waiting += [v for _, v in self.unknown(at.op.size)] if isinstance(at.op, index.IndexSize) else []
            seen.add(at)
        return False

    def is_invariant(self, value: Value, iteration: Iteration) -> bool:
        """It has to be computed early, and none of the loops' indices decides about it."""
        op = value.op
        return op is not None and not self.stands_early(op) and not any(self.depends(value, i) for i in iteration)

    def invariant(self, value: Value) -> Value | None:
        """A value that is the same in every iteration, computed once before the loops of checks."""
        known, self.copies = self.copies, dict(self.settled)
        found = self.early(value, {}, self.outer)
        if found is not None:
            self.settled = self.copies
        self.copies = known | self.settled
        return found

    def early_condition(self, value: Value, iteration: Iteration, ops: list[Op]) -> Value | None:
        """A condition as it is before the first effect."""
        if not isinstance(value.op, Cond):
            return value if self.early_tensor(value) else None
        if self.stands_early(value.op):
            return value
        sides = [self.early(v, iteration, ops) for v in value.op.operands]
        left, right = sides
        if left is None or right is None:
            return None
        ops.append(Cond(left, right))
        return ops[-1].result

    def early_tensor(self, value: Value) -> bool:
        """A tensor that exists before the first effect, or is computed there from now on."""
        if value.op is None:
            return self.is_given(value)
        if value.op in self.moved or self.stands_early(value.op):
            return True
        known, ops, moved = self.copies, len(self.ops), set(self.moved)
        self.copies = dict(self.settled)
        if self.move(value.op):
            self.settled |= self.copies
            known |= self.copies  # the same dictionary: `early` is filling it
            self.copies = known
            self.gone |= self.moved
            return True
        self.copies, self.moved = known, moved
        del self.ops[ops:]
        return False

    def part(self, value: Value) -> Slice | StateLoad | None:
        """The op that takes a part of an early tensor or of the state in an iteration, to be repeated early."""
        op = value.op
        if not isinstance(op, (Slice, StateLoad)) or op.block is self.body or self.stands_early(op):
            return None
        known = self.early_tensor(op.x) if isinstance(op, Slice) else self.is_kept(op)
        return op if known and value.tensor.static else None

    def is_kept(self, op: StateLoad) -> bool:
        """No op writes the state before this read of it in the same step, nor in its loops."""
        around = [layer for layer in layers(op, self.body) if isinstance(layer, For)]
        last = max(self.order[o] for o in around[0].walk()) if around else self.order[op]
        return all(self.order[writer] > last for writer in self.written.get(op.state, ()))

    def early_ids(self, value: Value) -> Value | None:
        """A tensor that exists before the first effect, or a view of one that is made there."""
        if self.early_tensor(value):
            return value
        op = value.op
        if not isinstance(op, Operator) or not op.view or len(op.operands) > 1:
            return None
        if value not in self.copies:
            base = self.early_ids(op.operands[0])
            if base is None or not sizes_used(op) <= self.given:
                return None
            copy = clone_op(op, {op.operands[0]: base})
            self.ops.append(copy)
            self.copies.update(zip(op.results, copy.results, strict=True))
        return self.copies[value]

    def move(self, op: Op) -> bool:
        """Compute before the first effect what depends on nothing later, with all that it needs."""
        if op in self.moved:
            return True
        compared = isinstance(op, index.AssertShape) and op.checked
        if op.block is not self.body or not (op.effect_free or compared) or not self.undisturbed(op):
            return False
        mapping: dict[Value, Value] = {}
        inner = {v for o in op.walk() for v in o.results}
        inner |= {a for o in op.walk() for region in o.regions for block in region.walk() for a in block.args}
        for value in dict.fromkeys(v for o in op.walk() for v in o.operands):
            if value in inner or isinstance(value.type, StateType):
                continue
            if isinstance(value.type, IndexType):
                made: list[Op] = []
                found = self.early(value, {}, made)
                if found is None:
                    return False
                self.ops += made
                mapping[value] = found
            elif value.op is None:
                if not self.is_given(value):
                    return False
            elif not (self.stands_early(value.op) or self.move(value.op)):
                return False
        for part in op.walk():
            part.replace_operands(mapping)
        self.moved.add(op)
        self.ops.append(op)
        return True

    def undisturbed(self, op: Op) -> bool:
        """What the op reads is the same before the first effect, and no barrier stands between."""
        if not all(sizes_used(o) <= self.given | _bound_in(op) for o in op.walk()):
            return False
        before = range(self.start, self.order[op])
        if any(at in before for at in self.barriers):
            return False
        writers = [o for s in op.touched("read") for o in self.written.get(s, ()) if self.order[o] in before]
        return all(isinstance(op, StateLoad) and is_apart(o, Box.of(op), {}, self.ranges) for o in writers)

    def stands_early(self, op: Op) -> bool:
        """The op comes before the first effect anyway; outside a consumer, before all of it."""
        return op not in self.order or (op.block is self.body and self.order[op] < self.start)

    def is_given(self, value: Value) -> bool:
        """An argument of the body, or of a block around it."""
        return value in self.body.args or value.owner not in self.inner

    def changes(self, op: StateGet) -> bool:
        """The state may have been written before this read of it in the same step."""
        loops = [layer for layer in layers(op, self.body) if isinstance(layer, For)]
        first = self.order[loops[0] if loops else op]
        last = max(self.order[o] for o in loops[0].walk()) if loops else first
        writers = self.written.get(op.state, ())
        inside = [w for w in writers if first <= self.order[w] <= last]
        before = [w for w in writers if self.order[w] < first]
        return any(_may_meet(w, op) for w in before) or not _is_own(op, loops, inside)


def is_effect(op: Op) -> bool:
    """The op itself writes a state."""
    return bool(op.writes) and not op.regions


def layers(op: Op, body: Block) -> list[Op]:
    """The loops and branches around an op, outermost first; consumers always run."""
    found: list[Op] = []
    while op.block is not body and (owner := op.home.owner) is not None:
        found += [] if isinstance(owner, Parallel) else [owner]
        op = owner
    return found[::-1]


def _size(size: Dim, values: Mapping[Extent, Value], ops: list[Op]) -> Value:
    """A size as an integer, by ops that are added; of some extents the values are given.

    A value beyond what the extent may be is refused where it is bound: held within that, no sum overflows.
    """

    def made(op: Op) -> Value:
        ops.append(op)
        return op.result

    def atom(one: Atom) -> Value:
        if isinstance(one, Quotient):
            return made(index.IndexDiv(whole(one.numerator), whole(one.divisor)))
        if one not in values:
            return made(index.IndexSize(dims.of(one)))
        least, most = made(index.IndexConst(0)), made(index.IndexConst(one.maximum))
        return made(index.IndexMin(made(index.IndexMax(values[one], least)), most))

    def whole(part: Dim) -> Value:
        if not dims.extents([part]) & values.keys():
            return made(index.IndexConst(part) if isinstance(part, int) else index.IndexSize(part))
        assert not isinstance(part, int)
        total: Value | None = None
        for atoms, c in part.terms:
            product = made(index.IndexConst(c))
            for one in atoms:
                product = made(index.IndexMul(product, atom(one)))
            total = product if total is None else made(index.IndexAdd(total, product))
        assert total is not None
        return total

    return whole(size)


def _bound_in(op: Op) -> frozenset[Extent]:
    """The extents that are bound inside the op."""
    return frozenset(o.extent for o in op.walk() if isinstance(o, index.ExtentBind))


def _set_before(get: StateGet) -> Value | None:
    """What the same iteration has set the very element to that is read, earlier in the same block."""
    state, block = get.state.op, get.home
    assert isinstance(state, State)
    if state.limit is None:
        return None  # a variable of the source, whose type may wrap what is set
    for op in reversed(block.ops[: block.ops.index(get)]):
        for writer in (o for o in op.walk() if get.state in o.touched("write") and not o.regions):
            if writer is op and isinstance(op, StateSet) and _is_same(op, get):
                return op.value
            if _may_meet(writer, get):
                return None
    return None


def _may_meet(writer: Op, get: StateGet) -> bool:
    """The writer may change what is read: the same element, for all that is known of the indices."""
    if not isinstance(writer, StateSet):
        return True
    pairs = zip(writer.indices, get.indices, strict=True)
    apart = [Ranges().difference(a, b) for a, b in pairs]
    return all(low <= 0 <= high for low, high in apart)


def _is_own(get: StateGet, loops: list[For], writers: list[Op]) -> bool:
    """What is read in an iteration of the loops no other iteration writes, and this one only afterwards."""
    if not writers:
        return True
    for loop in loops:
        counter = loop.body.args[0]
        if not any(set(form := linear(i)) <= {counter, None} and form.get(counter) for i in get.indices):
            return False
    return all(_after_itself(w, get) for w in writers)


def _after_itself(writer: Op, get: StateGet) -> bool:
    """The writer sets the very element that is read, later in the same iteration."""
    if not isinstance(writer, StateSet) or not _is_same(writer, get) or get.block is None:
        return False
    at, ops = writer.within(get.block), get.block.ops
    return at is not None and ops.index(at) > ops.index(get)


def _is_same(writer: StateSet, get: StateGet) -> bool:
    """The element that is set is the one that is read."""
    pairs = zip(writer.indices, get.indices, strict=True)
    return all(Ranges().difference(a, b) == (0, 0) for a, b in pairs)
