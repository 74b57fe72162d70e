"""Steps of small recurrent models: Silero VAD on chunks of 512 samples, and two layers of GRU-256.

The GRUs are written as an ONNX graph for the other engines, with the weights that ours has; Silero's is its own file.
"""

from __future__ import annotations

import os
import runpy
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from against import Unsupported

ROOT = Path(__file__).resolve().parents[2]
SILERO, GRU = ROOT / "examples" / "silero", ROOT / "examples" / "gru_256"
GRUS = runpy.run_path(str(GRU / "weights.py"))
UNITS, LAYERS = GRUS["UNITS"], GRUS["LAYERS"]
DISTRIBUTIONS = {"llama_cpp": "llama-cpp-python"}


def models() -> Path:
    """The folder of models."""
    return Path(os.environ.get("OIC_MODELS") or ROOT.parent / "shared" / "models")


def gru_weights() -> dict[str, np.ndarray]:
    """Of both layers, stacked, in PyTorch's order of gates: r, z, n."""
    return GRUS["weights"]()


def gru_onnx() -> bytes:
    """Two GRU operators, a step each; their states are inputs and outputs."""
    from onnx import TensorProto, helper, numpy_helper

    found = gru_weights()
    nodes, kept, inputs, outputs = [], [], [], []

    def order(matrix: np.ndarray) -> np.ndarray:  # ONNX has z, r, n
        r, z, n = np.split(matrix, 3)
        return np.concatenate([z, r, n])[None]

    x = "x"
    for layer in range(LAYERS):
        for name, array in (
            (f"w{layer}", order(found["wi"][layer])), (f"r{layer}", order(found["wh"][layer])),
            (f"b{layer}", np.concatenate([order(found["bi"][layer])[0], order(found["bh"][layer])[0]])[None]),
        ):  # fmt: skip
            kept.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        given = [x, f"w{layer}", f"r{layer}", f"b{layer}", "", f"h{layer}"]
        nodes.append(helper.make_node("GRU", given, ["", f"g{layer}"], hidden_size=UNITS, linear_before_reset=1))
        x, shape = f"g{layer}", [1, 1, UNITS]
        inputs.append(helper.make_tensor_value_info(f"h{layer}", TensorProto.FLOAT, shape))
        outputs.append(helper.make_tensor_value_info(f"g{layer}", TensorProto.FLOAT, shape))
    inputs.insert(0, helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, UNITS]))
    graph = helper.make_graph(nodes, "grus", inputs, outputs, kept)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return bytes(made.SerializeToString())


