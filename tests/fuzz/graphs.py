"""Random graphs of everything: every operator and element type, weights of a model, every statement.

`tests.fuzz.generate` makes the figures that memory planning and passes are about; here they are mixed
with applications of any operator (`catalog_ops`), products of long sums, model weights by `@ref` and
`@pattern`, resets of parts of tables and rings, `dep`.  The same seed gives the same text.
"""

from __future__ import annotations

import random
import re

from oic.dtypes import ALL
from tests.fuzz.catalog_ops import any_elementwise, any_operator, long_product, operand
from tests.fuzz.generate import Graph, Options
from tests.fuzz.generate_ops import INTEGERS
from tests.fuzz.pool import Shape, Var, shaped
from tests.fuzz.step_idioms import STEP_IDIOMS
from tests.fuzz.variants import of_shape

EVERYTHING = Options(
    statements=11,
    dtypes=("f32", "f32", "f32", "f32", "i32", "f16", "bool", *ALL),
)
MEMBERS = 3  # of a family of weights
STACKS: tuple[tuple[str, Shape, str], ...] = (  # indices of matrices in a table, their sizes at first, how far they grow
    ("i", (1,), "i=3"), ("i", (3,), "i=4"), ("i, j", (1, 2), "i=3, j=3"), ("i, j", (2, 3), "i=3, j=4"),
)  # fmt: skip


def generate(seed: int, options: Options | None = None, name: str | None = None) -> str:
    """The text of a random graph."""
    return FullGraph(random.Random(seed), options or EVERYTHING, name or f"random{seed}").text()


