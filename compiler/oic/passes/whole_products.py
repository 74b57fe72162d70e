"""Products of the same rows with parts of one constant become one product, of which the parts are taken.

    %a, %b = split(%w) {axis=1, sizes=[32, 64]}          %y = matmul(%x, %w)
    %p = matmul(%x, %a)                            ->    %p, %q = split(%y) {axis=1, sizes=[32, 64]}
    %q = matmul(%x, %b)

Each element is the same sum.  A whole matrix may be stored and laid out as its product likes; a part is read where it
lies.
"""

from __future__ import annotations

from oic.ir.core import Block, Op, Value
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect
from oic.operators.base import Operator
from oic.operators.shape import Split


def whole_products(module: Module) -> None:
    """Replace all products of parts of a constant that nothing else reads."""
    mapping: dict[Value, Value] = {}
    for func in module.functions():
        for block in func.body.walk():
            for op in list(block.ops):
                if isinstance(op, Split) and (made := _whole(op, block, mapping)) is not None:
                    gone = [op, *(part.users[0] for part in op.results)]
                    at = min(block.ops.index(product) for product in gone[1:])
                    ops = [*block.ops[:at], *made, *block.ops[at:]]
                    block.set_ops([o for o in ops if not any(o is g for g in gone)])
    if mapping:
        module.top.replace(mapping)


def _whole(split: Split, block: Block, mapping: dict[Value, Value]) -> list[Op] | None:
    """The product and the split of its result that stand for those of the parts, which are mapped to its parts."""
    if not isinstance(split.x.op, Constant | ConstantSelect) or split.x.tensor.rank != 2:
        return None
    users = [part.users for part in split.results]
    if any(len(found) != 1 or found[0].block is not block for found in users):
        return None
    products = [found[0] for found in users]
    first = products[0]
    whole = first.of_whole(split, products) if isinstance(first, Operator) else None
    if whole is None:
        return None
    whole.result.hint = "_".join(product.result.hint for product in products)
    parts = Split(whole.result, whole.result.tensor.rank - 1, list(split.sizes), span=products[0].span)
    for product, part in zip(products, parts.results, strict=True):
        part.hint = product.result.hint
        mapping[product.result] = part
    return [whole, parts]

