"""What a campaign's graphs had in them: operators by element type, passes that did something, statuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from oic.dtypes import ALL
from oic.ir.module import Module
from oic.operators import catalog
from oic.operators.base import Operator
from oic.passes.pipeline import PIPELINE
from tests.fuzz.variants import retyped


@dataclass
class Coverage:
    """Counts over the graphs of a campaign.

    cells     operations of GRAPH, by operator and element type of the first operand of its own type
    passes    graphs that a pass changed
    statuses  refused steps
    """

    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    passes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, module: Module) -> None:
        """Count the operations of a GRAPH."""
        self.cells.update(cells(module))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """A table of the operators, what is missing of it, the passes and the statuses."""
        own = {(name, dtype.name) for name in catalog() for dtype in retyped(name)}
        made = {cell for cell in self.cells if cell in own}
        for name in catalog():
            of = {d: self.cells[name, d] for d in ALL if (name, d) in own}
            counts = " ".join(f"{d}:{n}" for d, n in of.items())
            yield f"{name:24} {sum(of.values()):6}  {counts}"
        yield f"operators {len({n for n, _ in made})} of {len(catalog())}, with element types {len(made)} of {len(own)}"
        for step in PIPELINE:
            yield f"{step.name:24} changed {self.passes[step.name]} graphs"
        refused = ", ".join(f"{n} {status}" for status, n in sorted(self.statuses.items()))
        yield f"refused steps: {refused or 'none'}"


def cells(module: Module) -> Iterator[tuple[str, str]]:
    """Operator and element type of every operation of the catalog."""
    for op in module.all_ops():
        if not isinstance(op, Operator) or not type(op).catalog:
            continue
        at = 1 if op.name == "where" else 0
        value = op.operands[at] if len(op.operands) > at else op.results[0]
        yield op.name, value.dtype.name
