"""The values of sizes and dimensions at build time (SPEC section 3).

A size takes its value from `--set`, else from a `sizes` section, else from the model; what is
inferred from the axes of bound tensors, the caller passes in with the model's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from oic.check.names import names_in
from oic.diagnostics import MOST_NOTES, Diagnostic, Note, OicError, Span, fail
from oic.dtypes import i64
from oic.syntax import tree as s


class Unresolved(Exception):
    """A name in a dimension that has no value (yet)."""

    def __init__(self, name: s.Name) -> None:
        super().__init__(name.name)
        self.name = name


def eval_dim(expr: s.Expr, env: Mapping[str, int]) -> int:
    """The value of an expression over sizes.

    Raises Unresolved for a name that is not in `env`, OicError for a division with a remainder
    or by what is below 1 and for a value outside 64 bits.
    """
    match expr:
        case s.Int(value):
            return value
        case s.Name(name):
            if name not in env:
                raise Unresolved(expr)
            return env[name]
        case s.Unary(operand):
            return -eval_dim(operand, env)
        case s.Binary(op, left, right):
            return _binary(op, eval_dim(left, env), eval_dim(right, env), expr.span)


def _binary(op: str, left: int, right: int, span: Span) -> int:
    if op in "/%":
        value, wrong = divided(op, left, right)
        if wrong:
            raise fail("size-division", wrong, span)
    else:
        value = {"+": left + right, "-": left - right, "*": left * right}[op]
    if not i64.low <= value <= i64.high:
        raise fail("size-range", f"{left} {op} {right} does not fit 64 bits", span)
    return value


def divided(op: str, left: int, right: int) -> tuple[int, str]:
    """`left / right`, exact, or `left % right`, which floors, of values known at build; what is wrong."""
    if right < 1:
        return 0, f"{left} is divided by {'zero' if right == 0 else right}"
    if op == "/" and left % right:
        return 0, f"{left} is not divisible by {right}"
    return (left // right if op == "/" else left % right), ""


def resolve_sizes(
    graph: s.Graph, overrides: Mapping[str, int], model_sizevars: Mapping[str, int]
) -> dict[str, int]:
    """The value of every size that has one: override, else `sizes` section, else model.

    A size of a section that needs a name without a value is left out.  Raises OicError with all
    cycles, values that are not positive, and inexact divisions.
    """
    values, errors = size_values(graph, overrides, model_sizevars)
    if errors:
        raise OicError(errors)
    return values


def size_values(
    graph: s.Graph, overrides: Mapping[str, int], model_sizevars: Mapping[str, int]
) -> tuple[dict[str, int], list[Diagnostic]]:
    """As `resolve_sizes`: the values of what is right, and what is wrong."""
    pending: dict[str, s.SizeDef] = {}
    for size in graph.sizes:
        pending.setdefault(size.name, size)
    values: dict[str, int] = {}
    errors: list[Diagnostic] = []
    for name, value in {**model_sizevars, **overrides}.items():
        if name not in overrides and name in pending:
            continue
        origin = "--set" if name in overrides else "the model"
        at = pending[name].name_span if name in pending else None
        pending.pop(name, None)
        if value < 1:
            message = f"size '{name}' must be positive, but {origin} gives {value}"
            errors.append(Diagnostic("size-value", message, at))
        elif value > i64.high:
            message = f"size '{name}' does not fit 64 bits, but {origin} gives {value}"
            errors.append(Diagnostic("size-range", message, at))
        else:
            values[name] = value
    errors += _evaluate(pending, values)
    errors += _cycles(pending, values)
    return dict(sorted(values.items())), errors


def _evaluate(pending: dict[str, s.SizeDef], values: dict[str, int]) -> list[Diagnostic]:
    """Move what can be evaluated from `pending` to `values`; what is wrong leaves both."""
    errors: list[Diagnostic] = []
    missing = {
        size.name: {n.name for n in names_in(size.value) if n.name not in values}
        for size in pending.values()
    }
    users: dict[str, list[str]] = {}
    for user, names in missing.items():
        for name in names:
            users.setdefault(name, []).append(user)
    ready = deque(name for name, names in missing.items() if not names)
    while ready:
        size = pending.pop(ready.popleft())
        try:
            value = eval_dim(size.value, values)
        except OicError as error:
            errors += error.diagnostics
            continue
        if value < 1:
            message = f"size '{size.name}' must be positive, but is {value}"
            errors.append(Diagnostic("size-value", message, size.value.span))
            continue
        values[size.name] = value
        for user in users.get(size.name, ()):
            missing[user].discard(size.name)
            if not missing[user]:
                ready.append(user)
    return errors


def _cycles(pending: Mapping[str, s.SizeDef], values: Mapping[str, int]) -> list[Diagnostic]:
    """One error for every cycle among the sizes that could not be evaluated."""
    needs = {
        size.name: [n.name for n in names_in(size.value) if n.name not in values]
        for size in pending.values()
    }
    errors: list[Diagnostic] = []
    _without_dead(needs)
    while needs:
        path = {next(iter(needs)): 0}
        following = needs[next(iter(path))][0]
        while following not in path:
            path[following] = len(path)
            following = needs[following][0]
        ring = list(path)[path[following] :]
        errors.append(_cycle([pending[name] for name in ring]))
        for name in ring:
            del needs[name]
        _without_dead(needs)
    return errors


def _without_dead(needs: dict[str, list[str]]) -> None:
    """Drop the sizes that need, directly or not, what is no part of `needs`."""
    users: dict[str, list[str]] = {}
    for user, names in needs.items():
        for name in names:
            users.setdefault(name, []).append(user)
    dead = [user for user, names in needs.items() if any(n not in needs for n in names)]
    while dead:
        name = dead.pop()
        if needs.pop(name, None) is not None:
            dead += users.get(name, ())


def _cycle(ring: list[s.SizeDef]) -> Diagnostic:
    first, *others = sorted(ring, key=lambda size: size.span.start)
    notes = tuple(Note(size.span, "part of the cycle") for size in others[:MOST_NOTES])
    message = f"the value of size '{first.name}' depends on itself"
    return Diagnostic("size-cycle", message, first.span, "", notes)
