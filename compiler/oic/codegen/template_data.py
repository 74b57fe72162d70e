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
from oic.codegen.c_module import Signature, Unit, signature
from oic.codegen.c_tree import Array, Declare, Pointer, Type
from oic.codegen.names import NameScope
from oic.codegen.outline import Task
from oic.codegen.statements import function_body
from oic.ir.encodings import ALIGN, WIDEST
from oic.ir.module import Module
from oic.ir.state import COUNTS
from oic.ir.types import StateType
from oic.kernels.kernel import Instance
from oic.kernels.targets import FUSED, NATIVE, SEPARATE
from oic.memory.saved import saved_form
from oic.resources import runtime_dir
from oic.toolchain import code_metrics as measured
from oic.toolchain import target as compiler
from oic.toolchain.code_metrics import Figures
from oic.toolchain.stack import THREAD
from oic.toolchain.target import Target

_ROUNDINGS = {  # OIC_FUSED, what a step of a sum is, and of which builds the bits are the same
    SEPARATE: (0, "two roundings", ""),
    FUSED: (1, "one rounding", ""),
    NATIVE: (2, "one rounding, or the machine's own", ", on one machine"),
}

_WRITTEN = {  # what the templates put into functions that every library has
    "init": lifecycle.init, "reset": lifecycle.reset, "fresh": lifecycle.fresh, "sum": lifecycle.counts_sum,
}  # fmt: skip


