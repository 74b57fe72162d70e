"""Index arithmetic and checks as statements of C: 64-bit integers, most of them without a variable."""

from typing import Any

from oic.codegen import c_tree as c
from oic.codegen import elementwise as elements
from oic.codegen import expressions as expr
from oic.codegen import loops
from oic.codegen.c_print import text
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame
from oic.ir.core import Value
from oic.ir.index import NUMBERS, CheckRange, IndexMax, IndexPair

_LONGEST = 40  # characters of index arithmetic that is still written inside another expression
_LONGEST_CALL = 64  # of a call


def _function(op: IndexPair) -> str:
    """The function of the runtime, without its prefix."""
    return op.name.replace(".", "_")


class Integers:
    """Writes integers and checks into a frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.body = frame, frame.body

    # -- index arithmetic ------------------------------------------------------

    def _local(self, value: Value, index: Index, hint: str = "") -> None:
        """Give an index integer a name where it is long or used more than once."""
        longest = _LONGEST_CALL if isinstance(index.value, c.FunctionCall) else _LONGEST
        simple = isinstance(index.value, (c.Identifier, c.Literal))
        if simple or (len(value.users) == 1 and len(text(index.value)) <= longest):
            self.frame.indices[value] = index
        else:
            self._named(value, index.value, hint)

    def _named(self, value: Value, found: c.Expression, hint: str | None = None) -> None:
        """A local variable for what is no plain arithmetic."""
        self.frame.indices[value] = Index(self.frame.local(value.hint or hint or "at", found))

    def _index_const(self, op: Any) -> None:
        self.frame.indices[op.result] = expr.number(op.value)

    def _index_size(self, op: Any) -> None:
        self._local(op.result, self.frame.dim(op.size))

    def _arithmetic(self, op: Any) -> None:
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        if op.checked:
            self._local(op.result, expr.arithmetic(op.sign, left, right))
        else:
            self.frame.checked(op, "at", _function(op), left.value, right.value)

    def _least(self, op: Any) -> None:
        left, right = self.frame.index(op.left).value, self.frame.index(op.right).value
        # The larger of a count and what raises it is the count as it will be.
        hint = self.frame.stem(left) if isinstance(op, IndexMax) else ""
        self._local(op.result, Index(c.call(f"oic_{_function(op)}", left, right)), hint)

    def _division(self, op: Any) -> None:
        """Quotient or remainder, toward minus infinity; C's are that of numbers that are not negative."""
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        if left.low >= 0 and right.low > 0:
            self._local(op.result, Index(c.Infix(op.sign, left.value, right.value), wide=left.wide or right.wide))
        else:
            self._local(op.result, Index(c.call(f"oic_{_function(op)}", left.value, right.value)))

    def _index_load(self, op: Any) -> None:
        self.frame.integer(op, op.x.hint, op.x.hint, elements.scalar(self.frame, op.x), op.x.dtype)

    def _end(self, op: Any) -> None:
        """A negative end of a slice counts from the count."""
        end, count = self.frame.index(op.end).value, self.frame.index(op.count).value
        self._named(op.result, c.Conditional(c.Infix("<", end, c.integer(0)), c.Infix("+", count, end), end))

    def _wrap(self, op: Any) -> None:
        """The value as an integer type that a persistent scalar has would hold it."""
        dtype = op.dtype
        unsigned = c.Conversion(f"uint{dtype.bits}_t", self.frame.index(op.value).value)
        self._named(op.result, unsigned if dtype.low == 0 else c.Conversion(dtype.c, unsigned))

    def _when(self, op: Any) -> None:
        """A value only if something is positive."""
        test, value = self.frame.index(op.test).value, self.frame.index(op.value).value
        self._named(op.result, c.Conditional(c.Infix(">", test, c.integer(0)), value, c.integer(0)))

    # -- checks ------------------------------------------------------------------

    def _range(self, op: Any, value: Value, low: c.Expression, high: c.Expression) -> None:
        index = self.frame.index(value).value
        if isinstance(op, CheckRange) and op.says not in ("", *NUMBERS):  # it reports another value
            shown = index if op.shown is None else self.frame.index(op.shown).value
            holds: c.Expression = c.Infix("==", index, low)
            if op.low != op.high:
                holds = c.Infix("&&", c.Infix(">=", index, low), c.Infix("<=", index, high))
            self.frame.refuse(op, "check_that", c.string(op.variable), holds, shown, c.Identifier(op.below))
            return
        statuses = (c.Identifier(status or "OIC_ERR_SHAPE") for status in (op.below, op.above))
        self.frame.refuse(op, "check_range", c.string(op.variable), index, low, high, *statuses)

    def _check_range(self, op: Any) -> None:
        low, high = (expr.integer(b) if isinstance(b, int) else self.frame.index(b).value for b in (op.low, op.high))
        self._range(op, op.value, low, high)

    def _bind(self, op: Any) -> None:
        if not op.checked:
            self._range(op, op.value, expr.ZERO.value, expr.integer(op.extent.maximum))
        size = expr.signed(self.frame.index(op.value))
        self.frame.extents[op.extent] = self.frame.local(op.extent.name, size, "ptrdiff_t")

    def _check_ids(self, op: Any) -> None:
        ref, bound = self.frame.refs[op.x], self.frame.dim(op.bound)
        sizes, (strides,) = loops.collapse(ref.type.shape, [ref.strides])
        with loops.Nest(self.frame, sizes) as nest:
            value = loops.load(ref, nest.index(strides, ref.start))
            self.frame.refuse(op, "check_id", c.string(op.variable), value, bound.value)

    def _assert_shape(self, op: Any) -> None:
        base = self.frame.refs[op.x]
        for actual, expected in zip(op.x.shape, op.shape, strict=True):
            if actual != expected and not op.checked:
                sizes = (self.frame.dim(n).value for n in (actual, expected))
                self.frame.refuse(op, "check_size", c.string(op.x.hint), *sizes)
        self.frame.view(op.result, base, expr.ZERO, base.strides)
