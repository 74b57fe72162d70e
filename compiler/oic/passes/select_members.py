"""A member that is cut out of stacked constants, and brought into shape, is selected.

    %c = slice(%w) {axis=0, start=%l, end=%2, size=1}
    %m = reshape(%c) {shape=[32, 32]}                    =>    %m = constant.select(%w, [%l])

Kernels may then read it in an encoding: selecting matrices commutes with the order of their elements, cutting does not.
What is cut may be a member itself, of a family whose members are stacks.
"""

import math

from oic.ir.core import Op, Value
from oic.ir.index import IndexConst
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect
from oic.ir.types import IndexType
from oic.operators.shape import Reshape, Slice


def select_members(module: Module) -> None:
    """Replace every slice and reshape that is a selection."""
    mapping: dict[Value, Value] = {}
    for block in module.blocks():
        cuts = {op: cut for op in block.ops if (cut := _selecting(op)) is not None}
        block.set_ops(one for op in block.ops for one in (_selection(op, cuts[op], mapping) if op in cuts else [op]))
        gone = {cut for cut in cuts.values() if not cut.result.used and cut.block is block}
        block.set_ops(op for op in block.ops if op not in gone)
    module.top.replace(mapping)


def _selection(op: Op, cut: Slice, mapping: dict[Value, Value]) -> list[Op]:
    """The selection that replaces a reshape of a slice."""
    start, of = cut.start, cut.x.op
    known = [] if isinstance(start, Value) else [IndexConst(start, span=op.span)]
    whole, outer = (of.family, of.indices) if isinstance(of, ConstantSelect) else (cut.x, [])
    index = known[0].result if known else start
    made = ConstantSelect(whole, [*outer, index], span=op.span, hint=op.result.hint)
    mapping[op.result] = made.result
    return [*known, made]


def _selecting(op: Op) -> Slice | None:
    """The slice that a reshape makes one member of."""
    cut = op.x.op if isinstance(op, Reshape) else None
    if not isinstance(cut, Slice) or not isinstance(cut.x.op, Constant | ConstantSelect):
        return None
    stacked, start = cut.x.tensor, cut.start
    if stacked.dtype.packed and math.prod(stacked.maximum[1:]) * stacked.dtype.bits % 8:
        return None  # members of a family begin at whole bytes, those of a plain constant need not
    known = isinstance(start, int) or (isinstance(start, Value) and isinstance(start.type, IndexType))
    whole = stacked.rank >= 3 and cut.axis % stacked.rank == 0 and cut.result.shape[0] == 1
    return cut if known and whole and op.result.shape == stacked.shape[1:] else None
