"""Graphs by templates, templates/graphs/: of a family, but for sizes and element types; of a kind of transformer."""

import math
from collections.abc import Iterable
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from oic.importers.checkpoint import Checkpoint
from oic.importers.family import FamilyGraph, Request
from oic.importers.writer import Writer
from oic.resources import templates_dir

CONSTANTS = "@constants"
"""Where a template has the declarations that it asks a `Writer` for, which are known behind it."""


def number(value: float) -> str:
    """A float as a literal of the language, which gives it back exactly."""
    return repr(float(value))


def scale_setting(scale: float | None, head_size: int) -> str:
    """The setting of attention for a scale of the scores that is not the usual one."""
    usual = scale is None or math.isclose(scale, head_size**-0.5, rel_tol=1e-12)
    return "" if scale is None or usual else f", scale={number(scale)}"


def total(terms: Iterable[str | int]) -> str:
    """An index expression without its zeros."""
    return " + ".join(str(t) for t in terms if str(t) != "0") or "0"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(templates_dir() / "graphs"), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.filters |= {"number": number, "scale_setting": scale_setting, "total": total}
    return made


def graph_of(
    kind: str, c: Checkpoint, request: Request, features: list[str], metadata: dict[str, object], *, layers: int = 1,
    context: int | None = None, buffers: str = "^$", **values: object,
) -> FamilyGraph:  # fmt: skip
    """The graph of a family that is no transformer.

    kind     names its template
    layers   values of `{l}` in the names of tensors
    values   what the template asks for besides
    The others as in `FamilyGraph`.
    """
    w = Writer(c=c, layers=layers)
    text = text_of(kind, w, request, features=features, layers=layers, context=context, **values)
    return FamilyGraph(text, features, w.weights, buffers, context=context, metadata=metadata)


def text_of(kind: str, w: Writer, request: Request, **values: object) -> str:
    """The text of a graph whose template has the name of its kind; `w` learns what constants it has."""
    name = request.name or w.c.family.replace("-", "_")
    values |= {"name": name, "prefill": request.prefill, "batch": request.batch}
    text = _environment().get_template(f"{kind}.oi.j2").render(values, w=w)
    return formatted(text.replace(CONSTANTS, "\n".join(w.constants), 1))


def formatted(text: str) -> str:
    """A graph indented by its braces, blanks before comments and blocks; a temporary is declared once in its braces."""
    lines: list[str] = []
    declared: list[set[str]] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        if line == "}":
            declared.pop()
        if line.startswith("assign "):
            if (name := line.partition(":")[0]) in declared[-1]:
                continue
            declared[-1].add(name)
        begins = line.endswith("{")
        if lines and (line.startswith("//") or (begins and len(declared) == 1)) and lines[-1][-1] in "};":
            lines.append("")
        lines.append("  " * len(declared) + line)
        if begins:
            declared.append(set(declared[-1]) if declared else set())
    return "\n".join([*lines, ""])
