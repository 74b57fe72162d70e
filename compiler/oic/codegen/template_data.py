"""A planned module as what the templates arrange: finished lines."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from oic.codegen import c_print, lifecycle
from oic.codegen.c_module import Signature, StateMember, Unit, signature, source_name
from oic.codegen.c_tree import Array, Declare, Pointer, Type
from oic.codegen.names import NameScope
from oic.codegen.outline import Task
from oic.codegen.statements import function_body
from oic.ir.state import COUNTS
from oic.ir.types import StateType
from oic.kernels.targets import FUSED, NATIVE, SEPARATE
from oic.memory.saved import saved_form
from oic.resources import runtime_dir
from oic.toolchain import code_metrics as measured
from oic.toolchain.code_metrics import Figures
from oic.toolchain.stack import THREAD
from oic.toolchain.target import SHARED, Target

ALIGN = 8
_ROUNDINGS = {  # OIC_FUSED, what a step of a sum is, and of which builds the bits are the same
    SEPARATE: (0, "two roundings", ""),
    FUSED: (1, "one rounding", ""),
    NATIVE: (2, "one rounding, or the machine's own", ", on one machine"),
}


@dataclass(frozen=True)
class Struct:
    """A structure, by its members."""

    name: str
    members: Sequence[Declare]

    @property
    def lines(self) -> list[str]:
        """Of its members, with comments."""
        return c_print.members(self.members)

    @property
    def plain(self) -> str:
        """Its definition without comments."""
        members = "".join(f"{c_print.member(m)}\n" for m in self.members)
        return f"typedef struct {{\n{members}}} {self.name};"


@dataclass(frozen=True)
class Prototype:
    """A function of the API, or a static one."""

    result: str
    name: str
    parameters: tuple[Declare, ...]
    static: bool = False

    @property
    def source(self) -> str:
        """As the source defines it."""
        return c_print.function("static" if self.static else "", self.result, self.name, self.parameters)

    @property
    def header(self) -> str:
        """As the header declares it."""
        return c_print.function("OIC_API", self.result, self.name, self.parameters)

    def of_set(self, name: str) -> str:
        """That of one of several instruction sets."""
        return c_print.function("", self.result, f"{self.name}_{name}", self.parameters)


@dataclass(frozen=True)
class EntryData:
    """One function a caller steps with, its two structures, and the functions that its code is in.

    place   where a profiling build counts what comes before the first statement
    """

    face: Signature
    prototype: Prototype
    body: Prototype
    inputs: Struct
    outputs: Struct
    lines: tuple[str, ...]
    tasks: tuple[Task, ...]
    place: int


@dataclass(frozen=True)
class TemplateData:
    """What the templates arrange, beside the unit and the target themselves.

    prototypes    of the functions that every library has, by what they do, and of `attach`
    code          lines of `codegen.lifecycle`, by the function that writes them
    macros        lines of the header
    weights_array the weights are a C array
    threads       the most that a session runs on; 0: there is no pool
    """

    unit: Unit
    target: Target
    entries: tuple[EntryData, ...]
    state: Struct
    session: Struct
    memory: Struct
    prototypes: dict[str, Prototype]
    code: dict[str, tuple[str, ...]]
    macros: tuple[str, ...]
    weights_array: bool
    threads: int
    fingerprint: str
    figures: Figures | None = None

    @property
    def name(self) -> str:
        return self.unit.name

    @property
    def macro(self) -> str:
        return self.unit.macro

    @property
    def source(self) -> str:
        """The file that the graph is from, safe for a comment."""
        return source_name(self.unit.module).replace("*/", "")

    @property
    def maps_weights(self) -> bool:
        """The weights are a file."""
        return bool(self.unit.weights) and not self.weights_array

    @property
    def sources(self) -> list[str]:
        """The files to compile: where there are several instruction sets, their files include the code."""
        code = [f"{self.name}.dispatch.c", *(f"{self.name}.{s.name}.c" for s in self.target.sets)]
        return [*(code if self.target.sets else [f"{self.name}.c"]), *[f"{self.name}.weights.c"] * self.weights_array]

    @property
    def thread_flags(self) -> list[str]:
        """Of compiler and linker."""
        return ["-pthread"] if self.threads else []

    @property
    def machine_flags(self) -> list[str]:
        """Of the compiler, which a user may have others for."""
        return [f for f in self.target.flags if f.startswith("-m")]

    @property
    def target_flags(self) -> list[str]:
        """Of the compiler, which code for the target must have."""
        own = [f for f in self.target.flags if f not in self.machine_flags]
        return [*own, *(f for f in SHARED if self.target.hosted and f != "-shared")]

    @property
    def api(self) -> list[Prototype]:
        """The functions of the API, entries first."""
        return [*(e.prototype for e in self.entries), *(p for p in self.prototypes.values() if not p.static)]

    @property
    def rounding(self) -> tuple[int, str, str]:
        """How sums of products are rounded."""
        return _ROUNDINGS[self.target.numerics]

    @property
    def included(self) -> list[str]:
        """The runtime headers by name: beside generated code they lie in one folder."""
        return sorted(PurePosixPath(header).name for header in self.unit.headers)

    @property
    def memory_table(self) -> tuple[str, ...]:
        """Bytes of each kind of memory, for the header."""
        unit = self.unit
        array = f"{self.name}_weights: linked in, read only"
        weights = array if self.weights_array else f"{self.name}.weights, read only"
        rows = [
            ("state", unit.state_bytes, f"{self.name}_state: all that is kept between steps"),
            ("arena", unit.arena_bytes, "scratch of a step; holds nothing between steps"),
            ("weights", unit.weights_bytes, f"{weights}; any number of sessions share it" if unit.weights else "none"),
            ("session", None, f"{self.name}_session: four pointers and the last refusal"),
        ]
        return measured.table(rows, self.figures)

    @property
    def not_truncated(self) -> list[str]:
        """A comment that says why positions are not taken back, if there is a state."""
        reason = self.unit.module.truncation.reason
        if not reason or not self.unit.fields:
            return []
        return textwrap.wrap(f"/* There is no {self.name}_truncate: {reason}. */", 108, subsequent_indent="   ")


def model(unit: Unit, target: Target, weights_array: bool, threads: int = 1, weights: int = 0) -> TemplateData:
    """The view of a planned module for a target; its fingerprint is still to be found.

    threads   that `<name>_open` lets a step run on
    weights   fingerprint of the blob
    """
    entries = tuple(_entry(unit, func) for func in unit.module.functions())
    shared = target.hosted and unit.divided
    threads = threads if shared and threads > 1 else 0
    data = {f.__name__: tuple(c_print.lines(f(unit), 0)) for f in (lifecycle.truncated, lifecycle.saved)}
    writers = (lifecycle.init, lifecycle.reset, lifecycle.fresh, lifecycle.counts_sum)
    return TemplateData(
        unit,
        target,
        entries,
        Struct(f"{unit.name}_state", _state_members(unit)),
        Struct(f"{unit.name}_session", _session_members(unit, several=bool(target.sets))),
        Struct(f"{unit.name}_memory", MEMORY),
        _prototypes(unit, target),
        data | {f.__name__: tuple(c_print.lines(f(unit))) for f in writers},
        _macros(unit, entries, target.numerics, threads, weights),
        weights_array and bool(unit.weights),
        threads,
        _uint64(0),
    )


def with_fingerprint(m: TemplateData, texts: Iterable[str]) -> TemplateData:
    """The view with the fingerprint of a build that gives these texts."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return replace(m, fingerprint=_uint64(int.from_bytes(digest[:8], "little")))


