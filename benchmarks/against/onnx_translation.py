"""ByT5 as two ONNX graphs: an encoder, which ends in the keys and values that the decoder's layers look at, and a
decoder of one token, which takes the keys and values so far and gives them with its own."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from safetensors.numpy import load_file

from against.onnxruntime_engine import CONTRIB, Writer


class Weights:
    """The matrices of a checkpoint, those of one operand side by side."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = load_file(folder / "model.safetensors")

    def array(self, name: str) -> np.ndarray:
        return np.concatenate([self.tensors[f"{part}.weight"] for part in name.split("+")])


def buckets(distance: np.ndarray, count: int, furthest: int, both: bool) -> np.ndarray:
    """T5's buckets of distances key - query; `both`: of those before and behind."""
    count //= 2 if both else 1
    side = (distance > 0) * count if both else 0
    far = np.abs(distance) if both else np.maximum(-distance, 0)
    exact = count // 2
    with np.errstate(divide="ignore"):
        log = exact + np.log(far / exact) / math.log(furthest / exact) * (count - exact)
    return side + np.where(far < exact, far, np.minimum(np.nan_to_num(log, neginf=0).astype(np.int64), count - 1))


class Graph(Writer):
    """Nodes of one of the two graphs."""

    def __init__(self, weights: Weights, bits: int) -> None:
        super().__init__(weights, bits)
        c = self.config = weights.config
        self.weights, self.heads, self.head, self.eps = weights, c["num_heads"], c["d_kv"], c["layer_norm_epsilon"]
        self.width, self.vocab = c["d_model"], c["vocab_size"]

    def kept_once(self, name: str) -> str:
        """A constant of the checkpoint."""
        return self.constant(name, self.weights.array(name))

    def norm(self, x: str, name: str) -> str:
        return self.node("SimplifiedLayerNormalization", [x, self.kept_once(name)], epsilon=self.eps, axis=-1)

    def add_norm(self, x: str, y: str, name: str) -> tuple[str, str]:
        """x + y normalised, and x + y."""
        outputs = [f"{name}.h", "", "", f"{name}.x"]
        self.node("SkipSimplifiedLayerNormalization", [x, y, self.kept_once(name)], outputs, CONTRIB, epsilon=self.eps)
        return outputs[0], outputs[3]

    def split(self, x: str, *names: str) -> list[str]:
        found = [f"{x}.{name}" for name in names]
        self.node("Split", [x], found, axis=-1, num_outputs=len(names))
        return found

    def attention(self, given: list[str], outputs: list[str]) -> str:
        return self.node("MultiHeadAttention", given, outputs, CONTRIB, num_heads=self.heads, scale=1.0)

    def network(self, h: str, layer: str) -> str:
        both = self.product(h, f"{layer}.DenseReluDense.wi_0+{layer}.DenseReluDense.wi_1")
        gate, up = self.split(both, "gate", "up")
        gate = self.node("FastGelu", [gate], domain=CONTRIB)
        return self.product(self.node("Mul", [gate, up]), f"{layer}.DenseReluDense.wo")

    def distances(self, side: str, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The bias of positions, [1, heads, queries, keys]."""
        c, name = self.config, f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias"
        found = buckets(keys[None] - queries[:, None], c["relative_attention_num_buckets"],
                        c["relative_attention_max_distance"], side == "encoder")  # fmt: skip
        return self.weights.array(name)[found].transpose(2, 0, 1)[None].astype(np.float32)

    def made(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> bytes:
        graph = helper.make_graph(self.nodes, "t5", inputs, outputs, self.kept)
        sets = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
        return bytes(helper.make_model(graph, ir_version=10, opset_imports=sets).SerializeToString())


def tensor(name: str, shape: list[object], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def encoder(weights: Weights, bits: int, length: int) -> bytes:
    """source [1, length] to cross_k0, cross_v0, ... [1, heads, length, size]."""
    g = Graph(weights, bits)
    x = g.node("Gather", [g.kept_once("shared"), "source"])
    places = np.arange(length)
    bias = g.constant("bias", g.distances("encoder", places, places))
    h = g.norm(x, "encoder.block.0.layer.0.layer_norm")
    layers = g.config["num_layers"]
    for i in range(layers):
        at = f"encoder.block.{i}.layer"
        q, k, v = g.split(g.product(h, "+".join(f"{at}.0.SelfAttention.{n}" for n in "qkv")), *"qkv")
        a = g.product(g.attention([q, k, v, "", "", bias], [f"{at}.a"]), f"{at}.0.SelfAttention.o")
        h, x = g.add_norm(x, a, f"{at}.1.layer_norm")
        after = f"encoder.block.{i + 1}.layer.0.layer_norm" if i + 1 < layers else "encoder.final_layer_norm"
        h, x = g.add_norm(x, g.network(h, f"{at}.1"), after)
    shape = g.constant("heads", np.array([1, length, g.heads, g.head], np.int64))
    outputs = []
    for i in range(g.config["num_decoder_layers"]):
        for n in "kv":
            y = g.product(h, f"decoder.block.{i}.layer.1.EncDecAttention.{n}")
            g.node("Transpose", [g.node("Reshape", [y, shape])], [f"cross_{n}{i}"], perm=[0, 2, 1, 3])
            outputs.append(tensor(f"cross_{n}{i}", [1, g.heads, length, g.head]))
    return g.made([tensor("source", [1, length], TensorProto.INT64)], outputs)


def decoder(weights: Weights, bits: int, most: int) -> bytes:
    """token [1, 1], at (its position), cross_k0 ..., past_k0 ... to next [1, 1], all_k0 ..."""
    g = Graph(weights, bits)
    x = g.node("Gather", [g.kept_once("shared"), "token"])
    # Of a query at `most - 1`; one at p takes the last p + 1.
    bias = g.constant("bias", g.distances("decoder", np.array([most - 1]), np.arange(most)))
    one = [g.constant(n, np.array([v], np.int64)) for n, v in (("last", most - 1), ("end", most), ("axis", 3))]
    bias = g.node("Slice", [bias, g.node("Sub", [one[0], "at"]), one[1], one[2]])
    h = g.norm(x, "decoder.block.0.layer.0.layer_norm")
    inputs = [tensor("token", [1, 1], TensorProto.INT64), tensor("at", [1], TensorProto.INT64)]
    outputs, layers = [tensor("next", [1, 1], TensorProto.INT64)], g.config["num_decoder_layers"]
    for i in range(layers):
        at = f"decoder.block.{i}.layer"
        q, k, v = g.split(g.product(h, "+".join(f"{at}.0.SelfAttention.{n}" for n in "qkv")), *"qkv")
        a = g.attention([q, k, v, "", "", bias, f"past_k{i}", f"past_v{i}"], [f"{at}.a", f"all_k{i}", f"all_v{i}"])
        h, x = g.add_norm(x, g.product(a, f"{at}.0.SelfAttention.o"), f"{at}.1.layer_norm")
        q = g.product(h, f"{at}.1.EncDecAttention.q")
        a = g.attention([q, f"cross_k{i}", f"cross_v{i}"], [f"{at}.c"])
        h, x = g.add_norm(x, g.product(a, f"{at}.1.EncDecAttention.o"), f"{at}.2.layer_norm")
        after = f"decoder.block.{i + 1}.layer.0.layer_norm" if i + 1 < layers else "decoder.final_layer_norm"
        h, x = g.add_norm(x, g.network(h, f"{at}.2"), after)
        for n in "kv":
            inputs += [tensor(f"cross_{n}{i}", [1, g.heads, "S", g.head])]
            inputs += [tensor(f"past_{n}{i}", [1, g.heads, "P", g.head])]
            outputs += [tensor(f"all_{n}{i}", [1, g.heads, "T", g.head])]
    g.node("ArgMax", [g.product(h, "lm_head")], ["next"], axis=-1, keepdims=0)
    return g.made(inputs, outputs)
