"""Convolutions with constant weights are products in panels and planes, with the bits of those whose weights come at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oic
from conv_shapes import Shape, convolved
from oic import dtypes
from oic.dtypes import Array
from oic.kernels import targets
from oic.kernels.kernel import Kernel
from oic.operators import conv
from oic.operators.conv_transpose import ConvolutionTranspose

PLANES, PANELS, BYTES, TILES = "conv_planes", "conv_panels", "conv_planes_int", "conv_winograd"
# x, w, settings, kernel: one and two axes, padding, strides, dilation, groups, windows that lie in x, rows that do, one input
# channel a group, several blocks along either axis, of positions and of output channels, a few positions and one; tiles,
# of all groups and phases; of transposed ones also classes without taps
CASES: tuple[tuple[str, Shape, Shape, dict[str, list[int]], str], ...] = (
    ("conv1d", (1, 640), (50, 1, 256), {"stride": [128]}, PANELS),
    ("conv1d", (129, 4), (33, 129, 3), {"padding": [1]}, PANELS),
    ("conv1d", (64, 2), (64, 64, 3), {"stride": [2], "padding": [1]}, PANELS),
    ("conv1d", (2, 3, 301), (24, 3, 5), {"padding": [4], "dilation": [2]}, PLANES),
    ("conv1d", (2, 4, 33), (6, 2, 3), {"stride": [2], "padding": [1], "groups": [2]}, PLANES),
    ("conv1d", (100, 45), (101, 100, 3), {"padding": [3], "dilation": [3]}, PLANES),
    ("conv2d", (3, 9, 10), (12, 3, 3, 2), {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]}, PLANES),
    ("conv2d", (2, 4, 5, 1), (40, 4, 1, 1), {}, PANELS),
    ("conv2d", (4, 8, 12), (40, 4, 1, 1), {}, PLANES),
    ("conv2d", (7, 5, 5), (16, 7, 5, 5), {"padding": [2, 2]}, PANELS),
    ("conv2d", (1, 58, 12), (64, 1, 10, 4), {"stride": [2, 2]}, PANELS),
    ("conv2d", (1, 5, 40), (32, 1, 5, 40), {}, PANELS),
    ("conv1d", (64, 5), (64, 64, 3), {"dilation": [2]}, PANELS),
    ("conv2d", (33, 4, 3), (40, 33, 1, 1), {"stride": [2, 2]}, PANELS),
    ("conv2d", (5, 17, 19), (10, 1, 3, 3), {"stride": [2, 3], "padding": [1, 1], "groups": [5]}, PLANES),
    ("conv2d", (3, 22, 40), (9, 3, 7, 7), {"stride": [2, 2], "padding": [3, 3]}, PLANES),
    ("conv2d", (5, 17, 43), (10, 1, 3, 3), {"stride": [2, 2], "padding": [1, 1], "groups": [5]}, PLANES),
    ("conv2d", (6, 9, 79), (6, 1, 3, 3), {"padding": [1, 1], "groups": [6]}, PLANES),
    ("conv2d", (3, 8, 90), (3, 1, 2, 5), {"stride": [1, 2], "padding": [0, 7], "groups": [3]}, PLANES),
    ("conv1d", (4, 151), (4, 1, 7), {"padding": [6], "dilation": [2], "groups": [4]}, PLANES),
    ("conv1d", (4, 18), (4, 1, 2), {"stride": [2], "padding": [1], "groups": [4]}, PLANES),
    ("conv1d", (2, 7, 33), (5, 7, 3), {"stride": [2], "padding": [1]}, BYTES),
    ("conv1d", (6, 1), (50, 3, 1), {"groups": [2]}, BYTES),
    ("conv2d", (9, 17, 23), (101, 9, 3, 2), {"padding": [1, 2], "dilation": [2, 1]}, BYTES),
    ("conv2d", (5, 17, 19), (10, 1, 3, 3), {"stride": [2, 3], "padding": [1, 1], "groups": [5]}, BYTES),
    ("conv2d", (4, 12, 75), (4, 1, 3, 3), {"padding": [1, 1], "groups": [4]}, BYTES),
    ("conv2d", (3, 11, 43), (6, 1, 3, 5), {"stride": [2, 2], "padding": [1, 2], "groups": [3]}, BYTES),
    ("conv2d", (3, 22, 40), (9, 3, 7, 7), {"stride": [2, 2], "padding": [3, 3]}, BYTES),
    ("conv1d", (4, 151), (4, 1, 7), {"padding": [6], "dilation": [2], "groups": [4]}, BYTES),
    ("conv1d", (2, 151), (4, 1, 9), {"stride": [4], "padding": [3], "groups": [2]}, BYTES),
    ("conv1d", (3, 5), (3, 1, 4), {"stride": [3], "padding": [2], "groups": [3]}, BYTES),
    ("conv2d", (2, 26, 13, 17), (40, 26, 3, 3), {"padding": [1, 1]}, TILES),
    ("conv2d", (50, 19, 12), (202, 25, 3, 3), {"padding": [0, 2], "groups": [2]}, TILES),
    ("conv2d", (24, 5, 43), (30, 24, 1, 3), {"padding": [1, 0]}, TILES),
    ("conv1d", (2, 27, 131), (97, 27, 3), {"padding": [2]}, TILES),
    ("conv1d", (27, 131), (97, 27, 3), {"padding": [3], "dilation": [3]}, TILES),
    ("conv2d", (24, 21, 32), (31, 24, 3, 3), {"padding": [3, 1], "dilation": [2, 3]}, TILES),
    ("conv_transpose1d", (70, 31), (70, 5, 16), {"stride": [8], "padding": [4]}, PLANES),
    ("conv_transpose1d", (2, 6, 3), (6, 7, 3), {"stride": [5], "output_padding": [2]}, PLANES),
    ("conv_transpose1d", (6, 9), (6, 2, 3), {"stride": [2], "dilation": [4], "groups": [3]}, PLANES),
    ("conv_transpose2d", (4, 6, 9), (4, 3, 3, 4), {"stride": [2, 3], "padding": [2, 1], "dilation": [1, 2]}, PLANES),
    ("conv_transpose2d", (4, 6, 33), (4, 2, 3, 4), {"stride": [2, 1], "padding": [1, 1], "groups": [4]}, PLANES),
    ("conv_transpose2d", (4, 5, 20), (4, 50, 2, 3), {"padding": [1, 0]}, PLANES),
    ("conv_transpose1d", (70, 31), (70, 5, 16), {"stride": [8], "padding": [4]}, BYTES),
    ("conv_transpose1d", (2, 6, 3), (6, 7, 3), {"stride": [5], "output_padding": [2]}, BYTES),
    ("conv_transpose1d", (6, 9), (6, 2, 3), {"stride": [2], "dilation": [4], "groups": [3]}, BYTES),
    ("conv_transpose1d", (9, 200), (9, 29, 2), {"stride": [2]}, BYTES),
    ("conv_transpose2d", (4, 6, 9), (4, 3, 3, 4), {"stride": [2, 3], "padding": [2, 1], "dilation": [1, 2]}, BYTES),
    ("conv_transpose2d", (4, 6, 33), (4, 2, 3, 4), {"stride": [2, 1], "padding": [1, 1], "groups": [4]}, BYTES),
    ("conv_transpose2d", (2, 7, 13, 17), (7, 101, 3, 3), {"stride": [2, 2], "padding": [1, 1]}, BYTES),
    ("conv_transpose2d", (16, 1, 1), (16, 3, 1, 1), {"stride": [2, 2]}, BYTES),
    ("conv_transpose2d", (4, 5, 20), (4, 50, 2, 3), {"padding": [1, 0]}, BYTES),
)  # fmt: skip


def _loops_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats whose weights no pass can see are left to the loops of conv.h."""

    def constants(kernel: Kernel) -> Kernel:
        return replace(kernel, fits=lambda op: op.taps is not None and kernel.fits(op)) if kernel.name == PLANES else kernel

    for one in (conv.Convolution, ConvolutionTranspose):
        monkeypatch.setattr(one, "kernels", tuple(map(constants, one.kernels)))


