"""What `oic fit` does: whether memory is enough, and how far a bound may grow until it is not."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oic.cli.absent import left_zero, made_up
from oic.cli.text import in_columns, json_text, say
from oic.diagnostics import OicError, did_you_mean, fail
from oic.driver import Program
from oic.library.build import measure
from oic.library.emit import write_code
from oic.memory import layout
from oic.syntax import tree as syntax
from oic.toolchain.code_metrics import Figures
from oic.toolchain.folders import scratch_folder

Load = Callable[[dict[str, int], dict[str, int]], Program]  # of more sizes and capacities
LARGEST = 1 << 30  # of a bound that is looked for
ROUNDS = 4  # of looking with other bytes of stack and code, until they are those of the answer


@dataclass(frozen=True)
class Footprint:
    """Bytes a graph takes: what changes is in RAM, what does not in flash.

    stack, code   by the compiler, with all calls inside the library; 0 where they are not counted
    """

    state: int
    arena: int
    weights: int
    stack: int = 0
    code: int = 0

    @property
    def ram(self) -> int:
        return self.state + self.arena + self.stack

    @property
    def flash(self) -> int:
        return self.weights + self.code


@dataclass(frozen=True)
class Room:
    """The memory available; None where no limit is given."""

    ram: int | None
    flash: int | None

    def lacks(self, what: Footprint) -> str:
        """Which is too small, and by how much; "" where none is."""
        both = (("RAM", what.ram, self.ram), ("flash", what.flash, self.flash))
        short = [(name, used - given) for name, used, given in both if given is not None and used > given]
        return ", ".join(f"{name} {nbytes:,} bytes short" for name, nbytes in short)


def footprint(program: Program) -> Footprint:
    """The bytes that are planned of a graph: no stack, no code."""
    plan = program.planned.memory
    arena = layout.arena_bytes(program.planned)
    return Footprint(plan.state_bytes, arena, plan.weights_bytes if program.planned.weights else 0)


@dataclass(frozen=True)
class Bound:
    """Something that can be made larger or smaller: an index (`--max`) or a size (`--set`).

    now   its value; None: nothing bounds it
    """

    option: str
    name: str
    now: int | None

    def __str__(self) -> str:
        return f"--{self.option} {self.name}"


def bounds(program: Program) -> list[Bound]:
    """The growable bounds of a graph, the likeliest first.

    Indices of tables without `@fixed`; then names that `@fixed` and `@max` give as a size.
    """
    found: dict[tuple[str, str], Bound] = {}
    for op in program.module.states():
        for index in (*op.type.table, *op.type.auto):
            if not index.fixed:
                now = None if index.reserved else index.capacity
                found.setdefault(("max", index.name), Bound("max", index.name, now))
    for name in _size_names(program.graph):
        found[("set", name)] = Bound("set", name, program.binding.sizes.get(name))
    return list(found.values())


def _size_names(graph: syntax.Graph) -> Iterator[str]:
    """Names that are, by themselves, a bound in `@max` or `@fixed`.

    Those of `sizes` first, which the graph is free to choose (others are of the model); then those that most often
    bound the last index of a table, which counts steps where the first selects a layer; then the most used.
    """
    attributes = [a for d in graph.declarations for a in d.attributes if a.name in ("max", "fixed")]
    count = Counter(arg.value.name for a in attributes for arg in a.args if isinstance(arg.value, syntax.Name))
    last = Counter(a.args[-1].value.name for a in attributes if a.args and isinstance(a.args[-1].value, syntax.Name))
    sections = {d.name: d.value for d in graph.sizes}
    yield from sorted(count, key=lambda n: (n not in sections, -last[n], -count[n]))


def choose(load: Load, program: Program, name: str | None) -> Bound | None:
    """The bound to vary: the one named, else the likeliest that the graph can have larger; None where it has none.

    Raises OicError `fit-bound` for a name that bounds nothing.
    """
    known = bounds(program)
    if name is None:
        larger = (b for b in known[:-1] if b.now is None or FitSearch(load, Room(None, None), b).planned(b.now + 1))
        return next(larger, known[-1] if known else None)
    if (found := next((bound for bound in known if bound.name == name), None)) is not None:
        return found
    names = [bound.name for bound in known]
    what = f"'{name}' bounds nothing that grows (known: {', '.join(names) or 'none'})"
    raise fail("fit-bound", what, hint=did_you_mean(name, names))


def largest(good: Callable[[int], bool], start: int = 1) -> int:
    """The largest number for which a property holds that ends somewhere; 0 if it never does.

    start   where to look first
    """
    low, high = 0, min(max(1, start), LARGEST)
    while good(high):
        if high == LARGEST:
            return LARGEST
        low, high = high, min(high * 2, LARGEST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


class FitSearch:
    """Footprints of a graph with one bound at different values.

    Planning takes a moment, compiling some seconds; stack and code hardly change with a bound.  So the
    answer is looked for with those of another value, and counts once it was compiled itself.
    """

    def __init__(self, load: Load, room: Room, bound: Bound) -> None:
        self.load, self.room, self.bound = load, room, bound
        self.plain: dict[int, Footprint] = {}
        self.figures: dict[int, Figures] = {}
        self.refused: dict[int, str] = {}
        self.first = 1  # the least value that the graph can have, as far as is known

    def program(self, value: int) -> Program:
        """The graph with the bound at this value.  Raises OicError if it cannot be."""
        more = {self.bound.name: value}
        return self.load(more, {}) if self.bound.option == "set" else self.load({}, more)

    def planned(self, value: int, like: Footprint | None = None) -> Footprint | None:
        """Its footprint with the stack and code of another; None if the graph cannot have this value."""
        if value not in self.plain and value not in self.refused:
            try:
                self.plain[value] = footprint(self.program(value))
            except OicError as error:
                self.refused[value] = next(d.message for d in error.diagnostics if d.severity == "error")
        found = self.plain.get(value)
        return found and (replace(found, stack=like.stack, code=like.code) if like else found)

    def compiled(self, value: int) -> Footprint:
        """Its footprint with its own stack and code."""
        if value not in self.figures:
            program = self.program(value)
            self.plain[value] = footprint(program)
            self.figures[value] = figures_of(program)
        return with_figures(self.plain[value], self.figures[value])

    def fits(self, value: int) -> bool:
        """The program fits, compiled."""
        return not self.why_not(value)

    def largest(self, like: Footprint) -> int:
        """The largest value that fits, while the next larger does not; 0 if none does.

        like   has the stack and code to begin with
        """
        found = self.bound.now or 1
        for _ in range(ROUNDS):
            found = self._with(like, found)
            if self._too_small(found):
                self.first = found + 1
                return 0
            if found and not self.fits(found):
                like = self.compiled(found)
            elif found < LARGEST and self.fits(found + 1):
                found += 1
                like = self.compiled(found)
            else:
                return found
        return largest(self.fits, max(1, found))

    def _with(self, like: Footprint, start: int) -> int:
        """The largest value that fits, if stack and code are those of another."""

        def good(value: int) -> bool:
            found = self.planned(value, like)
            return self._too_small(value) if found is None else not self.room.lacks(found)

        return largest(good, start)

    def _too_small(self, value: int) -> bool:
        """The graph cannot have this value, less than one that it can have."""
        return self.bound.now is not None and value < self.bound.now and value in self.refused

    def why_not(self, value: int) -> str:
        """What is wrong with a value; "" if it fits.  What is too large without stack and code is not compiled."""
        plain = self.planned(value)
        if plain is None:
            return f"refused: {self.refused[value]}"
        return self.room.lacks(plain) or self.room.lacks(self.compiled(value))


def figures_of(program: Program) -> Figures:
    """Stack and code by the compiler that there is; without a compiler, why they are missing."""
    settings = program.settings
    if settings.target.sets:
        return Figures("", (), "they depend on the instruction set (--dispatch)")
    try:
        with scratch_folder() as folder:
            files = write_code(program.planned, settings.target, settings.threads, folder)
            return measure(files, Path(files.name))
    except OicError as error:
        return Figures("", (), " ".join(error.diagnostics[0].message.splitlines()[:2]))


def with_figures(planned: Footprint, figures: Figures) -> Footprint:
    """A footprint with what the compiler tells of stack and code."""
    return replace(planned, stack=figures.worst.nbytes if figures.worst else 0, code=figures.code_bytes or 0)


# ---------------------------------------------------------------- the command


def print_fit(load: Load, room: Room, vary: str | None, as_json: bool) -> bool:
    """Print whether a graph fits, and the largest bound that does; whether it fits.

    load   compiles the graph with more sizes and capacities
    """
    found = answered(load, room, vary)
    say(json_text(found) if as_json else in_columns(_lines(found, room)))
    return bool(found["fits"])


def answered(load: Load, room: Room, vary: str | None) -> dict[str, Any]:
    """Whether a graph fits as it is, and how far its bound may grow, as `--json` has it.

    now         bytes of the graph as it is; None where they have no end
    bound, value  what may grow, and what it is
    largest     the bound's largest value that fits, 0 if none does; None where nothing was looked for
    then, next  bytes at that value, and what is wrong with the next larger; where none fits, the least value and
                what is wrong with it
    endless     indices that nothing bounds, as the graph is; `unbounded`: beside the bound
    absent      constants without a value, counted by their declared size
    zero        those whose members a step decides, which count as nothing
    Raises OicError of a graph that is wrong, and `fit-bound`.
    """
    program = load({}, {})
    bound = choose(load, program, vary)
    endless = [b.name for b in bounds(program) if b.now is None and b.option == "max"]
    # without a bound it is more than any memory, with any stack
    figures = Figures("", (), "some tables have no bound yet") if endless else figures_of(program)
    now = with_figures(footprint(program), figures)
    found: dict[str, Any] = {
        "fits": not endless and not room.lacks(now), "now": None if endless else _bytes(now),
        "bound": str(bound) if bound else None, "value": bound.now if bound else None,
        "largest": None, "then": None, "next": None,
        "unbounded": [n for n in endless if bound is None or n != bound.name],
        "endless": endless, "absent": made_up(program), "zero": left_zero(program),
    }  # fmt: skip
    if bound is not None and (room.ram is not None or room.flash is not None):
        search = FitSearch(load, room, bound)
        if bound.now is not None and figures.compiler:
            search.plain[bound.now], search.figures[bound.now] = footprint(program), figures
        best = found["largest"] = search.largest(now)
        if best == 0:
            found["next"] = f"{search.first:,}: {search.why_not(search.first)}"
        else:
            found["next"] = search.why_not(best + 1) if best < LARGEST else None
            found["then"], figures = _bytes(search.compiled(best)), search.figures[best]
    externals = sorted({name for s in figures.stacks for name in s.externals})
    about = {"compiler": figures.compiler or None, "not_counted": figures.missing or None, "externals": externals}
    return found | about


def _bytes(f: Footprint) -> dict[str, int]:
    return {"ram": f.ram, "state": f.state, "arena": f.arena, "stack": f.stack,
            "flash": f.flash, "weights": f.weights, "code": f.code}  # fmt: skip


def _lines(found: dict[str, Any], room: Room) -> list[str]:
    """The answer for people."""
    now, then, bound, largest = (found[name] for name in ("now", "then", "bound", "largest"))
    if now is None:
        lines = [f"as it is, it needs memory without end: nothing bounds {', '.join(found['endless'])} (--max)"]
    else:
        lines = [_line("RAM", now["ram"], room.ram, _ram(now)), _line("flash", now["flash"], room.flash, _flash(now))]
    if bound is None:
        lines.append("nothing here grows: no table without @fixed, and no size in @fixed or @max")
    elif then is not None:
        was = "" if found["value"] is None else f" (now {found['value']:,})"
        next_ = f"the largest {bound} that fits is {largest:,}{was}; {largest + 1:,}: {found['next']}"
        lines.append(next_ if found["next"] else f"any {bound} up to {LARGEST:,} fits{was}")
        lines.append(f"  RAM   {then['ram']:>14,} bytes: {_ram(then)}")
        lines.append(f"  flash {then['flash']:>14,} bytes: {_flash(then)}")
    elif largest is not None:
        lines.append(f"no {bound} fits; {found['next']}")
    if found["unbounded"]:
        lines.append(f"nothing bounds {', '.join(found['unbounded'])} either: give --max")
    if found["absent"]:
        lines.append(f"warning: no --model, so {', '.join(found['absent'])} count by their declared sizes")
    if found["zero"]:
        lines.append(f"warning: no --model, and a step decides the members of {', '.join(found['zero'])}: not counted")
    if not found["compiler"]:
        return [*lines, f"stack and code are not counted: {found['not_counted']}"]
    lines.append(f"by {found['compiler']}")
    if found["not_counted"]:
        lines.append(f"stack is not counted: {found['not_counted']}")
    if not (then or now)["code"]:
        lines.append("code is not counted: the object file is not ELF")
    if found["externals"]:
        lines.append(f"not counted: code of other libraries, and what one of their functions needs on the stack "
                     f"({', '.join(found['externals'])})")  # fmt: skip
    return lines


def _ram(f: dict[str, int]) -> str:
    return f"state {f['state']:,} + arena {f['arena']:,}" + (f" + stack {f['stack']:,}" if f["stack"] else "")


def _flash(f: dict[str, int]) -> str:
    return f"weights {f['weights']:,}" + (f" + code {f['code']:,}" if f["code"] else "")


def _line(what: str, used: int, given: int | None, parts: str) -> str:
    if given is None:
        return f"{what:<6}{used:>14,} bytes ({parts})"
    word = "fits" if used <= given else "DOES NOT FIT"
    return f"{what:<6}{used:>14,} of {given:,} bytes: {word} ({parts})"
