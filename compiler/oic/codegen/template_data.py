"""A planned module as what the templates arrange: finished lines."""

import hashlib
import textwrap
from collections.abc import Iterable
from copy import copy
from pathlib import PurePosixPath
from typing import Any

from oic.codegen import c_print, lifecycle
from oic.codegen.c_module import Signature, Unit, signature
from oic.codegen.c_tree import Array, Declare, Pointer, Type
from oic.codegen.names import NameScope
from oic.codegen.statements import function_body
from oic.ir.encodings import ALIGN, WIDEST
from oic.ir.state import COUNTS
from oic.ir.types import StateType
from oic.kernels.targets import FUSED, NATIVE, SEPARATE
from oic.memory.saved import saved_form
from oic.toolchain import code_metrics as measured
from oic.toolchain import target as compiler
from oic.toolchain.code_metrics import Figures, MemoryRow
from oic.toolchain.stack import THREAD
from oic.toolchain.target import Target

TILE_ROWS = 8  # OIC_ROWS_MOST of simd/tiles.h, where nothing is said

_ROUNDINGS = {  # OIC_FUSED, what a step of a sum is, and of which builds the bits are the same
    SEPARATE: (0, "two roundings", ""),
    FUSED: (1, "one rounding", ""),
    NATIVE: (2, "one rounding, or the machine's own", ", on one machine"),
}


Macro = tuple[str, str, str]
"""`#define name value`, and a comment after it."""


class Prototype:
    """A function as the source defines it, and as the header declares it.

    given    its parameters, as they are handed on
    opens    it makes a session, for which code of a build is chosen
    returns  it has a result
    """

    def __init__(self, result: str, name: str, *parameters: Declare, static: bool = False) -> None:
        self.result, self.name, self.parameters = result, name, parameters
        kinds = ("static", "static") if static else ("", "OIC_API")
        self.source, self.header = (c_print.function(before, result, name, parameters) for before in kinds)
        self.given = ", ".join(parameter.name for parameter in parameters)
        self.opens, self.returns = parameters[-1].name == "build", result != "void"


class EntryData:
    """One function a caller steps with, and its two structures."""

    def __init__(self, unit: Unit, func: Any) -> None:
        self.face, self.names = signature(unit, func), unit.names.entries[func.symbol]
        self.place = unit.place(func.symbol) if unit.profiled else 0
        written, self.tasks = function_body(unit, func, self.face)
        self.lines = c_print.lines(written.statements)
        takes = (
            Declare(Pointer(f"{unit.name}_session"), "s"),
            Declare(Pointer(self.names.inputs, const=True), "in"),
            Declare(Pointer(self.names.outputs), "out"),
        )
        body = unit.names.scope.unique(f"{self.face.function}_body")
        self.prototype = Prototype("oic_status", self.face.function, *takes)
        self.body = Prototype("oic_status", body, *takes, static=True)
        self.inputs = c_print.members(_input_members(self.face))
        self.outputs = c_print.members(_output_members(self.face))


