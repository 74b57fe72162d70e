"""The cases of every operator: its own examples, and element types × shape classes × settings.

An elementwise operator is tried on every shape class by one rule.  The others each have a few
*forms*, `"T[3, 17]"` and the like, in which `T` is the element type; the first is also
tried with every operand lying as a view, and in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from oic import dtypes
from oic.dtypes import ALL, DType
from oic.ir.core import Op, OpError
from oic.ir.dims import Dim
from oic.ir.types import TensorType
from oic.operators import catalog
from oic.operators.base import Operator, by_name, positional
from tests.fuzz.operator_cases import EXTENT, Case, Given, N, Variable
from tests.fuzz.operator_catalog import EVERY

RANGED = "range"  # what the bounds of OPS, of numbers in the range of f32, say nothing of
LONG = 1037  # crosses the tail of every vector width, and the blocks of the reductions


def variable(dtype: DType, value: Any, shape: list[Dim]) -> Variable:
    """A setting that is a variable of several elements."""
    return Variable(dtype, value, tuple(shape))


NUMBERS = {"inf": float("inf"), "nan": float("nan"), EXTENT: N}
NAMES: dict[str, Any] = {"true": True, "false": False, "variable": variable, **NUMBERS, **ALL}


@dataclass(frozen=True)
class Form:
    """Operand types with `T` for the element type, settings as in source, a label.

    types   one operand each; `key=type` for one given by name
    only    element types it is for; None: all the operator takes
    """

    label: str
    types: tuple[str, ...]
    settings: str = ""
    only: frozenset[DType] | None = None
    data: str = "plain"


def form(label: str, types: str, settings: str = "", only: Any = None, data: str = "plain") -> Form:
    """A form whose operand types are one text, separated by semicolons."""
    found = tuple(t.strip() for t in types.split(";") if t.strip())
    return Form(label, found, settings, None if only is None else frozenset(only), data)


def probes(cls: type[Operator], dtype: DType) -> Iterator[Case]:
    """The plainest cases of an operator for an element type, whether it takes it or not."""
    if cls.elementwise and cls.name not in FORMS:
        yield from (elementwise(cls, dtype, "one", (1,), s) for s in settings_of(cls.name, dtype))
        return
    for each in FORMS.get(cls.name, ()):
        if each.only is None or dtype in each.only:
            yield made(cls, dtype, each)


def _fits(case: Case) -> bool:
    try:
        return bool(case.symbolic.results)
    except OpError:
        return False


def cases(cls: type[Operator]) -> list[Case]:
    """Every case of an operator, its own examples included."""
    found = [c for d in sorted(cls.allowed, key=lambda d: list(ALL).index(d.name)) for c in _of(cls, d)]
    found += list(examples(cls))
    return [c for c in found if _fits(c) and not _packed_scalar(c)]


def _packed_scalar(case: Case) -> bool:
    """A result that no declaration can hold (SPEC, section 2)."""
    return any(v.dtype.packed and v.tensor.rank == 0 for v in case.symbolic.results)


def _of(cls: type[Operator], dtype: DType) -> Iterator[Case]:
    if cls.elementwise and cls.name not in FORMS:
        yield from _elementwise(cls, dtype)
        return
    forms = [f for f in FORMS.get(cls.name, ()) if f.only is None or dtype in f.only]
    for each in forms:
        yield made(cls, dtype, each)
        if dtype.is_float and (each is forms[0] or dtype is dtypes.f32):
            yield ranged(made(cls, dtype, each))
    if not forms:
        return
    first = made(cls, dtype, forms[0])
    yield from _views(first)
    if getattr(cls, "inplace", ()) and not _refused_in_place(first):
        yield replace(first, label="inplace", inplace=True)
    yield from run_time(first)


def ranged(case: Case) -> Case:
    """The case with rows of numbers of every magnitude, each operand."""

    def one(given: Given) -> Given:
        return replace(given, data="ranged") if given.dtype.is_float and given.data != "unit" else given

    given = {k: [*map(one, p)] if isinstance(p, list) else one(p) for k, p in case.given.items()}
    return replace(case, label=RANGED, given=given)


def _refused_in_place(case: Case) -> bool:
    """The result is not of the type of the first operand."""
    op = case.symbolic
    return op.results[0].type != op.operands[0].type


def _views(case: Case) -> Iterator[Case]:
    """The case with its operands of two and more axes as views, all of them in each layout."""
    for layout in ("transposed", "sliced", "stepped"):
        least = 2 if layout == "transposed" else 1
        given = {
            k: [_laid(g, layout, least) for g in p] if isinstance(p, list) else _laid(p, layout, least)
            for k, p in case.given.items()
        }
        other = replace(case, label=layout, given=given)
        if any(g.layout != "dense" for _, g in other.operands()):
            yield other


def _laid(given: Given, layout: str, least: int) -> Given:
    return replace(given, layout=layout) if len(given.shape) >= least else given


# ---------------------------------------------------------------- elementwise operators


def _elementwise(cls: type[Operator], dtype: DType) -> Iterator[Case]:
    operands = len(positional(cls))
    for at, settings in enumerate(settings_of(cls.name, dtype)):
        label = "long" if at == 0 else f"setting {settings}"
        yield elementwise(cls, dtype, label, (LONG if operands > 1 else 367,), settings, "mixed")
    usual = settings_of(cls.name, dtype)[0]

    def one(label: str, *shapes: tuple[Dim, ...]) -> Case:
        return elementwise(cls, dtype, label, shapes[0], usual, "special", shapes)

    if not dtype.packed:
        yield one("scalar", ())
    yield one("empty", (0,))
    yield one("one", (1,))
    yield one("extent", (N, 3))
    if operands > 1:
        yield one("broadcast", (4, 1, 3), (2, 3), (1,))
        yield one("broadcast", (3,), (2, 3), (2, 1))
        yield one("extent", (3,), (N, 3), (N, 1))
        if not dtype.packed:
            yield one("broadcast", (5,), (), (5,))
            yield one("broadcast", (), (5,), ())
    square = one("transposed", (5, 7))
    yield from _views(square)
    if not _refused_in_place(square):
        yield replace(square, label="inplace", inplace=True)
    yield from run_time(replace(elementwise(cls, dtype, "", (67,), usual, "special"), label="run-time"))


def elementwise(
    cls: type[Operator],
    dtype: DType,
    label: str,
    shape: tuple[Dim, ...],
    settings: str = "",
    data: str = "special",
    shapes: tuple[tuple[Dim, ...], ...] = (),
) -> Case:
    """An elementwise operator on operands of one shape, or of one each."""
    given: dict[str, Given | list[Given]] = {}
    for at, name in enumerate(positional(cls)):
        own = dtypes.bool_ if (cls.name, name) == ("where", "condition") else dtype
        given[name] = Given(own, shapes[at] if at < len(shapes) else shape, data)
    return Case(cls.name, dtype, label, given, parsed(settings))


def settings_of(name: str, dtype: DType) -> list[str]:
    """Settings that an elementwise operator is tried with, as in source; the usual ones first."""
    floating, high = dtype.is_float, dtype.high
    match name:
        case "add" | "sub" | "mul" | "abs":
            return ["", *(f"acc={d}" for d in wider(dtype))]
        case "div" | "floor_div" | "recip":
            return ["", "div_by_zero_mask=-1.5", "div_by_zero_mask=inf"] if floating else ["", "div_by_zero_mask=7"]
        case "relu":
            if floating:
                return ["", "alpha=0.1", "clamp_max=6.0", "alpha=-0.25, clamp_max=0.5", "alpha=inf"]
            return ["", "alpha=3", "clamp_max=5", f"alpha=-1, clamp_max={high - 1}"]
        case "clamp":
            if floating:
                return ["min=-0.5, max=2.0", "", "min=0.25", "max=0.25", "min=1.0, max=-1.0", "min=-inf"]
            low = max(dtype.low, -3)
            return [f"min={low}, max={min(high, 4)}", "", f"min={low}", "max=0", f"min={high}, max={dtype.low}"]
        case "shl" | "shr":
            return [f"bits={n}" for n in sorted({1, 0, dtype.bits - 1, dtype.bits, 1000})]
        case "fill":
            return _fills(dtype)
        case "cast":
            return list(_casts(dtype))
        case "gelu":
            return ["", 'approx="tanh"', 'approx="none"', 'approx="erf"']
    return [""]


def wider(dtype: DType) -> list[DType]:
    """What `acc` may be."""
    return [d for d in ALL.values() if dtype.is_int and d.kind == dtype.kind and d.bits > dtype.bits]


def _fills(dtype: DType) -> list[str]:
    if dtype.is_float:
        return ["value=0.1", "", "value=-inf", "value=nan", "value=-0.0"]
    if dtype.kind == "bool":
        return ["value=true", "", "value=1", "value=false"]
    return [f"value={dtype.high}", "", f"value={dtype.low}"]


def _casts(dtype: DType) -> Iterator[str]:
    """Every target, rounding mode and way to saturate that the type takes."""
    yield "to=f32"
    for to in ALL.values():
        if to.kind in ("bitset", "ternary"):
            continue
        if to.is_int and dtype.is_float:
            yield from (f'to={to}, rounding_mode="{m}"' for m in ("trunc", "floor", "ceil", "nearest"))
        elif to.is_int and not (to.low <= dtype.low and to.high >= dtype.high):
            yield from (f"to={to}, saturate={s}" for s in ("true", "false"))
        else:
            yield f"to={to}"


# ---------------------------------------------------------------- settings read at run time


def run_time(case: Case) -> Iterator[Case]:
    """The case with each setting that may be a variable as one: of the least and the widest type."""
    cls = catalog()[case.op]
    for name, spec in cls.fields.items():
        if spec.kind != "attribute" or "Value" not in spec.annotation or name in cls.derived:
            continue
        for variable in _variables(case, name, spec.annotation):
            yield replace(case, label=f"run-time {name}", settings={**case.settings, name: variable})


def _variables(case: Case, name: str, annotation: str) -> Iterator[Variable]:
    dtype = case.row if case.given else dtypes.i32
    known = case.settings.get(name)
    if case.op == "fill":
        match dtype.kind:
            case "float":
                yield Variable(dtypes.f64 if dtype is dtypes.f64 else dtypes.f32, -2.75)
            case "bool":
                yield Variable(dtypes.bool_, True)
            case _:
                yield Variable(dtypes.i64, 1 if dtype.high > 0 else -1)
    elif "float" in annotation and (dtype.is_float or "int" not in annotation):
        value = known if isinstance(known, float) else FLOAT_SETTINGS.get(name, 0.75)
        yield from (Variable(d, value) for d in (dtypes.f32, dtypes.f64))
    else:
        value = known if isinstance(known, int) else 1 if dtype is not dtypes.i1 else -1
        yield from (Variable(d, value) for d in (dtypes.i8, dtypes.u32, dtypes.i64) if d.low <= value <= d.high)


FLOAT_SETTINGS = {"eps": 2.0**-10, "scale": 0.375, "base": 500.0, "alpha": 0.1, "value": 1.25}


# ---------------------------------------------------------------- forms


def made(cls: type[Op], dtype: DType, each: Form) -> Case:
    """The case of a form for an element type."""
    texts = [t.replace("T", dtype.name) for t in each.types]
    return case_of(cls, dtype, each.label, texts, each.settings.replace("T", dtype.name), each.data)


def case_of(cls: type[Op], row: DType, label: str, texts: list[str], settings: str, data: str) -> Case:
    """A case from operand types (`name: kind of values` after a type overrides `data`)."""
    names = positional(cls)
    given: dict[str, Given | list[Given]] = {}
    at = 0
    for text in texts:
        key, _, type_ = text.rpartition("=")
        type_, _, own = type_.partition("|")
        one = Given(*_typed(type_), own.strip() or data)
        if key:
            given[key.strip()] = one
            continue
        name = names[min(at, len(names) - 1)]
        at += 1
        if cls.fields[name].kind == "rest":
            rest = given.setdefault(name, [])
            assert isinstance(rest, list)
            rest.append(one)
        else:
            given[name] = one
    ordered = {k: given[k] for k in (*names, *by_name(cls)) if k in given}
    return Case(cls.name, row, label, ordered, parsed(settings))


def _typed(text: str) -> tuple[DType, tuple[Dim, ...]]:
    found = re.fullmatch(r"(\w+)(?:\[(.*)\])?", text.strip())
    assert found, text
    sizes = [p.strip() for p in (found[2] or "").split(",") if p.strip()]
    return ALL[found[1]], tuple(int(p) if p.lstrip("-").isdigit() else parsed(f"d={p}")["d"] for p in sizes)


def tensor_type(text: str) -> TensorType:
    """The type an example names: `f32[2, 3]`."""
    return TensorType(*_typed(text))


def parsed(settings: str) -> dict[str, Any]:
    """Settings as written in source."""
    made: dict[str, Any] = eval(f"dict({settings})", {"__builtins__": {}, "dict": dict, **NAMES})
    return made


def examples(cls: type[Operator]) -> Iterator[Case]:
    """The operator's own examples: operand types, then perhaps settings and operands by name.

    Of one without forms and shape classes, in every element type that it takes.
    """
    formed = cls.elementwise or cls.name in FORMS
    for example in cls.examples:
        parts = (example,) if isinstance(example, str) else tuple(example)
        texts = [p for p in parts if "=" not in p]
        words = ", ".join(p for p in parts if "=" in p)
        named = re.findall(r"(\w+)=(\w+(?:\[[^\]]*\])?)", words)
        optional = [f"{k}={t}" for k, t in named if k in by_name(cls)]
        for text in optional:
            words = words.replace(text, "")
        settings = ", ".join(w.strip() for w in re.split(r",(?![^\[]*\])", words) if w.strip())
        row = _typed(texts[1 if cls.name == "where" else 0])[0] if texts else dtypes.i32
        types = [_with_data(cls, t, at) for at, t in enumerate(texts)] + optional
        for dtype in [row] if formed else sorted(cls.allowed, key=list(ALL.values()).index):
            retyped = [re.sub(rf"\b{row.name}\b", dtype.name, t) for t in types]
            yield case_of(cls, dtype, "example", retyped, settings, "tame")


def _with_data(cls: type[Operator], text: str, at: int) -> str:
    """Ids lie within the examples' tables, none of which is smaller than four."""
    if cls.name == "gather" and at == 1:
        return f"{text}|small"
    return f"{text}|positive" if cls.name == "batch_norm" and at == 4 else text


