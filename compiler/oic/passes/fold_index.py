"""Index arithmetic that is a number, or one of its operands, for all that is known of its values."""

from __future__ import annotations

from oic.ir.core import Op, Value
from oic.ir.index import (
    IndexAdd,
    IndexArithmetic,
    IndexConst,
    IndexEnd,
    IndexMax,
    IndexMin,
    IndexOp,
    IndexWhen,
    IndexWrap,
)
from oic.ir.intervals import within
from oic.ir.ranges import Ranges


def folded_index(op: IndexOp, ranges: Ranges) -> Value | Op | None:
    """A value or an op to use instead; None to keep it."""
    match op:
        case IndexArithmetic():
            form = ranges.linear(op.result)
            for value in (op.left, op.right):
                if ranges.linear(value) == form:
                    return value
        case IndexMax(left=left, right=right) | IndexMin(left=left, right=right):
            if type(left.op) is type(op) and right in left.op.operands:  # max(max(x, y), y)
                return left
            low, high = ranges.difference(left, right)
            if low >= 0 or high <= 0:
                return left if (low >= 0) == isinstance(op, IndexMax) else right
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
    if (known := ranges.exact(op.result)) is None:
        return None
    overflows = isinstance(op, IndexArithmetic) and not ranges.fits(op)
    return None if overflows else IndexConst(known, span=op.span, hint=op.result.hint)
