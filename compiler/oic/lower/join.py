"""Values that meet: after a branch each variable holds what the side that ran gave it.

Sizes that differ travel beside the values as index integers, from which a fresh extent is bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oic.diagnostics import Span
from oic.ir import dims
from oic.ir.control import If, Yield
from oic.ir.core import Block, Value
from oic.ir.dims import Dim, Extent
from oic.ir.index import ExtentBind
from oic.ir.types import INDEX, TensorType, Type, same_rank
from oic.lower.builder import Builder, Env, EnvKey, Held, Mixed, Poison

JoinedAxis = tuple[int, int]  # which of the values that meet, which of its axes
JoinedSize = tuple[JoinedAxis, Extent]


@dataclass
class Side:
    """One of the two ways: its region, and what every variable holds at its end."""

    region: Block
    env: Env


def join(f: Builder, condition: Value, span: Span | None, before: Env, sides: list[Side]) -> None:
    """Emit the `if` and let every variable hold its result.

    before   what variables hold at the branch
    """
    first, second = (side.env for side in sides)
    f.env = dict(before)
    joined: list[EnvKey] = []
    pairs: list[tuple[Value, Value]] = []
    for key in dict.fromkeys([*first, *second]):
        if key in first and key in second and first[key] is second[key]:
            f.env[key] = first[key]
            continue
        a, b = (env[key] if key in env else f.begun(key) for env in (first, second))
        if a is None or b is None:
            continue  # a temporary of one side alone
        if isinstance(a, Value) and isinstance(b, Value) and same_rank(a.type, b.type):
            joined.append(key)
            pairs.append((a, b))
        else:
            f.env[key] = met(f, a, b)
    outs, sizes = joined_types(f, [(a.type, b.type) for a, b in pairs])
    for way, side in enumerate(sides):
        with f.nested(side.region):
            lengths = [f.emit_size(pairs[i][way].shape[axis]) for (i, axis), _ in sizes]
        side.region.append(Yield([*lengths, *(pair[way] for pair in pairs)]))
    types: list[Type] = [*([INDEX] * len(sizes)), *outs]
    op = f.emit(If(condition, types, sides[0].region, sides[1].region, span=span))
    bind_sizes(f, zip(op.results, (extent for _, extent in sizes)), span)
    for key, value in zip(joined, op.results[len(sizes) :], strict=True):
        value.hint = key.name
        f.env[key] = value
    f.forget_written(*(side.region for side in sides))


def met(f: Builder, a: Held, b: Held) -> Held:
    """What a variable holds where two things that have no common type meet."""
    poison = next((held for held in (a, b) if isinstance(held, Poison)), None)
    return poison or Mixed(f"{shown(f, a)} or {shown(f, b)}")


def shown(f: Builder, held: Held) -> str:
    """A type, or the types that met, in words."""
    if isinstance(held, Mixed):
        return held.types
    return f.shown(held.type) if isinstance(held, Value) else "refused"


def joined_types(
    f: Builder, pairs: Iterable[tuple[Type, Type]], least: Mapping[JoinedAxis, int] | None = None
) -> tuple[list[Type], list[JoinedSize]]:
    """Common types of pairs of one rank; sizes that differ become fresh extents.

    least   what the maximum of an axis must be at least
    """
    outs: list[Type] = []
    sizes: list[JoinedSize] = []
    for i, (a, b) in enumerate(pairs):
        if a == b or not (isinstance(a, TensorType) and isinstance(b, TensorType)):
            outs.append(a)
            continue
        shape: list[Dim] = []
        for axis, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)):
            if m == n:
                shape.append(m)
                continue
            most = max(dims.maximum(m), dims.maximum(n), (least or {}).get((i, axis), 0))
            extent = Extent(f.fresh("n"), most)
            sizes.append(((i, axis), extent))
            shape.append(dims.of(extent))
        outs.append(a.with_shape(tuple(shape)))
    return outs, sizes


def bind_sizes(f: Builder, sizes: Iterable[tuple[Value, Extent]], span: Span | None) -> None:
    """Give extents the values of index integers."""
    status = "OIC_ERR_SHAPE"
    for value, extent in sizes:
        # In range by construction: the maximum is that of everything that can flow here.
        f.emit(ExtentBind(value, extent, status, status, "size", checked=True, span=span))
