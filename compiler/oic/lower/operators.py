"""Lowering of `op` and `transfer`: the operator itself, what its results may be stored in."""

from typing import Any

from oic.check.binding import check_bytes
from oic.check.report import Refused, refused
from oic.check.symbols import Variable
from oic.diagnostics import Diagnostic, Note, Span, count_of
from oic.dtypes import DType
from oic.ir import dims
from oic.ir.core import OpError, Unequal, Value
from oic.ir.dims import Dim
from oic.lower.builder import POISON, Builder
from oic.lower.integers import INDEX
from oic.lower.operands import (
    check_between,
    inserted,
    literal_operand,
    lower_keywords,
    operand,
    refuse_order,
)
from oic.operators.base import Operator, by_name, positional
from oic.operators.shape import Slice
from oic.syntax import tree as s


def lower_op(f: Builder, call: s.OpCall) -> None:
    """`op name(a, b, key=value) >> r;`"""
    cls = f.instance.meanings.get(id(call))
    assert isinstance(cls, type), "a call of an unknown operator is skipped"
    where: dict[str, Span] = {}
    fields = _operands(f, call, cls, where)
    fields |= lower_keywords(f, call, cls, where, fields)
    if cls is Slice:
        _check_slice(f, call, fields)
    _store_results(f, call, _build(f, call, cls, fields, where))


def lower_transfer(f: Builder, statement: s.Transfer) -> None:
    """`transfer a >> b;`: b holds the very value."""
    value = operand(f, statement.source)
    if statement.target.indices:  # `transfer a >> y[i];`: y holds its value with a part replaced
        variable = f.variable(statement.target)
        require_dtype(statement.target, variable, value)
        f.env[variable] = inserted(f, statement.target, variable, f.held(variable, None), value, statement.span)
        return
    store(f, statement.target, value, statement.span, free=_reshaped(f, f.variable(statement.source), value))


def _operands(f: Builder, call: s.OpCall, cls: type[Operator], where: dict[str, Span]) -> dict[str, Any]:
    """The operands given by position, by field."""
    names, extra = positional(cls), len(call.operands) - len(positional(cls))
    rest = bool(names) and cls.fields[names[-1]].kind == "rest"
    if extra < 0 or (extra and not rest):
        raise Refused(_wrong_count(call, cls, names, more=rest))
    values = _values(f, call, cls, names + names[-1:] * extra)
    where |= {name: node.span for name, node in zip(names, call.operands)}
    fields: dict[str, Any] = dict(zip(names, values))
    if rest:
        fields[names[-1]] = values[len(names) - 1 :]
    return fields


def _values(f: Builder, call: s.OpCall, cls: type[Operator], names: list[str]) -> list[Value]:
    """The operands by position, variables first: a literal has the dtype that they have."""
    found: dict[int, Value] = {}
    dtype: DType | None = None
    for done, at in enumerate(sorted(range(len(names)), key=lambda at: not isinstance(call.operands[at], s.Access))):
        node = call.operands[at]
        with f.refusing():
            if isinstance(node, s.Access):
                found[at] = operand(f, node, elements=names[at] not in cls.unread)
                if names[at] not in cls.own and dtype is None:
                    dtype = found[at].dtype
            elif len(found) == done:  # else its dtype may be unknown
                found[at] = literal_operand(f, node, cls, names[at], dtype)
    if len(found) < len(names):
        raise Refused(None)
    return [found[at] for at in range(len(names))]


def _wrong_count(call: s.OpCall, cls: type[Operator], names: list[str], *, more: bool) -> Diagnostic:
    given = len(call.operands)
    count = f"{len(names)}{' or more' if more else ''} operand{'s' if len(names) > 1 or more else ''}"
    what = f"{cls.name} takes {count} ({', '.join(names)}), and {given or 'none'} "
    what += "is given" if given < 2 else "are given"
    named = [f"{key}={o.name}" for key, o in zip(by_name(cls), call.operands[len(names) :]) if isinstance(o, s.Access)]
    hint = f"optional operands are given by name: {', '.join(named)}" if named else None
    return Diagnostic("op-operands", what, call.name_span, hint=hint)


