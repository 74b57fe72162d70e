"""A whole program at one stage: persistent state, constants, functions, and their data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from oic.diagnostics import Source
from oic.ir.control import Func
from oic.ir.core import Block, Op, clone_block
from oic.ir.encodings import ALIGN
from oic.ir.liveness import Liveness, liveness
from oic.ir.members import Elements
from oic.ir.state import CacheReset, Constant, State


@dataclass
class Buffer:
    """One stretch of planned memory, the unit of the memory map.

    space       'arena', 'state', 'weights', 'input' or 'output'
    offset      bytes from the start of the space
    nbytes      at the maximum of every extent
    start, end  positions in program order between which it is live (arena only)
    line        source line that first writes it, 0 if none
    function    symbol of the function it belongs to (arena, input, output), else ""
    reason      why it exists as memory of its own
    """

    name: str
    space: str
    offset: int
    nbytes: int
    align: int = 1
    start: int = 0
    end: int = 0
    line: int = 0
    function: str = ""
    reason: str = ""


@dataclass
class Plan:
    """Where everything lies: the memory map of a PLANNED module.

    align          bytes at whose multiples buffers of the arena begin (`kernels.targets.Target`)
    buffers        every buffer of every space
    arena_bytes    of each function by symbol; the arena is the largest
    lower_bound    largest sum of arena bytes live at once, of each function
    state_bytes, weights_bytes   sizes of the two other spaces
    live           positions of each function, as far as they were asked for: nothing changes them any more
    """

    align: int = ALIGN
    buffers: list[Buffer] = field(default_factory=list)
    arena_bytes: dict[str, int] = field(default_factory=dict)
    lower_bound: dict[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    weights_bytes: int = 0
    live: dict[Func, Liveness] = field(default_factory=dict, compare=False)

    def buffer(self, space: str, name: str, function: str = "") -> Buffer | None:
        """The buffer of this name, if there is one."""
        return next((b for b in self.buffers if (b.space, b.name, b.function) == (space, name, function)), None)

    def liveness(self, func: Func) -> Liveness:
        """When the values of a function are needed."""
        if func not in self.live:
            self.live[func] = liveness(func.body)
        return self.live[func]

    def space(self, name: str) -> list[Buffer]:
        """The buffers of one space, by offset."""
        return sorted((b for b in self.buffers if b.space == name), key=lambda b: b.offset)


@dataclass(frozen=True)
class Truncation:
    """How a state goes back to fewer positions, or why it does not (`ir.truncation`).

    counter  symbol of the integer that counts positions; "": there is none
    first    what it starts at
    tables   symbol of every table with entries of positions, and which of its indices the position is
    reason   why positions cannot be taken back; "": they can
    """

    counter: str = ""
    first: int = 0
    tables: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass
class Module:
    """A program.

    stage    'graph', 'indexed' or 'planned'
    top      block of `state`, `constant` and `func` ops; functions use the first two's values
    weights  data of every `constant` by symbol, one logical element an array element
    plan     the memory map, from the stage 'planned' on
    truncation  found when a graph was lowered; the text form does not have it
    """

    name: str
    stage: str = "graph"
    top: Block = field(default_factory=Block)
    weights: dict[str, Elements] = field(default_factory=dict)
    source: Source | None = None
    plan: Plan | None = None
    truncation: Truncation = field(default_factory=lambda: Truncation(reason="it was not looked for"))

    @property
    def memory(self) -> Plan:
        """The memory map of a module known to be PLANNED."""
        assert self.plan is not None, "a planned module has a plan"
        return self.plan

    def is_placed(self) -> bool:
        """Values have places: the module has left the stage `indexed`."""
        return any(r.place is not None for op in self.all_ops() for r in op.results)

    def functions(self) -> Iterator[Func]:
        """The `func` ops, in source order."""
        return (op for op in self.top.ops if isinstance(op, Func))

    def function(self, symbol: str) -> Func:
        """The `func` op of this symbol."""
        return next(f for f in self.functions() if f.symbol == symbol)

    def states(self) -> Iterator[State]:
        """The `state` ops, in declaration order."""
        return (op for op in self.top.ops if isinstance(op, State))

    def keeps_touched(self) -> set[State]:
        """The tables of whose entries (of rings, whose rings) it is kept which were touched."""
        found = {op for op in self.states() if op.forgets}
        for op in self.all_ops():
            if isinstance(op, CacheReset) and op.indices and isinstance(op.table.op, State):
                found.add(op.table.op)
        return {op for op in found if len(op.type.table) > int(op.type.ring)}

    def constants(self) -> Iterator[Constant]:
        """The `constant` ops."""
        return (op for op in self.top.ops if isinstance(op, Constant))

    def blocks(self) -> Iterator[Block]:
        """Every block of every function, those around others first."""
        return (block for func in self.functions() for block in func.body.walk())

    def all_ops(self) -> Iterator[Op]:
        """Every op, nested ones included, in order."""
        return self.top.all_ops()

    def clone(self) -> "Module":
        """A deep copy of the program; the data of constants is shared."""
        return replace(self, top=clone_block(self.top, {}), weights=dict(self.weights))
