"""The variables that a random graph may use at a statement, and how it names them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from oic.dtypes import ALL

Dim = int | tuple[int, int] | str
"""A size: known, a*N + b of the extent N, or (a name with a `?`) one that only the run tells."""
Shape = tuple[Dim, ...]


def size_text(size: Dim) -> str:
    """A size in source."""
    if isinstance(size, str):
        return "?"
    if isinstance(size, int):
        return str(size)
    times, more = size
    text = "N" if times == 1 else f"{times}*N"
    return f"{text}+{more}" if more else text


def shaped(dtype: str, shape: Shape) -> str:
    """A type in source: `f32[N, 4]`."""
    return f"{dtype}[{', '.join(map(size_text, shape))}]" if shape else dtype


def added(a: Dim, b: Dim) -> Dim | None:
    """a + b, or None where only the run tells."""
    if isinstance(a, str) or isinstance(b, str):
        return None
    (p, q), (r, s) = (((0, d) if isinstance(d, int) else d) for d in (a, b))
    return q + s if p + r == 0 else (p + r, q + s)


@dataclass(frozen=True)
class Var:
    """A variable as the generator sees it."""

    name: str
    dtype: str
    shape: Shape
    writable: bool

    @property
    def type(self) -> tuple[str, Shape]:
        return self.dtype, self.shape

    @property
    def known(self) -> bool:
        """Every size is known at build."""
        return all(isinstance(d, int) for d in self.shape)


class Pool:
    """Variables by scope, the lines of the block being written, and fresh names."""

    def __init__(self, rng: random.Random) -> None:
        self.r = rng
        self.scopes: list[list[Var]] = [[]]
        self.lines: list[str] = []
        self.ids: list[Var] = []  # integers that select rows
        self.indices: list[str] = []  # inputs used as indices
        self.floats: list[str] = []  # persistent f32 scalars, for settings
        self.names = 0

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def visible(self) -> list[Var]:
        return [v for scope in self.scopes for v in scope]

    def pick(self, fits: Callable[[Var], bool]) -> Var | None:
        """A variable that fits; recent ones more often."""
        found = [v for v in self.visible() if fits(v)]
        if not found:
            return None
        if self.r.random() < 0.5:
            found = found[-4:]
        return self.r.choice(found)

    def destination(self, dtype: str, shape: Shape, *, fresh: bool = False) -> str:
        """A variable of this type to write into: one that exists, or a new temporary."""
        known = [v for v in self.visible() if v.writable and v.type == (dtype, shape)]
        if known and not fresh and self.r.random() < 0.75:
            return self.r.choice(known).name
        if ALL[dtype].packed and not shape:
            dtype = "i8"  # refused by the checks where it matters
        name = self.fresh("t")
        self.emit(f"assign {name}: {shaped(dtype, shape)};")
        self.scopes[-1].append(Var(name, dtype, shape, True))
        return name
