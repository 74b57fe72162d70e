"""Parts are copied once, to where they lie in the whole, whatever their strides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.operators.fused import Copy

GRAPH = """graph g {{
  dynamic  {{ x: {T}[3, 10]; z: {T}[7, 3]; n: i32; }}
  volatile {{ rows: {T}[8, 5]; columns: {T}[3, 12]; some: {T}[?, 7]; }}
  block entry {{
    assign a: {T}[3, 5]; assign b: {T}[3, 5]; assign t: {T}[3, 7]; assign w: {T}[2, 5]; assign s: {T}[?, 7];
    op split(x, axis=1, sizes=[5, 5]) >> a, b;
    op slice(b, axis=0, start=1, end=3) >> w;
    op concat(w, b, a, axis=0) >> rows;
    op transpose(z, perm=[1, 0]) >> t;
    op concat(b, t, axis=1) >> columns;
    op slice(t, axis=0, start=n, end=3) >> s;
    op concat(s, t, axis=0) >> some;
  }}
}}"""


@pytest.mark.parametrize("name", ["f32", "bf16", "i8", "bool", "i4", "u2", "u1"])
def test_parts_with_gaps_are_copied_once(name: str, tmp_path: Path) -> None:
    dtype, rng = dtypes.ALL[name], np.random.default_rng(1)
    x, z = (rng.integers(0, 2, shape).astype(dtype.np) for shape in ((3, 10), (7, 3)))
    made = oic.Synthesizer(oic.parse(GRAPH.format(T=name), "g.oi")).build(tmp_path)
    assert not any(isinstance(op, Copy) for op in made.program.planned.all_ops())
    with made.make_executor() as executor:
        found = executor.step(x=x, z=z, n=1)
    a, b, t = x[:, :5], x[:, 5:], z.T
    for key, parts, axis in (("rows", (b[1:], b, a), 0), ("columns", (b, t), 1), ("some", (t[1:], t), 0)):
        assert np.array_equal(found[key], np.concatenate(parts, axis)), key
