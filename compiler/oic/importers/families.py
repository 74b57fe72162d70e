"""The table of model families, and which of them a checkpoint is."""

from __future__ import annotations

from collections.abc import Callable

from oic.diagnostics import fail, nearest
from oic.importers.bart import BUFFERS as BART_BUFFERS
from oic.importers.bart import bart, bart_shapes
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder
from oic.importers.encoder_decoder import EncoderDecoder
from oic.importers.family import Family, FamilyGraph, Request
from oic.importers.gguf import ARCHITECTURE, gguf
from oic.importers.gguf import BUFFERS as GGUF_BUFFERS
from oic.importers.gpt2 import BUFFERS as GPT2_BUFFERS
from oic.importers.gpt2 import gpt2, gpt2_shapes
from oic.importers.gru import GRU, gru
from oic.importers.gru import SIGNS as GRU_SIGNS
from oic.importers.llama import BUFFERS as LLAMA_BUFFERS
from oic.importers.llama import gpt_neox, llama, llama_shapes
from oic.importers.meta import BUFFERS as META_BUFFERS
from oic.importers.meta import META, meta, meta_shapes
from oic.importers.rwkv import RWKV, rwkv
from oic.importers.rwkv import SIGNS as RWKV_SIGNS
from oic.importers.t5 import BUFFERS as T5_BUFFERS
from oic.importers.t5 import t5, t5_shapes
from oic.importers.transformer import transformer_program


def _transformer(
    read: Callable[[Checkpoint], Decoder | EncoderDecoder], buffers: str
) -> Callable[[Checkpoint, Request], FamilyGraph]:
    return lambda c, request: transformer_program(c, read(c), buffers, request)


_HEADS, _ROPE = ("num_attention_heads", "n_heads"), ("rope_theta", "rope_parameters.rope_theta")
_LLAMA_SIGN = (("model.layers.0.self_attn.q_proj.weight",), ("layers.0.self_attn.q_proj.weight",))
_LLAMA = Family(
    _transformer(llama, LLAMA_BUFFERS), _LLAMA_SIGN, llama_shapes, (_HEADS, ("rms_norm_eps", "norm_epsilon"), _ROPE)
)
_GPT2_SIGNS = tuple(
    (f"{prefix}wte{end}", f"{prefix}h.0.attn.c_attn.weight")
    for prefix in ("transformer.", "")
    for end in (".weight", "")
)
_META = Family(
    _transformer(meta, META_BUFFERS), (("tok_embeddings",), ("tok_embeddings.weight",)), meta_shapes,
    (("n_heads", "num_attention_heads"),),
)  # fmt: skip
_T5_ASKS = (("feed_forward_proj",), ("tie_word_embeddings", "scale_decoder_outputs"))
FAMILIES = {
    "gpt2": Family(_transformer(gpt2, GPT2_BUFFERS), _GPT2_SIGNS, gpt2_shapes, (("n_head", "num_attention_heads"),)),
    "gpt_neox": Family(
        _transformer(gpt_neox, rf"{LLAMA_BUFFERS}|\.attention\.(bias|masked_bias)$"),
        (("gpt_neox.layers.0.attention.query_key_value.weight",),), None,
        (_HEADS, ("rotary_pct",), ("use_parallel_residual",)),
    ),
    META: _META,
    RWKV: Family(rwkv, RWKV_SIGNS),
    GRU: Family(gru, GRU_SIGNS),
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "smollm3", "olmo2", "starcoder2"),
        _LLAMA,
    ),
    "t5": Family(
        _transformer(t5, T5_BUFFERS), (("decoder.block.0.layer.1.EncDecAttention.q.weight",),), t5_shapes, _T5_ASKS
    ),
    "mt5": Family(_transformer(t5, T5_BUFFERS), (), t5_shapes, _T5_ASKS),  # its names are those of t5
    **dict.fromkeys(
        ("bart", "mbart"),
        Family(
            _transformer(bart, BART_BUFFERS), (("model.decoder.layers.0.encoder_attn.q_proj.weight",),), bart_shapes,
            (("encoder_attention_heads",), ("decoder_attention_heads",)),
        ),
    ),
}  # fmt: skip
"""By `model_type`."""

ALIASES = {**dict.fromkeys(("gpt-nano", "gpt-micro", "gpt-mini", "gpt2-medium", "gpt2-large", "gpt2-xl"), "gpt2")}
"""Names of sizes that configurations of minGPT give for `model_type`."""


EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
"""Keys that say how many feed-forward networks a layer has to choose from."""
GGUF = Family(_transformer(gguf, GGUF_BUFFERS))


def family_of(c: Checkpoint) -> Family:
    """The family that the configuration names, or the tensors' names tell; sizes that shapes tell are filled in."""
    if c.has(ARCHITECTURE):
        return GGUF
    for key in EXPERTS:
        if c.has(key) and c.config[key] not in (0, 1):
            raise c.unsupported(key, c.config[key], "one feed-forward network a layer, no mixture of experts")
    name = ALIASES.get(c.family, c.family)
    if name in FAMILIES and name != META and any(c.model.has(sign) for (sign,) in FAMILIES[META].signs):
        name = META  # another layout of a Llama, whose configuration may be that of any other
    if name not in FAMILIES:
        name = _told(c)
    c.config["model_type"] = name
    family = FAMILIES[name]
    if family.shapes is not None:
        family.shapes(c)
    c.ask(*family.asks)
    return family


def _told(c: Checkpoint) -> str:
    """The one family whose names the tensors have, where the configuration does not say."""
    fitting = [name for name, f in FAMILIES.items() if any(all(map(c.model.has, sign)) for sign in f.signs)]
    known = ", ".join(sorted(FAMILIES))
    if c.family:
        near = fitting[0] if len(fitting) == 1 else nearest(c.family, FAMILIES)
        message = f"{c.model.name}: 'model_type' is '{c.family}', a family that is not known"
        raise fail("import-family", message, hint=f"{f'the nearest is {near!r}; ' if near else ''}families: {known}")
    if len(fitting) == 1:
        return fitting[0]
    message = f"{c.model.name}: no configuration says which family it is ('model_type')"
    if fitting:
        message += f"; the names of its tensors fit {', '.join(fitting)}"
        raise fail("import-family", message, hint="--set model_type=…, or --config FILE")
    names = c.model.names()
    message += f", and the names of its tensors tell none: {', '.join(names[:4])}{'…' if len(names) > 4 else ''}"
    raise fail("import-family", message, hint=f"--set model_type=…, or --config FILE; families: {known}")
