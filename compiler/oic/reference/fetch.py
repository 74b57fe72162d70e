"""The logical value of a persistent variable from its storage at capacity (SPEC, 8.2-8.5).

Counts are states of their own: `K.t` is the count of index t of K, and `next` of a ring.  What lies
beyond a mark `K.t.filled` was never written, and its memory holds anything (`passes.lower_cache`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir.types import StateIndex
from oic.reference.state_storage import IntegerBox, StateStorage


def logical(name: str, states: Mapping[str, Any]) -> Array:
    """What `fetch` gives: table indices first, counts long; an auto-dim matrix as it has grown.

    Of each ring its newest entries, in order of position.
    """
    type_ = states[name].type
    table = type_.table[:-1] if type_.ring else type_.table
    lengths = tuple(_count(name, i, states) for i in table)
    grown = [_count(name, i, states) for i in type_.auto] or [0] * len(type_.shape)
    entry = tuple(size + more for size, more in zip(type_.shape, grown))
    if not type_.ring:
        return _box(name, states, ((0,) * (len(lengths) + len(entry)), lengths + entry))
    following: StateStorage = states[f"{name}.{type_.table[-1].name}"]
    newest = following.read(((0,) * len(lengths), lengths))
    found = np.empty((*lengths, type_.window, *entry), type_.dtype.np)
    for key in itertools.product(*map(range, lengths)):
        oldest = (int(newest[key]) - type_.window) % type_.window
        start = (*key, oldest, *[0] * len(entry))
        ring = _box(name, states, (start, (*[1] * len(key), type_.window, *entry)))
        found[key] = ring.reshape(found[key].shape)
    return found


def _count(name: str, index: StateIndex, states: Mapping[str, Any]) -> int:
    """The count of an index: its fixed size, else what is kept beside the variable.

    Of a table index with a fixed size, the state beside it says how far it was touched.
    """
    if index.fixed and index in states[name].type.table:
        return index.capacity
    return int(states[f"{name}.{index.name}"].whole().reshape(-1)[0])


def _box(name: str, states: Mapping[str, Any], box: IntegerBox) -> Array:
    """A box of the storage; the initial value in what was never filled."""
    storage: StateStorage = states[name]
    start, lengths = box
    marks = [f"{name}.{i.name}.filled" for i in (*storage.type.table, *storage.type.auto)]
    filled = list(lengths)
    for axis, mark in enumerate(marks):
        if mark in states:
            reach = int(states[mark].whole().reshape(-1)[0])
            filled[axis] = min(lengths[axis], max(0, reach - start[axis]))
    if tuple(filled) == lengths:
        return storage.read(box)
    found = np.full(lengths, storage.initial, storage.type.dtype.np)
    if all(filled):
        found[tuple(map(slice, filled))] = storage.read((start, tuple(filled)))
    return found
