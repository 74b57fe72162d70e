"""Decoders in GGUF files: llama.cpp's keys and tensor names, and what its converter did to the weights.

Norms of Gemma and Nemotron hold 1 + weight already.  Rows of q and k of Llama are in the order in which rotary
positions turn adjacent pairs: the style is chosen, and no weight moves.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from oic.diagnostics import fail, nearest
from oic.importers import mamba2
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import (
    Decoder,
    Layer,
    Matrix,
    Network,
    Norm,
    Places,
    RotaryEmbedding,
    ShortConvolution,
    TimeFilter,
)  # fmt: skip
from oic.importers.experts import gguf_experts

ARCHITECTURE = "general.architecture"
MAMBA = "mamba"
"""The architecture that is no decoder; FalconMamba has it too, which a key tells."""
BUFFERS = r"^rope_(freqs|factors_long|factors_short)\.weight$|\.attn_rot_embd$"
FREQS, SHORT, LONG = (f"rope_{name}.weight" for name in ("freqs", "factors_short", "factors_long"))


@dataclass(frozen=True)
class Architecture:
    """What no key of the file says.

    norm        'rms' or 'layer'
    activation  of the feed-forward network
    style       of rotary positions; None: learned positions
    scaled      the embedding times √width
    bare_rope   every so many layers one has no rotary positions; 0: all have
    period      of layers with a window, the last (or of gemma2: the second) of which sees everything; 0: all are alike
    large       layers of the largest size, whose scores are scaled by width / heads instead of the head's size
    bare_norms  norms have no weights
    fused       gate and up of the network are one tensor
    before      what the norm before the network is called
    parallel    both sublayers read the same, and logits are scaled
    turned      norms of q and k come behind rotary positions
    near_rope   layers without a window have no rotary positions
    whole       the shares of the experts that a token takes add up to 1; `plus`, what is added to their total
    multiplied  the embedding and what sublayers add have factors, logits are divided, and a key says whether positions
                are rotary
    final       what the norm before the head is called
    """

    norm: str = "rms"
    activation: str = "silu"
    style: str | None = "half"
    scaled: bool = False
    bare_rope: int = 0
    period: int = 0
    large: int = 0
    bare_norms: bool = False
    fused: bool = False
    before: str = "ffn_norm"
    parallel: bool = False
    turned: bool = False
    near_rope: bool = False
    whole: bool = True
    plus: float | None = None
    multiplied: bool = False
    final: str = "output_norm"


_GEMMA = Architecture(activation="gelu_pytorch_tanh", scaled=True)
_COHERE = Architecture(norm="layer", style="interleaved", parallel=True)
ARCHITECTURES = {
    **dict.fromkeys(("qwen2", "qwen3", "qwen3moe", "falcon-h1", "mamba2"), Architecture()),
    **dict.fromkeys(("llama", "ernie4_5", "ernie4_5-moe"), Architecture(style="interleaved")),
    **dict.fromkeys(("granite", "granitemoe", "granitehybrid"), Architecture(style="interleaved", multiplied=True)),
    **dict.fromkeys(("chatglm", "glm4"), Architecture(style="interleaved", fused=True)),
    **dict.fromkeys(("qwen2moe", "olmoe"), Architecture(whole=False)),
    **dict.fromkeys(("lfm2", "lfm2moe"), Architecture(final="token_embd_norm", plus=1e-6)),
    **dict.fromkeys(("nemotron", "jais2"), Architecture(norm="layer", activation="relu2")),
    "smollm3": Architecture(style="interleaved", bare_rope=4),
    "olmo2": Architecture(period=4),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, period=2, large=46),
    "gemma3": replace(_GEMMA, period=6, large=62),
    "gpt2": Architecture(norm="layer", activation="gelu_new", style=None),
    "gptneox": Architecture(norm="layer", activation="gelu"),
    "phi3": Architecture(fused=True),
    "command-r": _COHERE,
    "cohere2": replace(_COHERE, period=4, near_rope=True),
    "olmo": Architecture(norm="layer", style="interleaved", bare_norms=True),
    "seed_oss": Architecture(before="post_attention_norm"),
    "hunyuan-dense": Architecture(turned=True),
    "dots1": Architecture(whole=False, plus=1e-20),
    "starcoder2": Architecture(norm="layer", activation="gelu_pytorch_tanh"),
}
"""By `general.architecture`.  Source: llama.cpp, `convert_hf_to_gguf.py` and `src/llama-model.cpp`."""

DEFAULTS = {
    "gemma2": {"attention.sliding_window": 4096, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
}
"""What an architecture's file means where it says nothing."""
PERIOD = "attention.sliding_window_pattern"
SCALES = ("rope.scaling.factor", "rope.scale_linear")
"""Keys of the linear scaling, the first that is there; 0 is none."""
LOCAL_BASE = 10000.0  # of rotary positions in Gemma 3's layers with a window


