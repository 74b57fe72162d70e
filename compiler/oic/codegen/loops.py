"""Loop nests over the elements of tensors: dimensions collapsed, indices written, scalars hoisted."""

from __future__ import annotations

from collections.abc import Sequence

from oic.codegen import expressions as expr
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref, Strides
from oic.dtypes import DType
from oic.ir.dims import Dim

Run = tuple[Ref, list[Dim]]
COUNTERS = ("i", "j", "k", "m", "n", "p", "q", "r", "a", "b", "c", "d")


def broadcast_strides(ref: Ref, shape: tuple[Dim, ...]) -> Strides:
    """Strides of an operand along the dimensions of a result that it broadcasts to."""
    missing = len(shape) - len(ref.type.shape)
    assert missing >= 0, f"{ref.type} in a loop over {shape}"
    inner = zip(ref.type.shape, ref.strides, shape[missing:], strict=True)
    return (0,) * missing + tuple(0 if d == 1 and n != 1 else s for d, s, n in inner)


def collapse(shape: tuple[Dim, ...], operands: Sequence[Strides]) -> tuple[list[Dim], list[list[Dim]]]:
    """The fewest loops that visit the same elements in the same order, and the strides in them.

    Neighbouring dimensions become one where, for every operand, the outer stride is the inner
    one times the inner size.
    """
    sizes: list[Dim] = []
    strides: list[list[Dim]] = [[] for _ in operands]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        here = [s[axis] for s in operands]
        if sizes and all(done[-1] == new * size for done, new in zip(strides, here)):
            sizes[-1] = sizes[-1] * size
            for done, new in zip(strides, here):
                done[-1] = new
            continue
        sizes.append(size)
        for done, new in zip(strides, here):
            done.append(new)
    return sizes, strides


class Nest:
    """Open loops over a shape; the body is written by the caller, then `close`."""

    def __init__(self, frame: Frame, sizes: list[Dim]) -> None:
        self.frame, self.sizes = frame, sizes
        free = [c for c in COUNTERS if c not in frame.names] + [f"i{n}" for n in range(len(sizes))]
        self.counters = free[: len(sizes)]
        self.opened = 0

    def open(self) -> None:
        """The next loop inward."""
        i, n = self.counters[self.opened], self.frame.dim(self.sizes[self.opened]).text
        self.frame.lines.open(f"for (ptrdiff_t {i} = 0; {i} < {n}; ++{i}) {{")
        self.opened += 1

    def open_all(self) -> None:
        """All loops that are still closed."""
        while self.opened < len(self.sizes):
            self.open()

    def close(self) -> None:
        """End every loop."""
        for _ in range(self.opened):
            self.frame.lines.close()
        self.opened = 0

    def index(self, strides: Sequence[Dim], start: Index | None = None) -> str:
        """Position of the present element, in elements from the pointer."""
        parts = [start.at(expr.SUM)] if start is not None and start.number != 0 else []
        for counter, stride in zip(self.counters, strides, strict=True):
            if stride == 0:
                continue
            parts.append(counter if stride == 1 else f"{counter} * {self.frame.dim(stride).at(expr.PRODUCT)}")
        return " + ".join(parts) or "0"


def load(ref: Ref, index: str) -> str:
    """The element at an index, in the type it is computed in."""
    dtype = ref.type.dtype
    if dtype.narrow or dtype.packed:
        return f"oic_load_{dtype}({ref.pointer}, {index})"
    return element(ref, index)


def store(ref: Ref, index: str, value: str) -> str:
    """The statement that stores a computed value."""
    dtype = ref.type.dtype
    if dtype.narrow or dtype.packed:
        return f"oic_store_{dtype}({ref.pointer}, {index}, {value});"
    return f"{element(ref, index)} = {value};"


def element(ref: Ref, index: str) -> str:
    """The stored element at an index from a pointer variable, or the first one of an expression."""
    pointer = ref.pointer
    if pointer.isidentifier():
        return f"*{pointer}" if index == "0" else f"{pointer}[{index}]"
    assert index == "0", f"{pointer} is indexed with {index}"
    if pointer.startswith("("):  # an array of arrays seen as one
        return f"*{pointer}"
    return pointer[1:] if pointer.startswith("&") else f"{pointer}[0]"


def size_in_bytes(count: Index, dtype: DType) -> str:
    """An expression of size_t for so many elements."""
    if count.number is not None:
        return str(count.number) if dtype.align == 1 else f"{count.number} * sizeof({dtype.c})"
    factor = "" if dtype.align == 1 else f" * sizeof({dtype.c})"
    return f"(size_t){count.at(expr.ATOM)}{factor}"


def copy(frame: Frame, source: Ref, target: Ref) -> None:
    """Copy a tensor element by element; runs of neighbours go through memcpy."""
    if source.key is not None and source.key == target.key and source.strides == target.strides:
        return
    shape = target.type.shape
    sizes, (from_, to) = collapse(shape, [broadcast_strides(source, shape), target.strides])
    if sizes and from_[-1] == to[-1] == 1 and not _shares_bytes(source, target, sizes[-1], from_, to):
        _copy_runs(frame, sizes, (source, from_), (target, to))
        return
    if sizes or "+" in target.pointer:
        source, target = frame.named(source, "from"), frame.named(target, "to")
    nest = Nest(frame, sizes)
    nest.open_all()
    a, b = nest.index(from_, source.start), nest.index(to, target.start)
    if target.type.dtype.packed:
        frame.lines.add(store(target, b, load(source, a)))
    else:
        frame.lines.add(f"{element(target, b)} = {element(source, a)};")
    nest.close()


def _copy_runs(frame: Frame, sizes: list[Dim], source: Run, target: Run) -> None:
    """Loops around a memcpy of the innermost dimension."""
    dtype = target[0].type.dtype
    nest = Nest(frame, sizes[:-1])
    nest.open_all()
    a, b = (_moved(ref, nest.index(strides[:-1])) for ref, strides in (source, target))
    count = frame.dim(sizes[-1])
    nbytes = str(dtype.nbytes(count.low)) if dtype.packed else size_in_bytes(count, dtype)
    frame.lines.add(f"memcpy({b}, {a}, {nbytes});")
    nest.close()


def _moved(ref: Ref, index: str) -> str:
    """The address of an element, where packed elements lie at whole bytes."""
    per = 8 // ref.type.dtype.bits if ref.type.dtype.packed else 1
    start = ref.start.number or 0
    if per > 1:
        start //= per
        index = index if index == "0" else f"({index}) / {per}"
    parts = [p for p in (index, str(start)) if p != "0"]
    return " + ".join([ref.pointer, *parts]) if parts else whole(ref.pointer)


def whole(pointer: str) -> str:
    """An address where any pointer type will do: an array needs no cast."""
    return pointer.partition(" *)")[2] if pointer.startswith("(") and " + " not in pointer else pointer


def _shares_bytes(source: Ref, target: Ref, run: Dim, from_: list[Dim], to: list[Dim]) -> bool:
    """Packed elements whose runs do not begin and end at whole bytes."""
    if not source.type.dtype.packed:
        return False
    per = 8 // source.type.dtype.bits
    steps = [run, *from_[:-1], *to[:-1], source.start.number, target.start.number]
    return any(not isinstance(step, int) or step % per for step in steps)