def _check_slice(f: Builder, call: s.OpCall, fields: dict[str, Any]) -> None:
    """0 ≤ start ≤ end ≤ size where build cannot tell; the size of a slice with run-time ends."""
    x, axis, step = fields["x"], fields["axis"], fields.get("step", 1)
    if not -x.tensor.rank <= axis < x.tensor.rank or step < 1:
        return  # refused by the operator
    nodes: dict[str, Any] = {k.key: k.value for k in call.keywords}
    whole = x.shape[axis]
    start, end = (f.integer(nodes[key]) for key in ("start", "end"))
    length = end - start
    if isinstance(start, int) and (start < 0 or (isinstance(length, int) and length < 0)):
        return  # refused by the operator
    refuse_order(length, nodes["end"].span)
    for low, value, high, name in ((0, start, None, "start"), (start, end, whole, "end")):
        check_between(f, low, value, high, name, call.span)
    if not any(isinstance(fields[key], Value) for key in ("start", "end")):
        return
    length = f.length(length, dims.maximum(whole), "end", call.span, above=INDEX, trusted=True)
    fields["size"] = (length + (step - 1)) // step


def _build(
    f: Builder, call: s.OpCall, cls: type[Operator], fields: dict[str, Any], where: dict[str, Span]
) -> list[Value]:
    """Make the op; sizes that build cannot compare become run-time checks."""
    op: Operator | None = None
    while op is None:  # each round makes one axis of one operand what it must be
        try:
            op = cls(**fields, span=call.span)
        except Unequal as unequal:
            _assert_axis(f, fields, unequal, where.get(unequal.where or "", call.span))
        except OpError as error:
            assert error.slug != "ir", f"{call.span.text}: {error.message}"
            span = where.get(error.where or "", call.name_span)
            given = next((node for node in call.operands if node.span == span), None)
            about = f.variable(given) if isinstance(given, s.Access) else None
            raise refused(error.slug, error.message, span, about, hint=error.hint) from None
    if (guess := op.unsaid(fields)) is not None:
        f.refuse(Diagnostic(guess.slug, guess.message, where[guess.where or ""], hint=guess.hint, severity="warning"))
    parts, values = op.expanded() or ([op], op.results)
    for value, result in zip(values, call.results):
        value.hint = variable.name if (variable := f.instance.variable(result)) is not None else ""
    for value in values:
        check_bytes(cls.name, value.dtype, value.shape, call.name_span)
    for part in [*op.checks(), *parts]:
        part.span = part.span or call.span
        f.emit(part)
    return values


def _assert_axis(f: Builder, fields: dict[str, Any], unequal: Unequal, span: Span) -> None:
    """Replace an operand by itself with one axis checked at run time."""
    old = unequal.value
    shape = list(old.shape)
    shape[unequal.axis] = unequal.expected
    if dims.differ(size := old.shape[unequal.axis], unequal.expected):
        raise refused("shape-mismatch", f"size {_limits(f, size)} is never {_limits(f, unequal.expected)}", span)
    new = f.shaped(old, tuple(shape), span)
    assert new is not old
    key = unequal.where or ""
    held = fields[key]
    fields[key] = [new if item is old else item for item in held] if isinstance(held, list) else new


def _store_results(f: Builder, call: s.OpCall, values: list[Value]) -> None:
    if len(call.results) != len(values):
        count = count_of(len(values), "result")
        given = f"{len(call.results)} {'is' if len(call.results) == 1 else 'are'} named"
        what = f"{values[0].op.name if values[0].op else ''} has {count}, and {given}"
        raise refused("op-results", what, call.results[0].span.to(call.results[-1].span))
    free = any(_reshaped(f, variable, value) for variable, value in _inputs(f, call))
    for access, value in zip(call.results, values, strict=True):
        if (variable := f.instance.variable(access)) is not None and variable.local:
            f.env[variable] = POISON
        with f.refusing():
            store(f, access, value, call.span, free=free)


