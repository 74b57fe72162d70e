"""From a transformer as data to its program, whichever kind it is."""

from dataclasses import replace

from oic.diagnostics import fail
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder
from oic.importers.decoder_graph import CACHES, decoder_text
from oic.importers.encoder_decoder import EncoderDecoder
from oic.importers.family import FamilyGraph, Request
from oic.importers.graph_template import text_of
from oic.importers.writer import Writer

ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), 'op gelu({0}, approx="erf") >> {0};'),
    **dict.fromkeys(
        ("gelu_new", "gelu_accurate", "gelu_fast", "gelu_pytorch_tanh"), 'op gelu({0}, approx="tanh") >> {0};'
    ),
    "quick_gelu": "op mul({0}, 1.702) >> {0};\nop silu({0}) >> {0};\nop div({0}, 1.702) >> {0};",
    **dict.fromkeys(("silu", "swish"), "op silu({0}) >> {0};"),
    "relu2": "op relu({0}) >> {0};\nop mul({0}, {0}) >> {0};",
    **{name: f"op {name}({{0}}) >> {{0}};" for name in ("relu", "tanh", "sigmoid", "softplus")},
    "linear": "",
}
"""Activations by the names that configurations use, as statements on a variable."""
POSITIONS = "learned_positions"
"""Metadata of an imported model: tokens that it has positions for, where these are a table or for short texts."""
MOST_TOKENS = (1 << 31) - 1
"""What the position, an i32, counts to."""
ROOM = {"max_position_embeddings", "n_positions", "max_seq_len"}
"""Keys of the tokens that a model is for."""
SORTED = 1 << 24
"""Integers up to which f32 has all: places of what the tokens of a step chose in a mixture of experts."""
ENDS = ("bos_token_id", "eos_token_id", "decoder_start_token_id")
"""Keys of the configuration that generation reads."""
ACTIVATION_KEYS = ("hidden_activation", "hidden_act", "activation_function", "feed_forward_proj")
CAUSAL = {"is_causal": True, "attention.causal": True, "use_bidirectional_attention": False}
"""Keys that say whether a token sees those after it, and their values where it does not."""
_OF_ALL = ("enable_bias", "use_bias")
BIASES = (
    ("attention_bias", "qkv_bias", "use_qkv_bias", *_OF_ALL), ("attention_out_bias", "attention_bias", *_OF_ALL),
    ("mlp_bias", *_OF_ALL),
)  # fmt: skip
"""Keys of biases of q, k and v, of what attention gives, and of the network: the first that is there counts."""
FURTHER = "num_nextn_predict_layers"
"""Key of layers behind the others that guess tokens after the next, which a graph does without."""
HEAD_COPY = r"^(lm_head|embed_out)\.weight$"
"""The head of a model whose embedding is its head, stored a second time."""


def transformer_program(c: Checkpoint, model: Decoder | EncoderDecoder, buffers: str, request: Request) -> FamilyGraph:
    """The graph of a model; `OicError` for an activation, a mask or a context that it cannot have.

    buffers  names of tensors that are no weights (a regular expression)
    """
    for key, good in CAUSAL.items():
        c.require(key, c.flag(key, default=good), good)
    if model.activation not in ACTIVATIONS:
        key = next((k for k in ACTIVATION_KEYS if c.has(k)), "hidden_act")
        raise c.unsupported(key, model.activation, ", ".join(ACTIVATIONS))
    fixed = isinstance(model, Decoder) and not model.having("attention")
    usual = MOST_TOKENS if fixed else min(filter(None, (model.context, model.most)))
    room = usual if request.context is None else request.context
    most = model.most
    if not 1 <= room <= (most or MOST_TOKENS) or request.prefill < 1:
        known = f"1 to {MOST_TOKENS}" if most is None else f"1 to {most}, the positions that it has learned"
        raise fail("import-config", f"a context of {room} tokens, {request.prefill} a step: the model takes {known}")
    taken = model.experts.taken if isinstance(model, Decoder) and model.experts else 0
    if (choices := (request.batch or 1) * min(request.prefill, room) * taken) > SORTED:
        message = f"tokens of a step choose {choices:,} experts, and {SORTED:,} at most are sorted exactly, as f32"
        raise fail("import-config", message, hint="fewer at once: --prefill, --batch")
    hybrid = isinstance(model, Decoder) and bool(model.convolution or model.scan)
    request.refuse(c, context=fixed, cache=fixed or isinstance(model, EncoderDecoder), batch=fixed or hybrid)
    if request.batch is not None and request.batch < 1:
        raise fail("import-config", f"a batch of {request.batch}: 1 or more")
    if request.cache not in CACHES:
        raise fail("import-config", f"a cache of '{request.cache}': {', '.join(CACHES)}")
    model = replace(model, context=room)
    if isinstance(model, Decoder):
        biased = (model.q, model.k, model.v, model.qkv), (model.o,), [m for n in model.networks for m in n.matrices]
        for keys, matrices in zip(BIASES, biased, strict=True):
            if any(matrix and matrix.bias for matrix in matrices):
                c.deny(*keys)
        strengths = {layer.rope.strength for layer in model.layers if layer.rope and model.norm_turned}
        strength = max(strengths, default=1)
        c.demand(strengths <= {1.0}, "attention_factor", strength, "1, where norms of q and k are behind it")
        c.demand(not (model.clip and model.q_norm), "clip_qkv", model.clip, "none, beside norms of q and k")
        for i in range(c.layers(FURTHER) if c.optional(FURTHER) else 0):
            buffers += rf"|\.layers\.{len(model.layers) + i}\."
        w = Writer(c=c, layers=len(model.layers), experts=model.experts.count if model.experts else 1)
        text = decoder_text(w, model, request, activations=ACTIVATIONS)
    else:
        w = Writer(c=c, layers=model.encoder.layers)
        other = replace(w, layers=model.decoder.layers)
        text = text_of("encoder_decoder", w, request, m=model, decoder_w=other, activations=ACTIVATIONS)
    said = None if c.assumed.keys() & ROOM else usual
    return FamilyGraph(
        text, model.features(), w.weights, f"{buffers}|{HEAD_COPY}" if model.head.tensor == model.embed else buffers,
        w.extra, None if fixed else room, said, ends(c) | ({} if most is None else {POSITIONS: most}),
    )  # fmt: skip


def ends(c: Checkpoint) -> dict[str, object]:
    """Metadata: the tokens that begin and end texts, where the files do not say them so."""
    return {key: c.value(key) for key in ENDS if c.has(key) and c.value(key) != c.model.metadata.get(key)}
