"""Products of the same rows with parts of one constant become one product, of which the parts are taken.

    %a, %b = split(%w) {axis=1, sizes=[32, 64]}          %y = matmul(%x, %w)
    %p = matmul(%x, %a)                            ->    %p, %q = split(%y) {axis=1, sizes=[32, 64]}
    %q = matmul(%x, %b)

Each element is the same sum.  A whole matrix may be stored and laid out as its product likes; a part is read where it
lies.
"""

from collections.abc import Sequence

from oic.ir.core import Op, Value
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect
from oic.operators.base import Operator, Product
from oic.operators.shape import Split

LONGEST = 56  # characters of a name: C tells names by 63, and a number may follow


def whole_products(module: Module) -> None:
    """Replace all products of parts of a constant that nothing else reads."""
    mapping: dict[Value, Value] = {}
    for split in [op for op in module.all_ops() if isinstance(op, Split)]:
        _join(split, mapping)
    module.top.replace(mapping)


def _join(split: Split, mapping: dict[Value, Value]) -> None:
    """Replace the products of the parts of a constant by one, to the parts of whose result theirs are mapped."""
    if not isinstance(split.x.op, Constant | ConstantSelect) or split.x.tensor.rank != 2:
        return
    users = [part.users for part in split.results]
    if any(len(found) != 1 or found[0].block is not split.block for found in users):
        return
    ops = [found[0] for found in users]
    products = [p for op in ops if isinstance(op, Operator) and (p := op.product()) is not None]
    if [p.w for p in products] != split.results or products[0].axis != split.axis % 2:
        return
    if len({(type(op), op.kernel, p.x, p.axis) for op, p in zip(ops, products, strict=True)}) > 1:
        return
    biases = [product.b for product in products]
    source = biases[0].op if biases[0] is not None else None
    whole_b = source.x if isinstance(source, Split) and source.results == biases else None
    if whole_b is not None or not any(b is not None for b in biases):
        one_product(ops, products[0], split.x, whole_b, mapping)
        split.home.set_ops([op for op in split.home.ops if op is not split])


def name_of(parts: Sequence[str]) -> str:
    """The name of what several become: their names, or the first and how many more where these are long."""
    name = "_".join(parts)
    more = f"_and_{len(parts) - 1}_more"
    return name if len(name) <= LONGEST else parts[0][: LONGEST - len(more)] + more


def one_product(
    ops: Sequence[Op], product: Product, w: Value, b: Value | None, mapping: dict[Value, Value], made: Sequence[Op] = ()
) -> Operator:
    """Put a product with the matrices of several where the first is, and the parts that their results are mapped to.

    product   of the first of the ops
    made      ops that come before it: they give its operands
    """
    first, block = ops[0], ops[0].home
    whole = product.of(w, b)
    whole.kernel = first.kernel
    whole.result.hint = name_of([op.result.hint for op in ops])
    sizes = [op.result.shape[-1] for op in ops]
    parts = Split(whole.result, whole.result.tensor.rank - 1, sizes, span=first.span)
    for op, part in zip(ops, parts.results, strict=True):
        part.hint = op.result.hint
        mapping[op.result] = part
    at = min(map(block.ops.index, ops))
    block.set_ops([op for op in [*block.ops[:at], *made, whole, parts, *block.ops[at:]] if op not in ops])
    return whole
