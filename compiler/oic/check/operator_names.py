"""The operators that a source may name, and what is said of a name that is none of them."""

from collections.abc import Collection

from oic.check.foreign import plain, statements, tables
from oic.diagnostics import Diagnostic, Span, did_you_mean, nearest
from oic.operators import catalog
from oic.operators.base import Operator, from_source

CLOSE = 0.75  # of names: a slip of the keyboard


def unknown_operator(name: str, span: Span | None = None) -> Diagnostic:
    """The refusal of a name that is no operator."""
    return Diagnostic("unknown-op", f"unknown operator '{name}'", span, hint=operator_hint(name))


def operator_hint(name: str) -> str | None:
    """What an unknown name may mean: another spelling, another framework's name, a near name."""
    known = catalog()
    same = {plain(n): n for n in known}
    if plain(name) in same:
        return f"did you mean '{same[plain(name)]}'?"
    others = statements()
    if plain(name) in others:
        return f"here that is '{others[plain(name)]}'"
    if f"{name}_axis" in known:
        return f"did you mean '{name}_axis'?"
    close = nearest(plain(name), [*others, *same], CLOSE)
    if close in others:
        return f"here '{close}' is '{others[close]}'"
    return did_you_mean(name, known)


def takes_string(operator: type[Operator], setting: str) -> bool:
    """A setting of an operator is a string, which is written in quotes."""
    field = operator.fields.get(from_source(operator, setting))
    return field is not None and field.annotation == "str"


def setting_hint(name: str, known: Collection[str]) -> str | None:
    """What an unknown setting may mean, among those that an operator has."""
    for other in tables()[1].get(name, ()):
        if other in known:
            return f"did you mean '{other}'?"
    if (hint := did_you_mean(name, known)) is not None:
        return hint
    return f"it has {', '.join(known)}" if known else None
