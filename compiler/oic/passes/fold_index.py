"""Index arithmetic that is a number, or one of its operands, for all that is known of its values."""

from oic.ir import index
from oic.ir.core import Op, Value
from oic.ir.intervals import within
from oic.ir.ranges import Ranges


def folded_index(op: index.IndexOp, ranges: Ranges) -> Value | Op | None:
    """A value or an op to use instead; None to keep it."""
    match op:
        case index.IndexArithmetic():
            form = ranges.linear(op.result)
            for value in (op.left, op.right):
                if ranges.linear(value) == form:
                    return value
        case index.IndexMax(left=left, right=right) | index.IndexMin(left=left, right=right):
            if type(left.op) is type(op) and right in left.op.operands:  # max(max(x, y), y)
                return left
            low, high = ranges.difference(left, right)
            if low >= 0 or high <= 0:
                return left if (low >= 0) == isinstance(op, index.IndexMax) else right
        case index.IndexConst():
            return None
        case index.IndexEnd(end=end) if ranges.of(end)[0] >= 0:
            return end
        case index.IndexEnd(end=end, count=count) if ranges.of(end)[1] < 0:
            return index.IndexAdd(count, end, span=op.span, hint=op.result.hint)
        case index.IndexWhen(test=test, value=chosen) if ranges.of(test)[0] > 0:
            return chosen
        case index.IndexWrap(value=value, dtype=dtype) if within(ranges.of(value), (dtype.low, dtype.high)):
            return value
    if (known := ranges.exact(op.result)) is None:
        return None
    overflows = isinstance(op, index.IndexArithmetic) and not ranges.fits(op)
    return None if overflows else index.IndexConst(known, span=op.span, hint=op.result.hint)
