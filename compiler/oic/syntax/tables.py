"""The parser made from `grammar.lark`, its tables kept in the user's cache directory.

Building the LALR tables costs some 40 ms, reading them back 4 ms.  The file is named by a hash
of the grammar, the Lark and the Python version; where it cannot be written the tables are built
each time, where it cannot be read they are built anew: Lark does this.
"""

import hashlib
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import lark

from oic.resources import cache_dir

GRAMMAR = Path(__file__).with_name("grammar.lark")


@cache
def parser() -> lark.Lark:
    """The LALR(1) parser of the language; every token is kept in its trees."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    return lark.Lark(
        grammar, start="graph", parser="lalr", lexer="contextual", keep_all_tokens=True, maybe_placeholders=False,
        cache=_cache_file(grammar) or False,
    )  # fmt: skip


def _cache_file(grammar: str) -> str | None:
    """Where the tables are kept, if the user has a folder for them."""
    if (folder := cache_dir()) is None:
        return None
    digest = hashlib.sha256(f"{grammar}\0{lark.__version__}\0{sys.version}".encode()).hexdigest()[:16]
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"grammar-{digest}.tables")
