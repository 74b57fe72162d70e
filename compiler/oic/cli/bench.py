"""What `oic bench` does: a profiling build, its steps, and what they take beside what the machine can do."""

import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from oic.cli.absent import left_zero, made_up
from oic.cli.run import compiled_program, given_inputs
from oic.diagnostics import count_of, visible
from oic.driver import Program, interface_of
from oic.library.emit import with_times
from oic.profile.limits import Prober
from oic.profile.measure import MeasuredStatement, Profile, bench_inputs, measured

WIDE = 120  # columns of a table that is not for a terminal
MOST_NAMED = 8  # of the constants that no model gives
NUMBERS = 72  # of a table that numbers take, at most in most


def measure(
    program: Program, inputs: dict[str, str], extents: dict[str, int], steps: int, entry: str, folder: Path | None,
    advance: Callable[[], None], after: int = 0,
) -> Profile:  # fmt: skip
    """Build for profiling and measure steps of an entry.  Raises OicError, StepError."""
    face = interface_of(program)
    given = bench_inputs(program.module, face.entry(entry), extents, given_inputs(face, inputs))
    maker = compiled_program(program, profiled=True).build(folder)
    prober = Prober()
    limits = prober.limits(program.settings.threads)
    with maker.make_executor() as executor:
        found = measured(executor, entry, given, steps, limits, prober.clock(), advance, after)
    if folder is not None:
        assert maker.library is not None
        with_times(maker.library.files, [s.to_json(limits) for s in found.statements if s.lines])
    return found


def in_json(program: Program, found: Profile) -> dict[str, Any]:
    """What was found, and the constants that no model gave: `drawn`, at random, and `zero`, which a build knows."""
    return found.to_json() | {"drawn": made_up(program), "zero": left_zero(program)}


def shown(program: Program, found: Profile, shortest: bool) -> str:
    """The table, for people.

    shortest   also the statements that take less than a hundredth of the step together
    """
    console = Console(width=None if sys.stdout.isatty() else WIDE, color_system=None, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="", show_edge=False)
    table.add_column("line", justify="right")
    table.add_column("statement", no_wrap=True, overflow="ellipsis", max_width=max(20, console.width - NUMBERS))
    for head in ("runs", "us", "%", "MB", "Mop", "GB/s", "Gop/s", "roofline"):
        table.add_column(head, justify="right", no_wrap=True, min_width=len(head))
    kept, rest = _split(found, shortest)
    for s in kept:
        table.add_row(",".join(map(str, s.lines)), visible(s.text), f"{s.runs:,.0f}", *_cells(s, found))
    if rest:
        table.add_row("", f"{len(rest)} others", "", *_cells(_together(rest), found))
    table.add_row("", "the step", "", *_cells(_together(found.statements), found))
    limits = found.limits
    with console.capture() as capture:
        console.print(f"{program.graph.name}: '{found.entry}', {found.steps} steps of {found.seconds * 1e6:,.1f} us "
                      f"(median, ± {found.spread * 100:.0f} %)\n")  # fmt: skip
        console.print(table)
    units = [f"{limits.f32 / 1e9:,.0f} GFLOP/s f32"]
    units += [f"{limits.int8 / 1e9:,.0f} Gop/s int8"] if limits.int8 else []
    units += [f"{limits.bf16 / 1e9:,.0f} GFLOP/s bf16"] if limits.bf16 else []
    on = count_of(limits.threads, "thread")
    absent = {"floats are random, all else zero": made_up(program), "zeros that the build knows": left_zero(program)}
    notes = [f"\nno --model, so {what}: {_some(names)}" for what, names in absent.items() if names]
    return (
        "\n".join(line.rstrip() for line in capture.get().splitlines())
        + f"\n\nthe machine, {on}, in the same run: {limits.read / 1e9:,.1f} GB/s read, {', '.join(units)}"
        + f"\na run of a statement includes reading the clock, {found.clock * 1e9:,.0f} ns"
        + "".join(notes)
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _split(found: Profile, shortest: bool) -> tuple[list[MeasuredStatement], list[MeasuredStatement]]:
    """The statements to be shown, and those that take next to nothing together."""
    by_time = sorted(found.statements, key=lambda s: s.seconds)
    totals = accumulate(s.seconds for s in by_time)
    rest = [s for s, total in zip(by_time, totals) if total <= found.seconds / 100]
    if shortest or len(rest) < 2:
        rest = []
    return [s for s in found.statements if s not in rest], rest


def _together(statements: Sequence[MeasuredStatement]) -> MeasuredStatement:
    rows = ((s.seconds, s.runs, s.read, s.written, s.operations) for s in statements)
    return MeasuredStatement("", (), "", *(sum(column) for column in zip(*rows, strict=True)))


def _cells(s: MeasuredStatement, found: Profile) -> list[str]:
    nbytes, time = s.read + s.written, max(s.seconds, 1e-12)
    return [
        f"{s.seconds * 1e6:,.1f}", f"{100 * s.seconds / max(found.seconds, 1e-12):.1f}", f"{nbytes / 1e6:,.2f}",
        f"{s.operations / 1e6:,.2f}", f"{nbytes / time / 1e9:,.1f}", f"{s.operations / time / 1e9:,.1f}",
        f"{s.share(found.limits):.2f}",
    ]  # fmt: skip
