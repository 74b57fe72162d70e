"""GPT-Neo: learned positions, a window in every other layer, scores that are not scaled; matrices are [out, in]."""

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder, Layer, Matrix, Network, Norm, Places, head

BUFFERS = r"\.attn\.attention\.(bias|masked_bias)$"
SIGNS = tuple((f"{prefix}h.0.attn.attention.q_proj.weight",) for prefix in ("transformer.", ""))
HEADS = ("num_heads", "num_attention_heads")
LAYERS = ("num_layers", "num_hidden_layers")
TYPES = "attention_types"


def read(c: Checkpoint) -> Decoder:
    """Source: `gpt_neo` in Hugging Face's transformers."""
    prefix, eps = c.prefix("transformer.", "", probe="wte.weight"), c.number("layer_norm_epsilon", default=1e-5)
    layer, embed, table = prefix + "h.{l}.", f"{prefix}wte.weight", f"{prefix}wpe.weight"
    width, heads = c.size("hidden_size", told=c.extent(embed, 1)), c.size(*HEADS)
    c.demand(width % heads == 0, HEADS[0], heads, f"a divisor of 'hidden_size', {width}")
    places = c.size("max_position_embeddings", default=2048, told=c.extent(table, 0))
    inner = c.size("intermediate_size", default=4 * width, told=c.extent(f"{layer}mlp.c_fc.weight", 0))
    q, k, v, o = (Matrix.of(c, f"{layer}attn.attention.{n}_proj") for n in ("q", "k", "v", "out"))
    return Decoder(
        family="gpt_neo", vocab=c.size("vocab_size", told=c.extent(embed, 0)), width=width, heads=heads,
        kv_heads=heads, head_size=width // heads, inner=inner, context=places,
        layers=_layers(c, c.layers(*LAYERS, told=c.count(f"{layer}ln_1.weight"))), embed=embed,
        positions=Places(table, places),
        q=q, k=k, v=v, o=o, scale=1.0, network=Network(
            Matrix.of(c, f"{layer}mlp.c_fc"), Matrix.of(c, f"{layer}mlp.c_proj"),
            c.text("activation_function", default="gelu_new"),
        ),
        before_attention=Norm.layer(f"{layer}ln_1", eps), before_network=Norm.layer(f"{layer}ln_2", eps),
        final=Norm.layer(f"{prefix}ln_f", eps),
        head=head(c, "lm_head", embed, default=True),
    )  # fmt: skip


def _layers(c: Checkpoint, count: int) -> tuple[Layer, ...]:
    """Windows of each layer: kinds that are listed, or lists of them with how often each is repeated."""
    key = "attention_layers"
    kinds = c.items(key, count)
    if kinds is None:
        key, kinds = TYPES, [] if any(said.startswith(TYPES) for said in c.config) else ["global", "local"] * count
        for part in (f"{TYPES}.{i}" for i in range(count) if c.has(f"{TYPES}.{i}.1")):
            listed = c.value(f"{part}.0")
            c.demand(isinstance(listed, list), TYPES, listed, "lists of kinds, each with how often it is repeated")
            kinds += listed * min(c.size(f"{part}.1"), count)
        c.demand(len(kinds) >= count, TYPES, kinds, f"a kind for each of {count} layers")
    for kind in kinds:
        c.require(key, kind, "global", "local")
    window = Layer(c.size("window_size", default=256))
    return tuple(window if kind == "local" else Layer() for kind in kinds[:count])
