"""Give every buffer its bytes: the memory map.

    %t = matmul(%h0, %w) in arena "t"       =>      %t = matmul(%h0, %w) in arena+4096 "t"

Lifetimes are exact over loops and branches (`ir.liveness`); buffers that are never needed
together share bytes (`memory.planner`).  Kernels' working memory is part of the plan.  What only one
region of a `parallel` op needs is planned by itself, as a part of the arena that the region has for
as long as the op runs: regions run at once.
"""

from dataclasses import replace

from oic.ir.control import Func, Parallel
from oic.ir.core import Block
from oic.ir.grouping import by_key
from oic.ir.liveness import Liveness, tensors
from oic.ir.module import Buffer, Module
from oic.kernels.targets import TARGETS, Target
from oic.memory import planner
from oic.memory.layout import lay_out
from oic.operators.base import Operator
from oic.operators.fused import around


def plan_memory(module: Module, target: Target = TARGETS["portable"], *, reuse: bool = True) -> None:
    """Set offsets in the arena and the weights, and the module's plan.

    reuse   False gives every buffer bytes of its own
    """
    plan = lay_out(module, target.align)
    for func in module.functions():
        live = plan.liveness(func)
        buffers = _buffers(func, live, plan.align)
        arena = [b for b in buffers.values() if b.space == "arena"]
        nbytes, least = _place(func.body, live, arena, plan.align, reuse=reuse)
        plan.arena_bytes[func.symbol], plan.lower_bound[func.symbol] = nbytes, least
        for value in tensors(func.body):
            place = value.place
            if place is not None and place.space == "arena" and place.offset is not None:
                # A new one: the module this is a copy of shares the old.
                value.place = replace(place, offset=buffers[place.memory].offset)
        plan.buffers += buffers.values()
    module.plan = plan
    module.stage = "planned"


def _place(body: Block, live: Liveness, arena: list[Buffer], align: int, *, reuse: bool) -> tuple[int, int]:
    """Set every offset in the arena; its bytes and their lower bound."""
    parts: list[tuple[Buffer, list[Buffer]]] = []
    for op in body.all_ops():
        if not isinstance(op, Parallel):
            continue
        first, last = live.start[op], live.end[op]
        for name, region in zip(op.names, op.consumers, strict=True):
            own = [b for b in arena if live.inside(region, b.start, b.end)]
            arena = [b for b in arena if b not in own]
            size = planner.place(own, reuse=reuse)
            parts.append((Buffer(name, "arena", 0, size, align, first, last), own))
        for buffer in arena:
            if buffer.start <= last and first <= buffer.end:
                buffer.start, buffer.end = min(buffer.start, first), max(buffer.end, last)
    nbytes = planner.place([*arena, *(part for part, _ in parts)], reuse=reuse)
    for part, own in parts:
        for buffer in own:
            buffer.offset += part.offset
    least = [replace(part, nbytes=planner.lower_bound(own)) for part, own in parts]
    return nbytes, planner.lower_bound([*arena, *least])


def _buffers(func: Func, live: Liveness, align: int) -> dict[tuple[str, str], Buffer]:
    """One buffer for all the values at one place, live while any of them is, and those of kernels' working memory."""
    placed = [v for v in tensors(func.body) if v.place is not None and v.place.offset is not None]
    found: dict[tuple[str, str], Buffer] = {}
    for (space, name), values in by_key((v.placed.memory, v) for v in placed).items():
        if space in ("arena", "entry", "input", "output"):
            first = min(values, key=live.defined)
            line = first.op.line if first.op is not None else 0
            found[space, name] = Buffer(
                name, space, 0, max(v.tensor.nbytes for v in values), align, live.defined(first),
                max(map(live.needed, values)), line, func.symbol, first.placed.reason,
            )  # fmt: skip
    for op in func.body.all_ops():  # working memory of a kernel, for as long as it runs
        for i, work in enumerate(op.call().scratch if isinstance(op, Operator) and op.kernels else ()):
            at, name = live.start[op], f"{around(op).results[0].placed.buffer}.scratch{i or ''}"
            name += f".{at}" if ("arena", name) in found else ""
            found["arena", name] = Buffer(
                name, "arena", 0, work.total(op.workers), align, at, at, op.line,
                func.symbol, f"working memory of {op.name}",
            )  # fmt: skip
    return found
