"""Convolutions with constant filters and a bias, one image at a time, called from Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from against import Unsupported

Step = Callable[[], object]


@dataclass(frozen=True)
class Layer:
    """A convolution.

    x, w     shapes of an image and of the filters: [channels, sizes..], [outputs, channels / groups, taps..], of a
             transposed one [channels, outputs / groups, taps..]
    padding  on every side of every axis
    """

    operator: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1

    @property
    def transposed(self) -> bool:
        return "transpose" in self.operator

    @property
    def axes(self) -> int:
        return len(self.x) - 1

    @property
    def y(self) -> tuple[int, ...]:
        """The result's shape."""
        spans = [self.dilation * (taps - 1) + 1 for taps in self.w[2:]]
        if self.transposed:
            sizes = [(n - 1) * self.stride - 2 * self.padding + span for n, span in zip(self.x[1:], spans, strict=True)]
            return self.w[1] * self.groups, *sizes
        sizes = [(n + 2 * self.padding - span) // self.stride + 1 for n, span in zip(self.x[1:], spans, strict=True)]
        return self.w[0], *sizes

    @property
    def operations(self) -> int:
        """Products and sums, those with the padding too."""
        return 2 * int(np.prod(self.x if self.transposed else self.y)) * int(np.prod(self.w[1:]))

    def arrays(self) -> dict[str, np.ndarray]:
        """An image, filters and a bias."""
        draw = np.random.default_rng(5)
        shapes = {"x": self.x, "w": self.w, "b": (self.y[0],)}
        return {name: draw.standard_normal(shape, np.float32) for name, shape in shapes.items()}


LAYERS = {
    "3x3": Layer("conv2d", (64, 56, 56), (64, 64, 3, 3), padding=1),
    "1x1": Layer("conv2d", (64, 56, 56), (256, 64, 1, 1)),
    "7x7 / 2": Layer("conv2d", (3, 224, 224), (64, 3, 7, 7), stride=2, padding=3),
    "3x3 4 groups": Layer("conv2d", (64, 56, 56), (64, 16, 3, 3), padding=1, groups=4),
    "3x3 depth": Layer("conv2d", (128, 56, 56), (128, 1, 3, 3), padding=1, groups=128),
    "3x3 depth / 2": Layer("conv2d", (128, 56, 56), (128, 1, 3, 3), stride=2, padding=1, groups=128),
    "3": Layer("conv1d", (256, 200), (256, 256, 3), padding=1),
    "3 4 apart": Layer("conv1d", (256, 200), (256, 256, 3), padding=4, dilation=4),
    "7 depth": Layer("conv1d", (256, 200), (256, 1, 7), padding=3, groups=256),
    "16 up 8": Layer("conv_transpose1d", (256, 100), (256, 128, 16), stride=8, padding=4),
    "4x4 up 2": Layer("conv_transpose2d", (128, 16, 16), (128, 64, 4, 4), stride=2, padding=1),
}


class Engine:
    """All layers in one engine."""

    def __init__(self, engine: str, precision: str, threads: int) -> None:
        make = ENGINES.get(engine)
        if make is None or precision != "f32":
            raise Unsupported("it does not run such layers" if make is None else f"no {precision} of such layers")
        self.version = version(engine)
        self.calls = {name: make(layer, threads) for name, layer in LAYERS.items()}

    def seconds(self, name: str, count: int) -> list[float]:
        """Of a call, so many times."""
        call, found = self.calls[name], []
        for _ in range(count):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
        return found


def _oic(layer: Layer, threads: int) -> Step:
    import oic

    def shape(sizes: tuple[int, ...]) -> str:
        return f"f32[{', '.join(map(str, sizes))}]"

    given = layer.arrays()
    settings = ", ".join(f"{name}={getattr(layer, name)}" for name in ("stride", "padding", "dilation", "groups"))
    text = f"""graph layer {{
        dynamic {{ x: {shape(layer.x)}; }} constant {{ w: {shape(layer.w)}; b: f32[{layer.y[0]}]; }}
        volatile {{ y: {shape(layer.y)}; }}
        block entry {{ op {layer.operator}(x, w, b=b, {settings}) >> y; return; }}
    }}"""
    model = oic.Model(tensors={name: given[name] for name in ("w", "b")})
    executor = oic.Synthesizer(oic.parse(text), model, threads=threads).build().make_executor()
    return lambda: executor.step(x=given["x"])


def _onnxruntime(layer: Layer, threads: int) -> Step:
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    given, axes = layer.arrays(), layer.axes
    node = helper.make_node(
        "ConvTranspose" if layer.transposed else "Conv", ["x", "w", "b"], ["y"], strides=[layer.stride] * axes,
        pads=[layer.padding] * 2 * axes, dilations=[layer.dilation] * axes, group=layer.groups,
    )  # fmt: skip
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, *s]) for n, s in (("x", layer.x), ("y", layer.y)))
    kept = [numpy_helper.from_array(given[name], name) for name in ("w", "b")]
    made = helper.make_model(helper.make_graph([node], "layer", [x], [y], kept),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=10)  # fmt: skip
    how = ort.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads, how.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(made.SerializeToString(), how, providers=["CPUExecutionProvider"])
    feeds = {"x": given["x"][None]}
    return lambda: session.run(None, feeds)


def _torch(layer: Layer, threads: int) -> Step:
    import torch

    torch.set_num_threads(threads)
    given = {name: torch.from_numpy(array) for name, array in layer.arrays().items()}
    operator = getattr(torch.nn.functional, layer.operator)
    x, settings = given["x"][None], {n: getattr(layer, n) for n in ("stride", "padding", "dilation", "groups")}

    def step() -> object:
        with torch.inference_mode():
            return operator(x, given["w"], given["b"], **settings)

    return step


ENGINES = {"oic": _oic, "onnxruntime": _onnxruntime, "torch": _torch}
