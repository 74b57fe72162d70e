"""Index arithmetic, run-time sizes and the checks made on them.

An index integer is 64 bits wide and exact; results outside 64 bits are a refusal of the
arithmetic, never a wrap (SPEC, section 10).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from oic.diagnostics import Span
from oic.dtypes import INT, DType, bitset
from oic.ir import dims
from oic.ir.core import Op, OpError, Value, ensure, is_index
from oic.ir.dims import Dim, Extent
from oic.ir.strides import Strides, dense, is_dense
from oic.ir.types import INDEX, TensorType, Type

UNEQUAL = "unequal"  # what a check of two sizes `says`
SIZE = "size"  # what a check `says` of an integer that becomes a size, as `extent.bind` does
NUMBERS = (UNEQUAL, SIZE)  # of them all that say a value and a bound


class IndexOp(Op):
    """Base of pure index arithmetic: index operands, one index result."""

    def infer(self) -> list[Type]:
        for value in self.operands:
            if not is_index(value):
                raise OpError("ir", f"{self.name} takes index integers, not {value.type}")
        return [INDEX]


class IndexConst(IndexOp, name="index.const"):
    """A known integer."""

    value: int


class IndexPair(IndexOp):
    """Base of what is made of two integers.

    sign  how it is written between them, where it has a sign
    """

    sign: ClassVar[str] = ""
    left: Value
    right: Value


class IndexArithmetic(IndexPair):
    """Base of what may leave 64 bits.

    written  the source asks for it: beyond 64 bits the step is refused, whatever becomes of the result
    checked  the result is known to stay within 64 bits: nothing is refused here
    """

    written: bool = False
    checked: bool = False


class IndexAdd(IndexArithmetic, name="index.add", sign="+"):
    """left + right."""


class IndexSub(IndexArithmetic, name="index.sub", sign="-"):
    """left - right."""


class IndexMul(IndexArithmetic, name="index.mul", sign="*"):
    """left * right."""


class IndexMin(IndexPair, name="index.min"):
    """The smaller of left and right."""


class IndexMax(IndexPair, name="index.max"):
    """The larger of left and right."""


class IndexDiv(IndexPair, name="index.div", sign="/"):
    """left / right rounded toward minus infinity; 0 where right is below 1, which is refused before."""


class IndexMod(IndexPair, name="index.mod", sign="%"):
    """left modulo right, at least 0; 0 where right is below 1, which is refused before."""


class IndexSize(IndexOp, name="index.size"):
    """The present value of a size."""

    size: Dim


class IndexLoad(Op, name="index.load"):
    """The value of an integer tensor of one element.

    checked  the value is known to fit an index: nothing is refused here
    """

    x: Value
    checked: bool = False

    def infer(self) -> list[Type]:
        self.require("x", INT | {bitset})
        if self.x.tensor.maximum and self.x.tensor.size != 1:
            raise OpError("not-scalar", f"{self.x.type} has more than one element", "x")
        return [INDEX]


class ExtentBind(Op, name="extent.bind", pure=False):
    """Give an extent its value: from here on sizes that name it have a meaning.

    extent   defined here and nowhere else
    below    status if the value is negative
    above    status if it exceeds the extent's maximum
    variable what the value belongs to, for messages
    checked  the value has been found in range before: nothing is refused here
    """

    value: Value
    extent: Extent
    below: str
    above: str
    variable: str
    checked: bool = False

    def infer(self) -> list[Type]:
        ensure(is_index(self.value), "an extent is bound to an index integer", "value")
        return []


def bound_in(ops: Iterable[Op]) -> frozenset[Extent]:
    """The extents that one of the ops binds."""
    return frozenset(op.extent for op in ops if isinstance(op, ExtentBind))


class CheckRange(Op, name="check.range", pure=False):
    """Refuse the step unless low <= value <= high.

    below, above   status for a value under `low` or over `high`
    variable       what is indexed, for messages
    says           what a refusal says of the variable, where it is not that the value is out of range
    shown          what it reports in place of the value
    radix          sizes of a shape in which that is the number of an element, which is named instead
    """

    value: Value
    low: int | Value
    high: int | Value
    below: str
    above: str
    variable: str
    says: str = ""
    shown: Value | None = None
    radix: list[int] = []


def in_shape(value: Value, low: int | Value, high: int | Value, name: str, *says: Any, span: Span | None = None) -> Op:
    """Refuse the step with OIC_ERR_SHAPE unless low <= value <= high; what it says, and shows, as of CheckRange."""
    return CheckRange(value, low, high, "OIC_ERR_SHAPE", "OIC_ERR_SHAPE", name, *says, span=span)


def at_least(least: int, size: Dim) -> list[Op]:
    """Ops that refuse the step with OIC_ERR_SHAPE where a size only known at run time is smaller."""
    if isinstance(size, int):
        return []
    value = IndexSize(size)
    return [value, in_shape(value.result, least, max(least, dims.maximum(size)), str(size))]


def divides(quotient: dims.Quotient) -> list[Op]:
    """Ops that refuse the step with OIC_ERR_SHAPE where a division of sizes has a remainder."""
    numerator, divisor = IndexSize(quotient.numerator), IndexSize(quotient.divisor)
    least, most = dims.bounds(quotient.divisor)
    positive = [] if least >= 1 else [in_shape(divisor.result, 1, max(1, most), str(quotient))]
    rest = IndexMod(numerator.result, divisor.result)
    exact = in_shape(rest.result, 0, 0, str(quotient), "leaves a remainder", numerator.result)
    return [numerator, divisor, *positive, rest, exact]


def equal(a: Dim, b: Dim, name: str) -> list[Op]:
    """Ops that refuse the step with OIC_ERR_SHAPE where two sizes differ."""
    left, right = IndexSize(a), IndexSize(b)
    return [left, right, same_size(left.result, right.result, name)]


def same_size(size: Value, other: Value, name: str, span: Span | None = None) -> Op:
    """Refuse the step with OIC_ERR_SHAPE where two sizes differ."""
    return in_shape(size, other, other, name, UNEQUAL, span=span)


class AssertShape(Op, name="assert.shape", pure=False, view=True, reshapes=True):
    """The operand, known from here on to have this shape; otherwise OIC_ERR_SHAPE.

    checked  the sizes have been found equal before: nothing is refused here
    """

    x: Value
    shape: list[Dim]
    checked: bool = False

    def infer(self) -> list[Type]:
        if self.x.tensor.rank != len(self.shape):
            raise OpError("shape-mismatch", f"{self.x.type} has another rank", "x")
        return [TensorType(self.x.dtype, tuple(self.shape))]

    def seen(self, base: Strides) -> Strides:
        return dense(self.result.shape) if is_dense(self.x.shape, base) else base


class CheckIds(Op, name="check.ids", pure=False):
    """Refuse the step with OIC_ERR_INDEX unless every element lies in 0..bound-1."""

    x: Value
    bound: Dim
    variable: str


class IndexEnd(IndexOp, name="index.end"):
    """The end of a slice: `end` itself, or `count + end` where it is negative (SPEC, 8.2)."""

    end: Value
    count: Value


class IndexWhen(IndexOp, name="index.when"):
    """`value` where test > 0, else 0."""

    test: Value
    value: Value


class IndexWrap(IndexOp, name="index.wrap"):
    """The integer modulo 2^width, in the range of an integer type of at most 32 bits."""

    value: Value
    dtype: DType
