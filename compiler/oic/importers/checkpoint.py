"""What an importer reads: a checkpoint's configuration and weights."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oic.diagnostics import OicError, did_you_mean, fail
from oic.dtypes import FLT, DType, f32, f64
from oic.model import Model
from oic.model.hf import CONFIG

LISTED = 8  # names shown of a longer list


class Checkpoint:
    """A model whose configuration is read key by key.

    model    configuration as metadata, keys of nested tables joined by dots; tensors by name
    family   `model_type` of the configuration
    absent   keys whose value is `null`: a feature that is switched off, whatever the family's default
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.config: dict[str, Any] = dict(model.metadata)
        self.family = str(self.config.get("model_type", ""))
        folder = model.path if model.path is not None and model.path.is_dir() else None
        config = {} if folder is None else json.loads((Path(folder) / CONFIG).read_text(encoding="utf-8"))
        self.absent = {key for key, value in config.items() if value is None}

    def assume(self, defaults: Mapping[str, Any]) -> None:
        """What the configuration means where it says nothing."""
        self.config = {k: v for k, v in defaults.items() if k not in self.absent} | self.config

    # -- configuration

    def has(self, key: str) -> bool:
        """The key is there with a value."""
        return self.config.get(key) is not None

    def number(self, *keys: str, default: float | None = None) -> float:
        """The value of the first of the keys that is there; `OicError` `import-config` if none is a number."""
        value = self._first(keys, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(keys[0], value, "a number")
        return value

    def size(self, *keys: str, default: int | None = None) -> int:
        """A positive integer, likewise."""
        value = self._first(keys, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._wrong(keys[0], value, "a positive integer")
        return value

    def flag(self, *keys: str, default: bool) -> bool:
        """A bool, likewise."""
        value = self._first(keys, default)
        if not isinstance(value, bool):
            raise self._wrong(keys[0], value, "true or false")
        return value

    def text(self, *keys: str, default: str | None = None) -> str:
        """A text, likewise."""
        value = self._first(keys, default)
        if not isinstance(value, str):
            raise self._wrong(keys[0], value, "a text")
        return value

    def items(self, key: str, count: int) -> list[Any] | None:
        """A list with one item a layer, or None where the key is not there."""
        if not self.has(key):
            return None
        value = self.config[key]
        if not isinstance(value, list) or len(value) < count:
            raise self._wrong(key, value, f"a list of {count} items, one a layer")
        return value[:count]

    def _first(self, keys: tuple[str, ...], default: Any) -> Any:
        for key in keys:
            if self.has(key):
                return self.config[key]
        return default

    def _wrong(self, key: str, value: Any, wanted: str) -> OicError:
        if value is None:
            hint = did_you_mean(key, [k for k in self.config if k != key])
            return fail("import-config", f"{self.model.name}: config.json has no '{key}'", hint=hint)
        return fail("import-config", f"{self.model.name}: '{key}' is {value!r}, and should be {wanted}")

    def unsupported(self, key: str, value: Any, supported: str) -> OicError:
        """The refusal of a feature that no graph is written for."""
        return fail("import-unsupported", f"{self.model.name}: '{key}' is {value!r}", hint=f"supported: {supported}")

    def require(self, key: str, value: Any, *good: Any) -> None:
        """Refuse a value that is none of the supported ones."""
        if value not in good:
            raise self.unsupported(key, value, ", ".join(map(repr, good)))

    # -- weights

    def present(self, name: str) -> bool:
        """The tensor is there, for layer 0 of a pattern."""
        return self.model.has(name.replace("{l}", "0"))

    def prefix(self, *candidates: str, probe: str) -> str:
        """The first prefix with which the probed tensor is there; the first one if none is."""
        return next((c for c in candidates if self.model.has(c + probe)), candidates[0])

    def dtype(self, name: str, layers: int) -> DType:
        """The element type that the tensors of a name are stored in; f32 where they differ or are no such float."""
        found = {self.model.info(n).dtype for n in members(name, layers) if self.model.has(n)}
        one = found.pop() if len(found) == 1 else None
        return one if one in FLT and one is not f64 else f32

    def settle(self, wanted: dict[str, int], buffers: str) -> None:
        """Compare the weights asked for with those that are there; `OicError` `import-weights` with both differences.

        wanted    by name or pattern, how many layers
        buffers   a regular expression of names that are constants of the original code, not weights
        """
        names = {n for pattern, layers in wanted.items() for n in members(pattern, layers)}
        missing = sorted(n for n in names if not self.model.has(n))
        over = sorted(n for n in self.model.names() if n not in names and not re.search(buffers, n))
        if not missing and not over:
            return
        lines = []
        for name in missing[:LISTED]:
            near = did_you_mean(name, over)
            lines.append(f"missing: {name}" + (f" ({near})" if near else ""))
        lines += [f"… and {len(missing) - LISTED} more missing"] * (len(missing) > LISTED)
        lines += [f"not asked for: {name}" for name in over[:LISTED]]
        lines += [f"… and {len(over) - LISTED} more not asked for"] * (len(over) > LISTED)
        message = f"{self.model.name}: {len(missing)} weights are missing, and {len(over)} have no place"
        raise fail("import-weights", message, hint="\n    ".join(["", *lines]).rstrip())


def members(pattern: str, layers: int) -> list[str]:
    """The tensors of a pattern: one a layer, or the name itself."""
    return [pattern.replace("{l}", str(i)) for i in range(layers)] if "{l}" in pattern else [pattern]
