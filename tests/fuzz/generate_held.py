"""Matrices that wait: values of many sizes, each in memory of its own, read again far from where they were made.

What the other statements compute is mostly small, fused or written in place, so that memory planning
has little to do.  Here kernels, which never write over what they read, make matrices from matrices
made before; some are read at once, some at the end of the block, many are live together.  All that is
made is summed into an output in the end, so that nothing is dead.  Other statements do not see them:
rounding of large products would show there as other integers.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.generate_ops import Operators
from tests.fuzz.pool import Shape, Var, shaped

EXTENTS = (1, 2, 3, 5, 8, 12, 16, 17, 24, 31, 32, 48, 63, 64, 96)
LARGEST = 6144  # elements of a matrix


class Held(Operators):
    """Statements that make and read such matrices; the caller ends every scope with `release_all`."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.held: list[list[Var]] = []  # by scope, what has not been read for the last time
        self.sums: dict[str, str] = {}  # the output of a dtype that everything is added to
        self.weights: list[Var] = []
        self.sources: list[Var] = []

    def declare_held(self, sections: dict[str, list[str]]) -> None:
        """Inputs, weights and outputs of these statements, in the sections of the graph."""
        r = self.r
        for dtype in ("f32", "i32", "f16"):
            self.sums[dtype] = self.fresh("sum")
            sections["volatile"].append(f"{self.sums[dtype]}: {dtype};")
            name, shape = self.fresh("x"), self._matrix()
            sections["dynamic"].append(f"{name}: {shaped(dtype, shape)};")
            self.sources.append(Var(name, dtype, shape, False))
        for _ in range(6):
            weight = Var(self.fresh("w"), "f32", (r.choice(EXTENTS), r.choice(EXTENTS)), False)
            sections["constant"].append(f"{weight.name}: {shaped('f32', weight.shape)};")
            self.weights.append(weight)

    def _matrix(self) -> Shape:
        while True:
            a, b = self.r.choice(EXTENTS), self.r.choice(EXTENTS)
            if a * b <= LARGEST:
                return a, b

    def start_sums(self) -> None:
        """The sums of an entry are nothing at first."""
        for dtype, name in self.sums.items():
            self.emit(f"op fill({name}, value={'0' if dtype[0] == 'i' else '0.0'}) >> {name};")

    def hold(self) -> None:
        """A new matrix, from one that is held or an input."""
        r = self.r
        known = [v for scope in self.held for v in scope]
        source = r.choice(known) if known and r.random() < 0.7 else r.choice(self.sources)
        kinds: list[Callable[[Var], None]] = [self._moved, self._moved, self._grown, self._tiled]
        if source.dtype != "i32":
            kinds += [self._row_wise]
        if source.dtype == "f32":
            kinds += [self._multiplied] * 3
        r.choice(kinds)(source)
        if source in self.held[-1] and r.random() < 0.45:
            self.held[-1].remove(source)

    def _made(self, call: str, dtype: str, shape: Shape) -> Var:
        var = Var(self.fresh("h"), dtype, shape, False)
        self.emit(f"assign {var.name}: {shaped(dtype, shape)};")
        self.emit(f"op {call} >> {var.name};")
        self.held[-1].append(var)
        return var

    def _moved(self, x: Var) -> None:
        axis = self.r.randrange(2)
        self._made(f"flip({x.name}, axes=[{axis}])", x.dtype, x.shape)

    def _grown(self, x: Var) -> None:
        rows, columns = _extents(x)
        alike = [v for scope in self.held for v in scope if v.dtype == x.dtype and v.shape[1] == columns]
        other = self.r.choice(alike) if alike else x
        total = rows + _extents(other)[0]
        if total * columns <= LARGEST:
            self._made(f"concat({x.name}, {other.name}, axis=0)", x.dtype, (total, columns))

    def _tiled(self, x: Var) -> None:
        """As many rows or columns as another extent, from the first ones, over and over."""
        rows, columns = _extents(x)
        times, keep = self.r.choice(((2, rows), (3, rows), (1, (rows + 1) // 2), (2, (rows + 2) // 3)))
        if times * keep * columns > LARGEST:
            times, keep = 1, (rows + 2) // 3
        part = self.fresh("s")
        self.emit(f"assign {part}: {shaped(x.dtype, (keep, columns))};")
        self.emit(f"op slice({x.name}, axis=0, start=0, end={keep}) >> {part};")
        self._made(f"repeat({part}, times={times}, axis=0)", x.dtype, (times * keep, columns))

    def _row_wise(self, x: Var) -> None:
        axis = self.r.randrange(2)
        self._made(f"softmax({x.name}, axis={axis})", x.dtype, x.shape)

    def _multiplied(self, x: Var) -> None:
        """By a weight, through one more product where the extents differ; kept small by tanh."""
        rows, columns = _extents(x)
        fitting = [w for w in self.weights if w.shape[0] == columns]
        if fitting:
            w = self.r.choice(fitting)
            made = self._made(f"matmul({x.name}, {w.name})", "f32", (rows, _extents(w)[1]))
        else:
            made = self._made(f"matmul({x.name}, {x.name}, transpose_b=true)", "f32", (rows, rows))
        self.emit(f"op tanh({made.name}) >> {made.name};")

    def release(self) -> None:
        """Read something for the last time: the oldest, the newest, or any."""
        if not self.held[-1]:
            return
        at = self.r.choice((0, -1, self.r.randrange(len(self.held[-1]))))
        self._add(self.held[-1].pop(at))

    def release_all(self) -> None:
        """Before a scope ends, in any order."""
        self.r.shuffle(self.held[-1])
        for var in self.held[-1]:
            self._add(var)
        self.held[-1].clear()

    def _add(self, x: Var) -> None:
        total = self.sums[x.dtype]
        part = self.fresh("s")
        name = "sum" if x.dtype == "i32" else "mean"
        self.emit(f"assign {part}: {x.dtype};")
        self.emit(f"op {name}_axis({x.name}, axes=[0, 1]) >> {part};")
        self.emit(f"op add({total}, {part}) >> {total};")


def _extents(x: Var) -> tuple[int, int]:
    rows, columns = x.shape
    assert isinstance(rows, int) and isinstance(columns, int)
    return rows, columns
