"""Refuse a step before it changes anything.

    state.store(%K, %k, [%l, %p])             check.range(%p, 0, 511)
    check.range(%p, 0, 511)              =>   state.store(%K, %k, [%l, %p])

A check moves before the first effect if what it looks at can be computed there: index arithmetic
on inputs, on states that no effect before it writes, and on tensors that depend on nothing else; these
are then computed there, with all that they need; inside an `if`, if its condition can be.  Arithmetic that
the source asks for and that may leave 64 bits is such a check.  A check
inside a loop is made once for all iterations: with its value's smallest and largest over the loop where
the index takes part, and only if the loop has an iteration.  Where one of these refuses, the checks of all
iterations are made in the order of the source (`check.iterations`), so that the first iteration at fault is
reported.  Where the value is no such function of the index (`next` of the ring of a layer), a loop
of checks alone comes first.  Checks of what is computed from data after an effect stay;
`late_checks` lists them for the build report (SPEC, 8.6).
"""

from __future__ import annotations

from collections.abc import Iterator

from oic.ir import dims, index
from oic.ir.control import CheckIterations, Cond, For, If, Parallel, Yield
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim
from oic.ir.module import Module
from oic.ir.ranges import CHECKS, Ranges
from oic.ir.state import StateGet
from oic.ir.types import INDEX
from oic.passes.early_values import EarlyValues, Iteration, is_effect, layers

Bounds = dict[Value, tuple[Value, Value]]  # of loop indices: the first iteration, and the end


def hoist_checks(module: Module) -> None:
    """Move every check that can be moved, in each function."""
    for func in module.functions():
        _body(func.body)
        for op in list(func.body.all_ops()):
            for region in op.consumers if isinstance(op, Parallel) else ():
                _body(region)  # checks before a consumer's own effects need not come after them


# ---------------------------------------------------------------- one function or consumer


def _body(body: Block) -> None:
    first = _first_effect(body)
    if first is None:
        return
    mover = _Mover(body, first)
    for op in list(_straight(body.ops[first:])):
        if mover.refuses(op):
            mover.hoist(op)
        elif op.regions:
            mover.hoist_nest(op)
    head, tail = body.ops[:first], body.ops[first:]
    tail = [op for op in tail if op not in mover.gone]
    body.set_ops([*head, *mover.ops, *tail])
    body.replace(mover.same)


def _first_effect(body: Block) -> int | None:
    """Position of the first top-level op that writes a state, itself or inside."""
    for i, op in enumerate(body.ops):
        if any(is_effect(o) for o in op.walk()):
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