def with_figures(m: TemplateData, figures: Figures) -> TemplateData:
    """The view of the same code once it is compiled: stack and code are in the table, stacks are macros."""
    names = m.unit.names.scope.copy()
    found = []
    for stack in figures.stacks:
        what = "thread" if stack.function == THREAD else stack.function.removeprefix(f"{m.name}_").removesuffix("_as")
        found.append(f"#define {names.unique(f'{m.macro}_{what.upper()}_STACK_BYTES')} {stack.nbytes}")
    return replace(m, figures=figures, macros=(*m.macros, *found))


def declarations(m: TemplateData) -> str:
    """The types and functions of the header in the form cffi reads."""
    parts = [*_shared_types(m.unit.profiled), *(struct.plain for struct in (m.state, m.session, m.memory))]
    parts += [struct.plain for entry in m.entries for struct in (entry.inputs, entry.outputs)]
    return "\n".join([*parts, *(f"{function.source};" for function in m.api)])


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TYPE = re.compile(r"^typedef [\w ]+(?:\{[^}]*\} \w+)?;", re.MULTILINE)


@cache
def _shared_types(profiled: bool) -> list[str]:
    """The types that every library declares, and those of profiling builds; a status is an int to cffi."""
    files = ["oic.h", *(["profile/places.h"] if profiled else [])]
    texts = (_COMMENT.sub("", (runtime_dir() / name).read_text(encoding="utf-8")) for name in files)
    return ["typedef int oic_status;", *(found for text in texts for found in _TYPE.findall(text))]


