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
        else:
            self._named(value, index.text, "at")

    def _index_const(self, op: Any) -> None:
        self.frame.indices[op.result] = expr.number(op.value)

    def _index_size(self, op: Any) -> None:
        self._local(op.result, self.frame.dim(op.size))

    def _arithmetic(self, op: Any) -> None:
        symbol, name = ARITHMETIC[op.name]
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        if op.checked:
            self._local(op.result, expr.arithmetic(symbol, left, right))
            return
        target = self.frame.names.unique(op.result.hint or "at")
        self.lines.add(f"int64_t {target};")
        line = self.frame.line(op)
        self.frame.attempt(f"oic_index_{name}(why, {line}, {left.text}, {right.text}, &{target})")
        self.frame.indices[op.result] = Index(target)

    def _least(self, op: Any) -> None:
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        function = "oic_index_min" if op.name == "index.min" else "oic_index_max"
        self._local(op.result, Index(f"{function}({left.text}, {right.text})"))

    def _division(self, op: Any) -> None:
        """Quotient or remainder, toward minus infinity; C's are that of numbers that are not negative."""
        left, right = self.frame.index(op.left), self.frame.index(op.right)
        symbol, function = ("/", "oic_index_div") if op.name == "index.div" else ("%", "oic_index_mod")
        index = Index(f"{function}({left.text}, {right.text})")
        if left.low >= 0 and right.low > 0:
            text = f"{left.at(expr.PRODUCT)} {symbol} {right.at(expr.ATOM)}"
            index = Index(text, expr.PRODUCT, wide=left.wide or right.wide)
        self._local(op.result, index)

    def _index_load(self, op: Any) -> None:
        value = op.x
        text = elements.scalar(self.frame, value)
        if op.checked:
            text = f"(int64_t){text}"
        elif value.dtype.name == "u64":
            name = self.frame.names.unique(op.result.hint or value.hint or "at")
            self.lines.add(f"int64_t {name};")
            check = f'oic_index_of_u64(why, {self.frame.line(op)}, "{value.hint}", {text}, &{name})'
            self.frame.attempt(check)
            self.frame.indices[op.result] = Index(name)
            return
        self._named(op.result, text, value.hint)

    def _end(self, op: Any) -> None:
        """A negative end of a slice counts from the count."""
        end, count = self.frame.index(op.end), self.frame.index(op.count)
        self._named(
            op.result, f"{end.at(expr.SUM)} < 0 ? {count.at(expr.SUM)} + {end.at(expr.PRODUCT)} : {end.text}"
        )

    def _wrap(self, op: Any) -> None:
        """The value as an integer type that a persistent scalar has would hold it."""
        value, dtype = self.frame.index(op.value), op.dtype
        unsigned = f"(uint{dtype.bits}_t){value.at(expr.ATOM)}"
        self._named(op.result, unsigned if dtype.low == 0 else f"({dtype.c}){unsigned}")

    def _when(self, op: Any) -> None:
        """A value only if something is positive."""
        test, value = self.frame.index(op.test), self.frame.index(op.value)
        self._named(op.result, f"{test.at(expr.SUM)} > 0 ? {value.text} : 0")

    def _named(self, value: Value, text: str, hint: str | None = None) -> None:
        """A local variable for what is no plain arithmetic."""
        name = self.frame.names.unique(value.hint or hint or "at")
        self.lines.declare(name, f"const int64_t {name} = {text};")
        self.frame.indices[value] = Index(name)

    # -- checks ------------------------------------------------------------------

    def _range(self, op: Any, value: Value, low: Index, high: Index) -> None:
        index = self.frame.index(value)
        if isinstance(op, CheckRange) and op.says not in ("", *NUMBERS):
            self._that(op, index, low)
            return
        below, above = op.below or "OIC_ERR_SHAPE", op.above or "OIC_ERR_SHAPE"
        check = (
            f'oic_check_range(why, {self.frame.line(op)}, "{op.variable}", {index.text}, {low.text}, '
            f"{high.text}, {below}, {above})"
        )
        self.frame.attempt(check)

    def _that(self, op: CheckRange, index: Index, wanted: Index) -> None:
        """A check of one value, which reports another."""
        shown = index if op.shown is None else self.frame.index(op.shown)
        holds = f"{index.at(expr.SUM)} == {wanted.text}"
        line, name = self.frame.line(op), op.variable
        check = f'oic_check_that(why, {line}, "{name}", {holds}, {shown.text}, {op.below})'
        self.frame.attempt(check)

    def _check_range(self, op: Any) -> None:
        low, high = (expr.number(b) if isinstance(b, int) else self.frame.number(b) for b in (op.low, op.high))
        self._range(op, op.value, low, high)

    def _bind(self, op: Any) -> None:
        if not op.checked:
            self._range(op, op.value, expr.number(0), expr.number(op.extent.maximum))
        index = self.frame.index(op.value)
        name = self.frame.names.unique(op.extent.name)
        text = f"(ptrdiff_t){index.at(expr.ATOM)}" if index.wide else index.text
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
