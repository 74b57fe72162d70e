"""Kernels of attention, rope and relative_position_bias against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oic import dtypes
from oic.dtypes import Array
from oic.operators.attention import Attention
from oic.operators.position import RelativePositionBias, Rope
from runtime.drive import BUILDS, Case, check, run, spaced
from runtime.native import AVX512, INTEL, Toolchain

RNG = np.random.default_rng(4)
NAMES = ("f8", "f16", "bf16", "f32", "f64")


def real(shape: tuple[int, ...], name: str = "f32") -> Array:
    return RNG.normal(size=shape).astype(dtypes.ALL[name].np)


def heads(n: int, t: int, hq: int, hk: int, dk: int, dv: int, name: str = "f32", kv: str = "f32") -> list[Array]:
    return [real((n, hq, dk), name), real((t, hk, dk), kv), real((t, hk, dv), kv)]


def shapes() -> list[Case]:
    """Tails of every size, grouped heads, no keys, no queries."""
    found: list[Case] = []
    for n, t, hq, hk, dk, dv in (
        *((1, 1, 1, 1, 1, 1), (1, 5, 2, 2, 8, 8), (3, 70, 4, 2, 16, 5), (9, 64, 8, 1, 64, 64)),
        *((2, 200, 6, 3, 48, 130), (20, 20, 2, 2, 33, 7), (0, 4, 2, 1, 8, 8), (3, 0, 2, 1, 8, 8)),
        *((1, 150, 6, 3, 8, 48), (1, 70, 5, 5, 24, 24)),
    ):
        for causal in (False, True):
            found.append(Case(Attention, heads(n, t, hq, hk, dk, dv), {"causal": causal}))
    found.append(Case(Attention, heads(5, 90, 2, 1, 8, 8), {"causal": True, "window": 7}))
    found.append(Case(Attention, heads(5, 90, 2, 1, 8, 8), {"window": 200, "scale": 0.5}))
    found.append(Case(Attention, heads(20, 90, 2, 1, 8, 8), {"causal": True, "window": 3}))
    found.append(Case(Attention, heads(5, 9, 2, 1, 8, 8), {"window": 3, "causal": True}, runtime=("window",)))
    # Spans side by side: the first and the last begin and end within blocks; more heads than go together.
    found.append(Case(Attention, heads(1, 600, 3, 3, 64, 80), {"causal": True}))
    found.append(Case(Attention, heads(1, 600, 3, 3, 40, 70, "f32", "f16"), {"window": 470}))
    found.append(Case(Attention, heads(2, 270, 10, 5, 16, 16, "f32", "bf16"), {"causal": True, "window": 150}))
    found.append(Case(Attention, heads(1, 300, 20, 20, 16, 16)))
    # One query whose heads lie side by side in whole lanes goes along keys in turn, several blocks before their values.
    found.append(Case(Attention, heads(1, 600, 12, 12, 64, 64), {"causal": True}))
    found.append(Case(Attention, heads(1, 131, 17, 17, 64, 64, "f32", "bf16")))
    found.append(Case(Attention, heads(1, 600, 3, 3, 48, 80, "f32", "f16"), {"window": 470}))
    found.append(Case(Attention, heads(1, 270, 30, 30, 16, 64, "f64", "f64"), {"window": 200}))
    # More of them than have room for two blocks; windows that begin behind a span's first block; heads without elements.
    found.append(Case(Attention, heads(1, 300, 40, 40, 16, 16)))
    for dtype in ("f32", "bf16"):
        found.append(Case(Attention, heads(1, 460, 6, 6, 32, 32, "f32", dtype), {"window": 390}))
    found.append(Case(Attention, heads(1, 9, 3, 3, 0, 16)))
    found.append(Case(Attention, heads(1, 9, 3, 3, 16, 0)))
    # Heads of eight of one query are lanes beside each other: four or eight, some of them no rows, and more than go together.
    for t, hq, hk, dv, window in ((200, 7, 7, 8, 300), (150, 12, 4, 8, 70), (33, 3, 1, 5, 20), (140, 50, 50, 8, 9), (71, 9, 3, 40, 71)):
        found.append(Case(Attention, heads(1, t, hq, hk, 8, dv), {"causal": True, "window": window}))
    found += [Case(Attention, heads(1, 0, 4, 2, d, d)) for d in (8, 16)]  # none to see
    for sign in (-1, 1):
        for t, many in ((70, 5), (5, 3), (300, 8)):
            q, k, v = (abs(x) + 1 for x in heads(1, t, many, many, 8, 8))
            found.append(Case(Attention, [sign * q, k, v], {"scale": np.inf}))
            k[t // 2 :, 1] *= -1
            found.append(Case(Attention, [sign * q, k, v], {"scale": np.inf}))
    # Some rows of a unit see nothing of a span that others see.
    found.append(Case(Attention, heads(200, 200, 1, 1, 8, 8), {"causal": True, "window": 10}))
    # What is no number before keys are met: zeros behind the last element stay zeros.
    found.append(Case(Attention, [abs(x) + 1 for x in heads(2, 9, 2, 2, 5, 5)], {"scale": np.inf}))
    # Strips of rows: of one unit and of two, of one head and of shared ones, with keys that only some rows see.
    found.append(Case(Attention, heads(50, 150, 2, 2, 40, 80), {"causal": True}))
    found.append(Case(Attention, heads(70, 140, 4, 2, 16, 16, "f32", "bf16"), {"causal": True, "window": 30}))
    found.append(Case(Attention, heads(36, 70, 1, 1, 8, 5, "f32", "f8")))
    # More queries than keys: the first ones see none and give zeros.
    found.append(Case(Attention, heads(6, 3, 2, 1, 8, 8), {"causal": True}))
    return found


def kinds() -> list[Case]:
    """Every pair of dtypes; i8 with scales of every form."""
    found: list[Case] = []
    for q, k in (("f32", "f16"), ("f32", "bf16"), ("f32", "f8"), *((n, n) for n in NAMES)):
        found.append(Case(Attention, heads(3, 70, 4, 2, 20, 12, q, k), {"causal": True}))
        found.append(Case(Attention, heads(1, 30, 4, 2, 200, 12, q, k)))
    k, v = (RNG.integers(-127, 128, (2, 9, 2, 8)).astype(np.int8) for _ in range(2))
    for shape in ((2,), (9, 2), (2, 9, 2)):
        scales = [abs(real(shape)) * 0.02, abs(real(shape)) * 0.02]
        found.append(Case(Attention, [real((2, 3, 4, 8)), k, v, None, None, None, *scales]))
    k, v = (RNG.integers(-127, 128, (300, 6, 64)).astype(np.int8) for _ in range(2))
    scales = [abs(real((300, 6))) * 0.02, abs(real((300, 6))) * 0.02]
    found.append(Case(Attention, [real((1, 6, 64)), k, v, None, None, None, *scales], {"causal": True}))
    # Many rows, which see all keys of a block, some, or none; one query of narrow heads.
    found.append(Case(Attention, [real((70, 6, 64)), k, v, None, None, None, *scales], {"causal": True, "window": 150}))
    found.append(Case(Attention, [real((5, 6, 64)), k, v, None, None, None, *scales], {"causal": True, "window": 66}))
    # A mask beside scales, which may be NaN where it hides a key; rows of few queries and of many.
    strange = [np.where(np.arange(300)[:, None] % 7 == 3, np.float32(np.nan), x) for x in scales]
    for n, shape in ((1, (300,)), (5, (6, 5, 300)), (70, (70, 300))):
        mask = (RNG.random(shape) < 0.5) & (np.arange(300) % 7 != 3)
        found.append(Case(Attention, [real((n, 6, 64)), k, v, None, mask, None, *strange], {"causal": True}))
    # Many rows, of keys in panels that are not stored as they are computed with.
    found.append(Case(Attention, heads(70, 140, 4, 2, 40, 80, "f32", "f8"), {"causal": True}))
    found.append(Case(Attention, heads(70, 140, 4, 2, 40, 80, "f64", "f64"), {"causal": True}))
    narrow = [np.ascontiguousarray(x[:, :, :16]) for x in (k, v)]
    found.append(Case(Attention, [real((1, 6, 16)), *narrow, None, None, None, *scales]))
    return found


def masks() -> list[Case]:
    """Bias and mask of every broadcast, key counts of every form, what does not take part being NaN."""
    found: list[Case] = []
    q, k, v = real((2, 3, 4, 8)), real((2, 70, 2, 8)), real((2, 70, 2, 8))
    for shape in ((), (70,), (3, 70), (4, 1, 70), (2, 1, 3, 1), (2, 4, 3, 70)):
        mask = RNG.random(shape) < 0.5
        found.append(Case(Attention, [q, k, v, real(shape), mask], {"causal": True}))
    k2, v2 = k.copy(), v.copy()
    k2[:, 50:] = np.nan
    v2[:, 50:] = np.inf
    found.append(Case(Attention, [q, k2, v2, None, None, np.array(50, np.int32)], {"causal": True}))
    found.append(Case(Attention, [q, k2, v2, None, None, np.array([50, 7], np.int32)], {"causal": True}))
    found.append(Case(Attention, [q, k, v, None, None, np.array([0, 70], np.int32)]))
    hide = np.arange(70) < 50
    found.append(Case(Attention, [q, k2, v2, None, hide]))
    low = np.zeros((3, 70), np.float32)
    low[1] = -np.inf
    low[2, :69] = -np.inf
    found.append(Case(Attention, [q, k, v, low]))
    k3 = k.copy()
    k3[0, 5, 0, 0] = np.nan
    found.append(Case(Attention, [q, k3, v], {"causal": True}))
    return found


def tables() -> list[Case]:
    """Queries, keys and values that are parts of larger memory."""
    q, k, v = real((2, 5, 4, 16)), real((2, 66, 2, 16)), real((2, 66, 2, 16), "f32")
    found = [
        Case(Attention, [x, np.swapaxes(wide, 0, 1), np.swapaxes(wide, 0, 1)], {"causal": True})  # of one head after the other
        for wide in (real((4, 70, 80)), real((4, 70, 80), "bf16")) for x in (real((1, 4, 80)), real((6, 4, 80)), real((40, 4, 80)))
    ]  # fmt: skip
    found += [Case(Attention, [spaced(q, 1), spaced(k, 1), spaced(v, 2)], {"causal": True})]
    wide = real((2, 2, 66, 16))
    found.append(Case(Attention, [q, np.swapaxes(wide, 1, 2), np.swapaxes(wide, 1, 2)]))
    found.append(Case(Attention, [spaced(q, -1), spaced(k, -1), spaced(v, -1)]))
    return found


def ropes() -> list[Case]:
    """Both styles, every type, positions of every form."""
    found: list[Case] = []
    for name in NAMES:
        for style in ("half", "interleaved"):
            x = real((2, 5, 3, 8), name)
            found.append(Case(Rope, [x], {"pos": 3, "style": style}))
            found.append(Case(Rope, [x], {"pos": 1000, "style": style, "dims": 6, "base": 500.0}))
    found.append(Case(Rope, [real((3, 2, 300))], {"pos": 7}, runtime=("pos",)))
    found += [Case(Rope, [real((3, 2, 8))], {"pos": pos}, runtime=("pos",)) for pos in (2**63 - 1, 2**63 - 2, 2**63 - 3, -(2**63))]
    found.append(Case(Rope, [real((3, 2, 8)), real((4,))], {"pos": -2}))
    found.append(Case(Rope, [spaced(real((3, 2, 8)), 1)], {"pos": 4}))
    found.append(Case(Rope, [real((0, 2, 8))], {"pos": 0}))
    found.append(Case(Rope, [real((2, 2, 8))], {"pos": 4, "dims": 0}))
    return found


def biases() -> list[Case]:
    """Near and far, both directions; as far as numbers go."""
    found: list[Case] = []
    for start in (2**63 - 1, 2**63 - 3, -(2**63), 1 - 2**63):
        settings = {"q_start": start, "n": 3, "t": 4, "bidirectional": True}
        found.append(Case(RelativePositionBias, [real((32, 2))], settings, runtime=("q_start",)))
    for name in ("f8", "f16", "bf16", "f32"):
        for both in (True, False):
            settings = {"q_start": 150, "n": 3, "t": 400, "bidirectional": both}
            found.append(Case(RelativePositionBias, [real((32, 2), name)], settings))
            settings = {"q_start": 0, "n": 30, "t": 25, "bidirectional": both, "max_distance": 20}
            found.append(Case(RelativePositionBias, [real((8, 3), name)], settings))
    return found


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("make", [shapes, kinds, masks, tables, ropes, biases])
def test_attention(make: Any, build: str) -> None:
    """Within each operator's bound."""
    check(make(), build)


