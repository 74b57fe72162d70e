"""The parser made from `grammar.lark`, its tables kept in the user's cache directory.

Building the LALR tables costs some 40 ms, reading them back 4 ms.  The file is named by a hash
of the grammar, the Lark and the Python version; where it cannot be written the tables are built
each time, where it cannot be read they are built anew.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import lark

GRAMMAR = Path(__file__).with_name("grammar.lark")


@cache
def parser() -> lark.Lark:
    """The LALR(1) parser of the language; every token is kept in its trees."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    cached = _cache_file(grammar)
    if (known := _load(cached)) is not None:
        return known
    made = lark.Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start="graph",
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    _save(made, cached)
    return made


def _cache_file(grammar: str) -> Path:
    """Where the tables are kept: in `$XDG_CACHE_HOME/oic`, by default `~/.cache/oic`."""
    key = f"{grammar}\0{lark.__version__}\0{sys.version}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root, "oic", f"grammar-{digest}.tables")


def _load(path: Path) -> lark.Lark | None:
    try:
        data = path.read_bytes()
        return lark.Lark.load(io.BytesIO(data))
    except Exception:  # missing, unreadable, cut short, or of another make: build it anew
        return None


def _save(made: lark.Lark, path: Path) -> None:
    """Write the tables in one step, so that no reader sees half a file, or not at all."""
    data = io.BytesIO()
    made.save(data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data.getvalue())
        os.replace(name, path)
    except OSError:
        return
