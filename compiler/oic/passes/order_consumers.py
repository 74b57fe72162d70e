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

from oic.ir.control import Parallel, Yield
from oic.ir.core import Block, Op, Value
from oic.ir.facts import Facts, FactWalk
from oic.ir.module import Module
from oic.ir.ranges import may_refuse
from oic.passes.serialize import inlined


def order_consumers(module: Module) -> None:
    """Merge the regions that must stay in order, in every function."""
    for func in module.functions():
        if not any(isinstance(op, Parallel) for op in func.body.all_ops()):
            continue
        walk = _Consumers()
        walk.block(func.body)
        func.body.replace(walk.mapping)


class _Consumers(FactWalk):
    """Puts those in order that have to be; `mapping` has what takes the place of their results."""

    def __init__(self) -> None:
        super().__init__()
        self.mapping: dict[Value, Value] = {}

    def kept(self, op: Op) -> list[Op]:
        return _ordered(op, self.facts, self.mapping) if isinstance(op, Parallel) else super().kept(op)


def _ordered(op: Parallel, facts: Facts, mapping: dict[Value, Value]) -> list[Op]:
    """The op with a region a group; its ops themselves if there is but one."""
    groups = [sorted(g) for g in grouped([_Region(r, facts) for r in op.consumers])]
    if len(groups) == 1:
        return inlined(op, mapping)
    merged: list[Block] = []
    results: list[Value] = []
    results_of = dict(op.given)
    for group in groups:
        regions = [op.consumers[i] for i in group]
        results += [v for r in regions for v in results_of[r]]
        given = [v for r in regions for v in r.terminator.operands]
        merged.append(Block(ops=[*(o for r in regions for o in r.ops[:-1]), Yield(given)]))
    names = ["_".join(op.names[i] for i in group) for group in groups]
    new = Parallel(names, merged, span=op.span)
    for value in results:
        value.give_to(new)
    new.results = results
    return [new]


class _Region:
    """What matters of a region: the states that it touches and writes, and whether it may refuse the step."""

    def __init__(self, block: Block, facts: Facts) -> None:
        self.touches, self.writes = ({s for op in block.ops for s in op.touched(how)} for how in ("", "write"))
        with facts.inside(block):
            self.refuses = may_refuse(block.ops, facts)


Groups = list[set[int]]
"""Which regions run in order, by their positions: of each region the group that it is in."""


def _join(groups: Groups, i: int, j: int) -> bool:
    """Make one group of those of two regions; whether they were two."""
    less, more = sorted((groups[i], groups[j]), key=len)
    if less is more:
        return False
    more |= less
    for k in less:
        groups[k] = more
    return True


def grouped(regions: list[_Region]) -> list[set[int]]:
    """Positions of regions that run in order, group by group, in the order of their first."""
    groups = [{i} for i in range(len(regions))]
    written = set[Value]().union(*(region.writes for region in regions))
    touching: dict[Value, int] = {}  # one of the regions that touch a state
    refusing: list[int] = []  # those so far that have to be done before the next with effects
    for i, region in enumerate(regions):
        for state in written & region.touches:
            _join(groups, touching.setdefault(state, i), i)
        if region.writes:
            for k in refusing:
                _join(groups, k, i)
            refusing = refusing[:1]
        if region.refuses:
            refusing.append(i)
    while _overtaking(regions, groups):
        pass
    return list({id(group): group for group in groups}.values())


def _overtaking(regions: list[_Region], groups: Groups) -> bool:
    """Regions joined that a refusal of a group around them would come before, in spite of the source; whether any."""
    last = {id(groups[k]): k for k, region in enumerate(regions) if region.refuses}
    joined, reach = False, -1  # as far as a refusal of the groups so far
    for j, region in enumerate(regions):
        if j < reach and (region.refuses or region.writes):
            joined |= _join(groups, j, reach)
        reach = max(reach, last.get(id(groups[j]), -1))
    return joined
