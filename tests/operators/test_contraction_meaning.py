"""The references of matmul, linear, attention, convolutions and cells against plain loops and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.ir.core import OpError, Unequal, Value
from oic.ir.dims import Extent, of
from oic.ir.types import TensorType
from oic.operators.attention import Attention, Attn
from oic.operators.conv import Conv1d, Conv2d
from oic.operators.conv_transpose import ConvTranspose1d, ConvTranspose2d
from oic.operators.matmul import Linear, MatMul
from oic.operators.pool import AvgPool, MaxPool
from oic.operators.recurrent import GruCell, LstmCell
from runtime.drive import Case

RNG = np.random.default_rng(11)


def real(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def meaning(kind: Any, arrays: list[Any], **settings: Any) -> Array:
    return Case(kind, arrays, settings).expected()[0]


def test_matmul_is_the_triple_loop() -> None:
    """Every transposition, integers wrapping."""
    a, b = RNG.integers(-128, 128, (3, 5)).astype(np.int8), RNG.integers(-128, 128, (5, 2)).astype(np.int8)
    want = [[sum(int(a[i, k]) * int(b[k, j]) for k in range(5)) for j in range(2)] for i in range(3)]
    wrapped = np.array(want).astype(np.int8)
    for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
        arrays = [a.T.copy() if ta else a, b.T.copy() if tb else b, None]
        assert (meaning(MatMul, arrays, transpose_a=ta, transpose_b=tb) == wrapped).all()
    assert (meaning(MatMul, [a, b, None], acc=dtypes.i32) == np.array(want)).all()


def test_matmul_of_64_bit_integers_wraps() -> None:
    a = np.array([[2**63 + 5, 3]], np.uint64)
    b = np.array([[3], [2**62]], np.uint64)
    want = (3 * (2**63 + 5) + 3 * 2**62) % 2**64
    assert int(meaning(MatMul, [a, b, None])[0, 0]) == want


def test_scaled_weights_are_the_product_with_scaled_weights() -> None:
    a, b, scale = real(3, 7), RNG.integers(-8, 8, (7, 4)).astype(np.int8), real(4)
    assert np.allclose(meaning(MatMul, [a, b, scale]), a @ (b * scale), atol=1e-5)


def loops(q: Array, k: Array, v: Array, bias: Array, mask: Array, kv_len: int, causal: bool, window: Any) -> Array:
    """OPS, "attention", read aloud."""
    n, hq, dk = q.shape
    t, hk, dv = v.shape
    y = np.zeros((n, hq, dv))
    for i in range(n):
        for h in range(hq):
            head = h * hk // hq
            keys = []
            for j in range(t):
                part = j < kv_len and mask[h, i, j]
                part = part and (not causal or j <= i + (kv_len - n))
                part = part and (window is None or j > i + (kv_len - n) - window)
                if part:
                    keys.append(j)
            if not keys:
                continue
            s = np.array([q[i, h].astype(float) @ k[j, head] / np.sqrt(dk) + bias[h, i, j] for j in keys])
            p = np.exp(s - s.max())
            y[i, h] = sum(w * v[j, head].astype(float) for w, j in zip(p / p.sum(), keys, strict=True))
    return y


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("kv_len", [0, 2, 6, 9])
def test_attention_is_the_text_of_ops(causal: bool, window: Any, kv_len: int) -> None:
    q, k, v = real(4, 6, 8), real(9, 3, 8), real(9, 3, 5)
    bias, mask = real(6, 4, 9), RNG.random((6, 4, 9)) < 0.8
    want = loops(q, k, v, bias, mask, kv_len, causal, window)
    length = np.array(kv_len, np.int32)
    got = meaning(Attention, [q, k, v, bias, mask, length], causal=causal, window=window)
    assert np.allclose(got, want, atol=1e-5)


def test_attention_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    q, k, v = real(2, 5, 4, 8), real(2, 7, 2, 8), real(2, 7, 2, 8)
    tq, tk, tv = (torch.from_numpy(x).transpose(1, 2) for x in (q, k, v))
    tk, tv = (x.repeat_interleave(2, 1) for x in (tk, tv))
    want = torch.nn.functional.scaled_dot_product_attention(tq, tk, tv).transpose(1, 2).numpy()
    assert np.allclose(meaning(Attention, [q, k, v]), want, atol=1e-5)


def test_attn_is_attention_of_the_projection() -> None:
    h, w, k, v = real(3, 6), real(6, 16), real(5, 2, 4), real(5, 2, 4)
    q = (h @ w).reshape(3, 4, 4)
    want = meaning(Attention, [q, k, v]).reshape(3, 16)
    assert np.allclose(meaning(Attn, [h, k, v, w]), want, atol=1e-5)
    one = meaning(Attn, [h, k[0].copy(), v[0].copy(), w])
    assert np.allclose(one, np.tile(v[0].repeat(2, 0).reshape(1, 16), (3, 1)), atol=1e-6)


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 1)])
def test_convolutions_agree_with_torch(stride: int, padding: int, dilation: int, groups: int) -> None:
    torch = pytest.importorskip("torch")
    f, as_torch = torch.nn.functional, torch.from_numpy
    given = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    for kind, op, lead in ((Conv1d, f.conv1d, (9,)), (Conv2d, f.conv2d, (9, 8))):
        x, w, b = real(2, 4, *lead), real(6, 4 // groups, *[3] * len(lead)), real(6)
        want = op(as_torch(x), as_torch(w), as_torch(b), **given).numpy()
        assert np.allclose(meaning(kind, [x, w, b], **given), want, atol=1e-4)
    transposed = ((ConvTranspose1d, f.conv_transpose1d, (9,)), (ConvTranspose2d, f.conv_transpose2d, (5, 6)))
    for kind, op, lead in transposed:
        x, w, b = real(2, 4, *lead), real(4, 6 // groups, *[3] * len(lead)), real(6)
        more = {**given, "output_padding": 1 if stride > 1 else 0}
        want = op(as_torch(x), as_torch(w), as_torch(b), **more).numpy()
        assert np.allclose(meaning(kind, [x, w, b], **more), want, atol=1e-4)


def test_filters_of_floats_are_read_in_their_matrix() -> None:
    w = real(6, 2, 3)
    op = Conv1d(value("f32", 2, 9), value("f32", 6, 6), taps=[3])
    found = op._filters(op.flattened(w))
    assert np.shares_memory(found, w) and (found == w[:, :, None]).all()


def test_pools_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    f, x = torch.nn.functional, real(2, 3, 9, 10)
    settings: dict[str, Any] = {"window": [3, 2], "stride": [2, 3], "padding": [1, 1]}
    given = ([3, 2], [2, 3], [1, 1])
    assert (meaning(MaxPool, [x], **settings) == f.max_pool2d(torch.from_numpy(x), *given).numpy()).all()
    for include in (False, True):
        want = f.avg_pool2d(torch.from_numpy(x), *given, count_include_pad=include).numpy()
        assert np.allclose(meaning(AvgPool, [x], count_include_pad=include, **settings), want, atol=1e-6)


def test_cells_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    for kind, cell, gates in ((GruCell, torch.nn.GRUCell(5, 4), 3), (LstmCell, torch.nn.LSTMCell(5, 4), 4)):
        x, h, c = real(2, 5), real(2, 4), real(2, 4)
        weights = [p.detach().numpy() for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)]
        tx, th, tc = (torch.from_numpy(a) for a in (x, h, c))
        want = cell(tx, th) if gates == 3 else cell(tx, (th, tc))
        wanted = [want] if gates == 3 else list(want)
        states = [h] if gates == 3 else [h, c]
        found = Case(kind, [x, *states, *weights]).expected()
        for got, one in zip(found, wanted, strict=True):
            assert np.allclose(got, one.detach().numpy(), atol=1e-5)


def value(dtype: str, *shape: Any) -> Value:
    return Value(TensorType(dtypes.ALL[dtype], shape))


N = of(Extent("N", 16))


def test_run_time_sizes_flow() -> None:
    """Results have the operands' extents; sizes that cannot be compared ask for a check."""
    assert Linear(value("f32", N, 8), value("f32", 4, 8)).result.shape == (N, 4)
    assert MatMul(value("f32", 2, N, 8), value("f32", 8, N)).result.shape == (2, N, N)
    q, k = value("f32", N, 4, 8), value("f32", N + 3, 2, 8)
    assert Attention(q, k, k).result.shape == (N, 4, 8)
    assert str(Conv1d(value("f32", 2, N), value("f32", 3, 2, 3), stride=2).result.shape[1]) == "(N - 3)/2 + 1"
    with pytest.raises(Unequal):
        Linear(value("f32", 3, N), value("f32", 4, 8))


