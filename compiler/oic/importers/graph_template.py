"""Graphs that are one text for every model of their family, but for sizes and element types: templates/NAME.oi.j2."""

from __future__ import annotations

import re

from jinja2 import StrictUndefined, Template

from oic.dtypes import f32
from oic.importers.checkpoint import Checkpoint
from oic.importers.family import FamilyGraph, Request
from oic.resources import templates_dir

TENSOR = re.compile(r'^ *(\w+).*@(?:ref|pattern)\("(.+)"\);', re.MULTILINE)  # of a constant: its name, and this


def graph_of(
    c: Checkpoint, request: Request, features: list[str], metadata: dict[str, object], *, layers: int = 1,
    context: int | None = None, **values: object,
) -> FamilyGraph:  # fmt: skip
    """The graph of a family whose template has its name.

    layers   values of `{l}` in the names of tensors
    values   what the template asks for besides
    The others as in `FamilyGraph`.
    """
    source = (templates_dir() / f"{c.family}.oi.j2").read_text(encoding="utf-8")
    tensors = dict(TENSOR.findall(source))
    types = {name: c.dtype(tensor, layers) for name, tensor in tensors.items()}
    template = Template(
        source, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    text = template.render(
        values, name=request.name or c.family, summary=f"{c.family}: {'; '.join(features)}", layers=layers,
        context=context, prefill=request.prefill, types=types,
        widened={name: "" if type_ is f32 else ", to=f32" for name, type_ in types.items()},
    )  # fmt: skip
    weights = dict.fromkeys(tensors.values(), layers)
    return FamilyGraph(text, features, weights, "^$", context=context, metadata=metadata)
