"""A history that grows: without a bound, then with room for three entries.

python examples/persistent_memory/growing_cache/run.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import oic

HEADS, WIDTH = 2, 4


def token(step: int) -> np.ndarray:
    return np.full((1, HEADS * WIDTH), step + 1, np.float32)


def weights() -> oic.Model:
    """Query weights of the identity."""
    one = np.eye(HEADS * WIDTH, dtype=np.float32)
    return oic.Model(tensors={"Wq": one}, sizevars={"H": HEADS, "Dh": WIDTH})


def main() -> None:
    graph = oic.parse_file(Path(__file__).with_name("graph.oi"))
    model = weights()

    print("no bound: address space is reserved, memory is taken as it is touched")
    compiled = oic.Synthesizer(graph, model).build()
    with oic.Simulator(graph, model).make_executor() as sim, compiled.make_executor() as syn:
        for step in range(5):
            expected, found = sim.step(x=token(step)), syn.step(x=token(step))
            assert np.allclose(found["y"], expected["y"], rtol=1e-3)
            sizes_of = [len(found[name]) for name in ("all", "before")]
            print(
                f"step {step}  y = {found['y'][0, 0]:.3f}  K[] has {sizes_of[0]}, K[0..-1] has {sizes_of[1]}"
            )
        print(f"fetched from outside: K is {list(syn.fetch('K').shape)}")

    print("room for three: the fourth step is refused, and changes nothing")
    for maker in (oic.Simulator, oic.Synthesizer):
        with maker(graph, model, capacity={"t": 3}).make_executor() as ex:
            try:
                for step in range(4):
                    ex.step(x=token(step))
            except oic.StepError as refusal:
                kept = f"step = {int(ex.fetch('step'))}, K is {list(ex.fetch('K').shape)}"
                print(f"{maker.__name__}: {refusal.status} at line {refusal.span.line}, {kept}")


if __name__ == "__main__":
    main()
