"""Lowering of `transfer a >> y[i, lo..hi];`: a part of a volatile variable or temporary is replaced."""

from __future__ import annotations

from oic.check.report import refused
from oic.check.symbols import Variable
from oic.diagnostics import Span, count_of
from oic.ir import dims
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.ir.types import TensorType
from oic.lower.builder import Builder
from oic.lower.integers import INDEX
from oic.lower.operands import refuse_negative, refuse_order, slice_ends
from oic.operators.part import Insert
from oic.syntax import tree as s


def inserted(f: Builder, target: s.Access, variable: Variable, base: Value, part: Value, span: Span) -> Value:
    """What a variable that held `base` holds once `part` is written into it.  Raises Refused."""
    positions = target.indices or ()
    if len(positions) > base.tensor.rank:
        what = f"'{variable.name}' is {f.shown(base.type)} here, and {len(positions)} positions are given"
        raise refused("part-rank", what, target.span, variable)
    places = [_place(f, variable, size, position) for size, position in zip(base.shape, positions)]
    sizes = tuple(n for _, n in places if n is not None)
    wanted = TensorType(base.dtype, (*sizes, *base.shape[len(positions) :]))
    apart = any(dims.differ(a, b) for a, b in zip(wanted.shape, part.shape))
    if len(wanted.shape) != len(part.shape) or apart:
        what = f"'{target.span.text}' is {f.shown(wanted)}, the value is {f.shown(part.type)}"
        raise refused("result-shape", what, target.span, variable)
    part = f.shaped(part, wanted.shape, span)
    offsets, lengths = [f.value(offset, span) for offset, _ in places], [n for _, n in places]
    op = Insert(base, part, offsets, lengths, span=span, hint=variable.name)
    return f.emit(op).result


def _place(f: Builder, variable: Variable, size: Dim, index: s.Index) -> tuple[Dim, Dim | None]:
    """Where a part lies along an axis: its offset and length; of one place, which is no axis of the part, None."""
    if isinstance(index, s.Slice):
        return _slice(f, variable, size, index)
    value = f.integer(index)
    refuse_negative(f, value, index.span)
    if f.reached(value)[1] >= dims.maximum(size):
        what = f"this index {f.says_reached(value, 1)}, and the axis has {_at_most(size)}"
        raise refused("index-bound", what, index.span, variable)
    _check(f, variable, 0, value, size - 1, index.span)
    return value, None


def _slice(f: Builder, variable: Variable, size: Dim, index: s.Slice) -> tuple[Dim, Dim]:
    """A run of places: its start and length; missing ends are those of the axis."""
    start, end = slice_ends(f, index, lambda: size, f.integer)
    refuse_negative(f, start, index.span)
    length, most = end - start, dims.maximum(size)
    refuse_order(length, index.span)
    if f.reached(end)[1] > most:
        what = f"the end of this slice {f.says_reached(end, 1)}, and the axis has {_at_most(size)}"
        raise refused("index-bound", what, index.span, variable)
    _check(f, variable, 0, start, end, index.span)
    _check(f, variable, start, end, size, index.span)
    return start, f.length(length, most, variable.name, index.span, above=INDEX, trusted=True)


def _at_most(size: Dim) -> str:
    """How many places an axis has, in words."""
    most = dims.maximum(size)
    count = count_of(most, "place")
    return count if isinstance(size, int) else f"at most {count}"


def _check(f: Builder, variable: Variable, low: Dim, value: Dim, high: Dim, span: Span) -> None:
    """A run-time check of low <= value <= high, unless it is known to hold."""
    if f.nonnegative(value - low) and f.nonnegative(high - value):
        return
    first, last = (n if isinstance(n, int) else f.value(n, span) for n in (low, high))
    f.check(value, first, last, variable.name, span)
