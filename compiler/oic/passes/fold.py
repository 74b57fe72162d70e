"""Compute at build what depends on nothing else.

    %2 = index.const 2                        %4 = index.const 4
    %4 = index.add(%2, %2)              =>
    check.range(%4, 0, 7)
    %y = neg(%w)        (%w constant)         %y = constant "folded0"

Index arithmetic, checks that always hold (by the ranges of their values), branches on a known
condition, loops of one iteration or none, and operators all of whose operands are data of the
model or splats, if the result is no larger than what it replaces, and the same to the last bit
wherever it is computed: what an operator may round otherwise is left to C (`compute_constants`),
which decides the bits of inputs and of other entries.
"""

import itertools
import math
from collections.abc import Hashable, Iterator

import numpy as np

from oic import dtypes
from oic.dtypes import Array
from oic.ir.control import Cond, For, Func, If
from oic.ir.core import Block, Op, Value, sizes_used
from oic.ir.index import CheckIds, CheckRange, IndexConst, IndexLoad, IndexOp
from oic.ir.likeness import likeness
from oic.ir.module import Module
from oic.ir.ranges import Ranges
from oic.ir.state import Constant, IndexTensor, Splat
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.operators.evaluate import ReadValue, bound, compute
from oic.passes.fold_index import folded_index

SMALL = 1 << 16  # elements up to which a folded result may be larger than its operands


def fold(module: Module) -> None:
    """Fold every op whose operands are known, in order.

    What a value is folded to, is in the same range: those found are kept for the whole function.
    """
    constants = _Constants(module)
    for func in module.functions():
        _block(constants, Ranges(), func.body, {})
    # Before every function: a later entry may have constants of its own between functions.
    first = next((i for i, o in enumerate(module.top.ops) if isinstance(o, Func)), 0)
    module.top.set_ops([*module.top.ops[:first], *constants.made, *module.top.ops[first:]])


def symbols(module: Module, begin: str) -> Iterator[str]:
    """Names for new constants, none of which the module has."""
    taken = {op.attributes().get("symbol") for op in module.top.ops} | set(module.weights)
    return (s for n in itertools.count() if (s := f"{begin}{n}") not in taken)


class _Constants:
    """The data of a module's constants, and new ones."""

    def __init__(self, module: Module) -> None:
        self.weights, self.made = module.weights, list[Constant]()
        self.symbols = symbols(module, "folded")
        self.known: dict[Hashable, Value] = {}  # by what makes it of what, in whichever entry

    def new(self, op: Operator, key: Hashable, data: Array) -> Value:
        """A constant in place of an operator's result."""
        self.made.append(Constant(next(self.symbols), op.result.tensor, span=op.span, hint=op.result.hint))
        self.weights[self.made[-1].symbol] = data
        self.known[key] = self.made[-1].result
        return self.made[-1].result


def _block(constants: _Constants, ranges: Ranges, block: Block, known: dict[Value, Value]) -> None:
    """Every op of a block; `known` has what takes a value's place: an op hears of it once, when its turn comes."""
    kept: list[Op] = []
    for op in block.ops:
        op.replace_operands(known)
        if isinstance(op, If) and (region := _taken(op)) is not None:
            _block(constants, ranges, region, known)
            known.update(zip(op.results, region.terminator.operands, strict=True))
            kept += region.ops[:-1]
            continue
        if isinstance(op, For) and _never(op, ranges):
            known.update(zip(op.results, op.init, strict=True))
            continue
        if isinstance(op, For) and _once(op, ranges):
            known.update(zip(op.body.args, [op.start, *op.init], strict=True))
            _block(constants, ranges, op.body, known)
            known.update(zip(op.results, op.body.terminator.operands, strict=True))
            kept += op.body.ops[:-1]
            continue
        for region in op.regions:
            _block(constants, ranges, region, known)
        new = _folded(constants, ranges, op)
        if isinstance(new, Value):
            known[op.result] = new
        elif new is None:
            kept.append(op)
        elif new:
            kept += new
            known[op.result] = new[-1].result
    block.set_ops(kept)


