"""A guitar amplifier as a stack of dilated convolutions that goes on where the step before ended, beside its reference.

    python examples/wavenet/run.py                 the reference recording, compared, and how long a block takes
    python examples/wavenet/run.py --graph         the graph that is compiled

The weights are nam-wavenet/weights.safetensors in OIC_MODELS (default ../shared/models).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import oic
from oic.session.executor import Executor

HERE = Path(__file__).parent
BLOCK = 64  # the most samples of a step
REACH = 4093  # samples of silence before the first: all that a result depends on
BOUND = 1e-4
Samples = NDArray[np.float32]


def models() -> Path:
    """The folder of models, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or HERE.parents[2] / "shared" / "models") / "nam-wavenet"


def arrays() -> list[tuple[int, int, list[int]]]:
    """Channels of an array of layers and of its head, and the dilations of its layers."""
    config = json.loads((models() / "wavenet_a1_standard.nam").read_text())["config"]
    return [(array["channels"], array["head_size"], array["dilations"]) for array in config["layers"]]


def graph(found: list[tuple[int, int, list[int]]]) -> str:
    """N new samples in, as many out.

    A layer keeps in a ring what it was given, a row a sample, as far as its taps reach back: its convolution is one
    product with the new rows beside those one and two dilations before.
    """
    constants, rings, lines = ["scale: f32[1];", "bias: f32[1];"], [], []
    given, size = "samples", 1
    for a, (channels, head, dilations) in enumerate(found):
        rows = f"f32[N, {channels}]"
        constants += [f"into{a}: f32[{channels}, {size}];", f"out{a}: f32[{head}, {channels}];"]
        lines += [f"assign x{a}: {rows};", f"op linear({given}, into{a}) >> x{a};"]
        lines += [] if a else [f"assign head0: {rows};"]
        given, size = f"x{a}", channels
        for layer, d in enumerate(dilations):
            n, taps = f"{a}_{layer}", 3 * channels + 1  # and the sample itself
            constants += [f"taps{n}: f32[{channels}, {taps}];", f"b{n}: f32[{channels}];"]
            constants += [f"mix{n}: f32[{channels}, {channels}];", f"c{n}: f32[{channels}];"]
            rings += [f"past{n}(t): f32[{channels}] @table @fixed(t={2 * d + BLOCK}) @ring(t);"]
            lines += [
                f"assign before{n}: {rows};", f"assign far{n}: {rows};",
                f"assign z{n}: {rows};", f"assign met{n}: f32[N, {taps}];",
                f"cache.write x{a} >> past{n}[now..now+N];",
                f"cache.read past{n}[now-{2 * d}..now-{2 * d}+N] >> far{n};",
                f"cache.read past{n}[now-{d}..now-{d}+N] >> before{n};",
                f"op concat(far{n}, before{n}, x{a}, samples, axis=1) >> met{n};",
                f"op linear(met{n}, taps{n}, b=b{n}) >> z{n};",
                f"op tanh(z{n}) >> z{n};",
                f"op add(head{a}, z{n}) >> head{a};",
                f"op linear(z{n}, mix{n}, b=c{n}) >> z{n};",
                f"op add(x{a}, z{n}) >> x{a};",
            ]  # fmt: skip
        lines += [f"assign head{a + 1}: f32[N, {head}];"]
        more = ", b=bias" if a + 1 == len(found) else ""
        lines += [f"op linear(head{a}, out{a}{more}) >> head{a + 1};"]
    lines += [f"op mul(head{len(found)}, scale) >> result;", "cache.increment N now;", "return;"]
    return "\n".join([
        "graph wavenet {", f"dynamic {{ samples: f32[N, 1] @max(N={BLOCK}); }}", "volatile { result: f32[N, 1]; }",
        "constant {", *constants, "}", "persistent {", "now: i64;", *rings, "}",
        "block entry { branch stack; return; }", "block one @entry(N=1) { branch stack; return; }",
        "block stack {", *lines, "}", "}", "",
    ])  # fmt: skip


def weights(found: list[tuple[int, int, list[int]]]) -> oic.Model:
    """The taps of a layer as one matrix: by dilation, then by channel, and last what mixes in the sample."""
    read = oic.Model.open(models() / "weights.safetensors")
    t = {name: read.tensor(name) for name in read}
    made = {"scale": t["head_scale"], "bias": t["a1.head.b"]}
    for a, (_, _, dilations) in enumerate(found):
        made |= {f"into{a}": t[f"a{a}.rechannel.w"], f"out{a}": t[f"a{a}.head.w"]}
        for layer in range(len(dilations)):
            of, n = f"a{a}.l{layer}", f"{a}_{layer}"
            taps = np.moveaxis(t[f"{of}.conv.w"], 2, 1)
            made[f"taps{n}"] = np.concatenate([taps.reshape(len(taps), -1), t[f"{of}.mixin.w"]], axis=1)
            made |= {f"b{n}": t[f"{of}.conv.b"], f"mix{n}": t[f"{of}.out.w"], f"c{n}": t[f"{of}.out.b"]}
    return oic.Model(tensors=made)


def amplified(executor: Executor, samples: Samples, block: int = BLOCK) -> Samples:
    """A recording, after the silence that the model begins with, so many samples a step."""
    executor.reset()
    rows = np.concatenate([np.zeros(REACH, np.float32), samples])[:, None]
    entry = "one" if block == 1 else "entry"
    parts = [rows[i : i + block] for i in range(0, len(rows), block)]
    return np.concatenate([executor.step(entry, samples=part)["result"] for part in parts])[REACH:, 0]


def main() -> int:
    if not (models() / "weights.safetensors").exists():
        print(f"there is no {models() / 'weights.safetensors'}: set OIC_MODELS to the folder of models")
        return 1
    found = arrays()
    if "--graph" in sys.argv:
        print(graph(found), end="")
        return 0
    samples, wanted = (np.load(models() / "reference" / f"{name}_0.npy").reshape(-1) for name in "xy")
    with oic.Synthesizer(oic.parse(graph(found), name="wavenet"), weights(found)).build().make_executor() as executor:
        good = True
        for block in (1, 16, BLOCK):
            start = time.perf_counter()
            result = amplified(executor, samples, block)
            each = (time.perf_counter() - start) / (len(samples) + REACH)
            error = float(np.abs(result - wanted).max())
            good &= error <= BOUND
            print(f"{block:2} samples a step: {each * 1e6:.2f} us a sample, within {error:.1e} of the reference")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
