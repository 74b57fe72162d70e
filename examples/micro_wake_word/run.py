"""Detect voice by a network of bytes of microWakeWord: the compiled graph beside the reference, step by step.

    python examples/micro_wake_word/run.py

The network is micro-wake-word/vad in OIC_MODELS (default ../shared/models), as it was in TensorFlow Lite: its layers
become the constants of graph.oi, with the zero points of what weights meet in the biases, and scales as factors.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oic

HERE = Path(__file__).parent
# Which operator of the network is which layer of the graph: the names of its weights, biases, multipliers and shifts.
LAYERS = [
    ("CONV_2D", "w0", "b0", "m0", "s0"),
    ("DEPTHWISE_CONV_2D", "d1", "e1", "f1", "g1"), ("CONV_2D", "w1", "b1", "m1", "s1"),
    ("DEPTHWISE_CONV_2D", "d2", "e2", "f2", "g2"), ("CONV_2D", "w2", "b2", "m2", "s2"),
    ("DEPTHWISE_CONV_2D", "d3", "e3", "f3", "g3"), ("CONV_2D", "w3", "b3", "m3", "s3"),
    ("FULLY_CONNECTED", "w4", "b4", "m4", "s4"),
]  # fmt: skip


def folder() -> Path:
    """Of the network, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or HERE.parents[2] / "shared" / "models") / "micro-wake-word"


def factors(real: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Multipliers and shifts of scales: each is multiplier * 2^(shift - 31), as TensorFlow Lite rounds it."""
    fractions, exponents = np.frexp(real)
    whole = np.floor(fractions * 2.0**31 + 0.5).astype(np.int64)
    full = whole == 1 << 31
    return np.where(full, whole // 2, whole).astype(np.int32), (exponents + full).astype(np.int8)


def constants(source: Path) -> Iterator[tuple[str, NDArray[Any], str]]:
    """Name, elements and element type of every constant of the graph."""
    network = json.loads((source / "vad.graph.json").read_text())["subgraphs"][0]
    data, tensors = oic.Model.open(source / "vad.safetensors"), network["tensors"]
    found = [o for o in network["operators"] if o["op"] in {kind for kind, *_ in LAYERS}]
    for (kind, *names), operator in zip(LAYERS, found, strict=True):
        assert operator["op"] == kind, f"{kind} comes where {operator['op']} is"
        x, w, b = (tensors[i] for i in operator["inputs"])
        y = tensors[operator["outputs"][0]]
        weights, bias = (data.tensor(t["const"]) for t in (w, b))
        # [outputs, products]: filters of a channel each have it last
        rows = weights.reshape(-1, weights.shape[-1]).T if "DEPTHWISE" in kind else weights.reshape(len(weights), -1)
        sums = bias - x["zero_point"][0] * rows.astype(np.int32).sum(1, dtype=np.int32)
        scales = np.broadcast_to(np.float64(w["scale"]), len(rows)) * x["scale"][0] / y["scale"][0]
        yield names[0], np.ascontiguousarray(rows[:, None] if "DEPTHWISE" in kind else rows), "i8"
        yield names[1], sums.astype(np.int32), "i32"
        yield from zip(names[2:], factors(scales), ("i32", "i8"))
    yield "logit_scale", np.array(y["scale"][0], np.float32), "f32"
    yield "logit_zero", np.array(y["zero_point"][0], np.int32), "i32"


def main() -> int:
    source = folder()
    if not source.exists():
        print(f"there is no {source}: set OIC_MODELS to the folder of models")
        return 1
    model = oic.Model(tensors={name: oic.Tensor(value, dtype) for name, value, dtype in constants(source)})
    frames, expected = (np.load(source / "reference" / f"jfk.vad.{what}.npy") for what in ("x", "prob"))
    built = oic.Synthesizer(oic.parse_file(HERE / "graph.oi"), model).build(HERE / "out")
    with built.make_executor() as executor:
        executor.step(frames=frames[0])  # what is made once is not measured
        executor.reset()
        start = time.perf_counter()
        found = np.array([executor.step(frames=step)["probability"][0] for step in frames], np.int32)
        seconds = time.perf_counter() - start
        kept = [executor.fetch(f"X{number}") for number in range(4)]
        equal = [np.array_equal(rows[-len(last) :], last) for rows, last in zip(kept, windows(source))]
    off = np.abs(found - expected.reshape(-1))
    exact, near = np.count_nonzero(off == 0), np.count_nonzero(off == 1)
    print(f"{len(found)} steps, {seconds / len(found) * 1e6:.1f} us each: {exact} as the reference, {near} off by one "
          f"of 256; {sum(equal)} of {len(equal)} windows equal")  # fmt: skip
    return 0 if exact >= len(found) - 1 and exact + near == len(found) and all(equal) else 1


def windows(source: Path) -> Iterator[NDArray[np.int8]]:
    """The rows that each window of the reference keeps at last."""
    for number in range(4):
        rows = np.load(source / "reference" / f"jfk.vad.state_{number}_last.npy")
        yield rows.reshape(-1, rows.shape[-1])


if __name__ == "__main__":
    sys.exit(main())
