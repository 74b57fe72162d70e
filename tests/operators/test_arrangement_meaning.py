"""The references of views, copies, positions, norms, sampling and quantisation against plain formulas and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.ir.core import OpError, Unequal, Value
from oic.ir.dims import Extent, of
from oic.ir.types import INDEX, TensorType
from oic.operators.arrange import Concat, Gather, Iota, Pad, Repeat
from oic.operators.norm import BatchNorm, LayerNorm, LogSoftmax, RmsNorm, Softmax
from oic.operators.position import RelativePositionBias, Rope
from oic.operators.quant import Dequantize, Quantize, Requantize
from oic.operators.sampling import Sample, TopK, shares
from oic.operators.sampling import drawn as drawn_of
from oic.operators.shape import BroadcastTo, Reshape, Slice, Split, Transpose
from runtime.drive import Case

RNG = np.random.default_rng(12)
N = of(Extent("N", 16))


def real(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def value(dtype: str, *shape: Any) -> Value:
    return Value(TensorType(dtypes.ALL[dtype], shape))


def meaning(kind: Any, arrays: list[Any], **settings: Any) -> Array:
    return Case(kind, arrays, settings).expected()[0]


@pytest.mark.parametrize(
    "op",
    [
        Reshape(value("f32", 4, 6), [3, 8]),
        Transpose(value("f32", 4, 6), [1, 0]),
        BroadcastTo(value("f32", 4, 6), [2, 4, 6]),
        Slice(value("f32", 4, 6), 1, 1, 6, 2),
        Split(value("f32", 4, 6), 0, [1, 3]),
    ],
    ids=lambda op: op.name,
)
def test_views_share_memory(op: Any) -> None:
    x = real(4, 6)
    y = op.reference(x)
    for part in y if isinstance(y, list) else [y]:
        assert np.shares_memory(x, part)


def test_reshape_infers_run_time_sizes() -> None:
    assert Reshape(value("f32", N, 64), [N, 8, 8]).result.shape == (N, 8, 8)
    assert Reshape(value("f32", N, 64), [-1, 8]).result.shape == (8 * N, 8)
    assert Reshape(value("f32", N, N, 2), [N, -1]).result.shape == (N, 2 * N)
    assert Reshape(value("f32", 2, 0), [0, 5]).result.shape == (0, 5)
    with pytest.raises(Unequal) as needed:
        Reshape(value("f32", N, 64), [4, 64])
    assert needed.value.axis == 0 and needed.value.expected == 4
    for shape in ([5, -1], [3, 3], [-1, -1], [-2, 4]):
        with pytest.raises(OpError):
            Reshape(value("f32", 2, 4), shape)


def test_slices_have_the_size_they_say() -> None:
    start, end = Value(INDEX), Value(INDEX)
    assert Slice(value("f32", N, 4), 0, start, end, size=N - 2).result.shape == (N - 2, 4)
    assert Slice(value("f32", N, 4), 0, 0, N - 1).result.shape == (N - 1, 4)
    for start_, end_ in ((-1, 2), (2, 1), (0, 5), (6, 6)):
        with pytest.raises(OpError) as refused:
            Slice(value("f32", 4), 0, start_, end_)
        assert refused.value.slug == "op-setting"


def test_sizes_of_copies() -> None:
    assert Concat([value("f32", N, 2), value("f32", 3, 2)], 0).result.shape == (N + 3, 2)
    assert Repeat(value("f32", N, 2), 3, 0).result.shape == (3 * N, 2)
    assert Pad(value("f32", N), [1], [2]).result.shape == (N + 3,)
    assert Gather(value("f16", 9, 4), value("i32", N), to=dtypes.f32).result.type == value("f32", N, 4).type
    assert Iota([N, 2]).result.shape == (N, 2)
    for to in (dtypes.f16, dtypes.f8):
        with pytest.raises(OpError):
            Gather(value("f32", 9, 4), value("i32", 2), to=to)


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_pad_is_numpys(mode: Any) -> None:
    x = real(4, 5)
    want = np.pad(x, ((3, 2), (1, 4)), mode)
    assert (meaning(Pad, [x], before=[3, 1], after=[2, 4], mode=mode) == want).all()


@pytest.mark.parametrize("dtype", ["bool", "bitset", "t1", "t2"])
def test_what_is_no_number_is_padded_with_truth_values(dtype: str) -> None:
    for given in (True, False, 1):
        assert Pad(value(dtype, 2), [1], [0], given).result.shape == (3,)
    with pytest.raises(OpError, match="value of pad is an integer"):
        Pad(value("u8", 2), [1], [0], True)


def test_norms_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    f, x, g, b = torch.nn.functional, real(3, 9), real(9), real(9)
    tx, tg, tb = (torch.from_numpy(a) for a in (x, g, b))
    assert np.allclose(meaning(LayerNorm, [x, g, b], eps=1e-5), f.layer_norm(tx, (9,), tg, tb), atol=1e-6)
    assert np.allclose(meaning(RmsNorm, [x, g], eps=1e-5), f.rms_norm(tx, (9,), tg, 1e-5), atol=1e-6)
    x[1] = -np.inf
    for kind, op in ((Softmax, f.softmax), (LogSoftmax, f.log_softmax)):
        for axis in (0, 1):
            got = meaning(kind, [x], axis=axis)
            assert np.allclose(got, op(torch.from_numpy(x), axis).numpy(), atol=1e-6, equal_nan=True)
    y, four = real(2, 3, 4), [real(3), real(3), real(3), abs(real(3))]
    weights = [torch.from_numpy(four[i]) for i in (2, 3, 0, 1)]
    want = f.batch_norm(torch.from_numpy(y), *weights, eps=1e-5).numpy()
    assert np.allclose(meaning(BatchNorm, [y, *four]), want, atol=1e-5)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no float longer than f64")
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_of_f64_is_far_within_its_bound(axis: int) -> None:
    """Else what C gives could not be held to the bound: NumPy's sums along the first axis are off by some last places."""
    x = np.random.default_rng(1).standard_normal((400, 400))
    e = np.exp((x - x.max(axis, keepdims=True)).astype(np.longdouble))
    assert np.allclose(meaning(Softmax, [x], axis=axis), (e / e.sum(axis, keepdims=True)).astype(np.float64), rtol=6e-16, atol=0)


