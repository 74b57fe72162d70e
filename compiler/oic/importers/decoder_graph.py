"""The graph of a decoder: blocks of layers, and loops over them, where layers are of several kinds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from oic.importers.decoder import Decoder, Layer
from oic.importers.family import Request
from oic.importers.graph_template import text_of
from oic.importers.writer import Writer

CACHES = {"f32": "f32", "f16": "f16", "bf16": "bf16", "q8": "i8"}
"""What keys and values may be stored in, and the type of its elements: of q8 a head at a position has a scale."""


def decoder_text(w: Writer, model: Decoder, request: Request, **values: object) -> str:
    """The whole source."""
    kinds = list(dict.fromkeys(model.layers))
    names = _names(kinds) if len(kinds) > 1 else {}
    by_row = len({kind.mixers for kind in kinds}) > 1
    called = [names[layer] for layer in model.layers] if names else []
    loops = _loops_by_row(called, model.layers) if by_row else _loops(called) if called else []
    writers = {kind: w for kind in kinds}
    for kind in kinds if by_row else ():
        alike = [i for i, layer in enumerate(model.layers) if layer.mixers == kind.mixers]
        writers[kind] = replace(w, layers=alike)
    values |= {"names": names, "loops": "\n".join(line for loop in loops for line in loop), "by_row": by_row}
    values |= {"writers": writers}
    return text_of("decoder", w, request, m=model, cache=request.cache, element=CACHES[request.cache], **values)


def _names(kinds: list[Layer]) -> dict[Layer, str]:
    """A name for each kind of layer; those that would have the same are numbered."""
    named = [kind.name for kind in kinds]
    return {kind: f"{kind.name}_{i}" if named.count(kind.name) > 1 else kind.name for i, kind in enumerate(kinds)}


def _loops(names: list[str]) -> list[list[str]]:
    """Loops over layers of different kinds: a period that repeats, then the rest."""
    count = len(names)
    period = next((p for p in range(1, count // 2 + 1) if all(n == names[i % p] for i, n in enumerate(names))), count)
    if period == count:
        return [_loop(name, str(first), str(end)) for name, first, end in _runs(names, 0)]
    groups = count // period
    inner = [
        line
        for name, first, end in _runs(names[:period], 0)
        for line in _loop(name, f"g * {period} + {first}" if first else f"g * {period}", f"g * {period} + {end}")
    ]
    rest = _runs(names[groups * period :], groups * period)
    repeated = [f"loop groups (g in 0..{groups}) {{", *("  " + line for line in inner), "}"]
    return [repeated, *(_loop(name, str(first), str(end), "rest_") for name, first, end in rest)]


def _loops_by_row(names: list[str], layers: Sequence[Layer]) -> list[list[str]]:
    """Loops over neighbours of a kind, of which each is the row r of tables of layers that mix tokens so."""
    found = []
    for name, first, end in _runs(names, 0):
        before = sum(layer.mixers != layers[first].mixers for layer in layers[:first])
        row = f"l - {before}" if before else "l"
        inner = f"loop row_of_{first} (r in {row}..{f'l - {before - 1}' if before > 1 else 'l' if before else 'l + 1'})"
        found.append([f"loop {name}_{first} (l in {first}..{end}) {{", f"{inner} {{ branch {name}; }}", "}"])
    return found


def _runs(names: list[str], start: int) -> Iterator[tuple[str, int, int]]:
    """Neighbours of one name, as (name, first, end)."""
    for name, group in groupby(enumerate(names, start), itemgetter(1)):
        places = [i for i, _ in group]
        yield name, places[0], places[-1] + 1


def _loop(name: str, first: str, end: str, prefix: str = "") -> list[str]:
    tag = f"{prefix}{name}_{first}" if first.isdigit() else f"{prefix}{name}_layers"
    return [f"loop {tag} (l in {first}..{end}) {{ branch {name}; }}"]
