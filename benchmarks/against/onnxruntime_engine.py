"""onnxruntime: a graph of its fused operators (GroupQueryAttention, MatMulNBits), caches bound to one buffer."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from against import Unsupported
from against.decoders import DECODERS, Decoder
from against.quantized import GROUP, groups

CONTRIB = "com.microsoft"


class Writer:
    """Nodes and initializers of a model."""

    def __init__(self, decoder: Decoder, bits: int) -> None:
        self.decoder, self.bits = decoder, bits
        self.nodes: list[onnx.NodeProto] = []
        self.kept: list[onnx.TensorProto] = []
        self.count = 0

    def constant(self, name: str, array: np.ndarray) -> str:
        self.kept.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(
        self, op: str, inputs: list[str], outputs: list[str] | None = None, domain: str = "", **settings: object
    ) -> str:
        self.count += 1
        names = outputs or [f"v{self.count}"]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{self.count}", domain=domain, **settings))
        return names[0]

    def product(self, x: str, name: str, bias: str = "") -> str:
        """x times the transpose of a matrix."""
        matrix = self.decoder.array(name)
        rows, columns = matrix.shape
        if self.bits == 32:
            y = self.node("MatMul", [x, self.constant(f"{name}.t", matrix.T)])
        else:
            q, scale = groups(matrix, self.bits)
            if self.bits == 8:
                packed = (q.astype(np.int16) + 128).astype(np.uint8)
            else:
                nibbles = (q + 8).astype(np.uint8)
                packed = nibbles[..., 0::2] | nibbles[..., 1::2] << 4
            given = [x, self.constant(f"{name}.q", packed), self.constant(f"{name}.s", scale.reshape(-1))]
            y = self.node("MatMulNBits", given, domain=CONTRIB, K=columns, N=rows, bits=self.bits, block_size=GROUP,
                          accuracy_level=4)  # fmt: skip
        return self.node("Add", [y, self.constant(bias, self.decoder.array(bias))]) if bias else y

    def norm(self, x: str, name: str) -> str:
        if self.decoder.kind == "gpt2":
            given = [x, self.constant(name, self.decoder.array(name)),
                     self.constant(f"{name}_b", self.decoder.array(f"{name}_b"))]  # fmt: skip
            return self.node("LayerNormalization", given, epsilon=1e-5)
        given = [x, self.constant(name, self.decoder.array(name))]
        return self.node("SimplifiedLayerNormalization", given, epsilon=1e-5, axis=-1)

    def model(self) -> onnx.ModelProto:
        d = self.decoder
        x = self.node("Gather", [self.constant("table", d.array("embed")), "tokens"])
        if d.kind == "gpt2":
            x = self.node("Add", [x, self.node("Gather", [self.constant("places", d.array("places")), "positions"])])
        else:
            half = np.arange(0, d.head, 2) / d.head
            angles = np.outer(np.arange(d.context), 10000.0**-half).astype(np.float32)
            turn = [self.constant("cos", np.cos(angles)), self.constant("sin", np.sin(angles))]
        for i in range(d.layers):
            h = self.norm(x, f"{i}.norm1")
            if d.kind == "gpt2":
                qkv = self.product(h, f"{i}.qkv", f"{i}.qkv_b")
                self.node("Split", [qkv], [f"{i}.q", f"{i}.k", f"{i}.v"], axis=-1, num_outputs=3)
                q, k, v = (f"{i}.{n}" for n in "qkv")
            else:
                q, k, v = (self.product(h, f"{i}.{n}") for n in "qkv")
            given = [q, k, v, f"past_k{i}", f"past_v{i}", "before", "total"]
            given += turn if d.kind == "llama" else []
            a = self.node("GroupQueryAttention", given, [f"a{i}", f"k{i}", f"v_{i}"], domain=CONTRIB, num_heads=d.heads,
                          kv_num_heads=d.kv_heads, do_rotary=int(d.kind == "llama"))  # fmt: skip
            bias = d.kind == "gpt2"
            x = self.node("Add", [x, self.product(a, f"{i}.out", f"{i}.out_b" if bias else "")])
            h = self.norm(x, f"{i}.norm2")
            if bias:
                up = self.product(h, f"{i}.up", f"{i}.up_b")
                y = self.product(self.node("FastGelu", [up], domain=CONTRIB), f"{i}.down", f"{i}.down_b")
            else:
                gate = self.product(h, f"{i}.gate")
                silu = self.node("Mul", [gate, self.node("Sigmoid", [gate])])
                y = self.product(self.node("Mul", [silu, self.product(h, f"{i}.up")]), f"{i}.down")
            x = self.node("Add", [x, y])
        last = self.node("Slice", [x, *(self.constant(n, np.array([v], np.int64)) for n, v in
                                        (("s", -1), ("e", 1 << 40), ("ax", 1)))])  # fmt: skip
        logits = self.product(self.norm(last, "norm"), "embed")
        self.node("ArgMax", [logits], ["next"], axis=-1, keepdims=0)
        cache = [1, d.kv_heads, d.context, d.head]
        value = helper.make_tensor_value_info
        inputs = [value("tokens", TensorProto.INT64, [1, "n"]), value("before", TensorProto.INT32, [1]),
                  value("total", TensorProto.INT32, [])]  # fmt: skip
        inputs += [value("positions", TensorProto.INT64, [1, "n"])] if d.kind == "gpt2" else []
        outputs = [value("next", TensorProto.INT64, [1, 1])]
        for i in range(d.layers):
            inputs += [value(f"past_k{i}", TensorProto.FLOAT, cache), value(f"past_v{i}", TensorProto.FLOAT, cache)]
            outputs += [value(f"k{i}", TensorProto.FLOAT, cache), value(f"v_{i}", TensorProto.FLOAT, cache)]
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.kept)
        return helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)])  # fmt: skip


class Engine:
    """A session with caches that it writes in place."""

    version = ort.__version__

    def __init__(self, decoder: str, precision: str, threads: int, prompt: int) -> None:
        bits = {"f32": 32, "q8": 8, "q4": 4}.get(precision)
        d = self.decoder = DECODERS[decoder]
        if bits is None:
            raise Unsupported(f"no {precision} on a CPU")
        if d.weight_bytes("f32") > 2e9:
            raise Unsupported("a model of one file has at most 2 GB")
        how = ort.SessionOptions()
        how.intra_op_num_threads, how.inter_op_num_threads = threads, 1
        how.log_severity_level = 3
        self.session = ort.InferenceSession(
            Writer(d, bits).model().SerializeToString(), how, providers=["CPUExecutionProvider"]
        )
        shape = (1, d.kv_heads, d.context, d.head)
        self.caches = [ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)) for _ in range(2 * d.layers)]
        self.position = 0

    def _feed(self, count: int) -> None:
        binding, end = self.session.io_binding(), self.position + count
        binding.bind_cpu_input("tokens", np.full((1, count), 7, np.int64))
        if self.decoder.kind == "gpt2":
            binding.bind_cpu_input("positions", np.arange(self.position, end)[None])
        binding.bind_cpu_input("before", np.array([end - 1], np.int32))
        binding.bind_cpu_input("total", np.array(end, np.int32))
        for i in range(self.decoder.layers):
            for name, result, cache in (("past_k", "k", self.caches[2 * i]), ("past_v", "v_", self.caches[2 * i + 1])):
                binding.bind_ortvalue_input(f"{name}{i}", cache)
                binding.bind_ortvalue_output(f"{result}{i}", cache)
        binding.bind_output("next", "cpu")
        self.session.run_with_iobinding(binding)
        self.position = end

    def decode(self, position: int, count: int) -> list[float]:
        self.position = min(self.position, position)  # what lies behind is written again
        if self.position < position:
            self._feed(position - self.position)
        seconds = []
        for _ in range(count):
            start = time.perf_counter()
            self._feed(1)
            seconds.append(time.perf_counter() - start)
        return seconds

    def prefill(self, count: int) -> float:
        self.position = 0
        start = time.perf_counter()
        self._feed(count)
        return time.perf_counter() - start
