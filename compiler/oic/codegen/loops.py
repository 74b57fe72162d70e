"""Loop nests over the elements of tensors: dimensions collapsed, indices written, scalars hoisted."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from oic.codegen import c_tree as c
from oic.codegen import expressions as expr
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref, address_of
from oic.dtypes import DType
from oic.ir.dims import Dim
from oic.ir.strides import Strides, repeated

COUNTERS = ("i", "j", "k", "m", "n", "p", "q", "r", "a", "b", "c", "d")


def collapse(shape: tuple[Dim, ...], operands: Sequence[Strides]) -> tuple[list[Dim], list[list[Dim]]]:
    """The fewest loops that visit the same elements in the same order, and the strides in them.

    Neighbouring dimensions become one where, for every operand, the outer stride is the inner
    one times the inner size.
    """
    sizes: list[Dim] = []
    strides: list[list[Dim]] = [[] for _ in operands]
    for size, *here in zip(shape, *operands):
        if size == 1:
            continue
        if sizes and all(done[-1] == new * size for done, new in zip(strides, here)):
            size *= sizes.pop()
            for done in strides:
                done.pop()
        sizes.append(size)
        for done, new in zip(strides, here):
            done.append(new)
    return sizes, strides


def plane(shape: tuple[Dim, ...], operands: Sequence[Strides]) -> tuple[list[Dim], list[list[Dim]]]:
    """As `collapse`, but always two loops: over rows and columns of a tensor whose other axes have the size 1."""
    strides: list[list[Dim]] = [[0, *s][-2:] if len(s) == 1 else [*s[-2:]] for s in operands]
    return [1, *shape][-2:], strides


def collapsed(lengths: Sequence[Index], steps: Sequence[int]) -> tuple[list[Index], list[int]]:
    """As `collapse`, where lengths are index integers."""
    sizes: list[Index] = []
    strides: list[int] = []
    for n, step in zip(lengths, steps, strict=True):
        if n.number == 1:
            continue
        if sizes and n.number is not None and strides[-1] == step * n.number:
            n = expr.arithmetic("*", sizes.pop(), n)
            strides.pop()
        sizes.append(n)
        strides.append(step)
    return sizes, strides


class Nest(ExitStack):
    """Loops over a shape: `with` opens all of them around the body; `open` one, until `close`."""

    def __init__(self, frame: Frame, sizes: Sequence[Dim | Index]) -> None:
        super().__init__()
        self.frame, self.sizes = frame, sizes
        free = [c for c in COUNTERS if c not in frame.names] + [f"i{n}" for n in range(len(sizes))]
        self.counters = free[: len(sizes)]
        self.opened = 0

    def open(self) -> None:
        """The next loop inward."""
        name, size = self.counters[self.opened], self.sizes[self.opened]
        start, limit = c.integer(0), (size if isinstance(size, Index) else self.frame.dim(size)).value
        if self.opened < len(self.frame.spans):
            start, limit = map(c.Identifier, self.frame.spans[self.opened])
        loop = c.ForStatement("ptrdiff_t", name, start, c.Infix("<", c.Identifier(name), limit))
        self.enter_context(self.frame.body.inside(loop))
        self.opened += 1

    def __enter__(self) -> Self:
        while self.opened < len(self.sizes):
            self.open()
        return self

    def index(self, strides: Sequence[Dim], start: Index = expr.ZERO) -> c.Expression:
        """Position of the present element, in elements from the pointer."""
        steps = ((c.Identifier(n), stride) for n, stride in zip(self.counters, strides, strict=True))
        moved = (c.times(counter, self.frame.dim(stride).value) for counter, stride in steps if stride != 0)
        return c.total(start.value, *moved)


def load(ref: Ref, index: c.Expression) -> c.Expression:
    """The element at an index, in the type it is computed in."""
    dtype = ref.type.dtype
    if dtype.narrow or dtype.packed:
        return c.call(f"oic_load_{dtype}", ref.pointer, index)
    return element(ref, index)


def store(ref: Ref, index: c.Expression, value: c.Expression) -> c.Statement | c.Expression:
    """The statement that stores a computed value."""
    dtype = ref.type.dtype
    if dtype.narrow or dtype.packed:
        return c.call(f"oic_store_{dtype}", ref.pointer, index, value)
    return c.AssignStatement(element(ref, index), value)


def fill(frame: Frame, target: Ref, value: c.Expression) -> None:
    """A computed number in every element."""
    sizes, (strides,) = collapse(target.type.shape, [target.strides])
    target = frame.named(target, "to") if sizes else target
    with Nest(frame, sizes) as nest:
        frame.body.add(store(target, nest.index(strides, target.start), value))


def element(ref: Ref, index: c.Expression) -> c.Expression:
    """The stored element at an index from a pointer variable, or the first one of an expression."""
    first = index == expr.ZERO.value
    match ref.pointer:
        case c.Identifier():
            return c.Prefix("*", ref.pointer) if first else c.Element(ref.pointer, index)
        case c.Prefix("&", found) if first:
            return found
        case c.Conversion() if first:  # an array of arrays seen as one
            return c.Prefix("*", ref.pointer)
    assert first, f"{ref.pointer} is indexed with {index}"
    return c.Element(ref.pointer, index)


def size_in_bytes(count: Index, dtype: DType, *, clamped: bool = False) -> c.Expression:
    """So many elements, as size_t; of packed types a number that is known.

    clamped   a compiler may think that the count could be below 0, and warns of memset with it: of bytes it may always
    """
    if dtype.packed:
        return c.integer(dtype.nbytes(count.low))
    found = count.value
    if count.number is None:
        sure = dtype.align > 1 and (not clamped or (count.low >= 0 and not count.wide))
        found = c.Conversion("size_t", found) if sure else c.call("oic_run", found)
    if dtype.align == 1:
        return found
    return c.sizeof(dtype.c) if count.number == 1 else c.times(found, c.sizeof(dtype.c))


def copy(frame: Frame, source: Ref, target: Ref) -> None:
    """Copy a tensor element by element; runs of neighbours go through memcpy."""
    if source.key is not None and source.key == target.key and source.strides == target.strides:
        return
    shape = target.type.shape
    sizes, (from_, to) = collapse(shape, [repeated(source.type.shape, source.strides, shape), target.strides])
    if sizes and from_[-1] == to[-1] == 1 and not _shares_bytes(source, target, sizes[-1], from_, to):
        with Nest(frame, sizes[:-1]) as nest:
            a, b = (whole(address_of(ref, nest.index(s[:-1]))) for ref, s in ((source, from_), (target, to)))
            frame.body.add(c.call("memcpy", b, a, size_in_bytes(frame.dim(sizes[-1]), source.type.dtype)))
        return
    if sizes or isinstance(target.pointer, c.Infix):
        source, target = frame.named(source, "from"), frame.named(target, "to")
    with Nest(frame, sizes) as nest:
        a, b = nest.index(from_, source.start), nest.index(to, target.start)
        if target.type.dtype.packed:
            frame.body.add(store(target, b, load(source, a)))
        else:
            frame.body.add(c.AssignStatement(element(target, b), element(source, a)))


def whole(pointer: c.Expression) -> c.Expression:
    """An address where any pointer type will do: an array needs no cast."""
    return pointer.value if isinstance(pointer, c.Conversion) else pointer


def _shares_bytes(source: Ref, target: Ref, run: Dim, from_: list[Dim], to: list[Dim]) -> bool:
    """Packed elements whose runs do not begin and end at whole bytes."""
    if not source.type.dtype.packed:
        return False
    per = 8 // source.type.dtype.bits
    steps = [run, *from_[:-1], *to[:-1], source.start.number, target.start.number]
    return any(not isinstance(step, int) or step % per for step in steps)
