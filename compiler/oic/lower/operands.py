"""Operands and settings of operators: what a name means as a tensor operand, members of families, `key=value`.

A setting has the form that its operator's annotation asks for, which is a choice: `int`, `float`, `bool`, `str`,
`DType`, `Dim` (a size, extents included), `Value` (read at run time), `None` (the default only), or a list of one of
them.
"""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from oic import dtypes
from oic.check.literals import literal_problem, number
from oic.check.model_data import data_of
from oic.check.operator_names import setting_hint
from oic.check.report import Refused, refused
from oic.check.symbols import Variable
from oic.diagnostics import Span, count_of
from oic.dtypes import DType
from oic.ir import dims
from oic.ir.core import REQUIRED, Value
from oic.ir.dims import INDEX_BOUND, Dim, Extent
from oic.ir.index import CheckRange, IndexEnd, IndexLoad
from oic.ir.state import Constant, ConstantSelect, IndexTensor, Splat
from oic.ir.types import TensorType
from oic.lower.builder import Builder
from oic.lower.integers import INDEX
from oic.operators.base import Operator, by_name, from_source, settings
from oic.operators.part import Insert
from oic.syntax import tree as s

WORDS = {
    "int": "an integer", "float": "a float", "bool": "true or false", "str": "a string",
    "DType": "an element type", "Dim": "a size",
}  # fmt: skip
BOUND = "a size has a value at build, and an extent declared with @max a maximum"
# What bounds a size where an operator knows better, by operator and setting.
BOUNDED = {
    ("reshape", "shape"): "let one size be -1: it takes what is left",
    ("relative_position_bias", "t"): "read the entries of a table first, K[pos..pos + N]: pos + N is within it then",
    ("relative_position_bias", "n"): "give the most there can be, n=N, and take the part with 'slice'",
}  # fmt: skip
MOST_TURNS = 1 << 14  # of loops, in which members of a family with holes are looked for at build


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
        refuse_negative(f, index, part.span, variable)
    if not variable.stored:
        asked = [None if (last := f.last(index)) is None else last + 1 for index in indices]
        both = zip(asked, variable.reach or asked, strict=True)
        variable.reach = tuple(None if a is None or b is None else max(a, b) for a, b in both)
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
    if (known := _place_in_loops(f, variable, [f.settled(i) for i in indices])) is not None:
        return known
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


def _place_in_loops(f: Builder, variable: Variable, indices: list[Dim]) -> Dim | None:
    """The place of a member as a sum of multiples of indices of loops, and of those that are known at run time.

    None where it is none, or one of the members is missing.
    """
    turns, late, counted = dict(f.turns), dict[Extent, Dim](), list[Dim]()
    for index, count in zip(indices, variable.counts, strict=True):
        if not dims.extents([index]) <= turns.keys():  # as if a loop counted it
            own = Extent(f"?{len(late)}", count - 1)
            turns[own], late[own], index = (0, count - 1), index, dims.of(own)
        counted.append(index)
    loops = sorted(dims.extents(counted))
    runs = [range(first, last + 1) for first, last in map(turns.__getitem__, loops)]
    if not 0 < math.prod(map(len, runs)) <= MOST_TURNS:
        return None
    values = ({loop.name: i for loop, i in zip(loops, turn)} for turn in product(*runs))
    members = [tuple(dims.evaluate(index, value) for index in counted) for value in values]
    if not variable.places.keys() >= set(members):
        return None
    places = np.array([variable.places[member][0] for member in members]).reshape([len(run) for run in runs])
    place: Dim = int(places.flat[0])
    for axis, (loop, run) in enumerate(zip(loops, runs)):
        steps = np.unique(np.diff(places, axis=axis))
        if steps.size > 1:
            return None
        place = place + int(steps.sum()) * (late.get(loop, dims.of(loop)) - run[0])
    return place


def refuse_negative(f: Builder, index: Dim, span: Span, variable: Variable) -> None:
    """Raises Refused for an index that is known to be negative, in some iteration of a loop at least."""
    if f.reached(index)[0] < 0:
        raise refused("index-negative", f"this index {f.says_reached(index, 0)}", span, variable)


def refuse_order(length: Dim, span: Span) -> None:
    """Raises Refused for a slice that is known to end before it starts."""
    if isinstance(length, int) and length < 0:
        raise refused("slice-order", f"this slice ends {-length} before it starts", span)


