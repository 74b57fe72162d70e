"""The graph of a decoder: blocks of layers, and loops over them, where layers are of several kinds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from oic.importers.decoder import Decoder, Layer
from oic.importers.family import Request
from oic.importers.graph_template import text_of, total
from oic.importers.writer import Writer

CACHES = {"f32": "f32", "f16": "f16", "bf16": "bf16", "q8": "i8"}
"""What keys and values may be stored in, and the type of its elements: of q8 a head at a position has a scale."""


def decoder_text(w: Writer, model: Decoder, request: Request, **values: object) -> str:
    """The whole source."""
    kinds = list(dict.fromkeys(model.layers))
    names = _names(kinds) if len(kinds) > 1 else {}
    by_row = len({kind.mixers for kind in kinds}) > 1
    loops = _loops([names[layer] for layer in model.layers], model.layers, by_row) if names else []
    values |= {"names": names, "loops": "\n".join(loops), "by_row": by_row}
    values |= {"writers": _writers(w, model, "mixers"), "network_writers": _writers(w, model, "dense")}
    return text_of("decoder", w, request, m=model, cache=request.cache, element=CACHES[request.cache], **values)


def _writers(w: Writer, model: Decoder, part: str) -> dict[Layer, Writer]:
    """What declares the constants of a part of the layers of each kind: those alike in it have it."""
    parts = [getattr(layer, part) for layer in model.layers]
    every = len(set(parts)) == 1
    return {
        layer: w if every else replace(w, layers=[i for i, other in enumerate(parts) if other == parts[at]])
        for at, layer in enumerate(model.layers)
    }


def _names(kinds: list[Layer]) -> dict[Layer, str]:
    """A name for each kind of layer; those that would have the same are numbered."""
    named = [kind.name for kind in kinds]
    return {kind: f"{kind.name}_{i}" if named.count(kind.name) > 1 else kind.name for i, kind in enumerate(kinds)}


def _loops(names: Sequence[str], layers: Sequence[Layer], by_row: bool) -> Iterator[str]:
    """Loops over layers of different kinds; with `by_row`, each is the row r of tables of layers that mix tokens so."""
    for start, period, times in _periods(names):
        if times > 1:
            yield f"loop groups_{start} (g in 0..{times}) {{"
        for name, first, end in _runs(names[start : start + period], start):
            branch = f"{{ branch {name}; }}"
            alike = [layer.mixers == layers[first].mixers for layer in layers]
            before, rows = sum(alike[:first]), sum(alike[start : start + period])
            if times == 1 or not by_row:
                group = [f"g * {period}"] * (times > 1)
                inner = f"{{ {_once('r', f'row_of_{first}', ['l'], before - first)} {branch} }}" if by_row else branch
                yield f"loop {name}_{first} (l in {total([*group, first])}..{total([*group, end])}) {inner}"
                continue
            turn = ["i"] * (end - first > 1)
            row = _once("r", f"row_of_{first}", [f"g * {rows}" if rows > 1 else "g", *turn], before)
            layer = _once("l", f"layer_of_{first}", [f"g * {period}", *turn], first)
            inner = f"{row} {{ {layer} {branch} }}"
            yield f"loop {name}_{first} (i in 0..{end - first}) {{ {inner} }}" if turn else inner
        if times > 1:
            yield "}"


def _once(index: str, tag: str, terms: list[str], more: int) -> str:
    """A loop of one turn, which gives a sum a name."""
    sums = (total([*terms, n]) if n >= 0 else f"{' + '.join(terms)} - {-n}" for n in (more, more + 1))
    return f"loop {tag} ({index} in {'..'.join(sums)})"


def _periods(names: Sequence[str]) -> list[tuple[int, int, int]]:
    """Parts that repeat, (first, layers of a period, times): those whose periods have the fewest runs in all."""
    best: list[tuple[int, list[tuple[int, int, int]]]] = [(0, [])]  # from the last layer on, the last first
    for first in reversed(range(len(names))):
        choices = []
        for period in range(1, len(names) - first + 1):
            part = names[first : first + period]
            runs, times = sum(1 for _ in groupby(part)), 1
            while names[first + times * period : first + (times + 1) * period] == part:
                times += 1
            for repeated in range(1, times + 1) if runs > 1 else (1,):
                blocks, rest = best[len(names) - first - repeated * period]
                if runs == 1 or repeated > 1:
                    choices.append((runs + blocks, 1 + len(rest), [(first, period, repeated), *rest]))
        blocks, _, parts = min(choices, key=lambda choice: choice[:2])
        best.append((blocks, parts))
    return best[-1][1]


def _runs(names: Sequence[str], start: int) -> Iterator[tuple[str, int, int]]:
    """Neighbours of one name, as (name, first, end)."""
    for name, group in groupby(enumerate(names, start), itemgetter(1)):
        places = [i for i, _ in group]
        yield name, places[0], places[-1] + 1
