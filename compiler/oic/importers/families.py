"""The table of model families, and which of them a checkpoint is."""

from collections.abc import Callable
from textwrap import fill

from oic.diagnostics import fail, nearest
from oic.importers import bart, gguf, gpt2, gpt_neo, gru, llama, mamba, mamba2, meta, opt, rwkv, t5
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder
from oic.importers.encoder_decoder import EncoderDecoder
from oic.importers.experts import COUNTS, MIXTURES
from oic.importers.family import Family
from oic.importers.transformer import transformer_program

Names = tuple[tuple[str, ...], ...]


def _transformer(
    read: Callable[[Checkpoint], Decoder | EncoderDecoder], buffers: str, signs: Names = (), asks: Names = ()
) -> Family:
    return Family(lambda c, request: transformer_program(c, read(c), buffers, request), signs, asks)


_LLAMA = _transformer(llama.read, llama.BUFFERS, llama.SIGNS, llama.ASKS)
_GRANITE = _transformer(llama.read, llama.BUFFERS, llama.SIGNS, llama.GRANITE_ASKS)
_BART = _transformer(bart.read, bart.BUFFERS, bart.SIGNS, bart.ASKS)
FAMILIES = {
    "gpt2": _transformer(gpt2.read, gpt2.BUFFERS, gpt2.SIGNS),
    "gpt_neo": _transformer(gpt_neo.read, gpt_neo.BUFFERS, gpt_neo.SIGNS),
    "gpt_neox": _transformer(llama.read, llama.NEOX_BUFFERS, llama.NEOX_SIGNS, llama.NEOX_ASKS),
    "opt": _transformer(opt.read, "^$", opt.SIGNS),
    meta.META: _transformer(meta.read, meta.BUFFERS, meta.SIGNS),
    rwkv.RWKV: Family(rwkv.program, rwkv.SIGNS),
    "mamba": Family(mamba.program, mamba.SIGNS),
    "falcon_mamba": Family(mamba.program),
    mamba2.MAMBA2: _transformer(mamba2.read, "^$", mamba2.SIGNS),
    gru.GRU: Family(gru.program, gru.SIGNS),
    **dict.fromkeys(llama.FAMILIES, _LLAMA),
    **dict.fromkeys(("granite", "granitemoehybrid", "granitemoe", "granitemoeshared"), _GRANITE),
    "t5": _transformer(t5.read, t5.BUFFERS, t5.SIGNS, t5.ASKS),
    "mt5": _transformer(t5.read, t5.BUFFERS, (), t5.ASKS),  # its names are those of t5
    "bart": _BART,
    "mbart": _BART,
}
"""By `model_type`."""

ALIASES = dict.fromkeys(("gpt-nano", "gpt-micro", "gpt-mini", "gpt2-medium", "gpt2-large", "gpt2-xl"), "gpt2")
"""Names of sizes that configurations of minGPT give for `model_type`."""


GGUF, GGUF_MAMBA = _transformer(gguf.read, gguf.BUFFERS), Family(mamba.gguf_program)


def family_of(c: Checkpoint) -> Family:
    """The family that the configuration names, or the tensors' names tell."""
    if c.has(gguf.ARCHITECTURE):
        return GGUF_MAMBA if c.value(gguf.ARCHITECTURE) == gguf.MAMBA else GGUF
    for key in COUNTS if c.family not in MIXTURES else ():
        if c.has(key) and c.config[key] not in (0, 1):
            raise c.unsupported(key, c.config[key], "one feed-forward network a layer, no mixture of experts")
    said = "quantization_config.quant_method"
    c.demand(not c.has(said), said, c.value(said), "floats, which a build may store in fewer bits: --weights")
    name = ALIASES.get(c.family, c.family)
    if name in FAMILIES and name != meta.META and any(c.model.has(sign) for (sign,) in meta.SIGNS):
        name = meta.META  # another layout of a Llama, whose configuration may be that of any other
    if name not in FAMILIES:
        name = _told(c)
    c.config["model_type"] = name
    family = FAMILIES[name]
    c.ask(*family.asks)
    return family


def _told(c: Checkpoint) -> str:
    """The one family whose names the tensors have, where the configuration does not say."""
    fitting = [name for name, f in FAMILIES.items() if any(all(map(c.model.has, sign)) for sign in f.signs)]
    known = fill(", ".join(sorted(FAMILIES)), 100, initial_indent=" " * 4, subsequent_indent=" " * 4)
    if c.family:
        text = f"{c.family}_text"  # of a model that sees pictures too
        near = fitting[0] if len(fitting) == 1 else text if text in FAMILIES else nearest(c.family, FAMILIES)
        message = f"{c.model.name}: 'model_type' is '{c.family}', a family that is not known"
        raise fail("import-family", message, hint=f"{f'the nearest is {near!r}; ' if near else ''}families:\n{known}")
    if len(fitting) == 1:
        return fitting[0]
    message = f"{c.model.name}: no configuration says which family it is ('model_type')"
    if fitting:
        message += f"; the names of its tensors fit {', '.join(fitting)}"
        raise fail("import-family", message, hint="--set model_type=…, or --config FILE")
    names = c.model.names()
    message += f", and the names of its tensors tell none: {', '.join(names[:4])}{'…' if len(names) > 4 else ''}"
    raise fail("import-family", message, hint=f"--set model_type=…, or --config FILE; families:\n{known}")
