"""Mixtures of experts: layers of several feed-forward networks, of which each token takes a few."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Experts, Matrix, Network


@dataclass(frozen=True)
class Mixture:
    """What a family calls the modules and settings of its experts.

    place   of all modules, in a layer
    up, down, gate  of an expert; where up is gate, one tensor has both, and those of all experts are stacked
    router  gives the scores
    inner   key of their width
    whole   the shares of a token add up to 1; None: `norm_topk_prob` says it
    shared  place of the network that all tokens take, of the same modules, and keys whose product is its width; whether
            it is there, its weights say
    sigmoid, bias, plus  as `Experts` has them; the name of the bias, in a layer
    """

    place: str
    up: str
    down: str
    gate: str
    router: str = "gate"
    inner: str = "intermediate_size"
    whole: bool | None = True
    shared: tuple[str, ...] = ("shared_mlp.", "shared_intermediate_size")
    sigmoid: bool = False
    bias: str = ""
    plus: float | None = None


_MOE = "moe_intermediate_size"
_QWEN = Mixture(
    "mlp.", "experts.{e}.up_proj", "experts.{e}.down_proj", "experts.{e}.gate_proj", inner=_MOE, whole=None,
    shared=("mlp.shared_expert.", "shared_expert_intermediate_size"),
)  # fmt: skip
_GRANITE = Mixture("block_sparse_moe.", "input_linear", "output_linear", "input_linear", "router.layer")
_DEEPSEEK = replace(
    _QWEN, shared=("mlp.shared_experts.", "n_shared_experts", _MOE), sigmoid=True, plus=1e-20,
    bias="mlp.gate.e_score_correction_bias",
)  # fmt: skip
MIXTURES = {
    "mixtral": Mixture("block_sparse_moe.", "experts.{e}.w3", "experts.{e}.w2", "experts.{e}.w1"),
    "qwen2_moe": _QWEN, "qwen3_moe": _QWEN,
    "olmoe": replace(_QWEN, inner="intermediate_size"), "flex_olmo": replace(_QWEN, inner="intermediate_size"),
    **dict.fromkeys(("granitemoe", "granitemoeshared", "granitemoehybrid"), _GRANITE),
    "lfm2_moe": Mixture(
        "feed_forward.", "experts.{e}.w3", "experts.{e}.w2", "experts.{e}.w1", inner=_MOE, whole=None, sigmoid=True,
        bias="feed_forward.expert_bias", plus=1e-6,
    ),
    "dots1": _DEEPSEEK, "glm4_moe": _DEEPSEEK,
    "ernie4_5_moe": replace(
        _QWEN, whole=True, shared=("mlp.shared_experts.", "moe_num_shared_experts", _MOE),
        bias="mlp.moe_statics.e_score_correction_bias",
    ),
    "hunyuan_v1_moe": replace(
        _QWEN, router="gate.wg", inner="intermediate_size", whole=True, shared=("mlp.shared_mlp.", "intermediate_size")
    ),
}  # fmt: skip
"""By `model_type`.  Source: the configurations and weights of these families in Hugging Face's transformers."""
COUNTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
"""Keys that say how many feed-forward networks a layer has to choose from; then, how many a token takes."""
TAKEN = ("num_experts_per_tok", "moe_k", "moe_topk")
FIRST = ("num_dense_layers", "first_k_dense_replace", "moe_layer_start_index")
"""Keys of layers at the beginning that have one network; then, of how many layers one with a mixture comes last in."""
EVERY = ("decoder_sparse_step", "moe_layer_interval")
COUNT, SHARED = "expert_count", "expert_shared_feed_forward_length"
"""Keys of GGUF files."""


