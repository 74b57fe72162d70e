"""What names mean (SPEC section 1): variables, sizes, loop indices; and what a graph declares.

A name is looked up once, by `check.resolve`; whatever comes after reads the objects found then.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any, Self, TypeVar

from oic import dtypes
from oic.check.literals import number
from oic.diagnostics import Note
from oic.dtypes import DType
from oic.ir.dims import Dim
from oic.operators.base import Operator
from oic.syntax import tree as s

T = TypeVar("T")
LOCAL = ("volatile", "temporary")
MOST_CIRCLES = 100  # that are reported, of blocks or of sizes


@dataclass(eq=False)
class Variable:
    """A variable of a section, or a temporary.

    dtype     any, where the declaration is refused
    refused   it cannot be used, and that was reported
    dims      sizes of a bound variable of a section; None for `?`
    init      of every element, where `@init` gives one
    data      model tensor that backs it (constant, volatile), by name
    scalar    config value that backs it
    members   of a family with a pattern: model tensor by index tuple
    counts    of a family that the model backs: how far each index reaches
    reach     of one that nothing backs: the members along each index that uses ask for, None where a step decides it
    accesses  of a persistent variable by `cache.` statements that may run: where, whether it is written, and what the
              names there mean
    """

    declaration: s.Declaration
    dtype: DType
    refused: bool = False
    dims: tuple[Dim | None, ...] = ()
    init: Any = None
    data: str | None = None
    scalar: Any = None
    members: dict[tuple[int, ...], str] = field(default_factory=dict)
    counts: tuple[int, ...] = ()
    reach: "tuple[int | None, ...]" = ()
    accesses: "list[tuple[s.Access, bool, Meanings]]" = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, declaration: s.Declaration) -> Self:
        """The variable of a declaration, before anything else is known of it."""
        dtype = dtypes.ALL.get(declaration.dtype)
        return cls(declaration, dtype or dtypes.f32, dtype is None)

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def kind(self) -> str:
        return self.declaration.kind

    @cached_property
    def indices(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.declaration.indices or ())

    @property
    def indexed(self) -> bool:
        """The variable is declared with indices, right or wrong."""
        return self.declaration.indices is not None

    @property
    def axes(self) -> tuple[s.Name, ...]:
        """Its dimensions that are just a name: of an input, what gives extents their values."""
        return tuple(dim for dim in self.declaration.dims if isinstance(dim, s.Name))

    @cached_property
    def grows(self) -> tuple[str, ...]:
        """Names of the indices that grow a dimension each."""
        return self._named_in("auto_dim")

    @cached_property
    def table(self) -> tuple[str, ...]:
        """Names of the indices that select entries: of a table, or the members of a pattern."""
        return tuple(i for i in self.indices if i not in self.grows)

    @cached_property
    def ring(self) -> str | None:
        """The index over which a table is a ring, or None."""
        return next(iter(self._named_in("ring")), None)

    def _named_in(self, attribute: str) -> tuple[str, ...]:
        found = self.attribute(attribute)
        return tuple(a.value.name for a in found.args if isinstance(a.value, s.Name)) if found else ()

    @property
    def first(self) -> bool | float | int:
        """What every element is to begin with where no tensor says it: t1 has no zero."""
        given = self.scalar if self.scalar is not None else self.init
        return number(given if given is not None else -1 if self.dtype is dtypes.t1 else 0, self.dtype)

    @property
    def family(self) -> bool:
        """`W(l)`: members are used as `W[i]`, with a pattern or stacked in one tensor."""
        return bool(self.indices) and self.kind in ("constant", "volatile")

    @property
    def stacked(self) -> bool:
        """A family in one tensor, whose leading axes are the indices (SPEC section 5)."""
        return self.family and self.attribute("pattern") is None

    @cached_property
    def places(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """Where members lie by their indices: of a pattern with holes one after the other."""
        holes = len(self.members) != math.prod(self.counts)
        return {key: (at,) if holes else key for at, key in enumerate(sorted(self.members))}

    @property
    def absent(self) -> bool:
        """A constant to which neither a model nor `@init` gives a value."""
        return self.kind == "constant" and self.init is None and self.scalar is None and not self.stored

    @property
    def stored(self) -> bool:
        """A model tensor backs it, or several do."""
        return self.data is not None or bool(self.members)

    @property
    def local(self) -> bool:
        """What it holds is a value of the function that runs: volatile, or a temporary."""
        return self.kind in LOCAL

    @property
    def single(self) -> bool:
        """The variable is declared without indices, and of one element."""
        return not self.indexed and all(isinstance(d, s.Int) and d.value == 1 for d in self.declaration.dims)

    @property
    def scalar_state(self) -> bool:
        """Persistent, of one element and no table: its name means its value at that point."""
        return self.kind == "persistent" and self.single

    def fixed(self, index: str) -> s.Setting | None:
        """The bound that `@fixed` gives an index, as written."""
        found = self.attribute("fixed")
        return next((arg.value for arg in found.args if arg.key == index), None) if found else None

    def attribute(self, name: str) -> s.Attribute | None:
        """The attribute of this name."""
        return s.attribute(self.declaration, name)

    def note(self) -> Note:
        """Where it is declared, for diagnostics."""
        return Note(self.declaration.head_span, "declared here")


@dataclass(eq=False)
class LoopIndex:
    """The index of a loop; `meanings` has those of the names in its bounds."""

    loop: s.Loop
    meanings: "Meanings"


@dataclass(frozen=True)
class Size:
    """A sizevar or an extent: their values are known by name (`Binding.size`)."""

    name: str


@dataclass(frozen=True)
class Count:
    """In a slice of a matrix that grows: the count along one of its axes."""

    axis: int


Meaning = Variable | LoopIndex | Size | Count | type[Operator]
Meanings = dict[int, Meaning]  # by the identity of the node that uses a name


@dataclass(frozen=True)
class SymbolTable:
    """What the sections and blocks of a graph declare; of doubles, the first.

    bodies   of every block its statements, those inside loops included
    assigned of every block its temporaries
    extents  where `@max` introduces each, with its maximum
    known    sizes that have a value from elsewhere: `--set`, the model
    axes     names that some dimension is made of: sizes, whether or not they have a value
    passed   names of temporaries and loop indices, which blocks branched to may see
    """

    variables: dict[str, Variable]
    blocks: Mapping[str, s.Block]
    bodies: Mapping[str, list[s.SourceStatement]]
    assigned: Mapping[str, Mapping[str, s.Declaration]]
    sizes: Mapping[str, s.SizeDef]
    extents: Mapping[str, s.Argument]
    axes: frozenset[str]
    passed: frozenset[str]
    known: frozenset[str]

    def is_size(self, name: str) -> bool:
        """The name is a sizevar or an extent, as far as the graph tells."""
        return any(name in table for table in (self.sizes, self.extents, self.axes, self.known))


def symbols_of(graph: s.Graph, known: Collection[str] = ()) -> SymbolTable:
    """The name spaces of a graph; its blocks are walked once."""
    blocks = first_of((b.name, b) for b in graph.blocks)
    bodies = {name: list(s.walk(block.body)) for name, block in blocks.items()}
    made = {name: [x.declaration for x in body if isinstance(x, s.Assign)] for name, body in bodies.items()}
    assigned = {name: first_of((d.name, d) for d in found) for name, found in made.items()}
    loops = (x for body in bodies.values() for x in body if isinstance(x, s.Loop))
    passed = {x.index.name for x in loops}.union(*assigned.values())
    axes = {name.name for d in (*graph.declarations, *chain(*made.values())) for name in s.names_in(d.dims)}
    return SymbolTable(
        variables=first_of((d.name, Variable.of(d)) for d in graph.declarations),
        blocks=blocks, bodies=bodies, assigned=assigned,
        sizes=first_of((d.name, d) for d in graph.sizes),
        extents=first_of(declared_extents(graph)),
        axes=frozenset(axes), passed=frozenset(passed), known=frozenset(known),
    )  # fmt: skip


def declared_extents(graph: s.Graph) -> Iterable[tuple[str, s.Argument]]:
    """Every extent that an `@max` introduces, doubles included, with `name=maximum`."""
    args = (arg for d in graph.declarations for a in d.attributes if a.name == "max" for arg in a.args)
    return ((arg.key, arg) for arg in args if arg.key is not None)


def in_order(needs: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Names behind those that they need; without those that come to a circle."""
    sorter = TopologicalSorter(needs)
    with suppress(CycleError):
        sorter.prepare()
    while ready := sorter.get_ready():
        yield from ready
        sorter.done(*ready)


def circles(needs: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Names that need one another, each before one that it needs: the shortest circle through its first name.

    MOST_CIRCLES at most; no name is in two.
    """
    left, place = dict(needs), {name: at for at, name in enumerate(needs)}
    for _ in range(MOST_CIRCLES):
        try:
            TopologicalSorter(left).prepare()
            return
        except CycleError as error:
            circle = _circle(left, min(error.args[1], key=place.__getitem__))
        yield circle
        for name in circle:
            del left[name]


def _circle(needs: Mapping[str, Iterable[str]], first: str) -> list[str]:
    """The shortest way from a name back to it."""
    before: dict[str, str] = {}
    waiting = [first]
    for name in waiting:  # grows
        new = [other for other in needs.get(name, ()) if other not in before]
        before |= dict.fromkeys(new, name)
        waiting += new
        if first in before:
            break
    circle = [before[first]]
    while circle[-1] != first:
        circle.append(before[circle[-1]])
    return circle[::-1]


def first_of(items: Iterable[tuple[str, T]]) -> dict[str, T]:
    """The items by name; of doubles, the first."""
    made: dict[str, T] = {}
    for name, item in items:
        made.setdefault(name, item)
    return made
