"""The values of sizes and extents, with which dimensions and expressions of a graph are evaluated.

`bind` (in `bind.py`) makes a `Binding`.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, takewhile

from oic.check.report import DiagnosticCollector, Refused, refused
from oic.check.resolved import Resolved
from oic.check.sizes import evaluate
from oic.check.symbols import Variable
from oic.diagnostics import Diagnostic, Span, did_you_mean
from oic.dtypes import DType
from oic.ir import dims
from oic.ir.dims import Dim, Extent
from oic.model import Model
from oic.syntax import tree as s

RESERVE = 64 << 30  # bytes of address space a growing variable may reserve on a host (SPEC 8.4)


def check_bytes(name: str, dtype: DType, sizes: Iterable[Dim | None], span: Span, hint: str | None = None) -> None:
    """Raises Refused for a tensor that no machine can hold."""
    nbytes = dtype.nbytes(math.prod(dims.maximum(d) for d in sizes if d is not None))
    if nbytes > RESERVE:
        what = f"'{name}' takes {nbytes >> 30} GiB, and at most {RESERVE >> 30} are possible"
        raise refused("size-limit", what, span, hint=hint)


@dataclass
class Binding:
    """Everything known of a resolved graph before a statement is lowered.

    sizes      every sizevar that has a value
    extents    every extent, by name
    refused    what the checks refused, in source order: no more is said about these places
    broken     sizes and extents without a value for a reason that was reported
    pinned     extents that `@entry(N=1)` fixes, while that entry is lowered
    unbound    extents that no input of the entry being lowered gives a value
    """

    resolved: Resolved
    model: Model | None
    sizes: dict[str, int] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)
    report: DiagnosticCollector = field(default_factory=DiagnosticCollector)
    refused: list[Span] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    pinned: Mapping[str, int] = field(default_factory=dict)
    unbound: frozenset[str] = frozenset()

    @property
    def variables(self) -> Iterator[Variable]:
        """The variables of the sections that can be used, in source order."""
        return (v for v in self.resolved.symbols.variables.values() if not v.refused)

    def is_refused(self, span: Span) -> bool:
        """Something inside this place was refused by the checks."""
        first = bisect_left(self.refused, span.start, key=lambda r: r.start)
        inside = takewhile(lambda r: r.start <= span.end, islice(self.refused, first, None))
        return any(r.end <= span.end for r in inside)

    def value(self, expr: s.Expr) -> Dim | None:
        """The value of an expression over sizes; None where it is refused."""
        with self.report.refusing():
            return evaluate(expr, self.size)
        return None

    def bound(self, expr: s.Expr, what: str, least: int = 1, most: int | None = None) -> int | None:
        """The value of a bound, which is known at build and within limits; None where it is refused."""
        value = self.value(expr)
        if value is None or (isinstance(value, int) and least <= value and (most is None or value <= most)):
            return value
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        wrong = f"must be {limits}, but is {value}" if isinstance(value, int) else "is not known at build"
        self.report.error("bound-range", f"{what} {wrong}", expr.span)
        return None

    def size(self, name: s.Name) -> Dim:
        """The value of a name that is a size.  Raises `Refused`."""
        if name.name in self.pinned:
            return self.pinned[name.name]
        if name.name in self.unbound or name.name in self.broken:
            raise Refused(None)  # reported: by the checks of extents, or where it gets its value
        if name.name in self.extents:
            return dims.of(self.extents[name.name])
        if name.name in self.sizes:
            return self.sizes[name.name]
        raise Refused(self._missing(name))

    def _missing(self, name: s.Name) -> Diagnostic | None:
        """The error for a size without a value, once; of one made of others, the one that lacks it."""
        root = name.name
        made = self.resolved.symbols.sizes
        while root in made:
            parts = (n.name for n in s.names_in(made[root].value))
            root = next(n for n in parts if n not in self.sizes)
        if root in self.broken:
            return None
        self.broken |= {root, name.name}
        made_of = f", of which '{name.name}' is made," if root != name.name else ""
        what = f"size '{root}'{made_of} has no value"
        return Diagnostic("size-missing", what, name.span, hint=self._where_from(root))

    def _where_from(self, size: str) -> str:
        """What gives a size its value."""
        near = did_you_mean(size, [n for n in (*self.sizes, *self.extents) if n != size])
        if near is not None:
            return near
        hint = f"give it with --set {size}=…, in 'sizes', or in the model"
        for d in self.resolved.graph.declarations:
            if d.kind == "dynamic" and any(isinstance(n, s.Name) and n.name == size for n in d.dims):
                return f"{hint}; if it varies: '{d.name}: {d.type_span.text} @max({size}=…);'"
        return hint

    def dims_of(self, declaration: s.Declaration) -> tuple[Dim | None, ...]:
        """The sizes of a declaration.  Raises `Refused`; then every name without a value has been reported."""
        if None in [self.value(name) for name in s.names_in(declaration.dims)]:
            raise Refused(None)
        found: list[Dim | None] = []
        for dim in declaration.dims:
            size = None if isinstance(dim, s.Unknown) else evaluate(dim, self.size)
            if size is not None and dims.maximum(size) < 0:
                raise refused("size-negative", f"dimension {size} is negative", dim.span)
            found.append(size)
        return tuple(found)
