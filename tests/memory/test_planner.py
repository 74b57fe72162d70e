"""Arena offsets: buffers that live together are apart, aligned, and near the lower bound."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oic.ir.module import Buffer
from oic.memory import planner

SIZES = st.integers(0, 700)
RANGES = st.tuples(st.integers(0, 30), st.integers(0, 12))


def buffers(parts: list[tuple[int, tuple[int, int]]]) -> list[Buffer]:
    return [
        Buffer(f"b{i}", "arena", -1, size, planner.ALIGN, start, start + length)
        for i, (size, (start, length)) in enumerate(parts)
    ]


def apart(a: Buffer, b: Buffer) -> bool:
    return a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset or 0 in (a.nbytes, b.nbytes)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(SIZES, RANGES), max_size=24))
def test_live_buffers_never_share_memory(parts: list[tuple[int, tuple[int, int]]]) -> None:
    made = buffers(parts)
    nbytes = planner.place(made)
    assert nbytes >= planner.lower_bound(made)
    for b in made:
        assert b.offset >= 0 and b.offset % planner.ALIGN == 0 and b.offset + b.nbytes <= nbytes
    for a, b in combinations(made, 2):
        assert apart(a, b) or not planner.lives_with(a, b), (a, b)


@given(st.lists(st.tuples(SIZES, RANGES), max_size=12))
def test_without_reuse_all_are_apart(parts: list[tuple[int, tuple[int, int]]]) -> None:
    made = buffers(parts)
    nbytes = planner.place(made, reuse=False)
    assert all(apart(a, b) for a, b in combinations(made, 2))
    assert nbytes == sum(-(-b.nbytes // planner.ALIGN) * planner.ALIGN for b in made)


@given(st.lists(st.tuples(SIZES, RANGES), max_size=12))
def test_the_bound_is_the_fullest_moment(parts: list[tuple[int, tuple[int, int]]]) -> None:
    made = buffers(parts)
    moments = [
        sum(-(-b.nbytes // planner.ALIGN) * planner.ALIGN for b in made if b.start <= at <= b.end)
        for at in range(45)
    ]
    assert planner.lower_bound(made) == max(moments)


@pytest.mark.parametrize(
    ("parts", "nbytes"),
    [
        ([], 0),
        ([(64, (0, 1)), (64, (2, 1))], 64),  # one after the other
        ([(64, (0, 1)), (64, (1, 1))], 128),  # the second is made while the first is read
        ([(100, (0, 0)), (1, (0, 0))], 192),  # each on a line of its own
        ([(128, (0, 3)), (64, (4, 1)), (64, (4, 1))], 128),  # two in the place of one
        ([(0, (0, 9)), (64, (3, 1))], 64),  # nothing takes no room
    ],
)
def test_small_cases(parts: list[tuple[int, tuple[int, int]]], nbytes: int) -> None:
    assert planner.place(buffers(parts)) == nbytes