class FullGraph(Graph):
    """A graph in the making that may have anything in it."""

    def __init__(self, rng: random.Random, options: Options, name: str) -> None:
        super().__init__(rng, options, name)
        self.families: list[Var] = []
        self.numbers: list[Var] = []  # counters, with their types
        self.stacks: list[tuple[str, Var]] = []  # tables of matrices that grow
        self.stored_dtypes = self.dtypes[1:]
        self.more = [(34, self.catalog), (3, self.ordered), (4, self.part), (2, self.stacked)]
        if options.state:
            self.more += [(5, self.forget_part), (3, self.step_entry), (16, self.step_idiom)]
        if options.extents:
            self.more.append((1, self.halve))

    def _declare(self) -> None:
        super()._declare()
        for _ in range(self.r.randint(0, 2)):
            self.family(self._dtype(), self.r.choice(((4,), (4, 4), (3, 4))))
        if self.r.random() < 0.5:  # an output that starts as something else than zeros
            dtype, shape = self._dtype(), self._shape()
            known = all(isinstance(d, int) for d in shape)
            start = ' @ref("w.start")' if known and self.r.random() < 0.5 else self._init(dtype)
            self._variable("volatile", dtype, shape, start)

    def _state(self) -> None:
        super()._state()
        lines = self.sections["persistent"]
        self.numbers = [Var(n, t, (), True) for line in lines for n, t in re.findall(r"^(pos\d): (\w+)", line)]
        if self.options.growing and self.r.random() < 0.5:
            dtype, (indices, shape, most) = self._dtype(), self.r.choice(STACKS)
            self.stacks.append(("S0", Var("S0", dtype, shape, True)))
            lines.append(f"S0(l, {indices}): {shaped(dtype, shape)} @table @auto_dim({indices}) @fixed(l=2, {most});")

    def step_idiom(self) -> None:
        """Some statements whose places and sizes a step decides."""
        self.budget -= 2
        self.r.choices([i for _, i in STEP_IDIOMS], [w for w, _ in STEP_IDIOMS])[0](self)

    # -- operators

    def catalog(self) -> None:
        """Any operator; the budget counts what makes operands for it."""
        kind = self.r.random()
        if kind < 0.45:
            any_elementwise(self)
        elif kind < 0.92:
            self.budget -= 1
            any_operator(self)
        else:
            self.budget -= 1
            long_product(self)

    def binary(self) -> None:
        """The base class knows which operators its own types have; here are others."""
        any_elementwise(self)

    def cast(self) -> None:
        any_elementwise(self)

    # -- what operators are applied to

    def made(self, call: str, dtype: str, shape: Shape) -> Var:
        """A new temporary with the result of a call; others may use it too, or not."""
        var = Var(self.fresh("t"), dtype, shape, True)
        self.emit(f"assign {var.name}: {shaped(dtype, shape)};")
        self.emit(f"op {call} >> {var.name};")
        if self.r.random() < 0.3:
            self.scopes[-1].append(var)
        return var

    def within(self, var: Var, domain: tuple[str, str] | None) -> str:
        """The name of a variable whose values lie in a domain."""
        if domain is None:
            return var.name
        low, high = domain
        return self.made(f"clamp({var.name}, min={low}, max={high})", var.dtype, var.shape).name

    def input(self, dtype: str, shape: Shape) -> Var:
        """A new input; one by chance that is already there."""
        known = [v for v in self.scopes[0] if v.type == (dtype, shape) and v.name[0] == "d"]
        return self.r.choice(known) if known else self._variable("dynamic", dtype, shape)

    def weight(self, dtype: str, shape: Shape) -> str:
        """A constant of a type: one that is there, a member of a family, or a new one."""
        known = [v for v in self.scopes[0] if v.type == (dtype, shape) and v.name[0] == "c"]
        members = [f for f in self.families if f.type == (dtype, shape)]
        if members and self.r.random() < 0.7:
            return self.member(self.r.choice(members))
        if known and self.r.random() < 0.6:
            return self.r.choice(known).name
        if shape and self.r.random() < 0.15:
            return self.member(self.family(dtype, shape))
        return self._weight(dtype, shape).name

    def _weight(self, dtype: str, shape: Shape) -> Var:
        if not shape and ALL[dtype].packed:
            dtype = "i8"
        name = f"c{self.names + 1}"
        source = self.r.choice(("", "", f' @ref("w.{name}")', f' @ref("absent", "w.{name}")'))
        found = self._variable("constant", dtype, shape, source)
        assert found.name in (name, f"cs{self.names}")
        return found

    def family(self, dtype: str, shape: Shape) -> Var:
        """Weights of one type, told apart by an index: tensors of their own, or parts of one."""
        var = Var(self.fresh("fam"), dtype, shape, False)
        source = self.r.choice((f' @pattern("{var.name}.{{l}}")', f' @ref("w.{var.name}")', f" @ref({var.name})", ""))
        text = f"{var.name}(l): {shaped(dtype, shape)}{source};"
        self.sections["constant"].append(text)
        self.families.append(var)
        return var

    def member(self, family: Var) -> str:
        """One of them, chosen at build or by a step."""
        return f"{family.name}[{self.index(MEMBERS)}]"

    def stored(self, dtype: str, shape: Shape) -> Var | None:
        """What the state holds of a type."""
        places = [v.name for v in self.plain if v.type == (dtype, shape)]
        for table in self.tables:
            if table.entry.type == (dtype, shape) and not table.ring:
                places.append(f"{table.name}[{', '.join(self.index(c) for c in table.capacities)}]")
        if not places:
            return None
        var = Var(self.fresh("t"), dtype, shape, True)
        self.emit(f"assign {var.name}: {shaped(dtype, shape)};")
        self.emit(f"cache.read {self.r.choice(places)} >> {var.name};")
        return var

    def scalar(self, dtype: str) -> str:
        """A literal, or a persistent scalar of a type that has none."""
        kept = [v.name for v in (*self.plain, *self.numbers) if v.type == (dtype, ())]
        if kept and self.r.random() < 0.5:
            return self.r.choice(kept)
        own = ALL[dtype]
        if own.is_float:
            return self.r.choice(("0.5", "-1.25", "2.0", "0.0"))
        if own.kind == "bool":
            return self.r.choice(("true", "false"))
        return str(self.r.randint(max(own.low, -3), min(own.high, 3)))

    # -- statements

    def bounds(self) -> tuple[str, str, int]:
        """Also those of a loop around."""
        if self.loops and self.r.random() < 0.2:
            index, most = self.r.choice(self.loops)
            return (*self.r.choice(((index, str(most)), ("0", f"{index}+1"), (f"{index}%2", "2"))), most)
        return super().bounds()

    def branch(self) -> None:
        """Blocks that are branched to from one place may use the loops around it."""
        self.inherits = self.r.random() < 0.5
        super().branch()
        self.inherits = False

    def index(self, bound: int) -> str:
        """Also quotients and remainders, known when the step runs."""
        if self.r.random() < 0.85:
            return super().index(bound)
        if self.r.random() < 0.4:
            scalar = self.pick(lambda v: v.dtype in INTEGERS and v.shape in ((), (1,), (1, 1)))
            if scalar is not None:  # of data, which may change before the next use
                return f"{scalar.name}%{bound}"
        of = self.r.choice([*self.counters, *self.indices, *(n for n, _ in self.loops)])
        return self.r.choice((f"({of}+{self.r.randint(0, 3)})%{bound}", f"{of}/2", f"({of}*2)%{bound}"))

    def part(self) -> None:
        """Write a row of a variable, or some rows in a row."""
        to = self.pick(lambda v: v.writable and v.known and len(v.shape) > 0 and v.shape[0] != 0)
        if to is None or (ALL[to.dtype].packed and len(to.shape) == 1):
            return
        rows, *rest = to.shape
        assert isinstance(rows, int)
        first = self.r.randrange(rows)
        last = self.r.randint(first + 1, rows)
        at, lead = (self.index(rows), ()) if self.r.random() < 0.5 else (f"{first}..{last}", (last - first,))
        type_ = of_shape(ALL[to.dtype], (*lead, *rest))
        assert type_ is not None
        self.emit(f"transfer {operand(self, type_, None, weight=False)} >> {to.name}[{at}];")

    def stacked(self) -> None:
        """A loop over layers of weights that are large enough for panels, which divide their sizes or not.

        Members of a family, or cut out of one tensor.
        """
        rows, wide, thin = self.r.choice((1, 1, 3)), self.r.choice((16, 33, 40, 64)), self.r.choice((24, 32, 57))
        dtype, op = self.r.choice(("f32", "f32", "f16", "bf16")), self.r.choice(("linear", "matmul"))
        x = self.input("f32", (rows, wide))
        names = [self.fresh("t") for _ in range(2)]
        for name, size in zip(names, (wide, thin), strict=True):
            self.emit(f"assign {name}: f32[{rows}, {size}];")
        self.emit(f"op tanh({x.name}) >> {names[0]};")
        loop, index = self.fresh("layers"), self.fresh("i")
        self.emit(f"loop {loop} ({index} in 0..{MEMBERS}) {{")
        for source, to, sizes in ((names[0], names[1], (wide, thin)), (names[1], names[0], (thin, wide))):
            shape = sizes if op == "matmul" else sizes[::-1]
            self.emit(f"op {op}({source}, {self._layer(dtype, shape, index)}) >> {to};")
            self.emit(f"op tanh({to}) >> {to};")
        self.emit("}")
        self.op(f"neg({names[0]})", "f32", (rows, wide))

    def _layer(self, dtype: str, shape: Shape, index: str) -> str:
        """The weights of one layer."""
        if self.r.random() < 0.6:
            return f"{self.family(dtype, shape).name}[{index}]"
        whole = self._variable("constant", dtype, (MEMBERS, *shape))
        cut, one = self.fresh("t"), self.fresh("t")
        self.emit(f"assign {cut}: {shaped(dtype, (1, *shape))};")
        self.emit(f"assign {one}: {shaped(dtype, shape)};")
        self.emit(f"op slice({whole.name}, axis=0, start={index}, end={index}+1) >> {cut};")
        self.emit(f"op reshape({cut}, shape=[{', '.join(map(str, shape))}]) >> {one};")
        return one

    def step_entry(self) -> None:
        """Add to an entry of a table of scalars, or forget it."""
        numbers = [t for t in self.tables if ALL[t.entry.dtype].kind in ("int", "uint", "float")]
        scalars = [t for t in numbers if not t.ring and not t.entry.shape]
        if not scalars:
            return
        table = self.r.choice(scalars)
        at = f"{table.name}[{', '.join(self.index(c) for c in table.capacities)}]"
        amount = self.r.choice(("", "2 ", "N " if self.options.extents else "3 "))
        self.emit(self.r.choice((f"cache.increment {amount}{at};", f"cache.decrement {at};", f"cache.reset {at};")))

    def halve(self) -> None:
        """Rows two by two: refused where there is one left over."""
        x = self.pick(lambda v: v.shape == ((1, 0), 4))
        if x is None:
            return
        name = self.fresh("t")
        self.emit(f"assign {name}: {x.dtype}[N/2, 8];")
        self.emit(f"op reshape({x.name}, shape=[N/2, 8]) >> {name};")
        self.op(f"reshape({name}, shape=[N, 4])", *x.type)

    def forget_part(self) -> None:
        """Reset what has some leading indices, of a table or of a ring, and look at what is left."""
        parted = [t for t in self.tables if len(t.capacities) > 1]
        if not parted:
            return
        table = self.r.choice(parted)
        given = [self.index(c) for c in table.capacities[:-1]]
        if self.r.random() < 0.25:
            counter = next((c for t, c in self.rings if t is table), None)
            given.append(f"{counter}-1" if counter else self.index(table.capacities[-1]))
        self.emit(f"cache.reset {table.name}[{', '.join(given)}];")
        if self.r.random() < 0.6:
            row = ", ".join(given[: len(table.capacities) - 1])
            shape = (self.fresh("?"), *table.entry.shape)
            self.emit(f"cache.read {table.name}[{row}, ] >> {self.destination(table.entry.dtype, shape)};")

    def ordered(self) -> None:
        """Two statements that may not change places."""
        x = self.pick(lambda v: v.dtype in ("f32", "f16", "i32", "i8") and v.known)
        if x is None:
            return
        first, second = self.r.choice((("neg", "abs"), ("abs", "neg"), ("neg", "cache.read")))
        self.op(f"{first}({x.name})", *x.type)
        self.emit(f"dep after({first}) before({second});")
        if second == "cache.read":
            place = self.r.choice(self.plain) if self.plain else None
            self.lines.pop() if place is None else self.emit(
                f"cache.read {place.name} >> {self.destination(*place.type)};"
            )
        else:
            self.op(f"{second}({x.name})", *x.type)