MEMORY = (
    Declare(Pointer("void"), "state"),
    Declare("size_t", "state_bytes"),
    Declare(Pointer("void"), "arena"),
    Declare("size_t", "arena_bytes"),
    Declare(Pointer("void", const=True), "weights"),
    Declare("size_t", "weights_bytes"),
)


def _prototypes(unit: Unit, target: Target) -> dict[str, Prototype]:
    n = unit.name
    session, kept = Declare(Pointer(f"{n}_session"), "s"), Declare(Pointer(f"{n}_session", const=True), "s")
    memory, build = Declare(Pointer(f"{n}_memory", const=True), "m"), Declare("uint64_t", "build")
    path, threads = Declare(Pointer("char", const=True), "path"), Declare("int", "threads")
    to, capacity = Declare(Pointer("void"), "to"), Declare("size_t", "capacity")
    from_, nbytes = Declare(Pointer("void", const=True), "from"), Declare("size_t", "bytes")
    found = {
        "attach": Prototype("oic_status", f"{n}_attach", (session, memory, build), static=True),
        "init": Prototype("oic_status", f"{n}_init_as", (session, memory, build)),
        "reset": Prototype("void", f"{n}_reset", (session,)),
        "save": Prototype("size_t", f"{n}_save", (kept, to, capacity)),
        "load": Prototype("oic_status", f"{n}_load", (session, from_, nbytes)),
    }
    if not unit.module.truncation.reason:
        found["truncate"] = Prototype("oic_status", f"{n}_truncate", (session, Declare("int64_t", "n")))
    if target.hosted:
        found["open"] = Prototype("oic_status", f"{n}_open_as", (session, path, threads, build))
        found["close"] = Prototype("void", f"{n}_close", (session,))
    return found


# ---------------------------------------------------------------- the header's macros


