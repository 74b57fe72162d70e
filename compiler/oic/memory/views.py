"""Strides of views: which part of which memory a value sees.

A view op's result is its first operand's memory (DESIGN, section 6).  Strides count elements;
`None` means row-major without gaps at the present sizes.
"""

from __future__ import annotations

from functools import lru_cache

from oic.ir import dims
from oic.ir.core import Op, Value
from oic.ir.dims import Dim
from oic.ir.index import AssertShape
from oic.ir.state import ConstantSelect, StateLoad
from oic.memory.layout import constant_strides, storage_strides
from oic.operators.shape import BroadcastTo, Reshape, Slice, Split, Transpose

Strides = tuple[Dim, ...]


@lru_cache(maxsize=1 << 12)
def dense(shape: tuple[Dim, ...]) -> Strides:
    """Row-major strides without gaps."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


@lru_cache(maxsize=1 << 12)
def is_dense(shape: tuple[Dim, ...], strides: Strides, inner: int | None = None) -> bool:
    """The innermost `inner` dimensions (all of them) lie without gaps, in order."""
    first = 0 if inner is None else max(0, len(shape) - inner)
    step: Dim = 1
    for size, stride in zip(reversed(shape[first:]), reversed(strides[first:]), strict=True):
        if size != 1 and stride != step:
            return False
        step = step * size
    return True


def strides_of(value: Value) -> Strides:
    """The strides of a value; those of anything that is no view are dense."""
    op = value.op
    if op is None or not op.view:
        return dense(value.shape)
    found = view_strides(op)
    return dense(value.shape) if found is None else found


def view_strides(op: Op) -> Strides | None:
    """Strides of a view op's results; None where its operand must be copied to be seen so."""
    match op:
        case StateLoad(state=state, lengths=lengths):
            storage = storage_strides(state.state_type)
            return tuple(s for s, n in zip(storage, lengths, strict=True) if n is not None)
        case ConstantSelect(family=family, indices=indices):
            assert family.tensor.static
            return constant_strides(family.tensor, len(indices))[len(indices) :]
    x = op.operands[0]
    base = strides_of(x)
    match op:
        case Reshape():
            return _reshaped(x, op.result.shape)
        case AssertShape():
            return dense(op.result.shape) if is_dense(x.shape, base) else base
        case Transpose(perm=perm):
            return tuple(base[p] for p in perm)
        case BroadcastTo():
            return _broadcast(x, op.result.shape)
        case Slice(axis=axis, step=step):
            axis %= len(base)
            return tuple(s * step if i == axis else s for i, s in enumerate(base))
        case Split():
            return base
    raise AssertionError(f"{op.name} is no view")


def _reshaped(x: Value, shape: tuple[Dim, ...]) -> Strides | None:
    """A reshape is a view where every size comes of neighbours that lie without gaps."""
    base = strides_of(x)
    if is_dense(x.shape, base):
        return dense(shape)
    old = [(n, s) for n, s in zip(x.shape, base, strict=True) if n != 1]
    new = [n for n in shape if n != 1]
    found: list[Dim] = []
    while old and new:
        (size, stride), wanted = old.pop(0), [new.pop(0)]
        while size != dims.product(wanted):
            if dims.maximum(size) < dims.maximum(
                dims.product(wanted)
            ):  # some of the old are one of the new
                if not old or stride != old[0][0] * old[0][1]:
                    return None
                more, stride = old.pop(0)
                size = size * more
            elif new:  # one of the old is some of the new
                wanted.append(new.pop(0))
            else:
                return None
        found += [s * stride for s in dense(tuple(wanted))]
    if old or new:
        return None
    rest = iter(found)
    return tuple(0 if n == 1 else next(rest) for n in shape)


def _broadcast(x: Value, shape: tuple[Dim, ...]) -> Strides:
    base = strides_of(x)
    missing = len(shape) - len(base)
    inner = zip(x.shape, base, shape[missing:], strict=True)
    return (0,) * missing + tuple(0 if n == 1 and d != 1 else s for n, s, d in inner)


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
