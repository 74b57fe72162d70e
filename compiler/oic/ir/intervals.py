"""Intervals of integers: the smallest and the largest value of sums, products and quotients."""

from collections.abc import Callable

from oic.dtypes import i64

Range = tuple[int, int]
WIDE: Range = (i64.low, i64.high)


def plus(a: Range, b: Range) -> Range:
    """left + right."""
    return a[0] + b[0], a[1] + b[1]


def minus(a: Range, b: Range) -> Range:
    """left - right."""
    return a[0] - b[1], a[1] - b[0]


def times(a: Range, b: Range) -> Range:
    """left * right."""
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def quotient(a: Range, b: Range) -> Range:
    """left // right; 0 where right is below 1."""
    corners = [x // max(1, y) for x in a for y in b]
    return (min(corners), max(corners)) if b[0] > 0 else (min(0, *corners), max(0, *corners))


def remainder(a: Range, b: Range) -> Range:
    """left % right; 0 where right is below 1."""
    if a[0] >= 0 and a[1] < b[0]:
        return a
    if 0 < b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
        return a[0] % b[0], a[1] % b[0]
    most = max(0, b[1] - 1)
    return 0, min(most, a[1]) if a[0] >= 0 else most


def smaller(a: Range, b: Range) -> Range:
    """The smaller of two."""
    return min(a[0], b[0]), min(a[1], b[1])


def larger(a: Range, b: Range) -> Range:
    """The larger of two."""
    return max(a[0], b[0]), max(a[1], b[1])


def joined(*ranges: Range) -> Range:
    """One of several."""
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def meet(a: Range, b: Range) -> Range:
    """In both; where that is empty, as in code that never runs, the first."""
    (low, high), (least, most) = a, b
    low, high = least if least > low else low, most if most < high else high
    return (low, high) if low <= high else a


def within(a: Range, limits: Range) -> bool:
    """All of the values lie between the limits."""
    return limits[0] <= a[0] and a[1] <= limits[1]


ARITHMETIC: dict[str, Callable[[Range, Range], Range]] = {
    "+": plus, "-": minus, "*": times, "/": quotient, "%": remainder,
}  # fmt: skip
