"""Operators on the bits of integers, elementwise and exact.  An i4 has four bits."""

from __future__ import annotations

import numpy as np

from oic.dtypes import INT, Array, bool_, u8, u64
from oic.ir.core import Op, Value
from oic.ir.types import Type
from oic.operators.base import BinaryOperator, Scalar, UnaryOperator
from oic.operators.settings import MOST, range_checks, require_integer

BITS = INT | {bool_}
SHIFTED = frozenset(d for d in INT if d.bits > 1)


class And(BinaryOperator, name="and"):
    """The bits set in both a and b.

    a, b     integers or bool of one dtype, broadcast
    result   their dtype

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `and`.
    """

    allowed = BITS
    of = np.bitwise_and


class Or(BinaryOperator, name="or"):
    """The bits set in a or b.

    a, b     integers or bool of one dtype, broadcast
    result   their dtype

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `or`.
    """

    allowed = BITS
    of = np.bitwise_or


class Xor(BinaryOperator, name="xor"):
    """The bits set in one of a and b.

    a, b     integers or bool of one dtype, broadcast
    result   their dtype

    Exact.  Errors: dtypes differ or do not broadcast.  Source: OpenInfer op catalog, `xor`.
    """

    allowed = BITS
    of = np.bitwise_xor


class Not(UnaryOperator, name="not"):
    """Every bit turned; for bool the other value.

    x        integer or bool
    result   the type of x

    Exact.  Errors: x is a float or bitset.  Source: OpenInfer op catalog, `not`.
    """

    allowed = BITS
    of = np.invert


class Shift(UnaryOperator):
    """Base of shl and shr."""

    bits: int | Value

    allowed = SHIFTED
    c = Scalar(wide=("bits",))
    setting = "bits=1"
    more = (("i32[9]", "bits=0"), ("i8[9]", "bits=7"), ("u64[9]", "bits=64"), ("i64[9]", "bits=64"),
            ("i4[9]", "bits=1000"))  # fmt: skip

    def infer(self) -> list[Type]:
        require_integer(self, "bits", 0, MOST)
        return super().infer()

    def checks(self) -> list[Op]:
        """A shift that is only known at run time must not be negative."""
        return range_checks(self, u64, "bits")

    def reference(self, x: Array) -> Array:
        count = min(self.number("bits"), self.x.dtype.bits)  # by the width or more: 0, or the sign, as NumPy has it
        return super().reference(x, x.dtype.type(count))


class Shl(Shift, name="shl"):
    """x shifted left: zeros come in, bits beyond the width are lost.

    x        integer of 2 bits or more
    bits     ≥ 0; the width or more gives 0
    result   the type of x

    Exact.  Errors: bits is negative (at run time OIC_ERR_INDEX) or missing.
    Source: OpenInfer op catalog, `shl`.
    """

    of = np.left_shift


class Shr(Shift, name="shr"):
    """x shifted right: zeros come in, for signed integers copies of the sign.

    x        integer of 2 bits or more
    bits     ≥ 0; the width or more gives 0, or -1 for negative x
    result   the type of x

    Exact.  Errors: bits is negative (at run time OIC_ERR_INDEX) or missing.
    Source: OpenInfer op catalog, `shr`.
    """

    of = np.right_shift


class Popcount(UnaryOperator, name="popcount"):
    """The number of bits set in x.

    x        integer of 2 bits or more
    result   u8, the shape of x

    Exact.  Errors: x has another type.  Source: OpenInfer op catalog, `popcount`.
    """

    allowed = SHIFTED
    gives = u8

    def reference(self, x: Array) -> Array:
        low = x.astype(np.int64).view(np.uint64) & np.uint64((1 << self.x.dtype.bits) - 1)
        return np.unpackbits(low[..., None].view(np.uint8), axis=-1).sum(-1, dtype=np.uint8)
