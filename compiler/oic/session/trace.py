"""What a step did, statement by statement: the records that `trace` gives."""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from oic.diagnostics import Span
from oic.ir.control import Parallel
from oic.ir.core import Op, Value, is_index
from oic.ir.state import StateEntry
from oic.operators.fused import Fused
from oic.operators.position import RopeAngles
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
    parts = (part for op, us in timed for part in _parts(op, us))
    located = ((interface.statement_of(op.span), op, us) for op, us in parts if op.span is not None)
    groups = [list(group) for _, group in itertools.groupby(located, key=lambda each: each[0])]
    done = {group[0][0] for group in groups if any(_shows(op) for _, op, _ in group)}
    # Checks, counters and angles that passes moved to the front are no second run of their statement, but of its time.
    shown: list[list[Located]] = []
    apart: dict[Span, float] = {}
    for group in groups:
        statement = group[0][0]
        if statement not in done or any(_shows(op) for _, op, _ in group):
            shown.append(group)
        else:
            apart[statement] = apart.get(statement, 0.0) + sum(us for *_, us in group)
    for statement, ops in _joined(shown):
        microseconds = apart.pop(statement, 0.0) + sum(us for *_, us in ops)
        yield _record(interface, statement, [op for _, op, _ in ops], microseconds)


Located = tuple[Span, Op, float]


def _shows(op: Op) -> bool:
    """The op does what a statement says; an entry of the state that values are computed in is told by its store."""
    return does(op) and not isinstance(op, StateEntry)


def _joined(groups: list[list[Located]]) -> Iterator[tuple[Span, list[Located]]]:
    """Groups beside each other that are parts of one run of a statement, as one: no op runs twice in it."""
    held: list[Located] = []
    for group in groups:
        ran = {id(op) for _, op, _ in held}
        if held and (group[0][0] != held[0][0] or any(id(op) in ran for _, op, _ in group)):
            yield held[0][0], held
            held = []
        held = held + group
    if held:
        yield held[0][0], held


def _parts(op: Op, microseconds: float) -> list[tuple[Op, float]]:
    """The op, or what was fused into it; a product, or else the last of them, is given the time, if there is one."""
    if isinstance(op, Parallel):
        return []  # what its regions do has records of its own
    if not isinstance(op, Fused):
        return [(op, microseconds)]
    inner = [part for part in op.body.ops if not part.terminator]
    main = inner[-1] if inner[0].elementwise else inner[0]
    return [(part, microseconds * (part is main)) for part in inner]


def _taken(op: Op) -> list[Value]:
    """What an op takes; of angles that a pass made, what they are made of."""
    return [v for given in op.operands for v in (given.op.operands if isinstance(given.op, RopeAngles) else [given])]


def _record(interface: Interface, statement: Span, ops: list[Op], microseconds: float) -> Record:
    """The record of a statement: what it does is its last operator or cache operation, or all it was lowered to."""
    main = next((o for o in reversed(ops) if o.catalog or o.reads or o.writes), ops[-1])
    block = interface.block_of(statement) or ""
    operands = tuple(v.hint for v in sorted(_taken(main), key=is_index) if v.hint)  # places after what is moved there
    results = [v.hint for v in main.results if v.hint]
    parts = [o for o in ops if o.catalog and not o.view]
    if len(parts) > 1:  # what goes in, and what comes out, once each
        made = {v for part in parts for v in part.results}
        operands = tuple(dict.fromkeys(v.hint for part in parts for v in _taken(part) if v.hint and v not in made))
        results = list(dict.fromkeys(v.hint for part in parts for v in part.results if v.hint))
    written = re.match(r"(?:op\s+)?([\w.]+)", statement.text)
    operator = written[1] if written and interface.statements else main.name
    return Record(block, statement.line, operator, operands, ", ".join(results), microseconds)
