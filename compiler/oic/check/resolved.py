"""A graph whose names are resolved: what `check.resolve` makes, and the later checks and `lower` read.

A block sees the temporaries and loop indices of the places that branch to it (SPEC section 6).  It is
therefore resolved once for every set of these that it uses: an `BlockInstance`, in which each name has one
meaning.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from oic.check.symbols import Meanings, Size, SymbolTable, Variable
from oic.diagnostics import Diagnostic, Span
from oic.syntax import tree as s


@dataclass(frozen=True)
class Uses:
    """What a statement itself uses, the bodies of loops and blocks aside.

    writes   with the place of each
    """

    reads: list[Variable | Size] = field(default_factory=list)
    writes: list[tuple[Variable, s.Access]] = field(default_factory=list)


NOTHING = Uses()
MOST_STATEMENTS = 20_000  # with each branch a copy of its block
DEEPEST_RUN = 100  # loops, branches and blocks, one inside the other, around a statement


def program_size(graph: s.Graph) -> Diagnostic:
    """Blocks are copied at each branch: small sources make programs without end."""
    what = f"with each branch a copy of its block, the graph has over {MOST_STATEMENTS} statements"
    return Diagnostic("program-size", what, graph.blocks[0].name_span)


@dataclass(eq=False)
class BlockInstance:
    """A block as some branches show it; tables are by the identity of syntax nodes.

    caller     the first branch to it; None where it runs by itself
    depth      how many blocks it runs inside, at the least
    lenient    nothing is known to run it: names of temporaries and loop indices may be missing
    meanings   of names, accesses and operator calls; what has none was refused
    uses       of statements
    runs       of branches and yields, the blocks that they run; None where there is no such block, or it is too deep
    """

    block: s.Block
    caller: Span | None
    depth: int
    lenient: bool
    meanings: Meanings = field(default_factory=dict, repr=False)
    uses: dict[int, Uses] = field(default_factory=dict, repr=False)
    runs: "dict[int, tuple[BlockInstance | None, ...]]" = field(default_factory=dict, repr=False)

    def variable(self, node: s.Name | s.Access | s.Declaration) -> Variable | None:
        """The variable that a name or an access means, or an `assign` declares, if there is one."""
        found = self.meanings.get(id(node))
        return found if isinstance(found, Variable) else None

    def used(self, statement: s.SourceStatement) -> Uses:
        return self.uses.get(id(statement), NOTHING)

    def run_by(self, statement: s.SourceStatement) -> "Iterator[BlockInstance]":
        """The blocks that a branch or a `yield` runs."""
        return (found for found in self.runs.get(id(statement), ()) if found is not None)


@dataclass(frozen=True)
class Resolved:
    """A graph with its names resolved.

    entries    `entry` and the blocks with `@entry`, in source order
    consumers  the blocks that run at a `yield`
    instances  of every block, in the order in which they were found
    sizes      names of sizes that statements use
    """

    graph: s.Graph
    symbols: SymbolTable
    entries: tuple[BlockInstance, ...]
    consumers: tuple[BlockInstance, ...]
    instances: Mapping[str, list[BlockInstance]]
    sizes: frozenset[str]
    diagnostics: list[Diagnostic] = field(default_factory=list)


Ran = tuple[BlockInstance, s.SourceStatement]


def ran(instance: BlockInstance, body: Iterable[s.SourceStatement], *, consumers: bool = True) -> Iterator[Ran]:
    """Statements and those of all blocks that they run, each block once.

    consumers   those that a `yield` runs are among them
    """
    seen: set[BlockInstance] = set()
    waiting = [(instance, tuple(body))]
    while waiting:
        at, statements = waiting.pop()
        for statement in s.walk(statements):
            yield at, statement
            for block in at.run_by(statement) if consumers or isinstance(statement, s.Branch) else ():
                if block not in seen:
                    seen.add(block)
                    waiting.append((block, block.block.body))


def effects(instance: BlockInstance, body: Iterable[s.SourceStatement] | None = None) -> Uses:
    """What statements, by default all of a block, use, together with all that they run."""
    reads: dict[Variable | Size, None] = {}
    writes: dict[Variable, s.Access] = {}
    for at, statement in ran(instance, instance.block.body if body is None else body):
        used = at.used(statement)
        reads |= dict.fromkeys(used.reads)
        for variable, access in used.writes:
            writes.setdefault(variable, access)
    return Uses(list(reads), list(writes.items()))


def assigned(instance: BlockInstance, body: Iterable[s.SourceStatement]) -> list[Variable]:
    """Volatile variables and temporaries that statements give values to, branches included.

    Of what consumers write, only the variables yielded come back.
    """
    found: dict[Variable, None] = {}
    for at, statement in ran(instance, body, consumers=False):
        written = [variable for variable, _ in at.used(statement).writes]
        if isinstance(statement, s.Yield):
            written = [v for name in statement.names if (v := at.variable(name)) is not None]
        found |= dict.fromkeys(variable for variable in written if variable.local)
    return list(found)


def returns(body: Iterable[s.SourceStatement]) -> bool:
    """The statements or their loops have a `return`."""
    return any(isinstance(x, s.Return) for x in s.walk(tuple(body)))
