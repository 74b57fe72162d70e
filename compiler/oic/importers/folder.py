"""An imported checkpoint: a folder with the graph and a model file that refers to the checkpoint's weights."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from oic.diagnostics import fail, nearest
from oic.dtypes import Array
from oic.importers.checkpoint import Checkpoint, members
from oic.importers.decoder import Decoder
from oic.importers.decoder_graph import PREFILL, DecoderGraph
from oic.importers.encoder_decoder import EncoderDecoder
from oic.importers.encoder_decoder_graph import EncoderDecoderGraph
from oic.importers.gpt2 import BUFFERS as GPT2_BUFFERS
from oic.importers.gpt2 import gpt2
from oic.importers.llama import BUFFERS as LLAMA_BUFFERS
from oic.importers.llama import gpt_neox, llama
from oic.importers.t5 import BUFFERS as T5_BUFFERS
from oic.importers.t5 import t5
from oic.importers.writer import ACTIVATIONS
from oic.model import Model
from oic.model.model import REFERENCE

GRAPH, MODEL, EXTRA = "graph.oi", "model.json", "extra.npz"
POSITIONS = "learned_positions"
"""Metadata of an imported model: tokens that it has positions for, where these are a table."""
ACTIVATION_KEYS = ("hidden_activation", "hidden_act", "activation_function", "feed_forward_proj")
HEAD_COPY = r"^(lm_head|embed_out)\.weight$"
"""The head of a model whose embedding is its head, stored a second time."""


@dataclass(frozen=True)
class Family:
    """How a family is read, and names of tensors that are no weights (a regular expression)."""

    read: Callable[[Checkpoint], Decoder | EncoderDecoder]
    buffers: str


FAMILIES = {
    "gpt2": Family(gpt2, GPT2_BUFFERS),
    "gpt_neox": Family(gpt_neox, rf"{LLAMA_BUFFERS}|\.attention\.(bias|masked_bias)$"),
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "smollm3", "olmo2", "starcoder2"),
        Family(llama, LLAMA_BUFFERS),
    ),
    **dict.fromkeys(("t5", "mt5"), Family(t5, T5_BUFFERS)),
}
"""By `model_type`."""


@dataclass(frozen=True)
class Imported:
    """What was written.

    features  what the model has, in words
    weights   tensors used, and bytes that they take in the checkpoint
    """

    folder: Path
    family: str
    features: list[str]
    weights: int
    nbytes: int
    context: int

    @property
    def graph(self) -> Path:
        return self.folder / GRAPH

    @property
    def model(self) -> Path:
        return self.folder / MODEL


def import_checkpoint(
    source: str | Path, out: str | Path, *, context: int | None = None, prefill: int = PREFILL, name: str | None = None
) -> Imported:
    """Write the graph of a checkpoint, and a model file that refers to its weights, into a folder.

    context  tokens that the cache has room for, of an encoder–decoder also those of a source; None: as configured
    prefill  tokens that one step takes at most
    name     of the graph; None: after the family
    Raises OicError: `import-family`, `import-config`, `import-unsupported`, `import-weights`, or what is wrong with
    the files.  The folder is as it was then.
    """
    checkpoint = Checkpoint(Model.open(source))
    family = family_of(checkpoint)
    decoder = family.read(checkpoint)
    if decoder.activation not in ACTIVATIONS:
        key = next((k for k in ACTIVATION_KEYS if checkpoint.has(k)), "hidden_act")
        raise checkpoint.unsupported(key, decoder.activation, ", ".join(ACTIVATIONS))
    room = decoder.context if context is None else context
    most = decoder.most
    if room < 1 or prefill < 1 or (most is not None and room > most):
        known = "1 or more" if most is None else f"1 to {most}, the positions that it has learned"
        raise fail("import-config", f"a context of {room} tokens, {prefill} a step: the model takes {known}")
    graph = _graph(replace(decoder, context=room), checkpoint, prefill)
    text = graph.text(name or checkpoint.family)
    copies = f"|{HEAD_COPY}" if decoder.head is None else ""
    checkpoint.settle(graph.weights, family.buffers + copies)
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_all(folder, text, graph.extra, _relative(Path(source), folder), most)
    except OSError as error:
        raise fail("model-write", f"cannot write into '{folder}': {str(error.strerror).lower()}") from None
    used = [n for pattern, layers in graph.weights.items() for n in members(pattern, layers)]
    nbytes = sum(checkpoint.model.info(n).nbytes for n in used)
    return Imported(folder, checkpoint.family, decoder.features(), len(used), nbytes, room)


def _graph(model: Decoder | EncoderDecoder, checkpoint: Checkpoint, prefill: int) -> DecoderGraph | EncoderDecoderGraph:
    """What writes the graph of a model of this kind."""
    if isinstance(model, Decoder):
        return DecoderGraph(model=model, dtype=checkpoint.dtype, prefill=prefill)
    return EncoderDecoderGraph(model=model, dtype=checkpoint.dtype, prefill=prefill)


def family_of(checkpoint: Checkpoint) -> Family:
    """The family that the configuration names."""
    known = ", ".join(sorted(FAMILIES))
    if checkpoint.family not in FAMILIES:
        if not checkpoint.family:
            message = f"{checkpoint.model.name}: no configuration says which family it is ('model_type')"
            raise fail("import-family", message, hint=f"families: {known}")
        near = nearest(checkpoint.family, FAMILIES)
        message = f"{checkpoint.model.name}: 'model_type' is '{checkpoint.family}', a family that is not known"
        raise fail("import-family", message, hint=f"{f'the nearest is {near!r}; ' if near else ''}families: {known}")
    return FAMILIES[checkpoint.family]


def _relative(source: Path, folder: Path) -> str:
    """The source as seen from the folder; where no path leads from one to the other, the whole path."""
    there, here = source.resolve(), folder.resolve()
    try:
        return os.path.relpath(there, here)
    except ValueError:  # another drive
        return str(there)


def _write_all(folder: Path, text: str, extra: dict[str, Array], source: str, most: int | None) -> None:
    """Every file is written whole beside its place before the first takes it; constants of an import before go."""
    files = [source, EXTRA] if extra else [source]
    reference: dict[str, object] = {"format": REFERENCE, "version": 1, "files": files}
    if most is not None:
        reference["metadata"] = {POSITIONS: most}
    contents = {GRAPH: text.encode(), MODEL: (json.dumps(reference, indent=2) + "\n").encode()}
    with tempfile.TemporaryDirectory(dir=folder, prefix=".import-") as scratch:
        for name, content in contents.items():
            (Path(scratch) / name).write_bytes(content)
        if extra:
            np.savez(Path(scratch) / EXTRA, **extra)  # type: ignore[arg-type]  # its one other parameter is a bool
        for name in ([EXTRA] if extra else []) + list(contents):
            os.replace(Path(scratch) / name, folder / name)
    if not extra:
        (folder / EXTRA).unlink(missing_ok=True)
