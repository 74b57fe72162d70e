"""One operator on the same numbers from everywhere: inputs, constants, parts of them, results, states, views.

    y0 = linear(x, w)       x, w      inputs
    y1 = linear(t, W[l])    t, W      a result, a member of a family of constants in a loop
    y2 = linear(R[-9..], v) R, v      a rolling window, a transposed view of an input

All have the same bits, and those of every build: with registers of any width or none, on any number of threads.
Sizes are drawn about the widths of registers, panels and chunks; values are now and then infinite, NaN, or of
the least magnitude.  What is done to a result may become part of the kernel that computes it; where that is an output,
too, it does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import oic
from oic import dtypes
from oic.dtypes import ALL, Array, DType
from oic.ir import dims
from oic.ir.core import OpError
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.grouping import by_key
from oic.operators import catalog
from oic.operators.base import by_name, positional
from tests.fuzz.operator_cases import Case, Given, declared, literal
from tests.fuzz.operator_shapes import cases
from tests.fuzz.values import drawn, special

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 49, 63, 64, 65, 100)
LONG = (127, 128, 129, 200, 255, 256, 257, 300, 513)
MOST = 200_000  # elements of an operand or result
WORK = 2_500_000  # multiplications of a product
STEPS = 3  # that a state needs until it holds what it is given, and a rolling window to go round
NEVER = {"iota", "relative_position_bias"}  # operators without operands worth a source
FIXED = {"transpose", "reshape", "broadcast_to", "split", "slice"}  # views: the layouts of other operators' operands
MOVING = ("input", "result", "transposed")
STATIC = ("constant", "member", "part", "turned constant", "loop")
CHANGING = ("input", "result", "entry", "row", "rows", "window", "transposed", "sliced", "stepped", "reshaped")
SOURCES = (*CHANGING, *STATIC)


@dataclass
class Drawn:
    """An application: the case that says what it is, with the numbers of its operands.

    then    what is done to its first result: calls with `@` for it and `<0>` for the first of `more`
    more    operands of these
    types   of their results
    same    its first two operands are one
    first   the output that has its result, of inputs
    """

    case: Case
    arrays: list[Array]
    then: list[str] = field(default_factory=list)
    more: list[tuple[Given, Array]] = field(default_factory=list)
    types: list[Given] = field(default_factory=list)
    same: bool = False
    first: str = ""

    def another(self, rng: np.random.Generator, dtype: DType, shape: tuple[Dim, ...], data: str = "plain") -> str:
        """One operand more, as `then` names it."""
        given = Given(dtype, shape, data)
        self.more.append((given, numbers(rng, given, "plain")))
        return f"<{len(self.more) - 1}>"

    def __str__(self) -> str:
        return " | ".join([str(self.case), *self.then])


# ---------------------------------------------------------------- applications


def sized(rng: np.random.Generator, least: int = 1) -> int:
    return int(rng.choice([s for s in (*SIZES, *SIZES, *LONG) if s >= least]))


def columns(rng: np.random.Generator) -> int:
    """Of a product: mostly as many as a panel has."""
    return sized(rng, 16 if rng.random() < 0.7 else 1)


def linear(rng: np.random.Generator) -> Case:
    m, k, n = rows(rng), sized(rng), columns(rng)
    x, w = _product_types(rng)
    shape: tuple[Dim, ...] = (k,) if m == 1 and rng.random() < 0.5 else (m, k) if rng.random() < 0.8 else (2, m, k)
    given: dict[str, Any] = {"x": Given(x, shape), "w": Given(w, (n, k))}
    settings = {}
    if x.is_int and rng.random() < 0.7:
        wide = [d for d in ALL.values() if d.kind == x.kind and d.bits > x.bits and d.bits >= 16]
        if wide:
            settings["acc"] = wide[int(rng.integers(len(wide)))]
    if rng.random() < 0.5:
        given["b"] = Given(settings.get("acc", x if x.is_int or rng.random() < 0.7 else w), (n,))
    return Case("linear", x, "drawn", given, settings)


def rows(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 1, int(rng.integers(2, 17)), int(rng.integers(17, 70)), int(rng.integers(70, 201))]))


def _product_types(rng: np.random.Generator) -> tuple[DType, DType]:
    x = _of(rng, ["f32"] * 9 + ["i8", "i8", "u8", "f64", "bf16", "f16", "f8", "i16", "i32", "u16", "i4", "bool", "i64", "u4"])
    if x.is_float and rng.random() < 0.3:
        narrow = [d for d in dtypes.FLT if x.holds(d) and d is not x]
        if narrow:
            return x, sorted(narrow, key=str)[int(rng.integers(len(narrow)))]
    return x, x


def _of(rng: np.random.Generator, names: Sequence[str]) -> DType:
    return ALL[names[int(rng.integers(len(names)))]]


def matmul(rng: np.random.Generator) -> Case:
    m, k, n = rows(rng), sized(rng), columns(rng)
    a, b = _product_types(rng)
    ta, tb = rng.random() < 0.3, rng.random() < 0.4
    lead = [(), (), (2,), (3, 2)][int(rng.integers(4))]
    other: tuple[int, ...] = () if rng.random() < 0.6 else lead if rng.random() < 0.5 else tuple(1 for _ in lead)
    if rng.random() < 0.15:
        lead, other = other, lead
    settings: dict[str, Any] = {}
    if ta:
        settings["transpose_a"] = True
    if tb:
        settings["transpose_b"] = True
    given: dict[str, Any] = {"a": Given(a, (*lead, k, m) if ta else (*lead, m, k))}
    if a.is_float and rng.random() < 0.3:
        b = _of(rng, ["i8", "i8", "u8", "i4", "u4", "i2", "t1", "t2", "u1"])
        scale = [(), (n, 1) if tb else (n,), (n, 1) if tb else (1, n)][int(rng.integers(3))]
        given["b"] = Given(b, (*other, n, k) if tb else (*other, k, n))
        given["b_scale"] = Given(dtypes.f32, scale, "positive")
    else:
        given["b"] = Given(b, (*other, n, k) if tb else (*other, k, n))
        if a.is_int and rng.random() < 0.6:
            wide = [d for d in ALL.values() if d.kind == a.kind and d.bits > a.bits]
            if wide:
                settings["acc"] = wide[int(rng.integers(len(wide)))]
    return Case("matmul", a, "drawn", given, settings)


def convolution(name: str) -> Callable[[np.random.Generator], Case]:
    axes, transposed = int(name[-2]), "transpose" in name

    def case(rng: np.random.Generator) -> Case:
        x = _of(rng, ["f32"] * 9 + ["i8"] * 8 + ["bf16", "f16"] * 3 + ["f8", "u8", "f64", "f64", "i16", "i32"])
        groups = int(rng.choice([1, 1, 1, 1, 1, 2, 5]))
        inputs, outputs = (int(rng.choice([1, 2, 3, 4, 8, 15, 16, 17, 32, 33])) for _ in range(2))
        channels, filters = groups * inputs, groups * outputs
        if rng.random() < 0.2:
            channels = filters = groups = int(rng.choice([3, 8, 16, 17, 32, 33, 40]))
            inputs, outputs = 1, 1
        if rng.random() < 0.35 and groups < 3:
            taps, stride = [int(rng.choice([1, 3])), 3][-axes:], [1] * axes
            dilation = [int(v) for v in rng.choice([1, 1, 1, 2], axes)]
        elif rng.random() < 0.3:
            taps, stride, dilation = [1] * axes, [1] * axes, [1] * axes
        else:
            taps, stride, dilation = ([int(v) for v in rng.integers(1, top + 1, axes)] for top in (5, 3, 2))
        most = 8 if rng.random() < 0.5 else 70 if axes == 1 else 24
        if rng.random() < 0.12:  # deep enough for tiles of bytes
            x, groups, taps, stride, most = dtypes.i8, 1, [int(rng.choice([1, 3])), 3][-axes:], [1] * axes, 26
            inputs, outputs = int(rng.choice([24, 25, 33])), int(rng.choice([17, 33, 48]))
            channels, filters = inputs, outputs
        padding = [0] * axes if rng.random() < 0.5 else [int(v) for v in rng.integers(0, 3, axes)]
        size = [int(v) for v in rng.integers(14 if most == 26 else 1, most, axes)]
        lead = [(), (), (1,), (2,)][int(rng.integers(4))]
        w = [channels, filters // groups, *taps] if transposed else [filters, channels // groups, *taps]
        settings: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        if transposed and rng.random() < 0.3:
            settings["output_padding"] = [int(v) for v in rng.integers(0, 2, axes)]
        if x.is_int and x.bits < 32 and rng.random() < 0.8:
            settings["acc"] = ALL[f"{'i' if x.low else 'u'}{rng.choice([32, 32, 64])}"]
        given: dict[str, Any] = {"x": Given(x, (*lead, channels, *size)), "w": Given(x, tuple(w))}
        if rng.random() < 0.4:
            given["b"] = Given(settings.get("acc", x), (filters,))
        return Case(name, x, "drawn", given, settings)

    return case


def attention(rng: np.random.Generator) -> Case:
    q = _of(rng, ["f32"] * 5 + ["bf16", "f16", "f64", "f8"])
    k = _of(rng, ["f32", "f16", "bf16", "f8", "i8", "i8"]) if q is dtypes.f32 and rng.random() < 0.5 else q
    n = int(rng.choice([1, 1, 2, 3, 5, 8, 11, 12, 13, 16, 17, 33, 49, 129]))
    t = int(rng.choice([1, 2, 5, 9, 16, 63, 64, 65, 100, 127, 128, 129, 260, 600]))
    heads = int(rng.choice([1, 2, 3]))
    per = int(rng.choice([1, 1, 2, 4, 5, 7]))
    dk = int(rng.choice([1, 3, 8, 15, 16, 17, 32, 33, 64, 80]))
    dv = dk if rng.random() < 0.7 else int(rng.choice([1, 4, 16, 17, 48]))
    lead = () if rng.random() < 0.7 else (2,)
    given: dict[str, Any] = {
        "q": Given(q, (*lead, n, heads * per, dk)), "k": Given(k, (*lead, t, heads, dk)), "v": Given(k, (*lead, t, heads, dv)),
    }  # fmt: skip
    settings: dict[str, Any] = {}
    if rng.random() < 0.25:
        given["bias"] = Given(dtypes.f32, [(t,), (heads * per, n, t), (heads * per, 1, t)][int(rng.integers(3))])
    if rng.random() < 0.25:
        given["mask"] = Given(dtypes.bool_, [(t,), (n, t), (heads * per, n, t)][int(rng.integers(3))])
    if rng.random() < 0.2:
        given["kv_len"] = Given(dtypes.i32, () if not lead or rng.random() < 0.5 else lead, f"below:{t + 1}")
    if k is dtypes.i8:
        for name in ("k_scale", "v_scale"):
            given[name] = Given(dtypes.f32, (heads,) if rng.random() < 0.5 else (t, heads), "positive")
        settings["scale"] = 0.001
    if rng.random() < 0.5:
        settings["causal"] = True
    if rng.random() < 0.2:
        settings["window"] = int(rng.choice([1, 3, 64, 100]))
    if rng.random() < 0.15:
        settings["softcap"] = 2.0
    return Case("attention", q, "drawn", given, settings)


DRAWN: dict[str, Callable[[np.random.Generator], Case]] = {
    "linear": linear,
    "matmul": matmul,
    "attention": attention,
    **{n: convolution(n) for n in ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")},
}


def application(name: str, rng: np.random.Generator) -> Case:
    """An application of an operator: drawn by its own rule, or a case of the operator's in other sizes."""
    while True:
        if name in DRAWN and rng.random() < 0.85:
            case = DRAWN[name](rng)
        else:
            case = resized(rng, known(name)[int(rng.integers(len(known(name))))])
        if fits(case):
            return case


