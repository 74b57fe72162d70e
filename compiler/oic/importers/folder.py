"""An imported checkpoint: a folder with the graph and a model file that refers to the checkpoint's weights."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from oic.diagnostics import fail, nearest
from oic.importers.checkpoint import Checkpoint, members
from oic.importers.decoder import Decoder
from oic.importers.decoder_graph import ACTIVATIONS, PREFILL, DecoderGraph
from oic.importers.gpt2 import BUFFERS as GPT2_BUFFERS
from oic.importers.gpt2 import gpt2
from oic.importers.llama import BUFFERS as LLAMA_BUFFERS
from oic.importers.llama import gpt_neox, llama
from oic.model import Model
from oic.model.model import REFERENCE

GRAPH, MODEL, EXTRA = "graph.oi", "model.json", "extra.npz"


@dataclass(frozen=True)
class Family:
    """How a family is read, and names of tensors that are no weights (a regular expression)."""

    read: Callable[[Checkpoint], Decoder]
    buffers: str


FAMILIES = {
    "gpt2": Family(gpt2, GPT2_BUFFERS),
    "gpt_neox": Family(gpt_neox, rf"{LLAMA_BUFFERS}|\.attention\.(bias|masked_bias)$"),
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "smollm3", "olmo2", "starcoder2"),
        Family(llama, LLAMA_BUFFERS),
    ),
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

    context  tokens that the cache has room for; None: what the configuration says
    prefill  tokens that one step takes at most
    name     of the graph; None: after the family
    Raises OicError: `import-family`, `import-config`, `import-unsupported`, `import-weights`, or what is wrong with
    the files.  The folder is as it was then.
    """
    checkpoint = Checkpoint(Model.open(source))
    family = family_of(checkpoint)
    decoder = family.read(checkpoint)
    if decoder.activation not in ACTIVATIONS:
        raise checkpoint.unsupported("hidden_act", decoder.activation, ", ".join(ACTIVATIONS))
    most = decoder.context
    room = most if context is None else context
    if room < 1 or (decoder.positions and room > decoder.rows - decoder.offset):
        raise fail("import-config", f"a context of {room} tokens, but the model has positions for 1 to {most}")
    graph = DecoderGraph(replace(decoder, context=room), checkpoint.dtype, prefill)
    text = graph.text(name or checkpoint.family)
    checkpoint.settle(graph.weights, family.buffers)
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [os.path.relpath(source, folder)]
        if graph.extra:
            _replace(folder / EXTRA, lambda stream: np.savez(stream, **graph.extra))  # type: ignore[arg-type]
            files.append(EXTRA)
        reference = json.dumps({"format": REFERENCE, "version": 1, "files": files}, indent=2) + "\n"
        _replace(folder / GRAPH, lambda stream: stream.write(text.encode()))
        _replace(folder / MODEL, lambda stream: stream.write(reference.encode()))
    except OSError as error:
        raise fail("model-write", f"cannot write into '{folder}': {str(error.strerror).lower()}") from None
    used = [n for pattern, layers in graph.weights.items() for n in members(pattern, layers)]
    nbytes = sum(checkpoint.model.info(n).nbytes for n in used)
    return Imported(folder, checkpoint.family, decoder.features(), len(used), nbytes, room)


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


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """The file appears complete or not at all."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