def _never(loop: For, ranges: Ranges) -> bool:
    same = all(a.type == b.type for a, b in zip(loop.init, loop.results, strict=True))
    return same and ranges.difference(loop.end, loop.start)[1] <= 0


def _once(loop: For, ranges: Ranges) -> bool:
    """It has one iteration, in which values have the types that are known before and after it."""
    pairs = (*zip(loop.init, loop.body.args[1:]), *zip(loop.body.terminator.operands, loop.results))
    return ranges.difference(loop.end, loop.start) == (1, 1) and all(a.type == b.type for a, b in pairs)


def _taken(op: If) -> Block | None:
    """The branch that a known condition takes, if the results have the types of what it gives."""
    if not isinstance(op.condition.op, Splat):
        return None
    region = op.then if op.condition.op.value else op.orelse
    given = region.terminator.operands
    return region if all(a.type == b.type for a, b in zip(given, op.results, strict=True)) else None


def _folded(constants: _Constants, ranges: Ranges, op: Op) -> Value | list[Op] | None:
    """A value to use instead, ops to put instead (none: the op goes), or None to keep it."""
    match op:
        case IndexOp():
            found = folded_index(op, ranges)
            return [found] if isinstance(found, Op) else found
        case CheckRange(value=value, low=low, high=high):
            holds = ranges.difference(value, low)[0] >= 0 and ranges.difference(high, value)[0] >= 0
            return [] if holds else None
        case CheckIds() if not ranges.refuses(op):
            return []
        case IndexLoad(x=x) if isinstance(x.op, Splat) and x.op.value <= dtypes.i64.high:
            return [IndexConst(int(x.op.value), span=op.span)]
        case Cond(left=left, right=right):
            low, high = ranges.difference(right, left)
            return [Splat(low > 0, TensorType(dtypes.bool_))] if low > 0 or high <= 0 else None
        case IndexTensor(value=value, type=type_) if (known := ranges.exact(value)) is not None:
            return [Splat(int(dtypes.wrap(np.asarray(known), type_.dtype)), type_, span=op.span)]
        case Operator():
            return _operator(constants, op)
    return None


def _operator(constants: _Constants, op: Operator) -> Value | list[Op] | None:
    values, known = op.operands, all(isinstance(v.op, Splat | Constant) for v in op.operands)
    if not values or not known or len(op.results) != 1 or sizes_used(op):
        return None
    type_ = op.result.tensor
    size = math.prod(type_.maximum)
    if all(isinstance(v.op, Splat) for v in values) and op.elementwise:
        scalars = {v: _data(constants, v).reshape(-1)[:1] for v in values}
        if any(s.size == 0 for s in scalars.values()):
            return None
        one = _exact(op, scalars.__getitem__)
        return None if one is None else [Splat(one.reshape(-1)[0].item(), type_, span=op.span, hint=op.result.hint)]
    stored = sum(v.tensor.nbytes for v in values if not isinstance(v.op, Splat))
    if op.view or (size > SMALL and type_.nbytes > stored):
        return None
    key = likeness(op, {v: likeness(v.op) for v in values if isinstance(v.op, Splat)})
    if key in constants.known:
        return constants.known[key]
    held = {v: _data(constants, v) for v in values}
    found = _exact(op, held.__getitem__)
    return None if found is None else constants.new(op, key, found)


def _exact(op: Operator, read: ReadValue) -> Array | None:
    """The result, if nothing else is right."""
    try:
        found = compute(op, read, {})[0]
    except IndexError:  # ids of the model that the table does not have: the check before it refuses the step
        return None
    return None if np.any(bound(op, found, read, {})) else found


def _data(constants: _Constants, value: Value) -> Array:
    match value.op:
        case Splat(value=known, type=type_):
            return np.full(type_.maximum, known).astype(type_.dtype.np)
        case Constant(symbol=symbol):
            return np.asarray(constants.weights[symbol])
    raise AssertionError(value)
