"""Lowering of the `cache.` statements: accesses become positions, shapes and extents (SPEC, 8).

Negative and missing ends of slices are made explicit here, with `cache.count`; what remains are
index integers that are in range or refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from oic.check.symbols import Variable
from oic.check.variables import Refused, check_bytes
from oic.diagnostics import Diagnostic, Span
from oic.ir import dims
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.ir.index import IndexEnd, IndexMax, IndexMin
from oic.ir.state import CacheCount, CacheRead, CacheReset, CacheStep, CacheWrite
from oic.ir.types import StateType, TensorType
from oic.lower.builder import Builder
from oic.lower.operands import operand, refuse_negative
from oic.lower.operators import differ, poison, store
from oic.syntax import tree as s


@dataclass
class Positions:
    """An access made explicit: see `ir.state` for `form`; `shape` is that of a read."""

    form: str
    indices: list[Value]
    shape: tuple[Dim, ...]
    least: dict[int, int] = field(default_factory=dict)  # of an axis that grows to a known count


def lower_read(f: Builder, statement: s.CacheRead) -> None:
    """`cache.read src >> v;`"""
    try:
        variable, state = persistent(f, statement.source)
        at = positions(f, variable, state, statement.source, writing=False)
        type_ = TensorType(variable.dtype, at.shape)
        check_bytes(statement.source.span.text, variable.dtype, at.shape, statement.source.span)
        hint = f.variable(statement.target).name
        op = CacheRead(state, at.indices, at.form, type_, span=statement.span, hint=hint)
        f.emit(op)
        store(f, statement.target, op.result, statement.span, free=not _type(state).plain)
    except Refused as refused:
        f.report(refused)
        poison(f, statement.target)


def lower_write(f: Builder, statement: s.CacheWrite) -> None:
    """`cache.write v >> dst;`"""
    variable, state = persistent(f, statement.target)
    source, given = operand(f, statement.source), f.variable(statement.source)
    if source.dtype is not variable.dtype:
        raise Refused(
            Diagnostic(
                "write-dtype",
                f"'{variable.name}' is {variable.dtype}, '{given.name}' is {source.dtype}",
                statement.source.span,
                notes=(variable.note(),),
                hint=f"op cast(…, to={variable.dtype}) converts",
            )
        )
    at = positions(f, variable, state, statement.target, writing=True)
    if len(source.shape) != len(at.shape) or not all(_possible(source.shape, at)):
        wanted = f.shown(TensorType(variable.dtype, at.shape))
        if at.least:
            least = (at.least.get(axis, dims.bounds(n)[0]) for axis, n in enumerate(at.shape))
            wanted += f", at least [{', '.join(map(str, least))}]"
        what = f"'{statement.target.span.text}' is {wanted}, '{given.name}' is {f.shown(source.type)}"
        notes = (variable.note(),)
        raise Refused(Diagnostic("write-shape", what, statement.source.span, notes=notes))
    source = f.shaped(source, at.shape, statement.span)
    f.emit(CacheWrite(state, source, at.indices, at.form, span=statement.span))
    f.known.pop(variable, None)


def _possible(given: tuple[Dim, ...], at: Positions) -> Iterator[bool]:
    """Of every axis, whether a source's size can be the one that is written, on some input."""
    for axis, (a, b) in enumerate(zip(given, at.shape, strict=True)):
        low, high = dims.bounds(b)
        least, most = dims.bounds(a)
        low = max(low, at.least.get(axis, low))
        yield not differ(a, b) and least <= high and low <= most


def lower_step(f: Builder, statement: s.CacheStep) -> None:
    """`cache.increment [n] s;` and `cache.decrement [n] s;`"""
    variable, state = persistent(f, statement.target)
    type_ = _type(state)
    if any(d != 1 for d in type_.shape):
        what = f"only a scalar is stepped, and '{statement.target.span.text}' is {type_.entry}"
        span, notes = statement.target.span, (variable.note(),)
        raise Refused(Diagnostic("not-scalar", what, span, notes=notes))
    amount = f.integer(statement.amount) if statement.amount is not None else 1
    value = f.value(amount * statement.sign, statement.span)
    at = positions(f, variable, state, statement.target, writing=True)
    f.emit(CacheStep(state, value, at.indices, span=statement.span))
    f.known.pop(variable, None)


def lower_reset(f: Builder, statement: s.CacheReset) -> None:
    """`cache.reset dst;`"""
    variable, state = persistent(f, statement.target)
    indices = []
    for index in statement.target.indices or ():
        if isinstance(index, s.Slice):
            raise Refused(None)
        value = f.integer(index)
        refuse_negative(value, index.span)
        indices.append(f.value(value, index.span))
    f.emit(CacheReset(state, indices, span=statement.span))
    f.known.pop(variable, None)


