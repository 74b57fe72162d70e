"""GPT-2: learned positions, one matrix for q, k and v, matrices [in, out]."""

from __future__ import annotations

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder, Layer, Matrix, Norm, head

BUFFERS = r"\.attn\.(bias|masked_bias)$"


def gpt2(c: Checkpoint) -> Decoder:
    """Source: the configuration and weights of `gpt2` in Hugging Face's transformers."""
    for key, good in (("scale_attn_by_inverse_layer_idx", False), ("add_cross_attention", False)):
        c.require(key, c.flag(key, default=good), good)
    width, heads = c.size("n_embd"), c.size("n_head")
    if width % heads:
        raise c.unsupported("n_head", heads, f"a divisor of 'n_embd', {width}")
    eps = c.number("layer_norm_epsilon", default=1e-5)
    prefix = c.prefix("transformer.", "", probe="wte.weight")
    layer = prefix + "h.{l}."

    def norm(name: str) -> Norm:
        return Norm(f"{name}.weight", "layer", eps, f"{name}.bias")

    def matrix(name: str) -> Matrix:
        return Matrix(f"{layer}{name}.weight", f"{layer}{name}.bias", by_columns=True)

    return Decoder(
        family="gpt2", vocab=c.size("vocab_size"), width=width, heads=heads, kv_heads=heads,
        head_size=width // heads, inner=c.size("n_inner", default=4 * width),
        context=c.size("n_positions", "n_ctx", default=1024),
        layers=(Layer(),) * c.size("n_layer", "num_hidden_layers"),
        embed=prefix + "wte.weight", positions=prefix + "wpe.weight", rows=c.size("n_positions", default=1024),
        qkv=matrix("attn.c_attn"), o=matrix("attn.c_proj"), up=matrix("mlp.c_fc"), down=matrix("mlp.c_proj"),
        activation=c.text("activation_function", default="gelu_new"),
        before_attention=norm(layer + "ln_1"), before_network=norm(layer + "ln_2"), final=norm(prefix + "ln_f"),
        scale=None if c.flag("scale_attn_weights", default=True) else 1.0,
        head=head(c, "lm_head.weight", default=True),
    )  # fmt: skip
