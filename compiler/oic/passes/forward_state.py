"""Use the value just given to a persistent integer instead of reading it back.

    %n = state.get(%pos)                   %n = state.get(%pos)
    state.add(%pos, %k)                    state.add(%pos, %k)
    %m = state.get(%pos)            =>     %s = index.add(%n, %k)
                                           %m = index.wrap(%s) {dtype=i32}

A write in a region, or one that is not an integer set or step, ends what is known.  Counters of 64
bits are left alone: their sum may wrap, which index arithmetic refuses; counts cannot get there.
"""

from oic import dtypes
from oic.ir.core import Block, Op, Value
from oic.ir.index import IndexAdd, IndexWrap
from oic.ir.module import Module
from oic.ir.state import State, StateAdd, StateGet, StateSet

KnownCounts = dict[Value, Value]  # state -> its present value


def forward_state(module: Module) -> None:
    """Forward in every function, blocks inside loops and branches included."""
    for func in module.functions():
        _block(func.body, {})


def _block(block: Block, known: KnownCounts) -> None:
    ops: list[Op] = []
    # The last position at which the block reads a state as an integer, nested reads included.
    nests = ((at, op.walk() if op.regions else (op,)) for at, op in enumerate(block.ops))
    later = {o.state: at for at, nest in nests for o in nest if isinstance(o, StateGet)}
    for position, op in enumerate(block.ops):
        if op.regions:
            written = set(op.touched("write"))
            known = {s: v for s, v in known.items() if s not in written}
            for region in op.regions:
                _block(region, dict(known))
            ops.append(op)
            continue
        match op:
            case StateGet(indices=[_, *_]):
                pass  # one of a table of integers, which are told apart nowhere here
            case StateGet(state=state) if state in known:
                op.result.give_way(known[state])
                continue
            case StateGet(state=state):
                known[state] = op.result
            case StateSet(state=state, value=value) if _forwards(state):
                known[state] = _wrapped(state, value, op, ops)
            case StateAdd(state=state, amount=amount) if _forwards(state) and later.get(state, -1) > position:
                old = known.get(state) or _emit(StateGet(state, span=op.span), ops)
                total = _emit(IndexAdd(old, amount, span=op.span, hint=old.hint), ops)
                known[state] = _wrapped(state, total, op, ops)
            case _ if op.writes:
                for state in op.touched("write"):
                    known.pop(state, None)
        ops.append(op)
    block.set_ops(ops)


def _forwards(state: Value) -> bool:
    """An integer scalar whose wrap-around index arithmetic can express."""
    assert isinstance(state.op, State)
    type_ = state.op.type
    if not type_.plain or type_.dtype not in dtypes.INT or type_.shape != ():
        return False
    return state.op.limit is not None or 8 <= type_.dtype.bits <= 32


def _wrapped(state: Value, value: Value, op: Op, ops: list[Op]) -> Value:
    assert isinstance(state.op, State)
    if state.op.limit is not None:
        return value  # a count, which never leaves its range
    return _emit(IndexWrap(value, state.op.type.dtype, span=op.span, hint=value.hint), ops)


def _emit(op: Op, ops: list[Op]) -> Value:
    ops.append(op)
    return op.result
