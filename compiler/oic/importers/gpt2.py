"""GPT-2: learned positions, one matrix for q, k and v; matrices are [in, out], or [out, in] as minGPT has them."""

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder, Layer, Matrix, Network, Norm, Places, head

BUFFERS = r"\.attn\.(bias|masked_bias)$"
SIGNS = tuple(
    (f"{prefix}wte{end}", f"{prefix}h.0.attn.c_attn.weight")
    for prefix in ("transformer.", "")
    for end in (".weight", "")
)
LAYERS = ("n_layer", "num_hidden_layers")
POSITIONS = ("n_positions", "n_ctx", "block_size")


def _table(c: Checkpoint, name: str) -> str:
    """The name of an embedding: a module's weight, or the bare name."""
    prefix = c.prefix("transformer.", "", probe="h.0.ln_1.weight")
    return prefix + name if c.model.has(prefix + name) else f"{prefix}{name}.weight"


def read(c: Checkpoint) -> Decoder:
    """Source: `gpt2` in Hugging Face's transformers; karpathy's minGPT and nanoGPT, `model.py`."""
    c.require("add_cross_attention", c.flag("add_cross_attention", default=False), False)
    tokens, places = _table(c, "wte"), _table(c, "wpe")
    width, heads = c.size("n_embd", told=c.extent(tokens, 1)), c.size("n_head", "num_attention_heads")
    c.demand(width % heads == 0, "n_head", heads, f"a divisor of 'n_embd', {width}")
    eps = c.number("layer_norm_epsilon", default=1e-5)
    prefix = c.prefix("transformer.", "", probe="h.0.ln_1.weight")
    layer = prefix + "h.{l}."
    by_columns = c.shape(layer + "attn.c_attn.weight") != (3 * width, width)
    # nanoGPT, which has the plain gelu, says 'bias', or has none.
    plain = not by_columns and (c.has("bias") or not c.present(layer + "attn.c_attn.bias"))

    def norm(name: str) -> Norm:
        return Norm(f"{name}.weight", "layer", eps, bias(name))

    def bias(name: str) -> str | None:
        return f"{name}.bias" if by_columns else c.there(f"{name}.bias")

    def matrix(name: str) -> Matrix:
        return Matrix(f"{layer}{name}.weight", bias(layer + name), by_columns=by_columns)

    positions = c.size(*POSITIONS, default=1024, told=c.extent(places, 0))
    inner = max(c.shape(layer + "mlp.c_fc.weight"), default=0)
    return Decoder(
        family="gpt2", vocab=c.size("vocab_size", told=c.extent(tokens, 0)), width=width, heads=heads, kv_heads=heads,
        head_size=width // heads, inner=c.size("n_inner", default=4 * width, told=inner), context=positions,
        layers=(Layer(),) * c.layers(*LAYERS, told=c.count(layer + "ln_1.weight")),
        embed=tokens, positions=Places(places, positions),
        qkv=matrix("attn.c_attn"), o=matrix("attn.c_proj"), network=Network(
            matrix("mlp.c_fc"), matrix("mlp.c_proj"),
            c.text("activation_function", default="gelu" if plain else "gelu_new"),
        ),
        before_attention=norm(layer + "ln_1"), before_network=norm(layer + "ln_2"), final=norm(prefix + "ln_f"),
        scale=None if c.flag("scale_attn_weights", default=True) else 1.0,
        by_layer=c.flag("scale_attn_by_inverse_layer_idx", default=False),
        head=head(c, "lm_head", tokens, default=by_columns or not c.model.has("lm_head.weight")),
    )  # fmt: skip
