"""Compute each value once.

    %a = matmul(%x, %w)           %a = matmul(%x, %w)
    %b = matmul(%x, %w)     =>
    %c = add(%a, %b)              %c = add(%a, %a)

Two ops are one if they are of a kind, have no effect, take the same operands and attributes, and
the first dominates the second; a check that was made before is not made again.  What reads a state
is the same only while no op writes it: every write gives the state a new version, and so does the
start and the end of every region of an op that writes it.  A count is not set to the integer that it is.

    %n = state.get(%pos)                   %n = state.get(%pos)
    state.add(%pos, %k)                    %s = index.add(%n, %k)
    %m = state.get(%pos)            =>     %m = index.wrap(%s) {dtype=i32}
                                           state.add(%pos, %k)

An integer that a state was just set to, or stepped to, is known instead of read back.  Counters of 64 bits are left
alone: their sum may wrap, which index arithmetic refuses; counts cannot get there.

    extent.bind(%n) {extent=@n1}                           extent.bind(%n) {extent=@n1}
    extent.bind(%n) {extent=@n2}                     =>
    %b = assert.shape(%a) {shape=[n2]} : f32[n2]           ; %a : f32[n1] takes its place

Two extents of one integer are one, and shapes that were compared because of them are equal.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oic import dtypes
from oic.ir import dims
from oic.ir.control import Func
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Expr, Extent
from oic.ir.index import AssertShape, CheckRange, ExtentBind, IndexAdd, IndexWrap
from oic.ir.journal import MISSING, Journal
from oic.ir.likeness import frozen, likeness
from oic.ir.module import Module
from oic.ir.state import State, StateAdd, StateGet, StateSet
from oic.ir.types import TensorType

SIZED = (TensorType, Expr, list, tuple)  # what sizes may be in, of an op's attributes


def cse(module: Module) -> None:
    """Merge equal ops in every block, outermost first."""
    found = _Found()
    _block(module.top, found)
    if found.same:
        _use_first(module, found)


@dataclass
class _Found:
    """What is known at a place.  What is `given` and `bound` is forgotten at the end of a block."""

    given: dict[Hashable, list[Value]] = field(default_factory=dict)  # by an op like this one
    bound: dict[Value, Extent] = field(default_factory=dict)  # the extent of an integer
    version: Counter[Value] = field(default_factory=Counter)  # of a state: writes so far
    same: dict[Extent, Extent] = field(default_factory=dict)  # what takes an extent's place, wherever it is
    values: dict[Value, Value] = field(default_factory=dict)  # and a value's: an op hears of it once, at its turn
    journal: Journal = field(default_factory=Journal)  # of `given` and `bound`


def _block(block: Block, found: _Found) -> None:
    kept, mark = list[Op](), len(found.journal.log)
    # The last position at which the block reads a state as an integer, nested reads included.
    later = {o.state: at for at, op in enumerate(block.ops) for o in op.walk() if isinstance(o, StateGet)}
    for position, op in enumerate(block.ops):
        op.replace_operands(found.values)
        if op.regions:
            written = op.touched("write")
            found.version.update(written)
            for region in op.regions:
                _block(region, found)
                found.version.update(written)  # what one branch holds says nothing of the other
            kept.append(op)
            continue
        key = _key(op, found.version)
        if key is not None:
            if (before := found.given.setdefault(key, op.results)) is not op.results:
                found.values.update(zip(op.results, before, strict=True))
                continue
            found.journal.log.append((found.given, key, MISSING))
        elif isinstance(op, ExtentBind):
            if (first := found.bound.get(op.value)) is None:
                found.journal.put(found.bound, op.value, op.extent)
            elif first.maximum <= op.extent.maximum:
                found.same[op.extent] = first
                continue
        elif isinstance(op, AssertShape) and _resized([*op.x.shape], found) == _resized(op.shape, found):
            found.values[op.result] = op.x
            continue
        elif isinstance(op, (StateSet, StateAdd)) and not op.indices:
            if isinstance(op, StateSet) and found.given.get(_reading(op, found)) == [op.value]:
                continue  # it holds that already
            given = _given(op, found, kept) if later.get(op.state, -1) > position or isinstance(op, StateSet) else None
            found.version[op.state] += 1
            if given is not None:
                found.journal.put(found.given, _reading(op, found), [given])
            kept.append(op)
            continue
        found.version.update(op.touched("write") if op.writes else ())
        kept.append(op)
    block.set_ops(kept)
    found.journal.undo(mark)


def _reading(op: StateSet | StateAdd, found: _Found) -> Hashable:
    """The key of what reads the integer that an op sets or steps, as it is now."""
    return _key(StateGet(op.state), found.version)


def _given(op: StateSet | StateAdd, found: _Found, kept: list[Op]) -> Value | None:
    """What a persistent integer is from an op on, by ops that are kept before it; None: it may be another number."""
    state = op.state.op
    assert isinstance(state, State)
    if isinstance(op, StateSet):
        return op.value if state.limit is not None else None  # a count, which never leaves its range
    dtype, single = state.type.dtype, state.type.plain and state.type.shape == ()
    if not single or dtype not in dtypes.INT or not 8 <= dtype.bits <= 32:
        return None
    old = _made(StateGet(op.state, span=op.span), found, kept)
    total = _made(IndexAdd(old, op.amount, span=op.span, hint=old.hint), found, kept)
    return _made(IndexWrap(total, dtype, span=op.span, hint=old.hint), found, kept)


def _made(op: Op, found: _Found, kept: list[Op]) -> Value:
    """The result of one more op, or of one before that is the same."""
    key = _key(op, found.version)
    if key not in found.given:
        found.journal.put(found.given, key, op.results)
        kept.append(op)
    return found.given[key][0]


def _use_first(module: Module, found: _Found) -> None:
    """Sizes name the extents that take the place of others."""
    for block in module.top.walk():
        for arg in block.args:
            arg.type = _resized(arg.type, found)
        for op in block.ops:
            for result in op.results:
                result.type = _resized(result.type, found)
            op.__dict__.update([(k, _resized(v, found)) for k, v in op.attributes().items() if type(v) in SIZED])


def _resized(part: Any, found: _Found) -> Any:
    """A type, a size, or several, of the extents that take the place of their own."""
    kind = type(part)
    if kind is TensorType:
        return part if part.static else part.with_shape(_resized(part.shape, found))
    if kind is Expr and not found.same.keys().isdisjoint(dims.extents([part])):
        return dims.substitute(part, lambda extent: dims.of(found.same.get(extent, extent)))
    if kind is list or kind is tuple:
        return kind(_resized(item, found) for item in part)
    return part


def _key(op: Op, version: Mapping[Value, int]) -> Hashable | None:
    """What makes an op the same as another; None if it must stay."""
    if isinstance(op, CheckRange):
        return type(op), frozen([op.value, op.low, op.high])
    if not op.pure or op.terminator or not op.results or isinstance(op, Func):
        return None
    reads = tuple([(id(s), version[s]) for s in op.touched("read")]) if op.reads or op.regions else ()
    return likeness(op), reads
