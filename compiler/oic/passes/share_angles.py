"""Cosines and sines of positions are computed once for all that is turned by them.

    for(..) {                                             %t = rope.angles {shape=[N], dims=8, pos=%pos} : f32[N, 8]
      %a = rope(%q) {pos=%pos}                            for(..) {
      %b = rope(%k) {pos=%pos}                      ->      %a = rope(%q, turns=%t)
    }                                                       %b = rope(%k, turns=%t)
                                                          }

Where there are several, or one in a loop that changes nothing of it.
"""

from collections.abc import Hashable

from oic.ir import dims
from oic.ir.control import For
from oic.ir.core import Block, Op, home_of
from oic.ir.likeness import likeness
from oic.ir.module import Module
from oic.operators.position import Rope, RopeAngles


def share_angles(module: Module) -> None:
    """Make the angles of every function's ropes ops of their own, each before all that take it."""
    for func in module.functions():
        found: dict[tuple[Block, Hashable], list[tuple[Op, Rope, RopeAngles]]] = {}
        for op in func.body.all_ops():
            if isinstance(op, Rope) and op.turns is None:
                angles = op.angles()
                at = _place(op, angles, func.body)
                found.setdefault((at.home, likeness(angles)), []).append((at, op, angles))
        for (block, _), ropes in found.items():
            at, first, angles = ropes[0]
            if len(ropes) > 1 or at is not first:
                block.insert(block.ops.index(at), angles)
                angles.result.hint = "turns"
                for _, op, _ in ropes:
                    op.turns, op.freqs, op.pos, op.base = angles.result, None, 0, 10000.0


def _place(op: Rope, angles: RopeAngles, body: Block) -> Op:
    """Before what its angles can be computed: the op, or a loop around it that changes nothing they are made of."""
    at: Op = op
    known = dims.extents(size for arg in body.args for size in arg.shape)
    if dims.extents(angles.shape) <= known:
        while isinstance(loop := at.home.owner, For) and all(home_of(v) is not at.home for v in angles.operands):
            at = loop
    return at
