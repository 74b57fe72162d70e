"""Compiled C in memory without a byte to spare: an access to any byte beyond it is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.diagnostics import StepError
from oic.driver import Program
from oic.kernels.targets import FUSED
from oic.operators.base import Operator
from processor import AVX2, features
from tests.fuzz.checks import compiled
from tests.fuzz.memory_plans import LAYOUTS, laid_out
from tests.fuzz.sanitized import OPTIMIZED, SANITIZED, Crash, SanitizedExecutor, build_sanitized

GRAPH = """\
graph NAME {
    dynamic { x: f32[4]; d: i32; }
    constant { c1: f32[4]; }
    persistent { n: u8; K: f32[4]; }
    volatile { y: f32[4]; }
    block entry {
        assign a: f32[4];
        op softmax(x) >> a;
        op add(a, c1) >> a;
        cache.read K >> y;
        cache.write a >> K;
        op flip(a, axes=[0]) >> a;
        op flip(a, axes=[0]) >> y;
        cache.increment n;
        return;
    }
}
"""
WAYS = {"sanitized": SANITIZED, "optimized": OPTIMIZED}
KERNELS = """\
graph kernels {
    dynamic { x: f32[N, 70] @max(N=20); q: f32[N, 4, 20]; k: f32[T, 2, 20] @max(T=300); image: f32[1, 5, 11, 13]; }
    constant {
        w1: f32[130, 70]; w2: f32[70, 130]; w3: f32[130, 70]; w4: f32[70, 130]; g: f32[130]; b: f32[130];
        filters: f32[9, 5, 3, 3];
    }
    volatile { y: f32[N, 70]; a: f32[N, 4, 20]; c: f32[1, 9, 9, 11]; i: i64[N]; }
    block entry {
        assign h: f32[N, 130];
        op linear(x, w1) >> h;
        op rms_norm(h, g, eps=1e-5) >> h;
        op gelu(h) >> h;
        op linear(h, w2) >> y;
        op linear(y, w3) >> h;
        op layer_norm(h, g, beta=b, eps=1e-5) >> h;
        op linear(h, w4) >> y;
        op softmax(y) >> y;
        op argmax_axis(y, axis=-1) >> i;
        op attention(q, k, k, causal=true) >> a;
        op conv2d(image, filters) >> c;
        return;
    }
}
"""
CONVOLUTIONS = """\
graph convolutions {
    dynamic { x: i8[N, 70] @max(N=20); p: i8[24, 13, 17]; q: i8[4, 6, 5]; l: i8[3, 5, 37]; f: f32[6, 9, 11]; }
    constant {
        a: i8[53, 70]; w: i8[33, 24, 3, 3]; v: i8[9, 24, 3, 2]; r: i8[3, 4, 3, 3]; t: i8[7, 5, 3]; d: i8[24, 1, 3, 3];
        u: f32[6, 5, 3, 3]; g: f32[8, 3, 3, 2];
    }
    volatile {
        y1: i32[N, 53]; y2: i32[33, 13, 17]; y3: i32[9, 6, 9]; y4: i32[3, 6, 5]; y5: i32[3, 7, 19]; y6: i32[24, 13, 17];
        y7: f32[5, 17, 21]; y8: f32[8, 5, 12];
    }
    block entry {
        op linear(x, a, acc=i32) >> y1;
        op conv2d(p, w, padding=[1, 1], acc=i32) >> y2;
        op conv2d(p, v, stride=2, padding=[0, 1], acc=i32) >> y3;
        op conv2d(q, r, padding=[1, 1], acc=i32) >> y4;
        op conv1d(l, t, stride=2, padding=1, acc=i32) >> y5;
        op conv2d(p, d, padding=[1, 1], groups=24, acc=i32) >> y6;
        op conv_transpose2d(f, u, stride=[2, 2], padding=[1, 1]) >> y7;
        op conv2d(f, g, stride=[2, 1], padding=[1, 1], groups=2) >> y8;
        return;
    }
}
"""
STORED = "w1=f32,w2=bf16,w3=q8,w4=q4,*=f32"
# Lines of the source, and checks of pointers whose accesses are checked as addresses: half of the compiler's time.
WITHOUT = ("-g0", "-fno-sanitize=null,object-size,pointer-overflow")
VECTORS = {"host": ("host", None, ()), "avx2": ("portable", FUSED, ("-march=x86-64-v3",))}


def made(name: str) -> Program:
    found = compiled(GRAPH.replace("NAME", name))
    assert found is not None
    return laid_out(found, LAYOUTS[2])


def smaller(name: str, space: str) -> Program:
    """A program whose plan says that a buffer ends earlier than it does."""
    program = made(name)
    plan = program.planned.plan
    assert plan is not None
    held = next(b for b in plan.buffers if b.space == space)
    plan.buffers = [replace(b, nbytes=b.nbytes - 4) if b is held else b for b in plan.buffers]
    return program


@pytest.mark.parametrize("way", WAYS)
def test_red_zones(way: str, tmp_path: Path) -> None:
    """One program is right; the other writes four bytes that its plan assigns to no value."""
    programs = [made("right"), smaller("wrong", "arena")]
    path = build_sanitized(programs, tmp_path, WAYS[way])
    x = np.array([1, 2, 3, 4], np.float32)
    with SanitizedExecutor(programs[0], path, 0) as right:
        first = right.step("entry", x=x)["y"]
        saved = right.save()
        assert right.fetch("n") == 1
        right.reset()
        assert right.fetch("n") == 0
        np.testing.assert_array_equal(right.step("entry", x=x)["y"], first)
        kept = right.fetch("K")
        right.step("entry", x=-x)
        right.load(saved)
        np.testing.assert_array_equal(right.fetch("K"), kept)
    with SanitizedExecutor(programs[1], path, 1) as wrong:
        said = "use-after-poison" if way == "sanitized" else "red zone of a buffer was written"
        with pytest.raises(Crash, match=said):
            wrong.step("entry", x=x)


@pytest.mark.parametrize("vectors", VECTORS)
def test_kernels_of_vectors_stay_in_their_memory(vectors: str, tmp_path: Path) -> None:
    """Each encoding of weights, and sizes of none, one, some that fill no register, and the most."""
    made_for, numerics, flags = VECTORS[vectors]
    if flags and not set(AVX2) <= features():
        pytest.skip("this processor has no AVX2")
    rng = np.random.default_rng(0)
    shapes = {"w1": (130, 70), "w2": (70, 130), "w3": (130, 70), "w4": (70, 130), "g": 130, "b": 130, "filters": (9, 5, 3, 3)}
    model = oic.Model(tensors={n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()})
    made = oic.Synthesizer(oic.parse(KERNELS), model, target=made_for, numerics=numerics, weights=STORED)
    path = build_sanitized(
        [made.program], tmp_path, (*SANITIZED, *WITHOUT, *flags), made_for, made.spec.target.numerics
    )
    with SanitizedExecutor(made.program, path, 0, made_for) as executor:
        for n, t in ((0, 0), (1, 1), (1, 299), (3, 17), (13, 131), (20, 300)):
            given = {"x": (n, 70), "q": (n, 4, 20), "k": (t, 2, 20), "image": (1, 5, 11, 13)}
            found = executor.step(**{name: rng.standard_normal(shape).astype(np.float32) for name, shape in given.items()})
            assert all(np.isfinite(value).all() for value in found.values())


def test_convolutions_of_vectors_stay_in_their_memory(tmp_path: Path) -> None:
    """Of bytes, in words and in tiles, and of floats: windows that leave the image, strides, groups, transposed ones."""
    _, numerics, flags = VECTORS["avx2"] if set(AVX2) <= features() else ("", None, ())
    rng = np.random.default_rng(1)
    shapes = {"a": (53, 70), "w": (33, 24, 3, 3), "v": (9, 24, 3, 2), "r": (3, 4, 3, 3), "t": (7, 5, 3), "d": (24, 1, 3, 3)}
    weights = {n: rng.integers(-128, 128, shape).astype(np.int8) for n, shape in shapes.items()}
    floats = {"u": (6, 5, 3, 3), "g": (8, 3, 3, 2)}
    weights |= {n: rng.standard_normal(shape).astype(np.float32) for n, shape in floats.items()}
    graph = oic.parse(CONVOLUTIONS)
    made = oic.Synthesizer(graph, oic.Model(tensors=weights), target="portable", numerics=numerics)
    chosen = {op.kernel for op in made.spec.module.all_ops() if isinstance(op, Operator)}
    assert {"linear_words", "conv_planes_int", "conv_winograd", "conv_planes"} <= chosen
    path = build_sanitized([made.program], tmp_path, (*SANITIZED, *WITHOUT, *flags), numerics=made.spec.target.numerics)
    reference = oic.Simulator(graph, oic.Model(tensors=weights)).make_executor()
    with SanitizedExecutor(made.program, path, 0) as executor:
        for n in (0, 1, 7, 20):
            bytes_of = {"x": (n, 70), "p": (24, 13, 17), "q": (4, 6, 5), "l": (3, 5, 37)}
            given = {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in bytes_of.items()}
            given["f"] = rng.standard_normal((6, 9, 11)).astype(np.float32)
            found, wanted = executor.step(**given), reference.step(**given)
            assert all(np.allclose(found[name], value, rtol=1e-4, atol=1e-4) for name, value in wanted.items())


def test_positions_are_taken_back(tmp_path: Path) -> None:
    """As many as there are; more are refused."""
    program = compiled(
        """\
graph fed {
    dynamic { x: f32[N, 4] @max(N=3); }
    persistent { pos: i32 @init(0); K(t): f32[4] @table @fixed(t=8); }
    volatile { y: f32[?, 4]; }
    block entry {
        cache.write x >> K[pos..pos + N];
        cache.read K[0..pos + N] >> y;
        cache.increment N pos;
        return;
    }
}
"""
    )
    assert program is not None
    with SanitizedExecutor(program, build_sanitized([program], tmp_path), 0) as session:
        session.step("entry", x=np.ones((3, 4), np.float32))
        session.truncate(2)
        assert session.fetch("pos") == 1
        with pytest.raises(StepError):
            session.truncate(2)
        assert session.fetch("pos") == 1
