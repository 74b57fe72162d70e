"""The watched interpreter names what C would get wrong, on plans that are wrong by a little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oic.driver import Program
from oic.ir.liveness import liveness
from oic.ir.module import Module
from oic.reference.interpret import Machine
from tests.fuzz.checks import compiled
from tests.fuzz.memory_plans import LAYOUTS, bufferized, planned_as
from tests.fuzz.watched import WatchedMachine

GRAPH = """\
graph watched {
    dynamic { x: f32[4]; i: i32; }
    persistent { T0(t0): f32[4] @table @fixed(t0=3); n: i32; }
    volatile { y: f32[4]; }
    block entry {
        assign a: f32[4];
        assign b: f32[4];
        op softmax(x) >> a;
        loop l (k in 0..3) {
            op softmax(a) >> b;
            op flip(b, axes=[0]) >> b;
            op add(y, b) >> y;
            cache.write b >> T0[k];
        }
        cache.increment n;
        return;
    }
}
"""
INPUTS = {"x": np.array([1, 2, 3, 4], np.float32)}


@pytest.fixture(scope="module")
def program() -> Program:
    found = compiled(GRAPH)
    assert found is not None
    return found


def planned(program: Program) -> Module:
    red_zones = next(layout for layout in LAYOUTS if layout.name == "red zones")
    return planned_as(bufferized(program.module), red_zones)


def stepped(module: Module) -> None:
    watch = WatchedMachine(module)
    for _ in range(2):
        watch.step("entry", INPUTS)


def test_a_right_plan_is_right(program: Program) -> None:
    expected = Machine(program.module).step("entry", INPUTS)["y"]
    for layout in LAYOUTS:
        watch = WatchedMachine(planned_as(bufferized(program.module), layout))
        np.testing.assert_array_equal(watch.step("entry", INPUTS)["y"], expected)


def test_red_zones_lie_around_every_buffer(program: Program) -> None:
    plan = planned(program).plan
    assert plan is not None
    arena = plan.space("arena")
    ends = [0, *(b.offset + b.nbytes for b in arena)]
    starts = [*(b.offset for b in arena), plan.arena_bytes["entry"]]
    assert len(arena) > 1 and all(start - end >= 64 for end, start in zip(ends, starts, strict=True))


def test_a_buffer_given_up_too_early(program: Program) -> None:
    """No other buffer has its bytes, and still the next iteration of the loop sees noise."""
    module = planned(program)
    assert module.plan is not None
    right = Machine(module).step("entry", INPUTS)["y"]
    live = liveness(module.function("entry").body)
    last = next(at for op, at in live.start.items() if [v.hint for v in op.operands] == ["a"])
    for i, buffer in enumerate(module.plan.buffers):
        if buffer.space == "arena" and buffer.name == "a":
            module.plan.buffers[i] = replace(buffer, end=last)
    assert not np.array_equal(WatchedMachine(module).step("entry", INPUTS)["y"], right)


def test_a_result_outside_its_buffer(program: Program) -> None:
    module = planned(program)
    assert module.plan is not None
    module.plan.buffers = [
        replace(b, nbytes=b.nbytes - 4) if b.name == "a" else b for b in module.plan.buffers
    ]
    with pytest.raises(AssertionError, match="a result lies outside buffer 'a'"):
        stepped(module)


def test_a_result_over_an_operand_that_is_read(program: Program) -> None:
    module = planned(program)
    flip = next(op for op in module.all_ops() if op.name == "flip")
    place = flip.operands[0].place
    assert place is not None
    flip.result.place = place
    with pytest.raises(AssertionError, match=r"is written over .* while it is read\n.*flip"):
        stepped(module)


def test_a_write_beside_what_the_op_owns(program: Program) -> None:
    """An op that changes a variable it does not say it writes, or the memory of another value."""
    for name in ("arena", "state"):
        machine = WatchedMachine(planned(program))
        memory = getattr(machine.places, name)
        before = machine.observer
        assert before is not None

        def spoil(op: object, memory: np.ndarray = memory, before: object = before) -> None:
            before(op)  # type: ignore[operator]
            if getattr(op, "name", "") == "softmax":
                memory[-1] ^= 0xFF

        machine.observer = spoil
        with pytest.raises(AssertionError, match=rf"writes byte \d+ of {name}, of"):
            machine.step("entry", INPUTS)


def test_a_place_outside_its_space(program: Program) -> None:
    """The interpreter itself refuses it: no byte beside a space is read or written."""
    for beyond in (4, 1 << 20):
        module = planned(program)
        place = next(op for op in module.all_ops() if op.name == "flip").result.placed
        place.offset = module.memory.arena_bytes["entry"] - 16 + beyond
        with pytest.raises((TypeError, ValueError), match="buffer"):
            Machine(module).step("entry", INPUTS)


def test_constants_and_inputs_cannot_be_written(program: Program) -> None:
    machine = Machine(planned(program))
    machine.step("entry", INPUTS)
    assert machine.places is not None
    assert not machine.places.weights.flags.writeable
    assert not machine.places.inputs["x"].flags.writeable
