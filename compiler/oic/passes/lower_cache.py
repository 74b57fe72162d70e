"""Cache operations become index arithmetic, checks, and loads and stores of boxes of state.

    cache.write(%K, %v, [%l, %t])     =>    check.range(%t, 0, 511)
                                            state.store(%K, [%l, %t], %v) {lengths=[none, none, 4, 8]}
                                            %n = state.get(%K.t)
                                            %m = index.max(%n, index.add(%t, 1))
                                            state.set(%K.t, %m)

What has to be known of a variable beside its contents is kept in states of their own, integers
(`ir.state.State`); which ones a variable needs is known at build.  Reads and writes:
`state.table` and `state.ring`, their growing dimensions `state.auto`; resets: `state.reset`.
Meaning: SPEC, section 8.
"""

import itertools
from collections.abc import Iterator

from oic import dtypes
from oic.ir import state
from oic.ir.core import Block, Op, Value
from oic.ir.module import Module
from oic.ir.types import StateType
from oic.passes.state import ring as lower_ring
from oic.passes.state import table as lower_table
from oic.passes.state.emitter import Emitter, Position, StateVariable
from oic.passes.state.reset import lower_reset


def lower_cache(module: Module) -> None:
    """Lower every cache operation of the module."""
    kept = _keep(module)
    numbers = itertools.count()
    for block in list(module.blocks()):
        _lower_block(block, kept, numbers)
    module.stage = "indexed"


def _lower_block(block: Block, kept: dict[Value, StateVariable], numbers: Iterator[int]) -> None:
    e = Emitter(numbers)
    mapping: dict[Value, Value] = {}
    for op in block.ops:
        op.replace_operands(mapping)
        if isinstance(op, state.CacheOp):
            e.span = op.span
            result = _lower(e, kept[op.operands[0]], op)
            if result is not None:
                mapping[op.result] = result
        else:
            e.keep(op)
    block.set_ops(e.ops)
    block.replace(mapping)  # in the blocks below


def _lower(e: Emitter, kept: StateVariable, op: state.CacheOp) -> Value | None:
    """Lower one operation; the value that replaces its result."""
    way = lower_ring if kept.type.ring else lower_table
    match op:
        case state.CacheRead(indices=indices, form=form):
            return way.lower_read(e, kept, op, _positions(form, indices))
        case state.CacheWrite(indices=indices, form=form):
            way.lower_write(e, kept, op, _positions(form, indices))
        case state.CacheStep() if kept.type.ring:
            lower_ring.lower_step(e, kept, op)
        case state.CacheStep(indices=indices):
            lower_table.lower_write(e, kept, op, [Position(i) for i in indices])
        case state.CacheReset(indices=indices):
            lower_reset(e, kept, indices)
        case state.CacheCount(axis=axis, indices=indices):
            return _count(e, kept, axis, indices)
    return None


def _positions(form: str, indices: list[Value]) -> list[Position]:
    return [Position(*p) for p in state.CacheOp.positions(form, indices)]


def _count(e: Emitter, kept: StateVariable, axis: int, indices: list[Value]) -> Value:
    """The present count; of a fixed index its size, of a ring `next`."""
    table = kept.type.table
    if kept.type.ring and axis == kept.outer:
        return lower_ring.next_of(e, kept, indices)
    if axis < len(table) and table[axis].fixed:
        return e.value(table[axis].capacity)
    return e.get(kept.counts[axis])


def _keep(module: Module) -> dict[Value, StateVariable]:
    """Add the states that every persistent variable needs, each after it."""
    reset = {op.table for op in module.all_ops() if isinstance(op, state.CacheReset)}
    touched = module.keeps_touched()
    found: dict[Value, StateVariable] = {}
    ops: list[Op] = []
    for op in module.top.ops:
        ops.append(op)
        if isinstance(op, state.State):
            found[op.result] = kept = StateVariable(op)
            _count_beside(ops, kept, op.result in reset)
            _mark_beside(ops, kept, op in touched)
    last = max((i for i, op in enumerate(ops) if isinstance(op, state.State)), default=-1)
    if any(isinstance(op, state.State) and op.limit is not None and op.type.plain for op in ops):
        hint = state.COUNTS.replace(".", "_")
        ops.insert(last + 1, state.State(state.COUNTS, StateType(dtypes.u64), 0, span=ops[last].span, hint=hint))
    module.top.set_ops(ops)
    return found


def _count_beside(ops: list[Op], kept: StateVariable, reset: bool) -> None:
    """Counts of what grows; of fixed indices how far they were touched, if a reset asks."""
    type_ = kept.type
    for axis, index in enumerate([*type_.table, *type_.auto]):
        if type_.ring and axis == kept.outer:
            following = StateType(dtypes.i64, (), type_.table[: kept.outer])
            kept.following = _beside(ops, kept, index.name, following, state.FARTHEST + 1)
        elif reset or not index.fixed or axis >= len(type_.table):
            kept.counts[axis] = _beside(ops, kept, index.name, StateType(dtypes.i64), index.capacity)


def _mark_beside(ops: list[Op], kept: StateVariable, touched: bool) -> None:
    """Flags of what was touched, for resets of a part; marks of what was filled."""
    type_ = kept.type
    if touched:
        flags = StateType(dtypes.u8, (), type_.table[: kept.outer])
        kept.touched = _beside(ops, kept, "entry.touched", flags, 1)
    for axis, index in enumerate([*type_.table, *type_.auto]):
        if index.reserved and not dtypes.is_zeros(kept.op.init, type_.dtype):  # as fresh memory is
            limit = type_.capacity_shape[axis]
            kept.filled[axis] = _beside(ops, kept, f"{index.name}.filled", StateType(dtypes.i64), limit)


def _beside(ops: list[Op], kept: StateVariable, name: str, type_: StateType, limit: int) -> Value:
    """A state beside the variable."""
    symbol = f"{kept.op.symbol}.{name}"
    ops.append(state.State(symbol, type_, 0, limit, span=kept.op.span, hint=symbol.replace(".", "_")))
    return ops[-1].result