_KNOWN: dict[str, list[Case]] = {}


def known(name: str) -> list[Case]:
    """The cases of an operator, by which its other sizes are drawn."""
    if name not in _KNOWN:
        found = [c for c in cases(catalog()[name]) if not c.dynamic and not c.variables and not c.inplace and c.given]
        found = [c for c in found if all(g.layout == "dense" and g.data != "mixed" for _, g in c.operands())]
        wide = [c for c in found if not c.row.packed or c.row.bits == 4]
        _KNOWN[name] = [c for c in wide for _ in range(4 if c.row is dtypes.f32 else 1)]
    return _KNOWN[name]


def resized(rng: np.random.Generator, case: Case) -> Case:
    """Some sizes replaced by others, wherever they occur; what is not legal stays."""
    for _ in range(int(rng.integers(0, 4))):
        found = sorted({int(str(d)) for _, g in case.operands() for d in g.shape})
        if not found:
            break
        old, new = int(rng.choice(found)), sized(rng)
        if rng.random() < 0.03:
            new = 0
        for inside in (False, True):
            other = _replaced(case, old, new, inside)
            if fits(other):
                case = other
                break
    return case


def _replaced(case: Case, old: int, new: Dim, inside: bool = False) -> Case:
    """The case with a size another; in settings, too."""

    def one(given: Given) -> Given:
        data = given.data
        if data == f"below:{old}" and isinstance(new, int):
            data = f"below:{new}"
        return replace(given, shape=tuple(new if d == old else d for d in given.shape), data=data)

    def setting(value: Any) -> Any:
        if isinstance(value, list):
            return [setting(v) for v in value]
        return new if inside and type(value) is int and value == old else value

    given = {k: [one(g) for g in p] if isinstance(p, list) else one(p) for k, p in case.given.items()}
    return replace(case, given=given, settings={k: setting(v) for k, v in case.settings.items()})


