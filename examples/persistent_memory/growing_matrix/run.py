"""Three steps of a matrix that grows, the fourth refused; the number of steps each element saw.

python examples/persistent_memory/growing_matrix/run.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import oic


def main() -> None:
    graph = oic.parse_file(Path(__file__).with_name("graph.oi"))
    compiled = oic.Synthesizer(graph).build()
    with oic.Simulator(graph).make_executor() as sim, compiled.make_executor() as syn:
        for step in range(2):
            expected, found = sim.step(), syn.step()
            assert all(np.array_equal(found[name], expected[name]) for name in expected)
            print(
                f"step {step}  M is {list(syn.fetch('M').shape)}, its corner {list(found['corner'].shape)}"
            )
        print(syn.fetch("M").astype(int))
        try:
            syn.step()
        except oic.StepError as refusal:
            print(
                f"{refusal.status}: {refusal.variable} would be {refusal.index}, at most {refusal.bound}"
            )
        print(f"rows = {int(syn.fetch('rows'))}, M is {list(syn.fetch('M').shape)}")


if __name__ == "__main__":
    main()
