"""What a caller may insert and fetch: the variables of a graph and its entries."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from oic import arguments
from oic.diagnostics import Span, did_you_mean, fail
from oic.dtypes import Array, DType
from oic.ir import dims
from oic.ir.dims import Dim
from oic.ir.module import Module, Truncation
from oic.ir.types import StateType, TensorType


@dataclass(frozen=True)
class SessionVariable:
    """One variable as it is declared.

    kind    'dynamic', 'constant', 'volatile' or 'persistent'
    shape   declared sizes; None for `?`; of a table or matrix, those of an entry
    start   gives the value of a constant, or what a volatile variable starts every step with; None where it cannot be
            fetched, or has none
    A member of a family is a variable of its own, named `W[1]`.
    """

    name: str
    kind: str
    dtype: DType
    shape: tuple[Dim | None, ...] = ()
    span: Span | None = None
    start: Callable[[], Array] | None = None


@dataclass(frozen=True)
class Entry:
    """One function of a graph.

    inputs    the dynamic variables it reads, with their types here (pinned extents replaced)
    outputs   the volatile variables it writes and gives
    """

    symbol: str
    inputs: dict[str, TensorType]
    outputs: tuple[str, ...]

    @property
    def maxima(self) -> dict[str, int]:
        """The largest value of every extent that an input binds."""
        sizes = [d for type_ in self.inputs.values() for d in type_.shape]
        return {e.name: e.maximum for e in sorted(dims.extents(sizes))}


@dataclass(frozen=True)
class Interface:
    """Everything a session must know of a graph.

    variables   by name, in declaration order
    entries     by the name of their block
    truncation  what counts positions, and whether they can be taken back
    tables      those that have entries of positions: which of the indices the position is, and the type
    blocks      name and text of every block, to say in which block a statement is
    statements  their texts, in source order; of a loop, what is before its braces
    """

    name: str
    variables: dict[str, SessionVariable]
    entries: dict[str, Entry]
    truncation: Truncation
    tables: dict[str, tuple[int, StateType]]
    blocks: tuple[tuple[str, Span], ...] = ()
    statements: tuple[Span, ...] = ()

    def entry(self, name: str) -> Entry:
        """The entry of this name.  Raises OicError `unknown-entry`."""
        arguments.text("entry", name)
        if name not in self.entries:
            raise fail("unknown-entry", f"there is no entry '{name}'", hint=did_you_mean(name, self.entries))
        return self.entries[name]

    def block_of(self, span: Span) -> str | None:
        """The block of a statement."""
        around = (n for n, at in self.blocks if at.source is span.source and at.start <= span.start < at.end)
        return next(around, None)

    def statement_of(self, span: Span) -> Span:
        """The statement that a text is a part of; the text itself where there is none."""
        at = bisect_right(self.statements, span.start, key=lambda s: s.start) - 1
        found = self.statements[at] if at >= 0 else span
        return found if found.source is span.source and span.end <= found.end else span


def interface(
    module: Module, variables: Iterable[SessionVariable], blocks: Iterable[tuple[str, Span]] = (),
    statements: Iterable[Span] = (),
) -> Interface:  # fmt: skip
    """The interface of a lowered module, whose functions say what each entry takes and gives."""
    entries = {}
    for f in module.functions():
        inputs = {name: arg.tensor for name, arg in zip(f.inputs, f.body.args, strict=True)}
        entries[f.symbol] = Entry(f.symbol, inputs, tuple(f.outputs))
    named = {v.name: v for v in variables}
    ordered = tuple(sorted(statements, key=lambda s: s.start))
    types, axes = {op.symbol: op.type for op in module.states()}, module.truncation.tables
    tables = {symbol: (axis, types[symbol]) for symbol, axis in axes.items() if axis < len(types[symbol].table)}
    return Interface(module.name, named, entries, module.truncation, tables, tuple(blocks), ordered)
