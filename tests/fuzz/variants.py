"""Every way to apply an operator that its own class admits: its examples, retyped and resized.

    linear: ("f32[3, 17]", "f32[5, 17]")   =>   f16[3, 17], f16[5, 17];   f32[N, 300], f32[5, 300]; ...

The element type of the first operand is replaced by any other, wherever it occurs; a size by another,
wherever it occurs, in settings too.  `infer`, the operator's type rule, decides which of that is legal
and gives the results' types.  So an operator added to the catalog is applied without being named here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from oic.dtypes import ALL, DType
from oic.ir import dims
from oic.ir.core import OpError, Value
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.types import TensorType
from oic.operators import catalog
from oic.operators.base import Operator, by_name, positional
from tests.fuzz.operator_cases import literal
from tests.fuzz.operator_shapes import parsed, tensor_type

LARGEST_EXTENT = 4
N = dims.of(Extent("N", LARGEST_EXTENT))
LONG = (257, 300, 515)  # beyond the length after which sums are made of parts, and no multiple of a vector
SIZES = (1, 2, 3, 4, 5, 6, 8)
Types = dict[str, list[TensorType]]  # by operand field, in order; several for the remaining ones


@dataclass(frozen=True)
class Variant:
    """An operator on operands of these types.

    operands   by field name: those by position first, in order
    settings   by name, as in source but parsed
    results    what `infer` gives
    """

    cls: type[Operator]
    operands: Types
    settings: dict[str, Any]
    results: tuple[TensorType, ...]

    @property
    def dtype(self) -> DType:
        """The element type under which the operator is counted."""
        values = [t for types in self.operands.values() for t in types]
        row = values[1 if self.cls.name == "where" else 0] if values else self.results[0]
        return row.dtype

    def call(self, names: dict[str, list[str]]) -> str:
        """The call in source, operands by these names."""
        words = [n for key in positional(self.cls) for n in names.get(key, [])]
        words += [f"{key}={names[key][0]}" for key in by_name(self.cls) if key in names]
        words += [f"{key}={literal(value)}" for key, value in self.settings.items()]
        return f"{self.cls.name}({', '.join(words)})"


def operator(cls: type[Operator], operands: Types, settings: dict[str, Any]) -> Operator | None:
    """The operator on values of these types; None if its type rule refuses them."""
    given: dict[str, Any] = {}
    for key, types in operands.items():
        values = [Value(t) for t in types]
        given[key] = values if cls.fields[key].kind == "rest" else values[0]
    renamed: dict[str, str] = getattr(cls, "renamed", {})
    try:
        made = cls(**given, **{renamed.get(k, k): v for k, v in settings.items()})
    except (OpError, ValueError):
        return None
    if any(t.dtype.packed and not t.shape for t in [v.tensor for v in (*made.operands, *made.results)]):
        return None  # no variable can be declared for it (SPEC, section 2)
    return made


def variant(cls: type[Operator], operands: Types, settings: dict[str, Any]) -> Variant | None:
    """The application, if it is legal and every size of its results is linear in N."""
    made = operator(cls, operands, settings)
    if made is None or any(linear(d) is None for v in made.results for d in v.shape):
        return None
    return Variant(cls, operands, settings, tuple(v.tensor for v in made.results))


def linear(size: Dim) -> tuple[int, int] | int | None:
    """A size as a number, or as (a, b) for a·N + b; None for any other."""
    if isinstance(size, int):
        return size
    zero, one, two = (dims.evaluate(size, {"N": n}) for n in (0, 1, 2))
    if {e.name for e in dims.extents([size])} != {"N"} or two - one != one - zero or one - zero < 1 or zero < 0:
        return None
    return one - zero, zero


# ---------------------------------------------------------------- examples


@cache
def examples(name: str) -> tuple[Variant, ...]:
    """The examples of an operator's class."""
    cls = catalog()[name]
    return tuple(v for e in cls.examples if (v := _example(cls, (e,) if isinstance(e, str) else e)))


def _example(cls: type[Operator], parts: tuple[str, ...]) -> Variant | None:
    operands: Types = {}
    names = positional(cls)
    texts = [p for p in parts if "=" not in p]
    for at, text in enumerate(texts):
        key = names[min(at, len(names) - 1)]
        operands.setdefault(key, []).append(tensor_type(text))
    words = ", ".join(p for p in parts if "=" in p)
    for key in by_name(cls):
        found = re.search(rf"\b{key}=(\w+(?:\[[^\]]*\])?)", words)
        if found and re.match(r"[a-z]+\d*(\[|$)", found[1]):
            operands[key] = [tensor_type(found[1])]
            words = words.replace(found[0], "")
    settings = ", ".join(w.strip() for w in re.split(r",(?![^\[]*\])", words) if w.strip())
    return variant(cls, operands, parsed(settings))


