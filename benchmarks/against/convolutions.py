"""Convolutions with constant filters and a bias, one image at a time, called from Python.

In f32; in f16 and bf16, images and filters and results; or of bytes that become bytes again (q8): sums in 32 bits,
scaled by a factor for each output channel.  The others take their images as bytes without a sign, which they are made
for on x86; oic, with one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from against import Unsupported

Step = Callable[[], object]

WARMED = 0.1  # seconds of calls before those that count


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

    @property
    def scale(self) -> float:
        """A factor of sums of bytes that leaves most of them bytes."""
        return 1 / (32 * float(np.prod(self.w[1:])) ** 0.5)

    def integers(self) -> dict[str, np.ndarray]:
        """An image, filters and a bias, of bytes and of 32 bits; filters of 7 bits, whose sums no engine saturates."""
        draw = np.random.default_rng(5)
        ends = (("x", self.x, 127), ("w", self.w, 63))
        whole = {name: draw.integers(-most, most + 1, shape, np.int8) for name, shape, most in ends}
        return {**whole, "b": draw.integers(-999, 1000, self.y[:1], np.int32)}

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
    """All layers that an engine has in a precision: of bytes, oic alone transposes any."""

    def __init__(self, engine: str, precision: str, threads: int) -> None:
        make = ENGINES[precision].get(engine)
        if make is None:
            raise Unsupported("it does not run such layers")
        self.version = version(engine)
        every = precision != "q8" or engine == "oic"
        self.calls = {name: make(layer, threads) for name, layer in LAYERS.items() if every or not layer.transposed}

    def seconds(self, name: str, count: int) -> list[float]:
        """Of a call, so many times, after calls that do not count: cores that waited are slow, and threads sleep."""
        call = self.calls.get(name)
        if call is None:
            raise Unsupported("no transposed convolution of bytes")
        found, end = [], time.perf_counter() + WARMED
        while time.perf_counter() < end:
            call()
        for _ in range(count):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
        return found


def _oic(layer: Layer, threads: int, kind: str = "f32") -> Step:
    from oic.dtypes import ALL

    given = {name: array.astype(ALL[kind].np) for name, array in layer.arrays().items()}
    body = f"op {layer.operator}(x, w, b=b, {_settings(layer)}) >> y;"
    return _compiled(layer, kind, kind, given, {}, body, threads)


def _oic_bytes(layer: Layer, threads: int) -> Step:
    outputs, ones = layer.y[0], [1] * layer.axes
    fraction, exponent = np.frexp(layer.scale)
    each = (outputs, *ones)
    more = {"m": np.full(each, round(fraction * 2**31), np.int32), "s": np.full(each, exponent, np.int8)}
    body = f"""assign sum: {_shape("i32", layer.y)};
        op {layer.operator}(x, w, b=b, acc=i32, {_settings(layer)}) >> sum; op requantize(sum, m, s, to=i8) >> y;"""
    return _compiled(layer, "i8", "i32", layer.integers(), more, body, threads)


def _compiled(
    layer: Layer, kind: str, wide: str, given: dict[str, np.ndarray], more: dict[str, np.ndarray], body: str,
    threads: int,
) -> Step:  # fmt: skip
    import oic

    constants = {"w": _shape(kind, layer.w), "b": _shape(wide, layer.y[:1])}
    constants |= {name: _shape(f"i{8 * array.itemsize}", array.shape) for name, array in more.items()}
    text = f"""graph layer {{
        dynamic {{ x: {_shape(kind, layer.x)}; }} volatile {{ y: {_shape(kind, layer.y)}; }}
        constant {{ {" ".join(f"{name}: {type_};" for name, type_ in constants.items())} }}
        block entry {{ {body} return; }}
    }}"""
    model = oic.Model(tensors={"w": given["w"], "b": given["b"], **more})
    executor = oic.Synthesizer(oic.parse(text), model, threads=threads).build().make_executor()
    return lambda: executor.step(x=given["x"])


def _shape(kind: str, sizes: tuple[int, ...]) -> str:
    return f"{kind}[{', '.join(map(str, sizes))}]"


def _settings(layer: Layer) -> str:
    return ", ".join(f"{name}={getattr(layer, name)}" for name in ("stride", "padding", "dilation", "groups"))


def _onnxruntime(layer: Layer, threads: int) -> Step:
    from onnx import helper, numpy_helper

    given, operator = layer.arrays(), "ConvTranspose" if layer.transposed else "Conv"
    node = helper.make_node(operator, ["x", "w", "b"], ["y"], **_attributes(layer))
    kept = [numpy_helper.from_array(given[name], name) for name in ("w", "b")]
    return _session(layer, node, kept, given["x"], threads)


def _onnxruntime_bytes(layer: Layer, threads: int) -> Step:
    from onnx import helper, numpy_helper

    given, outputs = layer.integers(), layer.y[0]
    constants = {
        "xs": np.float32(1), "xz": np.uint8(128), "w": given["w"], "ws": np.full(outputs, layer.scale, np.float32),
        "wz": np.zeros(outputs, np.int8), "ys": np.float32(1), "yz": np.uint8(128), "b": given["b"],
    }  # fmt: skip
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], **_attributes(layer))
    kept = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    return _session(layer, node, kept, _without_sign(given["x"]), threads)


def _without_sign(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.int16) + 128).astype(np.uint8)


def _attributes(layer: Layer) -> dict[str, Any]:
    axes = layer.axes
    return {"strides": [layer.stride] * axes, "pads": [layer.padding] * 2 * axes, "dilations": [layer.dilation] * axes,
            "group": layer.groups}  # fmt: skip


def _session(layer: Layer, node: Any, kept: list[Any], x: np.ndarray, threads: int) -> Step:
    import onnxruntime as ort
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    ends = [helper.make_tensor_value_info(name, kind, [1, *shape]) for name, shape in (("x", layer.x), ("y", layer.y))]
    made = helper.make_model(helper.make_graph([node], "layer", ends[:1], ends[1:], kept),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=10)  # fmt: skip
    how = ort.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads, how.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(made.SerializeToString(), how, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x[None]})


def _torch(layer: Layer, threads: int, kind: str = "float32") -> Step:
    import torch

    torch.set_num_threads(threads)
    given = {name: torch.from_numpy(array).to(getattr(torch, kind)) for name, array in layer.arrays().items()}
    operator = getattr(torch.nn.functional, layer.operator)
    x, settings = given["x"][None], {n: getattr(layer, n) for n in ("stride", "padding", "dilation", "groups")}

    def step() -> object:
        with torch.inference_mode():
            return operator(x, given["w"], given["b"], **settings)

    return step


def _torch_bytes(layer: Layer, threads: int) -> Step:
    import torch

    torch.set_num_threads(threads)
    torch.backends.quantized.engine = "x86"
    given, axes, outputs = layer.integers(), layer.axes, layer.y[0]
    scales = torch.full((outputs,), layer.scale, dtype=torch.float64)
    wide = torch.from_numpy(given["w"].astype(np.float32)) * layer.scale
    w = torch.quantize_per_channel(wide, scales, torch.zeros(outputs, dtype=torch.int64), 0, torch.qint8)
    b = torch.from_numpy(given["b"].astype(np.float32)) * layer.scale
    x = torch.quantize_per_tensor(torch.from_numpy(given["x"].astype(np.float32))[None], 1.0, 128, torch.quint8)
    settings = [[n] * axes for n in (layer.stride, layer.padding, layer.dilation)]
    operators = torch.ops.quantized
    packed = getattr(operators, f"{layer.operator}_prepack")(w, b, *settings, layer.groups)
    operator = getattr(operators, layer.operator)

    def step() -> object:
        with torch.inference_mode():
            return operator(x, packed, 1.0, 128)

    return step


ENGINES: dict[str, dict[str, Callable[[Layer, int], Step]]] = {
    "f32": {"oic": _oic, "onnxruntime": _onnxruntime, "torch": _torch},
    "f16": {"oic": partial(_oic, kind="f16"), "torch": partial(_torch, kind="float16")},
    "bf16": {"oic": partial(_oic, kind="bf16"), "torch": partial(_torch, kind="bfloat16")},
    "q8": {"oic": _oic_bytes, "onnxruntime": _onnxruntime_bytes, "torch": _torch_bytes},
}
