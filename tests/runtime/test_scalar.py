"""Every elementwise operator in C against its reference, on special and random values."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import oic.operators
from oic.dtypes import Array, pack, unpack
from oic.ir.core import REGISTRY
from oic.operators.base import Operator
from runtime.native import Toolchain
from runtime.values import mixed
from runtime.wrap import assert_agrees, elementwise, key, make, source

pytestmark = pytest.mark.xdist_group("scalar-runtime")

assert oic.operators


def _operators() -> dict[str, list[Operator]]:
    """The elementwise operators by name, one for each combination of dtypes and settings."""
    found: dict[str, list[Operator]] = {}
    for name, cls in sorted(REGISTRY.items()):
        if cls.catalog and cls.elementwise and issubclass(cls, Operator):
            distinct = {key(op): op for op in (make(name, e) for e in cls.examples)}
            found[name] = list(distinct.values())
    return found


OPERATORS = _operators()


@pytest.fixture(scope="module")
def library(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """One library with a function for every operator and combination of types."""
    functions = [
        elementwise(op, f"{name}_{i}") for name, ops in OPERATORS.items() for i, op in enumerate(ops)
    ]
    folder: Path = tmp_path_factory.mktemp(toolchain.name)
    every = [op for ops in OPERATORS.values() for op in ops]
    return toolchain.library(source(every, functions), folder, "scalar")


def _run(library: ctypes.CDLL, symbol: str, op: Operator, inputs: list[Array]) -> Array:
    count = len(inputs[0])
    stored = [pack(x, v.dtype) for x, v in zip(inputs, op.operands, strict=True)]
    pointers = (ctypes.c_void_p * len(stored))(*(s.ctypes.data for s in stored))
    y = np.zeros(op.result.dtype.nbytes(count) + 8, np.uint8)
    getattr(library, symbol)(pointers, y.ctypes.data_as(ctypes.c_void_p), ctypes.c_ssize_t(count))
    return unpack(y, op.result.dtype, count)[:count]


@pytest.mark.parametrize("name", OPERATORS)
def test_agrees_with_reference(name: str, library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(1)
    for i, op in enumerate(OPERATORS[name]):
        inputs = mixed([v.dtype for v in op.operands], rng)
        assert_agrees(op, _run(library, f"{name}_{i}", op, inputs), inputs)
