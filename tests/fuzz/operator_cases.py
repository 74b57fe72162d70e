"""One test of one operator: operands, settings and how both are written in source.

A case is a few statements of a graph: inputs, perhaps views of them, `op`, an output.  Many cases
make one graph, so that parser, checker and lowering see every operator as a user would write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from oic.dtypes import Array, DType
from oic.ir import dims
from oic.ir.core import REGISTRY, Value
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.types import INDEX, TensorType
from oic.operators.base import Operator, by_name, positional
from tests.fuzz.values import drawn, mixed

EXTENT = "N"
MAXIMUM = 70
N = dims.of(Extent(EXTENT, MAXIMUM))
UNKNOWN = dims.of(Extent("?", MAXIMUM))  # as it is declared, where only the program knows
SIZES = (0, 1, 5, 67)  # of the extent, a step each; 0 only where the operator takes nothing
LAYOUTS = ("dense", "transposed", "sliced", "stepped")


@dataclass(frozen=True)
class Given:
    """One operand.

    layout   how it lies: 'dense'; 'transposed', 'sliced' or 'stepped' as a view of an input
    data     how its values are drawn: see `values.drawn`
    """

    dtype: DType
    shape: tuple[Dim, ...]
    data: str = "plain"
    layout: str = "dense"

    def input_shape(self) -> tuple[Dim, ...]:
        """The shape of the input that it is a view of."""
        match self.layout:
            case "transposed":
                return (*self.shape[:-2], self.shape[-1], self.shape[-2])
            case "sliced":
                return (*self.shape[:-1], self.shape[-1] + 5)
            case "stepped":
                return (*self.shape[:-1], 2 * self.shape[-1] + 1)
        return self.shape

    def view(self, name: str) -> str:
        """The statement that makes the view `{name}v` of the input `name`."""
        rank, last = len(self.shape), self.shape[-1] if self.shape else 0
        match self.layout:
            case "transposed":
                perm = [*range(rank - 2), rank - 1, rank - 2]
                return f"op transpose({name}, perm={perm}) >> {name}v;"
            case "sliced":
                return f"op slice({name}, axis=-1, start=3, end={last + 3}) >> {name}v;"
            case "stepped":
                return f"op slice({name}, axis=-1, start=1, end={2 * last + 1}, step=2) >> {name}v;"
        return ""

    def seen(self, array: Array) -> Array:
        """The operand in the input's values."""
        match self.layout:
            case "transposed":
                return array.swapaxes(-1, -2)
            case "sliced":
                return array[..., 3:-2]
            case "stepped":
                return array[..., 1::2]
        return array


@dataclass(frozen=True)
class Variable:
    """A setting that is a variable, read at run time: a scalar, or `value`, `value + 1`, … in a shape."""

    dtype: DType
    value: Any
    shape: tuple[Dim, ...] = ()

    def array(self, size: int) -> Array:
        """What the input holds."""
        shape = tuple(dims.evaluate(d, {EXTENT: size}) for d in self.shape)
        count = int(np.prod(shape, dtype=np.int64))
        return (np.asarray(self.value) + np.arange(count)).astype(self.dtype.np).reshape(shape)

    def held(self) -> Value:
        """As an operator takes it."""
        scalar = self.dtype.is_int and not self.shape
        return Value(INDEX if scalar else TensorType(self.dtype, self.shape))


