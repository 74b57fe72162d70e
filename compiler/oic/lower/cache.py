"""Lowering of the `cache.` statements: accesses become positions, shapes and extents (SPEC, 8).

Negative and missing ends of slices are made explicit here, with `cache.count`; what remains are
index integers that are in range or refused.
"""

from collections.abc import Iterator

from oic.check.binding import check_bytes
from oic.check.report import refused
from oic.diagnostics import Span
from oic.ir import dims
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.ir.index import IndexMax, IndexMin
from oic.ir.state import CacheCount, CacheRead, CacheReset, CacheStep, CacheWrite
from oic.ir.types import TensorType
from oic.lower.builder import Builder
from oic.lower.integers import FULL, INDEX
from oic.lower.operands import operand, refuse_negative, slice_ends
from oic.lower.operators import store
from oic.syntax import tree as s


def lower_read(f: Builder, statement: s.CacheRead) -> None:
    """`cache.read src >> v;`"""
    source, target, span = statement.source, statement.target, statement.span
    at = AccessPositions(f, source, writing=False)
    type_ = TensorType(at.variable.dtype, at.shape)
    check_bytes(source.span.text, type_.dtype, at.shape, source.span)
    op = f.emit(CacheRead(at.state, at.indices, at.form, type_, span=span, hint=f.variable(target).name))
    store(f, target, op.result, span, free=not at.type.plain)


def lower_write(f: Builder, statement: s.CacheWrite) -> None:
    """`cache.write v >> dst;`"""
    variable = f.variable(statement.target)
    source, given, span = operand(f, statement.source), f.variable(statement.source), statement.source.span
    if source.dtype is not variable.dtype:
        what = f"'{variable.name}' is {variable.dtype}, '{given.name}' is {source.dtype}"
        raise refused("write-dtype", what, span, variable, hint=f"op cast(…, to={variable.dtype}) converts")
    at = AccessPositions(f, statement.target, writing=True)
    if len(source.shape) != len(at.shape) or not all(_possible(source.shape, at)):
        wanted = f.shown(TensorType(variable.dtype, at.shape))
        if at.least:
            least = (at.least.get(axis, dims.bounds(n)[0]) for axis, n in enumerate(at.shape))
            wanted += f", at least [{', '.join(map(str, least))}]"
        what = f"'{statement.target.span.text}' is {wanted}, '{given.name}' is {f.shown(source.type)}"
        raise refused("write-shape", what, span, variable)
    source = f.shaped(source, at.shape, statement.span)
    f.emit(CacheWrite(at.state, source, at.indices, at.form, span=statement.span))
    f.known.pop(variable, None)


def _possible(given: tuple[Dim, ...], at: "AccessPositions") -> Iterator[bool]:
    """For every axis, whether a source's size can be the one that is written, on some input."""
    for axis, (a, b) in enumerate(zip(given, at.shape, strict=True)):
        low, high = dims.bounds(b)
        least, most = dims.bounds(a)
        low = max(low, at.least.get(axis, low))
        yield not dims.differ(a, b) and least <= high and low <= most


def lower_step(f: Builder, statement: s.CacheStep) -> None:
    """`cache.increment [n] s;` and `cache.decrement [n] s;`"""
    variable, target = f.variable(statement.target), statement.target
    type_ = f.states[variable].state_type
    if any(d != 1 for d in type_.shape):
        what = f"only a scalar is stepped, and '{target.span.text}' is {type_.entry}"
        raise refused("not-scalar", what, target.span, variable)
    amount = f.integer(statement.amount) if statement.amount is not None else 1
    value = f.value(amount * statement.sign, statement.span)
    at = AccessPositions(f, target, writing=True)
    f.emit(CacheStep(at.state, value, at.indices, span=statement.span))
    f.known.pop(variable, None)


def lower_reset(f: Builder, statement: s.CacheReset) -> None:
    """`cache.reset dst;`"""
    variable, indices = f.variable(statement.target), []
    for index in statement.target.indices or ():
        assert not isinstance(index, s.Slice)
        value = f.integer(index)
        refuse_negative(f, value, index.span, variable)
        indices.append(f.value(value, index.span))
    f.emit(CacheReset(f.states[variable], indices, span=statement.span))
    f.known.pop(variable, None)


