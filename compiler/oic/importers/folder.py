"""An imported checkpoint: a folder with the graph and a model file that refers to the checkpoint's weights."""

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oic import arguments
from oic.check.bind import bind
from oic.check.check import check
from oic.check.source import parse
from oic.diagnostics import Diagnostic, OicError, fail
from oic.dtypes import Array
from oic.importers.checkpoint import Checkpoint, members
from oic.importers.families import family_of
from oic.importers.family import PREFILL, FamilyGraph, Request
from oic.importers.source import open_checkpoint
from oic.model.gguf import TYPES, block_kind, widened_source, write_widened
from oic.model.hf import CONFIG
from oic.model.model import REFERENCE
from oic.model.tensors import TensorInfo

GRAPH, MODEL, EXTRA, WIDENED = "graph.oi", "model.json", "extra.npz", "widened.safetensors"


@dataclass(frozen=True)
class Imported:
    """What was written.

    features  what the model has, in words
    weights   tensors used, and bytes that they take in the checkpoint
    context   tokens that it has room for; None: a state of fixed size
    warnings  of what may not be meant so
    assumed   keys that nothing says, and what they were taken for
    widened   tensors that were widened to f32, by the type that they are stored in; `written` bytes
    """

    folder: Path
    family: str
    features: list[str]
    weights: int
    nbytes: int
    context: int | None
    assumed: Mapping[str, Any] = field(default_factory=dict)
    widened: Mapping[str, int] = field(default_factory=dict)
    written: int = 0
    warnings: Sequence[Diagnostic] = ()

    @property
    def graph(self) -> Path:
        return self.folder / GRAPH

    @property
    def model(self) -> Path:
        return self.folder / MODEL


def import_checkpoint(
    source: str | Path, out: str | Path, *, config: str | Path | None = None, settings: Mapping[str, Any] | None = None,
    context: int | None = None, prefill: int = PREFILL, name: str | None = None, batch: int | None = None,
    cache: str = "f32",
) -> Imported:
    """Write the graph of a checkpoint, and a model file that refers to its weights, into a folder.

    source    a folder in the Hugging Face layout, a file of weights, or a folder with one
    config    its configuration, a JSON file; None: the `config.json` beside the weights, if there is one
    settings  keys of the configuration that are set, or None: switched off, whatever it says
    context   tokens that the cache has room for, of an encoder–decoder also those of a source; None: as configured
    prefill   tokens that one step takes at most
    name      of the graph; None: after the family
    batch     sequences at once, each at a position of its own; None: one (of an encoder–decoder the size B is 1)
    cache     what keys and values of a decoder are stored in: f32, f16, bf16, or q8 (i8, scales by position and head)
    Raises OicError: `import-family`, `import-config`, `import-unsupported`, `import-weights`, `model-shape`, or what is
    wrong with the files.  The folder is as it was then.
    """
    source, folder = arguments.path("source", source), Path(arguments.path("out", out))
    config, settings = arguments.optional(arguments.path, "config", config), arguments.mapping("settings", settings)
    request = Request(
        arguments.optional(arguments.integer, "context", context), arguments.integer("prefill", prefill),
        arguments.optional(arguments.text, "name", name), arguments.optional(arguments.integer, "batch", batch),
        arguments.text("cache", cache),
    )  # fmt: skip
    if name is not None and not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        hint = "letters, digits and _, a letter first"
        raise fail("import-config", f"'{name}' cannot be the name of a graph", hint=hint)
    checkpoint = open_checkpoint(source, config, settings)
    checkpoint.room = request.context
    program = family_of(checkpoint).write(checkpoint, request)
    checkpoint.settle(program.weights, program.buffers)
    used = [checkpoint.model.info(n) for p, layers in program.weights.items() for n in members(p, layers)]
    blocks = [info for info in used if info.dtype.name in TYPES and info.dtype.kind == "opaque"]
    for info in {info.dtype.name: info for info in blocks}.values():
        block_kind(info)  # refuses, before anything is written
    _check(program, checkpoint, blocks)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [_relative(path, folder) for path in checkpoint.files]
        metadata = checkpoint.given | dict(program.metadata)
        written = _write_all(folder, program.text, program.extra, files, metadata, blocks)
    except OSError as error:
        raise fail("model-write", f"cannot write into '{folder}': {str(error.strerror).lower()}") from None
    assumed = {} if checkpoint.said_in == CONFIG and not checkpoint.given else checkpoint.assumed
    return Imported(
        folder, checkpoint.family, program.features, len(used), sum(info.nbytes for info in used), program.context,
        assumed, dict(Counter(info.dtype.name for info in blocks)), written,
        _beyond(program),
    )  # fmt: skip


def _beyond(program: FamilyGraph) -> list[Diagnostic]:
    """A warning of a context that the configuration is not for."""
    if program.context is None or program.usual is None or program.context <= program.usual:
        return []
    message = f"a context of {program.context} tokens, and the configuration is for {program.usual}"
    hint = "what a model says beyond the positions that it was trained with is often nonsense"
    return [Diagnostic("import-context", message, severity="warning", hint=hint)]


def _check(program: FamilyGraph, checkpoint: Checkpoint, blocks: Sequence[TensorInfo]) -> None:
    """Refuse weights of other shapes or types than the graph's, with its lines, as a build would."""
    resolved = check(parse(program.text, name=GRAPH))
    binding = bind(resolved, checkpoint.model.extended(program.extra, map(widened_source, blocks)), {})
    errors = [d for d in (*resolved.diagnostics, *binding.report.found.values()) if d.severity == "error"]
    if errors:
        raise OicError(errors)


def _relative(source: Path, folder: Path) -> str:
    """The source as seen from the folder; where no path leads from one to the other, the whole path."""
    there, here = source.resolve(), folder.resolve()
    try:
        return os.path.relpath(there, here)
    except ValueError:  # another drive
        return str(there)


def _write_all(
    folder: Path, text: str, extra: dict[str, Array], sources: Sequence[str], metadata: Mapping[str, Any],
    blocks: Sequence[TensorInfo],
) -> int:  # fmt: skip
    """Every file is written whole beside its place before the first takes it; those of an import before go.

    blocks  tensors that are widened; the result is the bytes that they take
    """
    made = [name for name, there in ((EXTRA, extra), (WIDENED, blocks)) if there]
    reference: dict[str, object] = {"format": REFERENCE, "version": 1, "files": [*sources, *made]}
    if metadata:
        reference["metadata"] = dict(metadata)
    contents = {GRAPH: text.encode(), MODEL: (json.dumps(reference, indent=2) + "\n").encode()}
    nbytes = 0
    with tempfile.TemporaryDirectory(dir=folder, prefix=".import-") as scratch:
        for name, content in contents.items():
            (Path(scratch) / name).write_bytes(content)
        if extra:
            np.savez(Path(scratch) / EXTRA, **extra)  # type: ignore[arg-type]  # its one other parameter is a bool
        if blocks:
            nbytes = write_widened(Path(scratch) / WIDENED, blocks)
        for name in [*made, *contents]:
            os.replace(Path(scratch) / name, folder / name)
    for name in {EXTRA, WIDENED} - set(made):
        (folder / name).unlink(missing_ok=True)
    return nbytes
