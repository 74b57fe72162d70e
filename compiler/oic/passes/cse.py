"""Compute each value once.

    %a = matmul(%x, %w)           %a = matmul(%x, %w)
    %b = matmul(%x, %w)     =>
    %c = add(%a, %b)              %c = add(%a, %a)

Two ops are one if they are of a kind, have no effect, take the same operands and attributes, and
the first dominates the second; a check that was made before is not made again.  What reads a state
is the same only while no op writes it: every write gives the state a new version, and so does the
start and the end of every region of an op that writes it.  A state is not set to the integer that it holds.

    extent.bind(%n) {extent=@n1}                           extent.bind(%n) {extent=@n1}
    extent.bind(%n) {extent=@n2}                     =>
    %b = assert.shape(%a) {shape=[n2]} : f32[n2]           ; %a : f32[n1] takes its place

Two extents of one integer are one, and shapes that were compared because of them are equal.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oic.ir import dims
from oic.ir.control import Func
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Expr, Extent
from oic.ir.index import AssertShape, CheckRange, ExtentBind
from oic.ir.journal import MISSING, Journal
from oic.ir.likeness import frozen, likeness
from oic.ir.module import Module
from oic.ir.state import StateGet, StateSet
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
    held: dict[Value, tuple[int, Value]] = field(default_factory=dict)  # by a scalar integer state, in which version
    same: dict[Extent, Extent] = field(default_factory=dict)  # what takes an extent's place, wherever it is
    values: dict[Value, Value] = field(default_factory=dict)  # and a value's: an op hears of it once, at its turn
    journal: Journal = field(default_factory=Journal)  # of `given` and `bound`


def _block(block: Block, found: _Found) -> None:
    kept, mark = list[Op](), len(found.journal.log)
    for op in block.ops:
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
        elif isinstance(op, StateSet) and found.held.get(op.state) == (found.version[op.state], op.value):
            continue  # it holds that already
        if op.writes:
            found.version.update(op.touched("write"))
        if isinstance(op, (StateGet, StateSet)) and not op.indices:
            held = op.result if isinstance(op, StateGet) else op.value
            found.held[op.state] = found.version[op.state], held
        kept.append(op)
    block.set_ops(kept)
    found.journal.undo(mark)


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
