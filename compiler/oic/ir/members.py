"""Elements of constants: an array, or members that are read when they are needed."""

import mmap
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic.diagnostics import OicError, fail
from oic.dtypes import Array
from oic.ir import quantized
from oic.ir.encodings import COLUMNS, NARROW, PANELS, encoded_parts, layout_of, storage_of


@dataclass(frozen=True, eq=False)
class Members:
    """The elements of a family: a member is read when it is asked for, and not kept.

    counts  the leading axes, which number members
    inner   the shape of a member
    dtype   NumPy's, of the elements
    read    the member of a key, [*inner]
    storage that all members have in the model, of `quantized.GROUP_STORAGES`, and then
    grouped the groups of the member of a key, where it is one matrix

    NumPy takes it for the whole array, which is made for it.
    """

    counts: tuple[int, ...]
    inner: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[tuple[int, ...]], Array]
    storage: str = ""
    grouped: Callable[[tuple[int, ...]], quantized.Grouped] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.counts + self.inner

    def __iter__(self) -> Iterator[Array]:
        """The members in the order of memory."""
        return (self.read(key) for key in product(*map(range, self.counts)))

    def at(self, key: tuple[int, ...]) -> Array:
        """What lies at the first indices, members or parts of one."""
        own = len(self.counts)
        if len(key) >= own:
            return self.read(key[:own])[key[own:]]
        return np.stack([self.at((*key, i)) for i in range(self.counts[len(key)])])

    def groups(self) -> Iterator[Array]:
        """What the groups of all members are made of, part by part."""
        assert self.grouped is not None, "they are no groups"
        for matrix in map(self.grouped, product(*map(range, self.counts))):
            yield np.frombuffer(f"{self.storage} {matrix.shape}".encode(), np.uint8)
            for first, end in quantized.row_parts(*matrix.shape):
                found = matrix.read(first, end)
                yield from (np.ascontiguousarray(found.q), np.ascontiguousarray(found.scales))

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        del copy  # it is always a new one
        whole = np.empty(self.shape, dtype or self.dtype)
        for key in product(*map(range, self.counts)):
            whole[key] = self.read(key)
        return whole


StoredMatrix = Array | quantized.Grouped


@dataclass(eq=False)
class StoredElements:
    """The elements of matrices in a storage of fewer bits than they had.

    name      of the constant, for what is refused
    source    what they were
    encoding  its storage decides the values, of groups its layout, too
    joined    what they are joined of, if they are, for the same

    NumPy takes it for the whole array as it is computed with, which is made for it, and the same for all that hold it.
    """

    name: str
    source: Array | Members
    encoding: str
    joined: "tuple[StoredElements, ...]" = ()
    _made: weakref.ref[Array] | None = field(default=None, repr=False)
    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        del copy
        whole = self._made() if self._made is not None else None
        if whole is None:
            whole = np.empty(self.shape, self.dtype)
            matrices = whole.reshape(-1, *self.shape[-2:])
            for number, matrix in enumerate(self._matrices()):
                matrices[number] = self._turned(self._values(matrix, 0, matrix.shape[0]))
            whole.flags.writeable = False
            self._made = weakref.ref(whole)
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def parts(self, encoding: str) -> Iterator[NDArray[np.uint8]]:
        """The bytes in memory, in order, in an encoding that has the same values."""
        assert storage_of(encoding) == storage_of(self.encoding), f"{encoding} is another storage than {self.encoding}"
        for matrix in self._matrices():
            if (storage := storage_of(encoding)) in quantized.GROUP_STORAGES:
                rows, k = matrix.shape
                yield from quantized.parts(partial(self._groups, matrix), rows, k, storage)
            else:
                assert not isinstance(matrix, quantized.Grouped), f"{encoding} has no groups"
                for part in encoded_parts(matrix, layout_of(encoding)):
                    yield self._narrowed(part).view(np.uint8)

    def error(self) -> float:
        """‖ŵ - w‖ / ‖w‖, of all values ŵ as they are stored; 0 where they were stored so."""
        wrong = whole = 0.0
        for matrix in self._matrices():
            if isinstance(matrix, quantized.Grouped):
                continue
            rows, k = matrix.shape
            for first, end in quantized.row_parts(rows, k):
                values = matrix[first:end].astype(np.float32)
                stored = self._values(matrix, first, end)
                whole += float(np.square(values, dtype=np.float64).sum())
                wrong += float(np.square(stored - values, dtype=np.float64).sum())
        return (wrong / whole) ** 0.5 if whole else 0.0

    def _matrices(self) -> Iterator[StoredMatrix]:
        """What they were, one after the other, of groups K the last axis; the memory of a file is given back."""
        source = self.source
        if isinstance(source, Members) and source.grouped and self.encoding == f"{source.storage} {PANELS}":
            yield from map(source.grouped, product(*map(range, source.counts)))
            return
        for member in iter(source) if isinstance(source, Members) else iter((source,)):
            yield from self._turned(member.reshape(-1, *self.shape[-2:]))
            forget(member)

    def _turned(self, matrices: Array) -> Array:
        """With K, along which groups lie, as the last axis, or as they were."""
        grouped = storage_of(self.encoding) in quantized.GROUP_STORAGES
        return matrices.swapaxes(-1, -2) if grouped and layout_of(self.encoding) == COLUMNS else matrices

    def _values(self, matrix: StoredMatrix, first: int, end: int) -> Array:
        """Some rows as they are computed with, K their last axis."""
        if isinstance(matrix, quantized.Grouped) or storage_of(self.encoding) in quantized.GROUP_STORAGES:
            return self._groups(matrix, first, end).values(matrix.shape[1])
        return self._narrowed(matrix[first:end]).astype(np.float32)

    def _groups(self, matrix: StoredMatrix, first: int, end: int) -> quantized.Groups:
        storage = storage_of(self.encoding)
        if isinstance(matrix, quantized.Grouped):
            found = matrix.read(first, end)
            if not np.isfinite(found.scales).all():
                raise self._refused()
            return found
        try:
            return quantized.quantize(matrix[first:end], storage)
        except ValueError:
            raise self._refused() from None

    def _narrowed(self, values: Array) -> Array:
        """Rounded once; what was finite stays so."""
        with np.errstate(over="ignore"):
            found = values.astype(NARROW[storage_of(self.encoding)].np)
        if not (np.isfinite(found.astype(np.float32)) | ~np.isfinite(values.astype(np.float32))).all():
            raise self._refused()
        return found

    def _refused(self) -> OicError:
        """What is said of a value that the storage does not hold: of the part that has it."""
        for part in self.joined:
            try:
                deque(part.parts(part.encoding), 0)
            except OicError as refused:
                return refused
        storage = storage_of(self.encoding)
        what = f"'{self.name}' has a value that {storage} does not hold"
        return fail("weights-range", what, hint=f'--weights "{self.name}=f32,*={storage}" leaves it as it is')


