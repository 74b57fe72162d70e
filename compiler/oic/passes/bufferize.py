"""Give every tensor memory: in whose place, in which buffer, or as a view of what.

    %h = for(..., [%x0]) { ^(%l, %h0):        x0, h0, y and h share one buffer:
      %t = matmul(%h0, %w)                    y = add(t, h0) is computed over h0, which dies there
      %y = add(%t, %h0)                 =>
      yield([%y])                             outputs are computed in the caller's memory;
    }                                         what cannot be is copied there, with the reason

Two values share a buffer only if the first is no longer needed when the second is written, or is
needed for the last time by the very op that writes it, in place.  Offsets come later
(`plan_memory`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from oic.ir.core import Block, Op, Place, Value
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.memory.layout import weights_layout
from oic.memory.liveness import Liveness, liveness
from oic.memory.views import is_dense, root, strides_of, whole_root
from oic.ops.base import Operator
from oic.ops.control import For, Func, If, Parallel, Yield
from oic.ops.fused import Copy, Fused
from oic.ops.state import Constant, IndexTensor, Splat

LATE = "needed after its destination changes"
ROUNDS = 100  # a copy in a region may make another necessary outside it


@dataclass(eq=False)
class Storage:
    """A buffer in the making: the values that share it."""

    name: str
    space: str
    values: list[Value] = field(default_factory=list)
    reason: str = ""


@dataclass
class Assignment:
    """What bufferize decides of one function: the storage of each value that has its own."""

    live: Liveness
    storage: dict[Value, Storage] = field(default_factory=dict)
    reasons: dict[Value, str] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    missed: list[Edge] = field(default_factory=list)

    def new(self, hint: str, space: str, reason: str) -> Storage:
        """A storage of a name not used before in this function."""
        count = self.names.get(hint or "t", 0)
        self.names[hint or "t"] = count + 1
        return Storage(f"{hint or 't'}.{count}" if count else hint or "t", space, reason=reason)

    def put(self, value: Value, storage: Storage, reason: str) -> None:
        """Decide that a value lies there."""
        self.storage[value] = storage
        storage.values.append(value)
        self.reasons[value] = reason

    def of(self, value: Value, why: str, reason: str) -> Storage:
        """The storage of a value; if it has none, a new one in the arena."""
        if value not in self.storage:
            self.put(value, self.new(value.hint, "arena", why), reason)
        return self.storage[value]

    def join(self, edge: Edge, storage: Storage, reason: str) -> None:
        """Let the value of an edge be computed in this storage, or note that it cannot be."""
        if not isinstance(edge.value.type, TensorType):
            return
        base = whole_root(edge.value)
        why = _why_not(edge, base, storage, self)
        if why:
            self.missed.append(replace(edge, reason=why))
        elif base not in self.storage:
            self.put(base, storage, reason)


def bufferize(module: Module) -> None:
    """Set the place of every tensor value, all but the offsets in the arena."""
    weights = weights_layout(module)
    for op in module.constants():
        op.result.place = Place("weights", op.symbol, weights[op.symbol][0])
    for func in module.functions():
        decided = _destinations(func)
        _assign(func.body, decided)
        _set_places(func, decided)


# ---------------------------------------------------------------- destinations


@dataclass(frozen=True)
class Edge:
    """A value that an op hands on: to an output, to a loop, to its next turn, out of a branch."""

    op: Op
    field: str
    position: int
    reason: str = ""  # why the value cannot be computed where it goes

    @property
    def values(self) -> list[Value]:
        found: list[Value] = getattr(self.op, self.field)
        return found

    @property
    def value(self) -> Value:
        return self.values[self.position]


def _destinations(func: Func) -> Assignment:
    """Storage of outputs, of carried values and of what branches give, decided from the end backwards.

    Where a value cannot be computed in its destination a copy is put before the op that hands it
    on, and everything is decided again: copies change how long values are needed.
    """
    for _ in range(ROUNDS):
        decided = Assignment(liveness(func.body))
        ends = func.body.terminator
        for i, name in enumerate(func.outputs):
            storage = Storage(name, "output")
            decided.join(Edge(ends, "values", i), storage, f"computed in the caller's memory of '{name}'")
        _backward(func.body, decided)
        if not decided.missed:
            return decided
        # Those that no other copy can spare first: a copy may end what another one would wait for.
        sure = [edge for edge in decided.missed if edge.reason != LATE]
        for edge in sure or decided.missed:
            _copy_before(edge)
    raise AssertionError(f"the destinations of '{func.symbol}' do not settle")


def _copy_before(edge: Edge) -> None:
    """Copy an edge's value just before the op that hands it on."""
    block, value = edge.op.block, edge.value
    assert block is not None
    span = edge.op.span or (value.op.span if value.op is not None else None)
    copy = Copy(value, edge.reason, span=span, hint=value.hint)
    edge.values[edge.position] = copy.result
    at = block.ops.index(edge.op)
    block.set_ops([*block.ops[:at], copy, *block.ops[at:]])


