"""Three steps of a graph that remembers one entry a layer; both backends side by side.

python examples/persistent_memory/single_step/run.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import oic

LAYERS, HEADS, WIDTH = 2, 2, 4


def weights() -> oic.Model:
    """Query weights of the identity; keys and values are the token times 1/2 and 1/4."""
    one = np.eye(HEADS * WIDTH, dtype=np.float32)
    tensors = {}
    for layer in range(LAYERS):
        tensors[f"layer.{layer}.query"] = one
        tensors[f"layer.{layer}.key"] = one / 2
        tensors[f"layer.{layer}.value"] = one / 4
    return oic.Model(tensors=tensors, sizevars={"layers": LAYERS, "H": HEADS, "Dh": WIDTH})


def main() -> None:
    graph = oic.parse_file(Path(__file__).with_name("graph.oi"))
    model = weights()
    x = np.ones((1, HEADS * WIDTH), np.float32)
    compiled = oic.Synthesizer(graph, model).build()
    with oic.Simulator(graph, model).make_executor() as sim, compiled.make_executor() as syn:
        for step in range(3):
            expected, y = sim.step(x=x)["y"], syn.step(x=x)["y"]
            assert np.allclose(y, expected, rtol=1e-6)
            left = syn.fetch("V")[:, step + 1, 0, 0]
            print(f"step {step}  y = {y[0, 0]:.4f}  left for the next step: V = {left.tolist()}")
        written = np.flatnonzero(syn.fetch("K")[0].any(axis=(1, 2)))
        print(f"entries of layer 0 ever written: {written.tolist()}")


if __name__ == "__main__":
    main()
