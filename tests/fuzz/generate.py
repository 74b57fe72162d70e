"""Random graphs as source text: valid, small, and mean to passes and to memory planning.

A graph is made of statements over a pool of variables of few shapes, so that values meet often:
views of views, results written over operands, values carried by loops in every permutation, tables
read before and after they are written, branches that give different values, outputs that are inputs
or constants or the same value twice.  The same seed gives the same text.

Between them are idioms of several statements that programs with state are made of (`idioms`).
Most texts compile; one that the checks of the language refuse is of no use and is skipped by the
caller.  What operators are applied to is chosen in `generate_ops`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from oic.dtypes import ALL
from tests.fuzz.generate_held import Held
from tests.fuzz.idioms import FLAT, IDIOMS
from tests.fuzz.pool import Shape, Var, shaped

SHAPES: tuple[Shape, ...] = (
    (), (4,), (3,), (3, 4), (4, 4), (2, 3, 4), (1, 4), ((1, 0),), ((1, 0), 4), (2, (1, 0), 4),
)  # fmt: skip
PACKED = ("i4", "u2")  # of tables
LARGEST_EXTENT = 4
CAPACITY = 5
WINDOW = 3  # of a ring
OUTPUTS = 10  # temporaries of an entry that become outputs at its end
KEPT = 3  # temporaries that are handed on at the end of their braces


@dataclass(frozen=True)
class Options:
    """What graphs are made of.

    statements   how many, about
    depth        of nested loops and branches
    dtypes       of variables
    extents      sizes that vary from step to step
    state        persistent variables, and statements that read and write them
    growing      rings and auto-dims among them
    consumers    blocks that variables are yielded to
    entries      the most entries beside `entry`
    held         matrices of many sizes that are read again far from where they are made, so that the
                 arena holds many buffers: the part of the statements that make or read them, 0 to 1
    """

    statements: int = 24
    depth: int = 3
    dtypes: tuple[str, ...] = ("f32", "f32", "f32", "i32", "f16", "i8", "bool", "i4", "f64", "u8", "u2")
    extents: bool = True
    state: bool = True
    growing: bool = True
    consumers: bool = True
    entries: int = 1
    held: float = 0.0


def generate(seed: int, options: Options | None = None, name: str | None = None) -> str:
    """The text of a random graph."""
    return Graph(random.Random(seed), options or Options(), name or f"random{seed}").text()


@dataclass(frozen=True)
class Table:
    """A persistent table: names and capacities of its indices, the last one first to grow."""

    name: str
    entry: Var
    capacities: tuple[int, ...]
    ring: bool = False


class Graph(Held):
    """A graph in the making; `lines` is the block being written."""

    def __init__(self, rng: random.Random, options: Options, name: str) -> None:
        super().__init__(rng)
        self.options, self.name = options, name
        self.sections: dict[str, list[str]] = {
            s: [] for s in ("dynamic", "constant", "volatile", "persistent")
        }
        self.blocks: list[str] = []
        self.loops: list[tuple[str, int]] = []
        self.plain: list[Var] = []
        self.counters: list[str] = []
        self.tables: list[Table] = []
        self.rings: list[tuple[Table, str]] = []  # with a counter that is the ring's next position
        self.inherits = False  # the next block sees the loops around its branch
        self.keeps = True  # at the end of braces, values go to variables outside them
        self.yields = False  # variables may be given to consumers here
        self.matrices: list[tuple[str, Var]] = []
        self.more: list[tuple[int, Callable[[], None]]] = []  # other statements, how often
        self.stored_dtypes: tuple[str, ...] = ()  # of tables, beside the usual ones
        self.budget = options.statements
        self.depth = 0
        # Few types a graph, so that variables meet: permutations and carried values need alike ones.
        self.dtypes = ("f32", rng.choice(options.dtypes), rng.choice(options.dtypes))
        self.shapes = tuple(rng.sample(SHAPES[1:], 3))

    def text(self) -> str:
        self._declare()
        entries = [self._block("entry", self.options.statements)]
        for n in range(self.r.randint(0, self.options.entries)):
            pin = "(N=1)" if self.options.extents and self.r.random() < 0.4 else ""
            entries.append(self._block(f"other{n} @entry{pin}", self.options.statements // 2))
        parts = [
            f"    {section} {{\n" + "".join(f"        {line}\n" for line in lines) + "    }\n"
            for section, lines in self.sections.items()
            if lines
        ]
        body = "".join([*parts, *entries, *self.blocks])
        return f"graph {self.name} {{\n{body}}}\n"

    # -- declarations ----------------------------------------------------------

    def _declare(self) -> None:
        r = self.r
        if self.options.extents:
            self._variable("dynamic", "f32", ((1, 0), 4), f" @max(N={LARGEST_EXTENT})")
        for _ in range(r.randint(2, 4)):
            self._variable("dynamic", self._dtype(), self._shape())
        self._variable("dynamic", "bool", ())
        self.indices.append(self._variable("dynamic", r.choice(("i32", "i64", "u8")), ()).name)
        self.ids.append(self._variable("dynamic", "i32", self._shape(3)))
        for shape in ((4, 4), (4,), r.choice(SHAPES[:7])):
            dtype = "f32" if r.random() < 0.7 else self._dtype()
            self._variable("constant", dtype, shape, self._init(dtype) if r.random() < 0.3 else "")
        for _ in range(r.randint(1, 4)):
            self._variable("volatile", self._dtype(), self._shape())
        if self.options.state:
            self._state()
        if self.options.held:
            self.declare_held(self.sections)

    def _variable(self, section: str, dtype: str, shape: Shape, attributes: str = "") -> Var:
        if ALL[dtype].packed and not shape:
            dtype = "i8"
        name = self.fresh(section[0] + ("s" if not shape else ""))
        var = Var(name, dtype, shape, section == "volatile")
        self.sections[section].append(f"{name}: {shaped(dtype, shape)}{attributes};")
        self.scopes[0].append(var)
        return var

    def _dtype(self) -> str:
        return self.r.choice(self.dtypes if self.r.random() < 0.8 else self.options.dtypes)

    def _shape(self, limit: int = len(SHAPES)) -> Shape:
        while True:
            shapes = self.shapes if self.r.random() < 0.7 else SHAPES
            shape = self.r.choice(shapes if limit > 3 else ((3,), ((1, 0),), (2, 3)))
            if self.options.extents or all(isinstance(d, int) for d in shape):
                return shape

    def _init(self, dtype: str) -> str:
        if dtype == "bool":
            return " @init(true)"
        if ALL[dtype].is_float:
            return f" @init({self.r.choice(('0.5', '-1.25', '2.0'))})"
        low, high = max(0, ALL[dtype].low), min(3, ALL[dtype].high)
        return f" @init({self.r.randint(low, high)})"

    def _state(self) -> None:
        r = self.r
        lines = self.sections["persistent"]
        for n in range(r.randint(1, 2)):
            dtype = r.choice(("i32", "i64", "u8"))
            lines.append(f"pos{n}: {dtype} @init({r.randint(0, 1)});")
            self.counters.append(f"pos{n}")
        lines.append("pf: f32 @init(0.5);")
        self.plain.append(Var("pf", "f32", (), True))
        self.floats.append("pf")
        lines.append("pb: bool @init(true);")
        self.plain.append(Var("pb", "bool", (), True))
        for n in range(r.randint(1, 2)):
            dtype, shape = self._dtype(), r.choice(((4,), (3, 4), (4, 4)))
            init = self._init(dtype) if r.random() < 0.5 else ""
            lines.append(f"p{n}: {shaped(dtype, shape)}{init};")
            self.plain.append(Var(f"p{n}", dtype, shape, True))
        for n in range(r.randint(1, 2)):
            self._table(f"T{n}")
        if self.options.growing and r.random() < 0.4:
            dtype = r.choice(("f32", "i32", "i8"))
            self.sections["persistent"].append(
                f"M0(i, j): {dtype}[2, 3] @auto_dim(i, j) @fixed(i=3, j=2);"
            )
            self.matrices.append(("M0", Var("M0", dtype, (2, 3), True)))

    def _table(self, name: str) -> None:
        r = self.r
        dtype = r.choice(("f32", "f32", "i32", "f16", "i8", *PACKED, *self.stored_dtypes))
        shape: Shape = r.choice(((4,), (4,), (3, 4), ()))
        if ALL[dtype].packed:
            shape = r.choice(((4,), (3,), (3, 4)))
        two = r.random() < 0.6
        ring = self.options.growing and r.random() < 0.3
        # An index whose name starts with g grows: the call that compiles gives it a capacity.
        first = r.choice(("a", "a", "ga"))
        last = r.choice(("t", "g")) + name[1:] if not ring else f"t{name[1:]}"
        bounds = [f"{first}=2"] if two and first == "a" else []
        capacity = WINDOW if ring else CAPACITY
        bounds += [f"{last}={capacity}"] if last[0] == "t" else []
        indices = (f"{first}, " if two else "") + last
        attributes = " @table" + (f" @fixed({', '.join(bounds)})" if bounds else "")
        attributes += f" @ring({last})" if ring else ""
        attributes += self._init(dtype) if r.random() < 0.3 else ""
        self.sections["persistent"].append(f"{name}({indices}): {shaped(dtype, shape)}{attributes};")
        capacities = (2, capacity) if two else (capacity,)
        self.tables.append(Table(name, Var(name, dtype, shape, True), capacities, ring))
        if ring:
            counter = f"next{name[1:]}"
            lines = self.sections["persistent"]
            lines.append(f"{counter}: {r.choice(('i32', 'i64', 'u8'))} @init({r.randint(0, 2 * WINDOW)});")
            self.rings.append((self.tables[-1], counter))

    # -- blocks ----------------------------------------------------------------

    def _block(self, head: str, statements: int) -> str:
        """The text of a block; blocks it branches to are added to `blocks`."""
        outer, self.lines = self.lines, []
        budget, self.budget = self.budget, statements
        loops, self.loops = self.loops, list(self.loops) if self.inherits else []
        inherits, self.inherits = self.inherits, False
        yields, self.yields = self.yields, self.options.consumers and head.startswith(("entry", "other"))
        with self.scope():
            if self.options.extents and head.startswith(("entry", "other")):
                self.op(f"neg({self.scopes[0][0].name})", "f32", self.scopes[0][0].shape, fresh=True)
            if head.startswith(("entry", "other")):
                self.start_sums()
            while self.budget > 0:
                self.statement()
            self.release_all()
            for var in self._unwritten() if head == "entry" else ():
                self._give(var)
            if head.startswith(("entry", "other")):
                self._outputs()
        body = "".join(f"        {line}\n" for line in self.lines)
        self.lines, self.budget, self.loops, self.yields = outer, budget, loops, yields
        self.inherits = inherits
        return f"    block {head} {{\n{body}        return;\n    }}\n"

    def consumer(self, own: list[Var]) -> str:
        """The text of a block that is given some variables: it writes no other, but any state."""
        names = ", ".join(v.name for v in own)
        outer, self.lines = self.lines, []
        loops, self.loops = self.loops, []
        yields, self.yields = self.yields, False
        scopes, self.scopes = self.scopes, [[v for v in self.scopes[0] if not v.writable] + own]
        depth, self.depth = self.depth, self.options.depth
        self.keeps = False  # a consumer writes to no other variables
        with self.scope():
            self.op(f"neg({own[0].name})", *own[0].type)
            for _ in range(self.r.randint(1, 4)):
                self.statement()
            for var in self.scopes[-1]:
                if var.type == own[0].type:
                    self.emit(f"op max({own[0].name}, {var.name}) >> {own[0].name};")
        self.keeps = True
        body = "".join(f"        {line}\n" for line in self.lines)
        self.lines, self.loops, self.yields, self.scopes, self.depth = outer, loops, yields, scopes, depth
        return f"    block {self.fresh('w')} {{\n        await {names};\n{body}        yield {names};\n    }}\n"

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Braces: temporaries declared inside end with them, and hand on some of what they hold."""
        self.scopes.append([])
        self.held.append([])
        yield
        self.held.pop()
        inner = self.scopes.pop()
        for var in self.r.sample(inner, min(KEPT, len(inner))) if self.keeps else ():
            self._keep(var)

    def _keep(self, var: Var) -> None:
        """Let a temporary be needed beyond its braces: an unused value is not computed."""
        outer = [v for v in self.visible() if v.writable and v.type == var.type]
        if outer and self.r.random() < 0.6:
            to = self.r.choice(outer).name
            mixed = f"op max({to}, {var.name}) >> {to};" if var.dtype in ("f32", "i32", "f16") else ""
            self.emit(mixed or f"transfer {var.name} >> {to};")
        elif self.r.random() < 0.5:
            self._output(var)

    def _unwritten(self) -> list[Var]:
        """Some outputs are given an input, a constant, a view or the value of another."""
        return [v for v in self.scopes[0] if v.writable and self.r.random() < 0.3]

    def _outputs(self) -> None:
        """Unused temporaries become outputs, so that they are not dead."""
        for var in self.r.sample(self.scopes[-1], min(OUTPUTS, len(self.scopes[-1]))):
            self._output(var)
        self.scopes[-1].clear()

    def _output(self, var: Var) -> None:
        """A new output with the value of a variable; now and then two: those declared before have known sizes."""
        for _ in range(self.r.choice((1, 1, 1, 1, 2))):
            name = self.fresh("o")
            self.sections["volatile"].append(f"{name}: {shaped(var.dtype, var.shape)};")
            self.emit(f"transfer {var.name} >> {name};")

    def _give(self, var: Var) -> None:
        source = self.pick(lambda v: v.dtype == var.dtype and v.shape == var.shape and v is not var)
        if source is not None:
            self.emit(f"transfer {source.name} >> {var.name};")

    # -- statements ------------------------------------------------------------

    def statement(self) -> None:
        """One more statement, or a few that belong together."""
        self.budget -= 1
        if self.options.held and self.r.random() < self.options.held:
            (self.hold if self.r.random() < 0.6 else self.release)()
            return
        kinds: list[tuple[int, Callable[[], None]]] = [
            (30, self.operator), (4, self.chain), (4, self.transfer), (5, self.permute),
            (1, lambda: self.emit("barrier;")),
        ]  # fmt: skip
        if self.depth < self.options.depth and self.budget > 2:
            kinds += [(7, self.loop), (4, self.branch)]
        if self.options.state:
            kinds += [(7, self.table), (4, self.variable), (3, self.counter)]
            kinds.append((14, self.idiom))
        if self.matrices:
            kinds.append((3, self.matrix))
        kinds += self.more
        weights = [w for w, _ in kinds]
        self.r.choices([k for _, k in kinds], weights)[0]()

    def idiom(self) -> None:
        """Some statements that belong together; those that nest others only where there is room."""
        self.budget -= 2
        found = [(w, i) for w, i in IDIOMS if i in FLAT or self.depth < self.options.depth]
        self.r.choices([i for _, i in found], [w for w, _ in found])[0](self)

    def transfer(self) -> None:
        source = self.pick(lambda v: True)
        assert source is not None
        self.emit(f"transfer {source.name} >> {self.destination(source.dtype, source.shape)};")
        if self.r.random() < 0.5:
            self.write_over(source)

    def write_over(self, var: Var) -> None:
        """Change a variable whose value others may still see."""
        if var.writable and var.dtype in ("f32", "i32", "i8", "f16"):
            self.emit(f"op {self.r.choice(('neg', 'abs'))}({var.name}) >> {var.name};")

    def permute(self) -> None:
        """Swap two variables of one type, or rotate three."""
        first = self.pick(lambda v: v.writable)
        if first is None:
            return
        alike = [v for v in self.visible() if v.writable and v.type == first.type and v is not first]
        self.r.shuffle(alike)
        ring = [first, *alike[: self.r.randint(1, 2)]]
        if len(ring) < 2:
            return
        kept = self.fresh("t")
        self.emit(f"assign {kept}: {shaped(first.dtype, first.shape)};")
        self.emit(f"transfer {first.name} >> {kept};")
        for a, b in itertools.pairwise(ring):
            self.emit(f"transfer {b.name} >> {a.name};")
        self.emit(f"transfer {kept} >> {ring[-1].name};")

    def loop(self) -> None:
        n = self.fresh("i")
        low, high, turns = self.bounds()
        self.emit(f"loop l{n} ({n} in {low}..{high}) {{")
        self.depth += 1
        self.loops.append((n, turns))
        outer, self.budget = self.budget, self.r.randint(1, max(1, min(6, self.budget)))
        spent = self.budget
        with self.scope():
            while self.budget > 0:
                self.statement()
            self.release_all()
        self.loops.pop()
        self.depth -= 1
        self.budget = outer - spent
        self.emit("}")

    def bounds(self) -> tuple[str, str, int]:
        """First turn, end, and the most that the index may reach (by what is usually given)."""
        r = self.r
        kind = r.random()
        if kind < 0.6:
            low = r.choice((0, 0, 0, 1))
            high = r.choice((0, 1, 2, 2, 3))
            return str(low), str(high), high
        if kind < 0.75 and self.options.extents:
            return "0", "N", LARGEST_EXTENT
        if kind < 0.9 or not self.counters:
            return "0", r.choice(self.indices), 3
        return "0", r.choice(self.counters), CAPACITY

    def branch(self) -> None:
        self.depth += 1
        if self.r.random() < 0.15:
            self.emit(f"branch {self.target()};")
        else:
            condition = self.condition()
            self.emit(f"branch {condition} {self.target()} {self.target()};")
        self.depth -= 1

    def target(self) -> str:
        name = self.fresh("b")
        statements = self.r.randint(0, max(0, min(4, self.budget)))
        self.blocks.append(self._block(name, statements))
        self.budget -= statements
        return name

    def condition(self) -> str:
        """A bool scalar: an input, a persistent one, or one computed here."""
        known = [v.name for v in self.visible() if v.dtype == "bool" and v.shape == ()]
        if self.options.state and self.r.random() < 0.3:
            return "pb"
        scalar = self.pick(lambda v: v.shape == () and v.dtype in ("f32", "i32", "i8"))
        if scalar is not None and self.r.random() < 0.5:
            result = self.destination("bool", ())
            other = self.pick(lambda v: v.shape == () and v.dtype == scalar.dtype) or scalar
            self.emit(f"op {self.r.choice(('lt', 'ge', 'eq'))}({scalar.name}, {other.name}) >> {result};")
            return result
        return self.r.choice(known)

    # -- persistent state ------------------------------------------------------

    def counter(self) -> None:
        name = self.r.choice(self.counters)
        kind = self.r.random()
        if kind < 0.55:
            amount = self.r.choice(("", "", "2 ", "N " if self.options.extents else ""))
            self.emit(f"cache.increment {amount}{name};")
        elif kind < 0.7:
            self.emit(f"cache.decrement {name};")
        elif kind < 0.85:
            self.emit(f"cache.reset {name};")
        else:
            self.emit("cache.increment pf;")

    def variable(self) -> None:
        """Read or write a persistent tensor or scalar."""
        var = self.r.choice(self.plain)
        kind = self.r.random()
        if kind < 0.5:
            self.emit(f"cache.read {var.name} >> {self.destination(var.dtype, var.shape)};")
        elif kind < 0.93:
            source = self.pick(lambda v: v.type == var.type)
            if source is not None:
                self.emit(f"cache.write {source.name} >> {var.name};")
        else:
            self.emit(f"cache.reset {var.name};")

    def table(self) -> None:
        """Read, write or reset part of a table."""
        table = self.r.choice(self.tables)
        if table.ring and self.r.random() < 0.8:
            return  # nearly all that is not made for one is refused: see `idioms.wrap`
        kind = self.r.random()
        if kind < 0.06:
            self.emit(f"cache.reset {table.name};")
            return
        if kind < 0.1 and len(table.capacities) > 1:
            self.emit(f"cache.reset {table.name}[{self.index(2)}];")
            return
        *outer, last = table.capacities
        first = [self.index(c) for c in outer]
        position, lead = self._position(last, table, writing=kind < 0.5)
        at = f"{table.name}[{', '.join([*first, position])}]"
        entry = table.entry
        if kind >= 0.5:
            self.emit(f"cache.read {at} >> {self.destination(entry.dtype, lead + entry.shape)};")
            return
        source = self.pick(lambda v: v.dtype == entry.dtype and v.shape == lead + entry.shape)
        if source is not None:
            self.emit(f"cache.write {source.name} >> {at};")

    def _position(self, capacity: int, table: Table, *, writing: bool) -> tuple[str, Shape]:
        """A scalar or a slice, and the dimension it adds."""
        r = self.r
        kind = r.random()
        if kind < 0.5:
            return self.index(capacity), ()
        if kind < 0.7:
            start = r.randint(0, capacity - 2)
            length = r.randint(1, min(3, capacity - start))
            return f"{start}..{start + length}", (length,)
        first = r.choice((*self.counters, "0", *(n for n, _ in self.loops)))
        if kind < 0.85 and self.options.extents:
            return f"{first}..{first}+N", ((1, 0),)
        if kind < 0.92 or writing:
            return f"{first}..{first}+2", (2,)
        if table.ring:
            return r.choice(("-2..", "")), (self.fresh("?"),)
        return r.choice((f"0..{r.choice(self.counters)}", "..", "0..-1", "")), (self.fresh("?"),)

    def index(self, bound: int) -> str:
        """An index expression, mostly below the bound."""
        r = self.r
        good = [n for n, high in self.loops if high <= bound]
        good += [f"{n}+1" for n, high in self.loops if high < bound]
        good += [f"{bound - 1}-{n}" for n, high in self.loops if high <= bound]
        kind = r.random()
        if good and kind < 0.6:
            return r.choice(good)
        if kind < 0.75:
            return r.choice(self.counters)
        if kind < 0.8:
            return r.choice(self.indices)
        return str(r.randint(0, bound - 1))

    def matrix(self) -> None:
        """Grow, read, replace or reset an auto-dim matrix."""
        name, var = self.r.choice(self.matrices)
        kind = self.r.random()
        at = "" if kind < 0.5 else f"{self.r.randint(0, 3)}, {self.r.randint(0, 2)}"
        if kind < 0.08:
            self.emit(f"cache.reset {name};")
        elif kind < 0.8:
            shape: Shape = (self.fresh("?"), self.fresh("?"))
            self.emit(f"cache.read {name}[{at}] >> {self.destination(var.dtype, shape)};")
        else:
            self.emit(f"cache.read {name}[0..1, 0..2] >> {self.destination(var.dtype, (1, 2))};")
