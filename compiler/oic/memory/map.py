"""The memory map of a PLANNED module: where each value lies, whose memory it shares, and why.

The unit of `oic explain`, of `<name>.memory.json` and of the picture in the report.  Nothing is decided
here: kinds follow from the ops and from places that are equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oic.ir.control import For, Func, If, Parallel, Yield, merges
from oic.ir.core import Block, Op, Value
from oic.ir.grouping import by_key
from oic.ir.liveness import Liveness, tensors
from oic.ir.module import Buffer, Module
from oic.ir.state import StateStore
from oic.ir.text_print import ValueNames, dim_text, type_text
from oic.ir.types import StateIndex, StateType, TensorType
from oic.memory.views import root
from oic.operators.fused import Copy
from oic.operators.part import Insert

KINDS = {
    "value": "a value in memory of its own",
    "in place": "computed over an operand that dies there",
    "carried": "carried from iteration to iteration of a loop",
    "branch": "given by either branch, or by a consumer",
    "copy": "copied",
    "entry": "computed where it is stored: in an entry of the state, or in its part of another value",
    "output": "in the caller's memory",
    "input": "in the caller's memory, read only",
    "view": "a part of other memory",
    "number": "a number in an expression, not in memory",
    "scratch": "working memory of a kernel",
}  # of values and buffers; buffers are no views and no numbers


@dataclass(frozen=True)
class Placed:
    """Where one value lies.

    name        as `oic ir --stage planned` prints it, without the `%`
    kind        one of KINDS
    offset      bytes from the start of the space; None: found as the step runs, or no memory
    strides     elements between neighbours along each dimension; None: row-major without gaps
    nbytes      at the maximum of every extent
    start, end  positions in program order between which the value itself is needed
    alias_of    the value, variable or constant whose memory it sees or takes over; "" if none
    """

    function: str
    name: str
    type: str
    kind: str
    space: str
    buffer: str
    offset: int | None
    strides: tuple[str, ...] | None
    nbytes: int
    start: int
    end: int
    line: int
    alias_of: str
    reason: str


@dataclass(frozen=True)
class Stored:
    """What is stored to the state, or replaces a part of a volatile variable or temporary.

    kind    'copy', 'entry' (computed there: nothing is left to do) or 'number' (written as such)
    value   as in Placed; state is the variable
    """

    function: str
    state: str
    value: str
    type: str
    kind: str
    nbytes: int
    line: int
    reason: str


@dataclass(frozen=True)
class PositionRange:
    """A loop, branch or group of consumers, from its first position to its last."""

    kind: str
    name: str
    start: int
    end: int
    line: int


@dataclass(frozen=True)
class Order:
    """The program order of one function.

    positions   how many there are
    lines       (position, source line) of every op that has one, in order
    spans       what is nested, outermost first
    """

    function: str
    positions: int
    lines: tuple[tuple[int, int], ...]
    spans: tuple[PositionRange, ...]


@dataclass(frozen=True)
class MemoryMap:
    """Where everything of a module lies.

    values    every tensor value, in the order of the program
    stores    every store to the state or to a part of a value, in the order of the program
    orders    the program order of every function
    inside    the values of each buffer, by function, space and name
    """

    values: tuple[Placed, ...]
    stores: tuple[Stored, ...]
    orders: tuple[Order, ...]
    inside: Mapping[tuple[str, str, str], Sequence[Placed]]

    def of(self, buffer: Buffer) -> Sequence[Placed]:
        """The values that lie in a buffer."""
        return self.inside.get((buffer.function, buffer.space, buffer.name), ())

    def kind(self, buffer: Buffer) -> str:
        """The kind of a buffer, by what lies in it."""
        kinds = {v.kind for v in self.of(buffer)}
        if buffer.space != "arena":
            return buffer.space
        if not kinds - {"view"}:
            return "scratch"
        return next((k for k in ("carried", "branch", "copy") if k in kinds), "value")


def memory_map(module: Module) -> MemoryMap:
    """The memory map of a planned module."""
    values: list[Placed] = []
    stores: list[Stored] = []
    orders: list[Order] = []
    outside = ValueNames(module.top.ops)
    for func in module.functions():
        names = outside.inner()
        names.define(func)
        live = module.memory.liveness(func)
        values += [_placed(func.symbol, v, live, names) for v in tensors(func.body) if v.place is not None]
        ops = list(func.body.all_ops())
        stores += [_stored(func.symbol, op, names) for op in ops if isinstance(op, (StateStore, Insert))]
        orders.append(_order(func, live, ops))
    inside = by_key(((v.function, v.space, v.buffer), v) for v in values)
    return MemoryMap(tuple(values), tuple(stores), tuple(orders), inside)


def _stored(function: str, op: StateStore | Insert, names: ValueNames) -> Stored:
    place = op.value.place
    number = place is not None and place.space == "local"
    symbol = op.state.symbol if isinstance(op, StateStore) else op.x.hint
    return Stored(
        function, symbol, names(op.value)[1:], type_text(op.value.type),
        "entry" if op.entry else "number" if number else "copy", op.value.tensor.nbytes,
        op.line, "computed there" if op.entry else op.reason,
    )  # fmt: skip


def _order(func: Func, live: Liveness, ops: list[Op]) -> Order:
    """The program order of a function, which has these ops."""
    lines = {live.start[op]: op.span.line for op in reversed(ops) if op.span}
    spans = [_span(op, live) for op in ops if isinstance(op, (For, If, Parallel))]
    spans.sort(key=lambda s: (s.start, -s.end))
    return Order(func.symbol, live.closed[func.body] + 1, tuple(sorted(lines.items())), tuple(spans))


def _kind(value: Value, live: Liveness) -> tuple[str, Value | None]:
    """One of KINDS, from the op that makes a value and from whose memory it has; and the value whose memory that is."""
    op, place = value.op, value.placed
    if op is None:
        assert isinstance(value.owner, Block)
        if not isinstance(loop := value.owner.owner, For):
            return "input", None
        first = loop.init[loop.body.args.index(value) - 1]
        return "carried", first if _shared(first, value) else None
    if place.space == "local":
        return "number", None
    if op.view:
        return "view", root(op.operands[0])
    if isinstance(op, Copy):
        return "copy", None
    taken_over = _taken_over(value)
    if place.space == "entry":
        return "entry", taken_over
    if isinstance(op, For):
        return "carried", op.body.args[1 + op.results.index(value)]
    if taken_over is not None:
        return "in place", taken_over
    if isinstance(op, Insert):
        return "copy", None
    handed = _handed_to(value, live)
    if isinstance(op, (If, Parallel)):
        return "branch", handed
    if place.space == "output":
        return "output", handed
    if handed is None:
        return "value", None
    return "carried" if isinstance(handed.owner, Block) else "branch", handed


def growing(type_: StateType) -> tuple[StateIndex, ...]:
    """The indices of a variable that grow: those without `@fixed`, else the last of a table."""
    free = tuple(i for i in (*type_.table, *type_.auto) if not i.fixed)
    return free or type_.table[-1:] or type_.auto


def _placed(function: str, value: Value, live: Liveness, names: ValueNames) -> Placed:
    op, place = value.op, value.placed
    kind, other = _kind(value, live)
    reason = op.reason if isinstance(op, Copy) else place.reason
    return Placed(
        function, names(value)[1:], type_text(value.type), kind, place.space, place.buffer, place.offset,
        None if place.strides is None else tuple(dim_text(s) for s in place.strides), value.tensor.nbytes,
        live.defined(value), live.last_use(value), op.line if op is not None else 0,
        names(other)[1:] if other is not None else "", reason,
    )  # fmt: skip


def _taken_over(value: Value) -> Value | None:
    """The operand whose memory an op writes its result over."""
    op = value.op
    if op is None or op.view or isinstance(op, (For, If, Parallel, Copy)):
        return None
    return next((v for v in op.operands if isinstance(v.type, TensorType) and _shared(v, value)), None)


def _handed_to(value: Value, live: Liveness) -> Value | None:
    """The loop argument, or the result of a branch, that a value is computed in the memory of."""
    seen = list(live.views(value))
    for user in (user for view in seen for user in live.users(view)):
        owner = user.home.owner if isinstance(user, Yield) else user
        for (*_, target), given in merges(owner) if owner is not None else ():
            if _shared(target, value) and any(one.op is user and one.value in seen for one in given):
                return target
    return None


def _shared(a: Value, b: Value) -> bool:
    """Two values lie in one buffer of the arena, of the state or of the caller."""
    x, y = a.place, b.place
    return x is not None and y is not None and x.space in ("arena", "entry", "output") and x.memory == y.memory


def _span(op: For | If | Parallel, live: Liveness) -> PositionRange:
    kind, name = "branch", ""
    if isinstance(op, For):
        kind, name = "loop", op.tag
    elif isinstance(op, Parallel):
        kind, name = "consumers", ", ".join(op.names)
    line = next((o.line for o in op.walk() if o.span), 0)
    return PositionRange(kind, name, live.start[op], live.end[op], line)
