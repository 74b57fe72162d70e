"""Llama and its kin, told apart by what their configuration and weights have, not by their names."""

import math
from dataclasses import replace
from typing import Any

from oic.importers import mamba2
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import (
    Decoder,
    Layer,
    Matrix,
    Network,
    Norm,
    Scan,
    ShortConvolution,
    TimeFilter,
    head,
)  # fmt: skip
from oic.importers.experts import MIXTURES, dense_layers, mixture
from oic.importers.rope import CONTEXT, USUAL_TYPES, rope

BUFFERS = r"rotary_emb\.inv_freq$|\.mamba\.mup_vector$|(^|\.)mtp[._]"
SIGNS = (("model.layers.0.self_attn.q_proj.weight",), ("layers.0.self_attn.q_proj.weight",))
HEADS = ("num_attention_heads", "n_heads")
EPS = ("rms_norm_eps", "norm_epsilon", "layer_norm_eps", "norm_eps")
ASKS = (HEADS, EPS, ("rope_theta", "rope_parameters.rope_theta"))
GRANITE_ASKS = (
    *ASKS, ("embedding_multiplier",), ("attention_multiplier",), ("residual_multiplier",), ("logits_scaling",)
)  # fmt: skip
NEOX_BUFFERS = rf"{BUFFERS}|\.attention\.(bias|masked_bias)$"
NEOX_SIGNS = (("gpt_neox.layers.0.attention.query_key_value.weight",),)
NEOX_ASKS = (HEADS, ("rotary_pct",), ("use_parallel_residual",))
FAMILIES = (
    "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "vaultgemma", "smollm3", "olmo2", "olmo3",
    "starcoder2", "arcee", "ernie4_5", "exaone4", "granite", "helium", "stablelm", "phi", "phi3", "olmo", "cohere",
    "cohere2", "glm", "glm4", "nemotron", "jais2", "seed_oss", "hunyuan_v1_dense", "hyperclovax", "ministral", "cwm",
    "iquestcoder", "internlm3", "lfm2", "falcon_h1", *MIXTURES,
)  # fmt: skip
GEMMAS = {"gemma", "gemma2", "gemma3_text", "vaultgemma"}
"""Families whose embedding is scaled by √width."""
PLUS_ONE = {*GEMMAS, "nemotron"}
"""Families whose norms multiply by 1 + weight."""
INTERLEAVED = {"ernie4_5", "ernie4_5_moe", "helium", "cohere", "cohere2", "glm", "glm4"}
"""Families whose rotary positions turn adjacent pairs."""
RMS = {"lfm2", "lfm2_moe"}
"""Families whose norms are rms whatever key says their eps."""
NOT_SET = {"gemma": {"hidden_activation"}}
"""Keys whose null means the family's default."""

OTHER_KEYS = {
    "lfm2": {"intermediate_size": "block_ff_dim", "tie_word_embeddings": "tie_embedding"},
    "lfm2_moe": {"tie_word_embeddings": "tie_embedding"},
    "granitemoehybrid": {"layer_types": "layers_block_type"},
    "falcon_h1": {"logit_scale": "lm_head_multiplier"},
}
"""Keys by which a family says something, first."""

_GEMMA2 = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "sliding_window": 4096,
           "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256}  # fmt: skip
