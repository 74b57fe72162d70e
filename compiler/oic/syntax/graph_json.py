"""A graph as JSON and back: for tools that make or read graphs (DESIGN, section 9).

{"format": "oic.graph", "version": 1, "name": …, "sizes": […], "declarations": […], "blocks": […],
 "source": {"name": "decode.oi", "text": "…"}}

Nodes are objects whose "node" names a class of `syntax` and whose other keys are its fields, spans
left out.  `source` is optional: where it is there and says the same, positions in messages are
those of the original text; else of the text that `unparse` makes of the nodes.
"""

import dataclasses
import json
import math
import re
from functools import cache
from typing import Any, get_type_hints

from oic.diagnostics import Source, Span, fail
from oic.syntax import tree as s
from oic.syntax.parse import MOST_BYTES, parse_all
from oic.syntax.unparse import PRECEDENCE, unparse

FORMAT, VERSION = "oic.graph", 1
_CLASSES = [cls for cls in vars(s).values() if isinstance(cls, type) and issubclass(cls, s.SyntaxNode)]
NODES: dict[str, type[Any]] = {cls.__name__: cls for cls in _CLASSES if not cls.__subclasses__() and cls is not s.Graph}
WORD = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?|[-+*/%]", re.ASCII)  # a name or a sign
PARTS = {"sizes": "SizeDef", "declarations": "Declaration", "blocks": "Block"}


def to_json(graph: s.Graph) -> dict[str, Any]:
    """The graph as plain data that `json` writes."""
    return {
        "format": FORMAT, "version": VERSION, "name": graph.name,
        **{part: [_encode(node) for node in getattr(graph, part)] for part in PARTS},
        "source": {"name": graph.source.name, "text": graph.source.text},
    }  # fmt: skip


def from_json(data: dict[str, Any] | str) -> s.Graph:
    """The graph that `to_json` gave.  Raises OicError `graph-json` for anything else.

    A text is at most eight times as long as a source may be.
    """
    if isinstance(data, str) and len(data) > 8 * MOST_BYTES:
        raise fail("graph-json", f"the text has more than {8 * MOST_BYTES} characters")
    try:
        return _from_json(_plain(data))
    except RecursionError:
        raise fail("graph-json", "the graph is nested too deeply") from None


def _plain(data: Any) -> Any:
    """What JSON, or data that JSON can be made of, says."""
    try:
        return json.loads(data if isinstance(data, str) else json.dumps(data))
    except (TypeError, ValueError) as error:
        raise fail("graph-json", f"this is not JSON: {error}") from None


def _from_json(data: Any) -> s.Graph:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise fail("graph-json", f"this is not a graph: its format is not '{FORMAT}'")
    if data.get("version") != VERSION:
        raise fail("graph-json", f"version {data.get('version')} of the format is not known")
    graph = _decode_graph(data)
    said = unparse(graph)
    texts, source = [(said, f"{graph.name}.oi")], data.get("source")
    if isinstance(source, dict) and isinstance(source.get("text"), str):  # for positions: the nodes decide
        texts.insert(0, (source["text"], str(source.get("name", "graph.oi"))))
    for text, name in texts:
        parsed = parse_all(text, name)
        found = parsed.graph
        if found is not None and not parsed.errors and found.name == graph.name and unparse(found) == said:
            return found
    why = parsed.errors[0].message if parsed.errors else "as text they mean something else"
    raise fail("graph-json", f"the nodes are no graph: {why}")


def _encode(node: Any) -> Any:
    if isinstance(node, tuple):
        return [_encode(item) for item in node]
    if isinstance(node, float) and not math.isfinite(node):
        return {"float": str(node)}  # JSON has no number for it
    if not dataclasses.is_dataclass(node):
        return node
    kind = type(node).__name__
    return {"node": kind, **{name: _encode(getattr(node, name)) for name in _fields(kind)}}


@cache
def _fields(node: str) -> dict[str, Any]:
    """What the fields of a kind of node may be, by name, without spans."""
    hints = get_type_hints(NODES[node])
    return {name: hint for name, hint in hints.items() if name != "span" and not name.endswith("_span")}


NOWHERE = Source("graph.json", "")


def _decode_graph(data: dict[str, Any]) -> s.Graph:
    name = data.get("name")
    if not isinstance(name, str):
        raise fail("graph-json", f"the name {name!r} is no text")
    parts: dict[str, Any] = {}
    for part, wanted in PARTS.items():
        items = data.get(part, [])
        if not isinstance(items, list):
            raise fail("graph-json", f"'{part}' is no list")
        parts[part] = _decode(items, part)
        for i, item in enumerate(parts[part]):
            if type(item).__name__ != wanted:
                raise fail("graph-json", f"{part}[{i}] is no {wanted}")
    return s.Graph(name, **parts, source=NOWHERE, span=Span(NOWHERE, 0, 0))


def _decode(data: Any, path: str) -> Any:
    if isinstance(data, list):
        return tuple(_decode(item, f"{path}[{i}]") for i, item in enumerate(data))
    if isinstance(data, dict) and set(data) == {"float"}:
        if data["float"] not in ("inf", "-inf", "nan"):
            raise fail("graph-json", f"{path}: {str(data['float'])[:60]!r} is no float")
        return float(data["float"])
    if not isinstance(data, dict):
        return data
    cls = NODES.get(str(data.get("node")))
    if cls is None:
        raise fail("graph-json", f"{path}: there is no node '{data.get('node')}'")
    fields: dict[str, Any] = {f.name: Span(NOWHERE, 0, 0) for f in dataclasses.fields(cls)}
    for name, hint in _fields(cls.__name__).items():
        if name not in data:
            raise fail("graph-json", f"{path}: {cls.__name__} needs '{name}'")
        fields[name] = _decode(data[name], f"{path}.{name}")
        word = fields[name] if cls is not s.Str else None
        known = name != "op" or word in PRECEDENCE
        if not (_fits(fields[name], hint) and known) or (isinstance(word, str) and not WORD.fullmatch(word)):
            raise fail("graph-json", f"{path}.{name}: {fields[name]!r} has no place there")
    if unknown := data.keys() - fields.keys() - {"node"}:
        raise fail("graph-json", f"{path}: {cls.__name__} has no '{min(unknown)}'")
    return cls(**fields)


def _fits(value: Any, hint: Any) -> bool:
    """The value is one that the annotation of a field allows."""
    args: tuple[Any, ...] = getattr(hint, "__args__", ())
    if getattr(hint, "__origin__", None) is tuple:
        return isinstance(value, tuple) and all(_fits(v, args[0]) for v in value)
    if args:
        return any(_fits(value, a) for a in args)
    if hint is bool or hint is int:
        return type(value) is hint
    return isinstance(value, hint)


s.Graph.encoder, s.Graph.decoder = to_json, from_json