@dataclass(frozen=True, eq=False)
class Case:
    """One operator on some operands.

    row       element type under which the case is counted
    label     the shape class, or what else is special about it
    given     operands by field name; a list for the remaining ones
    settings  by name: plain values, sizes (`N` and expressions of it), or `Variable`
    inplace   written over its first operand, which is a copy of an input
    """

    op: str
    row: DType
    label: str
    given: dict[str, Given | list[Given]]
    settings: dict[str, Any] = field(default_factory=dict)
    inplace: bool = False

    def __str__(self) -> str:
        types = ", ".join(f"{k}: {typed(g)}" for k, g in self.operands())
        more = "".join(f", {k}={literal(v)}" for k, v in self.settings.items())
        return f"{self.op}({types}{more}) [{self.label}]"

    def operands(self) -> list[tuple[str, Given]]:
        """Every operand with the name of its field."""
        found: list[tuple[str, Given]] = []
        for name, part in self.given.items():
            found += [(name, g) for g in part] if isinstance(part, list) else [(name, part)]
        return found

    @property
    def variables(self) -> list[tuple[str, Variable]]:
        """The settings that are read at run time."""
        return [(k, v) for k, v in self.settings.items() if isinstance(v, Variable)]

    @cached_property
    def dynamic(self) -> bool:
        """Some size is an extent."""
        shapes = [g.shape for _, g in self.operands()] + [v.shape for _, v in self.variables]
        return any(isinstance(d, Expr) for shape in shapes for d in shape) or any(
            isinstance(v, Expr) or (isinstance(v, list) and any(isinstance(i, Expr) for i in v))
            for v in self.settings.values()
        )

    @cached_property
    def symbolic(self) -> Operator:
        """The operator on values of these types.  Raises OpError."""
        settings = {
            k: v.held() if isinstance(v, Variable) else v for k, v in self.settings.items()
        }
        if self.op == "slice" and self.variables:
            settings["size"] = UNKNOWN
        return self._made(lambda g: g.shape, settings)

    def concrete(self, size: int) -> Operator:
        """The same with an extent's value: what reference and tolerance are computed with."""
        settings = {k: plain(v, size) for k, v in self.settings.items()}
        return self._made(lambda g: tuple(dims.evaluate(d, {EXTENT: size}) for d in g.shape), settings)

    def _made(self, shape: Any, settings: dict[str, Any]) -> Operator:
        given: dict[str, Any] = {
            name: [Value(TensorType(g.dtype, shape(g))) for g in part]
            if isinstance(part, list)
            else Value(TensorType(part.dtype, shape(part)))
            for name, part in self.given.items()
        }
        cls = REGISTRY[self.op]
        fields: dict[str, str] = getattr(cls, "renamed", {})
        op = cls(**given, **{fields.get(k, k): v for k, v in settings.items()})
        assert isinstance(op, Operator)
        return op

    # -- source

    def source(self, number: int) -> Source:
        """Declarations and statements; every name ends in the number."""
        made = Source()
        names: dict[str, list[str]] = {}
        for at, (key, given) in enumerate(self.operands()):
            name = f"x{at}_{number}"
            made.dynamic.append(f"{name}: {declared(given.dtype, given.input_shape())};")
            if given.layout != "dense":
                made.body.append(f"assign {name}v: {declared(given.dtype, given.shape)};")
                made.body.append(given.view(name))
                name += "v"
            names.setdefault(key, []).append(name)
        for key, variable in self.variables:
            made.dynamic.append(f"{key}_{number}: {declared(variable.dtype, variable.shape)};")
        results = self.symbolic.results
        outputs = [f"y{i}_{number}" for i in range(len(results))]
        for name, value in zip(outputs, results, strict=True):
            made.volatile.append(f"{name}: {declared(value.dtype, value.shape)};")
        made.body += self._statements(names, outputs, number)
        return made

    def _statements(self, names: dict[str, list[str]], outputs: list[str], number: int) -> list[str]:
        cls = REGISTRY[self.op]
        first = next(iter(names), "")
        lines: list[str] = []
        if self.inplace:
            type_ = declared(*self._first())
            lines += [f"assign t{number}: {type_};", f"op {_COPY}({names[first][0]}, axes=[]) >> t{number};"]
            names = {**names, first: [f"t{number}", *names[first][1:]]}
        words = [n for key in positional(cls) for n in names.get(key, [])]
        words += [f"{key}={names[key][0]}" for key in by_name(cls) if key in names]
        words += [
            f"{k}={f'{k}_{number}' if isinstance(v, Variable) else literal(v)}"
            for k, v in self.settings.items()
        ]
        call = f"op {self.op}({', '.join(words)})"
        if not self.inplace:
            return [*lines, f"{call} >> {', '.join(outputs)};"]
        return [*lines, f"{call} >> t{number};", f"transfer t{number} >> {outputs[0]};"]

    def _first(self) -> tuple[DType, tuple[Dim, ...]]:
        given = self.operands()[0][1]
        return given.dtype, given.shape

    # -- values

    def arrays(self, number: int, size: int, rng: np.random.Generator) -> dict[str, Array]:
        """Inputs of a step, by name."""
        operands = self.operands()
        found: dict[str, Array] = {}
        whole = self._combined(rng) if operands and operands[0][1].data == "mixed" else None
        for at, (_, given) in enumerate(operands):
            shape = tuple(dims.evaluate(d, {EXTENT: size}) for d in given.input_shape())
            if whole is not None:
                found[f"x{at}_{number}"] = whole[at]
            else:
                found[f"x{at}_{number}"] = drawn(given.data, given.dtype, shape, rng)
        for key, variable in self.variables:
            found[f"{key}_{number}"] = variable.array(size)
        return found

    def _combined(self, rng: np.random.Generator) -> list[Array]:
        """Combinations of special values, one axis long."""
        given = [g for _, g in self.operands()]
        count = dims.maximum(given[0].shape[0])
        most = count - min(300, count // 3)
        arrays = mixed([g.dtype for g in given], rng, count, most)
        return [a[:count] for a in arrays]

    def seen(self, number: int, inputs: dict[str, Array]) -> dict[str, Any]:
        """The operands by field, in an operator's inputs."""
        found: dict[str, Any] = {}
        for at, (key, given) in enumerate(self.operands()):
            array = given.seen(inputs[f"x{at}_{number}"])
            if isinstance(self.given[key], list):
                found.setdefault(key, []).append(array)
            else:
                found[key] = array
        return found


_COPY = "flip"  # an operator that moves nothing and is no view


@dataclass
class Source:
    """The parts of a graph that one case contributes."""

    dynamic: list[str] = field(default_factory=list)
    volatile: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)


