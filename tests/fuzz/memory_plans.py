"""The ways in which memory may be planned: all of them must give one answer.

    reuse               buffers that are never live together share bytes
    no reuse            every buffer has bytes of its own
    red zones           and bytes around it that no op may touch
    reuse, red zones    shared bytes, and such bytes around the buffers, aligned as on bare metal
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from unittest import mock

from oic.driver import Program, Settings, lowered
from oic.ir.encodings import ALIGN, WIDEST
from oic.ir.module import Buffer, Module
from oic.kernels.targets import TARGETS, Target
from oic.memory import planner
from oic.memory.verify import verify
from oic.passes.pipeline import PIPELINE
from oic.passes.plan_memory import plan_memory


@dataclass(frozen=True)
class Layout:
    """A way to plan memory: see `passes.plan_memory`.

    gap       bytes on either side of every buffer of the arena that no buffer has, a multiple of the target's alignment
    watched   the interpreter looks at every byte: of ways that place buffers alike, in one
    """

    name: str
    reuse: bool
    gap: int
    watched: bool
    target: Target = TARGETS["portable"]


LAYOUTS = (
    Layout("reuse", True, 0, True),
    Layout("no reuse", False, 0, False),
    Layout("red zones", False, ALIGN, True),
    Layout("reuse, red zones", True, WIDEST, False, TARGETS["freestanding"]),
)


def planned_as(bufferized: Module, layout: Layout) -> Module:
    """A copy of a module that lacks offsets alone, planned and verified."""
    module = bufferized.clone()
    with mock.patch.object(planner, "place", partial(placed_apart, planner.place, layout.gap)):
        plan_memory(module, layout.target, reuse=layout.reuse)
    verify(module)
    return module


def placed_apart(place: Callable[..., int], gap: int, buffers: Sequence[Buffer], *, reuse: bool) -> int:
    """As `place`, with so many bytes around every buffer."""
    for buffer in buffers:
        buffer.nbytes += 2 * gap
    nbytes = place(buffers, reuse=reuse)
    for buffer in buffers:
        buffer.nbytes, buffer.offset = buffer.nbytes - 2 * gap, buffer.offset + gap
    return nbytes


def bufferized(module: Module, threads: int = 1) -> Module:
    """A GRAPH module through all passes but `plan-memory`."""
    names = [step.name for step in PIPELINE if step.name != "plan-memory"]
    *_, (_, last) = lowered(module, Settings(threads=threads), names)
    return last


def laid_out(program: Program, layout: Layout, threads: int = 1) -> Program:
    """The program with its memory planned in this way: what code is made of."""
    planned = planned_as(bufferized(program.module, threads), layout)
    settings = replace(program.settings, reuse=layout.reuse, threads=threads)
    made = replace(program, settings=settings)
    made.planned = planned
    return made
