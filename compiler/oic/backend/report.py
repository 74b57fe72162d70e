"""`<name>.report.html`: what was built, for people.  One file, no network.

The arena is drawn as offset (upward) against program order (to the right): every buffer a
rectangle from the op that first writes it to the last that needs it.  Beside it stand the state,
empty, half full and full where tables grow, and the weights.
"""

from __future__ import annotations

import html
import math
import os
from dataclasses import dataclass

from oic.ir.module import Buffer, Module, Plan
from oic.ir.types import StateType
from oic.memory.layout import state_layout

WIDTH, HEIGHT = 860, 340  # of a drawing, in pixels
BAR = 150  # width of a bar of state or weights


@dataclass(frozen=True)
class Box:
    """A rectangle with what the mouse says of it."""

    x: str
    y: str
    width: str
    height: str
    kind: str
    title: str
    label: str


@dataclass(frozen=True)
class Drawing:
    """One picture: its boxes and the marks on its axes."""

    title: str
    caption: str
    width: int
    height: int
    boxes: tuple[Box, ...]
    top: str
    bottom: str


@dataclass(frozen=True)
class Total:
    """Bytes of one kind of memory."""

    name: str
    nbytes: str
    note: str


@dataclass(frozen=True)
class Row:
    """A line of the table of buffers."""

    name: str
    space: str
    offset: str
    nbytes: str
    life: str
    line: str
    reason: str


@dataclass(frozen=True)
class Report:
    """Everything that the template names."""

    name: str
    source: str
    totals: tuple[Total, ...]
    arenas: tuple[Drawing, ...]
    bars: tuple[Drawing, ...]
    rows: tuple[Row, ...]
    late_checks: tuple[str, ...]


def report(module: Module, late_checks: tuple[str, ...]) -> Report:
    """The report of a planned module."""
    plan = module.plan
    assert plan is not None, "a planned module has a plan"
    source = os.path.basename(module.source.name) if module.source else module.name
    return Report(
        module.name,
        source,
        tuple(_totals(plan)),
        tuple(_arena(plan, symbol) for symbol in plan.arena_bytes),
        (*_states(module), _bar("weights", plan.space("weights"), plan.weights_bytes, "read only")),
        tuple(_row(b) for b in sorted(plan.buffers, key=lambda b: (b.space, b.function, b.offset))),
        late_checks,
    )


def _totals(plan: Plan) -> list[Total]:
    rows = [Total("state", f"{plan.state_bytes:,}", "all that is kept between steps")]
    for symbol, nbytes in plan.arena_bytes.items():
        bound = plan.lower_bound.get(symbol, 0)
        ratio = f"{nbytes / bound:.3f} of the lower bound, {bound:,}" if bound else "nothing to keep"
        rows.append(Total(f"arena of {symbol}", f"{nbytes:,}", ratio))
    rows.append(Total("weights", f"{plan.weights_bytes:,}", "read only, shared by sessions"))
    return rows


def _arena(plan: Plan, symbol: str) -> Drawing:
    buffers = [b for b in plan.space("arena") if b.function == symbol]
    nbytes = max(1, plan.arena_bytes[symbol])
    last = max((b.end for b in buffers), default=1) + 1
    boxes = tuple(
        _box(
            b.start / last * WIDTH,
            HEIGHT - (b.offset + b.nbytes) / nbytes * HEIGHT,
            max(2.0, (b.end + 1 - b.start) / last * WIDTH),
            max(1.0, b.nbytes / nbytes * HEIGHT),
            _kind(b),
            b,
        )
        for b in buffers
    )
    bound = plan.lower_bound.get(symbol, 0)
    caption = f"{nbytes:,} bytes; at least {bound:,} are live at once"
    return Drawing(f"arena of {symbol}", caption, WIDTH, HEIGHT, boxes, f"{nbytes:,}", "0")


def _kind(buffer: Buffer) -> str:
    """The colour class of a buffer, by why it exists."""
    if "scratch" in buffer.name:
        return "scratch"
    if "carr" in buffer.reason or "turn" in buffer.reason or "branch" in buffer.reason:
        return "carried"
    return "copied" if "copy" in buffer.reason else "value"


def _states(module: Module) -> list[Drawing]:
    """The state, and where a table grows without a bound, at three lengths."""
    types: dict[str, StateType] = {op.symbol: op.type for op in module.states()}
    growing = [t for t in types.values() if any(i.reserved for i in (*t.table, *t.auto))]
    plan = module.plan
    assert plan is not None
    if not growing:
        return [_bar("state", plan.space("state"), plan.state_bytes, "kept between steps")]
    return [_grown(module, types, share) for share in (0.0, 0.5, 1.0)]


def _grown(module: Module, types: dict[str, StateType], share: float) -> Drawing:
    """The state with every unbounded index at a share of what the reserve allows."""
    buffers: list[Buffer] = []
    at = 0
    for symbol, _, nbytes in state_layout(module):
        used = nbytes
        for index in (*types[symbol].table, *types[symbol].auto):
            if index.reserved:
                used = math.ceil(used * share)
        buffers.append(Buffer(symbol, "state", at, used))
        at += used
    words = {0.0: "empty", 0.5: "half of the reserve", 1.0: "all of the reserve"}[share]
    return _bar(f"state, {words}", buffers, at, "pages are committed as they are touched")


def _bar(title: str, buffers: list[Buffer], nbytes: int, caption: str) -> Drawing:
    total = max(1, nbytes)
    boxes = tuple(
        _box(
            0.0, HEIGHT - (b.offset + b.nbytes) / total * HEIGHT, float(BAR),
            max(0.5, b.nbytes / total * HEIGHT), "weights" if b.space == "weights" else "state", b,
        )
        for b in buffers
        if b.nbytes
    )  # fmt: skip
    return Drawing(title, f"{nbytes:,} bytes; {caption}", BAR, HEIGHT, boxes, f"{nbytes:,}", "0")


def _box(x: float, y: float, width: float, height: float, kind: str, buffer: Buffer) -> Box:
    line = f"\nline {buffer.line}" if buffer.line else ""
    reason = f"\n{buffer.reason}" if buffer.reason else ""
    title = f"{buffer.name}\n{buffer.nbytes:,} bytes at {buffer.offset:,}{line}{reason}"
    room = width > 7 * len(buffer.name) + 6 and height > 12
    return Box(
        f"{x:.1f}", f"{y:.1f}", f"{width:.1f}", f"{height:.1f}", kind, html.escape(title),
        html.escape(buffer.name) if room else "",
    )  # fmt: skip


def _row(buffer: Buffer) -> Row:
    life = f"{buffer.start} to {buffer.end}" if buffer.space == "arena" else ""
    return Row(
        html.escape(buffer.name),
        f"{buffer.space} {buffer.function}".strip(),
        f"{buffer.offset:,}",
        f"{buffer.nbytes:,}",
        life,
        str(buffer.line or ""),
        html.escape(buffer.reason),
    )
