"""Every operator, for every element type, shape class and backend, through the whole compiler.

The reference is the interpreter of GRAPH.  The interpreter of PLANNED and compiled C are compared
with it: exactly where `Operator.tolerance` is 0, within it elsewhere; and C with the operator's
meaning in f64 by the bound that OPS states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oic import dtypes
from oic.dtypes import ALL, Array, DType
from oic.ir.core import OpError, Value
from oic.ir.types import TensorType
from oic.operators import catalog
from oic.operators.base import Operator
from oic.operators.bounds import last_place
from oic.session.executor import Executor
from tests.fuzz import expanded
from tests.fuzz.operator_cases import SIZES, Case, graph
from tests.fuzz.operator_catalog import BOUNDS
from tests.fuzz.operator_shapes import RANGED, cases

GROUP = 48  # cases of one graph
BACKENDS = ("graph", "planned", "c")


@dataclass(frozen=True)
class Batch:
    """Cases that share a graph, and its text."""

    name: str
    cases: tuple[Case, ...]

    @property
    def text(self) -> str:
        return graph(self.name, self.cases)

    @property
    def dynamic(self) -> bool:
        return any(case.dynamic for case in self.cases)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Values of the extent, a step each."""
        if not self.dynamic:
            return (0,)
        return SIZES[1:] if any(_needs_some(case) for case in self.cases) else SIZES


def _needs_some(case: Case) -> bool:
    """The operator refuses an empty axis."""
    return not getattr(type(case.symbolic), "empty", True) or case.op.startswith("arg")


def batches(chosen: Iterable[Case], prefix: str = "p") -> list[Batch]:
    """Cases in graphs: those with extents apart, as the extent is one for the whole graph."""
    groups: dict[tuple[bool, bool], list[Case]] = {}
    for case in chosen:
        groups.setdefault((case.dynamic, case.dynamic and _needs_some(case)), []).append(case)
    found: list[Batch] = []
    for members in groups.values():
        for at in range(0, len(members), GROUP):
            found.append(Batch(f"{prefix}{len(found)}", tuple(members[at : at + GROUP])))
    return found


def every_case() -> list[Case]:
    """The cases of all operators, those beyond the bounds of OPS last."""
    return sorted((case for cls in catalog().values() for case in cases(cls)), key=lambda case: case.label == RANGED)


def suite() -> list[Case]:
    """What the tests run: of every pair of operator and element type the long and plain cases and a
    rotating part of the others, so that every shape class is there for every operator."""
    return [
        case
        for turn, case in enumerate(every_case())
        if case.row is dtypes.f32 or case.label in ESSENTIAL or turn % 4 == 0
    ]


ESSENTIAL = ("long", "plain", "rows", "example")


def part(chosen: Sequence[Case], stride: int, start: int = 0) -> list[Case]:
    """Every so many-th case."""
    return list(chosen[start % stride :: stride])


# ---------------------------------------------------------------- running


@dataclass(frozen=True)
class Fault:
    """What is wrong with one case in one backend."""

    case: Case
    backend: str
    what: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.case}: {self.what}"


def compare(batch: Batch, sessions: dict[str, Executor], seed: int = 0) -> Iterator[Fault]:
    """Take the steps of a batch in every backend; all differences."""
    for size in batch.sizes:
        rng = np.random.default_rng([seed, size])
        given = [case.arrays(i, size, rng) for i, case in enumerate(batch.cases)]
        inputs = {name: array for part in given for name, array in part.items()}
        if batch.dynamic:
            inputs["extent"] = np.zeros(size, np.uint8)
        for executor in sessions.values():
            executor.step(**inputs)
        for i, case in enumerate(batch.cases):
            with np.errstate(all="ignore"):
                yield from _case(case, i, size, given[i], sessions)


def _case(
    case: Case, number: int, size: int, inputs: dict[str, Array], sessions: dict[str, Executor]
) -> Iterator[Fault]:
    op = case.concrete(size)
    seen = case.seen(number, inputs)
    wide = [widened(op, key, seen.get(key)) for key in operand_fields(op)]
    for at, value in enumerate(op.results):
        name = f"y{at}_{number}"
        want = sessions["graph"].fetch(name)
        if want.shape != tuple(value.tensor.maximum):
            yield Fault(case, "graph", f"shape {want.shape}, not {value.tensor.maximum}")
            continue
        with np.errstate(all="ignore"):
            bound = np.asarray(expanded.tolerance(op, want, *wide), np.float64)
        for backend, executor in sessions.items():
            got = executor.fetch(name)
            what = difference(op, value.dtype, got, want, bound)
            if what:
                yield Fault(case, backend, f"N={size}: {what}" if case.dynamic else what)
        if at == 0 and "c" in sessions and case.label != RANGED:
            what = beyond_stated(op, sessions["c"].fetch(name), bound, want, wide)
            if what:
                yield Fault(case, "c", what)


def operand_fields(op: Operator) -> list[str]:
    return [key for key, f in op.fields.items() if f.kind in ("operand", "optional", "rest")]


def widened(op: Operator, key: str, part: Any) -> Any:
    value = getattr(op, key)
    if part is None:
        return None
    if isinstance(part, list):
        return [dtypes.widen(a, v.dtype) for a, v in zip(part, value, strict=True)]
    return dtypes.widen(part, value.dtype)


