"""Each operator gets the kernel that computes it at the least cost on the target.

    %y = linear(%x, %w)          ->     %y = linear(%x, %w) {kernel="linear_panels"}

A kernel may want a constant in an encoding of its own.  A constant has one encoding for all that read it, in every
entry, so the encodings are compared by what all its readers cost together; one without a kernel for an encoding
excludes it.  `pack-weights` then encodes.

    %y = linear(%x, %w)          ->     %y = linear(%x, %w) {kernel="linear_panels", workers=2}

Where threads are asked for, a call that is worth several is divided among them, and so are the loops of elementwise
operators, but for those of consumers, which run on threads themselves.
"""

import math
from collections.abc import Mapping

from oic.ir import dims
from oic.ir.control import Parallel
from oic.ir.core import Op, Value
from oic.ir.dims import Dim
from oic.ir.encodings import LAYOUTS, joined, layout_of, storage_of
from oic.ir.module import Module
from oic.kernels.kernel import Kernel
from oic.kernels.targets import NATIVE, TARGETS, Target
from oic.operators.base import Operator
from oic.operators.fused import around
from oic.operators.work import elementwise_work
from oic.passes.pack_weights import Reader, may_have, readers


def select_kernels(module: Module, target: Target = TARGETS["portable"], threads: int = 1) -> None:
    """Choose for every operator that has kernels, and how many of `threads` each call may have."""
    chosen: dict[Operator, dict[str, str]] = {}  # encodings that are not dense, by operator and field
    for constant, found in readers(module):
        encoding = _cheapest(constant, found, chosen, target)
        for reader in found if encoding else ():
            assert isinstance(reader.op, Operator)
            chosen.setdefault(reader.op, {}).update(dict.fromkeys(reader.fields, encoding))
    alone = on_one_thread(module)
    for op in module.all_ops():
        if isinstance(op, Operator) and op.kernels:
            kernel = _kernel(op, chosen.get(op, {}), target)
            assert kernel is not None, f"{op.name} has no kernel for these types"
            op.kernel = kernel.name
            op.workers = 1 if op in alone else workers(kernel, op, target, threads)
        elif threads > 1 and op.elementwise and not op.view and op not in alone and around(op) is op:
            units = 1 if any(r.dtype.packed for r in op.results) else op.results[0].tensor.size  # they share bytes
            op.workers = _worth(elementwise_work(op), units, target, threads)


def settle_native(module: Module) -> None:
    """Note which operators the class `native` may compute in its own way, before the reference asks for their bounds.

    What a kernel `takes` in a layout of its own is a constant.
    """
    reading = {reader.op for _, found in readers(module) for reader in found if reader.fields}
    for op in (op for op in module.all_ops() if isinstance(op, Operator)):
        own = [k for k in op.kernels if NATIVE in k.needs and k.fits(op) and (op in reading or not k.takes)]
        op.kernel = own[0].name if own else op.kernel


def on_one_thread(module: Module) -> set[Op]:
    """The ops of consumers, which run on threads themselves."""
    consumers = (region for op in module.all_ops() if isinstance(op, Parallel) for region in op.consumers)
    return {op for region in consumers for op in region.all_ops()}


def workers(kernel: Kernel, op: Operator, target: Target, threads: int) -> int:
    """How many threads a call is worth, at most."""
    return 1 if kernel.units is None else _worth(kernel.work(op), kernel.units(op), target, threads)


def _worth(work: Dim, units: Dim, target: Target, threads: int) -> int:
    """How many threads so much work, which can be divided into so many units, is worth at most."""
    if not target.hosted:
        return 1
    return max(1, min(threads, dims.maximum(work) // target.costs.thread, dims.maximum(units)))


Chosen = Mapping[Operator, Mapping[str, str]]


def _cheapest(constant: Value, found: list[Reader], chosen: Chosen, target: Target) -> str:
    """The encoding in which a constant costs its readers the least; dense where it makes no difference.

    Its storage stays, and with groups in it the layout.
    """
    present = constant.tensor.encoding
    if layout_of(present):
        return present
    others = (joined(storage_of(present), layout) for layout in LAYOUTS)
    possible = [present, *(encoding for encoding in others if may_have(constant.tensor, encoding))]
    return min(possible, key=lambda encoding: _cost(found, encoding, chosen, target))


def _cost(found: list[Reader], encoding: str, chosen: Chosen, target: Target) -> float:
    """What the readers of a constant cost together where it has this encoding; infinite if one cannot read it."""
    total = 0.0
    for reader in found:
        if not isinstance(reader.op, Operator) or not reader.op.kernels or not reader.fields:
            total += math.inf if layout_of(encoding) else 0.0
            continue
        others = chosen.get(reader.op, {})  # of constants before it
        kernel = _kernel(reader.op, {**others, **dict.fromkeys(reader.fields, encoding)}, target)
        total += math.inf if kernel is None else kernel.cost(reader.op, target)
    return total


def _kernel(op: Operator, encodings: Mapping[str, str], target: Target) -> Kernel | None:
    """The cheapest kernel that takes these encodings, the first of equals; others are as their types say."""
    fitting = [k for k in op.kernels if target.has(k.needs) and k.fits(op) and k.reads(op, encodings)]
    return min(fitting, key=lambda k: k.cost(op, target), default=None)
