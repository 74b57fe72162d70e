"""The one table of element types: width, packing, NumPy and C form, range, rounding.

A value of a packed type (`i4`, `u2`, `t1`, …) is one logical element wherever Python sees it;
only files, state, arena and weights hold it packed, least significant bits first.
Source: SPEC, section 2.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class DType:
    """One element type.

    bits    width of a stored element
    kind    'float', 'int', 'uint', 'bool', 'bitset' or 'ternary' (t1, t2: storage only)
    np      dtype of an array at the Python border and in the interpreter, one element a value
    wide    dtype in which an operator's reference computes it
    c       C type of a stored element; for packed types the byte that holds several
    value   C type in which generated code computes it
    low, high           range of the values of other types than floats
    digits              of a float: binary digits of a normal number, the first one included
    smallest, largest   of a float: least positive value, a subnormal; greatest finite value
    """

    name: str
    bits: int
    kind: str
    np: numpy.dtype[numpy.generic]
    wide: numpy.dtype[numpy.generic]
    c: str
    value: str
    low: int = 0
    high: int = 0
    digits: int = 0
    smallest: float = 0.0
    largest: float = 0.0

    @property
    def packed(self) -> bool:
        """Several elements share a byte."""
        return self.bits < 8

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """Signed or unsigned integer; not bool, bitset, t1 or t2."""
        return self.kind in ("int", "uint")

    @property
    def computed(self) -> "DType":
        """The dtype in which elements are computed: f32 for narrow floats, else itself."""
        return f32 if self.narrow else self

    @property
    def narrow(self) -> bool:
        """A float that is computed in f32 and rounded once."""
        return self.kind == "float" and self.bits < 32

    @property
    def spacing(self) -> float:
        """The distance of 1.0 from the next greater number of a float type."""
        return 2.0 ** (1 - self.digits)

    @property
    def align(self) -> int:
        """Bytes to which a stored element is aligned."""
        return max(1, self.bits // 8)

    def nbytes(self, count: int) -> int:
        """Bytes that hold `count` packed-together elements."""
        return (count * self.bits + 7) // 8

    def holds(self, other: "DType") -> bool:
        """Every value of `other` is one of this type, exactly."""
        if other.is_float:
            digits = other.digits <= self.digits
            return self.is_float and digits and other.largest <= self.largest and other.smallest >= self.smallest
        if self.is_float:
            return max(-other.low, other.high) <= 1 << self.digits
        return self.low <= other.low and other.high <= self.high

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtypes.{self.name}"


def _float(name: str, np_: object, c: str) -> DType:
    """A float whose NumPy form says its range; one of less than 32 bits is computed in f32."""
    kept = np.dtype(np_)  # type: ignore[call-overload]
    found, bits = ml_dtypes.finfo(kept), kept.itemsize * 8  # type: ignore[no-untyped-call]
    wide, value = (np.float64, "double") if bits == 64 else (np.float32, "float")
    digits, ends = int(found.nmant) + 1, (float(found.smallest_subnormal), float(found.max))
    return DType(name, bits, "float", kept, np.dtype(wide), c, value, 0, 0, digits, *ends)


def _whole(name: str, kind: str, bits: int, np_: object, value: str, low: int, high: int) -> DType:
    """A type of whole numbers; `value` is the name of its integer in NumPy, and with `_t` in C."""
    c = "uint8_t" if bits < 8 else f"{value}_t"
    wide = np.bool_ if kind == "bool" else value
    return DType(name, bits, kind, np.dtype(np_), np.dtype(wide), c, f"{value}_t", low, high)  # type: ignore[call-overload]


def _integer(bits: int, signed: bool) -> DType:
    kind, sign, letter = ("int", "", "i") if signed else ("uint", "u", "u")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    word = f"{sign}int{max(bits, 8)}"
    # ml_dtypes has 2- and 4-bit integers; one-bit values are held in a byte.
    border = getattr(ml_dtypes, f"{sign}int{bits}") if bits in (2, 4) else word
    return _whole(f"{letter}{bits}", kind, bits, border, word, low, high)


f8 = _float("f8", ml_dtypes.float8_e5m2, "oic_f8")
f16 = _float("f16", np.float16, "oic_f16")
bf16 = _float("bf16", ml_dtypes.bfloat16, "oic_bf16")
f32 = _float("f32", np.float32, "float")
f64 = _float("f64", np.float64, "double")
i1, i2, i4, i8, i16, i32, i64 = (_integer(bits, signed=True) for bits in (1, 2, 4, 8, 16, 32, 64))
u1, u2, u4, u8, u16, u32, u64 = (_integer(bits, signed=False) for bits in (1, 2, 4, 8, 16, 32, 64))
bool_ = _whole("bool", "bool", 8, np.bool_, "uint8", 0, 1)
bitset = _whole("bitset", "bitset", 8, np.uint8, "uint8", 0, 255)
t1 = _whole("t1", "ternary", 1, np.int8, "int8", -1, 1)
t2 = _whole("t2", "ternary", 2, np.int8, "int8", -1, 1)

ALL = {d.name: d for d in (
    f8, f16, bf16, f32, f64, i1, i2, i4, i8, i16, i32, i64, u1, u2, u4, u8, u16, u32, u64, bool_, bitset, t1, t2,
)}  # fmt: skip
FLOATS = tuple(d for d in ALL.values() if d.is_float)

# The classes of OPS, "Everywhere".
FLT = frozenset(FLOATS)
SINT = frozenset(d for d in ALL.values() if d.kind == "int")
INT = frozenset(d for d in ALL.values() if d.is_int)
NUM = FLT | INT
WHOLE = frozenset(d for d in INT if not d.packed)  # integers of whole bytes


def store(values: Array, dtype: DType) -> Array:
    """Values computed wide, rounded or wrapped once to `dtype`; shape kept.

    Floats round to nearest-even with subnormals kept; integers wrap modulo 2^width; t1 has no zero,
    which is stored as -1.
    """
    values = np.asarray(values)
    if dtype.kind == "bool":
        return values.astype(np.bool_)
    if dtype.is_int and dtype.packed:
        return wrap(values, dtype).astype(dtype.np)
    if dtype is t1:
        return np.where(values > 0, 1, -1).astype(dtype.np)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype.np)


def stays_finite(number: float, dtype: DType) -> bool:
    """The value of a float dtype that is nearest to a number is finite."""
    return bool(np.isfinite(store(np.array(number, np.float64), dtype).astype(float)))


def wrap(values: Array, dtype: DType) -> Array:
    """Integers reduced modulo 2^width into the range of an integer dtype, as i64 (u64 for u64)."""
    if dtype.bits == 64:
        return np.asarray(values).astype(dtype.np)
    with np.errstate(over="ignore"):
        wide = np.asarray(values).astype(np.int64)
    low = wide & ((1 << dtype.bits) - 1)
    return np.where(low > dtype.high, low - (1 << dtype.bits), low) if dtype.low < 0 else low


def widen(values: Array, dtype: DType) -> Array:
    """Stored values in the dtype an operator's reference computes in."""
    return np.asarray(values).astype(dtype.wide)


