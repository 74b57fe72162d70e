"""What tells a model the position of a token: `rope`, `relative_position_bias`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oic.dtypes import FLT, INT, Array, f32, f64, i32
from oic.ir import dims
from oic.ir.core import Op, OpError, Value, is_index
from oic.ir.dims import Dim
from oic.ir.index import at_least
from oic.ir.types import Type
from oic.kernels.kernel import Converted, Kernel, KernelArgs, Out, Stride, flag
from oic.operators.base import Operator
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.settings import require_sign
from oic.operators.shape import require_size
from oic.operators.work import ELEMENTWISE, elementwise_work

FAR = 1 << 62  # a distance behind all borders, with which sums are still numbers


def is_one(op: Op, where: str) -> bool:
    """Positions are one integer for all; refuses tensors of other types, and of several that are not i32."""
    given = getattr(op, where)
    if not isinstance(given, Value) or is_index(given):
        return True
    op.require(where, INT)
    if given.tensor.size != 1:
        op.require(where, (i32,))
    return given.tensor.size == 1


def turns_of(positions: Any, rows: int, half: int, base: Any, freqs: Array | None) -> Array:
    """f32 cosines and then sines [.., rows, 2·half] of positions that are one for row 0, or one a row."""
    if freqs is None:
        freqs = (float(base) ** (-2.0 * np.arange(half) / (2 * half))).astype(np.float32)
    given: Any = np.asarray(positions).astype(np.int64)
    if given.size == 1:
        given = given.reshape(()) + np.arange(rows)
    angle = (given.astype(np.float32)[..., None] * freqs.astype(np.float32)).astype(np.float64)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=-1).astype(np.float32)


def one_or_each(given: Any, rank: int) -> tuple[Value | None, tuple[Dim | Stride, ...], Any]:
    """Positions as (pointer or None, its strides, aligned to the right of so many axes, the one for all otherwise)."""
    if not isinstance(given, Value) or is_index(given) or given.tensor.size == 1:
        return None, (), Converted(given, "int64_t")
    own = given.tensor.rank
    return given, (*[0] * (rank - own), *(Stride(given, a) for a in range(own))), Converted(0, "int64_t")


class Rope(Operator, name="rope"):
    """Rotary position embedding: pairs of elements turned by an angle that grows with the position.

    x        [.., N, H, Dh] float
    freqs    f32 [dims/2]; default base^(-2d/dims), from f64
    pos      position of row 0, row i is at pos + i; or i32 [N] or [.., N], a position each
    base     of the default freqs
    style    "half": element d turns with d + dims/2; "interleaved": 2d turns with 2d + 1
    dims     elements that turn, even, default Dh; those beyond are unchanged
    turns    the compiler's: f32 [N, dims] or [.., N, dims], cosines and sines, instead of pos, freqs and base
    result   the type of x

    angle = f32(position)·f32(freq); its cosine and sine and the products in f32 (for f64 too),
    rounded once; error at most 4·ε·(|a| + |b|) for a pair a, b.
    Order: a·cos - b·sin and b·cos + a·sin; the powers of base one product after the other.
    Source: Su et al., RoFormer, 2021; OPS, Part B.
    """

    x: Value
    freqs: Value | None = None
    pos: int | Value
    base: float | int | Value = 10000.0
    style: str = "half"
    dims: int | None = None
    turns: Value | None = None

    derived = ("turns",)
    allowed = FLT
    words = {"style": ("half", "interleaved")}
    tensors = ("pos",)
    examples = (
        ("f32[3, 2, 8]", "pos=5"), ("f32[2, 3, 1, 6]", 'pos=0, style="interleaved"'),
        ("f16[2, 2, 8]", "pos=3, dims=4, base=500000.0"), ("f32[2, 1, 4]", "freqs=f32[2]", "pos=100"),
        ("f64[2, 1, 4]", "pos=1"),
    )  # fmt: skip

    def infer(self) -> list[Type]:
        self.require_rank("x", 3)
        turned, width = self._turned(), self.x.shape[-1]
        if turned < 0 or turned % 2 or (isinstance(width, int) and turned > width):
            raise OpError("op-setting", f"dims {turned} is not an even part of {width}", "dims")
        require_sign(self, "base", f64, zero=False)
        if self.freqs is not None:
            self.require("freqs", (f32,))
            self.require_shape("freqs", [turned // 2])
        if not is_one(self, "pos"):
            pos, rows = self.values_of("pos")[0], self.x.shape[:-2]
            if pos.tensor.rank not in (1, len(rows)):
                raise OpError("shape-mismatch", f"{pos.type} is not one position a row of {self.x.type}", "pos")
            self.require_shape("pos", rows[-pos.tensor.rank :])
        if self.turns is not None:
            self.require("turns", (f32,))
            self.require_shape("turns", [*self.x.shape[-1 - self.turns.tensor.rank : -2], turned])
        return [self.x.type]

    def checks(self) -> list[Op]:
        """What is turned may not be there at run time."""
        return at_least(self._turned(), self.x.shape[-1])

    def _turned(self) -> int:
        turned = self.x.shape[-1] if self.dims is None else self.dims
        if not isinstance(turned, int):
            raise OpError("op-setting", f"dims must be given: {turned} is not known at build", "dims")
        return turned

    def reference(self, x: Array, freqs: Array | None = None, turns: Array | None = None) -> Array:
        half = self._turned() // 2
        if turns is None:
            turns = turns_of(self.pos, x.shape[-3], half, self.base, freqs)
        wide = turns.astype(np.float64)[..., None, :]
        cos, sin = wide[..., :half], wide[..., half:]
        y = x.astype(np.float64)
        first, second = self._pairs()
        a, b = y[..., first], y[..., second]
        out = y.copy()
        out[..., first] = a * cos - b * sin
        out[..., second] = b * cos + a * sin
        return out

    def _pairs(self) -> tuple[slice, slice]:
        turned = self._turned()
        if self.style == "half":
            return slice(0, turned // 2), slice(turned // 2, turned)
        return slice(0, turned, 2), slice(1, turned, 2)

    def tolerance(self, y: Array, *inputs: Any) -> Array:
        x = np.abs(real(inputs[0]))
        first, second = self._pairs()
        reach = np.zeros_like(x)
        reach[..., first] = reach[..., second] = x[..., first] + x[..., second]
        bound = rounded(y, 4 * epsilon(f32) * reach, self.x.dtype, reach)
        return np.where(np.arange(x.shape[-1]) < self._turned(), bound, 0.0)

    def angles(self) -> RopeAngles:
        """What it is turned by, as an op of its own."""
        shape = [self.x.shape[-3]] if is_one(self, "pos") else list(self.values_of("pos")[0].shape)
        return RopeAngles(shape, self._turned(), freqs=self.freqs, pos=self.pos, base=self.base, span=self.span)

    def _args(self) -> KernelArgs:
        pointer, steps, first = one_or_each(self.pos, self.x.tensor.rank - 2)
        return self._members(pos=pointer, ps=steps, first=first, freqs=self.freqs, base=Converted(self.base, "double"))

    def _turned_args(self) -> KernelArgs:
        assert self.turns is not None
        own = self.turns.tensor.rank - 1
        steps = (*[0] * (self.x.tensor.rank - 2 - own), *(Stride(self.turns, a) for a in range(own)))
        return self._members(turns=self.turns, ts=steps)

    def _members(self, **more: Any) -> KernelArgs:
        x = self.x
        lead, rows = x.shape[:-3], dict(zip(("N", "H", "D"), x.shape[-3:]))
        where = tuple(Stride(x, a) for a in range(x.tensor.rank - 1))
        return {
            "x": x, "y": Out(), "rank": len(lead), "shape": lead, **rows, "xs": where, **more,
            "dims": self._turned(), "interleaved": flag(self.style == "interleaved"),
        }  # fmt: skip

    def _rows(self) -> Dim:
        return dims.product(self.x.shape[:-2])

    def _work(self) -> Dim:
        """What turning all elements is worth, and the sines and cosines of each row."""
        angles = ELEMENTWISE * self._turned() * self._rows() if self.turns is None else 0
        return ELEMENTWISE // 4 * self.x.tensor.size + angles

    kernels = (
        Kernel("rope", ("x",), _args, fits=lambda op: op.turns is None, layouts={"x": 1}, inplace=("x",), units=_rows,
               sized=True, work=_work),
        Kernel("rope_turned", ("x",), _turned_args, fits=lambda op: op.turns is not None, layouts={"x": 1},
               inplace=("x",), units=_rows, sized=True, work=_work),
    )


class RopeAngles(Operator, name="rope.angles"):
    """Cosines and sines that several `rope` turn by: the compiler's own (`passes/share_angles.py`).

    shape    of the positions: N, or the leading axes and N
    dims     elements that turn
    freqs, pos, base  those of rope
    result   f32 [*shape, dims]: of each row the cosines of dims/2 angles, then their sines

    As rope has them.
    """

    shape: list[Dim]
    dims: int
    freqs: Value | None = None
    pos: int | Value = 0
    base: float | int | Value = 10000.0

    catalog = False
    allowed = frozenset({f32})
    tensors = ("pos",)

    def infer(self) -> list[Type]:
        return self.tensor(f32, [*self.shape, self.dims])

    def reference(self, freqs: Array | None = None) -> Array:
        sizes: Any = tuple(self.shape)
        return turns_of(self.pos, sizes[-1], self.dims // 2, self.base, freqs)

    def tolerance(self, y: Array, *inputs: Any) -> float:
        return 2 * epsilon(f32)

    def _args(self) -> KernelArgs:
        pointer, steps, first = one_or_each(self.pos, len(self.shape))
        return {
            "pos": pointer, "y": Out(), "rank": len(self.shape) - 1, "shape": tuple(self.shape[:-1]),
            "N": self.shape[-1], "ps": steps, "first": first, "freqs": self.freqs,
            "base": Converted(self.base, "double"), "dims": self.dims,
        }  # fmt: skip

    kernels = (
        Kernel("rope_angles", ("result",), _args, units=lambda op: dims.product(op.shape), sized=True,
               work=elementwise_work),
    )


class RelativePositionBias(Operator, name="relative_position_bias"):
    """T5's bias of attention scores: an entry of a table chosen by the bucketed distance.

    table          [buckets, H] float
    q_start        position of query 0
    n, t           queries, keys (sizes)
    bidirectional  half of the buckets is for keys after the query
    max_distance   from here on distances share the last bucket
    result         f32 [H, n, t]: table[bucket(j - (q_start + i)), h], from f64 rounded

    Exact: the borders of the buckets are found in integers.
    Source: Raffel et al., T5, 2020; Hugging Face transformers, `T5Attention._relative_position_bucket`.
    """

    table: Value
    q_start: int | Value
    n: Dim
    t: Dim
    bidirectional: bool
    max_distance: int = 128

    allowed = FLT
    examples = (
        ("f32[32, 2]", "q_start=0, n=4, t=9, bidirectional=true"),
        ("f16[8, 3]", "q_start=200, n=2, t=202, bidirectional=false, max_distance=20"),
    )

    def infer(self) -> list[Type]:
        self.require_rank("table", 2, 2)
        for where in ("n", "t"):
            require_size(getattr(self, where), where)
        buckets = self.table.shape[0]
        least = 4 if self.bidirectional else 2
        if not isinstance(buckets, int) or buckets < least or (self.bidirectional and buckets % 2):
            raise OpError("shape-mismatch", f"{buckets} buckets cannot be divided", "table")
        if self.max_distance <= self._exact():
            message = f"max_distance {self.max_distance} is within the {self._exact()} exact buckets"
            raise OpError("op-setting", message, "max_distance")
        return self.tensor(f32, [self.table.shape[1], self.n, self.t])

    def _half(self) -> int:
        buckets = dims.maximum(self.table.shape[0])
        return buckets // 2 if self.bidirectional else buckets

    def _exact(self) -> int:
        return self._half() // 2

    def borders(self) -> list[int]:
        """The smallest distance of each bucket beyond the exact ones, the first excluded.

        e + trunc(ln(r/e)/ln(m/e)·(half-e)) reaches e + i where r^(half-e)·m^-i ≥ e^(half-e-i).
        """
        half, e, m = self._half(), self._exact(), self.max_distance
        found: list[int] = []
        for i in range(1, half - e):
            r = max(e, math.floor(e * (m / e) ** (i / (half - e))) - 1)
            while r ** (half - e) * e**i < m**i * e ** (half - e):
                r += 1
            found.append(r)
        return found

    def reference(self, table: Array) -> Array:
        n, t = int(self.n), int(self.t)  # type: ignore[arg-type]
        start = min(max(int(self.q_start), -FAR), FAR)  # type: ignore[arg-type]
        r = np.arange(t) - (start + np.arange(n)[:, None])
        base = np.where(r > 0, self._half(), 0) if self.bidirectional else 0
        r = np.abs(r) if self.bidirectional else np.maximum(-r, 0)
        far = self._exact() + np.searchsorted(np.asarray(self.borders(), np.int64), r, side="right")
        bucket = base + np.where(r < self._exact(), r, far)
        return np.moveaxis(table[bucket], -1, 0)

    def _args(self) -> KernelArgs:
        borders, start = self.borders(), Converted(self.q_start, "int64_t")
        rule = {"half": self._half(), "exact": self._exact(), "borders": tuple(borders), "count": len(borders)}
        both = flag(self.bidirectional)
        return self.members(H=self.table.shape[1], n=self.n, t=self.t, q_start=start, **rule, bidirectional=both)

    kernels = (
        Kernel("relative_position_bias", ("table",), _args, units=lambda op: op.n, sized=True, work=elementwise_work),
    )  # fmt: skip
