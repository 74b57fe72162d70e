"""Integer expressions, and the values of sizes at build time (SPEC section 3).

A size takes its value from `--set`, else from a `sizes` section, else from the model; what is
inferred from the axes of bound tensors, the caller passes in with the model's.
"""

from collections.abc import Callable, Mapping

from oic.check.report import Refused, refused
from oic.check.symbols import circles, first_of, in_order
from oic.diagnostics import MOST_NOTES, Diagnostic, Note, Span
from oic.dtypes import i64
from oic.ir import dims
from oic.ir.dims import Dim, Expr
from oic.syntax import tree as s

LOW, HIGH = i64.low, i64.high
Divide = Callable[[s.Binary, Dim, Dim], Dim]


def evaluate(expr: s.Dim | s.Index, lookup: Callable[[s.Name], Dim], divide: Divide | None = None) -> Dim:
    """An expression over names; build-time values fit 64 bits.

    divide   what `/` and `%` give; default: `exactly`
    Raises `Refused`.
    """
    match expr:
        case s.Int(value):
            return within(value, expr.span)
        case s.Name():
            return within(lookup(expr), expr.span)
        case s.Unary(operand):
            return within(-evaluate(operand, lookup, divide), expr.span)
        case s.Binary(op, left, right):
            a, b = (evaluate(side, lookup, divide) for side in (left, right))
            if op in "/%":
                return (divide or exactly)(expr, a, b)
            return within(a + b if op == "+" else a - b if op == "-" else a * b, expr.span)
    raise AssertionError(expr)


def exactly(node: s.Binary, a: Dim, b: Dim) -> Dim:
    """`a % b`, which floors, or `a / b`, where a remainder is an error: found here, or for run-time sizes in a step."""
    if isinstance(a, int) and isinstance(b, int):
        if b < 1:
            raise refused("size-division", f"{a} is divided by {b or 'zero'}", node.span)
        if node.op == "/" and a % b:
            raise refused("size-division", f"{a} is not divisible by {b}", node.span)
        return a // b if node.op == "/" else a % b
    if dims.maximum(b) < 1:
        raise refused("size-division", f"{a} is divided by {b}", node.span)
    return dims.floor_div(a, b)


def within(value: Dim, span: Span | None) -> Dim:
    """The value, whose known parts fit 64 bits.  Raises Refused."""
    parts = [c for _, c in value.terms] if isinstance(value, Expr) else [value]
    if all(LOW <= part <= HIGH for part in parts):
        return value
    raise refused("size-range", f"'{span.text if span else value}' does not fit 64 bits", span)


def eval_dim(expr: s.Expr, env: Mapping[str, int]) -> int:
    """The value of an expression over sizes that are all in `env`.  Raises Refused."""
    value = evaluate(expr, lambda name: env[name.name])
    assert isinstance(value, int)
    return value


def size_values(
    graph: s.Graph, overrides: Mapping[str, int], model_sizevars: Mapping[str, int]
) -> tuple[dict[str, int], list[Diagnostic]]:
    """The value of every size that has one: override, else `sizes` section, else model; and what is wrong.

    A size of a section that needs a name without a value is left out.
    """
    pending = first_of((size.name, size) for size in graph.sizes)
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
        elif value > HIGH:
            message = f"size '{name}' does not fit 64 bits, but {origin} gives {value}"
            errors.append(Diagnostic("size-range", message, at))
        else:
            values[name] = value
    errors += _evaluate(pending, values)
    return dict(sorted(values.items())), errors


def _evaluate(sizes: Mapping[str, s.SizeDef], values: dict[str, int]) -> list[Diagnostic]:
    """Add to `values` those of sizes that are made of others; what is wrong with them."""
    errors: list[Diagnostic] = []
    needs = {name: [n.name for n in s.names_in(size.value) if n.name in sizes] for name, size in sizes.items()}
    for name in in_order(needs):
        size = sizes[name]
        if any(n.name not in values for n in s.names_in(size.value)):
            continue
        try:
            value = eval_dim(size.value, values)
        except Refused as refusal:
            assert refusal.diagnostic is not None
            errors.append(refusal.diagnostic)
            continue
        if value < 1:
            message = f"size '{size.name}' must be positive, but is {value}"
            errors.append(Diagnostic("size-value", message, size.value.span))
        else:
            values[name] = value
    return errors + [_cycle([sizes[name] for name in circle]) for circle in circles(needs)]


def _cycle(ring: list[s.SizeDef]) -> Diagnostic:
    first, *others = sorted(ring, key=lambda size: size.span.start)
    notes = tuple(Note(size.span, "part of the cycle") for size in others[:MOST_NOTES])
    return Diagnostic("size-cycle", f"the value of size '{first.name}' depends on itself", first.span, "", notes)