def at_run_time(name: str, w: Shape, settings: Mapping[str, Any], kernel: str, loops: bool) -> str:
    """The kernel of such a convolution whose weights no pass can see."""
    if kernel not in (BYTES, TILES):
        return "conv" if loops else PLANES
    if "transpose" in name or w[2:] in ((1,), (1, 1)):
        return "conv"
    return "depthwise_bytes" if w[1] == 1 and w[0] < 4 * settings.get("groups", [1])[0] else "conv_bytes"


def _declared(shape: Shape, dtype: str) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


def _graph() -> tuple[str, dict[str, Array], dict[str, Array]]:
    """Every convolution twice, with constant weights (v) and with the same at run time (w)."""
    rng = np.random.default_rng(5)
    inputs, weights = {}, {}
    declared: dict[str, list[str]] = {"dynamic": [], "constant": [], "volatile": []}
    body = []
    for i, (name, x, w, settings, kernel) in enumerate(CASES):
        dtype, outputs = ("f64", "f32", "f16", "bf16", "f32")[i % 5], w[-len(w) + 1] * settings.get("groups", [1])[0] if "transpose" in name else w[0]
        dtype, to = ("i8", "i32") if kernel in (BYTES, TILES) else (dtype, dtype)
        scale = 40 if dtype == "i8" else 1
        for part, shape, kind in (("x", x, dtype), ("w", w, dtype), ("b", (outputs,), to)):
            inputs[f"{part}{i}"] = np.clip(scale * rng.standard_normal(shape), -128, 127).astype(dtypes.ALL[kind].np)
            declared["dynamic"].append(f"{part}{i}: {_declared(shape, kind)};")
        weights[f"v{i}"] = inputs[f"w{i}"]
        declared["constant"].append(f"v{i}: {_declared(w, dtype)};")
        out = (*x[: 1 - len(w)], outputs, *convolved(name, x, w, settings))
        declared["volatile"] += [f"y{i}: {_declared(out, to)};", f"z{i}: {_declared(out, to)};"]
        given = {"b": f"b{i}"} | ({"acc": to} if to != dtype else {})
        more = ", ".join(f"{k}={v[0] if k == 'groups' else v}" for k, v in (given | settings).items())
        body += [f"op {name}(x{i}, v{i}, {more}) >> y{i};", f"op {name}(x{i}, w{i}, {more}) >> z{i};"]
    sections = "".join(f"{kind} {{ {' '.join(lines)} }}\n" for kind, lines in declared.items())
    return f"graph g {{ {sections} block entry {{ {' '.join(body)} return; }} }}", inputs, weights


