"""A planned module as the finished strings that the templates arrange."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from oic.codegen import lifecycle
from oic.codegen.c_module import Field, Interface, Unit, interface
from oic.codegen.lines import WIDTH
from oic.codegen.names import NameScope
from oic.codegen.outline import Task
from oic.codegen.statements import function_body
from oic.ir.module import Module
from oic.ir.state import COUNTS
from oic.ir.types import StateType, TensorType
from oic.kernels.kernel import Instance
from oic.kernels.targets import FUSED
from oic.memory.saved import saved_form
from oic.resources import runtime_dir
from oic.toolchain import code_metrics as measured
from oic.toolchain.code_metrics import Figures
from oic.toolchain.stack import THREAD
from oic.toolchain.target import LANGUAGE, MEANING, SHARED, WARNINGS, Target

ALIGN = 8


@dataclass(frozen=True)
class Macro:
    """`#define name value`, and a comment after it."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class Prototypes:
    """The functions that every library has."""

    attach: str
    init: str
    reset: str
    save: str
    load: str
    open: str
    close: str


@dataclass(frozen=True)
class EntryData:
    """One function a caller steps with, and its two structures."""

    title: str
    purpose: str
    prototype: str
    body: str
    body_prototype: str
    inputs_type: str
    outputs_type: str
    input_members: tuple[str, ...]
    output_members: tuple[str, ...]
    lines: tuple[str, ...]
    tasks: tuple[Task, ...]
    face: Interface


@dataclass(frozen=True)
class TemplateData:
    """Everything that the templates name."""

    name: str
    graph: str
    macro: str
    fingerprint: str
    source: str
    memory_table: tuple[str, ...]
    macros: tuple[Macro, ...]
    state_members: tuple[str, ...]
    session_members: tuple[str, ...]
    memory_members: tuple[str, ...]
    entries: tuple[EntryData, ...]
    prototypes: Prototypes
    functions: tuple[str, ...]
    headers: tuple[str, ...]
    instances: tuple[Instance, ...]
    init_lines: tuple[str, ...]
    reset_lines: tuple[str, ...]
    fresh_lines: tuple[str, ...]
    saved_lines: tuple[str, ...]
    sum_lines: tuple[str, ...]
    total: str
    hosted: bool
    has_weights: bool
    weights_array: bool
    maps_weights: bool
    language_flag: str
    code_flags: str
    machine_flags: str
    target_flags: str
    sources: str
    objects: str
    pooled: bool
    thread_flags: str
    fused: int
    fused_note: str

    @property
    def included(self) -> list[str]:
        """The names of `headers`, which are paths below runtime_c; beside generated code they lie in one folder."""
        return sorted(PurePosixPath(header).name for header in self.headers)


