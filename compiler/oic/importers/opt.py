"""OPT: learned positions from row 2 on, layer norms before sublayers (350m: of their sums), biases everywhere."""

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder, Layer, Matrix, Network, Norm, Places, head

SIGNS = tuple(
    (f"{prefix}decoder.layers.0.self_attn_layer_norm.weight", f"{prefix}decoder.{other}.weight")
    for prefix in ("model.", "") for other in ("final_layer_norm", "project_in")
)  # fmt: skip
FIRST = 2
"""The row of the first position: those before it were for padding."""
EPS = 1e-5


def read(c: Checkpoint) -> Decoder:
    """Source: `opt` in Hugging Face's transformers."""
    before = c.flag("do_layer_norm_before", default=True)
    prefix = c.prefix("model.decoder.", "decoder.", probe="embed_tokens.weight")
    layer, embed, places = prefix + "layers.{l}.", f"{prefix}embed_tokens.weight", f"{prefix}embed_positions.weight"
    width, heads = c.size("hidden_size", told=c.extent(places, 1)), c.size("num_attention_heads")
    c.demand(width % heads == 0, "num_attention_heads", heads, f"a divisor of 'hidden_size', {width}")
    context = c.size("max_position_embeddings", told=max(0, c.extent(places, 0) - FIRST))
    embed_width = c.size("word_embed_proj_dim", default=width, told=c.extent(embed, 1))
    within = embed_width != width
    c.require("layer_norm_elementwise_affine", c.flag("layer_norm_elementwise_affine", default=True), True)
    norms = [Norm.layer(f"{layer}{name}", EPS) for name in ("self_attn_layer_norm", "final_layer_norm")]
    last = before and not c.flag("_remove_final_layer_norm", default=False)
    q, k, v, o = (Matrix.of(c, f"{layer}self_attn.{name}_proj") for name in ("q", "k", "v", "out"))
    return Decoder(
        family="opt", vocab=c.size("vocab_size", told=c.extent(embed, 0)), width=width, heads=heads, kv_heads=heads,
        head_size=width // heads, inner=c.size("ffn_dim", told=c.extent(f"{layer}fc1.weight", 0)), context=context,
        layers=(Layer(),) * c.layers("num_hidden_layers", told=c.count(f"{layer}fc1.weight")), embed=embed,
        positions=Places(places, context + FIRST, FIRST), q=q, k=k, v=v, o=o,
        network=Network(
            Matrix.of(c, f"{layer}fc1"), Matrix.of(c, f"{layer}fc2"), c.text("activation_function", default="relu")
        ),
        before_attention=norms[0] if before else None, before_network=norms[1] if before else None,
        after_attention=None if before else norms[0], after_network=None if before else norms[1], norm_sums=not before,
        final=Norm.layer(f"{prefix}final_layer_norm", EPS) if last else None,
        embed_width=embed_width if within else None, enter=Matrix.of(c, f"{prefix}project_in") if within else None,
        leave=Matrix.of(c, f"{prefix}project_out") if within else None, head=head(c, "lm_head", embed, default=True),
    )  # fmt: skip
