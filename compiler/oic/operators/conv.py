"""Convolutions over the last one or two axes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from oic.dtypes import Array, DType, i8, i32, i64
from oic.ir import dims
from oic.ir.core import Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.encodings import PANELS
from oic.ir.encodings import ROWS as LANES
from oic.ir.index import at_least
from oic.ir.quantized import STREAM
from oic.ir.types import Type
from oic.kernels.kernel import Kernel, KernelArgs, Scratch, flag
from oic.kernels.targets import Target
from oic.operators.base import Operator
from oic.operators.bounds import epsilon, real, rounded
from oic.operators.quant import REQUANTIZED, Sums, or_requantized
from oic.operators.quantized import products, streamed
from oic.operators.settings import accumulated, require_sign

MOST_ROWS = 48  # positions of a product: whole tiles, whose sums stay in a cache
MOST_BYTES = 1 << 16  # of what is gathered for them
PLANES = 1 << 17  # bytes of what is copied of x for a block of positions, if that leaves LEAST of a row
LEAST = 48
PLANES_COST = 0.85  # of weights that go by beside full registers of positions, where panels that are read once cost 1
SPARE, CHUNK = 8 * LANES, 256  # of conv_planes.h: behind the planes, lanes of OIC_TILE_PANELS; and OIC_CHUNK
OUTPUTS, WHOLE, HELD = 48, 12, 8  # of conv_axis.h: bytes of what is held
FILTERS = 8  # of conv_axis.h: OIC_CONV_FILTERS
ROWS = 4  # of conv_range.h: OIC_CONV_ROWS
FOUR, WORD_ROWS = 4, 12  # of conv_planes_int.h: input channels that lie together; OIC_WORD_ROWS, at most;
NEARS = 8  # registers of places of a word
BYTE_ROWS = 4  # of bytes.h: OIC_BYTE_ROWS
EIGHT = 8  # lanes.h: OIC_EIGHT
POINTS = 1 << 18  # bytes of points of a block of tiles (conv_winograd.h)
DEEP, TILES, RESULTS = 24, 16, 2048  # channels of a group, and tiles, of one output and of all, from which on these pay

SIDES = "both ends get as many; op pad(x, before=[…], after=[…]) adds what it is told, with any value"


def per_axis(op: Operator, where: str, count: int, least: int) -> tuple[int, ...]:
    """A setting as one integer for each of `count` axes; refuses smaller ones than `least`."""
    given = getattr(op, where)
    values = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(values) != count or any(not isinstance(v, int) or isinstance(v, bool) or v < least for v in values):
        what = f"an integer of at least {least}, or a list of {count}"
        raise OpError("op-setting", f"{where} {given} is not {what}", where, SIDES if where == "padding" else None)
    return tuple(values)


D = TypeVar("D", bound=Dim)


def two_axes(first: int, values: Sequence[D]) -> tuple[D | int, D]:
    """Sizes or settings of two axes, from one or two."""
    return (values[0], values[1]) if len(values) == 2 else (first, values[0])


def by_axis(**pairs: Sequence[Dim]) -> dict[str, Dim]:
    """Members NAME_y and NAME_x, of two axes."""
    return {f"{name}_{axis}": one for name, pair in pairs.items() for axis, one in zip("yx", pair, strict=True)}


def _alike(size: int, most: int, step: int = 1) -> int:
    """Positions of a block of at most so many, of blocks that are alike: a multiple of a step that divides the most."""
    blocks = -(-size // most)
    return -(-size // (blocks * step)) * step


def _filled(w: Array, axis: int) -> Array:
    """Weights with zeros at the end of an axis, to a multiple of FOUR."""
    added = [(0, 0)] * w.ndim
    added[axis] = (0, -w.shape[axis] % FOUR)
    return np.pad(w, added)


def in_fours(w: Array) -> Array:
    """Rows of weights [outputs, channels, taps]: [fours of channels, taps, 4]."""
    outputs, _, taps = w.shape
    filled = _filled(w, 1)
    return filled.reshape(outputs, filled.shape[1] // FOUR, FOUR, taps).swapaxes(-1, -2).reshape(outputs, -1)


class Convolution(Sums):
    """What the four convolutions share: operands, settings, the reference's frame."""

    stride: int | list[int] = 1
    padding: int | list[int] = 0
    dilation: int | list[int] = 1
    groups: int = 1
    taps: list[int] | None = None
    """Sizes of the window, where w is the matrix [O, C/groups·taps…] (`flattened`), or of bytes [O, fours·taps…·4] or,
    where words go along rows of x (`_in_rows`), [O, C/groups·taps…·fours·4]."""

    spatial = 1
    derived = ("taps", *REQUANTIZED)

    def infer(self) -> list[Type]:
        n = self.spatial
        self.require_same_dtype("x", "w")
        self.require_rank("x", n + 1)
        self.require_rank("w", *(2, 2) if self.taps else (n + 2, n + 2))
        require_sign(self, "groups", i64, zero=False)
        self.require_dim("x", -n - 1, self._inputs())
        if isinstance(self.w.shape[0], int) and self.w.shape[0] % self.groups:
            raise OpError("shape-mismatch", f"{self.w.type} is not divided by {self.groups} groups", "w")
        to = accumulated(self, self.x.dtype)
        if self.b is not None:
            self.require("b", {self.x.dtype, to})
            self.require_shape("b", [self._outputs()])
        return self.tensor(self.to or to, [*self.x.shape[: -n - 1], self._outputs(), *self._extent()[-n:]])

    def _inputs(self) -> Dim:
        return self._window()[0] * self.groups

    def _window(self) -> tuple[Dim, Dim, Dim]:
        """Channels of a group, then the sizes of the window along two axes."""
        if self.taps is None:
            return self.w.shape[1], *two_axes(1, self.w.shape[2:])
        if self._in_words():
            return dims.floor_div(self.x.shape[-self.spatial - 1], self.groups), *two_axes(1, self.taps)
        return dims.floor_div(self.w.shape[1], math.prod(self.taps)), *two_axes(1, self.taps)

    def flattens(self, target: Target) -> bool:
        if self.taps is not None or not self.w.tensor.static or 0 in self.w.shape:
            return False
        channels = self.x.shape[-self.spatial - 1]
        words = self.x.dtype is i8 and self.result.dtype.bits <= 32 and isinstance(channels, int)
        return self.x.dtype.is_float or (words and target.hosted)

    def flatten(self) -> None:
        """Take w as a matrix from here on."""
        self.taps = [dims.maximum(size) for size in self._window()[-self.spatial :]]

    def rows(self) -> Hashable:
        """What tells operators whose matrices of the same weights are alike."""
        return None

    def flattened(self, w: Array) -> Array:
        """The matrix of weights w, or of several."""
        outputs, channels, *taps = w.shape
        if self.x.dtype.is_float:
            return w.reshape(outputs, -1)
        if self._in_rows():
            return _filled(w, -1).reshape(outputs, -1)
        return in_fours(w.reshape(outputs, channels, math.prod(taps)))

    def operations(self) -> Dim:
        return 2 * self.result.tensor.size * dims.product(self._window())

    def _outputs(self) -> Dim:
        return self.w.shape[0]

    def _setting(self, where: str, none: int) -> tuple[int, int]:
        """A setting of two axes; `none`, the least that it may be, does nothing: what a missing first one has."""
        return two_axes(none, per_axis(self, where, self.spatial, none))

    def _settings(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """(stride, padding, dilation) of two axes."""
        return self._setting("stride", 1), self._setting("padding", 0), self._setting("dilation", 1)

    def _sizes(self, value: Value) -> tuple[Dim, Dim]:
        """Sizes of two axes of x, or of the result."""
        return two_axes(1, value.shape[-self.spatial :])

    def _extent(self) -> list[Dim]:
        """Sizes of two axes of the result."""
        found: list[Dim] = []
        for size, kernel, s, p, d in zip(self._sizes(self.x), self._window()[1:], *self._settings(), strict=True):
            found.append((size + 2 * p - d * (kernel - 1) - 1) // s + 1)
            if isinstance(found[-1], int) and found[-1] < 0:
                raise OpError("shape-mismatch", f"{self.w.type} does not fit into {self.x.type}", "w")
        return found

    def checks(self) -> list[Op]:
        """At run time the groups may not divide the channels, and sizes of the result may be negative."""
        count = self.w.shape[0]
        rest = dims.floor_div(count, self.groups) * self.groups - count
        return [op for size in (rest, *self.result.shape[-self.spatial :]) for op in at_least(0, size)]

    def reference(self, x: Array, w: Array, b: Array | None = None, *by: Array | None) -> Array:
        kind = np.float64 if self.x.dtype.is_float else np.int64
        y = self._sum(x.astype(kind), self._filters(w).astype(kind))
        if b is not None:
            y = y + b.astype(kind).reshape(-1, *[1] * self.spatial)
        return self.scaled(y, *by)

    def _filters(self, w: Array) -> Array:
        """w as [O, C/groups, KH, KW], of a transposed convolution [C, O/groups, KH, KW]: what `flattened` was given."""
        if self.taps is None:
            return w.reshape(*w.shape[:2], *two_axes(1, w.shape[2:]))
        outputs, (channels, taps) = w.shape[0], self._most()
        if not self.transposed and not self._in_words():
            return w.reshape(outputs, channels, *taps)
        rows = (self.groups * channels, outputs // self.groups) if self.transposed else (outputs, channels)
        filters = np.zeros((*rows, *taps), w.dtype)
        places = self.flattened(1 + np.arange(filters.size).reshape(filters.shape))  # 0 where it fills up
        filters.reshape(-1)[places[places > 0] - 1] = w[places > 0]
        return filters

    def _sum(self, x: Array, w: Array) -> Array:
        """The convolution without b, in the arrays' dtype."""
        lead, (channels, *sizes) = x.shape[: -self.spatial - 1], x.shape[-self.spatial - 1 :]
        y = self._planes(x.reshape(math.prod(lead), channels, *two_axes(1, sizes)), w)  # -1 fails where it is empty
        return y.reshape(*lead, y.shape[1], *y.shape[-self.spatial :])

    def _planes(self, x: Array, w: Array) -> Array:
        """y[B, O, H, W] = x[B, C, H, W] with w[O, C/g, KH, KW]."""
        (sh, sw), (ph, pw), (dh, dw) = self._settings()
        inside = np.pad(np.ones(x.shape[2:], np.bool_), ((ph, ph), (pw, pw)))
        x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
        kh, kw = w.shape[2:]
        oh = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1
        ow = (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
        parts = []
        for xg, wg in zip(np.split(x, self.groups, 1), np.split(w, self.groups, 0), strict=True):
            y = np.zeros((x.shape[0], wg.shape[0], oh, ow), x.dtype)
            for i, j in np.ndindex(kh, kw):
                rows, columns = slice(i * dh, i * dh + sh * oh, sh), slice(j * dw, j * dw + sw * ow, sw)
                part = np.einsum("bchw,oc->bohw", xg[:, :, rows, columns], wg[:, :, i, j])
                y += np.where(inside[rows, columns], part, np.zeros((), x.dtype))
            parts.append(y)
        return np.concatenate(parts, 1)

    def tolerance(self, y: Array, x: Any, w: Any, b: Any = None, *by: Any) -> Array:
        w = self._filters(w)
        count = int(np.prod(np.shape(w)[1:])) + 1
        sums = self._sum(np.abs(real(x)), np.abs(real(w)))
        more = 0.0 if b is None else np.abs(real(b)).reshape(-1, *[1] * self.spatial)
        bound = epsilon(self.x.dtype) * (2 * count * sums + more + np.abs(real(y)))
        return rounded(y, bound + count * self.x.dtype.computed.smallest, self.x.dtype, sums)

    def _types(self) -> tuple[DType, ...]:
        sums = self.result.dtype if self.to is None else i32
        return self.x.dtype, self.result.dtype, sums if self.b is None else self.b.dtype

    def _args(self) -> KernelArgs:
        batch, channels = dims.product(self.x.shape[: -self.spatial - 1]), self.x.shape[-self.spatial - 1]
        (height, width), (out_height, out_width) = self._sizes(self.x), self._sizes(self.result)
        stride, padding, dilation = self._settings()
        return self.members(
            batch=batch, channels=channels, outputs=self._outputs(), groups=self.groups, height=height, width=width,
            **by_axis(taps=self._window()[1:]), out_height=out_height, out_width=out_width,
            **by_axis(stride=stride, padding=padding, dilation=dilation), **self.scaling(),
        )  # fmt: skip

    def _fits_panels(self) -> bool:
        """Weights are a matrix, and one product has them all."""
        return self.taps is not None and self.x.dtype.is_float and self.groups == 1

    def _fits_planes(self) -> bool:
        """Weights are a matrix, or of a size that is known, and there are some."""
        known = all(isinstance(size, int) and size > 0 for size in self.w.shape)
        return self.x.dtype.is_float and (self.taps is not None or known)

    def _in_words(self) -> bool:
        """Weights are a matrix of bytes."""
        return self.taps is not None and not self.x.dtype.is_float

    def _in_rows(self) -> bool:
        """Words of bytes go along rows of x: fewer than across neighbouring channels."""
        channels, (_, taps) = self._most()
        return all(channels * -(-taps // word) < -(-channels // word) * taps for word in (2, FOUR))

    def _most(self) -> tuple[int, tuple[int, int]]:
        """Channels of a group, and taps along two axes."""
        channels, rows, columns = map(dims.maximum, self._window())
        return channels, (rows, columns)

    def _panel_args(self) -> KernelArgs:
        each = self.x.dtype.computed.nbytes(dims.maximum(self.w.shape[1]) + dims.maximum(self._outputs()))
        positions = math.prod(dims.maximum(size) for size in self.result.shape[-self.spatial :])
        room = max(1, min(positions, MOST_ROWS, MOST_BYTES // (each or 1)))  # whose windows are gathered at a time
        return {**self._args(), "work": Scratch(room * each), "room": room}

    transposed: ClassVar[int] = 0

    def _blocks(self) -> tuple[tuple[int, int], int, int]:
        """Sizes of a block in planes: positions along both axes, elements of a row of a plane, and of all planes."""
        (strides, paddings, dilations), (channels, taps) = self._settings(), self._most()
        width = self.x.dtype.computed.bits // 8
        if self._in_words():
            width = 4
            if self._in_rows():  # a tap is a word of two
                taps, dilations = (taps[0], -(-taps[1] // 2)), (dilations[0], 2 * dilations[1])
            else:
                channels = -(-channels // 2)
        sizes = [dims.maximum(size) for size in self._sizes(self.result)]
        reach, phases, counts = [], [], []
        for stride, padding, dilation, count, size in zip(strides, paddings, dilations, taps, sizes, strict=True):
            span = (count - 1) * dilation
            if self.transposed:
                low = -((span - padding) // stride)
                reach.append(-(-padding // stride) - low)
                phases.append(1)
                counts.append(max(1, -(-size // stride)))
            else:
                reach.append(span // stride)
                phases.append(1 if dilation % stride == 0 else min(stride, span + 1))
                counts.append(max(1, size))
        each = channels * math.prod(phases)
        most = PLANES // width
        if each * (1 + reach[0]) * (counts[1] + reach[1]) > most:
            fits = most // (each * (1 + reach[0])) - reach[1]
            counts[1] = min(counts[1], _alike(counts[1], max(LEAST, fits // LANES * LANES), LANES))
        counts[0] = _alike(counts[0], max(1, most // (each * (counts[1] + reach[1])) - reach[0]))
        wide = counts[1] + reach[1]
        return (counts[0], counts[1]), wide, each * (counts[0] + reach[0]) * wide

    def _plane_args(self) -> KernelArgs:
        (rows, columns), _, elements = self._blocks()
        products = dims.maximum(dims.product(self._window()))
        classes = math.prod(self._setting("stride", 1)) if self.transposed else 1
        tables = products + classes * -(-products // CHUNK)
        given, numbers = self.taps is None, elements + SPARE
        if given and self.transposed:
            tables += math.prod(self._most()[1])
        if self.x.dtype is not self.x.dtype.computed or (given and self.transposed):
            numbers += FILTERS * products
        members = self._in_blocks(rows, columns, self.x.dtype.computed.nbytes(numbers) + 4 * tables)
        return {**members, "given": flag(given)}

    def _in_blocks(self, rows: int, columns: int, room: int) -> KernelArgs:
        """The members, with those of blocks of positions, and bytes of memory for each thread, oic_conv_held's too."""
        room = -(-room // HELD) * HELD + HELD
        work = Scratch(room, each=True)
        return {**self._args(), "work": work, "rows": rows, "columns": columns, "room": room}

    def _word_args(self) -> KernelArgs:
        (rows, columns), _, elements = self._blocks()
        channels, taps = self._most()
        along = self._in_rows()
        words = channels * taps[0] * -(-taps[1] // 2) if along else -(-channels // 2) * math.prod(taps)
        places = NEARS * LANES * taps[0] * -(-taps[1] // FOUR) if along and channels == 1 else 0
        given = self._in_blocks(rows, columns, 4 * max(elements + LANES + (1 + WORD_ROWS) * words, places))
        return {**given, "along": flag(along)}

    def _tiles(self) -> tuple[int, tuple[Dim, Dim], tuple[int, int]]:
        """Winograd's: points of one, rows of them, of all phases, and columns, and of those of a block, at most."""
        (_, _, dilations), (channels, taps) = self._settings(), self._most()
        tall = 2 if taps[0] == 3 else 1
        phases = zip(self._sizes(self.result), dilations, strict=True)
        height, width = (dims.floor_div(size + apart - 1, apart) for size, apart in phases)
        tiles = dims.floor_div(height + tall - 1, tall) * math.prod(dilations), dims.floor_div(width + 1, 2)
        points = 16 if tall == 2 else 4
        most = max(1, POINTS // (4 * points * -(-channels // 2)))
        columns = _alike(max(1, dims.maximum(tiles[1])), most)
        return points, tiles, (_alike(max(1, dims.maximum(tiles[0])), max(1, most // columns)), columns)

    def _fits_winograd(self) -> bool:
        """Windows of three taps that move by one, of sums that four times are in range, and so many that it pays."""
        if not self._in_words() or self._in_rows():
            return False
        channels, taps = self._most()
        if taps not in ((1, 3), (3, 3)) or self._setting("stride", 1) != (1, 1):
            return False
        points, tiles, _ = self._tiles()
        exact = channels * math.prod(taps) * (4 if points == 16 else 2) << 14 < 1 << 31
        count = math.prod(dims.maximum(n) for n in tiles)
        results = count * (dims.maximum(self._outputs()) // self.groups)
        return exact and channels >= DEEP and count >= TILES and results >= RESULTS

    def _winograd_args(self) -> KernelArgs:
        points, _, (rows, columns) = self._tiles()
        channels, _ = self._most()
        words, deep, lines, tall = -(-channels // 2), -(-channels // FOUR) * FOUR, points // 4, 2 if points == 16 else 1
        pitch = -(-rows * columns // LANES) * LANES
        room = words * (points * (pitch + WORD_ROWS) + 1) + WORD_ROWS * tall * 2 * pitch
        room += 2 * (lines + 1) * (columns + 1)
        given = self._in_blocks(rows, columns, 4 * room + (2 * (3 * 3 + 3 * 4) + 3 * 3) * deep)
        return {name: value for name, value in given.items() if not name.startswith(("stride", "taps_x"))}

    def _winograd_units(self) -> Dim:
        """Blocks of tiles of every group, and some of the output channels of each."""
        _, tiles, block = self._tiles()
        blocks = [dims.floor_div(n + most - 1, most) for n, most in zip(tiles, block, strict=True)]
        return dims.product([*self.x.shape[: -self.spatial - 1], self.groups, self._parts(), *blocks])

    def _parts(self) -> int:
        """Parts of the output channels of a group, for threads."""
        outputs = dims.maximum(self._outputs()) // self.groups
        return 1 if outputs <= WHOLE else -(-outputs // (2 * OUTPUTS)) * 2

    def _units(self) -> Dim:
        """Blocks of positions of every group, and some of the output channels of each."""
        (rows, columns), _, _ = self._blocks()
        steps = self._setting("stride", 1) if self.transposed else (1, 1)
        ends = zip(self._sizes(self.result), steps, (rows, columns), strict=True)
        blocks = (dims.floor_div(size + step * count - 1, step * count) for size, step, count in ends)
        return dims.product([*self.x.shape[: -self.spatial - 1], self.groups, self._parts(), *blocks])

    def _lines(self) -> Dim:
        """Rows of the result, of a few output channels each, that threads can share; packed ones share bytes."""
        if self.result.dtype.packed:
            return 1
        few = dims.floor_div(dims.floor_div(self._outputs(), self.groups) + ROWS - 1, ROWS)
        return dims.product([*self.x.shape[: -self.spatial - 1], self.groups, few, self._sizes(self.result)[0]])

    def _fits_bytes(self) -> bool:
        """Sums of 32 bits of bytes as they are declared."""
        return self.x.dtype is i8 and self.result.dtype.bits <= 32 and self.taps is None

    def _cost_of_bytes(self, target: Target) -> float:
        """Windows of one place go across planes, a cache line for a byte: with vectors it takes three times as long."""
        across = target.hosted and math.prod(self._most()[1]) == 1
        return streamed(self.w, "") * (2 + target.costs.staged if across else 1)

    def _depthwise(self) -> bool:
        """Each output channel sees one plane, which fewer see than are computed together."""
        return self._window()[0] == 1 and dims.maximum(self._outputs()) // self.groups < BYTE_ROWS

    def _byte_args(self) -> KernelArgs:
        channels, taps = self._most()
        return {**self._args(), "work": Scratch(channels * math.prod(taps))}

    def _padded_args(self) -> KernelArgs:
        ends = self._setting("padding", 0)
        sizes = [dims.maximum(size) + 2 * end for size, end in zip(self._sizes(self.x), ends, strict=True)]
        return {**self._args(), "work": Scratch(math.prod(sizes)) if any(ends) else None}

    def _cost_of_planes(self, target: Target) -> float:
        """The more, the fewer lanes have positions: behind the rows of a block, and of a last register."""
        if not target.hosted:
            return math.inf  # there is no room for planes
        if self.taps is None:
            return 0.0  # else they are summed for one position after the other
        (rows, columns), wide, _ = self._blocks()
        pitch = min(wide, -(-columns // EIGHT) * EIGHT)  # of conv_lanes.h
        lanes = -(-((rows - 1) * pitch + columns) // LANES) * LANES
        return PLANES_COST * streamed(self.w, "") * lanes / (rows * columns)

    kernels: ClassVar[tuple[Kernel, ...]] = (
        Kernel("conv_planes", _types, _plane_args, fits=_fits_planes, cost=_cost_of_planes,
               units=_units, work=products, phases=True),
        Kernel("conv_panels", lambda op: (op.x.dtype.computed, *op._types()[1:]), _panel_args, fits=_fits_panels,
               takes={"w": PANELS}, cost=lambda op, target: streamed(op.w, PANELS),
               units=lambda op: dims.floor_div(op._outputs() + STREAM - 1, STREAM),
               rows=lambda op: dims.product(op.result.shape), work=products, phases=True),
        # Tiles cost more than words, where a machine multiplies four bytes as fast as two numbers of 16 bits.
        *or_requantized(
            Kernel("conv_winograd", _types, _winograd_args, fits=_fits_winograd, units=_winograd_units, work=products,
                   cost=lambda op, target: float(target.multiplies_fours), phases=True)),
        *or_requantized(
            Kernel("conv_planes_int", _types, _word_args, call="conv_planes", fits=_in_words,
                   units=_units, work=products, phases=True),
            "conv_planes_requantized"),
        *or_requantized(
            Kernel("depthwise_bytes", _types, _padded_args, fits=lambda op: op._fits_bytes() and op._depthwise(),
                   cost=lambda op, target: streamed(op.w, ""))),
        *or_requantized(
            Kernel("conv_bytes", _types, _byte_args, fits=_fits_bytes, cost=_cost_of_bytes)),
        *or_requantized(
            Kernel("conv", _types, _args, fits=lambda op: not op._in_words(), units=_lines, work=products,
                   cost=lambda op, target: streamed(op.w, "") * (1 + target.costs.staged))),
    )  # fmt: skip


class Conv1d(Convolution, name="conv1d"):
    """Convolution over the last axis.

    x        [.., C, L], any number type
    w        [O, C/groups, K]
    b        [O]; x's dtype, or acc's
    stride, padding, dilation   an integer, or a list of one; zeros are added at both ends (a weight that
             meets only them has no effect, even if infinite)
    groups   divides C and O
    acc      wider integer dtype of the result
    result   [.., O, (L + 2·padding - dilation·(K-1) - 1) // stride + 1]: empty where that is 0, refused if less

    Integers wrap.  Floats are summed in f32 (f64 for f64), b added before the only rounding; error at
    most 2·(n+1)·ε·Σ|x||w| for n products.
    Order: products over (input channel, tap) ascending, in chunks of 256 from zero, the sums of chunks in
    order; then b.  Taps on padding are passed over.  Source: PyTorch, `conv1d`.
    """

    examples = (
        ("f32[2, 4, 9]", "f32[6, 2, 3]", "b=f32[6], stride=2, padding=1, groups=2"),
        ("f16[3, 8]", "f16[2, 3, 3]", "dilation=2"),
        ("i8[1, 2, 5]", "i8[3, 2, 2]", "acc=i32, b=i32[3]"),
    )


class Conv2d(Convolution, name="conv2d"):
    """Convolution over the last two axes.

    x        [.., C, H, W], any number type
    w        [O, C/groups, KH, KW]
    b        [O]; x's dtype, or acc's
    stride, padding, dilation   an integer, or a list of two; zeros are added at both ends
    groups   divides C and O
    acc      wider integer dtype of the result
    result   [.., O, H', W'], sizes as in conv1d

    Integers wrap.  Floats are summed in f32 (f64 for f64), b added before the only rounding; error at
    most 2·(n+1)·ε·Σ|x||w| for n products.
    Order: of conv1d.  Source: PyTorch, `conv2d`.
    """

    spatial = 2
    examples = (
        ("f32[2, 3, 7, 8]", "f32[4, 3, 3, 3]", "b=f32[4], padding=1"),
        ("f32[4, 6, 6]", "f32[4, 1, 3, 2]", "groups=4, stride=[2, 1], padding=[1, 0]"),
        ("i8[2, 5, 5]", "i8[3, 2, 3, 3]", "acc=i32"),
    )
