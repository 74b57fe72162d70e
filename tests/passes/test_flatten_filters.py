"""Convolutions with constant weights are products in panels, with the bits of those whose weights come at run time."""

from __future__ import annotations

import numpy as np

import oic
from oic.dtypes import Array

# x, w, settings: one and two axes, padding, strides, dilation, windows that lie in x, several blocks of positions, one position
CASES: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, list[int]]], ...] = (
    ((1, 640), (50, 1, 256), {"stride": [128]}),
    ((129, 4), (33, 129, 3), {"padding": [1]}),
    ((64, 2), (64, 64, 3), {"stride": [2], "padding": [1]}),
    ((2, 3, 301), (24, 3, 5), {"padding": [4], "dilation": [2]}),
    ((20, 130), (16, 20, 1), {}),
    ((3, 9, 10), (12, 3, 3, 2), {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]}),
    ((2, 4, 6, 7), (40, 4, 1, 1), {}),
    ((7, 5, 5), (16, 7, 5, 5), {"padding": [2, 2]}),
)


def _declared(shape: tuple[int, ...]) -> str:
    return f"f32[{', '.join(map(str, shape))}]"


def _graph() -> tuple[str, dict[str, Array], dict[str, Array]]:
    """Every convolution twice, with constant weights (v) and with the same at run time (w)."""
    rng = np.random.default_rng(5)
    inputs, weights = {}, {}
    declared: dict[str, list[str]] = {"dynamic": [], "constant": [], "volatile": []}
    body = []
    for i, (x, w, settings) in enumerate(CASES):
        inputs[f"x{i}"] = rng.standard_normal(x).astype(np.float32)
        weights[f"v{i}"] = inputs[f"w{i}"] = rng.standard_normal(w).astype(np.float32)
        inputs[f"b{i}"] = rng.standard_normal(w[0]).astype(np.float32)
        declared["dynamic"] += [f"x{i}: {_declared(x)};", f"w{i}: {_declared(w)};", f"b{i}: {_declared((w[0],))};"]
        declared["constant"].append(f"v{i}: {_declared(w)};")
        out = _shape(x, w, settings)
        declared["volatile"] += [f"y{i}: {_declared(out)};", f"z{i}: {_declared(out)};"]
        more = ", ".join([f"b=b{i}", *(f"{name}={value}" for name, value in settings.items())])
        name = f"conv{len(w) - 2}d"
        body += [f"op {name}(x{i}, v{i}, {more}) >> y{i};", f"op {name}(x{i}, w{i}, {more}) >> z{i};"]
    sections = "".join(f"{kind} {{ {' '.join(lines)} }}\n" for kind, lines in declared.items())
    return f"graph g {{ {sections} block entry {{ {' '.join(body)} return; }} }}", inputs, weights


def _shape(x: tuple[int, ...], w: tuple[int, ...], settings: dict[str, list[int]]) -> tuple[int, ...]:
    n = len(w) - 2
    steps, padding, dilation = (settings.get(k, [d] * n) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1)))
    each = zip(x[-n:], w[2:], steps, padding, dilation, strict=True)
    return (*x[: -n - 1], w[0], *((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in each))


def test_constant_weights_give_the_bits_of_those_at_run_time() -> None:
    text, inputs, weights = _graph()
    built = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors=weights)).build()
    assert built.program.planned is not None
    kernels = [op.kernel for op in built.program.planned.all_ops() if op.name.startswith("conv")]
    assert kernels == ["conv_panels", "conv"] * len(CASES)
    with built.make_executor() as executor:
        found = executor.step(**inputs)
    for i in range(len(CASES)):
        assert np.array_equal(found[f"y{i}"].view(np.uint32), found[f"z{i}"].view(np.uint32)), CASES[i]


def test_infinite_weights_do_not_meet_the_padding() -> None:
    text = """graph g { dynamic { x: f32[1, 3]; } constant { w: f32[16, 1, 3]; } volatile { y: f32[16, 3]; }
      block entry { op conv1d(x, w, padding=1) >> y; return; } }"""
    w = np.ones((16, 1, 3), np.float32)
    w[:, :, 0] = np.inf
    built = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors={"w": w})).build()
    assert [op.kernel for op in built.program.planned.all_ops() if op.name == "conv1d"] == ["conv"]
    with built.make_executor() as executor:
        y = executor.step(x=np.ones((1, 3), np.float32))["y"]
    assert (y[:, 0] == 2).all() and np.isinf(y[:, 1:]).all()