def with_extent(rng: np.random.Generator, case: Case, name: str) -> Case | None:
    """The case with a size that the run decides, and has room for more; None where it has none."""
    places = [(key, given) for key, given in case.given.items() if isinstance(given, Given) and given.shape]
    if not places:
        return None
    key, given = places[int(rng.integers(len(places)))]
    size = given.shape[0]
    assert isinstance(size, int)
    extent = dims.of(Extent(name, size + int(rng.integers(0, 40))))
    first = replace(case, given={**case.given, key: replace(given, shape=(extent, *given.shape[1:]))})
    return next((made for made in (first, _replaced(case, size, extent)) if fits(made)), None)


def fits(case: Case) -> bool:
    """It is legal, and no larger than what a campaign has time for."""
    try:
        op = case.symbolic
        if any(v.dtype.packed and v.tensor.rank == 0 for v in (*op.operands, *op.results) if hasattr(v.type, "shape")):
            return False
        sizes = [dims.maximum(v.tensor.size) for v in (*op.operands, *op.results) if hasattr(v.type, "shape")]
        least = 4 if any(g.data == "small" for _, g in case.operands()) else 1  # so that ids lie in a table
        if any(dims.maximum(d) < least for key, g in case.operands() if key == "table" for d in g.shape):
            return False
        return max(sizes) <= MOST and dims.maximum(op.operations()) <= 2 * WORK
    except (OpError, ValueError, ZeroDivisionError, IndexError):
        return False