def _wider(types: str, settings: str = "", few: bool = False) -> tuple[Form, ...]:
    """A form with every `acc` (A in the types), or only with those of 32 bits."""
    return tuple(
        form(f"acc={a}", types.replace("A", a.name), f"{settings}acc={a}", {d for d in ALL.values() if a in wider(d)})
        for a in ALL.values()
        if a.is_int and a.bits > 1 and (not few or a.bits == 32)
    )


def _scaled(weights: str) -> tuple[Form, ...]:
    """Products with integer weights of these types."""
    return tuple(
        form(f"b_scale {w}", f"T[3, 19]; {w}[19, 5]; b_scale=f32[5]", "", FLOATS) for w in weights.split()
    )


def _widened(to: DType) -> Iterator[Form]:
    """Entries of a table widened, by ids of both types."""
    narrow = {d for d in INTEGERS | FLOATS if d.bits < to.bits}
    yield form(f"to={to}", "T[5, 3]; i32[4]|below:5", f"to={to}", narrow)
    yield form(f"to={to} i64", "T[5, 3]; i64[4]|below:5", f"to={to}", narrow)


REDUCTIONS = (
    form("rows", "T[3, 19]", "axes=[1]"),
    form("columns", "T[5, 13]", "axes=[0], keepdims=true", data="tame"),
    form("both", "T[3, 5, 4]", "axes=[0, -1]", data="tame"),
    form("long", f"T[2, {LONG}]", "axes=[1]"),
    form("long columns", "T[131, 37]", "axes=[0]"),
    form("one", "T[4, 1]", "axes=[1]"),
    form("whole", "T[3, 7]", "axes=[0, 1]"),
    form("whole kept", "T[3, 7]", "axes=[0, 1], keepdims=true"),
    form("nothing", "T[3, 4]", "axes=[]"),
    form("empty result", "T[0, 3]", "axes=[1]"),
    form("extent", "T[N, 3]", "axes=[1]"),
)
SUMS = (
    *REDUCTIONS,
    form("empty", "T[3, 0]", "axes=[1]"),
    form("extent sum", "T[3, N]", "axes=[1]"),
    *_wider("T[3, 19]", "axes=[1], "),
)  # fmt: skip
POSITIONS = (
    form("rows", "T[3, 19]", "axis=1"),
    form("last", "T[3, 19]", "axis=1, select_first=false", data="special"),
    form("columns", "T[5, 13]", "axis=0, keepdims=true", data="special"),
    form("inner", "T[2, 9, 3]", "axis=-2, select_first=false"),
    form("long", f"T[2, {LONG}]", "axis=-1", data="tame"),
    form("long columns", "T[131, 37]", "axis=0"),
    form("one", "T[4, 1]", "axis=1"),
    form("empty result", "T[0, 3]", "axis=1"),
    form("extent", "T[N, 3]", "axis=1"),
)
EXTREMES = (*REDUCTIONS, form("specials", "T[7, 19]", "axes=[0]", data="special"))
INTEGERS = frozenset(d for d in ALL.values() if d.is_int)
FLOATS = dtypes.FLT
WIDENED = ("f8", "bf16", "f16", "f32", "f64")  # types of parameters beside x
NARROW = (dtypes.f8, dtypes.f16, dtypes.bf16)