Elements = Array | Members | StoredElements


def mapped(
    values: Array | Members, counts: tuple[int, ...], make: Callable[[Array], Array], inner: tuple[int, ...]
) -> Array | Members:
    """Elements with another array, of the shape `inner`, made of each of so many members, as it is needed or now."""
    if isinstance(values, Members):
        return Members(counts, inner, values.dtype, lambda key: make(values.at(key)))
    if not counts:
        return make(values)
    return np.stack([make(values[key]) for key in product(*map(range, counts))]).reshape(*counts, *inner)


def form_of(values: Elements) -> Hashable:
    """What constants have in common whose members may become parts of larger ones: how they are read and stored."""
    if isinstance(values, StoredElements):
        return values.encoding, form_of(values.source)
    return values.dtype, values.storage if isinstance(values, Members) and values.grouped else ""


def joined_elements(parts: Sequence[Elements], rank: int, axis: int) -> Members | StoredElements:
    """The elements of several constants as those of one, whose members are made when they are asked for.

    rank  of a member
    axis  of a member along which the parts lie side by side
    """
    stored = tuple(part for part in parts if isinstance(part, StoredElements))
    if stored:
        source = joined_elements([part.source for part in stored], rank, axis)
        assert isinstance(source, Members) and len(stored) == len(parts), "they are of one form"
        return StoredElements(" ".join(part.name for part in stored), source, stored[0].encoding, stored)
    plain = [part for part in parts if not isinstance(part, StoredElements)]
    counts, first = plain[0].shape[:-rank], plain[0].shape[-rank:]
    sizes = [part.shape[len(counts) + axis] for part in plain]
    inner = (*first[:axis], sum(sizes), *first[axis + 1 :])

    def read(key: tuple[int, ...]) -> Array:
        whole, end = np.empty(inner, plain[0].dtype), 0
        for part, size in zip(plain, sizes, strict=True):  # one after the other: memory for one beside the whole
            member = part.read(key) if isinstance(part, Members) else part[key]
            whole[(slice(None),) * axis + (slice(end, end + size),)] = member
            end += size
            forget(member)
        return whole

    if axis == 0 and isinstance(one := plain[0], Members) and one.grouped:
        return Members(counts, inner, one.dtype, read, one.storage, partial(_joined_groups, plain))
    return Members(counts, inner, plain[0].dtype, read)


def _joined_groups(parts: Sequence[Any], key: tuple[int, ...]) -> quantized.Grouped:
    """One matrix whose rows are those of the members of a key, one after the other."""
    matrices: list[quantized.Grouped] = [part.grouped(key) for part in parts]

    def read(first: int, end: int) -> quantized.Groups:
        found, start = [], 0
        for matrix in matrices:
            rows = matrix.shape[0]
            low, high = max(first - start, 0), min(end - start, rows)
            if low < high:
                found.append(matrix.read(low, high))
            start += rows
        return quantized.Groups(*(np.concatenate(c) for c in zip(*((g.q, g.scales) for g in found), strict=True)))

    shape = (sum(m.shape[0] for m in matrices), matrices[0].shape[1])
    return quantized.Grouped(shape, matrices[0].storage, read)


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