@pytest.mark.parametrize("toolchain", [AVX512, INTEL], ids=lambda t: t.name)
def test_attention_of_many_queries_has_the_bits_of_portable_c(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where scores become weights beside products, and where they do so alone."""
    if toolchain.missing:
        pytest.skip(toolchain.missing)
    monkeypatch.setitem(BUILDS, toolchain.name, (toolchain.command, *toolchain.flags))
    sizes = ((70, 150, 4, 2, 64), (40, 64, 2, 2, 80), (33, 200, 1, 1, 64), (1, 150, 7, 7, 8), (1, 70, 4, 2, 8))  # queries, keys, their heads, width
    cases = [
        Case(Attention, heads(n, t, hq, hk, d, d, "f32", kv), {"causal": causal})
        for n, t, hq, hk, d in sizes for kv in ("f32", "bf16") for causal in (False, True)
    ]  # fmt: skip
    for ours, plain in zip(run(cases, toolchain.name), run(cases, "gcc-portable"), strict=True):
        assert [a.tobytes() for a in ours] == [a.tobytes() for a in plain]


@pytest.mark.parametrize("build", [name for name in BUILDS if name != "gcc-portable"])
def test_attention_of_small_windows_has_the_bits_of_portable_c(build: str) -> None:
    """Few keys and columns behind whole registers; a bias to every head and window, or of other strides, and rows without keys."""
    cases = []
    for t, width, q, kv in (
        (13, 33, "f32", "f16"), (17, 24, "f32", "f32"), (18, 16, "f64", "f64"), (35, 32, "f32", "bf16"), (49, 32, "f32", "f32"), (51, 96, "f32", "f32"),
    ):
        operands = [real((2, t, 3, width), q), real((2, t, 3, width), kv), real((2, t, 3, width), kv)]
        cases += [Case(Attention, [*operands, real(shape)]) for shape in ((3, t, t), (2, 3, t, t), (t, 1))]
        cases.append(Case(Attention, [*operands, spaced(real((3, t, t)), 1), RNG.random((t, t)) < 0.1]))
        cases.append(Case(Attention, [*operands, real((t, t)), None, np.array([t - 1, 3], np.int32)], {"window": 5, "softcap": 2.0}))
    for ours, plain in zip(run(cases, build), run(cases, "gcc-portable"), strict=True):
        assert [a.tobytes() for a in ours] == [a.tobytes() for a in plain]


@pytest.mark.parametrize("build", BUILDS)
def test_attention_of_few_queries_has_the_bits_of_portable_c(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of whole lanes, which are widened once for the queries of a key head: these end, and begin, at keys of their own."""
    monkeypatch.setitem(BUILDS, "plain", ("gcc", "-O1", "-DOIC_PORTABLE"))
    cases = []
    for q, kv in (("f32", "f16"), ("f32", "bf16"), ("f32", "i8"), ("f16", "f16")):
        for n, t, hq, hk, dv, window in ((2, 65, 2, 2, 80, 300), (9, 70, 1, 1, 48, 7), (3, 200, 6, 2, 64, 129), (1, 129, 22, 2, 128, 66)):
            k, v = (RNG.integers(-127, 128, x.shape).astype(np.int8) if kv == "i8" else x.astype(dtypes.ALL[kv].np)
                    for x in (real((t, hk, 20)), real((t, hk, dv))))  # fmt: skip
            scales = [None, None, None, abs(real((t, hk))) * 0.02, abs(real((t, hk))) * 0.02] if kv == "i8" else []
            cases.append(Case(Attention, [real((n, hq, 20), q), k, v, *scales], {"causal": True, "window": window}))
    for case, ours, plain in zip(cases, run(cases, build), run(cases, "plain"), strict=True):
        assert [a.tobytes() for a in ours] == [a.tobytes() for a in plain], [str(v and v.type) for v in case.values]


def test_queries_of_attention_have_the_same_zeros_alone() -> None:
    """Results too small for a number are zeros of one sign, whether other queries of the step see more spans or not."""
    q, k = 8 * real((20, 2, 8)), real((140, 2, 8))
    v = np.where(RNG.random((140, 2, 8)) < 0.5, -1e-45, -0.0).astype(np.float32)
    cases = [Case(Attention, [x, k[:n], v[:n]], {"causal": True}) for x, n in ((q, 140), (q[:8], 128), (q[7:8], 128))]
    whole, some, one = (y[0] for y in run(cases, "gcc-portable"))
    assert np.any(some == 0)
    assert whole[:8].tobytes() == some.tobytes()
    assert whole[7:8].tobytes() == one.tobytes()