def read(c: Checkpoint) -> Decoder:
    """Source: llama.cpp, `convert_hf_to_gguf.py`, `gguf-py/gguf/constants.py` and `src/llama-model.cpp`."""
    name = c.text(ARCHITECTURE)
    if name not in ARCHITECTURES:
        near = nearest(name, ARCHITECTURES)
        known = ", ".join(sorted((*ARCHITECTURES, MAMBA)))
        hint = (f"the nearest is {near!r}; " if near else "") + f"supported: {known}"
        raise fail("import-family", f"{c.model.name}: '{ARCHITECTURE}' is '{name}', which is not known", hint=hint)
    a, c.scope = ARCHITECTURES[name], f"{name}."
    c.config["model_type"] = name
    factors = ("residual_scale", "embedding_scale")
    for key in ("attention.shared_kv_layers", "attention.max_alibi_bias", *(() if a.multiplied else factors)):
        if used := c.optional(key):
            raise c.unsupported(key, used, "none")
    c.assume({key: value for key, value in DEFAULTS.get(name, {}).items() if not c.has(key)})
    read_ends(c)
    width, count = c.size("embedding_length"), c.layers("block_count")
    mixers = [_mixers(c, f"blk.{i}.") for i in range(count)]
    heads, kv_heads, head = _heads(c, width, mixers)
    eps = c.number("attention.layer_norm_rms_epsilon" if a.norm == "rms" else "attention.layer_norm_epsilon")
    positions, embed = c.shape("position_embd.weight"), c.shape("token_embd.weight")
    experts = gguf_experts(c, a.activation, whole=a.whole, plus=a.plus)
    large, layers = a.large == count, _layers(c, a, mixers, head)
    if experts and c.present("blk.{l}.ffn_gate_inp.weight"):
        routed = [c.model.has(f"blk.{i}.ffn_gate_inp.weight") for i in range(count)]
        layers = tuple(replace(layer, dense=not mixed) for layer, mixed in zip(layers, routed))
    sublayers, factor = _sublayers(c, a, eps, head), "logits_divisor" if a.multiplied else "logits_scale"
    if experts and not any(layer.dense for layer in layers):
        sublayers["network"] = None
    sublayers[factor] = (c.number("logit_scale") if a.parallel else c.optional("logit_scale")) or None
    return Decoder(
        # rows of the embedding: some files have more of them than texts of tokens
        family=name, vocab=embed[0] if len(embed) == 2 else c.size("vocab_size"), width=width, heads=heads,
        kv_heads=kv_heads, head_size=head, experts=experts,
        inner=c.size("feed_forward_length") if sublayers["network"] else 0,
        context=c.size("context_length"), layers=layers,
        clip=c.optional("attention.clamp_kqv") or None,
        embed="token_embd.weight", embed_scale=math.sqrt(width) if a.scaled else c.optional("embedding_scale") or None,
        positions=None if a.style else Places("position_embd.weight", positions[0] if positions else 0),
        final=_norm(c, a, eps, a.final) or Norm(f"{a.final}.weight", a.norm, eps),
        parallel=c.flag("use_parallel_residual", default=a.parallel),
        residual_scale=c.optional("residual_scale") or None,
        scale=c.optional("attention.scale") or ((width // heads) ** -0.5 if large else None),
        softcap=c.optional("attn_logit_softcapping") or None,
        final_softcap=c.optional("final_logit_softcapping") or None,
        head=Matrix(c.there("output.weight") or "token_embd.weight"), **sublayers,
    )  # fmt: skip


def _mixers(c: Checkpoint, layer: str) -> tuple[str, ...]:
    """What mixes tokens in a layer, as its weights say; attention, where they say nothing."""
    other = {"scan": "ssm_a", "convolution": "shortconv.conv.weight"}
    found = tuple(mixer for mixer, name in other.items() if c.model.has(layer + name))
    attends = not found or c.model.has(layer + "attn_output.weight")
    return (*found, *["attention"] * attends)


def _heads(c: Checkpoint, width: int, mixers: list[tuple[str, ...]]) -> tuple[int, int, int]:
    """Heads of queries, and of keys and values, and their size; 0 where no layer has attention."""
    key, attends = "attention.head_count_kv", ["attention" in mixer for mixer in mixers]
    if not any(attends):
        return 0, 0, 0
    c.same(key, attends, "attention")  # 0 in the others
    heads = c.size("attention.head_count")
    if width % heads and not c.has("attention.key_length"):
        raise c.unsupported("attention.head_count", heads, f"a divisor of 'embedding_length', {width}")
    head = c.size("attention.key_length", default=width // heads)
    if c.size("attention.value_length", default=head) != head:
        raise c.unsupported("attention.value_length", c.size("attention.value_length"), f"'key_length', {head}")
    return heads, c.size(key, default=heads), head


def read_ends(c: Checkpoint) -> None:
    """The tokens that begin and end texts, by the keys of a configuration."""
    for end, names in (("bos_token_id", ("bos",)), ("eos_token_id", ("eos", "eot"))):
        ids = [c.value(key) for key in (f"tokenizer.ggml.{n}_token_id" for n in names) if c.has(key)]
        if ids and end not in c.absent:
            c.config.setdefault(end, ids[0] if len(ids) == 1 else ids)


def _norm(c: Checkpoint, a: Architecture, eps: float, name: str) -> Norm | None:
    """A norm where its weights are there."""
    if a.bare_norms and name.endswith(("attn_norm", "ffn_norm", "output_norm")):
        return Norm(None, a.norm, eps)
    tensor = c.there(f"{name}.weight") or c.there(name)  # Falcon-H1's have no ending
    by_head, bias = len(c.shape(tensor or name)) == 2, c.there(f"{name}.bias")
    return Norm(tensor, a.norm, eps, bias, by_head=by_head) if tensor else None


def _sublayers(c: Checkpoint, a: Architecture, eps: float, head: int) -> dict[str, Any]:
    """Matrices and norms of the layers, by the fields of `Decoder`."""

    def part(name: str) -> Matrix:
        return Matrix.of(c, f"blk.{{l}}.{name}")

    def norm(name: str) -> Norm | None:
        return _norm(c, a, eps, f"blk.{{l}}.{name}")

    whole = c.present("blk.{l}.attn_qkv.weight")
    parts = {"qkv": part("attn_qkv")} if whole else {n: part(f"attn_{n}") for n in "qkv"}
    up, down = part("ffn_up"), part("ffn_down")
    gate = up if a.fused else part("ffn_gate") if c.present("blk.{l}.ffn_gate.weight") else None
    q_norm, filter = norm("attn_q_norm"), "blk.{l}.shortconv.conv"
    network = Network(up, down, a.activation, gate) if head or c.present(up.tensor) else None
    return {
        **parts, "o": part("attn_output"), "network": network,
        "convolution": ShortConvolution(
            part("shortconv.in_proj"), TimeFilter.of(c, filter, "shortconv.l_cache"), part("shortconv.out_proj")
        ) if c.present(f"{filter}.weight") else None,
        "scan": mamba2.scan(
            c, "blk.{l}.", mamba2.GGUF_KEYS, a.activation, groups=1, eps=eps, normed=None,
            modules=mamba2.GGUF_MODULES, logs=False,
        )
        if c.present("blk.{l}.ssm_a") else None,
        "q_norm": q_norm, "k_norm": norm("attn_k_norm"),
        "norm_whole": q_norm is not None and not q_norm.by_head and c.shape(q_norm.tensor or "") != (head,),
        "norm_turned": q_norm is not None and a.turned, "before_attention": norm("attn_norm"),
        "after_attention": norm("post_attention_norm") if a.before != "post_attention_norm" else None,
        "before_network": norm(a.before), "after_network": norm("post_ffw_norm"),
    }  # fmt: skip


def _layers(c: Checkpoint, a: Architecture, mixers: list[tuple[str, ...]], head: int) -> tuple[Layer, ...]:
    """Windows and rotary positions of each layer, and what mixes tokens there."""
    window = c.size("attention.sliding_window") if a.near_rope or c.optional("attention.sliding_window") else None
    sliding = [window is not None and slides for slides in _sliding(c, a, len(mixers))]
    turned = not a.multiplied or c.flag("rope.scaling.finetuned", default=True)
    everywhere = _rope(c, a, head) if a.style and turned and head else None
    near = everywhere
    if everywhere and (c.has("rope.freq_base_swa") or c.family == "gemma3"):
        near = RotaryEmbedding(c.positive("rope.freq_base_swa", default=LOCAL_BASE), everywhere.dims, everywhere.style)
    every = a.bare_rope or len(mixers) + 1
    return tuple(
        Layer(window if slides else None, (near if slides else everywhere) if turned else None, mixer)
        if "attention" in mixer else Layer(mixers=mixer)
        for i, (slides, mixer) in enumerate(zip(sliding, mixers))
        for turned in [(i + 1) % every != 0 and (slides or not a.near_rope)]
    )  # fmt: skip


def _sliding(c: Checkpoint, a: Architecture, count: int) -> list[bool]:
    """Which layers see a window, if there is one: a period, or a list with a flag for each."""
    key = next((k for k in (PERIOD, c.scope + PERIOD) if k in c.config), None)
    if key is not None and isinstance(c.config[key], list):
        flags = c.items(key, count) or []
        for flag in flags:
            c.require(key, flag, True, False)
        return [bool(flag) for flag in flags]
    period = a.period if key is None else c.size(PERIOD)
    return [not period or (i + 1) % period != 0 for i in range(count)]


def _rope(c: Checkpoint, a: Architecture, head: int) -> RotaryEmbedding:
    """Rotary positions; `OicError` `import-unsupported` for a scaling that is not known."""
    base, dims = c.positive("rope.freq_base", default=10000.0), c.size("rope.dimension_count", default=head)
    most = min(head, RotaryEmbedding.MOST)
    c.demand(dims % 2 == 0 and dims <= most, "rope.dimension_count", dims, f"an even number up to {most}")
    kind = c.text("rope.scaling.type") if c.has("rope.scaling.type") else "linear"
    longrope = c.model.has(SHORT) or c.model.has(LONG)
    c.require("rope.scaling.type", kind, "none", "linear", *["longrope"] * longrope)
    strength = c.positive("rope.scaling.attn_factor") if c.has("rope.scaling.attn_factor") else 1.0
    c.demand(longrope or strength == 1, "rope.scaling.attn_factor", strength, "1")
    c.demand(not (longrope and c.model.has(FREQS)), FREQS, "a tensor", f"none beside '{SHORT}'")
    original = c.size("rope.scaling.original_context_length") if longrope else None
    long = original is not None and (c.room or 0) > original
    style = a.style or "half"
    scaled = next((key for key in SCALES if kind == "linear" and c.optional(key)), None)
    factor = c.positive(scaled) if scaled else 1.0
    factors = [factor] * (dims // 2)
    for name in ((LONG, SHORT) if not long else (SHORT, LONG)) if longrope else [FREQS] * c.model.has(FREQS):
        shape = f"of shape {list(c.shape(name))}"
        c.demand(c.shape(name) == (dims // 2,), name, shape, f"one factor for each frequency, [{dims // 2}]")
        factors = [factor * float(f) for f in c.model.tensor(name)]
        good = all(math.isfinite(f) and f > 0 for f in factors)
        c.demand(good, name, "with a factor that is not above 0", "positive factors")
    if all(f == 1.0 for f in factors) and not longrope:
        return RotaryEmbedding(base, dims, style)
    freqs = tuple(base ** (-2 * d / dims) / f for d, f in enumerate(factors))
    return RotaryEmbedding(base, dims, style, freqs, strength, original, long)
