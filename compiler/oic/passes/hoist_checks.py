"""Refuse a step before it changes anything.

    state.store(%K, %k, [%l, %p])             check.range(%p, 0, 511)
    check.range(%p, 0, 511)              =>   state.store(%K, %k, [%l, %p])

A check moves before the first effect if what it looks at can be computed there: index arithmetic
on inputs, on states that no effect before it writes, and on tensors that depend on nothing else; these
are then computed there, with all that they need; inside an `if`, if its condition can be.  A check
inside a loop is made once for all turns: with its value's smallest and largest over the loop where
the index takes part, and only if the loop has a turn.  Where one of these refuses, the checks of all
turns are made in the order of the source (`check.turns`), so that the first turn at fault is
reported.  Where the value is no such function of the index (`next` of the ring of a layer), a loop
of checks alone comes first.  Checks of what is computed from data after an effect stay;
`late_checks` lists them for the build report (SPEC, 8.6).
"""

from __future__ import annotations

from collections.abc import Iterator

from oic.ir import dims
from oic.ir.control import Barrier, CheckTurns, Cond, For, If, Parallel, Yield
from oic.ir.core import Block, Op, Value, clone_op, sizes_used
from oic.ir.dims import Extent
from oic.ir.index import (
    SIZE,
    AssertShape,
    CheckIds,
    CheckRange,
    ExtentBind,
    IndexAdd,
    IndexConst,
    IndexDiv,
    IndexLoad,
    IndexMul,
    IndexOp,
    IndexSize,
    IndexSub,
    equal,
)
from oic.ir.module import Module
from oic.ir.ranges import Ranges, difference, linear, value_range
from oic.ir.state import State, StateGet, StateLoad, StateSet
from oic.ir.types import INDEX, IndexType, StateType
from oic.memory.state_regions import Box, is_apart
from oic.operators.base import Operator

Bounds = dict[Value, tuple[Value, Value]]  # of loop indices: the first turn, and the end
CHECKS = (CheckRange, CheckIds, ExtentBind, AssertShape)


def hoist_checks(module: Module) -> None:
    """Move every check that can be moved, in each function."""
    for func in module.functions():
        _body(func.body)
        for op in list(func.body.all_ops()):
            for region in op.consumers if isinstance(op, Parallel) else ():
                _body(region)  # checks before a consumer's own effects need not come after them


def _effect(op: Op) -> bool:
    return bool(op.writes) and op.regions == []


# ---------------------------------------------------------------- one function or consumer


def _body(body: Block) -> None:
    first = _first_effect(body)
    if first is None:
        return
    mover = _Mover(body, first)
    for op in list(_straight(body.ops[first:])):
        if isinstance(op, CHECKS):
            mover.hoist(op)
        elif op.regions:
            mover.hoist_nest(op)
    head, tail = body.ops[:first], body.ops[first:]
    tail = [op for op in tail if op not in mover.gone]
    body.set_ops([*head, *mover.ops, *tail])


def _first_effect(body: Block) -> int | None:
    """Position of the first top-level op that writes a state, itself or inside."""
    for i, op in enumerate(body.ops):
        if any(_effect(o) for o in op.walk()):
            return i
    return None


def _straight(ops: list[Op]) -> Iterator[Op]:
    """The ops that run exactly once: those of consumers are among them."""
    for op in ops:
        if isinstance(op, Parallel):
            for region in op.consumers:
                yield from _straight(region.ops)
        else:
            yield op