def _narrower(label: str, types: str, settings: str = "") -> tuple[Form, ...]:
    """A form in which W is a float narrower than T."""
    return tuple(
        form(f"{label} {w}", types.replace("W", w.name), settings, {d for d in FLOATS if d.bits > w.bits})
        for w in (*NARROW, dtypes.f32)
    )


NORMALISED = (
    form("rows", "T[3, 19]; T[19]", "eps=0.0009765625"),
    form("specials", "T[7, 19]|tame; T[19]", "eps=0.0009765625"),
    form("vector", "T[8]; T[8]", "eps=0.0009765625"),
    form("long", f"T[2, {LONG}]; T[{LONG}]", "eps=0.0009765625"),
    form("one", "T[3, 1]; T[1]", "eps=0.5"),
    form("empty", "T[0, 4]; T[4]", "eps=0.5"),
    form("extent", "T[N, 19]; T[19]", "eps=0.0009765625"),
)
SOFTMAX = (
    form("rows", "T[3, 19]"),
    form("specials", "T[9, 7]", "axis=1", data="special"),
    form("columns", "T[17, 5]", "axis=0"),
    form("inner", "T[2, 9, 3]", "axis=-2"),
    form("long", f"T[2, {LONG}]"),
    form("one", "T[3, 1]"),
    form("empty", "T[0, 3]"),
    form("extent", "T[N, 5]"),
    form("extent summed", "T[5, N]"),
)
SMALL = frozenset(d for d in INTEGERS if d.bits <= 32)

