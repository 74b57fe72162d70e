"""What the algebra of index integers says at any place of random programs holds in every run of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from oic import dtypes
from oic.ir.control import Cond, For, If, Yield
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Extent, evaluate, of
from oic.ir.facts import Facts
from oic.ir.index import (
    CheckRange,
    ExtentBind,
    IndexAdd,
    IndexConst,
    IndexDiv,
    IndexEnd,
    IndexMax,
    IndexMin,
    IndexMod,
    IndexMul,
    IndexSize,
    IndexSub,
    IndexWhen,
    IndexWrap,
)
from oic.ir.intervals import WIDE, Range, within
from oic.ir.ranges import Ranges
from oic.ir.state import State, StateGet
from oic.ir.types import INDEX, StateType
from oic.passes.fold_index import folded_index

MOST = 4  # of the integers that a program reads
MEANING: dict[type[Op], Callable[[int, int], int]] = {
    IndexAdd: lambda a, b: a + b,
    IndexSub: lambda a, b: a - b,
    IndexMul: lambda a, b: a * b,
    IndexMin: min,
    IndexMax: max,
    IndexDiv: lambda a, b: a // b if b > 0 else 0,
    IndexMod: lambda a, b: a % b if b > 0 else 0,
    IndexWhen: lambda a, b: b if a > 0 else 0,
    IndexEnd: lambda a, b: a if a >= 0 else b + a,
}


class Stop(Exception):
    """A check refuses."""


class Program:
    """A random function over two integers of the state, with checks, branches and loops."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        states = [State(f"s{i}", StateType(dtypes.i64, (), (), ()), 0, MOST) for i in range(2)]
        self.gets = [StateGet(state.result) for state in states]
        self.extents = 0
        counts = [get.result for get in self.gets]
        self.body = Block(ops=[*self.gets, *self.block(counts, counts, 12, 0), Yield([])])

    def block(self, seen: list[Value], counts: list[Value], length: int, depth: int) -> list[Op]:
        """Ops over the values seen; `counts` are those that are never negative."""
        seen, ops = list(seen), list[Op]()
        for _ in range(length):
            made = self.some(seen, counts, depth)
            ops += made
            seen += [op.result for op in made if op.results and op.result.type == INDEX]
        return ops

    def some(self, seen: list[Value], counts: list[Value], depth: int) -> list[Op]:
        a, b, kind = self.r.choice(seen), self.r.choice(seen), self.r.random()
        if kind < 0.2:
            return [IndexConst(self.r.choice((-3, -1, 0, 1, 1, 2, 3, 7, 1 << 62)))]
        if kind < 0.6:
            make = self.r.choice(tuple(MEANING))
            return [make(a, self.r.choice(counts) if make is IndexEnd else b)]
        if kind < 0.65:
            return [IndexWrap(a, self.r.choice((dtypes.u8, dtypes.i8)))]
        if kind < 0.7:
            self.extents += 1
            extent = Extent(f"n{self.extents}", MOST + 2)
            return [ExtentBind(a, extent, "", "", "n"), IndexSize(of(extent) * 2 + 1)]
        if kind < 0.88 or depth > 1:
            low, high = self.r.choice((-4, 0, 1, a)), self.r.choice((1, 3, 6, a, a))
            return [CheckRange(b, low, high, "", "", "v")]
        if kind < 0.95:
            sides = (Block(ops=[*self.block(seen, counts, 4, depth + 1), Yield([])]) for _ in range(2))
            test = Cond(a, b)
            return [test, If(test.result, [], *sides)]
        body = Block()
        index = body.argument(INDEX, "i")
        body.set_ops([*self.block([*seen, index], counts, 4, depth + 1), Yield([])])
        first, last = IndexConst(self.r.randint(-1, 1)), IndexConst(self.r.randint(0, 3))
        end = self.r.choice((last.result, self.r.choice(counts)))
        return [first, last, For(first.result, end, [], "l", body)]


class Claims:
    """What is said of every op: the ranges of its operands, whether it refuses, what it folds to."""

    def __init__(self, body: Block) -> None:
        self.facts = Facts()
        self.ranges: dict[Op, list[tuple[Value, Range]]] = {}
        self.passes: set[Op] = set()
        self.folded: dict[Op, Value | int] = {}
        self.walk(body)

    def walk(self, block: Block) -> None:
        for op in block.ops:
            self.ranges[op] = [(v, self.facts.of(v)) for v in op.operands if v.type == INDEX]
            checks = isinstance(op, (CheckRange, ExtentBind)) and self.facts.always(op)
            arithmetic = isinstance(op, (IndexAdd, IndexSub, IndexMul)) and self.facts.fits(op)
            if checks or arithmetic:
                self.passes.add(op)
            if op.results and op.result.type == INDEX and not isinstance(op, StateGet):
                found = folded_index(op, self.facts)  # type: ignore[arg-type]
                if found is not None:
                    self.folded[op] = found.value if isinstance(found, IndexConst) else getattr(found, "result", found)
            for region in op.regions:
                with self.facts.inside(region):
                    self.walk(region)
            self.facts.learn(op)


