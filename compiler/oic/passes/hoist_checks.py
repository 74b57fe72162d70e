"""Refuse a step before it changes anything.

    state.store(%K, [%l, %p], %k)             check.range(%p, 0, 511)
    check.range(%p, 0, 511)              =>   state.store(%K, [%l, %p], %k)

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

from itertools import product

from oic.ir import dims, index
from oic.ir.control import CheckIterations, Cond, For, If, Parallel, Yield
from oic.ir.core import Block, Op, Value, clone_op
from oic.ir.dims import Dim
from oic.ir.module import Module
from oic.ir.ranges import CHECKS, Ranges
from oic.ir.types import INDEX
from oic.operators.late import is_effect
from oic.passes.early_values import EarlyValues, Scope, layers, need

Bounds = dict[Value, tuple[Value, Value]]  # of loop indices: the first iteration, and the end


def hoist_checks(module: Module) -> None:
    """Move every check that can be moved, in each function."""
    for func in module.functions():
        _body(func.body)
        for op in list(func.body.all_ops()):
            for region in op.consumers if isinstance(op, Parallel) else ():
                _body(region)  # checks before a consumer's own effects need not come after them


def _body(body: Block) -> None:
    first = next((i for i, op in enumerate(body.ops) if any(map(is_effect, op.walk()))), None)
    if first is None:
        return
    mover = _Mover(body, first)
    once = [op for op, at in mover.order.items() if at >= mover.start and not layers(op, body)]
    for op in (op for op in once if not isinstance(op, Parallel)):  # those of consumers run exactly once, too
        if mover.refuses(op):
            mover.hoist(op)
        elif op.regions:
            mover.hoist_nest(op)
    for op, operands in mover.gone.items():
        for part in op.walk():
            part.replace_operands(operands)
    tail = [op for op in body.ops[first:] if op not in mover.gone]
    body.set_ops([*body.ops[:first], *mover.front.ops, *tail])
    body.replace(mover.same)


class _Mover(EarlyValues):
    """Copies checks, and the arithmetic they need, to the position of the first effect."""

    def refuses(self, op: Op) -> bool:
        """The op is a check, or arithmetic of the source that may refuse the step."""
        if isinstance(op, CHECKS):
            return not getattr(op, "checked", False)
        return self.ranges.refuses_source(op)

    def hoist(self, op: Op) -> None:
        """Make a check that runs exactly once early, if it can be; the original goes or becomes redundant."""
        if self.attempt(self.front, self.check, op):
            self.forget(op)

    def forget(self, op: Op) -> None:
        """The check has been made early."""
        if op in self.gone:
            return
        if isinstance(op, (index.ExtentBind, index.AssertShape)) or (op.results and op.block is not self.body):
            op.checked = True
        elif op.block is self.body:
            self.gone[op] = {}
            self.same |= {v: self.front.copies[v] for v in op.results}
        else:
            op.home.set_ops([o for o in op.home.ops if o is not op])

    def hoist_nest(self, nest: Op) -> None:
        """Make early what can be of the checks in loops and branches.

        Of a loop those in the first and the last iteration are enough, if all can be had so; all iterations follow
        where one of these refuses, as another may come first.
        """
        moved = set[Op]()
        ends: list[Op] | None = []
        apart = False  # checks differ from iteration to iteration
        for op in [o for o in nest.walk() if self.refuses(o)]:
            around = layers(op, self.body)
            inner = self.front.inner()
            if ends is not None and self.attempt(inner, self.iterations, op, around, {}):
                ends += inner.ops
                apart = apart or self.differs(op, around)
            elif self.attempt(self.front.inner(), self.every_iteration, nest, {op}):
                ends = None
            else:
                continue
            moved.add(op)
        if ends is None or apart:
            every = self.front.inner()
            self.every_iteration(nest, moved, every)
            ends = every.ops if ends is None else [CheckIterations(_block(ends), _block(every.ops), span=nest.span)]
        self.front.ops.extend(ends)
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
                return op.operands
        return [op.result]

    def iterations(self, op: Op, around: list[Op], bounds: Bounds, at: Scope) -> None:
        """Add the checks for all iterations of these loops and branches, inside an `if` where one may not run."""
        if not around:
            self.corners(op, bounds, at)
            return
        layer, rest, inner = around[0], around[1:], at.inner()
        if isinstance(layer, If):
            need(not any(self.depends(layer.condition, i) for i in bounds))
            condition = self.early_condition(layer.condition, at)
            self.iterations(op, rest, bounds, inner)
            at.ops.append(_if(condition, *(inner.ops if op.inside(region) else [] for region in layer.regions)))
            return
        assert isinstance(layer, For)
        low, high = self.early(layer.start, at), self.early(layer.end, at)
        bounds = bounds | {layer.body.args[0]: (low, high)}
        if Ranges().difference(layer.end, layer.start)[0] > 0:
            self.iterations(op, rest, bounds, at)
        else:
            self.iterations(op, rest, bounds, inner)
            at.ops.append(_if(at.add(Cond(low, high)), inner.ops, []))

    def corners(self, op: Op, bounds: Bounds, at: Scope) -> None:
        """Add the checks in the first and the last iteration of every loop whose index takes part."""
        parts = self.looked_at(op)
        used = [i for i in bounds if any(self.depends(p, i) for p in parts)]
        need(len(used) <= 2 and all(self.monotone(p, i) for p in parts for i in used))
        # The C of the one is a loop; what is equal at the ends need not be in between.
        need(not isinstance(op, index.CheckIds) and not (isinstance(op, index.AssertShape) and used))
        loops = (bounds[counter] for counter in used)
        ends = [(low, at.add(index.IndexSub(high, at.add(index.IndexConst(1))))) for low, high in loops]
        for corner in product(*ends):
            self.check(op, at.inner(dict(zip(used, corner)), at.ops))

    def every_iteration(self, nest: Op, wanted: set[Op], at: Scope) -> None:
        """Add these checks alone, in the loops and branches that they are made in."""
        if not nest.regions:
            self.check(nest, at)
        elif isinstance(nest, If):
            condition = self.early_condition(nest.condition, at)
            at.ops.append(_if(condition, *(self.every_op(region, wanted, at.inner()) for region in nest.regions)))
        elif isinstance(nest, For):
            low, high = self.early(nest.start, at), self.early(nest.end, at)
            body = Block()
            counter = body.argument(INDEX, nest.body.args[0].hint)
            rest = self.every_op(nest.body, wanted, at.inner({nest.body.args[0]: counter}))
            body.set_ops([*rest, Yield([])])
            at.ops.append(For(low, high, [], nest.tag, body, span=nest.span))
        else:
            for region in nest.regions:  # consumers, which always run
                self.every_op(region, wanted, at)

    def every_op(self, block: Block, wanted: set[Op], at: Scope) -> list[Op]:
        """The ops of a scope with `every_iteration` of the ops of a block."""
        for op in block.ops:
            if any(o in wanted for o in op.walk()):
                self.every_iteration(op, wanted, at)
        return at.ops

    def check(self, op: Op, at: Scope) -> None:
        """Add one early check, for the iteration of a scope; what binds an extent of the body moves there."""
        if isinstance(op, index.CheckIds):
            need(dims.extents([op.bound]) <= self.given)
            at.ops.append(index.CheckIds(self.early_ids(op.x), op.bound, op.variable, span=op.span))
        elif isinstance(op, index.AssertShape):
            for sizes in _unequal(op):
                left, right = (self.early_size(size, at) for size in sizes)
                at.ops.append(index.same_size(left, right, op.x.hint, op.span))
        elif isinstance(op, index.CheckRange):
            known = {v: self.early(v, at) for v in op.operands}
            at.ops.append(clone_op(op, known))
        elif isinstance(op, index.ExtentBind) and op.block is self.body:
            op.value = self.early(op.value, at)
            at.ops.append(op)
            self.gone[op] = {}
            self.given |= {op.extent}  # sizes made of it are known early
        elif isinstance(op, index.ExtentBind):
            value, most = self.early(op.value, at), op.extent.maximum
            at.ops.append(index.CheckRange(value, 0, most, op.below, op.above, op.variable, index.SIZE, span=op.span))
        else:
            self.early(op.result, at)

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


def _block(ops: list[Op]) -> Block:
    return Block(ops=[*ops, Yield([])])


def _if(condition: Value, then: list[Op], orelse: list[Op]) -> If:
    return If(condition, [], _block(then), _block(orelse))
