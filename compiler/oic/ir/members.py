"""Elements of constants: an array, or members that are read when they are needed."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from oic.dtypes import Array


@dataclass(frozen=True, eq=False)
class Members:
    """The elements of a family: a member is read when it is asked for, and not kept.

    counts  the leading axes, which number members
    inner   the shape of a member
    dtype   NumPy's, of the elements
    read    the member of a key, [*inner]

    NumPy takes it for the whole array, which is made for it.
    """

    counts: tuple[int, ...]
    inner: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[tuple[int, ...]], Array]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.counts + self.inner

    def __iter__(self) -> Iterator[Array]:
        """The members in the order of memory."""
        return (self.read(key) for key in product(*map(range, self.counts)))

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        del copy  # it is always a new one
        whole = np.empty(self.shape, dtype or self.dtype)
        for key in product(*map(range, self.counts)):
            whole[key] = self.read(key)
        return whole


Elements = Array | Members


def forget(array: Array) -> None:
    """Give back the memory of the file that an array is a view of; it is read again when it is looked at again."""
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    mapped = isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED")
    if mapped and array.flags.c_contiguous and array.nbytes:
        start = array.ctypes.data - np.frombuffer(owner, np.uint8, 1).ctypes.data
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        owner.madvise(mmap.MADV_DONTNEED, first, start + array.nbytes - first)
