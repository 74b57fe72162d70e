"""What an importer reads: a checkpoint's configuration and weights."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oic.diagnostics import OicError, did_you_mean, fail
from oic.dtypes import FLT, DType, f32, f64, i64
from oic.model import Model

LISTED = 8  # names shown of a longer list
Layers = int | Sequence[int]
"""How many layers there are, or which ones have something."""
STACKED = "[{l}]"
"""End of a pattern that names parts of one tensor, not tensors: `wq[{l}]` is part l of `wq`."""


@dataclass(eq=False)
class Checkpoint:
    """A model whose configuration is read key by key.

    model    tensors by name
    config   keys of nested tables joined by dots
    files    what the model was read from: what a reference to it names
    said_in  name of the file that the configuration came from; "" where there is none
    given    what was said beside the files of the model: by another configuration or key by key
    absent   keys whose value is `null`: a feature that is switched off, whatever the family's default
    usual    what the family means by keys that nothing says
    assumed  keys that nothing says, and what they were taken for
    scope    what precedes a key in the files of an architecture, and may be left out
    room     tokens that the cache is to have room for; None: as configured
    """

    model: Model
    config: dict[str, Any]
    files: list[Path] = field(default_factory=list)
    said_in: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    usual: dict[str, Any] = field(default_factory=dict)
    assumed: dict[str, Any] = field(default_factory=dict)
    scope: str = ""
    room: int | None = None

    @property
    def family(self) -> str:
        """`model_type` of the configuration."""
        return str(self.config.get("model_type", ""))

    def assume(self, defaults: Mapping[str, Any]) -> None:
        """What the configuration means where it says nothing."""
        self.usual |= {k: v for k, v in defaults.items() if k not in self.absent}

    def ask(self, *wanted: tuple[str, ...]) -> None:
        """Refuse a model without a configuration where one of several keys of the same meaning is not set.

        For what neither shapes nor a convention tell.  Raises `OicError` `import-config` that names the first of each.
        """
        missing = [keys[0] for keys in wanted if not any(self.has(key) for key in keys)]
        if missing and not self.said_in:
            message = f"{self.model.name}: nothing says {', '.join(map(repr, missing))}, which weights do not tell"
            raise fail("import-config", message, hint=" ".join(f"--set {k}=…" for k in missing) + ", or --config FILE")

    # -- configuration

    def _said(self, key: str) -> Any:
        found = self.config.get(key)
        return self.config.get(self.scope + key) if found is None else found

    def value(self, key: str) -> Any:
        """What is said for a key, or the family means by it; None: nothing."""
        found = self._said(key)
        if found is None and key in self.usual:
            found = self.assumed[key] = self.usual[key]
        return found

    def has(self, key: str) -> bool:
        """The key is there with a value."""
        return self.value(key) is not None

    def number(self, *keys: str, default: float | None = None) -> float:
        """The value of the first of the keys that is there; `OicError` `import-config` if it is no finite f64."""
        value = self._first(keys, default)
        self._should(isinstance(value, int | float) and not isinstance(value, bool), keys, value, "a number")
        # JSON has infinities, NaN, and integers beyond all floats.
        self._should(abs(value) <= sys.float_info.max, keys, value, "a finite number of 64 bits")
        return value

    def optional(self, key: str) -> float | None:
        """A number likewise, or None where the key is not there."""
        return self.number(key) if self.has(key) else None

    def positive(self, *keys: str, default: float | None = None) -> float:
        """A number above 0, likewise."""
        value = self.number(*keys, default=default)
        self._should(value > 0, keys, value, "above 0")
        return value

    def layers(self, *keys: str, most: int | None = None, told: int = 0) -> int:
        """A number of layers, as a size; not more than `most`, or than there are tensors."""
        value, known = self.size(*keys, told=told), len(self.model.names()) if most is None else most
        self._should(value <= known, keys, value, f"at most {known}, by the weights that are there")
        return value

    def size(self, *keys: str, default: int | None = None, told: int = 0) -> int:
        """A positive integer, likewise; where none of the keys is there, what shapes tell, unless that is 0."""
        self.fill(keys, told)
        value = self._first(keys, default)
        whole = isinstance(value, int) and not isinstance(value, bool)
        self._should(whole and value >= 1, keys, value, "a positive integer")
        self._should(value <= i64.high, keys, value, "an integer of 64 bits")
        return value

    def flag(self, *keys: str, default: bool) -> bool:
        """A bool, likewise; a default is no assumption, because features are off where nothing says."""
        value = next((self.value(key) for key in keys if self.has(key)), default)
        self._should(isinstance(value, bool), keys, value, "true or false")
        return value

    def text(self, *keys: str, default: str | None = None) -> str:
        """A text, likewise."""
        value = self._first(keys, default)
        self._should(isinstance(value, str), keys, value, "a text")
        return value

    def items(self, key: str, count: int) -> list[Any] | None:
        """A list with one item a layer, or None where the key is not there."""
        if not self.has(key):
            return None
        value = self.value(key)
        listed = isinstance(value, list) and len(value) >= count
        self._should(listed, (key,), value, f"a list of {count} items, one a layer")
        return value[:count]

    def factors(
        self, key: str, count: int, least: float = -math.inf, what: str = "finite factors"
    ) -> tuple[float, ...]:
        """A list of so many finite numbers above `least`, and what these are; `OicError` `import-unsupported`."""
        value, most = self.value(key), sys.float_info.max
        good = isinstance(value, list) and all(type(f) in (int, float) and max(least, -most) < f <= most for f in value)
        shown = f"a list of {len(value)}" if isinstance(value, list) else value
        self.demand(good and len(value) == count, key, shown, f"{count} {what}")
        return tuple(map(float, value))

    def same(self, key: str, layers: Sequence[bool], of: str) -> None:
        """What a key says of some layers, by a list with one item a layer too, is one thing."""
        if not isinstance(self.value(key), list):
            return
        said = [item for item, counts in zip(self.items(key, len(layers)) or [], layers) if counts]
        self.demand(said == said[:1] * len(said), key, self.value(key), f"one number in all layers with {of}")
        self.config[key] = said[0]

    def _first(self, keys: tuple[str, ...], default: Any) -> Any:
        for key in keys:
            if self.has(key):
                return self.value(key)
        if default is not None:
            self.assumed[next((key for key in keys if "." not in key), keys[0])] = default
        return default

    def _should(self, holds: bool, keys: tuple[str, ...], value: Any, wanted: str) -> None:
        """Refuse a value that is not what is wanted."""
        key = next(filter(self.has, keys), keys[0])
        if not holds and value is None:
            self.ask(keys)
            hint = did_you_mean(key, [k for k in self.config if k not in key]) or f"--set {key}=…"
            raise fail("import-config", f"{self.model.name}: {self.said_in} has no '{key}'", hint=hint)
        if not holds:
            raise fail("import-config", f"{self.model.name}: '{key}' is {value!r}, and should be {wanted}")

    def unsupported(self, key: str, value: Any, supported: str) -> OicError:
        """The refusal of a feature that no graph is written for."""
        return fail("import-unsupported", f"{self.model.name}: '{key}' is {value!r}", hint=f"supported: {supported}")

    def misshapen(self, what: str, shapes: Mapping[str, tuple[int, ...]], supported: str) -> OicError:
        """The refusal of tensors that no model of a kind has."""
        found = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        message = f"{self.model.name}: shapes of no {what}: {found}"
        return fail("import-unsupported", message, hint=f"supported: {supported}")

    def demand(self, holds: bool, key: str, value: Any, supported: str) -> None:
        """Refuse a value of which something does not hold that the graph needs."""
        if not holds:
            raise self.unsupported(key, value, supported)

    def require(self, key: str, value: Any, *good: Any) -> None:
        """Refuse a value that is none of the supported ones."""
        self.demand(value in good, key, value, ", ".join(map(repr, good)))

    def deny(self, *keys: str) -> None:
        """Refuse weights that are there although the first of the keys that is there says that there are none."""
        key = next(filter(self.has, keys), keys[0])
        self.demand(self.flag(key, default=True), key, False, "true, as the weights say")

    # -- weights

    def present(self, name: str) -> bool:
        """The tensor is there, for any layer of a pattern, and its expert 0."""
        return self.model.has(self.first(name))

    def first(self, name: str) -> str:
        """The first tensor of a pattern, or the name itself."""
        (name,) = of_experts(name, 1)
        numbers = range(len(self.model.names())) if "{l}" in name and not name.endswith(STACKED) else ()
        return next((n for i in numbers if self.model.has(n := members(name, [i])[0])), members(name, 1)[0])

    def there(self, name: str) -> str | None:
        """The name of a tensor, or pattern, that may be there; None where it is not."""
        return name if self.present(name) else None

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, that of the first layer of a pattern; () where it is not there."""
        if not self.present(name):
            return ()
        shape = self.model.info(self.first(name)).shape
        return shape[1:] if name.endswith(STACKED) else shape

    def extent(self, name: str, axis: int) -> int:
        """The extent of a matrix along an axis; 0 where it is not there, or is no matrix."""
        shape = self.shape(name)
        return shape[axis] if len(shape) == 2 else 0

    def count(self, pattern: str) -> int:
        """Layers up to the last that a pattern has a tensor for."""
        if pattern.endswith(STACKED):
            return self.model.info(members(pattern, 1)[0]).shape[0] if self.present(pattern) else 0
        numbers = range(len(self.model.names()))
        return max((i + 1 for i in numbers if self.model.has(pattern.replace("{l}", str(i)))), default=0)

    def fill(self, keys: tuple[str, ...], told: int) -> None:
        """What weights tell, for the first of several keys of one meaning where none is said; 0: they tell nothing."""
        if told and keys[0] not in self.absent and all(self._said(key) is None for key in keys):
            self.config[keys[0]] = told

    def equal(self, a: str, b: str) -> bool:
        """Two tensors have the same elements; they are read a part at a time."""
        if not (self.model.has(a) and self.model.has(b)) or self.model.info(a).shape != self.model.info(b).shape:
            return False
        if self.model.info(a).dtype is not self.model.info(b).dtype:
            return np.array_equal(self.model.tensor(a), self.model.tensor(b))
        return all(map(np.array_equal, self.model.parts(a), self.model.parts(b)))

    def prefix(self, *candidates: str, probe: str) -> str:
        """The first prefix with which the probed tensor is there; the first one if none is."""
        return next((c for c in candidates if self.model.has(c + probe)), candidates[0])

    def dtype(self, name: str, layers: Layers) -> DType:
        """The element type that the tensors of a name are stored in; f32 where they differ or are no such float."""
        found = {self.model.info(n).dtype for n in members(name, layers) if self.model.has(n)}
        one = found.pop() if len(found) == 1 else None
        return one if one in FLT and one is not f64 else f32

    def settle(self, wanted: dict[str, Layers], buffers: str) -> None:
        """Compare the weights asked for with those that are there; `OicError` `import-weights` with both differences.

        wanted    by name or pattern, the layers
        buffers   a regular expression of names that are constants of the original code, not weights
        """
        names = {n for pattern, layers in wanted.items() for n in members(pattern, layers)}
        missing = sorted(n for n in names if not self.model.has(n))
        over = sorted(n for n in self.model.names() if n not in names and not re.search(buffers, n))
        if not missing and not over:
            return
        lines = []
        for what, found, others in (("missing", missing, over), ("not asked for", over, [])):
            for name in found[:LISTED]:
                near = did_you_mean(name, others)
                lines.append(f"{what}: {name}" + (f" ({near})" if near else ""))
            lines += [f"… and {len(found) - LISTED} more {what}"] * (len(found) > LISTED)
        message = f"{self.model.name}: {len(missing)} weights are missing, and {len(over)} have no place"
        raise fail("import-weights", message, hint="\n    ".join(["", *lines]).rstrip())


def of_experts(pattern: str, count: int) -> list[str]:
    """The patterns of a pattern with `{e}`: one an expert."""
    return [pattern.replace("{e}", str(e)) for e in range(count)] if "{e}" in pattern else [pattern]


def members(pattern: str, layers: Layers) -> list[str]:
    """The tensors of a pattern: one a layer, the one that has all of them, or the name itself."""
    if pattern.endswith(STACKED):
        return [pattern.removesuffix(STACKED)]
    numbers = range(layers) if isinstance(layers, int) else layers
    return [pattern.replace("{l}", str(i)) for i in numbers] if "{l}" in pattern else [pattern]