def test_rope_turns_pairs() -> None:
    """Against complex numbers, both styles."""
    x = real(5, 2, 8)
    freqs = 10000.0 ** (-np.arange(4) / 4)
    turn = np.exp(1j * (3 + np.arange(5))[:, None, None] * freqs)
    half = (x[..., :4] + 1j * x[..., 4:]) * turn
    want = np.concatenate([half.real, half.imag], -1)
    assert np.allclose(meaning(Rope, [x], pos=3), want, atol=1e-5)
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
    want = np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)
    assert np.allclose(meaning(Rope, [x], pos=3, style="interleaved"), want, atol=1e-5)


def test_rope_positions_of_every_form() -> None:
    x = real(2, 3, 1, 4)
    rows = np.array([[7, 1, 4], [0, 2, 2]], np.int32)
    op = Rope(value("f32", 2, 3, 1, 4), pos=value("i32", 2, 3))
    op.pos = rows  # type: ignore[assignment]
    got = op.reference(x)
    for b in range(2):
        for i in range(3):
            one = meaning(Rope, [x[b, i : i + 1]], pos=int(rows[b, i]))
            assert np.allclose(got[b, i], one[0], atol=1e-6)


def test_buckets_are_those_of_t5() -> None:
    """Hugging Face's formula in f64, away from its borders, and on every border but its rounding."""
    for both in (True, False):
        op = RelativePositionBias(value("f32", 32, 1), 0, 1, 1, both)
        half = 16 if both else 32
        e = half // 2
        for r in range(e, 300):
            exact = np.log(r / e) / np.log(128 / e) * (half - e)
            if abs(exact - round(exact)) > 1e-9:
                want = min(half - 1, e + int(exact))
            else:
                want = min(half - 1, e + round(exact))
            assert e + sum(b <= r for b in op.borders()) == want


def test_relative_position_bias_signs() -> None:
    table = np.arange(32, dtype=np.float32)[:, None]
    y = meaning(RelativePositionBias, [table], q_start=0, n=3, t=3, bidirectional=True)[0]
    assert (y == [[0, 17, 18], [1, 0, 17], [2, 1, 0]]).all()
    y = meaning(RelativePositionBias, [table], q_start=2, n=1, t=4, bidirectional=False)[0]
    assert (y == [[2, 1, 0, 0]]).all()


def test_top_k_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    x = real(4, 30)
    x[1, 4] = np.nan
    values, indices = Case(TopK, [x], {"k": 6}).expected()
    want = torch.topk(torch.from_numpy(x), 6)
    assert np.array_equal(values, want.values.numpy(), equal_nan=True)
    assert (indices == want.indices.numpy()).all()


def test_sample_has_its_distribution() -> None:
    """Evenly spaced u hit every index as often as its probability says."""
    logits = real(12)
    p = np.exp(logits.astype(float))
    us = (np.arange(2000) + 0.5) / 2000

    def counts(**settings: Any) -> Array:
        op = Sample(value("f32", 12), value("f32"), **settings)
        found = [int(op.reference(logits, np.array(u, np.float32))) for u in us]
        return np.bincount(found, minlength=12) / 2000

    assert np.abs(counts() - p / p.sum()).max() < 2e-3
    order = np.argsort(-p)
    three = np.where(np.isin(np.arange(12), order[:3]), p, 0)
    assert np.abs(counts(top_k=3) - three / three.sum()).max() < 2e-3
    enough = int(np.searchsorted(np.cumsum(p[order] / p.sum()), 0.6)) + 1
    some = np.where(np.isin(np.arange(12), order[:enough]), p, 0)
    assert np.abs(counts(top_p=0.6) - some / some.sum()).max() < 2e-3
    assert counts(temperature=0)[order[0]] == 1
    assert counts(top_p=0.0)[order[0]] == 1


