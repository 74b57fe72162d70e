"""Consumers, and loops that threads share, as C functions of their own, which a pool may run at once.

    static oic_status two_step_left(void *context, oic_refusal *why)   one function a region, with
    {                                                                  a structure of what it takes
        const two_step_left_args *const args = context;                from the step around it
        two *const s = args->s;
        float *const h = oic_at(s->arena, 0);
        ...
    }

What has an address known at build is found by that; the rest (indices, sizes, inputs, views) are
members of the structure.  The function of a loop takes iterations of it, `first` to `end`, and no refusal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from oic.codegen import c_print
from oic.codegen import c_tree as c
from oic.codegen.expressions import Index
from oic.codegen.function_context import SESSION, WHY, Frame, Ref, memory
from oic.codegen.loops import COUNTERS
from oic.codegen.names import identifier
from oic.ir.core import Block, Value
from oic.ir.dims import Extent, extents, of
from oic.ir.index import bound_in

Key = TypeVar("Key")
T = TypeVar("T")
Write = Callable[[Frame, Block], None]
ARGS = c.Identifier("args")


@dataclass(frozen=True)
class Task:
    """A function that runs one region or a loop, and the structure it takes.

    head    its declaration
    takes   what the step puts into the structure, by member
    gives   sizes that the region has found, by the member they are in afterwards
    """

    title: str
    function: str
    head: str
    struct: str
    members: tuple[str, ...]
    lines: tuple[str, ...]
    takes: dict[str, c.Expression]
    gives: dict[Extent, str]

    @property
    def context(self) -> c.Expression:
        """The address of the structure, written where it is used."""
        return c.Prefix("&", c.Braces(tuple(self.takes.values()), tuple(self.takes), self.struct))


class Seen(dict[Key, T]):
    """What a task knows of values or extents; those of the step around it are taken when first asked for."""

    def __init__(self, outer: Mapping[Key, T], take: Callable[[Key], T]) -> None:
        super().__init__()
        self.outer, self.take = outer, take

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self.outer

    def __missing__(self, key: Key) -> T:
        self[key] = self.take(key)
        return self[key]


class TaskFrame(Frame):
    """The frame of a task: what it does not define itself comes from the frame of the step."""

    def __init__(self, outer: Frame, name: str) -> None:
        names = outer.unit.names
        self.function = names.unique(f"{outer.face.function}_{name}", outer.names)
        self.struct = names.unique(f"{self.function}_args", outer.names)
        super().__init__(outer.unit, outer.face, outer.live)
        self.outer, self.facts, self.late, self.held = outer, outer.facts, outer.late, outer.held
        self.taken: dict[str, tuple[c.Type, c.Expression]] = {}  # members of the structure: what the step puts there
        self.head = c.Body()
        self.indices: Seen[Value, Index] = Seen(outer.indices, self._take_index)
        self.refs: Seen[Value, Ref] = Seen(outer.refs, self._take_ref)
        self.extents: Seen[Extent, c.Expression] = Seen(outer.extents, self._take_extent)
        self.names.reserve("s", "state", "why", "args", "context", "first", "end", "worker", "from", "to", "sum", "ld")

    def _name(self, hint: str) -> str:
        """A name for what is declared before all else: no counter, since loops that are written already may have it."""
        return self.names.unique(f"{hint}_taken" if identifier(hint) in COUNTERS else hint)

    def _take(self, hint: str, type_: c.Type, source: c.Expression, note: str = "") -> c.Identifier:
        """A member of the structure, and a variable of its name."""
        name = self._name(hint)
        self.taken[name] = (type_, source)
        self.head.declare(type_, name, c.Member(ARGS, name), note=note)
        return c.Identifier(name)

    def _take_extent(self, extent: Extent) -> c.Expression:
        return self._take(extent.name, "ptrdiff_t", self.outer.dim(of(extent)).value)

    def _take_index(self, value: Value) -> Index:
        index = self.outer.index(value)
        if index.number is not None:
            return index
        hint = index.value.text if isinstance(index.value, c.Identifier) else value.hint or "at"
        return replace(index, value=self._take(hint, "int64_t" if index.wide else "ptrdiff_t", index.value))

    def _take_ref(self, value: Value) -> Ref:
        place, ref = value.place, self.outer.refs[value]
        if place is None or place.space not in ("arena", "weights") or place.offset is None:
            return self._take_view(ref, value.hint or "t")
        key = (place.space, place.buffer, place.offset, ref.type.stored.c)
        if (pointer := self._declared(key)) is None:
            address, name = memory(place.space, place.offset), self._name(value.hint or "t")
            self.head.declare(c.Pointer(ref.type.stored.c, ref.const), name, address, note=str(ref.type))
            self.scopes[0][key] = pointer = c.Identifier(name)
        return replace(ref, pointer=pointer)

    def _take_view(self, ref: Ref, hint: str) -> Ref:
        """A pointer that only the step knows."""
        hint = ref.pointer.text if isinstance(ref.pointer, c.Identifier) else hint
        name = self._take(hint, c.Pointer(ref.type.stored.c, ref.const), ref.pointer, str(ref.type))
        start = ref.start
        if start.number is None:
            start = replace(start, value=self._take(f"{name.text}_start", "int64_t", start.value))
        return replace(ref, pointer=name, start=start)

    def _declared(self, key: tuple[Any, ...]) -> c.Identifier | None:
        """The pointer to an input, an output or an entry may be the step's; all others are the task's own."""
        found = super()._declared(key)
        outer = self.outer._declared(key) if found is None and len(key) == 2 else None
        if outer is not None:
            type_ = self.held[key]
            found = self._take(outer.text, c.Pointer(type_.stored.c, key[0] == "input"), outer, str(type_))
            self.scopes[0][key] = found
        return found


def task(outer: Frame, name: str, region: Block, results: list[Value], write: Write) -> Task:
    """The function of one region.

    results  of the op, that the region gives
    write    writes the ops of the region into a frame
    """
    frame = TaskFrame(outer, name)
    with frame.inside(region):
        write(frame, region)
    given = sorted(extents(d for v in results for d in v.shape) & bound_in(region.ops))
    out = {extent: frame.names.unique(f"out_{extent.name}") for extent in given}
    for extent, member in out.items():
        frame.body.add(c.AssignStatement(c.Member(ARGS, member), frame.extents[extent]))
    outer.late |= any(op.touched("write") for op in region.ops)
    if not isinstance(next(iter(frame.body.statements), None), c.Comment):
        frame.body.statements.insert(0, c.Comment(()))
    if "why" not in c_print.names(frame.body.statements):
        frame.body.statements.insert(0, c.Do(c.Conversion("void", WHY), "nothing here can be refused"))
    frame.body.add(c.ReturnStatement(c.Identifier("OIC_OK")))
    title = f"Consumer `{name}` of {outer.face.function}."
    return _task(frame, title, "oic_status", [c.Declare(c.Pointer("oic_refusal"), "why")], out)


def shared_loop(outer: Frame, write: Callable[[Frame], None]) -> Task:
    """The function of some iterations of the outermost loop that `write` makes, or of some units, an `oic_part`."""
    frame = TaskFrame(outer, "loop")
    frame.spans = (("first", "end"),)
    frame.body.add(c.Do(c.Conversion("void", c.Identifier("worker"))))
    write(frame)
    some = [c.Declare("ptrdiff_t", "first"), c.Declare("ptrdiff_t", "end"), c.Declare("int", "worker")]
    return _task(frame, f"Some iterations of a loop of {outer.face.function}.", "void", some, {}, const=True)


def continuation(outer: Frame, product: str, write: Callable[[Frame], None]) -> Task:
    """The function of some iterations of the two loops that `write` makes, an `oic_then`.

    product  the place of the product whose results it takes
    """
    frame = TaskFrame(outer, "then")
    frame.spans = (("first", "end"), ("from", "to"))
    write(frame)
    sums = c.Declare(c.Pointer("float", const=True, restrict=True), "sum")
    some = [sums, *(c.Declare("ptrdiff_t", name) for name in ("ld", "first", "end", "from", "to"))]
    title = f"What {outer.face.function} does to some results of the product at {product}."
    return _task(frame, title, "void", some, {}, const=True)


def _task(
    frame: TaskFrame, title: str, result: str, parameters: list[c.Declare],
    gives: dict[Extent, str], *, const: bool = False,
) -> Task:  # fmt: skip
    """A function with these parameters behind its structure; `const`: that is only read."""
    session = c.Pointer(f"{frame.unit.name}_session")
    first = c.Body()
    first.declare(c.Pointer(frame.struct, const), "args", c.Identifier("context"))
    first.declare(session, "s", c.Member(ARGS, "s"))
    first.declare(c.Pointer(f"{frame.unit.name}_state"), "state", c.Member(SESSION, "state"))
    body = c_print.kept([*first.statements, *frame.head.statements, *frame.body.statements])
    if "context" not in c_print.names(body):
        body.insert(0, c.Do(c.Conversion("void", c.Identifier("context"))))
    used = {s.name for s in body if isinstance(s, c.Declare)}
    taken = {name: found for name, found in frame.taken.items() if name in used}
    if "s" in used or not taken:  # a structure has a member that is set
        taken = {"s": (session, SESSION), **taken}
    context = c.Declare(c.Pointer("void", const), "context")
    head = c_print.function("static", result, frame.function, [context, *parameters])
    members = [c.Declare(type_, member) for member, (type_, _) in taken.items()]
    members += [c.Declare("ptrdiff_t", member, note="given back") for member in gives.values()]
    takes = {member: source for member, (_, source) in taken.items()}
    lines, shown = tuple(c_print.lines(body)), tuple(c_print.members(members))
    return Task(title, frame.function, head, frame.struct, shown, lines, takes, gives)
