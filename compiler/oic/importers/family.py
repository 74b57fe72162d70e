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

    def refuse(self, c: Checkpoint, *, context: bool = False, cache: bool = False, batch: bool = False) -> None:
        """Refuse what was chosen of these, which a family's graph does not have; of a cache, that it is narrow."""
        if context and (self.context is not None or self.prefill < 1):
            message = "a state of fixed size has no context; steps take 1 token or more"
            raise fail("import-config", f"{c.model.name}: {message}")
        what = hint = ""
        if cache and self.cache != "f32":
            what, hint = "cache of keys and values in fewer bits", "a cache of f16, bf16 or q8 is for decoders"
        elif batch and self.batch is not None:
            what, hint = "batch", "several prompts run as sessions: `oic generate --threads`"
        if what:
            raise fail("import-config", f"{c.model.name}: the graph of '{c.family}' has no {what}", hint=hint)


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
