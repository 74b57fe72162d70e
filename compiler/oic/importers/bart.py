"""BART and mBART: learned positions, layer norms after the sublayers or before them, biases everywhere."""

import math

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Matrix, Network, Norm, Places, head
from oic.importers.encoder_decoder import AttentionWeights, EncoderDecoder, Stack

BUFFERS = r"(^|\.)(shared\.weight|(encoder|decoder)\.(embed_tokens\.weight|version|embed_positions\._float_tensor))$"
"""Copies of the embedding, and what fairseq left."""
SIGNS = (("model.decoder.layers.0.encoder_attn.q_proj.weight",),)
ASKS = (("encoder_attention_heads",), ("decoder_attention_heads",))
FIRST = 2
"""The row of the first position: those before it were for padding."""
BEFORE = {"mbart"}
"""Families whose norms are of the inputs of sublayers."""
EPS = 1e-5


def shapes(c: Checkpoint) -> None:
    """All sizes but the numbers of heads."""
    prefix = _prefix(c)
    embed = c.shape(EncoderDecoder.embedding(c, prefix))
    places = c.shape(f"{prefix}decoder.embed_positions.weight")
    if len(embed) == len(places) == 2:
        c.fill(vocab_size=embed[0], d_model=embed[1], max_position_embeddings=max(0, places[0] - FIRST))
    for side in ("encoder", "decoder"):
        name = f"{prefix}{side}.layers.{{l}}.fc1.weight"
        c.fill(**{f"{side}_layers": c.count(name), f"{side}_ffn_dim": max(c.shape(name)[:1], default=0)})


def read(c: Checkpoint) -> EncoderDecoder:
    """Source: the configurations and weights of `bart` and `mbart` in Hugging Face's transformers."""
    width = c.size("d_model", "hidden_size")
    prefix = _prefix(c)
    embed = EncoderDecoder.embedding(c, prefix)
    return EncoderDecoder(
        family=c.family, vocab=c.size("vocab_size"), width=width,
        context=c.size("max_position_embeddings", default=1024), embed=embed,
        encoder=_stack(c, prefix, "encoder", width), decoder=_stack(c, prefix, "decoder", width),
        before=c.family in BEFORE,
        embed_scale=math.sqrt(width) if c.flag("scale_embedding", default=False) else None,
        head=head(c, "lm_head", embed, default=True),
        logits_bias=c.there("final_logits_bias"),
    )  # fmt: skip


def _prefix(c: Checkpoint) -> str:
    return c.prefix("model.", "", probe="decoder.layers.0.fc1.weight")


def _stack(c: Checkpoint, prefix: str, side: str, width: int) -> Stack:
    """The encoder or the decoder."""
    layer, decodes = f"{prefix}{side}.layers.{{l}}.", side == "decoder"
    heads, key = c.size(f"{side}_attention_heads"), f"{side}_attention_heads"
    c.demand(width % heads == 0, key, heads, f"a divisor of 'd_model', {width}")

    def matrix(name: str) -> Matrix:
        return Matrix(f"{layer}{name}.weight", f"{layer}{name}.bias")

    def attention(name: str) -> AttentionWeights:
        q, k, v, o = (matrix(f"{name}.{n}_proj") for n in ("q", "k", "v", "out"))
        return AttentionWeights(q, k, v, o, Norm.layer(f"{layer}{name}_layer_norm", EPS))

    whole = f"{prefix}{side}."
    rows = c.size("max_position_embeddings", default=1024) + FIRST
    return Stack(
        embed=EncoderDecoder.embedding(c, prefix, side),
        layers=c.layers(f"{side}_layers"), heads=heads, head_size=width // heads, inner=c.size(f"{side}_ffn_dim"),
        attention=attention("self_attn"), cross=attention("encoder_attn") if decodes else None,
        network=Network(matrix("fc1"), matrix("fc2"), c.text("activation_function", default="gelu")),
        network_norm=Norm.layer(f"{layer}final_layer_norm", EPS),
        places=Places(f"{whole}embed_positions.weight", rows, FIRST),
        norm_embedding=Norm.layer(f"{whole}layernorm_embedding", EPS),
        final=Norm.layer(f"{whole}layer_norm", EPS) if c.family in BEFORE else None,
    )  # fmt: skip
