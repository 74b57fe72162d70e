"""Products with batches of packed matrices, of which most do not begin at a whole byte."""

from __future__ import annotations

import numpy as np
import pytest

import oic
from oic import dtypes


@pytest.mark.parametrize("dtype", [dtypes.t1, dtypes.t2], ids=str)
@pytest.mark.parametrize(("inner", "columns"), [(5, 3), (7, 33), (8, 8)])
def test_every_matrix_of_a_batch_is_found(dtype: dtypes.DType, inner: int, columns: int) -> None:
    graph = oic.parse(
        f"dynamic {{ a: f32[1, 3, {inner}]; b: {dtype}[5, {inner}, {columns}]; s: f32[{columns}]; }} "
        f"volatile {{ y: f32[5, 3, {columns}]; }} block entry {{ op matmul(a, b, b_scale=s) >> y; return; }}"
    )
    rng = np.random.default_rng(inner)
    a = rng.integers(-9, 10, (1, 3, inner)).astype(np.float32)  # whole numbers: every sum is exact
    b = rng.choice([-1, 1], (5, inner, columns)).astype(np.int8)
    y = oic.Synthesizer(graph).make_executor().step(a=a, b=b, s=np.ones(columns, np.float32))["y"]
    assert np.array_equal(y, a @ b.astype(np.float32))
