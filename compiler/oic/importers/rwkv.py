"""RWKV-5 under the names of its author's code: a state of fixed size, whatever has been read."""

from oic.importers.checkpoint import Checkpoint
from oic.importers.family import FamilyGraph, Request
from oic.importers.graph_template import graph_of

RWKV = "rwkv5"
SIGNS = (("emb.weight", "blocks.0.att.time_faaaa", "blocks.0.att.time_mix_g"),)
LAYER = "blocks.{l}."


def program(c: Checkpoint, request: Request) -> FamilyGraph:
    """Source: BlinkDL's `RWKV-LM`, version 5.2, `rwkv_v5_demo.py`; `rwkv.cpp` for files whose decays are factors."""
    request.refuse(c, context=True, cache=True, batch=True)
    embed, inner = c.shape("emb.weight"), c.shape(LAYER + "ffn.key.weight")
    decay, bonus = c.shape(LAYER + "att.time_decay"), c.shape(LAYER + "att.time_faaaa")
    if len(embed) != 2 or len(inner) != 2 or len(decay) not in (2, 3) or decay[2:] not in ((), (1,)) or decay[1] < 2:
        raise c.misshapen("RWKV-5.2", {"emb.weight": embed, "ffn.key.weight": inner, "att.time_decay": decay},
                          "time_decay [heads, size] or [heads, size, 1]")  # fmt: skip
    c.demand(bonus == decay, "att.time_faaaa", f"of shape {list(bonus)}", f"{list(decay)}, as 'att.time_decay'")
    count = c.count(LAYER + "att.time_decay")
    # As the author's code has it for heads of 64, which it divides by 8 before a norm with 1e-5.
    eps = c.positive("ln_x_eps", default=64e-5 if decay[1] == 64 else 1e-5)
    features = [f"{decay[0]} heads of {decay[1]}", "a state of fixed size", "layer norm before sublayers"]
    mix = "1, " * (len(c.shape(LAYER + "att.time_mix_r")) - 1) + "D"
    exponents = not all(_within(c, f"blocks.{i}.att.time_decay") for i in range(count))
    return graph_of(
        RWKV, c, request, features, {"model_type": RWKV, "vocab_size": embed[0]}, layers=count,
        vocab=embed[0], width=embed[1], heads=decay[0], size=decay[1], inner=inner[0], heads_eps=eps, mix=mix,
        key="H, Dh, 1" if len(decay) == 3 else "H, Dh", reshaped=exponents or mix != "D" or len(decay) != 3,
        exponents=exponents,
    )  # fmt: skip


def _within(c: Checkpoint, name: str) -> bool:
    """All values are factors between 0 and 1; what is exponentiated twice is below 0 somewhere."""
    values = c.model.tensor(name)
    return bool((values > 0).all() and (values < 1).all())
