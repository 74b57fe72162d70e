"""Decoders by shape, with random weights that are the same wherever they are made.

Matrices are [out, in].  A GPT-2 has norms with biases, biases of products, learned positions and a gelu; a Llama has
RMS norms, rotary positions and a gated silu.  Both tie the last product to the embeddings.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Decoder:
    """A shape.  `context`: the positions that a state has room for."""

    kind: str
    width: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    vocab: int
    context: int = 1024

    @property
    def head(self) -> int:
        return self.width // self.heads

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Every tensor's shape, by name."""
        d, f, kv = self.width, self.inner, self.kv_heads * self.head
        found: dict[str, tuple[int, ...]] = {"embed": (self.vocab, d)}
        if self.kind == "gpt2":
            found |= {"places": (self.context, d), "norm": (d,), "norm_b": (d,)}
            for i in range(self.layers):
                found |= {
                    f"{i}.norm1": (d,), f"{i}.norm1_b": (d,), f"{i}.qkv": (3 * d, d), f"{i}.qkv_b": (3 * d,),
                    f"{i}.out": (d, d), f"{i}.out_b": (d,), f"{i}.norm2": (d,), f"{i}.norm2_b": (d,),
                    f"{i}.up": (f, d), f"{i}.up_b": (f,), f"{i}.down": (d, f), f"{i}.down_b": (d,),
                }  # fmt: skip
            return found
        found["norm"] = (d,)
        for i in range(self.layers):
            found |= {
                f"{i}.norm1": (d,), f"{i}.q": (d, d), f"{i}.k": (kv, d), f"{i}.v": (kv, d), f"{i}.out": (d, d),
                f"{i}.norm2": (d,), f"{i}.gate": (f, d), f"{i}.up": (f, d), f"{i}.down": (d, f),
            }  # fmt: skip
        return found

    def array(self, name: str) -> np.ndarray:
        """The values of a tensor: uniform, small; gains of norms about 1."""
        shape = self.tensors()[name]
        draw = np.random.default_rng(zlib.crc32(name.encode())).random(shape, np.float32)
        draw -= np.float32(0.5)
        draw *= np.float32(0.06)
        if "norm" in name and not name.endswith("_b"):
            draw += np.float32(1)
        return draw

    def matrix(self, name: str) -> bool:
        """Products read it: it is what precision is about."""
        return len(self.tensors()[name]) == 2 and name != "places"

    def weight_bytes(self, precision: str) -> float:
        """Bytes that a token reads of matrices and vectors: all, but for positions."""
        each = {"f32": 4, "f16": 2, "bf16": 2, "q8": 34 / 32, "q4": 18 / 32}[precision]
        sizes = {name: int(np.prod(shape)) for name, shape in self.tensors().items() if name != "places"}
        return float(sum(n * (each if self.matrix(name) else 4) for name, n in sizes.items()))

    def kv_bytes(self, position: int, each: float = 4) -> float:
        """Bytes of keys and values that a token at a position reads."""
        return 2 * self.layers * self.kv_heads * self.head * (position + 1) * each

    def operations(self, tokens: int) -> tuple[float, float]:
        """Multiplications and additions of a prompt from the start: with weights, and of attention.

        Where an engine gives logits of the last token alone, so are they counted.
        """
        products = sum(int(np.prod(s)) for n, s in self.tensors().items() if self.matrix(n) and n != "embed")
        pairs = tokens * (tokens + 1) / 2 * self.layers * 2 * self.width
        return 2.0 * products * tokens, 2.0 * pairs


DECODERS = {
    "gpt2-124m": Decoder("gpt2", 768, 12, 12, 12, 3072, 50257),
    "llama-15m": Decoder("llama", 288, 6, 6, 6, 768, 32000),
    "llama-110m": Decoder("llama", 768, 12, 12, 12, 2048, 32000),
    "llama-1b": Decoder("llama", 2048, 16, 32, 8, 8192, 128256),
    "small": Decoder("llama", 256, 2, 4, 2, 704, 1024, 128),
    "small-gpt2": Decoder("gpt2", 128, 2, 4, 4, 512, 1024, 128),
}
