"""The element types that operators take, found by asking their type rules about their own examples."""

from __future__ import annotations

import json
import re
from typing import Any

from oic import dtypes
from oic.dtypes import ALL, DType
from oic.ir.core import OpError, Value
from oic.ir.types import TensorType
from oic.operators.base import Operator, by_name, from_source, parse_example, positional

SETTING = re.compile(r"(\w+)=(\[[^\]]*\]|\w+\[[^\]]*\]|[^,]+)")


def accepted(cls: type[Operator]) -> frozenset[DType]:
    """What the first operand may be whose dtype is not its own (of `iota` the result)."""
    return frozenset(d for d in ALL.values() if any(_takes(cls, e, d) for e in cls.examples))


def _takes(cls: type[Operator], example: tuple[str, ...], dtype: DType) -> bool:
    """The type rule accepts an example in which every operand of that one's dtype has another."""
    operands = [parse_example(p) for p in example if "=" not in p]
    given = dict(SETTING.findall(", ".join(p for p in example if "=" in p)))
    names = positional(cls)
    asked = next((o.dtype for o, name in zip(operands, names) if name not in cls.own), dtypes.i32)

    def value(type_: TensorType) -> Value:
        return Value(TensorType(dtype if type_.dtype is asked else type_.dtype, type_.shape))

    named: dict[str, Any] = {k: value(parse_example(t)) for k, t in given.items() if k in by_name(cls)}
    settings = {from_source(cls, k): _setting(t) for k, t in given.items() if k not in named}
    if not operands and dtype is not asked:
        return False
    values = [value(o) for o in operands]
    rest = names and cls.fields[names[-1]].kind == "rest"
    fixed: dict[str, Any] = dict(zip(names, [*values[: len(names) - 1], values[len(names) - 1 :]] if rest else values))
    try:
        return bool(cls(**fixed, **named, **settings).results)
    except OpError:
        return False


def _setting(text: str) -> Any:
    """A setting as source has it: a number, a list, a word, an element type."""
    if text in ALL:
        return ALL[text]
    if text.lstrip("-") in ("inf", "nan"):
        return float(text)
    try:
        return json.loads(text)
    except ValueError:
        return text
