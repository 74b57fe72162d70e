"""Time, bytes and operations of every statement of a compiled entry, from the counters of a profiling build."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oic import dtypes
from oic.codegen.c_module import CodePlace
from oic.compare.inputs import own_inputs, random_inputs
from oic.diagnostics import StepError, fail
from oic.dtypes import Array
from oic.ir.encodings import storage_of
from oic.ir.module import Module
from oic.ir.quantized import GROUP_STORAGES
from oic.ir.types import TensorType
from oic.kernels.targets import NATIVE
from oic.operators.base import Operator
from oic.operators.fused import Fused
from oic.profile.limits import Limits, spread
from oic.session.interface import Entry, Interface
from oic.session.synthesizer import CompiledExecutor


@dataclass(frozen=True)
class MeasuredStatement:
    """What a step does at one place of the source: a statement, or several that are computed in one pass.

    lines       of the source; none: checks before the first statement, and what the caller gets
    text        of the statements, without line breaks
    seconds     of a step, over all runs: the median of all steps
    runs, read, written, operations   of a step, the median
    unit        of the machine that its operations are for: `f32`, `int8` or `bf16`
    """

    block: str
    lines: tuple[int, ...]
    text: str
    seconds: float
    runs: float
    read: float
    written: float
    operations: float
    unit: str = "f32"

    def peak(self, limits: Limits) -> str:
        """The limit that its operations are compared with: its unit's, or f32's on a machine that has no such unit."""
        return self.unit if getattr(limits, self.unit) else "f32"

    def share(self, limits: Limits) -> float:
        """The part of the roofline: the time that its bytes or operations take the machine at least, over its time."""
        least = max((self.read + self.written) / limits.read, self.operations / getattr(limits, self.peak(limits)))
        return least / self.seconds if self.seconds else 0.0

    def to_json(self, limits: Limits) -> dict[str, Any]:
        """As JSON."""
        return vars(self) | {"unit": self.peak(limits), "roofline": self.share(limits)}


@dataclass(frozen=True)
class Profile:
    """Steps of an entry.

    seconds      of a step: the median, and half the distance of the quartiles as a share of it
    clock        seconds that reading the clock takes, which every run of a statement has once
    limits       of the machine, on as many threads
    """

    entry: str
    steps: int
    seconds: float
    spread: float
    clock: float
    limits: Limits
    statements: tuple[MeasuredStatement, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        statements = [s.to_json(self.limits) for s in self.statements]
        return vars(self) | {"limits": vars(self.limits), "statements": statements}


def bench_inputs(
    module: Module, entry: Entry, extents: Mapping[str, int], given: Mapping[str, Array]
) -> dict[str, Array]:
    """Random inputs of an entry, extents being 1 unless they are given or an input says so.  Raises OicError."""
    for name in extents:
        if name not in entry.maxima:
            known = ", ".join(entry.maxima) or "none"
            raise fail("unknown-extent", f"'{name}' is no size of the inputs of '{entry.symbol}' (there are {known})")
    own, decided = own_inputs(entry, given)
    sizes = {name: min(1, maximum) for name, maximum in entry.maxima.items()} | dict(extents) | decided
    over = next((n for n, size in sizes.items() if not 0 <= size <= entry.maxima[n]), None)
    if over is not None:
        raise fail("unknown-extent", f"{over} is at most {entry.maxima[over]}, not {sizes[over]}")
    return random_inputs(module, entry, np.random.default_rng(0), sizes) | own


def measured(
    executor: CompiledExecutor, entry: str, inputs: dict[str, Array], steps: int, limits: Limits, clock: float,
    advance: Callable[[], None], after: int = 0,
) -> Profile:  # fmt: skip
    """Run steps of an entry from the state `after` so many of them; where it is full, from there again.

    Raises StepError for a step that is refused there, or before.
    """
    _step(executor, entry, inputs, "inputs are random where --input does not give them")
    executor.reset()
    before = f"--after {after} takes so many before those that are measured"
    for number in range(1, after + 1):
        _step(executor, entry, inputs, f"this was step {number}; {before}")
    start = executor.save()
    found: list[Array] = []
    while len(found) < steps:
        try:
            executor.step(entry, **inputs)
        except StepError:  # which is said where it is the first step
            executor.load(start)
            _step(executor, entry, inputs, f"this was step {after + 1}; {before}")
        assert executor.counted is not None, "not a profiling build"
        found.append(executor.counted.copy())
        advance()
    counted = np.stack(found).astype(np.float64)
    whole, apart = spread((counted[:, :, 0].sum(1) / 1e9).tolist())
    rows = [
        _statement(executor.interface, place, row)
        for place, row in zip(executor.library.files.unit.places, np.median(counted, 0).tolist(), strict=True)
        if row[1]
    ]
    return Profile(entry, steps, whole, apart, clock, limits, tuple(rows))


def _step(executor: CompiledExecutor, entry: str, inputs: dict[str, Array], hint: str) -> None:
    """Run a step that is not to be refused; where it is, with a hint, unless the refusal has one."""
    try:
        executor.step(entry, **inputs)
    except StepError as error:
        raise replace(error, hint=error.hint or hint) from None


def _statement(interface: Interface, place: CodePlace, row: list[float]) -> MeasuredStatement:
    ticks, runs, read, written, operations = row
    spans = sorted(dict.fromkeys(map(interface.statement_of, place.spans)), key=lambda s: s.start)
    text = "; ".join(" ".join(s.text.split()).rstrip("; {") for s in spans) or "checks and outputs"
    block = interface.block_of(spans[0]) or "" if spans else ""
    lines = tuple(dict.fromkeys(s.line for s in spans))
    return MeasuredStatement(block, lines, text, ticks / 1e9, runs, read, written, operations, _unit(place))


def _unit(place: CodePlace) -> str:
    """`int8` for products of small integers, also of quantised weights; `bf16` for pairs of the class `native`."""
    parts = (part for op in place.ops for part in (op.body.ops if isinstance(op, Fused) else [op]))
    operators = [op for op in parts if isinstance(op, Operator)]
    if any(op.kernels and NATIVE in op.chosen().needs for op in operators):
        return "bf16"
    types = [v.type for op in operators for v in op.operands if isinstance(v.type, TensorType)]
    return "int8" if any(storage_of(t.encoding) in GROUP_STORAGES or t.dtype in SMALL for t in types) else "f32"


SMALL = (dtypes.i8, dtypes.u8, dtypes.i4, dtypes.u4)
