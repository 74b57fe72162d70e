"""OpenVINO: a stateful model of its own operators, attention as ScaledDotProductAttention over a state that grows."""

from __future__ import annotations

import time

import numpy as np
import openvino as ov
from openvino import Type
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo
from openvino.properties import hint

from against import Unsupported
from against.decoders import DECODERS, Decoder
from against.quantized import groups


def constant(array: np.ndarray) -> ov.Node:
    return op.constant(array)


class Graph:
    """A decoder as a model."""

    def __init__(self, decoder: Decoder, precision: str) -> None:
        self.d, self.precision = decoder, precision
        self.states: list[ov.Node] = []

    def matrix(self, name: str) -> ov.Node:
        """A matrix [N, K] in f32, as it is stored."""
        array = self.d.array(name)
        if self.precision in ("f32", "bf16"):  # bf16: narrowed where it is compiled
            return constant(array)
        if self.precision == "f16":
            return op.convert(constant(array.astype(np.float16)), Type.f32)
        bits = 8 if self.precision == "q8" else 4
        q, scale = groups(array, bits)
        if bits == 8:
            stored = constant(q)
        else:
            nibbles = (q.astype(np.uint8) & 15).reshape(-1)
            stored = op.constant(ov.Tensor(nibbles[0::2] | nibbles[1::2] << 4, q.shape, Type.i4))
        wide = op.multiply(op.convert(stored, Type.f32), constant(scale[..., None]))
        return op.reshape(wide, constant(np.array(array.shape, np.int64)), False)

    def product(self, x: ov.Node, name: str, bias: str = "") -> ov.Node:
        y = op.matmul(x, self.matrix(name), False, True)
        return op.add(y, constant(self.d.array(bias))) if bias else y

    def norm(self, x: ov.Node, name: str) -> ov.Node:
        axes = constant(np.array([-1], np.int64))
        if self.d.kind == "gpt2":
            whole = op.mvn(x, axes, True, 1e-5, "inside_sqrt")
            return op.add(op.multiply(whole, constant(self.d.array(name))), constant(self.d.array(f"{name}_b")))
        mean = op.reduce_mean(op.power(x, constant(np.float32(2))), axes, True)
        root = op.sqrt(op.add(mean, constant(np.float32(1e-5))))
        return op.multiply(op.multiply(x, op.divide(constant(np.float32(1)), root)), constant(self.d.array(name)))

    def heads(self, x: ov.Node, heads: int) -> ov.Node:
        split = op.reshape(x, constant(np.array([0, 0, heads, self.d.head], np.int64)), True)
        return op.transpose(split, constant(np.array([0, 2, 1, 3], np.int64)))

    def kept(self, x: ov.Node, name: str, beam: ov.Node) -> ov.Node:
        """All keys or values so far, these behind the others."""
        info = VariableInfo()
        info.data_shape = ov.PartialShape([-1, self.d.kv_heads, -1, self.d.head])
        info.data_type, info.variable_id = Type.f32, name
        variable = Variable(info)
        start = constant(np.zeros((1, self.d.kv_heads, 0, self.d.head), np.float32))
        past = op.gather(op.read_value(start, variable), beam, constant(np.int64(0)))
        whole = op.concat([past, x], 2)
        self.states.append(op.assign(whole, variable))
        if self.d.heads == self.d.kv_heads:
            return whole
        repeat = self.d.heads // self.d.kv_heads
        five = op.unsqueeze(whole, constant(np.int64(2)))
        spread = op.broadcast(five, op.concat([
            op.gather(op.shape_of(five), constant(np.array([0, 1], np.int64)), constant(np.int64(0))),
            constant(np.array([repeat], np.int64)),
            op.gather(op.shape_of(five), constant(np.array([3, 4], np.int64)), constant(np.int64(0)))], 0))  # fmt: skip
        return op.reshape(spread, constant(np.array([0, self.d.heads, -1, self.d.head], np.int64)), True)

    def turned(self, x: ov.Node, cos: ov.Node, sin: ov.Node) -> ov.Node:
        halves = op.split(x, constant(np.int64(3)), 2)
        a, b = halves.output(0), halves.output(1)
        other = op.concat([op.multiply(b, constant(np.float32(-1))), a], 3)
        return op.add(op.multiply(x, cos), op.multiply(other, sin))

    def model(self) -> ov.Model:
        d = self.d
        tokens = op.parameter([1, -1], Type.i64, name="tokens")
        positions = op.parameter([1, -1], Type.i64, name="positions")
        beam = op.parameter([1], Type.i32, name="beam_idx")
        mask = op.parameter([1, 1, -1, -1], Type.f32, name="mask")
        zero = constant(np.int64(0))
        x = op.gather(op.convert(constant(d.array("embed").astype(np.float16)), Type.f32)
                      if self.precision != "f32" else constant(d.array("embed")), tokens, zero)  # fmt: skip
        if d.kind == "gpt2":
            x = op.add(x, op.gather(constant(d.array("places")), positions, zero))
        else:
            half = np.arange(0, d.head, 2) / d.head
            angles = np.outer(np.arange(d.context), np.tile(10000.0**-half, 2)).astype(np.float32)
            one = constant(np.int64(1))
            cos, sin = (op.unsqueeze(op.gather(constant(f(angles)), positions, zero), one) for f in (np.cos, np.sin))
        for i in range(d.layers):
            h = self.norm(x, f"{i}.norm1")
            if d.kind == "gpt2":
                parts = op.split(self.product(h, f"{i}.qkv", f"{i}.qkv_b"), constant(np.int64(2)), 3)
                q, k, v = (parts.output(n) for n in range(3))
            else:
                q, k, v = (self.product(h, f"{i}.{n}") for n in "qkv")
            q, k, v = self.heads(q, d.heads), self.heads(k, d.kv_heads), self.heads(v, d.kv_heads)
            if d.kind == "llama":
                q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
            a = op.scaled_dot_product_attention(
                q, self.kept(k, f"k{i}", beam), self.kept(v, f"v{i}", beam), mask, causal=False
            )
            y = op.reshape(op.transpose(a, constant(np.array([0, 2, 1, 3], np.int64))),
                           constant(np.array([0, 0, d.width], np.int64)), True)  # fmt: skip
            bias = d.kind == "gpt2"
            x = op.add(x, self.product(y, f"{i}.out", f"{i}.out_b" if bias else ""))
            h = self.norm(x, f"{i}.norm2")
            if bias:
                y = self.product(op.gelu(self.product(h, f"{i}.up", f"{i}.up_b"), "tanh"), f"{i}.down", f"{i}.down_b")
            else:
                gate = op.swish(self.product(h, f"{i}.gate"))
                y = self.product(op.multiply(gate, self.product(h, f"{i}.up")), f"{i}.down")
            x = op.add(x, y)
        last = op.gather(x, constant(np.array([-1], np.int64)), constant(np.int64(1)))
        logits = self.product(self.norm(last, "norm"), "embed")
        best = op.topk(logits, constant(np.int64(1)), -1, "max", "value")
        return ov.Model([op.result(best.output(1))], self.states, [tokens, positions, beam, mask], "decoder")