def from_array(dtype: np.dtype[np.generic]) -> DType | None:
    """The element type whose Python form is this NumPy dtype, or None."""
    return _BY_NP.get(np.dtype(dtype))


_BY_NP: dict[np.dtype[np.generic], DType] = {
    d.np: d for d in reversed(ALL.values()) if d.kind not in ("ternary", "bitset") and d.bits != 1
}


def pack(values: Array, dtype: DType) -> NDArray[np.uint8]:
    """The bytes that store these elements in row-major order; packed types share bytes, LSB first."""
    flat = np.ascontiguousarray(values).reshape(-1)
    if not dtype.packed:
        return flat.astype(dtype.np, copy=False).view(np.uint8)
    whole = flat.astype(np.int64)
    codes = whole > 0 if dtype is t1 else whole & ((1 << dtype.bits) - 1)  # a stored zero of t1 is -1, bit 0
    per = 8 // dtype.bits
    padded = np.zeros((len(codes) + per - 1) // per * per, np.uint8)
    padded[: len(codes)] = codes
    shifts = (np.arange(per) * dtype.bits).astype(np.uint8)
    joined: NDArray[np.uint8] = np.bitwise_or.reduce(padded.reshape(-1, per) << shifts, axis=1)
    return joined


def is_zeros(value: Any, dtype: DType) -> bool:
    """The stored form of a number is all zeros."""
    return not pack(store(np.asarray([value]), dtype), dtype).any()


def unpack(data: Array, dtype: DType, count: int) -> Array:
    """`count` elements read from stored bytes; the reverse of `pack`."""
    raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    if not dtype.packed:
        return raw[: dtype.nbytes(count)].view(dtype.np)
    return _unpacked(dtype)[raw].reshape(-1)[:count].view(dtype.np)


@cache
def _unpacked(dtype: DType) -> NDArray[np.uint8]:
    """The elements that each byte holds, u8[256, elements a byte], as bytes of `dtype.np`."""
    shifts = np.arange(8 // dtype.bits) * dtype.bits
    codes = np.arange(256)[:, None] >> shifts
    values = (codes & 1) * 2 - 1 if dtype is t1 else wrap(codes, dtype)
    return values.astype(dtype.np).view(np.uint8)
