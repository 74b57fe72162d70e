"""Files of a generated library: header, source, weights, memory map, build files, runtime headers."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from oic.backend import view, weights
from oic.backend.report import report
from oic.backend.target import Target
from oic.backend.unit import Unit, where
from oic.diagnostics import Span, fail
from oic.ir.module import Module
from oic.resources import runtime_dir, templates_dir


@dataclass(frozen=True)
class Files:
    """What was written.

    paths         every file, in the order of writing
    late_checks   (place, variable) of checks that come after an effect: after one of them fails,
                  steps are OIC_ERR_STATE until reset or load
    """

    name: str
    folder: Path
    paths: tuple[Path, ...]
    unit: Unit
    model: view.Model
    target: Target
    late_checks: tuple[tuple[Span | None, str], ...]

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
    assert module.stage == "planned", f"a module at the stage {module.stage} is not ready for C"
    if weights_mode not in ("blob", "array"):
        raise fail("weights-mode", f"weights are a 'blob' or an 'array', not '{weights_mode}'")
    unit = Unit(module)
    m = view.model(unit, target, weights_mode == "array", threads)
    folder = Path(out_dir)
    late = tuple(f"{where(span) if span else '?'} ({name})" for span, name in unit.late_checks)
    texts = _texts(module, m, late)
    try:
        paths = _write(texts, folder)
        if m.maps_weights:
            paths.append(folder / f"{m.name}.weights")
            weights.write_file(module, paths[-1])
    except OSError as failure:
        raise fail("output-folder", f"{folder} cannot be written: {failure.strerror}") from failure
    return Files(unit.name, folder, tuple(paths), unit, m, target, tuple(unit.late_checks))


def render(m: view.Model) -> dict[str, str]:
    """The text files that come from templates, by name."""
    files = {
        f"{m.name}.h": "model.h.j2",
        f"{m.name}.c": "model.c.j2",
        "CMakeLists.txt": "CMakeLists.txt.j2",
        "Makefile": "Makefile.j2",
    }
    return {name: _environment().get_template(template).render(m=m) for name, template in files.items()}


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


def _report(module: Module, late: tuple[str, ...]) -> str:
    return _environment().get_template("report.html.j2").render(r=report(module, late))


def _texts(module: Module, m: view.Model, late: tuple[str, ...]) -> dict[str, str]:
    """Every text file of the library by its path in the folder."""
    texts = render(m)
    texts[f"{m.name}.memory.json"] = memory_json(m, module)
    texts[f"{m.name}.report.html"] = _report(module, late)
    for name in runtime_headers(["oic.h", *m.headers, *(["hosted.h"] if m.hosted else [])]):
        texts[f"oic/{name}"] = (runtime_dir() / name).read_text(encoding="utf-8")
    if m.weights_array:
        texts[f"{m.name}.weights.c"] = _weights_source(module, m)
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


def memory_json(m: view.Model, module: Module) -> str:
    """The memory map for tools."""
    plan = module.plan
    assert plan is not None
    spaces = {}
    for space in ("state", "arena", "weights", "input", "output"):
        spaces[space] = [
            {
                "name": b.name,
                "offset": b.offset,
                "bytes": b.nbytes,
                "function": b.function,
                "start": b.start,
                "end": b.end,
                "line": b.line,
                "reason": b.reason,
            }
            for b in plan.space(space)
        ]
    content = {
        "graph": m.graph,
        "version": 1,
        "state_bytes": plan.state_bytes,
        "weights_bytes": plan.weights_bytes,
        "arena_bytes": plan.arena_bytes,
        "arena_lower_bound": plan.lower_bound,
        "spaces": spaces,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


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