def model(unit: Unit, target: Target, weights_array: bool, threads: int = 1, weights: int = 0) -> TemplateData:
    """The view of a planned module for a target; its fingerprint is still to be found.

    threads   that `<name>_open` lets consumers run on
    weights   fingerprint of the blob
    """
    module = unit.module
    entries = tuple(_entry(unit, func) for func in module.functions())
    has_weights = bool(unit.weights)
    array = weights_array and has_weights
    pooled = target.hosted and threads > 1 and any(e.tasks for e in entries)
    sources = [f"{unit.name}.c", *([f"{unit.name}.weights.c"] if array else [])]
    return TemplateData(
        name=unit.name,
        graph=module.name,
        macro=unit.macro,
        fingerprint=_uint64(0),
        source=_source_name(module),
        memory_table=_memory_table(unit, array),
        macros=_macros(unit, entries, target.numerics, threads if pooled else 0, weights),
        state_members=_state_members(unit),
        session_members=_session_members(unit),
        memory_members=MEMORY,
        entries=entries,
        prototypes=_prototypes(unit.name),
        functions=_functions(unit.name, entries, hosted=target.hosted),
        headers=tuple(sorted(unit.headers)),
        instances=tuple(sorted(unit.instances)),
        init_lines=tuple(lifecycle.init_lines(unit)),
        reset_lines=tuple(lifecycle.reset_lines(unit)),
        fresh_lines=tuple(lifecycle.fresh_lines(unit)),
        saved_lines=tuple(lifecycle.saved_lines(unit)),
        sum_lines=tuple(lifecycle.sum_lines(unit)),
        total=unit.total.member if unit.total is not None else "",
        hosted=target.hosted,
        has_weights=has_weights,
        weights_array=array,
        maps_weights=has_weights and not array,
        language_flag=LANGUAGE,
        code_flags=" ".join((*MEANING, *WARNINGS)),
        machine_flags="".join(f" {f}" for f in target.flags if f.startswith("-m")),
        target_flags="".join(f" {f}" for f in target.flags if not f.startswith("-m"))
        + "".join(f" {f}" for f in SHARED if target.hosted and f != "-shared"),
        sources=" ".join(sources),
        objects=" ".join(s.removesuffix(".c") + ".o" for s in sources),
        pooled=pooled,
        thread_flags=" -pthread" if pooled else "",
        fused=int(target.numerics == FUSED),
        fused_note=f"a step of a sum of products is {'one rounding' if target.numerics == FUSED else 'two roundings'}",
    )


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
    parts = [_shared_types()]
    parts.append(_struct(m.state_members, f"{m.name}_state"))
    parts.append(_struct(m.session_members, f"{m.name}_session"))
    parts.append(_struct(m.memory_members, f"{m.name}_memory"))
    for entry in m.entries:
        parts.append(_struct(entry.input_members, entry.inputs_type))
        parts.append(_struct(entry.output_members, entry.outputs_type))
        parts.append(f"{entry.prototype};")
    p = m.prototypes
    parts += [f"{text};" for text in (p.init, p.reset, p.save, p.load, *([p.open, p.close] if m.hosted else []))]
    return "\n".join(parts)


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TYPE = re.compile(r"^typedef [\w ]+(?:\{[^}]*\} \w+)?;", re.MULTILINE)


@cache
def _shared_types() -> str:
    """The types that `oic.h` declares for every library; a status is an int to cffi."""
    text = _COMMENT.sub("", (runtime_dir() / "oic.h").read_text(encoding="utf-8"))
    return "\n".join(["typedef int oic_status;", *_TYPE.findall(text)])


def _struct(members: tuple[str, ...], name: str) -> str:
    return "typedef struct {\n" + "\n".join(m.partition("/*")[0] for m in members) + f"\n}} {name};"


MEMORY = (
    "void *state;",
    "size_t state_bytes;",
    "void *arena;",
    "size_t arena_bytes;",
    "const void *weights;",
    "size_t weights_bytes;",
)


def _prototype(head: str, *parameters: str) -> str:
    """A function's declaration on one line, or with a line for every parameter."""
    short = f"{head}{', '.join(parameters)})"
    return short if len(short) <= WIDTH - 10 else f"{head}" + f",\n{' ' * 8}".join(parameters) + ")"


def _prototypes(n: str) -> Prototypes:
    return Prototypes(
        attach=f"static oic_status {n}_attach({n}_session *s, const {n}_memory *m, uint64_t build)",
        init=f"oic_status {n}_init_as({n}_session *s, const {n}_memory *m, uint64_t build)",
        reset=f"void {n}_reset({n}_session *s)",
        save=f"size_t {n}_save(const {n}_session *s, void *to, size_t capacity)",
        load=f"oic_status {n}_load({n}_session *s, const void *from, size_t bytes)",
        open=f"oic_status {n}_open_as({n}_session *s, const char *path, uint64_t build)",
        close=f"void {n}_close({n}_session *s)",
    )


def _functions(name: str, entries: tuple[EntryData, ...], *, hosted: bool) -> tuple[str, ...]:
    """The functions of the API, entries first."""
    rest = ("init_as", "reset", "save", "load", *(("open_as", "close") if hosted else ()))
    return (*(e.face.function for e in entries), *(f"{name}_{r}" for r in rest))


