"""Values for constants to which neither a model nor `@init` gives any: memory and time are then those with a model.

Without them such constants are zeros that are known at build: they lie nowhere, and a step makes them where it needs
them.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from oic import dtypes
from oic.check.symbols import Variable
from oic.cli import options as common
from oic.driver import Program, compile_graph
from oic.dtypes import Array
from oic.ir import dims
from oic.memory.crc32c import crc32c
from oic.model import Model, TensorInfo
from oic.model.tensors import Computed, TensorSource

ABSENT = "(absent)"  # the name of a model that is made up of declared sizes
Values = Callable[[Variable, tuple[int, ...]], Array]
"""The values of a constant, in a shape."""


def load_whole(values: Values, *, model: str | None, weights: str, **options: Any) -> Program:
    """What `options.load` gives, with values for constants that have none.  Raises OicError.

    Members of a family are as many as loops ask for; those that a step decides stay zeros.
    """
    if model is not None:
        return common.load(model=model, weights=weights, **options)
    program = common.load(model=None, weights="", **options)  # rules may be about constants that are made up here
    found = program.model or Model(name=ABSENT).extended({}, _sources(program, values))
    if not weights and (found is program.model or not found.names()):
        return program
    found.partial = found is not program.model
    return compile_graph(program.graph, found, replace(program.settings, weights=weights))


def made_up(program: Program) -> list[str]:
    """The constants that `load_whole` gave values."""
    return program.model.names() if program.model is not None and program.model.name == ABSENT else []


def left_zero(program: Program) -> list[str]:
    """The constants without a value that it gave none."""
    return [v.name for v in program.binding.variables if v.absent and (v.reach or not v.family)]


def zeros(variable: Variable, shape: tuple[int, ...]) -> Array:
    """What every element is without a model."""
    return np.broadcast_to(dtypes.store(np.asarray(variable.first), variable.dtype), shape)


def drawn(variable: Variable, shape: tuple[int, ...]) -> Array:
    """Random floats, of products of which sums stay of one size; all else is zero, which is an index of any table.

    Matrices of a stack, and members of a family, are all the same one.  A number alone, which may be a setting, lies
    between 0 and 1.
    """
    if not variable.dtype.is_float:
        return zeros(variable, shape)
    rng, matrix = np.random.default_rng(crc32c(variable.name.encode())), shape[-2:]
    if math.prod(shape) == 1:
        values = rng.random(matrix, np.float32)
    else:
        values = rng.standard_normal(matrix, np.float32)
        values /= np.float32(math.sqrt(max(1, matrix[-1])))
    return np.broadcast_to(dtypes.store(values, variable.dtype), shape)


def _sources(program: Program, values: Values) -> list[TensorSource]:
    found = []
    for v in program.binding.variables:
        members = [n for n in v.reach if n is not None]
        if v.absent and (not v.family or (v.reach and len(members) == len(v.reach))):
            shape = (*members, *(dims.maximum(d) if d is not None else 0 for d in v.dims))
            info = TensorInfo(v.name, v.dtype, shape, True, v.dtype.nbytes(math.prod(shape)))
            found.append(TensorSource(info, Computed(partial(values, v, shape))))
    return found
