"""Lowering of `transfer a >> y[i, lo..hi];`: a part of a volatile variable or temporary is replaced."""

from __future__ import annotations

from dataclasses import dataclass, field

from oic.check.report import refused
from oic.check.symbols import Variable
from oic.diagnostics import Span, count_of
from oic.ir import dims
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.ir.index import CheckRange
from oic.ir.types import TensorType
from oic.lower.builder import Builder
from oic.lower.operands import INDEX, refuse_negative, refuse_order, slice_end
from oic.operators.part import Insert
from oic.syntax import tree as s


@dataclass
class _Box:
    """Where a part lies along the leading axes: offsets, and lengths (None: one place, no axis)."""

    offsets: list[Dim] = field(default_factory=list)
    lengths: list[Dim | None] = field(default_factory=list)


def inserted(f: Builder, target: s.Access, variable: Variable, base: Value, part: Value, span: Span) -> Value:
    """What a variable that held `base` holds once `part` is written into it.  Raises Refused."""
    positions = target.indices or ()
    if len(positions) > base.tensor.rank:
        what = f"'{variable.name}' is {f.shown(base.type)} here, and {len(positions)} positions are given"
        raise refused("part-rank", what, target.span, variable)
    box = _Box()
    for axis, position in enumerate(positions):
        if isinstance(position, s.Slice):
            _slice(f, variable, base.shape[axis], position, box)
        else:
            _scalar(f, variable, base.shape[axis], position, box)
    sizes = tuple(n for n in box.lengths if n is not None)
    wanted = TensorType(base.dtype, (*sizes, *base.shape[len(positions) :]))
    apart = any(dims.differ(a, b) for a, b in zip(wanted.shape, part.shape))
    if len(wanted.shape) != len(part.shape) or apart:
        what = f"'{target.span.text}' is {f.shown(wanted)}, the value is {f.shown(part.type)}"
        raise refused("result-shape", what, target.span, variable)
    part = f.shaped(part, wanted.shape, span)
    offsets = [f.value(offset, span) for offset in box.offsets]
    op = Insert(base, part, offsets, list(box.lengths), span=span, hint=variable.name)
    return f.emit(op).result


def _scalar(f: Builder, variable: Variable, size: Dim, index: s.Expr, box: _Box) -> None:
    """One place along an axis."""
    value = f.integer(index)
    refuse_negative(f, value, index.span)
    if f.reached(value)[1] >= dims.maximum(size):
        what = f"this index {f.says_reached(value, 1)}, and the axis has {_at_most(size)}"
        raise refused("index-bound", what, index.span, variable)
    _check(f, variable, 0, value, size - 1, index.span)
    box.offsets.append(value)
    box.lengths.append(None)


def _slice(f: Builder, variable: Variable, size: Dim, index: s.Slice, box: _Box) -> None:
    """A run of places; missing ends are those of the axis, a negative end counts from its size."""
    start = f.integer(index.start) if index.start is not None else 0
    end = None if index.end is None else f.integer(index.end)
    end = slice_end(f, start, end, lambda: size, index.span)
    refuse_negative(f, start, index.span)
    length, most = end - start, dims.maximum(size)
    refuse_order(length, index.span)
    if f.reached(end)[1] > most:
        what = f"the end of this slice {f.says_reached(end, 1)}, and the axis has {_at_most(size)}"
        raise refused("index-bound", what, index.span, variable)
    _check(f, variable, 0, start, end, index.span)
    _check(f, variable, start, end, size, index.span)
    box.offsets.append(start)
    box.lengths.append(f.length(length, most, variable.name, index.span, above=INDEX, trusted=True))


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
    f.emit(CheckRange(f.value(value, span), first, last, INDEX, INDEX, variable.name, span=span))
