"""Compute chains of elementwise operators in one pass over their elements.

    %a = silu(%g)                  %y = fused([%g, %u]) {
    %y = mul(%a, %u)      =>         ^(%0: f32, %1: f32):
      (%a has no other user)           %a = silu(%0)
                                       %y = mul(%a, %1)
                                       yield([%y])
                                   }

An operator joins the ops that use its result if nothing else uses it, all have one shape, all
are in the same block, and nothing between them writes a state that the operator's operands may
look into or bars movement.  Operators move later, never earlier.

An operator that is a long chain of operations (an elementary function) does not join another that
waits for it: a processor works on the next elements while it waits, and sees too few of them
where each is two chains.
"""

import math
from bisect import bisect_right

from oic.ir.control import Yield
from oic.ir.core import Block, Op, clone_op
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.operators.fused import region

LARGEST = 24  # ops in one region: more spill registers
FEW = 32  # elements: below, one loop costs less than two


def fuse(module: Module) -> None:
    """Fuse in every block; users come before what they use, so that chains grow backwards."""
    for block in list(module.blocks()):  # without the regions made here
        groups = _groups(block)
        last = {members[-1]: members for members in groups}
        inside = {op for members in groups for op in members[:-1]}
        block.set_ops([_region(last[op]) if op in last else op for op in block.ops if op not in inside])


def _groups(block: Block) -> list[list[Op]]:
    """Chains to fuse: lists of ops in order, the last of which gives the only result."""
    position = {op: i for i, op in enumerate(block.ops)}
    barriers = barriers_of(block)
    taken: set[Op] = set()
    groups: list[list[Op]] = []
    for root in reversed(block.ops):
        if root in taken or not _joins(root):
            continue
        members = [root]
        frontier = [root]
        awaited = {root} if _is_long(root) else set()  # long ones and what they wait for
        while frontier and len(members) < LARGEST:
            for value in frontier.pop().operands:
                op = value.op
                if op is None or op in taken or op in members or op.block is not block:
                    continue
                if not _joins(op) or any(user not in members for user in value.users):
                    continue
                if value.shape != root.result.shape or crosses(barriers, position[op], position[root]):
                    continue
                waits = not awaited.isdisjoint(value.users)
                if waits and _is_long(op):
                    continue
                if waits or _is_long(op):
                    awaited.add(op)
                members.append(op)
                frontier.append(op)
        if len(members) > 1:
            taken.update(members)
            groups.append(sorted(members, key=position.__getitem__))
    return groups


def _joins(op: Op) -> bool:
    """Elementwise, one result, no operand that is read as a setting."""
    if not isinstance(op, Operator) or not op.elementwise or len(op.results) != 1:
        return False
    return all(isinstance(v.type, TensorType) for v in op.operands)


def _is_long(op: Op) -> bool:
    """Elements of several vectors, each a long chain of operations."""
    return isinstance(op, Operator) and op.long and math.prod(op.result.tensor.maximum) > FEW


def barriers_of(block: Block) -> list[int]:
    """Positions of ops that others do not pass."""
    return [i for i, op in enumerate(block.ops) if not op.effect_free or op.regions]


def crosses(barriers: list[int], first: int, last: int) -> bool:
    """An effect lies between two positions: what the first reads might change."""
    at = bisect_right(barriers, first)
    return at < len(barriers) and barriers[at] < last


def _region(members: list[Op]) -> Op:
    """The fused op of a chain."""
    root = members[-1]
    operands = dict.fromkeys(value for op in members for value in op.operands)
    inputs = [value for value in operands if value.op not in members]
    body = Block()
    mapping = {value: body.argument(TensorType(value.dtype), value.hint) for value in inputs}
    for op in members:
        copy = clone_op(op, mapping)
        copy.results[0].type = TensorType(op.result.dtype)
        body.append(copy)
    body.append(Yield([mapping[root.result]]))
    return region(inputs, body, root)
