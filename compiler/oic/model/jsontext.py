"""JSON of model files, read strictly: UTF-8, no duplicate keys, no fraction beyond all floats, bounded."""

import json
import math
import re
from typing import Any

import numpy as np

from oic.diagnostics import cut
from oic.model.budget import JSON, text_bytes
from oic.model.file import ModelFile
from oic.model.tensors import Metadata

_MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[,:\[{]', re.DOTALL)
_WORDS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[-+.\w]+', re.DOTALL)  # texts; what lies between marks

_KEY = 256  # bytes of memory for a key's places in three dictionaries


class _Duplicate(Exception):
    pass


class _Beyond(Exception):
    """A number beyond the range of f64, as it is written; `Infinity` is a name of JSON's in Python."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Duplicate(key)
        found[key] = value
    return found


def _finite(number: str) -> float:
    if math.isinf(value := float(number)):
        raise _Beyond(number)
    return value


def _integer(number: str) -> int:
    try:
        return int(number)
    except ValueError:  # more digits than Python reads
        raise _Beyond(number) from None


def parse(file: ModelFile, offset: int, count: int, field: str) -> dict[str, Any]:
    """The JSON object in `count` bytes of a file; anything else is an `OicError`."""
    text = file.text(offset, count, field)
    _charge(file, offset, count, text, field)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_float=_finite, parse_int=_integer)
    except _Duplicate as error:
        key = str(error)
        place = offset + max(0, text.encode().rfind(json.dumps(key).encode()))
        raise file.bad("model-duplicate", field, place, f"the key {key[:60]!r} is given twice") from None
    except _Beyond as error:
        number = str(error)
        at = next(word.start() for word in _WORDS.finditer(text) if word[0].startswith(number))
        fact = f"{cut(number, 40, 37)} is out of the range of f64"
        place = offset + len(text[:at].encode())
        raise file.bad("model-field", field, place, fact, "infinity is written Infinity") from None
    except json.JSONDecodeError as error:
        place = offset + len(text[: error.pos].encode())
        raise file.bad("model-field", field, place, f"not JSON: {error.msg.lower()}") from None
    except RecursionError:
        raise file.bad("model-field", field, offset, "nested too deeply") from None
    if not isinstance(value, dict):
        raise file.bad("model-field", field, offset, "not a JSON object")
    return value


def _charge(file: ModelFile, offset: int, count: int, text: str, field: str) -> None:
    """Charge the text, its copies in the values, and the values.

    Every value but the first comes after one of four marks.  Those in the whole text are at least as
    many; only if they are too many is it worth telling which are inside strings.
    """
    file.charge(2 * text_bytes(text), field, offset)
    left = file.budget.limit - file.budget.spent
    marks = file.view(offset, count, field)
    cost = sum(each * int(np.count_nonzero(marks == mark[0])) for mark, each in JSON.items())
    if cost > left:
        cost = 0
        for match in _MARKS.finditer(marks.data):
            cost += JSON.get(match[0], 0)
            if cost > left:
                break
    file.charge(cost, field, offset)


def flatten(file: ModelFile, tree: dict[str, Any]) -> dict[str, Metadata]:
    """Every scalar under its dotted key; lists of scalars whole, other lists by position.

    null is left out.  Of two values that come to the same key, the one less deep is kept.
    """
    found: dict[str, Metadata] = {}
    depths: dict[str, int] = {}
    waiting = [("", tree, 0)]
    while waiting:
        prefix, node, depth = waiting.pop()
        inner = []
        for key, value in node.items():
            name = prefix + key
            file.charge(_KEY + 2 * text_bytes(name), f"key {name[:60]!r}", None)
            file.check_name(name, "key", None)
            if isinstance(value, list) and any(isinstance(v, (dict, list)) for v in value):
                file.charge(_KEY * len(value), f"list {name!r}", None)
                inner.append((name + ".", {str(i): v for i, v in enumerate(value)}, depth + 1))
            elif isinstance(value, dict):
                inner.append((name + ".", value, depth + 1))
            elif value is not None and depth <= depths.get(name, depth):
                found[name], depths[name] = value, depth
        waiting += reversed(inner)
    return found


def sizes_among(metadata: dict[str, Metadata]) -> dict[str, int]:
    """The positive integers of the metadata, which are sizevars too (SPEC, section 9)."""
    return {k: v for k, v in metadata.items() if isinstance(v, int) and not isinstance(v, bool) and 0 < v < 1 << 63}