def kept_by_definition(x: Array, k: int, part: float) -> dict[int, float]:
    """What `sample` keeps of x, divided by the temperature already, and its weight: one after the other, as OPS says it."""
    numbers = [-np.inf if np.isnan(v) else float(v) for v in x]
    order = sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))
    top = numbers[order[0]]
    with np.errstate(all="ignore"):
        weight = [1.0 if v == top else float(np.exp(np.float64(v) - top)) for v in numbers]
    if 0 < k < len(order):
        order = [i for i in order if numbers[i] >= numbers[order[k - 1]]]
    if part < 1:
        total, reached, count = 0.0, 0.0, 0
        for i in sorted(order):
            total += weight[i]
        for i in order:
            reached, count = reached + weight[i], count + 1
            if reached >= part * total:
                break
        order = order[:count]
    return {i: weight[i] for i in sorted(order) if weight[i] > 0}


def test_sample_keeps_what_its_definition_says() -> None:
    """Ties, infinities, NaN, logits far apart and nearly the same, sorted or not: indices and weights in all bits."""
    drawn = 2 * real(400).astype(np.float64)
    logits = (
        drawn, np.sort(drawn), np.round(drawn), np.zeros(40), np.full(40, -np.inf), np.full(40, np.nan), drawn[:1],
        1e-12 * drawn, -np.abs(drawn) ** 9, RNG.choice([0.0, -0.0, -1.0], 90), drawn - 300 * RNG.integers(0, 4, 400),
        np.where(RNG.random(400) < 0.5, -np.inf, drawn), np.where(RNG.random(400) < 0.1, np.nan, drawn),
        np.where(RNG.random(400) < 0.1, np.inf, drawn), drawn - 5 * (RNG.random(400) < 0.9),
    )  # fmt: skip
    for x in logits:
        for k in (0, 1, 7, x.size // 2, x.size - 1, x.size, x.size + 1):
            for part in (0.0, 1e-9, 0.3, 0.9, 1 - 2.0**-24, 1.0):
                kept, weights = shares(x, 1.0, k, part)
                found = dict(zip(range(x.size) if kept is None else kept.tolist(), weights.tolist(), strict=True))
                wanted = kept_by_definition(x, k, part)
                assert {i: w for i, w in found.items() if w > 0} == wanted, (x, k, part)
                sums = np.cumsum(list(wanted.values()))
                for u in (0.0, 0.5, float(RNG.random(dtype=np.float32)), 1 - 2.0**-24):
                    assert drawn_of(kept, weights.copy(), u) == list(wanted)[int(np.argmax(sums > u * sums[-1]))]


def test_quantize_rounds_half_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 300, -300, np.nan], np.float32)
    got = meaning(Quantize, [x, np.array(1, np.float32), None], to=dtypes.i8)
    assert got.tolist() == [0, 2, 2, 0, -2, 127, -128, 0]
    back = meaning(Dequantize, [got, np.array(0.5, np.float32), np.array(2, np.int8)], to=dtypes.f32)
    assert back.tolist() == [-1, 0, 0, -1, -2, 62.5, -65, -1]


def fixed_point(x: int, m: int, shift: int) -> int:
    """gemmlowp's SaturatingRoundingDoublingHighMul and RoundingDivideByPOT, in exact integers."""
    left, right = max(shift, 0), max(-shift, 0)
    x = (x << left) + 2**31 & 0xFFFFFFFF
    x -= 2**31
    product = x * m
    total = product + (2**30 if product >= 0 else 1 - 2**30)
    high = abs(total) // 2**31 * (1 if total >= 0 else -1)
    high = min(high, 2**31 - 1)
    rest = high & (2**right - 1)
    return (high >> right) + (rest > (2**right - 1 >> 1) + (high < 0))


def test_requantize_is_gemmlowps() -> None:
    x = np.concatenate([RNG.integers(-(2**31), 2**31, 200), [-(2**31), 2**31 - 1, 0, -1, 1]]).astype(np.int32)
    for m, shift in ((1518500250, -7), (2**31 - 1, 0), (-(2**31), 0), (2**30, 3), (77, -31)):
        arrays = [x, np.array(m, np.int32), np.array(shift, np.int8)]
        got = meaning(Requantize, arrays, to=dtypes.i32)
        want = [max(-(2**31), min(2**31 - 1, fixed_point(int(v), m, shift))) for v in x]
        assert got.tolist() == want
        near = meaning(Requantize, arrays, to=dtypes.i32, rounding="nearest")
        exact = [(int(v) * m * 2 + 2 ** (31 - shift)) >> (32 - shift) for v in x]
        assert near.tolist() == [max(-(2**31), min(2**31 - 1, e)) for e in exact]
