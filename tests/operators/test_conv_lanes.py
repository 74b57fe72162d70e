"""Convolutions whose lanes are whole rows of a multiple of eight columns, and such whose lanes go on behind a row's end (conv_lanes.h)."""

from __future__ import annotations

import numpy as np
import pytest

import oic

TEXT = """
graph lanes {{
  dynamic {{ x: {kind}[{inputs}, 9, {width}]; }} volatile {{ y: {wide}[10, 9, {width}]; }}
  constant {{ w: {kind}[10, {inputs}, 3, 3]; b: {wide}[10]; }}
  block entry {{ op conv2d(x, w, b=b, padding=1{more}) >> y; return; }}
}}"""


@pytest.mark.parametrize("width, inputs", [(7, 6), (14, 6), (24, 6), (56, 6), (57, 6), (112, 6), (8, 1), (57, 1)])
@pytest.mark.parametrize("kind", ["f32", "i8"])
def test_lanes_have_the_bits_of_portable_c(width: int, inputs: int, kind: str) -> None:
    """On one and two threads, with infinities and zeros with a sign, or the extreme bytes, among the elements."""
    rng, wide = np.random.default_rng(3), "f32" if kind == "f32" else "i32"
    shapes = ((inputs, 9, width), (10, inputs, 3, 3))
    if kind == "f32":
        x, w = (rng.standard_normal(shape, np.float32) for shape in shapes)
        x[:, ::3, ::5], x[0, 0, 0], x[-1, 8, width - 1] = -0.0, np.inf, -np.inf
    else:
        x, w = (rng.integers(-128, 128, shape, np.int8) for shape in shapes)
        x[:, ::3, ::5] = -128
    b = rng.integers(-99, 100, 10).astype(np.float32 if kind == "f32" else np.int32)
    more = "" if kind == "f32" else ", acc=i32"
    graph, found = oic.parse(TEXT.format(width=width, inputs=inputs, kind=kind, wide=wide, more=more)), []
    for target, threads in (("portable", 1), ("host", 1), ("host", 2)):
        model = oic.Model(tensors={"w": w, "b": b})
        with oic.Synthesizer(graph, model, target=target, numerics="separate", threads=threads).make_executor() as ex:
            found.append(ex.step(x=x)["y"])
    assert len({result.tobytes() for result in found}) == 1
    with oic.Simulator(graph, model).make_executor() as ex:
        np.testing.assert_allclose(found[0], ex.step(x=x)["y"], rtol=1e-4, atol=1e-4)
