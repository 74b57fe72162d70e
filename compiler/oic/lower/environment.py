"""What a volatile variable or a temporary holds while a function is lowered."""

from __future__ import annotations

from dataclasses import dataclass

from oic.check.variables import Variable
from oic.diagnostics import Diagnostic
from oic.dtypes import DType
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.syntax import tree as s


class Poison:
    """What a variable holds after a refused statement: uses of it are refused in silence."""


class Mixed:
    """What a variable holds where values of different ranks meet: a refusal only if it is used."""

    def __init__(self, types: str) -> None:
        self.types = types


POISON = Poison()
Held = Value | Poison | Mixed


@dataclass
class Local:
    """A volatile variable or a temporary in a function: its key in `env` and its declaration.

    dtype   None where the declaration was refused: uses are refused in silence
    """

    key: str
    declaration: s.Declaration
    dtype: DType | None
    dims: tuple[Dim | None, ...]
    variable: Variable | None = None


@dataclass(frozen=True)
class Mark:
    """How far lowering had come, to go back to."""

    env: dict[str, Held]
    ops: int
    prologue: int
    diagnostics: list[Diagnostic]