class TemplateData:
    """Everything that the templates name: the view of a planned module for a target.

    threads      that `<name>_open` lets a step run on
    weights      fingerprint of the blob
    fingerprint  of the build, which is found when all else is known
    figures      what the compiler made of the code; None as long as nothing is compiled
    rows         of its products, at most, where that is fewer than tiles have; else 0
    api          functions that callers see, beside the entries
    lines        of functions that every library has
    dispatched   functions of the API of a library with several instruction sets, that of each set, and these with
                 their numbers, the first last
    sets         instruction sets, and the flags that they are compiled with
    """

    figures: Figures | None = None

    def __init__(self, unit: Unit, target: Target, weights_array: bool, threads: int = 1, weights: int = 0) -> None:
        module, sets = unit.module, target.sets
        self.unit, self.target = unit, target
        self.name, self.macro = unit.name, unit.macro
        self.fingerprint = _uint64(0)
        source = module.source.name if module.source else f"{module.name}.oi"
        self.source = source.replace("\\", "/").rpartition("/")[2].replace("*/", "")  # without its folder
        self.entries = [EntryData(unit, func) for func in module.functions()]

        self.weights_array = weights_array and bool(unit.weights)
        self.maps_weights = not weights_array and bool(unit.weights)
        costs = target.costs
        self.rows = unit.rows if unit.rows < TILE_ROWS else 0
        self.cached = target.hosted and costs.core < unit.weights_bytes <= costs.cores
        self.pooled = target.hosted and threads > 1 and "hosted/pool.h" in unit.headers
        self.threads = f"{unit.macro}_THREADS" if self.pooled else "1"
        self.macros = _macros(unit, self.entries, target.numerics, threads if self.pooled else 0, weights)

        self.state = c_print.members(_state_members(unit))
        mapped = target.hosted and self.maps_weights
        self.session = c_print.members(_session_members(unit, mapped=mapped, several=bool(sets)))
        self.memory = c_print.members(MEMORY)
        writers = (lifecycle.init, lifecycle.reset, lifecycle.fresh, lifecycle.counts_sum)
        self.lines = {write.__name__: c_print.lines(write(unit)) for write in writers}
        self.reset_refuses = bool(lifecycle.walked_counts(unit))
        self.saved_lines = c_print.lines(lifecycle.saved(unit), 0)
        self.truncation, self.truncated_tables = module.truncation, len(module.truncation.tables)
        self.counter = None if self.truncation.reason else unit.fields[self.truncation.counter]
        self.truncated = c_print.lines(lifecycle.truncated(unit), 0) if self.counter else []
        self.not_truncated = _not_truncated(unit)

        self.prototypes = _prototypes(unit.name)
        hidden = {"attach", *([] if self.counter else ["truncate"]), *([] if target.hosted else ["open", "close"])}
        self.api = [f for name, f in self.prototypes.items() if name not in hidden]
        steps = [entry.prototype for entry in self.entries]
        given = (self.api[0], *steps, *self.api[1:]) if sets else ()
        each = [(f, [Prototype(f.result, f"{f.name}_{s.name}", *f.parameters) for s in sets]) for f in given]
        self.dispatched = [(f, of_sets, list(enumerate(of_sets))[::-1]) for f, of_sets in each]
        self.sets, self.set_count = [(s.name, " ".join(s.flags)) for s in sets], len(sets)
        self.set_names = "{" + ", ".join(f'"{s.name}"' for s in sets) + "}"
        self.set_features = "{" + ", ".join(f"OIC_HAS_{s.name.upper()}" for s in sets) + "}"

        # What comes of the code that was written: this is known only now.
        self.included = sorted(PurePosixPath(header).name for header in unit.headers)  # they lie in one folder
        self.instances = sorted(unit.instances)
        code = [f"{unit.name}.dispatch.c", *(f"{unit.name}.{s.name}.c" for s in sets)] if sets else [f"{unit.name}.c"]
        sources = [*code, *([f"{unit.name}.weights.c"] if self.weights_array else [])]
        self.sources = " ".join(sources)
        self.objects = " ".join(s.removesuffix(".c") + ".o" for s in sources)
        self.fused, rounding, _ = _ROUNDINGS[target.numerics]
        self.fused_note = f"a step of a sum of products is {rounding}"

        self.language_flag, self.one_copy_since = compiler.LANGUAGE, compiler.ONE_COPY_SINCE
        self.code_flags = " ".join((*compiler.MEANING, *compiler.WARNINGS))
        self.one_copy_flags = " ".join(compiler.ONE_COPY)
        self.machine_flags = "".join(f" {f}" for f in target.flags if f.startswith("-m"))
        others = [f for f in target.flags if not f.startswith("-m")]
        others += [f for f in compiler.SHARED if target.hosted and f != "-shared"]
        self.target_flags = "".join(f" {f}" for f in others)
        self.thread_flags = " -pthread" if self.pooled else ""

    @property
    def memory_rows(self) -> list[MemoryRow]:
        """Every kind of memory."""
        unit, name = self.unit, self.name
        weights = f"{name}_weights: linked in, read only" if self.weights_array else f"{name}.weights, read only"
        return [
            ("state", unit.state_bytes, f"{name}_state: all that is kept between steps"),
            ("arena", unit.arena_bytes, "scratch of a step; holds nothing between steps"),
            ("weights", unit.weights_bytes, f"{weights}; any number of sessions share it" if unit.weights else "none"),
            ("session", None, f"{name}_session: pointers and the last refusal"),
            *measured.rows(self.figures),
        ]

    @property
    def memory_table(self) -> tuple[str, ...]:
        """The same as lines of the header."""
        return measured.table(self.memory_rows, self.figures)