def _source_name(module: Module) -> str:
    name = module.source.name if module.source else f"{module.name}.oi"
    return name.replace("\\", "/").rpartition("/")[2].replace("*/", "")


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
    form = saved_form(unit.module)

    def macro(name: str, value: str, note: str = "") -> Macro:
        return Macro(unit.names.define(name), value, f" /* {note} */" if note else "")

    found: list[Macro] = [
        macro("ALIGN", str(ALIGN), "of state, arena and weights; 64 is faster"),
        macro("STATE_BYTES", _size(unit.state_bytes)),
        macro("ARENA_BYTES", _size(unit.arena_bytes)),
        macro("WEIGHTS_BYTES", _size(unit.weights_bytes)),
        macro("SAVED_BYTES", _size(form.largest), "the most that a saved state has"),
        macro("STATE_FINGERPRINT", _uint64(form.fingerprint)),
        macro("WEIGHTS_FINGERPRINT", _uint64(weights)),
        macro("NUMERICS", f'"{numerics}"', "builds of one class give the same bits"),
    ]
    if threads:
        found.append(macro("THREADS", str(threads), f"of the pool that {unit.name}_open makes"))
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


def _state_members(unit: Unit) -> tuple[str, ...]:
    """Members with the padding spelt out, so that every compiler lays them out alike."""
    names = NameScope({f.member for f in unit.fields.values()})
    members: list[str] = []
    end = 0

    def pad(to: int) -> None:
        if to > end:
            members.append(f"uint8_t {names.unique('padding')}[{to - end}];")

    for field in unit.fields.values():
        pad(field.offset)
        members.append(_state_member(field))
        end = field.offset + field.nbytes
    pad(unit.state_bytes)
    return _aligned(members)


def _state_member(field: Field) -> str:
    dims = "".join(f"[{d}]" for d in field.storage)
    return f"{field.type.dtype.c} {field.member}{dims}; /* {_described(field.op.symbol, field.type)} */"


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


def _session_members(unit: Unit) -> tuple[str, ...]:
    return (
        f"{unit.name}_state *state;",
        "void *arena;",
        "const void *weights;",
        "oic_pool *pool;",
        "oic_refusal refusal; /* of the last call that was refused */",
    )


def _entry(unit: Unit, func: Any) -> EntryData:
    face = interface(unit, func)
    lines, tasks = function_body(unit, func)
    named = unit.names.entries[func.symbol]
    inputs_type, outputs_type = named.inputs, named.outputs
    takes = (f"{unit.name}_session *s", f"const {inputs_type} *in", f"{outputs_type} *out")
    body = unit.names.scope.unique(f"{face.function}_body")
    return EntryData(
        title=f"What {face.function} takes and gives.",
        purpose=f"One step: block `{func.symbol}`.  After a refusal s->refusal says what was refused.",
        prototype=_prototype(f"oic_status {face.function}(", *takes),
        body=body,
        body_prototype=_prototype(f"static oic_status {body}(", *takes),
        inputs_type=inputs_type,
        outputs_type=outputs_type,
        input_members=_input_members(face),
        output_members=_output_members(face),
        lines=tuple(lines),
        tasks=tuple(tasks),
        face=face,
    )


def _input_members(face: Interface) -> tuple[str, ...]:
    members = [
        f"const {i.value.dtype.c} *{i.member}; /* {_shown(i.value.tensor)} */" for i in face.inputs
    ]
    members += [f"ptrdiff_t {member}; /* 0..{extent.maximum} */" for extent, member in face.extents]
    return _aligned(members) or ("unsigned char none; /* there are no inputs */",)


def _output_members(face: Interface) -> tuple[str, ...]:
    members = []
    for o in face.outputs:
        room = "" if o.type.static else f", memory for {list(o.type.maximum)}"
        members.append(f"{o.type.dtype.c} *{o.member}; /* {_shown(o.type)}{room} */")
        if o.sizes:
            members.append(f"ptrdiff_t {o.sizes}[{o.type.rank}]; /* set by the step */")
    return _aligned(members) or ("unsigned char none; /* there are no outputs */",)


def _aligned(members: list[str]) -> tuple[str, ...]:
    """The members with their comments in one column, as far as that is not far away."""
    parts = [m.partition(" /*") for m in members]
    width = max((len(code) for code, mark, _ in parts if mark and len(code) <= 48), default=0)
    return tuple(f"{code:<{width}}{mark}{rest}" if mark else code for code, mark, rest in parts)


def _shown(type_: TensorType) -> str:
    return str(type_)
