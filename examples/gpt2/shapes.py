"""Shapes of GPT-2 models, and random weights for them under the names of a Hugging Face file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import oic


@dataclass(frozen=True)
class Shape:
    """A shape, with the names of config.json.  n_inner: width of the feed-forward network."""

    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    vocab_size: int = 50257
    n_positions: int = 1024
    n_inner: int = 3072

    @property
    def cache_bytes(self) -> int:
        """Bytes of K and V in f32, full."""
        return 2 * self.n_layer * self.n_positions * self.n_embd * 4


SHAPES = {"124M": Shape(), "tiny": Shape(64, 4, 4, 320, 64, 256)}


def tensors(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every tensor of a model; matrices are [in, out], except the embeddings."""
    width, inner = shape.n_embd, shape.n_inner
    yield "wte.weight", (shape.vocab_size, width)
    yield "wpe.weight", (shape.n_positions, width)
    for layer in range(shape.n_layer):
        for name, size in (
            ("ln_1.weight", (width,)), ("ln_1.bias", (width,)),
            ("attn.c_attn.weight", (width, 3 * width)), ("attn.c_attn.bias", (3 * width,)),
            ("attn.c_proj.weight", (width, width)), ("attn.c_proj.bias", (width,)),
            ("ln_2.weight", (width,)), ("ln_2.bias", (width,)),
            ("mlp.c_fc.weight", (width, inner)), ("mlp.c_fc.bias", (inner,)),
            ("mlp.c_proj.weight", (inner, width)), ("mlp.c_proj.bias", (width,)),
        ):  # fmt: skip
            yield f"h.{layer}.{name}", size
    yield "ln_f.weight", (width,)
    yield "ln_f.bias", (width,)


def random_model(shape: Shape, seed: int = 124) -> oic.Model:
    """A model of a shape, the same for the same seed: normal with deviation 0.02, norms about 1."""
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    for name, size in tensors(shape):
        found[name] = rng.standard_normal(size, np.float32) * np.float32(0.02)
        if "ln_" in name and name.endswith(".weight"):
            found[name] += 1
    return oic.Model(tensors=found, sizevars=dict(vars(shape)), name="random weights")