class _Mover(EarlyValues):
    """Copies checks, and the arithmetic they need, to the position of the first effect."""

    def refuses(self, op: Op) -> bool:
        """The op is a check, or arithmetic of the source that may refuse the step."""
        if isinstance(op, CHECKS):
            return not getattr(op, "checked", False)
        wanted = isinstance(op, (index.IndexLoad, StateGet)) or getattr(op, "written", False)
        return wanted and self.ranges.refuses(op)

    def hoist(self, op: Op) -> None:
        """Make a check that runs exactly once early, if it can be; the original goes or becomes redundant."""
        self.start_of_check()
        if isinstance(op, index.ExtentBind) and self.hoist_extent(op):
            return
        if isinstance(op, index.CheckIds):
            bound = dims.extents([op.bound]) <= self.given
            ids = self.early_ids(op.x) if bound else None
            if ids is not None:
                op.x = ids
                self.forget(op)
                self.ops.append(op)
            return
        known, made = len(self.copies), list[Op]()
        if not self.check(op, {}, made):
            self.forget_copies(known)
            return
        self.ops += made
        self.forget(op)

    def forget(self, op: Op) -> None:
        """The check has been made early."""
        if isinstance(op, CHECKS) and not isinstance(op, (index.CheckRange, index.CheckIds)):
            op.checked = True
        elif op.block is self.body:
            self.gone.add(op)
            self.same |= {v: self.copies[v] for v in op.results}
        elif op.results:
            op.checked = True
        else:
            op.home.set_ops([o for o in op.home.ops if o is not op])

    def hoist_nest(self, nest: Op) -> None:
        """Make early what can be of the checks in loops and branches.

        Of a loop those in the first and the last iteration are enough, if all can be had so; all iterations follow
        where one of these refuses, as another may come first.
        """
        known, moved = dict(self.copies), set[Op]()
        self.start_of_check()
        ends: list[Op] | None = []
        apart = False  # checks differ from iteration to iteration
        for op in [o for o in nest.walk() if self.refuses(o)]:
            around = layers(op, self.body)
            made = self.iterations(op, around, {}) if ends is not None else None
            self.copies = dict(known)
            if made is not None:
                moved.add(op)
                ends = [*ends, *made] if ends is not None else None
                apart = apart or self.differs(op, around)
                continue
            outer, settled = list(self.outer), dict(self.settled)
            if self.every_iteration(nest, {op}, {}) is not None:
                moved.add(op)
                ends = None
            else:
                self.outer, self.settled = outer, settled
            self.copies = dict(known)
        if not moved:
            return
        iterations = self.every_iteration(nest, moved, {}) if apart or ends is None else []
        self.copies = dict(known)
        assert iterations is not None
        self.ops += self.outer
        if ends is None:
            self.ops += iterations
        elif apart:
            blocks = (Block(ops=[*ops, Yield([])]) for ops in (ends, iterations))
            self.ops.append(CheckIterations(*blocks, span=nest.span))
        else:
            self.ops += ends
        for done in moved:
            self.forget(done)

    def differs(self, op: Op, around: list[Op]) -> bool:
        """The check is another one in every iteration of a loop."""
        indices = [layer.body.args[0] for layer in around if isinstance(layer, For)]
        return any(self.depends(part, i) for part in self.looked_at(op) for i in indices)

    def looked_at(self, op: Op) -> list[Value]:
        """The integers that a check is about."""
        match op:
            case index.CheckIds():
                return []
            case index.AssertShape():
                return [v for pair in _unequal(op) for size in pair for _, v in self.unknown(size)]
            case index.CheckRange() | index.ExtentBind():
                found = [op.value, *_limits(op), op.shown if isinstance(op, index.CheckRange) else None]
                return [v for v in found if isinstance(v, Value)]
        return [op.result]

    def hoist_extent(self, op: index.ExtentBind) -> bool:
        """Bind an extent before the first effect, so that sizes made of it are known there."""
        if op.block is not self.body:
            return False
        known, ops = len(self.copies), list[Op]()
        value = self.early(op.value, {}, ops)
        if value is None:
            self.forget_copies(known)
            return False
        op.value = value
        self.ops += [*ops, op]
        self.gone.add(op)
        self.given |= {op.extent}
        return True

    def iterations(self, op: Op, around: list[Op], bounds: Bounds) -> list[Op] | None:
        """The checks for all iterations of these loops and branches, inside an `if` where one may not run.

        What is computed inside an `if` is not known after it.
        """
        if not around:
            return self.corners(op, bounds)
        layer, inner = around[0], around[1:]
        ops: list[Op] = []
        if isinstance(layer, If):
            if any(self.depends(layer.condition, i) for i in bounds):
                return None
            condition = self.early_condition(layer.condition, {}, ops)
            known = dict(self.copies)
            rest = self.iterations(op, inner, bounds) if condition is not None else None
            if rest is None or condition is None:
                return None
            self.copies = known
            return [*ops, _if(condition, *((rest, []) if op.inside(layer.then) else ([], rest)))]
        assert isinstance(layer, For)
        low, high = self.early(layer.start, {}, ops), self.early(layer.end, {}, ops)
        if low is None or high is None:
            return None
        known = dict(self.copies)
        rest = self.iterations(op, inner, bounds | {layer.body.args[0]: (low, high)})
        if rest is None or Ranges().difference(layer.end, layer.start)[0] > 0:
            return None if rest is None else ops + rest
        self.copies = known
        test = Cond(low, high)
        return [*ops, test, _if(test.result, rest, [])]

    def corners(self, op: Op, bounds: Bounds) -> list[Op] | None:
        """The checks in the first and the last iteration of every loop whose index takes part."""
        parts = self.looked_at(op)
        used = [i for i in bounds if any(self.depends(p, i) for p in parts)]
        if len(used) > 2 or any(not self.monotone(p, i) for p in parts for i in used):
            return None
        if isinstance(op, index.CheckIds) or (isinstance(op, index.AssertShape) and used):
            return None  # the C of the one is a loop; what is equal at the ends need not be in between
        checks: list[Op] = []
        for corner in range(1 << len(used)):
            values: dict[Value, Value] = {}
            for n, counter in enumerate(used):
                low, high = bounds[counter]
                if corner >> n & 1:
                    one = index.IndexConst(1)
                    last = index.IndexSub(high, one.result)
                    checks += [one, last]
                    values[counter] = last.result
                else:
                    values[counter] = low
            if not self.check(op, values, checks):
                return None
        return checks

    def every_iteration(self, nest: Op, wanted: set[Op], iteration: Iteration) -> list[Op] | None:
        """These checks alone, in the loops and branches that they are made in."""
        ops: list[Op] = []
        if not nest.regions:
            made = nest not in wanted or self.check(nest, iteration, ops)
            return ops if made else None
        if not any(op in wanted for op in nest.walk()):
            return ops
        known = dict(self.copies)
        if isinstance(nest, If):
            condition = self.early_condition(nest.condition, iteration, ops)
            known = dict(self.copies)
            sides = [self.every_op(block, wanted, iteration, known) for block in (nest.then, nest.orelse)]
            then, orelse = sides
            if condition is None or then is None or orelse is None:
                return None
            return [*ops, _if(condition, then, orelse)]
        if isinstance(nest, For):
            low, high = self.early(nest.start, iteration, ops), self.early(nest.end, iteration, ops)
            if low is None or high is None:
                return None
            body = Block()
            counter = body.argument(INDEX, nest.body.args[0].hint)
            known = dict(self.copies)
            rest = self.every_op(nest.body, wanted, iteration | {nest.body.args[0]: counter}, known)
            if rest is None:
                return None
            body.set_ops([*rest, Yield([])])
            return [*ops, For(low, high, [], nest.tag, body, span=nest.span)]
        for region in nest.regions:  # consumers, which always run
            rest = self.every_op(region, wanted, iteration, known)
            if rest is None:
                return None
            ops += rest
        return ops

    def every_op(
        self, block: Block, wanted: set[Op], iteration: Iteration, known: dict[Value, Value]
    ) -> list[Op] | None:
        """`every_iteration` of a block; what is computed in it is not known after it."""
        found: list[Op] = []
        for op in block.ops:
            made = self.every_iteration(op, wanted, iteration) if op.regions or op in wanted else []
            if made is None:
                return None
            found += made
        self.copies = dict(known)
        return found

    def check(self, op: Op, iteration: Iteration, ops: list[Op]) -> bool:
        """Add one early check, for the iteration in which the loops' indices have these values."""
        if isinstance(op, index.CheckIds):
            ids = self.early_ids(op.x) if dims.extents([op.bound]) <= self.given else None
            if ids is not None:
                ops.append(index.CheckIds(ids, op.bound, op.variable, span=op.span))
            return ids is not None
        if isinstance(op, index.AssertShape):
            return self.check_sizes(op, iteration, ops)
        if not isinstance(op, (index.CheckRange, index.ExtentBind)):
            return self.early(op.result, iteration, ops) is not None
        value = self.early(op.value, iteration, ops)
        limits = [self.early(b, iteration, ops) if isinstance(b, Value) else b for b in _limits(op)]
        low, high = limits
        if value is None or low is None or high is None:
            return False
        assert isinstance(op, (index.CheckRange, index.ExtentBind))
        new = index.CheckRange(value, low, high, op.below, op.above, op.variable, span=op.span)
        if isinstance(op, index.ExtentBind):
            new.says = index.SIZE
        elif op.says:
            new.says, new.radix = op.says, op.radix
            new.shown = self.early(op.shown, iteration, ops) if op.shown is not None else None
            if (new.shown is None) != (op.shown is None):
                return False
        ops.append(new)
        return True


    def check_sizes(self, op: index.AssertShape, iteration: Iteration, ops: list[Op]) -> bool:
        """Compare the sizes that may differ."""
        for actual, expected in _unequal(op):
            left, right = (self.early_size(size, iteration, ops) for size in (actual, expected))
            if left is None or right is None:
                return False
            ops.append(index.same_size(left, right, op.x.hint, op.span))
        return True

    def monotone(self, value: Value, counter: Value) -> bool:
        """The value goes one way as the counter grows, so that its extremes are at the loop's ends."""
        while value is not counter and self.depends(value, counter):
            op = value.op
            if not isinstance(op, (index.IndexAdd, index.IndexSub, index.IndexMul, index.IndexDiv)):
                return False
            sides = [v for v in op.operands if self.depends(v, counter)]
            if len(sides) != 1 or (isinstance(op, index.IndexDiv) and sides[0] is not op.left):
                return False
            value = sides[0]
        return True


def _unequal(op: index.AssertShape) -> list[tuple[Dim, Dim]]:
    """The sizes that are compared."""
    return [(a, b) for a, b in zip(op.x.shape, op.shape, strict=True) if a != b]


def _limits(op: Op) -> list[int | Value]:
    if isinstance(op, index.ExtentBind):
        return [0, op.extent.maximum]
    assert isinstance(op, index.CheckRange)
    return [op.low, op.high]


def _if(condition: Value, then: list[Op], orelse: list[Op]) -> If:
    blocks = (Block(ops=[*ops, Yield([])]) for ops in (then, orelse))
    return If(condition, [], *blocks)
