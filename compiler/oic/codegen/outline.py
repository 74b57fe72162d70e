"""Consumers as C functions of their own, which a pool may run at once.

    static oic_status two_step_left(void *context, oic_refusal *why)   one function a region, with
    {                                                                  a structure of what it takes
        const two_step_left_args *const args = context;                from the step around it
        two *const s = args->s;
        float *const h = oic_at(s->arena, 0);
        ...
    }

What has an address known at build is found by that; the rest (indices, sizes, inputs, views) are
members of the structure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from oic.codegen import expressions as expr
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref
from oic.codegen.lines import Line, Lines
from oic.codegen.loops import COUNTERS
from oic.codegen.names import identifier
from oic.ir.core import Block, Value
from oic.ir.dims import Dim, Extent, extents
from oic.ir.types import TensorType
from oic.memory.views import dense

T = TypeVar("T")
Write = Callable[[Frame, Block], None]


@dataclass(frozen=True)
class Task:
    """A function that runs one region, and the structure it takes.

    takes   what the step puts into the structure, by member
    gives   sizes that the region has found, by the member they are in afterwards
    """

    title: str
    function: str
    struct: str
    members: tuple[str, ...]
    lines: tuple[str, ...]
    takes: dict[str, str]
    gives: dict[Extent, str]


@dataclass(frozen=True)
class Taken:
    """A member of the structure: its C declaration, and what the step puts there."""

    declaration: str
    source: str


class Seen(dict[Value, T]):
    """What a task knows of values; those of the step around it are taken when first asked for."""

    def __init__(self, outer: Mapping[Value, T], take: Callable[[Value], T]) -> None:
        super().__init__()
        self.outer, self.take = outer, take

    def __contains__(self, value: object) -> bool:
        return super().__contains__(value) or value in self.outer

    def __missing__(self, value: Value) -> T:
        self[value] = self.take(value)
        return self[value]

    def get(self, value: Value, default: Any = None) -> Any:
        return self[value] if value in self else default  # noqa: SIM401  (this is `get`)


class TaskFrame(Frame):
    """The frame of a task: what it does not define itself comes from the frame of the step."""

    def __init__(self, outer: Frame) -> None:
        super().__init__(outer.unit, outer.face, outer.live)
        self.outer, self.facts = outer, outer.facts
        self.late, self.tried = outer.late, ""
        self.taken: dict[str, Taken] = {}
        self.head = Lines()
        self.indices: Seen[Index] = Seen(outer.indices, self._take_index)
        self.refs: Seen[Ref] = Seen(outer.refs, self._take_ref)
        for name in ("s", "state", "why", "args", "context"):
            self.names.reserve(name)

    def dim(self, dim: Dim) -> Index:
        return expr.size(dim, self._extent)

    def _extent(self, extent: Extent) -> str:
        if extent not in self.extents:
            self.extents[extent] = self._take(extent.name, "const ptrdiff_t ", self.outer.extents[extent])
        return self.extents[extent]

    def _name(self, hint: str) -> str:
        """Of what is declared before all else: no counter, since loops that are written already may have it."""
        return self.names.unique(f"{hint}_taken" if identifier(hint) in COUNTERS else hint)

    def _take(self, hint: str, c: str, source: str) -> str:
        """A member of the structure, and a variable of its name; gives the name."""
        name = self._name(hint)
        self.taken[name] = Taken(f"{c.removeprefix('const ')}{name};", source)
        self.head.declare(name, f"{c}{name} = args->{name};")
        return name

    def _take_index(self, value: Value) -> Index:
        index = self.outer.index(value)
        if index.number is not None:
            return index
        hint = index.text if index.text.isidentifier() else value.hint or "at"
        c = "const int64_t " if index.wide else "const ptrdiff_t "
        return replace(index, text=self._take(hint, c, index.text), level=expr.ATOM)

    def _take_ref(self, value: Value) -> Ref:
        place, op, type_ = value.place, value.op, value.tensor
        if op is not None and op.name == "constant":
            ref = self.outer.ref(value)
            offset, _ = self.unit.weights[op.attributes()["symbol"]]
            address = f"oic_at_const(s->weights, {offset})"
            return replace(ref, pointer=self._found(value.hint or "t", type_, address, const=True))
        if place is not None and place.space == "arena" and place.offset is not None:
            strides = place.strides if place.strides is not None else dense(type_.shape)
            key = (place.space, place.buffer, place.offset)
            pointer = self._declared((*key, type_.dtype.c))
            if pointer is None:
                pointer = self._found(value.hint or "t", type_, f"oic_at(s->arena, {place.offset})", const=False)
                self.scopes[0][(*key, type_.dtype.c)] = pointer
            return Ref(pointer, type_, strides, False, key=key)
        return self._take_view(self.outer.ref(value), value.hint or "t")

    def _take_view(self, ref: Ref, hint: str) -> Ref:
        """A pointer that only the step knows."""
        hint = ref.pointer if ref.pointer.isidentifier() else hint
        c = f"{'const ' if ref.const else ''}{ref.type.dtype.c} *"
        name = self._name(hint)
        self.taken[name] = Taken(f"{c}{name};", ref.pointer)
        self.head.declare(name, f"{c}const {name} = args->{name}; /* {ref.type} */")
        start = ref.start
        if start.number is None:
            start = replace(start, text=self._take(f"{name}_start", "const int64_t ", start.text), level=expr.ATOM)
        return replace(ref, pointer=name, start=start)

    def _found(self, hint: str, type_: TensorType, address: str, *, const: bool) -> str:
        """A pointer to what lies at an offset known at build, declared before all else."""
        name = self._name(hint)
        c = f"{'const ' if const else ''}{type_.dtype.c} *const "
        self.head.declare(name, f"{c}{name} = {address}; /* {type_} */")
        return name

    def _declared(self, key: tuple[Any, ...]) -> str | None:
        """The pointer to an input, an output or an entry may be the step's; all others are the task's own."""
        found = super()._declared(key)
        outer = self.outer._declared(key) if found is None and len(key) == 2 else None
        if outer is not None:
            if key[0] == "entry":
                type_ = self.outer.entries[key[1]]
            else:
                values = [i.value for i in self.face.inputs] + [o.value for o in self.face.outputs]
                places = [(v.place, v.tensor) for v in values if v.place]
                type_ = next(t for place, t in places if (place.space, place.buffer) == key)
            found = self._take_view(Ref(outer, type_, (), key[0] == "input"), outer).pointer
            self.scopes[0][key] = found
        return found


def task(outer: Frame, name: str, region: Block, results: list[Value], write: Write) -> Task:
    """The function of one region.

    results  of the op, that the region gives
    write    writes the ops of the region into a frame
    """
    unit = outer.unit
    function = unit.names.unique(f"{outer.face.function}_{name}", outer.names)
    struct = unit.names.unique(f"{function}_args", outer.names)
    frame = TaskFrame(outer)
    with frame.inside(region):
        write(frame, region)
    given = sorted(extents([d for v in results for d in v.shape]) & bound(region), key=lambda e: e.name)
    out = [frame.names.unique(f"out_{frame.extents[e]}") for e in given]
    for extent, member in zip(given, out, strict=True):
        frame.lines.add(f"args->{member} = {frame.extents[extent]};")
    outer.late |= any(op.touched("write") for op in region.ops)
    lines = _function_lines(frame, struct)
    used = {line.declares for line in lines.kept()}
    taken = {n: t for n, t in frame.taken.items() if n in used}
    members = [f"{unit.name}_session *s;", *(t.declaration for t in taken.values())]
    members += [f"ptrdiff_t {member}; /* given back */" for member in out]
    return Task(
        f"Consumer `{name}` of {outer.face.function}.",
        function,
        struct,
        tuple(members),
        tuple(lines.text()),
        {"s": "s"} | {n: t.source for n, t in taken.items()},
        dict(zip(given, out, strict=True)),
    )


def bound(region: Block) -> frozenset[Extent]:
    """The extents that a region itself binds."""
    return frozenset(op.attributes()["extent"] for op in region.ops if op.name == "extent.bind")


def _function_lines(frame: TaskFrame, struct: str) -> Lines:
    """The head of the function before its statements."""
    unit, whole = frame.unit, Lines()
    whole.declare("args", f"{struct} *const args = context;")
    whole.declare("s", f"{unit.name}_session *const s = args->s;")
    whole.declare("state", f"{unit.name}_state *const state = s->state;")
    whole.items += frame.head.items
    if not any("why" in line.text for line in frame.lines.items):
        whole.add("(void)why; /* nothing here can be refused */")
    whole.items += [Line(0, "", comment=True), *frame.lines.items]
    whole.add("return OIC_OK;")
    if not any(line.declares == "args" for line in whole.kept()):
        whole.items.insert(0, Line(1, "(void)context;"))
    return whole
