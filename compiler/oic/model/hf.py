"""A folder in the Hugging Face layout: config.json beside safetensors, in one file or in shards.

Every scalar of config.json is metadata, nested keys joined with dots; positive integers are
sizevars too (SPEC, section 9).  Shards are named by `model.safetensors.index.json`:
{"weight_map": {tensor: file}}.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from oic.diagnostics import OicError, fail
from oic.model import jsontext, safetensors
from oic.model.budget import Budget
from oic.model.file import ModelFile, cannot_open
from oic.model.tensors import Contents, Metadata, TensorSource

CONFIG = "config.json"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_CONFIG = 64 << 20  # bytes


def read(folder: Path) -> Contents:
    """The contents of a folder; an `OicError` `model-format` if a part is not there."""
    try:
        present = set(os.listdir(folder))
    except OSError as error:
        raise cannot_open(folder, error) from None
    if CONFIG not in present:
        raise _incomplete(folder, present, f"there is no {CONFIG}")
    budget = Budget()
    file = ModelFile.open(folder / CONFIG, budget)
    config = jsontext.flatten(file, _json(file, CONFIG))
    if SINGLE in present:
        weights = safetensors.read(ModelFile.open(folder / SINGLE, budget))
    elif INDEX in present:
        weights = _shards(folder, budget)
    else:
        raise _incomplete(folder, present, f"there is neither {SINGLE} nor {INDEX}")
    metadata = weights.metadata | config
    return Contents(weights.entries, jsontext.sizes_among(metadata), metadata)


def configuration(path: Path) -> tuple[dict[str, Metadata], set[str]]:
    """A configuration file: its values by dotted key, and the keys that are `null`."""
    file = ModelFile.open(path)
    return _values_and_nulls(file, _json(file, path.name))


def flattened(settings: Mapping[str, Any]) -> tuple[dict[str, Metadata], set[str]]:
    """Settings given by a caller, likewise; `OicError` `import-config` for values that JSON does not have."""
    try:
        json.dumps(settings)
    except (TypeError, ValueError, RecursionError) as error:
        raise fail("import-config", f"settings: {str(error).lower()}") from None
    return _values_and_nulls(ModelFile("settings", b""), dict(settings))


def _values_and_nulls(file: ModelFile, tree: dict[str, Any]) -> tuple[dict[str, Metadata], set[str]]:
    return jsontext.flatten(file, tree), {key for key, value in tree.items() if value is None}


def shard_names(folder: Path) -> list[str]:
    """The files that the index of a folder names."""
    index = ModelFile.open(folder / INDEX)
    return sorted(set(_weight_map(index, _json(index, INDEX)).values()))


def pickled(present: set[str]) -> str | None:
    """What to do where PyTorch's pickles are all there is."""
    if not any(name.endswith((".bin", ".pt", ".pth")) for name in present):
        return None
    return "PyTorch's pickled weights are not read; save them as safetensors"


def _incomplete(folder: Path, present: set[str], fact: str) -> OicError:
    others = sorted(n for n in present if n.endswith(".safetensors") or n == "model.json")
    hint = f"open the file itself: '{folder / others[0]}'" if others else None
    return fail("model-format", f"{folder}: not a Hugging Face model: {fact}", hint=hint or pickled(present))


def _json(file: ModelFile, field: str) -> dict[str, object]:
    file.require(file.size <= MAX_CONFIG, "size", None, f"{file.size} bytes, but at most {MAX_CONFIG} are read")
    return jsontext.parse(file, 0, file.size, field)


def _shards(folder: Path, budget: Budget) -> Contents:
    index = ModelFile.open(folder / INDEX, budget)
    homes = _weight_map(index, _json(index, INDEX))
    entries: dict[str, TensorSource] = {}
    metadata: dict[str, Metadata] = {}
    for name in sorted(set(homes.values())):
        shard = safetensors.read(ModelFile.open(folder / name, budget))
        for tensor in shard.entries:
            if tensor in entries:
                fact = f"{tensor!r} is in {Path(entries[tensor].info.file).name} and in {name}"
                raise index.bad("model-duplicate", "shards", None, fact)
        entries |= shard.entries
        metadata |= shard.metadata
    for tensor, home in homes.items():
        there = tensor in entries and Path(entries[tensor].info.file).name == home
        index.require(there, "'weight_map'", None, f"{tensor!r} is not in {home}")
    return Contents(entries, {}, metadata)


def _weight_map(index: ModelFile, given: dict[str, object]) -> dict[str, str]:
    """The file of every tensor; each a plain name in the same folder."""
    homes = given.get("weight_map")
    if not isinstance(homes, dict) or not homes:
        raise index.bad("model-field", "'weight_map'", None, "not a map from tensors to files")
    for tensor, home in homes.items():
        plain = isinstance(home, str) and home not in ("", ".", "..") and "\\" not in home and "\0" not in home
        fact = f"{str(home)[:60]!r}, for {tensor[:60]!r}, is not the name of a file in this folder"
        index.require(plain and PurePosixPath(home).name == home, "'weight_map'", None, fact)
    return homes
