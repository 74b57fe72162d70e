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

from oic.ir import dims, index
from oic.ir.control import CheckIterations, Cond, For, If, Parallel, Yield
from oic.ir.core import Block, Op, Value, clone_op
from oic.ir.dims import Dim
from oic.ir.module import Module
from oic.ir.ranges import CHECKS, Ranges
from oic.ir.types import INDEX
from oic.operators.late import is_effect
from oic.passes.early_values import EarlyValues, Iteration, NotEarly, cut, layers, need

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
    body.set_ops([*body.ops[:first], *mover.ops, *tail])
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
        self.start_of_check()
        known, made = len(self.copies), list[Op]()
        try:
            if isinstance(op, index.ExtentBind) and op.block is self.body:
                op.value = self.early(op.value, {}, made)
                made.append(op)
                self.gone[op] = {}
                self.given |= {op.extent}  # sizes made of it are known early
            else:
                self.check(op, {}, made)
                self.forget(op)
        except NotEarly:
            cut(self.copies, known)
        else:
            self.ops += made

    def forget(self, op: Op) -> None:
        """The check has been made early."""
        if isinstance(op, (index.ExtentBind, index.AssertShape)) or (op.results and op.block is not self.body):
            op.checked = True
        elif op.block is self.body:
            self.gone[op] = {}
            self.same |= {v: self.copies[v] for v in op.results}
        else:
            op.home.set_ops([o for o in op.home.ops if o is not op])

    def hoist_nest(self, nest: Op) -> None:
        """Make early what can be of the checks in loops and branches.

        Of a loop those in the first and the last iteration are enough, if all can be had so; all iterations follow
        where one of these refuses, as another may come first.
        """
        moved = set[Op]()
        self.start_of_check()
        ends: list[Op] | None = []
        apart = False  # checks differ from iteration to iteration
        for op in [o for o in nest.walk() if self.refuses(o)]:
            around = layers(op, self.body)
            if ends is not None and (made := self.attempt(self.iterations, op, around, {})) is not None:
                moved.add(op)
                ends += made
                apart = apart or self.differs(op, around)
                continue
            outer, settled = list(self.outer), dict(self.settled)
            if self.attempt(self.every_iteration, nest, {op}, {}) is not None:
                moved.add(op)
                ends = None
            else:
                self.outer, self.settled = outer, settled
        if not moved:
            return
        iterations = self.attempt(self.every_iteration, nest, moved, {}) if apart or ends is None else []
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
                return op.operands
        return [op.result]

    def iterations(self, op: Op, around: list[Op], bounds: Bounds) -> list[Op]:
        """The checks for all iterations of these loops and branches, inside an `if` where one may not run.

        What is computed inside an `if` is not known after it.
        """
        if not around:
            return self.corners(op, bounds)
        layer, inner = around[0], around[1:]
        ops: list[Op] = []
        if isinstance(layer, If):
            need(not any(self.depends(layer.condition, i) for i in bounds))
            condition = self.early_condition(layer.condition, {}, ops)
            known = dict(self.copies)
            rest = self.iterations(op, inner, bounds)
            self.copies = known
            return [*ops, _if(condition, *((rest, []) if op.inside(layer.then) else ([], rest)))]
        assert isinstance(layer, For)
        low, high = self.early(layer.start, {}, ops), self.early(layer.end, {}, ops)
        known = dict(self.copies)
        rest = self.iterations(op, inner, bounds | {layer.body.args[0]: (low, high)})
        if Ranges().difference(layer.end, layer.start)[0] > 0:
            return ops + rest
        self.copies = known
        test = Cond(low, high)
        return [*ops, test, _if(test.result, rest, [])]

    def corners(self, op: Op, bounds: Bounds) -> list[Op]:
        """The checks in the first and the last iteration of every loop whose index takes part."""
        parts = self.looked_at(op)
        used = [i for i in bounds if any(self.depends(p, i) for p in parts)]
        need(len(used) <= 2 and all(self.monotone(p, i) for p in parts for i in used))
        # The C of the one is a loop; what is equal at the ends need not be in between.
        need(not isinstance(op, index.CheckIds) and not (isinstance(op, index.AssertShape) and used))
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
            self.check(op, values, checks)
        return checks

    def every_iteration(self, nest: Op, wanted: set[Op], iteration: Iteration) -> list[Op]:
        """These checks alone, in the loops and branches that they are made in."""
        ops: list[Op] = []
        if not nest.regions:
            self.check(nest, iteration, ops)
        elif isinstance(nest, If):
            condition = self.early_condition(nest.condition, iteration, ops)
            then, orelse = (self.every_op(block, wanted, iteration) for block in (nest.then, nest.orelse))
            ops.append(_if(condition, then, orelse))
        elif isinstance(nest, For):
            low, high = self.early(nest.start, iteration, ops), self.early(nest.end, iteration, ops)
            body = Block()
            counter = body.argument(INDEX, nest.body.args[0].hint)
            rest = self.every_op(nest.body, wanted, iteration | {nest.body.args[0]: counter})
            body.set_ops([*rest, Yield([])])
            ops.append(For(low, high, [], nest.tag, body, span=nest.span))
        else:
            for region in nest.regions:  # consumers, which always run
                ops += self.every_op(region, wanted, iteration)
        return ops

    def every_op(self, block: Block, wanted: set[Op], iteration: Iteration) -> list[Op]:
        """`every_iteration` of a block; what is computed in it is not known after it."""
        known, found = dict(self.copies), list[Op]()
        for op in block.ops:
            if any(o in wanted for o in op.walk()):
                found += self.every_iteration(op, wanted, iteration)
        self.copies = known
        return found

    def check(self, op: Op, iteration: Iteration, ops: list[Op]) -> None:
        """Add one early check, for the iteration in which the loops' indices have these values."""
        if isinstance(op, index.CheckIds):
            need(dims.extents([op.bound]) <= self.given)
            ops.append(index.CheckIds(self.early_ids(op.x), op.bound, op.variable, span=op.span))
        elif isinstance(op, index.AssertShape):
            for sizes in _unequal(op):
                left, right = (self.early_size(size, iteration, ops) for size in sizes)
                ops.append(index.same_size(left, right, op.x.hint, op.span))
        elif isinstance(op, index.CheckRange):
            known = {v: self.early(v, iteration, ops) for v in op.operands}
            ops.append(clone_op(op, known))
        elif isinstance(op, index.ExtentBind):
            value, most = self.early(op.value, iteration, ops), op.extent.maximum
            ops.append(index.CheckRange(value, 0, most, op.below, op.above, op.variable, index.SIZE, span=op.span))
        else:
            self.early(op.result, iteration, ops)

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


def _if(condition: Value, then: list[Op], orelse: list[Op]) -> If:
    blocks = (Block(ops=[*ops, Yield([])]) for ops in (then, orelse))
    return If(condition, [], *blocks)
