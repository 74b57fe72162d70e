"""Structure: functions, loops, branches and what ends a block."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from oic.dtypes import bool_
from oic.ir import dims
from oic.ir.core import Block, Op, Value, ensure, is_index
from oic.ir.dims import Expr, Extent
from oic.ir.index import bound_in
from oic.ir.types import TensorType, Type, same_rank


class Func(Op, name="func", pure=False):
    """One entry of a graph: a step that can be called.

    symbol   name of the block it was lowered from; `entry` is the step itself
    inputs   names of the dynamic variables that are the body's arguments
    outputs  names of the volatile variables that the body's `return` gives, in order
    pinned   extents fixed by `@entry(N=1)`, by name
    """

    symbol: str
    inputs: list[str]
    outputs: list[str]
    pinned: dict[str, int]
    body: Block

    def verify(self) -> None:
        for key, names, values in (("inputs", self.inputs, self.body.args), ("outputs", self.outputs, self.returned)):
            ensure(len(names) == len(values), f"{len(names)} {key} are named, there are {len(values)}")
            for value in values:
                ensure(isinstance(value.type, TensorType), f"{value!r} is not a tensor")

    @property
    def returned(self) -> list[Value]:
        """The values of the outputs."""
        return self.body.terminator.operands


class For(Op, name="for"):
    """A loop over start..end (half-open, empty if end <= start) with carried values.

    body   block of (index, carried values...), ended by a `yield` of as many values
    """

    start: Value
    end: Value
    init: list[Value]
    tag: str
    body: Block

    def infer(self) -> list[Type]:
        carried = self.body.args[1:]
        ensure(len(carried) == len(self.init), "a loop carries as many values as it starts with", "init")
        for arg, first in zip(carried, self.init, strict=True):
            ensure(same_rank(arg.type, first.type), f"loop carries {arg.type} but starts with {first.type}", "init")
        return [a.type for a in carried]

    def verify(self) -> None:
        carried, inner = self.body.args[1:], bound_in(self.body.ops)
        for what, given in (("starts with", self.init), ("yields", self.body.terminator.operands)):
            ensure(len(given) == len(carried), f"a loop {what} {len(given)} values")
            for value, arg in zip(given, carried, strict=True):
                _flows(value.type, arg.type, inner)
        for arg, result in zip(carried, self.results):
            _flows(arg.type, result.type)


class If(Op, name="if"):
    """Run one of two blocks; each ends in a `yield` of the results.

    condition  a bool tensor of one element
    types      of the results
    """

    condition: Value
    types: list[Type]
    then: Block
    orelse: Block

    def infer(self) -> list[Type]:
        return list(self.types)

    def verify(self) -> None:
        for region in self.regions:
            for value, result in zip(yielded(region, self.results), self.results, strict=True):
                _flows(value.type, result.type)


class Parallel(Op, name="parallel"):
    """Run regions as if one after another; they may run at once (SPEC, 7.1).

    names    of the consumers that the regions were lowered from
    regions  end in a `yield` of their own results; the op has those of all, in order

    A region sees nothing that another computes.  Each runs exactly once, so that extents it binds
    hold after the op too.  From the pass `order-consumers` on, no region writes a state that another
    touches, and none that may refuse the step precedes one with effects.
    """

    names: list[str]
    consumers: list[Block]

    def infer(self) -> list[Type]:
        ensure(len(self.names) == len(self.consumers), "a region has a name, and a name a region", "names")
        return [v.type for v in self.yielded]

    def verify(self) -> None:
        for value, result in zip(self.yielded, self.results):
            ensure(value.type == result.type, f"{value!r} gives {result!r}")

    @property
    def yielded(self) -> list[Value]:
        """The values that the regions give, in the order of the results."""
        return [v for region in self.consumers for v in region.terminator.operands]

    @property
    def given(self) -> Iterator[tuple[Block, list[Value]]]:
        """The regions, each with the results that it gives."""
        results = iter(self.results)
        return ((region, list(islice(results, len(region.terminator.operands)))) for region in self.consumers)


class CheckIterations(Op, name="check.iterations", pure=False):
    """Refuse the step where one of the iterations of a loop would, before any of them runs.

    ends        checks in the first and the last iterations only: they pass if those of all iterations do
    iterations  the checks of all iterations in the order of the source, made only where one of `ends` refuses:
                the first of them to refuse is the one that is reported

    Both end in a `yield` of nothing.
    """

    ends: Block
    iterations: Block


class Yield(Op, name="yield", terminator=True):
    """End a region with the values it gives."""

    values: list[Value]


class Return(Op, name="return", terminator=True):
    """End a function with the values of its outputs."""

    values: list[Value]


class Barrier(Op, name="barrier", pure=False):
    """Nothing moves or fuses across it."""


class Cond(Op, name="index.test", immediate=True):
    """Whether left < right, as a bool scalar, of two index integers."""

    left: Value
    right: Value

    def infer(self) -> list[Type]:
        ensure(is_index(self.left) and is_index(self.right), "index.test compares index integers")
        return [TensorType(bool_)]


@dataclass(frozen=True)
class Given:
    """A value that an op hands on, at a position of one of its fields."""

    op: Op
    key: str
    position: int

    @property
    def value(self) -> Value:
        found: list[Value] = getattr(self.op, self.key)
        return found[self.position]


def merges(op: Op) -> list[tuple[list[Value], list[Given]]]:
    """What becomes one where a loop, a branch or consumers end: for every result the values there, and those given.

    The values are the result and, of a loop, the argument of its body; given are the last iteration's value and the
    start, or a value of each branch, or that of the consumer.  Of other ops none.
    """
    if not isinstance(op, (For, If, Parallel)):
        return []
    ends = [[Given(r.terminator, "values", i) for i in range(len(r.terminator.operands))] for r in op.regions]
    if isinstance(op, For):
        carried = zip(op.results, op.body.args[1:], *ends, strict=True)
        return [([result, arg], [end, Given(op, "init", i)]) for i, (result, arg, end) in enumerate(carried)]
    given = [[end] for end in chain(*ends)] if isinstance(op, Parallel) else [list(both) for both in zip(*ends)]
    return [([result], values) for result, values in zip(op.results, given, strict=True)]


def yielded(region: Block, results: list[Value]) -> list[Value]:
    """The values that a region yields, as many as there are results."""
    given = region.terminator.operands
    ensure(len(given) == len(results), f"a region yields {len(given)} values")
    return given


def _flows(source: Type, target: Type, inner: Collection[Extent] | None = None) -> None:
    """A value may become another: one dtype and rank, sizes equal unless the target's is its own.

    inner   extents bound for the target; None: any extent will do
    """
    ensure(same_rank(source, target), f"{source} does not become {target}")
    if not isinstance(source, TensorType) or not isinstance(target, TensorType):
        return
    for a, b in zip(source.shape, target.shape, strict=True):
        if a != b:
            extent = dims.atom(b) if isinstance(b, Expr) else None
            own = extent is not None and (inner is None or extent in inner)
            ensure(own, f"size {a} does not become {b}: {source}, {target}")
            assert extent is not None
            ensure(dims.maximum(a) <= extent.maximum, f"size {a} may be larger than {extent} <= {extent.maximum}")