class Run:
    """One run, which holds every claim against what happens."""

    def __init__(self, claims: Claims, given: dict[Op, int]) -> None:
        self.claims, self.given = claims, given
        self.values: dict[Value, int] = {}
        self.sizes: dict[str, int] = {}

    def block(self, block: Block) -> None:
        for op in block.ops:
            for value, range_ in self.claims.ranges[op]:
                assert within((self.values[value],) * 2, range_), (op, value, range_)
            self.op(op)
            if op in self.claims.folded:
                to = self.claims.folded[op]
                if isinstance(to, Value) and to not in self.values:
                    continue  # arithmetic to be made instead
                assert self.values[op.result] == (self.values[to] if isinstance(to, Value) else to), op

    def op(self, op: Op) -> None:
        read = self.values.__getitem__
        match op:
            case StateGet():
                self.values[op.result] = self.given[op]
            case IndexConst(value=number):
                self.values[op.result] = number
            case IndexSize(size=size):
                assert not isinstance(size, int)
                self.values[op.result] = evaluate(size, self.sizes)
            case IndexWrap(value=value, dtype=dtype):
                self.values[op.result] = (read(value) - dtype.low) % (1 << dtype.bits) + dtype.low
            case CheckRange(value=value, low=low, high=high):
                ends = [read(n) if isinstance(n, Value) else n for n in (low, high)]
                self.require(op, ends[0] <= read(value) <= ends[1])
            case ExtentBind(value=value, extent=extent):
                self.require(op, 0 <= read(value) <= extent.maximum)
                self.sizes[extent.name] = read(value)
            case Cond(left=left, right=right):
                self.values[op.result] = int(read(left) < read(right))
            case If():
                self.block(op.then if read(op.condition) else op.orelse)
            case For(start=start, end=end, body=body):
                for i in range(read(start), min(read(end), 9)):
                    self.values[body.args[0]] = i
                    self.block(body)
            case Yield():
                pass
            case _:
                result = MEANING[type(op)](*(read(v) for v in op.operands))
                self.require(op, within((result, result), WIDE))
                self.values[op.result] = result

    def require(self, op: Op, holds: bool) -> None:
        if not holds:
            assert op not in self.claims.passes, f"{op} is said never to refuse"
            raise Stop


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_whatever_is_known_is_true(first: int) -> None:
    passes = 0
    for seed in range(first, first + 50):
        program = Program(seed)
        claims = Claims(program.body)
        passes += len(claims.passes)
        for numbers in itertools.product(range(MOST + 1), repeat=2):
            try:
                Run(claims, dict(zip(program.gets, numbers, strict=True))).block(program.body)
            except Stop:
                continue
    assert passes > 50


def test_what_both_share_cancels() -> None:
    gets = Program(0).gets
    p, n = (get.result for get in gets)
    end = IndexAdd(p, n).result
    ranges = Ranges()
    assert ranges.difference(end, p) == (0, MOST)
    assert ranges.of(IndexSub(end, p).result) == (0, MOST)
    assert ranges.exact(IndexSub(end, end).result) == 0


LONG = 3000


def _chain(kind: type[Op]) -> tuple[Value, list[Value]]:
    """An unknown integer, and one of two integers made of it again and again."""
    block = Block()
    start, one = block.argument(INDEX), IndexConst(1)
    made = [start]
    for _ in range(LONG):
        made.append(kind(made[-1], one.result).result)
    return start, made


def test_each_of_a_chain_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    start, made = _chain(IndexAdd)
    seen = 0
    rule = Ranges._range_rule

    def counted(self: Ranges, value: Value) -> object:
        nonlocal seen
        seen += 1
        return rule(self, value)

    monkeypatch.setattr(Ranges, "_range_rule", counted)
    ranges = Ranges()
    for value in made:
        ranges.of(value)
    assert seen < 3 * LONG
    assert ranges.linear(made[-1]) == {start: 1, None: LONG} == Ranges().linear(made[-1])
    assert ranges.difference(made[-1], made[7]) == (LONG - 7, LONG - 7)


def test_what_checks_show_is_followed_through_long_arithmetic() -> None:
    _, made = _chain(IndexMin)
    facts = Facts()
    for value in made[1:]:
        facts.learn(CheckRange(value, 0, 7, "OIC_ERR_SHAPE", "OIC_ERR_SHAPE", "n"))
        assert not facts.refuses(IndexAdd(value, value))
