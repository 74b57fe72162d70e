"""Rotary positions as configurations in the Hugging Face layout say them, and their scalings.

Source: `modeling_rope_utils` of Hugging Face's transformers.
"""

import math
import sys
from dataclasses import replace

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import RotaryEmbedding

USUAL_TYPES = ("full_attention", "sliding_attention")
"""Types of layers, each of which may have a table of its own."""
ROPE_KEYS = {
    "rope_type", "type", "rope_theta", "factor", "partial_rotary_factor", "original_max_position_embeddings",
    "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor",
    "truncate", "short_factor", "long_factor", "alpha",
}  # fmt: skip
"""What tables of rotary positions may say; one for all layers may have tables of `USUAL_TYPES` instead."""
SCALED = {"cwm"}
"""Families whose rotary positions are scaled where the configuration says nothing of it."""
CONTEXT, ORIGINAL = "max_position_embeddings", "original_max_position_embeddings"
ROPE_TYPES = ("default", "linear", "llama3", "yarn", "dynamic", "longrope")


def rope(c: Checkpoint, size: int, kind: str) -> RotaryEmbedding:
    """Rotary positions of full or sliding layers; `OicError` `import-unsupported` for a scaling that is not known."""
    for key in ("rope_scaling", "rope_parameters"):
        c.demand(not c.has(key), key, c.value(key), "a table")
    table, own = "rope_parameters.", f"rope_parameters.{kind}."
    if any(key.startswith(own) and c.has(key) for key in c.config):
        table = own
    of_some = c.family == "olmo3" and kind == "sliding_attention"  # whose rotary positions are never scaled
    if not of_some and any(key.startswith("rope_scaling.") and c.has(key) for key in c.config):
        table = "rope_scaling."  # first, as in transformers
    local = kind == "sliding_attention" and c.has("rope_local_base_freq") and not c.has(table + "rope_theta")
    base = c.positive("rope_local_base_freq") if local else c.positive(
        table + "rope_theta", "rope_theta", "rotary_emb_base", default=10000.0
    )  # fmt: skip
    shares = (table + "partial_rotary_factor", "partial_rotary_factor", "rotary_pct")
    part = c.number(*shares, default=1.0)
    if not 0 < part <= 1 or (dims := int(size * part)) % 2:
        key, value = ("head_dim", size) if part == 1 else (next(filter(c.has, shares)), part)
        raise c.unsupported(key, value, "an even number of elements of a head")
    c.demand(dims <= RotaryEmbedding.MOST, "head_dim", size, f"at most {RotaryEmbedding.MOST}")
    known = ROPE_KEYS.union(USUAL_TYPES if table == "rope_parameters." else ())
    for key in (key for key in c.config if key.startswith(table) and c.has(key)):
        name = key.removeprefix(table).partition(".")[0]
        c.demand(name in known, key, c.config[key], ", ".join(sorted(known)))
    said = next((table + key for key in ("rope_type", "type") if c.has(table + key)), None)
    if said is None and c.has(table + "factor") and not local:
        types = ", ".join(map(repr, ROPE_TYPES))
        raise c.unsupported(table + "factor", c.config[table + "factor"], f"with a 'rope_type' beside it: {types}")
    if local or said is None:
        c.demand(local or c.family not in SCALED, "rope_parameters", None, "with a 'rope_type'")
        return RotaryEmbedding(base, dims)
    name = c.text(said)
    if c.family == "phi3" and name in ("su", "yarn"):
        name = "longrope"  # of its first configurations
    c.require(said, name, *ROPE_TYPES)
    if name == "dynamic":
        if c.has(table + "alpha"):
            alpha, turns = c.positive(table + "alpha"), dims - 2
            fits = turns > 0 and math.log(alpha) * dims / turns + math.log(base) < math.log(sys.float_info.max)
            c.demand(fits, table + "alpha", alpha, "a factor of the base, over more than two elements of a head")
            return RotaryEmbedding(base * alpha ** (dims / turns), dims)
        context = c.size(CONTEXT, default=2048)
        c.demand((c.room or 0) <= context, said, name, f"a context of up to {context} tokens")
        return RotaryEmbedding(base, dims, original=context)
    if name == "default":
        return RotaryEmbedding(base, dims)
    freqs = tuple(base ** (-2 * d / dims) for d in range(dims // 2))
    places = (table + ORIGINAL, CONTEXT) if table == own else (ORIGINAL, table + ORIGINAL, CONTEXT)
    if name == "longrope":
        original = c.size(*places[: 1 if c.family == "phi3" else 3])
        return _longrope(c, table, RotaryEmbedding(base, dims, freqs=freqs), original)
    factor = c.positive(table + "factor")
    if name == "linear":
        return RotaryEmbedding(base, dims, freqs=tuple(f / factor for f in freqs))
    whole = c.positive(*places)
    if name == "yarn":
        return _yarn(c, table, RotaryEmbedding(base, dims, freqs=freqs), factor, whole)
    low, high = c.number(table + "low_freq_factor"), c.number(table + "high_freq_factor")
    c.demand(high > low, table + "high_freq_factor", high, f"above 'low_freq_factor', {low!r}")
    return RotaryEmbedding(base, dims, freqs=tuple(_stretched(f, factor, low, high, whole) for f in freqs))


def _longrope(c: Checkpoint, table: str, rope: RotaryEmbedding, original: int) -> RotaryEmbedding:
    """Frequencies of texts longer than those trained on, where the cache has room for such; else of those.

    Source: Ding et al., LongRoPE, 2024; `_compute_longrope_parameters` of Hugging Face's transformers.
    """
    long = (c.room or 0) > original
    what = "factors above 0, one for each frequency"
    factors = [c.factors(f"{table}{name}_factor", rope.dims // 2, 0, what) for name in ("short", "long")]
    factor = c.positive(table + "factor", default=c.size(CONTEXT, default=2048) / original)
    c.demand(original > 1, ORIGINAL, original, "above 1")
    usual = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    return replace(
        rope, freqs=tuple(f / by for f, by in zip(rope.freqs or (), factors[long])), original=original, long=long,
        strength=c.positive(table + "attention_factor", default=usual),
    )  # fmt: skip


def _yarn(c: Checkpoint, table: str, rope: RotaryEmbedding, factor: float, context: float) -> RotaryEmbedding:
    """Frequencies by how often they turn in the context trained on; the longer the texts, the stronger the scores.

    Source: Peng et al., YaRN, 2023; `_compute_yarn_parameters` of Hugging Face's transformers.
    """
    c.demand(rope.base > 1, f"{table}rope_theta", rope.base, "above 1")

    def place(key: str, usual: float) -> float:
        """The frequency that turns so often, as an index."""
        turns = math.log(c.positive(table + key, default=usual)) + math.log(2 * math.pi)
        return rope.dims * (math.log(context) - turns) / (2 * math.log(rope.base))

    def strength(share: float) -> float:
        return 0.1 * share * math.log(factor) + 1 if factor > 1 else 1.0

    first, last = place("beta_fast", 32), place("beta_slow", 1)
    if c.flag(table + "truncate", default=True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rope.dims - 1)
    width = last - first or 0.001
    shares = [min(max((d - first) / width, 0), 1) for d in range(rope.dims // 2)]
    freqs = tuple(f / factor * s + f * (1 - s) for f, s in zip(rope.freqs or (), shares))
    keys = (table + "mscale", table + "mscale_all_dim")
    ours, whole = (c.positive(key) if c.optional(key) else 0 for key in keys)
    usual = strength(ours) / strength(whole) if ours and whole else strength(1)
    return replace(rope, freqs=freqs, strength=c.positive(table + "attention_factor", default=usual))


def _stretched(freq: float, factor: float, low: float, high: float, context: float) -> float:
    """Llama 3's scaling: long waves are stretched, short ones stay, those between are in between."""
    turns = context * freq / (2 * math.pi)
    if turns < low:
        return freq / factor
    if turns > high:
        return freq
    share = (turns - low) / (high - low)
    return (1 - share) * freq / factor + share * freq