I8 = "f32[3, 4, 8]; i8[9, 2, 8]; i8[9, 2, 8]"
RATIO = "i32|multiplier; i8|shift"

FORMS: dict[str, tuple[Form, ...]] = {
    **dict.fromkeys(("sum_axis", "mean_axis", "prod_axis"), SUMS),
    **dict.fromkeys(("max_axis", "min_axis"), EXTREMES),
    **dict.fromkeys(("argmax_axis", "argmin_axis"), POSITIONS),
    "filter": (
        form("plain", "T[5, 7]; T[5, 7]; T[5, 7]", data="special"),
        form("long", f"T[{LONG}]; T[{LONG}]; T[{LONG}]", data="mixed"),
        form("bool condition", f"T[{LONG}]; T[{LONG}]; bool[{LONG}]", data="mixed"),
        form("scalar", "T; T; T", only={d for d in ALL.values() if not d.packed}, data="special"),
        form("one", "T[1]; T[1]; T[1]", data="special"),
        form("empty", "T[0]; T[0]; T[0]"),
        form("broadcast", "T[3]; T[2, 3]; T[4, 1, 1]", data="special"),
        form("broadcast", "T[2, 3]; T[1]; bool[3]", data="special"),
        form("extent", "T[N, 3]; T[3]; T[N, 1]", data="special"),
    ),
    "is_finite": (
        form("finite", "T[3, 19]"),
        form("specials", "T[3, 19]", data="special"),
        form("tame", "T[2, 3]", data="tame"),
        form("scalar", "T", data="special"),
        form("one", "T[1]", data="special"),
        form("empty", "T[0]"),
        form("long", f"T[{LONG}]"),
        form("extent", "T[N, 3]"),
    ),
    "matmul": (
        form("plain", "T[3, 19]; T[19, 5]"),
        form("specials", "T[5, 7]|tame; T[7, 6]|tame", only=FLOATS),
        form("vector", "T[1, 67]; T[67, 33]"),
        form("column", "T[9, 67]; T[67, 1]"),
        form("transpose_a", "T[19, 3]; T[19, 5]", "transpose_a=true"),
        form("transpose_b", "T[3, 19]; T[5, 19]", "transpose_b=true"),
        form("transposed both", "T[19, 3]; T[5, 19]", "transpose_a=true, transpose_b=true"),
        form("broadcast", "T[2, 1, 3, 9]; T[4, 9, 2]"),
        form("shared", "T[2, 3, 9]; T[9, 2]"),
        form("one", "T[1, 1]; T[1, 1]"),
        form("empty", "T[0, 3]; T[3, 4]"),
        form("empty sum", "T[2, 0]; T[0, 3]"),
        form("long", "T[17, 131]; T[131, 37]"),
        form("extent", "T[N, 9]; T[9, 5]"),
        form("extent summed", "T[3, N]; T[N, 5]"),
        form("extent columns", "T[3, 9]; T[N, 9]", "transpose_b=true"),
        *_narrower("b", "T[3, 19]; W[19, 5]"),
        *_narrower("transposed b", "T[1, 67]; W[9, 67]", "transpose_b=true"),
        *_scaled("i8 u8 i4 u4 i2 u2 i1 u1 t2 t1"),
        form("b_scale transposed", "T[3, 19]; i8[5, 19]; b_scale=f32[5, 1]", "transpose_b=true", FLOATS),
        form("b_scale one", "T[3, 19]; i8[19, 5]; b_scale=f32", "", FLOATS),
        form("b_scale batch", "T[2, 3, 19]; i8[2, 19, 5]; b_scale=f32[2, 1, 5]", "", FLOATS),
        *_wider("T[3, 19]; T[19, 5]", ""),
    ),
    "linear": (
        form("plain", "T[3, 19]; T[5, 19]"),
        form("bias", "T[3, 19]; T[5, 19]; b=T[5]"),
        form("specials", "T[5, 7]|tame; T[6, 7]|tame; b=T[6]|tame", only=FLOATS),
        form("vector", "T[67]; T[33, 67]; b=T[33]"),
        form("batch", "T[2, 3, 19]; T[5, 19]; b=T[5]"),
        form("one", "T[1, 1]; T[1, 1]; b=T[1]"),
        form("empty", "T[0, 3]; T[4, 3]; b=T[4]"),
        form("empty sum", "T[2, 0]; T[3, 0]; b=T[3]"),
        form("long", "T[5, 131]; T[37, 131]; b=T[37]"),
        form("extent", "T[N, 9]; T[5, 9]; b=T[5]"),
        *_narrower("w", "T[3, 19]; W[5, 19]; b=T[5]"),
        *_narrower("w and b", "T[1, 67]; W[9, 67]; b=W[9]"),
        *_wider("T[3, 19]; T[5, 19]; b=A[5]", ""),
    ),
    "cumsum": (
        form("rows", "T[3, 19]", "axis=1"),
        form("columns", "T[19, 5]", "axis=0, exclusive=true"),
        form("inner", "T[2, 9, 3]", "axis=-2", data="tame"),
        form("long", f"T[{LONG}]", "axis=0"),
        form("one", "T[1]", "axis=0, exclusive=true"),
        form("empty", "T[0, 3]", "axis=0"),
        form("extent", "T[N, 3]", "axis=0"),
    ),
    "reshape": (
        form("plain", "T[4, 6]", "shape=[3, -1]"),
        form("scalar", "T[1]", "shape=[]", {d for d in EVERY if not d.packed}),
        form("empty", "T[0, 3]", "shape=[3, 0]"),
        form("extent", "T[N, 6]", "shape=[N, 2, 3]"),
        form("extent rest", "T[N, 6]", "shape=[-1, 3]"),
    ),
    "transpose": (
        form("plain", "T[3, 5, 4]", "perm=[2, 0, 1]"),
        form("negative", "T[3, 5]", "perm=[-1, 0]"),
        form("empty", "T[0, 3]", "perm=[1, 0]"),
        form("one", "T[1, 1]", "perm=[1, 0]"),
        form("extent", "T[N, 5]", "perm=[1, 0]"),
    ),
    "concat": (
        form("rows", "T[2, 3]; T[5, 3]", "axis=0"),
        form("columns", "T[3, 2]; T[3, 3]; T[3, 1]", "axis=-1"),
        form("alone", "T[5]", "axis=0"),
        form("empty", "T[0, 3]; T[2, 3]", "axis=0"),
        form("extent", "T[N, 3]; T[2, 3]", "axis=0"),
        form("extent columns", "T[3, N]; T[3, 5]", "axis=1"),
    ),
    "split": (
        form("columns", "T[3, 6]", "axis=1, sizes=[1, 2, 3]"),
        form("rows", "T[5, 3]", "axis=-2, sizes=[5, 0]"),
        form("one", "T[1]", "axis=0, sizes=[1]"),
        form("extent", "T[N, 6]", "axis=1, sizes=[4, 2]"),
    ),
    "slice": (
        form("columns", "T[3, 9]", "axis=1, start=2, end=7"),
        form("stepped", "T[3, 9]", "axis=-1, start=1, end=9, step=3"),
        form("rows", "T[9, 3]", "axis=0, start=4, end=9"),
        form("empty", "T[4]", "axis=0, start=2, end=2"),
        form("extent", "T[9, N]", "axis=0, start=3, end=5"),
        form("extent end", "T[70, 3]", "axis=0, start=0, end=N"),
    ),
    "pad": (
        form("plain", "T[3, 5]", "before=[1, 0], after=[0, 2]"),
        form("edge", "T[3, 5]", 'before=[2, 1], after=[0, 3], mode="edge"'),
        form("reflect", "T[3, 5]", 'before=[2, 1], after=[1, 4], mode="reflect"'),
        form("value", "T[3]", "before=[2], after=[1], value=1.5", FLOATS),
        form("integer value", "T[3]", "before=[2], after=[1], value=1", EVERY - FLOATS - {dtypes.bool_}),
        form("one", "T[1]", 'before=[2], after=[2], mode="edge"'),
        form("empty", "T[0, 2]", "before=[1, 0], after=[0, 1]"),
        form("extent", "T[N, 3]", "before=[0, 1], after=[2, 0]"),
        form("extent before", "T[5]", "before=[N], after=[0]"),
    ),
    "broadcast_to": (
        form("plain", "T[3, 1]", "shape=[2, 3, 4]"),
        form("scalar", "T", "shape=[5]", {d for d in EVERY if not d.packed}),
        form("empty", "T[1]", "shape=[0]"),
        form("extent", "T[3]", "shape=[N, 3]"),
    ),
    "repeat": (
        form("rows", "T[3, 5]", "times=2, axis=0"),
        form("columns", "T[3, 5]", "times=3, axis=-1"),
        form("never", "T[3]", "times=0, axis=0"),
        form("one", "T[1]", "times=19, axis=0"),
        form("extent", "T[N, 3]", "times=2, axis=0"),
        form("extent times", "T[3, 1]", "times=N, axis=1"),
    ),
    "flip": (
        form("columns", "T[3, 5]", "axes=[1]"),
        form("all", "T[2, 3, 5]", "axes=[0, -1, 1]"),
        form("none", "T[5]", "axes=[]"),
        form("long", f"T[{LONG}]", "axes=[0]"),
        form("empty", "T[0]", "axes=[0]"),
        form("extent", "T[N, 3]", "axes=[0]"),
    ),
    "gather": (
        form("rows", "T[5, 3]; i32[2, 2]|below:5"),
        form("columns", "T[3, 5]; i64[4]|below:5", "axis=-1"),
        form("scalar", "T[5, 3]; i32|below:5"),
        form("empty", "T[5, 3]; i32[0]|below:5"),
        form("one", "T[1, 3]; i64[1]|below:1"),
        form("extent", "T[5, 3]; i32[N]|below:5"),
        *_widened(dtypes.f32),
        *_widened(dtypes.f64),
        *_widened(dtypes.i32),
    ),
    "iota": (
        form("plain", "", "shape=[5]", {dtypes.i32}),
        form("inner", "", "shape=[2, 3, 4], axis=1, start=-5", {dtypes.i32}),
        form("last", "", "shape=[2, 3], axis=-1, start=2147483647", {dtypes.i32}),
        form("empty", "", "shape=[0]", {dtypes.i32}),
        form("extent", "", "shape=[N, 3], start=N", {dtypes.i32}),
    ),
    "layer_norm": (
        *NORMALISED,
        form("beta", "T[3, 19]; T[19]; beta=T[19]", "eps=0.0009765625"),
        form("axes", "T[2, 3, 4]; T[3, 4]; beta=T[3, 4]", "eps=0.0009765625, axes=[1, -1]"),
        *(
            form(f"{g} and {b}", f"T[2, 300]; {g}[300]; beta={b}[300]", "eps=0.0009765625", FLOATS)
            for g, b in zip(WIDENED, (*WIDENED[1:], WIDENED[0]))
        ),
    ),
    "rms_norm": (
        *NORMALISED,
        *(form(f"{g} gamma", f"T[2, 300]; {g}[300]", "eps=0.0009765625", FLOATS) for g in WIDENED),
    ),
    "batch_norm": (
        form("plain", "T[2, 3, 5]; T[3]; T[3]; T[3]; T[3]|positive"),
        form("eps", "T[2, 3, 5]; T[3]; T[3]; T[3]; T[3]|positive", "eps=0.25"),
        form("first", "T[3, 19]; T[3]; T[3]; T[3]; T[3]|positive", "channel=0"),
        form("last", "T[7, 3]; T[3]; T[3]; T[3]; T[3]|positive", "channel=-1"),
        form("specials", "T[2, 3, 19]|tame; T[3]; T[3]; T[3]; T[3]|positive"),
        form("empty", "T[0, 3, 5]; T[3]; T[3]; T[3]; T[3]|positive"),
        form("extent", "T[2, 3, N]; T[3]; T[3]; T[3]; T[3]|positive"),
    ),
    **dict.fromkeys(("softmax", "log_softmax"), SOFTMAX),
    "attention": (
        form("plain", "T[3, 4, 8]; T[5, 2, 8]; T[5, 2, 6]", "causal=true"),
        form("batch", "T[2, 2, 4, 8]; T[2, 5, 1, 8]; T[2, 5, 1, 8]; bias=f32[4, 1, 5]; mask=bool[5]"),
        form("kv_len", "T[2, 2, 4, 8]; T[2, 5, 1, 8]; T[2, 5, 1, 8]; kv_len=i32[2]|small", "window=2"),
        form("kv_len scalar", "T[2, 4, 8]; T[5, 1, 8]; T[5, 1, 8]; kv_len=i64|small", "causal=true, window=3"),
        form("scale", "T[3, 2, 8]; T[5, 2, 8]; T[5, 2, 8]; bias=f32[2, 3, 5]", "scale=0.375"),
        form("whole mask", "T[3, 2, 8]; T[5, 2, 8]; T[5, 2, 8]; mask=bool[2, 3, 5]"),
        form("one", "T[1, 1, 1]; T[1, 1, 1]; T[1, 1, 1]"),
        form("decode", "T[1, 4, 64]; T[131, 2, 64]; T[131, 2, 64]", "causal=true"),
        form("no keys", "T[2, 2, 8]; T[0, 2, 8]; T[0, 2, 4]"),
        form("no queries", "T[0, 2, 8]; T[5, 2, 8]; T[5, 2, 4]"),
        form("specials", "T[3, 2, 8]|tame; T[9, 2, 8]|tame; T[9, 2, 8]|tame"),
        form("extent", "T[N, 2, 8]; T[N, 2, 8]; T[N, 2, 8]", "causal=true"),
        form("extent keys", "T[3, 2, 8]; T[N, 2, 8]; T[N, 2, 8]; mask=bool[N]"),
        form("k and v f8", "f32[3, 4, 8]; f8[9, 2, 8]; f8[9, 2, 8]", "causal=true", {dtypes.f32}),
        form("k and v f16", "f32[3, 4, 8]; f16[9, 2, 8]; f16[9, 2, 8]", "causal=true", {dtypes.f32}),
        form("k and v bf16", "f32[3, 4, 8]; bf16[9, 2, 8]; bf16[9, 2, 8]", "causal=true", {dtypes.f32}),
        form("i8 heads", f"{I8}; k_scale=f32[2]|positive; v_scale=f32[2]|positive", "scale=0.001", {dtypes.f32}),
        form("i8 entries", f"{I8}; k_scale=f32[9, 2]|positive; v_scale=f32[2]|positive", "scale=0.001", {dtypes.f32}),
    ),
    "attn": (
        form("plain", "T[3, 8]; T[5, 2, 4]; T[5, 2, 4]; T[8, 8]"),
        form("one key", "T[3, 6]; T[1, 4]; T[1, 4]; T[6, 8]"),
        form("long", "T[2, 40]; T[67, 2, 24]; T[67, 2, 8]; T[40, 48]"),
        form("extent", "T[2, 8]; T[N, 2, 4]; T[N, 2, 4]; T[8, 8]"),
        form("extent rows", "T[N, 8]; T[3, 2, 4]; T[3, 2, 4]; T[8, 8]"),
        *(form(f"k and v {w}", f"T[2, 8]; {w}[5, 2, 4]; {w}[5, 2, 4]; T[8, 8]") for w in ("f8", "f16", "bf16", "f32")),
        *_narrower("w", "T[2, 8]; T[5, 2, 4]; T[5, 2, 4]; W[8, 8]"),
    ),
    "rope": (
        form("plain", "T[3, 2, 8]", "pos=5"),
        form("interleaved", "T[2, 3, 1, 6]", 'pos=0, style="interleaved"'),
        form("dims", "T[2, 2, 8]", "pos=3, dims=4, base=500.0"),
        form("freqs", "T[2, 1, 4]; freqs=f32[2]", "pos=100"),
        form("positions", "T[2, 3, 1, 4]", "pos=variable(i32, 4, [3])"),
        form("all positions", "T[2, 3, 1, 4]", "pos=variable(i32, 9, [2, 3])"),
        form("extent positions", "T[N, 1, 4]", "pos=variable(i32, 2, [N])"),
        form("specials", "T[5, 2, 8]|tame", "pos=2"),
        form("long", "T[19, 2, 64]", "pos=1000"),
        form("empty", "T[0, 2, 8]", "pos=5"),
        form("extent", "T[N, 2, 8]", "pos=N"),
    ),
    "relative_position_bias": (
        form("both ways", "T[32, 2]", "q_start=0, n=9, t=9, bidirectional=true"),
        form("back", "T[8, 3]", "q_start=200, n=2, t=202, bidirectional=false, max_distance=20"),
        form("far", "T[32, 2]", "q_start=100, n=3, t=301, bidirectional=true"),
        form("extent", "T[32, 2]", "q_start=3, n=N, t=N+3, bidirectional=false"),
    ),
    **dict.fromkeys(("max_pool", "avg_pool"), (
        form("plain", "T[2, 9]", "kernel=3, stride=2, padding=1"),
        form("two", "T[2, 5, 6]", "kernel=[2, 3]"),
        form("padded", "T[2, 3, 5, 6]", "kernel=[3, 3], stride=[1, 2], padding=[1, 0]"),
        form("specials", "T[3, 19]", "kernel=4", data="tame"),
        form("long", f"T[{LONG}]", "kernel=5, stride=1"),
        form("one", "T[1]", "kernel=1"),
        form("empty", "T[0, 4]", "kernel=2"),
        form("shorter", "T[3, 2, 5]", "kernel=[4, 2]"),
        form("extent", "T[N, 9]", "kernel=2"),
        form("extent of windows", "T[2, N]", "kernel=1"),
    )),
    "conv1d": (
        form("plain", "T[2, 4, 9]; T[6, 4, 3]"),
        form("bias", "T[2, 4, 9]; T[6, 2, 3]; b=T[6]", "stride=2, padding=1, groups=2"),
        form("dilation", "T[3, 8]; T[2, 3, 3]", "dilation=2, padding=[2]"),
        form("one", "T[1, 1]; T[1, 1, 1]"),
        form("long", "T[3, 131]; T[5, 3, 7]; b=T[5]", "padding=3"),
        form("depthwise", "T[4, 19]; T[4, 1, 3]", "groups=4"),
        form("empty", "T[0, 4, 9]; T[6, 4, 3]"),
        form("shorter", "T[4, 1]; T[6, 2, 3]; b=T[6]", "stride=2, groups=2"),
        form("extent batch", "T[N, 2, 9]; T[3, 2, 3]; b=T[3]"),
        form("extent", "T[2, N]; T[3, 2, 2]", "padding=1"),
        form("extent of windows", "T[2, N]; T[3, 2, 1]"),
        form("no columns", "T[4, 0]; T[4, 1, 1]", "groups=4"),
        *_wider("T[2, 9]; T[3, 2, 3]; b=A[3]", ""),
    ),
    "conv2d": (
        form("plain", "T[2, 3, 7, 8]; T[4, 3, 3, 3]; b=T[4]", "padding=1"),
        form("depthwise", "T[4, 6, 6]; T[4, 1, 3, 2]", "groups=4, stride=[2, 1], padding=[1, 0]"),
        form("dilation", "T[2, 9, 9]; T[3, 2, 3, 3]", "dilation=[2, 3]"),
        form("one", "T[1, 1, 1]; T[1, 1, 1, 1]"),
        form("long", "T[3, 5, 67]; T[4, 3, 1, 1]; b=T[4]"),
        form("empty", "T[0, 2, 5, 5]; T[3, 2, 3, 3]"),
        form("shorter", "T[2, 2, 5]; T[3, 2, 3, 3]; b=T[3]", "padding=[0, 1]"),
        form("no columns", "T[4, 3, 0]; T[4, 1, 1, 1]", "groups=4"),
        form("no taps", "T[2, 90, 1]; T[2, 1, 1, 0]; b=T[2]", "groups=2, dilation=[1, 50]"),
        form("extent batch", "T[N, 2, 5, 5]; T[3, 2, 3, 3]"),
        *_wider("T[2, 5, 5]; T[3, 2, 3, 3]", "", few=True),
    ),
    "conv_transpose1d": (
        form("plain", "T[2, 4, 5]; T[4, 3, 3]; b=T[3]", "stride=2, padding=1, output_padding=1"),
        form("groups", "T[4, 5]; T[4, 2, 3]", "groups=2, dilation=2"),
        form("one", "T[1, 1]; T[1, 1, 1]"),
        form("long", "T[3, 67]; T[3, 5, 7]"),
        form("empty", "T[2, 0]; T[2, 3, 4]; b=T[3]", "stride=2"),
        form("shorter", "T[2, 1]; T[2, 3, 2]; b=T[3]", "padding=1"),
        form("extent batch", "T[N, 2, 9]; T[2, 3, 3]"),
        form("extent", "T[2, N]; T[2, 3, 4]; b=T[3]", "stride=2, padding=1"),
        *_wider("T[2, 9]; T[2, 3, 3]", "", few=True),
    ),
    "conv_transpose2d": (
        form("plain", "T[1, 2, 3, 4]; T[2, 3, 3, 2]; b=T[3]", "stride=[2, 1], padding=[1, 0], output_padding=[1, 0]"),
        form("groups", "T[4, 3, 5]; T[4, 2, 3, 3]", "groups=2, dilation=[1, 2]"),
        form("one", "T[1, 1, 1]; T[1, 1, 1, 1]"),
        form("empty", "T[2, 0, 3]; T[2, 3, 4, 3]; b=T[3]", "stride=[2, 1]"),
        form("shorter", "T[2, 3, 1]; T[2, 3, 1, 2]; b=T[3]", "padding=[0, 1]"),
        form("extent batch", "T[N, 2, 3, 3]; T[2, 3, 2, 2]"),
        *_wider("T[2, 3, 3]; T[2, 3, 2, 2]", "", few=True),
    ),
    "gru_cell": (
        form("plain", "T[2, 5]; T[2, 4]; T[12, 5]; T[12, 4]; T[12]; T[12]"),
        form("order", "T[5]; T[4]; T[12, 5]; T[12, 4]; T[12]; T[12]", 'order="zrn", reset_after=false'),
        form("one", "T[1]; T[1]; T[3, 1]; T[3, 1]; T[3]; T[3]"),
        form("long", "T[1, 67]; T[1, 33]; T[99, 67]; T[99, 33]; T[99]; T[99]"),
        form("empty", "T[0, 5]; T[0, 4]; T[12, 5]; T[12, 4]; T[12]; T[12]"),
        form("extent", "T[N, 5]; T[N, 4]; T[12, 5]; T[12, 4]; T[12]; T[12]"),
    ),
    "lstm_cell": (
        form("plain", "T[2, 5]; T[2, 4]; T[2, 4]; T[16, 5]; T[16, 4]; T[16]; T[16]"),
        form("order", "T[5]; T[4]; T[4]; T[16, 5]; T[16, 4]; T[16]; T[16]", 'order="iofg"'),
        form("one", "T[1]; T[1]; T[1]; T[4, 1]; T[4, 1]; T[4]; T[4]"),
        form("long", "T[1, 67]; T[1, 33]; T[1, 33]; T[132, 67]; T[132, 33]; T[132]; T[132]"),
        form("empty", "T[0, 5]; T[0, 4]; T[0, 4]; T[16, 5]; T[16, 4]; T[16]; T[16]"),
        form("extent", "T[N, 5]; T[N, 4]; T[N, 4]; T[16, 5]; T[16, 4]; T[16]; T[16]"),
    ),
    "top_k": (
        form("plain", "T[2, 9]", "k=3"),
        form("columns", "T[7, 5]", "k=7, axis=0", data="special"),
        form("none", "T[5]", "k=0"),
        form("one", "T[1]", "k=1"),
        form("long", f"T[{LONG}]", "k=40", data="tame"),
        form("extent", "T[N, 9]", "k=2"),
        form("all", "T[N]", "k=N", data="special"),
    ),
    "sample": (
        form("plain", "T[19]; f32|unit"),
        form("settings", "T[20]; f32|unit", "temperature=0.5, top_k=5, top_p=0.9"),
        form("greedy", "T[20]; f32|unit", "temperature=0.0"),
        form("one", "T[1]; f32|unit"),
        form("long", f"T[{LONG}]; f32|unit", "top_p=0.5"),
        form("specials", "T[67]|tame; f32|unit", "top_k=40, top_p=0.9"),
        form("greedy specials", "T[67]|special; f32|unit", "temperature=0.0"),
    ),
    "quantize": (
        *(form(f"to={d}", "T[3, 19]; f32|positive", f"to={d}") for d in ALL.values() if d in SMALL),
        form("zero point", "T[3, 19]; f32|positive; zero_point=i8", "to=i8", data="special"),
        form("zero point i32", "T[3, 19]; f32|positive; zero_point=i32|small", "to=u8"),
        form("axis", "T[3, 19]; f32[19]|positive; zero_point=u8[19]", "to=u8, axis=1"),
        form("first axis", "T[3, 19]; f32[3]|positive; zero_point=u4[3]", "to=u4, axis=0"),
        form("long axis", "T[2, 300]; f32[300]|positive; zero_point=i32[300]", "to=i8, axis=1"),
        form("short rows", "T[60, 3, 5]; f32[3]|positive; zero_point=i8[3]", "to=i8, axis=1"),
        form("empty", "T[0, 3]; f32|positive", "to=i8"),
        form("one", "T[1]; f32|positive", "to=i8"),
        form("scalar", "T; f32|positive", "to=i8"),
        form("extent", "T[N, 3]; f32[3]|positive", "to=i8, axis=-1"),
    ),
    "dequantize": (
        *(form(f"to={d}", "T[3, 19]; f32", f"to={d}") for d in ("f32", "f8", "f16", "bf16", "f64")),
        form("zero point", "T[3, 19]; f32; zero_point=T", "to=f32", {d for d in SMALL if not d.packed}),
        form("zero point i32", "T[3, 19]; f32; zero_point=i32|small", "to=f32"),
        form("axis", "T[3, 19]; f32[19]; zero_point=T[19]", "to=f32, axis=1"),
        form("long axis", "T[2, 300]; f32[300]; zero_point=i32[300]", "to=f32, axis=1"),
        form("short rows", "T[60, 3, 5]; f32[3]; zero_point=T[3]", "to=f32, axis=1"),
        form("empty", "T[0, 3]; f32", "to=f32"),
        form("one", "T[1]; f32", "to=f16"),
        form("extent", "T[N, 3]; f32[3]", "to=f32, axis=-1"),
    ),
    "requantize": tuple(
        replace(f, only=frozenset({dtypes.i32}))
        for f in (
            form("plain", f"i32[3, 19]; {RATIO}", "to=i8"),
            *(form(f"to={d}", f"i32[3, 19]; {RATIO}", f"to={d}") for d in ALL.values() if d in SMALL),
            form("axis", "i32[3, 19]; i32[19]|multiplier; i8[19]|shift", 'to=u8, zero_point=128, rounding="nearest"'),
            form("first axis", "i32[3, 19]; i32[3, 1]|multiplier; i8[3, 1]|shift", "to=i8, zero_point=-3"),
            form("one", f"i32[1]; {RATIO}", 'to=i8, rounding="nearest"'),
            form("empty", f"i32[0]; {RATIO}", "to=i8"),
            form("long", f"i32[{LONG}]; {RATIO}", "to=i16"),
            form("extent", f"i32[N, 3]; {RATIO}", "to=i8"),
        )
    ),
}  # fmt: skip
