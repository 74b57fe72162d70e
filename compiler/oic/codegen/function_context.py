"""One function being written: what its values are called in C and where their elements lie."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from oic.codegen import c_tree as c
from oic.codegen import expressions as expr
from oic.codegen.c_module import Signature, Unit
from oic.codegen.expressions import Index
from oic.codegen.names import identifier
from oic.dtypes import DType
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim, Extent
from oic.ir.facts import Facts
from oic.ir.grouping import by_key
from oic.ir.liveness import Liveness
from oic.ir.ranges import Ranges
from oic.ir.state import Splat
from oic.ir.strides import Strides, dense
from oic.ir.types import TensorType

STATE, WHY, SESSION = c.Identifier("state"), c.Identifier("why"), c.Identifier("s")
GIVEN = c.Identifier("given")  # the arguments of a kernel, beside its call
LINES, COLUMNS = (1 << 20) - 1, (1 << 11) - 1  # of places that a refusal can name


@dataclass(frozen=True)
class Ref:
    """The elements of a tensor.

    pointer   the address of stored elements (of bytes, for packed types)
    strides   elements between neighbours
    start     elements before the first; of packed types, whose elements have no address, and of parts
    key       what memory this is, where it is known at build: the same for values in one place
    """

    pointer: c.Expression
    type: TensorType
    strides: Strides
    const: bool
    start: Index = expr.ZERO
    key: tuple[Any, ...] | None = None


class Frame:
    """The state of writing one function."""

    def __init__(self, unit: Unit, face: Signature, live: Liveness) -> None:
        self.unit, self.face, self.live = unit, face, live
        self.crowded = _crowded(live.start, unit.ranges)
        self.body = c.Body()
        self.names = unit.names.scope.copy()
        self.names.reserve(GIVEN.text)
        self.extents: dict[Extent, c.Expression] = {}
        self.indices: dict[Value, Index] = {}  # what they are called
        self.facts = Facts()
        self.refs: dict[Value, Ref] = {}  # where tensors lie
        self.scopes: list[dict[tuple[Any, ...], c.Identifier]] = [{}]
        self.held: dict[tuple[Any, ...], TensorType] = {}  # what pointers to inputs, outputs and boxes are declared for
        self.late = False  # the state has been changed by now
        self.tried: c.Identifier | None = None  # where a refusal is noted, not made: the variable that has its status
        self.spans: tuple[tuple[str, str], ...] = ()  # of its outermost loops it has these iterations, by names

    # -- sizes and indices ---------------------------------------------------

    def dim(self, dim: Dim) -> Index:
        """A size, as an expression of ptrdiff_t."""
        return expr.size(dim, self.extents.__getitem__)

    def wide(self, dim: Dim) -> c.Expression:
        """A size that may have no ptrdiff_t, as int64_t."""
        return expr.size(dim, lambda extent: c.Conversion("int64_t", self.extents[extent])).value

    def index(self, value: Value) -> Index:
        """An index integer, and the values that it can have here."""
        index = self.indices[value]
        if index.number is not None:
            return index
        low, high = self.facts.of(value)
        return expr.number(low) if low == high else Index(index.value, low, high, index.wide)

    def number(self, part: Any) -> Index:
        """An integer, a size or an index integer."""
        return self.index(part) if isinstance(part, Value) else self.dim(part)

    def line(self, op: Op) -> c.Expression:
        """The source line of an op, with the column where others of that line refuse too; 0 if it has none."""
        if op.span is None or op.span.line > LINES:
            return c.Literal("0")
        line, column = op.span.line, op.span.column
        crowded = line in self.crowded and column <= COLUMNS
        return c.call("OIC_AT", line, column) if crowded else c.Literal(str(line))

    def refuse(self, op: Op, check: str, *args: c.Expression | int) -> None:
        """A check, called with what a refusal says and where it points."""
        self.attempt(c.call(f"oic_{check}", WHY, self.line(op), *args))

    def checked(self, op: Op, hint: str, check: str, *args: c.Expression) -> None:
        """Give an op its integer, which a check gives or refuses."""
        name = self.variable(op.result.hint or hint or "at", "int64_t")
        self.refuse(op, check, *args, c.Prefix("&", name))
        self.indices[op.result] = Index(name)

    def integer(self, op: Any, hint: str, name: str, found: c.Expression, dtype: DType) -> None:
        """Give an op the stored integer of a variable, which is refused where it fits no index."""
        if dtype.name == "u64" and not op.checked:
            self.checked(op, hint, "index_of_u64", c.string(name), found)
        else:
            exact = c.Conversion("int64_t", found) if op.checked else found
            self.indices[op.result] = Index(self.local(op.result.hint or hint or "at", exact))

    def attempt(self, check: c.Expression) -> None:
        """A call that may refuse the step."""
        if self.tried:
            self.body.add(c.AssignStatement(self.tried, check))
            self.body.add(c.IfStatement(c.Infix("!=", self.tried, c.Identifier("OIC_OK")), [c.Break()]))
        elif self.late:
            self.body.add(c.call("OIC_TRY_LATE", WHY, check))
        else:
            self.body.add(c.call("OIC_TRY", check))

    def local(self, hint: str, value: c.Expression, type_: c.Type = "int64_t", note: str = "") -> c.Identifier:
        """Declare a constant, dropped if nothing uses it."""
        return self.variable(hint, type_, value, const=True, optional=True, note=note)

    def variable(self, hint: str, type_: c.Type, value: c.Expression | None = None, **more: Any) -> c.Identifier:
        """Declare a variable; gives its name."""
        name = self.names.unique(hint)
        self.body.add(c.Declare(type_, name, value, **more))
        return c.Identifier(name)

    # -- tensors ---------------------------------------------------------------

    def place(self, value: Value) -> Ref:
        """Declare the pointer of a value that has an address of its own."""
        place = value.place
        assert place is not None and place.offset is not None, f"{value!r} has no address"
        type_ = value.tensor
        strides = place.strides if place.strides is not None else dense(type_.shape)
        key = (place.space, place.buffer, place.offset)
        const = place.space in ("input", "weights")
        known = (*key, type_.stored.c)
        same = self._declared(known)
        address = same or self._address(*key, type_)
        if same is None or self._renamed(same, value):
            note = f"{type_}, in the memory of {same.text}" if same else str(type_)
            address = named = self.pointer(value.hint or "t", type_, address, const, note)
            self.scopes[-1].setdefault(known, named)
        self.refs[value] = Ref(address, type_, strides, const, key=key)
        return self.refs[value]

    def constant(self, op: Splat) -> None:
        """Declare the one element of a value that kernels take the address of."""
        value, type_ = op.result, op.type
        if all(user.takes_elements(value) for user in value.users):
            return
        number, of = c.Braces((expr.stored_literal(op.value, type_.dtype),)), c.Array(type_.stored.c)
        name = self.variable(value.hint or "t", of, number, const=True, static=True, optional=True, note=str(type_))
        self.refs[value] = Ref(name, type_, dense(type_.shape), True)

    def entry(self, symbol: str, box: Ref, note: str, hint: str = "") -> None:
        """Declare the pointer to a box that values are computed in."""
        pointer = self.pointer(hint or symbol, box.type, address_of(box), False, f"{box.type}, {note}")
        self.scopes[-1]["entry", symbol] = pointer
        self.held["entry", symbol] = box.type

    def view(self, value: Value, base: Ref, start: Index, strides: Strides) -> None:
        """A value that is part of another's memory: `start` elements on, with strides of its own."""
        type_ = value.tensor
        key = base.key if start.number == 0 else None
        if base.type.dtype.packed:
            total = expr.arithmetic("+", base.start, start)
            self.refs[value] = replace(base, type=type_, strides=strides, start=total)
        else:
            moved = c.total(base.pointer, start.value)
            if moved != base.pointer or self._renamed(base.pointer, value):
                moved = self.pointer(value.hint or "t", type_, moved, base.const, str(type_))
            self.refs[value] = Ref(moved, type_, strides, base.const, key=key)

    def stem(self, pointer: c.Expression) -> str:
        """The name of a pointer variable before a number was added; "" of another address."""
        return self.names.stem(pointer.text) if isinstance(pointer, c.Identifier) else ""

    def _renamed(self, pointer: c.Expression, value: Value) -> bool:
        """A value has another name in the source than what it is read from."""
        return bool(value.hint) and identifier(value.hint) != self.stem(pointer)

    def pointer(self, hint: str, type_: TensorType, address: c.Expression, const: bool, note: str) -> c.Identifier:
        """Declare a pointer variable; gives its name."""
        return self.local(hint, address, c.Pointer(type_.stored.c, const), note)

    def named(self, ref: Ref, hint: str) -> Ref:
        """The same elements from a pointer variable.

        An index beyond the innermost dimension of `state->K[l][0]` has no meaning in C.
        """
        if isinstance(ref.pointer, c.Identifier):
            return ref
        return replace(ref, pointer=self.pointer(hint, ref.type, ref.pointer, ref.const, str(ref.type)))

    def _declared(self, key: tuple[Any, ...]) -> c.Identifier | None:
        return next((s[key] for s in reversed(self.scopes) if key in s), None)

    def _address(self, space: str, buffer: str, offset: int, type_: TensorType) -> c.Expression:
        if space in ("arena", "weights"):
            return memory(space, offset)
        base = self._declared((space, buffer))
        assert base, f"{space} {buffer} is none of this entry"
        if self.held[space, buffer].stored.c == type_.stored.c:
            return c.total(base, c.integer(offset // type_.dtype.align))
        const = space == "input"  # of another type: an i32 that becomes an f32 in its place
        start = c.total(c.Conversion(c.Pointer("uint8_t", const), base), c.integer(offset)) if offset else base
        return c.Conversion(c.Pointer("void", const), start)

    # -- nested blocks ---------------------------------------------------------

    @contextmanager
    def inside(self, region: Block) -> Iterator[None]:
        """Around the ops of a nested C block."""
        self.scopes.append({})
        with self.facts.inside(region):
            yield
        self.scopes.pop()


def memory(space: str, offset: int) -> c.Expression:
    """The address of what lies in the arena or among the weights."""
    return c.call("oic_at" if space == "arena" else "oic_at_const", c.Member(SESSION, space), offset)


def part_at(
    pointer: c.Expression, start: Index, type_: TensorType, strides: Sequence[Dim], key: tuple[Any, ...] | None = None
) -> Ref:
    """What may be written to `start` elements on: not added to the address of packed elements, which have none."""
    if type_.dtype.packed:
        return Ref(pointer, type_, tuple(strides), False, start, key)
    return Ref(c.total(pointer, start.value), type_, tuple(strides), False, key=key)


def address_of(ref: Ref, index: c.Expression = expr.ZERO.value) -> c.Expression:
    """The pointer to a tensor's first element, or to that at an index; the planner has packed ones at whole bytes."""
    per, start = max(1, 8 // ref.type.dtype.bits), ref.start.value
    if ref.start.number is not None:
        assert ref.start.number % per == 0, f"what is packed starts inside a byte: {ref.type} at {ref.start.number}"
        start = c.integer(ref.start.number // per)
    elif per > 1:
        start = c.Infix("/", start, c.integer(per))
    if per > 1 and index != expr.ZERO.value:
        index = c.Infix("/", index, c.integer(per))
    return c.total(ref.pointer, index, start)


def _crowded(ops: Iterable[Op], ranges: Ranges) -> set[int]:
    """The lines on which checks of several places of the source are made."""
    columns = by_key((op.span.line, op.span.column) for op in ops if op.span is not None and ranges.refuses(op))
    return {line for line, found in columns.items() if len(set(found)) > 1}
