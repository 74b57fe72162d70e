"""The parser made from `grammar.lark`, its tables kept in the user's cache directory.

Building the LALR tables costs some 40 ms, reading them back 4 ms.  Lark notes in the file of which grammar, Lark and
Python they are, and builds them anew where they are of others; where it cannot be written, each time.
"""

from contextlib import suppress
from functools import cache
from pathlib import Path

import lark

from oic.resources import cache_dir

GRAMMAR = Path(__file__).with_name("grammar.lark")


@cache
def parser() -> lark.Lark:
    """The LALR(1) parser of the language; every token is kept in its trees."""
    if (folder := cache_dir()) is not None:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
    return lark.Lark(
        GRAMMAR.read_text(encoding="utf-8"), start="graph", parser="lalr", lexer="contextual", keep_all_tokens=True,
        maybe_placeholders=False, cache=str(folder / "grammar.tables") if folder is not None else False,
    )  # fmt: skip
