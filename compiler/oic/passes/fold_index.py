"""Index arithmetic that is a number, or one of its operands, for all that is known of its values."""

from __future__ import annotations

from oic.ir.core import Op, Value
from oic.ir.index import (
    IndexAdd,
    IndexConst,
    IndexEnd,
    IndexMax,
    IndexMin,
    IndexMul,
    IndexOp,
    IndexSub,
    IndexWhen,
    IndexWrap,
)
from oic.ir.intervals import within
from oic.ir.ranges import Ranges


def folded_index(op: IndexOp, ranges: Ranges) -> Value | Op | None:
    """A value or an op to use instead; None to keep it."""
    match op:
        case IndexConst():
            return None
        case IndexEnd(end=end) if ranges.of(end)[0] >= 0:
            return end
        case IndexEnd(end=end, count=count) if ranges.of(end)[1] < 0:
            return IndexAdd(count, end, span=op.span, hint=op.result.hint)
        case IndexWhen(test=test, value=chosen) if ranges.of(test)[0] > 0:
            return chosen
        case IndexWrap(value=value, dtype=dtype) if within(ranges.of(value), (dtype.low, dtype.high)):
            return value
        case IndexMax(left=left, right=right) | IndexMin(left=left, right=right):
            low, high = ranges.difference(left, right)
            if low >= 0 or high <= 0:
                return left if (low >= 0) == isinstance(op, IndexMax) else right
        case IndexAdd() | IndexSub() | IndexMul():
            form = ranges.linear(op.result)
            same = next((value for value in op.operands if ranges.linear(value) == form), None)
            if same is not None:
                return same
    overflows = isinstance(op, (IndexAdd, IndexSub, IndexMul)) and not ranges.fits(op)
    if not overflows and (known := ranges.exact(op.result)) is not None:
        return IndexConst(known, span=op.span, hint=op.result.hint)
    return None
