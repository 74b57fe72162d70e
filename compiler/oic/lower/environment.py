"""What a volatile variable or a temporary holds while a function is lowered."""

from __future__ import annotations

from dataclasses import dataclass

from oic.check.symbols import Variable
from oic.diagnostics import Diagnostic
from oic.ir.core import Value
from oic.ir.dims import Dim, Quotient


class Poison:
    """What a variable holds after a refused statement: uses of it are refused in silence."""


class Mixed:
    """What a variable holds where values of different ranks meet: a refusal only if it is used."""

    def __init__(self, types: str) -> None:
        self.types = types


class Returned:
    """The flag that a `return` inside a loop sets: carried and joined as variables are."""

    name = "$returned"


POISON = Poison()
RETURNED = Returned()
Held = Value | Poison | Mixed
EnvKey = Variable | Returned
Env = dict[EnvKey, Held]
Shapes = dict[Variable, tuple[Dim | None, ...]]


@dataclass(frozen=True)
class Mark:
    """How far lowering had come, to go back to."""

    env: Env
    shapes: Shapes
    whole: set[Quotient]
    ops: int
    prologue: int
    diagnostics: dict[object, Diagnostic]
