"""One operator applied to arrays: operands widened, settings resolved, results rounded once."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oic import dtypes
from oic.diagnostics import StepError
from oic.dtypes import Array, DType
from oic.ir import dims
from oic.ir.core import Op, Value, is_index, operand_parts
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.state import ConstantSelect, IndexTensor, Splat
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.operators.fused import Fused
from oic.operators.part import Insert

ReadValue = Callable[[Value], Any]  # the array of a tensor, the int of an index value


def compute(op: Op, read: ReadValue, sizes: Mapping[str, int]) -> list[Array]:
    """The results of an operator, a splat or a fused region, as stored arrays.

    sizes   the value of every extent
    """
    match op:
        case Splat(value=value):
            return [filled(value, op.result.tensor, sizes)]
        case ConstantSelect(family=family, indices=indices):
            return [read(family)[(*map(read, indices), ...)]]
        case Insert(x=x, value=part, offsets=offsets, lengths=lengths):
            return [replaced(read(x), read(part), [*map(read, offsets)], lengths, sizes)]
        case IndexTensor(value=value):
            type_ = op.result.tensor
            return [filled(dtypes.wrap(np.asarray(read(value)), type_.dtype), type_, sizes)]
        case Fused():
            return _fused(op, read, sizes)
    assert isinstance(op, Operator), f"{op.name} has no meaning in NumPy"
    found = apply(op, widened_operands(op, read), read, sizes)
    return [dtypes.store(a, r.dtype) for a, r in zip(found, op.results, strict=True)]


def replaced(
    x: Array, part: Array, offsets: Sequence[int], lengths: Sequence[Dim | None], sizes: Mapping[str, int]
) -> Array:
    """The array with a box of its leading axes replaced."""
    found = np.array(x)
    inside = part_of(offsets, lengths, sizes)
    assert all(s.start >= 0 and s.stop <= n for s, n in zip(inside, found.shape)), inside
    found[inside] = part.reshape(found[inside].shape)
    return found


def part_of(offsets: Sequence[int], lengths: Sequence[Dim | None], sizes: Mapping[str, int]) -> tuple[slice, ...]:
    """Where a box of leading axes lies along each of them; a length that is None is 1."""
    found = zip(offsets, lengths, strict=True)
    return tuple(slice(at, at + (1 if n is None else dims.evaluate(n, sizes))) for at, n in found)


def apply(op: Operator, arrays: list[Any], read: ReadValue, sizes: Mapping[str, int]) -> list[Array]:
    """The operator's reference on these arrays, its settings replaced by plain numbers."""
    with np.errstate(all="ignore"):  # infinities and NaN are results like any
        results = resolved(op, read, sizes).reference(*arrays)
    found = results if isinstance(results, (list, tuple)) else [results]
    return [np.asarray(a) for a in found]


def bound(op: Operator, result: Array, read: ReadValue, sizes: Mapping[str, int]) -> Array:
    """How far C may be from the first result, an element: the operator's tolerance on these operands."""
    with np.errstate(all="ignore"):
        found = resolved(op, read, sizes).tolerance(result, *widened_operands(op, read))
    return np.broadcast_to(np.asarray(found, np.float64), result.shape)


def widened_operands(op: Op, read: ReadValue) -> list[Any]:
    """What the operand fields hold, in their order, as the operator's reference takes it."""
    return [_widened(part, read) for part in operand_parts(op)]


def _widened(part: Value | list[Value] | None, read: ReadValue) -> Any:
    if part is None:
        return None
    if isinstance(part, list):
        return [_widened(value, read) for value in part]
    array = read(part)
    if is_index(part):
        return array
    if array.dtype != part.dtype.wide:
        return dtypes.widen(array, part.dtype)
    seen = array.view()  # weights may be large: not copied, but not to be changed either
    seen.flags.writeable = False
    return seen


def resolved(op: Operator, read: ReadValue, sizes: Mapping[str, int]) -> Operator:
    """The operator with plain numbers for settings that are values or sizes."""
    changed = {k: plain for k, v in op.attributes().items() if (plain := _plain(v, read, sizes)) is not v}
    if not changed:
        return op
    resolved = copy.copy(op)
    vars(resolved).update(changed)  # no op of the program: not a user of its operands
    return resolved


def _plain(part: Any, read: ReadValue, sizes: Mapping[str, int]) -> Any:
    if isinstance(part, Value):
        array = np.asarray(read(part))
        return array.item() if array.size == 1 else array
    if isinstance(part, Expr):
        return dims.evaluate(part, sizes)
    if isinstance(part, (list, tuple)):
        items = [_plain(item, read, sizes) for item in part]
        if all(a is b for a, b in zip(items, part)):
            return part
        return items if isinstance(part, list) else tuple(items)
    return part


def shape_of(type_: TensorType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The present shape."""
    return tuple(dims.evaluate(d, sizes) for d in type_.shape)


def bind_sizes(name: str, type_: TensorType, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Give extents that are axes of an input their values; StepError for two that disagree, or one too large."""
    for dim, size in zip(type_.shape, shape):
        extent = dims.atom(dim)
        if extent is None:
            continue
        require_at_most(name, extent, size)
        known = sizes.setdefault(extent.name, size)
        if known != size:
            what = f"size {extent} of input '{name}' is {size}, and {known} in another input"
            raise StepError("OIC_ERR_SHAPE", what, variable=name, index=size, bound=known)


def require_at_most(name: str, extent: Extent, size: int) -> None:
    """Refuse a size of an input above its maximum."""
    if size > extent.maximum:
        what = f"size {extent} of input '{name}' is {size}, and its maximum {extent.maximum}"
        raise StepError("OIC_ERR_SHAPE", what, variable=name, index=size, bound=extent.maximum)


def filled(value: Any, type_: TensorType, sizes: Mapping[str, int]) -> Array:
    """A tensor of one repeated value."""
    return np.full(shape_of(type_, sizes), dtypes.store(np.asarray(value), type_.dtype))


def _fused(op: Op, read: ReadValue, sizes: Mapping[str, int]) -> list[Array]:
    """The ops of a fused region on whole arrays, each result stored as if it were a value."""
    body = op.regions[0]
    inner: dict[Value, Any] = {arg: read(given) for arg, given in zip(body.args, op.operands, strict=False)}

    def look(value: Value) -> Any:
        return inner[value] if value in inner else read(value)

    for step in body.ops[:-1]:
        inner.update(zip(step.results, compute(step, look, sizes), strict=True))
    shapes = [shape_of(r.tensor, sizes) for r in op.results]
    return [np.broadcast_to(look(v), s) for v, s in zip(body.terminator.operands, shapes, strict=True)]


def stepped(old: Array, amount: int, dtype: DType) -> Array:
    """A numeric scalar and an integer added: wrapped, or rounded, in the scalar's type."""
    if dtype.is_float:
        return dtypes.store(dtypes.widen(old, dtype) + np.asarray(amount).astype(dtype.wide), dtype)
    return dtypes.store(old.astype(np.int64) + np.int64(amount), dtype)