def persistent(f: Builder, access: s.Access) -> tuple[Variable, Value]:
    """The persistent variable of an access.  Raises Refused."""
    variable = f.variable(access)
    if variable.kind != "persistent":
        raise Refused(None)  # reported by the checks of kinds
    return variable, f.states[variable]


def _type(state: Value) -> StateType:
    assert isinstance(state.type, StateType)
    return state.type


# ---------------------------------------------------------------- positions


def positions(
    f: Builder, variable: Variable, state: Value, access: s.Access, *, writing: bool
) -> Positions:
    """The positions an access names, and the shape it reads or takes.  Raises Refused."""
    type_ = _type(state)
    given = list(access.indices or ())
    table, rest = given[: len(type_.table)], given[len(type_.table) :]
    table += [s.Slice(None, None, access.span)] * (len(type_.table) - len(table))
    at = Positions("", [], ())
    for axis, index in enumerate(table):
        if type_.ring and axis == len(type_.table) - 1:
            _ring_position(f, variable, state, index, at, writing=writing)
        else:
            _position(f, variable, state, axis, index, at)
    if not type_.auto:
        at.shape += type_.shape
    else:
        _auto_positions(f, variable, state, rest, access, at)
    return at


def _position(
    f: Builder, variable: Variable, state: Value, axis: int, index: s.Index, at: Positions
) -> None:
    """A scalar or slice of a table index."""
    spec = _type(state).table[axis]
    if not isinstance(index, s.Slice):
        value = f.integer(index)
        bound = spec.capacity if spec.fixed else None
        _refuse_outside(value, bound, index, variable, f"index {spec.name}")
        _scalar(f, at, value, index.span)
        return
    count = _Lazy(f, state, axis)
    start = f.integer(index.start) if index.start is not None else 0
    if index.end is None:
        end = count.get()
    else:
        end = f.integer(index.end)
        # An end not before the start is negative only if the start is, which is refused anyway.
        if not f.nonnegative(end - start) or isinstance(end, int):
            end = _end(f, end, count, index.end.span)
    _refuse_slice(start, end, index)
    if spec.fixed and isinstance(end, int) and end > spec.capacity:
        _refuse_outside(end, spec.capacity + 1, index, variable, f"the end of slice {spec.name}")
    length = end - start
    if spec.fixed and isinstance(length, int) and length > spec.capacity:
        what = f"this slice is {length} long, and @fixed allows {spec.capacity}"
        raise Refused(Diagnostic("index-bound", what, index.span, notes=(variable.note(),)))
    _slice(f, variable, at, start, end, spec.capacity, index.span)


def _end(f: Builder, end: Dim, count: _Lazy, span: Span) -> Dim:
    """The end of a slice: a negative one counts from the count."""
    if f.nonnegative(end):
        return end
    if isinstance(end, int):
        return count.get() + end
    op = f.emit(IndexEnd(f.value(end, span), count.value(), span=span))
    return f.atom(op.result)


class _Lazy:
    """The count of an axis, read where it is first needed."""

    def __init__(self, f: Builder, state: Value, axis: int, indices: list[Value] | None = None) -> None:
        self.f, self.state, self.axis, self.indices = f, state, axis, indices or []
        self._dim: Dim | None = None

    def get(self) -> Dim:
        if self._dim is None:
            type_ = _type(self.state)
            spec = [*type_.table, *type_.auto][self.axis]
            if spec.fixed and self.axis < len(type_.table) and not type_.ring:
                self._dim = spec.capacity
            else:
                op = CacheCount(self.state, self.axis, list(self.indices), hint=f"{spec.name}_count")
                self._dim = self.f.atom(self.f.emit(op).result)
                self.f.nonneg.add(self._dim)
        return self._dim

    def value(self) -> Value:
        return self.f.value(self.get())


def _scalar(f: Builder, at: Positions, value: Dim, span: Span) -> None:
    at.form += "i"
    at.indices.append(f.value(value, span))
    f.nonneg.add(value)


def _slice(
    f: Builder, variable: Variable, at: Positions, start: Dim, end: Dim, capacity: int, span: Span
) -> None:
    at.form += "s"
    at.indices += [f.value(start, span), f.value(end, span)]
    length = f.length(end - start, capacity, variable.name, span, above="OIC_ERR_CACHE_FULL")
    f.nonneg.update((start, end))
    at.shape += (length,)


def _refuse_outside(value: Dim, bound: int | None, index: s.Index, variable: Variable, what: str) -> None:
    """Raises Refused for an index known to be outside 0..bound-1."""
    refuse_negative(value, index.span)
    if bound is not None and isinstance(value, int) and value >= bound:
        raise Refused(
            Diagnostic(
                "index-bound",
                f"{what} is {value}, and @fixed allows 0 to {bound - 1}",
                index.span,
                notes=(variable.note(),),
            )
        )


