"""What is done to the results of an operator alone becomes part of it, where it can do that as it stores them.

    %s = conv2d(%x, %w, %b) {acc=i32}
    %y = requantize(%s, %m, %n) {to=i8}        =>      %y = conv2d(%x, %w, %b, %m, %n) {acc=i32, to=i8}
      (%s has no other user)

What the operator alone would have stored needs no memory then, and on several threads does not go from one core's cache
to another's.  The op moves to where the epilogue is, if it passes nothing that bars movement.
"""

from oic.ir.core import Op, Value
from oic.ir.module import Module
from oic.operators.base import Operator
from oic.passes.fuse import barriers_of, crosses


def fuse_epilogues(module: Module) -> None:
    """Fuse in every block."""
    for block in module.blocks():
        position: dict[Op, int] = {}
        barriers = barriers_of(block)
        ops: list[Op | None] = list(block.ops)
        joined: dict[Value, Value] = {}
        for at, op in enumerate(block.ops):
            position[op] = at
            if not isinstance(op, Operator) or not op.operands:
                continue
            value = op.operands[0]
            before = value.op
            if not isinstance(before, Operator) or before not in position or value in joined or value.users != [op]:
                continue
            if op.operands.count(value) > 1 or crosses(barriers, position[before], at):
                continue
            made = before.with_epilogue(op)
            if made is not None:
                ops[position[before]], ops[at] = None, made
                joined[op.results[0]] = made.result
        block.set_ops(op for op in ops if op is not None)
        block.replace(joined)
