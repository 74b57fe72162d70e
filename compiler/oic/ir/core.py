"""The SSA core: Value, Op, Block.

An op is one class (STYLE, section 2).  Its annotations say what it is made of: `Value` an
operand, `Value | None` an optional one, `list[Value]` the remaining ones, `Block` a region,
`list[Block]` any number of them; anything else is an attribute, a plain Python value, or a `Value`
too where its annotation says so (`float | Value`: a setting known at build or read at run time).

A region is exactly one block, so control flow nests.  A block's last op ends it (`yield`,
`return`).  State is a value; an op names the operands whose state it `reads` and `writes`.
"""

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, ClassVar

from oic.diagnostics import Span
from oic.dtypes import DType
from oic.ir import dims
from oic.ir.dims import Dim
from oic.ir.strides import Strides
from oic.ir.types import IndexType, StateType, TensorType, Type

REQUIRED = object()
KINDS = {  # of fields, by annotation; with any other it is an attribute
    "Value": "operand", "Value | None": "optional", "list[Value]": "rest",
    "Block": "region", "list[Block]": "regions",
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One declared part of an op.

    kind   'operand', 'optional', 'rest', 'region', 'regions' or 'attribute'
    """

    name: str
    kind: str
    default: Any
    annotation: str

    @property
    def nested(self) -> bool:
        """The field holds blocks, and no values."""
        return self.kind in ("region", "regions")

    @property
    def positional(self) -> bool:
        """The field holds operands, which are written by position."""
        return self.kind in ("operand", "optional", "rest")

    @property
    def values(self) -> bool:
        """The field may hold values: an operand, or an attribute whose annotation says so."""
        told = any(word in self.annotation for word in ("Value", "Any"))
        return self.positional or (self.kind == "attribute" and told)

    def blocks(self, part: Any) -> "list[Block]":
        """The blocks of what an op has there."""
        return list(part) if self.kind == "regions" else [part] if self.kind == "region" else []


@dataclass
class Place:
    """Where a value lies in PLANNED.

    space    'arena', 'state', 'weights', 'input', 'output' or 'local'; 'entry': computed in the
             part of the state or of a tensor that the `state.entry` or `part.entry` of this name gives
    buffer   name of the buffer, the unit that the memory map lists; values of one buffer alias
    offset   bytes from the start of the space; None where only the program knows (a view)
    strides  elements between neighbours along each dimension; None: row-major without gaps
    reason   why here: one of the memory decisions that `oic explain` prints
    """

    space: str
    buffer: str
    offset: int | None = 0
    strides: tuple[Dim, ...] | None = None
    reason: str = field(default="", compare=False)

    @property
    def memory(self) -> tuple[str, str]:
        """The space and the buffer."""
        return self.space, self.buffer


class Value:
    """Defined once: a result of an op, or an argument of a block.  Compared by identity.

    op   that defines it, or None for a block argument
    """

    __slots__ = ("_users", "hint", "op", "owner", "place", "type")

    def __init__(self, type: Type, owner: "Op | Block | None" = None, hint: str = "") -> None:
        self.type, self.hint, self.owner = type, hint, owner
        self.op: Op | None = owner if isinstance(owner, Op) else None
        self.place: Place | None = None
        self._users: dict[Op, int] = {}  # how often it takes it; kept by `Op`, those of detached regions included

    def give_to(self, owner: "Op | Block | None") -> None:
        """It is defined by this op from now on, or an argument of this block."""
        self.owner, self.op = owner, owner if isinstance(owner, Op) else None

    @property
    def users(self) -> "list[Op]":
        """The attached ops that take it as an operand, each once, in the order in which they were attached."""
        return [op for op in self._users if op.attached]

    @property
    def used(self) -> bool:
        """An attached op takes it as an operand."""
        return any(op.attached for op in self._users)

    def give_way(self, other: "Value") -> None:
        """Every op that takes it takes another value instead."""
        for op in list(self._users) if other is not self else ():
            op.replace_operands({self: other})

    @property
    def tensor(self) -> TensorType:
        """The type of a value known to be a tensor."""
        assert isinstance(self.type, TensorType), f"{self!r} is not a tensor"
        return self.type

    @property
    def state_type(self) -> StateType:
        """The type of a value known to be a state."""
        assert isinstance(self.type, StateType), f"{self!r} is no state"
        return self.type

    @property
    def symbol(self) -> str:
        """The name of the state or constant that it is."""
        assert self.op is not None, f"{self!r} has no name"
        return str(self.op.__dict__["symbol"])

    @property
    def placed(self) -> Place:
        """The place of a value known to have one."""
        assert self.place is not None, f"{self!r} has no place"
        return self.place

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.tensor.shape

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    def __repr__(self) -> str:
        return f"<%{self.hint or '?'}: {self.type}>"


class OpError(Exception):
    """A rule of an op that its operands or attributes break.

    slug     of the diagnostic it becomes
    where    name of the field that is wrong, or None
    """

    def __init__(self, slug: str, message: str, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.slug, self.message, self.where, self.hint = slug, message, where, hint


def ensure(rule: bool, what: str, where: str | None = None) -> None:
    """Refuse an op that breaks a rule of the IR."""
    if not rule:
        raise OpError("ir", what, where)


class Unequal(OpError):
    """Two sizes that must agree and cannot be compared at build: to be checked at run time."""

    def __init__(self, value: Value, axis: int, expected: Dim, where: str) -> None:
        super().__init__("shape-mismatch", f"size {value.shape[axis]} is not {expected}", where)
        self.value, self.axis, self.expected = value, axis, expected


def _unequal(value: Value, axis: int, expected: Dim, where: str, message: str) -> OpError:
    """The refusal of a size that is another than expected: now, if both are known."""
    known = isinstance(value.shape[axis], int) and isinstance(expected, int)
    return OpError("shape-mismatch", message, where) if known else Unequal(value, axis, expected, where)


REGISTRY: "dict[str, type[Op]]" = {}


class Op:
    """Base of every op.  Subclass with `name="…"`; see the module's docstring.

    Class attributes that an op may set (its traits):
    reads, writes   names of the operand fields whose state it reads or writes
    elementwise     result element i depends on operands' elements i alone
    view            the result is its first operand's memory, seen otherwise
    reshapes        a view of all elements of its operand, in order
    immediate       the result is a number in expressions, in memory only where an address is asked for
    inplace         operand fields whose memory the result may take over; of operators with kernels the kernel says it
    pure            no effect but its results; may be removed, moved and merged
    terminator      ends a block
    catalog         an operator of OPS, usable in source as `op name(…)`
    """

    name: ClassVar[str] = ""
    fields: ClassVar[dict[str, Field]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}  # of each field
    _flat: ClassVar[tuple[str, ...]] = ()  # names of the fields that may hold values
    _several: "ClassVar[itemgetter[Any] | None]" = None  # gives their values, where each field holds just one
    _nested: ClassVar[tuple[Field, ...]] = ()  # the fields that hold blocks
    _attributes: ClassVar[tuple[str, ...]] = ()  # names of the fields that are attributes
    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    elementwise: ClassVar[bool] = False
    view: ClassVar[bool] = False
    reshapes: ClassVar[bool] = False
    immediate: ClassVar[bool] = False
    inplace: ClassVar[tuple[str, ...]] = ()
    pure: ClassVar[bool] = True
    terminator: ClassVar[bool] = False
    catalog: ClassVar[bool] = False

    results: list[Value]
    span: Span | None
    block: "Block | None"
    kernel: str = ""
    """The name of the kernel that computes it, of operators that have some, once it is selected."""
    workers: int = 1
    """How many threads may share the call of that kernel."""

    def __init_subclass__(cls, name: str = "", **traits: Any) -> None:
        super().__init_subclass__()
        for key, value in traits.items():
            setattr(cls, key, (value,) if key in ("reads", "writes") and isinstance(value, str) else value)
        if cls.writes:
            cls.pure = False
        if not name:
            return
        assert name not in REGISTRY, f"two ops named {name}"
        cls.name = name
        cls.fields = _declared_fields(cls)
        cls._defaults = {key: spec.default for key, spec in cls.fields.items()}
        cls._flat = tuple(key for key, spec in cls.fields.items() if spec.values)
        single = len(cls._flat) > 1 and all(cls.fields[key].kind == "operand" for key in cls._flat)
        cls._several = itemgetter(*cls._flat) if single else None
        cls._nested = tuple(spec for spec in cls.fields.values() if spec.nested)
        cls._attributes = tuple(key for key, spec in cls.fields.items() if spec.kind == "attribute")
        type.__setattr__(cls, "__match_args__", tuple(cls.fields))
        if not cls._nested:
            type.__setattr__(cls, "regions", ())
        REGISTRY[name] = cls

    def __init__(self, *args: Any, span: Span | None = None, hint: str = "", **kw: Any) -> None:
        fields, parts = self.fields, self.__dict__
        assert len(args) <= len(fields), f"{self.name}: too many arguments"
        parts.update(self._defaults)
        parts.update(zip(fields, args))
        parts.update(kw)
        assert len(parts) == len(fields), f"{self.name}: unknown {sorted(kw.keys() - fields)}"
        for key, part in parts.items():
            assert part is not REQUIRED, f"{self.name}: {key} is missing"
            if type(part) is list:
                parts[key] = part.copy()
        for block in self.regions:
            block.owner = self
        parts["span"], parts["block"] = span, None
        parts["results"] = [Value(t, self, hint) for t in self.result_types()]

    def __setattr__(self, key: str, part: Any) -> None:
        """Set a part; while the op is in a block, the values it takes know it as a user."""
        parts = self.__dict__
        if key == "block":
            before = parts.get("block")
            parts[key] = part
            if (before is None) != (part is None):
                self._enlist(before is None)
        elif key in self._flat and parts.get("block") is not None:
            self._enlist(False)
            parts[key] = part
            self._enlist(True)
        else:
            object.__setattr__(self, key, part)

    def _enlist(self, enter: bool) -> None:
        """Enter the op among the users of its operands, or strike it out."""
        for value in self.operands:
            users = value._users
            if enter:
                users[self] = users.get(self, 0) + 1
            else:
                users.pop(self, None)

    # -- what subclasses say -------------------------------------------------

    def infer(self) -> list[Type]:
        """The types of the results, by default the field `type`; raises OpError.  The only type rule."""
        return [self.__dict__["type"]] if "type" in self.fields else []

    def result_types(self) -> list[Type]:
        """What `infer` gives, or the refusal of operands that the op does not take."""
        return self.infer()

    def verify(self) -> None:
        """Raise OpError unless what its regions yield fits what it carries or gives."""

    def seen(self, base: Strides) -> Strides | None:
        """Of a view: the strides of its results, from those of its first operand; None: it needs a copy of that."""
        raise AssertionError(f"{self.name} is no view of a value")

    def begins(self, number: int) -> list[tuple[Dim | Value, int]]:
        """Of a view: where in its first operand the result of a number begins: so many elements along an axis, each."""
        return []

    def ids_below(self, result: Value) -> Dim | Value | None:
        """What is above every element of a result, if none is negative; of another value what is; None: unknown."""
        return self.operands[0] if self.view else None

    def overwritable(self) -> tuple[str, ...]:
        """The operand fields whose memory the result may take over."""
        return self.inplace

    def takes_elements(self, value: Value) -> bool:
        """Element i of the results depends on element i of this operand alone."""
        return self.elementwise

    # -- structure -----------------------------------------------------------

    @property
    def result(self) -> Value:
        """The only result."""
        assert len(self.results) == 1, f"{self.name} has {len(self.results)} results"
        return self.results[0]

    @property
    def operands(self) -> list[Value]:
        """Every value the op takes, in field order, those in attributes included."""
        parts = self.__dict__
        if self._several is not None:
            return [*self._several(parts)]
        found: list[Value] = []
        for key in self._flat:
            part = parts[key]
            if type(part) is Value:
                found.append(part)
            elif part is not None:
                _values_in(part, found)
        return found

    def values_of(self, key: str) -> list[Value]:
        """The values that the op takes in one of its fields."""
        found: list[Value] = []
        _values_in(self.__dict__[key], found)
        return found

    @property
    def regions(self) -> "Sequence[Block]":
        """The nested blocks, in field order."""
        return [b for spec in self._nested for b in spec.blocks(self.__dict__[spec.name])]

    def attributes(self) -> dict[str, Any]:
        """Every attribute by name, those holding a run-time value included."""
        parts = self.__dict__
        return {key: parts[key] for key in self._attributes}

    def replace_operands(self, mapping: Mapping[Value, Value]) -> None:
        """Every operand that is a key becomes its value (regions are left alone)."""
        if not mapping or mapping.keys().isdisjoint(before := self.operands):
            return
        attached, parts = self.block is not None, self.__dict__
        if attached:
            for value in before:
                value._users.pop(self, None)
        for key in self._flat:
            parts[key] = _mapped(parts[key], mapping)
        if attached:
            self._enlist(True)

    def replace_operand(self, key: str, position: int, value: Value) -> None:
        """One of the operands in a field becomes another value, at no cost for the others."""
        values = self.__dict__[key]
        before, values[position] = values[position], value
        if self.block is not None and before is not value:
            value._users[self] = value._users.get(self, 0) + 1
            before._users[self] -= 1
            if not before._users[self]:
                del before._users[self]

    @property
    def line(self) -> int:
        """The line of the source that it was made of; 0: there is none."""
        return self.span.line if self.span is not None else 0

    @property
    def home(self) -> "Block":
        """The block of an op known to be in one."""
        assert self.block is not None, f"{self!r} is in no block"
        return self.block

    @property
    def attached(self) -> bool:
        """The op is in a block, whose owner is in a block, and so on up to a block without an owner."""
        block = self.block
        while block is not None and block.owner is not None:
            block = block.owner.block
        return block is not None

    def within(self, block: "Block") -> "Op | None":
        """The op of this block that it is, or in which it is nested; None: it is elsewhere."""
        op: Op | None = self
        while op is not None and op.block is not block:
            op = op.block.owner if op.block is not None else None
        return op

    def inside(self, block: "Block") -> bool:
        """The op is in this block or in one nested in it."""
        return self.within(block) is not None

    def touched(self, how: str = "") -> list[Value]:
        """The states read ('read'), written ('write') or either here, nested regions included."""
        ops = self.walk() if self._nested else (self,)
        if how:
            found = [op.__dict__[key] for op in ops for key in (op.reads if how == "read" else op.writes)]
        else:
            found = [op.__dict__[key] for op in ops for keys in (op.reads, op.writes) for key in keys]
        return list(dict.fromkeys(found))

    @property
    def effect_free(self) -> bool:
        """Pure, and so is everything nested."""
        return self.pure and all(op.effect_free or op.terminator for b in self.regions for op in b.ops)

    def walk(self) -> "Iterator[Op]":
        """This op and every op nested in it, in order."""
        return chain((self,), *[block.all_ops() for block in self.regions])

    def __repr__(self) -> str:
        return f"<{self.name}>"

    # -- for `infer` ----------------------------------------------------------

    def require(self, where: str, allowed: Collection[DType]) -> None:
        """Refuse operands, one or a list, whose dtype is not one of these."""
        for value in self.values_of(where):
            if value.dtype not in allowed:
                kinds = ", ".join(sorted(d.name for d in allowed))
                raise OpError("op-dtype", f"{self.name} does not take {value.dtype} ({kinds})", where)

    def require_same_dtype(self, *names: str) -> None:
        """Refuse operands of different dtypes."""
        first = getattr(self, names[0])
        for where in names[1:]:
            value = getattr(self, where)
            if value is not None and value.dtype is not first.dtype:
                what = f"operands of {self.name} differ in dtype: {first.dtype} and {value.dtype}"
                raise OpError("op-dtype", what, where, f"op cast(…, to={first.dtype}) makes them equal")

    def require_rank(self, where: str, low: int, high: int | None = None, hint: str | None = None) -> None:
        """Refuse an operand of another rank (`high` None: no upper limit)."""
        value = getattr(self, where)
        if value is None:
            return
        rank = value.tensor.rank
        if rank < low or (high is not None and rank > high):
            wanted = f"{low}" if high == low else f"{low} or more" if high is None else f"{low} to {high}"
            raise OpError("shape-mismatch", f"{self.name} takes rank {wanted}, not {value.type}", where, hint)

    def require_dim(self, where: str, axis: int, expected: Dim, value: Value | None = None) -> None:
        """Refuse a size other than `expected`; where build cannot tell, ask for a run-time check."""
        value = value or getattr(self, where)
        assert value is not None
        if (actual := value.shape[axis]) != expected:
            what = f"axis {axis % value.tensor.rank} of {value.type} is {actual}, not {expected}"
            raise _unequal(value, axis, expected, where, what)

    def require_shape(self, where: str, shape: Sequence[Dim]) -> None:
        """Refuse an operand of another rank or size."""
        self.require_rank(where, len(shape), len(shape))
        for axis, size in enumerate(shape if getattr(self, where) is not None else ()):
            self.require_dim(where, axis, size)

    def broadcast(self, *names: str, inner: int = 0) -> tuple[Dim, ...]:
        """NumPy's common shape of some operands, without so many innermost axes; only a static 1 stretches."""
        values = [(n, v) for n in names if isinstance(v := getattr(self, n), Value)]
        rank = max((v.tensor.rank for _, v in values), default=0)
        shape: list[Dim] = []
        for back in range(rank, inner, -1):
            common: Dim = 1
            for where, value in values:
                if value.tensor.rank < back or value.shape[-back] == 1:
                    continue
                if common == 1:
                    common = value.shape[-back]
                elif value.shape[-back] != common:
                    shapes = " and ".join(str(v.type) for _, v in values)
                    raise _unequal(value, -back, common, where, f"{shapes} do not broadcast together")
            shape.append(common)
        return tuple(shape)


class Block:
    """A straight list of ops with arguments; `owner` is the op whose region it is."""

    def __init__(self, ops: Iterable[Op] = ()) -> None:
        self.args: list[Value] = []
        self.owner: Op | None = None  # the op whose region this is
        self.ops: list[Op] = []
        for op in ops:
            self.append(op)

    def append(self, op: Op) -> Op:
        op.block = self
        self.ops.append(op)
        return op

    def insert(self, position: int, op: Op) -> None:
        """Insert an op before the one at a position."""
        op.block = self
        self.ops.insert(position, op)

    def argument(self, type: Type, hint: str = "") -> Value:
        """A new argument at the end."""
        value = Value(type, self, hint)
        self.args.append(value)
        return value

    @property
    def terminator(self) -> Op:
        """The op that ends the block."""
        return self.ops[-1]

    def walk(self) -> "Iterator[Block]":
        """This block and every block nested in it, outermost first."""
        yield self
        for op in self.ops:
            if op._nested:
                for block in op.regions:
                    yield from block.walk()

    def outward(self) -> "Iterator[Block]":
        """This block and every block around it, innermost first."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.owner.block if block.owner is not None else None

    def all_ops(self) -> Iterator[Op]:
        """Every op of this block and of the blocks nested in it, in order."""
        waiting = [iter(self.ops)]
        while waiting:  # no recursion: every op would pass through a generator for each block around it
            for op in waiting[-1]:
                yield op
                if op._nested:
                    waiting += [iter(block.ops) for block in reversed(op.regions)]
                    break
            else:
                waiting.pop()

    def replace(self, mapping: Mapping[Value, Value]) -> None:
        """Every use of a key, in this block and below, becomes its value (chains followed)."""
        if not mapping:
            return
        final = {k: _chase(v, mapping) for k, v in mapping.items()}
        for op in dict.fromkeys(op for value in final for op in value._users):
            if op.inside(self):
                op.replace_operands(final)

    def set_ops(self, ops: Iterable[Op]) -> None:
        """Replace the list of ops; an op that is left out and was not moved to another block is detached."""
        left, self.ops = self.ops, list(ops)
        if left == self.ops:
            return
        before = set(left)
        for op in before.difference(self.ops):
            if op.block is self:
                op.block = None
        for op in self.ops:
            if op not in before:
                op.block = self


def clone_block(block: Block, mapping: dict[Value, Value]) -> Block:
    """A deep copy; `mapping` takes outer values to new ones and receives every copied value."""
    copy = Block()
    copy.args = [_copy_value(arg, copy) for arg in block.args]
    mapping.update(zip(block.args, copy.args, strict=True))
    for op in block.ops:
        copy.append(clone_op(op, mapping))
    return copy


def clone_op(op: Op, mapping: dict[Value, Value]) -> Op:
    """A deep copy of one op with operands mapped; its results are added to `mapping`."""
    new = object.__new__(type(op))
    old, parts = op.__dict__, new.__dict__
    for key in op.fields:
        part = old[key]
        parts[key] = part.copy() if type(part) is list else part
    for key in op._flat:
        parts[key] = _mapped(parts[key], mapping)
    for spec in op._nested:
        copies = [clone_block(block, mapping) for block in spec.blocks(old[spec.name])]
        for copy in copies:
            copy.owner = new
        parts[spec.name] = copies if spec.kind == "regions" else copies[0]
    parts["span"], parts["block"] = op.span, None
    parts["kernel"], parts["workers"] = op.kernel, op.workers
    parts["results"] = [_copy_value(r, new) for r in op.results]
    mapping.update(zip(op.results, new.results, strict=True))
    return new


def _copy_value(value: Value, owner: Op | Block) -> Value:
    copy = Value(value.type, owner, value.hint)
    copy.place = value.place
    return copy


def _declared_fields(cls: type[Op]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__[: cls.__mro__.index(Op)]):
        for key, text in inspect.get_annotations(base).items():
            assert isinstance(text, str), f"{base.__module__} declares ops: from __future__ import annotations"
            if not text.startswith("ClassVar"):
                fields[key] = Field(key, KINDS.get(text, "attribute"), getattr(cls, key, REQUIRED), text)
    return fields


def _values_in(part: Any, found: list[Value]) -> None:
    kind = type(part)
    if kind is Value:
        found.append(part)
    elif kind is list or kind is tuple:
        for item in part:
            _values_in(item, found)


def _mapped(part: Any, mapping: Mapping[Value, Value]) -> Any:
    kind = type(part)
    if kind is Value:
        return mapping.get(part, part)
    if kind is list:
        return [_mapped(item, mapping) for item in part]
    if kind is tuple:
        return tuple([_mapped(item, mapping) for item in part])
    return part


def _chase(value: Value, mapping: Mapping[Value, Value]) -> Value:
    while value in mapping:
        value = mapping[value]
    return value


def seen_through(value: Value) -> Iterator[Value]:
    """A value, what it is a view of, and so on to what is no view."""
    yield value
    while value.op is not None and value.op.view:
        value = value.op.operands[0]
        yield value


def home_of(value: Value) -> Block | None:
    """The block in which a value is defined."""
    return value.owner.block if isinstance(value.owner, Op) else value.owner


def operand_parts(op: Op) -> list[Value | list[Value] | None]:
    """What the operand fields hold, in their order."""
    return [getattr(op, key) for key, spec in op.fields.items() if spec.positional]


def sizes_used(op: Op) -> frozenset[dims.Extent]:
    """Every extent in the types of an op's operands and results and in its attributes."""
    found = sizes_of([*op.operands, *op.results])
    for part in op.attributes().values():
        found += part if isinstance(part, (list, tuple)) else [part]
    return dims.extents(found)


def sizes_of(values: Iterable[Value]) -> list[Dim]:
    """Every size in the types of values."""
    return [size for value in values if isinstance(value.type, TensorType) for size in value.type.shape]


def is_index(value: Value) -> bool:
    """The value is an integer of index arithmetic."""
    return isinstance(value.type, IndexType)
