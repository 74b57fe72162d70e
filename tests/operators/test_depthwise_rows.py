"""Convolutions of a channel each, whose rows are computed in pairs where these meet the same elements (conv_planes.h), or the
same words of bytes (conv_planes_int.h)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oic
from conv_shapes import convolved
from oic.operators.conv import Conv2d
from oic.operators.conv_transpose import ConvTranspose2d
from runtime.drive import Case

ROWS: dict[str, tuple[type[Conv2d | ConvTranspose2d], tuple[int, int], tuple[int, int], dict[str, int]]] = {
    "3x3": (Conv2d, (9, 41), (3, 3), {}),
    "narrower than a register": (Conv2d, (9, 7), (3, 3), {}),
    "narrower, in several parts": (Conv2d, (45, 11), (5, 3), {}),
    "narrower, a stride": (Conv2d, (27, 22), (3, 3), {"stride": 2}),
    "narrower, two rows at once": (Conv2d, (80, 74), (3, 3), {"dilation": 34}),
    "narrower, one row at once": (Conv2d, (150, 149), (3, 3), {"dilation": 72}),
    "one column": (Conv2d, (31, 3), (3, 5), {}),
    "transposed, narrower": (ConvTranspose2d, (40, 3), (3, 3), {}),
    "several parts of a row": (Conv2d, (20, 150), (7, 7), {}),
    "one row of several parts": (Conv2d, (5, 150), (7, 7), {}),
    "a stride": (Conv2d, (9, 75), (3, 3), {"stride": 2}),
    "a stride beyond the taps": (Conv2d, (23, 90), (3, 3), {"stride": 4}),
    "a dilation that divides the stride": (Conv2d, (15, 70), (5, 3), {"stride": 2, "dilation": 2}),
    "a dilation that does not": (Conv2d, (14, 64), (3, 3), {"stride": 2, "dilation": 3}),
    "transposed": (ConvTranspose2d, (9, 40), (3, 3), {}),
    "transposed, a stride": (ConvTranspose2d, (7, 35), (4, 4), {"stride": 2}),
}
TEXT = """
graph rows {{
  dynamic {{ x: f32{x}; }} constant {{ w: f32{w}; b: f32[2]; }} volatile {{ y: f32{y}; }}
  block entry {{ op {name}(x, w, b=b, {settings}) >> y; return; }}
}}"""


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS)
def test_rows_have_the_bits_of_portable_c(case: tuple[Any, tuple[int, int], tuple[int, int], dict[str, int]]) -> None:
    """On one and two threads, infinities and zeros with a sign among the elements; and these are those of the reference."""
    kind, size, taps, given = case
    settings = {"groups": 2, "padding": 1, **given}
    x, w, b = (np.random.default_rng(3).standard_normal(s, np.float32) for s in ((2, *size), (2, 1, *taps), (2,)))
    x[:, :, ::7], x[0, 0, 0], x[1, 1, 1] = 0, np.inf, -0.0
    y = (2, *convolved(kind.name, x.shape, w.shape, {k: [v] * 2 for k, v in settings.items()}))
    shapes = {name: list(shape) for name, shape in (("x", x.shape), ("w", w.shape), ("y", y))}
    text = TEXT.format(name=kind.name, settings=", ".join(f"{k}={v}" for k, v in settings.items()), **shapes)
    graph, model, found = oic.parse(text), oic.Model(tensors={"w": w, "b": b}), []
    for target, threads in (("portable", 1), ("host", 1), ("host", 2)):
        with oic.Synthesizer(graph, model, target=target, numerics="separate", threads=threads).make_executor() as ex:
            found.append(ex.step(x=x)["y"])
    assert len({result.tobytes() for result in found}) == 1
    reference = Case(kind, [x, w, b], {k: v if k == "groups" else [v] * 2 for k, v in settings.items()})
    [want] = reference.expected()
    exact = np.isfinite(want)
    assert (np.isfinite(found[0]) == exact).all()
    [bound] = reference.tolerance([want])
    assert (np.abs(found[0] - want)[exact] <= np.broadcast_to(bound, want.shape)[exact]).all()


REQUANTIZED = """
graph rows {{
  dynamic {{ x: i8{x}; }} volatile {{ y: i8{y}; }}
  constant {{ w: i8{w}; b: i32[2]; m: i32[2, 1, 1]; s: i8[2, 1, 1]; }}
  block entry {{
    assign sum: i32{y};
    op conv2d(x, w, b=b, acc=i32, {settings}) >> sum;
    op requantize(sum, m, s, to=i8) >> y;
    return;
  }}
}}"""
LINES: dict[str, tuple[tuple[int, int], tuple[int, int], dict[str, Any]]] = {
    **{name: (size, taps, given) for name, (kind, size, taps, given) in ROWS.items() if kind is Conv2d},
    "as long as two rows of sums may be": ((9, 128), (3, 3), {}),
    "longer": ((9, 3000), (3, 3), {}),
    "filters a word wide": ((12, 50), (3, 1), {}),
    "one row": ((1, 90), (1, 7), {"padding": 3}),
    "rows alone": ((1, 201), (1, 7), {"padding": [0, 3]}),
    "rows alone, shorter than a register": ((1, 5), (1, 4), {"padding": [0, 2]}),
    "rows alone, of words that 128 bytes have": ((1, 130), (1, 61), {"padding": [0, 30]}),
    "rows alone, of more": ((1, 130), (1, 65), {"padding": [0, 70]}),
    "rows alone, a stride and a dilation": ((1, 90), (1, 5), {"padding": [0, 2], "stride": 2, "dilation": [1, 3]}),
    "a row, and windows of padding above it": ((1, 90), (1, 5), {"padding": [1, 2], "stride": [3, 1]}),
    "a longer row, and such windows": ((1, 200), (1, 5), {"padding": [1, 2], "stride": [3, 1]}),
    "a plane that a register has": ((3, 3), (3, 3), {}),
    "a plane that two registers have": ((25, 5), (3, 3), {}),
    "of which one has the sums": ((11, 11), (5, 5), {"padding": 2, "stride": 2}),
    "a plane of too many": ((8, 16), (3, 3), {}),
    "a plane with more padding than sums are for": ((2, 5), (3, 3), {"padding": 8}),
    "nothing but padding above": ((3, 40), (3, 3), {"padding": 4, "stride": 2}),
}


@pytest.mark.parametrize("case", LINES.values(), ids=LINES)
def test_rows_of_bytes_are_those_of_the_reference(case: tuple[tuple[int, int], tuple[int, int], dict[str, Any]]) -> None:
    """On one and two threads, with the extreme bytes among the elements."""
    size, taps, given = case
    settings = {"groups": 2, "padding": 1, **given}
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((2, *size), (2, 1, *taps)))
    x[:, :, ::7] = -128
    constants = {
        "w": w, "b": rng.integers(-999, 1000, 2, np.int32), "m": np.full((2, 1, 1), 1 << 30, np.int32),
        "s": np.full((2, 1, 1), -7, np.int8),
    }  # fmt: skip
    y = (2, *convolved("conv2d", x.shape, w.shape, {k: np.broadcast_to(v, 2).tolist() for k, v in settings.items()}))
    shapes = {name: list(shape) for name, shape in (("x", x.shape), ("w", w.shape), ("y", y))}
    graph = oic.parse(REQUANTIZED.format(settings=", ".join(f"{k}={v}" for k, v in settings.items()), **shapes))
    model = oic.Model(tensors=constants)
    with oic.Simulator(graph, model).make_executor() as ex:
        want = ex.step(x=x)["y"]
    for target, threads in (("portable", 1), ("host", 1), ("host", 2)):
        with oic.Synthesizer(graph, model, target=target, threads=threads).make_executor() as ex:
            assert ex.step(x=x)["y"].tobytes() == want.tobytes(), (target, threads)
