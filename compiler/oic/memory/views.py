"""Strides of views: which part of which memory a value sees.

A view op's result is its first operand's memory (DESIGN, section 6).  Strides count elements;
`None` means row-major without gaps at the present sizes.
"""

from oic.ir.core import Op, Value
from oic.ir.state import ConstantSelect, StateLoad
from oic.ir.strides import Strides, dense, is_dense
from oic.memory.layout import constant_strides, storage_strides


def strides_of(value: Value) -> Strides:
    """The strides of a value; those of anything that is no view are dense."""
    found = view_strides(value.op) if value.op is not None and value.op.view else None
    return dense(value.shape) if found is None else found


def view_strides(op: Op) -> Strides | None:
    """Strides of a view op's results; None where its operand must be copied to be seen so.

    Where states and constants lie is decided here; what a view of other values sees, its op says.
    """
    match op:
        case StateLoad(state=state, lengths=lengths):
            storage = storage_strides(state.state_type)
            return tuple(s for s, n in zip(storage, lengths, strict=True) if n is not None)
        case ConstantSelect(family=family, indices=indices):
            assert family.tensor.static
            return constant_strides(family.tensor, len(indices))[len(indices) :]
    return op.seen(strides_of(op.operands[0]))


def root(value: Value) -> Value:
    """The value whose memory a view sees, through any number of views; or the box of state that was loaded."""
    while value.op is not None and value.op.view and not isinstance(value.op, StateLoad):
        value = value.op.operands[0]
    return value


def whole_root(value: Value) -> Value:
    """As `root`, but only through views that see all of it in the same order."""
    while value.op is not None and value.op.reshapes:
        base = value.op.operands[0]
        if not is_dense(base.shape, strides_of(base)):
            return value
        value = base
    return value