@dataclass(frozen=True)
class Macro:
    """`#define name value`, and a comment after it."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class Struct:
    """A structure: the lines of its members, and its definition without comments."""

    name: str
    lines: tuple[str, ...]
    plain: str


@dataclass(frozen=True)
class Prototype:
    """A function as the source defines it, and as the header declares it."""

    source: str
    header: str
    result: str
    name: str
    parameters: tuple[Declare, ...]


@dataclass(frozen=True)
class Dispatched:
    """A function of the API of a library with several instruction sets.

    declarations  of the function that each set has
    cases         lines that call it, of a switch over the numbers of the sets
    opens         it makes a session, and chooses the set
    """

    name: str
    source: str
    declarations: tuple[str, ...]
    cases: tuple[str, ...]
    opens: bool


@dataclass(frozen=True)
class SetFile:
    """The source of one of several instruction sets, and the flags it is compiled with."""

    name: str
    source: str
    flags: str


@dataclass(frozen=True)
class Truncated:
    """The counter that positions are taken back of, as a member of the state; its type, its start and its name.

    lines  what goes back with it, so many tables
    """

    member: str
    type: str
    first: int
    name: str
    tables: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class EntryData:
    """One function a caller steps with, and its two structures."""

    prototype: Prototype
    body: Prototype
    inputs: Struct
    outputs: Struct
    lines: tuple[str, ...]
    tasks: tuple[Task, ...]
    face: Signature
    place: int


@dataclass(frozen=True, kw_only=True)
class TemplateData:
    """Everything that the templates name.

    api     functions that callers see, beside the entries
    lines   of functions that every library has, by what `_WRITTEN` calls them
    """

    name: str
    graph: str
    macro: str
    fingerprint: str
    source: str
    memory_table: tuple[str, ...]
    macros: tuple[Macro, ...]
    state: Struct
    keeps: bool
    session: Struct
    memory: Struct
    entries: tuple[EntryData, ...]
    prototypes: dict[str, Prototype]
    api: tuple[Prototype, ...]
    headers: tuple[str, ...]
    instances: tuple[Instance, ...]
    lines: dict[str, tuple[str, ...]]
    reset_refuses: bool
    saved_lines: tuple[str, ...]
    truncated: Truncated | None
    not_truncated: tuple[str, ...]
    total: str
    hosted: bool
    has_weights: bool
    weights_array: bool
    maps_weights: bool
    language_flag: str = compiler.LANGUAGE
    code_flags: str = " ".join((*compiler.MEANING, *compiler.WARNINGS))
    one_copy_flags: str = " ".join(compiler.ONE_COPY)
    one_copy_since: int = compiler.ONE_COPY_SINCE
    machine_flags: str
    target_flags: str
    sources: str
    objects: str
    pooled: bool
    threads: str
    thread_flags: str
    fused: int
    fused_note: str
    cached: bool
    profiled: bool
    sets: tuple[SetFile, ...]
    dispatched: tuple[Dispatched, ...]
    set_names: str
    set_features: str
    set_count: int

    @property
    def included(self) -> list[str]:
        """The names of `headers`, which are paths below runtime_c; beside generated code they lie in one folder."""
        return sorted(PurePosixPath(header).name for header in self.headers)


def model(unit: Unit, target: Target, weights_array: bool, threads: int = 1, weights: int = 0) -> TemplateData:
    """The view of a planned module for a target; its fingerprint is still to be found.

    threads   that `<name>_open` lets a step run on
    weights   fingerprint of the blob
    """
    module = unit.module
    entries = tuple(_entry(unit, func) for func in module.functions())
    truncated = _truncated(unit)
    has_weights = bool(unit.weights)
    array = weights_array and has_weights
    pooled = target.hosted and threads > 1 and unit.divided
    prototypes = _prototypes(unit.name)
    hidden = {"attach"} | (set() if truncated else {"truncate"}) | (set() if target.hosted else {"open", "close"})
    api = tuple(f for name, f in prototypes.items() if name not in hidden)
    sets = tuple(SetFile(s.name, f"{unit.name}.{s.name}.c", " ".join(s.flags)) for s in target.sets)
    code = [f"{unit.name}.dispatch.c", *(s.source for s in sets)] if sets else [f"{unit.name}.c"]
    sources = [*code, *([f"{unit.name}.weights.c"] if array else [])]
    return TemplateData(
        name=unit.name,
        graph=module.name,
        macro=unit.macro,
        fingerprint=_uint64(0),
        source=_source_name(module),
        memory_table=_memory_table(unit, array),
        macros=_macros(unit, entries, target.numerics, threads if pooled else 0, weights),
        state=_struct(f"{unit.name}_state", _state_members(unit)),
        keeps=bool(unit.fields),
        session=_struct(f"{unit.name}_session", _session_members(unit, several=bool(sets))),
        memory=_struct(f"{unit.name}_memory", MEMORY),
        entries=entries,
        prototypes=prototypes,
        api=api,
        headers=tuple(sorted(unit.headers)),
        instances=tuple(sorted(unit.instances)),
        lines={name: tuple(c_print.lines(write(unit))) for name, write in _WRITTEN.items()},
        reset_refuses=bool(lifecycle.walked_counts(unit)),
        saved_lines=tuple(c_print.lines(lifecycle.saved(unit), 0)),
        truncated=truncated,
        not_truncated=_not_truncated(unit),
        total=unit.total.member if unit.total is not None else "",
        hosted=target.hosted,
        has_weights=has_weights,
        weights_array=array,
        maps_weights=has_weights and not array,
        machine_flags="".join(f" {f}" for f in target.flags if f.startswith("-m")),
        target_flags="".join(f" {f}" for f in target.flags if not f.startswith("-m"))
        + "".join(f" {f}" for f in compiler.SHARED if target.hosted and f != "-shared"),
        sources=" ".join(sources),
        objects=" ".join(s.removesuffix(".c") + ".o" for s in sources),
        pooled=pooled,
        threads=f"{unit.macro}_THREADS" if pooled else "1",
        thread_flags=" -pthread" if pooled else "",
        fused=_ROUNDINGS[target.numerics][0],
        fused_note=f"a step of a sum of products is {_ROUNDINGS[target.numerics][1]}",
        cached=target.hosted and target.costs.core < unit.weights_bytes <= target.costs.cores,
        profiled=unit.profiled,
        sets=sets,
        dispatched=tuple(_dispatched(f, sets) for f in (api[0], *(e.prototype for e in entries), *api[1:]) if sets),
        set_names="{" + ", ".join(f'"{s.name}"' for s in target.sets) + "}",
        set_features="{" + ", ".join(s.has for s in target.sets) + "}",
        set_count=len(sets),
    )


def _dispatched(f: Prototype, sets: tuple[SetFile, ...]) -> Dispatched:
    """A function that hands on what it is given; where it opens no session, a number without a set is the first's."""
    opens = f.parameters[-1].name == "build"
    given = ", ".join(parameter.name for parameter in f.parameters)
    before = "status = " if opens else "" if f.result == "void" else "return "
    cases: list[str] = []
    for number, one in reversed(list(enumerate(sets))):
        cases.append(f"    case {number}:" if number or opens else "    default:")
        cases.append(f"        {before}{f.name}_{one.name}({given});")
        cases += [] if before == "return " else ["        break;"]
    declared = (c_print.function("", f.result, f"{f.name}_{one.name}", f.parameters) for one in sets)
    return Dispatched(f.name, f.source, tuple(declared), tuple(cases), opens)