def names() -> list[str]:
    """The operators that are applied."""
    return [name for name in catalog() if name not in NEVER | FIXED and known(name)]


def numbers(rng: np.random.Generator, given: Given, mode: str) -> Array:
    """The numbers of an operand: plain ones, with a few special, or of the least magnitudes."""
    shape = tuple(int(str(d)) for d in given.shape)
    if given.data not in ("plain", "tame", "special"):
        return drawn(given.data, given.dtype, shape, rng)
    if not given.dtype.is_float and given.dtype.kind in ("int", "uint") and rng.random() < 0.3:
        few = np.array([given.dtype.low, given.dtype.high], np.uint64 if given.dtype.low == 0 else np.int64)
        return rng.choice(few, shape).astype(given.dtype.np)
    found = np.array(drawn("plain", given.dtype, shape, rng))
    if not given.dtype.is_float or not found.size:
        return found
    with np.errstate(all="ignore"):
        if mode == "least":
            least = float(np.sqrt(float(np.finfo(np.float32).tiny if given.dtype.bits > 16 else 2.0**-14)))
            found = (found.astype(np.float64) * least * 2.0 ** rng.integers(-8, 3)).astype(given.dtype.np)
        elif mode == "zeros":
            found = np.where(rng.random(shape) < 0.5, rng.choice([-0.0, 0.0], shape), found).astype(given.dtype.np)
        elif mode == "special":
            flat, rare = found.reshape(-1), special(given.dtype)
            rare = rare[~np.isfinite(rare.astype(np.float64)) | (np.abs(rare.astype(np.float64)) < 1000)]  # no sum overflows
            for _ in range(int(rng.integers(1, 4))):
                flat[rng.integers(flat.size)] = rng.choice(rare)
    return found


# ---------------------------------------------------------------- what is done to a result


def followed(rng: np.random.Generator, made: Drawn) -> None:
    """Statements that change the first result, of which kernels may make a part of their own."""
    result = made.case.symbolic.results[0]
    shape, dtype = tuple(int(str(d)) for d in result.shape), result.dtype
    to = Given(dtype, shape)
    for _ in range(int(rng.choice([0, 1, 1, 2, 3]))):
        call, to = _following(rng, made, to)
        if call:
            made.then.append(call)
            made.types.append(to)


def _following(rng: np.random.Generator, made: Drawn, to: Given) -> tuple[str, Given]:
    """A call with `@` for a result of this type, and the type that it gives; no call where nothing follows."""
    if to.dtype.is_float:
        return _following_float(rng, made, to)
    if to.dtype is dtypes.i32 and rng.random() < 0.8:
        return _following_sums(rng, made, to)
    if to.dtype in dtypes.WHOLE and rng.random() < 0.5:
        return f"add(@, {made.another(rng, to.dtype, to.shape[-1:])})", to
    return "", to


def _following_float(rng: np.random.Generator, made: Drawn, to: Given) -> tuple[str, Given]:
    kinds = ["relu", "gelu", "silu", "tanh", "add", "mul", "residual", "sub", "cast", "quantize", "argmax", "clamp", "self"]
    last = to.shape[-1:]
    match kind := str(rng.choice(kinds + ["argmax"] * (4 if made.case.op in ("linear", "matmul") else 0))):
        case "add" | "mul":
            return f"{kind}(@, {made.another(rng, to.dtype, last)})", to
        case "sub":
            return f"sub({made.another(rng, to.dtype, last)}, @)", to
        case "residual":
            return f"add({made.another(rng, to.dtype, to.shape)}, @)", to
        case "self":
            return "mul(@, @)", to
        case "cast":
            other = _of(rng, ["f32", "bf16", "f16", "i8", "i32", "f64"])
            return f"cast(@, to={other})", replace(to, dtype=other)
        case "quantize":
            each = bool(last) and rng.random() < 0.5
            scale = made.another(rng, dtypes.f32, last if each else (), "positive")
            return f"quantize(@, {scale}, to=i8{', axis=-1' if each else ''})", replace(to, dtype=dtypes.i8)
        case "argmax":
            return ("argmax_axis(@, axis=-1)", Given(dtypes.i64, to.shape[:-1])) if to.shape and 0 not in to.shape else ("", to)
        case "clamp":
            return "clamp(@, min=-0.5, max=2.0)", to
    return f"{kind}(@)", to


