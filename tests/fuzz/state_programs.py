"""Graphs that hold every kind of state, each with every bound and several element types, and steps on them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from oic import dtypes
from oic.check.source import parse
from oic.driver import Program, Settings, compile_graph
from oic.dtypes import Array, DType
from oic.session.executor import Executor

# What is declared of a variable S of element type D; {t} becomes the bound of the growing index t.
KINDS = {
    "plain": "S: D[3]",
    "fixed": "S(t): D[3] @table @fixed(t=6)",
    "table": "S(t): D[3] @table {t}",
    "rows": "S(l, t): D[3] @table @fixed(l=2{, t})",
    "ring": "S(t): D[3] @table @fixed(t=3) @ring(t)",
    "rings": "S(u, t): D[3] @table @fixed(u=2, t=3) @ring(t)",
    "vector": "S(r): D[3] @auto_dim(r) {r}",
    "matrix": "S(r, c): D[1, 2] @auto_dim(r, c) {r, c}",
    "matrices": "S(l, r, c): D[1, 2] @table @auto_dim(r, c) @fixed(l=2{, r, c})",
}
BOUNDS = ("fixed", "given", "open")  # by the graph, by a setting, by nothing
MOST = {"t": 5, "r": 4, "c": 4}
TYPES = (
    ("f32", None), ("f32", "0.5"), ("i4", None), ("i4", "-3"), ("f16", "-1.0"), ("t1", None), ("u64", "7"),
)  # fmt: skip
# A write, a read and a reset of each kind; those that take an index forget a part.
ACCESSES = {
    "plain": ("write v >> S", "read S >> got", "reset S"),
    "table": ("write v >> S[i]", "read S[0..1] >> got", "reset S[i]"),
    "rows": ("write v >> S[l, i]", "read S[l] >> got", "reset S[l]"),
    "ring": ("write v >> S[i]", "read S[] >> got", "reset S"),
    "rings": ("write v >> S[l, i]", "read S[l] >> got", "reset S[l]"),
    "vector": ("write w >> S[i]", "read S[j] >> got", "reset S"),
    "matrix": ("write m >> S[i, j]", "read S[j, i] >> got", "reset S"),
    "matrices": ("write m >> S[l, i, j]", "read S[l, j] >> got", "reset S[l]"),
}
ACCESSES["fixed"] = ACCESSES["table"]
DOES = ("put", "see", "forget")


@dataclass(frozen=True)
class Stateful:
    """A graph whose variables are named KIND or KIND_BOUND, its entries put_NAME, see_NAME and forget_NAME.

    types   element type of every variable
    """

    program: Program
    types: dict[str, DType]

    @property
    def entries(self) -> list[str]:
        return [f"{does}_{name}" for does in DOES for name in self.types]

    def step(self, shapes: Executor, rng: np.random.Generator, number: int) -> tuple[str, dict[str, Any]]:
        """A random entry and inputs that mostly fit.

        shapes   a session that has the state
        number   that of the step: positions in rings grow with it
        """
        does = str(rng.choice(DOES, p=(0.6, 0.2, 0.2)))
        name = str(rng.choice(list(self.types)))
        kind, dtype = name.partition("_")[0], self.types[name]
        i, j, which = (int(n) for n in rng.integers([5, 5, 2]))
        i = number if kind in ("ring", "rings") else i
        given: dict[str, Any] = {"i": np.int32(i), "j": np.int32(j), "l": np.int32(which)}
        now = shapes.fetch(name).shape
        if kind == "vector" and does == "put":
            given[f"w_{dtype}"] = _values(dtype, (max(now[0], 3 + i),), rng)
        if kind in ("matrix", "matrices") and does == "put":
            given[f"m_{dtype}"] = _values(dtype, (max(now[-2], 1 + i), max(now[-1], 2 + j)), rng)
        given[f"v_{dtype}"] = _values(dtype, (3,), rng)
        entry = f"{does}_{name}"
        taken = shapes.interface.entries[entry].inputs
        return entry, {n: a for n, a in given.items() if n in taken}


def stateful(number: int, bounds: Collection[str] = BOUNDS) -> Stateful:
    """The graph of a number: in another one a variable has another element type."""
    variables = list(_variables(bounds))
    drawn = {name: TYPES[(i + number * 2) % len(TYPES)] for i, (name, _, _) in enumerate(variables)}
    declared: list[str] = []
    blocks: list[str] = []
    for name, kind, text in variables:
        dtype, init = drawn[name]
        started = "" if init is None else f" @init({init})"
        declared.append(text.replace("S", name, 1).replace("D", dtype, 1) + started + ";")
        blocks += _blocks(name, kind, dtype)
    inputs = [
        f"v_{d}: {d}[3]; w_{d}: {d}[A_{d}] @max(A_{d}=7); m_{d}: {d}[R_{d}, C_{d}] @max(R_{d}=5, C_{d}=6);"
        for d in dict.fromkeys(dtype for dtype, _ in TYPES)
    ]
    head = ["dynamic {", "i: i32; j: i32; l: i32;", *inputs, "}", "persistent {", *declared, "}"]
    source = "\n".join([*head, "block entry { return; }", *blocks])
    capacity = {
        f"{name}.{index}": MOST[index]
        for name, kind, _ in variables
        for index in re.findall(r"\w+", KINDS[kind].partition("{")[2])
        if name.endswith("_given")
    }
    program = compile_graph(parse(source, f"stateful_{number}.oi"), None, Settings(capacity=capacity))
    return Stateful(program, {name: dtypes.ALL[dtype] for name, (dtype, _) in drawn.items()})


def _variables(bounds: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """(name, kind, declaration) of every kind with every bound that it can have."""
    for kind, text in KINDS.items():
        head, brace, rest = text.partition("{")
        if not brace:
            yield kind, kind, text
            continue
        names, _, tail = rest.partition("}")
        fixed = ", ".join(f"{n}={MOST[n]}" for n in re.findall(r"\w+", names))
        for bound in bounds:
            inside = fixed if bound == "fixed" else ""
            if names.startswith(","):
                given = f", {inside}" if inside else ""
            else:
                given = f"@fixed({inside})" if inside else ""
            yield f"{kind}_{bound}", kind, f"{head}{given}{tail}"


def _blocks(name: str, kind: str, dtype: str) -> Iterator[str]:
    """Entries that write, read and forget one variable."""
    rank = 1 if kind in ("plain", "vector") else 2
    declared = f"assign got: {dtype}[{', '.join('?' * rank)}];"
    for does, access in zip(DOES, ACCESSES[kind], strict=True):
        access = re.sub(r"^write (\w)", rf"write \1_{dtype}", access.replace("S", name))
        yield f"block {does}_{name} @entry {{ {declared if does == 'see' else ''} cache.{access}; return; }}"


def _values(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    drawn = rng.integers(-4 if dtype.is_float or dtype.low < 0 else 0, 4, shape)
    return dtypes.store(np.where(drawn == 0, 1, drawn), dtype)