def with_fingerprint(m: TemplateData, texts: Iterable[str]) -> TemplateData:
    """The view with the fingerprint of a build that gives these texts."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return replace(m, fingerprint=_uint64(int.from_bytes(digest[:8], "little")))


def with_figures(m: TemplateData, unit: Unit, figures: Figures) -> TemplateData:
    """The view of the same code once it is compiled: stack and code are in the table, stacks are macros."""
    names = unit.names.scope.copy()
    found = []
    for stack in figures.stacks:
        what = "thread" if stack.function == THREAD else stack.function.removeprefix(f"{m.name}_").removesuffix("_as")
        found.append(Macro(names.unique(f"{m.macro}_{what.upper()}_STACK_BYTES"), str(stack.nbytes), ""))
    return replace(m, memory_table=_memory_table(unit, m.weights_array, figures), macros=(*m.macros, *found))


def declarations(m: TemplateData) -> str:
    """The types and functions of the header in the form cffi reads."""
    parts = [*_shared_types(m.profiled), *(struct.plain for struct in (m.state, m.session, m.memory))]
    for entry in m.entries:
        parts += [entry.inputs.plain, entry.outputs.plain, f"{entry.prototype.source};"]
    return "\n".join([*parts, *(f"{f.source};" for f in m.api)])


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TYPE = re.compile(r"^typedef [\w ]+(?:\{[^}]*\} \w+)?;", re.MULTILINE)


@cache
def _shared_types(profiled: bool) -> list[str]:
    """The types that every library declares, and those of profiling builds; a status is an int to cffi."""
    files = ["oic.h", *(["profile/places.h"] if profiled else [])]
    texts = (_COMMENT.sub("", (runtime_dir() / name).read_text(encoding="utf-8")) for name in files)
    return ["typedef int oic_status;", *(found for text in texts for found in _TYPE.findall(text))]


def _struct(name: str, members: Sequence[Declare]) -> Struct:
    plain = "".join(f"{c_print.member(m)}\n" for m in members)
    return Struct(name, tuple(c_print.members(members)), f"typedef struct {{\n{plain}}} {name};")


MEMORY = (
    Declare(Pointer("void"), "state"),
    Declare("size_t", "state_bytes"),
    Declare(Pointer("void"), "arena"),
    Declare("size_t", "arena_bytes"),
    Declare(Pointer("void", const=True), "weights"),
    Declare("size_t", "weights_bytes"),
)


def _prototype(type_: str, name: str, *parameters: Declare, static: bool = False) -> Prototype:
    kinds = ("static", "static") if static else ("", "OIC_API")
    source, header = (c_print.function(before, type_, name, parameters) for before in kinds)
    return Prototype(source, header, type_, name, parameters)


def _prototypes(n: str) -> dict[str, Prototype]:
    """The functions that every library has, by what the templates call them."""
    session, kept = Declare(Pointer(f"{n}_session"), "s"), Declare(Pointer(f"{n}_session", const=True), "s")
    memory, build = Declare(Pointer(f"{n}_memory", const=True), "m"), Declare("uint64_t", "build")
    path, threads = Declare(Pointer("char", const=True), "path"), Declare("int", "threads")
    to, capacity = Declare(Pointer("void"), "to"), Declare("size_t", "capacity")
    from_, nbytes = Declare(Pointer("void", const=True), "from"), Declare("size_t", "bytes")

    def head(type_: str, name: str, *parameters: Declare) -> Prototype:
        return _prototype(type_, f"{n}_{name}", *parameters, static=name == "attach")

    return {
        "attach": head("oic_status", "attach", session, memory, build),
        "init": head("oic_status", "init_as", session, memory, build),
        "reset": head("void", "reset", session),
        "save": head("size_t", "save", kept, to, capacity),
        "load": head("oic_status", "load", session, from_, nbytes),
        "truncate": head("oic_status", "truncate", session, Declare("int64_t", "n")),
        "open": head("oic_status", "open_as", session, path, threads, build),
        "close": head("void", "close", session),
    }


def _truncated(unit: Unit) -> Truncated | None:
    """What positions are taken back of, if they can be."""
    found = unit.module.truncation
    if found.reason:
        return None
    field = unit.fields[found.counter]
    lines = tuple(c_print.lines(lifecycle.truncated(unit), 0))
    return Truncated(field.member, field.type.dtype.c, found.first, found.counter, len(found.tables), lines)


def _source_name(module: Module) -> str:
    name = module.source.name if module.source else f"{module.name}.oi"
    return name.replace("\\", "/").rpartition("/")[2].replace("*/", "")


def _not_truncated(unit: Unit) -> tuple[str, ...]:
    """A comment that says why positions are not taken back, if there is a state."""
    reason = unit.module.truncation.reason
    if not reason or not any(unit.module.states()):
        return ()
    return tuple(textwrap.wrap(f"/* There is no {unit.name}_truncate: {reason}. */", 108, subsequent_indent="   "))


# ---------------------------------------------------------------- the header's table and macros


def _memory_table(unit: Unit, array: bool, figures: Figures | None = None) -> tuple[str, ...]:
    weights = f"{unit.name}_weights: linked in, read only" if array else f"{unit.name}.weights, read only"
    rows = [
        ("state", unit.state_bytes, f"{unit.name}_state: all that is kept between steps"),
        ("arena", unit.arena_bytes, "scratch of a step; holds nothing between steps"),
        ("weights", unit.weights_bytes, f"{weights}; any number of sessions share it" if unit.weights else "none"),
        ("session", None, f"{unit.name}_session: four pointers and the last refusal"),
    ]
    return measured.table(rows, figures)


def _macros(unit: Unit, entries: tuple[EntryData, ...], numerics: str, threads: int, weights: int) -> tuple[Macro, ...]:
    form, align = saved_form(unit.module), unit.module.memory.align

    def macro(name: str, value: str, note: str = "") -> Macro:
        return Macro(unit.names.define(name), value, f" /* {note} */" if note else "")

    found: list[Macro] = [
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
            nbytes = output.type.nbytes
            found.append(macro(f"{prefix}_{output.member.upper()}_BYTES", _size(nbytes), f"output {output.name}"))
    width = max(len(m.name) + len(m.value) for m in found if m.note)
    return tuple(
        Macro(m.name, f"{m.value:<{width - len(m.name)}}" if m.note else m.value, m.note) for m in found
    )


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
    body = unit.names.scope.unique(f"{face.function}_body")
    return EntryData(
        prototype=_prototype("oic_status", face.function, *takes),
        body=_prototype("oic_status", body, *takes, static=True),
        inputs=_struct(named.inputs, _input_members(face)),
        outputs=_struct(named.outputs, _output_members(face)),
        lines=tuple(c_print.lines(written.statements)),
        tasks=tuple(tasks),
        face=face,
        place=place,
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
