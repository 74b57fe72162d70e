"""What `oic inspect` shows of a model: plain text for people, a dictionary for tools."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from oic.model.model import Model
from oic.model.others import WEIGHTS
from oic.model.tensors import TensorInfo

_WIDTH = 60  # characters of a metadata value that are shown
_STATISTICS = ("min", "max", "mean")


def opened(path: str) -> list[Model]:
    """The model at a path; of a folder that is none, what was imported, or every model file in it.  Raises OicError."""
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "config.json")):
        imported = os.path.join(path, "model.json")
        if os.path.exists(imported):
            return [Model.open(imported)]
        found = sorted(f.path for f in os.scandir(path) if f.is_file() and f.name.endswith(WEIGHTS))
        if found:
            return [Model.open(file) for file in found]
    return [Model.open(path)]


def describe(model: Model, stats: bool = False, width: int | None = None) -> str:
    """Sizevars, metadata and a table of tensors; with `stats` their min, max and mean.

    With `stats` every element is read.  Tensors that cannot be read show `-`.
    width   columns: names get lines of their own where a table would be wider
    """
    tensors = [_tensor(model, model.info(name), stats) for name in model.names()]
    parts = [f"{model.name}: {len(tensors)} tensors, {sum(t['bytes'] for t in tensors):,} bytes"]
    if model.sizevars:
        parts.append(_section("sizevars", [[k, str(v)] for k, v in model.sizevars.items()]))
    # A positive integer that is a sizevar of the same name is shown once.
    rest = {k: v for k, v in model.metadata.items() if model.sizevars.get(k) != v}
    if rest:
        parts.append(_section("metadata", [[k, _short(v)] for k, v in rest.items()]))
    if tensors:
        heading = ["name", "dtype", "shape", "bytes", "offset", *(_STATISTICS if stats else ())]
        rows = [heading, *(_row(tensor, heading[5:]) for tensor in tensors)]
        parts.append(_section("tensors", rows, (3, 4, 5, 6, 7), width))
    return "\n\n".join(parts) + "\n"


def to_json(model: Model, stats: bool = False) -> dict[str, Any]:
    """The same as a dictionary of plain values."""
    tensors = [_tensor(model, model.info(name), stats) for name in model.names()]
    metadata, sizevars = dict(model.metadata), dict(model.sizevars)
    return {"name": model.name, "sizevars": sizevars, "metadata": metadata, "tensors": tensors}


def _tensor(model: Model, info: TensorInfo, stats: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": info.name, "dtype": info.dtype.name, "shape": list(info.shape), "has_data": info.has_data,
        "bytes": info.nbytes, "file": info.file, "offset": info.offset,
    }  # fmt: skip
    if stats:
        found |= dict(zip(_STATISTICS, _statistics(model, info), strict=False))
    return found


def _row(tensor: dict[str, Any], statistics: Sequence[str]) -> list[str]:
    nbytes = f"{tensor['bytes']:,}" if tensor["has_data"] else "no data"
    offset = "-" if tensor["offset"] is None else str(tensor["offset"])
    found = (f"{tensor[name]:.6g}" if name in tensor else "-" for name in statistics)
    return [tensor["name"], tensor["dtype"], str(tensor["shape"]), nbytes, offset, *found]


def _statistics(model: Model, info: TensorInfo) -> tuple[float, ...]:
    """(min, max, mean) of the elements, or () where there are none to read."""
    if not info.has_data or info.dtype.kind == "opaque" or info.count == 0:
        return ()
    low, high, total = [], [], 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for part in model.parts(info.name):
            wide = part.astype(info.dtype.wide)
            low.append(wide.min())
            high.append(wide.max())
            total += float(wide.sum(dtype=np.float64))
        return float(np.min(low)), float(np.max(high)), total / info.count


def _short(value: Any) -> str:
    if not isinstance(value, list):
        text = repr(value) if isinstance(value, str) else str(value)
        return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
    text = "[" + ", ".join(repr(v) for v in value[:8]) + ("]" if len(value) <= 8 else ", …")
    return text if len(text) <= _WIDTH and len(value) <= 8 else f"{text[:_WIDTH]} ({len(value)})"


def _section(title: str, rows: Sequence[Sequence[str]], right: tuple[int, ...] = (), width: int | None = None) -> str:
    """A heading and aligned columns; the columns in `right` are flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [title]
    narrow = width is not None and sum(widths) + 2 * len(widths) > width
    if narrow:
        widths[0] = 0
    for row in rows:
        if narrow:
            lines.append(f"  {row[0]}")
            row = ["", *row[1:]]
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)