@pytest.mark.parametrize("loops", [True, False])
def test_constant_weights_give_the_bits_of_those_at_run_time(loops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if loops:
        _loops_at_run_time(monkeypatch)
    monkeypatch.setattr(conv, "PLANES", 4096)
    monkeypatch.setattr(conv, "LEAST", 16)
    monkeypatch.setattr(conv, "POINTS", 1 << 15)
    monkeypatch.setattr(targets, "FOURS", frozenset())
    text, inputs, weights = _graph()
    built = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors=weights), threads=7).build()
    assert built.program.planned is not None
    kernels = [op.kernel for op in built.program.planned.all_ops() if op.name.startswith("conv")]
    assert kernels[::2] == [kernel for *_, kernel in CASES]
    assert kernels[1::2] == [at_run_time(name, w, settings, kernel, loops) for name, _, w, settings, kernel in CASES]
    for threads in (1, 2, 3, 7):
        with built.make_executor(threads) as executor:
            found = executor.step(**inputs)
        for i, case in enumerate(CASES):
            assert found[f"y{i}"].tobytes() == found[f"z{i}"].tobytes(), (case, threads)


VIEWS = """graph g {
  dynamic { x: f32[8, 12, 9]; r: f32[64, 6]; q: i8[8, 12, 9]; }
  constant { a: f32[3, 2, 8, 24]; b: f32[64, 64]; c: i8[24, 3, 3, 8]; }
  volatile { y: f32[24, 10, 8]; u: f32[64, 6]; z: i32[24, 10, 7]; }
  block entry {
    assign v: f32[24, 8, 3, 2]; assign w: f32[64, 64, 1]; assign n: i8[24, 8, 3, 3];
    op transpose(a, perm=[3, 2, 0, 1]) >> v;
    op conv2d(x, v) >> y;
    op reshape(b, shape=[64, 64, 1]) >> w;
    op conv1d(r, w) >> u;
    op transpose(c, perm=[0, 3, 1, 2]) >> n;
    op conv2d(q, n, acc=i32) >> z;
    return;
  }
}"""


