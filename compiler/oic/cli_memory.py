"""What `oic explain` and `oic fit` do: memory decisions, and whether memory is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from oic.cli_text import json_text
from oic.diagnostics import OicError, did_you_mean, fail
from oic.driver import Program
from oic.frontend import syntax
from oic.ir.core import Op, Place, Value
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.ops.fused import Copy

LARGEST = 1 << 30  # of a bound that `fit` looks for


# ---------------------------------------------------------------- explain


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


# ---------------------------------------------------------------- fit


@dataclass(frozen=True)
class Footprint:
    """Bytes a graph takes: what changes in RAM, what does not in flash."""

    state: int
    arena: int
    weights: int

    @property
    def ram(self) -> int:
        return self.state + self.arena


def footprint(program: Program) -> Footprint:
    """The bytes of a compiled graph."""
    plan = program.planned.plan
    assert plan is not None
    return Footprint(
        plan.state_bytes, max(plan.arena_bytes.values(), default=0), plan.weights_bytes
    )


def parse_bytes(text: str) -> int:
    """`256K`, `1M`, `64KiB` or a number, in bytes."""
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    plain = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = plain[-1:] if plain[-1:] in ("K", "M", "G") else ""
    try:
        value = float(plain.removesuffix(unit))
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a number of bytes, like 256K or 1M") from None
    if not 0 < value < 1 << 50:
        raise click.BadParameter(f"'{text}' is not a number of bytes, like 256K or 1M")
    return int(value * units[unit])


@dataclass(frozen=True)
class Bound:
    """Something that can be made larger or smaller: an index (`--max`) or a size (`--set`)."""

    option: str
    name: str

    def __str__(self) -> str:
        return f"--{self.option} {self.name}"


def bounds(program: Program) -> list[Bound]:
    """The growable bounds of a graph, the likeliest first.

    Indices of tables without `@fixed`; then names that `@fixed` and `@max` give as a size.
    """
    found: list[Bound] = []
    for op in program.module.states():
        for index in (*op.type.table, *op.type.auto):
            if not index.fixed:
                found.append(Bound("max", index.name))
    for name in _size_names(program.graph):
        found.append(Bound("set", name))
    return list(dict.fromkeys(found))


def _size_names(graph: syntax.Graph) -> Iterator[str]:
    """Names that stand alone as a bound in `@max` or `@fixed`, most used first."""
    count: dict[str, int] = {}
    for declaration in graph.declarations:
        for attribute in declaration.attributes:
            for arg in attribute.args if attribute.name in ("max", "fixed") else ():
                if isinstance(arg.value, syntax.Name):
                    count[arg.value.name] = count.get(arg.value.name, 0) + 1
    sections = {d.name: d.value for d in graph.sizes}
    yield from sorted(count, key=lambda n: (-count[n], n in sections))


def largest(good: Callable[[int], bool]) -> int:
    """The largest number for which a property holds that ends somewhere; 0 if it never does."""
    low, high = 0, 1
    while high <= LARGEST and good(high):
        low, high = high, high * 2
    high = min(high, LARGEST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def choose(program: Program, name: str | None) -> Bound | None:
    """The bound to vary: the one named, else the likeliest; None where the graph has none.

    Raises OicError `fit-bound` for a name that bounds nothing.
    """
    known = bounds(program)
    if name is None:
        return known[0] if known else None
    for bound in known:
        if bound.name == name:
            return bound
    names = [b.name for b in known]
    listed = ", ".join(names) or "none"
    raise fail(
        "fit-bound", f"'{name}' bounds nothing that grows (known: {listed})",
        hint=did_you_mean(name, names),
    )  # fmt: skip


def fit(
    load: Callable[[dict[str, int], dict[str, int]], Program], ram: int | None, flash: int | None,
    vary: str | None, as_json: bool,
) -> bool:  # fmt: skip
    """Print whether a graph fits, and the largest bound that does; whether it fits.

    load   compiles the graph with more sizes and capacities
    """
    program = load({}, {})
    now = footprint(program)
    fits_ram = ram is None or now.ram <= ram
    fits_flash = flash is None or now.weights <= flash
    bound = choose(program, vary)
    best = _best(load, bound, ram) if bound is not None and ram is not None else None
    if as_json:
        click.echo(json_text({
            "fits": fits_ram and fits_flash, "ram": now.ram, "state": now.state, "arena": now.arena,
            "flash": now.weights, "bound": str(bound) if bound else None, "largest": best,
        }))  # fmt: skip
        return fits_ram and fits_flash
    _line("RAM", now.ram, ram, f"state {now.state:,} + arena {now.arena:,}, stack not counted")
    _line("flash", now.weights, flash, "weights, code not counted")
    if best is not None:
        word = f"the largest {bound} that fits is {best:,}" if best else f"no {bound} fits"
        click.echo(word)
    return fits_ram and fits_flash


def _best(load: Any, bound: Bound | None, ram: int) -> int:
    assert bound is not None

    def good(value: int) -> bool:
        more = {bound.name: value}
        try:
            program = load(more, {}) if bound.option == "set" else load({}, more)
        except OicError:
            return False  # a size that the graph cannot have
        return footprint(program).ram <= ram

    return largest(good)


def _line(what: str, used: int, given: int | None, note: str) -> None:
    if given is None:
        click.echo(f"{what:<6} {used:>14,} bytes ({note})")
        return
    word = "fits" if used <= given else "DOES NOT FIT"
    click.echo(f"{what:<6} {used:>14,} of {given:,} bytes: {word} ({note})")
