"""Operands: what a name means as a tensor operand, and members of families, `W[i]`."""

import math
from collections.abc import Callable

import numpy as np

from oic import dtypes
from oic.check.literals import literal_problem, number
from oic.check.report import refused
from oic.check.symbols import Variable
from oic.diagnostics import Span, count_of
from oic.dtypes import DType
from oic.ir import dims
from oic.ir.core import Value
from oic.ir.dims import INDEX_BOUND, Dim
from oic.ir.index import CheckRange, IndexEnd, IndexLoad
from oic.ir.state import Constant, ConstantSelect, IndexTensor, Splat
from oic.ir.types import TensorType
from oic.lower.builder import Builder
from oic.lower.integers import INDEX
from oic.operators.base import Operator
from oic.operators.part import Insert
from oic.syntax import tree as s


def operand(f: Builder, access: s.Access, *, elements: bool = True) -> Value:
    """The value of an operand.  Raises Refused; in silence for what the checks refused.

    elements   as in `Builder.read`
    """
    variable = f.variable(access)
    return _member(f, variable, access) if variable.family else f.read(variable, access.span, elements=elements)


def literal_operand(f: Builder, value: s.Literal, cls: type[Operator], name: str, others: DType | None) -> Value:
    """A literal as a scalar: of the dtype that its operand has, else of that of the others.

    Raises Refused.
    """
    dtype = cls.own.get(name, others)
    if dtype is None:
        message = f"no other operand of {cls.name} gives the literal {value.span.text} a type"
        fix = "a variable has one: a constant with @init, or a temporary that 'op fill' sets"
        raise refused("literal-dtype", message, value.span, hint=fix)
    if (problem := literal_problem(value, dtype)) is not None:
        what, message, hint = problem
        raise refused(f"literal-{what}", message, value.span, hint=hint)
    return f.emit(Splat(number(value.value, dtype), TensorType(dtype, ()), span=value.span)).result


def integer_operand(f: Builder, value: s.Expr, name: str, dtype: DType) -> Value:
    """An integer expression as a scalar of an integer type, checked to be one of its values."""
    index = f.integer(value)
    if isinstance(index, int) and not dtype.low <= index <= dtype.high:
        what = f"{index} is out of the range of {dtype} ({dtype.low} to {dtype.high})"
        raise refused("literal-range", what, value.span)
    if not isinstance(index, int):
        f.check(index, dtype.low, dtype.high, name, value.span)
    return f.emit(IndexTensor(f.value(index, value.span), TensorType(dtype, ()), span=value.span, hint=name)).result


def _member(f: Builder, variable: Variable, access: s.Access) -> Value:
    """`W[i, j]`: one member of a family."""
    given = [i for i in access.indices or () if not isinstance(i, s.Slice)]  # as many as it is declared with
    indices = [f.integer(i) for i in given]
    for index, part in zip(indices, given, strict=True):
        refuse_negative(f, index, part.span)
    if not variable.stored:
        shape = tuple(d for d in f.dims(variable) if d is not None)
        return f.emit(Splat(variable.first, TensorType(variable.dtype, shape))).result
    keys = tuple(i for i in indices if isinstance(i, int))
    static = len(keys) == len(indices)
    if static and variable.members and keys not in variable.members:
        what = f"the model has no member {list(keys)} of '{variable.name}'"
        raise refused("missing-member", what, access.span, variable)
    family = f.constant(variable)
    for index, count in zip(indices, variable.counts, strict=True):
        if f.reached(index)[1] >= count:
            what = f"the members of '{variable.name}' in the model end at {count - 1}"
            raise refused("missing-member", what, access.span, variable)
        if not isinstance(index, int):
            f.check(index, 0, count - 1, variable.name, access.span)
    if len(variable.members) not in (0, math.prod(variable.counts)):
        indices = [variable.places[keys][0] if static else _lies_at(f, variable, access, indices)]
    return f.emit(ConstantSelect(family, list(map(f.value, indices)), span=access.span, hint=variable.name)).result


