"""Mixtures of experts: layers of several feed-forward networks, of which each token takes a few."""

from dataclasses import dataclass

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
    shared  place of the network that all tokens take, of the same modules, and the key of its width; whether it is
            there, its weights say
    """

    place: str
    up: str
    down: str
    gate: str
    router: str = "gate"
    inner: str = "intermediate_size"
    whole: bool | None = True
    shared: tuple[str, str] = ("shared_mlp.", "shared_intermediate_size")


_QWEN = Mixture(
    "mlp.", "experts.{e}.up_proj", "experts.{e}.down_proj", "experts.{e}.gate_proj",
    inner="moe_intermediate_size", whole=None, shared=("mlp.shared_expert.", "shared_expert_intermediate_size"),
)  # fmt: skip
_GRANITE = Mixture("block_sparse_moe.", "input_linear", "output_linear", "input_linear", "router.layer")
MIXTURES = {
    "mixtral": Mixture("block_sparse_moe.", "experts.{e}.w3", "experts.{e}.w2", "experts.{e}.w1"),
    "qwen2_moe": _QWEN, "qwen3_moe": _QWEN,
    "olmoe": Mixture("mlp.", _QWEN.up, _QWEN.down, _QWEN.gate, whole=None),
    "granitemoe": _GRANITE, "granitemoeshared": _GRANITE,
}  # fmt: skip
"""By `model_type`.  Source: the configurations and weights of these families in Hugging Face's transformers."""
COUNTS, TAKEN = ("num_local_experts", "num_experts"), "num_experts_per_tok"
COUNT = "expert_count"
"""The key of GGUF files."""


def mixture(c: Checkpoint, layer: str, activation: str) -> tuple[Network, Experts, int]:
    """The network of one expert, what makes a mixture of it, and its width."""
    m = MIXTURES[c.family]
    c.demand(c.value("decoder_sparse_step") in (None, 1), "decoder_sparse_step", c.value("decoder_sparse_step"), "1")
    c.demand(not c.value("mlp_only_layers"), "mlp_only_layers", c.value("mlp_only_layers"), "experts in all layers")
    up, down, gate, router = (Matrix.of(c, f"{layer}{m.place}{name}") for name in (m.up, m.down, m.gate, m.router))
    routed = next(iter(c.shape(router.tensor)), None)
    c.fill_first(COUNTS, routed)
    count = c.layers(*COUNTS, most=routed)  # before there are names of so many
    place, width = m.shared
    parts = [Matrix.of(c, layer + place + name.rpartition(".")[2]) for name in (m.up, m.down, m.gate)]
    shared = Network(parts[0], parts[1], activation, parts[2]) if c.present(parts[0].tensor) else None
    opened = f"{layer}{place.removesuffix('.')}_gate"
    experts = Experts(
        count, _taken(c, TAKEN, count), router,
        c.flag("norm_topk_prob", default=False) if m.whole is None else m.whole, shared,
        c.size(width) if shared else 0, Matrix.of(c, opened) if c.present(f"{opened}.weight") else None,
    )  # fmt: skip
    return Network(up, down, activation, gate), experts, c.size(m.inner)


def gguf_experts(c: Checkpoint, *, whole: bool) -> Experts | None:
    """What makes a mixture of the network in a GGUF file, if it is one; the weights of all experts are stacked.

    whole  of the architecture, where the file does not say it
    """
    if not c.optional(COUNT):
        return None
    for key in ("expert_weights_scale", "expert_gating_func"):
        c.demand(c.value(key) in (None, 0, 1), key, c.value(key), "1")
    count, whole = c.size(COUNT), c.flag("expert_weights_norm", default=whole)
    return Experts(count, _taken(c, "expert_used_count", count), Matrix.of(c, "blk.{l}.ffn_gate_inp"), whole)


def _taken(c: Checkpoint, key: str, count: int) -> int:
    """How many of the experts a token takes."""
    taken = c.size(key)
    c.demand(taken <= count, key, taken, f"at most the {count} experts that there are")
    return taken
