"""Index arithmetic and checks, as lines of C: 64-bit integers, most of them without a variable."""

from __future__ import annotations

from typing import Any

from oic.codegen import elementwise as elements
from oic.codegen import expressions as expr
from oic.codegen import loops
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame
from oic.ir.core import Value
from oic.ir.index import NUMBERS, CheckRange
from oic.ir.ranges import quotient_range, remainder_range

ARITHMETIC = {"index.add": ("+", "add"), "index.sub": ("-", "sub"), "index.mul": ("*", "mul")}
_LONGEST = 40  # characters of index arithmetic that is still written inside another expression


class Integers:
    """Writes integers and checks into a frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.lines = frame, frame.lines

    # -- index arithmetic ------------------------------------------------------

    def _local(self, value: Value, index: Index) -> None:
        """Give an index integer a name where it is long or used more than once."""
        if index.level == expr.ATOM or (len(value.users) == 1 and len(index.text) <= _LONGEST):
            self.frame.indices[value] = index
            return
        name = self.frame.names.unique(value.hint or "at")
        self.lines.declare(name, f"const int64_t {name} = {index.text};")
        self.frame.indices[value] = Index(name, expr.ATOM, index.low, index.high)

    def _index_const(self, op: Any) -> None:
        self.frame.indices[op.result] = expr.number(op.value)

    def _index_size(self, op: Any) -> None:
        self._local(op.result, self.frame.dim(op.size))

    def _arithmetic(self, op: Any) -> None:
        symbol, name = ARITHMETIC[op.name]
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        result = expr.arithmetic(symbol, left, right)
        if result is not None:
            self._local(op.result, result)
            return
        target = self.frame.names.unique(op.result.hint or "at")
        self.lines.add(f"int64_t {target};")
        line = self.frame.line(op)
        self.frame.attempt(f"oic_index_{name}(why, {line}, {left.text}, {right.text}, &{target})")
        self.frame.indices[op.result] = Index(target)

    def _least(self, op: Any) -> None:
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        pick = min if op.name == "index.min" else max
        low, high = pick(left.low, right.low), pick(left.high, right.high)
        function = "oic_index_min" if op.name == "index.min" else "oic_index_max"
        self._local(op.result, Index(f"{function}({left.text}, {right.text})", expr.ATOM, low, high))

    def _division(self, op: Any) -> None:
        """Quotient or remainder, toward minus infinity."""
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        if op.name == "index.div":
            symbol, function, ranges = "/", "oic_index_div", quotient_range
        else:
            symbol, function, ranges = "%", "oic_index_mod", remainder_range
        low, high = ranges((left.low, left.high), (right.low, right.high))
        index = Index(f"{function}({left.text}, {right.text})", expr.ATOM, low, high)
        if left.low >= 0 and right.low > 0:
            wide = left.wide or right.wide
            text = f"{left.at(expr.PRODUCT)} {symbol} {right.at(expr.ATOM)}"
            index = Index(text, expr.PRODUCT, low, high, wide)
        self._local(op.result, index)

    def _index_load(self, op: Any) -> None:
        value = op.x
        name = self.frame.names.unique(op.result.hint or value.hint or "at")
        text = elements.scalar(self.frame, value)
        dtype = value.dtype
        if dtype.name == "u64":
            self.lines.add(f"int64_t {name};")
            check = f'oic_index_of_u64(why, {self.frame.line(op)}, "{value.hint}", {text}, &{name})'
            self.frame.attempt(check)
            self.frame.indices[op.result] = Index(name, low=0)
            return
        self.lines.declare(name, f"const int64_t {name} = {text};")
        self.frame.indices[op.result] = Index(name, low=dtype.low, high=dtype.high)

    def _end(self, op: Any) -> None:
        """A negative end of a slice counts from the count."""
        end, count = self.frame.index(op.end), self.frame.index(op.count)
        if end.low >= 0:
            self._local(op.result, end)
            return
        from_count = expr.interval("+", count, end)
        if from_count[0] < expr.I64[0] or from_count[1] > expr.I64[1]:
            from_count = expr.I64  # a count is never negative, so the sum with a negative end fits
        text = f"{end.at(expr.SUM)} < 0 ? {count.at(expr.SUM)} + {end.at(expr.PRODUCT)} : {end.text}"
        if end.high < 0:
            text = f"{count.at(expr.SUM)} + {end.at(expr.PRODUCT)}"
        low, high = min(from_count[0], 0), max(from_count[1], end.high)
        self._named(op.result, text, low, high)

    def _wrap(self, op: Any) -> None:
        """The value as an integer type that a persistent scalar has would hold it."""
        value, dtype = self.frame.index(op.value), op.dtype
        if dtype.low <= value.low and value.high <= dtype.high:
            self._local(op.result, value)
            return
        unsigned = f"(uint{dtype.bits}_t){value.at(expr.ATOM)}"
        text = unsigned if dtype.low == 0 else f"({dtype.c}){unsigned}"
        self._named(op.result, text, dtype.low, dtype.high)

    def _when(self, op: Any) -> None:
        """A value only if something is positive."""
        test, value = self.frame.index(op.test), self.frame.index(op.value)
        if test.low > 0:
            self._local(op.result, value)
            return
        text = f"{test.at(expr.SUM)} > 0 ? {value.text} : 0"
        self._named(op.result, text, min(0, value.low), max(0, value.high))

    def _named(self, value: Value, text: str, low: int, high: int) -> None:
        """A local variable for what is no plain arithmetic."""
        name = self.frame.names.unique(value.hint or "at")
        self.lines.declare(name, f"const int64_t {name} = {text};")
        self.frame.indices[value] = Index(name, expr.ATOM, low, high)

    # -- checks ------------------------------------------------------------------

    def _range(self, op: Any, value: Value, low: Index, high: Index) -> Index:
        """A check, unless it always holds; gives what is known of the value after it."""
        index = self.frame.index(value)
        if index.low >= low.high and index.high <= high.low:
            return index
        if isinstance(op, CheckRange) and op.says not in ("", *NUMBERS):
            return self._that(op, index, low)
        below, above = op.below or "OIC_ERR_SHAPE", op.above or "OIC_ERR_SHAPE"
        check = (
            f'oic_check_range(why, {self.frame.line(op)}, "{op.variable}", {index.text}, {low.text}, '
            f"{high.text}, {below}, {above})"
        )
        self.frame.attempt(check)
        return self._known(value, low, high)

    def _that(self, op: CheckRange, index: Index, wanted: Index) -> Index:
        """A check of one value, which reports another."""
        shown = index if op.shown is None else self.frame.index(op.shown)
        holds = f"{index.at(expr.SUM)} == {wanted.text}"
        line, name = self.frame.line(op), op.variable
        check = f'oic_check_that(why, {line}, "{name}", {holds}, {shown.text}, {op.below})'
        self.frame.attempt(check)
        return self._known(op.value, wanted, wanted)

    def _known(self, value: Value, low: Index, high: Index) -> Index:
        """Note that a value lies between two others from here on."""
        index = self.frame.index(value)
        known = Index(
            index.text, index.level, max(index.low, low.low), min(index.high, high.high), index.wide
        )
        self.frame.indices[value] = known
        return known

    def _check_range(self, op: Any) -> None:
        low, high = (expr.number(b) if isinstance(b, int) else self.frame.number(b) for b in (op.low, op.high))
        self._range(op, op.value, low, high)

    def _bind(self, op: Any) -> None:
        low, high = expr.number(0), expr.number(op.extent.maximum)
        known = self._known(op.value, low, high) if op.checked else self._range(op, op.value, low, high)
        name = self.frame.names.unique(op.extent.name)
        text = f"(ptrdiff_t){known.at(expr.ATOM)}" if known.wide else known.text
        self.lines.declare(name, f"const ptrdiff_t {name} = {text};")
        self.frame.extents[op.extent] = name

    def _check_ids(self, op: Any) -> None:
        ref, bound = self.frame.ref(op.x), self.frame.dim(op.bound)
        sizes, (strides,) = loops.collapse(ref.type.shape, [ref.strides])
        nest = loops.Nest(self.frame, sizes)
        nest.open_all()
        value = loops.load(ref, nest.index(strides, ref.start))
        check = f'oic_check_id(why, {self.frame.line(op)}, "{op.variable}", {value}, {bound.text})'
        self.frame.attempt(check)
        nest.close()

    def _assert_shape(self, op: Any) -> None:
        base = self.frame.ref(op.x)
        for actual, expected in zip(op.x.shape, op.shape, strict=True):
            if actual != expected and not op.checked:
                sizes = f"{self.frame.dim(actual).text}, {self.frame.dim(expected).text}"
                name = op.x.hint
                check = f'oic_check_size(why, {self.frame.line(op)}, "{name}", {sizes})'
                self.frame.attempt(check)
        self.frame.view(op.result, base, expr.number(0), base.strides)
