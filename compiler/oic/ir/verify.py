"""What every module must obey; a broken rule is an AssertionError that shows the op and its line.

At every stage: each value is defined once, before its uses, in a block that encloses them; owners
and blocks link back; values know the ops that take them; types are those `infer` gives; regions
end in their terminator, which gives what is carried; state comes from `state` ops; an extent is
bound once, before it is used.
INDEXED and PLANNED have no cache operations.  What a plan must obey: `memory.verify`, which calls this.
"""

from oic.ir import dims
from oic.ir.control import Func, Parallel, Return, Yield
from oic.ir.core import Block, Op, OpError, Value, sizes_of, sizes_used
from oic.ir.dims import Extent
from oic.ir.index import ExtentBind, bound_in
from oic.ir.module import Module
from oic.ir.state import CacheOp, Constant, State
from oic.ir.text_print import located, type_text
from oic.ir.types import StateType, same_rank


def verify(module: Module) -> None:
    """Raise AssertionError unless the module obeys every rule of its stage."""
    assert module.stage in ("graph", "indexed", "planned"), f"stage '{module.stage}'"
    checker = _Verifier(module.stage)
    checker.block(module.top, None, set(), set())
    checker.users(module)
    symbols: set[str] = set()
    for op in module.top.ops:
        symbol = op.attributes().get("symbol")
        _require(symbol is not None, op, "the top holds states, constants and functions only")
        _require(symbol not in symbols, op, f"two things are called '{symbol}'")
        symbols.add(str(symbol))
        if isinstance(op, Constant):
            _require(op.symbol in module.weights, op, "a constant without data")
            _require(module.weights[op.symbol].shape == op.result.shape, op, "data of another shape")


def _require(rule: bool, op: Op, what: str) -> None:
    if not rule:
        raise AssertionError(f"{what}\n{located(op)}")


class _Verifier:
    """Walks the ops in order; `seen` holds every value defined so far, in any block."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.maxima: dict[str, int] = {}  # of extents, by name
        self.seen: set[Value] = set()
        self.bound: set[str] = set()  # extents bound anywhere in the function

    def block(self, block: Block, owner: Op | None, values: set[Value], bound: set[str]) -> None:
        """Check a block, given the values and extents defined before it."""
        values, bound = set(values), set(bound)
        for arg in block.args:
            assert owner is not None
            self.define(arg, block, owner, values)
        for i, op in enumerate(block.ops):
            last = owner is not None and i == len(block.ops) - 1
            _require(op.block is block, op, "an op that links to another block")
            _require(op.terminator == last, op, "a region has one terminator, at its end")
            self.op(op, values, bound)
        _require(owner is None or bool(block.ops), owner or Op(), "an empty region")

    def define(self, value: Value, owner: Op | Block, op: Op, values: set[Value]) -> None:
        """A value of an owner is defined here, for the first time."""
        what, by = ("result", "op") if isinstance(owner, Op) else ("argument", "block")
        made = value.op is (owner if isinstance(owner, Op) else None)
        _require(value.owner is owner and made, op, f"{what} {value!r} is owned by another {by}")
        _require(value not in self.seen, op, f"{what} {value!r} is defined twice")
        self.seen.add(value)
        values.add(value)

    def op(self, op: Op, values: set[Value], bound: set[str]) -> None:
        for value in op.operands:
            _require(value in values, op, f"{value!r} is used where it is not defined")
            _require(op in value.users, op, f"{value!r} does not know this user")
        self._states(op)
        if isinstance(op, Func):
            inputs = (dims.atom(d) for d in sizes_of(op.body.args))
            self.bound = {e.name for e in inputs if e is not None}
            bound |= self.bound
        self._extents(op, bound)
        for region in op.regions:
            _require(region.owner is op, op, "a region that links to another op")
            self.block(region, op, values, bound)
            if isinstance(op, Parallel):  # it runs exactly once
                bound |= {e.name for e in bound_in(region.ops)}
            last = region.terminator
            ends = isinstance(last, Return if isinstance(op, Func) else Yield)
            _require(ends, op, f"a region that ends in {last.name}")
        self._types(op)
        if isinstance(op, CacheOp):
            _require(self.stage == "graph", op, f"a cache operation in {self.stage}")
        for value in op.results:
            self.define(value, op, op, values)

    def users(self, module: Module) -> None:
        """Every user of a value is an op of the module that takes it."""
        ops = set(module.all_ops())
        for value in self.seen:
            for user in value.users:
                takes = user in ops and value in user.operands
                _require(takes, user, f"{value!r} has a user that does not take it")

    def _states(self, op: Op) -> None:
        """State comes from `state` ops, and goes only where an op says that it reads or writes it."""
        named = {getattr(op, key) for key in (*op.reads, *op.writes)}
        for value in op.operands:
            state = isinstance(value.type, StateType)
            if state:
                _require(isinstance(value.op, State), op, f"{value!r} is not the result of a state op")
            _require(state == (value in named), op, f"the effect on {value!r} is not declared")

    def _extents(self, op: Op, bound: set[str]) -> None:
        """Extents of operands and attributes are bound; `extent.bind` binds one for the first time."""
        if isinstance(op, ExtentBind):
            extent = op.extent
            _require(extent.name not in self.bound, op, f"extent {extent} is bound twice")
            self._maximum(extent, op)
            self.bound.add(extent.name)
            bound.add(extent.name)
            return
        # Results of loops and branches have extents that are bound from results beside them.
        used = sizes_used(op) if not op.regions else dims.extents(sizes_of(op.operands))
        for extent in sorted(used):
            self._maximum(extent, op)
            _require(extent.name in bound, op, f"extent {extent} is used before it is bound")

    def _maximum(self, extent: Extent, op: Op) -> None:
        known = self.maxima.setdefault(extent.name, extent.maximum)
        _require(known == extent.maximum, op, f"extent {extent} has two maxima")

    def _types(self, op: Op) -> None:
        try:
            inferred = op.result_types()
            op.verify()
        except OpError as refused:
            raise AssertionError(f"{refused.message}\n{located(op)}") from None
        _require(len(inferred) == len(op.results), op, f"{len(inferred)} results are inferred")
        for value, type_ in zip(op.results, inferred):
            fits = same_rank(value.type, type_) if op.regions else value.type == type_
            what = f"{type_text(type_)} is inferred, {type_text(value.type)} is stated"
            _require(fits, op, what)
