"""GGUF files: equal to the same weights in a Hugging Face folder; blocks are widened exactly; hostile files are refused."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from click.testing import CliRunner

import oic
from importers.checkpoints import HYBRIDS, checkpoint
from importers.test_sources import gpt2_weights, logits, refused
from model.samples import write_safetensors
from oic.cli.main import main
from oic.driver import Settings, compile_graph
from oic.dtypes import Array
from oic.importers import import_checkpoint

Tensors = dict[str, Array]
D, HEADS, KV, DH, F, VOCAB, LAYERS = 32, 4, 2, 8, 64, 40, 2
CONFIG = {
    "vocab_size": VOCAB, "hidden_size": D, "intermediate_size": F, "num_hidden_layers": LAYERS, "head_dim": DH,
    "num_attention_heads": HEADS, "num_key_value_heads": KV, "max_position_embeddings": 24, "rms_norm_eps": 1e-5,
}  # fmt: skip
KEYS = {
    "embedding_length": D, "feed_forward_length": F, "block_count": LAYERS, "attention.head_count": HEADS,
    "attention.head_count_kv": KV, "attention.key_length": DH, "attention.value_length": DH, "context_length": 24,
    "attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": DH,
}  # fmt: skip
PLACES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
AROUND = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip


def weights(more: tuple[str, ...] = (), bias: bool = False, tied: bool = True) -> Tensors:
    """A small Llama or one of its kin under the names of transformers."""
    rng = np.random.default_rng(11)
    shapes: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (HEADS * DH, D), "self_attn.k_proj": (KV * DH, D), "self_attn.v_proj": (KV * DH, D),
        "self_attn.o_proj": (D, HEADS * DH), "mlp.gate_proj": (F, D), "mlp.up_proj": (F, D), "mlp.down_proj": (D, F),
    }  # fmt: skip
    shapes |= dict.fromkeys(("input_layernorm", "post_attention_layernorm"), (D,))
    shapes |= {n: (DH,) if n.startswith("self_attn") else (D,) for n in more}
    found = {f"model.layers.{i}.{n}.weight": rng.standard_normal(s) / 4 for i in range(LAYERS) for n, s in shapes.items()}
    found |= {"model.embed_tokens.weight": rng.standard_normal((VOCAB, D)), "model.norm.weight": rng.standard_normal(D)}
    if bias:
        found |= {
            f"model.layers.{i}.self_attn.{n}_proj.bias": rng.standard_normal(shapes[f"self_attn.{n}_proj"][0])
            for i in range(LAYERS) for n in "qkv"
        }  # fmt: skip
    if not tied:
        found["lm_head.weight"] = rng.standard_normal((VOCAB, D))
    return {n: np.ascontiguousarray(a, np.float32) for n, a in found.items()}


def as_gguf(tensors: Tensors, places: dict[str, str] = PLACES, turned: bool = False, plus_one: bool = False) -> Tensors:
    """What llama.cpp's converter makes of them.

    turned    rows of q and k in the order of adjacent pairs
    plus_one  norms hold 1 + weight
    """
    once = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    found = {}
    for name, array in tensors.items():
        stem, _, kind = name.rpartition(".")
        if stem in once:
            place = once[stem]
        else:
            _, _, layer, inner = stem.split(".", 3)
            place = f"blk.{layer}.{places[inner]}"
            if turned and inner in ("self_attn.q_proj", "self_attn.k_proj"):
                heads = HEADS if ".q_" in inner else KV
                array = array.reshape(heads, 2, DH // 2, -1).swapaxes(1, 2).reshape(array.shape)
        found[f"{place}.{kind}"] = array + np.float32(1) if plus_one and "norm" in place else array
    return found


def write(path: Path, arch: str, tensors: Tensors, kinds: dict[str, Any] | None = None, **keys: Any) -> Path:
    """A GGUF file; `kinds` gives tensors that are stored in another type."""
    writer = gguf.GGUFWriter(path, arch)
    for key, value in keys.items():
        whole = key if key.startswith("tokenizer.") else f"{arch}.{key}"
        match value:
            case bool():
                writer.add_bool(whole, value)
            case int():
                writer.add_uint32(whole, value)
            case float():
                writer.add_float32(whole, value)
            case str():
                writer.add_string(whole, value)
            case _:
                writer.add_array(whole, value)
    for name, array in tensors.items():
        kind = (kinds or {}).get(name)
        if kind is None:
            writer.add_tensor(name, array)
        else:
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def folder(path: Path, family: str, tensors: Tensors, **config: Any) -> Path:
    """The same in the Hugging Face layout."""
    path.mkdir()
    write_safetensors(path / "model.safetensors", {n: ("F32", a) for n, a in tensors.items()})
    (path / "config.json").write_text(json.dumps(CONFIG | {"model_type": family} | config))
    return path


NORMS = ("self_attn.q_norm", "self_attn.k_norm")
AROUND_NORMS = ("pre_feedforward_layernorm", "post_feedforward_layernorm")
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # architecture: family, settings of weights(), of as_gguf(), keys, configuration
    "llama": ("llama", {"tied": False}, {"turned": True}, {}, {"tie_word_embeddings": False}),
    "llama-linear": ("llama", {}, {"turned": True}, {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
                     {"tie_word_embeddings": True, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "llama-scale-alone": ("llama", {}, {"turned": True}, {"rope.scaling.factor": 4.0},
                          {"tie_word_embeddings": True, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "llama-scale-before": ("llama", {}, {"turned": True}, {"rope.scale_linear": 4.0},
                           {"tie_word_embeddings": True, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "llama-scale-of-none": ("llama", {}, {"turned": True}, {"rope.scaling.type": "none", "rope.scaling.factor": 4.0},
                            {"tie_word_embeddings": True}),
    "qwen2": ("qwen2", {"bias": True}, {}, {"rope.freq_base": 1e6}, {"tie_word_embeddings": True, "rope_theta": 1e6}),
    "qwen3": ("qwen3", {"more": NORMS}, {}, {}, {"tie_word_embeddings": True}),
    "gemma": ("gemma", {}, {"plus_one": True}, {}, {}),
    "gemma2": ("gemma2", {"more": AROUND_NORMS}, {"plus_one": True, "places": PLACES | AROUND},
               {"attention.sliding_window": 4, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
               {"sliding_window": 4, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
                "query_pre_attn_scalar": DH}),
    "gemma2-first-files": ("gemma2", {"more": AROUND_NORMS}, {"plus_one": True, "places": PLACES | AROUND}, {},
                           {"query_pre_attn_scalar": DH}),
    "gemma3": ("gemma3_text", {"more": AROUND_NORMS + NORMS}, {"plus_one": True, "places": PLACES | AROUND},
               {"attention.sliding_window": 4, "rope.freq_base": 1e6, "attention.sliding_window_pattern": [True, False]},
               {"sliding_window": 4, "rope_theta": 1e6, "query_pre_attn_scalar": DH,
                "layer_types": ["sliding_attention", "full_attention"]}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_gguf_file_is_the_model_of_the_folder(case: str, tmp_path: Path) -> None:
    """All bits are equal but where q and k were turned, whose sums are in another order."""
    family, settings, conversion, keys, config = CASES[case]
    tensors = weights(**settings)
    wanted = import_checkpoint(folder(tmp_path / "in", family, tensors, **config), tmp_path / "wanted")
    file = write(tmp_path / "m.gguf", case.split("-")[0], as_gguf(tensors, **conversion), **KEYS | keys)
    made = import_checkpoint(file, tmp_path / "made")
    assert made.family == case.split("-")[0] and made.context == wanted.context and not made.widened
    ids = (1, 5, 9, 2, 30, 7, 7, 3)
    found, known = logits(made, ids), logits(wanted, ids)
    if conversion.get("turned"):
        assert 'style="interleaved"' in made.graph.read_text()
        assert float(np.abs(found - known).max()) <= 1e-5 and found.argmax(-1).tolist() == known.argmax(-1).tolist()
    else:
        assert found.tobytes() == known.tobytes()


def test_gpt2_in_gguf_is_that_of_the_folder(tmp_path: Path) -> None:
    source = gpt2_weights(tmp_path / "w.safetensors", "", False, True)  # matrices [out, in], as the converter makes them
    model = oic.Model.open(source)
    names = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
             "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
             "lm_head": "output"}  # fmt: skip
    tensors = {}
    for name in model.names():
        stem, _, kind = name.rpartition(".")
        layer, _, inner = stem.removeprefix("h.").partition(".") if stem.startswith("h.") else ("", "", stem)
        tensors[f"blk.{layer}.{names[inner]}.{kind}" if layer else f"{names[inner]}.{kind}"] = np.array(model.tensor(name))
    keys = {"embedding_length": 8, "feed_forward_length": 12, "block_count": 2, "attention.head_count": 2,
            "attention.layer_norm_epsilon": 1e-5, "context_length": 6}  # fmt: skip
    wanted = import_checkpoint(source, tmp_path / "wanted", settings={"n_head": 2})
    made = import_checkpoint(write(tmp_path / "m.gguf", "gpt2", tensors, **keys), tmp_path / "made")
    assert logits(made).tobytes() == logits(wanted).tobytes()
    shutil.rmtree(tmp_path / "made")
    assert "1 to 6, the positions that it has learned" in refused(tmp_path / "m.gguf", tmp_path, context=7)[1]


GRANITE = {"embedding_scale": 3.0, "attention.scale": 0.3, "residual_scale": 0.4, "logit_scale": 2.0}
GRANITE_HYBRID = {
    **GRANITE, "attention.head_count_kv": [0, 0, 2, 0], "rope.scaling.finetuned": False, "ssm.inner_size": 32,
    "ssm.state_size": 3, "ssm.time_step_rank": 8, "ssm.group_count": 1, "ssm.conv_kernel": 4,
}  # fmt: skip
ERNIE = {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 12, "moe_num_shared_experts": 2,
         "moe_layer_start_index": 1, "head_dim": 4}  # fmt: skip
CONVERTED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    # family: architecture, settings of the configuration, keys
    "gpt_neox": ("gptneox", {}, {"rope.dimension_count": 2, "use_parallel_residual": True}),
    "starcoder2": ("starcoder2", {}, {"attention.sliding_window": 6}),
    "olmo2": ("olmo2", {
        "num_hidden_layers": 5, "sliding_window": 4,
        "layer_types": [f"{reach}_attention" for reach in ("sliding", "sliding", "sliding", "full", "sliding")],
    }, {"attention.sliding_window": 4}),
    "smollm3": ("smollm3", {"num_hidden_layers": 5, "no_rope_layers": None}, {"rope.freq_base": 2e6}),
    "phi3": ("phi3", {}, {
        "attention.sliding_window": 6, "rope.dimension_count": 6, "attention.key_length": 8, "attention.value_length": 8,
        "rope.scaling.original_context_length": 16, "rope.scaling.attn_factor": 1.25**0.5,
    }),
    "glm": ("chatglm", {"head_dim": 4}, {"rope.dimension_count": 2}),
    "glm4": ("glm4", {}, {"rope.dimension_count": 4, "attention.key_length": 8, "attention.value_length": 8}),
    "cohere": ("command-r", {"use_qk_norm": True, "logit_scale": 0.5}, {"logit_scale": 0.5, "rope.freq_base": 5e5}),
    "cohere2": ("cohere2", {"sliding_window_pattern": 4, "num_hidden_layers": 5}, {
        "attention.sliding_window": 5, "logit_scale": 0.0625,
    }),
    "olmo": ("olmo", {}, {"attention.clamp_kqv": 0.5}),
    "nemotron": ("nemotron", {}, {"rope.dimension_count": 2}),
    "jais2": ("jais2", {}, {}),
    "seed_oss": ("seed_oss", {"head_dim": 4}, {}),
    "mixtral": ("llama", {}, {"expert_count": 4, "expert_used_count": 2, "rope.freq_base": 1e6}),
    "qwen3_moe": ("qwen3moe", {"head_dim": 6}, {
        "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32, "rope.dimension_count": 6,
        "attention.key_length": 6, "attention.value_length": 6,
    }),
    "olmoe": ("olmoe", {}, {"expert_count": 4, "expert_used_count": 1}),
    "qwen2_moe": ("qwen2moe", {"num_experts": 4}, {
        "expert_count": 4, "expert_used_count": 3, "expert_feed_forward_length": 12, "expert_shared_feed_forward_length": 8,
    }),
    "lfm2_moe": ("lfm2moe", {}, {
        "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 12, "expert_gating_func": 2,
        "leading_dense_block_count": 1, "attention.head_count_kv": [0, 2, 0, 0], "shortconv.l_cache": 3, "rope.freq_base": 1e6,
    }),
    "dots1": ("dots1", {"num_key_value_heads": 4}, {
        "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 12, "expert_gating_func": 2,
        "leading_dense_block_count": 1, "expert_weights_scale": 1.5, "expert_weights_norm": True, "expert_shared_count": 2,
    }),
    "ernie4_5_moe": ("ernie4_5-moe", ERNIE, {
        "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 12, "leading_dense_block_count": 1,
        "interleave_moe_layer_step": 1, "expert_shared_feed_forward_length": 24, "expert_shared_count": 2, "rope.freq_base": 5e5,
    }),
    "ernie4_5": ("ernie4_5", {"head_dim": 4}, {"rope.freq_base": 5e5}),
    "granitemoeshared": ("granitemoe", {"num_local_experts": 4, "logits_scaling": 2.0}, {
        "expert_count": 4, "expert_used_count": 2, "expert_shared_feed_forward_length": 8, "attention.scale": 0.3, "logit_scale": 2.0,
    }),
    "granitemoehybrid+experts": ("granitehybrid", {"num_local_experts": 4, "intermediate_size": 12}, {
        **GRANITE_HYBRID, "expert_count": 4, "expert_used_count": 2, "expert_shared_feed_forward_length": 20,
    }),
    "hunyuan_v1_dense": ("hunyuan-dense", {}, {"rope.scaling.type": "none", "rope.freq_base": 1e4 * 50.0**2}),
    "granite": ("granite", {}, GRANITE),
    "granitemoehybrid": ("granitehybrid", {}, GRANITE_HYBRID),
    "falcon_h1": ("falcon-h1", {"mamba_norm_before_gate": False}, {
        "ssm.inner_size": 24, "ssm.state_size": 3, "ssm.time_step_rank": 4, "ssm.group_count": 2, "ssm.conv_kernel": 4,
    }),
    "lfm2": ("lfm2", {}, {"attention.head_count_kv": [0, 2, 0, 0], "shortconv.l_cache": 3, "rope.freq_base": 1e6}),
    "mamba2": ("mamba2", {}, {
        "ssm.inner_size": 32, "ssm.state_size": 3, "ssm.time_step_rank": 8, "ssm.group_count": 2, "ssm.conv_kernel": 4,
        "attention.head_count": 0, "feed_forward_length": 0,
    }),
}  # fmt: skip


TURNED = ("smollm3", "olmo", "llama", "granite", "granitemoe", "granitehybrid")
"""Architectures in whose files rows of q and k are in the order of adjacent pairs."""


def of_states(name: str, array: Array, config: dict[str, Any]) -> tuple[str, Array]:
    """What the converter makes of a tensor of layers with states, and what factors of Falcon-H1 become."""
    groups = config.get("n_groups", config.get("mamba_n_groups", 1))
    if name.endswith("A_log"):
        array = -np.exp(array)
    if name.endswith(("A_log", ".D")):
        array = array[:, None]
    if name.endswith((".conv.weight", ".conv1d.weight")):
        array = array[:, 0]
    if name.endswith((".mamba.norm.weight", ".mixer.norm.weight")):
        array = array.reshape(groups, -1)
    if config["model_type"] == "falcon_h1":
        inner, several = config["mamba_d_ssm"], groups * config["mamba_d_state"]
        parts = np.repeat(config["ssm_multipliers"], (inner, inner, several, several, config["mamba_n_heads"]))
        into = config["attention_in_multiplier"]
        factors = {
            "down_proj": config["mlp_multipliers"][1], "gate_proj": config["mlp_multipliers"][0], "v_proj": into, "q_proj": into,
            "k_proj": into * config["key_multiplier"], "o_proj": config["attention_out_multiplier"],
            "in_proj": parts[:, None] * config["ssm_in_multiplier"], "out_proj": config["ssm_out_multiplier"],
            "lm_head": config["lm_head_multiplier"],
        }  # fmt: skip
        array = array * np.float32(factors.get(name.split(".")[-2], 1.0))
    return name.replace("dt_bias", "dt_proj.bias"), array.astype(np.float32)


def converted(tensors: Tensors, arch: str, config: dict[str, Any]) -> Tensors:
    """What llama.cpp's converter makes of a checkpoint, by the names that the package `gguf` gives."""
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), layers)
    found = {}
    stacks = {re.sub(r"experts\.0\.", "experts.", name): name for name in tensors if ".experts.0." in name}
    experts = {name: np.stack([tensors[first.replace(".experts.0.", f".experts.{e}.")] for e in range(4)])
               for name, first in stacks.items()}  # fmt: skip
    for name, array in ({n: a for n, a in tensors.items() if ".experts." not in n} | experts).items():
        if ".query_key_value." in name:  # q, k and v of a head beside each other: all of q, of k, of v
            array = array.reshape(heads, 3, array.shape[0] // heads // 3, -1).swapaxes(0, 1).reshape(array.shape)
        if arch in TURNED and (".q_proj." in name or ".k_proj." in name):  # halves of a head: adjacent pairs
            own = heads if ".q_proj." in name else config["num_key_value_heads"]
            array = array.reshape(own, 2, array.shape[0] // own // 2, -1).swapaxes(1, 2).reshape(array.shape)
        if arch == "nemotron" and name.endswith("norm.weight"):
            array = array + np.float32(1)
        if ".input_linear" in name:
            parts = dict(zip(("gate", "up"), np.split(array, 2, axis=-2), strict=True))
            ending = "_exps" if array.ndim == 3 else "_shexp" if config["num_local_experts"] else ""
            found |= {f"blk.{name.split('.')[2]}.ffn_{n}{ending}.weight": part for n, part in parts.items()}
            continue
        if "shared_expert_gate" in name:
            array = array[0]
        if "_bias" in name and "dt_bias" not in name:  # of experts, for their choice
            found[f"blk.{name.split('.')[2]}.exp_probs_b.bias"] = array.reshape(-1)
            continue
        if not config.get("num_local_experts"):
            name = name.replace("shared_mlp.output_linear", "mlp.down_proj")
        name, array = of_states(name, array, config)
        if arch == "lfm2moe" and ".experts." in name:
            name = name.removeprefix("model.")
        place = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert place is not None, name
        found[place] = array
    return found


def convert(family: str, tmp_path: Path, **other: Any) -> tuple[Path, Path]:
    """A folder, and the file that the converter makes of it; `other` keys than it has."""
    arch, settings, more = CONVERTED[family]
    family = family.split("+")[0]
    source = checkpoint(tmp_path / "in", family, **settings)
    config, model = json.loads((source / "config.json").read_text()), oic.Model.open(source)
    tensors = converted({n: np.array(model.tensor(n)) for n in model.names()}, arch, config)
    keys = {
        "context_length": config["max_position_embeddings"], "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"], "block_count": config["num_hidden_layers"],
        "attention.head_count": config["num_attention_heads"],
    }  # fmt: skip
    if family not in ("gpt_neox", "mamba2"):
        keys["attention.head_count_kv"] = config["num_key_value_heads"]
    wanted = import_checkpoint(source, tmp_path / "wanted").graph.read_text()
    eps = next(float(v) for v in re.findall(r"eps=([0-9.e-]+)", wanted))
    kind = "rms_" if "rms_norm" in wanted else ""
    if family == "phi3":
        tensors |= {f"rope_factors_{n}.weight": np.array(config["rope_scaling"][f"{n}_factor"], np.float32)
                    for n in ("short", "long")}  # fmt: skip
    keys |= {f"attention.layer_norm_{kind}epsilon": eps} | more | other
    return source, write(tmp_path / "m.gguf", arch, tensors, **{k: v for k, v in keys.items() if v is not None})


@pytest.mark.parametrize("family", CONVERTED)
def test_a_converted_checkpoint_is_the_model_of_its_folder(family: str, tmp_path: Path) -> None:
    """The same ids and, but where q and k were turned or factors are in the weights, all bits of logits."""
    arch = CONVERTED[family][0]
    made, wanted = (import_checkpoint(path, tmp_path / path.name.split(".")[-1]) for path in convert(family, tmp_path)[::-1])
    ids = (1, 5, 9, 2, 20, 7, 7, 3, 11, 0)
    found, known = logits(made, ids), logits(wanted, ids)
    if arch in TURNED or arch.startswith("ernie") or (family in HYBRIDS and not arch.startswith("lfm2")):
        assert ('style="interleaved"' in made.graph.read_text()) == (arch in (*TURNED, "ernie4_5", "ernie4_5-moe") and arch != "granitehybrid")
        assert float(np.abs(found - known).max()) <= 1e-5 and found.argmax(-1).tolist() == known.argmax(-1).tolist()
    else:
        assert found.tobytes() == known.tobytes()


WRONG_STATES: dict[str, dict[str, Any]] = {
    "granitemoehybrid": {
        "attention.head_count_kv": [0, 0, 2], "ssm.inner_size": 16, "ssm.state_size": 1 << 31, "ssm.time_step_rank": 4,
        "ssm.group_count": 5, "ssm.conv_kernel": "4", "rope.scaling.finetuned": 1, "attention.head_count": [4] * 4,
        "embedding_scale": True, "logit_scale": "2",
    },
    "falcon_h1": {"ssm.group_count": 0, "attention.head_count_kv": [2, 1], "ssm.time_step_rank": 3},
    "lfm2": {"shortconv.l_cache": 4, "attention.head_count_kv": [2, 0, 2, 2], "attention.head_count": 0},
    "mamba2": {"ssm.group_count": 0, "ssm.inner_size": "a", "block_count": 1 << 31},
}  # fmt: skip


@pytest.mark.parametrize("family", WRONG_STATES)
def test_keys_of_layers_with_states_that_are_wrong_are_named(family: str, tmp_path: Path) -> None:
    for key, value in WRONG_STATES[family].items():
        source = convert(family, tmp_path / key.split(".")[-1], **{key: value})[1]
        assert f"{key}" in refused(source, tmp_path)[1], (family, key)


@pytest.mark.parametrize("family", ["mamba", "falcon_mamba"])
def test_a_converted_state_space_is_the_model_of_its_folder(family: str, tmp_path: Path) -> None:
    """-exp(A_log) and filters without an axis of one are stored; a key tells FalconMamba, whose norms have one bound."""
    source = checkpoint(tmp_path / "in", family, mixer_rms_eps=1e-4, layer_norm_epsilon=1e-4, eos_token_id=7)
    model, names = oic.Model.open(source), gguf.get_tensor_name_map(gguf.MODEL_ARCH.MAMBA, 2)
    tensors = {}
    for name in model.names():
        array = np.array(model.tensor(name))
        array = -np.exp(array) if name.endswith("A_log") else array[:, 0] if array.ndim == 3 else array
        tensors[str(names.get_name(name, try_suffixes=(".weight", ".bias")))] = array
    keys = {"embedding_length": 16, "block_count": 2, "ssm.inner_size": 20, "ssm.state_size": 3, "ssm.conv_kernel": 4,
            "ssm.time_step_rank": 2, "attention.layer_norm_rms_epsilon": 1e-4, "ssm.dt_b_c_rms": family != "mamba",
            "tokenizer.ggml.eos_token_id": 7}  # fmt: skip
    wanted = import_checkpoint(source, tmp_path / "wanted")
    made = import_checkpoint(write(tmp_path / "m.gguf", "mamba", tensors, **keys), tmp_path / "made")
    assert made.family == "mamba" and made.features == wanted.features
    assert json.loads(made.model.read_text())["metadata"]["eos_token_id"] == 7
    ids = (1, 5, 9, 2, 20, 7, 7, 3, 11, 0)
    assert float(np.abs(logits(made, ids) - logits(wanted, ids)).max()) <= 1e-5
    said = refused(write(tmp_path / "m.gguf", "mamba", tensors, **keys | {"ssm.state_size": 4}), tmp_path)[1]
    assert "'ssm.state_size' is 4" in said


def test_factors_of_rotary_frequencies(tmp_path: Path) -> None:
    """`rope_freqs.weight` divides the frequencies; as the linear scaling does where all are alike."""
    tensors = as_gguf(weights(), turned=True)
    keys = KEYS | {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
    wanted = import_checkpoint(write(tmp_path / "a.gguf", "llama", tensors, **keys), tmp_path / "a")
    tensors["rope_freqs.weight"] = np.full(DH // 2, 4, np.float32)
    made = import_checkpoint(write(tmp_path / "b.gguf", "llama", tensors, **KEYS), tmp_path / "b")
    assert logits(made).tobytes() == logits(wanted).tobytes()
    tensors["rope_freqs.weight"] = np.array([1, 0, 1, 1], np.float32)
    assert "a factor that is not above 0" in refused(write(tmp_path / "c.gguf", "llama", tensors, **KEYS), tmp_path)[1]


def test_factors_of_short_and_long_texts(tmp_path: Path) -> None:
    """Both are there, with the context of short texts, in which the others are not read."""
    factors = {f"rope_factors_{n}.weight": np.full(DH // 2, f, np.float32) for n, f in (("short", 2), ("long", 4))}
    keys = KEYS | {"rope.scaling.type": "longrope", "rope.scaling.original_context_length": 12}
    source = write(tmp_path / "m.gguf", "llama", as_gguf(weights()) | factors, **keys)
    for context, factor, room in ((None, 2.0, 12), (12, 2.0, 12), (13, 4.0, 13)):
        linear = KEYS | {"rope.scaling.factor": factor}
        made, wanted = (
            import_checkpoint(path, tmp_path / f"{path.stem}{context}", context=context)
            for path in (source, write(tmp_path / "l.gguf", "llama", as_gguf(weights()), **linear))
        )
        assert made.context == room and logits(made).tobytes() == logits(wanted).tobytes()
    for other, text in {
        "rope_factors_long.weight": "[4]", "rope_factors_short.weight": "[4]", "rope_freqs.weight": "none beside",
    }.items():  # fmt: skip
        wrong = as_gguf(weights()) | factors | {other: np.ones(3, np.float32)}
        assert text in refused(write(tmp_path / "w.gguf", "llama", wrong, **keys), tmp_path)[1]
        one = {n: a for n, a in (as_gguf(weights()) | factors).items() if n != other}
        if other in factors:
            assert f"'{other}' is 'of shape []'" in refused(write(tmp_path / "o.gguf", "llama", one, **keys), tmp_path)[1]
    keys = {k: v for k, v in keys.items() if "original" not in k}
    source = write(tmp_path / "n.gguf", "llama", as_gguf(weights()) | factors, **keys)
    assert "nothing says 'rope.scaling.original_context_length'" in refused(source, tmp_path)[1]


def test_a_factor_of_0_is_none(tmp_path: Path) -> None:
    texts = []
    for value in ({}, {"attn_logit_softcapping": 0.0, "final_logit_softcapping": 0.0, "attention.scale": 0.0}):
        source = write(tmp_path / f"{len(value)}.gguf", "gemma3", as_gguf(weights()), **KEYS, **value)
        texts.append(import_checkpoint(source, tmp_path / "out").graph.read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_narrow_types_stay_as_they_are_stored(kind: str, tmp_path: Path) -> None:
    tensors = as_gguf(weights())
    kinds = {n: gguf.GGMLQuantizationType[kind] for n, a in tensors.items() if a.ndim == 2}
    made = import_checkpoint(write(tmp_path / "m.gguf", "qwen2", tensors, kinds, **KEYS), tmp_path / "out")
    assert f"wq(l): {kind.lower()}[" in made.graph.read_text() and not made.widened
    plain = {n: gguf.dequantize(gguf.quantize(a, kinds[n]), kinds[n]) if n in kinds else a for n, a in tensors.items()}
    wide = import_checkpoint(write(tmp_path / "w.gguf", "qwen2", plain, **KEYS), tmp_path / "wide")
    assert logits(made).tobytes() == logits(wide).tobytes()


@pytest.mark.parametrize(("kind", "storage"), [("Q8_0", "q8"), ("Q4_0", "q4")])
def test_blocks_of_one_scale_stay_as_they_are(kind: str, storage: str, tmp_path: Path) -> None:
    """The file is read where it is; what is computed with are the values of its blocks, in the table of rows, too."""
    tensors, stored = as_gguf(weights()), gguf.GGMLQuantizationType[kind]
    kinds = {n: stored for n, a in tensors.items() if a.ndim == 2 and n != "blk.1.ffn_up.weight"}
    made = import_checkpoint(write(tmp_path / "m.gguf", "qwen2", tensors, kinds, **KEYS), tmp_path / "out")
    assert not made.widened and not (tmp_path / "out" / "widened.safetensors").exists()
    plain = {n: gguf.dequantize(gguf.quantize(a, stored), stored) if n in kinds else a for n, a in tensors.items()}
    model, graph = oic.Model.open(made.model), oic.parse_file(made.graph)
    assert model.info("blk.0.ffn_up.weight").dtype.name == kind
    assert all(np.array_equal(model.tensor(n), plain[n]) for n in tensors)
    built = oic.Synthesizer(graph, model, target="portable")
    types = {op.symbol: op.type.encoding for op in built.program.planned.constants()}
    assert {types[n] for n in ("wq_wk", "wv", "wo", "w_gate", "w_down", "embed")} == {f"{storage} panels"}
    assert types["w_up"] == "panels", "a member is f32"
    with built.make_executor() as ex:
        assert np.array_equal(ex.fetch("wq[1]"), plain["blk.1.attn_q.weight"])
        assert np.array_equal(ex.fetch("embed"), plain["token_embd.weight"])
        tokens = np.array([1, 5, 2], np.int32)
        found = ex.step(tokens=tokens)["logits"]
    with oic.Simulator(graph, model, weights="f32").make_executor() as ex:
        wide = ex.step(tokens=tokens)["logits"]
    assert 0 < np.abs(found - wide).max() < 0.05 * np.abs(wide).max()
    other = compile_graph(graph, model, Settings(weights="wq=f32,*=q8"))
    assert {c.symbol: c.storage for c in other.stored}["w_up"] == "q8"
    assert "wq" in {c.symbol for c in other.stored if c.kept}


@pytest.mark.parametrize("whole", [True, False])
def test_a_file_says_whether_shares_add_up_to_1(whole: bool, tmp_path: Path) -> None:
    """Against what its architecture usually has, too."""
    arch, settings, more = CONVERTED["qwen3_moe"]
    source = checkpoint(tmp_path / "in", "qwen3_moe", norm_topk_prob=whole, **settings)
    config, model = json.loads((source / "config.json").read_text()), oic.Model.open(source)
    tensors = converted({n: np.array(model.tensor(n)) for n in model.names()}, arch, config)
    keys = {"context_length": 16, "embedding_length": 16, "feed_forward_length": 20, "block_count": 2, **more}
    keys |= {"attention.head_count": 4, "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-6}
    file = write(tmp_path / "m.gguf", arch, tensors, **keys, expert_weights_norm=whole)
    made, wanted = import_checkpoint(file, tmp_path / "made"), import_checkpoint(source, tmp_path / "wanted")
    assert logits(made).tobytes() == logits(wanted).tobytes()


@pytest.mark.parametrize(("kind", "storage"), [("Q8_0", "q8"), ("Q4_0", "q4")])
def test_blocks_of_stacked_experts_stay_as_they_are(kind: str, storage: str, tmp_path: Path) -> None:
    more = CONVERTED["qwen3_moe"][2] | {n: 8 for n in ("attention.key_length", "attention.value_length", "rope.dimension_count")}
    arch, more["expert_feed_forward_length"] = "qwen3moe", 64
    source = checkpoint(tmp_path / "in", "qwen3_moe", hidden_size=32, moe_intermediate_size=64)
    plain, stored = oic.Model.open(source), gguf.GGMLQuantizationType[kind]
    config = json.loads((source / "config.json").read_text())
    tensors = converted({n: np.array(plain.tensor(n)) for n in plain.names()}, arch, config)
    keys = {"context_length": 16, "embedding_length": 32, "feed_forward_length": 20, "block_count": 2}
    keys |= {"attention.head_count": 4, "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-6}
    kinds = {n: stored for n, a in tensors.items() if a.ndim == 3}
    file = write(tmp_path / "m.gguf", arch, tensors, kinds, **keys, **more)
    made = import_checkpoint(file, tmp_path / "out")
    model, graph = oic.Model.open(made.model), oic.parse_file(made.graph)
    built = oic.Synthesizer(graph, model, target="portable")
    types = {op.symbol: op.type.encoding for op in built.program.planned.constants()}
    assert {types[n] for n in ("w_gate", "w_up", "w_down")} == {f"{storage} panels"}
    wide = {n: gguf.dequantize(gguf.quantize(a, stored), stored) for n, a in tensors.items() if n in kinds}
    with built.make_executor() as ex, oic.Simulator(graph, model).make_executor() as reference:
        assert np.array_equal(ex.fetch("w_down[1]"), wide["blk.1.ffn_down_exps.weight"])
        tokens = np.array([1, 5, 2, 9], np.int32)
        found, known = (executor.step(tokens=tokens)["logits"] for executor in (ex, reference))
    assert np.abs(found - known).max() < 0.02 * np.abs(known).max()


@pytest.mark.parametrize("kind", ["Q4_1", "Q5_0", "Q5_1"])
def test_blocks_are_widened_exactly(kind: str, tmp_path: Path) -> None:
    tensors = as_gguf(weights())
    stored = gguf.GGMLQuantizationType[kind]
    kinds = {n: stored for n, a in tensors.items() if a.ndim == 2}
    made = import_checkpoint(write(tmp_path / "m.gguf", "qwen2", tensors, kinds, **KEYS), tmp_path / "out")
    assert made.widened == {kind: len(kinds)}
    plain = {n: gguf.dequantize(gguf.quantize(a, stored), stored) if n in kinds else a for n, a in tensors.items()}
    model = oic.Model.open(made.model)
    assert all(np.array_equal(model.tensor(n), plain[n]) for n in tensors)
    wide = import_checkpoint(write(tmp_path / "w.gguf", "qwen2", plain, **KEYS), tmp_path / "wide")
    assert logits(made).tobytes() == logits(wide).tobytes() and made.graph.read_text() == wide.graph.read_text()
    again = import_checkpoint(tmp_path / "w.gguf", tmp_path / "out")  # the widened file goes
    assert not again.widened and not (tmp_path / "out" / "widened.safetensors").exists()


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K", "Q6_K", "Q2_K", "Q3_K", "IQ4_XS"])
def test_large_blocks_are_widened_in_parts(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any bytes are blocks; parts of a few blocks, of which the last is shorter."""
    from oic.model import gguf as reader
    from oic.model import tensors

    elements, nbytes = reader.TYPES[kind]
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 128, (3, 5 * nbytes)).astype(np.uint8)
    stored = gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("w", raw, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setattr(tensors, "PART", 4 * nbytes + 3)
    info = oic.Model.open(tmp_path / "m.gguf").info("w")
    assert reader.write_widened(tmp_path / "w.safetensors", [info]) == (tmp_path / "w.safetensors").stat().st_size
    with np.errstate(all="ignore"):
        wanted = gguf.dequantize(raw, stored)
    found = oic.Model.open(tmp_path / "w.safetensors").tensor("w")
    assert found.shape == (3, 5 * elements) and found.tobytes() == wanted.tobytes()


def test_blocks_of_eight_bits_are_a_scale_times_integers(tmp_path: Path) -> None:
    from oic.model.gguf import widened

    block = np.float16(0.375).tobytes() + np.arange(-16, 16, dtype=np.int8).tobytes()
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("w", np.frombuffer(block, np.uint8).reshape(1, -1), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (part,) = widened(oic.Model.open(tmp_path / "m.gguf").info("w"))
    assert part.tolist() == [0.375 * i for i in range(-16, 16)]


def test_without_the_package_blocks_are_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = as_gguf(weights())
    kinds = {"blk.0.ffn_up.weight": gguf.GGMLQuantizationType.Q5_0}
    source = write(tmp_path / "m.gguf", "qwen2", tensors, kinds, **KEYS)
    plain = write(tmp_path / "p.gguf", "qwen2", tensors, **KEYS)
    monkeypatch.setitem(sys.modules, "gguf", None)
    slug, text = refused(source, tmp_path)
    assert slug == "model-dtype" and "blk.0.ffn_up.weight' is Q5_0" in text and "pip install oic[gguf]" in text
    assert import_checkpoint(plain, tmp_path / "out").weights == len(tensors)


@pytest.mark.parametrize(
    ("arch", "keys", "slug", "text"),
    [
        ("t5", {}, "import-family", "'general.architecture' is 't5'"),
        ("lama", {}, "import-family", "the nearest is 'llama'"),
        ("llama", {"embedding_length": None}, "import-config", "nothing says 'embedding_length'"),
        ("llama", {"block_count": 4_000_000_000}, "import-config", "at most"),
        ("llama", {"block_count": 3}, "import-weights", "missing: blk.2.attn_k.weight"),
        ("llama", {"rope.scaling.type": "yarn"}, "import-unsupported", "'rope.scaling.type' is 'yarn'"),
        ("llama", {"rope.scaling.attn_factor": 1.5}, "import-unsupported", "'rope.scaling.attn_factor' is 1.5"),
        ("llama", {"rope.scaling.factor": -2.0}, "import-config", "should be above 0"),
        ("llama", {"attention.causal": False}, "import-unsupported", "'attention.causal' is False"),
        ("llama", {"rope.freq_base": -1.0}, "import-config", "should be above 0"),
        ("llama", {"rope.freq_base": math.inf}, "import-config", "rope.freq_base"),
        ("llama", {"rope.dimension_count": 7}, "import-unsupported", "rope.dimension_count"),
        ("llama", {"attention.head_count": [4, 4]}, "import-config", "a positive integer"),
        ("llama", {"attention.value_length": 4}, "import-unsupported", "attention.value_length"),
        ("llama", {"expert_count": 8, "expert_used_count": 9}, "import-unsupported", "'expert_used_count' is 9"),
        ("llama", {"expert_count": 8, "expert_used_count": 2, "expert_gating_func": 3}, "import-unsupported", "'expert_gating_func' is 3"),
        ("llama", {"expert_count": 8, "expert_used_count": 2}, "import-weights", "missing: blk.0.ffn_down_exps.weight"),
        ("llama", {"expert_count": 8, "expert_used_count": 2, "expert_group_count": 4}, "import-unsupported",
         "'expert_group_count' is 4"),
        ("llama", {"residual_scale": 0.5}, "import-unsupported", "'residual_scale' is 0.5"),
        ("command-r", {"attention.layer_norm_epsilon": 1e-5}, "import-config", "nothing says 'logit_scale'"),
        ("cohere2", {"attention.layer_norm_epsilon": 1e-5, "logit_scale": 1.0}, "import-config",
         "nothing says 'attention.sliding_window'"),
        ("hunyuan-dense", {"rope.scaling.attn_factor": 1.5}, "import-unsupported", "'rope.scaling.attn_factor' is 1.5"),
        ("gemma3", {"attention.sliding_window": 4, "attention.sliding_window_pattern": [1]}, "import-config", "a list of 2"),
    ],
)  # fmt: skip
def test_keys_that_are_wrong_are_named(arch: str, keys: dict[str, Any], slug: str, text: str, tmp_path: Path) -> None:
    given = {k: v for k, v in (KEYS | keys).items() if v is not None}
    found, message = refused(write(tmp_path / "m.gguf", arch, as_gguf(weights()), **given), tmp_path)
    assert found == slug and text in message


def test_texts_are_refused_and_ids_are_taken(tmp_path: Path) -> None:
    tokens = {"model": "rwkv", "eos_token_id": 7, "bos_token_id": 0, "eot_token_id": 9}
    tokens = {f"tokenizer.ggml.{name}": value for name, value in tokens.items()}
    source = write(tmp_path / "m.gguf", "qwen2", as_gguf(weights()), **KEYS | tokens)
    with oic.Generator(source) as generator:
        assert generator.stops == [7, 9]
        with pytest.raises(oic.OicError, match="'tokenizer.ggml.model' is 'rwkv'; 'llama' and 'gpt2' are read"):
            generator.encode("text")
        assert len(list(generator.stream([1, 2], 3, stop_ids=[]))) == 3


def test_a_file_that_is_split_is_one_model(tmp_path: Path) -> None:
    tensors = as_gguf(weights())
    wanted = import_checkpoint(write(tmp_path / "m.gguf", "qwen2", tensors, **KEYS), tmp_path / "wanted")
    (tmp_path / "parts").mkdir()
    names = [f"m-{i:05}-of-00002.gguf" for i in (1, 2)]
    for i, name in enumerate(names):
        part = {n: a for j, (n, a) in enumerate(tensors.items()) if j % 2 == i}
        write(tmp_path / "parts" / name, "qwen2", part, **(KEYS if i == 0 else {}))
    for source in (tmp_path / "parts", tmp_path / "parts" / names[0]):
        made = import_checkpoint(source, tmp_path / "made")
        assert made.graph.read_text() == wanted.graph.read_text() and logits(made).tobytes() == logits(wanted).tobytes()
        assert json.loads(made.model.read_text())["files"] == [f"../parts/{name}" for name in names]
    (tmp_path / "parts" / names[1]).unlink()
    shutil.rmtree(tmp_path / "made")
    slug, text = refused(tmp_path / "parts" / names[0], tmp_path)
    assert slug == "model-open" and names[1] in text


def test_on_the_command_line(tmp_path: Path) -> None:
    tensors = as_gguf(weights())
    kinds = {"blk.0.ffn_up.weight": gguf.GGMLQuantizationType.Q5_0}
    source = write(tmp_path / "m.gguf", "qwen2", tensors, kinds, **KEYS)
    run = CliRunner().invoke(main, ["import", str(source), "-o", str(tmp_path / "out"), "--set", "rope.freq_base=1e6"])
    assert run.exit_code == 0, run.output
    assert "widened to f32, " in run.output and "in widened.safetensors: 1 of Q5_0" in run.output
    assert "base=1000000.0" in (tmp_path / "out" / "graph.oi").read_text()


def test_forged_files_are_read_or_refused(tmp_path: Path) -> None:
    """Bytes of keys and tensor entries changed at random: a graph, or a refusal."""
    rng = np.random.default_rng(2)
    kinds = {"blk.0.ffn_up.weight": gguf.GGMLQuantizationType.Q8_0}
    whole = write(tmp_path / "m.gguf", "llama", as_gguf(weights()), kinds, **KEYS).read_bytes()
    end = whole.index(b"blk.1.ffn_down.weight") + 64
    refusals = 0
    for _ in range(150):
        forged = bytearray(whole)
        for at in rng.integers(8, end, rng.integers(1, 4)):
            forged[at] = rng.integers(0, 256)
        (tmp_path / "f.gguf").write_bytes(forged)
        try:
            import_checkpoint(tmp_path / "f.gguf", tmp_path / "out")
        except oic.OicError:
            refusals += 1
    assert 20 < refusals < 150