def _lies_at(f: Builder, variable: Variable, access: s.Access, indices: list[Dim]) -> Dim:
    """Where a member of a family with holes lies; the members that the model does not have are refused at run time."""
    low, high = dims.bounds(indices[0], lambda extent: f.turns.get(extent, (-INDEX_BOUND, INDEX_BOUND)))
    if len(indices) == 1 and low >= 0 and all((i,) in variable.places for i in range(low, high + 1)):
        return indices[0] - low + variable.places[low,][0]
    symbol = f"{variable.name}.places"
    if symbol not in f.constants:
        places = np.full(variable.counts, -1, np.int32)
        for key, at in variable.places.items():
            places[key] = at[0]
        f.module.weights[symbol] = places
        f.constants[symbol] = f.module.top.append(Constant(symbol, TensorType(dtypes.i32, variable.counts))).result
    member = f.emit(ConstantSelect(f.constants[symbol], list(map(f.value, indices)))).result
    found = f.emit(IndexLoad(member, span=access.span)).result
    place: Dim = 0
    for index, count in zip(indices, variable.counts, strict=True):
        place = place * count + index
    told = variable.name, "has no member", f.value(place, access.span), list(variable.counts)
    f.emit(CheckRange(found, 0, len(variable.members) - 1, INDEX, INDEX, *told, span=access.span))
    return f.atom(found, len(variable.members) - 1)


def refuse_negative(f: Builder, index: Dim, span: Span) -> None:
    """Raises Refused for an index that is known to be negative, in some iteration of a loop at least."""
    if f.reached(index)[0] < 0:
        raise refused("index-negative", f"this index {f.says_reached(index, 0)}", span)


def refuse_order(length: Dim, span: Span) -> None:
    """Raises Refused for a slice that is known to end before it starts."""
    if isinstance(length, int) and length < 0:
        raise refused("slice-order", f"this slice ends {-length} before it starts", span)


def slice_ends(f: Builder, index: s.Slice, size: Callable[[], Dim], bound: Callable[[s.Expr], Dim]) -> tuple[Dim, Dim]:
    """Where a slice starts and ends: a missing end is the size, a negative one counts from there.

    bound   what an expression means
    """
    start = bound(index.start) if index.start is not None else 0
    if index.end is None:
        return start, size()
    end = bound(index.end)
    if isinstance(end, int):
        return start, end if end >= 0 else size() + end
    # An end not before the start is negative only if the start is, which is refused anyway.
    if f.nonnegative(end) or f.nonnegative(end - start):
        return start, end
    span = index.end.span
    return start, f.atom(f.emit(IndexEnd(f.value(end, span), f.value(size()), span=span)).result)


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
    return f.emit(Insert(base, offsets, lengths, part, span=span, hint=variable.name)).result


def _place(f: Builder, variable: Variable, size: Dim, index: s.Index) -> tuple[Dim, Dim | None]:
    """Where a part lies along an axis: its offset and length; of one place, which is no axis of the part, None."""
    if isinstance(index, s.Slice):
        return _slice(f, variable, size, index)
    value = f.integer(index)
    refuse_negative(f, value, index.span)
    if f.reached(value)[1] >= dims.maximum(size):
        what = f"this index {f.says_reached(value, 1)}, and the axis has {_at_most(size)}"
        raise refused("index-bound", what, index.span, variable)
    check_between(f, 0, value, size - 1, variable.name, index.span)
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
    check_between(f, 0, start, end, variable.name, index.span)
    check_between(f, start, end, size, variable.name, index.span)
    return start, f.length(length, most, variable.name, index.span, above=INDEX, trusted=True)


def _at_most(size: Dim) -> str:
    """How many places an axis has, in words."""
    count = count_of(dims.maximum(size), "place")
    return count if isinstance(size, int) else f"at most {count}"


def check_between(f: Builder, low: Dim, value: Dim, high: Dim | None, name: str, span: Span) -> None:
    """A run-time check of low <= value <= high, without what is known; of integers, refused by the operator, none."""
    below = not f.nonnegative(value - low)
    above = high is not None and not f.nonnegative(high - value)
    if isinstance(value, int) and isinstance(low, int) and (high is None or isinstance(high, int)):
        return
    if below or above:
        ends = low if below else value, high if above and high is not None else value
        first, last = (n if isinstance(n, int) else f.value(n, span) for n in ends)
        f.check(value, first, last, name, span)
