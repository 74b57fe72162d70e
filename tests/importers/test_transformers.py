"""Tiny random checkpoints made by transformers: each feature alone and as the families combine them.

Imported without a hand edit; greedy ids equal, logits within 1e-4 of the library's, prefill and steps equal in all bits.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.importers import import_checkpoint

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

WITHIN = 1e-4
PROMPT = [3, 17, 5, 40, 8, 21, 60]
NEW = 20

SMALL = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16}
LONGROPE = {
    "rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.2, 1.5], "long_factor": [1.5, 2.0, 4.0],
    "partial_rotary_factor": 0.75, "original_max_position_embeddings": 32,
}  # fmt: skip
PHI3_LONGROPE = {"rope_parameters": LONGROPE, "original_max_position_embeddings": 32}
PLAIN = {"rope_type": "default", "rope_theta": 30.0}
TYPES = ["sliding_attention", "full_attention"] * 2
HEADS = {"num_heads": 8, "head_dim": 8}
GRANITE4 = {
    "num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 40, "mamba_n_heads": 4, "mamba_d_state": 5,
}
FALCON_H1 = {"mamba_d_ssm": 24, "mamba_n_heads": 4, "mamba_d_head": 6, "mamba_d_state": 5}
STATES = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
GROUPS = ["full_attention", "conv", "conv"] * 2 + ["full_attention", "conv"] + ["conv"]
CONVS = ["conv", "full_attention", "conv", "conv", "full_attention"]

MOE = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24}
SHARED = {"num_local_experts": 6, "n_shared_experts": 2}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama-all-heads": ("Llama", {"num_key_value_heads": 4}),
    "llama-head-size": ("Llama", {"head_dim": 24}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-gelu": ("Llama", {"hidden_act": "gelu"}),
    "llama-relu": ("Llama", {"hidden_act": "relu"}),
    "llama-rope-base": ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "llama-rope-linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}}),
    "llama-rope-llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "llama-rope-yarn": ("Llama", {"rope_parameters": YARN, "head_dim": 24}),
    "llama-rope-yarn-settings": ("Llama", {"head_dim": 24, "rope_parameters": {
        **YARN, "beta_fast": 2.5, "beta_slow": 0.6, "mscale": 2.0, "mscale_all_dim": 0.5, "truncate": False,
    }}),
    "llama-rope-yarn-strength": ("Llama", {"rope_parameters": {**YARN, "attention_factor": 1.5}}),
    "llama-rope-longrope": ("Llama", {"rope_parameters": {
        **LONGROPE, "short_factor": [1.0, 1.2, 1.4, 1.6], "long_factor": [2.0] * 4, "factor": 3.0, "partial_rotary_factor": 1.0,
    }}),
    "mistral": ("Mistral", {"sliding_window": 6}),
    "mistral-without-window": ("Mistral", {"sliding_window": None}),
    "qwen2": ("Qwen2", {}),
    "qwen2-sliding": ("Qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "gemma": ("Gemma", {"head_dim": 16}),
    "gemma2": ("Gemma2", {"head_dim": 16, "sliding_window": 5, "query_pre_attn_scalar": 24}),
    "gemma2-caps": ("Gemma2", {"head_dim": 16, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    "gemma2-without-caps": ("Gemma2", {"head_dim": 16, "attn_logit_softcapping": None, "final_logit_softcapping": None}),
    "gemma3": ("Gemma3Text", {"head_dim": 16, "sliding_window": 5, "layer_types": TYPES, "query_pre_attn_scalar": 16}),
    "gemma3-seven-layers": ("Gemma3Text", {"head_dim": 16, "sliding_window": 4, "num_hidden_layers": 7}),
    "smollm3": ("SmolLM3", {"no_rope_layers": [1, 1, 1, 0]}),
    "smollm3-odd": ("SmolLM3", {"no_rope_layers": [0, 1, 1, 0]}),
    "olmo2": ("Olmo2", {}),
    "olmo3": ("Olmo3", {"sliding_window": 5, "rope_parameters": {"full_attention": YARN, "sliding_attention": PLAIN}}),
    "olmo3-two-contexts": ("Olmo3", {  # the one outside is of a table for all layers
        "original_max_position_embeddings": 60, "rope_parameters": {"full_attention": YARN, "sliding_attention": PLAIN},
    }),
    "starcoder2": ("Starcoder2", {"sliding_window": 6}),
    "arcee": ("Arcee", {}),
    "ernie4_5": ("Ernie4_5", {"head_dim": 16, "use_bias": True}),
    "exaone4": ("Exaone4", {"sliding_window": 5}),
    "exaone4-without-window": ("Exaone4", {"sliding_window": None, "layer_types": ["full_attention"] * 4}),
    "granite": ("Granite", {
        "embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.4, "logits_scaling": 2.0,
    }),
    "helium": ("Helium", {"head_dim": 8}),
    "stablelm": ("StableLm", {"use_qkv_bias": True}),
    "stablelm-parallel": ("StableLm", {"use_parallel_residual": True, "partial_rotary_factor": 0.5}),
    "vaultgemma": ("VaultGemma", {"head_dim": 16, "sliding_window": 5, "query_pre_attn_scalar": 24}),
    "phi": ("Phi", {}),
    "phi-tied": ("Phi", {"tie_word_embeddings": True}),
    "phi-norms": ("Phi", {"qk_layernorm": True, "num_key_value_heads": 4}),
    "phi3": ("Phi3", {}),
    "phi3-sliding": ("Phi3", {"sliding_window": 5, "tie_word_embeddings": True, "num_key_value_heads": 4}),
    "phi3-longrope": ("Phi3", PHI3_LONGROPE),
    "olmo": ("Olmo", {}),
    "olmo-clipped": ("Olmo", {"clip_qkv": 0.5, "tie_word_embeddings": True, "attention_bias": True}),
    "cohere": ("Cohere", {"logit_scale": 0.5}),
    "cohere-norms": ("Cohere", {"use_qk_norm": True, "logit_scale": 0.3, "tie_word_embeddings": False}),
    "cohere2": ("Cohere2", {"sliding_window": 5, "logit_scale": 0.5}),
    "cohere2-biases": ("Cohere2", {"sliding_window": 5, "layer_types": TYPES, "attention_bias": True, "logit_scale": 1.0}),
    "glm": ("Glm", {"head_dim": 16}),
    "glm-yarn": ("Glm", {
        "head_dim": 16, "attention_bias": False, "tie_word_embeddings": True,
        "rope_parameters": {**YARN, "partial_rotary_factor": 0.25},
    }),
    "glm4": ("Glm4", {"head_dim": 16}),
    "nemotron": ("Nemotron", {}),
    "nemotron-biases": ("Nemotron", {
        "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 16,
    }),
    "jais2": ("Jais2", {}),
    "seed_oss": ("SeedOss", {"head_dim": 16}),
    "seed_oss-biases": ("SeedOss", {
        "head_dim": 16, "attention_out_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
    }),
    "hunyuan_v1_dense": ("HunYuanDenseV1", {"head_dim": 16}),
    "hunyuan_v1_dense-alpha": ("HunYuanDenseV1", {
        "head_dim": 8, "rope_parameters": {"rope_type": "dynamic", "factor": 1.0, "alpha": 50.0, "rope_theta": 100.0},
    }),
    "hyperclovax": ("HyperCLOVAX", {"logits_scaling": 0.3, "embedding_multiplier": 2.0, "residual_multiplier": 0.5}),
    "hyperclovax-norms-before": ("HyperCLOVAX", {"use_post_norm": False, "attention_multiplier": 0.4}),
    "ministral": ("Ministral", {"sliding_window": 5, "head_dim": 16}),
    "ministral-types": ("Ministral", {"sliding_window": 5, "head_dim": 16, "layer_types": TYPES}),
    "cwm": ("Cwm", {"sliding_window": 5, "head_dim": 16, "rope_parameters": LLAMA3}),
    "iquestcoder": ("IQuestCoder", {"head_dim": 16}),
    "internlm3": ("InternLM3", {"head_dim": 16, "attention_bias": True, "mlp_bias": True}),
    "internlm3-dynamic": ("InternLM3", {
        "head_dim": 16, "rope_parameters": {"rope_type": "dynamic", "factor": 6.0, "rope_theta": 100.0},
    }),
    "mixtral": ("Mixtral", {"num_local_experts": 4}),
    "mixtral-sliding": ("Mixtral", {"num_local_experts": 3, "num_experts_per_tok": 1, "sliding_window": 5}),
    "qwen2_moe": ("Qwen2Moe", {"num_experts": 6, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40}),
    "qwen2_moe-whole": ("Qwen2Moe", {
        "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40,
        "norm_topk_prob": True, "qkv_bias": False,
    }),
    "qwen3_moe": ("Qwen3Moe", {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24, "head_dim": 16}),
    "qwen3_moe-whole": ("Qwen3Moe", {
        "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True,
    }),
    "olmoe": ("Olmoe", {"num_experts": 6, "num_experts_per_tok": 3, "clip_qkv": None}),
    "granitemoe": ("GraniteMoe", {"num_local_experts": 4, "logits_scaling": 2.0, "embedding_multiplier": 2.0}),
    "granitemoeshared": ("GraniteMoeShared", {"num_local_experts": 4, "shared_intermediate_size": 40}),
    "qwen2_moe-layers": ("Qwen2Moe", {
        **MOE, "shared_expert_intermediate_size": 40, "mlp_only_layers": [1], "num_hidden_layers": 5,
    }),
    "qwen3_moe-layers": ("Qwen3Moe", {**MOE, "decoder_sparse_step": 2, "norm_topk_prob": True}),
    "qwen3_moe-dense": ("Qwen3Moe", {**MOE, "mlp_only_layers": [0, 1, 2, 3]}),
    "granitemoehybrid-experts": ("GraniteMoeHybrid", {**GRANITE4, "num_local_experts": 6, "num_experts_per_tok": 2,
                                                      "layer_types": STATES, "residual_multiplier": 0.4}),
    "lfm2_moe": ("Lfm2Moe", {
        **MOE, "layer_types": CONVS, "num_hidden_layers": 5, "num_dense_layers": 2, "routed_scaling_factor": 1.5,
    }),
    "lfm2_moe-without-bias": ("Lfm2Moe", {
        **MOE, "layer_types": CONVS, "num_hidden_layers": 5, "num_dense_layers": 1, "use_expert_bias": False,
        "norm_topk_prob": False, "tie_word_embeddings": False, "conv_bias": True,
    }),
    "dots1": ("Dots1", {**MOE, **SHARED, "first_k_dense_replace": 2, "norm_topk_prob": True, "routed_scaling_factor": 2.5}),
    "dots1-windows": ("Dots1", {**MOE, **SHARED, "sliding_window": 5, "max_window_layers": 2}),
    "glm4_moe": ("Glm4Moe", {**MOE, **SHARED, "head_dim": 16, "use_qk_norm": True, "attention_bias": True}),
    "ernie4_5_moe": ("Ernie4_5_Moe", {
        "moe_num_experts": 6, "moe_k": 3, "moe_intermediate_size": 24, "moe_num_shared_experts": 2, "use_bias": True,
        "moe_layer_interval": 2, "moe_layer_end_index": 2, "moe_layer_start_index": 0,
    }),
    "ernie4_5_moe-least": ("Ernie4_5_Moe", {
        "moe_num_experts": 6, "moe_k": 2, "moe_intermediate_size": 24, "moe_num_shared_experts": 0, "moe_norm_min": 0.6,
    }),
    "hunyuan_v1_moe": ("HunYuanMoEV1", {"num_experts": 6, "moe_topk": 3, "head_dim": 16}),
    "hunyuan_v1_moe-by-layer": ("HunYuanMoEV1", {"num_experts": 6, "moe_topk": [3, 3, 3, 3], "head_dim": 16}),
    "flex_olmo": ("FlexOlmo", {"num_experts": 6, "num_experts_per_tok": 3}),
    "opt": ("OPT", {"ffn_dim": 48, "init_std": 0.3, "word_embed_proj_dim": 32}),
    "opt-untied": ("OPT", {
        "ffn_dim": 48, "init_std": 0.3, "word_embed_proj_dim": 32, "enable_bias": False, "tie_word_embeddings": False,
        "activation_function": "gelu",
    }),
    "opt-projections": ("OPT", {"ffn_dim": 48, "init_std": 0.3, "word_embed_proj_dim": 20, "do_layer_norm_before": False}),
    "opt-norms-before": ("OPT", {
        "ffn_dim": 48, "init_std": 0.3, "word_embed_proj_dim": 20, "tie_word_embeddings": False,
        "_remove_final_layer_norm": True,
    }),
    "opt-norms-after": ("OPT", {
        "ffn_dim": 48, "init_std": 0.3, "word_embed_proj_dim": 32, "do_layer_norm_before": False, "enable_bias": False,
    }),
    "gpt_neo": ("GPTNeo", {"window_size": 5, "attention_types": [[["global", "local"], 2]]}),
    "gpt_neox": ("GPTNeoX", {"rotary_pct": 0.5}),
    "gpt_neox-in-a-row": ("GPTNeoX", {"use_parallel_residual": False}),
    "gpt2": ("GPT2", {"n_embd": 32, "n_head": 4, "n_layer": 3, "n_positions": 64}),
    "gpt2-inner": ("GPT2", {
        "n_embd": 32, "n_head": 2, "n_layer": 2, "n_positions": 64, "n_inner": 40, "activation_function": "quick_gelu",
        "scale_attn_by_inverse_layer_idx": True,
    }),
    "gpt2-gelu": ("GPT2", {"n_embd": 32, "n_head": 2, "n_layer": 2, "n_positions": 64, "activation_function": "gelu"}),
    "mamba": ("Mamba", {"state_size": 5, "time_step_rank": 3}),
    "mamba-untied": ("Mamba", {"state_size": 16, "tie_word_embeddings": False, "use_bias": True, "use_conv_bias": False}),
    "mamba-two-taps": ("Mamba", {"state_size": 1, "conv_kernel": 2, "time_step_rank": 1, "hidden_act": "gelu"}),
    "mamba-seven-taps": ("Mamba", {"state_size": 4, "conv_kernel": 7, "expand": 3}),
    "mamba2": ("Mamba2", {**HEADS, "n_groups": 2, "state_size": 5}),
    "mamba2-tied": ("Mamba2", {
        **HEADS, "n_groups": 1, "state_size": 4, "tie_word_embeddings": True, "use_bias": True, "use_conv_bias": False,
        "layer_norm_epsilon": 1e-3,
    }),
    "mamba2-two-taps": ("Mamba2", {
        "num_heads": 2, "head_dim": 48, "expand": 3, "n_groups": 2, "state_size": 3, "conv_kernel": 2, "hidden_act": "gelu",
        "chunk_size": 4,
    }),
    "granitemoehybrid": ("GraniteMoeHybrid", {**GRANITE4, "layer_types": STATES}),
    "granitemoehybrid-scales": ("GraniteMoeHybrid", {
        **GRANITE4, "layer_types": STATES, "embedding_multiplier": 3.0, "attention_multiplier": 0.3,
        "residual_multiplier": 0.4, "logits_scaling": 2.0, "attention_bias": True, "mamba_proj_bias": True,
        "mamba_conv_bias": False, "position_embedding_type": "rope", "mamba_n_groups": 2, "tie_word_embeddings": True,
    }),
    "falcon_h1": ("FalconH1", FALCON_H1),
    "falcon_h1-scales": ("FalconH1", {
        **FALCON_H1, "mamba_rms_norm": True, "mamba_norm_before_gate": False, "lm_head_multiplier": 0.5,
        "embedding_multiplier": 2.0, "mlp_multipliers": [0.7, 1.3], "key_multiplier": 0.6, "attention_out_multiplier": 0.8,
        "attention_in_multiplier": 1.2, "ssm_multipliers": [0.9, 1.1, 0.8, 1.2, 0.7], "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.75, "tie_word_embeddings": True,
    }),
    "falcon_h1-biases": ("FalconH1", {
        **FALCON_H1, "mamba_rms_norm": True, "mamba_n_groups": 2, "attention_bias": True, "mlp_bias": True,
        "projectors_bias": True, "mamba_proj_bias": True, "mamba_conv_bias": False,
    }),
    "lfm2": ("Lfm2", {"layer_types": CONVS, "num_hidden_layers": 5, "block_multiple_of": 8}),
    "lfm2-groups": ("Lfm2", {"layer_types": GROUPS, "num_hidden_layers": 9, "block_multiple_of": 8}),
    "lfm2-biases": ("Lfm2", {"layer_types": CONVS, "num_hidden_layers": 5, "conv_bias": True, "conv_L_cache": 4, "tie_word_embeddings": False}),
    "lfm2-width-as-said": ("Lfm2", {"full_attn_idxs": [0, 3], "block_auto_adjust_ff_dim": False, "conv_L_cache": 2}),
    "lfm2-attention-alone": ("Lfm2", {"block_ffn_dim_multiplier": 1.3, "block_multiple_of": 4}),
    "falcon_mamba": ("FalconMamba", {"state_size": 6, "time_step_rank": 4, "mixer_rms_eps": 1e-3}),
}

NONE = {"rope_parameters": None}
LINEAR = {"rope_type": "linear", "factor": 4.0}
SAID: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    # settings, and what another writer's configuration has instead; None: nothing
    "rope-legacy": ("Llama", {}, {**NONE, "rope_theta": 50.0, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    "rope-first": ("Llama", {}, {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}, "rope_scaling": LINEAR}),
    "rope-base-alone": ("Llama", {}, {**NONE, "rope_scaling": {"rope_theta": 5.0}}),
    "rope-context-beside": ("Llama", {}, {
        "rope_parameters": {k: v for k, v in LLAMA3.items() if not k.startswith("original")},
        "original_max_position_embeddings": 16,
    }),
    "rope-context-twice": ("Llama", {}, {"rope_parameters": LLAMA3, "original_max_position_embeddings": 32}),
    "neox-legacy": ("GPTNeoX", {}, {**NONE, "rotary_pct": 0.5, "rotary_emb_base": 30}),
    "gemma3-legacy": ("Gemma3Text", {"head_dim": 16, "sliding_window": 3}, {
        **NONE, "layer_types": None, "sliding_window_pattern": 2, "rope_theta": 700.0, "rope_local_base_freq": 30.0,
        "rope_scaling": LINEAR,
    }),
    "yarn-legacy": ("Qwen2", {}, {**NONE, "rope_theta": 50.0, "max_position_embeddings": 32, "rope_scaling": {
        "type": "yarn", "factor": 4.0,
    }}),
    "yarn-of-some-layers": ("Gemma3Text", {"head_dim": 16, "sliding_window": 3, "layer_types": TYPES}, {
        "rope_parameters": {"full_attention": YARN, "sliding_attention": PLAIN},
    }),
    "qwen2-from-a-layer": ("Qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2}, {
        "layer_types": None,
    }),
    "qwen2_moe-up-to-a-layer": ("Qwen2Moe", {
        **MOE, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 3, "num_experts_per_tok": 2,
    }, {"layer_types": None}),
    "qwen3_moe-all-layers": ("Qwen3Moe", {**MOE, "use_sliding_window": True, "sliding_window": 5}, {
        "max_window_layers": 3, "layer_types": None,
    }),
    "olmo3-legacy": ("Olmo3", {"sliding_window": 3}, {
        **NONE, "layer_types": None, "rope_theta": 500000.0, "rope_scaling": {k: YARN[k] for k in YARN if k != "rope_theta"},
    }),
    "exaone4-legacy": ("Exaone4", {"sliding_window": 3}, {**NONE, "layer_types": None, "rope_theta": 50.0}),
    "ernie4_5-nothing-said": ("Ernie4_5", {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 128}, {
        **NONE, "tie_word_embeddings": None, "head_dim": None, "num_key_value_heads": None, "rms_norm_eps": None,
    }),
    "granite-nothing-said": ("Granite", {}, {**NONE, "attention_multiplier": None, "logits_scaling": None}),
    "helium-nothing-said": ("Helium", {"hidden_size": 128, "num_attention_heads": 1, "num_key_value_heads": 1}, {
        **NONE, "head_dim": None, "rms_norm_eps": None,
    }),
    "stablelm-nothing-said": ("StableLm", {}, {**NONE, "layer_norm_eps": None}),
    "vaultgemma-nothing-said": ("VaultGemma", {"head_dim": 256}, {
        **NONE, "layer_types": None, "head_dim": None, "query_pre_attn_scalar": None, "attn_logit_softcapping": 50.0,
    }),
    "phi3-legacy": ("Phi3", PHI3_LONGROPE, {
        **NONE, "partial_rotary_factor": 0.75, "rope_theta": 100.0, "rms_norm_eps": None, "tie_word_embeddings": None,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.2, 1.5], "long_factor": [1.5, 2.0, 4.0]},
    }),
    "olmo-nothing-said": ("Olmo", {}, {**NONE, "num_key_value_heads": 2, "tie_word_embeddings": None}),
    "cohere-nothing-said": ("Cohere", {}, {
        **NONE, "layer_norm_eps": None, "logit_scale": None, "tie_word_embeddings": None, "rms_norm_eps": 0.5,
    }),
    "cohere2-legacy": ("Cohere2", {"sliding_window": 3}, {
        **NONE, "layer_types": None, "sliding_window_pattern": 2, "rope_theta": 50.0, "logit_scale": None,
    }),
    "glm-nothing-said": ("Glm", {"head_dim": 128}, {
        **NONE, "head_dim": None, "num_key_value_heads": None, "rms_norm_eps": None, "tie_word_embeddings": None,
    }),
    "nemotron-nothing-said": ("Nemotron", {}, {**NONE, "norm_eps": None, "hidden_act": None, "tie_word_embeddings": None}),
    "jais2-nothing-said": ("Jais2", {}, {**NONE, "layer_norm_eps": None, "hidden_act": None}),
    "seed_oss-nothing-said": ("SeedOss", {"head_dim": 128, "num_attention_heads": 8, "num_key_value_heads": 8}, {
        **NONE, "head_dim": None, "num_key_value_heads": None, "rms_norm_eps": None,
    }),
    "hyperclovax-nothing-said": ("HyperCLOVAX", {}, {
        **NONE, "attention_multiplier": None, "logits_scaling": None, "rms_norm_eps": None,
    }),
    "ministral-nothing-said": ("Ministral", {"head_dim": 8, "num_attention_heads": 8, "num_key_value_heads": 8}, {
        **NONE, "layer_types": None, "num_key_value_heads": None, "rms_norm_eps": None,
    }),
    "cwm-nothing-said": ("Cwm", {"sliding_window": 3, "head_dim": 128, "num_key_value_heads": 8, "num_attention_heads": 8}, {
        "layer_types": None, "head_dim": None, "num_key_value_heads": None, "rms_norm_eps": None,
    }),
    "cwm-base-not-said": ("Cwm", {"sliding_window": 3, "head_dim": 16}, {
        **NONE, "rope_scaling": {k: v for k, v in LLAMA3.items() if k != "rope_theta"},
    }),
    "phi-legacy": ("Phi", {"num_key_value_heads": 4}, {
        **NONE, "partial_rotary_factor": 0.5, "layer_norm_eps": None, "num_key_value_heads": None, "hidden_act": None,
    }),
    "opt-nothing-said": ("OPT", {"ffn_dim": 48, "word_embed_proj_dim": 32}, {
        "word_embed_proj_dim": None, "activation_function": None, "do_layer_norm_before": None,
    }),
    "gpt_neo-by-types": ("GPTNeo", {
        "window_size": 3, "attention_types": [[["local"], 1], [["global", "local", "local"], 1]],
    }, {"attention_layers": None}),
    "gpt_neo-nothing-said": ("GPTNeo", {"attention_types": [[["global", "local"], 2]], "intermediate_size": 128}, {
        "attention_layers": None, "attention_types": [[["global", "local"], 2]], "intermediate_size": None,
        "window_size": None, "activation_function": None, "layer_norm_epsilon": None,
    }),
    "mixtral-nothing-said": ("Mixtral", {
        "num_attention_heads": 8, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
    }, {**NONE, "num_key_value_heads": None, "rms_norm_eps": None, "num_experts_per_tok": None, "num_local_experts": None}),
    "olmoe-nothing-said": ("Olmoe", {"num_experts": 8, "num_experts_per_tok": 8, "num_key_value_heads": 4}, {
        **NONE, "rms_norm_eps": None, "num_experts_per_tok": None, "norm_topk_prob": None, "num_key_value_heads": None,
    }),
    "granitemoe-nothing-said": ("GraniteMoe", {"num_local_experts": 4}, {**NONE, "num_experts_per_tok": None}),
    "lfm2_moe-nothing-said": ("Lfm2Moe", {
        **MOE, "layer_types": CONVS, "num_hidden_layers": 5, "num_experts_per_tok": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    }, {**NONE, **dict.fromkeys((
        "num_dense_layers", "num_experts_per_tok", "num_key_value_heads", "norm_eps", "use_expert_bias", "norm_topk_prob",
        "routed_scaling_factor", "tie_word_embeddings",
    ))}),
    "dots1-nothing-said": ("Dots1", {**MOE, **SHARED, "num_key_value_heads": 4}, {**NONE, **dict.fromkeys((
        "first_k_dense_replace", "norm_topk_prob", "routed_scaling_factor", "layer_types", "n_group", "topk_group", "sliding_window",
        "max_window_layers", "rms_norm_eps",
    ))}),
    "glm4_moe-nothing-said": ("Glm4Moe", {
        **MOE, **SHARED, "num_experts_per_tok": 6, "num_attention_heads": 8, "num_key_value_heads": 8,
    }, {**NONE, **dict.fromkeys((
        "first_k_dense_replace", "norm_topk_prob", "routed_scaling_factor", "num_key_value_heads", "rms_norm_eps",
    ))}),
    "ernie4_5_moe-nothing-said": ("Ernie4_5_Moe", {
        "moe_num_experts": 64, "moe_intermediate_size": 8, "moe_num_shared_experts": 2, "num_attention_heads": 8,
        "num_key_value_heads": 4,
    }, {**NONE, **dict.fromkeys((
        "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval", "moe_norm_min", "moe_k", "moe_num_experts",
        "num_key_value_heads", "rms_norm_eps", "tie_word_embeddings",
    ))}),
    "granitemoehybrid-nothing-said": ("GraniteMoeHybrid", {**GRANITE4, "num_local_experts": 8, "num_experts_per_tok": 2,
                                                           "layer_types": STATES}, {**NONE, **dict.fromkeys((
        "num_local_experts", "num_experts_per_tok", "attention_multiplier", "position_embedding_type", "mamba_n_groups",
    ))}),
    "smollm3-sliding": ("SmolLM3", {"no_rope_layers": [1, 0, 1, 0], "sliding_window": 3, "use_sliding_window": True}, {
        "layer_types": None,
    }),
    "smollm3-not-sliding": ("SmolLM3", {"sliding_window": 3}, {"layer_types": None, "use_sliding_window": None}),
}  # fmt: skip


def made(family: str, settings: dict[str, Any], folder: Path, dtype: str = "float32") -> Any:
    """A random model of a family, saved in `dtype`; its weights are what is stored."""
    common = {k: v for k, v in SMALL.items() if family not in ("GPT2",) or k in ("vocab_size", "initializer_range")}
    config = getattr(transformers, f"{family}Config")(**{**common, **settings})
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.set_experts_implementation("eager")  # the others have no f64
    with torch.no_grad():
        biases = [pair for pair in model.named_buffers() if "bias" in pair[0]]  # of experts, for their choice
        for name, weights in [*model.named_parameters(), *biases]:
            if weights.ndim == 1 or "norm" in name:  # norms and biases that tell a mistake
                weights.add_(0.2 * torch.randn_like(weights))
            weights.copy_(weights.to(getattr(torch, dtype)))
    copy.deepcopy(model).to(getattr(torch, dtype)).save_pretrained(folder)  # rounds constants of the model's too
    return model


def executor(folder: Path, tmp_path: Path) -> oic.Executor:
    imported = import_checkpoint(folder, tmp_path / "imported")
    graph, model = oic.parse_file(imported.graph), oic.Model.open(imported.model)
    return oic.Synthesizer(graph, model).build(tmp_path / "build").make_executor()


def greedy(step: Callable[[list[int]], np.ndarray], prompt: list[int], count: int) -> list[int]:
    ids = [int(step(prompt)[-1].argmax())]
    while len(ids) < count:
        ids.append(int(step(ids[-1:])[-1].argmax()))
    return ids


@pytest.mark.parametrize("case", CASES)
def test_a_family_equals_transformers(case: str, tmp_path: Path) -> None:
    family, settings = CASES[case]
    model = made(family, settings, tmp_path / "checkpoint")
    ex = executor(tmp_path / "checkpoint", tmp_path)
    found = greedy(lambda ids: ex.step(tokens=np.array(ids, np.int32))["logits"], PROMPT, NEW)
    whole = [*PROMPT, *found]
    with torch.no_grad():
        wanted = model.double()(torch.tensor([whole])).logits[0].numpy()
    assert found == wanted[len(PROMPT) - 1 : -1].argmax(-1).tolist()
    ex.reset()
    at_once = ex.step(tokens=np.array(whole, np.int32))["logits"]
    assert float(np.abs(at_once - wanted).max()) <= WITHIN
    ex.reset()
    single = np.concatenate([ex.step(tokens=np.array([t], np.int32))["logits"] for t in whole])
    assert single.tobytes() == at_once.tobytes()


@pytest.mark.parametrize("case", SAID)
def test_a_configuration_means_what_it_means_to_transformers(case: str, tmp_path: Path) -> None:
    """As others write it: keys of earlier versions, and what they leave out."""
    family, settings, said = SAID[case]
    model, path = made(family, settings, tmp_path), tmp_path / "config.json"
    config = json.loads(path.read_text()) | said
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    with torch.no_grad():
        wanted = type(model).from_pretrained(tmp_path, experts_implementation="eager").double()(torch.tensor([PROMPT * 3])).logits[0].numpy()
    imported = import_checkpoint(tmp_path, tmp_path / "imported")
    graph = oic.parse_file(imported.graph)
    with oic.Simulator(graph, oic.Model.open(imported.model)).make_executor() as ex:
        found = ex.step(tokens=np.array(PROMPT * 3, np.int32))["logits"]
    assert float(np.abs(found - wanted).max()) <= WITHIN


def test_frequencies_of_long_texts_are_those_of_a_cache_with_room_for_them(tmp_path: Path) -> None:
    model, whole = made("Phi3", PHI3_LONGROPE, tmp_path), PROMPT * 6
    assert import_checkpoint(tmp_path, tmp_path / "short").context == 32
    imported = import_checkpoint(tmp_path, tmp_path / "long", context=64)
    assert "rope of texts beyond 32 tokens" in imported.features
    graph = oic.parse_file(imported.graph)
    with oic.Simulator(graph, oic.Model.open(imported.model)).make_executor() as ex, torch.no_grad():
        found = ex.step(tokens=np.array(whole, np.int32))["logits"]
        wanted = model.double()(torch.tensor([whole])).logits[0].numpy()
    assert float(np.abs(found - wanted).max()) <= WITHIN


def test_the_window_of_a_family_is_that_of_its_configuration(tmp_path: Path) -> None:
    """What is left out: a window that is wider than any text here."""
    made("Qwen2", {"max_position_embeddings": 5000}, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"use_sliding_window": True, "max_window_layers": 1}
    kept = {k: v for k, v in config.items() if k not in ("layer_types", "sliding_window")}
    (tmp_path / "config.json").write_text(json.dumps(kept))
    window = transformers.AutoConfig.from_pretrained(tmp_path).sliding_window
    assert f"window={window}" in import_checkpoint(tmp_path, tmp_path / "imported").graph.read_text()


@pytest.mark.parametrize("key", ["is_causal", "use_bidirectional_attention"])
@pytest.mark.parametrize("family", ["Llama", "Gemma", "Gemma3Text"])
def test_a_model_whose_tokens_see_those_after_them_is_refused(family: str, key: str, tmp_path: Path) -> None:
    made(family, {}, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {key: key != "is_causal"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(oic.OicError, match=f"'{key}' is {config[key]}"):
        import_checkpoint(tmp_path, tmp_path / "imported")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_weights_are_read_as_they_are_stored(dtype: str, tmp_path: Path) -> None:
    model = made("Llama", {}, tmp_path / "checkpoint", dtype)
    ex = executor(tmp_path / "checkpoint", tmp_path)
    found = ex.step(tokens=np.array(PROMPT, np.int32))["logits"]
    with torch.no_grad():
        wanted = model.double()(torch.tensor([PROMPT])).logits[0].numpy()
    assert float(np.abs(found - wanted).max()) <= WITHIN


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    model = made("Llama", {}, tmp_path / "checkpoint")
    for file in (tmp_path / "checkpoint").glob("*.safetensors"):
        file.unlink()
    model.save_pretrained(tmp_path / "checkpoint", max_shard_size="20KB")
    assert len(list((tmp_path / "checkpoint").glob("*.safetensors"))) > 2
    ex = executor(tmp_path / "checkpoint", tmp_path)
    with torch.no_grad():
        wanted = model.double()(torch.tensor([PROMPT])).logits[0].numpy()
    assert float(np.abs(ex.step(tokens=np.array(PROMPT, np.int32))["logits"] - wanted).max()) <= WITHIN
