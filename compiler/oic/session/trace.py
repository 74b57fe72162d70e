"""What a step did, statement by statement: the records that `trace` gives."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from oic.diagnostics import Span
from oic.ir.core import Op
from oic.operators.work import does
from oic.session.interface import Interface


@dataclass(frozen=True)
class Record:
    """One statement of a step.

    line          of the source
    operator      as written: `add`, `cache.read`, `transfer`
    operands      names of what the operator took
    microseconds  nan where it is not measured: compiled code does in a profiling build, over all runs of a statement
    """

    block: str
    line: int
    operator: str
    operands: tuple[str, ...]
    result: str
    microseconds: float


def records(interface: Interface, timed: Iterable[tuple[Op, float]]) -> Iterator[Record]:
    """Records of ops with the microseconds each took, in the order in which they ran.

    Ops in a row that came from one statement are one record; a fused op is a record for each of
    the statements that it does the work of.
    """
    located = (
        (interface.statement_of(span), op, took)
        for fused, us in timed
        for op, took in _parts(fused, us)
        if (span := op.span) is not None
    )
    groups = [
        (statement, list(group))
        for statement, group in itertools.groupby(located, key=lambda each: each[0])
    ]
    done = {statement for statement, ops in groups if any(does(op) for _, op, _ in ops)}
    for statement, ops in groups:
        # Checks and counters that passes moved to the front are no second run of their statement.
        if statement not in done or any(does(op) for _, op, _ in ops):
            yield _record(interface, statement, [op for _, op, _ in ops], sum(us for *_, us in ops))


def _parts(op: Op, microseconds: float) -> list[tuple[Op, float]]:
    """The op, or what was fused into it; the last of them is given the time, if there is one."""
    if op.name == "parallel":
        return []  # what its regions do has records of its own
    if op.name != "fused":
        return [(op, microseconds)]
    inner = [part for part in op.regions[0].ops if not part.terminator]
    return [(part, microseconds * (part is inner[-1])) for part in inner]


def _record(interface: Interface, statement: Span, ops: list[Op], microseconds: float) -> Record:
    """The record of a statement: what it does is its last operator or cache operation."""
    main = next((o for o in reversed(ops) if o.catalog or o.reads or o.writes), ops[-1])
    block = interface.block_of(statement) or ""
    operands = tuple(v.hint for v in main.operands if v.hint)
    result = ", ".join(v.hint for v in main.results if v.hint)
    written = re.match(r"(?:op\s+)?([\w.]+)", statement.text)
    operator = written[1] if written and interface.statements else main.name
    return Record(block, statement.line, operator, operands, result, microseconds)
