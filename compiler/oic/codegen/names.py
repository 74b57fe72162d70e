"""C identifiers: valid, unique in their scope, and as close to the user's names as that allows.

Names outside a function all begin with the name of the library: `decode_step`, `DECODE_ALIGN`.  They are given
out in one scope, `LibraryNames`, from which definitions and uses take them; so no entry clashes with a type, a macro
or another entry.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from oic.codegen.reserved import TOOLS, WORDS, is_function, is_header, is_macro
from oic.diagnostics import fail

# Endings of the names that every library has: of the API, and static ones of its source.
API = (
    "init", "init_as", "reset", "save", "load", "truncate", "open", "open_as", "open_threads", "open_beside", "close",
    "state", "session", "memory", "weights", "weights_blob",
)  # fmt: skip
PRIVATE = (
    "attach", "state_is_as_planned", "counts_sum", "counts_hold", "is_whole",
    "saved_form", "saved_counts", "saved_axes", "saved_parts", "truncated", "chosen",
)  # fmt: skip
MACROS = (
    "H", "ALIGN", "STATE_BYTES", "ARENA_BYTES", "WEIGHTS_BYTES", "SAVED_BYTES", "STATE_FINGERPRINT",
    "WEIGHTS_FINGERPRINT", "BUILD_FINGERPRINT", "NUMERICS", "THREADS",
)  # fmt: skip


def identifier(text: str) -> str:
    """The text as a C identifier, neither a keyword nor a name with a meaning of its own."""
    name = _plain(text, "v")
    taken = name in WORDS or is_macro(name) or name.startswith(("oic_", "OIC_"))
    return f"{name}_" if taken else name


def _plain(text: str, otherwise: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or otherwise
    return f"{otherwise}{name}" if name[0].isdigit() else name


def library_name(name: str) -> str:
    """What the files and the names of a library begin with: the graph's name, or `graph_` and it."""
    plain = _plain(name, "graph")
    own = [f"{plain}_{ending}" for ending in (*API, *PRIVATE, "step", "inputs", "outputs")]
    ours = f"{plain}_".lower().startswith("oic_")
    taken = ours or plain.lower() in TOOLS or any(_has_meaning(n) for n in own)
    return f"graph_{plain}" if taken else plain


def check_library_name(name: str) -> None:
    """Raise OicError `library-name` where this is no name in C, or the library would hide a header of C."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        message = f"'{name}' is no name of a C library: it takes letters, digits and '_'"
        raise fail("library-name", message, hint=f"give it a name of its own: --name {_plain(name, 'graph')}")
    if is_header(library_name(name)):
        message = f"the C library of '{name}' would have a header that hides <{library_name(name).lower()}.h>"
        raise fail("library-name", message, hint=f"give it a name of its own: --name {name}_net")


def name_in_private(name: str) -> str:
    """The name of a library whose header no program of the user's includes: it is one, and hides none of C either."""
    plain = _plain(name, "graph")
    return f"graph_{plain}" if is_header(library_name(plain)) else plain


def _has_meaning(name: str) -> bool:
    """A name outside functions that libraries have, or that looks like one of their macros."""
    return identifier(name) != name or is_function(name) or name.isupper()


class NameScope:
    """The identifiers of one scope."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._stems: dict[str, str] = {}
        self._last: dict[str, int] = {}  # numbers up to this one are taken

    def unique(self, hint: str) -> str:
        """A name like the hint that was not given before: `h`, then `h_2`, `h_3`."""
        return self.numbered(identifier(hint))

    def numbered(self, base: str) -> str:
        """This name, or the first of `base_2`, `base_3`, … that was not given before."""
        number = self._last.get(base, 1)
        name = base if number == 1 else f"{base}_{number}"
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._last[base] = number
        self._taken.add(name)
        self._stems[name] = base
        return name

    def stem(self, name: str) -> str:
        """The name before a number was added: `h` of `h_2`."""
        return self._stems.get(name, name)

    def reserve(self, *names: str) -> None:
        """Mark names as taken."""
        self._taken.update(names)

    def copy(self) -> "NameScope":
        """A scope with the same names taken."""
        copy = NameScope(self._taken)
        copy._last = dict(self._last)
        return copy

    def __contains__(self, name: str) -> bool:
        return name in self._taken


class EntryNames(NamedTuple):
    """The function of an entry, the structures it takes."""

    function: str
    inputs: str
    outputs: str


class LibraryNames:
    """The names outside functions of one library.

    name    what functions, types and files begin with
    macro   what macros begin with
    """

    def __init__(self, name: str, symbols: Iterable[str]) -> None:
        self.name = library_name(name)
        self.macro = self.name.upper()
        own = [f"{self.name}_{ending}" for ending in (*API, *PRIVATE)]
        own += [f"{self.macro}_{ending}" for ending in MACROS]
        self.scope = NameScope(own)
        ordered = sorted(symbols, key=lambda symbol: symbol != "entry")  # `step` is the block `entry`
        self.entries = {symbol: self._entry(symbol) for symbol in ordered}

    def _entry(self, symbol: str) -> EntryNames:
        """`decode_step` with `decode_inputs` for the block `entry`; `decode_x` with `decode_x_inputs` for `x`."""
        function = f"{self.name}_{'step' if symbol == 'entry' else symbol}"
        stem = self.name if symbol == "entry" else function
        found = EntryNames(function, f"{stem}_inputs", f"{stem}_outputs")
        while any(n in self.scope or _has_meaning(n) for n in found):
            function += "_entry"
            found = EntryNames(function, f"{function}_inputs", f"{function}_outputs")
        self.scope.reserve(*found)
        return found

    def unique(self, hint: str, inside: NameScope) -> str:
        """One more name outside functions, which no variable of the function `inside` has."""
        while (name := self.scope.unique(hint)) in inside:
            pass
        inside.reserve(name)
        return name

    def define(self, ending: str) -> str:
        """The name of a macro with this ending, which may have one of every library's.

        Names of the library's own are three words or more, of which the first is not C's: none is a macro of C.
        """
        name = f"{self.macro}_{ending}"
        return name if ending in MACROS else self.scope.numbered(name)
