"""Small random encoder–decoders in the Hugging Face layout, of every family, made with NumPy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from importers.checkpoints import Shapes
from model.samples import write_safetensors

T5 = {
    "vocab_size": 24, "d_model": 16, "d_kv": 5, "d_ff": 20, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 3,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 9, "n_positions": 12,
}  # fmt: skip
BART = {
    "vocab_size": 24, "d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 12, "max_position_embeddings": 12,
    "decoder_start_token_id": 2, "eos_token_id": 2,
}  # fmt: skip

FAMILIES: dict[str, dict[str, Any]] = {
    "t5": T5,
    "mt5": {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "bart": {**BART, "scale_embedding": True},
    "mbart": BART,
}
"""A configuration of each."""


def checkpoint(folder: Path, family: str, seed: int = 0, **settings: Any) -> Path:
    """Write `config.json` and `model.safetensors` of a small model of a family, with random weights."""
    config = {"model_type": family, **FAMILIES[family], **settings}
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    shapes = (bart if "bart" in family else t5)(config)
    write_safetensors(folder / "model.safetensors", {
        name: ("F32", (rng.standard_normal(shape) + ("norm" in name)).astype(np.float32)) for name, shape in shapes.items()
    })  # fmt: skip
    return folder


def t5(config: dict[str, Any]) -> Shapes:
    """The tensors of `t5`; a gated network has a head of its own too."""
    width, inner, wide = config["d_model"], config["d_ff"], config["num_heads"] * config["d_kv"]
    gated = "gated" in config.get("feed_forward_proj", "relu")
    attention: Shapes = {"q": (wide, width), "k": (wide, width), "v": (wide, width), "o": (width, wide)}
    network: Shapes = {n: (inner, width) for n in (("wi_0", "wi_1") if gated else ("wi",))} | {"wo": (width, inner)}
    found: Shapes = {"shared.weight": (config["vocab_size"], width)}
    if gated:
        found["lm_head.weight"] = (config["vocab_size"], width)
    for side, parts, layers in (
        ("encoder", ["SelfAttention", "DenseReluDense"], config["num_layers"]),
        ("decoder", ["SelfAttention", "EncDecAttention", "DenseReluDense"], config["num_decoder_layers"]),
    ):
        found[f"{side}.final_layer_norm.weight"] = (width,)
        buckets = (config["relative_attention_num_buckets"], config["num_heads"])
        found[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = buckets
        for at in range(layers):
            for i, part in enumerate(parts):
                layer = f"{side}.block.{at}.layer.{i}."
                found[layer + "layer_norm.weight"] = (width,)
                matrices = network if "Dense" in part else attention
                found |= {f"{layer}{part}.{n}.weight": shape for n, shape in matrices.items()}
    return found


def bart(config: dict[str, Any]) -> Shapes:
    """The tensors of `bart` and `mbart`."""
    width, vocab = config["d_model"], config["vocab_size"]
    found: Shapes = {"model.shared.weight": (vocab, width), "final_logits_bias": (1, vocab)}
    for side, parts in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        inner, own = config[f"{side}_ffn_dim"], f"model.{side}."
        found[own + "embed_positions.weight"] = (config["max_position_embeddings"] + 2, width)
        norms = [own + n for n in ["layernorm_embedding"] + ["layer_norm"] * (config["model_type"] == "mbart")]
        for at in range(config[f"{side}_layers"]):
            layer = f"{own}layers.{at}."
            matrices = {f"{part}.{n}_proj": (width, width) for part in parts for n in ("q", "k", "v", "out")}
            matrices |= {"fc1": (inner, width), "fc2": (width, inner)}
            found |= {f"{layer}{n}.weight": shape for n, shape in matrices.items()}
            found |= {f"{layer}{n}.bias": shape[:1] for n, shape in matrices.items()}
            norms += [layer + n for n in ("final_layer_norm", *(f"{part}_layer_norm" for part in parts))]
        found |= {f"{norm}.{end}": (width,) for norm in norms for end in ("weight", "bias")}
    return found
