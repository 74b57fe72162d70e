"""Convolutions of a channel each, whose rows are computed in pairs where these meet the same elements (conv_planes.h)."""

from __future__ import annotations

import numpy as np
import pytest

import oic

ROWS = {
    "3x3": ("conv2d", (9, 41), (3, 3), "padding=1"),
    "narrower than a register": ("conv2d", (9, 7), (3, 3), "padding=1"),
    "several parts of a row": ("conv2d", (20, 150), (7, 7), "padding=1"),
    "a stride": ("conv2d", (9, 75), (3, 3), "padding=1, stride=2"),
    "a stride beyond the taps": ("conv2d", (23, 90), (3, 3), "padding=1, stride=4"),
    "a dilation that divides the stride": ("conv2d", (15, 70), (5, 3), "padding=1, stride=2, dilation=2"),
    "a dilation that does not": ("conv2d", (14, 64), (3, 3), "padding=1, stride=2, dilation=3"),
    "transposed": ("conv_transpose2d", (9, 40), (3, 3), "padding=1"),
    "transposed, a stride": ("conv_transpose2d", (7, 35), (4, 4), "padding=1, stride=2"),
}
TEXT = """
graph rows {{
  dynamic {{ x: f32[2, {0[0]}, {0[1]}]; }} constant {{ w: f32[2, 1, {1[0]}, {1[1]}]; b: f32[2]; }} volatile {{ y: f32{2}; }}
  block entry {{ op {3}(x, w, b=b, groups=2, {4}) >> y; return; }}
}}"""


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS)
def test_rows_have_the_bits_of_portable_c(case: tuple[str, tuple[int, int], tuple[int, int], str]) -> None:
    """On one and two threads, infinities and zeros with a sign among the elements; within the bound of the reference."""
    operator, size, taps, settings = case
    given = dict(item.split("=") for item in settings.split(", "))
    stride, dilation = int(given.get("stride", 1)), int(given.get("dilation", 1))
    if operator == "conv2d":
        result = [(n + 2 - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(size, taps, strict=True)]
    else:
        result = [(n - 1) * stride + k - 2 for n, k in zip(size, taps, strict=True)]
    rng = np.random.default_rng(3)
    x, w, b = (rng.standard_normal(shape, np.float32) for shape in ((2, *size), (2, 1, *taps), (2,)))
    x[:, :, ::7], x[0, 0, 0], x[1, 1, 1] = 0, np.inf, -0.0
    graph = oic.parse(TEXT.format(size, taps, [2, *result], operator, settings))
    model, found = oic.Model(tensors={"w": w, "b": b}), []
    for target, threads in (("portable", 1), ("host", 1), ("host", 2)):
        with oic.Synthesizer(graph, model, target=target, numerics="separate", threads=threads).make_executor() as ex:
            found.append(ex.step(x=x)["y"])
    assert len({y.tobytes() for y in found}) == 1
    with oic.Simulator(graph, model).make_executor() as ex:
        np.testing.assert_allclose(found[0], ex.step(x=x)["y"], rtol=1e-4, atol=1e-4)