def test_filters_in_another_order_are_constants_of_their_own() -> None:
    rng = np.random.default_rng(2)
    weights = {"a": rng.standard_normal((3, 2, 8, 24)).astype(np.float32), "b": rng.standard_normal((64, 64)).astype(np.float32)}
    weights["c"] = rng.integers(-128, 128, (24, 3, 3, 8)).astype(np.int8)
    inputs = {"r": rng.standard_normal((64, 6)).astype(np.float32), "x": rng.standard_normal((8, 12, 9)).astype(np.float32)}
    inputs["q"] = rng.integers(-128, 128, (8, 12, 9)).astype(np.int8)
    graph, model = oic.parse(VIEWS, name="g"), oic.Model(tensors=weights)
    built = oic.Synthesizer(graph, model).build()
    kernels = [op.kernel for op in built.program.planned.all_ops() if op.name.startswith("conv")]
    assert len(kernels) == 3 and "conv" not in kernels
    with built.make_executor() as executor, oic.Simulator(graph, model).make_executor() as reference:
        found, expected = executor.step(**inputs), reference.step(**inputs)
    assert (found["z"] == expected["z"]).all()
    for name in ("y", "u"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-4)


def test_the_largest_sums_of_tiles_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "FOURS", frozenset())
    for channels, kernel in ((3640, TILES), (3641, BYTES)):  # 4 * 9 * 2^14 of them are beyond 32 bits
        text = f"""graph g {{ dynamic {{ x: i8[{channels}, 7, 7]; }} constant {{ w: i8[128, {channels}, 3, 3]; }}
          volatile {{ y: i32[128, 7, 7]; }} block entry {{ op conv2d(x, w, padding=1, acc=i32) >> y; return; }} }}"""
        w = np.full((128, channels, 3, 3), -128, np.int8)
        w[1:] = 127
        w[2:] *= np.random.default_rng(1).choice([-1, 1], w[2:].shape).astype(np.int8)
        built = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors={"w": w})).build()
        assert [op.kernel for op in built.program.planned.all_ops() if op.name == "conv2d"] == [kernel]
        padded = np.full((channels, 9, 9), -128, np.float64)
        padded[:, [0, -1]] = padded[:, :, [0, -1]] = 0
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
        with built.make_executor() as executor:
            y = executor.step(x=np.full((channels, 7, 7), -128, np.int8))["y"]
        for o in (0, 1, 2, 127):
            assert (y[o] == np.einsum("cyxij,cij->yx", windows, w[o].astype(np.float64))).all()
        assert y[0, 3, 3] == 9 * channels << 14


def test_infinite_weights_do_not_meet_the_padding() -> None:
    text = """graph g { dynamic { x: f32[1, 3]; } constant { w: f32[16, 1, 3]; } volatile { y: f32[16, 3]; }
      block entry { op conv1d(x, w, padding=1) >> y; return; } }"""
    w = np.ones((16, 1, 3), np.float32)
    w[:, :, 0] = np.inf
    built = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors={"w": w})).build()
    assert [op.kernel for op in built.program.planned.all_ops() if op.name == "conv1d"] == [PLANES]
    with built.make_executor() as executor:
        y = executor.step(x=np.ones((1, 3), np.float32))["y"]
    assert (y[:, 0] == 2).all() and np.isinf(y[:, 1:]).all()


