"""Facts about a whole module that its generated code shares: C names, places, memory layout."""

import math
import os
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from oic.codegen.names import LibraryNames, NameScope
from oic.diagnostics import Source, Span
from oic.ir import dims
from oic.ir.control import Func
from oic.ir.core import Op, Value
from oic.ir.dims import Extent
from oic.ir.grouping import by_key
from oic.ir.liveness import tensors
from oic.ir.module import Module
from oic.ir.ranges import Ranges
from oic.ir.state import COUNTS, StateLoad
from oic.ir.types import StateType, TensorType
from oic.kernels.kernel import Instance
from oic.memory import layout
from oic.memory.state_regions import Box
from oic.operators.fused import Fused


@dataclass(frozen=True)
class StateMember:
    """A persistent variable as a member of the structure of the state."""

    op: Any
    member: str
    offset: int
    nbytes: int

    @property
    def type(self) -> StateType:
        return self.op.type

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours along every dimension of `capacity_shape`."""
        return layout.storage_strides(self.type)

    @cached_property
    def storage(self) -> tuple[int, ...]:
        """Dimensions of the C array: of elements, or of bytes in the last one for packed types."""
        shape, outer = self.type.capacity_shape, len(self.type.table)
        if not self.type.dtype.packed:
            return tuple(max(1, size) for size in shape)
        return (*shape[:outer], self.nbytes // max(1, math.prod(shape[:outer])))


@dataclass
class CodePlace:
    """A place of the code that a profiling build measures.

    function  symbol of the entry
    spans     of the source that the code there is made of; none: what comes before the first statement
    ops       whose code is there, in order
    """

    function: str
    spans: tuple[Span, ...] = ()
    ops: list[Op] = field(default_factory=list)


class Unit:
    """One module on its way to C, as a library of its name or of another.

    profiled  the code measures itself: a place for each statement
    """

    def __init__(self, module: Module, name: str | None = None, profiled: bool = False) -> None:
        self.module, self.profiled = module, profiled
        self.places: list[CodePlace] = []
        self.names = LibraryNames(module.name if name is None else name, [f.symbol for f in module.functions()])
        self.name, self.macro = self.names.name, self.names.macro
        self.fields = _fields(module)
        self.by_state: dict[Value, StateMember] = {f.op.result: f for f in self.fields.values()}
        self.total = self.fields.get(COUNTS)  # the sum of the counts, if there are any
        plan = module.memory
        self.state_bytes = plan.state_bytes
        self.weights = {b.name: b for b in plan.space("weights")}
        self.arena = {(b.function, b.name): b for b in plan.space("arena")}
        used = dict.fromkeys((user.within(module.top), op) for op in module.constants() for user in op.result.users)
        self.constants = by_key((func, op) for func, op in used if isinstance(func, Func))  # that a function uses
        self.weights_bytes = plan.weights_bytes if self.weights else 0
        self.arena_bytes = layout.arena_bytes(module)
        self.ranges = Ranges()  # nothing changes any more
        self.headers = {"float_modes.h", "session.h", "num.h", "state/image.h", "state/saved.h"}  # below runtime_c
        self.instances: set[Instance] = set()  # kernels that the code calls
        self.rows = 0  # of products that it calls, at most
        self.headers |= {"profile/laps.h"} if profiled else set()

    @cached_property
    def loads(self) -> dict[Hashable, list[Value]]:
        """What is loaded of each box of the state."""
        loads = (op for op in self.module.all_ops() if isinstance(op, StateLoad))
        return by_key((Box.of(op).key(self.ranges), op.result) for op in loads)

    def spans(self, op: Op) -> list[Span]:
        """The places of the source that an op was made from, those of a fused body included."""
        spans = [op.span]
        if isinstance(op, Fused):
            spans = [inner.span for inner in op.body.ops if not inner.terminator] + spans
        return [span for span in spans if span is not None]

    def place(self, function: str, op: Op | None = None) -> int:
        """The number of the place of an op, or of what comes before the first statement of a function."""
        spans = () if op is None else tuple(dict.fromkeys(self.spans(op)))
        known = (n for n, p in enumerate(self.places) if p.function == function and p.spans == spans)
        number = next(known, len(self.places))
        if number == len(self.places):
            self.places.append(CodePlace(function, spans))
        self.places[number].ops += [] if op is None else [op]
        return number

    def source_lines(self, op: Op) -> list[str]:
        """The source lines that an op was made from, with their places."""
        found = {span.line: span for span in self.spans(op)}
        return [_shown(found[line].source, line) for line in sorted(found)]


@dataclass(frozen=True)
class EntryMember:
    """A pointer among an entry's inputs or outputs.

    value  the body's argument, or what it gives
    sizes  of an output the member for its shape, "" where that is static
    fits   memory of the size that an output has after a step has room for every value that is computed there
    """

    name: str
    member: str
    value: Value
    sizes: str = ""
    fits: bool = True

    @property
    def type(self) -> TensorType:
        return self.value.tensor


@dataclass(frozen=True)
class Signature:
    """What one entry takes and gives, by the names that C has for it."""

    symbol: str
    function: str
    inputs: tuple[EntryMember, ...]
    extents: tuple[tuple[Extent, str], ...]
    outputs: tuple[EntryMember, ...]


def _computed_as_others(func: Any) -> set[str]:
    """The outputs in whose memory values of other types are computed."""
    types = dict(zip(func.outputs, (value.type for value in func.returned), strict=True))
    placed = [(v.place.buffer, v.type) for v in tensors(func.body) if v.place is not None and v.place.space == "output"]
    return {buffer for buffer, type_ in placed if type_ != types.get(buffer)}


def signature(unit: Unit, func: Any) -> Signature:
    """The inputs, extents and outputs of an entry."""
    members = NameScope()
    inputs = [EntryMember(n, members.unique(n), arg) for n, arg in zip(func.inputs, func.body.args, strict=True)]
    taken = sorted(dims.extents(d for arg in func.body.args for d in arg.shape))
    extents = tuple((e, members.unique(e.name)) for e in taken)
    members = NameScope()
    outputs, others = [], _computed_as_others(func)
    for name, value in zip(func.outputs, func.returned, strict=True):
        member = members.unique(name)
        sizes = "" if value.tensor.static else members.unique(f"{member}_shape")
        outputs.append(EntryMember(name, member, value, sizes, value.tensor.static or name not in others))
    return Signature(func.symbol, unit.names.entries[func.symbol].function, tuple(inputs), extents, tuple(outputs))


def where(span: Span) -> str:
    """A place in the source without the folders of this machine: `decode.oi:12`."""
    return f"{os.path.basename(span.source.name)}:{span.line}"


@lru_cache(1 << 12)  # it may have any number of statements
def _shown(source: Source, line: int) -> str:
    """A line of the source with its place."""
    return f"{os.path.basename(source.name)}:{line}  {comment(source.line(line))}"


def comment(text: str) -> str:
    """Source text made safe for a C comment."""
    clean = " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *").removesuffix(" {")
    return clean if len(clean) <= 90 else clean[:87] + "..."


def _fields(module: Module) -> dict[str, StateMember]:
    names = NameScope()
    by_symbol = {op.symbol: op for op in module.states()}
    declared = {s: names.unique(s) for s in by_symbol if "." not in s}  # the user's names come first
    return {
        b.name: StateMember(by_symbol[b.name], declared.get(b.name) or names.unique(b.name), b.offset, b.nbytes)
        for b in module.memory.space("state")
    }