class Engine:
    """One model in one engine; `step` runs it once on the state of the step before."""

    def __init__(self, engine: str, model: str, precision: str, threads: int) -> None:
        make = ENGINES.get(engine)
        if make is None:
            raise Unsupported("it does not run such models")
        if precision != "f32" and (engine != "oic" or precision == "f16"):
            raise Unsupported(f"no {precision} of such a model")
        self.version = version(DISTRIBUTIONS.get(engine, engine))
        self.step = make(model, precision, threads)
        for _ in range(20):
            self.step()

    def steps(self, count: int) -> list[float]:
        """Seconds of a step: the mean of ten, so many times."""
        found = []
        for _ in range(max(1, count // 10)):
            start = time.perf_counter()
            for _ in range(10):
                self.step()
            found.append((time.perf_counter() - start) / 10)
        return found


def _oic(model: str, precision: str, threads: int) -> Callable[[], object]:
    import oic
    from against.oic_engine import options

    if model == "silero":
        graph = oic.parse_file(SILERO / "graph.oi")
        weights = oic.Model.open(_there("weights.safetensors"))
    else:
        graph, weights = oic.parse_file(GRU / "graph.oi"), oic.Model(tensors=gru_weights())
    built = oic.Synthesizer(graph, weights, **options(precision, threads)).build()
    executor = built.make_executor()
    name, shape = ("chunk", (512,)) if model == "silero" else ("x", (UNITS,))
    given = {name: (np.random.default_rng(1).random(shape, np.float32) - np.float32(0.5)) / 4}
    return lambda: executor.step(**given)


def _there(name: str) -> Path:
    path = models() / "silero-vad" / name
    if not path.is_file():
        raise Unsupported(f"{path} is not there (OIC_MODELS)")
    return path


def _feeds(model: str) -> dict[str, np.ndarray]:
    """Inputs of the ONNX graphs."""
    draw = np.random.default_rng(1)
    if model == "silero":  # 64 samples of the chunk before, and a chunk
        return {"input": (draw.random((1, 576), np.float32) - np.float32(0.5)) / 4,
                "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000, np.int64)}  # fmt: skip
    found = {"x": (draw.random((1, 1, UNITS), np.float32) - np.float32(0.5)) / 4}
    return found | {f"h{layer}": np.zeros((1, 1, UNITS), np.float32) for layer in range(LAYERS)}


def _onnx(model: str) -> bytes:
    return _there("silero_vad_16k_op15.onnx").read_bytes() if model == "silero" else gru_onnx()


def _onnxruntime(model: str, precision: str, threads: int) -> Callable[[], object]:
    import onnxruntime as ort

    how = ort.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads, how.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(_onnx(model), how, providers=["CPUExecutionProvider"])
    known = {i.name for i in session.get_inputs()}
    feeds = {name: array for name, array in _feeds(model).items() if name in known}

    def step() -> object:
        found = session.run(None, feeds)
        if model == "silero":
            feeds["state"] = found[1]
        else:
            feeds.update({f"h{layer}": array for layer, array in enumerate(found)})
        return found

    return step


def _folded(model: str) -> bytes:
    """The graph for inputs of these sizes, without the operators that only compute sizes: what OpenVINO can read."""
    import onnx
    import onnxruntime as ort

    made = onnx.load_from_string(_onnx(model))
    feeds = _feeds(model)
    for given in made.graph.input:
        for dim, size in zip(given.type.tensor_type.shape.dim, feeds[given.name].shape, strict=True):
            dim.dim_value = size
    how = ort.SessionOptions()
    how.graph_optimization_level, how.log_severity_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC, 3
    with tempfile.TemporaryDirectory() as folder:
        how.optimized_model_filepath = f"{folder}/folded.onnx"
        ort.InferenceSession(made.SerializeToString(), how, providers=["CPUExecutionProvider"])
        return Path(how.optimized_model_filepath).read_bytes()


def _openvino(model: str, precision: str, threads: int) -> Callable[[], object]:
    import openvino as ov
    from openvino.properties import hint

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", hint.inference_precision: ov.Type.f32}
    core = ov.Core()
    read = core.read_model(_folded(model) if model == "silero" else _onnx(model))
    feeds = {name: a for name, a in _feeds(model).items() if any(name in i.names for i in read.inputs)}
    request = core.compile_model(read, "CPU", settings).create_infer_request()

    def step() -> object:
        found: Any = request.infer(feeds)
        if model == "silero":
            feeds["state"] = found[1]
        else:
            feeds.update({f"h{layer}": found[layer] for layer in range(LAYERS)})
        return found

    return step


def _torch(model: str, precision: str, threads: int) -> Callable[[], object]:
    import torch

    if model == "silero":
        raise Unsupported("Silero as TorchScript is not in the folder of models")
    torch.set_num_threads(threads)
    found = gru_weights()
    gru = torch.nn.GRU(UNITS, UNITS, LAYERS)
    with torch.no_grad():
        for layer in range(LAYERS):
            for theirs, mine in (("weight_ih", "wi"), ("weight_hh", "wh"), ("bias_ih", "bi"), ("bias_hh", "bh")):
                getattr(gru, f"{theirs}_l{layer}").copy_(torch.from_numpy(found[mine][layer]))
    x = torch.from_numpy(_feeds(model)["x"])
    state = [torch.zeros(LAYERS, 1, UNITS)]

    def step() -> object:
        with torch.inference_mode():
            y, state[0] = gru(x, state[0])
        return y

    return step


ENGINES = {"oic": _oic, "onnxruntime": _onnxruntime, "openvino": _openvino, "torch": _torch}
