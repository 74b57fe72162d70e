"""Which ops compute the same: of one kind, of the same fields, to results of the same types."""

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any

from oic.ir.core import Op, Value
from oic.ir.types import INDEX

NOTHING: Mapping[Value, Hashable] = MappingProxyType({})


def likeness(op: Op, known: Mapping[Value, Hashable] = NOTHING) -> Hashable:
    """Equal for ops without regions that compute the same.

    known   what stands for a value: those of which it is equal are the same
    """
    parts = op.__dict__
    fields = tuple([known.get(p, p) if type(p := parts[name]) is Value else frozen(p, known) for name in op.fields])
    return type(op), fields, tuple([None if r.type is INDEX else str(r.type) for r in op.results])


def frozen(part: Any, known: Mapping[Value, Hashable] = NOTHING) -> Hashable:
    """A field of an op, or a part of one, as what can be compared."""
    kind = type(part)
    if kind is Value:
        return known.get(part, part)
    if kind is list or kind is tuple:
        return tuple([frozen(p, known) for p in part])
    if kind is dict:
        return tuple((k, frozen(v, known)) for k, v in part.items())
    return kind, repr(part) if isinstance(part, float) else part
