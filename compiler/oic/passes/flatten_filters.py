"""Filters of convolutions that are constants become matrices, a row an output.

    %w = constant {type=f32[64, 128, 3]}             %w = constant {type=f32[64, 384]}
    %y = conv1d(%x, %w)                        =>    %y = conv1d(%x, %w) {taps=[3]}

The elements lie as they lay, and kernels may read them in panels.  A weight of infinity or NaN stays where it is: in a
panel it would meet the zeros of the padding, which it must not.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from oic.ir.core import Value
from oic.ir.members import Elements, Members
from oic.ir.module import Module
from oic.ir.state import Constant
from oic.ir.types import TensorType
from oic.operators.base import Operator
from oic.passes.pack_weights import members, readers


def flatten_filters(module: Module) -> None:
    """Flatten every constant that is read as the weights of convolutions alone."""
    for constant, found in list(readers(module)):
        assert isinstance(constant.op, Constant)
        ops = [r.op for r in found if isinstance(r.op, Operator) and r.fields == ("w",)]
        values = module.weights[constant.op.symbol]
        if not ops or len(ops) < len(found) or not isinstance(values, np.ndarray | Members):
            continue
        shapes = {op.operands[1].tensor.maximum for op in ops}
        if len(shapes) == 1 and all(op.flattens for op in ops) and _finite(values):
            for op in ops:
                op.flatten()
            _flatten(module, constant, shapes.pop())


def _finite(values: Elements) -> bool:
    return all(np.isfinite(part).all() for part in (values if isinstance(values, Members) else (values,)))


def _flatten(module: Module, constant: Value, shape: tuple[int, ...]) -> None:
    """Merge the axes of a filter but the first, in types and in elements."""
    assert isinstance(constant.op, Constant)
    flat = (shape[0], math.prod(shape[1:]))
    for value in members(constant):
        value.type = TensorType(value.dtype, (*value.tensor.maximum[: -len(shape)], *flat))
    constant.op.type = constant.tensor
    values = module.weights[constant.op.symbol]
    if isinstance(values, np.ndarray):
        module.weights[constant.op.symbol] = values.reshape(constant.tensor.maximum)
    elif isinstance(values, Members):
        read, inner = values.read, (*values.inner[: -len(shape)], *flat)
        module.weights[constant.op.symbol] = replace(values, inner=inner, read=lambda key: read(key).reshape(inner))
