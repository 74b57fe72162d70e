"""q8 and q4: values, the bytes that their definition says, and back; part by part as whole."""

from __future__ import annotations

import numpy as np
import pytest

from oic import dtypes
from oic.diagnostics import OicError
from oic.dtypes import Array
from oic.ir import members, quantized
from oic.ir.encodings import loaded
from oic.ir.members import Elements, Members, StoredElements, form_of, joined_elements
from oic.ir.quantized import Grouped, Groups, matrix_bytes, quantize
from oic.ir.types import TensorType
from oic.memory.layout import constant_bytes, constant_parts, constant_strides

SHAPES = [(1, 1), (3, 70), (16, 32), (17, 31), (64, 33), (65, 64), (150, 100)]


def bytes_of(values: object, type_: TensorType, family: int = 0) -> bytes:
    return b"".join(part.tobytes() for part in constant_parts(values, type_, family))  # type: ignore[arg-type]


def in_order(found: Groups, storage: str) -> bytes:
    """The bytes of a matrix, element by element."""
    rows, count = found.scales.shape
    filled = -(-rows // 16) * 16
    q, scales = np.zeros((filled, count, 32), int), np.zeros((filled, count), np.float16)
    q[:rows], scales[:rows] = found.q, found.scales
    data, after = bytearray(), bytearray()
    for first in range(0, filled, 64):
        width = min(64, filled - first)
        for g in range(count):
            for panel in range(first, first + width, 16):
                for c in range(8 if storage == "q8" else 4):
                    for row in range(panel, panel + 16):
                        for i in range(4 * c, 4 * c + 4):
                            low, high = int(q[row, g, i]), int(q[row, g, (i + 16) % 32])
                            data.append(low & 255 if storage == "q8" else (low + 8) | (high + 8) << 4)
            after += scales[first : first + width, g].tobytes()
    whole = bytes(data + after)
    return whole + bytes(-len(whole) % 64)


@pytest.mark.parametrize("storage", ["q8", "q4"])
@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_are_those_of_the_definition(storage: str, shape: tuple[int, int]) -> None:
    values = np.random.default_rng(8).standard_normal(shape).astype(np.float32)
    found = quantize(values, storage)
    type_ = TensorType(dtypes.f32, shape, encoding=f"{storage} panels")
    data = bytes_of(values, type_)
    assert data == in_order(found, storage)
    assert len(data) == matrix_bytes(*shape, storage) == type_.nbytes == constant_bytes(type_, 0)
    assert np.array_equal(loaded(np.frombuffer(data, np.uint8), dtypes.f32, shape, type_.encoding), found.values(shape[1]))
    turned = TensorType(dtypes.f32, shape[::-1], encoding=f"{storage} columns")
    assert bytes_of(values.T, turned) == data
    back = loaded(np.frombuffer(data, np.uint8), dtypes.f32, shape[::-1], turned.encoding)
    assert np.array_equal(back, found.values(shape[1]).T)
    assert np.array_equal(back, StoredElements("w", values.T, turned.encoding))


@pytest.mark.parametrize("k", [6, 7])
def test_pairs_are_those_of_the_definition(k: int) -> None:
    """Rows 0..15, then those from 16 on; of each two elements of a row side by side; what is missing is zero."""
    rows = 20
    values = np.arange(1, 1 + rows * k, dtype=np.float32).reshape(rows, k).astype(dtypes.bf16.np)
    expected = [
        float(values[r, e]) if r < rows and e < k else 0.0
        for first in (0, 16) for two in range(0, k, 2) for r in range(first, first + 16) for e in (two, two + 1)
    ]  # fmt: skip
    for turned, layout in enumerate(("pairs", "column_pairs")):
        as_is = values.T if turned else values
        type_ = TensorType(dtypes.bf16, as_is.shape, encoding=layout)
        data = bytes_of(as_is, type_)
        assert np.frombuffer(data, dtypes.bf16.np).tolist() == expected and len(data) == type_.nbytes == constant_bytes(type_, 0)
        assert np.array_equal(loaded(np.frombuffer(data, np.uint8), dtypes.bf16, as_is.shape, layout), as_is)


@pytest.mark.parametrize("encoding", ["q8 panels", "q4 columns", "bf16 panels", "f16 columns", "bf16", "bf16 pairs", "bf16 column_pairs"])
def test_parts_and_members_are_the_whole(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = (2, 3, 150, 71)
    values = np.random.default_rng(8).standard_normal(shape).astype(np.float32)
    type_ = TensorType(dtypes.f32, shape, encoding=encoding)
    members = StoredElements("w", Members(shape[:1], shape[1:], values.dtype, values.__getitem__), encoding)
    whole = bytes_of(StoredElements("w", values, encoding), type_, 1)
    assert len(whole) == constant_bytes(type_, 1)
    monkeypatch.setattr(quantized, "PART", 1)
    assert bytes_of(members, type_, 1) == whole
    assert np.array_equal(members, StoredElements("w", values, encoding))
    step = constant_strides(type_, 1)[0] * type_.stored.bits // 8
    one = TensorType(dtypes.f32, shape[1:], encoding=encoding)
    assert whole[step:] == bytes_of(values[1], one)
    assert np.array_equal(loaded(np.frombuffer(whole, np.uint8), dtypes.f32, shape, encoding), np.asarray(members))


@pytest.mark.parametrize("seed", range(20))
def test_the_error_is_that_of_a_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal((50, 96)) * 10.0 ** rng.integers(-3, 3, (50, 1))).astype(np.float32)
    amax = np.abs(values.reshape(50, 3, 32)).max(-1).repeat(32, -1)
    eight = quantize(values, "q8")
    step = eight.scales.repeat(32, -1).astype(np.float32)
    assert (np.abs(eight.values(96) - values) <= step / 2 * 1.00001).all() and np.abs(eight.q).max() == 127
    assert (step <= np.nextafter((amax / 127).astype(np.float16), np.float16(np.inf)).astype(np.float32)).all()
    four = quantize(values, "q4")
    clipped = 1 - 7 * np.abs(quantized.NEAR).min()  # of the largest, where another of its size has the other sign
    assert (np.abs(four.values(96) - values) <= amax * clipped * 1.001).all() and four.q.min() == -8
    usual = _usual_q4(values)
    assert (_squares(four.values(96) - values) <= _squares(usual - values) * (1 + 1e-6)).all()


def _squares(error: Array) -> Array:
    return (error.reshape(50, 3, 32).astype(np.float64) ** 2).sum(-1)


def _usual_q4(values: Array) -> Array:
    """Q4_0 as it is usually made."""
    grouped = values.reshape(50, 3, 32)
    at = np.abs(grouped).argmax(-1)[..., None]
    scale = (np.take_along_axis(grouped, at, -1) / -8).astype(np.float16).astype(np.float32)
    return np.asarray((np.clip(np.rint(grouped / scale), -8, 7) * scale).reshape(values.shape))


JOINED = (
    ("q8 panels", 0), ("q4 columns", 1), ("bf16 panels", 0), ("columns", 1), ("", 0), ("bf16 pairs", 0), ("bf16 column_pairs", 1)
)  # fmt: skip


@pytest.mark.parametrize(("encoding", "axis"), JOINED)
def test_joined_elements_are_those_of_the_parts(encoding: str, axis: int) -> None:
    rng = np.random.default_rng(8)
    shapes = [(2, n, 70) if axis == 0 else (2, 70, n) for n in (36, 100, 5)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    parts: list[Elements] = [arrays[0], arrays[1], Members((2,), shapes[2][1:], arrays[2].dtype, lambda key: arrays[2][key])]
    whole: Elements = np.concatenate(arrays, axis + 1)
    if encoding.startswith(("q", "b")):
        parts, whole = [StoredElements("w", part, encoding) for part in parts], StoredElements("w", whole, encoding)
    assert len({form_of(part) for part in parts}) == 1
    joined = joined_elements(parts, 2, axis)
    type_ = TensorType(dtypes.f32, np.shape(whole), encoding=encoding)
    assert bytes_of(joined, type_, 1) == bytes_of(whole, type_, 1) and np.array_equal(joined, whole)


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_are_joined_one_after_the_other(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is in memory beside another, and the whole is row-major, however they lie."""
    done: list[tuple[str, int]] = []
    arrays = [np.arange(12, dtype=np.float32).reshape(3, 4).T + n for n in range(2)]

    def part(number: int) -> Members:
        def read(key: tuple[int, ...]) -> Array:
            done.append(("read", number))
            return arrays[number]

        return Members((), (4, 3), arrays[number].dtype, read)

    monkeypatch.setattr(members, "forget", lambda array: done.append(("forgotten", [a is array for a in arrays].index(True))))
    joined = joined_elements([part(0), part(1)], 2, axis)
    assert isinstance(joined, Members)
    whole = joined.read(())
    assert done == [(what, n) for n in range(2) for what in ("read", "forgotten")]
    assert whole.flags.c_contiguous and np.array_equal(whole, np.concatenate(arrays, axis))


@pytest.mark.parametrize("encoding", ["q8 panels", "q4 columns", "f16"])
def test_the_part_is_named_that_holds_what_is_refused(encoding: str) -> None:
    values = [np.full((3, 3), value, np.float32) for value in (1, 1e30, 2)]
    joined = joined_elements([StoredElements(n, part, encoding) for n, part in zip("abc", values, strict=True)], 2, 0)
    assert isinstance(joined, StoredElements)
    with pytest.raises(OicError, match="'b' has a value") as refused:
        list(joined.parts(encoding))
    assert f'"b=f32,*={encoding.split()[0]}"' in str(refused.value.diagnostics[0].hint)


def test_joined_groups_stay_what_they_are() -> None:
    """Rows in the groups of a file, of which another scale than ours would be found."""
    rng = np.random.default_rng(8)
    parts = []
    for rows in (36, 100):
        found = Groups(rng.integers(-9, 9, (rows, 2, 32)).astype(np.int8), rng.random((rows, 2)).astype(np.float16))
        grouped = Grouped((rows, 64), "q8", lambda first, end, found=found: Groups(found.q[first:end], found.scales[first:end]))
        read = {(): found.values(64)}.__getitem__
        parts.append(StoredElements("w", Members((), (rows, 64), np.dtype("f4"), read, "q8", {(): grouped}.get), "q8 panels"))
    joined = joined_elements(parts, 2, 0)
    assert np.array_equal(joined, np.concatenate(parts))
    data = bytes_of(joined, TensorType(dtypes.f32, (136, 64), encoding="q8 panels"))
    assert np.array_equal(loaded(np.frombuffer(data, np.uint8), dtypes.f32, (136, 64), "q8 panels"), np.concatenate(parts))
    assert form_of(parts[0]) != form_of(StoredElements("w", np.zeros((36, 64), np.float32), "q8 panels"))


@pytest.mark.parametrize("storage", ["q8", "q4"])
def test_small_numbers_and_zeros(storage: str) -> None:
    """Where f16 has few digits or none the scale is the next that keeps q within its range."""
    smallest = 2.0**-24
    values = np.zeros((5, 32), np.float32)
    values[1, 3], values[2, :3], values[3, 0], values[4, 0] = 1e-30, (smallest, -200 * smallest, 9 * smallest), -1e-44, 1e4
    found = quantize(values, storage)
    assert np.abs(found.q.astype(int)).max() <= 127 and np.isfinite(found.values(32)).all()
    assert not found.values(32)[0].any() and abs(found.values(32)[4, 0] - 1e4) < 10
    assert (np.abs(found.values(32) - values)[:4] <= 64 * smallest).all()


@pytest.mark.parametrize(("storage", "value"), [("q8", np.nan), ("q4", np.inf), ("q8", 1e10), ("q4", -1e6), ("f16", 1e6)])
def test_values_that_a_storage_does_not_hold_are_refused(storage: str, value: float) -> None:
    values = np.zeros((2, 40), np.float32)
    values[1, 35] = value
    stored = StoredElements("w", values, f"{storage} panels")
    with pytest.raises(OicError, match=f"'w' has a value that {storage} does not hold") as refused:
        np.asarray(stored)
    assert refused.value.diagnostics[0].slug == "weights-range"
    with pytest.raises(OicError):
        list(stored.parts(stored.encoding))
