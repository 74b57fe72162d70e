"""JSON as it stands in model files, read strictly: UTF-8, no duplicate keys, bounded."""

from __future__ import annotations

import json
from typing import Any

from oic.model.file import ModelFile
from oic.model.tensors import Metadata


class _Duplicate(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Duplicate(key)
        found[key] = value
    return found


def parse(file: ModelFile, offset: int, count: int, field: str) -> dict[str, Any]:
    """The JSON object in `count` bytes of a file; anything else is an `OicError`."""
    text = file.text(file.read(offset, count, field), field, offset)
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except _Duplicate as error:
        fact = f"the key {str(error)!r} is given twice"
        place = offset + max(0, text.encode().rfind(json.dumps(str(error)).encode()))
        raise file.bad("model-duplicate", field, place, fact) from None
    except json.JSONDecodeError as error:
        place = offset + len(text[: error.pos].encode())
        fact = f"not JSON: {error.msg.lower()}"
        raise file.bad("model-field", field, place, fact) from None
    except RecursionError:
        raise file.bad("model-field", field, offset, "nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise file.bad("model-field", field, offset, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise file.bad("model-field", field, offset, "not a JSON object")
    return value


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Metadata]:
    """Every scalar under its dotted key; lists of scalars whole, other lists by position.

    null is left out.  Of two values that come to the same key, the one less deep is kept.
    """
    found: dict[str, Metadata] = {}
    deeper: dict[str, Metadata] = {}
    for key, value in tree.items():
        name = prefix + key
        if isinstance(value, list) and not any(isinstance(v, (dict, list)) for v in value):
            found[name] = value
        elif isinstance(value, list):
            deeper |= flatten({str(i): v for i, v in enumerate(value)}, name + ".")
        elif isinstance(value, dict):
            deeper |= flatten(value, name + ".")
        elif value is not None:
            found[name] = value
    return deeper | found


def sizes_among(metadata: dict[str, Metadata]) -> dict[str, int]:
    """The positive integers of the metadata, which are sizevars too (SPEC, section 9)."""
    return {
        key: value
        for key, value in metadata.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63
    }