def fingerprint(texts: Iterable[str]) -> str:
    """The fingerprint of a build that gives these texts."""
    return _uint64(int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[:8], "little"))


def with_figures(m: TemplateData, figures: Figures) -> TemplateData:
    """The view of the same code once it is compiled: stack and code are in the table, stacks are macros."""
    found, names = copy(m), m.unit.names.scope.copy()
    found.figures, found.macros = figures, list(m.macros)
    for stack in figures.stacks:
        what = "thread" if stack.function == THREAD else stack.function.removeprefix(f"{m.name}_").removesuffix("_as")
        found.macros.append((names.unique(f"{m.macro}_{what.upper()}_STACK_BYTES"), str(stack.nbytes), ""))
    return found


MEMORY = [
    declared
    for part in ("state", "arena", "weights")
    for declared in (Declare(Pointer("void", part == "weights"), part), Declare("size_t", f"{part}_bytes"))
]


def _prototypes(n: str) -> dict[str, Prototype]:
    """The functions that every library has, by what the templates call them."""
    session, kept = Declare(Pointer(f"{n}_session"), "s"), Declare(Pointer(f"{n}_session", const=True), "s")
    memory, build = Declare(Pointer(f"{n}_memory", const=True), "m"), Declare("uint64_t", "build")
    path, threads = Declare(Pointer("char", const=True), "path"), Declare("int", "threads")
    beside = Declare(Pointer(f"{n}_session", const=True), "beside")
    to, capacity = Declare(Pointer("void"), "to"), Declare("size_t", "capacity")
    from_, nbytes = Declare(Pointer("void", const=True), "from"), Declare("size_t", "bytes")

    return {
        "attach": Prototype("oic_status", f"{n}_attach", session, memory, beside, build, static=True),
        "init": Prototype("oic_status", f"{n}_init_as", session, memory, build),
        "reset": Prototype("void", f"{n}_reset", session),
        "save": Prototype("size_t", f"{n}_save", kept, to, capacity),
        "load": Prototype("oic_status", f"{n}_load", session, from_, nbytes),
        "truncate": Prototype("oic_status", f"{n}_truncate", session, Declare("int64_t", "n")),
        "open": Prototype("oic_status", f"{n}_open_as", session, path, threads, beside, build),
        "close": Prototype("void", f"{n}_close", session),
    }


def _not_truncated(unit: Unit) -> list[str]:
    """A comment that says why positions are not taken back, if there is a state."""
    reason = unit.module.truncation.reason if unit.fields else ""
    comment = f"/* There is no {unit.name}_truncate: {reason}. */" if reason else ""
    return textwrap.wrap(comment, 108, subsequent_indent="   ")


# ---------------------------------------------------------------- the header's table and macros


def _macros(unit: Unit, entries: list[EntryData], numerics: str, threads: int, weights: int) -> list[Macro]:
    form, align = saved_form(unit.module), unit.module.memory.align

    def macro(name: str, value: str, note: str = "") -> Macro:
        return unit.names.define(name), value, f" /* {note} */" if note else ""

    found = [
        macro("ALIGN", str(WIDEST), "of state, arena and weights" + f"; {ALIGN} is faster" * (align > WIDEST)),
        macro("STATE_BYTES", _size(unit.state_bytes)),
        macro("ARENA_BYTES", _size(unit.arena_bytes)),
        macro("WEIGHTS_BYTES", _size(unit.weights_bytes)),
        macro("SAVED_BYTES", _size(form.largest), "the most that a saved state has"),
        macro("STATE_FINGERPRINT", _uint64(form.fingerprint)),
        macro("WEIGHTS_FINGERPRINT", _uint64(weights)),
        macro("NUMERICS", f'"{numerics}"', f"builds of one class give the same bits{_ROUNDINGS[numerics][2]}"),
    ]
    if threads:
        found.append(macro("THREADS", str(threads), "the most that a session runs on"))
    for entry in entries:
        prefix = entry.face.function.removeprefix(f"{unit.name}_").upper()
        for extent, member in entry.face.extents:
            found.append(macro(f"{prefix}_{member.upper()}_MAX", str(extent.maximum), f"largest {extent.name}"))
        for output in entry.face.outputs:
            size = _size(output.type.nbytes)
            found.append(macro(f"{prefix}_{output.member.upper()}_BYTES", size, f"output {output.name}"))
    width = max(len(name) + len(value) for name, value, note in found if note)
    return [(name, f"{value:<{width - len(name)}}" if note else value, note) for name, value, note in found]


