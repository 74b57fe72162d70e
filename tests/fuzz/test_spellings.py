"""What a graph becomes does not depend on how it is written, and does not hold what was written."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from language.programs import PROGRAMS
from oic import Model
from oic.check.source import parse
from oic.driver import Program, Settings, compile_graph
from oic.syntax.tree import Graph
from oic.syntax.unparse import unparse
from tests.fuzz import checks, graphs
from tests.fuzz.spellings import meaning, respelled
from tests.session.refusals import CASES

SPELLINGS = 2


def programs() -> Iterator[tuple[str, Program]]:
    """(text, program) of every kind of statement and of every check of a step."""
    texts = {f"program {name}": (p.text, p.model) for name, p in PROGRAMS.items()}
    texts |= {f"refused {name}": (case.text, Model(case.model) if case.model else None) for name, case in CASES.items()}
    for text, model in texts.values():
        yield text, compile_graph(parse(text), model, Settings(unbounded=True))
    for seed in range(20):
        text = graphs.generate(seed)
        if (program := checks.compiled(text)) is not None:
            yield text, program


@pytest.fixture(scope="module")
def compiled() -> list[tuple[str, Program]]:
    return list(programs())


def same(graph: Graph, program: Program) -> bool:
    made = compile_graph(graph, program.model, program.settings)
    return meaning(made.module) == meaning(program.module) and len(made.warnings) == len(program.warnings)


def test_other_blanks_comments_and_literals_are_the_same_graph(compiled: list[tuple[str, Program]]) -> None:
    rng = random.Random(0)
    for text, program in compiled:
        for _ in range(SPELLINGS):
            other = respelled(text, rng)
            assert same(parse(other), program), other


def test_a_graph_is_the_same_when_its_tree_is_written_or_sent(compiled: list[tuple[str, Program]]) -> None:
    for text, program in compiled:
        assert same(parse(unparse(program.graph)), program), text
        assert same(Graph.from_json(program.graph.to_json()), program), text
