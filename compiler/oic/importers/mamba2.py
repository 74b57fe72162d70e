"""State spaces of heads (Mamba-2): alone, and as what mixes the tokens in layers of hybrids."""

import math
from typing import Any

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder, Layer, Matrix, Norm, Scan, TimeFilter, head

MAMBA2 = "mamba2"
SIGNS = (("backbone.norm_f.weight", "backbone.layers.0.mixer.dt_bias"),)
KEYS = {
    "heads": "num_heads", "head": "head_dim", "groups": "n_groups", "state": "state_size", "taps": "conv_kernel",
    "bias": "use_bias", "out_bias": "use_bias", "conv_bias": "use_conv_bias",
}  # fmt: skip
HYBRID_KEYS = {
    "heads": "mamba_n_heads", "head": "mamba_d_head", "groups": "mamba_n_groups", "state": "mamba_d_state",
    "taps": "mamba_d_conv", "bias": "mamba_proj_bias", "out_bias": "mamba_proj_bias",
    "conv_bias": "mamba_conv_bias",
}  # fmt: skip
"""What configurations call sizes and biases."""
MODULES = ("in_proj", "conv1d", "out_proj", "A_log", "dt_bias", "D", "norm")
"""Those of a state space, as `scan` takes them; then those of GGUF files, which store -exp(A_log), and their keys."""
GGUF_MODULES = ("ssm_in", "ssm_conv1d", "ssm_out", "ssm_a", "ssm_dt.bias", "ssm_d", "ssm_norm")
GGUF_KEYS = {
    "heads": "ssm.time_step_rank", "inner": "ssm.inner_size", "groups": "ssm.group_count", "state": "ssm.state_size",
    "taps": "ssm.conv_kernel",
}  # fmt: skip
LIMITS = "time_step_limit"


def read(c: Checkpoint) -> Decoder:
    """Source: `mamba2` in Hugging Face's transformers."""
    embed = c.prefix("backbone.embeddings", "backbone.embedding", probe=".weight") + ".weight"
    layer, eps = "backbone.layers.{l}.", c.positive("layer_norm_epsilon", default=1e-5)
    found = scan(c, layer + "mixer.", KEYS, c.text("hidden_act", default="silu"), groups=8, eps=eps)
    shape, count = c.shape(embed), c.count(found.rates)
    if len(shape) != 2:
        raise c.misshapen("Mamba-2", {embed: shape}, "[vocab, width]")
    for key, size in zip(("vocab_size", "hidden_size", "num_hidden_layers"), (*shape, count), strict=True):
        c.demand(c.value(key) in (None, size), key, c.value(key), f"{size}, as the shapes of the tensors say")
    return Decoder(
        family=MAMBA2, vocab=shape[0], width=shape[1], heads=0, kv_heads=0, head_size=0, inner=0, context=(1 << 31) - 1,
        layers=(Layer(mixers=("scan",)),) * count, embed=embed, o=None, network=None, scan=found,
        before_attention=Norm(f"{layer}norm.weight", "rms", eps), final=Norm("backbone.norm_f.weight", "rms", eps),
        head=head(c, "lm_head", embed, default=False),
    )  # fmt: skip


def scan(
    c: Checkpoint, place: str, keys: dict[str, str], activation: str, *, groups: int, eps: float,
    normed: bool | None = True, modules: tuple[str, ...] = MODULES, **more: Any,
) -> Scan:  # fmt: skip
    """The state space of a module; shapes tell its sizes, and the configuration may not say others.

    groups  of heads, where nothing says it
    normed  it has a norm; None: where its weights are there
    """
    parts = [place + name for name in modules]
    into, out, (rates, steps_bias, skip, norm) = Matrix.of(c, parts[0]), Matrix.of(c, parts[2]), parts[3:]
    convolution = TimeFilter.of(c, parts[1], keys["taps"])
    shapes = {name: c.shape(name) for name in (rates, out.tensor)}
    groups = c.size(keys["groups"], default=groups)
    known = shapes[rates] and len(shapes[out.tensor]) == 2
    (heads, *ones), (_width, inner) = shapes.values() if known else ((1,), (1, 0))
    rest = convolution.channels - inner
    fits = 0 < heads <= inner and inner % heads == 0 and ones in ([], [1])
    if not fits or rest < 2 * groups or rest % (2 * groups) or heads % groups:
        shapes[convolution.filter.tensor] = (convolution.channels,)
        raise c.misshapen("state space", shapes, f"rates [heads], channels that {keys['groups']} divides")
    state = rest // 2 // groups
    sizes = {"heads": heads, "head": inner // heads, "inner": inner, "state": state, "taps": convolution.taps}
    for name in sizes.keys() & keys.keys():
        said, size = c.value(keys[name]), sizes[name]
        c.demand(said in (None, "auto", size), keys[name], said, f"{size}, as the shapes of the tensors say")
    for matrix, name in ((into, "bias"), (out, "out_bias"), (convolution.filter, "conv_bias")):
        if matrix.bias and name in keys:
            c.deny(keys[name])
    _demand_free_steps(c)
    norm += ".weight"
    normed = c.present(norm) if normed is None else normed
    return Scan(
        into, convolution, out, heads, inner // heads, groups, state, rates, steps_bias, skip, activation,
        norm=Norm(norm, "rms", eps, by_head=len(c.shape(norm)) == 2) if normed else None, norm_groups=groups,
        columns=bool(ones), **more,
    )  # fmt: skip


def _demand_free_steps(c: Checkpoint) -> None:
    """No limits of steps in time: the families' own code has them for prompts, and not for single tokens."""
    said = c.value(LIMITS)
    ends = said if isinstance(said, list) and len(said) == 2 else [said, None]
    most = ends[1].get("__float__") if isinstance(ends[1], dict) else ends[1]
    c.demand(said is None or (ends[0] == 0 and most in (math.inf, "Infinity")), LIMITS, said, "[0.0, Infinity]")
