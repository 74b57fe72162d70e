"""Strides: elements between neighbours along each dimension."""

from functools import lru_cache

from oic.ir import dims
from oic.ir.dims import Dim

Shape = tuple[Dim, ...]
Strides = tuple[Dim, ...]


@lru_cache(maxsize=1 << 12)
def dense(shape: Shape) -> Strides:
    """Row-major strides without gaps."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


@lru_cache(maxsize=1 << 12)
def is_dense(shape: Shape, strides: Strides, inner: int | None = None) -> bool:
    """The innermost `inner` dimensions (all of them) lie without gaps, in order."""
    first = 0 if inner is None else max(0, len(shape) - inner)
    step: Dim = 1
    for size, stride in zip(reversed(shape[first:]), reversed(strides[first:]), strict=True):
        if size != 1 and stride != step:
            return False
        step = step * size
    return True


def reshaped(old_shape: Shape, base: Strides, shape: Shape) -> Strides | None:
    """Strides of the same elements in another shape; None unless every size comes of neighbours without gaps."""
    if is_dense(old_shape, base):
        return dense(shape)
    old = [(n, s) for n, s in zip(old_shape, base, strict=True) if n != 1]
    new = [n for n in shape if n != 1]
    found: list[Dim] = []
    while old and new:
        (size, stride), wanted = old.pop(0), [new.pop(0)]
        while size != dims.product(wanted):
            if dims.maximum(size) < dims.maximum(dims.product(wanted)):  # some of the old are one of the new
                if not old or stride != old[0][0] * old[0][1]:
                    return None
                more, stride = old.pop(0)
                size = size * more
            elif new:  # one of the old is some of the new
                wanted.append(new.pop(0))
            else:
                return None
        found += [s * stride for s in dense(tuple(wanted))]
    if old or new:
        return None
    rest = iter(found)
    return tuple(0 if n == 1 else next(rest) for n in shape)


def repeated(old_shape: Shape, base: Strides, shape: Shape) -> Strides:
    """Strides of 0 along the axes that are new, and those that had one element."""
    missing = len(shape) - len(base)
    inner = zip(old_shape, base, shape[missing:], strict=True)
    return (0,) * missing + tuple(0 if n == 1 and d != 1 else s for n, s, d in inner)
