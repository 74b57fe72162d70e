"""`<name>.report.html`: what was built, for people.  One file, no network.

The arena is drawn as offset (upward) against program order (to the right).  A rectangle is a value:
from where it comes to be to where the next value of its buffer does, or nothing reads it any more; what holds the
buffer but no value is paler.  Above lie the values in the caller's memory, below the loops and the source
lines.  Beside the arenas are the state, with its growing tables empty, half full and full, and the
weights.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from oic.codegen.template_data import TemplateData
from oic.diagnostics import Source, cut
from oic.ir.grouping import by_key
from oic.ir.module import Buffer, Module, Plan
from oic.ir.types import StateType
from oic.memory.map import KINDS, MemoryMap, Order, Placed, PositionRange, growing
from oic.toolchain.code_metrics import MemoryRow

WIDTH, HEIGHT = 900, 340  # of a drawing without its margins, in pixels
BAR = 150  # width of a bar of state or weights
LEFT, LANE, LABEL = 86, 15, 15  # of the axis of offsets; a value of the caller's; a line of labels
CHARACTER = 6.2  # width of one, about
SMALL = 4  # buffers that need no high picture
STRIPES = 96  # of one table, at most; more are drawn as one
Across = Callable[[int], float]  # where a position of the program is, in pixels from the left
MARKS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of an axis of offsets


class Rectangle:
    """A rectangle with what the mouse says of it, and as much of its label as there is room for.  Lengths in pixels."""

    def __init__(self, x: float, y: float, width: float, height: float, kind: str, title: str, label: str) -> None:
        self.x, self.y, self.width, self.height = x, y, max(1.5, width), height
        self.kind, self.title = kind, title
        self.label = _cut(label, self.width - 6) if height >= 11 else ""


@dataclass(frozen=True)
class Drawing:
    """One picture.

    left, right, top, bottom   of the part that shows memory, in pixels
    marks    of offsets, at the left: how far down, and the text
    lanes    what the caller gives and gets, above; as marks
    ticks    of source lines, below: how far to the right and down, and the line
    spans    loops and branches, below
    curve    points of the bytes that are live, "" if there is none
    bound    how far down the lower bound is, if there is one
    """

    title: str
    caption: str
    width: int
    height: int
    right: int
    top: int
    bottom: int
    boxes: list[Rectangle]
    marks: list[tuple[float, str]]
    lanes: Sequence[tuple[float, str]] = ()
    ticks: Sequence[tuple[float, float, int]] = ()
    spans: Sequence[Rectangle] = ()
    curve: str = ""
    bound: float | None = None
    left: int = LEFT


Measured = Mapping[str, Any]
"""What was measured of the statements on some lines that are computed together, as `oic bench --json` has it."""


def report(m: TemplateData, found: MemoryMap, late: list[str], times: Sequence[Measured] = ()) -> dict[str, Any]:
    """All that the template names, for the module of which `found` is the map.

    m      what its code is made of
    times  of source lines, where they were measured
    """
    module, plan = m.unit.module, m.unit.module.memory
    shown = [v for v in found.values if v.kind != "number"]
    buffers = sorted(plan.buffers, key=lambda b: (b.space, b.function, b.offset, b.start))
    own = by_key((b.function, b) for b in plan.buffers)
    return {
        "name": module.name,
        "source": m.source,
        "totals": list(_totals(plan, m.memory_rows)),
        "figures": m.figures,
        "kinds": _legend(found, buffers, shown),
        "arenas": [_arena(plan, o, own.get(o.function, []), found, module.source) for o in found.orders],
        "bars": [*_states(module), *_weights(module)],
        "buffers": [_buffer_row(b, found.kind(b)) for b in buffers],
        "values": [_value_row(v) for v in shown],
        "late_checks": late,
        "source_lines": list(_timed(module, times)),
    }


def _timed(module: Module, times: Sequence[Measured]) -> Iterator[tuple[int, str, str, tuple[str, ...]]]:
    """Lines from the first measured to the last: number, bar, text, figures; those of several at the last of them."""
    if not times or module.source is None:
        return
    at = by_key((max(time["lines"]), time) for time in times)
    whole = sum(time["seconds"] for time in times)
    for number in range(min(min(t["lines"]) for t in times), max(at) + 1):
        here = at.get(number, [])
        seconds, operations = (sum(t[name] for t in here) for name in ("seconds", "operations"))
        nbytes = sum(t["read"] + t["written"] for t in here)
        best = sum(t["roofline"] * t["seconds"] for t in here) / seconds if seconds else 0.0
        share = f"{100 * seconds / whole if whole else 0.0:.1f}"
        million = (f"{n / 1e6:,.2f}" for n in (nbytes, operations))
        cells = (f"{seconds * 1e6:,.1f}", f"{share} %", *million, f"{best:.2f}") if here else ("",) * 5
        yield number, share if here else "0", module.source.line(number).rstrip(), cells


def _totals(plan: Plan, memory: Sequence[MemoryRow]) -> Iterator[tuple[str, str, str]]:
    """Rows of the table of memory, of the arena also those of every entry."""
    for kind, nbytes, what in memory:
        yield kind, "" if nbytes is None else f"{nbytes:,}", what
        for symbol, most in plan.arena_bytes.items() if kind == "arena" else ():
            bound = plan.lower_bound.get(symbol, 0)
            ratio = f"{most / bound:.3f} of the lower bound, {bound:,}" if bound else "nothing to keep"
            yield f"  {symbol}", f"{most:,}", ratio


def _legend(found: MemoryMap, buffers: list[Buffer], values: list[Placed]) -> list[tuple[str, str, str]]:
    """The kinds that there are, in their order."""
    used = {v.kind for v in values} | {found.kind(b) for b in buffers}
    return [(k, _style(k), KINDS[k]) for k in KINDS if k in used and k not in ("view", "number")]


def _style(kind: str) -> str:
    return "k-" + kind.replace(" ", "-")


# ---------------------------------------------------------------- arenas


def _arena(plan: Plan, order: Order, own: list[Buffer], found: MemoryMap, source: Source | None) -> Drawing:
    """One entry, which has these buffers: what the caller gives above, the arena, its loops and lines below."""
    symbol = order.function
    lanes = [b for b in own if b.space in ("input", "entry", "output")]
    buffers = sorted((b for b in own if b.space == "arena"), key=lambda b: b.offset)
    nbytes, last = max(1, plan.arena_bytes[symbol]), max(1, order.positions)
    top = len(lanes) * LANE + 18
    height = HEIGHT if len(buffers) > SMALL else SMALL * LANE * 2 if buffers else LANE

    def across(position: int) -> float:
        return LEFT + position / last * WIDTH

    boxes = []
    for i, buffer in enumerate(lanes):
        boxes += _lifetimes(buffer, found, across, i * LANE, LANE - 2, source)
    for buffer in buffers:
        low = top + height - buffer.offset / nbytes * height
        tall = max(1.5, buffer.nbytes / nbytes * height)
        boxes += _lifetimes(buffer, found, across, low - tall, tall, source)
    bound = plan.lower_bound.get(symbol, 0)
    depths = _depths(order.spans)
    spans = [
        Rectangle(across(s.start), top + height + 4 + depth * LABEL, across(s.end + 1) - across(s.start), LABEL - 3,
                  "span", f"{s.kind} {s.name}\nline {s.line}", f"{s.kind} {s.name} (line {s.line})")
        for s, depth in zip(order.spans, depths, strict=True)
    ]  # fmt: skip
    below = top + height + (max(depths, default=-1) + 1) * LABEL
    return Drawing(
        f"arena of {symbol}",
        f"{nbytes:,} bytes; at least {bound:,} are live at once" if buffers else "no bytes are needed",
        LEFT + WIDTH + 90, below + 2 * LABEL + 8, LEFT + WIDTH, top, top + height, boxes,
        marks=_offsets(nbytes, top, height) if buffers else [],
        lanes=[((i + 0.45) * LANE, _cut(f"{b.space} {b.name}", LEFT - 8)) for i, b in enumerate(lanes)],
        ticks=_lines(order, across, below + LABEL + 2),
        spans=spans,
        curve=_curve(buffers, nbytes, across, top, height, last),
        bound=top + height - min(1.0, bound / nbytes) * height if bound else None,
    )  # fmt: skip


def _lifetimes(
    buffer: Buffer, found: MemoryMap, across: Across, y: float, height: float, source: Source | None
) -> list[Rectangle]:
    """The values of a buffer one after the other, over a paler box for the buffer itself."""
    inside = sorted((v for v in found.of(buffer) if v.kind != "view"), key=lambda v: (v.start, -v.end))
    views = by_key((v.alias_of, v) for v in found.of(buffer) if v.kind == "view")  # of each value
    kind = found.kind(buffer)
    x, end = across(buffer.start), across(buffer.end + 1)
    place = f"{buffer.nbytes:,} bytes at {buffer.space}+{buffer.offset:,}, positions {buffer.start} to {buffer.end}"
    text = f"{buffer.name}  ({kind})\n{place}{_where(buffer.line, source)}\n{buffer.reason}"
    boxes = [Rectangle(x, y, end - x, height, _style(kind) + ("" if kind == "scratch" else " held"), text, buffer.name)]
    for i, v in enumerate(inside):
        seen = views.get(v.name, [])
        until = max([v.end, *(w.end for w in seen)])
        if i + 1 < len(inside):
            until = min(until, max(v.start, inside[i + 1].start - 1))
        alias = f"\nshares the memory of {v.alias_of}" if v.alias_of else ""
        shown = f"\nseen as {', '.join(w.name for w in seen)}" if seen else ""
        title = (f"{v.name}: {v.type}  ({v.kind})\n{v.nbytes:,} bytes in {buffer.space}+{buffer.offset:,} "
                 f"'{buffer.name}'{_where(v.line, source)}{alias}{shown}\n{v.reason}")  # fmt: skip
        left = across(max(v.start, buffer.start))
        boxes.append(Rectangle(left, y, across(until + 1) - left, height, _style(v.kind), title, v.name))
    return boxes


def _where(line: int, source: Source | None) -> str:
    """The source line, with its text."""
    if not line:
        return ""
    return f"\nline {line}: {cut(source.line(line).strip(), 90, 87)}" if source is not None else f"\nline {line}"


def _depths(spans: Sequence[PositionRange]) -> list[int]:
    """How many loops and branches are around each, of which those around it come before it."""
    found, around = list[int](), list[PositionRange]()
    for span in spans:
        while around and around[-1].end < span.end:
            around.pop()
        found.append(len(around))
        around.append(span)
    return found


def _lines(order: Order, across: Across, y: float) -> list[tuple[float, float, int]]:
    """Source lines at the positions where they begin, as many as can be read."""
    found = []
    free, before = -math.inf, 0
    for position, line in order.lines:
        x = across(position)
        if line != before and x >= free:
            found.append((x, y, line))
            free = x + CHARACTER * len(str(line)) + 8
        before = line
    return found


def _offsets(nbytes: int, top: float, height: float) -> list[tuple[float, str]]:
    return [(top + height * (1 - m), _size(round(nbytes * m))) for m in MARKS]


def _size(nbytes: int) -> str:
    """Bytes, in a unit where there are too many digits to read."""
    return f"{nbytes:,}" if nbytes < 10**9 else f"{nbytes / 2**30:,.1f} GiB"


def _cut(text: str, width: float) -> str:
    """As much of a text as has room; nothing if that says nothing."""
    room = int(width / CHARACTER)
    return text if len(text) <= room else text[: room - 1] + "…" if room >= 4 else ""


def _curve(buffers: list[Buffer], nbytes: int, across: Across, top: float, height: float, last: int) -> str:
    """The sum of live bytes, each buffer rounded up to the alignment, as steps."""
    change = [0] * (last + 2)
    for b in buffers:
        size = -(-b.nbytes // b.align) * b.align
        change[min(b.start, last)] += size
        change[min(b.end + 1, last + 1)] -= size
    points = []
    for position, live in enumerate(accumulate(change[:last] if buffers else [])):
        y = f"{top + height - min(1.0, live / nbytes) * height:.1f}"
        points += [f"{across(position):.1f},{y}", f"{across(position + 1):.1f},{y}"]
    return " ".join(points)


# ---------------------------------------------------------------- state and weights


def _states(module: Module) -> list[Drawing]:
    """The state; where tables grow, with none, half and all of their entries."""
    grows = not all(op.type.plain for op in module.states())
    shares = {"state, empty": 0.0, "state, half full": 0.5, "state, full": 1.0} if grows else {"state": 1.0}
    return [_state(module, share, title) for title, share in shares.items()]


def _state(module: Module, share: float, title: str) -> Drawing:
    """The state with every growing index at a share of its capacity.

    What is reserved and not touched costs nothing, so then the bytes in use are stacked; otherwise
    they lie where they are, in memory that is taken from the start.
    """
    plan, states = module.memory, {op.symbol: op for op in module.states()}
    reserved = any(op.type.reserved for op in states.values())
    used = {b.name: _used(states[b.name].type, b.nbytes, share) for b in plan.space("state")}
    touched = {symbol: sum(n for _, n in parts) for symbol, parts in used.items()}
    total = max(1, sum(touched.values()) if reserved else plan.state_bytes)
    boxes, at = [], 0
    for b in plan.space("state"):
        op, nbytes, parts = states[b.name], touched[b.name], used[b.name]
        names = [f"{i.name} up to {i.capacity:,}" for i in growing(op.type)]
        grows = f"\ngrows with {', '.join(names)}" if names else ""
        line = _where(op.line, module.source)
        said = f"{b.name}: {op.type}\n{nbytes:,} of {b.nbytes:,} bytes in use{line}{grows}"
        if reserved:
            boxes.append(_slab(at, nbytes, total, "k-state", said, b.name))
            at += nbytes
            continue
        said += f"\nat {b.offset:,}"
        boxes.append(_slab(b.offset, b.nbytes, total, "k-state held", said, "" if parts else b.name))
        for start, size in parts:
            label = b.name if (start, size) == parts[-1] else ""
            boxes.append(_slab(b.offset + start, size, total, "k-state", said, label))
    what = "of address space; pages cost memory as they are touched" if reserved else "taken from the start"
    return _bar(title, f"{sum(touched.values()):,} bytes in use of {plan.state_bytes:,} {what}", boxes, total)


def _used(type_: StateType, nbytes: int, share: float) -> list[tuple[int, int]]:
    """(offset, bytes) of what is in use, where each growing index is at a share of its capacity.

    Memory is row-major: a stripe for each combination of the indices outside the innermost one that
    is not at its capacity.  Too many stripes, and those of reserved memory, are put together.
    """
    grows = growing(type_)
    grown = {i: math.ceil(i.capacity * (share if i in grows else 1)) for i in (*type_.table, *type_.auto)}
    full, used = [i.capacity for i in type_.table], [grown[i] for i in type_.table]
    if type_.ring:  # every entry lies there twice
        full.insert(-1, 2)
        used.insert(-1, 2)
    auto = type_.auto or (None,) * len(type_.shape)
    full += [d + (i.capacity if i else 0) for d, i in zip(type_.shape, auto)]
    used += [d + (grown[i] if i else 0) for d, i in zip(type_.shape, auto)]
    inner = max((at for at in range(len(full)) if used[at] < full[at]), default=0)
    element = nbytes / max(1, math.prod(full))
    stripe = round(math.prod(used[inner:]) * element)
    count = math.prod(used[:inner])
    if not stripe or not count:
        return []
    if count > STRIPES or type_.reserved:
        return [(0, min(nbytes, round(math.prod(used) * element)))]
    starts = [0.0]
    for at in range(inner):
        step = math.prod(full[at + 1 :]) * element
        starts = [s + n * step for s in starts for n in range(used[at])]
    return [(round(s), stripe) for s in starts]


def _weights(module: Module) -> list[Drawing]:
    plan = module.memory
    constants = {op.symbol: op for op in module.constants()}
    total = max(1, plan.weights_bytes)
    boxes = []
    for b in plan.space("weights"):
        op = constants[b.name]
        joined = f"\n{'joined' if len(op.parts) > 1 else 'part'} of {', '.join(op.parts)}" if op.parts else ""
        lines = dict.fromkeys(op.parts.values()) or [op.line]
        title = f"{b.name}: {op.type}\n{b.nbytes:,} bytes at {b.offset:,}{joined}"
        title += "".join(_where(line, module.source) for line in lines)
        boxes.append(_slab(b.offset, b.nbytes, total, "k-weights", title, b.name))
    return [_bar("weights", f"{plan.weights_bytes:,} bytes, read only", boxes, total)] if boxes else []


def _slab(offset: float, nbytes: float, total: int, kind: str, title: str, label: str) -> Rectangle:
    tall = max(0.6, nbytes / total * HEIGHT)
    return Rectangle(LEFT, HEIGHT + 8 - offset / total * HEIGHT - tall, BAR, tall, kind, title, label)


def _bar(title: str, caption: str, boxes: list[Rectangle], total: int) -> Drawing:
    marks, bottom = _offsets(total, 8, HEIGHT), HEIGHT + 8
    return Drawing(title, caption, LEFT + BAR + 4, bottom + 8, LEFT + BAR, 8, bottom, boxes, marks)


# ---------------------------------------------------------------- tables


def _buffer_row(b: Buffer, kind: str) -> tuple[str, ...]:
    place, life = f"{b.space} {b.function}".strip(), f"{b.start} to {b.end}" if b.space == "arena" else ""
    return b.name, kind, place, f"{b.offset:,}", f"{b.nbytes:,}", life, str(b.line or ""), b.reason


def _value_row(v: Placed) -> tuple[str, ...]:
    offset = "" if v.offset is None else f"{v.offset:,}"
    place, life, line = f"{v.space} {v.buffer}", f"{v.start} to {v.end}", str(v.line or "")
    return f"{v.name}: {v.type}", v.kind, place, offset, f"{v.nbytes:,}", life, line, v.alias_of, v.reason
