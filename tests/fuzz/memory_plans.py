"""The ways in which memory may be planned: all of them must give one answer.

    reuse               buffers that are never live together share bytes
    no reuse            every buffer has bytes of its own
    red zones           and bytes around it that no op may touch
    reuse, red zones    shared bytes, and such bytes around the buffers, aligned as on bare metal
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from oic.driver import Program, Settings, lowered
from oic.ir.encodings import ALIGN, WIDEST
from oic.ir.module import Module
from oic.kernels.targets import TARGETS, Target
from oic.memory.verify import verify
from oic.passes.pipeline import PIPELINE
from oic.passes.plan_memory import plan_memory


@dataclass(frozen=True)
class Layout:
    """A way to plan memory: see `passes.plan_memory`.

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
    plan_memory(module, layout.target, reuse=layout.reuse, gap=layout.gap)
    verify(module)
    return module


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
