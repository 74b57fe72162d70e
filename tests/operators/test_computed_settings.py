"""Settings that a program reads or computes may be any number of their type, also what no source may give: C has the reference's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from tests.fuzz.sanitized import SanitizedExecutor, build_sanitized

SHAPES = {
    "q": (3, 2, 4), "k": (6, 2, 4), "v": (6, 2, 4), "one": (1, 2, 4), "many": (40, 1, 8), "keys": (150, 1, 8), "x": (3, 5), "table": (32, 2),
}  # fmt: skip
TEXT = """
graph computed {
  dynamic { DECLARED u: f32; i: i64; f: f32; }
  volatile {
    all: f32[3, 2, 4]; seen: f32[3, 2, 4]; alone: f32[1, 2, 4]; strips: f32[40, 1, 8]; spans: f32[1, 1, 8]; used: f32[3, 2, 4]; turned: f32[3, 2, 4];
    bias: f32[2, 3, 4]; id: i32; few: i32; kept: i32; counted: i32[4]; clamped: f32[3, 5]; sloped: f32[3, 5]; capped: f32[3, 5];
    scaled: f32[3, 5]; normal: f32[3, 5]; filled: f32[2];
  }
  block entry {
    op attention(q, k, v, window=i) >> all;
    op attention(q, k, v, window=i, causal=true) >> seen;
    op attention(one, k, v, window=i) >> alone;
    op attention(many, keys, keys, window=i) >> strips;
    assign last: f32[1, 1, 8];
    op slice(many, axis=0, start=0, end=1) >> last;
    op attention(last, keys, keys, window=i) >> spans;
    op attention(q, k, v, kv_len=i, window=4) >> used;
    op rope(q, pos=i) >> turned;
    op relative_position_bias(table, q_start=i, n=3, t=4, bidirectional=true) >> bias;
    assign logits: f32[5];
    op max_axis(x, axes=[0]) >> logits;
    op sample(logits, u, temperature=f) >> id;
    op sample(logits, u, top_k=i) >> few;
    op sample(logits, u, top_p=f) >> kept;
    op iota(shape=[4], start=i) >> counted;
    op clamp(x, min=f, max=1.0) >> clamped;
    op relu(x, alpha=f) >> sloped;
    op relu(x, clamp_max=f) >> capped;
    op rms_norm(x, logits, eps=f) >> scaled;
    op layer_norm(x, logits, eps=f) >> normal;
    op fill(filled, value=f) >> filled;
    return;
  }
}
""".replace("DECLARED", " ".join(f"{name}: f32{list(shape)};" for name, shape in SHAPES.items()))
INTEGERS = (3, 1, 0, -1, -2, -9, 2**31, -(2**31), 2**63 - 1, 2**63 - 2, 2**63 - 4, -(2**63), 1 - 2**63)
FLOATS = (1.0, 0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 0.5, -3e38, 2.5, 1e-3)


@pytest.mark.filterwarnings("ignore")
def test_settings_of_any_value(tmp_path: Path) -> None:
    simulator, rng = oic.Simulator(oic.parse(TEXT, "computed.oi")), np.random.default_rng(0)
    path = build_sanitized([simulator.program], tmp_path)
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
    with simulator.make_executor() as reference, SanitizedExecutor(simulator.program, path, 0) as compiled:
        for i, f in zip(INTEGERS, FLOATS, strict=True):
            step = {**given, "u": np.float32(0.4), "i": np.int64(i), "f": np.float32(f)}
            wanted, found = reference.step(**step), compiled.step(**step)
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, 1e-4, 1e-5, err_msg=f"{name}, {i}, {f}")
