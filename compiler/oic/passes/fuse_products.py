"""What elementwise operators, or an argmax, do to the result of a product alone is done as its kernel computes it.

    %u = linear(%h, %w) {kernel="linear_q8"}        %y = fused([%h, %w, %x, %b]) {
    %y = fused([%x, %u, %b]) {                        ^(%0: f32[N, 8], %1: f32[4, 8] q8 panels, %2: f32[N, 4], …):
      ^(%0: f32, %1: f32, %2: f32):                     %u = linear(%0, %1) {kernel="linear_q8"}
        %a = add(%1, %2)                    =>          %a = add(%u, %3)
        %y = add(%0, %a)                                %y = add(%2, %a)
        yield([%y])                                     yield([%y])
    }                                                 }

The product's result has no memory: sums go from the stack, where they come to be, through the operators to where these
store, and on several threads each goes on with what it has computed.  Kernels that can do so (`Kernel.then`) go through
all of K before they hand anything on, which is what they would have stored: every bit is as before.  Element by element
it does not pay for all of them (`Kernel.joins`).

What chooses an element of each row, an argmax, takes parts of rows in any order and from any thread: its kernel for
that (`Kernel.chooses`) keeps where the best of each row so far is, in the memory of its own result.

Between the two there is nothing that has memory of its own, so that none is needed for longer than before.  Elements
of rows whose ends fill no registers are better gone through all at once, after the product.
"""

from oic import dtypes
from oic.ir.control import Yield
from oic.ir.core import Block, Op, Value, clone_op
from oic.ir.encodings import ROWS
from oic.ir.module import Module
from oic.ir.strides import is_dense
from oic.ir.types import TensorType
from oic.memory.views import strides_of
from oic.operators.base import Operator
from oic.operators.fused import Fused, region


def fuse_products(module: Module) -> None:
    """Fuse in every block."""
    for block in list(module.blocks()):  # without the regions made here
        last, place = None, 0  # the op before that has memory or an effect
        ops: list[Op] = []
        for op in block.ops:
            if isinstance(last, Operator) and _hands_on(last) and _continues(op, last):
                del ops[place]
                op = _region(last, op)
            if not _is_nothing(op):
                last, place = op, len(ops)
            ops.append(op)
        block.set_ops(ops)


def _is_nothing(op: Op) -> bool:
    """The op gives no value that has memory of its own, and has no effect."""
    tensors = any(isinstance(r.type, TensorType) for r in op.results)
    return not op.regions and op.effect_free and (op.view or not tensors)


def _hands_on(op: Operator) -> bool:
    """A product whose kernel can hand on its results, of f32; x has no gaps."""
    if not op.kernels or not op.chosen().then or op.result.dtype is not dtypes.f32:
        return False
    return is_dense(op.operands[0].shape, strides_of(op.operands[0]))


def _continues(op: Op, product: Operator) -> bool:
    """The op alone takes the product's result, in parts of rows, or element by element.

    Then its elements have bytes of their own, and are those of one row, or of rows that fill registers.
    """
    value = product.result
    if op.view or value.users != [op]:
        return False
    if isinstance(op, Operator) and _choosing(op):
        return True
    if not product.chosen().joins or not (isinstance(op, Fused) or (isinstance(op, Operator) and op.c is not None)):
        return False
    *outer, columns = value.shape
    fills = isinstance(columns, int) and columns % ROWS == 0
    if not op.takes_elements(value) or any(n != 1 for n in (outer[:-1] if fills else outer)):
        return False
    if not all(isinstance(v.type, TensorType) for v in op.operands):
        return False
    return len(op.results) == 1 and op.result.shape == value.shape and not op.result.dtype.packed


def _choosing(op: Operator) -> str:
    """The kernel that takes the results of a product as it hands them on; "": there is none."""
    return next((k.name for k in op.kernels if k.chooses and k.fits(op)), "")


def _region(product: Operator, op: Op) -> Fused:
    """A product and the op that takes its result, in one."""
    inputs = [v for v in dict.fromkeys([*product.operands, *op.operands]) if v is not product.result]
    body = Block()
    mapping: dict[Value, Value] = {v: body.argument(v.type, v.hint) for v in inputs}
    body.append(clone_op(product, mapping))
    inner, ends = [op], [op.result]
    if isinstance(op, Fused):
        mapping |= {arg: mapping[v] for arg, v in zip(op.body.args, op.inputs, strict=True)}
        inner, ends = op.body.ops[:-1], op.body.terminator.operands
    for step in inner:
        copy = body.append(clone_op(step, mapping))
        copy.workers, copy.kernel = 1, _choosing(step) if isinstance(step, Operator) else ""  # the product's share it
        copy.result.type = TensorType(copy.result.dtype, op.result.shape)
    body.append(Yield([mapping[v] for v in ends]))
    return region(inputs, body, op)
