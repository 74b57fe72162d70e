"""Constants of a transformer's graph, declared as its template asks for them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from oic.dtypes import Array, DType, f32
from oic.importers.checkpoint import STACKED, Checkpoint, Layers, of_experts

INVERSE = "inverse_of_layer"


@dataclass(kw_only=True)
class Writer:
    """What a graph's template asks for constants: writers of parts of one graph share all behind the layers.

    c          the checkpoint whose tensors are asked for
    layers     values that `{l}` in the name of a tensor takes
    experts    how many `{e}` takes
    constants  their declarations
    names      what the tensors that were asked for are called
    weights    their layers
    extra      constants that no checkpoint has
    """

    c: Checkpoint
    layers: Layers
    experts: int = 1
    constants: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    weights: dict[str, Layers] = field(default_factory=dict)
    extra: dict[str, Array] = field(default_factory=dict)

    def stored(self, tensor: str) -> DType:
        """The element type of a tensor or pattern in the checkpoint; f32 where that of experts differs."""
        found = {self.c.dtype(name, self.layers) for name in of_experts(tensor, self.experts)}
        return found.pop() if len(found) == 1 else f32

    def widened(self, tensor: str) -> str:
        """The setting that makes f32 of what a tensor or pattern has."""
        return "" if self.stored(tensor) is f32 else ", to=f32"

    def constant(self, name: str, tensor: str, dims: str, narrow: bool = False) -> str:
        """Declare a constant once, by the first name asked for; how it is used in the layer at hand."""
        indices, known = ", ".join(index for index in "le" if f"{{{index}}}" in tensor), tensor in self.names
        name = self.names.setdefault(tensor, name)
        if not known:
            self.weights |= dict.fromkeys(of_experts(tensor, self.experts), self.layers)
            dtype = self.stored(tensor) if narrow else f32
            bound = tensor.removesuffix(STACKED)
            where = f'@pattern("{tensor}")' if "{l}" in bound else f'@ref("{bound}")'
            self.constants.append(f"{name}{f'({indices})' if indices else ''}: {dtype}[{dims}] {where};")
        return f"{name}[{indices}]" if indices else name

    def inverse_of_layer(self) -> str:
        """1 / (l + 1) in layer l, a constant of the importer's own."""
        if INVERSE not in self.extra:
            assert isinstance(self.layers, int), "all layers have it"
            self.extra[INVERSE] = 1 / np.arange(1, self.layers + 1, dtype=np.float32)
            self.constants.append(f"{INVERSE}(l): f32; // 1 / (l + 1)")
        return f"{INVERSE}[l]"

    def own(self, name: str, numbers: Sequence[float]) -> str:
        """A constant of the importer's own with these numbers; others of its name are numbered."""
        array = np.asarray(numbers, np.float32)
        for known, had in self.extra.items():
            if np.array_equal(had, array):
                return known
        name += f"_{len(self.extra)}" if name in self.extra else ""
        self.extra[name] = array
        self.constants.append(f"{name}: f32[{len(array)}];")
        return name
