"""Drop checks that earlier ones imply.

    check.range(%e) {low=%p, high=512}         check.range(%e) {low=%p, high=512}
    check.range(%p) {low=0, high=%e}      =>   check.range(%p) {low=0, high=%e}
    check.range(%e) {low=0, high=512}

A passed check leaves two facts, `value - low >= 0` and `high - value >= 0`.  A check goes if each
of its sides is a known fact plus something that its range shows not to be negative.  Sizes bound to
one and the same integer need no comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from oic.ir.control import CheckTurns
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim, Extent
from oic.ir.index import AssertShape, CheckRange, ExtentBind
from oic.ir.module import Module
from oic.ir.ranges import Linear, Ranges, added, linear, linear_range


class Facts:
    """Sums that are not negative in a block, by what they are sums of.

    Of two that differ by an integer the smaller says more.  `known` are ranges of values: checks are
    dropped here and values stay, so that they hold for the whole pass.
    """

    def __init__(self, known: Ranges, outer: Facts | None = None) -> None:
        self.known, self.outer = known, outer
        self._by_atom: dict[object, dict[frozenset[tuple[object, int]], int]] = {}

    def add(self, fact: Linear) -> None:
        """Note a sum that is not negative."""
        form = frozenset((atom, c) for atom, c in fact.items() if atom is not None)
        constant = fact.get(None, 0)
        for atom, _ in form:
            forms = self._by_atom.setdefault(atom, {})
            forms[form] = min(constant, forms.get(form, constant))

    def imply(self, side: Linear) -> bool:
        """The sum is not negative: by its range, or as it is a fact and something that is not."""
        if linear_range(side, self.known)[0] >= 0:
            return True
        return any(
            linear_range(added(side, fact, -1), self.known)[0] >= 0 for fact in self._about(side)
        )

    def _about(self, side: Linear) -> Iterator[Linear]:
        """The facts that share something with a sum; no other can bound it."""
        for atom in side:
            for forms in (facts._by_atom.get(atom, {}) for facts in self._and_outer()):
                yield from ({**dict(form), None: constant} for form, constant in forms.items())

    def _and_outer(self) -> Iterator[Facts]:
        facts: Facts | None = self
        while facts is not None:
            yield facts
            facts = facts.outer


def known_checks(module: Module) -> None:
    """Walk every function in order, facts of outer blocks holding in inner ones."""
    for func in module.functions():
        bound = {o.extent: o.value for o in func.body.all_ops() if isinstance(o, ExtentBind)}
        for op in func.body.all_ops():
            if isinstance(op, AssertShape):
                pairs = zip(op.x.shape, op.shape, strict=True)
                op.checked = op.checked or all(_equal(a, b, bound) for a, b in pairs)
        _block(func.body, Facts(Ranges()))


def _equal(a: Dim, b: Dim, bound: dict[Extent, Value]) -> bool:
    """Two sizes are one number, seen through what their extents are bound to."""
    return a == b or added(_through(a, bound), _through(b, bound), -1) == {}


def _through(size: Dim, bound: dict[Extent, Value]) -> Linear:
    """A size as a sum of multiples, extents replaced by the integers they are bound to."""
    if isinstance(size, int):
        return {None: size} if size else {}
    total: Linear = {}
    for atoms, c in size.terms:
        part: Linear = {None: 1} if not atoms else {atoms: 1}
        if len(atoms) == 1 and isinstance(atoms[0], Extent) and atoms[0] in bound:
            part = linear(bound[atoms[0]])
        total = added(total, part, c)
    return total


def _block(block: Block, facts: Facts) -> None:
    kept: list[Op] = []
    for op in block.ops:
        if isinstance(op, CheckRange):
            sides = _sides(op.value, op.low, op.high, facts.known)
            if all(facts.imply(side) for side in sides):
                continue
            _add(facts, sides)
        elif isinstance(op, ExtentBind):
            sides = _sides(op.value, 0, op.extent.maximum, facts.known)
            op.checked = op.checked or all(facts.imply(side) for side in sides)
            _add(facts, sides)
        for region in reversed(op.regions):  # of checks of turns those at the ends last: they hold afterwards
            surely = isinstance(op, CheckTurns) and region is op.ends
            _block(region, facts if surely else Facts(facts.known, facts))
        kept.append(op)
    block.set_ops(kept)


def _add(facts: Facts, sides: list[Linear]) -> None:
    for side in sides:
        facts.add(side)


def _sides(value: Value, low: int | Value, high: int | Value, known: Ranges) -> list[Linear]:
    """What a passed check shows not to be negative."""
    middle = linear(value, known)
    return [added(middle, _linear(low, known), -1), added(_linear(high, known), middle, -1)]


def _linear(bound: int | Value, known: Ranges) -> Linear:
    return linear(bound, known) if isinstance(bound, Value) else {None: bound} if bound else {}