def _backward(block: Block, decided: Assignment) -> None:
    for op in reversed(block.ops):
        if isinstance(op, For):
            _loop(op, decided)
        elif isinstance(op, If):
            _if(op, decided)
        elif isinstance(op, Parallel):
            _parallel(op, decided)


def _loop(loop: For, decided: Assignment) -> None:
    for i, (arg, result) in enumerate(zip(loop.body.args[1:], loop.results, strict=True)):
        if not isinstance(result.type, TensorType):
            continue
        storage = decided.of(result, "carried by a loop", "the last turn's value")
        decided.put(arg, storage, "carried in place")
        decided.join(Edge(loop.body.terminator, "values", i), storage, "computed where the loop carries it")
        decided.join(Edge(loop, "init", i), storage, "computed where the loop carries it")
    _backward(loop.body, decided)


def _if(op: If, decided: Assignment) -> None:
    for i, result in enumerate(op.results):
        if not isinstance(result.type, TensorType):
            continue
        storage = decided.of(result, "given by either branch", "given by either branch")
        for region in op.regions:
            decided.join(Edge(region.terminator, "values", i), storage, "computed as the branch's result")
    for region in op.regions:
        _backward(region, decided)


def _parallel(op: Parallel, decided: Assignment) -> None:
    for region in op.consumers:
        for i, result in enumerate(op.results_of(region)):
            if isinstance(result.type, TensorType):
                storage = decided.of(result, "given by a consumer", "given by a consumer")
                decided.join(
                    Edge(region.terminator, "values", i), storage, "computed as the consumer's result"
                )
    for region in op.consumers:
        _backward(region, decided)


def _why_not(edge: Edge, base: Value, storage: Storage, decided: Assignment) -> str:
    """Why a value cannot be computed where it goes; "" if it can."""
    held, block = decided.storage.get(base), edge.op.block
    if held is storage and base.op is None:
        stays = isinstance(edge.op, Yield) and base.owner is block
        ends = edge.op.regions and decided.live.needed(base) <= decided.live.start[edge.op]
        return "" if stays or ends else LATE
    if base.op is None:
        outer = isinstance(base.owner, Block) and isinstance(base.owner.owner, Func)
        return "an input" if outer else "carried elsewhere"
    if isinstance(base.op, Constant):
        return "a constant"
    if base.op.view:
        return "a part of other memory"
    if base.op.block is not block:
        return "from outside the region"
    if held is not None:
        return "one value in two places"
    if _clash(base, storage, decided.live):
        return LATE
    return ""


def _clash(value: Value, storage: Storage, live: Liveness) -> bool:
    """Another value of the storage is needed while this one is, other than to be written over."""
    return any(_together(value, other, live) for other in storage.values if other is not value)


def _together(value: Value, other: Value, live: Liveness) -> bool:
    """Both are needed at one time.  `value` is new: if it is a loop's result, so is the loop's memory."""
    nested = isinstance(value.op, (For, If, Parallel))
    assert not nested or value.op is not None
    here = live.start[value.op] if nested and value.op is not None else live.defined(value)
    until = live.needed(value)
    first, last = live.defined(other), live.needed(other)
    if last < here or first > until:
        return False
    if last == here and value.op is not None:
        return not (isinstance(value.op, If) or _takes_over(value.op, other, value))
    if first == until and other.op is not None:
        return not _takes_over(other.op, value, other)
    return True