def _following_sums(rng: np.random.Generator, made: Drawn, to: Given) -> tuple[str, Given]:
    """Of sums of bytes: what makes bytes or floats of them, by the channel or all alike."""
    channel = -3 if made.case.op.endswith("2d") else -2 if made.case.op.endswith("1d") else -1
    each = len(to.shape) >= -channel and rng.random() < 0.7
    along = (to.shape[channel], *[1] * (-channel - 1)) if each else ()
    match str(rng.choice(["requantize", "requantize", "add", "cast", "dequantize"])):
        case "requantize":
            ratio = f"{made.another(rng, dtypes.i32, along, 'multiplier')}, {made.another(rng, dtypes.i8, along, 'shift')}"
            other = _of(rng, ["i8", "i8", "u8", "i16"])
            zero = int(rng.integers(-5, 5)) if other is not dtypes.u8 else 128
            rounding = str(rng.choice(["tflite", "nearest"]))
            call = f'requantize(@, {ratio}, to={other}, zero_point={zero}, rounding="{rounding}")'
            return call, replace(to, dtype=other)
        case "add":
            return f"add(@, {made.another(rng, dtypes.i32, along)})", to
        case "cast":
            return "cast(@, to=f32)", replace(to, dtype=dtypes.f32)
    return f"dequantize(@, {made.another(rng, dtypes.f32, (), 'positive')}, to=f32)", replace(to, dtype=dtypes.f32)


def draw(rng: np.random.Generator, only: Sequence[str] = (), tame: bool = False) -> Drawn:
    """An application, its numbers, and what follows it.

    tame   numbers are such as weights in groups may have
    """
    several = list(only) or names()
    case = application(several[int(rng.integers(len(several)))], rng)
    mode = "plain" if tame else str(rng.choice(["plain", "plain", "plain", "special", "least", "zeros"]))
    arrays = [numbers(rng, given, mode) for _, given in case.operands()]
    made = Drawn(case, arrays)
    first = case.operands()[:2]
    if len(first) == 2 and (first[0][1].dtype, first[0][1].shape) == (first[1][1].dtype, first[1][1].shape):
        if first[0][1].data == first[1][1].data and rng.random() < 0.3:
            arrays[1], made.same = arrays[0], True
    if rng.random() < 0.7:
        followed(rng, made)
    return made


# ---------------------------------------------------------------- source