class _Mover:
    """Copies checks, and the arithmetic they need, to the position of the first effect."""

    def __init__(self, body: Block, first: int) -> None:
        self.body = body
        self.ops: list[Op] = []
        self.gone: set[Op] = set()
        self.copies: dict[Value, Value] = {}
        self.settled: dict[Value, Value] = {}  # copies whose ops are among `ops`, or will be
        self.outer: list[Op] = []  # of the check being moved: what comes before its loops
        self.moved: set[Op] = set()
        self.written: dict[Value, list[Op]] = {}
        self.ranges = Ranges()
        self.inner = set(body.walk())
        self.order = {op: i for i, op in enumerate(body.all_ops())}
        self.barriers = [at for op, at in self.order.items() if isinstance(op, Barrier)]
        self.start = self.order[body.ops[first]]
        self.given = dims.extents(d for arg in body.args for d in arg.shape)
        self.given |= {op.extent for op in body.ops[:first] if isinstance(op, ExtentBind)}
        for op in body.all_ops():
            if _effect(op):
                for state in op.touched("write"):
                    self.written.setdefault(state, []).append(op)

    def hoist(self, op: Op) -> None:
        """Make a check that runs exactly once early, if it can be; the original goes or becomes redundant."""
        self.settled, self.outer = dict(self.copies), []
        if isinstance(op, AssertShape):
            self.hoist_sizes(op)
            return
        if isinstance(op, ExtentBind) and self.hoist_extent(op):
            return
        if isinstance(op, CheckIds):
            bound = dims.extents([op.bound]) <= self.given
            ids = self.early_ids(op.x) if bound else None
            if ids is not None:
                op.x = ids
                self.forget(op)
                self.ops.append(op)
            return
        known, made = dict(self.copies), list[Op]()
        if not self.check(op, {}, made):
            self.copies = known
            return
        self.ops += made
        self.forget(op)

    def forget(self, op: Op) -> None:
        """The check has been made early."""
        if isinstance(op, ExtentBind):
            op.checked = True
            return
        assert op.block is not None
        if op.block is self.body:
            self.gone.add(op)
        else:
            op.block.set_ops([o for o in op.block.ops if o is not op])

    def hoist_nest(self, nest: Op) -> None:
        """Make early what can be of the checks in loops and branches.

        Of a loop those in the first and the last turn are enough, if all can be had so; all turns follow
        where one of these refuses, as another may come first.
        """
        known, moved = dict(self.copies), set[Op]()
        self.settled, self.outer = dict(self.copies), []
        ends: list[Op] | None = []
        apart = False  # checks differ from turn to turn
        for op in [o for o in nest.walk() if isinstance(o, CHECKS) and not isinstance(o, AssertShape)]:
            layers = _layers(op, self.body)
            made = self.turns(op, layers, {}) if ends is not None else None
            self.copies = dict(known)
            if made is not None:
                moved.add(op)
                ends = [*ends, *made] if ends is not None else None
                apart = apart or self.differs(op, layers)
                continue
            outer, settled = list(self.outer), dict(self.settled)
            if self.every_turn(nest, {op}, {}) is not None:
                moved.add(op)
                ends = None
            else:
                self.outer, self.settled = outer, settled
            self.copies = dict(known)
        if not moved:
            return
        turns = self.every_turn(nest, moved, {}) if apart or ends is None else []
        self.copies = dict(known)
        assert turns is not None
        self.ops += self.outer
        if ends is None:
            self.ops += turns
        elif apart:
            blocks = (Block(ops=[*ops, Yield([])]) for ops in (ends, turns))
            self.ops.append(CheckTurns(*blocks, span=nest.span))
        else:
            self.ops += ends
        for done in moved:
            self.forget(done)

    def differs(self, op: Op, layers: list[Op]) -> bool:
        """The check is another one in every turn of a loop."""
        indices = [layer.body.args[0] for layer in layers if isinstance(layer, For)]
        return any(_depends(part, i) for part in _looked_at(op) for i in indices)

    def hoist_extent(self, op: ExtentBind) -> bool:
        """Bind an extent before the first effect, so that sizes made of it are known there."""
        if op.block is not self.body:
            return False
        known, ops = dict(self.copies), list[Op]()
        value = self.early(op.value, {}, ops)
        if value is None:
            self.copies = known
            return False
        op.value = value
        self.ops += [*ops, op]
        self.gone.add(op)
        self.given |= {op.extent}
        return True

    def hoist_sizes(self, op: AssertShape) -> None:
        """Compare sizes before the first effect, if all are known there."""
        pairs = [(a, b) for a, b in zip(op.x.shape, op.shape, strict=True) if a != b]
        if op.checked or not dims.extents(d for pair in pairs for d in pair) <= self.given:
            return
        for actual, expected in pairs:
            for made in equal(actual, expected, op.x.hint):
                made.span = op.span
                self.ops.append(made)
        op.checked = True

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
            self.copies = known | self.copies
            self.gone |= self.moved
            return True
        self.copies, self.moved = known, moved
        del self.ops[ops:]
        return False

    def move(self, op: Op) -> bool:
        """Compute before the first effect what depends on nothing later, with all that it needs."""
        if op in self.moved:
            return True
        compared = isinstance(op, AssertShape) and op.checked
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
        """What the op reads is the same before the first effect, and no barrier lies between."""
        if not all(sizes_used(o) <= self.given | _bound_in(op) for o in op.walk()):
            return False
        before = range(self.start, self.order[op])
        if any(at in before for at in self.barriers):
            return False
        writers = [o for s in op.touched("read") for o in self.written.get(s, ()) if self.order[o] in before]
        return all(isinstance(op, StateLoad) and is_apart(o, Box.of(op), {}, self.ranges) for o in writers)

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

    def turns(self, op: Op, layers: list[Op], bounds: Bounds) -> list[Op] | None:
        """The checks for all turns of these loops and branches, inside an `if` where one may not run.

        What is computed inside an `if` is not known after it.
        """
        if not layers:
            return self.corners(op, bounds)
        layer, inner = layers[0], layers[1:]
        ops: list[Op] = []
        if isinstance(layer, If):
            if any(_depends(layer.condition, i) for i in bounds):
                return None
            condition = self.early_condition(layer.condition, {}, ops)
            known = dict(self.copies)
            rest = self.turns(op, inner, bounds) if condition is not None else None
            if rest is None or condition is None:
                return None
            self.copies = known
            return [*ops, _if(condition, *((rest, []) if _is_inside(op, layer.then) else ([], rest)))]
        assert isinstance(layer, For)
        low, high = self.early(layer.start, {}, ops), self.early(layer.end, {}, ops)
        if low is None or high is None:
            return None
        known = dict(self.copies)
        rest = self.turns(op, inner, bounds | {layer.body.args[0]: (low, high)})
        if rest is None or value_range(layer.start)[1] < value_range(layer.end)[0]:
            return None if rest is None else ops + rest
        self.copies = known
        test = Cond(low, high)
        return [*ops, test, _if(test.result, rest, [])]

    def corners(self, op: Op, bounds: Bounds) -> list[Op] | None:
        """The checks in the first and the last turn of every loop whose index takes part."""
        parts = _looked_at(op)
        used = [i for i in bounds if any(_depends(p, i) for p in parts)]
        if len(used) > 2 or any(not _monotone(p, i) for p in parts for i in used):
            return None
        if isinstance(op, CheckIds):
            return None  # whose C is a loop
        checks: list[Op] = []
        for corner in range(1 << len(used)):
            values: dict[Value, Value] = {}
            for n, index in enumerate(used):
                low, high = bounds[index]
                if corner >> n & 1:
                    one = IndexConst(1)
                    last = IndexSub(high, one.result)
                    checks += [one, last]
                    values[index] = last.result
                else:
                    values[index] = low
            if not self.check(op, values, checks):
                return None
        return checks

    def every_turn(self, nest: Op, wanted: set[Op], turn: dict[Value, Value]) -> list[Op] | None:
        """These checks alone, in the loops and branches that they are made in."""
        ops: list[Op] = []
        if isinstance(nest, CHECKS):
            made = nest not in wanted or self.check(nest, turn, ops)
            return ops if made else None
        if not any(op in wanted for op in nest.walk()):
            return ops
        known = dict(self.copies)
        if isinstance(nest, If):
            condition = self.early_condition(nest.condition, turn, ops)
            known = dict(self.copies)
            sides = [self.every_op(block, wanted, turn, known) for block in (nest.then, nest.orelse)]
            then, orelse = sides
            if condition is None or then is None or orelse is None:
                return None
            return [*ops, _if(condition, then, orelse)]
        if isinstance(nest, For):
            low, high = self.early(nest.start, turn, ops), self.early(nest.end, turn, ops)
            if low is None or high is None:
                return None
            body = Block()
            index = body.argument(INDEX, nest.body.args[0].hint)
            known = dict(self.copies)
            rest = self.every_op(nest.body, wanted, turn | {nest.body.args[0]: index}, known)
            if rest is None:
                return None
            body.set_ops([*rest, Yield([])])
            return [*ops, For(low, high, [], nest.tag, body, span=nest.span)]
        for region in nest.regions:  # consumers, which always run
            rest = self.every_op(region, wanted, turn, known)
            if rest is None:
                return None
            ops += rest
        return ops

    def every_op(
        self, block: Block, wanted: set[Op], turn: dict[Value, Value], known: dict[Value, Value]
    ) -> list[Op] | None:
        """`every_turn` of a block; what is computed in it is not known after it."""
        found: list[Op] = []
        for op in block.ops:
            made = self.every_turn(op, wanted, turn) if op.regions or op in wanted else []
            if made is None:
                return None
            found += made
        self.copies = dict(known)
        return found

    def early_condition(self, value: Value, turn: dict[Value, Value], ops: list[Op]) -> Value | None:
        """A condition as it is before the first effect."""
        if not isinstance(value.op, Cond):
            return value if self.early_tensor(value) else None
        if self.stands_early(value.op):
            return value
        sides = [self.early(v, turn, ops) for v in value.op.operands]
        left, right = sides
        if left is None or right is None:
            return None
        ops.append(Cond(left, right))
        return ops[-1].result

    def check(self, op: Op, turn: dict[Value, Value], ops: list[Op]) -> bool:
        """Add one early check, for the turn in which the loops' indices have these values."""
        if isinstance(op, CheckIds):
            if not (dims.extents([op.bound]) <= self.given and self.early_tensor(op.x)):
                return False
            ops.append(CheckIds(op.x, op.bound, op.variable, span=op.span))
            return True
        value = self.early(op.value, turn, ops)  # type: ignore[attr-defined]
        limits = [self.early(b, turn, ops) if isinstance(b, Value) else b for b in _limits(op)]
        low, high = limits
        if value is None or low is None or high is None:
            return False
        assert isinstance(op, (CheckRange, ExtentBind))
        new = CheckRange(value, low, high, op.below, op.above, op.variable, span=op.span)
        if isinstance(op, ExtentBind):
            new.says = SIZE
        elif op.says:
            new.says, new.radix = op.says, op.radix
            new.shown = self.early(op.shown, turn, ops) if op.shown is not None else None
            if (new.shown is None) != (op.shown is None):
                return False
        ops.append(new)
        return True

    def early(self, value: Value, turn: dict[Value, Value], ops: list[Op]) -> Value | None:
        """The value as computed before the first effect, by ops that are added; None if it cannot be."""
        found = dict(turn) if turn else self.copies
        waiting = [value]
        while waiting:  # no recursion: a chain of increments may be thousands of ops long
            last = waiting[-1]
            if last in found:
                waiting.pop()
                continue
            if turn and self.is_invariant(last, turn):
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
            else:
                copy = clone_op(last.op, {v: found[v] for v in sources})
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
        elif isinstance(op, IndexSize):
            if not dims.extents([op.size]) <= self.given:
                return None
        elif isinstance(op, IndexLoad):
            if not self.early_tensor(op.x):
                return None
        elif not isinstance(op, IndexOp):
            return None
        # The others are a state, or a tensor that exists.
        return [v for v in op.operands if isinstance(v.type, IndexType)]

    def is_invariant(self, value: Value, turn: dict[Value, Value]) -> bool:
        """It has to be computed early, and none of the loops' indices decides about it."""
        op = value.op
        return op is not None and not self.stands_early(op) and not any(_depends(value, i) for i in turn)

    def invariant(self, value: Value) -> Value | None:
        """A value that is the same in every turn, computed once before the loops of checks."""
        known, self.copies = self.copies, dict(self.settled)
        found = self.early(value, {}, self.outer)
        if found is not None:
            self.settled = self.copies
        self.copies = known | self.settled
        return found

    def stands_early(self, op: Op) -> bool:
        """The op comes before the first effect anyway; outside a consumer, before all of it."""
        return op not in self.order or (op.block is self.body and self.order[op] < self.start)

    def is_given(self, value: Value) -> bool:
        """An argument of the body, or of a block around it."""
        return value in self.body.args or value.owner not in self.inner

    def changes(self, op: StateGet) -> bool:
        """The state may have been written before this read of it in the same step."""
        loops = [layer for layer in _layers(op, self.body) if isinstance(layer, For)]
        first = self.order[loops[0] if loops else op]
        last = max(self.order[o] for o in loops[0].walk()) if loops else first
        writers = self.written.get(op.state, ())
        inside = [w for w in writers if first <= self.order[w] <= last]
        before = [w for w in writers if self.order[w] < first]
        return any(_may_meet(w, op) for w in before) or not _is_own(op, loops, inside)


