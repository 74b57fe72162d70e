"""Index integers while a function is lowered: polynomials (`ir.dims`), made values where they are needed.

Integer expressions are kept over extents and over *atoms*, index values of the program, so that
`(pos + N) - pos` is the size `N` without asking the program.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, TypeVar

from oic.check.binding import Binding
from oic.check.report import refused
from oic.check.sizes import HIGH, within
from oic.diagnostics import Span
from oic.dtypes import DType
from oic.ir import dims, index
from oic.ir.core import Block, Op, Value
from oic.ir.dims import INDEX_BOUND, Atom, Dim, Expr, Extent
from oic.ir.intervals import Range
from oic.ir.ranges import Ranges
from oic.ir.types import TensorType, Type
from oic.syntax import tree as s
from oic.syntax.unparse import written

T = TypeVar("T")
INDEX, FULL = "OIC_ERR_INDEX", "OIC_ERR_CACHE_FULL"


@dataclass(kw_only=True)
class IndexBuilder:
    """Where ops go, and what is known of index integers there.

    nonneg      expressions that checks made before have shown not to be negative
    memo        index values and lengths that the current block and those around it have, a map each; under
                ("most", expression) the capacity that it is within, since an access refused all beyond
    turns       of loops that are known at build: their first and last index
    single      of loops that run once: their index, by those of loops around
    iterations  of those around in this block that all run, the same
    """

    binding: Binding
    counter: dict[str, int]
    prologue: Block = field(default_factory=Block)
    block: Block = field(default_factory=Block)
    nonneg: set[Dim] = field(default_factory=set)
    atoms: dict[str, Value] = field(default_factory=dict)
    memo: ChainMap[Any, Any] = field(default_factory=ChainMap)
    turns: dict[Extent, Range] = field(default_factory=dict)
    single: dict[Extent, Dim] = field(default_factory=dict)
    iterations: dict[Extent, Range] = field(default_factory=dict)

    def emit(self, op: Op) -> Op:
        """Append an op to the current block."""
        return self.block.append(op)

    def settled(self, value: Dim) -> Dim:
        """The same by indices of loops that may run more than once."""
        return dims.substitute(value, lambda extent: self.single.get(extent, dims.of(extent)))

    def check(self, value: Dim, low: int | Value, high: int | Value, name: str, span: Span) -> None:
        """Check at run time that low <= value <= high.

        name   what is indexed, for messages
        """
        self.emit(index.CheckRange(self.value(value, span), low, high, INDEX, INDEX, name, span=span))

    def fresh(self, prefix: str) -> str:
        """A name unused in this module."""
        while True:
            self.counter[prefix] = self.counter.get(prefix, 0) + 1
            name = f"{prefix}{self.counter[prefix]}"
            if name not in self.binding.extents:
                return name

    def atom(self, value: Value, maximum: int = INDEX_BOUND) -> Dim:
        """An index value as a term of integer expressions."""
        name = f"%{len(self.atoms)}"
        self.atoms[name] = value
        return dims.of(Extent(name, maximum))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What was made for a key in this block or one around it, or is made now."""
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found

    def value(self, dim: Dim, span: Span | None = None) -> Value:
        """An integer expression as an index value.  Raises Refused."""
        within(dim, span)  # the negative of what fits may not
        return self.once(dim, lambda: self._sum(dim, span) if self.size(dim) is None else self.emit_size(dim))

    def _sum(self, dim: Dim, span: Span | None) -> Value:
        assert isinstance(dim, Expr)

        def times(a: Value, b: Value) -> Value:
            return self._arithmetic(index.IndexMul(a, b), span)

        total: Value | None = None
        for atoms, c in sorted(dim.terms, key=lambda t: t[1] < 0):
            factors: list[Atom | int] = [*atoms, abs(c)] if abs(c) != 1 or not atoms else [*atoms]
            product = reduce(times, (self._factor(factor, span) for factor in factors))
            if total is None and c < 0:
                total = self.value(0)
            make = index.IndexAdd if c > 0 else index.IndexSub
            total = product if total is None else self._arithmetic(make(total, product), span)
        assert total is not None
        return total

    def _factor(self, factor: Atom | int, span: Span | None) -> Value:
        """A factor of a term as an index value."""
        if isinstance(factor, int):
            return self.value(factor, span)
        own = self.atoms.get(factor.name) if isinstance(factor, Extent) else None
        return own if own is not None else self.value(Expr((((factor,), 1),)))

    def _arithmetic(self, op: index.IndexArithmetic, span: Span | None) -> Value:
        op.span, op.written = span, not Ranges().fits(op)
        return self.emit(op).result

    def size(self, dim: Dim) -> Dim | None:
        """The expression as a dimension, if it depends on sizes alone."""
        if isinstance(dim, int):
            return dim
        return None if any(e.name in self.atoms for e in dims.extents([dim])) else dim

    def reached(self, value: Dim) -> Range:
        """The least and the largest that an integer surely is, in some iterations of the loops around; else none."""
        if isinstance(value, int):
            return value, value
        factors = [atoms for atoms, _ in value.terms if atoms]
        if any(len(atoms) > 1 or atoms[0] not in self.iterations for atoms in factors):
            return INDEX_BOUND, -INDEX_BOUND
        return dims.bounds(value, self.iterations.__getitem__)

    def says_reached(self, value: Dim, end: int) -> str:
        """What such an integer is, in words; of the two ends, this one."""
        return f"is {value}" if isinstance(value, int) else f"reaches {self.reached(value)[end]}"

    def last(self, value: Dim) -> int | None:
        """The largest that an integer may be, where loops that are known at build decide it; else None."""
        settled = self.settled(value)
        known = all(extent in self.turns for extent in dims.extents([settled]))
        return dims.bounds(settled, self.turns.__getitem__)[1] if known else None

    def nonnegative(self, dim: Dim) -> bool:
        """The expression cannot be negative here."""
        if isinstance(dim, int):
            return dim >= 0
        return dim in self.nonneg or all(c >= 0 and all(map(self._nonnegative, atoms)) for atoms, c in dim.terms)

    def _nonnegative(self, atom: Atom) -> bool:
        if isinstance(atom, Extent):
            return atom.name not in self.atoms or dims.of(atom) in self.nonneg
        return self.nonnegative(atom.numerator)

    def length(
        self, dim: Dim, maximum: int, variable: str, span: Span | None, *, above: str, trusted: bool = False
    ) -> Dim:
        """A run-time length as a dimension: itself if sizes alone give it, else a bound extent."""
        size = self.size(dim)
        if size is not None and (trusted or self.nonnegative(size)):
            return size
        value = self.value(dim, span)
        most = min(maximum, max(0, Ranges().of(value)[1]))

        def bound() -> Dim:
            extent = Extent(self.fresh("n"), most)
            self.emit(index.ExtentBind(value, extent, INDEX, above, variable, span=span))
            return dims.of(extent)

        return self.once(("length", dim, most), bound)

    def shown(self, type_: Type) -> str:
        """A type in a message."""
        return self.typed(type_.dtype, type_.shape) if isinstance(type_, TensorType) else str(type_)

    def typed(self, dtype: DType, sizes: Iterable[Dim | None]) -> str:
        """A type in a message, by its sizes; one without a name in the source is `?`."""
        inner = ", ".join("?" if size is None else self.shown_size(size) for size in sizes)
        return f"{dtype}[{inner}]" if inner else str(dtype)

    def shown_size(self, size: Dim) -> str:
        """A size in a message; `?` where it has no name in the source."""
        return "?" if dims.extents([size]) - set(self.binding.extents.values()) else str(size)

    def checked_size(self, size: Dim, name: str, span: Span | None) -> Dim:
        """A size, checked at run time not to be negative where build cannot tell.  Raises Refused."""
        if dims.maximum(size) < 0:
            raise refused("size-negative", f"this size, {size}, is negative", span)
        if dims.bounds(size)[0] < 0:
            self.once(("size", size), lambda: self.emit(not_negative(self.value(size, span), size, name, span)))
        return size

    def emit_size(self, dim: Dim) -> Value:
        """A size as an index value, in the current block."""
        return self.emit(index.IndexConst(dim) if isinstance(dim, int) else index.IndexSize(dim)).result

    def floored(self, node: s.Binary, a: Dim, b: Dim) -> Dim:
        """`a / b` or `a % b` of run-time values, toward minus infinity.  Raises Refused."""
        if isinstance(b, int) and b < 1:
            raise refused("index-division", f"'{node.span.text}' divides by {b}", node.right.span)
        if isinstance(a, int) and isinstance(b, int):
            return a // b if node.op == "/" else a % b
        return self.once((node.op, a, b), lambda: self._divided(node, a, b))

    def _divided(self, node: s.Binary, a: Dim, b: Dim) -> Dim:
        divisor = self.value(b, node.span)
        if Ranges().of(divisor)[0] < 1:
            self.check(b, 1, HIGH, written(node.right), node.span)
        if node.op == "/" and self.size(a) is not None and self.size(b) is not None:
            return dims.floor_div(a, b)
        make = index.IndexDiv if node.op == "/" else index.IndexMod
        op = self.emit(make(self.value(a, node.span), divisor, span=node.span))
        low, high = Ranges().of(op.result)
        most = high if dims.maximum(a) < INDEX_BOUND or node.op == "%" else INDEX_BOUND
        found = self.atom(op.result, max(0, min(most, INDEX_BOUND)))
        if low >= 0 or self.nonnegative(a):
            self.nonneg.add(found)
        return found

    def shaped(self, value: Value, shape: tuple[Dim, ...], span: Span | None) -> Value:
        """The value, checked at run time to have this shape where build cannot tell."""
        if value.shape == shape:
            return value
        make = partial(index.AssertShape, value, list(shape), span=span, hint=value.hint)
        return self.once(("shape", value, shape), lambda: self.emit(make()).result)


def not_negative(value: Value, size: Dim, name: str, span: Span | None) -> Op:
    """Refuse the step with OIC_ERR_SHAPE where a size, the value here, is negative."""
    return index.in_shape(value, 0, dims.maximum(size), name, span=span)