@cache
def retyped(name: str) -> dict[DType, tuple[Variant, ...]]:
    """The examples of an operator for every element type that it takes."""
    found: dict[DType, dict[str, Variant]] = {}
    for example in examples(name):
        for dtype in ALL.values():
            for made in _for_type(example, dtype):
                found.setdefault(made.dtype, {}).setdefault(str(made), made)
    return {dtype: tuple(made.values()) for dtype, made in found.items()}


def _for_type(example: Variant, dtype: DType) -> Iterator[Variant]:
    """The example with the type of its row replaced; of its other operands, too, where they share it."""
    old = example.dtype
    for settings in _casts(example, dtype):
        operands = {
            k: [TensorType(dtype if t.dtype is old else t.dtype, t.shape) for t in types]
            for k, types in example.operands.items()
        }
        made = variant(example.cls, operands, settings)
        if made is not None:
            yield made


def _casts(example: Variant, dtype: DType) -> Iterator[dict[str, Any]]:
    """The settings, and with any other element type that they name."""
    yield example.settings
    if example is not examples(example.cls.name)[0]:
        return
    for key, value in example.settings.items():
        if isinstance(value, DType):
            for other in ALL.values():
                yield {**example.settings, key: other}
                if example.cls.name == "cast":
                    yield {**example.settings, key: other, "saturate": False}


# ---------------------------------------------------------------- sizes


def resized(made: Variant, r: random.Random, *, extents: bool) -> Variant:
    """The variant with some of its sizes others: small, long, or N.  What is not legal stays as it is."""
    sizes = sorted({d for types in made.operands.values() for t in types for d in t.shape if isinstance(d, int)})
    for size in r.sample(sizes, min(len(sizes), r.choice((0, 1, 1, 2)))):
        kind = r.random()
        to: Dim = r.choice(SIZES)
        if kind < 0.3 and extents:
            to = N
        elif kind < 0.42:
            to = r.choice(LONG)
        other = _replaced(made, size, to)
        if other is not None and elements(other) < 6000:
            made = other
    return made


def elements(made: Variant) -> int:
    """Of the largest operand or result, at most."""
    types = [t for part in made.operands.values() for t in part]
    return max(dims.maximum(dims.product(t.shape)) for t in [*types, *made.results])


def _replaced(made: Variant, old: int, new: Dim) -> Variant | None:
    def size(d: Any) -> Any:
        return new if isinstance(d, int) and not isinstance(d, bool) and d == old else d

    operands = {
        k: [TensorType(t.dtype, tuple(size(d) for d in t.shape)) for t in types]
        for k, types in made.operands.items()
    }
    inside = {k: [size(d) for d in v] if isinstance(v, list) else v for k, v in made.settings.items()}
    whole = variant(made.cls, operands, made.settings)
    return whole or variant(made.cls, operands, inside)


def shaped(type_: TensorType) -> tuple[Any, ...]:
    """A shape as the generator has them: numbers, and (a, b) for a·N + b."""
    found = []
    for d in type_.shape:
        size = linear(d)
        assert size is not None
        found.append(size)
    return tuple(found)


def of_shape(dtype: DType, shape: tuple[Any, ...]) -> TensorType | None:
    """The type of a generator's variable; None where only the run tells its sizes."""
    sizes: list[Dim] = []
    for d in shape:
        if isinstance(d, str):
            return None
        sizes.append(d if isinstance(d, int) else N * d[0] + d[1] if isinstance(N, Expr) else 0)
    return TensorType(dtype, tuple(sizes))


# ---------------------------------------------------------------- elementwise operators


@cache
def elementwise(dtype: DType) -> tuple[Variant, ...]:
    """Applications of elementwise operators whose row has a type: shapes are for the caller to choose."""
    return tuple(
        made
        for name, cls in catalog().items()
        if cls.elementwise
        for made in retyped(name).get(dtype, ())
    )


def reshaped(made: Variant, types: Types) -> Variant | None:
    """An elementwise operator on operands of the same element types and of other shapes."""
    return variant(made.cls, types, made.settings)
