"""Small random checkpoints in the Hugging Face layout, of every family of decoders, made with NumPy alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from model.samples import write_safetensors

Shapes = dict[str, tuple[int, ...]]

SMALL = {
    "vocab_size": 24,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,
}
GPT2 = {"vocab_size": 24, "n_embd": 16, "n_head": 4, "n_layer": 2, "n_positions": 16}

FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "gpt_neo": {"window_size": 5, "attention_layers": ["global", "local"]},
    "gpt_neox": {"rotary_pct": 0.5},
    "llama": {"tie_word_embeddings": False},
    "mistral": {"sliding_window": 5},
    "qwen2": {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    "qwen3": {"head_dim": 6},
    "gemma": {"head_dim": 8},
    "gemma2": {"head_dim": 8, "sliding_window": 4, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
    "gemma3_text": {"head_dim": 8, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]},
    "smollm3": {"no_rope_layers": [1, 0]},
    "olmo2": {},
    "starcoder2": {"sliding_window": 6},
    "granite": {
        "embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.4, "logits_scaling": 2.0,
    },
    "phi": {},
    "phi3": {
        "sliding_window": 6, "original_max_position_embeddings": 16, "max_position_embeddings": 32, "head_dim": 8,
        "partial_rotary_factor": 0.75, "rope_scaling": {
            "type": "longrope", "short_factor": [1.0, 1.25, 1.5], "long_factor": [1.5, 2.0, 4.0],
        },
    },
    "olmo": {"clip_qkv": 0.5},
    "cohere2": {"sliding_window": 5, "sliding_window_pattern": 2},
    "glm4": {"head_dim": 8},
    "hunyuan_v1_dense": {"rope_scaling": {"type": "dynamic", "factor": 1.0, "alpha": 50.0}},
    "mixtral": {"num_local_experts": 4},
    "qwen2_moe": {
        "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 12, "shared_expert_intermediate_size": 8,
    },
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 1},
    "granitemoeshared": {"shared_intermediate_size": 8, "attention_multiplier": 0.3},
    "lfm2_moe": {
        "num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "conv", "conv"], "conv_L_cache": 3, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 12, "num_dense_layers": 1,
    },
    "dots1": {
        "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "routed_scaling_factor": 1.5, "norm_topk_prob": True,
    },
    "opt": {"ffn_dim": 20},
    "mamba": {"state_size": 3, "conv_kernel": 4, "time_step_rank": 2},
    "falcon_mamba": {"state_size": 3, "conv_kernel": 4, "time_step_rank": 2, "tie_word_embeddings": False},
    "mamba2": {"num_heads": 8, "head_dim": 4, "n_groups": 2, "state_size": 3, "conv_kernel": 4},
    "lfm2": {
        "num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "conv", "conv"], "conv_L_cache": 3,
        "block_auto_adjust_ff_dim": False,
    },
    "granitemoehybrid": {
        "num_hidden_layers": 4, "layer_types": ["mamba", "mamba", "attention", "mamba"], "num_local_experts": 0,
        "shared_intermediate_size": 20, "embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.4,
        "logits_scaling": 2.0, "mamba_n_heads": 8, "mamba_d_head": 4, "mamba_d_state": 3, "mamba_d_conv": 4,
    },
    "falcon_h1": {
        "mamba_d_ssm": 24, "mamba_n_heads": 4, "mamba_d_head": 6, "mamba_d_state": 3, "mamba_n_groups": 2, "mamba_d_conv": 4,
        "mamba_rms_norm": True, "mlp_multipliers": [0.7, 1.3], "key_multiplier": 0.6, "attention_out_multiplier": 0.8,
        "attention_in_multiplier": 1.2, "ssm_multipliers": [0.9, 1.1, 0.8, 1.2, 0.7], "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.75, "lm_head_multiplier": 0.5,
    },
}  # fmt: skip
"""A configuration of each, beside SMALL, with what is its own."""
HYBRIDS = ("mamba2", "lfm2", "lfm2_moe", "granitemoehybrid", "falcon_h1")
"""Families of which some layers, or all, keep a state that cannot be taken back."""
MIXTURES = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoeshared", "lfm2_moe", "dots1", "ernie4_5_moe")
"""Families with experts."""


def checkpoint(folder: Path, family: str, seed: int = 0, **settings: Any) -> Path:
    """Write `config.json` and `model.safetensors` of a small model of a family, with random weights."""
    config = {"model_type": family, **(GPT2 if family == "gpt2" else SMALL), **FAMILIES.get(family, {}), **settings}
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    own = {"gpt2": gpt2, "gpt_neo": gpt_neo, "gpt_neox": gpt_neox, "opt": opt, "phi": phi, "mamba": mamba, "falcon_mamba": mamba}
    own |= dict.fromkeys(HYBRIDS, hybrid)
    own |= dict.fromkeys(MIXTURES, mixture)
    shapes = own.get(family, llama)(config)
    tensors = {n: ("F32", _random(rng, shape).astype(np.float32)) for n, shape in shapes.items()}
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def _random(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Matrices whose products neither vanish nor grow; norms around 1."""
    if len(shape) == 1:
        return 1 + rng.standard_normal(shape) / 4
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


