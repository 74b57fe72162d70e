"""An imported checkpoint: a folder with the graph and a model file that refers to the checkpoint's weights."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oic.diagnostics import fail
from oic.dtypes import Array
from oic.importers.checkpoint import members
from oic.importers.families import family_of
from oic.importers.family import PREFILL, Request
from oic.importers.source import open_checkpoint
from oic.model.hf import CONFIG
from oic.model.model import REFERENCE

GRAPH, MODEL, EXTRA = "graph.oi", "model.json", "extra.npz"

@dataclass(frozen=True)
class Imported:
    """What was written.

    features  what the model has, in words
    weights   tensors used, and bytes that they take in the checkpoint
    context   tokens that it has room for; None: a state of fixed size
    assumed   keys that nothing says, and what they were taken for
    """

    folder: Path
    family: str
    features: list[str]
    weights: int
    nbytes: int
    context: int | None
    assumed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def graph(self) -> Path:
        return self.folder / GRAPH

    @property
    def model(self) -> Path:
        return self.folder / MODEL


def import_checkpoint(
    source: str | Path, out: str | Path, *, config: str | Path | None = None, settings: Mapping[str, Any] | None = None,
    context: int | None = None, prefill: int = PREFILL, name: str | None = None,
) -> Imported:
    """Write the graph of a checkpoint, and a model file that refers to its weights, into a folder.

    source    a folder in the Hugging Face layout, a file of weights, or a folder with one
    config    its configuration, a JSON file; None: the `config.json` beside the weights, if there is one
    settings  keys of the configuration that are set, or None: switched off, whatever it says
    context   tokens that the cache has room for, of an encoder–decoder also those of a source; None: as configured
    prefill   tokens that one step takes at most
    name      of the graph; None: after the family
    Raises OicError: `import-family`, `import-config`, `import-unsupported`, `import-weights`, or what is wrong with
    the files.  The folder is as it was then.
    """
    checkpoint = open_checkpoint(source, config, settings)
    program = family_of(checkpoint).write(checkpoint, Request(context, prefill, name))
    checkpoint.settle(program.weights, program.buffers)
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [_relative(path, folder) for path in checkpoint.files]
        _write_all(folder, program.text, program.extra, files, checkpoint.given | dict(program.metadata))
    except OSError as error:
        raise fail("model-write", f"cannot write into '{folder}': {str(error.strerror).lower()}") from None
    used = [n for pattern, layers in program.weights.items() for n in members(pattern, layers)]
    nbytes = sum(checkpoint.model.info(n).nbytes for n in used)
    assumed = {} if checkpoint.said_in == CONFIG and not checkpoint.given else checkpoint.assumed
    return Imported(folder, checkpoint.family, program.features, len(used), nbytes, program.context, assumed)


def _relative(source: Path, folder: Path) -> str:
    """The source as seen from the folder; where no path leads from one to the other, the whole path."""
    there, here = source.resolve(), folder.resolve()
    try:
        return os.path.relpath(there, here)
    except ValueError:  # another drive
        return str(there)


def _write_all(
    folder: Path, text: str, extra: dict[str, Array], sources: Sequence[str], metadata: Mapping[str, Any]
) -> None:
    """Every file is written whole beside its place before the first takes it; constants of an import before go."""
    files = [*sources, EXTRA] if extra else [*sources]
    reference: dict[str, object] = {"format": REFERENCE, "version": 1, "files": files}
    if metadata:
        reference["metadata"] = dict(metadata)
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