def mixture(c: Checkpoint, layer: str, activation: str, mixed: Sequence[bool]) -> Experts:
    """What the layers with experts have; `mixed`, which these are."""
    m = MIXTURES[c.family]
    for key in (*COUNTS, *TAKEN):
        c.same(key, mixed, "experts")
    up, down, gate, router = (Matrix.of(c, f"{layer}{m.place}{name}") for name in (m.up, m.down, m.gate, m.router))
    routed = next(iter(c.shape(router.tensor)), 0)
    count = c.layers(*COUNTS, most=routed, told=routed)  # before there are names of so many
    groups = c.value("n_group")
    c.demand(groups in (None, 0, 1, c.value("topk_group")), "n_group", groups, "1, or all in 'topk_group'")
    place, *widths = m.shared
    parts = [Matrix.of(c, layer + place + name.rpartition(".")[2]) for name in (m.up, m.down, m.gate)]
    shared = Network(parts[0], parts[1], activation, parts[2]) if c.present(parts[0].tensor) else None
    opened = f"{layer}{place.removesuffix('.')}_gate"
    bias = c.there(layer + m.bias) if m.bias else None
    said = c.flag("use_expert_bias", default=bias is not None)
    c.demand(said or not bias, "use_expert_bias", said, "true, as the weights say")
    return Experts(
        Network(up, down, activation, gate), c.size(m.inner), count, _taken(c, TAKEN, count), router,
        c.flag("norm_topk_prob", default=False) if m.whole is None else m.whole, m.sigmoid,
        layer + m.bias if said else None, c.optional("moe_norm_min"), m.plus, _scale(c, "routed_scaling_factor"),
        shared, math.prod(map(c.size, widths)) if shared else 0,
        Matrix.of(c, opened) if c.present(f"{opened}.weight") else None,
    )  # fmt: skip


def dense_layers(c: Checkpoint, count: int) -> list[bool]:
    """Which layers have one network, as the configuration says it; all, where there are no experts."""
    if c.family not in MIXTURES or next((c.value(key) for key in COUNTS if c.has(key)), None) == 0:
        return [True] * count
    first, every = (next((key for key in keys if c.has(key)), keys[0]) for keys in (FIRST, EVERY))
    begin, step, last = (c.value(key) for key in (first, every, "moe_layer_end_index"))
    only, kinds = c.value("mlp_only_layers") or [], c.items("mlp_layer_types", count) or ["sparse"] * count
    for key, value, least in ((first, begin, 0), (every, step, 1), ("moe_layer_end_index", last, -1)):
        c.demand(value is None or (type(value) is int and value >= least), key, value, f"an integer from {least} on")
    listed = isinstance(only, list) and all(type(i) is int for i in only)
    c.demand(listed, "mlp_only_layers", only, "a list of numbers of layers")
    for kind in kinds:
        c.require("mlp_layer_types", kind, "dense", "sparse")
    end = count - 1 if last in (None, -1) else last
    return [
        i in only or kind == "dense" or not (begin or 0) <= i <= end or (i + 1) % (step or 1) != 0
        for i, kind in enumerate(kinds)
    ]


def gguf_experts(c: Checkpoint, activation: str, *, whole: bool, plus: float | None) -> Experts | None:
    """The mixture in a GGUF file, if there is one; the weights of all experts are stacked.

    whole  of the architecture, where the file does not say it
    """
    if not c.optional(COUNT):
        return None
    gating, groups, count = c.value("expert_gating_func"), c.value("expert_group_count"), c.size(COUNT)
    c.demand(gating in (None, 0, 1, 2), "expert_gating_func", gating, "1, softmax, or 2, sigmoid")
    c.demand(groups in (None, 0, 1, c.value("expert_group_used_count")), "expert_group_count", groups, "1, or all used")

    def networks(ending: str) -> Network:
        up, down, gate = (Matrix.of(c, f"blk.{{l}}.ffn_{name}_{ending}") for name in ("up", "down", "gate"))
        return Network(up, down, activation, gate)

    width, said = next(iter(c.shape("blk.{l}.ffn_up_shexp.weight")), 0), c.value(SHARED)
    c.demand(not width or said in (None, 0, width), SHARED, said, f"{width}, as the weights say")
    opened = "blk.{l}.ffn_gate_inp_shexp"
    return Experts(
        networks("exps"), c.size("expert_feed_forward_length", "feed_forward_length"), count,
        _taken(c, ("expert_used_count",), count), Matrix.of(c, "blk.{l}.ffn_gate_inp"),
        c.flag("expert_weights_norm", default=whole), gating == 2, c.there("blk.{l}.exp_probs_b.bias"), plus=plus,
        scale=_scale(c, "expert_weights_scale"), shared=networks("shexp") if width else None, shared_inner=width,
        shared_gate=Matrix.of(c, opened) if c.present(f"{opened}.weight") else None,
    )  # fmt: skip


def _scale(c: Checkpoint, key: str) -> float | None:
    """What shares are multiplied by, if it is not 1; 0 is none."""
    return None if c.optional(key) in (None, 0, 1) else c.positive(key)


def _taken(c: Checkpoint, keys: tuple[str, ...], count: int) -> int:
    """How many of the experts a token takes."""
    taken = c.size(*keys)
    c.demand(taken <= count, next(filter(c.has, keys)), taken, f"at most the {count} experts that there are")
    return taken
