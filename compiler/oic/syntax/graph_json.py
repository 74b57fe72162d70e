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
from typing import Any, get_origin, get_type_hints

from oic.diagnostics import Source, Span, fail
from oic.syntax import tree as s
from oic.syntax.parse import MOST_BYTES, parse_all
from oic.syntax.unparse import PRECEDENCE, unparse

FORMAT, VERSION = "oic.graph", 1
_CLASSES = [cls for cls in vars(s).values() if isinstance(cls, type) and issubclass(cls, s.SyntaxNode)]
NODES: dict[str, type[Any]] = {cls.__name__: cls for cls in _CLASSES if not cls.__subclasses__()}
WORD = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?|[-+*/%]", re.ASCII)  # a name or a sign


def to_json(graph: s.Graph) -> dict[str, Any]:
    """The graph as plain data that `json` writes."""
    parts = _encode(graph)
    del parts["node"]
    source = {"name": graph.source.name, "text": graph.source.text}
    return {"format": FORMAT, "version": VERSION, **parts, "source": source}


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
    fields = {name: data.get(name, []) for name in _fields("Graph")}
    graph = _decode({"node": "Graph", **fields}, "graph", s.Graph)
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
    """What the fields of a kind of node may be, by name, without the places in a source."""
    hints, fields = get_type_hints(NODES[node]), dataclasses.fields(NODES[node])
    return {f.name: hints[f.name] for f in fields if hints[f.name] not in (Span, Source)}


NOWHERE = Span(Source("graph.json", ""), 0, 0)  # of nodes that are only written as text


def _decode(data: Any, path: str, hint: Any) -> Any:
    """What JSON says, which the annotation of its place allows."""
    allowed: tuple[Any, ...] = (hint,) if get_origin(hint) is tuple else getattr(hint, "__args__", (hint,))
    rows = [a.__args__[0] for a in allowed if get_origin(a) is tuple]
    if isinstance(data, list) and rows:
        return tuple(_decode(item, f"{path}[{i}]", rows[0]) for i, item in enumerate(data))
    value = data
    if isinstance(data, dict) and set(data) == {"float"}:
        if data["float"] not in ("inf", "-inf", "nan"):
            raise fail("graph-json", f"{path}: {str(data['float'])[:60]!r} is no float")
        value = float(data["float"])
    elif isinstance(data, dict):
        value = _decode_node(data, path)
    fits = isinstance(value, tuple(a for a in allowed if isinstance(a, type)))
    if not fits or isinstance(value, bool) != (bool in allowed):
        raise fail("graph-json", f"{path}: {value!r} has no place there")
    return value


def _decode_node(data: dict[str, Any], path: str) -> Any:
    cls = NODES.get(str(data.get("node")))
    if cls is None:
        raise fail("graph-json", f"{path}: there is no node '{data.get('node')}'")
    fields: dict[str, Any] = {f.name: NOWHERE for f in dataclasses.fields(cls)}
    for name, hint in _fields(cls.__name__).items():
        if name not in data:
            raise fail("graph-json", f"{path}: {cls.__name__} needs '{name}'")
        value = fields[name] = _decode(data[name], f"{path}.{name}", hint)
        known = cls in (s.Str, s.Graph) or not isinstance(value, str) or WORD.fullmatch(value)
        if not known or (name == "op" and value not in PRECEDENCE):
            raise fail("graph-json", f"{path}.{name}: {value!r} has no place there")
    if unknown := data.keys() - fields.keys() - {"node"}:
        raise fail("graph-json", f"{path}: {cls.__name__} has no '{min(unknown)}'")
    return cls(**fields)


s.Graph.encoder, s.Graph.decoder = to_json, from_json
