"""Shapes of what operators give, for tests that declare it."""

from __future__ import annotations

Shape = tuple[int, ...]


def convolved(name: str, x: Shape, w: Shape, settings: dict[str, list[int]]) -> Shape:
    """Sizes along the axes that a convolution goes over."""
    n = len(w) - 2
    defaults = (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))
    each = zip(x[-n:], w[2:], *(settings.get(k, [d] * n) for k, d in defaults), strict=True)
    if "transpose" in name:
        return tuple((size - 1) * s - 2 * p + d * (k - 1) + more + 1 for size, k, s, p, d, more in each)
    return tuple((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d, _ in each)