def gpt2(config: dict[str, Any]) -> Shapes:
    """The tensors of `gpt2`, matrices [in, out]."""
    width, inner = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    layer = {
        **{f"{n}.{end}": (width,) for n in ("ln_1", "ln_2") for end in ("weight", "bias")},
        "attn.c_attn.weight": (width, 3 * width), "attn.c_attn.bias": (3 * width,),
        "attn.c_proj.weight": (width, width), "attn.c_proj.bias": (width,),
        "mlp.c_fc.weight": (width, inner), "mlp.c_fc.bias": (inner,),
        "mlp.c_proj.weight": (inner, width), "mlp.c_proj.bias": (width,),
    }  # fmt: skip
    whole = {"wte.weight": (config["vocab_size"], width), "wpe.weight": (config["n_positions"], width)}
    whole |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    return whole | {f"h.{i}.{n}": s for i in range(config["n_layer"]) for n, s in layer.items()}


def gpt_neo(config: dict[str, Any]) -> Shapes:
    """The tensors of `gpt_neo`, whose head is the embedding."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    layer: Shapes = {f"attn.attention.{n}_proj.weight": (width, width) for n in ("q", "k", "v", "out")}
    layer |= {"attn.attention.out_proj.bias": (width,), "mlp.c_fc.weight": (inner, width), "mlp.c_fc.bias": (inner,)}
    layer |= {"mlp.c_proj.weight": (width, inner), "mlp.c_proj.bias": (width,)}
    layer |= {f"{n}.{end}": (width,) for n in ("ln_1", "ln_2") for end in ("weight", "bias")}
    whole: Shapes = {"wte.weight": (config["vocab_size"], width), "wpe.weight": (config["max_position_embeddings"], width)}
    whole |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    whole |= {f"h.{i}.{n}": s for i in range(config["num_hidden_layers"]) for n, s in layer.items()}
    return {f"transformer.{n}": s for n, s in whole.items()}


def gpt_neox(config: dict[str, Any]) -> Shapes:
    """The tensors of `gpt_neox`."""
    width, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    matrices = {
        "attention.query_key_value": (3 * width, width), "attention.dense": (width, width),
        "mlp.dense_h_to_4h": (inner, width), "mlp.dense_4h_to_h": (width, inner),
    }  # fmt: skip
    layer: Shapes = {f"{n}.weight": s for n, s in matrices.items()} | {f"{n}.bias": s[:1] for n, s in matrices.items()}
    norms = ("input_layernorm", "post_attention_layernorm")
    layer |= {f"{n}.{end}": (width,) for n in norms for end in ("weight", "bias")}
    whole: Shapes = {"embed_in.weight": (vocab, width), "embed_out.weight": (vocab, width)}
    whole = {f"gpt_neox.{n}" if n.startswith("embed_in") else n: s for n, s in whole.items()}
    whole |= {f"gpt_neox.final_layer_norm.{end}": (width,) for end in ("weight", "bias")}
    return whole | {f"gpt_neox.layers.{i}.{n}": s for i in range(config["num_hidden_layers"]) for n, s in layer.items()}


def opt(config: dict[str, Any]) -> Shapes:
    """The tensors of `opt`, whose head is the embedding."""
    width, inner = config["hidden_size"], config["ffn_dim"]
    matrices: Shapes = {f"self_attn.{n}_proj": (width, width) for n in ("q", "k", "v", "out")}
    matrices |= {"fc1": (inner, width), "fc2": (width, inner)}
    parts = matrices | dict.fromkeys(("self_attn_layer_norm", "final_layer_norm"), (width,))
    layer: Shapes = {f"{n}.weight": s for n, s in parts.items()} | {f"{n}.bias": s[:1] for n, s in parts.items()}
    whole: Shapes = {f"final_layer_norm.{end}": (width,) for end in ("weight", "bias")}
    whole["embed_tokens.weight"] = (config["vocab_size"], width)
    whole["embed_positions.weight"] = (config["max_position_embeddings"] + 2, width)
    whole |= {f"layers.{i}.{n}": s for i in range(config["num_hidden_layers"]) for n, s in layer.items()}
    return {f"model.decoder.{n}": s for n, s in whole.items()}


def phi(config: dict[str, Any]) -> Shapes:
    """The tensors of `phi`: those of `starcoder2` by other names, one norm a layer, and a head with a bias."""
    shapes, vocab = llama({**config, "model_type": "starcoder2"}), config["vocab_size"]
    shapes |= {"lm_head.weight": (vocab, config["hidden_size"]), "lm_head.bias": (vocab,)}
    names = {"o_proj": "dense", "c_fc": "fc1", "c_proj": "fc2", "model.norm": "model.final_layernorm"}
    for old, new in names.items():
        shapes = {n.replace(old, new): s for n, s in shapes.items()}
    return {n: s for n, s in shapes.items() if "post_attention" not in n}


def mamba(config: dict[str, Any]) -> Shapes:
    """The tensors of `mamba`, whose head is the embedding, and of `falcon_mamba`."""
    width, inner, state = config["hidden_size"], config["intermediate_size"], config["state_size"]
    rank, taps, vocab = config["time_step_rank"], config["conv_kernel"], config["vocab_size"]
    layer: Shapes = {
        "norm.weight": (width,), "mixer.in_proj.weight": (2 * inner, width), "mixer.conv1d.weight": (inner, 1, taps),
        "mixer.conv1d.bias": (inner,), "mixer.x_proj.weight": (rank + 2 * state, inner), "mixer.A_log": (inner, state),
        "mixer.dt_proj.weight": (inner, rank), "mixer.dt_proj.bias": (inner,), "mixer.D": (inner,),
        "mixer.out_proj.weight": (width, inner),
    }  # fmt: skip
    whole: Shapes = {"backbone.embeddings.weight": (vocab, width), "backbone.norm_f.weight": (width,)}
    if config["model_type"] == "falcon_mamba":
        whole["lm_head.weight"] = (vocab, width)
    return whole | {f"backbone.layers.{i}.{n}": s for i in range(config["num_hidden_layers"]) for n, s in layer.items()}


def scan(config: dict[str, Any], inner: int, groups: int, state: int, heads: int) -> Shapes:
    """The tensors of a state space of heads."""
    width, channels, taps = config["hidden_size"], inner + 2 * groups * state, 4
    return {
        "in_proj.weight": (inner + channels + heads, width), "conv1d.weight": (channels, 1, taps), "conv1d.bias": (channels,),
        "dt_bias": (heads,), "A_log": (heads,), "D": (heads,), "norm.weight": (inner,), "out_proj.weight": (width, inner),
    }  # fmt: skip


def hybrid(config: dict[str, Any]) -> Shapes:
    """The tensors of families of layers with states: those of Llama by other names, and what mixes tokens instead."""
    family, width = config["model_type"], config["hidden_size"]
    whole = {n: s for n, s in llama(config).items() if family != "lfm2" or n != "lm_head.weight"}
    if family == "mamba2":
        layer = {"norm.weight": (width,)} | {f"mixer.{n}": s for n, s in scan(config, 32, 2, 3, 8).items()}
        whole = {"backbone.embeddings.weight": (config["vocab_size"], width), "backbone.norm_f.weight": (width,)}
        whole |= {"lm_head.weight": (config["vocab_size"], width)}
        return whole | {f"backbone.layers.{i}.{n}": s for i in range(config["num_hidden_layers"]) for n, s in layer.items()}
    mixer: Shapes = {f"conv.{n}_proj.weight": (rows * width, width) for n, rows in (("in", 3), ("out", 1))}
    mixer |= {"conv.conv.weight": (width, 1, 3)}
    names = {"model.norm": "model.embedding_norm", "input_layernorm": "operator_norm", "post_attention_layernorm": "ffn_norm",
             "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2",
             "o_proj": "out_proj"}  # fmt: skip
    if family == "granitemoehybrid":
        mixer = {f"mamba.{n}": s for n, s in scan(config, 32, 1, 3, 8).items()}
        names = {"mlp.gate_proj": "shared_mlp.input_linear", "mlp.down_proj": "shared_mlp.output_linear"}
    if family == "falcon_h1":
        mixer = {f"mamba.{n}": s for n, s in scan(config, 24, 2, 3, 4).items()}
        names = {"model.norm": "model.final_layernorm", "post_attention_layernorm": "pre_ff_layernorm", "mlp": "feed_forward"}
    for old, new in names.items():
        whole = {n.replace(old, new): s for n, s in whole.items()}
    kinds = config.get("layer_types", ["attention mamba"] * config["num_hidden_layers"])
    for i, kind in enumerate(kinds):
        layer = f"model.layers.{i}."
        if "attention" not in kind:
            whole = {n: s for n, s in whole.items() if not n.startswith(f"{layer}self_attn")}
        elif family == "lfm2":
            size = width // config["num_attention_heads"]
            whole |= {f"{layer}self_attn.{n}_layernorm.weight": (size,) for n in "qk"}
        if kind.removeprefix("full_") != "attention":
            whole |= {layer + n: s for n, s in mixer.items()}
        if family == "granitemoehybrid":
            del whole[f"{layer}mlp.up_proj.weight"]
            whole[f"{layer}shared_mlp.input_linear.weight"] = (40, width)
            whole |= experts(config, layer) if config["num_local_experts"] else {}
    return whole


def mixture(config: dict[str, Any]) -> Shapes:
    """The tensors of families with experts: those of the family without, with several networks in layers that have them."""
    family, width = config["model_type"], config["hidden_size"]
    kin = {"qwen2_moe": "qwen2", "qwen3_moe": "qwen3", "dots1": "qwen3", "lfm2_moe": "lfm2"}.get(family, "llama")
    shapes = (hybrid if kin == "lfm2" else llama)({**config, "model_type": kin})
    only = config.get("mlp_only_layers") or ()
    for i in range(config["num_hidden_layers"]):
        layer, place = f"model.layers.{i}.", "feed_forward." if kin == "lfm2" else "mlp."
        keys = ("num_dense_layers", "first_k_dense_replace", "moe_layer_start_index")
        first = next((config[key] for key in keys if key in config), 0)
        if i >= first and i not in only and (i + 1) % config.get("decoder_sparse_step", 1) == 0:
            shapes = {n: s for n, s in shapes.items() if not n.startswith(layer + place)} | experts(config, layer)
        if family == "olmoe":
            shapes |= {f"{layer}self_attn.q_norm.weight": (width,), f"{layer}self_attn.k_norm.weight": (width // 2,)}
    return shapes


def experts(config: dict[str, Any], layer: str) -> Shapes:
    """The tensors of several networks of a layer."""
    family, width = config["model_type"], config["hidden_size"]
    inner = config.get("moe_intermediate_size", config["intermediate_size"])
    counts = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    count = next((config[key] for key in counts if key in config), 8)
    shared = config.get("shared_expert_intermediate_size") or config.get("shared_intermediate_size")
    shared = shared or inner * config.get("n_shared_experts", config.get("moe_num_shared_experts", 0))
    names = ("w1", "w2", "w3") if family in ("mixtral", "lfm2_moe") else ("gate_proj", "down_proj", "up_proj")
    if family.startswith("granite"):
        place = f"{layer}block_sparse_moe."
        shapes: Shapes = {f"{place}router.layer.weight": (count, width), f"{place}input_linear.weight": (count, 2 * inner, width)}
        shapes |= {f"{place}output_linear.weight": (count, width, inner)}
        shapes |= {f"{layer}shared_mlp.input_linear.weight": (2 * shared, width)}
        return shapes | {f"{layer}shared_mlp.output_linear.weight": (width, shared)}
    place = layer + {"mixtral": "block_sparse_moe.", "lfm2_moe": "feed_forward."}.get(family, "mlp.")
    several = "shared_expert" if family == "qwen2_moe" else "shared_experts"
    networks = {f"{place}experts.{e}.": inner for e in range(count)} | ({f"{place}{several}.": shared} if shared else {})
    shapes = {f"{place}gate.weight": (count, width)}
    if family == "qwen2_moe":
        shapes[f"{place}shared_expert_gate.weight"] = (1, width)
    biases: Shapes = {
        "lfm2_moe": {"expert_bias": (count,)}, "dots1": {"gate.e_score_correction_bias": (count,)},
        "ernie4_5_moe": {"moe_statics.e_score_correction_bias": (1, count)},
    }.get(family, {})  # fmt: skip
    shapes |= {place + name: shape for name, shape in biases.items()}
    for network, own in networks.items():
        sizes = (own, width), (width, own), (own, width)
        shapes |= {f"{network}{n}.weight": size for n, size in zip(names, sizes, strict=True)}
    return shapes


def llama(config: dict[str, Any]) -> Shapes:
    """The tensors of Llama and its kin: what a family has beside them is told by its name."""
    family, width, inner = config["model_type"], config["hidden_size"], config["intermediate_size"]
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    size = config.get("head_dim", width // heads)
    matrices: Shapes = {
        "self_attn.q_proj": (heads * size, width), "self_attn.k_proj": (kv * size, width),
        "self_attn.v_proj": (kv * size, width), "self_attn.o_proj": (width, heads * size),
    }  # fmt: skip
    plain = family in ("starcoder2", "nemotron", "jais2")
    network = {"gate_proj": inner, "up_proj": inner, "down_proj": width}
    if plain:
        network = {"c_fc": inner, "c_proj": width} if family == "starcoder2" else {"up_proj": inner, "down_proj": width}
    matrices |= {f"mlp.{n}": (rows, width + inner - rows) for n, rows in network.items()}
    few = 3 if family in ("qwen2", "seed_oss", "glm", "glm4") else len(matrices) * (family in ("starcoder2", "jais2"))
    layer = {f"{n}.weight": s for n, s in matrices.items()} | {f"{n}.bias": matrices[n][:1] for n in list(matrices)[:few]}
    if family == "phi3":
        layer = {n: s for n, s in layer.items() if not re.search("[qkv]_proj", n)}
        layer["self_attn.qkv_proj.weight"] = ((heads + 2 * kv) * size, width)
    if family in ("phi3", "glm", "glm4"):
        layer = {n: s for n, s in layer.items() if not re.search("(gate|up)_proj", n)}
        layer["mlp.gate_up_proj.weight"] = (2 * inner, width)
    norms = ["post_attention_layernorm"] * ("cohere" not in family) + ["input_layernorm"] * (family != "olmo2")
    norms += ["post_self_attn_layernorm", "post_mlp_layernorm"] * (family == "glm4")
    if family in ("gemma2", "gemma3_text", "olmo2"):
        norms += ["post_feedforward_layernorm"] + ["pre_feedforward_layernorm"] * (family != "olmo2")
    ends = ("weight", "bias") if plain else ("weight",)
    layer |= {f"{n}.{end}": (width,) for n in norms for end in ends}
    if family in ("qwen3", "gemma3_text"):
        layer |= {f"self_attn.{n}_norm.weight": (size,) for n in "qk"}
    if family == "olmo2":
        layer |= {"self_attn.q_norm.weight": (heads * size,), "self_attn.k_norm.weight": (kv * size,)}
    if family == "hunyuan_v1_dense":
        layer |= {f"self_attn.{n}_layernorm.weight": (size,) for n in ("query", "key")}
    if config.get("use_qk_norm"):
        layer |= {"self_attn.q_norm.weight": (heads, size), "self_attn.k_norm.weight": (kv, size)}
    whole: Shapes = {"model.embed_tokens.weight": (config["vocab_size"], width)}
    whole |= {f"model.norm.{end}": (width,) for end in ends}
    if family not in ("gemma", "gemma2", "gemma3_text", "smollm3", "starcoder2", "cohere", "cohere2"):
        whole["lm_head.weight"] = (config["vocab_size"], width)
    whole |= {f"model.layers.{i}.{n}": s for i in range(config["num_hidden_layers"]) for n, s in layer.items()}
    return {n: s for n, s in whole.items() if family != "olmo" or "norm" not in n}
