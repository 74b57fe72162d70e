"""Files of a generated library: header, source, weights, memory map, build files, runtime headers."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context, select_autoescape
from jinja2.runtime import Context

from oic.codegen import template_data as view
from oic.codegen import weights
from oic.codegen.c_module import Unit, where
from oic.codegen.names import check_library_name, name_in_private
from oic.collector import uncollected
from oic.diagnostics import fail
from oic.ir.grouping import reach
from oic.ir.module import Module
from oic.kernels.targets import Target
from oic.library.cache import Cache, code_of, key_of
from oic.library.publish import Stage, staged, writing
from oic.memory.map import memory_map
from oic.operators.late import LatePlace, late_places
from oic.report.html import Measured, report
from oic.report.map_json import memory_json
from oic.resources import runtime_dir, templates_dir
from oic.toolchain.code_metrics import Figures


@dataclass(frozen=True)
class Files:
    """What was written.

    folder        where the files are
    names         every file, by path in the folder
    late_checks   what may refuse after an effect (`operators.late`): steps are then OIC_ERR_STATE until
                  reset or load
    """

    name: str
    folder: Path
    names: tuple[str, ...]
    unit: Unit
    model: view.TemplateData
    target: Target
    late_checks: tuple[LatePlace, ...]

    @property
    def figures(self) -> Figures | None:
        """What the compiler made of it; None as long as nothing is compiled."""
        return self.model.figures

    @property
    def paths(self) -> list[Path]:
        """Every file."""
        return [self.folder / name for name in self.names]

    @property
    def sources(self) -> list[Path]:
        """The files to compile: where there are several instruction sets, their files include the code."""
        return [self.folder / name for name in self.model.sources.split()]

    @property
    def weights(self) -> Path | None:
        """The weights blob, if there is one."""
        return next((p for p in self.paths if p.suffix == ".weights"), None)


@dataclass(frozen=True)
class LibrarySpec:
    """A PLANNED module, and how its library is to be made.

    weights_as   'blob': a file to map or flash; 'array': a C array linked into the program
    threads      that `<name>_open` lets a step run on, where the module has work for several
    name         of the library, which its files and names in C begin with; None: the graph's
    profiled     the code measures itself: time, bytes and operations of each statement
    Raises OicError `weights-mode`.
    """

    module: Module
    target: Target
    weights_as: str = "blob"
    threads: int = 1
    name: str | None = None
    profiled: bool = False

    def __post_init__(self) -> None:
        if self.weights_as not in ("blob", "array"):
            raise fail("weights-mode", f"weights are a 'blob' or an 'array', not '{self.weights_as}'")


def emit(spec: LibrarySpec, out_dir: str | Path) -> Files:
    """Write a C library to a folder.  What was there is replaced at once, when all is written.

    Raises OicError: `library-name`, or `output-folder` if it cannot be written.
    """
    with staged(out_dir) as stage:
        return published(write(spec, stage.new), stage)


def published(files: Files, stage: Stage) -> Files:
    """The files of a stage in the folder they were made for."""
    stage.publish(files.name, files.names)
    return replace(files, folder=stage.shown)


@uncollected()
def write(spec: LibrarySpec, folder: Path, cache: Cache | None = None, told: weights.Told = weights.unheard) -> Files:
    """Write a library, as `emit` does, to a folder that exists.  Raises OSError, OicError as `emit`.

    cache  of weights that were packed before
    told   hears how far it is
    """
    module = spec.module
    check_library_name(module.name if spec.name is None else spec.name)
    unit = Unit(module, name=spec.name, profiled=spec.profiled)
    fingerprint = _blob(module, folder / f"{unit.name}.weights", cache, told) if unit.weights else 0
    m = view.TemplateData(unit, spec.target, spec.weights_as == "array", spec.threads, fingerprint)
    return _write_code(m, folder)


PACKED_BY = (
    "oic.codegen.weights", "oic.dtypes", "oic.ir.encodings", "oic.ir.members", "oic.ir.quantized", "oic.memory.layout",
)  # fmt: skip
"""Modules that decide the bytes of packed weights, beside their types and values."""


def _blob(module: Module, path: Path, cache: Cache | None, told: weights.Told) -> int:
    """Write the blob, or take one that was packed before; its fingerprint."""
    key = key_of("weights", code_of(*PACKED_BY), weights.contents(module)) if cache else ""
    if cache is not None and (known := cache.get(key, path, int)) is not None:
        return known
    with path.open("wb") as file:
        fingerprint = weights.write(module, file, told)
    if cache is not None:
        cache.put(key, path, fingerprint)
    return fingerprint


def write_code(module: Module, target: Target, threads: int, folder: Path) -> Files:
    """Write the library of a PLANNED module without its weights, to be measured.  Raises OSError."""
    unit = Unit(module, name=name_in_private(module.name))
    return _write_code(view.TemplateData(unit, target, False, threads), folder)


def _write_code(m: view.TemplateData, folder: Path) -> Files:
    """Write all but the blob, which is there; or of that a C array, in its place."""
    module = m.unit.module
    assert module.stage == "planned", f"a module at the stage {module.stage} is not ready for C"
    m.fingerprint = view.fingerprint(_texts(m).values())
    texts = _texts(m)
    if m.weights_array:
        blob = folder / f"{m.name}.weights"
        array = blob.read_bytes()
        blob.unlink()
        rows = [", ".join(map(str, array[i : i + 24])) + "," for i in range(0, len(array), 24)]
        texts[f"{m.name}.weights.c"] = _rendered("weights.c.j2", m=m, rows=rows)
    names = [*texts, f"{m.name}.memory.json", f"{m.name}.report.html"]
    names += [f"{m.name}.weights"] if m.maps_weights else []
    files = Files(m.name, folder, tuple(names), m.unit, m, m.target, tuple(late_places(module)))
    _write(texts | _described(files), folder)
    return files


def with_figures(files: Files, figures: Figures) -> Files:
    """Write the files that say what was built once more, now that the code is compiled.  Raises OSError."""
    m = view.with_figures(files.model, figures)
    found = replace(files, model=m)
    _write({f"{m.name}.h": _rendered("model.h.j2", m=m), **_described(found)}, files.folder)
    return found


def with_times(files: Files, times: Sequence[Measured]) -> None:
    """Write the report once more, with what was measured of source lines.  Raises OicError `output-folder`."""
    name = f"{files.name}.report.html"
    with writing(files.folder / name):
        _write({name: _described(files, times)[name]}, files.folder)


def render(m: view.TemplateData) -> dict[str, str]:
    """The text files that come from templates, by name."""
    files = {f"{m.name}.h": "model.h.j2", f"{m.name}.c": "model.c.j2"}
    files |= {"CMakeLists.txt": "CMakeLists.txt.j2", "Makefile": "Makefile.j2"}
    files |= {f"{m.name}.dispatch.c": "dispatch.c.j2"} if m.sets else {}
    sets = {f"{m.name}.{s}.c": _rendered("instruction_set.c.j2", m=m, set=s, flags=flags) for s, flags in m.sets}
    return {name: _rendered(template, m=m) for name, template in files.items()} | sets


INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ROOM = re.compile(r'^(\s*#\s*include\s*")[^"]*/', re.MULTILINE)  # of an included header; in `oic/` all lie together


def runtime_headers(roots: list[str]) -> list[str]:
    """The runtime headers that these include, themselves too, by path below runtime_c.

    Raises AssertionError for one that is not there: of the runtime itself, and no fault of the folder that is written.
    """

    def included(name: str) -> list[str]:
        path = runtime_dir() / name
        assert path.is_file(), f"a kernel or a header includes {name}, and runtime_c has no such file"
        found = INCLUDED.findall(path.read_text(encoding="utf-8"))
        return [normpath(PurePosixPath(name).parent / other) for other in found]

    return sorted(reach(roots, included))


@cache
def _runtime_header(folder: Path, name: str) -> str:
    """The text of a header of a runtime; that of `version.h` with the number of all of them."""
    text = (folder / name).read_text(encoding="utf-8")
    if name != "version.h":
        return text
    whole = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.h")))
    number = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return re.sub(r"(OIC_RUNTIME_VERSION(?: !=)?) 0\b", rf"\1 0x{number}", text)


def _described(files: Files, times: Sequence[Measured] = ()) -> dict[str, str]:
    """The memory map, for tools and for people; for them with the times of source lines, where they were measured."""
    late = [f"{where(span) if span else '?'} ({name})" for span, name in files.late_checks]
    found = memory_map(files.unit.module)
    page = _rendered("report.html.j2", **report(files.model, found, late, times))
    table = memory_json(files.unit, found, files.figures, files.names, files.model.fingerprint)
    return {f"{files.name}.memory.json": table, f"{files.name}.report.html": page}


def _texts(m: view.TemplateData) -> dict[str, str]:
    """Every text file of the library that is compiled, but for weights, by its path in the folder."""
    texts = render(m)
    bodies = sorted({instance.file for instance in m.instances})
    hosted = ["hosted/hosted.h"] if m.target.hosted else []
    hosted += ["hosted/processor.h", "session.h"] if m.sets else []
    kept = ["state/journal.h"] if m.unit.fields else []
    for name in runtime_headers(["oic.h", *kept, *m.unit.headers, *bodies, *hosted]):
        texts[f"oic/{PurePosixPath(name).name}"] = ROOM.sub(r"\1", _runtime_header(runtime_dir(), name))
    return texts


def _write(texts: dict[str, str], folder: Path) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _rendered(template: str, **context: Any) -> str:
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(templates_dir()), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        autoescape=select_autoescape(["html.j2"]),
        finalize=_shown,
    )  # fmt: skip


@pass_context
def _shown(context: Context, value: Any) -> Any:
    """What a template writes: of floats, which are lengths of the report, one decimal; those of C are text before."""
    if not isinstance(value, float):
        return value
    assert context.name == "report.html.j2", f"{context.name} would lose digits of {value!r}"
    return f"{value:.1f}"
