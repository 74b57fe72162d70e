"""A comparison finds what is wrong by a little, and blames nothing that rounding may decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oic.check.source import parse
from oic.compare.harness import FLOOR, MARGIN, Run, Verdict, compare, differences
from oic.compare.monte_carlo import PerturbedMachine
from oic.diagnostics import StepError
from oic.driver import Settings, compile_graph, interface_of
from oic.dtypes import Array
from oic.model.model import Model
from oic.reference.interpret import Machine
from oic.session.simulator import SimulatorExecutor

# At x = 0 the exponential is 1, which a right answer may miss by a unit in the last place: a whole
# number of it may be 0 then, and a table entry chosen by that another one, or out of range.
TEXT = """
dynamic { x: f32[3]; }
volatile { whole: i32[3]; sure: i32[3]; far: f32[3]; }
persistent { K(t): f32 @table @fixed(t=2); }
block entry {
    assign y: f32[3];
    op exp(x) >> y;
    op cast(y, to=i32) >> whole;
    op cast(x, to=i32) >> sure;
    op mul(y, y) >> far;
    return;
}
"""


class Other(SimulatorExecutor):
    """Gives another value for one element of one output."""

    change: tuple[str, Any] = ("", 0)

    def _run(self, entry: str, inputs: dict[str, Array]) -> dict[str, Array]:
        found = super()._run(entry, inputs)
        name, value = self.change
        if name:
            found[name] = found[name].copy()
            found[name][1] = value
        return found


def verdict(
    name: str, value: Any, text: str = TEXT, middle: float = 0.0, model: Model | None = None
) -> Verdict:
    program = compile_graph(parse(f"graph near {{ {text} }}", "near.oi"), model, Settings())
    session = Other(interface_of(program), Machine(program.module))
    session.change = name, value
    return compare(program.module, session, [Run("entry", {"x": np.array([1.5, middle, -2.0], np.float32)})])


def test_what_rounding_may_decide_is_no_difference() -> None:
    near = verdict("whole", 0)
    assert near.equal  # whichever of the runs have shown it
    assert verdict("", 0).equal and not verdict("", 0).doubts


def test_the_sign_of_a_nan_that_is_computed_is_open() -> None:
    text = """dynamic { x: f32[3]; } volatile { computed: bool[3]; given: bool[3]; }
    block entry { assign y: f32[3]; op sub(x, x) >> y; op is_neg(y) >> computed; op is_neg(x) >> given; return; }"""
    for value in (False, True):
        assert verdict("computed", value, text, np.inf).equal
    assert not verdict("computed", True, text).equal and not verdict("given", True, text, np.nan).equal


@pytest.mark.parametrize(("name", "value"), [("whole", 2), ("whole", -1), ("sure", 1), ("far", 1.0001)])
def test_what_rounding_cannot_explain_is_one(name: str, value: Any) -> None:
    found = verdict(name, value)
    assert not found.equal and found.difference is not None
    assert (found.difference.variable, found.difference.index) == (name, (1,))


# What rounding decides is kept, and all that follows depends on it.
KEPT = """
dynamic { x: f32; }
volatile { all: i32; }
persistent { total: i32[1, 2]; pos: i32; }
block entry {
    assign y: f32;
    assign whole: i32;
    assign before: i32[1, 2];
    op exp(x) >> y;
    op cast(y, to=i32) >> whole;
    cache.read total >> before;
    op add(before, whole) >> before;
    cache.write before >> total;
    op sum_axis(before, axes=[0, 1]) >> all;
    return;
}
"""


class Late(SimulatorExecutor):
    """Gives a wrong sum in the last step."""

    wrong_at, taken = -1, 0

    def _run(self, entry: str, inputs: dict[str, Array]) -> dict[str, Array]:
        found = super()._run(entry, inputs)
        if self.taken == self.wrong_at:
            found["all"] = found["all"] + 1000
        self.taken += 1
        return found


def test_after_a_doubt_the_other_steps_are_compared_from_the_state_of_the_library() -> None:
    program = compile_graph(parse(f"graph kept {{ {KEPT} }}", "kept.oi"), None, Settings())
    steps = [Run("entry", {"x": np.float32(0)}, "load" if n % 5 == 4 else "") for n in range(12)]
    doubts = 0
    for seed in range(100, 106):
        session = Late(interface_of(program), PerturbedMachine(program.module, seed))
        found = compare(program.module, session, steps)
        assert found.equal and found.steps == 12
        assert ("in doubt" in str(found)) == bool(found.doubts)
        doubts += len(found.doubts)
        session = Late(interface_of(program), PerturbedMachine(program.module, seed))
        session.wrong_at = 11
        found = compare(program.module, session, steps)
        assert found.difference is not None and found.difference.step == 11
    assert doubts


# Errors of a sum, which a copy of the library's state has, decide what is whole.
SUMMED = """
dynamic { x: f32; }
volatile { all: i32; }
persistent { total: f32; }
block entry {
    assign y: f32;
    op exp(x) >> y;
    assign before: f32;
    cache.read total >> before;
    op add(before, y) >> before;
    cache.write before >> total;
    op cast(before, to=i32) >> all;
    return;
}
"""


def test_what_follows_a_copy_of_the_library_is_in_doubt_too() -> None:
    program = compile_graph(parse(f"graph summed {{ {SUMMED} }}", "summed.oi"), None, Settings())
    steps = [Run("entry", {"x": np.float32(0)}, "take" if n % 4 == 3 else "") for n in range(16)]
    doubts = 0
    for seed in range(100, 106):
        found = compare(program.module, Late(interface_of(program), PerturbedMachine(program.module, seed)), steps)
        assert found.equal and found.steps == 16, found
        doubts += len(found.doubts)
    assert doubts


class Unsaved(SimulatorExecutor):
    """Its state cannot be saved."""

    def save(self) -> bytes:
        raise StepError("OIC_ERR_STATE", "spoiled")


def test_a_copy_that_the_library_does_not_give_is_a_difference() -> None:
    program = compile_graph(parse(f"graph summed {{ {SUMMED} }}", "summed.oi"), None, Settings())
    session = Unsaved(interface_of(program), Machine(program.module))
    verdict = compare(program.module, session, [Run("entry", {"x": np.float32(0)}, "take")])
    assert verdict.difference is not None and verdict.difference.compiled == "OIC_ERR_STATE"


REFUSED = """
dynamic { i: i32; }
persistent { n: i32; K(t): f32 @table @fixed(t=2); }
block entry { cache.increment n; cache.increment K[i]; return; }
"""


class Refusing(SimulatorExecutor):
    """Refuses with another status, or keeps what a refused step had done."""

    status, spoiled = "", False

    def _run(self, entry: str, inputs: dict[str, Array]) -> dict[str, Array]:
        try:
            return super()._run(entry, inputs)
        except StepError as error:
            self.machine.broken = self.spoiled
            raise StepError(self.status or error.status, "refused") from None


@pytest.mark.parametrize(
    ("status", "spoiled", "found"),
    [("", False, None), ("OIC_ERR_SHAPE", False, "status"), ("", True, "state")],
)
def test_a_refusal_has_the_same_status_and_leaves_the_same_state(
    status: str, spoiled: bool, found: str | None
) -> None:
    program = compile_graph(parse(f"graph refused {{ {REFUSED} }}", "refused.oi"), None, Settings())
    session = Refusing(interface_of(program), Machine(program.module, program.compiled))
    session.status, session.spoiled = status, spoiled
    runs = [Run("entry", {"i": np.asarray(i, np.int32)}) for i in (0, 2, 1)]
    verdict = compare(program.module, session, runs, compiled=program.compiled)
    assert (verdict.difference and verdict.difference.variable) == found
    assert verdict.refusals == (found != "status")


def test_keys_masked_by_the_lowest_number_leave_the_bound_as_it_is() -> None:
    """Not so wide that any difference is within it, and not infinite, which perturbs nothing."""
    text = """
    dynamic { x: f32[3]; }
    constant { bias: f32[3]; }
    volatile { y: f32[3]; }
    block entry {
        assign q: f32[3, 1, 1];
        op reshape(x, shape=[3, 1, 1]) >> q;
        op attention(q, q, q, bias=bias) >> q;
        op reshape(q, shape=[3]) >> y;
    }
    """
    for lowest in (np.finfo(np.float32).min, -np.inf, -1e9):
        model = Model(tensors={"bias": np.array([0, 0, lowest], np.float32)})
        assert verdict("y", np.nextafter(np.float32(0.75), np.float32(1)), text, model=model).equal
        assert not verdict("y", np.float32(0.7501), text, model=model).equal


LARGE = """dynamic { x: f32[3]; } constant { w: f32[3, 3] @init(3e38); } volatile { y: f32[3]; z: f32[3]; }
block entry { op linear(x, w) >> y; op sqrt(x) >> z; return; }"""


def test_a_sum_whose_parts_may_leave_the_range_may_be_infinite_or_nan() -> None:
    """1.5 + 0 - 2 times 3e38: the order of the additions decides."""
    for value in (np.inf, -np.inf, np.nan):
        assert len(verdict("y", value, LARGE).doubts) == 1
        assert not verdict("z", value, LARGE).equal
    assert verdict("", 0, LARGE, np.nan).equal and not verdict("", 0, LARGE, np.inf).doubts


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**-600, 1.0, 2.0**600, 2.0**900])
def test_what_is_allowed_goes_with_the_size_of_numbers(scale: float) -> None:
    """Whose squares are no numbers, or zero: an element that is alike in all runs is allowed what its neighbours are."""
    exact = np.array([1.0, 2.0, 3.0, 4.0]) * scale
    runs = [exact + np.array([0.0, 3e-3, 0.0, 4e-3]) * scale]
    with np.errstate(all="raise", under="ignore"):
        error, allowed = differences(exact, exact + 1e-3 * scale, runs)
    ulps = FLOOR * np.array([1, 2, 2, 4]) * 2.0**-52
    np.testing.assert_allclose(allowed / scale, MARGIN * np.array([2.5e-3, 3e-3, 2.5e-3, 4e-3]) + ulps, rtol=1e-9)
    np.testing.assert_allclose(error / scale, 1e-3, rtol=1e-9)


def test_differences_near_the_end_of_the_range_are_no_error() -> None:
    most = np.finfo(np.float64).max
    exact = np.array([most / 2, 1.0])
    with np.errstate(all="raise", under="ignore"):
        error, allowed = differences(exact, np.array([most / 4, 1e300]), [np.array([most, 1.0])])
    assert error[0] <= allowed[0] == np.inf and np.isfinite(error).all()
