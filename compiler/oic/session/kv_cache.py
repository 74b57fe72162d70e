"""The cache of keys and values in an executor's state, by the names that the graph gives them.

    cache = oic.KVCache(executor)
    executor.step(tokens=prompt)
    keys, values = cache.get(layer=3)      # [cache.seq_len, heads, size of a head]
    cache.truncate(2)                      # as if the last two tokens had not been fed
"""

import math
from typing import Self

from oic import arguments
from oic.diagnostics import did_you_mean, fail
from oic.dtypes import Array
from oic.memory.layout import storage_bytes
from oic.session.executor import Executor


class KVCache:
    """A view of an executor's state: it holds nothing itself, and steps of the executor change what it shows.

    executor   of either backend
    keys       name of the table of keys
    values     name of the table of values
    Raises OicError `kv-cache` where the graph has no such tables that are written where a counter of positions is.
    """

    def __init__(self, executor: Executor, keys: str = "K", values: str = "V") -> None:
        arguments.require("executor", executor, Executor, "an oic.Executor", "Synthesizer(…).make_executor() gives one")
        self.executor = executor
        self._tables = tables = executor.interface.tables
        if not tables:
            raise fail("kv-cache", f"the graph has no tables of positions: {executor.interface.truncation.reason}")
        for what, name in (("keys", keys), ("values", values)):
            if arguments.text(what, name) not in tables:
                message = f"the graph has no table '{name}' of positions, but {', '.join(tables)}"
                hint = did_you_mean(name, tables) or "say which: KVCache(executor, keys=..., values=...)"
                raise fail("kv-cache", message, hint=hint)
        self.names = (keys, values)

    def __repr__(self) -> str:
        return f"<KVCache of {self.executor.interface.name!r}: {', '.join(dict.fromkeys(self.names))}>"

    def __len__(self) -> int:
        return self.seq_len

    @property
    def seq_len(self) -> int:
        """Positions that were fed since the start or a reset."""
        found = self.executor.interface.truncation
        return int(self.executor.fetch(found.counter)) - found.first

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of these positions; of rings, of those that they still have."""
        return sum(self._tables[name][1].entry.nbytes * self._entries(name) for name in self.names)

    @property
    def reserved(self) -> int:
        """Bytes that the state has for keys and values; of tables without a bound, of address space."""
        return sum(storage_bytes(self._tables[name][1]) for name in self.names)

    def keys(self, layer: int = 0) -> Array:
        """The keys of a layer in order of position: [seq_len, heads, size of a head] for `K(l, t): f32[heads, size]`.

        layer   the first index of the table that is not the position; of no meaning where there is none
        Of a ring, the newest positions.  An array of its own.  Raises OicError `kv-cache` for a layer that is none.
        """
        return self._layer(self.names[0], layer)

    def values(self, layer: int = 0) -> Array:
        """The values of a layer, as `keys` gives the keys."""
        return self._layer(self.names[1], layer)

    def get(self, layer: int = 0) -> tuple[Array, Array]:
        """The keys and the values of a layer."""
        return self.keys(layer), self.values(layer)

    def reset(self) -> None:
        """All state of the executor as at the start."""
        self.executor.reset()

    def truncate(self, n: int) -> None:
        """Take the last `n` positions back: see `Executor.truncate`."""
        self.executor.truncate(n)

    def fork(self) -> Self:
        """The cache of another session with a copy of the state, which goes on by itself: `.executor`."""
        return type(self)(self.executor.fork(), *self.names)

    def _entries(self, name: str) -> int:
        """Entries of positions that were fed, in all layers."""
        axis, type_ = self._tables[name]
        others = (index.capacity for at, index in enumerate(type_.table) if at != axis)
        return math.prod(others) * min(self.seq_len, type_.window if type_.ring else self.seq_len)

    def _layer(self, name: str, layer: int) -> Array:
        layer = arguments.integer("layer", layer)
        (axis, type_), first = self._tables[name], self.executor.interface.truncation.first
        within, length = [slice(None)] * len(type_.table), self.seq_len
        layers = 0 if axis else 1
        within[axis] = slice(None) if type_.ring else slice(first, first + length)
        if len(within) > 1:
            within[layers] = slice(layer, layer + 1) if layer >= 0 else slice(0)
        found = self.executor._part(name, tuple(within))
        if type_.ring:  # the newest positions are at the end
            found = found[(slice(None),) * axis + (slice(type_.window - min(length, type_.window), None),)]
        if len(within) == 1:
            return found
        if not found.shape[layers]:
            raise fail("kv-cache", f"'{name}' has layers 0 to {type_.table[layers].capacity - 1}, not {layer}")
        return found.take(0, axis=layers)