def _takes_over(op: Op, base: Value, result: Value) -> bool:
    """The op writes its result over this value, if it uses its memory at all."""
    return all(_over(op, v, result) for v in op.operands if root(v) is base)


# ---------------------------------------------------------------- everything else


def _assign(block: Block, decided: Assignment) -> None:
    """Storage for what has none yet, in order: in place if that can be, else a buffer of its own."""
    for op in block.ops:
        for value in op.results:
            if not isinstance(value.type, TensorType) or op.view or value in decided.storage:
                continue
            if isinstance(op, Constant) or not _in_memory(value, decided.live):
                continue
            over = _in_place(op, value, decided)
            if over is not None:
                storage = decided.storage[root(over)]
                decided.put(value, storage, f"in place of '{over.hint}', which dies here")
            else:
                storage = decided.new(value.hint, "arena", "a value of its own")
                decided.put(value, storage, "a value of its own")
        if not isinstance(op, Fused):
            for region in op.regions:
                _assign(region, decided)


def _in_memory(value: Value, live: Liveness) -> bool:
    """Some user wants the address of a value that is otherwise just a number in an expression."""
    if not isinstance(value.op, (Splat, IndexTensor)) and not (
        value.op is not None and value.op.name == "index.test"
    ):
        return True
    for user in live.users.get(value, ()):
        if user.elementwise or isinstance(user, (Copy, If, Fused)) or user.name == "state.store":
            continue
        return True
    return False


def _in_place(op: Op, result: Value, decided: Assignment) -> Value | None:
    """An operand that dies here and whose memory the result may take over."""
    for value in _takeable(op):
        storage = decided.storage.get(root(value))
        if storage is None or storage.space != "arena":
            continue
        if _over(op, value, result) and not _clash(result, storage, decided.live):
            return value
    return None


def _takeable(op: Op) -> list[Value]:
    if isinstance(op, (Fused, Copy)):
        return list(op.operands)
    if isinstance(op, Operator):
        found: list[object] = []
        for key in op.inplace:
            part = getattr(op, key, None)
            found += part if isinstance(part, list) else [part]
        return [v for v in found if isinstance(v, Value)]
    return []


def _over(op: Op, value: Value, result: Value) -> bool:
    """The op may write its result over this operand: same elements in the same places."""
    if value not in _takeable(op) or not isinstance(value.type, TensorType):
        return False
    same = value.shape == result.shape and value.dtype.bits == result.dtype.bits
    if not same or not is_dense(value.shape, strides_of(value)):
        return False
    base = root(value)
    if whole_root(value) is not base:
        return False
    others = [v for v in op.operands if v is not value and isinstance(v.type, TensorType)]
    return all(root(v) is not base for v in others) and op.operands.count(value) == 1


# ---------------------------------------------------------------- places


def _set_places(func: Func, decided: Assignment) -> None:
    body = func.body
    for name, arg in zip(func.inputs, body.args, strict=True):
        arg.place = Place("input", name, 0, None, "an input")
    for value, storage in decided.storage.items():
        value.place = Place(storage.space, storage.name, 0, None, decided.reasons[value])
    inside = {o for op in body.all_ops() if isinstance(op, Fused) for o in op.body.ops}
    for op in body.all_ops():
        for value in op.results if op not in inside else ():
            if not isinstance(value.type, TensorType) or value.place is not None:
                continue
            value.place = _view_place(value) if op.view else Place("local", "", None, None, "a number")


def _view_place(value: Value) -> Place:
    base = root(value)
    strides = strides_of(value)
    kept = None if is_dense(value.shape, strides) else strides
    if base.op is not None and base.op.view:
        raise AssertionError(base)
    op = value.op
    while op is not None and op.view and isinstance(op.operands[0].type, TensorType):
        op = op.operands[0].op
    if op is not None and op.name == "state.load":
        symbol = str(op.operands[0].op.attributes()["symbol"])  # type: ignore[union-attr]
        return Place("state", symbol, None, kept, "a view of the state")
    place = base.place
    assert place is not None
    return Place(place.space, place.buffer, None, kept, f"a view of '{base.hint or place.buffer}'")
