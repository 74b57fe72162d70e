"""A decoder as a folder in the Hugging Face layout, which `oic import` and transformers read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from against.decoders import Decoder

GPT2 = {
    "norm1": "ln_1.weight", "norm1_b": "ln_1.bias", "norm2": "ln_2.weight", "norm2_b": "ln_2.bias",
    "qkv": "attn.c_attn.weight", "qkv_b": "attn.c_attn.bias", "out": "attn.c_proj.weight", "out_b": "attn.c_proj.bias",
    "up": "mlp.c_fc.weight", "up_b": "mlp.c_fc.bias", "down": "mlp.c_proj.weight", "down_b": "mlp.c_proj.bias",
    "embed": "transformer.wte.weight", "places": "transformer.wpe.weight", "norm": "transformer.ln_f.weight",
    "norm_b": "transformer.ln_f.bias",
}  # fmt: skip
LLAMA = {
    "norm1": "input_layernorm", "norm2": "post_attention_layernorm", "q": "self_attn.q_proj", "k": "self_attn.k_proj",
    "v": "self_attn.v_proj", "out": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
    "down": "mlp.down_proj", "embed": "model.embed_tokens.weight", "norm": "model.norm.weight",
}  # fmt: skip


def name_of(decoder: Decoder, name: str) -> str:
    """The name of a tensor in the file."""
    layer, _, last = name.rpartition(".")
    if decoder.kind == "gpt2":
        return f"transformer.h.{layer}.{GPT2[last]}" if layer else GPT2[last]
    return f"model.layers.{layer}.{LLAMA[last]}.weight" if layer else LLAMA[last]


def config_of(decoder: Decoder) -> dict[str, object]:
    """config.json."""
    d = decoder
    if d.kind == "gpt2":
        return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": d.width, "n_layer": d.layers,
                "n_head": d.heads, "vocab_size": d.vocab, "n_positions": d.context, "n_inner": d.inner}  # fmt: skip
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": d.width,
            "num_hidden_layers": d.layers, "num_attention_heads": d.heads, "num_key_value_heads": d.kv_heads,
            "intermediate_size": d.inner, "vocab_size": d.vocab, "max_position_embeddings": d.context,
            "rms_norm_eps": 1e-5, "tie_word_embeddings": True}  # fmt: skip


def write(decoder: Decoder, folder: Path, dtype: str = "F32") -> None:
    """The folder; a tensor at a time.  dtype: F32 or BF16."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(decoder)))
    each, end = (4 if dtype == "F32" else 2), 0
    header: dict[str, object] = {}
    for name, shape in decoder.tensors().items():
        start, end = end, end + int(np.prod(shape)) * each
        stored = shape[::-1] if decoder.kind == "gpt2" and decoder.matrix(name) and name != "embed" else shape
        header[name_of(decoder, name)] = {"dtype": dtype, "shape": stored, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in decoder.tensors():
            array = decoder.array(name)
            if decoder.kind == "gpt2" and decoder.matrix(name) and name != "embed":
                array = np.ascontiguousarray(array.T)
            if dtype == "BF16":
                array = ((array.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
            file.write(array.tobytes())
