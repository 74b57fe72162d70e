"""What `oic explain` does: memory decisions."""

from __future__ import annotations

from dataclasses import dataclass

import click

from oic.cli_text import json_text
from oic.driver import Program
from oic.ir.core import Op, Place, Value
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.ops.fused import Copy


@dataclass(frozen=True)
class Decision:
    """Where one value lies and why.

    kind   'copy', 'view', 'in place', 'output', 'carried', 'buffer', 'weights', 'input', 'number'
    """

    line: int
    function: str
    value: str
    type: str
    kind: str
    where: str
    nbytes: int
    reason: str


def decisions(module: Module) -> list[Decision]:
    """Every memory decision of a planned module, in source order."""
    found: list[Decision] = []
    for func in module.functions():
        for op in func.body.all_ops():
            for value in op.results:
                if isinstance(value.type, TensorType) and value.place is not None:
                    found.append(_decision(func.symbol, op, value, value.place))
    return sorted(found, key=lambda d: (d.function, d.line))


def _decision(function: str, op: Op, value: Value, place: Place) -> Decision:
    where = place.space if place.offset is None else f"{place.space}+{place.offset}"
    if place.space in ("arena", "output") or place.offset is None:
        where = f"{where} '{place.buffer}'" if place.buffer else where
    reason = op.reason if isinstance(op, Copy) else place.reason
    return Decision(
        op.span.line if op.span else 0, function, value.hint or "?", str(value.type),
        _kind(op, place), where, value.tensor.nbytes, reason,
    )  # fmt: skip


def _kind(op: Op, place: Place) -> str:
    if isinstance(op, Copy):
        return "copy"
    if place.space == "local":
        return "number"
    if op.view:
        return "view"
    if place.reason.startswith("in place"):
        return "in place"
    if place.space == "output":
        return "output"
    return "carried" if "carr" in place.reason or "turn" in place.reason else "buffer"


def explain(program: Program, as_json: bool) -> None:
    """Print every decision with its source line and reason; copies are counted at the end."""
    found = decisions(program.planned)
    if as_json:
        click.echo(json_text([vars(d) for d in found]))
        return
    source = program.graph.source
    last: tuple[str, int] = ("", 0)
    for d in found:
        if (d.function, d.line) != last and d.line:
            click.echo(f"{source.name}:{d.line}  {source.line(d.line).strip()}")
        last = (d.function, d.line)
        click.echo(f"    {d.value:<12} {d.type:<18} {d.kind:<9} {d.where:<26} {d.reason}")
    copies = [d for d in found if d.kind == "copy"]
    total = sum(d.nbytes for d in copies)
    click.echo(f"\n{len(found)} values, {len(copies)} copies of at most {total:,} bytes")
    for d in copies:
        click.echo(f"    line {d.line}: {d.value} {d.type}, {d.nbytes:,} bytes: {d.reason}")