def slice_ends(
    f: Builder, index: s.Slice, variable: Variable, size: Callable[[], Dim], bound: Callable[[s.Expr], Dim]
) -> tuple[Dim, Dim]:
    """Where a slice starts and ends: a missing end is the size, a negative one counts from there.

    bound   what an expression means
    Raises Refused for a start that is known to be negative, or an end to be before it.
    """
    start: Dim = 0
    if index.start is not None:
        start = bound(index.start)
        refuse_negative(f, start, index.start.span, variable)
    end = size() if index.end is None else bound(index.end)
    if isinstance(end, int):
        end = end if end >= 0 else size() + end
    # An end not before the start is negative only if the start is, which is refused anyway.
    elif index.end is not None and not (f.nonnegative(end) or f.nonnegative(end - start)):
        span = index.end.span
        end = f.atom(f.emit(IndexEnd(f.value(end, span), f.value(size()), span=span)).result)
    refuse_order(end - start, index.span)
    return start, end


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
    refuse_negative(f, value, index.span, variable)
    if f.reached(value)[1] >= dims.maximum(size):
        what = f"this index {f.says_reached(value, 1)}, and the axis has {_at_most(size)}"
        raise refused("index-bound", what, index.span, variable)
    check_between(f, 0, value, size - 1, variable.name, index.span)
    return value, None


def _slice(f: Builder, variable: Variable, size: Dim, index: s.Slice) -> tuple[Dim, Dim]:
    """A run of places: its start and length; missing ends are those of the axis."""
    start, end = slice_ends(f, index, variable, lambda: size, f.integer)
    length, most = end - start, dims.maximum(size)
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


# ---------------------------------------------------------------- settings


def lower_keywords(
    f: Builder, call: s.OpCall, cls: type[Operator], where: dict[str, Span], operands: dict[str, Any]
) -> dict[str, Any]:
    """Optional operands and settings by name; `where` learns their spans.  Raises Refused."""
    fields: dict[str, Any] = {}
    first = next(iter(operands.values()), None)
    dtype = first.dtype if isinstance(first, Value) else None
    for keyword in call.keywords:
        key = from_source(cls, keyword.key)
        where[key] = keyword.span
        with f.refusing():
            fields[key] = _keyword(f, keyword, cls, dtype)
    known = {keyword.key for keyword in call.keywords}
    for name, field in settings(cls).items():
        if field.default is REQUIRED and name not in known:
            what = f"{cls.name} needs the setting '{name}'"
            hint = f"write {name}=… behind the operands; 'oic ops {cls.name}' says what it may be"
            raise refused("op-setting", what, call.name_span, hint=hint)
    if len(fields) < len(known):
        raise Refused(None)
    return fields


def _keyword(f: Builder, keyword: s.Keyword, cls: type[Operator], dtype: DType | None) -> Any:
    if keyword.key in by_name(cls):
        return _named_operand(f, keyword, cls)
    known = settings(cls)
    if keyword.key in known:
        if keyword.key in cls.tensors and (rows := _tensor(f, keyword.value)) is not None:
            return rows
        return _Setting(f, cls.name, keyword, dtype).read(keyword.value, known[keyword.key].annotation)
    hint = setting_hint(keyword.key, [*by_name(cls), *known])
    raise refused("op-setting", f"{cls.name} has no setting '{keyword.key}'", keyword.key_span, hint=hint)


def _named_operand(f: Builder, keyword: s.Keyword, cls: type[Operator]) -> Value:
    """An optional operand: a tensor, or an integer expression where the operator takes one."""
    value = keyword.value
    if isinstance(value, s.Access):
        return operand(f, value)
    if isinstance(value, s.Name) and (variable := f.instance.variable(value)) is not None:
        return _whole(f, variable, value)
    if isinstance(value, s.Expr) and keyword.key in cls.scalars:
        return f.value(f.integer(value), value.span)
    if isinstance(value, s.Expr) and keyword.key in cls.own:
        return integer_operand(f, value, keyword.key, cls.own[keyword.key])
    raise refused("op-setting", f"'{keyword.key}' of {cls.name} is a tensor", value.span)


def _tensor(f: Builder, value: s.Setting | s.Access) -> Value | None:
    """An integer variable of several elements; None for all else."""
    variable = f.instance.variable(value) if isinstance(value, s.Name) else None
    if variable is None or variable.refused or variable.kind == "persistent":
        return None
    return None if all(size == 1 for size in f.dims(variable)) else _whole(f, variable, value)


def _whole(f: Builder, variable: Variable, value: s.Setting | s.Access) -> Value:
    """A variable that is named as a tensor.  Raises Refused."""
    if variable.refused or variable.family:
        raise Refused(None)
    return f.read(variable, value.span)


