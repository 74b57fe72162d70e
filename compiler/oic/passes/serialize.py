"""Run consumers one after another, in source order.

    %a, %b = parallel {names=["left", "right"]}        %t = relu(%x)
      consumers() { %t = relu(%x)                      %u = exp(%x)
                    yield([%t]) }             =>         (%t replaces %a, %u %b)
      consumers() { %u = exp(%x)
                    yield([%u]) }

Extents that a region binds hold after the op, so nothing is renamed.
"""

from itertools import chain

from oic.ir.control import Parallel
from oic.ir.core import Op, Value
from oic.ir.module import Module


def serialize(module: Module) -> None:
    """Put the ops of every region in place of its `parallel` op."""
    mapping: dict[Value, Value] = {}
    for block in reversed(list(module.blocks())):
        ops = (inlined(op, mapping) if isinstance(op, Parallel) else [op] for op in block.ops)
        block.set_ops(chain.from_iterable(ops))
    module.top.replace(mapping)


def inlined(op: Parallel, mapping: dict[Value, Value]) -> list[Op]:
    """The ops of all regions in order; `mapping` gets the value that replaces each result."""
    mapping.update(zip(op.results, op.yielded, strict=True))
    return [inner for region in op.consumers for inner in region.ops[:-1]]  # without its `yield`
