"""Conversion to another element type, and filling with one value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oic.dtypes import ALL, NUM, Array, DType, bitset, bool_, i64, u64, wrap
from oic.ir.core import Op, OpError, Value, is_index
from oic.ir.types import TensorType, Type
from oic.operators import settings
from oic.operators.base import Scalar, UnaryOperator

KINDS = NUM | {bool_}


def half_away(x: Array) -> Array:
    """The nearest whole number, of two the one farther from zero; -0.0 stays."""
    whole = np.trunc(x)
    away = np.abs(np.subtract(x, whole)) >= 0.5  # of infinities NaN: they stay
    return np.where(away, whole + np.copysign(np.ones_like(whole), x), whole).astype(x.dtype)


ROUNDING: dict[str, Callable[[Array], Array]] = {
    "trunc": np.trunc, "floor": np.floor, "ceil": np.ceil, "nearest": half_away,
}  # fmt: skip


class Cast(UnaryOperator, name="cast"):
    """The elements of x as another type.

    x              number or bool
    to             the result's dtype
    rounding_mode  float to integer: "trunc", "floor", "ceil", "nearest" (half away from zero)
    saturate       integer to an integer type that cannot hold every value: true clamps to its
                   range, false wraps modulo 2^width; must be spelled out there
    result         the shape of x, dtype `to`

    Float to integer: rounded, NaN gives 0, out of range saturates.  To a float: the nearest, ties
    to even, rounded once (i64 to bf16 too).  To bool: x is not zero.  Exactly the reference.
    Errors: an unknown rounding mode; saturate missing, or false from a float to an integer.
    Source: OpenInfer op catalog, `cast`.
    """

    to: DType
    rounding_mode: str = "trunc"
    saturate: bool | None = None

    allowed = KINDS
    inplace = ()
    words = {"rounding_mode": tuple(ROUNDING)}
    setting = "to=f32"
    more = (
        *(("f32[9]", f"to={d}") for d in ALL if ALL[d] in KINDS),
        *((f"{d}[9]", "to=bf16") for d in ("f64", "i64", "u64", "i32", "u8", "bool")),
        *((f"{d}[9]", "to=bool") for d in ("f16", "f64", "i4", "u64", "bool")),
        *(("f64[9]", f'to=i32, rounding_mode="{mode}"') for mode in ROUNDING),
        *(("f16[9]", f'to=u4, rounding_mode="{mode}"') for mode in ROUNDING),
        ("f64[9]", "to=f16"), ("f64[9]", "to=u64"), ("f32", "to=i64"),
        ("i8[9]", "to=i64"), ("u2[9]", "to=u16"), ("bool[9]", "to=i8"), ("bool[9]", "to=i1, saturate=true"),
        ("i64[9]", "to=i4, saturate=true"), ("u64[9]", "to=i64, saturate=true"), ("i8[9]", "to=u64, saturate=true"),
        ("i64[9]", "to=i4, saturate=false"), ("i32[9]", "to=u8, saturate=false"), ("u64[9]", "to=i16, saturate=false"),
    )  # fmt: skip

    def ids_below(self, result: Value) -> Value | None:
        return self.x if self.x.dtype.is_int and self.to.is_int else None

    def infer(self) -> list[Type]:
        super().infer()
        if self.to not in KINDS:
            raise OpError("op-dtype", f"cast does not make {self.to}", "to")
        self._require_saturate()
        return [TensorType(self.to, self.x.shape)]

    def _require_saturate(self) -> None:
        source, to = self.x.dtype, self.to
        if not to.is_int:
            return
        if source.is_float and self.saturate is False:
            raise OpError("op-setting", "a float always saturates to an integer", "saturate")
        if not source.is_float and self.saturate is None and not to.holds(source):
            what = f"{to} cannot hold every {source}, and saturate is not given"
            hint = "saturate=true clamps to the range of the type, saturate=false wraps"
            raise OpError("op-setting", what, "to", hint)

    @property
    def c(self) -> Scalar:  # type: ignore[override]
        """The function of both computed types, the rounding mode and the rule out of range."""
        source, to = self.x.dtype.computed, self.to
        how = "narrow" if to.narrow else to.name
        if to.is_int and source.is_float:
            how = f"{to}_{self.rounding_mode}"
        elif to.is_int:
            source = u64 if source is u64 else i64
            how = f"{to}_wrap" if self.saturate is False or to.holds(self.x.dtype) else f"{to}_sat"
        whole = to if to.is_int else source if source.is_int else None
        file = "math/scalar_cast_int.h" if whole else "math/scalar_cast.h"
        return Scalar(("x",), f"oic_cast_{source}_{how}", by=None, file=file, of=whole)

    def reference(self, x: Array) -> Array:
        if self.to.kind == "bool":
            return np.not_equal(x, 0)
        return to_float(x, self.to) if self.to.is_float else self._integer(x)

    def _integer(self, x: Array) -> Array:
        to = self.to
        if self.x.dtype.is_float:
            return saturated(ROUNDING[self.rounding_mode](np.where(x == x, x, 0).astype(np.float64)), to)
        wide = x.astype(np.uint64 if self.x.dtype is u64 else np.int64)
        if self.saturate is False or to.holds(self.x.dtype):
            return wrap(wide, to)
        held = np.iinfo(wide.dtype)
        return np.clip(wide, max(to.low, held.min), min(to.high, held.max))


class Fill(UnaryOperator, name="fill"):
    """Every element one value.

    x        gives the shape and the dtype; its elements are not read
    value    a literal as in @init: a float for floats, an integer for integers and bitset, true,
             false, 0 or 1 for bool; or a scalar variable of x's dtype (f32 for f8, f16, bf16).
             Default 0
    result   the type of x

    Exact; a float literal is rounded once.
    Errors: value is of another kind, or out of range.  Source: OpenInfer op catalog, `fill`.
    """

    value: float | int | bool | Value | None = None

    unread = ("x",)
    allowed = KINDS | {bitset}
    c = Scalar(("value",), bare=True)
    usual = {"value": lambda dtype: 0.0 if dtype.is_float else 0}
    more = (
        ("f32[2, 3]", "value=-1.5"), ("f32", "value=0.1"), ("f16[0]", "value=0.1"), ("bf16[9]", "value=0.1"),
        ("i4[9]", "value=-3"), ("u8[9]", "value=200"), ("bool[9]", "value=true"), ("bitset[9]", "value=255"),
    )  # fmt: skip

    def infer(self) -> list[Type]:
        types = super().infer()
        if isinstance(self.value, Value):
            self._require_variable(self.value)
        elif self.value is not None:
            self._require_literal()
        return types

    def checks(self) -> list[Op]:
        """A value that is only known at run time must be one of the type."""
        return settings.range_checks(self, self.x.dtype, "value")

    def _require_variable(self, value: Value) -> None:
        dtype = self.x.dtype.computed
        fits = dtype.is_int or dtype.kind == "bitset"
        if not is_index(value):
            fits = value.dtype is dtype
        if not fits:
            raise settings.refuse(self, "value", f"an {dtype} scalar")

    def _require_literal(self) -> None:
        dtype, given = self.x.dtype, self.value
        if dtype.kind == "bool":
            if given not in (0, 1) or isinstance(given, float):
                raise settings.refuse(self, "value", "true or false")
        elif dtype.is_float:
            if not isinstance(given, float):
                hint = f"write {given}.0" if type(given) is int else None
                raise settings.refuse(self, "value", f"a float for {dtype}", hint)
            settings.require_finite(self, "value", dtype)
        else:
            settings.require_integer(self, "value", dtype.low, dtype.high, f" for {dtype}")

    def reference(self, x: Array) -> Array:
        return np.full(np.shape(x), settings.as_computed(self.number("value"), self.x.dtype).astype(x.dtype))


def saturated(whole: Array, to: DType) -> Array:
    """Whole f64 numbers as integers of a type, those beyond its range at its ends."""
    top = 2.0 ** (to.bits - 1 if to.low < 0 else to.bits)
    inside = (whole > to.low) & (whole < top)
    border = np.uint64 if to is u64 else np.int64
    middle = np.where(inside, whole, 0.0).astype(border)
    ends = np.where(whole <= to.low, np.asarray(to.low, border), np.asarray(to.high, border))
    return np.where(inside, middle, ends)


def to_float(x: Array, to: DType) -> Array:
    """Numbers of any type rounded once to a float type, in the dtype that it is computed in."""
    if not to.narrow:
        return x.astype(to.np)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:  # what f64 has no digits for becomes its last one: as if exact
        low = x & x.dtype.type(0x7FF)
        x = np.where(np.abs(x.astype(np.float64)) < 2.0**53, x, (x - low) | (low != 0).astype(x.dtype) << 11)
    wide = x.astype(np.float64)
    unit = np.maximum(np.ldexp(1.0, np.frexp(wide)[1] - to.digits), to.smallest)
    nearest = np.where(np.isfinite(wide), np.rint(wide / unit) * unit, wide)
    too_large = np.abs(nearest) > to.largest
    return np.where(too_large, np.copysign(np.inf, nearest), nearest).astype(to.wide)
