"""Filters of convolutions that are constants become matrices, a row an output.

    %w = constant {type=f32[64, 128, 3]}             %w = constant {type=f32[64, 384]}
    %y = conv1d(%x, %w)                        =>    %y = conv1d(%x, %w) {taps=[3]}

The elements of a convolution lie as they lay; those of a transposed one, which has input channels first, are put in the
order in which a position of the result meets them.  Kernels may read them in panels, or beside positions in planes.  A
weight of infinity or NaN stays where it is: there it would meet the zeros of the padding, which it must not.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir.core import Value
from oic.ir.members import Elements, Members, mapped
from oic.ir.module import Module
from oic.ir.state import Constant
from oic.ir.types import TensorType
from oic.kernels.targets import TARGETS, Target
from oic.operators.base import Operator
from oic.passes.pack_weights import members, readers


def flatten_filters(module: Module, target: Target = TARGETS["portable"]) -> None:
    """Flatten every constant that is read as the weights of convolutions alone."""
    for constant, found in list(readers(module)):
        ops: list[Any] = [r.op for r in found if isinstance(r.op, Operator) and r.fields == ("w",)]
        values = module.weights[constant.symbol]
        if not ops or len(ops) < len(found) or not isinstance(values, np.ndarray | Members):
            continue
        shapes = {op.operands[1].tensor.maximum for op in ops}
        flat = len(shapes) == 1 and all(op.flattens(target) for op in ops)
        if flat and len({op.rows() for op in ops}) == 1 and _finite(values):
            for op in ops:
                op.flatten()
            _flatten(module, constant, shapes.pop(), ops[0].flattened)


def _finite(values: Elements) -> bool:
    return all(np.isfinite(part).all() for part in (values if isinstance(values, Members) else (values,)))


def _flatten(module: Module, constant: Value, shape: tuple[int, ...], flattened: Callable[[Array], Array]) -> None:
    """Make a filter a matrix, in types and in elements."""
    assert isinstance(constant.op, Constant)
    flat, counts = flattened(np.empty(shape, np.int8)).shape, constant.tensor.maximum[: -len(shape)]
    for value in members(constant):
        value.type = TensorType(value.dtype, (*value.tensor.maximum[: -len(shape)], *flat))
    constant.op.type = constant.tensor
    values = module.weights[constant.symbol]
    assert isinstance(values, np.ndarray | Members)
    module.weights[constant.symbol] = mapped(values, counts, flattened, flat)