def _inputs(f: Builder, call: s.OpCall) -> list[tuple[Variable, Value]]:
    """The variables among the operands, optional ones included, with what they hold."""
    nodes = [*call.operands, *(keyword.value for keyword in call.keywords)]
    given = (f.instance.variable(node) for node in nodes if isinstance(node, s.Access | s.Name))
    return [(v, held) for v in given if v is not None and isinstance(held := f.env.get(v), Value)]


def _reshaped(f: Builder, variable: Variable, value: Value) -> bool:
    """The variable is not in its declared shape, because of a cache read before (SPEC 8.2)."""
    if not variable.local or variable.family:
        return False
    declared = f.dims(variable)
    return not _fits(declared, value.shape) or None in declared


def _fits(declared: tuple[Dim | None, ...], shape: tuple[Dim, ...]) -> bool:
    return len(declared) == len(shape) and all(d is None or d == n for d, n in zip(declared, shape, strict=True))


def store(f: Builder, access: s.Access, value: Value, span: Span, *, free: bool) -> None:
    """Let a destination hold a value.

    free   the destination takes the value's shape; else it must have the declared one
    """
    variable = f.variable(access)
    require_dtype(access, variable, value)
    if not _fits(f.dims(variable), value.shape):
        value = _other_shape(f, access, variable, value, span, free=free)
    f.env[variable] = value


def require_dtype(access: s.Access, variable: Variable, value: Value) -> None:
    """Raises Refused for a value of another dtype than its destination."""
    if value.dtype is not variable.dtype:
        what = f"'{variable.name}' is {variable.dtype}, the value is {value.dtype}"
        raise refused("result-dtype", what, access.span, variable, hint=_conversion(value, variable.dtype))


def _conversion(value: Value, to: DType) -> str:
    """How a value gets another dtype: sums of integers wrap before a cast could widen them."""
    cast, has, op = f"op cast(…, to={to}) converts", value.dtype, value.op
    widens = to.is_int and to.kind == has.kind and to.bits > has.bits
    if op is not None and widens and op.attributes().get("acc", to) is None:
        return f"{op.name}(…, acc={to}) computes in {to}; {cast} what has wrapped in {has}"
    return cast


def _other_shape(f: Builder, access: s.Access, variable: Variable, value: Value, span: Span, *, free: bool) -> Value:
    """The value for a destination of another shape: refused, checked at run time, or taken."""
    declared, shape = f.dims(variable), value.shape
    same_rank, typed = len(declared) == len(shape), f.typed(variable.dtype, declared)
    if free:
        if not same_rank or any(isinstance(d, int) and d != n for d, n in zip(declared, shape)):
            what = f"'{variable.name}', declared {typed}, takes the shape {f.shown(value.type)}"
            notes, hint = (Note(variable.declaration.type_span, "declared here"),), "declare the sizes that vary as '?'"
            f.refuse(Diagnostic("takes-shape", what, access.span, "", notes, hint, "warning"))
        return value
    if not same_rank or any(d is not None and dims.differ(d, n) for d, n in zip(declared, shape, strict=True)):
        what = f"'{variable.name}' is {typed}, the value is {f.shown(value.type)}"
        raise refused("result-shape", what, access.span, variable)
    wanted = tuple(n if d is None else d for d, n in zip(declared, shape, strict=True))
    return f.shaped(value, wanted, span)


def _limits(f: Builder, size: Dim) -> str:
    """A size in words, with what it can be."""
    low, high = dims.bounds(size)
    name = f.shown_size(size)
    return name if low == high else f"{name} ({f'{low} to' if low > 0 else 'at most'} {high})"