_GRANITE_MOE = {"attention_multiplier": 1.0, "num_experts_per_tok": 2}
_GLM = {"rms_norm_eps": 1.5625e-7, "partial_rotary_factor": 0.5, "head_dim": 128, "num_key_value_heads": 2}
DEFAULTS: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 4096, "num_key_value_heads": 8},
    "qwen2": {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28},
    "qwen3": {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28, "head_dim": 128},
    "gemma": {"hidden_activation": "gelu_pytorch_tanh", "head_dim": 256},
    "gemma2": _GEMMA2,
    "vaultgemma": _GEMMA2,
    "gemma3_text": {"sliding_window": 4096, "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000.0,
                    "rope_theta": 1000000.0, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 256},
    "starcoder2": {"norm_epsilon": 1e-5, "hidden_act": "gelu_pytorch_tanh"},
    "smollm3": {"rope_theta": 2000000.0, "no_rope_layer_interval": 4, "use_sliding_window": False},
    "olmo2": {"rms_norm_eps": 1e-5},
    "olmo3": {"rms_norm_eps": 1e-5, "rope_theta": 500000.0, "sliding_window": 4096, "sliding_window_pattern": 4},
    "arcee": {"rms_norm_eps": 1e-5, "hidden_act": "relu2"},
    "ernie4_5": {"rms_norm_eps": 1e-5, "rope_theta": 500000.0, "head_dim": 128, "num_key_value_heads": 2},
    "exaone4": {"rms_norm_eps": 1e-5, "sliding_window": 4096, "sliding_window_pattern": 4},
    "granite": {"attention_multiplier": 1.0},
    "helium": {"rms_norm_eps": 1e-8, "rope_theta": 100000.0, "head_dim": 128},
    "stablelm": {"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25},
    "phi3": {"rms_norm_eps": 1e-5},
    "cohere": {"layer_norm_eps": 1e-5, "rope_theta": 500000.0, "logit_scale": 0.0625, "use_parallel_residual": True},
    "cohere2": {"layer_norm_eps": 1e-5, "sliding_window": 4096, "sliding_window_pattern": 4, "logit_scale": 0.0625,
                "use_parallel_residual": True},
    "glm": _GLM, "glm4": _GLM,
    "nemotron": {"norm_eps": 1e-5, "hidden_act": "relu2", "partial_rotary_factor": 0.5},
    "jais2": {"layer_norm_eps": 1e-5, "hidden_act": "relu2"},
    "seed_oss": {"head_dim": 128, "num_key_value_heads": 8},
    "hunyuan_v1_dense": {"rms_norm_eps": 1e-5},
    "ministral": {"sliding_window": 4096, "num_key_value_heads": 8},
    "cwm": {"rms_norm_eps": 1e-5, "head_dim": 128, "num_key_value_heads": 8, "sliding_window": 8192,
            "sliding_window_pattern": 4, "rope_theta": 1000000.0},
    "iquestcoder": {"rms_norm_eps": 1e-5, "head_dim": 128, "num_key_value_heads": 8},
    "internlm3": {"rms_norm_eps": 1e-5, "head_dim": 128, "num_key_value_heads": 2},
    "granitemoehybrid": _GRANITE_MOE,
    "falcon_h1": {"rms_norm_eps": 1e-5, "num_key_value_heads": 8},
    "lfm2": {"norm_eps": 1e-5, "rope_theta": 1000000.0, "num_key_value_heads": 8, "block_auto_adjust_ff_dim": True},
    "mixtral": {"rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "num_key_value_heads": 8, "num_experts_per_tok": 2},
    "qwen2_moe": {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28,
                  "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632},
    "qwen3_moe": {"use_sliding_window": False, "sliding_window": 4096, "num_key_value_heads": 4,
                  "num_experts_per_tok": 8, "moe_intermediate_size": 768},
    "olmoe": {"rms_norm_eps": 1e-5, "num_experts_per_tok": 8},
    "flex_olmo": {"rope_theta": 500000.0, "num_experts_per_tok": 5},
    "lfm2_moe": {"norm_eps": 1e-5, "rope_theta": 1000000.0, "num_key_value_heads": 8, "num_dense_layers": 2,
                 "num_experts_per_tok": 4, "norm_topk_prob": True, "use_expert_bias": True},
    "dots1": {"sliding_window": 4096, "max_window_layers": 62},
    "glm4_moe": {"rms_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "num_key_value_heads": 8, "norm_topk_prob": True,
                 "num_experts_per_tok": 8, "first_k_dense_replace": 1},
    "ernie4_5_moe": {"rms_norm_eps": 1e-5, "rope_theta": 500000.0, "num_key_value_heads": 4, "moe_k": 6,
                     "moe_layer_start_index": 1, "moe_norm_min": 1e-12},
    "hunyuan_v1_moe": {"rms_norm_eps": 1e-5, "moe_topk": 1},
    "granitemoe": _GRANITE_MOE, "granitemoeshared": _GRANITE_MOE,
    "phi": {"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "hidden_act": "gelu_new",
            "use_parallel_residual": True},
    "gpt_neox": {"rotary_pct": 0.25, "hidden_act": "gelu", "use_parallel_residual": True, "layer_norm_eps": 1e-5},
}  # fmt: skip
"""What a family's configuration means where it says nothing, as far as it differs from Llama's."""

TIED = {*GEMMAS, "smollm3", "starcoder2", "ernie4_5", "ernie4_5_moe", "cohere", "cohere2", "lfm2", "lfm2_moe"}
"""Families whose head is the embedding where the configuration says nothing."""

NAMES = {"gpt_neox": ("gpt_neox.", "embed_in.weight", "attention.", "embed_out")}
"""What precedes all names, the embedding, attention, and the head, where a family calls them otherwise."""
NETWORKS = {**dict.fromkeys(("lfm2", "lfm2_moe", "falcon_h1"), "feed_forward."), "granitemoehybrid": "shared_mlp."}
"""What the module of the feed-forward network is called, where it is not `mlp`."""
MIXERS = {"conv": "convolution", "mamba": "scan", "linear_attention": "scan"}
"""Types of layers without attention."""
TYPES = {
    **dict.fromkeys(("lfm2", "lfm2_moe"), ("full_attention", "conv")),
    "granitemoehybrid": ("attention", "full_attention", "mamba", "linear_attention"),
}
"""Types of layers of a family, where there are others than these two."""


def read(c: Checkpoint) -> Decoder:
    """Source: the configurations and weights of these families in Hugging Face's transformers.

    GPT-NeoX has q, k and v of a head beside each other, and as many heads of keys as of queries.
    """
    for known, other in OTHER_KEYS.get(c.family, {}).items():
        if c.has(other):
            c.config[known] = c.config[other]
    c.absent -= NOT_SET.get(c.family, set())
    c.assume(DEFAULTS.get(c.family, {}))
    names = NAMES.get(c.family, ("model.", "embed_tokens.weight", "self_attn.", "lm_head"))
    prefix = c.prefix(names[0], "", probe=names[1])
    layer, embed = prefix + "layers.{l}.", prefix + names[1]
    q, k = (f"{layer}self_attn.{n}_proj.weight" for n in "qk")
    width, heads = c.size("hidden_size", told=c.extent(embed, 1)), c.size("num_attention_heads")
    size = c.size("head_dim", default=max(1, width // heads), told=c.extent(q, 0) // heads)
    kv_heads = c.size("num_key_value_heads", default=heads, told=c.extent(k, 0) // size)
    count = max(c.count(name) for name in (q, f"{layer}conv.conv.weight", f"{layer}mamba.A_log"))
    modules, kinds = _Modules(c), layers(c, c.layers("num_hidden_layers", told=count), size)
    parallel = c.flag("use_parallel_residual", default=False)
    dense = dense_layers(c, len(kinds))
    experts = None if all(dense) else mixture(c, layer, _activation(c), [not alone for alone in dense])
    if experts:
        kinds = tuple(replace(kind, dense=alone) for kind, alone in zip(kinds, dense))
    return Decoder(
        family=c.family, vocab=c.size("vocab_size", told=c.extent(embed, 0)), width=width, heads=heads,
        kv_heads=heads if c.family == "gpt_neox" else kv_heads, head_size=size,
        inner=_inner(c, layer + "mlp.") if any(dense) else 0,
        context=c.size(CONTEXT, default=2048), layers=kinds, embed=embed,
        embed_scale=math.sqrt(width) if c.family in GEMMAS else _told(c, "embedding_multiplier", 1),
        network=_network(c, modules, layer + NETWORKS.get(c.family, "mlp.")) if any(dense) else None, experts=experts,
        convolution=_convolution(c, layer + "conv.") if c.present(layer + "conv.conv.weight") else None,
        scan=_scan(c, layer + "mamba.") if c.present(layer + "mamba.A_log") else None,
        parallel=parallel, residual_scale=_told(c, "residual_multiplier", 1),
        final=modules.norm(prefix, "norm", "final_layernorm", "embedding_norm", "final_layer_norm", asked=True),
        final_softcap=_told(c, "final_logit_softcapping"),
        head=head(c, names[3], embed, default=c.family in TIED),
        **_attention(c, modules, layer + names[2], size), **_norms(c, modules, layer, parallel), **_logits(c),
    )  # fmt: skip


class _Modules:
    """Norms and matrices by the names of the modules that have them."""

    def __init__(self, c: Checkpoint) -> None:
        self.c = c
        self.keys = [key for key in EPS if key in DEFAULTS.get(c.family, {})] or EPS

    def norm(self, place: str, *names: str, asked: bool = False) -> Norm | None:
        """The norm of the first of these modules that is there; one that is `asked` for has to be."""
        c, name = self.c, place + _first(self.c, place, *names)
        if asked and c.family == "olmo":
            return Norm(None, "layer", 1e-5)
        if not (asked or c.present(f"{name}.weight")):
            return None
        bias = c.there(f"{name}.bias")
        told = EPS[0] in self.keys and (c.has(EPS[0]) or not any(map(c.has, self.keys)))
        rms = told or c.family in RMS
        eps, kind = c.positive(*self.keys, default=1e-6), "rms" if rms and not bias else "layer"
        return Norm(f"{name}.weight", kind, eps, bias, c.family in PLUS_ONE, len(c.shape(f"{name}.weight")) == 2)

    def matrix(self, place: str, *names: str) -> Matrix:
        return Matrix.of(self.c, place + _first(self.c, place, *names))


def _told(c: Checkpoint, key: str, usual: float | None = None) -> float | None:
    """A positive number of the configuration; None where it is not there, or the usual one."""
    return c.positive(key) if c.has(key) and c.value(key) != usual else None


def _demand_said(c: Checkpoint, key: str, norm: Norm | None) -> None:
    """The configuration says of a norm what the weights do, or nothing."""
    said = c.flag(key, default=norm is not None)
    c.demand(said == (norm is not None), key, said, f"{str(not said).lower()}, as the weights say")


def _attention(c: Checkpoint, modules: _Modules, place: str, size: int) -> dict[str, Any]:
    """Matrices and norms of q, k, v and the result; how scores are scaled."""
    q_norm = modules.norm(place, "q_norm", "q_layernorm", "query_layernorm")
    _demand_said(c, "use_qk_norm", q_norm)
    _demand_said(c, "qk_layernorm", q_norm)
    whole, scalar = modules.matrix(place, "qkv_proj", "query_key_value"), "query_pre_attn_scalar"
    parts = {"qkv": whole} if c.present(whole.tensor) else {n: modules.matrix(place, f"{n}_proj") for n in "qkv"}
    return {
        **parts, "order": "heads" if c.family == "gpt_neox" else "parts",
        "o": modules.matrix(place, "o_proj", "dense", "out_proj"), "clip": _told(c, "clip_qkv"), "q_norm": q_norm,
        "k_norm": modules.norm(place, "k_norm", "k_layernorm", "key_layernorm"),
        "norm_turned": q_norm is not None and c.family.startswith("hunyuan_v1"),
        "norm_whole": q_norm is not None and not q_norm.by_head and c.shape(q_norm.tensor or "") != (size,),
        "scale": c.positive(scalar) ** -0.5 if c.has(scalar) else _told(c, "attention_multiplier")
        if c.has("attention_multiplier") or not c.has("key_multiplier") else size**-0.5 * c.positive("key_multiplier"),
        "scale_in": _told(c, "attention_in_multiplier", 1), "scale_out": _told(c, "attention_out_multiplier", 1),
        "softcap": _told(c, "attn_logit_softcapping"),
    }  # fmt: skip


def _norms(c: Checkpoint, modules: _Modules, layer: str, parallel: bool) -> dict[str, Any]:
    """The norms before and after both sublayers."""
    both = c.present(layer + "pre_feedforward_layernorm.weight")  # norms around both sublayers
    before = modules.norm(layer, "input_layernorm", "attention_layernorm", "operator_norm", asked=c.family == "olmo")
    around = modules.norm(layer, "post_self_attn_layernorm", "post_norm1")
    _demand_said(c, "use_post_norm", around)
    if both or before is None:
        return {
            "before_attention": before,
            "after_attention": modules.norm(layer, "post_attention_layernorm", asked=not both),
            "before_network": modules.norm(layer, "pre_feedforward_layernorm") if both else None,
            "after_network": modules.norm(layer, "post_feedforward_layernorm", asked=not both),
        }
    second = "post_attention_layernorm", "feedforward_layernorm", "ffn_norm", "pre_ff_layernorm"
    return {
        "before_attention": before, "after_attention": around,
        "before_network": modules.norm(layer, *second, asked=not parallel),
        "after_network": modules.norm(layer, "post_mlp_layernorm", "post_norm2"),
    }  # fmt: skip


def _network(c: Checkpoint, modules: _Modules, place: str) -> Network:
    """Gate and up may be one tensor."""
    fused = next((name for name in ("gate_up_proj", "input_linear") if c.present(f"{place}{name}.weight")), None)
    up = modules.matrix(place, *([fused] if fused else ["up_proj", "c_fc", "fc1", "w3", "dense_h_to_4h"]))
    gate = modules.matrix(place, "gate_proj", "w1")
    down = modules.matrix(place, "down_proj", "c_proj", "fc2", "w2", "output_linear", "dense_4h_to_h")
    scales = c.factors("mlp_multipliers", 2) if c.has("mlp_multipliers") else (None, None)
    return Network(up, down, _activation(c), up if fused else gate if c.present(gate.tensor) else None, *scales)


def _scan(c: Checkpoint, place: str) -> Scan:
    """That of hybrids; Falcon-H1 has factors everywhere, and a norm or none."""
    falcon, eps = c.family == "falcon_h1", c.positive("rms_norm_eps", default=1e-6)
    keys = mamba2.HYBRID_KEYS | ({"out_bias": "projectors_bias"} if falcon else {})
    return mamba2.scan(
        c, place, keys, _activation(c), groups=1, eps=eps,
        normed=not falcon or c.flag("mamba_rms_norm", default=False),
        norm_first=falcon and c.flag("mamba_norm_before_gate", default=True),
        scale_in=_told(c, "ssm_in_multiplier", 1), scale_out=_told(c, "ssm_out_multiplier", 1),
        scales=c.factors("ssm_multipliers", 5) if c.has("ssm_multipliers") else None,
    )  # fmt: skip


def _inner(c: Checkpoint, place: str) -> int:
    """The width inside the network, which LFM2 makes of what it says."""
    told = c.extent(f"{place}{_first(c, place, 'up_proj', 'c_fc', 'fc1', 'dense_h_to_4h')}.weight", 0)
    said = c.size("shared_intermediate_size" if c.family == "granitemoehybrid" else "intermediate_size", told=told)
    if c.family != "lfm2" or not c.flag("block_auto_adjust_ff_dim", default=True):
        return said
    factor, multiple = c.optional("block_ffn_dim_multiplier"), c.size("block_multiple_of", default=256)
    if "block_ffn_dim_multiplier" in c.absent:
        return int(2 * said / 3)
    adjusted = int((1.0 if factor is None else factor) * int(2 * said / 3))
    return -(-adjusted // multiple) * multiple


def _convolution(c: Checkpoint, place: str) -> ShortConvolution:
    """LFM2's: a bias for all three, or none."""
    filter = TimeFilter.of(c, place + "conv", "conv_L_cache")
    found = ShortConvolution(Matrix.of(c, place + "in_proj"), filter, Matrix.of(c, place + "out_proj"))
    if found.into.bias or found.convolution.filter.bias or found.out.bias:
        c.deny("conv_bias")
    return found


def _logits(c: Checkpoint) -> dict[str, Any]:
    """What logits are divided by, or multiplied by, under the names of the family."""
    divisor, factor = ("", "logits_scaling") if c.family == "hyperclovax" else ("logits_scaling", "logit_scale")
    return {"logits_divisor": _told(c, divisor, 1), "logits_scale": _told(c, factor, 1)}


def _first(c: Checkpoint, place: str, *names: str) -> str:
    """The first of several names of a module that has weights there; the first one if none has."""
    return next((name for name in names if c.present(f"{place}{name}.weight")), names[0])


def _activation(c: Checkpoint) -> str:
    """The activation; Gemma's first configurations say gelu, and mean its form with tanh."""
    if c.family != "gemma":
        return c.text("hidden_activation", "hidden_act", default="silu")
    found = c.text("hidden_act" if c.has("hidden_act") else "hidden_activation")
    return "gelu_pytorch_tanh" if found == "gelu" else found


def layers(c: Checkpoint, count: int, size: int) -> tuple[Layer, ...]:
    """Windows and rotary positions of each layer."""
    if c.family == "falcon_h1":
        return (Layer(rope=rope(c, size, "full_attention"), mixers=("scan", "attention")),) * count
    every = c.size("no_rope_layer_interval") if c.has("no_rope_layer_interval") else count + 1
    rotary = c.items("no_rope_layers", count) or [(i + 1) % every != 0 for i in range(count)]
    if c.family == "granitemoehybrid":
        rotary = [c.text("position_embedding_type", default="none") == "rope"] * count
    sliding = _sliding(c, rotary)
    window = c.size("sliding_window") if any(sliding) else None
    if c.family == "cohere2" or (c.family == "exaone4" and c.has("sliding_window")):
        rotary = sliding
    style = "interleaved" if c.family in INTERLEAVED else "half"
    everywhere, near = (replace(rope(c, size, kind), style=style) for kind in ("full_attention", "sliding_attention"))
    return tuple(
        Layer(mixers=(MIXERS[kind],)) if kind in MIXERS
        else Layer(window if slides else None, (near if slides else everywhere) if turned else None)
        for slides, turned, kind in zip(sliding, rotary, _types(c, count))
    )  # fmt: skip


def _types(c: Checkpoint, count: int) -> list[str]:
    """What mixes the tokens in each layer, as the configuration says it; "" where it does not."""
    kinds = c.items("layer_types", count)
    if kinds is not None or not c.family.startswith("lfm2"):
        return kinds or ["mamba" if c.family == "granitemoehybrid" else ""] * count
    full = c.value("full_attn_idxs")
    full = list(range(count)) if full is None else full
    c.demand(isinstance(full, list), "full_attn_idxs", full, "a list of numbers of layers")
    return ["full_attention" if i in full else "conv" for i in range(count)]


def _sliding(c: Checkpoint, rotary: list[Any]) -> list[bool]:
    """Which layers see a window of tokens only; `rotary`: which have rotary positions."""
    count = len(rotary)
    kinds = c.items("layer_types", count)
    if kinds is not None:
        for kind in kinds:
            c.require("layer_types", kind, *TYPES.get(c.family, USUAL_TYPES))
        return [kind == "sliding_attention" for kind in kinds]
    if c.family == "cohere2":  # whose layers without a window have no rotary positions
        c.require("use_sliding_window", c.flag("use_sliding_window", default=c.size("sliding_window") > 0), True)
    if not c.has("sliding_window") or not c.flag("use_sliding_window", default=True):
        return [False] * count
    if c.family == "smollm3":
        return [not turned for turned in rotary]
    period = {"gemma2": 2, "vaultgemma": 2, "gemma3_text": 6}.get(c.family)
    if c.has("sliding_window_pattern") and c.family != "gemma2":
        period = c.size("sliding_window_pattern")
    if period is not None:
        return [(i if c.family == "cwm" else i + 1) % period != 0 for i in range(count)]
    last = int(c.number("max_window_layers", default=0))
    if c.family == "qwen2_moe":
        return [i % 2 == 0 and i < last for i in range(count)]
    return [i >= last or c.family == "qwen3_moe" for i in range(count)]
