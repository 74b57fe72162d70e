"""Drive the reference and a compiled library through the same steps and compare everything.

After every step all outputs and all persistent variables are compared: exactly for integers, bool
and shapes; for floats within what perturbed runs (`monte_carlo`) of the reference show the operators' own error
bounds to allow.

A few such runs seldom show a number that lies on an edge: a cast, an argmax, an index computed of data,
which errors within the bounds may decide either way.  So what seems a difference is tried on many runs
more before it is one (`doubtful`).  Where it is none, the reference goes on from the library's state.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oic import dtypes
from oic.compare.between import KeptCopy, Sessions, told
from oic.compare.monte_carlo import PerturbedMachine
from oic.diagnostics import StepError, count_of
from oic.dtypes import Array, DType
from oic.ir.module import Module
from oic.operators.bounds import last_place
from oic.reference.interpret import Compiled, Machine
from oic.session.executor import Executor

RUNS = 3  # perturbed runs
MARGIN = 4.0  # times the largest difference seen among them
DOUBTS = 40  # perturbed runs that are made where there seems to be a difference
FLOOR = 4.0  # units in the last place that are always allowed where floats are computed at all


@dataclass(frozen=True)
class Difference:
    """The first element that differs.

    ulp      units in the last place between the two, for floats
    allowed  largest absolute difference that would have been right
    """

    step: int
    variable: str
    index: tuple[int, ...]
    reference: object
    compiled: object
    ulp: float = 0.0
    allowed: float = 0.0

    def __str__(self) -> str:
        where = f"{self.variable}{list(self.index) if self.index else ''}"
        apart = f" ({self.ulp:.3g} ulp apart, {self.allowed:.3g} allowed)" if isinstance(self.reference, float) else ""
        return f"step {self.step}, {where}: reference {self.reference}, compiled {self.compiled}{apart}"


@dataclass
class Verdict:
    """What a comparison found.

    refusals  steps that both refused
    worst     largest difference of a float as a part of what was allowed
    doubts    what differs, but errors within the bounds may decide so; at most one a step, which is compared no further
    acts      how often each action was done between steps
    """

    steps: int = 0
    compared: int = 0
    refusals: int = 0
    worst: float = 0.0
    difference: Difference | None = None
    doubts: list[Difference] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)
    acts: Counter[str] = field(default_factory=Counter)

    @property
    def equal(self) -> bool:
        return self.difference is None

    def __str__(self) -> str:
        if self.difference is not None:
            return f"DIFFERENT: {self.difference}"
        refused = f", {self.refusals} refused alike" if self.refusals else ""
        acts = f"; {told(self.acts)}" if self.acts else ""
        values = f"{count_of(self.compared, 'value')} of {count_of(len(self.variables), 'variable')}"
        text = f"equal: {count_of(self.steps, 'step')}{refused}, {values}, worst {self.worst:.3f} of the bound{acts}"
        if self.doubts:
            why = "where errors within the bounds may decide either way, and the reference went on from the library's"
            text += f"\n{count_of(len(self.doubts), 'step')} in doubt, {why} state; the first: {self.doubts[0]}"
        return text


@dataclass(frozen=True)
class Run:
    """One step to take: an entry and its inputs.

    before   what is done with the state first, one of `between.ACTIONS`; "" is nothing
    """

    entry: str
    inputs: dict[str, Array]
    before: str = ""


def compare(
    module: Module, executor: Executor, runs: Iterable[Run], advance: Callable[[int], None] | None = None,
    another: Callable[[], Executor] | None = None, compiled: Compiled | None = None,
) -> Verdict:  # fmt: skip
    """Take every step on both sides; stops at the first difference that errors within the bounds do not explain.

    module    GRAPH, for the reference
    advance   called after each step with its number
    another   makes a new session of the same library
    compiled  what the library is made of, if it is one: what is refused late there (`Machine`)
    """
    sessions = Sessions(module, executor, RUNS, another, compiled)
    verdict = Verdict()
    start: bytes | None = None
    taken: list[Run] = []  # from there
    try:
        for number, run in enumerate(runs):
            taken.append(run)
            _act(sessions, number, run.before, verdict)
            if run.before == "take" and verdict.equal:  # which no run without the library does again
                start, taken = sessions.follow(), [replace(run, before="")]
            if verdict.equal:
                _step(sessions, number, run, verdict)
                verdict.steps += 1
            if advance is not None:
                advance(number)
            if verdict.difference is None:
                continue
            if not doubtful(module, start, taken, verdict.difference, compiled):
                break
            verdict.doubts.append(verdict.difference)
            verdict.difference, start, taken = None, sessions.follow(), []
    finally:
        sessions.close()
    return verdict


def doubtful(
    module: Module, start: bytes | None, runs: list[Run], found: Difference, compiled: Compiled | None
) -> bool:
    """Errors within the bounds may give the compiled answer, too, in the last of these runs from a saved state."""
    exact = _again(Machine(module, compiled), start, runs, found)
    machines = (PerturbedMachine(module, seed, MARGIN, compiled, np.inf) for seed in range(RUNS, RUNS + DOUBTS))
    perturbed = [_again(machine, start, runs, found) for machine in machines]
    if isinstance(exact, str):
        return exact == found.reference and any(other == found.compiled for other in perturbed)
    if isinstance(found.reference, str):  # the shapes differ
        return any(not isinstance(other, np.ndarray) or other.shape != exact.shape for other in perturbed)
    same = [o for o in perturbed if isinstance(o, np.ndarray) and o.shape == exact.shape]
    if len(same) < len(perturbed):
        return True
    again = exact[found.index].item()
    if again != found.reference and again == again:
        return False  # taken again, without the library, the steps are others
    other = exact.copy()
    other[found.index] = found.compiled
    error, allowed = differences(exact, other, same)
    return bool(error[found.index] <= allowed[found.index])


def _again(machine: Machine, start: bytes | None, runs: list[Run], found: Difference) -> Array | str:
    """A variable, or the status, after the last of some runs."""
    if start is not None:
        machine.load(start)
    kept = KeptCopy()
    outputs: dict[str, Array] = {}
    status: str | None = None
    for run in runs:
        kept.act(machine, run.before)
        outputs, status = outcome(machine.step, run.entry, run.inputs)
        if machine.broken:
            machine.reset()
    if status is not None or found.variable in ("status", "saved state"):
        return status or "OIC_OK"
    return outputs[found.variable] if found.variable in outputs else machine.fetch_state(found.variable)


def _act(sessions: Sessions, number: int, what: str, verdict: Verdict) -> None:
    """What a run wants done before its step; both sides save the same and load what either saved."""
    if not what:
        return
    try:
        sessions.act(what)
        wrong = "" if sessions.alike() else "other bytes"
    except StepError as error:
        wrong = error.status
    verdict.acts[what] += 1
    if wrong:
        verdict.difference = Difference(number, "saved state", (), what, wrong)


def _step(sessions: Sessions, number: int, run: Run, verdict: Verdict) -> None:
    reference, executor = sessions.reference, sessions.executor
    expected, status = outcome(reference.step, run.entry, run.inputs)
    actual, refused = outcome(lambda: executor.step(run.entry, **run.inputs))
    if status != refused:
        verdict.difference = Difference(number, "status", (), status or "OIC_OK", refused or "OIC_OK")
        return
    perturbed = [outcome(machine.step, run.entry, run.inputs)[0] for machine in sessions.others]
    if status is not None:
        verdict.refusals += 1
        spoiled = outcome(executor.save)[1] is not None  # after an effect (SPEC, 8.6): it wants to be reset
        if spoiled != reference.broken:
            words = ["left as it was", "left changed"]
            verdict.difference = Difference(number, "state", (), words[reference.broken], words[spoiled])
            return
        if spoiled:
            sessions.reset()
            return
    for name in expected:
        versions = [s[name] for s in perturbed if name in s]
        _check(number, name, expected[name], actual[name], versions, verdict)
    for name in sessions.states:
        versions = [m.fetch_state(name) for m in sessions.others]
        _check(number, name, reference.fetch_state(name), executor.fetch(name), versions, verdict)


def _check(number: int, name: str, one: Array, two: Array, versions: list[Array], verdict: Verdict) -> None:
    """Compare one variable; records the first difference and the worst error."""
    if verdict.difference is not None:
        return
    verdict.variables.add(name)
    verdict.compared += one.size
    if one.shape != two.shape or one.dtype != two.dtype:
        shapes = f"{one.dtype}{list(one.shape)}", f"{two.dtype}{list(two.shape)}"
        verdict.difference = Difference(number, name, (), *shapes)
        return
    error, allowed = differences(one, two, [v for v in versions if v.shape == one.shape])
    wrong, dtype = ~(error <= allowed), _float_of(one)
    if wrong.any():
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), one.shape))
        with np.errstate(all="ignore"):
            ulp = float(error[at] / last_place(one[at], dtype)) if dtype else 0.0
        verdict.difference = Difference(number, name, at, one[at].item(), two[at].item(), ulp, float(allowed[at]))
    elif dtype:
        with np.errstate(all="ignore"):
            part = np.where(error > 0, error / allowed, 0.0)
        verdict.worst = max(verdict.worst, float(part.max(initial=0.0)))


def differences(one: Array, two: Array, versions: list[Array]) -> tuple[Array, Array]:
    """How far each element is from the reference, and how far it may be (0: equal).

    NaN equals NaN, infinities equal themselves; an integer may differ only where perturbed runs
    differ too (an argmax of values that are equal within their errors), and as far as they do.
    """
    if (dtype := _float_of(one)) is None:
        low, high = one, one
        for v in versions:
            low, high = np.minimum(low, v), np.maximum(high, v)
        error = (one != two).astype(np.float64)
        return error, np.where((low <= two) & (two <= high), error, 0.0)
    a, b = one.astype(np.float64), two.astype(np.float64)
    with np.errstate(all="ignore"):
        error, spread = _apart(a, b), np.zeros(one.shape)
        for v in versions:
            spread = np.maximum(spread, _apart(a, v.astype(np.float64)))
    if not spread.any():
        return error, np.zeros(one.shape)  # nothing on the way here is inexact
    finite = spread[np.isfinite(spread)]
    # A single element may by chance be alike in all runs; its neighbours tell the scale.
    top = finite.max(initial=0.0)  # by which squares neither overflow nor vanish
    typical = top * np.sqrt(np.mean((finite / top) ** 2)) if top else 0.0
    with np.errstate(over="ignore"):  # beyond all numbers, it allows any
        return error, MARGIN * np.maximum(spread, typical) + FLOOR * last_place(one, dtype)


def _apart(a: Array, b: Array) -> Array:
    """How far f64 elements are from each other: NaN infinitely from all but NaN."""
    error = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.where(np.isnan(error), np.inf, error)


def _float_of(array: Array) -> DType | None:
    """The element type, if it is a float."""
    dtype = dtypes.from_array(array.dtype)
    return dtype if dtype is not None and dtype.is_float else None


def outcome(call: Callable[..., Any], *given: object) -> tuple[Any, str | None]:
    """What a call gives, or nothing and the status of its refusal."""
    try:
        return call(*given), None
    except StepError as error:
        return {}, error.status
