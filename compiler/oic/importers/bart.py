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


def read(c: Checkpoint) -> EncoderDecoder:
    """Source: the configurations and weights of `bart` and `mbart` in Hugging Face's transformers."""
    prefix = c.prefix("model.", "", probe="decoder.layers.0.fc1.weight")
    embed = EncoderDecoder.embedding(c, prefix)
    width = c.size("d_model", "hidden_size", told=c.extent(embed, 1))
    learned = max(0, c.extent(f"{prefix}decoder.embed_positions.weight", 0) - FIRST)
    context = c.size("max_position_embeddings", default=1024, told=learned)
    return EncoderDecoder(
        family=c.family, vocab=c.size("vocab_size", told=c.extent(embed, 0)), width=width, context=context, embed=embed,
        encoder=_stack(c, prefix, "encoder", width, context), decoder=_stack(c, prefix, "decoder", width, context),
        before=c.family in BEFORE,
        embed_scale=math.sqrt(width) if c.flag("scale_embedding", default=False) else None,
        head=head(c, "lm_head", embed, default=True),
        logits_bias=c.there("final_logits_bias"),
    )  # fmt: skip


def _stack(c: Checkpoint, prefix: str, side: str, width: int, context: int) -> Stack:
    """The encoder or the decoder."""
    layer, decodes = f"{prefix}{side}.layers.{{l}}.", side == "decoder"
    heads, key = c.size(f"{side}_attention_heads"), f"{side}_attention_heads"
    c.demand(width % heads == 0, key, heads, f"a divisor of 'd_model', {width}")

    def matrix(name: str) -> Matrix:
        return Matrix(f"{layer}{name}.weight", f"{layer}{name}.bias")

    def attention(name: str) -> AttentionWeights:
        q, k, v, o = (matrix(f"{name}.{n}_proj") for n in ("q", "k", "v", "out"))
        return AttentionWeights(q, k, v, o, Norm.layer(f"{layer}{name}_layer_norm", EPS))

    whole, first = f"{prefix}{side}.", f"{layer}fc1.weight"
    return Stack(
        embed=EncoderDecoder.embedding(c, prefix, side),
        layers=c.layers(f"{side}_layers", told=c.count(first)), heads=heads, head_size=width // heads,
        inner=c.size(f"{side}_ffn_dim", told=c.extent(first, 0)),
        attention=attention("self_attn"), cross=attention("encoder_attn") if decodes else None,
        network=Network(matrix("fc1"), matrix("fc2"), c.text("activation_function", default="gelu")),
        network_norm=Norm.layer(f"{layer}final_layer_norm", EPS),
        places=Places(f"{whole}embed_positions.weight", context + FIRST, FIRST),
        norm_embedding=Norm.layer(f"{whole}layernorm_embedding", EPS),
        final=Norm.layer(f"{whole}layer_norm", EPS) if c.family in BEFORE else None,
    )  # fmt: skip