EMPTY = """graph g {
  dynamic { a: f32[1, N] @max(N=640); b: f32[3, N]; c: f32[4, N]; d: i8[7, N]; e: i8[1, N]; f: i8[27, N]; h: f32[70, N];
    i: f32[6, N]; k: f32[4, 2, N]; %s }
  constant { %s }
  volatile { %s }
  block entry { %s return; }
}"""
# Of N columns: as many results, or none where N is below the window; from none some that are b; none at all for lack of rows.
SHORT: tuple[tuple[str, str, Shape, str, str], ...] = (
    ("a", "conv1d", (50, 1, 256), "stride=256", PANELS),
    ("b", "conv1d", (24, 3, 3), "padding=1", PLANES),
    ("c", "conv1d", (4, 1, 3), "padding=1, groups=4", PLANES),
    ("d", "conv1d", (5, 7, 3), "padding=1", BYTES),
    ("e", "conv1d", (1, 1, 3), "padding=1", BYTES),
    ("f", "conv1d", (97, 27, 3), "padding=1", TILES),
    ("h", "conv_transpose1d", (70, 5, 16), "stride=8, padding=4", PLANES),
    ("i", "conv_transpose1d", (6, 7, 3), "", PLANES),
    ("k", "conv2d", (40, 4, 3, 1), "", PLANES),
)


@pytest.mark.parametrize("loops", [True, False])
def test_windows_that_lie_nowhere_give_nothing(loops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if loops:
        _loops_at_run_time(monkeypatch)
    monkeypatch.setattr(targets, "FOURS", frozenset())
    rng, weights, inputs = np.random.default_rng(6), {}, []
    declared, results, body = [], [], []
    for x, name, w, settings, kernel in SHORT:
        kind, to, acc = ("i8", "i32", ", acc=i32") if kernel in (BYTES, TILES) else ("f32", "f32", "")
        outputs = w[1] if "transpose" in name else w[0]
        weights[f"w{x}"] = (40 * rng.standard_normal(w)).clip(-128, 127).astype(dtypes.ALL[kind].np)
        weights[f"b{x}"] = (40 * rng.standard_normal(outputs)).astype(dtypes.ALL[to].np)
        declared += [f"w{x}: {_declared(w, kind)};", f"b{x}: {_declared((outputs,), to)};"]
        inputs.append(f"v{x}: {_declared(w, kind)};")
        rest = "?" if len(w) == 3 else "?, ?"
        results += [f"y{x}: {to}[{outputs}, {rest}];", f"z{x}: {to}[{outputs}, {rest}];"]
        more = f"b=b{x}{acc}" + (f", {settings}" if settings else "")
        body += [f"op {name}({x}, w{x}, {more}) >> y{x};", f"op {name}({x}, v{x}, {more}) >> z{x};"]
    text = EMPTY % tuple(" ".join(part) for part in (inputs, declared, results, body))
    built = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors=weights), threads=3).build()
    assert built.program.planned is not None
    kernels = [op.kernel for op in built.program.planned.all_ops() if op.name.startswith("conv")]
    assert kernels[::2] == [kernel for *_, kernel in SHORT]
    assert {kernel.replace("depthwise", "conv") for kernel in kernels[1::2]} == {"conv" if loops else PLANES, "conv_bytes"}
    given = {f"v{name[1:]}": array for name, array in weights.items() if name[0] == "w"}
    planes = {"a": (1,), "b": (3,), "c": (4,), "d": (7,), "e": (1,), "f": (27,), "h": (70,), "i": (6,), "k": (4, 2)}
    for threads, n in ((1, 0), (1, 255), (2, 0), (3, 1), (3, 300)):
        for x, shape in planes.items():
            kind = np.int8 if x in "def" else np.float32
            given[x] = (40 * rng.standard_normal((*shape, n))).clip(-128, 127).astype(kind)
        with built.make_executor(threads) as executor:
            found = executor.step(**given)
        sizes = {"a": n // 256, "h": 8 * n, "i": n + 2, "k": 0}
        for x, *_ in SHORT:
            assert found[f"y{x}"].tobytes() == found[f"z{x}"].tobytes(), (x, n, threads)
            assert found[f"y{x}"].shape[1] == sizes.get(x, n)
        assert n or (found["yi"] == weights["bi"][:, None]).all()
