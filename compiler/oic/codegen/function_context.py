"""One function being written: what its values are called in C and where their elements lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from oic.codegen import expressions as expr
from oic.codegen.c_module import Interface, Unit
from oic.codegen.expressions import Index
from oic.codegen.lines import Lines
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim, Extent
from oic.ir.facts import Facts
from oic.ir.ranges import Ranges
from oic.ir.types import TensorType
from oic.memory.liveness import Liveness
from oic.memory.views import dense

Strides = tuple[Dim, ...]
ZERO = expr.number(0)
LINES, COLUMNS = (1 << 20) - 1, (1 << 11) - 1  # of places that a refusal can name


@dataclass(frozen=True)
class Ref:
    """The elements of a tensor.

    pointer   C expression of the address of stored elements (of bytes, for packed types)
    strides   elements between neighbours
    start     elements before the first; only packed types, whose elements have no address
    key       what memory this is, where it is known at build: the same for values in one place
    """

    pointer: str
    type: TensorType
    strides: Strides
    const: bool
    start: Index = ZERO
    key: tuple[Any, ...] | None = None


class Frame:
    """The state of writing one function."""

    def __init__(self, unit: Unit, face: Interface, live: Liveness) -> None:
        self.unit, self.face, self.live = unit, face, live
        self.crowded = _crowded(live.start, unit.ranges)
        self.lines = Lines()
        self.names = unit.names.scope.copy()
        self.extents: dict[Extent, str] = {}
        self.indices: dict[Value, Index] = {}  # what they are called
        self.facts = Facts()
        self.refs: dict[Value, Ref] = {}
        self.scopes: list[dict[tuple[Any, ...], str]] = [{}]
        self.entries: dict[str, TensorType] = {}  # boxes that values are computed in
        self.movable: dict[str, str] = {}  # variables with the addresses of buffers that exchange them
        self.late = False  # the state has been changed by now
        self.tried = ""  # where a refusal is noted, not made: the variable that has its status
        self.counts = False  # the function sets counts in the state

    # -- sizes and indices ---------------------------------------------------

    def dim(self, dim: Dim) -> Index:
        """A size, as an expression of ptrdiff_t."""
        return expr.size(dim, self.extents.__getitem__)

    def index(self, value: Value) -> Index:
        """An index integer, and the values that it can have here."""
        index = self.indices[value]
        if index.number is not None:
            return index
        low, high = self.facts.of(value)
        return replace(index, low=low, high=high)

    def number(self, part: Any) -> Index:
        """An integer, a size or an index integer."""
        return self.index(part) if isinstance(part, Value) else self.dim(part)

    def line(self, op: Op) -> str:
        """The source line of an op, with the column where others of that line refuse too; 0 if it has none."""
        if op.span is None or op.span.line > LINES:
            return "0"
        line, column = op.span.line, op.span.column
        return f"OIC_AT({line}, {column})" if line in self.crowded and column <= COLUMNS else str(line)

    def attempt(self, check: str) -> None:
        """A call that may refuse the step."""
        if self.tried:
            self.lines.add(f"{self.tried} = {check};")
            self.lines.open(f"if ({self.tried} != OIC_OK) {{")
            self.lines.add("break;")
            self.lines.close()
        elif self.late:
            self.lines.add(f"OIC_TRY_LATE(why, {check});")
        else:
            self.lines.add(f"OIC_TRY({check});")

    # -- tensors ---------------------------------------------------------------

    def ref(self, value: Value) -> Ref:
        """Where a tensor lies; constants are declared when they are first used."""
        return self.refs[value]

    def place(self, value: Value) -> Ref:
        """Declare the pointer of a value that has an address of its own."""
        place = value.place
        assert place is not None and place.offset is not None, f"{value!r} has no address"
        type_ = value.tensor
        strides = place.strides if place.strides is not None else dense(type_.shape)
        key = (place.space, "" if place.space == "state" else place.buffer, place.offset)
        const = place.space in ("input", "weights")
        if self.moves(value):
            pointer = self.pointer(value.hint or "t", type_, self.movable[place.buffer], False, str(type_))
            self.refs[value] = Ref(pointer, type_, strides, False, key=key)
            return self.refs[value]
        same = self._declared((*key, type_.dtype.c))
        pointer = same or self._address(place.space, place.buffer, place.offset, type_)
        if same is None or (value.hint and self.names.stem(same) != self.names.stem_of(value.hint)):
            note = f"{type_}, in the memory of {same}" if same else str(type_)
            pointer = self.pointer(value.hint or "t", type_, pointer, const, note)
            self.scopes[-1].setdefault((*key, type_.dtype.c), pointer)
        ref = Ref(pointer, type_, strides, const, key=key)
        self.refs[value] = ref
        return ref

    def entry(self, symbol: str, box: Ref, note: str, hint: str = "") -> None:
        """Declare the pointer to a box that values are computed in."""
        pointer = self.pointer(hint or symbol, box.type, start_address(box), False, f"{box.type}, {note}")
        self.scopes[-1]["entry", symbol] = pointer
        self.entries[symbol] = box.type

    def moves(self, value: Value) -> bool:
        """The value's buffer exchanges its address with others: a pointer to it holds for a while."""
        place = value.place
        return place is not None and place.space == "arena" and place.buffer in self.movable

    def view(self, value: Value, base: Ref, start: Index, strides: Strides, address: str = "") -> Ref:
        """A value that is part of another's memory: `start` elements on, with strides of its own.

        `address` is a better expression of where it begins.
        """
        type_ = value.tensor
        key = base.key if start.number == 0 else None
        if base.type.dtype.packed:
            total = expr.arithmetic("+", base.start, start)
            if address and address != base.pointer:
                address = self.pointer(value.hint or "t", type_, address, base.const, str(type_))
            ref = replace(base, pointer=address or base.pointer, type=type_, strides=strides, start=total)
        else:
            moved = address or (base.pointer if start.number == 0 else f"{base.pointer} + {start.at(expr.SUM)}")
            stem = self.names.stem_of(value.hint)
            if moved != base.pointer or (value.hint and stem != self.names.stem(base.pointer)):
                moved = self.pointer(value.hint or "t", type_, moved, base.const, str(type_))
            ref = Ref(moved, type_, strides, base.const, key=key)
        self.refs[value] = ref
        return ref

    def pointer(self, hint: str, type_: TensorType, address: str, const: bool, note: str) -> str:
        """Declare a pointer variable; gives its name."""
        name = self.names.unique(hint)
        qualifier = "const " if const else ""
        text = f"{qualifier}{type_.dtype.c} *const {name} = {address}; /* {note} */"
        self.lines.declare(name, text)
        return name

    def named(self, ref: Ref, hint: str) -> Ref:
        """The same elements from a pointer variable.

        An index beyond the innermost dimension of `state->K[l][0]` has no meaning in C.
        """
        if ref.pointer.isidentifier():
            return ref
        return replace(ref, pointer=self.pointer(hint, ref.type, ref.pointer, ref.const, str(ref.type)))

    def _declared(self, key: tuple[Any, ...]) -> str | None:
        return next((s[key] for s in reversed(self.scopes) if key in s), None)

    def _address(self, space: str, buffer: str, offset: int, type_: TensorType) -> str:
        match space:
            case "arena":
                return f"oic_at(s->arena, {offset})"
            case "weights":
                return f"oic_at_const(s->weights, {offset})"
        base = self._declared((space, buffer)) or ""
        assert base, f"{space} {buffer} is none of this entry"
        elements = offset // type_.dtype.align
        return f"{base} + {elements}" if elements else base

    # -- nested blocks ---------------------------------------------------------

    @contextmanager
    def inside(self, region: Block) -> Iterator[None]:
        """Around the ops of a nested C block."""
        self.scopes.append({})
        with self.facts.inside(region):
            yield
        self.scopes.pop()


def start_address(ref: Ref) -> str:
    """The pointer to a tensor's first element."""
    if ref.start.number == 0:
        return ref.pointer
    per = 8 // ref.type.dtype.bits
    start = ref.start.number
    if start is None:  # the planner gives kernels packed operands at whole bytes only
        return f"{ref.pointer} + {ref.start.at(expr.ATOM)} / {per}"
    assert start % per == 0, f"a packed operand starts inside a byte: {ref.type} at {start}"
    return f"{ref.pointer} + {start // per}"


def _crowded(ops: Iterable[Op], ranges: Ranges) -> set[int]:
    """The lines on which checks of several places of the source are made."""
    columns: dict[int, set[int]] = {}
    for op in ops:
        if op.span is not None and ranges.refuses(op):
            columns.setdefault(op.span.line, set()).add(op.span.column)
    return {line for line, found in columns.items() if len(found) > 1}
