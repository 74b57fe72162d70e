"""Products with weights in groups (`ir.quantized`): the rows of x are quantised in groups alike while they are used."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from oic.dtypes import Array, DType, bf16, f32
from oic.ir import dims
from oic.ir.core import Op, Value
from oic.ir.dims import Dim
from oic.ir.encodings import NARROW, PAIRED, joined, nbytes, storage_of
from oic.ir.quantized import GROUP, GROUP_STORAGES, MOST, STREAM, groups
from oic.kernels.kernel import Kernel, KernelArgs, Scratch
from oic.kernels.targets import NATIVE

FLOATS = ("", *NARROW)  # storages that a kernel for floats reads, as instances of its body
PAIRS = "linear_pairs"  # the kernel of the class `native`
GROUP_BYTES = 80  # of working memory for a group of a row of x
AT_ONCE = 128  # rows of x, at most, that there is room for


def streamed(value: Value, layout: str) -> float:
    """Bytes of a matrix in a layout, all of which a kernel reads."""
    return nbytes(value.dtype, value.tensor.maximum, joined(storage_of(value.tensor.encoding), layout))


def streams(op: Any) -> Dim:
    """What threads can share of a product with a matrix in panels."""
    return dims.floor_div(op.result.shape[-1] + STREAM - 1, STREAM)


def products(op: Any) -> Dim:
    """Multiplications of a product, each with an addition."""
    return dims.floor_div(op.operations(), 2)


def product_dtype(w: Value) -> DType:
    """The element type that bodies are included for: what is stored, and for groups what they encode."""
    return w.dtype if in_groups(w) else w.tensor.stored


def in_panels(
    x: str, w: str, types: Any, args: Callable[[Any], KernelArgs], fits: Callable[[Any], bool], layout: str
) -> tuple[Kernel, ...]:
    """Rows of a product of floats, the fields x and w, with w in panels.

    Where it is bf16, in the class `native`, x is rounded to bf16, once a row; where it is in groups, x is quantised.
    """

    def narrow(op: Any) -> bool:
        stored = getattr(op, w).tensor.stored
        return fits(op) and stored is bf16 and getattr(op, x).dtype in (f32, bf16)

    def of_f32(op: Any) -> bool:
        return fits(op) and getattr(op, x).dtype is getattr(op, w).dtype is f32

    def paired(op: Any) -> KernelArgs:
        return _with_room(args(op), getattr(op, x).shape, lambda size: 2 * (size + 1))

    def grouped(op: Any) -> KernelArgs:
        return _with_room(args(op), getattr(op, x).shape, lambda size: groups(size) * GROUP_BYTES)

    plain = Kernel("linear_panels", types, args, fits=fits, takes={w: layout}, stored={w: FLOATS}, layouts={x: 1},
                   cost=lambda op, target: streamed(getattr(op, w), layout), units=streams, work=products,
                   then=True)  # fmt: skip
    prepared = replace(plain, phases=True, joins=True)
    return (
        replace(prepared, name=PAIRS, args=paired, fits=narrow, takes={w: PAIRED[layout]}, stored={w: ("", "bf16")},
                needs=frozenset({NATIVE})),
        plain,
        *of_groups(replace(prepared, name="linear", args=grouped, fits=of_f32), w),
    )


def of_groups(kernel: Kernel, field: str) -> tuple[Kernel, ...]:
    """A kernel for every storage in groups of a field, named after it: `linear` gives `linear_q8`, and so on."""
    return tuple(replace(kernel, name=f"{kernel.name}_{s}", stored={field: (s,)}) for s in GROUP_STORAGES)


def in_groups(w: Value) -> bool:
    """The weights are stored as integers with scales."""
    return storage_of(w.tensor.encoding) in GROUP_STORAGES


def refused_rows(x: Array) -> Array:
    """x [.., K] with NaN for all of a row that has a NaN or an infinity: no scale holds it."""
    finite = np.isfinite(x).all(-1, keepdims=True)
    return x if finite.all() else np.where(finite, x, x.dtype.type(np.nan))


def steps(x: Array) -> Array:
    """How far each element of x [.., K] may be from what is computed with: half a step of its group, and a little."""
    k = x.shape[-1]
    padded = np.pad(np.abs(x), [(0, 0)] * (x.ndim - 1) + [(0, -k % GROUP)])
    amax = padded.reshape(*x.shape[:-1], -1, GROUP).max(-1, initial=0.0)
    half = np.where(amax < 2.0**-118, amax, amax * ((0.5 + 2.0**-12) / MOST))  # what is so small becomes 0
    return np.repeat(half, GROUP, -1)[..., :k]


def pairs_bound(bound: Array, x: Array, w: Array, rounded: bool) -> Array:
    """A bound of x [.., K] @ w [K, N] with what products in pairs add to it.

    rounded   x is rounded to bf16; what is below its least normal number may be taken for zero in any case
    """
    x, w = np.abs(x), np.abs(w)
    lost = 2.0**-126 * (x.sum(-1, keepdims=True) + w.sum(-2) + 3 * x.shape[-1])
    return np.asarray(bound * (1 + 2.0**-6) + lost + (2.0**-8 * np.matmul(x, w) if rounded else 0.0))


def bound_as_computed(op: Op, w: Value, bound: Array, rows: Array, columns: Array) -> Array:
    """A bound of the product of op, rows @ columns, with what its kernel, or the storage of w, adds to it."""
    if in_groups(w):
        return np.asarray(bound * (1 + 2.0**-6) + np.matmul(steps(rows), np.abs(columns)))
    return pairs_bound(bound, rows, columns, op.operands[0].dtype is f32) if op.kernel == PAIRS else bound


def _with_room(given: KernelArgs, shape: tuple[Dim, ...], nbytes: Callable[[int], int]) -> KernelArgs:
    """The arguments of a product of x of this shape, and room for rows as they are used, of so many bytes."""
    room = min(AT_ONCE, max(1, dims.maximum(dims.product(shape[:-1]))))
    return {**given, "room": room, "work": Scratch(room * nbytes(dims.maximum(shape[-1])))}
