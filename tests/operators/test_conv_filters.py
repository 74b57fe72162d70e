"""Convolutions in planes and in panels have the bits of the loops of conv.h: narrow floats, and filters that are no constants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.dtypes import Array
from oic.kernels.targets import TARGETS
from oic.operators.conv import Conv1d, Conv2d
from oic.operators.conv_transpose import ConvTranspose1d, ConvTranspose2d

CLASSES: tuple[Any, ...] = (Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d)
LAYERS = [  # (call, x, w, y): odd sizes, tails of registers, strides up to 3, dilations, groups, no padding and more than a chunk
    ("conv2d(x, w, b=b, padding=1)", (6, 9, 14), (10, 6, 3, 3), (10, 9, 14)),
    ("conv2d(x, w, b=b, padding=1, stride=2, groups=2)", (6, 11, 17), (10, 3, 3, 2), (10, 6, 9)),
    ("conv2d(x, w, b=b, padding=[1, 2], dilation=[1, 2])", (3, 8, 21), (5, 3, 3, 3), (5, 8, 21)),
    ("conv2d(x, w, b=b, padding=1, groups=7)", (7, 12, 19), (7, 1, 3, 3), (7, 12, 19)),
    ("conv2d(x, w, b=b, padding=1, groups=5, stride=2)", (5, 12, 9), (5, 1, 3, 3), (5, 6, 5)),
    ("conv2d(x, w, b=b, padding=1, groups=3, stride=2)", (3, 40, 66), (3, 1, 3, 3), (3, 20, 33)),
    ("conv2d(x, w, b=b, padding=1, groups=3, stride=3)", (3, 14, 66), (3, 1, 3, 3), (3, 5, 22)),
    ("conv2d(x, w, b=b, padding=1)", (2, 40, 9, 40), (17, 40, 3, 3), (2, 17, 9, 40)),
    ("conv2d(x, w, b=b, padding=1)", (20, 5, 5), (17, 20, 3, 3), (17, 5, 5)),
    ("conv2d(x, w, b=b)", (64, 3, 7), (20, 64, 1, 1), (20, 3, 7)),
    ("conv2d(x, w, b=b)", (3, 0, 7), (2, 3, 1, 1), (2, 0, 7)),
    ("conv1d(x, w, b=b, padding=2, stride=3)", (33, 57), (17, 33, 5), (17, 19)),
    ("conv1d(x, w, b=b)", (33, 5), (70, 33, 5), (70, 1)),
    ("conv1d(x, w, b=b, padding=1)", (33, 6), (70, 33, 5), (70, 4)),
    ("conv1d(x, w, b=b)", (2, 301), (18, 2, 300), (18, 2)),
    ("conv1d(x, w, b=b, padding=3)", (1, 9), (18, 1, 9), (18, 7)),
    ("conv_transpose2d(x, w, b=b, padding=1, stride=2, output_padding=1)", (6, 7, 9), (6, 5, 3, 3), (5, 14, 18)),
    ("conv_transpose2d(x, w, b=b, stride=[1, 3], dilation=2)", (3, 4, 20), (3, 9, 2, 3), (9, 6, 62)),
    ("conv_transpose1d(x, w, b=b, padding=2, stride=3, groups=2, output_padding=2)", (8, 23), (8, 6, 5), (12, 69)),
    ("conv_transpose1d(x, w, b=b)", (80, 23), (80, 6, 5), (6, 27)),
]  # fmt: skip
WAYS = ("constant", "given", "given, some infinite", "constant, some infinite")


@dataclass
class Layers:
    graph: Any
    model: Any
    given: dict[str, Array]

    def run(self, target: str = "host", threads: int = 1, numerics: str = "separate") -> dict[str, Array]:
        made = oic.Synthesizer(self.graph, self.model, target=target, numerics=numerics, threads=threads)
        with made.make_executor() as executor:
            return dict(executor.step(**self.given))


def layers(kind: str) -> Layers:
    """A graph of all layers in all ways, with infinities of one sign, so that sums are NaN only where they meet zeros."""
    rng, declared, calls = np.random.default_rng(5), [], []
    constants: dict[str, Array] = {}
    given: dict[str, Array] = {}
    for n, (call, xs, ws, ys) in enumerate(LAYERS):
        for way in range(len(WAYS)):
            at = f"{n}_{way}"
            x, w = rng.standard_normal(xs), rng.standard_normal(ws)
            x.reshape(-1)[::5] *= -0.0
            if "infinite" in WAYS[way]:
                x = 1 + np.abs(x)
                w.reshape(-1)[::7] = np.inf
            b = rng.standard_normal(ys[1 if "2d" in call and len(ys) == 4 else 0])
            dtype = dtypes.ALL[kind].np
            fixed = WAYS[way].startswith("constant")
            given[f"x{at}"] = x.astype(dtype)
            (constants if fixed else given)[f"w{at}"] = w.astype(dtype)
            constants[f"b{at}"] = b.astype(dtype)
            shapes = {f"x{at}": ("dynamic", xs), f"y{at}": ("volatile", ys), f"b{at}": ("constant", b.shape),
                      f"w{at}": ("constant" if fixed else "dynamic", ws)}  # fmt: skip
            declared += [f"{section} {{ {name}: {kind}{list(shape)}; }}" for name, (section, shape) in shapes.items()]
            named = call.replace("(x, w, b=b", f"(x{at}, w{at}, b=b{at}")
            calls.append(f"op {named} >> y{at};")
    text = "\n".join(["graph g {", *declared, "block entry {", *calls, "return; } }"])
    return Layers(oic.parse(text), oic.Model(tensors=constants), given)


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Nothing but the loops of conv.h."""
    with monkeypatch.context() as patch:
        for one in CLASSES:
            patch.setattr(one, "kernels", tuple(k for k in one.kernels if k.name == "conv"))
            patch.setattr(one, "flattens", lambda self, target: False)
        yield patch


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share work that is hardly any: the compiler says so, and what a step asks again."""
    monkeypatch.setenv("OIC_CFLAGS", f"{os.environ.get('OIC_CFLAGS', '-O1')} -DOIC_WORK_LEAST=1")
    for name in ("portable", "host"):
        monkeypatch.setitem(TARGETS, name, replace(TARGETS[name], costs=replace(TARGETS[name].costs, thread=40)))


def same(found: dict[str, Array], expected: dict[str, Array]) -> None:
    for name, y in found.items():
        np.testing.assert_array_equal(y.astype(np.float64), expected[name].astype(np.float64), name)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "f8"])
def test_planes_and_panels_have_the_bits_of_loops(kind: str, loops: pytest.MonkeyPatch) -> None:
    """On one and two threads, with registers and without, in both classes of numerics."""
    made = layers(kind)
    separate, fused = made.run(), made.run(numerics="fused")
    same(made.run(threads=2), separate)
    loops.undo()
    same(made.run("portable"), separate)
    same(made.run(threads=2), separate)
    same(made.run(numerics="fused"), fused)
    assert any(np.isinf(y.astype(np.float64)).any() for y in fused.values())


INTEGERS = """
graph integers {
  dynamic { x: i16[2, 6, 9, 14]; w: i16[10, 3, 3, 3]; v: i16[6, 5, 3, 3]; }
  volatile { y: i16[2, 10, 9, 14]; z: i16[2, 10, 11, 16]; }
  block entry {
    op conv2d(x, w, padding=1, groups=2) >> y; op conv_transpose2d(x, v, groups=2) >> z; return;
  }
}"""


@pytest.mark.usefixtures("small_parts")
def test_loops_over_integers_are_shared_among_threads() -> None:
    """And nothing else computes these: their bits are those of the reference."""
    rng, shapes = np.random.default_rng(2), {"x": (2, 6, 9, 14), "w": (10, 3, 3, 3), "v": (6, 5, 3, 3)}
    given = {name: rng.integers(-999, 999, shape).astype(np.int16) for name, shape in shapes.items()}
    made = Layers(oic.parse(INTEGERS), oic.Model(tensors={}), given)
    with oic.Simulator(made.graph, made.model).make_executor() as executor:
        expected = dict(executor.step(**given))
    for threads in (1, 2, 3):
        same(made.run(threads=threads), expected)


EMPTY = """
graph empty {
  dynamic { x: f32[N, 2, 4, 4] @max(N=2); w: f32[3, 2, 3, 3]; v: f32[2, 3, 3, 3]; }
  volatile { y: f32[N, 3, 4, 4]; z: f32[N, 3, 6, 6]; }
  block entry { op conv2d(x, w, padding=1) >> y; op conv_transpose2d(x, v) >> z; return; }
}"""


@pytest.mark.parametrize("count", [0, 2])
def test_infinite_filters_of_no_images_give_nothing(count: int) -> None:
    """Elements that are computed one by one are divided among units, of which there are none."""
    infinite = np.full((3, 2, 3, 3), np.inf, np.float32)
    given = {"x": np.ones((count, 2, 4, 4), np.float32), "w": infinite, "v": infinite.reshape(2, 3, 3, 3)}
    found = Layers(oic.parse(EMPTY), oic.Model(tensors={}), given).run()
    for name, shape in (("y", (count, 3, 4, 4)), ("z", (count, 3, 6, 6))):
        np.testing.assert_array_equal(found[name], np.full(shape, np.inf, np.float32))


@pytest.mark.parametrize("kind, workers", [("i4", 1), ("i16", 2)])
def test_threads_store_no_byte_in_common(kind: str, workers: int) -> None:
    """A row of results of 4 bits may end within a byte, where the next one begins."""
    text = f"""graph g {{ dynamic {{ x: {kind}[6, 90, 41]; w: {kind}[10, 6, 3, 3]; v: {kind}[6, 10, 3, 3]; }}
      volatile {{ y: {kind}[10, 88, 39]; z: {kind}[10, 92, 43]; }}
      block entry {{ op conv2d(x, w) >> y; op conv_transpose2d(x, v) >> z; return; }} }}"""
    planned = oic.Synthesizer(oic.parse(text), threads=2).build().program.planned
    assert planned is not None
    assert [op.workers for op in planned.all_ops() if op.name.startswith("conv")] == [workers] * 2