def difference(op: Operator, dtype: DType, got: Array, want: Array, bound: Array) -> str:
    """How a result differs from the reference, '' if it does not.

    NaN is any NaN, and infinity the number after the largest; all is within a bound of infinity: sums that overflow may do
    so both ways.  Where an elementwise operator is exact, zeros have the same sign.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if not dtype.is_float:
        bad = np.asarray(got != want)
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        after = np.ldexp(1.0, np.frexp(dtype.largest)[1])
        with np.errstate(invalid="ignore"):
            close = (a == b) | (np.abs(np.clip(a, -after, after) - np.clip(b, -after, after)) <= bound)
        bad = ~(close | np.isposinf(bound) | (np.isnan(a) & np.isnan(b)))
        if op.elementwise or op.view:
            bad |= (a == 0) & (b == 0) & (bound == 0) & (np.signbit(a) != np.signbit(b))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    allowed = np.broadcast_to(bound, want.shape)[at]
    return f"{int(bad.sum())} of {bad.size} differ, first {list(at)}: {got[at]!r}, not {want[at]!r} (± {allowed})"


# ---------------------------------------------------------------- the bounds of OPS


def beyond_stated(op: Operator, got: Array, bound: Array, want: Array, wide: list[Any]) -> str:
    """Where C leaves the bound of OPS about the f64 value, or `tolerance` is looser than it."""
    stated = BOUNDS.get(op.name)
    if stated is None or not op.result.dtype.is_float or op.result.dtype is dtypes.f64 or got.size == 0:
        return ""
    exact = in_f64(op, wide)
    if exact is None:
        return ""
    with np.errstate(all="ignore"):
        allowed = stated(op, exact, wide) + _one_rounding(exact, op.result.dtype)
        away = np.abs(got.astype(np.float64) - exact)
        finite = np.isfinite(exact) & np.isfinite(got.astype(np.float64))
    bad = finite & (away > allowed)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"{got[at]!r} is {away[at]:.3g} from {exact[at]!r}, not {allowed[at]:.3g}"
        return f"beyond the bound of OPS at {list(at)}: {where}"
    # Two results, each within the bound and rounded once.
    with np.errstate(all="ignore"):
        both = allowed + last_place(np.abs(exact) + 2 * allowed, op.result.dtype)
    loose = np.broadcast_to(bound, want.shape) > both * (1 + 1e-9) + 2.0**-125
    loose &= finite & np.isfinite(bound)
    if loose.any():
        at = tuple(int(i) for i in np.argwhere(loose)[0])
        found = np.broadcast_to(bound, want.shape)[at]
        return f"tolerance {found:.3g} at {list(at)} is looser than OPS, {allowed[at]:.3g}"
    return ""


def _one_rounding(y: Array, dtype: DType) -> Array:
    """Half a unit in the last place of a narrow result, a subnormal of any."""
    half = last_place(y, dtype) / 2
    return half if dtype.narrow else np.full(np.shape(y), 2.0**-149)


def in_f64(op: Operator, wide: list[Any]) -> Array | None:
    """The operator's meaning on the same numbers in f64; None if it has none."""
    given: dict[str, Any] = {}
    arrays: list[Any] = []
    for key, array in zip(operand_fields(op), wide, strict=True):
        value = getattr(op, key)
        arrays.append(array.astype(np.float64) if value is not None and value.dtype.is_float else array)
        if value is not None:
            dtype = dtypes.f64 if value.dtype.is_float and key not in F32_OPERANDS else value.dtype
            given[key] = Value(TensorType(dtype, value.shape))
    try:
        made = type(op)(**given, **op.attributes())
    except OpError:
        return None
    assert isinstance(made, Operator)
    with np.errstate(all="ignore"):
        return np.asarray(expanded.reference(made, *arrays)).astype(np.float64)


F32_OPERANDS = ("bias", "k_scale", "v_scale", "b_scale", "freqs")


# ---------------------------------------------------------------- the table


def table() -> str:
    """docs/operators.md: operators, element types, backends, with a mark for every tested cell."""
    rows: dict[str, dict[str, int]] = {}
    for case in every_case():
        of = rows.setdefault(case.op, {})
        of[case.row.name] = of.get(case.row.name, 0) + 1
    lines = ["# Operators and element types", "", *PREFACE, ""]
    head = ["operator", *ALL]
    lines += [_row(head), _row(["---"] + [":-:"] * len(ALL))]
    lines += [_row([f"`{name}`", *("●" if d.name in of else "" for d in ALL.values())]) for name, of in rows.items()]
    total = sum(n for of in rows.values() for n in of.values())
    cells = sum(len(of) for of in rows.values())
    counts = f"{len(rows)} operators, {cells} pairs of operator and element type, {total} cases"
    lines += ["", f"{counts}, {len(BACKENDS)} backends."]
    return "\n".join([*lines, ""])


PREFACE = (
    "Written by `python -m tests.fuzz.operator_campaign --table > docs/operators.md` from the cases themselves; a test",
    "checks that it is up to date.",
    "",
    "● the pair is tested in all three backends: the interpreter of GRAPH, the interpreter of PLANNED and",
    "compiled C, with special values.  `tests/operators/test_operators.py` runs the plain and the long case of every",
    "pair and, turn by turn, a part of the others: scalar, no elements, one, broadcast, transposed, sliced and",
    "stepped views, run-time sizes and settings, in place; all of them for f32.  `python -m tests.fuzz.operator_campaign`",
    "runs every case, with `--full` by several compilers, for several instruction sets and under sanitizers.",
    "",
    "The bound of an operator holds where all that it computes on the way (sums of magnitudes, scores, squares) stays in the range",
    "of the type computed in, f32 or f64.  Beyond, a sum is infinite or NaN and so is what follows from it, the same in every build.",
    "",
    "A blank is refused at build with `op-dtype`.  The type is that of the first operand; `gather` counts by",
    "its table, `where` by a, `cast` by its source (all targets are tested).",
)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
