"""Rules of settings that many operators share: numbers of the operand's kind, and `acc=`.

A setting is a plain number, or a Value of one element read at run time: an index integer, or a
tensor where the operand is a float (f32, f64).  Integers take integer settings, of a value that
the operand's type has: else an error at build, or OIC_ERR_INDEX.  A float setting may be written
as an integer.  Lowering has seen to it that a setting is of the kind that its annotation says, and a variable
of one element (`lower/operands.py`); what is asked here is what the types of operands decide.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oic.diagnostics import listed
from oic.dtypes import Array, DType, f32, f64, i64, stays_finite, wrap
from oic.ir.core import Op, OpError, Value, is_index
from oic.ir.index import CheckRange

MOST = i64.high
Number = Any  # bool, int or float
KINDS = {"bool": "true or false", "DType": "an element type"}  # by annotation


def refuse(op: Op, where: str, wanted: str, hint: str | None = None) -> OpError:
    """The error for a setting of another kind than `wanted`."""
    given = getattr(op, where)
    shown = given.type if isinstance(given, Value) else f'"{given}"' if isinstance(given, str) else str(given).lower()
    return OpError("op-setting", f"{where} of {op.name} is {wanted}, not {shown}", where, hint)


def require_number(op: Op, where: str, dtype: DType) -> None:
    """Refuse a setting that is no number for operands of `dtype`.  None is the default."""
    setting = getattr(op, where)
    if setting is None:
        return
    if isinstance(setting, Value):
        _require_scalar(op, where, dtype, setting)
    elif dtype.is_float:
        require_finite(op, where, dtype.computed)
    else:
        require_integer(op, where, dtype.low, dtype.high, f" for {dtype}")


def require_sign(op: Op, where: str, dtype: DType, *, zero: bool = True) -> None:
    """Refuse a setting that is no number for operands of `dtype`, or is negative, or 0 where that is none either."""
    require_number(op, where, dtype)
    setting = getattr(op, where)
    if setting is not None and not isinstance(setting, Value) and not (setting > 0 or (zero and setting == 0)):
        raise OpError("op-setting", f"{where} {setting} is {'negative' if zero else 'not positive'}", where)


def require_integer(op: Op, where: str, low: int, high: int, why: str = "") -> None:
    """Refuse a known setting that is not an integer in low..high."""
    setting = getattr(op, where)
    if isinstance(setting, Value):
        return
    if isinstance(setting, bool) or not isinstance(setting, int):
        raise refuse(op, where, f"an integer{why}")
    if not low <= setting <= high:
        raise refuse(op, where, f"from {low} to {high}{why}")


def require_kinds(op: Op, words: Mapping[str, Sequence[str]]) -> None:
    """Refuse what is given for a flag or an element type and is none, and other words than these, by setting."""
    for where, field in op.fields.items():
        kind, *more = field.annotation.split(" | ")
        setting = getattr(op, where)
        if kind in KINDS and type(setting).__name__ != kind and not (more and setting is None):
            raise refuse(op, where, KINDS[kind])
    for where, known in words.items():
        if getattr(op, where) not in known:
            raise refuse(op, where, listed([f'"{word}"' for word in known], "or"))


def range_checks(op: Op, dtype: DType, *names: str) -> list[Op]:
    """Checks that integers read at run time are values of the type they are used with."""
    low, high = max(dtype.low, -MOST - 1), min(dtype.high, MOST)
    checks: list[Op] = []
    for where in names:
        value = getattr(op, where)
        if isinstance(value, Value) and is_index(value) and (low, high) != (-MOST - 1, MOST):
            checks.append(CheckRange(value, low, high, "OIC_ERR_INDEX", "OIC_ERR_INDEX", where))
    return checks


def _require_scalar(op: Op, where: str, dtype: DType, setting: Value) -> None:
    if is_index(setting):
        fits = dtype.is_int
    elif dtype.is_float:
        fits = setting.dtype in {f32, f64}
    else:
        fits = setting.dtype.is_int and dtype.holds(setting.dtype)
    if not fits:
        raise refuse(op, where, "an f32 or f64 variable" if dtype.is_float else "an integer variable")


def require_finite(op: Op, where: str, dtype: DType) -> None:
    """Refuse a known finite number that would become infinite in a float dtype."""
    setting = getattr(op, where)
    known = dtype.is_float and isinstance(setting, int | float) and math.isfinite(setting)
    if known and not stays_finite(setting, dtype):
        raise refuse(op, where, f"within the range of {dtype}")


def as_computed(setting: Number, dtype: DType) -> Array:
    """A number in the dtype operands are computed in: floats rounded, integers wrapped."""
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return np.asarray(setting, np.float64).astype(dtype.wide)
    return wrap(np.asarray(int(setting)), dtype).astype(dtype.wide)


def accumulated(op: Op, dtype: DType) -> DType:
    """The result's dtype, that of `acc=` where an op has it: integers only; wider, of the same signedness."""
    acc = getattr(op, "acc", None)
    if acc is None:
        return dtype
    if not dtype.is_int:
        raise OpError("op-setting", f"{op.name} of {dtype} takes no acc: it is for integers", "acc")
    if acc.kind != dtype.kind or acc.bits <= dtype.bits:
        wanted = "a wider signed integer" if dtype.kind == "int" else "a wider unsigned integer"
        raise refuse(op, "acc", f"{wanted} than {dtype}")
    return acc


def in_64_bits(x: Array, dtype: DType) -> Array:
    """Integers in 64 bits of their signedness; all else as it is."""
    return x.astype(np.int64 if dtype.kind == "int" else np.uint64) if dtype.is_int else x
