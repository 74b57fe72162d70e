"""Drop checks that earlier ones imply.

    check.range(%e) {low=%p, high=512}         check.range(%e) {low=%p, high=512}
    check.range(%p) {low=0, high=%e}      =>   check.range(%p) {low=0, high=%e}
    check.range(%e) {low=0, high=512}

A passed check leaves two facts, `value - low >= 0` and `high - value >= 0`.  A check goes if each
of its sides is a known fact plus something that its range shows not to be negative.  Sizes bound to
one and the same integer need no comparison.
"""

from __future__ import annotations

from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim, Extent
from oic.ir.module import Module
from oic.ops.index import AssertShape, CheckRange, ExtentBind
from oic.ops.ranges import Linear, added, linear, linear_range

Facts = list[Linear]


def known_checks(module: Module) -> None:
    """Walk every function in order, facts of outer blocks holding in inner ones."""
    for func in module.functions():
        bound = {o.extent: o.value for o in func.body.all_ops() if isinstance(o, ExtentBind)}
        for op in func.body.all_ops():
            if isinstance(op, AssertShape):
                pairs = zip(op.x.shape, op.shape, strict=True)
                op.checked = op.checked or all(_equal(a, b, bound) for a, b in pairs)
        _block(func.body, [])


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
            sides = _sides(op.value, op.low, op.high)
            if all(_implied(side, facts) for side in sides):
                continue
            facts += sides
        elif isinstance(op, ExtentBind):
            sides = _sides(op.value, 0, op.extent.maximum)
            op.checked = op.checked or all(_implied(side, facts) for side in sides)
            facts += sides
        for region in op.regions:
            _block(region, list(facts))
        kept.append(op)
    block.set_ops(kept)


def _sides(value: Value, low: int | Value, high: int | Value) -> Facts:
    """What a passed check shows not to be negative."""
    middle = linear(value)
    return [added(middle, _linear(low), -1), added(_linear(high), middle, -1)]


def _linear(bound: int | Value) -> Linear:
    return linear(bound) if isinstance(bound, Value) else {None: bound} if bound else {}


def _implied(side: Linear, facts: Facts) -> bool:
    if linear_range(side)[0] >= 0:
        return True
    return any(linear_range(added(side, fact, -1))[0] >= 0 for fact in facts)