class Sources:
    """A graph of applications, each several times, with operands from here and there."""

    def __init__(self, name: str, rng: np.random.Generator, tame: bool = False, careful: bool = False) -> None:
        self.name, self.rng, self.names, self.tame, self.careful = name, rng, 0, tame, careful
        self.sections: dict[str, list[str]] = {k: [] for k in ("dynamic", "constant", "volatile", "persistent")}
        self.body: list[str] = []
        self.after: list[str] = []
        self.inputs: dict[str, Array] = {}
        self.tensors: dict[str, oic.Tensor] = {}
        self.outputs: list[tuple[Drawn, list[str], list[str]]] = []  # of each copy of an application, and where all is from

    def fresh(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def declare(self, section: str, name: str, dtype: DType, shape: Sequence[Dim], more: str = "") -> None:
        self.sections[section].append(f"{name}: {declared(dtype, shape)}{more};")

    def temporary(self, dtype: DType, shape: Sequence[Dim], call: str, body: list[str], kind: str = "t") -> str:
        name = self.fresh(kind)
        body += [f"assign {name}: {declared(dtype, shape)};", f"op {call} >> {name};"]
        return name

    def noise(self, given: Given, shape: Sequence[int], *, finite: bool = False) -> Array:
        """What lies about an operand, and must not be seen; of weights, some of which lie otherwise if all are finite."""
        if self.tame or (finite and self.rng.random() < 0.8):
            return numbers(self.rng, replace(given, shape=tuple(shape)), "plain")
        return np.array(drawn("special" if given.data in ("plain", "tame", "special") else given.data, given.dtype, tuple(shape), self.rng))

    def operand(
        self, given: Given, array: Array, source: str, body: list[str], after: list[str], sizes: Sequence[Dim]
    ) -> str | None:
        """The name of an operand with these numbers, declared with these sizes; None where it cannot be from there."""
        dtype, shape = given.dtype, array.shape
        match source:
            case "input":
                return self.input(dtype, sizes, array)
            case "constant":
                return self.constant(dtype, array)
            case "result":
                return self.temporary(dtype, sizes, f"flip({self.input(dtype, sizes, array)}, axes=[])", body)
            case "reshaped":
                flat = self.input(dtype, (array.size,), array.reshape(-1))
                return self.temporary(dtype, shape, f"reshape({flat}, shape={list(shape)})", body)
            case "transposed" | "turned constant":
                return self.turned(dtype, array, source, body, sizes) if shape[1:] else None
            case "sliced" | "stepped":
                return self.sliced(given, array, 2 if source == "stepped" else 1, body) if shape else None
            case "part":
                return self.part(given, array, body)
            case "member" | "loop":
                return f"{self.family(given, array)}[{'i' if source == 'loop' else 2}]"
            case "entry":
                return self.state(given, array, (2, 4), "1, 3", body, after)
            case "row":
                return self.state(given, array, (3,), "2", body, after)
        assert source in ("rows", "window"), source
        possible = shape and shape[0] and not (dtype.packed and len(shape) < 2)
        return self.entries(given, array, source, body, after) if possible else None

    def turned(self, dtype: DType, array: Array, source: str, body: list[str], sizes: Sequence[Dim]) -> str:
        """A transposed view of an input or constant."""
        perm = [int(p) for p in self.rng.permutation(array.ndim)]
        turned = array.transpose(np.argsort(perm)).copy()
        across = tuple(sizes[i] for i in np.argsort(perm))
        name = self.input(dtype, across, turned) if source == "transposed" else self.constant(dtype, turned)
        return self.temporary(dtype, sizes, f"transpose({name}, perm={perm})", body)

    def sliced(self, given: Given, array: Array, step: int, body: list[str]) -> str:
        """Every so manieth of a stretch of an input."""
        rank, shape = array.ndim, array.shape
        axis = int(self.rng.integers(rank)) if self.rng.random() < 0.5 else rank - 1
        first = int(self.rng.integers(0, 4))
        end = first + step * shape[axis]
        size = end + int(self.rng.integers(0, 3))
        whole = self.noise(given, [*shape[:axis], size, *shape[axis + 1 :]])
        whole[(slice(None),) * axis + (slice(first, end, step),)] = array
        call = f"slice({self.input(given.dtype, whole.shape, whole)}, axis={axis}, start={first}, end={end}, step={step})"
        return self.temporary(given.dtype, shape, call, body)

    def part(self, given: Given, array: Array, body: list[str]) -> str | None:
        """The middle of a constant three times as large."""
        dtype, shape = given.dtype, array.shape
        whole = np.stack([self.noise(given, shape, finite=True), array, self.noise(given, shape, finite=True)])
        cut = self.temporary(dtype, (1, *shape), f"slice({self.constant(dtype, whole)}, axis=0, start=1, end=2)", body)
        return self.temporary(dtype, shape, f"reshape({cut}, shape={list(shape)})", body) if shape else None

    def family(self, given: Given, array: Array) -> str:
        """Three constants, of which the numbers are the last."""
        name = self.fresh("W")
        self.sections["constant"].append(f"{name}(l): {declared(given.dtype, array.shape)};")
        members = [*(self.noise(given, array.shape, finite=True) for _ in range(2)), array]
        self.tensors[name] = oic.Tensor(np.stack(members), str(given.dtype))
        return name

    def entries(self, given: Given, array: Array, source: str, body: list[str], after: list[str]) -> str:
        """Some entries of a table, always the same or the last ones, which each step writes at its end."""
        dtype, shape, length = given.dtype, array.shape, array.shape[0]
        name, seen, now = self.fresh("K"), self.fresh("s"), self.input(dtype, shape, array)
        if source == "rows":
            first = int(self.rng.integers(0, 3))
            read = at = f"{first}..{first + length}"
            more, then = "", []
        else:
            where = self.fresh("p")
            self.sections["persistent"].append(f"{where}: i32 @init({int(self.rng.integers(0, 3))});")
            read, at = f"-{given.shape[0]}..", f"{where}..{where}+{length}"
            more, then = " @ring(t)", [f"cache.increment {length} {where};"]
        size = length + int(self.rng.integers(2, 8))
        self.sections["persistent"].append(f"{name}(t): {declared(dtype, shape[1:])} @table @fixed(t={size}){more};")
        body += [f"assign {seen}: {declared(dtype, shape)};", f"cache.read {name}[{read}] >> {seen};"]
        after += [f"cache.write {now} >> {name}[{at}];", *then]
        return seen

    def state(self, given: Given, array: Array, sizes: Sequence[int], at: str, body: list[str], after: list[str]) -> str | None:
        name, seen = self.fresh("K"), self.fresh("s")
        indices = "abc"[: len(sizes)]
        fixed = ", ".join(f"{i}={n}" for i, n in zip(indices, sizes))
        type_ = declared(given.dtype, array.shape)
        self.sections["persistent"].append(f"{name}({', '.join(indices)}): {type_} @table @fixed({fixed});")
        body += [f"assign {seen}: {type_};", f"cache.read {name}[{at}] >> {seen};"]
        after.append(f"cache.write {self.input(given.dtype, array.shape, array)} >> {name}[{at}];")
        return seen

    def body_extent(self, name: str, case: Case) -> None:
        """Declare an extent, by an input that is nothing else."""
        (extent,) = dims.extents(d for _, g in case.operands() for d in g.shape)
        self.sections["dynamic"].insert(0, f"of{name}: u8[{name}] @max({name}={extent.maximum});")
        size = next(a.shape[g.shape.index(d)] for (_, g), a in zip(case.operands(), self.now) for d in g.shape if isinstance(d, Expr))
        self.inputs[f"of{name}"] = np.zeros(size, np.uint8)
        self.body += [f"assign seen{name}: u8[{name}];", f"transfer of{name} >> seen{name};"]

    def input(self, dtype: DType, shape: Sequence[Dim], array: Array) -> str:
        name = self.fresh("x")
        self.declare("dynamic", name, dtype, shape)
        self.inputs[name] = unaligned(array) if self.rng.random() < 0.5 else array.copy()
        return name

    def constant(self, dtype: DType, array: Array) -> str:
        name = self.fresh("c")
        self.declare("constant", name, dtype, array.shape)
        self.tensors[name] = oic.Tensor(array.copy(), str(dtype))
        return name

    def add(self, made: Drawn, copies: int) -> None:
        """The application, once with inputs alone, and so often with operands from anywhere."""
        outputs: list[str] = []
        shown: list[str] = []
        for _ in range(4 * copies):
            if len(outputs) == copies:
                break
            sections = {kind: list(lines) for kind, lines in self.sections.items()}
            kept = sections, list(self.body), list(self.after), dict(self.inputs), dict(self.tensors)
            output, where = self.copy(made, plain=not outputs)
            try:
                if self.careful:
                    self.check(kept)
            except oic.OicError:
                self.sections, self.body, self.after, self.inputs, self.tensors = kept
                if not outputs:
                    return
                continue
            outputs.append(output)
            shown.append(where)
        self.outputs.append((made, outputs, shown))

    def check(self, kept: Any) -> None:
        """The language takes what was added since."""
        sections = {k: v[len(kept[0][k]) :] for k, v in self.sections.items()}
        tensors = {k: v for k, v in self.tensors.items() if k not in kept[4]}
        text = written("g", sections, self.body[len(kept[1]) :], self.after[len(kept[2]) :])
        oic.Simulator(oic.parse(text, "g.oi"), oic.Model(tensors=tensors))

    def places(self, sizes: Sequence[Sequence[Dim]]) -> list[str]:
        """Where operands of these sizes are from: some of them no constants."""
        wanted = [str(self.rng.choice(SOURCES)) for _ in sizes]
        if len(sizes) > 1 and self.rng.random() < 0.5:  # the usual way: weights are constants
            wanted = [str(self.rng.choice(CHANGING)), *(str(self.rng.choice(STATIC)) for _ in sizes[1:])]
        if all(w in STATIC for w in wanted):  # what is made of constants alone is computed at build, by NumPy
            wanted[int(self.rng.integers(len(wanted)))] = "input"
        return [w if static(d) or w in MOVING else "input" for w, d in zip(wanted, sizes)]

    def copy(self, made: Drawn, plain: bool) -> tuple[str, str]:
        """Add the application once: the output that it gives, and where all of it is.

        plain   its operands are inputs, and its result is an output before anything is done to it
        """
        case, rng, self.now = made.case, self.rng, made.arrays
        body: list[str] = []
        after: list[str] = []
        lines: list[str] = []
        extent = self.fresh("N")
        moving = with_extent(rng, case, extent) if not plain and rng.random() < 0.3 else None
        used = moving or case
        sizes = [given.shape for _, given in used.operands()]
        wanted = ["input"] * len(sizes) if plain else self.places(sizes)
        if moving is not None:
            self.body_extent(extent, moving)
        operands = self.operands(made, wanted, sizes, plain, body, after)
        result = used.symbolic.results[0]
        type_ = Given(result.dtype, tuple(told(d) for d in result.shape))
        fitting = case.operands()[0][1].dtype is type_.dtype and sizes[0] == type_.shape and "[" not in operands[0]
        inplace = not plain and fitting and rng.random() < 0.3
        if inplace:
            operands[0] = self.temporary(type_.dtype, type_.shape, f"flip({operands[0]}, axes=[])", lines)
        value, first = self.applied(used, operands, inplace, lines), ""
        stored = bool(made.then) and (plain or rng.random() < 0.2)
        if stored:
            first = self.fresh("k")
            self.declare("volatile", first, type_.dtype, type_.shape)
            lines.append(f"transfer {value} >> {first};")
        value, type_ = self.followed(made, value, type_, plain, body, after, lines)
        sinks = ["output"] if plain or not static(type_.shape) else ["output", "part", "entry", "flip", "concat"]
        output, sink = self.sink(type_, value, str(rng.choice(sinks)), lines)
        self.body += [*body, "loop members (i in 0..3) {", *lines, "}"] if "loop" in wanted else [*body, *lines]
        self.after += after
        where = ", ".join(f"{k}: {w}" for (k, _), w in zip(case.operands(), wanted)) + (", extent" if moving else "")
        if plain:
            made.first = first or output
        return output, f"{where} >> {sink}{' in place' if inplace else ''}{' stored' if stored else ''}"

    def operands(
        self, made: Drawn, wanted: Sequence[str], sizes: Sequence[Sequence[Dim]], plain: bool, body: list[str], after: list[str]
    ) -> list[str]:
        """The names of all operands, each from where it is wanted, or else an input."""
        found: list[str] = []
        for (_, given), array, source, dims_ in zip(made.case.operands(), made.arrays, wanted, sizes):
            same = made.same and len(found) == 1 and not plain and self.rng.random() < 0.7
            name = found[0] if same else self.operand(given, array, source, body, after, dims_)
            found.append(self.input(given.dtype, dims_, array) if name is None else name)
        return found

    def applied(self, case: Case, operands: Sequence[str], inplace: bool, lines: list[str]) -> str:
        """Add the statement of the operator: its first result, a temporary or the first operand."""
        cls, results = catalog()[case.op], case.symbolic.results
        names = by_key((key, name) for (key, _), name in zip(case.operands(), operands))
        words = [n for key in positional(cls) for n in names.get(key, [])]
        words += [f"{key}={names[key][0]}" for key in by_name(cls) if key in names]
        words += [f"{k}={literal(v)}" for k, v in case.settings.items()]
        to = [operands[0] if inplace else self.fresh("t")]
        if not inplace:
            lines.append(f"assign {to[0]}: {declared(results[0].dtype, [told(d) for d in results[0].shape])};")
        for extra in results[1:]:
            to.append(self.fresh("e"))
            self.declare("volatile", to[-1], extra.dtype, [told(d) for d in extra.shape])
        lines.append(f"op {case.op}({', '.join(words)}) >> {', '.join(to)};")
        return to[0]

    def followed(
        self, made: Drawn, value: str, result: Given, plain: bool, body: list[str], after: list[str], lines: list[str]
    ) -> tuple[str, Given]:
        """Add what is done to the result: what comes of it, and its type."""
        more, type_ = [], result
        fixed = tuple(int(str(d)) for d in made.case.symbolic.results[0].shape)
        for given, array in made.more:
            source = "input" if plain else str(self.rng.choice([*SOURCES[:2], *STATIC[:4]]))
            sizes = result.shape if array.shape == fixed else array.shape
            source = source if static(sizes) else "input"
            more.append(self.operand(given, array, source, body, after, sizes) or self.input(given.dtype, sizes, array))
        for call, type_ in zip(made.then, made.types, strict=True):
            type_ = replace(type_, shape=result.shape[: len(type_.shape)])
            call = re.sub(r"<(\d+)>", lambda found: more[int(found[1])], call.replace("@", value))
            value = self.temporary(type_.dtype, type_.shape, call, lines)
        return value, type_

    def sink(self, given: Given, value: str, kind: str, lines: list[str]) -> tuple[str, str]:
        """An output with the result, which goes there by itself, in a part, by the state, or from memory of its own."""
        name, shape = self.fresh("y"), given.shape
        if kind == "part" and not (given.dtype.packed and len(shape) == 0):
            self.declare("volatile", name, given.dtype, (3, *shape))
            lines.append(f"transfer {value} >> {name}[1];")
            return f"{name}[1]", kind
        self.declare("volatile", name, given.dtype, shape)
        if kind == "entry":
            table = self.fresh("K")
            self.sections["persistent"].append(f"{table}(t): {declared(given.dtype, shape)} @table @fixed(t=3);")
            lines += [f"cache.write {value} >> {table}[1];", f"cache.read {table}[1] >> {name};"]
        elif kind == "flip" and shape:
            lines.append(f"op flip({value}, axes=[]) >> {name};")
        elif kind == "concat" and shape:
            self.sections["volatile"][-1] = f"{name}: {declared(given.dtype, (shape[0] + shape[0], *shape[1:]))};"
            lines.append(f"op concat({value}, {value}, axis=0) >> {name};")
            return f"{name}[{shape[0]}:]", kind
        else:
            lines.append(f"transfer {value} >> {name};")
        return name, kind

    @property
    def text(self) -> str:
        return written(self.name, self.sections, self.body, self.after)

    def model(self) -> oic.Model:
        return oic.Model(tensors=self.tensors)


def told(size: Dim) -> Any:
    """A size as it is declared: quotients, which are exact in a declaration, are left to the compiler."""
    return size if isinstance(size, int) or str(size).isidentifier() else "?"


def static(sizes: Sequence[Dim]) -> bool:
    return all(isinstance(d, int) for d in sizes)


def written(name: str, sections: dict[str, list[str]], body: Sequence[str], after: Sequence[str]) -> str:
    lines = [f"graph {name} {{"]
    for kind, parts in sections.items():
        lines += [f"  {kind} {{", *(f"    {line}" for line in parts), "  }"]
    return "\n".join([*lines, "  block entry {", *(f"    {line}" for line in (*body, *after)), "    return;", "  }", "}", ""])


def unaligned(array: Array) -> Array:
    """The same numbers an element past the start of their memory."""
    memory = np.empty(array.size + 1, array.dtype)
    memory[1:] = array.reshape(-1)
    return memory[1:].reshape(array.shape)


def fetched(found: dict[str, Array], output: str) -> Array:
    """What a copy of an application gives."""
    name, _, part = output.partition("[")
    value = found[name]
    if part == "1]":
        return value[1]
    return value[int(part[:-2]) :] if part else value


def bits(array: Array) -> bytes:
    """An array's bits; those of any NaN alike."""
    if "float" in str(array.dtype):
        array = np.where(np.isnan(array.astype(np.float64)), np.asarray(np.nan, array.dtype), array)
    return np.ascontiguousarray(array).tobytes()