class Engine:
    """A compiled model with its state."""

    version = ov.__version__.split("-")[0]

    def __init__(self, decoder: str, precision: str, threads: int, prompt: int) -> None:
        core = ov.Core()
        if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise Unsupported("no bf16 on this machine")
        self.decoder = DECODERS[decoder]
        computed = Type.bf16 if precision == "bf16" else Type.f32
        settings = {hint.inference_precision: computed, hint.kv_cache_precision: computed,
                    "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}  # fmt: skip
        compiled = core.compile_model(Graph(self.decoder, precision).model(), "CPU", settings)
        self.request = compiled.create_infer_request()
        self.position = 0

    def _feed(self, count: int) -> None:
        end = self.position + count
        mask = np.zeros((1, 1, count, end), np.float32)
        if count > 1:
            mask[0, 0] = np.where(np.tri(count, end, self.position, bool), 0, -np.inf)
        self.request.infer([np.full((1, count), 7, np.int64), np.arange(self.position, end)[None],
                            np.zeros(1, np.int32), mask])  # fmt: skip
        self.position = end

    def _reset(self) -> None:
        self.request.reset_state()
        self.position = 0

    def decode(self, position: int, count: int) -> list[float]:
        if self.position > position:
            for state in self.request.query_state():
                state.state = ov.Tensor(np.ascontiguousarray(state.state.data[:, :, :position]))
            self.position = position
        if self.position < position:
            self._feed(position - self.position)
        seconds = []
        for _ in range(count):
            start = time.perf_counter()
            self._feed(1)
            seconds.append(time.perf_counter() - start)
        return seconds

    def prefill(self, count: int) -> float:
        self._reset()
        start = time.perf_counter()
        self._feed(count)
        return time.perf_counter() - start