class _Setting:
    """One setting of an operator being read; `dtype` is that of the operator's first operand."""

    def __init__(self, f: Builder, operator: str, keyword: s.Keyword, dtype: DType | None) -> None:
        self.f, self.operator, self.keyword, self.dtype = f, operator, keyword, dtype

    def read(self, value: s.Setting | s.Access, annotation: str) -> Any:
        """The value in the form of an annotation.  Raises Refused."""
        choices = annotation.replace(" ", "").split("|")
        if isinstance(value, s.ListOf):
            inner = next((c[5:-1] for c in choices if c.startswith("list[")), None)
            if inner is None:
                raise self._wrong(value, choices)
            return [self.read(item, inner) for item in value.items]
        if isinstance(value, s.Name) and "DType" in choices and value.name in dtypes.ALL:
            return dtypes.ALL[value.name]
        if isinstance(value, s.Name) and value.name in dtypes.ALL and self.f.instance.variable(value) is None:
            raise self._wrong(value, choices)
        match value:
            case s.Float() if "float" in choices and (problem := literal_problem(value, dtypes.f64)):
                raise refused("op-setting", problem[1], value.span)
            case s.Bool(found) | s.Str(found) | s.Float(found) | s.Int(found) if type(found).__name__ in choices:
                return found  # the operator knows the range of an integer, which may be that of u64
            case s.Name() if (scalar := self._scalar(value, choices)) is not None:
                return scalar
            case s.Int() | s.Name() | s.Unary() | s.Binary() if {"int", "Dim"} & set(choices):
                return self._integer(value, choices)
        raise self._wrong(value, choices)

    def _scalar(self, name: s.Name, choices: list[str]) -> Any:
        """The value of a float or bool scalar, or of one of u64, which no index holds; else None."""
        f = self.f
        variable = f.instance.variable(name)
        if variable is None or variable.refused:
            return None
        dtype = variable.dtype
        widest = dtype is dtypes.u64 is self.dtype and "Value" in choices
        if dtype.is_int and not dtype.packed and not widest:
            return None
        if ("bool" if dtype.kind == "bool" else "float") not in choices:
            return None
        if variable.kind == "constant":
            data = data_of(f.binding, variable)
            self._require_one(variable, name, data.size == 1, f"{dtype}{list(data.shape)}")
            value = data.reshape(-1)[0].item()
            return bool(value) if dtype.kind == "bool" else int(value) if widest else float(value)
        if "Value" not in choices:
            raise self._not_known(name)
        value = _whole(f, variable, name)
        self._require_one(variable, name, value.tensor.size == 1, f.shown(value.type))
        return value

    def _require_one(self, variable: Variable, name: s.Name, one: bool, shown: str) -> None:
        if not one:
            raise refused("op-setting", f"'{variable.name}' is {shown}, not a scalar", name.span, variable)

    def _integer(self, value: s.Expr, choices: list[str]) -> Any:
        f = self.f
        found = f.integer(value)
        size = f.size(found)
        if isinstance(found, int):
            return found
        if "Dim" in choices and size is not None:
            return f.checked_size(size, self.keyword.key, value.span)
        if "Value" in choices:
            return f.value(found, value.span)
        within = min(dims.maximum(found), f.memo.get(("most", found), INDEX_BOUND))
        if "Dim" in choices and within < INDEX_BOUND:  # a remainder, made of some, or the end of a slice before
            return f.length(found, max(0, within), self.keyword.key, value.span, above="OIC_ERR_SHAPE")
        if "Dim" not in choices:
            raise self._not_known(value)
        what = f"'{value.span.text}' decides a size, and nothing bounds it"
        hint = BOUNDED.get((self.operator, self.keyword.key), BOUND)
        raise refused("size-unbounded", what, value.span, hint=hint)

    def _not_known(self, value: s.Expr) -> Refused:
        return refused("op-setting", f"'{self.keyword.key}' must be known at build", value.span)

    def _wrong(self, value: s.Setting | s.Access, choices: list[str]) -> Refused:
        lists = [c[5:-1] for c in choices if c.startswith("list[")]
        wanted = [WORDS[c] for c in choices if c in WORDS]
        wanted += [f"a list of {WORDS[c].split(' ', 1)[1]}s" for c in lists if c in WORDS]
        what = f"'{self.keyword.key}' takes {' or '.join(dict.fromkeys(wanted))}"
        hint = None
        if isinstance(value, s.Str) and "DType" in choices and value.value in dtypes.ALL:
            hint = f"element types have no quotes: {self.keyword.key}={value.value}"
        elif isinstance(value, s.Name) and "str" in choices:
            hint = f'strings have quotes: {self.keyword.key}="{value.name}"'
        elif isinstance(value, s.Int) and "float" in choices:
            hint = f"write {value.value}.0"
        elif lists and isinstance(value, s.Int):
            hint = f"write [{value.value}]"
        return refused("op-setting", what, value.span, hint=hint)
