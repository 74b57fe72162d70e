"""What `oic import` reads: folders and files of weights, and configurations."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oic.diagnostics import fail
from oic.importers.checkpoint import Checkpoint
from oic.model import Model, hf
from oic.model.file import cannot_open
from oic.model.others import WEIGHTS

PREFERRED = ".safetensors"  # where one model lies in a folder in several formats


def open_checkpoint(
    source: str | Path, config: str | Path | None = None, settings: Mapping[str, Any] | None = None
) -> Checkpoint:
    """The weights of a source with all that is said of them.

    source    a folder in the Hugging Face layout, one with a file of weights, or such a file
    config    a configuration in JSON; None: the `config.json` beside the weights, if there is one
    settings  keys that are said before anything else; None switches off
    Later ones yield to earlier ones: settings, `config`, the folder's configuration, metadata of the weights.
    """
    path = Path(source)
    files = _files(path)
    model = Model.open(files[0]) if len(files) == 1 else Model.of_files(files)
    home = path if path.is_dir() else path.parent
    said: Path | None = None if config is None else Path(config)
    if said is None and path.suffix.lower() != ".gguf" and (home / hf.CONFIG).is_file():
        said = home / hf.CONFIG
    found, absent = ({}, set()) if said is None else hf.configuration(said)
    more, off = hf.flattened(settings or {})
    absent = (absent - set(more)) | off
    kept = {k: v for k, v in (model.metadata | found).items() if k not in off}
    own = said is not None and said == path / hf.CONFIG and files == [path]
    given = more if own else {k: v for k, v in found.items() if k not in off} | more
    return Checkpoint(model, kept | more, files, said.name if said else "", given, absent)


def _files(path: Path) -> list[Path]:
    """What a model is read from: the folder itself, its shards, or one file."""
    if not path.is_dir():
        return _split(path)
    try:
        present = set(os.listdir(path))
    except OSError as error:
        raise cannot_open(path, error) from None
    if hf.CONFIG in present and present & {hf.SINGLE, hf.INDEX}:
        return [path]
    if hf.SINGLE in present:
        return [path / hf.SINGLE]
    if hf.INDEX in present:
        return [path / name for name in hf.shard_names(path)]
    weights = sorted(name for name in present if name.lower().endswith(WEIGHTS))
    chosen = [name for name in weights if name.lower().endswith(PREFERRED)] or weights
    if chosen and len(files := _split(path / chosen[0])) == len(chosen):
        return files
    if chosen:
        listed = ", ".join(chosen[:8]) + ("…" if len(chosen) > 8 else "")
        raise fail("model-format", f"{path}: there are several files of weights: {listed}", hint="name one of them")
    if {"graph.oi", "model.json"} <= present:
        raise fail("model-format", f"{path}: this was imported; the source is what its model.json names")
    hint = hf.pickled(present) or f"weights are {hf.SINGLE} and its shards, or a file: {', '.join(WEIGHTS)}"
    raise fail("model-format", f"{path}: there are no weights that are read", hint=hint)


def _split(path: Path) -> list[Path]:
    """All files of a GGUF model that is split, `NAME-00001-of-00003.gguf` and so on; else the file itself."""
    found = re.fullmatch(r"(.*-)\d{5}-of-(\d{5})(\.gguf)", path.name)
    if found is None:
        return [path]
    return [path.with_name(f"{found[1]}{i:05}-of-{found[2]}{found[3]}") for i in range(1, int(found[2]) + 1)]
