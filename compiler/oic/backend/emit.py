"""Files of a generated library: header, source, weights, memory map, build files, runtime headers."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from oic.backend import view, weights
from oic.backend.figures import Figures
from oic.backend.map_json import memory_json
from oic.backend.report import report
from oic.backend.target import Target
from oic.backend.unit import Unit, where
from oic.diagnostics import OicError, Span, fail
from oic.ir.module import Module
from oic.resources import runtime_dir, templates_dir


@dataclass(frozen=True)
class Files:
    """What was written.

    paths         every file, in the order of writing
    late_checks   (place, variable) of checks that come after an effect: after one of them fails,
                  steps are OIC_ERR_STATE until reset or load
    figures       what the compiler made of it; None as long as nothing is compiled
    """

    name: str
    folder: Path
    paths: tuple[Path, ...]
    unit: Unit
    model: view.Model
    target: Target
    late_checks: tuple[tuple[Span | None, str], ...]
    figures: Figures | None = None

    @property
    def sources(self) -> list[Path]:
        """The files to compile."""
        return [p for p in self.paths if p.suffix == ".c"]

    @property
    def weights(self) -> Path | None:
        """The weights blob, if there is one."""
        return next((p for p in self.paths if p.suffix == ".weights"), None)


def emit(
    module: Module, target: Target, out_dir: str | Path, weights_mode: str = "blob", threads: int = 1
) -> Files:
    """Write the C library of a PLANNED module to a folder.

    weights_mode   'blob': a file to map or flash; 'array': a C array linked into the program
    threads        that `<name>_open` lets consumers run on, where the module has any that may
    Raises OicError: `weights-mode`, or `output-folder` if it cannot be written.
    """
    if weights_mode not in ("blob", "array"):
        raise fail("weights-mode", f"weights are a 'blob' or an 'array', not '{weights_mode}'")
    files = _emit(module, target, Path(out_dir), array=weights_mode == "array", threads=threads)
    if not files.model.maps_weights:
        return files
    path = files.folder / f"{files.name}.weights"
    try:
        weights.write_file(module, path)
    except OSError as failure:
        raise _not_written(files.folder, failure) from failure
    return replace(files, paths=(*files.paths, path))


def emit_code(module: Module, target: Target, out_dir: str | Path) -> Files:
    """Write the library of a PLANNED module without its weights, to be measured.  Raises OicError."""
    return _emit(module, target, Path(out_dir), array=False, threads=1)


def _emit(module: Module, target: Target, folder: Path, *, array: bool, threads: int) -> Files:
    assert module.stage == "planned", f"a module at the stage {module.stage} is not ready for C"
    unit = Unit(module)
    m = view.model(unit, target, array, threads)
    try:
        paths = _write(_texts(unit, m), folder)
    except OSError as failure:
        raise _not_written(folder, failure) from failure
    return Files(unit.name, folder, tuple(paths), unit, m, target, tuple(unit.late_checks))


def _not_written(folder: Path, failure: OSError) -> OicError:
    return fail("output-folder", f"{folder} cannot be written: {failure.strerror}")


def with_figures(files: Files, figures: Figures) -> Files:
    """Write the files that say what was built once more, now that the code is compiled.

    Raises OicError `output-folder` if they cannot be written.
    """
    m = view.with_figures(files.model, files.unit, figures)
    try:
        _write({f"{m.name}.h": _header(m), **_described(files.unit, m, figures)}, files.folder)
    except OSError as failure:
        raise _not_written(files.folder, failure) from failure
    return replace(files, model=m, figures=figures)


def render(m: view.Model) -> dict[str, str]:
    """The text files that come from templates, by name."""
    files = {
        f"{m.name}.c": "model.c.j2",
        "CMakeLists.txt": "CMakeLists.txt.j2",
        "Makefile": "Makefile.j2",
    }
    texts = {name: _environment().get_template(template).render(m=m) for name, template in files.items()}
    return {f"{m.name}.h": _header(m), **texts}


def _header(m: view.Model) -> str:
    return _environment().get_template("model.h.j2").render(m=m)


def runtime_headers(roots: list[str]) -> list[str]:
    """The runtime headers that these include, themselves too, by name."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        text = (runtime_dir() / name).read_text(encoding="utf-8")
        waiting += re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE)
    return sorted(found)


def _described(unit: Unit, m: view.Model, figures: Figures | None = None) -> dict[str, str]:
    """The memory map, for tools and for people."""
    late = tuple(f"{where(span) if span else '?'} ({name})" for span, name in unit.late_checks)
    page = _environment().get_template("report.html.j2").render(r=report(unit.module, late, figures))
    return {f"{m.name}.memory.json": memory_json(unit, figures), f"{m.name}.report.html": page}


def _texts(unit: Unit, m: view.Model) -> dict[str, str]:
    """Every text file of the library by its path in the folder."""
    texts = render(m) | _described(unit, m)
    for name in runtime_headers(["oic.h", *m.headers, *(["hosted.h"] if m.hosted else [])]):
        texts[f"oic/{name}"] = (runtime_dir() / name).read_text(encoding="utf-8")
    if m.weights_array:
        texts[f"{m.name}.weights.c"] = _weights_source(unit.module, m)
    return texts


def _write(texts: dict[str, str], folder: Path) -> list[Path]:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in texts]


def _weights_source(module: Module, m: view.Model) -> str:
    blob = io.BytesIO()
    weights.write(module, blob)
    data = blob.getvalue()
    rows = [", ".join(map(str, data[i : i + 24])) + "," for i in range(0, len(data), 24)]
    return _environment().get_template("weights.c.j2").render(m=m, rows=rows)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(templates_dir()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