def _uint64(number: int) -> str:
    return f"UINT64_C(0x{number:016x})"


def _size(nbytes: int) -> str:
    return str(nbytes) if nbytes < 1 << 31 else f"UINT64_C({nbytes})"


# ---------------------------------------------------------------- structures


def _state_members(unit: Unit) -> tuple[Declare, ...]:
    """Members with the padding spelt out, so that every compiler lays them out alike."""
    names = NameScope({f.member for f in unit.fields.values()})
    members: list[Declare] = []
    end = 0

    def pad(to: int) -> None:
        if to > end:
            members.append(Declare(Array("uint8_t", to - end), names.unique("padding")))

    for field in unit.fields.values():
        pad(field.offset)
        type_: Type = field.type.dtype.c
        for size in reversed(field.storage):
            type_ = Array(type_, size)
        members.append(Declare(type_, field.member, note=_described(field.op.symbol, field.type)))
        end = field.offset + field.nbytes
    pad(unit.state_bytes)
    return tuple(members)


def _described(symbol: str, type_: StateType) -> str:
    """A persistent variable much as it was declared."""
    if symbol == COUNTS:
        return "the sum of the counts, each times another odd number"
    match symbol.split("."):
        case [name, axis, "filled"]:  # beside the count `K.t`
            return f"how far {name} is initialised along {axis}"
        case [name, _, "touched"]:  # `K.entry.touched`
            return f"1: the entry of {name} was written"
        case [name, index]:
            return f"count of index {index} of {name}"
    indices = [i.name for i in (*type_.table, *type_.auto)]
    name = f"{symbol}({', '.join(indices)})" if indices else symbol
    return f"{name}: {type_.entry}"


def _session_members(unit: Unit, *, mapped: bool, several: bool) -> list[Declare]:
    found = [
        Declare(Pointer(f"{unit.name}_state"), "state"),
        Declare(Pointer("void"), "arena"),
        Declare(Pointer("void", const=True), "weights"),
        Declare(Pointer("oic_pool"), "pool"),
        Declare("oic_refusal", "refusal", note="of the last call that was refused"),
    ]
    if mapped:
        found.append(Declare(Pointer("void", const=True), "mapped", note="weights that are its own to give back"))
    if several:
        found.append(Declare("int32_t", "set", note="instruction set that it computes with"))
    if unit.profiled:
        found.append(Declare(Array("oic_place", len(unit.places)), "places", note="what a profiling build counts"))
        found.append(Declare("oic_lap", "lap", note="where the step is"))
    return found


def _input_members(face: Signature) -> tuple[Declare, ...]:
    members = [Declare(Pointer(i.value.dtype.c, const=True), i.member, note=str(i.type)) for i in face.inputs]
    members += [Declare("ptrdiff_t", member, note=f"0..{extent.maximum}") for extent, member in face.extents]
    return tuple(members) or (Declare("unsigned char", "none", note="there are no inputs"),)


def _output_members(face: Signature) -> tuple[Declare, ...]:
    members = []
    for o in face.outputs:
        room = "" if o.type.static else f", memory for {list(o.type.maximum)}"
        members.append(Declare(Pointer(o.type.dtype.c), o.member, note=f"{o.type}{room}"))
        if o.sizes:
            members.append(Declare(Array("ptrdiff_t", o.type.rank), o.sizes, note="set by the step"))
    return tuple(members) or (Declare("unsigned char", "none", note="there are no outputs"),)