def _bound_in(op: Op) -> frozenset[Extent]:
    """The extents that are bound inside the op."""
    return frozenset(o.extent for o in op.walk() if isinstance(o, ExtentBind))


def _set_before(get: StateGet) -> Value | None:
    """What the same turn has set the very element to that is read, earlier in the same block."""
    state, block = get.state.op, get.block
    assert isinstance(state, State) and block is not None
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
    apart = [difference(a, b) for a, b in pairs]
    return all(low <= 0 <= high for low, high in apart)


def _is_own(get: StateGet, loops: list[For], writers: list[Op]) -> bool:
    """What is read in a turn of the loops no other turn writes, and this one only afterwards."""
    if not writers:
        return True
    for loop in loops:
        index = loop.body.args[0]
        if not any(set(form := linear(i)) <= {index, None} and form.get(index) for i in get.indices):
            return False
    return all(_after_itself(w, get) for w in writers)


def _after_itself(writer: Op, get: StateGet) -> bool:
    """The writer sets the very element that is read, later in the same turn."""
    if not isinstance(writer, StateSet):
        return False
    if not _is_same(writer, get):
        return False
    at: Op | None = writer
    while at is not None and at.block is not get.block:
        at = at.block.owner if at.block is not None else None
    if at is None or at.block is None:
        return False
    return at.block.ops.index(at) > at.block.ops.index(get)


