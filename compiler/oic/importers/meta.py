"""Llama under the names of its first publication, and of llama2.c, where one tensor has a matrix of all layers."""

from oic.importers.checkpoint import STACKED, Checkpoint
from oic.importers.decoder import Decoder, Layer, Matrix, Network, Norm, RotaryEmbedding

META = "llama_meta"
BUFFERS = r"^freq_cis_(real|imag)$|^rope\.freqs$"
SIGNS = (("tok_embeddings",), ("tok_embeddings.weight",))
NAMES = {
    "embed": ("tok_embeddings.weight", "tok_embeddings"),
    "norm_attention": ("layers.{l}.attention_norm.weight", "rms_att"),
    "norm_network": ("layers.{l}.ffn_norm.weight", "rms_ffn"),
    **{f"w{n}": (f"layers.{{l}}.attention.w{n}.weight", f"w{n}") for n in "qkvo"},
    **{f"w{n}": (f"layers.{{l}}.feed_forward.w{n}.weight", f"w{n}") for n in "123"},
    "final": ("norm.weight", "rms_final"),
    "head": ("output.weight", "wcls"),
}
"""Names of tensors: in checkpoints of PyTorch, and in llama2.c's file as a tensor for each of its parts."""
SIZES = {
    "dim": ("dim", "hidden_size"),
    "n_layers": ("n_layers", "num_hidden_layers"),
    "n_heads": ("n_heads", "num_attention_heads"),
    "n_kv_heads": ("n_kv_heads", "num_key_value_heads"),
    "seq_len": ("max_seq_len", "seq_len", "max_position_embeddings"),
}


def _name(c: Checkpoint, part: str) -> str:
    """The name, or pattern, of a part in this checkpoint."""
    plain, short = NAMES[part]
    if not c.model.has(short):
        return plain
    return short + STACKED if "{l}" in plain else short


def read(c: Checkpoint) -> Decoder:
    """Source: llama2.c (`run.c`, `export.py`) and Meta's `llama` (`model.py`): rotary positions turn adjacent pairs."""
    embed, layers = _name(c, "embed"), c.count(_name(c, "wq"))
    width = c.size(*SIZES["dim"], told=c.extent(embed, 1))
    pairs = c.extent("freq_cis_real", 1)
    heads = c.size(*SIZES["n_heads"], told=width // (2 * pairs) if pairs else 0)
    c.demand(width % heads == 0, "n_heads", heads, f"a divisor of 'dim', {width}")
    if c.has("use_scaled_rope"):
        c.require("use_scaled_rope", c.flag("use_scaled_rope", default=False), False)
    eps = c.number("norm_eps", "rms_norm_eps", default=1e-5)
    if c.present(NAMES["wq"][1]):  # llama2.c begins and ends every text with token 1
        c.fill(("bos_token_id",), 1)
        c.fill(("eos_token_id",), 1)

    def norm(part: str) -> Norm:
        return Norm(_name(c, part), "rms", eps)

    def matrix(part: str) -> Matrix:
        return Matrix(_name(c, part))

    rope = RotaryEmbedding(c.positive("rope_theta", default=10000.0), width // heads, style="interleaved")
    return Decoder(
        family=META, vocab=c.extent(embed, 0) or c.size("vocab_size"),  # published configurations may say -1
        width=width, heads=heads, head_size=width // heads,
        kv_heads=c.size(*SIZES["n_kv_heads"], default=heads, told=c.extent(_name(c, "wk"), 0) * heads // width),
        inner=c.extent(_name(c, "w1"), 0) or c.size("hidden_dim", "intermediate_size"),
        context=c.size(*SIZES["seq_len"], default=2048),
        layers=(Layer(rope=rope),) * c.layers(*SIZES["n_layers"], most=layers or None, told=layers), embed=embed,
        q=matrix("wq"), k=matrix("wk"), v=matrix("wv"), o=matrix("wo"),
        network=Network(matrix("w3"), matrix("w2"), "silu", gate=matrix("w1")),
        before_attention=norm("norm_attention"), before_network=norm("norm_network"), final=norm("final"),
        head=matrix("head" if c.present(_name(c, "head")) else "embed"),
    )  # fmt: skip
