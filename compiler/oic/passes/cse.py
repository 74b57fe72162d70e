"""Compute each value once.

    %a = matmul(%x, %w)           %a = matmul(%x, %w)
    %b = matmul(%x, %w)     =>
    %c = add(%a, %b)              %c = add(%a, %a)

Two ops are one if they are of a kind, have no effect, take the same operands and attributes, and
the first dominates the second; a check that was made before is not made again.  What reads a state
is the same only while no op writes it: every write gives the state a new version, and so does the
start and the end of a region that writes it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from oic.ir.control import Func
from oic.ir.core import Block, Op, Value
from oic.ir.index import CheckRange
from oic.ir.module import Module
from oic.ir.types import INDEX

Known = dict[Hashable, list[Value]]  # what an op like this one has given


def cse(module: Module) -> None:
    """Merge equal ops in every block, outermost first."""
    _block(module.top, {}, {})


def _block(block: Block, known: Known, version: dict[Value, int]) -> None:
    kept: list[Op] = []
    new: list[Hashable] = []  # forgotten at the end of the block
    for op in block.ops:
        if op.regions:
            _bump(op, version)
            for region in op.regions:
                _block(region, known, version)
            _bump(op, version)
            kept.append(op)
            continue
        key = _key(op, version)
        if key is not None:
            if (before := known.get(key)) is not None:
                for result, value in zip(op.results, before, strict=True):
                    result.give_way(value)
                continue
            known[key] = op.results
            new.append(key)
        _bump(op, version)
        kept.append(op)
    block.set_ops(kept)
    for key in new:
        del known[key]


def _bump(op: Op, version: dict[Value, int]) -> None:
    for state in op.touched("write"):
        version[state] = version.get(state, 0) + 1


def _key(op: Op, version: dict[Value, int]) -> Hashable | None:
    """What makes an op the same as another; None if it must stay."""
    if isinstance(op, CheckRange):
        return type(op), _frozen([op.value, op.low, op.high])
    if not op.pure or op.terminator or not op.results or isinstance(op, Func):
        return None
    if op.name in ("constant", "state"):
        return None
    parts = op.__dict__
    fields = tuple([_frozen(parts[name]) for name in op.fields])
    reads = tuple([(id(s), version.get(s, 0)) for s in op.touched("read")]) if op.reads or op.regions else ()
    return type(op), fields, reads, tuple([None if r.type is INDEX else str(r.type) for r in op.results])


def _frozen(part: Any) -> Hashable:
    if isinstance(part, Value):
        return part
    if isinstance(part, (list, tuple)):
        return tuple(_frozen(p) for p in part)
    if isinstance(part, dict):
        return tuple((k, _frozen(v)) for k, v in part.items())
    return (type(part).__name__, repr(part) if isinstance(part, float) else part)
