"""T5, mT5 and ByT5: relative positions, no scaling of scores, rms norms, networks plain or gated."""

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Matrix, Network, Norm
from oic.importers.encoder_decoder import AttentionWeights, EncoderDecoder, RelativeBias, Stack

BUFFERS = r"^(shared|(encoder|decoder)\.embed_tokens)\.weight$|EncDecAttention\.relative_attention_bias\.weight$"
"""Copies of the embedding, and a table that old checkpoints have without using it."""
SIGNS = (("decoder.block.0.layer.1.EncDecAttention.q.weight",),)
ASKS = (("feed_forward_proj",), ("tie_word_embeddings", "scale_decoder_outputs"))
LAYERS = ("num_layers", "num_hidden_layers")
CONTEXT = 512
"""Tokens of a source or output where the configuration does not say: its positions have no end."""
BIAS = "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def read(c: Checkpoint) -> EncoderDecoder:
    """Source: the configurations and weights of `t5` and `mt5` in Hugging Face's transformers."""
    c.assume({"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6,
              "feed_forward_proj": "gated-gelu" if c.family == "mt5" else "relu", "eos_token_id": 1,
              "decoder_start_token_id": c.config.get("pad_token_id", 0)})  # fmt: skip
    tied = c.flag("tie_word_embeddings", default=True)
    stored, embed = c.present("lm_head.weight"), EncoderDecoder.embedding(c)
    width = c.size("d_model", "hidden_size", told=c.extent(embed, 1))
    scaled = c.flag("scale_decoder_outputs", default=tied and c.family == "t5")
    return EncoderDecoder(
        family=c.family, vocab=c.size("vocab_size", told=c.extent(embed, 0)), width=width,
        context=c.size("n_positions", default=CONTEXT), embed=embed, encoder=_stack(c, "encoder", *LAYERS),
        decoder=_stack(c, "decoder", "num_decoder_layers", *LAYERS), before=True, scale=1.0,
        head=Matrix("lm_head.weight" if stored or not tied else embed), head_scale=width**-0.5 if scaled else None,
    )  # fmt: skip


def _stack(c: Checkpoint, side: str, *layers: str) -> Stack:
    """The encoder or the decoder; `layers`, keys of their number."""
    layer, decodes, eps = f"{side}.block.{{l}}.layer.", side == "decoder", c.number("layer_norm_epsilon")
    q, bias = f"{layer}0.SelfAttention.q.weight", BIAS.format(side)
    heads = c.size("num_heads", "num_attention_heads", told=c.extent(bias, 1))
    c.fill(layers[:1], c.count(q))

    def norm(name: str) -> Norm:
        return Norm(f"{name}.weight", "rms", eps)

    def attention(at: int, name: str) -> AttentionWeights:
        q, k, v, o = (Matrix(f"{layer}{at}.{name}.{n}.weight") for n in "qkvo")
        return AttentionWeights(q, k, v, o, norm(f"{layer}{at}.layer_norm"))

    last = 2 if decodes else 1
    network = _network(c, f"{layer}{last}.DenseReluDense.")
    return Stack(
        embed=EncoderDecoder.embedding(c, side=side), layers=c.layers(*layers), heads=heads,
        head_size=c.size("d_kv", "head_dim", told=c.extent(q, 0) // heads),
        inner=c.size("d_ff", told=c.extent(network.up.tensor, 0)), attention=attention(0, "SelfAttention"),
        cross=attention(1, "EncDecAttention") if decodes else None, network=network,
        network_norm=norm(f"{layer}{last}.layer_norm"), bias=_bias(c, bias), final=norm(f"{side}.final_layer_norm"),
    )  # fmt: skip


def _network(c: Checkpoint, prefix: str) -> Network:
    """`relu`, or `gated-` and an activation; gated-gelu means the tanh form.  `dense_act_fn` says it again, last."""
    key = "feed_forward_proj"
    gate, _, activation = c.text(key).rpartition("-")
    if gate not in ("", "gated") or not activation:
        raise c.unsupported(key, c.text(key), "an activation, or 'gated-' and one")
    activation = "gelu_new" if (gate, activation) == ("gated", "gelu") else activation
    activation = c.text("dense_act_fn") if c.has("dense_act_fn") else activation
    up, down = Matrix(f"{prefix}wi.weight"), Matrix(f"{prefix}wo.weight")
    if not gate:
        return Network(up, down, activation)
    return Network(Matrix(f"{prefix}wi_1.weight"), down, activation, gate=Matrix(f"{prefix}wi_0.weight"))


def _bias(c: Checkpoint, table: str) -> RelativeBias:
    """That of the first layer, which all layers use."""
    key, far = "relative_attention_num_buckets", "relative_attention_max_distance"
    buckets, distance = c.size(key, told=c.extent(table, 0)), c.size(far)
    c.demand(buckets % 2 == 0 and buckets >= 4, key, buckets, "an even number, 4 or more")
    c.demand(distance > buckets // 2, far, distance, f"more than half of the {buckets} buckets")
    return RelativeBias(table, buckets, distance)
