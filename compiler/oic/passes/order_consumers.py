"""Keep consumers in order where running them at once could show.

    parallel                                           parallel
      consumers() { state.store(%K, ..) .. }             consumers() { state.store(%K, ..) ..
      consumers() { exp .. }                      =>                   state.load(%K) .. }
      consumers() { state.load(%K) .. }                  consumers() { exp .. }

Two regions become one, and run in order, if one writes a state that the other touches; or if the
first may refuse the step and the second has effects, which a refusal must not find made.  A region
between two of one group joins it where a refusal of the later one would otherwise overtake its own
refusal or its effects.  What is left may run at once, in any order, and gives the same answer and
the same refusal as in source order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from oic.ir.control import Parallel, Yield
from oic.ir.core import Block, Op, Value
from oic.ir.facts import Facts
from oic.ir.module import Module
from oic.passes.serialize import inlined


def order_consumers(module: Module) -> None:
    """Merge the regions that must stay in order, in every function."""
    for func in module.functions():
        if not any(isinstance(op, Parallel) for op in func.body.all_ops()):
            continue
        mapping: dict[Value, Value] = {}
        _block(func.body, Facts(), mapping)
        func.body.replace(mapping)


def _block(block: Block, facts: Facts, mapping: dict[Value, Value]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        if isinstance(op, Parallel):
            ops += _ordered(op, facts, mapping)
            continue
        for region in op.regions:
            with facts.inside(region):
                _block(region, facts, mapping)
        facts.learn(op)
        ops.append(op)
    block.set_ops(ops)


def _ordered(op: Parallel, facts: Facts, mapping: dict[Value, Value]) -> list[Op]:
    """The op with a region a group; its ops themselves if there is but one."""
    groups = [sorted(g) for g in grouped([_Region(r, facts) for r in op.consumers])]
    if len(groups) == 1:
        return inlined(op, mapping)
    merged: list[Block] = []
    results: list[Value] = []
    for group in groups:
        regions = [op.consumers[i] for i in group]
        results += [v for r in regions for v in op.results_of(r)]
        given = [v for r in regions for v in r.terminator.operands]
        merged.append(Block(ops=[*(o for r in regions for o in r.ops[:-1]), Yield(given)]))
    names = ["_".join(op.names[i] for i in group) for group in groups]
    new = Parallel(names, merged, span=op.span)
    for value in results:
        value.owner = new
    new.results = results
    return [new]


@dataclass
class _Region:
    """What matters of a region: the states it touches, and whether it may refuse the step."""

    block: Block
    facts: Facts
    reads: set[Value] = field(default_factory=set)
    writes: set[Value] = field(default_factory=set)
    refuses: bool = False

    def __post_init__(self) -> None:
        for op in self.block.ops:
            self.reads |= set(op.touched("read"))
            self.writes |= set(op.touched("write"))
        self.refuses = _may_refuse(self.block, self.facts)

    def before(self, later: _Region) -> bool:
        """This region must be done when the later one starts."""
        meet = self.writes & (later.reads | later.writes) or self.reads & later.writes
        return bool(meet) or (self.refuses and bool(later.writes))


def grouped(regions: list[_Region]) -> list[set[int]]:
    """Positions of regions that run in order, group by group, in the order of their first."""
    groups = [{i} for i in range(len(regions))]
    while True:
        pair = next((p for p in combinations(groups, 2) if _joined(*p, regions)), None)
        if pair is None:
            return groups
        pair[0].update(pair[1])
        groups.remove(pair[1])


def _joined(a: set[int], b: set[int], regions: list[_Region]) -> bool:
    """The two groups cannot be apart."""
    ordered = any(regions[min(x, y)].before(regions[max(x, y)]) for x in a for y in b)
    return ordered or _overtakes(a, b, regions) or _overtakes(b, a, regions)


def _overtakes(group: set[int], other: set[int], regions: list[_Region]) -> bool:
    """A refusal of the group would come before what another region does earlier in the source."""
    return any(
        min(group) < j < k and regions[k].refuses and (regions[j].refuses or regions[j].writes)
        for j in other
        for k in group
    )


# ---------------------------------------------------------------- refusals


def _may_refuse(block: Block, facts: Facts) -> bool:
    """Some op of the block, or nested in it, can end the step."""
    with facts.inside(block):
        for op in block.ops:
            if facts.refuses(op) or any(_may_refuse(region, facts) for region in op.regions):
                return True
            facts.learn(op)
    return False