class AccessPositions:
    """The positions that an access names, made explicit.  Raises Refused.

    form, indices   see `ir.state`
    shape           what is read, or taken
    least           of an axis that grows to a known count: how far at least
    """

    def __init__(self, f: Builder, access: s.Access, *, writing: bool) -> None:
        self.f, self.variable, self.writing = f, f.variable(access), writing
        self.state = f.states[self.variable]
        self.type = type_ = self.state.state_type
        self.form, self.indices = "", list[Value]()
        self.shape: tuple[Dim, ...] = ()
        self.least: dict[int, int] = {}
        self._counts: dict[int, Dim] = {}
        whole = s.Slice(None, None, span=access.span)
        given, tables = list(access.indices or ()), len(type_.table)
        for axis in range(tables):
            index = given[axis] if axis < len(given) else whole
            if type_.ring and axis == tables - 1:
                self._ring(axis, index)
            else:
                self._table(axis, index)
        rest = given[tables:]
        if not type_.auto:
            self.shape += type_.shape
        elif any(isinstance(i, s.Slice) for i in rest):
            for axis, index in enumerate([*rest, *[whole] * (len(type_.auto) - len(rest))]):
                self._auto_slice(axis, index)
        else:
            for axis in range(len(type_.auto)):
                self._grown(axis, rest[axis] if axis < len(rest) else None, access.span)

    def _at(self, value: Dim, span: Span) -> None:
        """One place."""
        self.form += "i"
        self.indices.append(self.f.value(value, span))

    def _between(self, start: Dim, end: Dim, most: int, above: str, span: Span) -> None:
        """A run of places, `most` at most."""
        self.form += "s"
        self.indices += [self.f.value(start, span), self.f.value(end, span)]
        self.shape += (self.f.length(end - start, most, self.variable.name, span, above=above),)

    def _refuse_outside(self, value: Dim, bound: int | None, index: s.Index, what: str) -> None:
        """Raises Refused for an index known to be outside 0..bound-1."""
        refuse_negative(self.f, value, index.span, self.variable)
        if bound is not None and self.f.reached(value)[1] >= bound:
            message = f"{what} {self.f.says_reached(value, 1)}, and @fixed allows 0 to {bound - 1}"
            raise refused("index-bound", message, index.span, self.variable)

    def _table(self, axis: int, index: s.Index) -> None:
        """A scalar or slice of a table index."""
        f, spec = self.f, self.type.table[axis]
        if not isinstance(index, s.Slice):
            value = f.integer(index)
            self._refuse_outside(value, spec.capacity if spec.fixed else None, index, f"index {spec.name}")
            self._at(value, index.span)
            f.nonneg.add(value)
            return
        start, end = slice_ends(f, index, self.variable, lambda: self._count(axis), f.integer)
        length = end - start
        self._refuse_outside(end, spec.capacity + 1 if spec.fixed else None, index, f"the end of slice {spec.name}")
        if spec.fixed and isinstance(length, int) and length > spec.capacity:
            what = f"this slice is {length} long, and @fixed allows {spec.capacity}"
            raise refused("index-bound", what, index.span, self.variable)
        self._between(start, end, spec.capacity, FULL, index.span)
        f.nonneg.update((start, end))
        f.memo["most", end] = spec.capacity

    def _ring(self, axis: int, index: s.Index) -> None:
        """A position of a rolling window: bounds with a leading minus count back from `next`."""
        f, window = self.f, self.type.table[axis].capacity

        def bound(expr: s.Expr) -> Dim:
            value = f.integer(expr)
            return self._count(axis) + value if expr.span.text.startswith("-") else value

        if not isinstance(index, s.Slice):
            value = bound(index)
            if self.writing:  # a number alone, which counts back in what is read, is none to write at
                refuse_negative(f, value if any(s.names_in(index)) else f.integer(index), index.span, self.variable)
            self._at(value, index.span)
            return
        if index.start is not None:
            start = bound(index.start)
        else:  # `next` less the length, so that the length of `X[]` is seen to fit the window
            kept = f.emit(IndexMin(f.value(self._count(axis)), f.value(window))).result
            start = self._count(axis) - f.atom(kept)
        end = self._count(axis) if index.end is None else bound(index.end)
        length = end - start
        if isinstance(length, int) and not 0 <= length <= (length if self.writing else window):
            raise refused("slice-order", f"this slice is {length} long, and the window {window}", index.span)
        most = max(window, dims.maximum(length)) if self.writing and f.size(length) is not None else window
        self._between(start, end, most, INDEX, index.span)

    def _grown(self, axis: int, index: s.Index | None, span: Span) -> None:
        """One axis of a whole matrix (8.3), which a scalar makes grow."""
        f, spec, size = self.f, self.type.auto[axis], self.type.shape[axis]
        count = self._count(len(self.type.table) + axis)
        if index is not None:
            assert not isinstance(index, s.Slice)
            value = f.integer(index)
            if isinstance(value, int):
                self.least[len(self.shape)] = size + value
            self._refuse_outside(value, spec.capacity + 1 if spec.fixed else None, index, f"count {spec.name}")
            self._at(value, index.span)
            grown = f.emit(IndexMax(f.value(count), f.value(value), hint=f"{spec.name}_count"))
            count = f.atom(grown.result)
            f.nonneg.add(count)
        self.shape += (f.length(count, spec.capacity, self.variable.name, span, above=FULL) + size,)

    def _auto_slice(self, axis: int, index: s.Index) -> None:
        """A part of one axis of a matrix; counts may be named."""
        tables = len(self.type.table)

        def bound(expr: s.Expr) -> Dim:
            return self.f.integer(expr, lambda axis: self._count(tables + axis))

        if not isinstance(index, s.Slice):
            value = bound(index)
            refuse_negative(self.f, value, index.span, self.variable)
            self._at(value, index.span)
            return
        base = self.type.shape[axis]
        start, end = slice_ends(self.f, index, self.variable, lambda: self._count(tables + axis) + base, bound)
        self._between(start, end, base + self.type.auto[axis].capacity, INDEX, index.span)

    def _count(self, axis: int) -> Dim:
        """The count along an axis of the table, or behind them of the matrix, read once."""
        if axis not in self._counts:
            spec, table = [*self.type.table, *self.type.auto][axis], axis < len(self.type.table)
            if spec.fixed and table and not self.type.ring:
                self._counts[axis] = spec.capacity
            else:
                beside = list(self.indices) if self.type.ring and table else []
                op = self.f.emit(CacheCount(self.state, axis, beside, hint=f"{spec.name}_count"))
                self._counts[axis] = count = self.f.atom(op.result)
                self.f.nonneg.add(count)
        return self._counts[axis]
