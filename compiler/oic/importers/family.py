"""What a model family is to the importer: how it is told, and how its graph is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oic.diagnostics import fail
from oic.dtypes import Array
from oic.importers.checkpoint import Checkpoint, Layers

PREFILL = 128  # tokens of one step at most, unless the importer is told otherwise


@dataclass(frozen=True)
class Request:
    """What the user chose.

    context  tokens that caches have room for; None: what the configuration says
    prefill  tokens that one step takes at most
    name     of the graph; None: after the family
    batch    sequences at once; None: one, of a decoder without an axis for them
    cache    what a decoder's keys and values are stored in
    """

    context: int | None = None
    prefill: int = PREFILL
    name: str | None = None
    batch: int | None = None
    cache: str = "f32"

    def wide(self, c: Checkpoint, what: str) -> None:
        """Refuse a narrow cache, for a family whose graph has none."""
        if self.cache != "f32":
            hint = "a cache of f16, bf16 or q8 is for decoders"
            raise fail("import-config", f"{c.model.name}: the graph of '{c.family}' has {what}", hint=hint)

    def recurrent(self, c: Checkpoint) -> None:
        """Refuse what is of caches and batches, for a family whose state has a fixed size."""
        if self.context is not None or self.prefill < 1:
            message = "a state of fixed size has no context; steps take 1 token or more"
            raise fail("import-config", f"{c.model.name}: {message}")
        self.alone(c)

    def alone(self, c: Checkpoint) -> None:
        """Refuse a batch and a narrow cache, for a family whose graph has neither."""
        self.wide(c, "no cache of keys and values")
        self.whole(c)

    def whole(self, c: Checkpoint) -> None:
        """Refuse a batch, for a family whose graph has none."""
        if self.batch is not None:
            hint = "several prompts run as sessions: `oic generate --threads`"
            raise fail("import-config", f"{c.model.name}: the graph of '{c.family}' has no batch", hint=hint)


@dataclass(frozen=True)
class FamilyGraph:
    """A family's graph.

    features  what the model has, in words
    weights   the tensors that it asks for: by name or pattern, the layers
    buffers   a regular expression of names in the checkpoint that are no weights
    extra     constants that no checkpoint has
    context   tokens that it has room for; None: a state of fixed size
    usual     those that the configuration is for, where it says so
    metadata  what generation has to know beside the configuration
    """

    text: str
    features: list[str]
    weights: dict[str, Layers]
    buffers: str
    extra: dict[str, Array] = field(default_factory=dict)
    context: int | None = None
    usual: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """One row of the table of families.

    write   the graph of a checkpoint
    signs   sets of tensor names, each of which tells the family where no configuration does
    asks    keys (of one meaning) that a model without a configuration has to be told, though a configuration need not
            say them
    """

    write: Callable[[Checkpoint, Request], FamilyGraph]
    signs: tuple[tuple[str, ...], ...] = ()
    asks: tuple[tuple[str, ...], ...] = ()