def _refuse_slice(start: Dim, end: Dim, index: s.Slice) -> None:
    """Raises Refused for a slice known to start below 0 or to end before it starts."""
    length = end - start
    if isinstance(start, int) and start < 0:
        raise Refused(Diagnostic("index-negative", f"this slice starts at {start}", index.span))
    if isinstance(length, int) and length < 0:
        what = f"this slice ends {-length} before it starts"
        raise Refused(Diagnostic("slice-order", what, index.span))


# ---------------------------------------------------------------- rings


def _ring_position(
    f: Builder, variable: Variable, state: Value, index: s.Index, at: Positions, *, writing: bool
) -> None:
    """A position of a rolling window: bounds with a leading minus count back from `next`."""
    type_ = _type(state)
    axis, window = len(type_.table) - 1, type_.table[-1].capacity
    if "s" in at.form:
        raise Refused(None)
    following = _Lazy(f, state, axis, list(at.indices))
    if not isinstance(index, s.Slice):
        value = _ring_bound(f, index, following)
        if writing:
            refuse_negative(value, index.span)
        at.form += "i"
        at.indices.append(f.value(value, index.span))
        return
    start = _ring_bound(f, index.start, following) if index.start is not None else None
    if start is None:
        # `next` less the length, so that the length of `X[]` is seen to fit the window.
        kept = f.emit(IndexMin(f.value(following.get()), f.value(window))).result
        start = following.get() - f.atom(kept)
    end = following.get() if index.end is None else _ring_bound(f, index.end, following)
    length = end - start
    if isinstance(length, int) and not 0 <= length <= (length if writing else window):
        what = f"this slice is {length} long, and the window {window}"
        raise Refused(Diagnostic("slice-order", what, index.span))
    most = max(window, dims.maximum(length)) if writing and f.size(length) is not None else window
    at.form += "s"
    at.indices += [f.value(start, index.span), f.value(end, index.span)]
    at.shape += (f.length(length, most, variable.name, index.span, above="OIC_ERR_INDEX"),)


def _ring_bound(f: Builder, bound: s.Expr, following: _Lazy) -> Dim:
    value = f.integer(bound)
    return following.get() + value if bound.span.text.startswith("-") else value


# ---------------------------------------------------------------- auto-dims


def _auto_positions(
    f: Builder, variable: Variable, state: Value, rest: list[s.Index], access: s.Access, at: Positions
) -> None:
    """The auto-dim positions: scalars grow, nothing takes the whole, any slice selects (8.3)."""
    type_ = _type(state)
    first = len(type_.table)
    if not any(isinstance(i, s.Slice) for i in rest):
        for axis, (size, spec) in enumerate(zip(type_.shape, type_.auto, strict=True)):
            count = _Lazy(f, state, first + axis).get()
            if axis < len(rest):
                index = rest[axis]
                assert not isinstance(index, s.Slice)
                value = f.integer(index)
                if isinstance(value, int):
                    at.least[len(at.shape)] = size + value
                bound = spec.capacity + 1 if spec.fixed else None
                _refuse_outside(value, bound, index, variable, f"count {spec.name}")
                at.form += "i"
                at.indices.append(f.value(value, index.span))
                grown = f.emit(IndexMax(f.value(count), f.value(value), hint=f"{spec.name}_count"))
                count = f.atom(grown.result)
                f.nonneg.add(count)
            at.shape += (
                f.length(count, spec.capacity, variable.name, access.span, above="OIC_ERR_CACHE_FULL")
                + size,
            )
        return
    missing = len(type_.auto) - len(rest)
    for axis, index in enumerate([*rest, *[s.Slice(None, None, access.span)] * missing]):
        _auto_slice(f, variable, state, first + axis, axis, index, at)


def _auto_slice(
    f: Builder, variable: Variable, state: Value, axis: int, dim: int, index: s.Index, at: Positions
) -> None:
    type_ = _type(state)
    spec, base = type_.auto[dim], type_.shape[dim]
    count = _Lazy(f, state, axis)

    def bound(expr: s.Expr) -> Dim:
        return f.integer(expr, lambda axis: _Lazy(f, state, len(type_.table) + axis).get())

    if not isinstance(index, s.Slice):
        at.form += "i"
        value = bound(index)
        refuse_negative(value, index.span)
        at.indices.append(f.value(value, index.span))
        return
    start = bound(index.start) if index.start is not None else 0
    end = count.get() + base if index.end is None else bound(index.end)
    if isinstance(end, int) and end < 0:
        end = count.get() + base + end
    elif not f.nonnegative(end):
        size = f.value(count.get() + base)
        end = f.atom(f.emit(IndexEnd(f.value(end), size, span=index.span)).result)
    _refuse_slice(start, end, index)
    at.form += "s"
    at.indices += [f.value(start, index.span), f.value(end, index.span)]
    maximum = base + spec.capacity
    at.shape += (f.length(end - start, maximum, variable.name, index.span, above="OIC_ERR_INDEX"),)


