"""Literals as values of an element type: which may be (SPEC section 5), and what they are then."""

from typing import Any

from oic import dtypes
from oic.syntax import tree as s


def literal_problem(value: s.Literal, dtype: dtypes.DType) -> tuple[str, str, str | None] | None:
    """'kind' or 'range', message and hint where a literal cannot be a value of an element type."""
    written = value.span.text
    match value, dtype.kind:
        case s.Float(number), "float":
            fits = written.lstrip("- ") in ("inf", "nan") or dtypes.stays_finite(number, dtype)
            return None if fits else _out_of_range(written, dtype)
        case s.Int(), "float":
            return "kind", f"{dtype} takes a float literal, not the integer {written}", f"write {value.value}.0"
        case s.Bool(), "bool":
            return None
        case s.Int(number), "bool" | "int" | "uint" | "bitset" | "ternary":
            return None if dtype.low <= number <= dtype.high else _out_of_range(written, dtype)
        case s.Float(number), "int" | "uint" | "bitset" | "ternary":
            fix = f"write {int(number)}" if abs(number) < 1e18 and number == int(number) else None
            return "kind", f"{dtype} takes an integer literal, not the float {written}", fix
    wanted = {"float": "a float", "bool": "true or false"}.get(dtype.kind, "an integer")
    return "kind", f"{dtype} takes {wanted}, not {written}", None


def number(value: Any, dtype: dtypes.DType) -> Any:
    """A literal's value as the Python value of an element type."""
    if dtype.kind == "bool":
        return bool(value)
    return float(value) if dtype.is_float else int(value)


def _out_of_range(written: str, dtype: dtypes.DType) -> tuple[str, str, None]:
    limits = "" if dtype.is_float else f" ({dtype.low} to {dtype.high})"
    return "range", f"{written} is out of the range of {dtype}{limits}", None