def _macros(unit: Unit, entries: tuple[EntryData, ...], numerics: str, threads: int, weights: int) -> tuple[str, ...]:
    """Lines that define them, their comments in one column."""
    form = saved_form(unit.module)
    rows = [  # ending, value, comment
        ("ALIGN", str(ALIGN), "of state, arena and weights; 64 is faster"),
        ("STATE_BYTES", _size(unit.state_bytes), ""),
        ("ARENA_BYTES", _size(unit.arena_bytes), ""),
        ("WEIGHTS_BYTES", _size(unit.weights_bytes), ""),
        ("SAVED_BYTES", _size(form.largest), "the most that a saved state has"),
        ("STATE_FINGERPRINT", _uint64(form.fingerprint), ""),
        ("WEIGHTS_FINGERPRINT", _uint64(weights), ""),
        ("NUMERICS", f'"{numerics}"', f"builds of one class give the same bits{_ROUNDINGS[numerics][2]}"),
    ]
    if threads:
        rows.append(("THREADS", str(threads), "the most that a session runs on"))
    for entry in entries:
        prefix = entry.face.function.removeprefix(f"{unit.name}_").upper()
        for extent, member in entry.face.extents:
            rows.append((f"{prefix}_{member.upper()}_MAX", str(extent.maximum), f"largest {extent.name}"))
        for output in entry.face.outputs:
            nbytes = _size(output.type.nbytes)
            rows.append((f"{prefix}_{output.member.upper()}_BYTES", nbytes, f"output {output.name}"))
    found = [(f"#define {unit.names.define(ending)} {value}", note) for ending, value, note in rows]
    width = max(len(line) for line, note in found if note)
    return tuple(f"{line:<{width}} /* {note} */" if note else line for line, note in found)


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
        members.append(_state_member(field))
        end = field.offset + field.nbytes
    pad(unit.state_bytes)
    return tuple(members)


def _state_member(field: StateMember) -> Declare:
    type_: Type = field.type.dtype.c
    for size in reversed(field.storage):
        type_ = Array(type_, size)
    return Declare(type_, field.member, note=_described(field.op.symbol, field.type))


def _described(symbol: str, type_: StateType) -> str:
    """A persistent variable much as it was declared."""
    if symbol == COUNTS:
        return "the sum of the counts, each times another odd number"
    table, _, index = symbol.rpartition(".")
    if "." in table and index == "filled":  # `K.t.filled`, beside the count `K.t`
        name, _, axis = table.rpartition(".")
        return f"how far {name} is initialised along {axis}"
    if "." in table and index == "touched":  # `K.entry.touched`
        return f"1: the entry of {table.rpartition('.')[0]} was written"
    if table:
        return f"count of index {index} of {table}"
    indices = [i.name for i in (*type_.table, *type_.auto)]
    name = f"{symbol}({', '.join(indices)})" if indices else symbol
    return f"{name}: {type_.entry}"


def _session_members(unit: Unit, *, several: bool) -> list[Declare]:
    found = [
        Declare(Pointer(f"{unit.name}_state"), "state"),
        Declare(Pointer("void"), "arena"),
        Declare(Pointer("void", const=True), "weights"),
        Declare(Pointer("oic_pool"), "pool"),
        Declare("oic_refusal", "refusal", note="of the last call that was refused"),
    ]
    if several:
        found.append(Declare("int32_t", "set", note="instruction set that it computes with"))
    if unit.profiled:
        found.append(Declare(Array("oic_place", len(unit.places)), "places", note="what a profiling build counts"))
        found.append(Declare("oic_lap", "lap", note="where the step is"))
    return found


def _entry(unit: Unit, func: Any) -> EntryData:
    face = signature(unit, func)
    place = unit.place(func.symbol) if unit.profiled else 0
    written, tasks = function_body(unit, func)
    named = unit.names.entries[func.symbol]
    takes = (
        Declare(Pointer(f"{unit.name}_session"), "s"),
        Declare(Pointer(named.inputs, const=True), "in"),
        Declare(Pointer(named.outputs), "out"),
    )
    return EntryData(
        face,
        Prototype("oic_status", face.function, takes),
        Prototype("oic_status", unit.names.scope.unique(f"{face.function}_body"), takes, static=True),
        Struct(named.inputs, _input_members(face)),
        Struct(named.outputs, _output_members(face)),
        tuple(c_print.lines(written.statements)),
        tuple(tasks),
        place,
    )


def _input_members(face: Signature) -> tuple[Declare, ...]:
    members = [
        Declare(Pointer(i.value.dtype.c, const=True), i.member, note=str(i.value.tensor)) for i in face.inputs
    ]
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
