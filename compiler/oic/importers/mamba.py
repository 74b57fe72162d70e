"""Mamba, a selective state space, in the Hugging Face layout and in GGUF; FalconMamba, which norms what it selects."""

from typing import Any

from oic.importers import gguf
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Matrix, Norm, TimeFilter, head
from oic.importers.family import FamilyGraph, Request
from oic.importers.graph_template import graph_of
from oic.importers.transformer import ACTIVATIONS, HEAD_COPY, ends

SIGNS = (("backbone.norm_f.weight", "backbone.layers.0.mixer.x_proj.weight"),)
FALCON = "falcon_mamba"
PARTS = ("into", "choice", "steps", "out")
"""Modules of a layer, as the template calls them."""
SIZES = ("hidden_size", "intermediate_size", "state_size", "time_step_rank", "conv_kernel", "num_hidden_layers")
SSM = ("inner_size", "state_size", "time_step_rank", "conv_kernel")
GGUF_SIZES = ("embedding_length", *(f"ssm.{name}" for name in SSM), "block_count")


def program(c: Checkpoint, request: Request) -> FamilyGraph:
    """Source: `mamba` and `falcon_mamba` in Hugging Face's transformers."""
    embed = c.prefix("backbone.embeddings", "backbone.embedding", probe=".weight") + ".weight"
    layer, eps = "backbone.layers.{l}.", c.positive("layer_norm_epsilon", default=1e-5)
    modules = [f"{layer}mixer.{name}" for name in ("in_proj", "conv1d", "x_proj", "dt_proj", "out_proj")]
    rms_eps = c.positive("mixer_rms_eps", default=1e-6) if c.family == FALCON else None
    norms = {"norm": Norm(f"{layer}norm.weight", "rms", eps), "final": Norm("backbone.norm_f.weight", "rms", eps)}
    return _program(
        c, request, SIZES, modules, embed, f"{layer}mixer.A_log", c.text("hidden_act", default="silu"), rms_eps,
        head(c, "lm_head", embed, default=True), logs=True, skip=f"{layer}mixer.D", **norms,
    )  # fmt: skip


def gguf_program(c: Checkpoint, request: Request) -> FamilyGraph:
    """Source: llama.cpp, `convert_hf_to_gguf.py` and `src/models/mamba.cpp`: -exp(A_log) is stored."""
    c.config["model_type"], c.scope = gguf.MAMBA, f"{gguf.MAMBA}."
    gguf.read_ends(c)
    eps, embed, layer = c.positive("attention.layer_norm_rms_epsilon"), "token_embd.weight", "blk.{l}."
    modules = [f"{layer}ssm_{name}" for name in ("in", "conv1d", "x", "dt", "out")]
    rms_eps = eps if c.flag("ssm.dt_b_c_rms", default=False) else None
    norms = {"norm": Norm(f"{layer}attn_norm.weight", "rms", eps), "final": Norm("output_norm.weight", "rms", eps)}
    return _program(
        c, request, GGUF_SIZES, modules, embed, f"{layer}ssm_a", "silu", rms_eps,
        Matrix(c.there("output.weight") or embed), logs=False, skip=f"{layer}ssm_d", **norms,
    )  # fmt: skip


def _program(
    c: Checkpoint, request: Request, keys: tuple[str, ...], modules: list[str], embed: str, rates: str,
    activation: str, rms_eps: float | None, head: Matrix, **values: Any,
) -> FamilyGraph:  # fmt: skip
    """The graph, whose sizes the shapes tell; `keys` are those of the configuration that say them too."""
    request.refuse(c, context=True, cache=True, batch=True)
    convolution = TimeFilter.of(c, modules.pop(1), keys[4])
    matrices: dict[str, Any] = dict(zip(PARTS, (Matrix.of(c, name) for name in modules), strict=True))
    shapes = {name: c.shape(name) for name in (embed, rates, matrices["steps"].tensor)}
    if any(len(shape) != 2 for shape in shapes.values()):
        raise c.misshapen("Mamba", shapes, "[vocab, width], [channels, state], [channels, rank]")
    (vocab, width), (inner, state), (_, rank) = shapes.values()
    layers, taps = c.count(rates), convolution.taps
    for key, *found in (("use_bias", matrices["into"], matrices["out"]), ("use_conv_bias", convolution.filter)):
        if any(matrix.bias for matrix in found):
            c.deny(key)
    for key, size in zip(keys, (width, inner, state, rank, taps, layers), strict=True):
        c.demand(c.value(key) in (None, "auto", size), key, c.value(key), f"{size}, as the shapes of the tensors say")
    c.demand(activation in ACTIVATIONS, "hidden_act", activation, ", ".join(ACTIVATIONS))
    features = [f"{inner} channels that remember {state} numbers each", f"convolutions of {taps} taps", activation]
    features += ["norms of what is selected"] * (rms_eps is not None) + ["a state of fixed size"]
    return graph_of(
        "mamba", c, request, features, ends(c), layers=layers, buffers=HEAD_COPY if head.tensor == embed else "^$",
        vocab=vocab, width=width, inner=inner, state=state, rank=rank, taps=taps, embed=embed, head=head, rates=rates,
        convolution=convolution, rms_eps=rms_eps, activation=ACTIVATIONS[activation], **matrices, **values,
    )  # fmt: skip
