"""What callers of the Python interface give, refused where its type is wrong before anything is made of it."""

import os
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeVar

from oic.diagnostics import OicError, fail, shortened

T = TypeVar("T")
MOST_SHOWN = 40  # characters of a wrong value


def wrong_type(what: str, wanted: str, value: object, hint: str | None = None) -> OicError:
    """`argument-type`: what was to be given, and what was.

    what    the argument, `threads`, or a part of it, `sizes['T']`
    wanted  with its article: `an integer`
    """
    name = "None" if value is None else type(value).__name__
    simple = isinstance(value, (int, float, str, bytes))  # others may be long, or fail to say what they are
    given = f"{shortened(repr(value), MOST_SHOWN)} ({name})" if simple else name
    return fail("argument-type", f"{what} is {wanted}, not {given}", hint=hint)


def require(what: str, value: object, kind: type | UnionType, wanted: str, hint: str | None = None) -> None:
    """The value is of a class."""
    if not isinstance(value, kind):
        raise wrong_type(what, wanted, value, hint)


def text(what: str, value: Any) -> str:
    """The value, a text."""
    require(what, value, str, "a str")
    return value


def is_integer(value: object) -> bool:
    """An integer of Python or of NumPy; no truth value is one."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def integer(what: str, value: Any) -> int:
    """The value as an integer of Python."""
    if not is_integer(value):
        raise wrong_type(what, "an integer", value)
    return int(value)


def number(what: str, value: Any) -> float:
    """The value as a float of Python; a number of NumPy is one, no truth value is."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise wrong_type(what, "a number", value)
    return float(value)


def optional(check: Callable[[str, Any], T], what: str, value: Any) -> T | None:
    """The value as the check has it, or None."""
    return None if value is None else check(what, value)


def sequence(what: str, value: Any, of: str) -> list[Any]:
    """What holds several in a row: no text, no mapping."""
    if not isinstance(value, (str, bytes, Mapping)):
        try:
            return list(value)
        except TypeError:
            pass
    raise wrong_type(what, f"a list of {of}", value)


def path(what: str, value: Any) -> str:
    """The path of a file or folder as a text; a number is none, though the system would take it for an open file."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise wrong_type(what, "a str or a pathlib.Path", value)
    return os.fsdecode(value)


def mapping(
    what: str, value: Any, check: Callable[[str, Any], Any] | None = None, hint: str | None = None
) -> dict[str, Any]:
    """Values by name, as the check has each; None: none."""
    if value is None:
        return {}
    require(what, value, Mapping, "a mapping of names", hint)
    named = {text(f"a name in {what}", name): each for name, each in value.items()}
    return {name: check(f"{what}[{name!r}]", each) for name, each in named.items()} if check else named


def names(what: str, value: Any) -> list[str] | None:
    """Names, or None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        hint = f"{what}=[{value!r}]" if isinstance(value, str) else None
        raise wrong_type(what, "a list of names", value, hint)
    return [text(f"a name in {what}", name) for name in value]
