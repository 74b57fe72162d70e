"""What passes make of operators: fused elementwise regions and copies."""

from __future__ import annotations

from oic.ir.control import yielded
from oic.ir.core import Block, Op, Value, ensure
from oic.ir.types import TensorType, Type
from oic.operators.base import Operator


class Fused(Op, name="fused"):
    """Several elementwise operators computed in one pass over the result's elements.

    inputs  tensors of the result's shape (broadcasts are views with stride 0) or scalars
    shape   of every result
    body    block of one scalar argument an input, ended by a `yield` of the results' elements;
            the meaning is that of the same ops on whole tensors

    A product may come first (`passes/fuse_products.py`): the elements of its result are what the others take, as its
    kernel computes them.  All types in the body are then those of whole tensors.  What comes after it may also be one
    operator that chooses an element of each row, whose position is the result.
    """

    inputs: list[Value]
    type: list[Type]
    body: Block

    elementwise = True

    def infer(self) -> list[Type]:
        return list(self.type)

    def verify(self) -> None:
        for value, result in zip(yielded(self.body, self.results), self.results, strict=True):
            ensure(value.dtype is result.dtype, f"{value!r} gives {result!r}")

    @property
    def product(self) -> Operator | None:
        """The product that comes first, if there is one."""
        first = self.body.ops[0]
        return first if isinstance(first, Operator) and first.kernels else None

    @property
    def choice(self) -> Operator | None:
        """What chooses an element of each row of the product, if that is what comes after it."""
        last = self.body.ops[-2]
        return last if isinstance(last, Operator) and last.kernels and last is not self.product else None

    def takes_elements(self, value: Value) -> bool:
        whole = self.product.operands if self.product is not None else ()
        return all(arg not in whole for arg, given in zip(self.body.args, self.inputs, strict=True) if given is value)


def region(inputs: list[Value], body: Block, last: Op) -> Fused:
    """A fused region in place of an op, whose result it gives."""
    fused = Fused(inputs, [last.result.type], body, span=last.span, hint=last.result.hint)
    # The op's own value goes on: its users need not be rewritten.
    fused.results = [last.result]
    last.result.give_to(fused)
    return fused


def around(op: Op) -> Op:
    """The fused region that an op is part of, whose results are all that has memory; or the op itself."""
    owner = op.block.owner if op.block is not None else None
    return owner if isinstance(owner, Fused) else op


class Copy(Operator, name="copy"):
    """The operand's value in memory of its own.

    reason  why it cannot be a view; printed by `oic explain`
    """

    x: Value
    reason: str = ""

    catalog = False

    def infer(self) -> list[Type]:
        return [TensorType(self.x.dtype, self.x.shape)]

    def takes_elements(self, value: Value) -> bool:
        return True

    def reference(self, x: object) -> object:
        return x
