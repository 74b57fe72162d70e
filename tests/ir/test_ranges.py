"""Long arithmetic: every integer is looked at once, and no chain is too long."""

from __future__ import annotations

import pytest

from oic.ir import ranges
from oic.ir.core import Block, Op, Value
from oic.ir.index import CheckRange, IndexAdd, IndexConst, IndexMin
from oic.ir.ranges import Ranges, difference, linear, value_range
from oic.ir.types import INDEX
from oic.operators.known import Known

LONG = 3000


def chain(kind: type[Op]) -> tuple[Value, list[Value]]:
    """An unknown integer, and one of two integers made of it again and again."""
    block = Block()
    start, one = block.argument(INDEX), IndexConst(1)
    made = [start]
    for _ in range(LONG):
        made.append(kind(made[-1], one.result).result)
    return start, made


def test_each_of_a_chain_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    start, made = chain(IndexAdd)
    seen = 0
    rule = ranges._rule

    def counted(value: Value) -> object:
        nonlocal seen
        seen += 1
        return rule(value)

    monkeypatch.setattr(ranges, "_rule", counted)
    known = Ranges()
    for value in made:
        value_range(value, known)
    assert seen < 3 * LONG
    forms = [linear(value, known) for value in made]
    assert forms[-1] == {start: 1, None: LONG} == linear(made[-1])
    assert difference(made[-1], made[7], known) == (LONG - 7, LONG - 7)


def test_what_checks_show_is_followed_through_long_arithmetic() -> None:
    _, made = chain(IndexMin)
    known = Known()
    for value in made[1:]:
        known.learn(CheckRange(value, 0, 7, "OIC_ERR_SHAPE", "OIC_ERR_SHAPE", "n"))
        assert not known.refuses(IndexAdd(value, value))