@pytest.mark.parametrize(
    "make, slug",
    [
        (lambda: MatMul(value("f32", 2, 3), value("f32", 4, 2)), "shape-mismatch"),
        (lambda: MatMul(value("f32", 2, 3), value("f64", 3, 2)), "op-dtype"),
        (lambda: MatMul(value("f32", 2, 3), value("f32", 3, 2), acc=dtypes.i32), "op-setting"),
        (lambda: Linear(value("f32", 2, 3), value("i8", 2, 3)), "op-dtype"),
        (lambda: Attention(value("f32", 2, 3, 8), value("f32", 5, 2, 8), value("f32", 5, 2, 8)), "shape-mismatch"),
        (lambda: Attention(value("f32", 2, 2, 8), value("i8", 5, 2, 8), value("i8", 5, 2, 8)), "op-dtype"),
        (lambda: Conv1d(value("f32", 2, 1), value("f32", 3, 2, 3)), "shape-mismatch"),
        (lambda: Conv1d(value("f32", 2, 9), value("f32", 3, 2, 3), stride=0), "op-setting"),
    ],
)
def test_refusals(make: Any, slug: str) -> None:
    with pytest.raises(OpError) as refused:
        make()
    assert refused.value.slug == slug


def test_refusals_say_which_ranks_do_not_go_together() -> None:
    """Attention of four axes is right where all operands have them; a scale may have fewer axes than the matrix."""
    q, k = value("f32", 2, 2, 4), value("f32", 1, 2, 2, 4)
    with pytest.raises(OpError, match=r"ranks of f32\[2, 2, 4\] and f32\[1, 2, 2, 4\] differ"):
        Attention(q, k, q)
    with pytest.raises(OpError, match=r"f32\[1, 1, 2\] does not broadcast to rank 2"):
        MatMul(value("f32", 2, 3), value("i8", 3, 2), b_scale=value("f32", 1, 1, 2))


@pytest.mark.parametrize("stride, padding, kernel", [(1, 0, 1), (1, 0, 3), (2, 1, 5), (3, 0, 4), (2, 2, 4)])
def test_a_window_that_lies_nowhere_gives_nothing(stride: int, padding: int, kernel: int) -> None:
    """As many elements as the formula says, down to none; fewer than none is refused."""
    w, given = real(6, 4, kernel), {"stride": stride, "padding": padding}
    for size in range(6):
        x, fewest = real(2, 4, size), (size + 2 * padding - kernel) // stride + 1
        most = (size - 1) * stride - 2 * padding + kernel
        for kind, arrays, more, count in (
            (Conv1d, [x, w], {}, fewest), (MaxPool, [x], {"window": kernel}, fewest), (AvgPool, [x], {"window": kernel}, fewest),
            (ConvTranspose1d, [x, real(4, 6, kernel)], {}, most),
        ):  # fmt: skip
            if count < 0:
                with pytest.raises(OpError) as caught:
                    meaning(kind, arrays, **given, **more)
                assert caught.value.slug == "shape-mismatch"
            else:
                assert meaning(kind, arrays, **given, **more).shape[-1] == count
