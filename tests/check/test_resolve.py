"""Names are resolved once: what lowering makes of a resolved graph does not depend on how names are spelt."""

from __future__ import annotations

import cProfile
import re
from collections.abc import Iterator

import pytest

import oic.check.resolve
from oic import dtypes
from oic.check.bind import bind
from oic.check.check import check
from oic.check.resolved import BlockInstance, Resolved
from oic.check.source import parse
from oic.check.symbols import Meaning
from oic.diagnostics import OicError
from oic.driver import Settings, compile_graph
from oic.ir.text_print import print_module
from oic.lower.graph import lower_graph
from oic.syntax import tree as s
from paths import ROOT
from tests.fuzz.sources import sources

SHOWN = re.compile(r'variable="[^"]*"')  # of a check of a divisor: as the refusal of the step writes it
EVERYTHING = """
    sizes { D = 4; H = D / 2; }
    dynamic { x: f32[N, D] @max(N=3); c: bool; i: i32; }
    constant { w(l): f32[D, D]; k: i32 @init(2); }
    volatile { y: f32[N, D]; z: f32[H]; m: f32[?, ?]; }
    persistent {
        K(l, t): f32[D] @table @fixed(l=2, t=8); R(t): f32 @table @ring(t) @fixed(t=4);
        M(r, q): f32[2, 2] @auto_dim(r, q) @fixed(r=3, q=3); n: i32; on: bool;
    }
    block entry {
        assign t: f32[?, D]; assign h: f32[H]; assign own2: f32;
        op linear(x, w[k - 1]) >> y;
        loop l (j in 0..k) {
            assign own: f32[D];
            cache.read K[j, n] >> own; op add(own, 1.0) >> own; cache.write own >> K[j, n];
            branch c one two;
        }
        cache.increment k n; cache.read M[0..r, 0..q] >> m; cache.reset R; cache.write own2 >> R[i];
        transfer own2 >> h[i]; op cast(h, to=f32) >> z; op slice(y, axis=0, start=0, end=N) >> t;
        branch on one2 two; yield y; await y;
    }
    block one { op relu(own) >> own; cache.write own >> K[j, n + j]; }
    block one2 { assign own: f32[D]; op fill(own, value=0.5) >> own; }
    block two { barrier; }
    block taker { await y; op relu(y) >> y; yield y; }
"""


def programs() -> list[str]:
    """Graphs that are in order: those of the examples and of the tests of the language."""
    return [EVERYTHING, *sources([ROOT / "examples", ROOT / "tests" / "language", ROOT / "tests" / "lower"])]


class Once(dict[int, Meaning]):
    """A table of meanings that refuses a second one."""

    def __setitem__(self, node: int, meaning: Meaning) -> None:
        assert node not in self, "a use of a name is resolved twice"
        super().__setitem__(node, meaning)


def named(statement: s.SourceStatement) -> Iterator[s.Name | s.Access]:
    """Every use of a name in a statement; what `dep` names are statements."""
    match statement:
        case s.OpCall(_, operands, keywords, results):
            for value in (*operands, *(k.value for k in keywords), *results):
                yield from uses(value)
        case s.Transfer(source, target) | s.CacheRead(source, target) | s.CacheWrite(source, target):
            yield from (*uses(source), *uses(target))
        case s.Loop(_, _, start, end):
            yield from (*uses(start), *uses(end))
        case s.Branch(condition):
            yield from uses(condition)
        case s.Yield(names) | s.Await(names):
            yield from names
        case s.CacheStep(_, amount, target):
            yield from (*uses(amount), *uses(target))
        case s.CacheReset(target):
            yield from uses(target)


def uses(part: object) -> Iterator[s.Name | s.Access]:
    if isinstance(part, s.Access):
        yield part
    yield from s.names_in(part)


def every(resolved: Resolved) -> Iterator[tuple[BlockInstance, s.SourceStatement]]:
    for instances in resolved.instances.values():
        for instance in instances:
            yield from ((instance, statement) for statement in s.walk(instance.block.body))


def test_every_use_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh(block: s.Block, caller: object, depth: int, lenient: bool) -> BlockInstance:
        return BlockInstance(block, caller, depth, lenient, Once())  # type: ignore[arg-type]

    monkeypatch.setattr(oic.check.resolve, "BlockInstance", fresh)
    seen = 0
    for text in programs():
        try:
            resolved = check(parse(text))
        except OicError:
            continue
        for instance, statement in every(resolved) if not resolved.diagnostics else ():
            for node in named(statement):
                known = isinstance(node, s.Name) and node.name in dtypes.ALL
                assert known or id(node) in instance.meanings, node.span.text
                seen += 1
    assert seen > 900


def test_lowering_reads_no_names() -> None:
    """With every resolved name in statements spelt otherwise, the same module results, but for how it shows divisors."""
    seen = 0
    for text in programs():
        try:
            expected = compile_graph(parse(text), None, Settings()).module
        except OicError:
            assert text != EVERYTHING
            continue
        resolved = check(parse(text))
        for instance, statement in every(resolved):
            for node in named(statement):
                if id(node) in instance.meanings:
                    object.__setattr__(node, "name", "?")
                    seen += 1
            others = statement.targets if isinstance(statement, s.Branch) else ()
            for node in (*others, *((statement,) if isinstance(statement, s.OpCall) else ())):
                object.__setattr__(node, "name", "?")
        module, told = lower_graph(bind(resolved, None, {}), {})
        assert not [d for d in told if d.severity == "error"]
        for found, wanted in zip(print_module(module).splitlines(), print_module(expected).splitlines(), strict=True):
            shown = SHOWN.search(found)
            assert found == (SHOWN.sub(shown[0], wanted) if shown and "?" in shown[0] else wanted), text
    assert seen > 900


def calls_for(count: int) -> int:
    """Python calls that it takes to refuse a program with so many errors in names, and as many in types."""
    one = "op relu(x) >> y; op relu(q{0}) >> z;"
    body = "\n".join(one.format(i) for i in range(count))
    head = "dynamic { x: f32[4]; } volatile { y: f32[5]; z: f32[4]; }"
    graph = parse(f"{head} block entry {{ {body} }}")
    profile = cProfile.Profile()
    with pytest.raises(OicError) as caught:
        profile.runcall(compile_graph, graph, None, Settings())
    assert len(caught.value.diagnostics) == 2 * count
    return sum(entry.callcount for entry in profile.getstats())


def test_work_grows_like_the_number_of_errors() -> None:
    calls_for(1)
    assert calls_for(400) < 2.2 * calls_for(200)