def _is_same(writer: StateSet, get: StateGet) -> bool:
    """The element that is set is the one that is read."""
    pairs = zip(writer.indices, get.indices, strict=True)
    return all(difference(a, b) == (0, 0) for a, b in pairs)


def _limits(op: Op) -> list[int | Value]:
    if isinstance(op, ExtentBind):
        return [0, op.extent.maximum]
    assert isinstance(op, CheckRange)
    return [op.low, op.high]


def _looked_at(op: Op) -> list[Value]:
    """The integers that a check is about."""
    if isinstance(op, CheckIds):
        return []
    found = [op.value, *_limits(op)]  # type: ignore[attr-defined]
    if isinstance(op, CheckRange):
        found.append(op.shown)
    return [v for v in found if isinstance(v, Value)]


def _layers(op: Op, body: Block) -> list[Op]:
    """The loops and branches around an op, outermost first; consumers always run."""
    found: list[Op] = []
    block = op.block
    while block is not None and block is not body:
        owner = block.owner
        assert owner is not None
        if not isinstance(owner, Parallel):
            found.append(owner)
        block = owner.block
    return found[::-1]


def _is_inside(op: Op, block: Block) -> bool:
    """The op is in the block, or in one nested in it."""
    at = op.block
    while at is not None and at is not block:
        at = at.owner.block if at.owner is not None else None
    return at is block


def _if(condition: Value, then: list[Op], orelse: list[Op]) -> If:
    blocks = (Block(ops=[*ops, Yield([])]) for ops in (then, orelse))
    return If(condition, [], *blocks)


def _depends(value: Value, index: Value) -> bool:
    seen: set[Value] = set()
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if at is index:
            return True
        if at not in seen and at.op is not None:
            waiting += at.op.operands
        seen.add(at)
    return False


def _monotone(value: Value, index: Value) -> bool:
    """The value goes one way as the index grows, so that its extremes are at the loop's ends."""
    while value is not index and _depends(value, index):
        op = value.op
        if not isinstance(op, (IndexAdd, IndexSub, IndexMul, IndexDiv)):
            return False
        sides = [v for v in op.operands if _depends(v, index)]
        if len(sides) != 1 or (isinstance(op, IndexDiv) and sides[0] is not op.left):
            return False
        value = sides[0]
    return True