def graph(name: str, cases: Sequence[Case]) -> str:
    """The source of a graph that runs these cases one after another."""
    parts = [case.source(i) for i, case in enumerate(cases)]
    dynamic = [line for p in parts for line in p.dynamic]
    if any(case.dynamic for case in cases):
        dynamic.insert(0, f"extent: u8[{EXTENT}] @max({EXTENT}={MAXIMUM});")
    sections = [("dynamic", dynamic), ("volatile", [line for p in parts for line in p.volatile])]
    text = [f"graph {name} {{"]
    for section, lines in sections:
        text += [f"  {section} {{", *(f"    {line}" for line in lines), "  }"]
    text.append("  block entry {")
    if any(case.dynamic for case in cases):
        text += [f"    assign extent_seen: u8[{EXTENT}];", "    transfer extent >> extent_seen;"]
    for case, part in zip(cases, parts, strict=True):
        text += [f"    // {case}", *(f"    {line}" for line in part.body)]
    return "\n".join([*text, "    return;", "  }", "}", ""])


def declared(dtype: DType, shape: Sequence[Dim]) -> str:
    """A type in a declaration."""
    return f"{dtype}[{', '.join(map(str, shape))}]" if shape else str(dtype)


def typed(given: Given) -> str:
    """A type and how the operand lies, for people."""
    more = "" if given.layout == "dense" else f" {given.layout}"
    return declared(given.dtype, given.shape) + more


def literal(value: Any) -> str:
    """A setting in source."""
    match value:
        case Variable():
            return f"{declared(value.dtype, value.shape)} variable {value.value}"
        case bool():
            return "true" if value else "false"
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case str():
            return f'"{value}"'
        case float():
            return repr(value)
    return str(value)


def plain(value: Any, size: int) -> Any:
    """A setting as a plain number."""
    match value:
        case Variable():
            return value.array(size) if value.shape else value.value
        case Expr():
            return dims.evaluate(value, {EXTENT: size})
        case list():
            return [plain(item, size) for item in value]
    return value
